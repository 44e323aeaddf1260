/*
 * The TFRecord writer. A sample becomes an Example with a feature per field or,
 * like DLIO's, with the array's bytes in `image` and their number in `size`; or
 * its raw bytes (decode=false). A record is built in memory and written at
 * once, except for DLIO's, which may be large and is written in pieces: all but
 * its crc is known in advance. Types that an Example does not support are
 * rejected, not converted.
 */
#include <inttypes.h>

#include "base/mem.h"
#include "codec/crc32c.h"
#include "format/record/tfrecord.h"

struct writer {
	const struct pen_tfr *p;
	const struct pen_table *t;
	struct pen_out *out;
	struct pen_err *err;
	size_t row[PEN_MAX_FIELDS];
	void *mem[PEN_MAX_FIELDS]; /* one row each, if rows are generated one by
				      one */
	struct pen_buf map, record, lines;
	uint64_t at; /* offset of the record */
};

static bool in_pieces(const struct writer *w)
{
	return w->p->decode && w->p->style == PEN_TFR_STYLE_DLIO;
}

static int check_field(struct writer *w, uint32_t i)
{
	const struct pen_field *d = &w->t->field[i];

	if (!pen__shape_bytes(d->shape, d->ndim, d->dtype, &w->row[i]))
		return pen__fail(w->err, P_CANNOT_WRITE_THIS, d->name,
				 "the field is too large to write");
	if (w->p->decode && w->p->style == PEN_TFR_STYLE_FIELDS &&
	    d->dtype != PEN_U8 && d->dtype != PEN_F32 && d->dtype != PEN_I64)
		return pen__fail(w->err, P_CANNOT_WRITE_THIS, d->name,
				 "tf.train.Example does not support %s; use "
				 "uint8, float32 or int64, or set "
				 "format.style=dlio to store raw bytes",
				 pen_dtype_name(d->dtype));
	if (w->t->data || in_pieces(w))
		return 0;
	w->mem[i] = pen__alloc(w->row[i] + !w->row[i], 1);
	return w->mem[i] ? 0 : pen__fail_nomem(w->err, d->name, w->row[i]);
}

static const void *row_of(struct writer *w, uint32_t i, uint64_t k, int *rc)
{
	if (w->t->data)
		return (const uint8_t *)w->t->data[i] + k * w->row[i];
	*rc = pen__table_rows(w->t, i, k, 1, w->mem[i], w->err);
	return w->mem[i];
}

static void put_field(struct writer *w, uint32_t i, const void *row)
{
	const struct pen_field *d = &w->t->field[i];
	const size_t n = w->row[i];

	if (!w->p->decode) {
		pen__buf_put(&w->record, row, n);
	} else if (d->dtype == PEN_F32) {
		pen__feature_put(&w->map, d->name, PEN_FEATURE_FLOAT, row,
				 n / 4);
	} else if (d->dtype == PEN_I64) {
		pen__feature_put(&w->map, d->name, PEN_FEATURE_INT64, row,
				 n / 8);
	} else {
		pen__feature_put(&w->map, d->name, PEN_FEATURE_BYTES, row, n);
	}
}

/* Fills in the length and its crc. */
static void put_length(struct pen_buf *b, uint64_t len)
{
	uint32_t crc;

	memcpy(b->p, &len, 8);
	crc = pen__crc32c_mask(pen__crc32c(0, b->p, 8));
	memcpy(b->p + 8, &crc, 4);
}

/* Adds the record to the index, and advances the offset. */
static int count_record(struct writer *w, uint64_t n)
{
	if (w->p->index)
		pen__buf_printf(&w->lines, "%" PRIu64 " %" PRIu64 "\n", w->at,
				n);
	w->at += n;
	return w->lines.bad ? pen__fail_nomem(w->err, "tfrecord", w->lines.n)
			    : 0;
}

static int put_record(struct writer *w)
{
	struct pen_buf *b = &w->record;
	const uint64_t len = b->n - PEN_TFR_HEAD;
	uint32_t crc;
	int rc;

	if (w->map.bad || b->bad)
		return pen__fail_nomem(w->err, "tfrecord", b->n);
	put_length(b, len);
	crc = pen__crc32c_mask(pen__crc32c(0, b->p + PEN_TFR_HEAD, len));
	pen__buf_le(b, crc, 4);
	if (b->bad)
		return pen__fail_nomem(w->err, "tfrecord", b->n);
	rc = count_record(w, b->n);
	return rc ? rc : w->out->write(w->out, b->p, b->n, w->err);
}

/* An output that computes the crc of what it forwards. */
struct sum_out {
	struct pen_out out, *to;
	uint32_t crc;
};

static int sum_write(struct pen_out *o, const void *p, size_t n,
		     struct pen_err *err)
{
	struct sum_out *s = (struct sum_out *)o;

	s->crc = pen__crc32c(s->crc, p, n);
	return s->to->write(s->to, p, n, err);
}

/* DLIO's record: the bytes before the array, the array, the bytes after it. */
static int put_around(struct writer *w, uint64_t k)
{
	static const uint8_t head[PEN_TFR_HEAD];
	const int64_t size = (int64_t)w->row[0];
	struct sum_out sum = { .out.write = sum_write, .to = w->out };
	struct pen_buf *b = &w->record, image = { 0 };
	uint64_t len = 0;
	uint32_t crc;
	int rc;

	w->map.n = b->n = 0;
	pen__feature_put(&image, "image", PEN_FEATURE_BYTES, NULL, w->row[0]);
	pen__feature_put(&w->map, "size", PEN_FEATURE_INT64, &size, 1);
	pen__buf_put(b, head, sizeof(head));
	pen__example_head(b, image.n + w->row[0] + w->map.n);
	pen__buf_put(b, image.p, image.n);
	b->bad |= image.bad || w->map.bad;
	pen__buf_fini(&image);
	if (b->bad)
		return pen__fail_nomem(w->err, "tfrecord", 128);
	len = b->n - PEN_TFR_HEAD + w->row[0] + w->map.n;
	put_length(b, len);
	sum.crc = pen__crc32c(0, b->p + PEN_TFR_HEAD, b->n - PEN_TFR_HEAD);
	rc = count_record(w, len + PEN_TFR_FRAME);
	if (!rc)
		rc = w->out->write(w->out, b->p, b->n, w->err);
	if (!rc)
		rc = pen__table_put_row(w->t, 0, k, &sum.out, w->err);
	if (rc)
		return rc;
	crc = pen__crc32c_mask(pen__crc32c(sum.crc, w->map.p, w->map.n));
	pen__buf_le(&w->map, crc, 4);
	return w->map.bad ? pen__fail_nomem(w->err, "tfrecord", 128)
			  : w->out->write(w->out, w->map.p, w->map.n, w->err);
}

static int put_sample(struct writer *w, uint64_t k)
{
	static const uint8_t head[PEN_TFR_HEAD];
	int rc = 0;

	w->map.n = w->record.n = 0;
	pen__buf_put(&w->record, head, sizeof(head));
	for (uint32_t i = 0; i < w->t->nfields; i++) {
		const void *row = row_of(w, i, k, &rc);

		if (rc)
			return rc;
		put_field(w, i, row);
	}
	if (w->p->decode)
		pen__example_put(&w->record, &w->map);
	return put_record(w);
}

static int put_index(struct writer *w)
{
	struct pen_out *side;

	if (!w->out->side)
		return pen__fail(w->err, P_CANNOT_WRITE_THIS, "tfrecord",
				 "format.index=true needs a separate file, "
				 "which this output cannot create");
	side = w->out->side(w->out, ".idx", w->err);
	if (!side)
		return w->err ? w->err->code : PEN_EIO;
	return w->lines.n ? side->write(side, w->lines.p, w->lines.n, w->err)
			  : 0;
}

int pen__tfr_write(const struct pen_format *f, const struct pen_table *t,
		   struct pen_out *out, struct pen_err *err)
{
	struct writer w = { .p = f->priv, .t = t, .out = out, .err = err };
	const bool one = !w.p->decode || w.p->style == PEN_TFR_STYLE_DLIO;
	int rc = 0;

	if (!t->nfields || t->nfields > PEN_MAX_FIELDS ||
	    (one && t->nfields != 1))
		return pen__fail(
			err, P_CANNOT_WRITE_THIS, "tfrecord",
			one ? "format.style=dlio and format.decode=false store "
			      "one array, not %u"
			    : "cannot write %u fields",
			t->nfields);
	for (uint32_t i = 0; i < t->nfields && !rc; i++)
		rc = check_field(&w, i);
	for (uint64_t k = 0; k < t->nsamples && !rc; k++)
		rc = in_pieces(&w) ? put_around(&w, k) : put_sample(&w, k);
	if (!rc && w.p->index)
		rc = put_index(&w);
	for (uint32_t i = 0; i < t->nfields; i++)
		pen__free(w.mem[i]);
	pen__buf_fini(&w.lines);
	pen__buf_fini(&w.map);
	pen__buf_fini(&w.record);
	return rc;
}
