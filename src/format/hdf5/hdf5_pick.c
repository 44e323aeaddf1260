/*
 * Which data sets of a file are fields. Without fields= these are DLIO's
 * records_0, records_1, ... and labels, or all numeric data sets whose first
 * axis is as long as the largest one's. Groups are walked along hard links,
 * each once; soft links are followed only where fields= names them. Refuses
 * files of more than 4096 groups, whose fields have to be named.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "format/hdf5_fields.h"

#define MOST_GROUPS 4096
#define DEEPEST 32

static int grow(void **p, size_t *cap, size_t n, size_t size)
{
	const size_t more = *cap ? *cap * 2 : 16;
	void *q;

	if (n < *cap)
		return 0;
	q = pen__realloc(*p, more, size);
	if (!q)
		return PEN_ENOMEM;
	*p = q;
	*cap = more;
	return 0;
}

static int add_candidate(struct pen_h5_picker *w, const char *name,
			 uint64_t addr, const struct pen_h5_data *d,
			 struct pen_err *err)
{
	void *p = w->c;
	struct pen_h5_pick *c;
	uint64_t n;

	if (strlen(name) >= sizeof(c->name))
		return pen__fail(err, PEN_ENOTSUP, w->pk->name,
				 "the path of data set %s is no field's name "
				 "(longer than %zu); name others with fields=",
				 name, sizeof(c->name) - 1);
	if (grow(&p, &w->cap, w->n, sizeof(*c)))
		return pen__fail_nomem(err, w->pk->name, w->cap * sizeof(*c));
	w->c = p;
	c = &w->c[w->n++];
	*c = (struct pen_h5_pick){ .addr = addr, .ndim = d->space.ndim };
	memcpy(c->name, name, strlen(name));
	(void)pen__h5_count(&d->space, &n);
	c->nbytes = n * d->type.size; /* data_open made sure that it fits */
	c->dim0 = c->ndim ? d->space.dim[0] : 1;
	return 0;
}

/* What cannot be a field is passed over; what is damaged is not. */
static int see_dataset(struct pen_h5_picker *w, uint64_t addr,
		       struct pen_err *err)
{
	struct pen_err why = { 0 };
	struct pen_h5_data d;
	char where[256];
	int rc;

	snprintf(where, sizeof(where), "%.150s:%.100s", w->pk->name, w->path);
	rc = pen__h5_data_open(w->h, addr, &d, where, &why);
	if (rc < 0 && rc != PEN_ENOTSUP && err)
		*err = why;
	if (rc == PEN_ENOTSUP)
		w->nleft_out++;
	if (rc < 0)
		return rc == PEN_ENOTSUP ? 0 : rc;
	if (d.type.dtype < 0 || d.space.null)
		w->nleft_out++;
	else
		rc = add_candidate(w, w->path, addr, &d, err);
	pen__h5_data_close(&d);
	return rc;
}

static int see_link(void *arg, const struct pen_h5_link *l,
		    struct pen_err *err);

static int see_group(struct pen_h5_picker *w, uint64_t addr,
		     struct pen_err *err)
{
	void *p = w->seen;
	int rc;

	for (size_t i = 0; i < w->nseen; i++)
		if (w->seen[i] == addr)
			return 0;
	if (w->depth == DEEPEST || w->nseen == MOST_GROUPS)
		return pen__fail(err, PEN_ENOTSUP, w->pk->name,
				 "more than %d groups, or nested more than %d "
				 "deep; name the data sets with fields=",
				 MOST_GROUPS, DEEPEST);
	if (grow(&p, &w->cap_seen, w->nseen, sizeof(*w->seen)))
		return pen__fail_nomem(err, w->pk->name, w->cap_seen * 8);
	w->seen = p;
	w->seen[w->nseen++] = addr;
	w->depth++;
	rc = pen__h5_links(w->h, addr, see_link, w, err);
	w->depth--;
	return rc;
}

static int see_link(void *arg, const struct pen_h5_link *l, struct pen_err *err)
{
	struct pen_h5_picker *w = arg;
	const size_t n = strlen(w->path), len = strlen(l->name);
	struct pen_h5_head hd;
	bool group, dataset;
	int rc;

	/* links to what has a name elsewhere, or is elsewhere */
	if (l->target || l->external)
		return 0;
	if (n + len + 2 > sizeof(w->path))
		return pen__fail(err, PEN_ENOTSUP, w->pk->name,
				 "a path is longer than %zu bytes; name the "
				 "data sets with fields=",
				 sizeof(w->path) - 2);
	rc = pen__h5_head_open(w->h, l->addr, &hd, err);
	if (rc < 0)
		return rc;
	group = pen__h5_is_group(&hd);
	dataset = pen__h5_is_dataset(&hd);
	pen__h5_head_close(&hd);
	memcpy(w->path + n, l->name, len + 1);
	if (dataset) {
		rc = see_dataset(w, l->addr, err);
	} else if (group) {
		memcpy(w->path + n + len, "/", 2);
		rc = see_group(w, l->addr, err);
	}
	w->path[n] = '\0';
	return rc;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct pen_h5_pick *)a)->name,
		      ((const struct pen_h5_pick *)b)->name);
}

/* The number of DLIO's records_<number>, or -1. */
static long dlio_number(const char *name)
{
	size_t n;

	if (strncmp(name, "records_", 8) != 0)
		return -1;
	n = strspn(name + 8, "0123456789");
	return n && n < 8 && !name[8 + n] ? strtol(name + 8, NULL, 10) : -1;
}

static int by_number(const void *a, const void *b)
{
	const long x = dlio_number(((const struct pen_h5_pick *)a)->name);
	const long y = dlio_number(((const struct pen_h5_pick *)b)->name);

	/* labels, without a number, come last */
	if ((x < 0) != (y < 0))
		return x < 0 ? 1 : -1;
	return (x > y) - (x < y);
}

/* Keeps those that are fields together. */
static void keep_fields(struct pen_h5_picker *w, bool whole)
{
	const struct pen_h5_pick *largest = NULL;
	bool dlio = false;
	size_t n = 0;
	uint64_t dim0;

	qsort(w->c, w->n, sizeof(*w->c), by_name);
	for (size_t i = 0; i < w->n; i++)
		dlio |= dlio_number(w->c[i].name) >= 0;
	for (size_t i = 0; i < w->n; i++) {
		const struct pen_h5_pick *c = &w->c[i];

		if ((whole || c->ndim) &&
		    (!dlio || dlio_number(c->name) >= 0) &&
		    (!largest || c->nbytes > largest->nbytes))
			largest = c;
	}
	dim0 = largest ? largest->dim0 : 0;
	for (size_t i = 0; i < w->n; i++) {
		const struct pen_h5_pick c = w->c[i];

		if (!whole && (!c.ndim || c.dim0 != dim0))
			continue;
		if (dlio && dlio_number(c.name) < 0 &&
		    strcmp(c.name, "labels") != 0)
			continue;
		w->c[n++] = c;
	}
	w->n = n;
	if (dlio)
		qsort(w->c, w->n, sizeof(*w->c), by_number);
}

int pen__h5_pick_all(struct pen_h5_picker *w, bool whole, struct pen_err *err)
{
	int rc = see_group(w, pen__h5_root(w->h), err);

	if (rc < 0)
		return rc;
	if (w->n)
		keep_fields(w, whole);
	if (!w->n)
		return pen__fail(err, PEN_ENOTSUP, w->pk->name,
				 "has no numeric data set %s(%u of other "
				 "kinds)",
				 whole ? "" : "with an axis of samples ",
				 w->nleft_out);
	if (w->n > PEN_MAX_FIELDS)
		return pen__fail(err, PEN_ENOTSUP, w->pk->name,
				 "has %zu data sets, more than %d; name some "
				 "with fields=",
				 w->n, PEN_MAX_FIELDS);
	return 0;
}

/* One name of the option. */
static int find_named(struct pen_h5_picker *w, struct pen_err *err)
{
	char where[256];
	struct pen_h5_data d;
	uint64_t addr;
	int rc = pen__h5_find(w->h, w->path, &addr, err);

	if (rc < 0)
		return rc;
	snprintf(where, sizeof(where), "%.150s:%.100s", w->pk->name, w->path);
	rc = pen__h5_data_open(w->h, addr, &d, where, err);
	if (rc < 0)
		return rc;
	if (d.type.dtype < 0)
		rc = pen__fail(err, PEN_ENOTSUP, where,
			       "holds %s; a field is made of numbers",
			       pen__h5_type_name(&d.type));
	else if (d.space.null)
		rc = pen__fail(err, PEN_ENOTSUP, where,
			       "holds nothing (a null data space)");
	else
		rc = add_candidate(w, w->path, addr, &d, err);
	pen__h5_data_close(&d);
	return rc;
}

int pen__h5_pick_named(struct pen_h5_picker *w, const char *list,
		       struct pen_err *err)
{
	int rc = 0;

	while (rc >= 0 && list) {
		const size_t skip = strspn(list, "/ ");
		const size_t len = strcspn(list + skip, ",");

		if (!len || len >= sizeof(w->path) || w->n == PEN_MAX_FIELDS)
			return pen__fail(err, PEN_EINVAL, "fields",
					 "at most %d paths, separated by "
					 "commas, none empty",
					 PEN_MAX_FIELDS);
		memcpy(w->path, list + skip, len);
		w->path[len] = '\0';
		for (size_t i = 0; i < w->n; i++)
			if (strcmp(w->c[i].name, w->path) == 0)
				return pen__fail(err, PEN_EINVAL, "fields",
						 "%s is there twice", w->path);
		rc = find_named(w, err);
		list = list[skip + len] ? list + skip + len + 1 : NULL;
	}
	return rc;
}

void pen__h5_pick_fini(struct pen_h5_picker *w)
{
	pen__free(w->c);
	pen__free(w->seen);
	w->c = NULL;
	w->seen = NULL;
}
