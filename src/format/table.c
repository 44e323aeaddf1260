/* What writers share: the samples of a table, piece by piece or at once. */
#include "base/mem.h"
#include "format/format.h"

#define PIECE ((size_t)1 << 20)

static int row_bytes(const struct pen_table *t, uint32_t field, size_t *row,
		     size_t *all, struct pen_err *err)
{
	const struct pen_field *d = &t->field[field];

	if (pen__shape_bytes(d->shape, d->ndim, d->dtype, row) &&
	    pen__mul(*row, t->nsamples, all))
		return 0;
	return pen__fail(err, PEN_EINVAL, d->name,
			 "is too large to be written");
}

int pen__table_put(const struct pen_table *t, uint32_t field,
		   struct pen_out *out, struct pen_err *err)
{
	size_t row, all;
	uint64_t step, n;
	void *piece;
	int rc = row_bytes(t, field, &row, &all, err);

	if (rc || !all)
		return rc;
	if (t->data)
		return out->write(out, t->data[field], all, err);
	step = row < PIECE ? PIECE / row : 1;
	if (step > t->nsamples)
		step = t->nsamples;
	piece = pen__alloc(step, row);
	if (!piece)
		return pen__fail_nomem(err, t->field[field].name, step * row);
	for (uint64_t at = 0; !rc && at < t->nsamples; at += n) {
		n = t->nsamples - at < step ? t->nsamples - at : step;
		rc = t->rows(t, field, at, n, piece, err);
		if (!rc)
			rc = out->write(out, piece, n * row, err);
	}
	pen__free(piece);
	return rc;
}

const void *pen__table_get(const struct pen_table *t, uint32_t field,
			   void **mem, struct pen_err *err)
{
	size_t row, all;

	*mem = NULL;
	if (t->data)
		return t->data[field];
	if (row_bytes(t, field, &row, &all, err))
		return NULL;
	*mem = pen__alloc(all, 1);
	if (!*mem) {
		pen__fail_nomem(err, t->field[field].name, all);
		return NULL;
	}
	if (!t->rows(t, field, 0, t->nsamples, *mem, err))
		return *mem;
	pen__free(*mem);
	*mem = NULL;
	return NULL;
}
