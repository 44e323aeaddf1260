/*
 * TFRecord files of tf.train.Example. A record is a sample, a feature a field:
 * bytes become uint8, floats float32, integers int64. Fields are ragged if
 * lengths differ, and scalars if every record has one number. The crc32c of the
 * payload is verified on every read unless switched off. Other payloads are
 * read as bytes (decode=false).
 *
 * Rejects compressed files (records could not be located), lists of several
 * strings, and sequence examples.
 */
#include "format/record/tfrecord.h"

#include <stdio.h>

#include "base/mem.h"
#include "codec/crc32c.h"
#include "format/array.h"
#include "format/value.h"

static const char *const scan_choices[] = { "auto", "full", NULL };
static const char *const style_choices[] = { "fields", "dlio", NULL };

#define OFF(x) offsetof(struct pen_tfr, x)
static const struct pen_opt tfr_opts[] = {
	{ .name = "fields",
	  .type = PEN_OPT_STR,
	  .off = OFF(fields),
	  .help = "features to read, separated by commas (default: all)" },
	{ .name = "decode",
	  .type = PEN_OPT_BOOL,
	  .off = OFF(decode),
	  .dflt = "true",
	  .help = "parse records as tf.train.Example (false: one field of raw "
		  "bytes)" },
	{ .name = "crc",
	  .type = PEN_OPT_BOOL,
	  .off = OFF(crc),
	  .dflt = "true",
	  .help = "verify the crc32c of each record" },
	{ .name = "scan",
	  .type = PEN_OPT_ENUM,
	  .off = OFF(scan),
	  .dflt = "auto",
	  .choices = scan_choices,
	  .help = "records of equal length: auto compares the first and the "
		  "last, full parses each" },
	{ .name = "style",
	  .type = PEN_OPT_ENUM,
	  .off = OFF(style),
	  .dflt = "fields",
	  .choices = style_choices,
	  .help = "writing: one feature per field, or image and size as DLIO "
		  "does" },
	{ .name = "index",
	  .type = PEN_OPT_BOOL,
	  .off = offsetof(struct pen_tfr, index),
	  .dflt = "false",
	  .help = "writing: add an index FILE.idx with a line `offset length` "
		  "per record (for DALI)" },
	{ .name = NULL },
};

static void tfr_close(struct pen_format *f)
{
	struct pen_tfr *p = f->priv;

	pen__free(p->part);
	pen__free(p->column);
	p->part = NULL;
	p->column = NULL;
}

static uint64_t le(const uint8_t *p, uint64_t i, unsigned size)
{
	uint64_t v = 0;

	memcpy(&v, p + i * size, size); /* little-endian machines only */
	return v;
}

/* ---- bind ---- */

static int damaged(struct pen_err *err)
{
	return pen__fail(err, P_BAD_INDEX, "tfrecord",
			 "the index entry is damaged");
}

static bool take_part(struct pen_bytes *b, struct pen_tfr_part *t)
{
	*t = (struct pen_tfr_part){ .n = pen__take_u64(b) };
	if (pen__take_u8(b)) {
		t->len = pen__take_u64(b);
	} else {
		if (t->n >= pen__bytes_left(b) / 8)
			return false;
		t->off = pen__take(b, (t->n + 1) * 8);
	}
	return !b->bad;
}

static bool take_column(struct pen_bytes *b, uint64_t n, char name[64],
			struct pen_tfr_column *c)
{
	const size_t len = pen__take_u8(b);
	const uint8_t *p = len < 64 ? pen__take(b, len) : NULL;
	bool varies;

	if (!p)
		return false;
	memcpy(name, p, len);
	name[len] = '\0';
	c->kind = (enum pen_feature_kind)pen__take_u8(b);
	varies = pen__take_u8(b);
	c->count = pen__take_u32(b);
	c->counts = NULL;
	if (varies) {
		if (n > pen__bytes_left(b) / 4)
			return false;
		c->counts = pen__take(b, n * 4);
	}
	return !b->bad && c->kind && c->kind <= PEN_FEATURE_INT64;
}

/* The field of this name, or nfields. */
static uint32_t field_of(const struct pen_format *f, const char *name)
{
	uint32_t i = 0;

	while (i < f->nfields && strcmp(f->field[i].name, name) != 0)
		i++;
	return i;
}

/* All features of all objects become fields. */
static int name_fields(struct pen_format *f, const struct pen_index *ix,
		       struct pen_err *err)
{
	f->nfields = 0;
	for (uint64_t i = 0; i < ix->nblobs; i++) {
		const struct pen_span s = ix->blob(ix, i);
		struct pen_bytes b = pen__bytes(s.p, s.n);
		struct pen_tfr_column c;
		struct pen_tfr_part t;
		char name[64];

		if (!s.n) /* excluded by on_error=skip */
			continue;
		if (!take_part(&b, &t))
			return damaged(err);
		for (unsigned n = pen__take_u8(&b); n; n--) {
			if (!take_column(&b, t.n, name, &c))
				return damaged(err);
			if (field_of(f, name) < f->nfields)
				continue;
			if (f->nfields == PEN_MAX_FIELDS)
				return pen__fail(
					err, P_OVER_LIMIT, "tfrecord",
					"there are more than %d features; list "
					"the features to read with fields=",
					PEN_MAX_FIELDS);
			f->field[f->nfields] = (struct pen_field){
				.dtype = pen__feature_dtype(c.kind),
			};
			memcpy(f->field[f->nfields++].name, name, 64);
		}
	}
	return 0;
}

static int fill_tables(struct pen_format *f, const struct pen_index *ix,
		       struct pen_err *err)
{
	struct pen_tfr *p = f->priv;

	for (uint64_t i = 0; i < ix->nblobs; i++) {
		const struct pen_span s = ix->blob(ix, i);
		struct pen_bytes b = pen__bytes(s.p, s.n);
		struct pen_tfr_column c;
		char name[64], where[256];
		uint32_t at;

		take_part(&b, &p->part[i]);
		for (unsigned n = pen__take_u8(&b); n; n--) {
			take_column(&b, p->part[i].n, name, &c);
			at = field_of(f, name);
			p->column[i * f->nfields + at] = c;
			if (pen__feature_dtype(c.kind) == f->field[at].dtype)
				continue;
			pen__blob_name(ix, i, where, sizeof(where));
			return pen__fail(
				err, P_FILES_DISAGREE, where,
				"feature '%s' has a different type in earlier "
				"files; list other features with fields=",
				name);
		}
	}
	return 0;
}

/* The shape of a field, from all objects. */
static void settle_field(struct pen_format *f, uint32_t i, uint64_t nblobs)
{
	const struct pen_tfr *p = f->priv;
	struct pen_field *d = &f->field[i];
	uint64_t most = 0, one = 0;
	bool varies = false, seen = false;

	for (uint64_t k = 0; k < nblobs; k++) {
		const struct pen_tfr_column *c = &p->column[k * f->nfields + i];

		if (!p->part[k].n)
			continue;
		varies |= c->counts || (seen && c->count != one);
		one = c->count;
		seen = true;
		if (c->count > most)
			most = c->count;
	}
	d->ndim = !varies && most == 1 && d->dtype != PEN_U8 ? 0 : 1;
	d->shape[0] = varies ? -1 : (int64_t)most;
	d->max_bytes = most * pen_dtype_size(d->dtype);
}

static uint64_t len_of(const struct pen_tfr_part *t, uint64_t k)
{
	return t->off ? le(t->off, k + 1, 8) - le(t->off, k, 8) - PEN_TFR_FRAME
		      : t->len;
}

/* decode=false: one field of bytes. */
static void settle_bytes(struct pen_format *f, uint64_t nblobs)
{
	const struct pen_tfr *p = f->priv;
	uint64_t most = 0, least = UINT64_MAX;

	for (uint64_t i = 0; i < nblobs; i++) {
		const struct pen_tfr_part *t = &p->part[i];

		for (uint64_t k = 0; k < (t->off ? t->n : !!t->n); k++) {
			const uint64_t len = len_of(t, k);

			most = len > most ? len : most;
			least = len < least ? len : least;
		}
	}
	f->nfields = 1;
	f->field[0] = (struct pen_field){
		.name = "bytes",
		.dtype = PEN_U8,
		.ndim = 1,
		.shape = { most == least ? (int64_t)most : -1 },
		.max_bytes = most,
	};
	f->all_plain = !p->crc;
	f->uniform = false; /* lengths and checksums separate the records */
}

static int tfr_bind(struct pen_format *f, const struct pen_index *ix,
		    struct pen_err *err)
{
	struct pen_tfr *p = f->priv;
	size_t n;
	int rc = name_fields(f, ix, err);

	if (rc < 0)
		return rc;
	tfr_close(f);
	f->ix = ix;
	f->units_per_sample = 1;
	f->all_plain = f->uniform = false;
	f->lends = p->decode;
	if (!ix->nsamples)
		return pen__fail(err, P_NO_SAMPLES, "tfrecord",
				 "no records found");
	if (p->decode && !f->nfields)
		return damaged(err);
	n = (size_t)ix->nblobs * (f->nfields ? f->nfields : 1);
	p->part = pen__calloc((size_t)ix->nblobs, sizeof(*p->part));
	p->column = pen__calloc(n, sizeof(*p->column));
	if (!p->part || !p->column)
		return pen__fail_nomem(err, "tfrecord", n * sizeof(*p->column));
	rc = fill_tables(f, ix, err);
	if (rc < 0)
		return rc;
	for (uint32_t i = 0; i < f->nfields; i++)
		settle_field(f, i, ix->nblobs);
	if (!p->decode)
		settle_bytes(f, ix->nblobs);
	return 0;
}

/* ---- reading ---- */

static void tfr_shape(const struct pen_format *f, uint32_t object, uint64_t k,
		      uint32_t field, int64_t *shape)
{
	const struct pen_tfr *p = f->priv;
	const uint64_t blob = f->ix->blob_of(f->ix, object);
	const struct pen_tfr_column *c;

	if (!f->field[field].ndim)
		return;
	if (!p->decode) {
		shape[0] = (int64_t)len_of(&p->part[blob], k);
		return;
	}
	c = &p->column[blob * f->nfields + field];
	shape[0] = (int64_t)(c->counts ? le(c->counts, k, 4) : c->count);
}

static void tfr_locate(const struct pen_format *f, uint32_t object, uint64_t k,
		       struct pen_unit *u)
{
	const struct pen_tfr *p = f->priv;
	const struct pen_tfr_part *t = &p->part[f->ix->blob_of(f->ix, object)];

	*u = (struct pen_unit){
		.offset = (t->off ? le(t->off, k, 8)
				  : k * (t->len + PEN_TFR_FRAME)) +
			  PEN_TFR_HEAD,
		.len = len_of(t, k) + (p->crc ? PEN_TFR_TAIL : 0),
		.object = object,
		.flags = f->all_plain ? PEN_UNIT_PLAIN : 0,
	};
}

/* Copies the value, or stores its location. */
static int take_feature(const struct pen_feature *ft, const struct pen_row *r,
			uint32_t i)
{
	int rc;

	if (r->dst[i] || !r->lent)
		return pen__feature_get(ft, r->dst[i], r->dst_len[i]);
	rc = pen__feature_bytes(ft, &r->lent[i]);
	return rc || r->lent[i].n == r->dst_len[i] ? rc : PEN_EDATA;
}

static int emit_features(const struct pen_format *f, const struct pen_row *r,
			 struct pen_span s, struct pen_err *err)
{
	struct pen_feature found[PEN_MAX_FIELDS], ft;
	struct pen_example e = pen__example(s.p, s.n);
	uint32_t next = 0;
	char what[128];
	int rc;

	for (uint32_t i = 0; i < f->nfields; i++)
		found[i].kind = PEN_FEATURE_NONE;
	while ((rc = pen__example_next(&e, &ft)) == 1) {
		/* most records have their features in the same order */
		for (uint32_t i = 0; i < f->nfields; i++, next++) {
			const char *name;

			next = next < f->nfields ? next : 0;
			name = f->field[next].name;
			if (strlen(name) != ft.name_len ||
			    memcmp(name, ft.name, ft.name_len) != 0)
				continue;
			found[next] = ft;
			break;
		}
	}
	if (rc < 0)
		return pen__sample_error(f, P_NOT_THIS_FORMAT, r->object, r->k,
					 "not a tf.train.Example", err);
	for (uint32_t i = 0; i < f->nfields; i++) {
		const struct pen_field *d = &f->field[i];

		if (found[i].kind == PEN_FEATURE_NONE && !r->dst_len[i])
			continue;
		if (found[i].kind &&
		    pen__feature_dtype(found[i].kind) == d->dtype &&
		    !take_feature(&found[i], r, i))
			continue;
		snprintf(what, sizeof(what),
			 "feature '%s' differs from the index; if records of "
			 "equal length differ, set format.scan=full",
			 d->name);
		return pen__sample_fail(f, r->object, r->k, what, err);
	}
	return 0;
}

static int tfr_emit(const struct pen_format *f, const struct pen_row *r,
		    struct pen_err *err)
{
	const struct pen_tfr *p = f->priv;
	struct pen_span s = r->data[0];

	if (p->crc) {
		if (s.n < PEN_TFR_TAIL)
			return pen__sample_error(
				f, P_TRUNCATED, r->object, r->k,
				"the record is truncated", err);
		s.n -= PEN_TFR_TAIL;
		if (le(s.p + s.n, 0, 4) !=
		    pen__crc32c_mask(pen__crc32c(0, s.p, s.n)))
			return pen__sample_error(
				f, P_CHECKSUM, r->object, r->k,
				"damaged: the crc32c of the record differs",
				err);
	}
	if (p->decode)
		return emit_features(f, r, s, err);
	if (r->units[0].flags & PEN_UNIT_PLAIN)
		return 0;
	if (s.n != r->dst_len[0])
		return pen__sample_fail(
			f, r->object, r->k,
			"the bytes read do not match the record size", err);
	if (s.n)
		memcpy(r->dst[0], s.p, s.n);
	return 0;
}

static void tfr_describe(const struct pen_format *f, struct pen_describe *d)
{
	const struct pen_tfr *p = f->priv;
	uint64_t records = f->ix->nsamples, bytes = 0;

	for (uint64_t i = 0; i < f->ix->nobjects; i++)
		bytes += f->ix->size_of(f->ix, i);
	d->fact(d->arg, "payload", p->decode ? "tf.train.Example" : "bytes");
	d->fact(d->arg, "crc32c", p->crc ? "checked" : "not checked");
	if (records && bytes / records < 4096)
		d->advice(d->arg, "records are small, and each is a separate "
				  "read; store several samples per record");
}

static const char *const tfr_suffixes[] = { ".tfrecord", ".tfrecords", NULL };

const struct pen_format_ops pen__format_tfrecord = {
	.name = "tfrecord",
	.help = "TensorFlow records of tf.train.Example or raw bytes",
	.suffixes = tfr_suffixes,
	.opts = tfr_opts,
	.priv_size = sizeof(struct pen_tfr),
	.close = tfr_close,
	.index = pen__tfr_index,
	.bind = tfr_bind,
	.shape = tfr_shape,
	.locate = tfr_locate,
	.emit = tfr_emit,
	.describe = tfr_describe,
	.write = pen__tfr_write,
};
