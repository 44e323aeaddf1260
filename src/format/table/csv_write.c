/*
 * The csv writer, like pandas with header=False, index=False: one row per
 * sample, values flattened, floats with the digits they need to read back
 * exactly, nothing for NaN. Rejects types that csv_open() does not read.
 */
#include "base/mem.h"
#include "format/table/csv.h"

#define FULL ((size_t)1 << 20) /* buffer size before writing */

static int put_row(const uint8_t *row, size_t n, const struct pen_field *d,
		   char delim, struct pen_buf *b)
{
	const size_t size = pen_dtype_size(d->dtype);
	char text[40];

	for (size_t i = 0; i < n; i += size) {
		const unsigned len = pen__csv_print(row + i, d->dtype, text);

		pen__buf_put(b, text, len);
		pen__buf_put(b, i + size < n ? &delim : "\n", 1);
	}
	return b->bad ? PEN_ENOMEM : 0;
}

static int put_rows(const struct pen_csv *p, const struct pen_table *t,
		    size_t row, struct pen_out *out, struct pen_err *err)
{
	struct pen_buf b = { 0 };
	void *mem = t->data ? NULL : pen__alloc(row, 1);
	int rc = t->data || mem ? 0 : pen__fail_nomem(err, "csv", row);

	for (uint64_t k = 0; k < t->nsamples && !rc; k++) {
		const uint8_t *from = mem;

		if (t->data)
			from = (const uint8_t *)t->data[0] + k * row;
		else
			rc = pen__table_rows(t, 0, k, 1, mem, err);
		if (!rc && put_row(from, row, t->field, p->delim, &b))
			rc = pen__fail_nomem(err, "csv", b.n);
		if (!rc && (b.n >= FULL || k + 1 == t->nsamples)) {
			rc = out->write(out, b.p, b.n, err);
			b.n = 0;
		}
	}
	pen__buf_fini(&b);
	pen__free(mem);
	return rc;
}

int pen__csv_write(const struct pen_format *f, const struct pen_table *t,
		   struct pen_out *out, struct pen_err *err)
{
	const struct pen_csv *p = f->priv;
	const struct pen_field *d = t->field;
	locale_t was;
	size_t row, all;
	int rc;

	rc = pen__table_single(f, t, &row, &all, err);
	if (rc)
		return rc;
	if (d->dtype == PEN_BOOL || d->dtype == PEN_F16 || d->dtype > PEN_F64)
		return pen__fail(err, P_CANNOT_WRITE_THIS, "csv",
				 "%s cannot be written as text; use an "
				 "integer, float32 or float64",
				 pen_dtype_name(d->dtype));
	if (!row)
		return pen__fail(err, P_CANNOT_WRITE_THIS, "csv",
				 "samples of this shape cannot be written");
	was = uselocale(p->c);
	rc = put_rows(p, t, row, out, err);
	uselocale(was);
	return rc;
}
