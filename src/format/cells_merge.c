/*
 * Codes over several files: where their categories differ, all of them
 * together, sorted, are what codes count, and each file gets a table from its
 * own. Where they are the same, codes stay as they are in the files.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "format/cells.h"

struct name {
	struct pen_span s; /* first: what is compared */
	int32_t *to;	   /* where its new code goes */
};

static int by_text(const void *a, const void *b)
{
	return pen__cells_compare(*(const struct pen_span *)a,
				  *(const struct pen_span *)b);
}

static bool all_same(const struct pen_cells *p, uint32_t column, size_t *total)
{
	const struct pen_cells_field *c0 = &p->view[0].field[column];
	bool same = true;

	*total = 0;
	for (uint64_t i = 0; i < p->nviews; i++) {
		const struct pen_cells_field *c = &p->view[i].field[column];

		*total += c->nnames;
		same &= c->nnames == c0->nnames && c->names.n == c0->names.n &&
			(!c->names.n ||
			 memcmp(c->names.p, c0->names.p, c->names.n) == 0);
	}
	return same;
}

static void number(struct name *s, size_t n)
{
	int32_t code = -1;

	qsort(s, n, sizeof(*s), by_text);
	for (size_t i = 0; i < n; i++) {
		if (!i || by_text(&s[i - 1], &s[i]) != 0)
			code++;
		*s[i].to = code;
	}
}

static int merge(struct pen_cells *p, uint32_t column, size_t total,
		 struct pen_err *err)
{
	int32_t *codes = pen__calloc(total + 1, sizeof(*codes));
	struct name *s = pen__alloc(total + 1, sizeof(*s));
	size_t n = 0, at = 0;

	p->merged[column] = codes;
	if (!codes || !s) {
		pen__free(s);
		return pen__fail_nomem(err, "cells", total * sizeof(*s));
	}
	for (uint64_t i = 0; i < p->nviews; i++) {
		struct pen_cells_field *c = &p->view[i].field[column];
		struct pen_bytes b = pen__bytes(c->names.p, c->names.n);
		struct pen_span t;

		c->merged = codes + at;
		for (uint32_t k = 0;
		     k < c->nnames && pen__cells_next_name(&b, &t); k++)
			s[n++] = (struct name){ t, codes + at + k };
		at += c->nnames;
	}
	number(s, n);
	pen__free(s);
	return 0;
}

int pen__cells_merge(struct pen_cells *p, struct pen_err *err)
{
	size_t total;
	int rc = 0;

	for (uint32_t i = 0; rc >= 0 && i < p->nobs; i++)
		if (p->view[0].field[i].coded && !all_same(p, i, &total))
			rc = merge(p, i, total, err);
	return rc;
}
