/*
 * A field as numbers for all chosen samples. Formats that know them from their
 * index provide them; otherwise the data is loaded once in its own order, as
 * for training, and everything except this field is dropped. That costs a pass
 * over the data; labels in a file avoid it.
 */
#include "engine/plan_column.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "engine/emit_crop.h"

static bool has_field(const struct pen_dataset *ds, const char *name)
{
	for (uint32_t i = 0; i < ds->format->nfields; i++)
		if (!strcmp(ds->format->field[i].name, name))
			return true;
	return false;
}

static int find_field(const struct pen_dataset *ds, const char *name,
		      uint32_t *out, struct pen_err *err)
{
	const struct pen_format *f = ds->format;
	const bool obs = pen__opt_find(f->ops->opts, "obs") != NULL;

	for (uint32_t i = 0; i < f->nfields; i++) {
		if (strcmp(f->field[i].name, name) != 0)
			continue;
		if (f->field[i].ndim || f->field[i].dtype > PEN_F64)
			return pen__fail(err, P_LABELS_DO_NOT_FIT, name,
					 "not one number per sample, as "
					 "labels, weights and lengths must be");
		*out = i;
		return 0;
	}
	return pen__fail(
		err, P_NO_SUCH_FIELD, name,
		obs ? "not a field of this data; set format.obs=%s if it is a "
		      "column of obs"
		    : "not a field of this data; see `penstock inspect`",
		name);
}

/* Resets the settings that select or change samples: here all are needed, as
 * they are. A format that was told to skip this field has to read it. */
static int plain_spec(struct pen_spec **out, const struct pen_dataset *ds,
		      const char *name, struct pen_err *err)
{
	static const char *const set[] = {
		"sampler=sequential",
		"shuffle=",
		"subset=",
		"weights=",
		"labels=",
		"label_name=",
		"lengths=",
		"batch_tokens=0",
		"pack=0",
		"take=",
		"cast=",
		"epochs=1",
		"world=1",
		"rank=0",
		"tail=keep",
		"decode=true",
		"epoch_batches=0",
		"drop_last=false",
		"on_error=fail",
		"max_errors=0",
		"too_long=auto",
		"prefetch=2",
	};
	const char *how = pen__pairs_get(&ds->spec->for_decode, name);
	int rc = pen_spec_copy(out, ds->spec, err);

	if (rc)
		return rc;
	pen__pairs_clear(&(*out)->for_decode); /* of other fields */
	pen__pairs_clear(&(*out)->for_image);
	if (how)
		rc = pen__pairs_add(&(*out)->for_decode, name, how, err);
	pen__pairs_clear(&(*out)->for_sampler);		/* of another sampler */
	pen__pairs_drop(&(*out)->for_format, "fields"); /* from fields= */
	for (size_t i = 0; !rc && i < sizeof(set) / sizeof(*set); i++)
		rc = pen_spec_parse(*out, set[i], err);
	if (!rc)
		rc = pen_spec_set(*out, "fields", name, err);
	if (rc)
		pen_spec_free(*out);
	return rc;
}

static int take_all(struct pen_loader *l, double *to, struct pen_err *err)
{
	struct pen_batch *b;
	int rc;

	while ((rc = pen_loader_next(l, &b, err)) == 0) {
		const struct pen_tensor *t = &b->tensors[0];

		for (uint32_t i = 0; i < b->nsamples; i++)
			to[b->ids[i]] = pen__number_at(t->data, t->dtype, i);
		pen_batch_unref(b);
	}
	return rc == PEN_END ? 0 : rc;
}

/* Reads the field of all samples. */
static int read_all(const struct pen_dataset *ds, const char *name, double *to,
		    struct pen_err *err)
{
	struct pen_loader *l;
	struct pen_spec *s;
	uint32_t field;
	int rc = plain_spec(&s, ds, name, err);

	if (rc)
		return rc;
	rc = pen_loader_open(&l, s, err);
	pen_spec_free(s);
	if (rc)
		return rc;
	rc = find_field(l->ds, name, &field, err);
	if (!rc)
		rc = take_all(l, to, err);
	pen_loader_close(l);
	return rc;
}

static bool known(const struct pen_dataset *ds, uint64_t sample, uint32_t field,
		  double *out)
{
	const struct pen_format *f = ds->format;
	uint32_t object;
	uint64_t k;

	pen__index_find(f->ix, sample, &object, &k);
	return f->ops->value && f->ops->value(f, object, k, field, out);
}

int pen__column_read(const struct pen_dataset *ds, const struct pen_choice *c,
		     const char *name, double **out, struct pen_err *err)
{
	const uint64_t n = ds->ix.pub.nsamples;
	double *v = NULL, *all = NULL, first;
	uint32_t field = 0;
	/* fields= may exclude a field that the data has */
	const bool here = has_field(ds, name) || !ds->spec->fields;
	bool have;
	int rc = here ? find_field(ds, name, &field, err) : 0;

	if (rc)
		return rc;
	have = here && known(ds, pen__choice_at(c, 0), field, &first);
	v = pen__alloc(c->n, sizeof(*v));
	if (!have)
		all = pen__alloc(n, sizeof(*all));
	if (!v || (!have && !all))
		rc = pen__fail_nomem(err, name, n * sizeof(*v));
	else if (!have)
		rc = read_all(ds, name, all, err);
	for (uint64_t i = 0; !rc && i < c->n; i++) {
		const uint64_t sample = pen__choice_at(c, i);

		v[i] = NAN;
		if (!have)
			v[i] = all[sample];
		else
			known(ds, sample, field, &v[i]);
	}
	pen__free(all);
	if (rc)
		pen__free(v);
	else
		*out = v;
	return rc;
}
