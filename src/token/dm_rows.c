/*
 * Writes a frame of words to four tensors: for each target its context, and the
 * target with its noise. There is a version for any sizes and one with AVX2 for
 * 3 context words on each side and 5 noise words: it stores eight numbers for a
 * row of six, and the next row overwrites the excess.
 */
#include "token/dm.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

/* Input and output of the targets of a frame. */
struct part {
	const uint32_t *id, *draw;
	uint8_t *context, *noise;
	uint64_t n;
};

#define PUT(T, at, v)                                                          \
	do {                                                                   \
		const T x = (T)(v);                                            \
		memcpy(at, &x, sizeof(T));                                     \
	} while (0)

#define ROWS(T)                                                                \
	for (uint64_t i = from; i < f->n; i++) {                               \
		uint8_t *a = f->context + i * 2 * c * sizeof(T);               \
		uint8_t *b = f->noise + i * (1 + m) * sizeof(T);               \
		for (uint32_t j = 0; j < c; j++) {                             \
			PUT(T, a + j * sizeof(T), f->id[i + j]);               \
			PUT(T, a + (c + j) * sizeof(T), f->id[i + c + 1 + j]); \
		}                                                              \
		PUT(T, b, f->id[i + c]);                                       \
		for (uint32_t j = 0; j < m; j++)                               \
			PUT(T, b + (1 + j) * sizeof(T), f->draw[i * m + j]);   \
	}

/* Writes rows [from, n) of both tensors. */
static void rows_any(const struct pen_dm *p, const struct part *f,
		     uint64_t from)
{
	const uint32_t c = p->context, m = p->noise;

	if (p->wide) {
		ROWS(int64_t)
	} else {
		ROWS(int32_t)
	}
}

#ifdef __x86_64__
#define HW __attribute__((target("avx2")))

HW static inline __m256i context_hw(const struct part *f, uint64_t i)
{
	return _mm256_permutevar8x32_epi32(
		_mm256_loadu_si256((const void *)(f->id + i)),
		_mm256_setr_epi32(0, 1, 2, 4, 5, 6, 7, 7));
}

HW static inline __m256i noise_hw(const struct part *f, uint64_t i)
{
	const __m256i draws = _mm256_permutevar8x32_epi32(
		_mm256_loadu_si256((const void *)(f->draw + i * 5)),
		_mm256_setr_epi32(0, 0, 1, 2, 3, 4, 5, 5));

	return _mm256_blend_epi32(
		draws,
		_mm256_castsi128_si256(_mm_cvtsi32_si128((int)f->id[i + 3])),
		1);
}

HW static inline void put_wide(uint8_t *to, __m256i v)
{
	_mm256_storeu_si256((void *)to,
			    _mm256_cvtepu32_epi64(_mm256_castsi256_si128(v)));
	_mm_storeu_si128((void *)(to + 32),
			 _mm256_castsi256_si128(_mm256_cvtepu32_epi64(
				 _mm256_extracti128_si256(v, 1))));
}

/* Writes all rows except the last; returns how many. */
HW static uint64_t rows_hw(const struct pen_dm *p, const struct part *f)
{
	const uint64_t n = f->n ? f->n - 1 : 0;

	for (uint64_t i = 0; i < n && p->wide; i++) {
		put_wide(f->context + i * 48, context_hw(f, i));
		put_wide(f->noise + i * 48, noise_hw(f, i));
	}
	for (uint64_t i = 0; i < n && !p->wide; i++) {
		_mm256_storeu_si256((void *)(f->context + i * 24),
				    context_hw(f, i));
		_mm256_storeu_si256((void *)(f->noise + i * 24),
				    noise_hw(f, i));
	}
	return n;
}
#else
static uint64_t rows_hw(const struct pen_dm *p, const struct part *f)
{
	(void)p, (void)f;
	return 0;
}
#endif

/* Fills n items by doubling copies. */
static void put_docs(const struct pen_dm *p, uint64_t doc, uint64_t n,
		     uint8_t *to)
{
	const size_t size = p->wide ? 8 : 4, all = n * size;
	const uint32_t small = (uint32_t)doc;

	memcpy(to, p->wide ? (const void *)&doc : &small, size);
	for (size_t done = size; done < all;) {
		const size_t more = done < all - done ? done : all - done;

		memcpy(to + done, to, more);
		done += more;
	}
}

void pen__dm_rows(const struct pen_tokens *t, struct pen_dm_rows *to,
		  const uint32_t *id, uint64_t n)
{
	const struct pen_dm *p = t->priv;
	const size_t size = p->wide ? 8 : 4;
	const uint32_t c = p->context, m = p->noise;
	const struct part f = {
		.id = id,
		.draw = to->draws,
		.context = (uint8_t *)to->out[2] + to->at * 2 * c * size,
		.noise = (uint8_t *)to->out[3] + to->at * (1 + m) * size,
		.n = n,
	};
	uint64_t done = 0;

	if (!n)
		return;
	put_docs(p, to->doc, n, (uint8_t *)to->out[0] + to->at * size);
	pen__tokens_put(t, id + c, n, (uint8_t *)to->out[1] + to->at * size);
	if (c == 3 && m == 5 && pen__has_avx2())
		done = rows_hw(p, &f);
	rows_any(p, &f, done);
	to->draws += n * m;
	to->at += n;
}
