/*
 * Loops over bytes that compilers do not vectorize well. There is no limit for
 * machines without AVX2, because a slow loop would not be a limit.
 */
#include "limits.h"

#include <string.h>

#ifdef __x86_64__
#include <immintrin.h>

#define HW __attribute__((target("avx2,sse4.2")))

bool has_hw(void)
{
	return __builtin_cpu_supports("avx2") &&
	       __builtin_cpu_supports("sse4.2");
}

/*
 * The crc32 instruction takes eight bytes, with a latency of three cycles and a
 * throughput of one per cycle, so three lanes run in parallel. The crc of a
 * lane is then advanced past the bytes of the next lanes by tables for zero
 * bytes.
 */
struct lanes {
	size_t len;
	uint32_t past[4][256];
};
static struct lanes lanes[] = { { .len = 4096 }, { .len = 256 } };

HW static uint64_t past_zeros(uint64_t crc, size_t n)
{
	for (; n; n -= 8)
		crc = _mm_crc32_u64(crc, 0);
	return crc;
}

static uint64_t past(const struct lanes *l, uint64_t crc)
{
	return l->past[0][crc & 255] ^ l->past[1][crc >> 8 & 255] ^
	       l->past[2][crc >> 16 & 255] ^ l->past[3][crc >> 24 & 255];
}

HW static uint64_t three(const struct lanes *l, uint64_t a, const char *p)
{
	const char *q = p + l->len, *r = q + l->len;
	uint64_t b = 0, c = 0;

	for (size_t i = 0; i < l->len; i += 8) {
		a = _mm_crc32_u64(a, first_word(p + i));
		b = _mm_crc32_u64(b, first_word(q + i));
		c = _mm_crc32_u64(c, first_word(r + i));
	}
	return past(l, past(l, a) ^ b) ^ c;
}

/* Copies each piece while it is in the L1 cache. */
HW static uint32_t crc32c_hw(const char *p, size_t n, char *to)
{
	uint64_t crc = 0xffffffff;

	for (size_t k = 0; k < sizeof(lanes) / sizeof(lanes[0]); k++) {
		const size_t step = 3 * lanes[k].len;

		for (; n >= step; n -= step, p += step, to += step) {
			crc = three(&lanes[k], crc, p);
			memcpy(to, p, step);
		}
	}
	memcpy(to, p, n);
	for (; n >= 8; n -= 8, p += 8)
		crc = _mm_crc32_u64(crc, first_word(p));
	for (; n; n--, p++)
		crc = _mm_crc32_u8((uint32_t)crc, (uint8_t)*p);
	return ~(uint32_t)crc;
}

void prepare_crc32c(void)
{
	if (!has_hw())
		die("the CRC-32C limit needs x86-64 with AVX2");
	for (size_t k = 0; k < sizeof(lanes) / sizeof(lanes[0]); k++)
		for (uint32_t i = 0; i < 4 * 256; i++)
			lanes[k].past[i / 256][i % 256] = (uint32_t)past_zeros(
				(uint64_t)(i % 256) << i / 256 * 8,
				lanes[k].len);
}

uint32_t copy_crc32c(const char *p, size_t n, char *to)
{
	return crc32c_hw(p, n, to);
}

/* 32 letters at a time; the last step overlaps the one before. */
HW static inline void letters_hw(__m256i table, const uint8_t *p, size_t n,
				 uint8_t *to)
{
	for (size_t i = 0;; i = i + 64 <= n ? i + 32 : n - 32) {
		const __m256i v = _mm256_loadu_si256((const void *)(p + i));

		_mm256_storeu_si256(
			(void *)(to + i),
			_mm256_shuffle_epi8(
				table,
				_mm256_and_si256(v, _mm256_set1_epi8(15))));
		if (i + 32 >= n)
			return;
	}
}

HW static void lines_hw(const uint8_t table[16], const struct lines *l,
			uint8_t *to)
{
	const __m256i t = _mm256_broadcastsi128_si256(
		_mm_loadu_si128((const void *)table));
	const uint8_t *p = l->p;
	size_t left = l->n;

	for (size_t k = l->first; left; k = l->width) {
		k = k < left ? k : left;
		if (k >= 32)
			letters_hw(t, p, k, to);
		for (size_t i = 0; i < k && k < 32; i++)
			to[i] = table[p[i] & 15];
		p += k + 1;
		to += k;
		left -= k;
	}
}
#else
bool has_hw(void)
{
	return false;
}

void prepare_crc32c(void)
{
	die("the CRC-32C limit needs x86-64 with AVX2");
}

uint32_t copy_crc32c(const char *p, size_t n, char *to)
{
	(void)p, (void)n, (void)to;
	return 0;
}

static void lines_hw(const uint8_t table[16], const struct lines *l,
		     uint8_t *to)
{
	(void)table, (void)l, (void)to;
}
#endif

void translate(const uint8_t table[16], const struct lines *l, uint8_t *to)
{
	if (!has_hw())
		die("the limit for letters needs x86-64 with AVX2");
	lines_hw(table, l, to);
}
