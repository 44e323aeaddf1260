/*
 * Writing TFRecords: every sample an Example with a feature for each field,
 * or, as DLIO does, with the array's bytes in `image` and their number in
 * `size`; or its bytes as they are (decode=false). A record is made in memory
 * and written whole. Refuses types an Example does not have rather than
 * turning them into others.
 */
#include "base/mem.h"
#include "codec/crc32c.h"
#include "format/tfrecord.h"

struct writer {
	const struct pen_tfr *p;
	const struct pen_table *t;
	struct pen_out *out;
	struct pen_err *err;
	size_t row[PEN_MAX_FIELDS];
	void *mem[PEN_MAX_FIELDS]; /* a row each, when asked for one by one */
	struct pen_buf map, record;
};

static int check_field(struct writer *w, uint32_t i)
{
	const struct pen_field *d = &w->t->field[i];

	if (!pen__shape_bytes(d->shape, d->ndim, d->dtype, &w->row[i]))
		return pen__fail(w->err, PEN_EINVAL, d->name,
				 "is too large to be written");
	if (w->p->decode && w->p->style == PEN_TFR_STYLE_FIELDS &&
	    d->dtype != PEN_U8 && d->dtype != PEN_F32 && d->dtype != PEN_I64)
		return pen__fail(w->err, PEN_EINVAL, d->name,
				 "is %s, which tf.train.Example does not have: "
				 "use uint8, float32 or int64, or style=dlio "
				 "for its bytes",
				 pen_dtype_name(d->dtype));
	if (w->t->data)
		return 0;
	w->mem[i] = pen__alloc(w->row[i] + !w->row[i], 1);
	return w->mem[i] ? 0 : pen__fail_nomem(w->err, d->name, w->row[i]);
}

static const void *row_of(struct writer *w, uint32_t i, uint64_t k, int *rc)
{
	if (w->t->data)
		return (const uint8_t *)w->t->data[i] + k * w->row[i];
	*rc = w->t->rows(w->t, i, k, 1, w->mem[i], w->err);
	return w->mem[i];
}

static void put_field(struct writer *w, uint32_t i, const void *row)
{
	const struct pen_field *d = &w->t->field[i];
	const size_t n = w->row[i];
	const int64_t size = (int64_t)n;

	if (!w->p->decode) {
		pen__buf_put(&w->record, row, n);
	} else if (w->p->style == PEN_TFR_STYLE_DLIO) {
		pen__feature_put(&w->map, "image", PEN_FEATURE_BYTES, row, n);
		pen__feature_put(&w->map, "size", PEN_FEATURE_INT64, &size, 1);
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

/* Length and crc go where room was left for them. */
static int put_record(struct writer *w)
{
	struct pen_buf *b = &w->record;
	const uint64_t len = b->n - PEN_TFR_HEAD;
	uint32_t crc;

	if (w->map.bad || b->bad)
		return pen__fail_nomem(w->err, "tfrecord", b->n);
	memcpy(b->p, &len, 8);
	crc = pen__crc32c_mask(pen__crc32c(0, b->p, 8));
	memcpy(b->p + 8, &crc, 4);
	crc = pen__crc32c_mask(pen__crc32c(0, b->p + PEN_TFR_HEAD, len));
	pen__buf_le(b, crc, 4);
	if (b->bad)
		return pen__fail_nomem(w->err, "tfrecord", b->n);
	return w->out->write(w->out, b->p, b->n, w->err);
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
		rc = put_sample(&w, k);
	for (uint32_t i = 0; i < t->nfields; i++)
		pen__free(w.mem[i]);
	pen__buf_fini(&w.map);
	pen__buf_fini(&w.record);
	return rc;
}
