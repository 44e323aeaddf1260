/* Shared by writers: the samples of a table, in pieces or all at once. */
#include "base/mem.h"
#include "format/format.h"

#define PIECE ((size_t)256 << 10) /* stays in the cache */

static int row_bytes(const struct pen_table *t, uint32_t field, size_t *row,
		     size_t *all, struct pen_err *err)
{
	const struct pen_field *d = &t->field[field];

	if (pen__shape_bytes(d->shape, d->ndim, d->dtype, row) &&
	    pen__mul(*row, t->nsamples, all))
		return 0;
	return pen__fail(err, P_CANNOT_WRITE_THIS, d->name,
			 "the field is too large to write");
}

int pen__table_single(const struct pen_format *f, const struct pen_table *t,
		      size_t *row, size_t *all, struct pen_err *err)
{
	if (t->nfields != 1)
		return pen__fail(err, P_CANNOT_WRITE_THIS, f->ops->name,
				 "the format stores one array, not %u",
				 t->nfields);
	return row_bytes(t, 0, row, all, err);
}

int pen__table_rows(const struct pen_table *t, uint32_t field, uint64_t first,
		    uint64_t n, void *to, struct pen_err *err)
{
	size_t row, all;
	int rc;

	if (!t->part)
		return t->rows(t, field, first, n, to, err);
	rc = row_bytes(t, field, &row, &all, err);
	return rc ? rc : t->part(t, field, first * row, n * row, to, err);
}

/* Bytes [from, from + all) in pieces, from part(). */
static int put_parts(const struct pen_table *t, uint32_t field, uint64_t from,
		     size_t all, struct pen_out *out, struct pen_err *err)
{
	const size_t cap = all < PIECE ? all : PIECE;
	void *piece = pen__alloc(cap, 1);
	int rc = piece ? 0 : pen__fail_nomem(err, t->field[field].name, cap);
	size_t n;

	for (size_t at = 0; !rc && at < all; at += n) {
		n = all - at < cap ? all - at : cap;
		rc = t->part(t, field, from + at, n, piece, err);
		if (!rc)
			rc = out->write(out, piece, n, err);
	}
	pen__free(piece);
	return rc;
}

/* Rows [from, end) in pieces, from rows(). */
static int put_rows(const struct pen_table *t, uint32_t field, uint64_t from,
		    uint64_t end, struct pen_out *out, struct pen_err *err)
{
	size_t row, all;
	uint64_t step, n;
	void *piece;
	int rc = row_bytes(t, field, &row, &all, err);

	if (rc)
		return rc;
	step = row < PIECE ? PIECE / row : 1;
	if (step > end - from)
		step = end - from;
	piece = pen__alloc(step, row);
	if (!piece)
		return pen__fail_nomem(err, t->field[field].name, step * row);
	for (uint64_t at = from; !rc && at < end; at += n) {
		n = end - at < step ? end - at : step;
		rc = t->rows(t, field, at, n, piece, err);
		if (!rc)
			rc = out->write(out, piece, n * row, err);
	}
	pen__free(piece);
	return rc;
}

int pen__table_put(const struct pen_table *t, uint32_t field,
		   struct pen_out *out, struct pen_err *err)
{
	size_t row, all;
	int rc = row_bytes(t, field, &row, &all, err);

	if (rc || !all)
		return rc;
	if (t->data)
		return out->write(out, t->data[field], all, err);
	return t->part ? put_parts(t, field, 0, all, out, err)
		       : put_rows(t, field, 0, t->nsamples, out, err);
}

int pen__table_put_row(const struct pen_table *t, uint32_t field, uint64_t k,
		       struct pen_out *out, struct pen_err *err)
{
	size_t row, all;
	int rc = row_bytes(t, field, &row, &all, err);

	if (rc || !row)
		return rc;
	if (t->data)
		return out->write(out,
				  (const uint8_t *)t->data[field] + k * row,
				  row, err);
	return t->part ? put_parts(t, field, k * row, row, out, err)
		       : put_rows(t, field, k, k + 1, out, err);
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
	if (!pen__table_rows(t, field, 0, t->nsamples, *mem, err))
		return *mem;
	pen__free(*mem);
	*mem = NULL;
	return NULL;
}
