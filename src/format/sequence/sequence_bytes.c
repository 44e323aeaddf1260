/*
 * Scanning and complementing many letters at a time: with AVX2 where the CPU
 * has it, otherwise byte by byte.
 */
#include "format/sequence/sequence.h"

static bool is_odd(uint8_t c)
{
	return c < 0x21 || c > 0x7e;
}

static bool is_stop(uint8_t c)
{
	return is_odd(c) || c == ',' || c == ';';
}

/* By the low five bits of a letter; other bytes are unchanged. */
static const uint8_t other[2][32] = { "@TVGHEFCDIJMLKNOPQYSAABWXRZ[\\]^_",
				      "@UVGHEFCDIJMLKNOPQYSAABWXRZ[\\]^_" };

static uint8_t complement(uint8_t c, bool rna)
{
	const uint8_t small = c & 0x20u, big = c & 0xdfu;

	return big >= 'A' && big <= 'Z' ? other[rna][c & 0x1fu] | small : c;
}

static void reverse(const uint8_t *from, uint8_t *to, size_t n, bool rna)
{
	for (size_t i = 0; i < n; i++)
		to[n - 1 - i] = complement(from[i], rna);
}

#ifdef __x86_64__
#include <immintrin.h>

#define HW __attribute__((target("avx2,bmi")))

/* As signed bytes plus 1, exactly 0x21 .. 0x7e are above 0x21. */
HW static inline __m256i odd32(__m256i v)
{
	return _mm256_cmpgt_epi8(_mm256_set1_epi8(0x22),
				 _mm256_add_epi8(v, _mm256_set1_epi8(1)));
}

HW static size_t odd_hw(const uint8_t *p, size_t n, bool stops)
{
	const __m256i comma = _mm256_set1_epi8(','),
		      semi = _mm256_set1_epi8(';');
	size_t i = 0;

	for (; n - i >= 32; i += 32) {
		const __m256i v = _mm256_loadu_si256((const void *)(p + i));
		__m256i m = odd32(v);
		unsigned bits;

		if (stops)
			m = _mm256_or_si256(
				m, _mm256_or_si256(_mm256_cmpeq_epi8(v, comma),
						   _mm256_cmpeq_epi8(v, semi)));
		bits = (unsigned)_mm256_movemask_epi8(m);
		if (bits)
			return i + (unsigned)__builtin_ctz(bits);
	}
	while (i < n && !(stops ? is_stop(p[i]) : is_odd(p[i])))
		i++;
	return i;
}

HW static inline __m256i other32(__m256i v, __m256i lo, __m256i hi)
{
	const __m256i low = _mm256_and_si256(v, _mm256_set1_epi8(0x0f));
	/* bit 4 selects the table, as the sign of the byte it is shifted to */
	const __m256i high = _mm256_slli_epi16(v, 3);
	const __m256i small = _mm256_and_si256(v, _mm256_set1_epi8(0x20));
	const __m256i big = _mm256_and_si256(v, _mm256_set1_epi8((char)0xdf));
	const __m256i is = _mm256_and_si256(
		_mm256_cmpgt_epi8(big, _mm256_set1_epi8('A' - 1)),
		_mm256_cmpgt_epi8(_mm256_set1_epi8('Z' + 1), big));
	const __m256i to = _mm256_or_si256(
		_mm256_blendv_epi8(_mm256_shuffle_epi8(lo, low),
				   _mm256_shuffle_epi8(hi, low), high),
		small);

	return _mm256_blendv_epi8(v, to, is);
}

HW static void reverse_hw(const uint8_t *from, uint8_t *to, size_t n, bool rna)
{
	const __m256i lo = _mm256_broadcastsi128_si256(
		_mm_loadu_si128((const void *)other[rna]));
	const __m256i hi = _mm256_broadcastsi128_si256(
		_mm_loadu_si128((const void *)(other[rna] + 16)));
	const __m256i back = _mm256_broadcastsi128_si256(_mm_set_epi8(
		0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
	size_t i = 0;

	for (; n - i >= 32; i += 32) {
		__m256i v = _mm256_loadu_si256((const void *)(from + i));

		v = _mm256_shuffle_epi8(other32(v, lo, hi), back);
		v = _mm256_permute2x128_si256(v, v, 1);
		_mm256_storeu_si256((void *)(to + n - i - 32), v);
	}
	reverse(from + i, to, n - i, rna);
}

static bool has_hw(void)
{
	return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi");
}

#else
#define reverse_hw reverse

static size_t odd_hw(const uint8_t *p, size_t n, bool stops)
{
	(void)p;
	(void)stops;
	return n;
}

static bool has_hw(void)
{
	return false;
}
#endif

size_t pen__seq_odd(const uint8_t *p, size_t n)
{
	size_t i = 0;

	if (has_hw())
		return odd_hw(p, n, false);
	while (i < n && !is_odd(p[i]))
		i++;
	return i;
}

size_t pen__seq_stop(const uint8_t *p, size_t n)
{
	size_t i = 0;

	if (has_hw())
		return odd_hw(p, n, true);
	while (i < n && !is_stop(p[i]))
		i++;
	return i;
}

void pen__seq_reverse(const uint8_t *from, uint8_t *to, size_t n, bool rna)
{
	if (has_hw())
		reverse_hw(from, to, n, rna);
	else
		reverse(from, to, n, rna);
}

size_t pen__seq_squeeze(struct pen_span from, uint8_t *to, uint64_t skip,
			size_t n)
{
	size_t at = 0, got = 0;

	while (at < from.n && got < n) {
		size_t run = pen__seq_odd(from.p + at, from.n - at);
		const size_t pass = run < skip ? run : (size_t)skip;

		skip -= pass;
		at += pass;
		run -= pass;
		if (run > n - got)
			run = n - got;
		if (run)
			memcpy(to + got, from.p + at, run);
		got += run;
		at += run;
		while (at < from.n && is_odd(from.p[at]))
			at++;
	}
	return got;
}

bool pen__seq_is_rna(const uint8_t *p, size_t n)
{
	return n && (memchr(p, 'U', n) || memchr(p, 'u', n)) &&
	       !memchr(p, 'T', n) && !memchr(p, 't', n);
}
