/*
 * Copies an array into a row: gather, transpose, swap. Adjacent axes are merged
 * first; the rest is copied in tiles of the fastest axis in the file and the
 * fastest axis in the row, so that every cache line is used completely while it
 * is cached. Works for any rank up to PEN_MAX_DIMS and allocates nothing.
 */
#include "codec/array_copy.h"

#include <string.h>

#define TILE_BYTES 8192u

int pen__parse_array(const char *dtype, const char *shape,
		     struct pen_array *out, struct pen_err *err)
{
	size_t n = 0;
	int rc;

	*out = (struct pen_array){ 0 };
	rc = pen__parse_dtype(dtype, &out->dtype, err);
	if (rc || !shape)
		return rc;
	rc = pen__parse_shape(shape, out->shape, &out->ndim, err);
	if (!rc && (!pen__shape_bytes(out->shape, out->ndim, out->dtype, &n) ||
		    n > INT64_MAX))
		rc = pen__fail(err, P_BAD_VALUE, "shape",
			       "an array of this shape is too large");
	out->nbytes = n;
	return rc;
}

size_t pen__swap_size(enum pen_dtype t)
{
	const size_t n = pen_dtype_size(t);

	return t == PEN_C64 || t == PEN_C128 || t == PEN_C160 ? n / 2 : n;
}

void pen__swap(enum pen_dtype t, uint8_t *p, size_t n)
{
	const size_t size = pen__swap_size(t);

	for (size_t i = 0; i + size <= n; i += size) {
		for (size_t j = 0; j < size / 2; j++) {
			const uint8_t c = p[i + j];

			p[i + j] = p[i + size - 1 - j];
			p[i + size - 1 - j] = c;
		}
	}
}

static inline __attribute__((always_inline)) void
swap_into(uint8_t *dst, const uint8_t *src, size_t n)
{
	uint64_t v;
	uint32_t w;
	uint16_t h;

	switch (n) {
	case 2:
		memcpy(&h, src, 2);
		h = __builtin_bswap16(h);
		memcpy(dst, &h, 2);
		break;
	case 4:
		memcpy(&w, src, 4);
		w = __builtin_bswap32(w);
		memcpy(dst, &w, 4);
		break;
	case 8:
		memcpy(&v, src, 8);
		v = __builtin_bswap64(v);
		memcpy(dst, &v, 8);
		break;
	default:
		for (size_t i = 0; i < 16; i++)
			dst[i] = src[15 - i];
	}
}

/*
 * item and swap are constants at every call below, so each combination is
 * compiled to a tight loop without branches on them.
 */
static inline __attribute__((always_inline)) void
tile_loop(const struct pen_tile *t, size_t item, size_t swap, uint8_t *dst,
	  const uint8_t *src)
{
	for (size_t i = 0; i < t->ni; i++) {
		uint8_t *d = dst + i * t->dst_i;
		const uint8_t *s = src + i * t->src_i;

		for (size_t j = 0; j < t->nj; j++, d += item) {
			const uint8_t *from = s + j * t->src_j;

			if (!swap)
				memcpy(d, from, item);
			for (size_t k = 0; swap && k < item; k += swap)
				swap_into(d + k, from + k, swap);
		}
	}
}

static void copy_same(const struct pen_tile *t, size_t item, uint8_t *dst,
		      const uint8_t *src)
{
	switch (item) {
	case 1:
		tile_loop(t, 1, 0, dst, src);
		break;
	case 2:
		tile_loop(t, 2, 0, dst, src);
		break;
	case 4:
		tile_loop(t, 4, 0, dst, src);
		break;
	case 8:
		tile_loop(t, 8, 0, dst, src);
		break;
	case 16:
		tile_loop(t, 16, 0, dst, src);
		break;
	default:
		tile_loop(t, 32, 0, dst, src);
	}
}

static void copy_swapped(const struct pen_tile *t, size_t item, size_t swap,
			 uint8_t *dst, const uint8_t *src)
{
	switch (item << 8 | swap) {
	case 2 << 8 | 2:
		tile_loop(t, 2, 2, dst, src);
		break;
	case 4 << 8 | 4:
		tile_loop(t, 4, 4, dst, src);
		break;
	case 8 << 8 | 8:
		tile_loop(t, 8, 8, dst, src);
		break;
	case 8 << 8 | 4:
		tile_loop(t, 8, 4, dst, src);
		break;
	case 16 << 8 | 8:
		tile_loop(t, 16, 8, dst, src);
		break;
	case 16 << 8 | 16:
		tile_loop(t, 16, 16, dst, src);
		break;
	default:
		tile_loop(t, 32, 16, dst, src);
	}
}

/*
 * One tile of a transposition, through a buffer in the first-level cache: lines
 * of the file are read completely and once, lines of the row are written
 * completely and once. Otherwise arrays whose sides are powers of two, as is
 * common, would evict their own lines from the cache before they are used up.
 */
static void transpose(const struct pen_tile *t, size_t item, size_t swap,
		      uint8_t *dst, const uint8_t *src)
{
	uint8_t buf[TILE_BYTES];
	const struct pen_tile b = {
		.ni = t->ni,
		.nj = t->nj,
		.dst_i = t->dst_i,
		.src_i = item,
		.src_j = t->ni * item,
	};

	for (size_t j = 0; j < t->nj; j++)
		memcpy(buf + j * b.src_j, src + j * t->src_j, b.src_j);
	if (swap < 2)
		copy_same(&b, item, dst, buf);
	else
		copy_swapped(&b, item, swap, dst, buf);
}

static void one_tile(const struct pen_tile *t, size_t item, size_t swap,
		     uint8_t *dst, const uint8_t *src)
{
	if (t->src_i == item && t->src_j != item && t->ni > 1)
		transpose(t, item, swap, dst, src);
	else if (swap < 2)
		copy_same(t, item, dst, src);
	else
		copy_swapped(t, item, swap, dst, src);
}

void pen__tile_copy(const struct pen_tile *t, size_t item, size_t swap,
		    uint8_t *dst, const uint8_t *src)
{
	/* side * side * item <= TILE_BYTES for elements of 1 to 32 bytes */
	const size_t side = item < 4 ? 64 : item < 16 ? 32 : 16;
	/* lines that are only swapped are not split */
	const size_t side_j = t->src_j == item ? t->nj : side;

	/* neither transposed nor swapped: copy entire lines */
	if (swap < 2 && t->src_j == item) {
		for (size_t i = 0; i < t->ni; i++)
			memcpy(dst + i * t->dst_i, src + i * t->src_i,
			       t->nj * item);
		return;
	}
	for (size_t i = 0; i < t->ni; i += side) {
		for (size_t j = 0; j < t->nj; j += side_j) {
			struct pen_tile b = *t;

			b.ni = t->ni - i < side ? t->ni - i : side;
			b.nj = t->nj - j < side_j ? t->nj - j : side_j;
			one_tile(&b, item, swap, dst + i * t->dst_i + j * item,
				 src + i * t->src_i + j * t->src_j);
		}
	}
}

/* Axes in row order: lengths, and strides in the file and in the row. */
struct axes {
	unsigned n;
	size_t len[PEN_MAX_DIMS], src[PEN_MAX_DIMS], dst[PEN_MAX_DIMS];
};

/* Drops axes of length 1, and merges neighbours with a common stride. */
static void axes_init(struct axes *x, const struct pen_view *v,
		      const int64_t *shape)
{
	const size_t item = pen_dtype_size(v->dtype);
	size_t src[PEN_MAX_DIMS] = { 0 };
	size_t step = item * (v->strided ? (size_t)v->n : 1), dst = item;

	for (unsigned i = 0; i < v->ndim; i++) {
		unsigned d = v->fortran ? i : v->ndim - 1u - i;

		src[d] = step;
		step *= (size_t)shape[d];
	}
	x->n = 0;
	for (unsigned i = 0; i < v->ndim; i++) {
		size_t len = (size_t)shape[i];

		if (len == 1)
			continue;
		if (x->n && x->src[x->n - 1] == len * src[i]) {
			x->len[x->n - 1] *= len;
			x->src[x->n - 1] = src[i];
		} else {
			x->len[x->n] = len;
			x->src[x->n++] = src[i];
		}
	}
	for (unsigned i = x->n; i-- > 0;) {
		x->dst[i] = dst;
		dst *= x->len[i];
	}
}

/* The axis to tile with the fastest of the row: the fastest in the file. */
static unsigned other_axis(const struct axes *x)
{
	unsigned best = 0;

	for (unsigned i = 1; i + 1 < x->n; i++)
		if (x->src[i] < x->src[best])
			best = i;
	return best;
}

void pen__view_copy(const struct pen_view *v, const int64_t *shape,
		    const uint8_t *src, void *dst)
{
	const size_t item = pen_dtype_size(v->dtype);
	const size_t swap = v->swap ? pen__swap_size(v->dtype) : 0;
	struct pen_tile t = { 1, 1, 0, 0, item };
	size_t at[PEN_MAX_DIMS] = { 0 };
	size_t from = 0, to = 0;
	unsigned other, i;
	struct axes x;

	if (!v->row)
		return;
	axes_init(&x, v, shape);
	other = other_axis(&x);
	if (x.n) {
		t.nj = x.len[x.n - 1];
		t.src_j = x.src[x.n - 1];
	}
	if (x.n > 1) {
		t.ni = x.len[other];
		t.src_i = x.src[other];
		t.dst_i = x.dst[other];
	}
	/* Iterate over the axes outside of tiles, like an odometer. */
	do {
		pen__tile_copy(&t, item, swap, (uint8_t *)dst + to, src + from);
		for (i = x.n > 1 ? x.n - 1 : 0; i-- > 0;) {
			if (i == other)
				continue;
			to += x.dst[i];
			from += x.src[i];
			if (++at[i] < x.len[i])
				break;
			to -= at[i] * x.dst[i];
			from -= at[i] * x.src[i];
			at[i] = 0;
		}
	} while (i < x.n);
}

uint64_t pen__view_span(const struct pen_view *v)
{
	/* Elements of a strided sample are v->n apart; the last one ends here.
	 */
	const uint64_t item = pen_dtype_size(v->dtype);

	return v->strided ? (v->row / item - 1) * v->n * item + item : v->row;
}
