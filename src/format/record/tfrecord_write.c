/*
 * Writing TFRecords: every sample an Example with a feature for each field,
 * or, as DLIO does, with the array's bytes in `image` and their number in
 * `size`; or its bytes as they are (decode=false). A record is made in memory
 * and written whole, but DLIO's, which may be large, goes out in pieces: all
 * but its crc is known before its bytes are. Refuses types an Example does not
 * have rather than turning them into others.
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
	void *mem[PEN_MAX_FIELDS]; /* a row each, when asked for one by one */
	struct pen_buf map, record, lines;
	uint64_t at; /* where the record begins */
};

static bool in_pieces(const struct writer *w)
{
	return w->p->decode && w->p->style == PEN_TFR_STYLE_DLIO;
}

static int check_field(struct writer *w, uint32_t i)
{
	const struct pen_field *d = &w->t->field[i];

	if (!pen__shape_bytes(d->shape, d->ndim, d->dtype, &w->row[i]))
		return pen__fail(w->err, PEN_EINVAL, d->name,
				 "is too large to be written");
	if (w->p->decode && w->p->style == PEN_TFR_STYLE_FIELDS &&
	    d->dtype != PEN_U8 && d->dtype != PEN_F32 && d->dtype != PEN_I64)
		return pen__fail(
			w->err, PEN_EINVAL, d->name,
			"is %s, which tf.train.Example does not have: "
			"use uint8, float32 or int64, or format.style=dlio "
			"for its bytes",
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

/* Length and its crc go where room was left for them. */
static void put_length(struct pen_buf *b, uint64_t len)
{
	uint32_t crc;

	memcpy(b->p, &len, 8);
	crc = pen__crc32c_mask(pen__crc32c(0, b->p, 8));
	memcpy(b->p + 8, &crc, 4);
}

/* The index, and where the next record begins. */
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

/* An output that sums what it passes on. */
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

/* DLIO's: what comes before the array, the array, what comes after. */
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
		return pen__fail(
			w->err, PEN_EINVAL, "tfrecord",
			"format.index=true needs a file, which cannot be "
			"made here");
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
		return pen__fail(err, PEN_EINVAL, "tfrecord",
				 one ? "holds one array this way, not %u"
				     : "%u fields",
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
