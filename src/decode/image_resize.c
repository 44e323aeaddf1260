/*
 * See image_resize.h. Weights have 22 bits after the point, sums are rounded to
 * 8 bits after each of the two passes, the horizontal one first: the result
 * equals that of Pillow's Image.resize().
 *
 * A weight w is kept as two 16-bit numbers, w = high * 2^11 + low with low in
 * [0, 2^11), so that one instruction multiplies and adds two taps. The sums of
 * the parts are taken modulo 2^32, which does not matter, since the sum of all
 * is at most 255 * 2^22 * 1.5 (Lanczos overshoots) and fits.
 */
#include "decode/image_resize.h"

#include <math.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"

#define BITS 22
#define LOW_BITS 11
#define SLACK 32 /* readable bytes after a row */

/* ---- filters ---- */

static double box(double x)
{
	return x > -0.5 && x <= 0.5 ? 1.0 : 0.0;
}

static double bilinear(double x)
{
	x = fabs(x);
	return x < 1.0 ? 1.0 - x : 0.0;
}

static double hamming(double x)
{
	x = fabs(x);
	if (x == 0.0)
		return 1.0;
	if (x >= 1.0)
		return 0.0;
	x *= M_PI;
	return sin(x) / x * (0.54f + 0.46f * cos(x));
}

static double bicubic(double x)
{
	const double a = -0.5;

	x = fabs(x);
	if (x < 1.0)
		return ((a + 2.0) * x - (a + 3.0)) * x * x + 1;
	if (x < 2.0)
		return (((x - 5) * x + 8) * x - 4) * a;
	return 0.0;
}

static double sinc(double x)
{
	if (x == 0.0)
		return 1.0;
	x *= M_PI;
	return sin(x) / x;
}

static double lanczos(double x)
{
	return x >= -3.0 && x < 3.0 ? sinc(x) * sinc(x / 3) : 0.0;
}

static const struct {
	double (*f)(double);
	double support;
} filters[] = {
	[PEN_FILTER_BOX] = { box, 0.5 },
	[PEN_FILTER_BILINEAR] = { bilinear, 1.0 },
	[PEN_FILTER_HAMMING] = { hamming, 1.0 },
	[PEN_FILTER_BICUBIC] = { bicubic, 2.0 },
	[PEN_FILTER_LANCZOS] = { lanczos, 3.0 },
};

/* ---- weights ---- */

static int reserve(struct pen_taps *t, uint32_t n, uint32_t taps)
{
	const size_t each = 2 * sizeof(uint32_t) + (size_t)taps * 4;
	uint32_t *p;

	t->n = n;
	t->taps = taps;
	if (n * each > t->cap) {
		p = pen__alloc(n, each);
		if (!p)
			return PEN_ENOMEM;
		pen__free(t->first);
		t->first = p;
		t->cap = n * each;
	}
	t->count = t->first + n;
	t->weight = (int16_t *)(t->count + n);
	return 0;
}

/* Two taps share four numbers: high, high, low, low. */
static void put_weight(int16_t *to, uint32_t i, int32_t w)
{
	const int32_t low = w & ((1 << LOW_BITS) - 1);

	to += i / 2 * 4 + i % 2;
	to[0] = (int16_t)((w - low) / (1 << LOW_BITS));
	to[2] = (int16_t)low;
}

static int32_t get_weight(const int16_t *of, uint32_t i)
{
	of += i / 2 * 4 + i % 2;
	return of[0] * (1 << LOW_BITS) + of[2];
}

/* The weights of output pixel x, into entry i. */
static void weigh(struct pen_taps *t, uint32_t i, int filter,
		  const struct pen_resize_axis *a, uint32_t x)
{
	const double scale = (double)a->in / a->out;
	const double by = scale < 1.0 ? 1.0 : scale;
	const double support = filters[filter].support * by;
	const double centre = (x + 0.5) * scale;
	const double low = centre - support + 0.5,
		     high = centre + support + 0.5;
	const uint32_t first = low < 0 ? 0 : (uint32_t)low;
	const uint32_t end = high > a->in ? a->in : (uint32_t)high;
	int16_t *const to = t->weight + (size_t)i * t->taps * 2;
	double sum = 0;

	t->first[i] = first;
	t->count[i] = end - first;
	memset(to, 0, (size_t)t->taps * 4);
	for (uint32_t k = first; k < end; k++)
		sum += filters[filter].f((k - centre + 0.5) * (1.0 / by));
	for (uint32_t k = first; k < end; k++) {
		double w = filters[filter].f((k - centre + 0.5) * (1.0 / by));

		if (sum != 0.0)
			w /= sum;
		w = w * (1 << BITS) + (w < 0 ? -0.5 : 0.5);
		put_weight(to, k - first, (int32_t)w);
	}
}

/* Pillow adds the scale again and again; so does this. */
static void nearest(struct pen_taps *t, const struct pen_resize_axis *a)
{
	const double scale = (double)a->in / a->out;
	double at = scale * 0.5;

	memset(t->count, 0, t->n * sizeof(*t->count));
	for (int64_t x = 0; x < a->out && x < a->at + a->n; x++, at += scale) {
		const int64_t w = x - a->at;
		uint32_t i;

		if (w < 0)
			continue;
		i = a->flip ? a->n - 1 - (uint32_t)w : (uint32_t)w;
		t->first[i] = at < a->in ? (uint32_t)at : a->in - 1;
		t->count[i] = 1;
		memset(t->weight + (size_t)i * t->taps * 2, 0,
		       (size_t)t->taps * 4);
		put_weight(t->weight + (size_t)i * t->taps * 2, 0, 1 << BITS);
	}
}

static int start_axis(struct pen_taps *t, int filter,
		      const struct pen_resize_axis *a)
{
	const double scale = (double)a->in / a->out;
	const bool same = a->in == a->out;
	uint32_t taps = 1;
	int rc;

	if (filter != PEN_FILTER_NEAREST && !same)
		taps = 2 * (uint32_t)ceil(filters[filter].support *
					  (scale < 1.0 ? 1.0 : scale)) +
		       1;
	taps = (taps + 3) & ~3u;
	rc = reserve(t, a->n, taps);
	if (rc)
		return rc;
	t->copy = same && !a->flip && a->at >= 0 && a->at + a->n <= a->out;
	if (filter == PEN_FILTER_NEAREST || same) {
		nearest(t,
			a); /* Pillow leaves out a pass that changes nothing */
		return 0;
	}
	for (uint32_t i = 0; i < a->n; i++) {
		const int64_t x = a->at + (a->flip ? a->n - 1 - i : i);

		t->count[i] = 0;
		if (x >= 0 && x < a->out)
			weigh(t, i, filter, a, (uint32_t)x);
	}
	return 0;
}

/* Finds the input pixels that are needed, and counts from the first one. */
static void find_needed(struct pen_taps *t)
{
	t->from = UINT32_MAX;
	t->to = 0;
	for (uint32_t i = 0; i < t->n; i++)
		if (t->count[i]) {
			const uint32_t end = t->first[i] + t->count[i];

			t->from = t->first[i] < t->from ? t->first[i] : t->from;
			t->to = end > t->to ? end : t->to;
		}
	t->from = t->to ? t->from : 0;
	for (uint32_t i = 0; i < t->n; i++)
		t->first[i] = t->count[i] ? t->first[i] - t->from : 0;
}

int pen__resize_start(struct pen_resizer *r, int filter,
		      const struct pen_resize_axis *x,
		      const struct pen_resize_axis *y)
{
	struct pen_resize_axis down = *y;
	size_t bytes;
	int rc = start_axis(&r->axis[0], filter, x);

	down.flip = false; /* rows are finished from the top */
	if (!rc)
		rc = start_axis(&r->axis[1], filter, &down);
	if (rc)
		return rc;
	find_needed(&r->axis[0]);
	find_needed(&r->axis[1]);
	r->flip = y->flip;
	r->next = r->done = 0;
	r->stride = ((size_t)x->n * 3 + SLACK + 63) & ~(size_t)63;
	bytes = r->stride * (r->axis[1].taps + 1);
	if (bytes > r->row_cap) {
		uint8_t *p = pen__alloc(bytes, 1);

		if (!p)
			return PEN_ENOMEM;
		pen__free(r->row);
		r->row = p;
		r->row_cap = bytes;
	}
	return 0;
}

/* ---- passes ---- */

static uint8_t rounded(uint32_t sum)
{
	const int32_t v = (int32_t)(sum + (1u << (BITS - 1))) >> BITS;

	return v < 0 ? 0 : v > 255 ? 255 : (uint8_t)v;
}

static void across_plain(const struct pen_taps *t, const uint8_t *in,
			 uint8_t *out)
{
	for (uint32_t i = 0; i < t->n; i++, out += 3) {
		const int16_t *w = t->weight + (size_t)i * t->taps * 2;
		const uint8_t *p = in + (size_t)t->first[i] * 3;
		uint32_t sum[3] = { 0 };

		for (uint32_t k = 0; k < t->count[i]; k++, p += 3)
			for (unsigned c = 0; c < 3; c++)
				sum[c] += (uint32_t)(p[c] * get_weight(w, k));
		for (unsigned c = 0; c < 3; c++)
			out[c] = rounded(sum[c]);
	}
}

/* The input row k of output row i. */
static const uint8_t *row_of(const struct pen_resizer *r, uint32_t i,
			     uint32_t k)
{
	const struct pen_taps *t = &r->axis[1];

	return r->row + (t->first[i] + k) % t->taps * r->stride;
}

static void down_plain(const struct pen_resizer *r, uint32_t i, uint8_t *out,
		       size_t from, size_t to)
{
	const struct pen_taps *t = &r->axis[1];
	const int16_t *w = t->weight + (size_t)i * t->taps * 2;

	for (size_t x = from; x < to; x++) {
		uint32_t sum = 0;

		for (uint32_t k = 0; k < t->count[i]; k++)
			sum += (uint32_t)(row_of(r, i, k)[x] *
					  get_weight(w, k));
		out[x] = rounded(sum);
	}
}

#if defined(__x86_64__) && !defined(PEN_NO_VECTORS)
#include <immintrin.h>
#define HW __attribute__((target("avx2")))

/* Four taps at a time: two in each half of a register, as the channels of both
 * next to each other. Weights after the last tap are 0. */
HW static void across_avx2(const struct pen_taps *t, const uint8_t *in,
			   uint8_t *out)
{
	const __m256i split = _mm256_setr_epi8(
		0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1, 6, -1,
		9, -1, 7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1);
	const __m256i high = _mm256_setr_epi32(0, 0, 0, 0, 2, 2, 2, 2);
	const __m256i low = _mm256_setr_epi32(1, 1, 1, 1, 3, 3, 3, 3);
	const __m128i half = _mm_set1_epi32(1 << (BITS - 1));

	for (uint32_t i = 0; i < t->n; i++, out += 3) {
		const int16_t *w = t->weight + (size_t)i * t->taps * 2;
		const uint8_t *p = in + (size_t)t->first[i] * 3;
		__m256i sh = _mm256_setzero_si256(), sl = sh;
		__m128i v;
		uint32_t px;

		for (uint32_t k = 0; k < t->count[i]; k += 4, p += 12, w += 8) {
			const __m256i b = _mm256_shuffle_epi8(
				_mm256_broadcastsi128_si256(
					_mm_loadu_si128((const void *)p)),
				split);
			const __m256i k4 = _mm256_broadcastsi128_si256(
				_mm_loadu_si128((const void *)w));

			sh = _mm256_add_epi32(
				sh, _mm256_madd_epi16(
					    b, _mm256_permutevar8x32_epi32(
						       k4, high)));
			sl = _mm256_add_epi32(
				sl, _mm256_madd_epi16(
					    b, _mm256_permutevar8x32_epi32(
						       k4, low)));
		}
		sl = _mm256_add_epi32(sl, _mm256_slli_epi32(sh, LOW_BITS));
		v = _mm_add_epi32(_mm256_castsi256_si128(sl),
				  _mm256_extracti128_si256(sl, 1));
		v = _mm_srai_epi32(_mm_add_epi32(v, half), BITS);
		v = _mm_packs_epi32(v, v);
		px = (uint32_t)_mm_cvtsi128_si32(_mm_packus_epi16(v, v));
		memcpy(out, &px, 4); /* rows have slack */
	}
}

/* 16 bytes of two rows at a time. */
HW static void down_avx2(const struct pen_resizer *r, uint32_t i, uint8_t *out,
			 size_t n)
{
	const struct pen_taps *t = &r->axis[1];
	const __m256i half = _mm256_set1_epi32(1 << (BITS - 1));

	for (size_t x = 0; x < n; x += 16) {
		const int16_t *w = t->weight + (size_t)i * t->taps * 2;
		__m256i h[2] = { 0 }, l[2] = { 0 }, s;

		for (uint32_t k = 0; k < t->count[i]; k += 2, w += 4) {
			const uint8_t *a = row_of(r, i, k) + x;
			/* the weight of a row after the last one is 0 */
			const uint8_t *b = k + 1 < t->count[i]
						   ? row_of(r, i, k + 1) + x
						   : a;
			const __m128i ra = _mm_loadu_si128((const void *)a);
			const __m128i rb = _mm_loadu_si128((const void *)b);
			int32_t kh, kl;
			__m256i p;

			memcpy(&kh, w, 4);
			memcpy(&kl, w + 2, 4);
			p = _mm256_cvtepu8_epi16(_mm_unpacklo_epi8(ra, rb));
			h[0] = _mm256_add_epi32(
				h[0],
				_mm256_madd_epi16(p, _mm256_set1_epi32(kh)));
			l[0] = _mm256_add_epi32(
				l[0],
				_mm256_madd_epi16(p, _mm256_set1_epi32(kl)));
			p = _mm256_cvtepu8_epi16(_mm_unpackhi_epi8(ra, rb));
			h[1] = _mm256_add_epi32(
				h[1],
				_mm256_madd_epi16(p, _mm256_set1_epi32(kh)));
			l[1] = _mm256_add_epi32(
				l[1],
				_mm256_madd_epi16(p, _mm256_set1_epi32(kl)));
		}
		for (unsigned j = 0; j < 2; j++) {
			l[j] = _mm256_add_epi32(
				l[j], _mm256_slli_epi32(h[j], LOW_BITS));
			l[j] = _mm256_srai_epi32(_mm256_add_epi32(l[j], half),
						 BITS);
		}
		/* packing works within halves; put them back in order */
		s = _mm256_permute4x64_epi64(_mm256_packs_epi32(l[0], l[1]),
					     0xd8);
		_mm_storeu_si128(
			(void *)(out + x),
			_mm_packus_epi16(_mm256_castsi256_si128(s),
					 _mm256_extracti128_si256(s, 1)));
	}
}

static bool has_avx2(void)
{
	return __builtin_cpu_supports("avx2");
}
#else
#define across_avx2 across_plain
#define down_avx2(r, i, out, n) down_plain(r, i, out, 0, n)
#define has_avx2() false
#endif

void pen__resize_push(struct pen_resizer *r, const uint8_t *rgb)
{
	const struct pen_taps *t = &r->axis[0];
	uint8_t *to = r->row + r->next++ % r->axis[1].taps * r->stride;

	if (t->copy)
		memcpy(to, rgb, (size_t)t->n * 3);
	else if (has_avx2())
		across_avx2(t, rgb, to);
	else
		across_plain(t, rgb, to);
}

const uint8_t *pen__resize_pull(struct pen_resizer *r, uint32_t *y)
{
	const struct pen_taps *t = &r->axis[1];
	const uint32_t i = r->done;
	uint8_t *out = r->row + t->taps * r->stride;

	if (i == t->n || t->first[i] + t->count[i] > r->next)
		return NULL;
	*y = r->flip ? t->n - 1 - i : i;
	r->done++;
	if (!t->count[i])
		memset(out, 0, (size_t)r->axis[0].n * 3);
	else if (t->copy)
		return row_of(r, i, 0);
	else if (has_avx2())
		down_avx2(r, i, out, (size_t)r->axis[0].n * 3);
	else
		down_plain(r, i, out, 0, (size_t)r->axis[0].n * 3);
	return out;
}

void pen__resize_fini(struct pen_resizer *r)
{
	pen__free(r->axis[0].first);
	pen__free(r->axis[1].first);
	pen__free(r->row);
}
