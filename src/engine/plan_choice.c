/*
 * Which samples are used, and with what weight, class or length: subset=,
 * weights=, labels= and lengths=. Numbers come from .npy files, read by a
 * separate loader, or from text files with one number per line.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "engine/plan_column.h"
#include "engine/emit_crop.h"

#define CLASSES ((double)(1 << 24)) /* range of labels that are counted */

static int npy_spec(struct pen_spec **out, const char *path,
		    struct pen_err *err)
{
	static const char *const set[] = {
		"format=npy",	    "format.samples=first", "store=posix",
		"batch_size=65536", "index_cache=off",	    "threads=1",
	};
	int rc = pen_spec_new(out, err);

	if (rc)
		return rc;
	rc = pen_spec_add_path(*out, path, err);
	for (size_t i = 0; !rc && i < sizeof(set) / sizeof(*set); i++)
		rc = pen_spec_parse(*out, set[i], err);
	if (rc)
		pen_spec_free(*out);
	return rc;
}

static int npy_numbers(struct pen_loader *l, const char *path, double *to,
		       struct pen_err *err)
{
	const struct pen_field *d = pen_dataset_field(l->ds, 0);
	struct pen_batch *b;
	uint64_t n = 0;
	int rc;

	if (d->ndim != 0 || d->dtype > PEN_F64)
		return pen__fail(err, P_BAD_VALUE, path,
				 "not a list of numbers; store one integer, "
				 "float or boolean per sample");
	while ((rc = pen_loader_next(l, &b, err)) == 0) {
		for (uint32_t i = 0; i < b->nsamples; i++)
			to[n++] =
				pen__number_at(b->tensors[0].data, d->dtype, i);
		pen_batch_unref(b);
	}
	return rc == PEN_END ? 0 : rc;
}

static int read_npy(const char *path, double **out, uint64_t *n, bool *bools,
		    struct pen_err *err)
{
	struct pen_loader *l;
	struct pen_spec *s;
	double *v = NULL;
	int rc = npy_spec(&s, path, err);

	if (rc)
		return rc;
	rc = pen_loader_open(&l, s, err);
	pen_spec_free(s);
	if (rc)
		return rc;
	*n = pen_dataset_nsamples(l->ds);
	*bools = pen_dataset_field(l->ds, 0)->dtype == PEN_BOOL;
	v = pen__alloc(*n, sizeof(*v));
	rc = v ? npy_numbers(l, path, v, err)
	       : pen__fail_nomem(err, path, *n * sizeof(*v));
	pen_loader_close(l);
	if (rc)
		pen__free(v);
	else
		*out = v;
	return rc;
}

static int read_text(const char *path, double **out, uint64_t *n,
		     struct pen_err *err)
{
	FILE *in = fopen(path, "re");
	double *v = NULL;
	size_t cap = 0;
	char line[256];
	int rc = 0;

	*n = 0;
	if (!in)
		return pen__fail_sys(err, errno, path, "cannot read the file");
	while (!rc && fgets(line, sizeof(line), in)) {
		char *end;
		double x = strtod(line, &end);

		if (!strchr(line, '\n') && !feof(in))
			end = line; /* too long, or a NUL byte */
		if (end == line || end[strspn(end, " \t\r\n")]) {
			rc = pen__fail(err, P_BAD_TEXT, path,
				       "line %llu is not a number",
				       (unsigned long long)*n + 1);
			break;
		}
		if (*n == cap) {
			size_t c = cap ? cap * 2 : 1024;
			double *w = pen__realloc(v, c, sizeof(*v));

			if (!w) {
				rc = pen__fail_nomem(err, path, c * 8);
				break;
			}
			v = w;
			cap = c;
		}
		v[(*n)++] = x;
	}
	if (!rc && ferror(in))
		rc = pen__fail_sys(err, errno, path, "cannot read the file");
	fclose(in);
	if (rc)
		pen__free(v);
	else
		*out = v;
	return rc;
}

int pen__numbers_read(const char *path, double **out, uint64_t *n, bool *bools,
		      struct pen_err *err)
{
	size_t len = strlen(path);

	*bools = false;
	*out = NULL;
	if (len > 4 && strcmp(path + len - 4, ".npy") == 0)
		return read_npy(path, out, n, bools, err);
	return read_text(path, out, n, err);
}

/* START:STOP[:STEP] with the meaning of Python's slices, all optional. */
static bool parse_range(const char *s, uint64_t n, struct pen_choice *c)
{
	long long v[3] = { 0, (long long)n, 1 };

	if (!strchr(s, ':'))
		return false;
	for (int i = 0; i < 3; i++) {
		char *end;
		long long x = strtoll(s, &end, 10);

		if (end != s)
			v[i] = x < 0 && i < 2 ? x + (long long)n : x;
		s = end;
		if (*s == '\0')
			break;
		if (*s++ != ':' || i == 2)
			return false;
	}
	if (*s || v[2] < 1)
		return false;
	v[0] = v[0] < 0 ? 0 : v[0];
	v[1] = v[1] > (long long)n ? (long long)n : v[1];
	c->start = (uint64_t)v[0];
	c->step = (uint64_t)v[2];
	c->n = v[1] > v[0] ? (uint64_t)((v[1] - v[0] - 1) / v[2] + 1) : 0;
	return true;
}

static int use_mask(struct pen_choice *c, const double *v, uint64_t nv,
		    uint64_t n, const char *path, struct pen_err *err)
{
	if (nv != n)
		return pen__fail(
			err, P_LABELS_DO_NOT_FIT, path,
			"the mask has %llu entries, but there are %llu samples",
			(unsigned long long)nv, (unsigned long long)n);
	c->n = 0;
	for (uint64_t i = 0; i < n; i++)
		if (v[i] != 0)
			c->list[c->n++] = i;
	return 0;
}

static int use_ids(struct pen_choice *c, const double *v, uint64_t nv,
		   uint64_t n, const char *path, struct pen_err *err)
{
	for (uint64_t i = 0; i < nv; i++) {
		if (!(v[i] >= 0) || v[i] >= (double)n || v[i] != floor(v[i]))
			return pen__fail(err, P_BAD_VALUE, path,
					 "entry %llu (%g) is not a sample; the "
					 "samples are 0 to %llu",
					 (unsigned long long)i, v[i],
					 (unsigned long long)n - 1);
		c->list[i] = (uint64_t)v[i];
	}
	c->n = nv;
	return 0;
}

static int choose_subset(struct pen_choice *c, const char *subset, uint64_t n,
			 struct pen_err *err)
{
	double *v;
	uint64_t nv;
	bool mask;
	int rc;

	if (parse_range(subset, n, c))
		return 0;
	rc = pen__numbers_read(subset, &v, &nv, &mask, err);
	if (rc)
		return rc;
	c->list = pen__alloc(nv, sizeof(*c->list));
	if (!c->list)
		rc = pen__fail_nomem(err, subset, nv * 8);
	else if (mask)
		rc = use_mask(c, v, nv, n, subset, err);
	else
		rc = use_ids(c, v, nv, n, subset, err);
	pen__free(v);
	return rc;
}

int pen__choice_numbers(const struct pen_choice *c,
			const struct pen_dataset *ds, const char *path,
			double **out, struct pen_err *err)
{
	const uint64_t n = ds->ix.pub.nsamples;
	double *v, *w;
	uint64_t nv;
	bool mask;
	int rc = pen__numbers_read(path, &v, &nv, &mask, err);

	if (rc)
		return rc;
	if (nv == c->n && nv != n) {
		*out = v;
		return 0;
	}
	if (nv != n) {
		pen__free(v);
		return pen__fail(err, P_LABELS_DO_NOT_FIT, path,
				 "has %llu numbers, but there are %llu samples",
				 (unsigned long long)nv, (unsigned long long)n);
	}
	w = pen__alloc(c->n, sizeof(*w));
	for (uint64_t i = 0; w && i < c->n; i++)
		w[i] = v[pen__choice_at(c, i)];
	pen__free(v);
	*out = w;
	return w ? 0 : pen__fail_nomem(err, path, c->n * 8);
}

/* What follows a prefix, or NULL. */
static const char *after(const char *text, const char *prefix)
{
	const size_t n = strlen(prefix);

	return strncmp(text, prefix, n) == 0 ? text + n : NULL;
}

static int fail_label(const char *name, uint64_t i, double v,
		      struct pen_err *err)
{
	return pen__fail(
		err, P_LABELS_DO_NOT_FIT, name,
		"chosen sample %llu has the label %g; labels must be integers",
		(unsigned long long)i, v);
}

/* Turns classes into weights: 1 / number of samples of the class. */
static int invert(double *v, uint64_t n, const char *name, struct pen_err *err)
{
	double least = INFINITY, most = -INFINITY;
	uint64_t *count;

	for (uint64_t i = 0; i < n; i++) {
		if (isnan(v[i]))
			continue;
		if (v[i] != floor(v[i]))
			return fail_label(name, i, v[i], err);
		least = v[i] < least ? v[i] : least;
		most = v[i] > most ? v[i] : most;
	}
	if (most < least)
		return 0; /* all are missing: the sampler reports it */
	if (!(most - least < CLASSES))
		return pen__fail(err, P_LABELS_DO_NOT_FIT, name,
				 "the labels range from %g to %g, which is too "
				 "wide; renumber them",
				 least, most);
	count = pen__calloc((size_t)(most - least) + 1, sizeof(*count));
	if (!count)
		return pen__fail_nomem(err, name, 0);
	for (uint64_t i = 0; i < n; i++)
		if (!isnan(v[i]))
			count[(size_t)(v[i] - least)]++;
	for (uint64_t i = 0; i < n; i++)
		if (!isnan(v[i]))
			v[i] = 1 / (double)count[(size_t)(v[i] - least)];
	pen__free(count);
	return 0;
}

static int choose_weights(struct pen_choice *c, const struct pen_dataset *ds,
			  struct pen_err *err)
{
	const char *from = ds->spec->weights;
	const char *field = after(from, "field:");
	const char *label = after(from, "inverse:");
	int rc;

	if (!field && !label)
		return pen__choice_numbers(c, ds, from, &c->weights, err);
	rc = pen__column_read(ds, c, label ? label : field, &c->weights, err);
	if (!rc && label)
		rc = invert(c->weights, c->n, label, err);
	for (uint64_t i = 0; !rc && i < c->n; i++)
		if (isnan(c->weights[i])) /* missing in the data */
			c->weights[i] = 0;
	return rc;
}

int pen__choice_lengths(struct pen_choice *c, const struct pen_dataset *ds,
			const char *from, struct pen_err *err)
{
	const char *field = after(from, "field:");
	double *v = NULL;
	int rc = field ? pen__column_read(ds, c, field, &v, err)
		       : pen__choice_numbers(c, ds, from, &v, err);

	if (rc)
		return rc;
	c->lengths = pen__alloc(c->n, sizeof(*c->lengths));
	if (!c->lengths)
		rc = pen__fail_nomem(err, from, c->n * sizeof(*c->lengths));
	for (uint64_t i = 0; !rc && i < c->n; i++) {
		if (!(v[i] >= 0) || v[i] != floor(v[i]))
			rc = pen__fail(err, P_BAD_VALUE, from,
				       "chosen sample %llu has the length %g; "
				       "lengths must be integers of 0 or more",
				       (unsigned long long)i, v[i]);
		else
			c->lengths[i] = v[i] < UINT32_MAX ? (uint32_t)v[i]
							  : UINT32_MAX;
	}
	pen__free(v);
	return rc;
}

int pen__choice_init(struct pen_choice *c, const struct pen_dataset *ds,
		     struct pen_err *err)
{
	const struct pen_spec *s = ds->spec;
	uint64_t n = ds->ix.pub.nsamples;
	int rc = 0;

	*c = (struct pen_choice){ .n = n, .step = 1 };
	if (s->subset)
		rc = choose_subset(c, s->subset, n, err);
	if (!rc && !c->n)
		rc = pen__fail(err, P_BAD_VALUE, "subset",
			       "'%s' selects no samples", s->subset);
	if (!rc && s->weights)
		rc = choose_weights(c, ds, err);
	if (!rc && s->labels)
		rc = pen__label_choose(c, ds, err);
	if (!rc && s->lengths)
		rc = pen__choice_lengths(c, ds, s->lengths, err);
	return rc;
}

void pen__choice_fini(struct pen_choice *c)
{
	pen__free(c->list);
	pen__free(c->weights);
	pen__free(c->labels);
	pen__free(c->by_sample);
	pen__free(c->lengths);
	*c = (struct pen_choice){ 0 };
}
