/*
 * Codes across files. Where categories differ, codes refer to the sorted union
 * of all categories, and each file gets a table that maps its own. Where they
 * are the same, codes stay as stored. Also provides the labels of codes.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "format/cells/cells.h"

struct name {
	struct pen_span s; /* must be first: compared by qsort */
	uint32_t id;
};

static int by_text(const void *a, const void *b)
{
	return pen__cells_compare(*(const struct pen_span *)a,
				  *(const struct pen_span *)b);
}

static bool all_same(const struct pen_cells *p, uint32_t column, size_t *total)
{
	const struct pen_cells_field *c0 = &p->view0->field[column];
	bool same = true;

	*total = 0;
	for (uint64_t i = 0; i < p->nviews; i++) {
		const struct pen_cells_field *c;

		if (!p->view[i].matrix)
			continue;
		c = &p->view[i].field[column];
		*total += c->nnames;
		same &= c->nnames == c0->nnames && c->names.n == c0->names.n &&
			(!c->names.n || c->names.p == c0->names.p ||
			 memcmp(c->names.p, c0->names.p, c->names.n) == 0);
	}
	return same;
}

/* Collects all distinct names; each file's codes become numbers of the
 * table. */
static bool collect(struct pen_cells *p, uint32_t column, int32_t *codes,
		    struct pen_cells_table *t)
{
	for (uint64_t i = 0; i < p->nviews; i++) {
		struct pen_cells_field *c;
		struct pen_bytes b;
		struct pen_span s;

		if (!p->view[i].matrix)
			continue;
		c = &p->view[i].field[column];
		b = pen__bytes(c->names.p, c->names.n);
		c->merged = codes;
		for (uint32_t k = 0;
		     k < c->nnames && pen__cells_next_name(&b, &s); k++) {
			const uint32_t id =
				pen__cells_table_add(t, s, pen__cells_hash(s));

			if (id == PEN_CELLS_NONE)
				return false;
			codes[k] = (int32_t)id;
		}
		codes += c->nnames;
	}
	return true;
}

/* Sorts by name: the final codes and their labels. */
static bool number(struct pen_cells_labels *l, const struct pen_cells_table *t,
		   int32_t *codes, size_t total)
{
	struct name *s = pen__alloc(t->n ? t->n : 1, sizeof(*s));
	int32_t *to = pen__alloc(t->n ? t->n : 1, sizeof(*to));
	bool ok = s && to;

	l->s = pen__alloc(t->n ? t->n : 1, sizeof(*l->s));
	ok = ok && l->s;
	for (uint32_t i = 0; ok && i < t->n; i++)
		s[i] = (struct name){ t->s[i], i };
	if (ok)
		qsort(s, t->n, sizeof(*s), by_text);
	for (uint32_t i = 0; ok && i < t->n; i++) {
		to[s[i].id] = (int32_t)i;
		l->s[i] = s[i].s;
		l->n++;
	}
	for (size_t i = 0; ok && i < total; i++)
		codes[i] = to[codes[i]];
	pen__free(s);
	pen__free(to);
	return ok;
}

static bool merge(struct pen_cells *p, uint32_t column, size_t total)
{
	struct pen_cells_table t;
	int32_t *codes = pen__calloc(total + 1, sizeof(*codes));
	bool ok;

	p->merged[column] = codes;
	ok = pen__cells_table_init(&t, 64) && codes &&
	     collect(p, column, codes, &t) &&
	     number(&p->label[column], &t, codes, total);
	pen__cells_table_fini(&t);
	return ok;
}

static bool label(struct pen_cells_labels *l, const struct pen_cells_field *c)
{
	struct pen_bytes b = pen__bytes(c->names.p, c->names.n);

	l->s = pen__alloc(c->nnames ? c->nnames : 1, sizeof(*l->s));
	if (!l->s)
		return false;
	while (l->n < c->nnames && pen__cells_next_name(&b, &l->s[l->n]))
		l->n++;
	return true;
}

int pen__cells_merge(struct pen_cells *p, struct pen_err *err)
{
	const uint32_t n = p->nobs ? p->nobs : 1;
	size_t total = 0;
	bool ok;

	p->merged = pen__calloc(n, sizeof(*p->merged));
	p->label = pen__calloc(n, sizeof(*p->label));
	ok = p->merged && p->label;
	p->nlabelled = ok ? p->nobs : 0;
	for (uint32_t i = 0; ok && i < p->nobs; i++) {
		if (!p->view0->field[i].coded)
			continue;
		ok = all_same(p, i, &total)
			     ? label(&p->label[i], &p->view0->field[i])
			     : merge(p, i, total);
	}
	return ok ? 0 : pen__fail_nomem(err, "cells", total * sizeof(int32_t));
}

/* ---- labels ---- */

static const struct pen_cells_labels *labels_of(const struct pen_format *f,
						uint32_t field)
{
	const struct pen_cells *p = f->priv;

	return field >= p->obs_field && field - p->obs_field < p->nobs
		       ? &p->label[field - p->obs_field]
		       : NULL;
}

static bool is_source(const struct pen_format *f, uint32_t field)
{
	const struct pen_cells *p = f->priv;

	return p->source && field == p->obs_field + p->nobs;
}

uint64_t pen__cells_nlabels(const struct pen_format *f, uint32_t field)
{
	const struct pen_cells_labels *l = labels_of(f, field);
	const struct pen_cells *p = f->priv;

	if (is_source(f, field))
		return p->nsources;
	return l ? l->n : 0;
}

/* The object that is source number `code`. */
static uint64_t object_of(const struct pen_format *f, uint64_t code)
{
	const struct pen_cells *p = f->priv;
	uint64_t lo = 0, hi = f->ix->nobjects;

	/* of the objects with this number, the last one contains the cells */
	while (hi - lo > 1) {
		const uint64_t mid = lo + (hi - lo) / 2;

		if (p->source_of[mid] <= code)
			lo = mid;
		else
			hi = mid;
	}
	return lo;
}

/* A directory is identified by its own name, not by that of a file in it. */
static void cut_marker(const struct pen_format *f, char *name)
{
	char *slash = strrchr(name, '/');

	for (const char *const *m = f->ops->markers; slash && m && *m; m++)
		if (strcmp(slash + 1, *m) == 0) {
			*slash = '\0';
			return;
		}
}

int pen__cells_label(const struct pen_format *f, uint32_t field, uint64_t code,
		     char *buf, size_t cap)
{
	const struct pen_cells_labels *l = labels_of(f, field);
	size_t n;

	if (code >= pen__cells_nlabels(f, field))
		return PEN_ENOTFOUND;
	if (is_source(f, field)) {
		f->ix->name_of(f->ix, object_of(f, code), buf, cap);
		cut_marker(f, buf);
		return 0;
	}
	n = l->s[code].n < cap ? l->s[code].n : cap - 1;
	memcpy(buf, l->s[code].p, n);
	buf[n] = '\0';
	return 0;
}
