/*
 * Padding: around a sample in a padded row, behind it in a row made by take=,
 * and between and after packed samples. The format chooses the value (struct
 * pen_pad); the default is zero.
 */
#include <string.h>

#include "base/half.h"
#include "engine/pool.h"

static void set_float(void *p, enum pen_dtype t, int64_t v)
{
	const long double x = (long double)v;
	const double d = (double)v;
	const float s = (float)v;
	const uint16_t h = pen__double_to_half(d);

	if (t == PEN_F16)
		memcpy(p, &h, sizeof(h));
	else if (t == PEN_F32 || t == PEN_C64)
		memcpy(p, &s, sizeof(s));
	else if (t == PEN_F64 || t == PEN_C128)
		memcpy(p, &d, sizeof(d));
	else /* 10 of the 16 bytes hold the number */
		memcpy(p, &x, 10);
}

static void set_int(void *p, enum pen_dtype t, int64_t v)
{
	const size_t n = pen_dtype_size(t);
	const uint8_t i8 = (uint8_t)v;
	const uint16_t i16 = (uint16_t)v;
	const uint32_t i32 = (uint32_t)v;

	if (n == 1)
		memcpy(p, &i8, 1);
	else if (n == 2)
		memcpy(p, &i16, 2);
	else if (n == 4)
		memcpy(p, &i32, 4);
	else
		memcpy(p, &v, 8);
}

void pen__fill_init(struct pen_fill *f, const struct pen_pad *pad,
		    enum pen_dtype t)
{
	*f = (struct pen_fill){ .before = pad->before,
				.size = (uint32_t)pen_dtype_size(t),
				.other = pad->value != 0 };
	if (t == PEN_BOOL)
		f->item[0] = pad->value != 0;
	else if (t < PEN_F16)
		set_int(f->item, t, pad->value);
	else
		set_float(f->item, t, pad->value);
}

void pen__fill(const struct pen_fill *f, void *to, size_t bytes)
{
	size_t have = f->size;
	uint8_t *p = to;

	if (!f->other || f->size == 1) {
		memset(p, f->item[0], bytes);
		return;
	}
	if (!bytes)
		return;
	memcpy(p, f->item, have);
	for (; have < bytes; have *= 2)
		memcpy(p + have, p, have < bytes - have ? have : bytes - have);
}

/* Copies an n-dimensional block into a corner of a larger one and pads the
 * rest. Rows of the last dimension are contiguous in both. */
void pen__pad_row(const struct pen_pooled *b, uint32_t field, uint32_t row,
		  const void *src)
{
	const struct pen_field *d = &b->pool->field[field];
	const struct pen_fill *f = &b->pool->fill[field];
	const int64_t *shape = b->shapes[field] + (size_t)row * d->ndim;
	const int64_t *dims = b->dims[field];
	const uint32_t last = d->ndim - 1;
	const size_t size = pen_dtype_size(d->dtype);
	const size_t step = (size_t)dims[last] * size;
	const size_t run = (size_t)shape[last] * size;
	const size_t lead = f->before ? step - run : 0;
	int64_t at[PEN_MAX_DIMS] = { 0 };
	const uint8_t *from = src;
	size_t all;
	uint8_t *to = pen__batch_row(b, field, row, &all);

	for (size_t i = 0; step && i < all / step; i++, to += step) {
		bool inside = true;
		uint32_t k = last;

		for (uint32_t j = 0; j < last; j++) {
			int64_t in = at[j];

			if (f->before)
				in -= dims[j] - shape[j];
			inside = inside && in >= 0 && in < shape[j];
		}
		if (inside) {
			pen__fill(f, to, lead);
			memcpy(to + lead, from, run);
			pen__fill(f, to + lead + run, step - run - lead);
			from += run;
		} else {
			pen__fill(f, to, step);
		}
		while (k-- > 0 && ++at[k] == dims[k])
			at[k] = 0;
	}
}

/* Copies a piece of a sample to its place in a packed row. */
void pen__copy_piece(const struct pen_pooled *b, uint32_t field, uint32_t row,
		     const void *src, size_t n)
{
	const size_t size = pen_dtype_size(b->pool->field[field].dtype);
	const size_t skip = (size_t)b->skip[row] * size;
	size_t len;
	uint8_t *to = pen__batch_row(b, field, row, &len);

	if (skip >= n) { /* the sample turned out to be shorter */
		b->shapes[field][row] = 0;
		return;
	}
	if (len > n - skip) {
		len = n - skip;
		b->shapes[field][row] = (int64_t)(len / size);
	}
	memcpy(to, (const uint8_t *)src + skip, len);
}

static void number_samples(struct pen_pooled *b, const int64_t *start,
			   const int64_t *len)
{
	const struct pen_pool *p = b->pool;
	const size_t all = (size_t)p->rows * p->pack;
	int32_t *segment =
		(void *)((uint8_t *)b->mem.p + b->field_off[p->nfields]);
	int32_t *position =
		(void *)((uint8_t *)b->mem.p + b->field_off[p->nfields + 1]);
	int64_t row = -1;
	int32_t n = 0;

	memset(segment, 0, all * sizeof(*segment));
	memset(position, 0, all * sizeof(*position));
	for (uint32_t i = 0; i < b->nrows; i++) {
		if (!len[i])
			continue;
		n = start[i] / p->pack == row ? n + 1 : 1;
		row = start[i] / p->pack;
		for (int64_t k = 0; k < len[i]; k++) {
			segment[start[i] + k] = n;
			position[start[i] + k] = (int32_t)k;
		}
	}
}

void pen__pack_finish(struct pen_pooled *b)
{
	const struct pen_pool *p = b->pool;
	const int64_t all = (int64_t)p->rows * p->pack;

	for (uint32_t f = 0; f < p->nfields; f++) {
		const size_t size = pen_dtype_size(p->field[f].dtype);
		uint8_t *base = (uint8_t *)b->mem.p + b->field_off[f];
		int64_t *start = b->offsets[f], at = 0;

		if (p->field[f].layout != PEN_PACKED)
			continue;
		start[b->nrows] = all;
		for (uint32_t i = 0; i <= b->nrows; i++) {
			pen__fill(&p->fill[f], base + (size_t)at * size,
				  (size_t)(start[i] - at) * size);
			if (i < b->nrows)
				at = start[i] + b->shapes[f][i];
		}
		if (f == p->packed)
			number_samples(b, start, b->shapes[f]);
	}
}
