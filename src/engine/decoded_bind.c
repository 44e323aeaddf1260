/*
 * The dtype and shape of decoded rows: from all heads together, or from the
 * lengths that the format knows.
 */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "engine/decoded_int.h"

/* ---- one sample ---- */

uint64_t pen__coded_len(const struct pen_decoded *d, const struct pen_coded *c,
			uint32_t object, uint64_t k)
{
	int64_t shape[PEN_MAX_DIMS];

	memcpy(shape, d->under->field[c->field].shape, sizeof(shape));
	if (shape[0] < 0)
		d->under->ops->shape(d->under, object, k, c->field, shape);
	return (uint64_t)shape[0];
}

void pen__coded_head(const struct pen_format *f, const struct pen_coded *c,
		     uint32_t object, uint64_t k, struct pen_head *out)
{
	const struct pen_decoded *d = f->priv;
	const struct pen_decoder *only = c->decoder[0];
	const struct pen_heads *h;

	if (!c->by_head) {
		only->ops->size(only, pen__coded_len(d, c, object, k), out);
		return;
	}
	h = &d->heads[f->ix->blob_of(f->ix, object) * d->ncoded +
		      (uint32_t)(c - d->coded)];
	if (h->n == 1 || k < h->n) {
		pen__head_get(h, k, out);
	} else {
		*out = c->some;
		out->decoder = PEN_CODED_BAD;
	}
}

void pen__coded_shape(const struct pen_coded *c, const struct pen_head *h,
		      int64_t *shape)
{
	for (unsigned i = 0; i < c->all.ndim; i++)
		shape[i] = c->all.shape[i] < 0 ? h->shape[i] : c->all.shape[i];
}

/* ---- all samples ---- */

static void name_blob(const struct pen_index *ix, uint64_t blob, char *buf,
		      size_t cap)
{
	uint64_t i = 0;

	while (i < ix->nobjects && ix->blob_of(ix, i) != blob)
		i++;
	if (i < ix->nobjects)
		ix->name_of(ix, i, buf, cap);
}

static int misfit(const struct pen_decoded *d, const struct pen_coded *c,
		  uint64_t blob, int kind, const char *why, struct pen_err *err)
{
	char name[256] = "";

	name_blob(d->ix.of, blob, name, sizeof(name));
	if (d->ops.decoder)
		return pen__fail(err, kind, name, "%s", why);
	return pen__fail(err, kind, name, "field '%s': %s", c->name, why);
}

static int join_one(const struct pen_decoded *d, struct pen_coded *c,
		    uint64_t blob, const struct pen_head *h,
		    struct pen_err *err)
{
	const struct pen_decoder *of = c->decoder[h->decoder];
	const char *why;

	if (!c->used) {
		c->all = c->some = *h;
	} else if (of->ops->join != c->decoder[c->some.decoder]->ops->join) {
		return misfit(d, c, blob, P_FILES_DISAGREE,
			      "differs in kind from the values before it", err);
	}
	c->used |= UINT32_C(1) << h->decoder;
	why = pen__decoder_join(of, &c->all, h);
	return why ? misfit(d, c, blob, P_FILES_DISAGREE, why, err) : 0;
}

/* Calls `each` for every head of the field, until one fails. */
static int for_heads(struct pen_decoded *d, struct pen_coded *c,
		     int (*each)(const struct pen_decoded *, struct pen_coded *,
				 uint64_t blob, const struct pen_head *,
				 struct pen_err *),
		     struct pen_err *err)
{
	int rc = 0;

	for (uint64_t i = 0; i < d->ix.of->nblobs && !rc; i++) {
		const struct pen_heads *h =
			&d->heads[i * d->ncoded + (uint32_t)(c - d->coded)];

		for (uint64_t k = 0; k < h->n && !rc; k++) {
			struct pen_head one;

			pen__head_get(h, k, &one);
			if (one.decoder != PEN_CODED_BAD)
				rc = each(d, c, i, &one, err);
		}
	}
	return rc;
}

static int count_one(const struct pen_decoded *d, struct pen_coded *c,
		     uint64_t blob, const struct pen_head *h,
		     struct pen_err *err)
{
	int64_t shape[PEN_MAX_DIMS];
	size_t bytes;

	pen__coded_shape(c, h, shape);
	if (!pen__shape_bytes(shape, c->all.ndim, c->all.dtype, &bytes))
		return misfit(d, c, blob, P_BAD_DATA_VALUE,
			      "the value is too large", err);
	c->most = bytes > c->most ? bytes : c->most;
	return 0;
}

static int settle_heads(struct pen_decoded *d, struct pen_coded *c,
			struct pen_field *out, struct pen_err *err)
{
	const struct pen_decoder *first;
	int rc = for_heads(d, c, join_one, err);

	if (rc)
		return rc;
	if (!c->used)
		return pen__fail(
			err, P_UNSUPPORTED_FEATURE, c->name,
			"cannot be decoded as %s: its shapes are read while "
			"indexing, and format '%s' does not provide values "
			"then; raw, text, int and json do not need them",
			c->decoder[0]->ops->name, d->ops.name);
	first = c->decoder[c->some.decoder];
	if (first->ops->settle)
		first->ops->settle(first, &c->all);
	c->most = 0;
	rc = for_heads(d, c, count_one, err);
	out->max_bytes = c->most;
	return rc;
}

static int settle_size(struct pen_coded *c, const struct pen_field *under,
		       struct pen_field *out, struct pen_err *err)
{
	const struct pen_decoder *only = c->decoder[0];
	size_t bytes;

	only->ops->size(only, under->max_bytes, &c->all);
	if (!pen__shape_bytes(c->all.shape, c->all.ndim, c->all.dtype, &bytes))
		return pen__fail(err, P_BAD_DATA_VALUE, c->name,
				 "the values are too large");
	if (c->all.upto || (c->all.follows && under->shape[0] < 0))
		c->all.shape[0] = -1;
	out->max_bytes = bytes;
	c->used = 1;
	return 0;
}

static int find_field(const struct pen_format *f, struct pen_coded *c,
		      struct pen_err *err)
{
	struct pen_near near = pen__near(c->name, strlen(c->name));
	const struct pen_field *d = f->field;
	char where[80];

	snprintf(where, sizeof(where), "decode.%s", c->name);
	for (c->field = 0; c->field < f->nfields; c->field++, d++) {
		if (strcmp(d->name, c->name) == 0)
			break;
		pen__near_see(&near, d->name, strlen(d->name));
	}
	if (c->field == f->nfields)
		return pen__fail(err, P_NO_SUCH_FIELD, where,
				 "the data has no field '%s'%s", c->name,
				 pen__near_text(&near).s);
	if (d->dtype != PEN_U8 || d->ndim != 1)
		return pen__fail(err, P_BAD_VALUE, where,
				 "the field '%s' is %s with %u axes; only "
				 "bytes (uint8, one axis) can be decoded",
				 c->name, pen_dtype_name(d->dtype), d->ndim);
	return 0;
}

static int settle_field(struct pen_format *f, struct pen_coded *c,
			struct pen_err *err)
{
	struct pen_decoded *d = f->priv;
	struct pen_field *out;
	int rc = find_field(f, c, err);

	if (rc)
		return rc;
	c->used = 0;
	out = &f->field[c->field];
	rc = c->by_head ? settle_heads(d, c, out, err)
			: settle_size(c, &d->under->field[c->field], out, err);
	if (rc)
		return rc;
	out->dtype = c->all.dtype;
	out->layout = c->all.upto ? PEN_PADDED : PEN_DENSE;
	out->ndim = c->all.ndim;
	memcpy(out->shape, c->all.shape, sizeof(c->all.shape));
	f->pad[c->field] = (struct pen_pad){ 0 };
	if (!d->under->lends && !d->under->all_plain) {
		c->room = (f->scratch_size + 63) & ~(size_t)63;
		f->scratch_size = c->room + d->under->field[c->field].max_bytes;
	}
	return 0;
}

int pen__decoded_bind(struct pen_format *f, const struct pen_index *ix,
		      struct pen_err *err)
{
	struct pen_decoded *d = f->priv;
	const struct pen_format *u = d->under;
	int rc;

	pen__under_index(d, ix);
	rc = u->ops->bind(d->under, &d->ix.pub, err);
	if (rc) {
		pen__format_err(u->ops, err);
		return rc;
	}
	f->ix = ix;
	memcpy(f->field, u->field, sizeof(f->field));
	memcpy(f->pad, u->pad, sizeof(f->pad));
	f->nfields = u->nfields;
	f->units_per_sample = u->units_per_sample;
	f->all_plain = f->uniform = false;
	f->shares = u->shares;
	f->paired = u->paired;
	f->decodes = true;
	f->scratch_size = u->scratch_size;
	pen__free(d->heads);
	d->heads =
		pen__calloc((size_t)ix->nblobs * d->ncoded, sizeof(*d->heads));
	if (!d->heads)
		return pen__fail_nomem(err, "index", ix->nblobs);
	rc = pen__heads_find(d, err);
	for (uint32_t j = 0; j < d->ncoded && !rc; j++)
		rc = settle_field(f, &d->coded[j], err);
	return rc;
}
