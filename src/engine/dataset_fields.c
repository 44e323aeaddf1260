/* See dataset_fields.h. */
#include "engine/dataset_fields.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "engine/decoded.h"
#include "engine/plan_column.h"

#define UNSET (PEN_NO_LABEL + 1)

static const char *label_name(const struct pen_spec *s)
{
	return s->label_name ? s->label_name : "y";
}

/* labels=field:y uses the field y itself and adds none. */
static bool adds_label(const struct pen_spec *s)
{
	const char *from = s->labels;

	return from && (strncmp(from, "field:", 6) != 0 ||
			strcmp(from + 6, label_name(s)) != 0);
}

static bool is_name(const char *name, const char *word, size_t n)
{
	return strlen(name) == n && memcmp(name, word, n) == 0;
}

static bool lists(const char *fields, const char *name)
{
	for (size_t n; *fields; fields += n + (fields[n] == ',')) {
		n = strcspn(fields, ",");
		if (is_name(name, fields, n))
			return true;
	}
	return false;
}

int pen__fields_of_format(const struct pen_spec *s, char **out,
			  struct pen_err *err)
{
	char *text, *to;
	size_t n;

	*out = NULL;
	if (!s->fields)
		return 0;
	to = text = pen__strdup(s->fields);
	if (!text)
		return pen__fail_nomem(err, "fields", strlen(s->fields));
	for (const char *p = s->fields; *p; p += n + (p[n] == ',')) {
		n = strcspn(p, ",");
		if (adds_label(s) && is_name(label_name(s), p, n))
			continue;
		if (to > text)
			*to++ = ',';
		memcpy(to, p, n); /* never longer than what p has passed */
		to += n;
	}
	*to = '\0';
	if (*text)
		*out = text;
	else
		pen__free(text);
	return 0;
}

/* ---- labels=folder ---- */

/* Numbers the directories that have samples, in the order of their paths. */
static int number_folders(struct pen_dataset *ds, struct pen_err *err)
{
	const struct pen_objects *o = &ds->objs;
	const struct pen_index *ix = &ds->ix.pub;
	struct pen_label *l = &ds->label;

	l->class_of = pen__calloc(o->ndir, sizeof(*l->class_of));
	l->dir_of = pen__alloc(o->ndir, sizeof(*l->dir_of));
	if (!l->class_of || !l->dir_of)
		return pen__fail_nomem(err, "labels", o->ndir * 8);
	for (uint64_t i = 0; i < o->nobj; i++)
		if (!ix->first || ix->first[i] < ix->first[i + 1])
			l->class_of[o->obj[i].dir] = 1;
	for (uint32_t d = 0; d < o->ndir; d++) {
		if (!l->class_of[d])
			continue;
		l->class_of[d] = l->nclasses;
		l->dir_of[l->nclasses++] = d;
	}
	return 0;
}

static const char *folder(const struct pen_dataset *ds, uint64_t class)
{
	const struct pen_objects *o = &ds->objs;

	return o->names + o->dir[ds->label.dir_of[class]].name;
}

/* Length of the path that all folders have in common, in entire components. */
static size_t common_part(const struct pen_dataset *ds)
{
	const char *first = folder(ds, 0);
	size_t n = strlen(first);

	for (uint32_t i = 1; i < ds->label.nclasses; i++) {
		const char *other = folder(ds, i);
		size_t k = 0;

		while (k < n && first[k] == other[k])
			k++;
		/* "a" and "ab" share nothing, "a" and "a/b" share "a" */
		if ((k < strlen(first) && first[k] != '/') ||
		    (other[k] && other[k] != '/'))
			while (k && first[k - 1] != '/')
				k--;
		n = k;
	}
	if (ds->label.nclasses == 1)
		while (n && first[n - 1] != '/')
			n--;
	return n;
}

/* ---- the data set's fields ---- */

/*
 * fields= names the label, so the format was not asked for a field of that name
 * and does not report whether the data has one. This indexes the first object
 * (all of them, if they form one store) for that field alone. Returns 1, 0 or
 * PEN_ENOMEM.
 */
static int has_unread(const struct pen_dataset *ds, struct pen_err *err)
{
	const struct pen_pairs *given = &ds->spec->for_format;
	struct pen_objects some = ds->objs;
	struct pen_index_data ix = { 0 };
	struct pen_format *f = NULL;
	struct pen_opts_kv *kv;
	int rc;

	if (!ds->format->ops->markers)
		some.nobj = 1;
	kv = pen__alloc(given->n + 1, sizeof(*kv));
	some.obj = pen__alloc(some.nobj, sizeof(*some.obj));
	if (!kv || !some.obj) {
		pen__free(kv);
		pen__free(some.obj);
		return pen__fail_nomem(err, "fields", 0);
	}
	memcpy(kv, given->kv, given->n * sizeof(*kv));
	memcpy(some.obj, ds->objs.obj, some.nobj * sizeof(*some.obj));
	kv[given->n] = (struct pen_opts_kv){ "fields", label_name(ds->spec) };
	rc = pen__format_open(&f, pen__decoded_under(ds->format)->ops, kv,
			      given->n + 1, NULL);
	if (!rc)
		rc = pen__index_build(&ix, &some, ds->store, f, 1, NULL);
	if (!rc)
		rc = f->ops->bind(f, &ix.pub, NULL);
	pen__format_close(f);
	pen__index_fini(&ix);
	pen__free(kv);
	pen__free(some.obj);
	return rc == PEN_ENOMEM ? pen__fail_nomem(err, "fields", 0) : !rc;
}

static int taken(const struct pen_dataset *ds, struct pen_err *err)
{
	const char *name = label_name(ds->spec);

	return pen__fail(err, P_CONFLICT, "labels",
			 "the label is delivered as the field '%.63s', which "
			 "the data has too; rename it with label_name=, or "
			 "exclude one with fields=",
			 name);
}

static int add_label(struct pen_dataset *ds, struct pen_err *err)
{
	const struct pen_format *f = ds->format;
	struct pen_label *l = &ds->label;
	const char *name = label_name(ds->spec);
	const size_t n = strlen(name);

	if (n >= sizeof(l->field.name) || strchr(name, ','))
		return pen__fail(err, P_BAD_VALUE, "label_name",
				 "not a valid field name; use at most 63 bytes "
				 "and no comma");
	for (uint32_t i = 0; i < f->nfields; i++)
		if (strcmp(f->field[i].name, name) == 0)
			return taken(ds, err);
	if (l->unread) {
		const int there = has_unread(ds, err);

		if (there)
			return there < 0 ? there : taken(ds, err);
	}
	if (f->nfields >= PEN_MAX_FIELDS)
		return pen__fail(err, P_LABELS_DO_NOT_FIT, "labels",
				 "the data has %u fields already, the maximum; "
				 "exclude some with fields=",
				 f->nfields);
	l->on = true;
	l->field = (struct pen_field){ .dtype = PEN_I64, .max_bytes = 8 };
	memcpy(l->field.name, name, n + 1);
	return 0;
}

int pen__label_open(struct pen_dataset *ds, struct pen_err *err)
{
	const struct pen_spec *s = ds->spec;
	const struct pen_format *f = ds->format;
	struct pen_label *l = &ds->label;
	int rc = 0;

	l->from = -1;
	if (!s->labels)
		return s->label_name
			       ? pen__fail(err, P_NO_EFFECT, "label_name",
					   "has no effect without labels=; set "
					   "it too, or omit this")
			       : 0;
	if (strcmp(s->labels, "folder") == 0) {
		rc = number_folders(ds, err);
		if (!rc)
			l->common = common_part(ds);
	} else if (strncmp(s->labels, "field:", 6) == 0) {
		for (uint32_t i = 0; i < f->nfields; i++)
			if (strcmp(f->field[i].name, s->labels + 6) == 0)
				l->from = (int)i;
	}
	/* a missing field is reported where labels are read */
	if (l->from < 0 && strncmp(s->labels, "field:", 6) == 0 && !s->fields)
		return 0;
	if (!rc && adds_label(s) &&
	    (!s->fields || lists(s->fields, label_name(s))))
		rc = add_label(ds, err);
	return rc;
}

void pen__label_close(struct pen_dataset *ds)
{
	pen__free(ds->label.class_of);
	pen__free(ds->label.dir_of);
	ds->label = (struct pen_label){ 0 };
}

PEN_API uint32_t pen_dataset_nfields(const struct pen_dataset *ds)
{
	return ds->format->nfields + ds->label.on;
}

PEN_API const struct pen_field *pen_dataset_field(const struct pen_dataset *ds,
						  uint32_t i)
{
	if (i < ds->format->nfields)
		return &ds->format->field[i];
	return i < pen_dataset_nfields(ds) ? &ds->label.field : NULL;
}

/* The field of the format that defines these codes, or -1. */
static int codes_of(const struct pen_dataset *ds, uint32_t field)
{
	if (field < ds->format->nfields)
		return (int)field;
	return ds->label.on ? ds->label.from : -1;
}

PEN_API uint64_t pen_dataset_nlabels(const struct pen_dataset *ds,
				     uint32_t field)
{
	const struct pen_format_ops *o = ds->format->ops;
	const int of = codes_of(ds, field);

	if (of >= 0)
		return o->nlabels ? o->nlabels(ds->format, (uint32_t)of) : 0;
	return field < pen_dataset_nfields(ds) ? ds->label.nclasses : 0;
}

PEN_API int pen_dataset_label(const struct pen_dataset *ds, uint32_t field,
			      uint64_t code, char *buf, size_t cap)
{
	const int of = codes_of(ds, field);
	const char *name;

	if (!cap || code >= pen_dataset_nlabels(ds, field))
		return PEN_ENOTFOUND;
	if (of >= 0)
		return ds->format->ops->label(ds->format, (uint32_t)of, code,
					      buf, cap);
	name = folder(ds, code) + ds->label.common;
	name += *name == '/';
	snprintf(buf, cap, "%s", *name ? name : ".");
	return 0;
}

static int fail_field(const struct pen_dataset *ds, const char *name, size_t n,
		      struct pen_err *err)
{
	char list[160] = "";
	size_t at = 0;

	for (uint32_t i = 0; i < pen_dataset_nfields(ds) && at < sizeof(list);
	     i++)
		at += (size_t)snprintf(list + at, sizeof(list) - at, "%s%s",
				       i ? ", " : "",
				       pen_dataset_field(ds, i)->name);
	return pen__fail(err, P_NO_SUCH_FIELD, "fields",
			 "unknown field '%.*s'; choose from: %s", (int)n, name,
			 list);
}

/* Does format.fields= not name a field that its format delivers anyway? */
static bool excluded(const struct pen_dataset *ds, uint32_t i)
{
	const char *only = pen__pairs_get(&ds->spec->for_format, "fields");

	return only && pen__decoded_under(ds->format)->ops->all_fields &&
	       i < ds->format->nfields &&
	       !lists(only, ds->format->field[i].name);
}

int pen__fields_hide(const struct pen_dataset *ds, bool *hide,
		     struct pen_err *err)
{
	const char *p = ds->spec->fields;

	for (uint32_t i = 0; i < PEN_MAX_FIELDS; i++)
		hide[i] = p || excluded(ds, i);
	while (p && *p) {
		size_t n = strcspn(p, ",");
		uint32_t i = 0;

		while (i < pen_dataset_nfields(ds) &&
		       (excluded(ds, i) ||
			!is_name(pen_dataset_field(ds, i)->name, p, n)))
			i++;
		if (i == pen_dataset_nfields(ds))
			return fail_field(ds, p, n, err);
		hide[i] = false;
		p += n + (p[n] == ',');
	}
	return 0;
}

/* ---- labels of samples ---- */

static void choose_folders(struct pen_choice *c, const struct pen_dataset *ds)
{
	for (uint64_t i = 0; i < c->n; i++) {
		uint32_t object;
		uint64_t k;

		pen__index_find(&ds->ix.pub, pen__choice_at(c, i), &object, &k);
		c->labels[i] = ds->label.class_of[ds->objs.obj[object].dir];
	}
}

/* -1 stands for "none" in batches, so it cannot be a label as well. */
static int check_none(const struct pen_choice *c, const char *from,
		      struct pen_err *err)
{
	bool none = false, minus = false;

	for (uint64_t i = 0; i < c->n; i++) {
		none |= c->labels[i] == PEN_NO_LABEL;
		minus |= c->labels[i] == -1;
	}
	if (none && minus)
		return pen__fail(
			err, P_LABELS_DO_NOT_FIT, from,
			"some samples have no label, which is delivered as -1, "
			"and others have the label -1; renumber them, or "
			"exclude the label with fields=");
	return 0;
}

static int choose_numbers(struct pen_choice *c, const struct pen_dataset *ds,
			  struct pen_err *err)
{
	const char *from = ds->spec->labels;
	double *v = NULL;
	int rc = strncmp(from, "field:", 6) == 0
			 ? pen__column_read(ds, c, from + 6, &v, err)
			 : pen__choice_numbers(c, ds, from, &v, err);

	for (uint64_t i = 0; !rc && i < c->n; i++) {
		if (isnan(v[i]))
			c->labels[i] = PEN_NO_LABEL;
		else if (fabs(v[i]) > 0x1p53 || v[i] != floor(v[i]))
			rc = pen__fail(err, P_LABELS_DO_NOT_FIT, from,
				       "chosen sample %llu has the label %g; "
				       "labels must be integers below 2^53",
				       (unsigned long long)i, v[i]);
		else
			c->labels[i] = (int64_t)v[i];
	}
	pen__free(v);
	if (!rc && ds->label.on)
		rc = check_none(c, from, err);
	return rc;
}

/* Labels by sample number, for batches of a list of samples. */
static int turn_round(struct pen_choice *c, const struct pen_dataset *ds,
		      struct pen_err *err)
{
	const uint64_t n = ds->ix.pub.nsamples;

	c->by_sample = pen__alloc(n, sizeof(*c->by_sample));
	if (!c->by_sample)
		return pen__fail_nomem(err, "labels", n * 8);
	for (uint64_t i = 0; i < n; i++)
		c->by_sample[i] = UNSET;
	for (uint64_t i = 0; i < c->n; i++) {
		int64_t *of = &c->by_sample[c->list[i]];

		if (*of != UNSET && *of != c->labels[i])
			return pen__fail(err, P_LABELS_DO_NOT_FIT,
					 ds->spec->labels,
					 "gives two labels to sample %llu, "
					 "which subset= lists more than once",
					 (unsigned long long)c->list[i]);
		*of = c->labels[i];
	}
	return 0;
}

int pen__label_choose(struct pen_choice *c, const struct pen_dataset *ds,
		      struct pen_err *err)
{
	int rc = 0;

	c->labels = pen__alloc(c->n, sizeof(*c->labels));
	if (!c->labels)
		return pen__fail_nomem(err, "labels", c->n * 8);
	if (ds->label.class_of)
		choose_folders(c, ds);
	else
		rc = choose_numbers(c, ds, err);
	if (!rc && c->list && ds->label.on)
		rc = turn_round(c, ds, err);
	return rc;
}
