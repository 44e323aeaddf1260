/*
 * Which data sets of a file are fields. Without fields= these are DLIO's
 * records_0, records_1, ... and labels, or all numeric data sets whose first
 * axis is as long as the largest one's. Groups are walked along hard links,
 * each once; soft links are followed only where fields= names them. Refuses
 * files of more than 4096 groups, whose fields have to be named, and guesses
 * that make no sense: numbers of a sparse matrix (Cell Ranger's among them), or
 * of one array among others of other lengths, as samples.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "format/hdf5/hdf5_fields.h"

#define MOST_GROUPS 4096
#define DEEPEST 32

/* Names that say what a group is. */
static const char *const telling[] = { "data",	   "indices", "indptr",
				       "barcodes", "obs",     "var" };
enum { SPARSE = 7, RANGER = 8, ANNDATA = 48 };

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

	if (strlen(name) >= sizeof(c->name)) {
		snprintf(w->too_long, sizeof(w->too_long), "%s", name);
		return 0;
	}
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

static int check_names(const struct pen_h5_picker *w, struct pen_err *err)
{
	if (!*w->too_long)
		return 0;
	return pen__fail(err, PEN_ENOTSUP, w->pk->name,
			 "the path of data set %.150s is longer than %zu "
			 "bytes, so it is no field's name; choose others with "
			 "fields=",
			 w->too_long, sizeof(w->c->name) - 1);
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

/* What the names in a group say of it. */
static void judge_group(struct pen_h5_picker *w)
{
	w->anndata |= !*w->path && (w->has & ANNDATA) == ANNDATA;
	if (w->any_sparse || (w->has & SPARSE) != SPARSE)
		return;
	w->any_sparse = true;
	w->ranger = w->has & RANGER;
	memcpy(w->sparse, w->path, sizeof(w->sparse));
	if (*w->sparse) /* without the slash at its end */
		w->sparse[strlen(w->sparse) - 1] = '\0';
}

static int see_group(struct pen_h5_picker *w, uint64_t addr,
		     struct pen_err *err)
{
	const unsigned above = w->has;
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
	w->has = 0;
	rc = pen__h5_links(w->h, addr, see_link, w, err);
	judge_group(w);
	w->has = above;
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

	for (unsigned i = 0; i < sizeof(telling) / sizeof(*telling); i++)
		if (strcmp(l->name, telling[i]) == 0)
			w->has |= 1u << i;
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

/* Numbers one by one, of an array among others of other lengths: nobody's
 * samples. left: one of those, or NULL. */
static int check_guess(const struct pen_h5_picker *w,
		       const struct pen_h5_pick *left, struct pen_err *err)
{
	for (size_t i = 0; i < w->n; i++)
		if (w->c[i].ndim != 1)
			return 0;
	if (!left || !w->n)
		return 0;
	return pen__fail(err, PEN_ENOTSUP, w->pk->name,
			 "by guess a sample would be one number of %.64s, "
			 "which holds %" PRIu64 ", but %.64s holds %" PRIu64
			 ": choose with fields=%.64s, or format.samples=file "
			 "for the whole file as a sample",
			 w->c[0].name, w->c[0].dim0, left->name, left->dim0,
			 w->c[0].name);
}

/* Keeps those that are fields together. */
static int keep_fields(struct pen_h5_picker *w, bool whole, struct pen_err *err)
{
	struct pen_h5_pick left = { 0 };
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

		if (!whole && (!c.ndim || c.dim0 != dim0)) {
			if (c.ndim && c.dim0 > left.dim0)
				left = c;
			continue;
		}
		if (dlio && dlio_number(c.name) < 0 &&
		    strcmp(c.name, "labels") != 0)
			continue;
		w->c[n++] = c;
	}
	w->n = n;
	if (dlio)
		qsort(w->c, w->n, sizeof(*w->c), by_number);
	/* a single number is a setting rather than data */
	return check_guess(w, !dlio && left.dim0 > 1 ? &left : NULL, err);
}

/* Its parts are numbers, places and offsets: no list of samples. */
static int refuse_sparse(const struct pen_h5_picker *w, struct pen_err *err)
{
	const char *name = *w->sparse ? w->sparse : "/";

	if (w->ranger)
		return pen__fail(err, PEN_ENOTSUP, w->pk->name,
				 "is a matrix of 10x Genomics Cell Ranger "
				 "(group %.64s), which is not read: write it "
				 "as h5ad with scanpy: read_10x_h5(this)"
				 ".write(that)",
				 name);
	if (w->anndata)
		return pen__fail(err, PEN_ENOTSUP, w->pk->name,
				 "is AnnData: read its cells with format=h5ad");
	return pen__fail(err, PEN_ENOTSUP, w->pk->name,
			 "group %.64s is a sparse matrix (data, indices, "
			 "indptr), whose numbers are no samples: choose data "
			 "sets with fields=, or format.samples=file for the "
			 "whole file as a sample",
			 name);
}

int pen__h5_pick_all(struct pen_h5_picker *w, bool whole, struct pen_err *err)
{
	int rc = see_group(w, pen__h5_root(w->h), err);

	if (rc < 0)
		return rc;
	if (w->any_sparse && !whole)
		return refuse_sparse(w, err);
	rc = check_names(w, err);
	if (rc >= 0 && w->n)
		rc = keep_fields(w, whole, err);
	if (rc < 0)
		return rc;
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

static int see_near(void *near, const struct pen_h5_link *l,
		    struct pen_err *err)
{
	(void)err;
	pen__near_see(near, l->name, strlen(l->name));
	return 0;
}

/* What is near to its last part, in the group that it should be in. */
static int not_there(struct pen_h5_picker *w, struct pen_err *err)
{
	const char *slash = strrchr(w->path, '/');
	const char *name = slash ? slash + 1 : w->path;
	struct pen_near near = pen__near(name, strlen(name));
	char group[sizeof(w->path)];
	uint64_t addr;

	snprintf(group, sizeof(group), "%.*s", (int)(name - w->path), w->path);
	if (pen__h5_find(w->h, group, &addr, NULL) >= 0)
		(void)!pen__h5_links(w->h, addr, see_near, &near, NULL);
	return pen__fail(err, PEN_ENOTFOUND, w->pk->name, "has no object %s%s",
			 w->path, pen__near_text(&near).s);
}

/* One name of the option. */
static int find_named(struct pen_h5_picker *w, struct pen_err *err)
{
	char where[256];
	struct pen_h5_data d;
	uint64_t addr;
	int rc = pen__h5_find(w->h, w->path, &addr, err);

	if (rc == PEN_ENOTFOUND)
		return not_there(w, err);
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
	return rc < 0 ? rc : check_names(w, err);
}

void pen__h5_pick_fini(struct pen_h5_picker *w)
{
	pen__free(w->c);
	pen__free(w->seen);
	w->c = NULL;
	w->seen = NULL;
}
