/*
 * See decoded.h: the functions of a format. Each calls the format below and
 * then decodes. A value in its unit, or in the record that the format parses,
 * is decoded from there into its row; it is copied, once and into the thread's
 * scratch, only where the format has to assemble it.
 */
#include "engine/decoded_int.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

static const struct pen_format *under(const struct pen_format *f)
{
	return ((const struct pen_decoded *)f->priv)->under;
}

/* The decoded field of this number, or NULL. */
static const struct pen_coded *coded(const struct pen_format *f, uint32_t field)
{
	const struct pen_decoded *d = f->priv;

	for (uint32_t j = 0; j < d->ncoded; j++)
		if (d->coded[j].field == field)
			return &d->coded[j];
	return NULL;
}

static void decoded_close(struct pen_format *f)
{
	struct pen_decoded *d = f->priv;

	pen__coded_close(d);
	pen__free(d->heads);
	pen__format_close(d->under);
}

static int decoded_together(const struct pen_format *f,
			    const struct pen_index *ix, uint64_t nbad,
			    const char **other, struct pen_err *err)
{
	struct pen_decoded d = *(const struct pen_decoded *)f->priv;

	pen__under_index(&d, ix);
	return under(f)->ops->together(under(f), &d.ix.pub, nbad, other, err);
}

static void decoded_shape(const struct pen_format *f, uint32_t object,
			  uint64_t k, uint32_t field, int64_t *shape)
{
	const struct pen_coded *c = coded(f, field);
	struct pen_head h;

	if (!c) {
		under(f)->ops->shape(under(f), object, k, field, shape);
		return;
	}
	pen__coded_head(f, c, object, k, &h);
	pen__coded_shape(c, &h, shape);
}

static void decoded_locate(const struct pen_format *f, uint32_t object,
			   uint64_t k, struct pen_unit *u)
{
	under(f)->ops->locate(under(f), object, k, u);
	for (uint32_t i = 0; i < f->units_per_sample; i++, u++)
		if (u->object != PEN_NO_OBJECT && u->flags & PEN_UNIT_PLAIN &&
		    coded(f, u->field))
			u->flags ^= PEN_UNIT_PLAIN | PEN_UNIT_CODED;
}

/* Optional functions are looked up again: bind() may install a different table
 * than the one found at open (zarr does). */
static uint64_t decoded_users(const struct pen_format *f, uint32_t object,
			      uint64_t k, const struct pen_unit *u)
{
	const struct pen_format_ops *o = under(f)->ops;

	return o->users ? o->users(under(f), object, k, u) : 0;
}

static int decoded_unpack(const struct pen_format *f, const struct pen_unit *u,
			  struct pen_span raw, void *out, struct pen_scratch *s,
			  struct pen_err *err)
{
	return under(f)->ops->unpack(under(f), u, raw, out, s, err);
}

/* ---- emit ---- */

/* Adds the object, sample and field to an error. */
static int name_value(const struct pen_format *f, const struct pen_row *r,
		      const struct pen_coded *c, struct pen_err *err)
{
	const struct pen_decoded *d = f->priv;
	char name[256], msg[sizeof(err->msg)];

	if (!err || err->code == PEN_ENOMEM)
		return err ? err->code : PEN_EDATA;
	f->ix->name_of(f->ix, r->object, name, sizeof(name));
	memcpy(msg, err->msg, sizeof(msg));
	if (d->ops.decoder || (f->nfields == 1 && f->ix->per_object == 1))
		return pen__fail_as(err, err, name, "%s", msg);
	return pen__fail_as(err, err, name, "sample %llu, field '%s': %s",
			    (unsigned long long)r->k, c->name, msg);
}

/* It had no head when it was indexed: find out why. */
static int bad_value(const struct pen_coded *c, struct pen_span s,
		     struct pen_err *err)
{
	struct pen_peek_bytes p = pen__peek_bytes(s, NULL);
	struct pen_head h;
	int rc;

	if (!s.n)
		return pen__fail(err, P_CANNOT_DECODE, NULL,
				 "the value is empty");
	rc = pen__coded_look(c, &p.pk, &h, err);
	return rc ? rc
		  : pen__fail(err, P_CANNOT_DECODE, NULL,
			      "the value could not be decoded when the data "
			      "was indexed");
}

static int decode(const struct pen_format *f, const struct pen_row *r,
		  const struct pen_coded *c, struct pen_span s,
		  struct pen_err *err)
{
	struct pen_encoded v = {
		.bytes = s,
		.as = &c->all,
		.dst = r->dst[c->field],
		.len = r->dst_len[c->field],
		.used = &r->used[c->field],
		.scratch = r->scratch,
		.key = r->key,
	};
	const struct pen_decoder *d;
	int rc;

	pen__coded_head(f, c, r->object, r->k, &v.head);
	if (v.head.decoder == PEN_CODED_BAD) {
		rc = bad_value(c, s, err);
	} else {
		d = c->decoder[v.head.decoder];
		rc = d->ops->decode(d, &v, err);
	}
	return rc ? name_value(f, r, c, err) : 0;
}

/* Lets the format below emit the row, with bytes in place of values. */
static int emit_under(const struct pen_format *f, const struct pen_row *r,
		      struct pen_span *lent, struct pen_err *err)
{
	const struct pen_decoded *d = f->priv;
	size_t len[PEN_MAX_FIELDS], used[PEN_MAX_FIELDS];
	void *dst[PEN_MAX_FIELDS];
	struct pen_row row = *r;
	int rc;

	memcpy(dst, r->dst, f->nfields * sizeof(*dst));
	memcpy(len, r->dst_len, f->nfields * sizeof(*len));
	for (uint32_t j = 0; j < d->ncoded; j++) {
		const struct pen_coded *c = &d->coded[j];
		const size_t n = pen__coded_len(d, c, r->object, r->k);

		dst[c->field] = d->under->lends
					? NULL
					: (uint8_t *)r->scratch->mem + c->room;
		len[c->field] = n;
		lent[c->field] = (struct pen_span){ dst[c->field], n };
	}
	memcpy(used, len, f->nfields * sizeof(*used));
	row.dst = dst;
	row.dst_len = len;
	row.used = used;
	row.lent = lent;
	rc = d->under->ops->emit(d->under, &row, err);
	for (uint32_t i = 0; i < f->nfields && !rc; i++)
		if (!coded(f, i))
			r->used[i] = used[i];
		else if (!d->under->lends)
			lent[i].n = used[i];
	return rc;
}

static int decoded_emit(const struct pen_format *f, const struct pen_row *r,
			struct pen_err *err)
{
	const struct pen_decoded *d = f->priv;
	struct pen_span lent[PEN_MAX_FIELDS];
	struct pen_err own = { 0 };
	int rc = 0;

	err = err ? err : &own;
	for (uint32_t j = 0; j < d->ncoded; j++)
		lent[d->coded[j].field] = (struct pen_span){ NULL, 0 };
	if (!d->under->all_plain)
		rc = emit_under(f, r, lent, err);
	for (uint32_t i = 0; i < r->nunits; i++)
		if (r->units[i].flags & PEN_UNIT_CODED &&
		    r->units[i].object != PEN_NO_OBJECT)
			lent[r->units[i].field] = r->data[i];
	for (uint32_t j = 0; j < d->ncoded && !rc; j++)
		rc = decode(f, r, &d->coded[j], lent[d->coded[j].field], err);
	return rc;
}

/* ---- queries ---- */

static bool decoded_value(const struct pen_format *f, uint32_t object,
			  uint64_t k, uint32_t field, double *out)
{
	const struct pen_format_ops *o = under(f)->ops;

	return o->value && !coded(f, field) &&
	       o->value(under(f), object, k, field, out);
}

static uint64_t decoded_nlabels(const struct pen_format *f, uint32_t field)
{
	const struct pen_format_ops *o = under(f)->ops;

	return !o->nlabels || coded(f, field) ? 0 : o->nlabels(under(f), field);
}

static int decoded_label(const struct pen_format *f, uint32_t field,
			 uint64_t code, char *buf, size_t cap)
{
	const struct pen_format_ops *o = under(f)->ops;

	return o->label ? o->label(under(f), field, code, buf, cap)
			: PEN_ENOTFOUND;
}

static void decoded_warn(const struct pen_format *f, void *arg,
			 void (*see)(void *arg, const struct pen_err *))
{
	if (under(f)->ops->warn)
		under(f)->ops->warn(under(f), arg, see);
}

/* "jpeg and png": the decoders that values use. */
static void name_decoders(const struct pen_coded *c, char *buf, size_t cap)
{
	size_t at = 0;

	buf[0] = '\0';
	for (uint32_t i = 0; i < c->nkinds && at < cap; i++)
		if (c->used >> i & 1)
			at += (size_t)snprintf(buf + at, cap - at, "%s%s",
					       at ? " and " : "",
					       c->decoder[i]->ops->name);
}

static void decoded_describe(const struct pen_format *f, struct pen_describe *t)
{
	const struct pen_decoded *d = f->priv;
	char text[160], names[128], what[96];

	if (under(f)->ops->describe)
		under(f)->ops->describe(under(f), t);
	for (uint32_t j = 0; j < d->ncoded; j++) {
		const struct pen_coded *c = &d->coded[j];
		const struct pen_decoder_ops *o = c->decoder[0]->ops;
		const char *looks = o->looks ? o->looks(&c->all) : NULL;

		name_decoders(c, names, sizeof(names));
		if (looks && d->ops.decoder) {
			t->fact(t->arg, "pixels", looks);
			t->fact(t->arg, "compression", names);
		} else {
			snprintf(what, sizeof(what), "decode %s", c->name);
			snprintf(text, sizeof(text), "%s%s%s", names,
				 looks ? ", " : "", looks ? looks : "");
			t->fact(t->arg, what, text);
		}
		if (looks && (c->all.shape[0] < 0 || c->all.shape[1] < 0))
			t->advice(t->arg,
				  "image sizes differ, so batches are ragged; "
				  "shapes=padded makes them dense");
	}
}

/* ---- opening ---- */

struct pen_format *pen__decoded_under(struct pen_format *f)
{
	return f->ops->close == decoded_close
		       ? ((struct pen_decoded *)f->priv)->under
		       : f;
}

/* Replaces the functions of the format below with those above. */
static void stand_before(struct pen_format_ops *o)
{
	o->opts = NULL; /* options belong to the format below */
	o->open = NULL;
	o->write = NULL;
	o->close = decoded_close;
	o->index = pen__decoded_index;
	o->bind = pen__decoded_bind;
	o->together = o->together ? decoded_together : NULL;
	o->shape = decoded_shape;
	o->locate = decoded_locate;
	o->users = o->users ? decoded_users : NULL;
	o->unpack = o->unpack ? decoded_unpack : NULL;
	o->emit = decoded_emit;
	o->value = o->value ? decoded_value : NULL;
	o->nlabels = o->nlabels ? decoded_nlabels : NULL;
	o->label = o->label ? decoded_label : NULL;
	o->describe = decoded_describe;
	o->warn = o->warn ? decoded_warn : NULL;
}

int pen__decoded_open(struct pen_format **f, const struct pen_decode_set *set,
		      struct pen_err *err)
{
	struct pen_format *out;
	struct pen_decoded *d;
	int rc;

	if (!(*f)->ops->decoder && !set->decode.n && !set->image.n)
		return 0;
	out = pen__calloc(1, sizeof(*out));
	d = pen__calloc(1, sizeof(*d));
	rc = out && d ? pen__coded_open(d, (*f)->ops, set, err)
		      : pen__fail_nomem(err, "decode", sizeof(*d));
	if (rc || !d->ncoded) {
		if (d)
			pen__coded_close(d);
		pen__free(d);
		pen__free(out);
		return rc;
	}
	d->under = *f;
	d->ops = *(*f)->ops;
	stand_before(&d->ops);
	*out = (struct pen_format){ .ops = &d->ops,
				    .priv = d,
				    .nobjects_hint = (*f)->nobjects_hint };
	for (uint32_t j = 0; j < d->ncoded; j++)
		if (d->coded[j].by_head)
			d->under->see = pen__decoded_see;
	*f = out;
	return 0;
}
