/*
 * See noise.h. A draw takes one random number of 32 bits, multiplied by the
 * number of words: the upper half selects the slot of the alias table, the
 * lower half is the coin. The result is the same with and without AVX2.
 */
#include "token/noise.h"

#include <string.h>

#include "base/mem.h"
#include "penstock.h"
#include "token/letters.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

#define STEP 0x9e3779b1u
#define MUL1 0x21f0aaadu
#define MUL2 0xd35a2d97u

void pen__noise_fini(struct pen_noise *t)
{
	pen__alias_fini(&t->alias);
	pen__free(t->word);
	pen__free(t->pair);
	*t = (struct pen_noise){ 0 };
}

static void pack_pairs(struct pen_noise *t)
{
	for (uint32_t i = 0; i < t->n; i++) {
		const struct pen_alias_slot *s = &t->alias.table[i];

		t->pair[i] = (uint64_t)t->word[s->other] << 48 |
			     (uint64_t)t->word[i] << 32 | s->keep >> 32;
	}
}

int pen__noise_init(struct pen_noise *t, const double *weight, uint32_t n)
{
	double *some = pen__alloc(n, sizeof(*some));

	*t = (struct pen_noise){ 0 };
	t->word = pen__alloc(n, sizeof(*t->word));
	if (!some || !t->word)
		goto fail;
	for (uint32_t i = 0; i < n; i++)
		if (weight[i] > 0) {
			some[t->n] = weight[i];
			t->word[t->n++] = i;
		}
	if (pen__alias_init(&t->alias, some, t->n))
		goto fail;
	if (n <= 65536) {
		t->pair = pen__alloc(t->n, sizeof(*t->pair));
		if (!t->pair)
			goto fail;
		pack_pairs(t);
	}
	pen__free(some);
	return 0;
fail:
	pen__free(some);
	pen__noise_fini(t);
	return PEN_ENOMEM;
}

/* The i-th random number of a row: two rounds of a 32-bit mixer, keyed. */
static inline uint32_t number_at(uint64_t key, uint32_t i)
{
	uint32_t x = i * STEP + (uint32_t)key;

	x = (x ^ x >> 16) * MUL1;
	x ^= x >> 15 ^ (uint32_t)(key >> 32);
	x *= MUL2;
	return x ^ x >> 15;
}

static inline uint32_t pick(const struct pen_noise *t, uint32_t x)
{
	const uint64_t at = (uint64_t)x * t->n;
	const uint64_t pair = t->pair[at >> 32];

	return pair >> ((uint32_t)at < (uint32_t)pair ? 32 : 48) & 0xffff;
}

#ifdef __x86_64__
#define HW __attribute__((target("avx2")))

HW static inline __m256i numbers_hw(uint64_t key, uint32_t i)
{
	const __m256i eight = _mm256_setr_epi32(
		0, (int)STEP, (int)(2 * STEP), (int)(3 * STEP), (int)(4 * STEP),
		(int)(5 * STEP), (int)(6 * STEP), (int)(7 * STEP));
	__m256i x = _mm256_add_epi32(
		_mm256_set1_epi32((int)(i * STEP + (uint32_t)key)), eight);

	x = _mm256_xor_si256(x, _mm256_srli_epi32(x, 16));
	x = _mm256_mullo_epi32(x, _mm256_set1_epi32((int)MUL1));
	x = _mm256_xor_si256(x, _mm256_srli_epi32(x, 15));
	x = _mm256_xor_si256(x, _mm256_set1_epi32((int)(key >> 32)));
	x = _mm256_mullo_epi32(x, _mm256_set1_epi32((int)MUL2));
	return _mm256_xor_si256(x, _mm256_srli_epi32(x, 15));
}

/* Four draws of 64 bits each: slot in the upper half, coin in the lower. */
HW static inline __m256i pick_hw(const struct pen_noise *t, __m256i at)
{
	const __m256i sign = _mm256_set1_epi64x((int64_t)0x80000000);
	const __m256i pair = _mm256_i64gather_epi64(
		(const long long *)t->pair, _mm256_srli_epi64(at, 32), 8);
	/* unsigned comparison keep > coin, in the lower halves */
	const __m256i kept = _mm256_cmpgt_epi32(_mm256_xor_si256(pair, sign),
						_mm256_xor_si256(at, sign));
	const __m256i all = _mm256_shuffle_epi32(kept, 0xa0);
	const __m256i by = _mm256_add_epi64(
		_mm256_andnot_si256(all, _mm256_set1_epi64x(16)),
		_mm256_set1_epi64x(32));

	return _mm256_and_si256(_mm256_srlv_epi64(pair, by),
				_mm256_set1_epi64x(0xffff));
}

HW static size_t draw_hw(const struct pen_noise *t, uint64_t key, size_t n,
			 uint32_t *out)
{
	const __m256i many = _mm256_set1_epi64x(t->n);
	size_t i = 0;

	for (; i < n; i += 8) {
		const __m256i x = numbers_hw(key, (uint32_t)i);
		const __m256i even = pick_hw(t, _mm256_mul_epu32(x, many));
		const __m256i odd = pick_hw(
			t, _mm256_mul_epu32(_mm256_srli_epi64(x, 32), many));

		_mm256_storeu_si256(
			(void *)(out + i),
			_mm256_or_si256(even, _mm256_slli_epi64(odd, 32)));
	}
	return n;
}
#else
static size_t draw_hw(const struct pen_noise *t, uint64_t key, size_t n,
		      uint32_t *out)
{
	(void)t, (void)key, (void)n, (void)out;
	return 0;
}
#endif

void pen__noise_draw(const struct pen_noise *t, uint64_t key, size_t n,
		     uint32_t *out)
{
	size_t i = 0;

	key = pen__mix64(key);
	if (!t->pair) { /* many words need more random bits per draw */
		for (; i < n; i++)
			out[i] = t->word[pen__alias_draw(&t->alias, key, i)];
		return;
	}
	if (pen__has_avx2())
		i = draw_hw(t, key, n, out);
	for (; i < n; i++)
		out[i] = pick(t, number_at(key, (uint32_t)i));
}
