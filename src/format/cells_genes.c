/*
 * Which genes a file's rows are made of: all, the first ones, those a column
 * of var marks, or those named in a list, in its order. Refuses names that a
 * file does not have, or has twice.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "format/cells.h"

struct gene {
	struct pen_span s; /* first: what is compared */
	uint32_t at;	   /* its place in the list or in the matrix */
};

static int by_name(const void *a, const void *b)
{
	return pen__cells_compare(*(const struct pen_span *)a,
				  *(const struct pen_span *)b);
}

static int bad_gene(const char *where, const struct gene *g, const char *what,
		    struct pen_err *err)
{
	return pen__fail(err, PEN_EDATA, where, "gene %.*s %s",
			 g->s.n < 100 ? (int)g->s.n : 100, (const char *)g->s.p,
			 what);
}

/* One a line; blanks around a name do not belong to it. */
static uint32_t take_lines(const struct pen_buf *list, struct gene *g)
{
	struct pen_bytes b = pen__bytes(list->p, list->n);
	uint32_t n = 0;

	while (pen__bytes_left(&b)) {
		const uint8_t *nl = memchr(b.p, '\n', pen__bytes_left(&b));
		size_t len = nl ? (size_t)(nl - b.p) : pen__bytes_left(&b);
		const uint8_t *p = pen__take(&b, len);

		pen__take(&b, nl != NULL);
		for (; len && (*p == ' ' || *p == '\t'); len--)
			p++;
		while (len && (p[len - 1] == ' ' || p[len - 1] == '\t' ||
			       p[len - 1] == '\r'))
			len--;
		if (!len || n == PEN_CELLS_GENES)
			continue;
		g[n] = (struct gene){ { p, len }, n };
		n++;
	}
	return n;
}

/* Both sorted: each of the list is looked for among the file's. */
static int match(const struct gene *want, uint32_t n, const struct gene *have,
		 uint64_t nhave, uint32_t *map, struct pen_err *err)
{
	uint64_t k = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (i && by_name(&want[i - 1], &want[i]) == 0)
			return bad_gene("genes", &want[i],
					"is in the list twice", err);
		while (k < nhave && by_name(&have[k], &want[i]) < 0)
			k++;
		if (k == nhave || by_name(&have[k], &want[i]) != 0)
			return bad_gene(NULL, &want[i],
					"of the list is not in the file", err);
		if (k + 1 < nhave && by_name(&have[k + 1], &want[i]) == 0)
			return bad_gene(NULL, &want[i],
					"is there twice, so that its name does "
					"not say which",
					err);
		map[have[k].at] = want[i].at;
	}
	return 0;
}

static int take_listed(const struct pen_cells *p, struct pen_cells_var *v,
		       struct pen_err *err)
{
	struct pen_bytes b = pen__bytes(v->genes.p, v->genes.n);
	/* a name and its line end are two bytes at least */
	const size_t cap = p->list.n / 2 + 1;
	struct gene *want = pen__alloc(cap, sizeof(*want));
	struct gene *have = pen__alloc(v->ncols, sizeof(*have));
	struct pen_span s;
	uint64_t nhave = 0;
	int rc = 0;

	if (!want || !have)
		rc = pen__fail_nomem(err, "genes", v->ncols * sizeof(*have));
	while (rc >= 0 && nhave < v->ncols && pen__cells_next_name(&b, &s)) {
		have[nhave] = (struct gene){ s, (uint32_t)nhave };
		nhave++;
	}
	if (rc >= 0) {
		v->ntake = take_lines(&p->list, want);
		qsort(want, v->ntake, sizeof(*want), by_name);
		qsort(have, nhave, sizeof(*have), by_name);
		rc = match(want, v->ntake, have, nhave, v->map, err);
	}
	pen__free(want);
	pen__free(have);
	return rc;
}

static int take_var(const struct pen_cells *p, struct pen_cells_var *v,
		    struct pen_err *err)
{
	int rc = 0;

	v->ntake = (uint32_t)v->ncols;
	if (!p->genes || !v->ncols)
		return 0;
	if (p->first) {
		if (p->first > v->ncols)
			return pen__fail(err, PEN_EINVAL, NULL,
					 "has %" PRIu64 " genes, fewer than "
					 "the first %" PRIu64,
					 v->ncols, p->first);
		v->ntake = (uint32_t)p->first;
		return 0;
	}
	v->map = pen__alloc(v->ncols, sizeof(*v->map));
	if (!v->map)
		return pen__fail_nomem(err, "genes",
				       v->ncols * sizeof(*v->map));
	memset(v->map, 0xff, v->ncols * sizeof(*v->map));
	if (*p->genes == '@') {
		rc = take_listed(p, v, err);
	} else {
		v->ntake = 0;
		for (uint64_t i = 0; i < v->ncols && i < v->genes.n; i++)
			if (v->genes.p[i])
				v->map[i] = v->ntake++;
	}
	if (rc >= 0 && !v->ntake)
		rc = pen__fail(err, PEN_EINVAL, NULL,
			       "no gene is left by genes=%s", p->genes);
	return rc;
}

int pen__cells_take_genes(const struct pen_cells *p, struct pen_cells_view *v,
			  struct pen_err *err)
{
	int rc = 0;

	for (int i = 0; rc >= 0 && i < PEN_CELLS_FRAMES; i++)
		rc = take_var(p, &v->var[i], err);
	for (uint32_t i = 0; rc >= 0 && i < p->nmatrices; i++) {
		const struct pen_cells_slot *t = &p->slot[i];
		struct pen_cells_matrix *m = &v->matrix[i];

		if (t->frame >= PEN_CELLS_FRAMES)
			continue;
		m->map = v->var[t->frame].map;
		m->ntake = v->var[t->frame].ntake;
		if (!m->sparse && !m->map && p->normalize <= 0)
			m->extent = m->ntake;
	}
	return rc;
}
