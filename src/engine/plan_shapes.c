/*
 * The layout of batches: which fields are dense, ragged, padded or packed, the
 * size that rows are padded to, and the memory of a batch.
 */
#include <string.h>

#include "engine/loader.h"

/* The largest shape in each dimension, and so the padded row's size. */
static int pad_field(struct pen_dataset *ds, uint32_t i, struct pen_err *err)
{
	struct pen_field *d = &ds->format->field[i];
	int64_t shape[PEN_MAX_DIMS], most[PEN_MAX_DIMS] = { 0 };
	const int64_t to = (int64_t)ds->spec->pad_multiple;
	size_t bytes;

	for (uint64_t s = 0; s < ds->ix.pub.nsamples; s++) {
		uint32_t object;
		uint64_t k;

		pen__index_find(&ds->ix.pub, s, &object, &k);
		ds->format->ops->shape(ds->format, object, k, i, shape);
		for (uint32_t j = 0; j < d->ndim; j++)
			if (shape[j] > most[j])
				most[j] = shape[j];
	}
	for (uint32_t j = 0; j < d->ndim; j++)
		if (d->shape[j] < 0 && most[j] % to)
			most[j] += to - most[j] % to;
	memcpy(d->shape, most, sizeof(most));
	if (!pen__shape_bytes(most, d->ndim, d->dtype, &bytes))
		return pen__fail(err, P_BAD_DATA_VALUE, d->name,
				 "too large when padded; use shapes=ragged");
	d->max_bytes = bytes;
	return 0;
}

int pen__shapes_settle(struct pen_loader *l, struct pen_err *err)
{
	struct pen_dataset *ds = l->ds;
	const bool padded = ds->spec->shapes == PEN_SHAPES_PADDED;

	for (uint32_t i = 0; i < ds->format->nfields; i++) {
		struct pen_field *d = &ds->format->field[i];
		int rc = 0;

		for (uint32_t j = 0; j < d->ndim; j++)
			if (d->shape[j] < 0)
				l->varying[i] |= UINT32_C(1) << j;
		d->layout = PEN_DENSE;
		if (!l->varying[i])
			continue;
		d->layout = padded ? PEN_PADDED : PEN_RAGGED;
		if (ds->spec->pack && d->ndim == 1)
			d->layout = PEN_PACKED;
		if (d->layout == PEN_PADDED)
			rc = pad_field(ds, i, err);
		if (rc)
			return rc;
	}
	return 0;
}

/* INT64_MAX on overflow. */
uint64_t pen__shapes_bytes(const struct pen_loader *l,
			   const struct pen_format *f)
{
	size_t n = 0;

	for (uint32_t i = 0; i < f->nfields; i++)
		if (!pen__add(n, f->field[i].max_bytes, &n) ||
		    !pen__add(n, 63, &n))
			return INT64_MAX;
	if (!pen__mul(n ? n : 1, l->rows, &n) || n > INT64_MAX)
		return INT64_MAX;
	return pen__block_cost(n);
}
