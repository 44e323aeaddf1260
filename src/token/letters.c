/* See letters.h. Every loop exists twice: for AVX2 and for any CPU. */
#include "token/letters.h"

#include <string.h>

#ifdef __x86_64__
#include <immintrin.h>
#endif

/* True if upper and lower case map to the same values. */
static bool folds(const uint8_t *table)
{
	for (unsigned i = 0; i < 256; i++)
		if (table[i] != table[i ^ 0x20])
			return false;
	return true;
}

void pen__letters_init(struct pen_letters *l, const uint8_t table[256])
{
	memset(l, 0, sizeof(*l));
	memcpy(l->table, table, 256);
	l->rest = table[0];
	l->folds = folds(table);
	l->same = true;
	for (unsigned i = 0; i < 256; i++)
		l->same = l->same && table[i] == i;
	for (unsigned h = 0; h < 16; h++) {
		bool differs = false;

		for (unsigned j = 0; j < 16; j++) {
			l->row[l->nrows][j] = table[h * 16 + j] ^ l->rest;
			differs = differs || l->row[l->nrows][j];
		}
		if (differs && !(l->folds && h & 2))
			l->high[l->nrows++] = (uint8_t)(h << 4);
		if (l->nrows == 16)
			break;
	}
}

#ifdef __x86_64__
#define HW __attribute__((target("avx2")))

/*
 * pshufb looks up the low half of a byte in a row and returns 0 where bit 7 is
 * set: adding 0x70 sets that bit in all bytes of other rows.
 */
struct row {
	__m256i values, high;
};

HW static inline struct row row_at(const struct pen_letters *l, unsigned r)
{
	return (struct row){ _mm256_broadcastsi128_si256(
				     _mm_loadu_si128((const void *)l->row[r])),
			     _mm256_set1_epi8((char)l->high[r]) };
}

HW static inline __m256i look_up(__m256i x, struct row r)
{
	const __m256i at = _mm256_adds_epu8(_mm256_xor_si256(x, r.high),
					    _mm256_set1_epi8(0x70));

	return _mm256_shuffle_epi8(r.values, at);
}

/* Letters of one alphabet occupy two rows, whatever their case. */
HW static inline __m256i map_two(__m256i x, __m256i mask, __m256i rest,
				 struct row a, struct row b)
{
	x = _mm256_and_si256(x, mask);
	return _mm256_xor_si256(rest,
				_mm256_xor_si256(look_up(x, a), look_up(x, b)));
}

HW static size_t map_two_hw(const struct pen_letters *l, const uint8_t *in,
			    size_t n, uint8_t *out)
{
	const __m256i mask = _mm256_set1_epi8(l->folds ? (char)0xdf : -1);
	const __m256i rest = _mm256_set1_epi8((char)l->rest);
	const struct row a = row_at(l, 0), b = row_at(l, 1);
	size_t i = 0;

	if (n < 32)
		return 0;
	for (;;) {
		const __m256i x = _mm256_loadu_si256((const void *)(in + i));

		_mm256_storeu_si256((void *)(out + i),
				    map_two(x, mask, rest, a, b));
		if (i + 32 >= n)
			return n;
		/* the last block overlaps the one before */
		i = i + 64 <= n ? i + 32 : n - 32;
	}
}

HW static size_t map_hw(const struct pen_letters *l, const uint8_t *in,
			size_t n, uint8_t *out)
{
	const __m256i mask = _mm256_set1_epi8(l->folds ? (char)0xdf : -1);
	size_t i = 0;

	if (l->nrows == 2)
		return map_two_hw(l, in, n, out);
	for (; i + 32 <= n; i += 32) {
		const __m256i x = _mm256_and_si256(
			_mm256_loadu_si256((const void *)(in + i)), mask);
		__m256i v = _mm256_set1_epi8((char)l->rest);

		for (unsigned r = 0; r < l->nrows; r++)
			v = _mm256_xor_si256(v, look_up(x, row_at(l, r)));
		_mm256_storeu_si256((void *)(out + i), v);
	}
	return i;
}

HW static size_t widen_hw(const uint8_t *in, size_t n, unsigned bytes,
			  uint8_t *out)
{
	size_t i = 0;

	for (; i + 16 <= n; i += 16) {
		const __m128i x = _mm_loadu_si128((const void *)(in + i));
		__m256i *to = (void *)(out + i * bytes);

		if (bytes == 2) {
			_mm256_storeu_si256(to, _mm256_cvtepu8_epi16(x));
		} else if (bytes == 4) {
			_mm256_storeu_si256(to, _mm256_cvtepu8_epi32(x));
			_mm256_storeu_si256(
				to + 1,
				_mm256_cvtepu8_epi32(_mm_srli_si128(x, 8)));
		} else {
			_mm256_storeu_si256(to, _mm256_cvtepu8_epi64(x));
			_mm256_storeu_si256(
				to + 1,
				_mm256_cvtepu8_epi64(_mm_srli_si128(x, 4)));
			_mm256_storeu_si256(
				to + 2,
				_mm256_cvtepu8_epi64(_mm_srli_si128(x, 8)));
			_mm256_storeu_si256(
				to + 3,
				_mm256_cvtepu8_epi64(_mm_srli_si128(x, 12)));
		}
	}
	return i;
}

/* out[i] = a[i] * by + b[i]; n is a multiple of 8. May work in place. */
HW static void join_hw(const uint32_t *a, uint32_t by, const uint32_t *b,
		       size_t n, uint32_t *out)
{
	const __m256i m = _mm256_set1_epi32((int)by);

	for (size_t i = 0; i < n; i += 8) {
		const __m256i x = _mm256_loadu_si256((const void *)(a + i));
		const __m256i y = _mm256_loadu_si256((const void *)(b + i));

		_mm256_storeu_si256(
			(void *)(out + i),
			_mm256_add_epi32(_mm256_mullo_epi32(x, m), y));
	}
}

HW static size_t seconds_hw(const uint8_t *code, size_t n, unsigned k,
			    unsigned nletters, uint16_t *out)
{
	const __m256i by = _mm256_set1_epi16((short)nletters);
	const __m256i low = _mm256_set1_epi16(0xff);
	size_t i = 0;

	for (; i + 16 <= n; i += 16) {
		__m256i v = _mm256_setzero_si256();

		for (unsigned j = 0; j < k; j++) {
			const void *at = code + 2 * i + j;
			const __m256i c =
				_mm256_and_si256(_mm256_loadu_si256(at), low);

			v = _mm256_add_epi16(_mm256_mullo_epi16(v, by), c);
		}
		_mm256_storeu_si256((void *)(out + i), v);
	}
	return i;
}
#else
static size_t map_hw(const struct pen_letters *l, const uint8_t *in, size_t n,
		     uint8_t *out)
{
	(void)l, (void)in, (void)n, (void)out;
	return 0;
}

static size_t widen_hw(const uint8_t *in, size_t n, unsigned bytes,
		       uint8_t *out)
{
	(void)in, (void)n, (void)bytes, (void)out;
	return 0;
}

static void join_hw(const uint32_t *a, uint32_t by, const uint32_t *b, size_t n,
		    uint32_t *out)
{
	(void)a, (void)by, (void)b, (void)n, (void)out;
}

static size_t seconds_hw(const uint8_t *code, size_t n, unsigned k,
			 unsigned nletters, uint16_t *out)
{
	(void)code, (void)n, (void)k, (void)nletters, (void)out;
	return 0;
}
#endif

void pen__letters_map(const struct pen_letters *l, const uint8_t *in, size_t n,
		      uint8_t *out)
{
	size_t i = 0;

	if (l->same) {
		if (n)
			memcpy(out, in, n);
		return;
	}
	if (l->nrows <= 8 && pen__has_avx2())
		i = map_hw(l, in, n, out);
	for (; i < n; i++)
		out[i] = l->table[in[i]];
}

void pen__letters_widen(const uint8_t *in, size_t n, unsigned bytes, void *to)
{
	uint8_t *out = to;
	size_t i = pen__has_avx2() ? widen_hw(in, n, bytes, out) : 0;

	for (; i < n; i++) {
		const uint64_t v = in[i];

		/* little-endian only */
		memcpy(out + i * bytes, &v, bytes);
	}
}

bool pen__word_code_init(struct pen_word_code *w, unsigned k, unsigned nletters)
{
	uint64_t all = 1;

	*w = (struct pen_word_code){ .k = k, .nletters = nletters };
	for (unsigned i = 0; i <= k; i++) {
		w->power[i] = (uint32_t)all;
		if (i < k)
			all *= nletters;
		if (all >= UINT32_MAX)
			return false;
	}
	return true;
}

/* Computes codes by doubling: words of 2 letters, then of 4, and so on, then
 * letter by letter. All arrays hold a block plus the letters that the last word
 * needs beyond it. */
static void codes_hw(const struct pen_word_code *w, uint32_t *one, size_t n,
		     uint32_t *out)
{
	uint32_t have[PEN_WORD_BLOCK + 64];
	const uint32_t *from = one;
	unsigned len = 1, rest = w->k - 1;
	size_t more = (n + w->k + 7) / 8 * 8;

	memset(have + more, 0, 24 * sizeof(*have));
	while (rest >= len) {
		join_hw(from, w->power[len], from + len, more, have);
		from = have;
		rest -= len;
		len *= 2;
	}
	for (; rest; rest--, len++) {
		join_hw(from, w->nletters, one + len, more, have);
		from = have;
	}
	memcpy(out, from, n * sizeof(*out));
}

static void codes_any(const struct pen_word_code *w, const uint8_t *code,
		      size_t n, uint32_t *out)
{
	const uint32_t top = w->power[w->k - 1];
	uint32_t v = 0;

	for (unsigned i = 0; i + 1 < w->k; i++)
		v = v * w->nletters + (code[i] & 0x7f);
	for (size_t i = 0; i < n; i++) {
		v = v * w->nletters + (code[i + w->k - 1] & 0x7f);
		out[i] = v;
		v -= (code[i] & 0x7f) * top;
	}
}

bool pen__letters_unknown(const uint8_t *code, size_t n)
{
	uint64_t bad = 0, v;
	size_t i = 0;

	for (; i + 8 <= n; i += 8) {
		memcpy(&v, code + i, 8);
		bad |= v;
	}
	for (; i < n; i++)
		bad |= code[i];
	return bad & 0x8080808080808080u;
}

/* Codes up to PEN_WORD_BLOCK words. */
static void codes_block(const struct pen_word_code *w, const uint8_t *code,
			size_t n, uint32_t *out)
{
	const size_t m = n + w->k - 1;
	uint32_t one[PEN_WORD_BLOCK + 64];

	if (pen__has_avx2() && n >= 8) {
		pen__letters_widen(code, m, 4, one);
		memset(one + m, 0, (sizeof(one) / 4 - m) * 4);
		codes_hw(w, one, n, out);
	} else {
		codes_any(w, code, n, out);
	}
	if (!pen__letters_unknown(code, m))
		return;
	for (size_t i = 0; i < m; i++)
		if (code[i] & 0x80)
			for (size_t j = i + 1 > w->k ? i + 1 - w->k : 0;
			     j <= i && j < n; j++)
				out[j] = PEN_WORD_NONE;
}

void pen__word_codes(const struct pen_word_code *w, const uint8_t *code,
		     size_t n, uint32_t *out)
{
	for (size_t i = 0; i < n; i += PEN_WORD_BLOCK)
		codes_block(w, code + i,
			    n - i < PEN_WORD_BLOCK ? n - i : PEN_WORD_BLOCK,
			    out + i);
}

void pen__word_seconds(const uint8_t *code, size_t n, unsigned k,
		       unsigned nletters, uint16_t *out)
{
	size_t i = pen__has_avx2() ? seconds_hw(code, n, k, nletters, out) : 0;

	for (; i < n; i++) {
		unsigned v = 0;

		for (unsigned j = 0; j < k; j++)
			v = v * nletters + code[2 * i + j];
		out[i] = (uint16_t)v;
	}
}

void pen__word_spell(const struct pen_word_code *w, uint32_t word,
		     const char *alphabet, char *out)
{
	out[w->k] = '\0';
	for (unsigned i = w->k; i-- > 0; word /= w->nletters)
		out[i] = alphabet[word % w->nletters];
}
