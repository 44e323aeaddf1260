/* Converts token ids to the dtype of a field. */
#include "token/letters.h"
#include "token/token_int.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

#ifdef __x86_64__
#define HW __attribute__((target("avx2")))

HW static inline __m256i load(const uint32_t *p)
{
	return _mm256_loadu_si256((const void *)p);
}

/* packus works within halves of 16 bytes; the permutation restores the
 * order. */
HW static uint64_t put_two_hw(const uint32_t *ids, uint64_t n, uint8_t *out)
{
	uint64_t i = 0;

	for (; i + 16 <= n; i += 16)
		_mm256_storeu_si256(
			(void *)(out + i * 2),
			_mm256_permute4x64_epi64(
				_mm256_packus_epi32(load(ids + i),
						    load(ids + i + 8)),
				0xd8));
	return i;
}

/* The same twice: groups of four bytes are in eight places. */
HW static uint64_t put_one_hw(const uint32_t *ids, uint64_t n, uint8_t *out)
{
	const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
	uint64_t i = 0;

	for (; i + 32 <= n; i += 32) {
		const __m256i a =
			_mm256_packus_epi32(load(ids + i), load(ids + i + 8));
		const __m256i b = _mm256_packus_epi32(load(ids + i + 16),
						      load(ids + i + 24));

		_mm256_storeu_si256((void *)(out + i),
				    _mm256_permutevar8x32_epi32(
					    _mm256_packus_epi16(a, b), order));
	}
	return i;
}

HW static uint64_t put_eight_hw(const uint32_t *ids, uint64_t n, uint8_t *out)
{
	uint64_t i = 0;

	for (; i + 4 <= n; i += 4)
		_mm256_storeu_si256((void *)(out + i * 8),
				    _mm256_cvtepu32_epi64(_mm_loadu_si128(
					    (const void *)(ids + i))));
	return i;
}

HW static size_t number_hw(uint32_t *v, size_t n, uint32_t base, uint32_t unk)
{
	const __m256i none = _mm256_set1_epi32(-1);
	const __m256i first = _mm256_set1_epi32((int)base);
	const __m256i other = _mm256_set1_epi32((int)unk);
	size_t i = 0;

	for (; i + 8 <= n; i += 8) {
		const __m256i x = load(v + i);

		_mm256_storeu_si256(
			(void *)(v + i),
			_mm256_blendv_epi8(_mm256_add_epi32(x, first), other,
					   _mm256_cmpeq_epi32(x, none)));
	}
	return i;
}
#else
static uint64_t put_one_hw(const uint32_t *ids, uint64_t n, uint8_t *out)
{
	(void)ids, (void)n, (void)out;
	return 0;
}

static uint64_t put_two_hw(const uint32_t *ids, uint64_t n, uint8_t *out)
{
	(void)ids, (void)n, (void)out;
	return 0;
}

static uint64_t put_eight_hw(const uint32_t *ids, uint64_t n, uint8_t *out)
{
	(void)ids, (void)n, (void)out;
	return 0;
}

static size_t number_hw(uint32_t *v, size_t n, uint32_t base, uint32_t unk)
{
	(void)v, (void)n, (void)base, (void)unk;
	return 0;
}
#endif

void pen__word_number(uint32_t *v, size_t n, uint32_t base, uint32_t unk)
{
	size_t i = pen__has_avx2() ? number_hw(v, n, base, unk) : 0;

	for (; i < n; i++)
		v[i] = v[i] == PEN_WORD_NONE ? unk : v[i] + base;
}

#define EACH(T)                                                                \
	for (; i < n; i++) {                                                   \
		const T v = (T)ids[i];                                         \
		memcpy(to + i * sizeof(T), &v, sizeof(T));                     \
	}                                                                      \
	break

void pen__tokens_put(const struct pen_tokens *t, const uint32_t *ids,
		     uint64_t n, void *out)
{
	const bool hw = n >= 16 && pen__has_avx2();
	uint8_t *to = out;
	uint64_t i = 0;

	switch (t->dtype) {
	case PEN_U8:
		i = hw ? put_one_hw(ids, n, to) : 0;
		EACH(uint8_t);
	case PEN_U16:
		i = hw ? put_two_hw(ids, n, to) : 0;
		EACH(uint16_t);
	case PEN_I64:
		i = hw ? put_eight_hw(ids, n, to) : 0;
		EACH(int64_t);
	default:
		if (n)
			memcpy(to, ids, n * sizeof(*ids));
	}
}
