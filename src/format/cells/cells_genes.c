/*
 * The genes that the rows of a file are made of: all, the first ones, those
 * marked by a column of var, or those named in a list, in its order. Files with
 * identical genes are examined once. Refuses names that a file lacks or has
 * twice.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/mem.h"
#include "format/cells/cells.h"

static int bad_gene(struct pen_span s, const char *what, struct pen_err *err)
{
	return pen__fail(err, P_BAD_DATA_VALUE, NULL, "gene '%.*s' %s",
			 s.n < 100 ? (int)s.n : 100, (const char *)s.p, what);
}

static int no_gene(struct pen_span gene, const struct pen_cells_var *v,
		   struct pen_err *err)
{
	struct pen_near near = pen__near(gene.p, gene.n);
	struct pen_bytes b = pen__bytes(v->genes.p, v->genes.n);
	struct pen_span s;
	char text[128];

	while (pen__cells_next_name(&b, &s))
		pen__near_see(&near, s.p, s.n);
	snprintf(text, sizeof(text), "of the list is not in the file%s",
		 pen__near_text(&near).s);
	return bad_gene(gene, text, err);
}

/* Looks up each name of the file in the list. */
static int match(const struct pen_cells_table *want, struct pen_cells_set *set,
		 uint8_t *seen, struct pen_err *err)
{
	const struct pen_cells_var *v = set->var;
	struct pen_bytes b = pen__bytes(v->genes.p, v->genes.n);
	struct pen_span s;

	memset(seen, 0, want->n);
	for (uint64_t i = 0; i < v->ncols && pen__cells_next_name(&b, &s);
	     i++) {
		const uint32_t id =
			pen__cells_table_find(want, s, pen__cells_hash(s));

		set->map[i] = id;
		if (id == PEN_CELLS_NONE)
			continue;
		if (seen[id]++)
			return bad_gene(s,
					"appears twice in the file, so its "
					"name is ambiguous",
					err);
	}
	for (uint32_t i = 0; i < want->n; i++)
		if (!seen[i])
			return no_gene(want->s[i], v, err);
	set->ntake = want->n;
	return 0;
}

static int take_first(const struct pen_cells *p, struct pen_cells_set *set,
		      struct pen_err *err)
{
	if (p->first > set->var->ncols)
		return pen__fail(
			err, P_BAD_VALUE, NULL,
			"the file has %" PRIu64
			" genes, but format.genes= asks for the first %" PRIu64,
			set->var->ncols, p->first);
	set->ntake = (uint32_t)p->first;
	return 0;
}

/* want: names of genes=@FILE, with one byte each in `seen`. */
static int take_set(const struct pen_cells *p, struct pen_cells_set *set,
		    const struct pen_cells_table *want, uint8_t *seen,
		    struct pen_err *err)
{
	const struct pen_cells_var *v = set->var;
	int rc = 0;

	set->ntake = (uint32_t)v->ncols;
	if (!p->genes)
		return 0;
	if (p->first)
		return take_first(p, set, err);
	set->map = pen__alloc(v->ncols, sizeof(*set->map));
	if (!set->map)
		return pen__fail_nomem(err, "genes",
				       v->ncols * sizeof(*set->map));
	memset(set->map, 0xff, v->ncols * sizeof(*set->map));
	if (want->slot) {
		rc = match(want, set, seen, err);
	} else {
		set->ntake = 0;
		for (uint64_t i = 0; i < v->ncols && i < v->genes.n; i++)
			if (v->genes.p[i])
				set->map[i] = set->ntake++;
	}
	if (rc >= 0 && !set->ntake)
		rc = pen__fail(err, P_BAD_VALUE, NULL,
			       "format.genes=%s selects no gene", p->genes);
	return rc;
}

static int take_sets(struct pen_cells *p, uint32_t from, uint64_t *blob,
		     struct pen_err *err)
{
	struct pen_cells_table want = { 0 };
	uint8_t *seen = NULL;
	int rc = 0;

	if (p->genes && *p->genes == '@') {
		if (pen__cells_table_init(&want, 1024))
			rc = pen__cells_table_lines(&want, &p->list, err);
		else
			rc = pen__fail_nomem(err, "genes", p->list.n);
		seen = pen__alloc(want.n ? want.n : 1, 1);
		if (rc >= 0 && !seen)
			rc = pen__fail_nomem(err, "genes", want.n);
	}
	for (uint32_t i = from; rc >= 0 && i < p->nsets; i++) {
		*blob = p->set[i].blob;
		rc = take_set(p, &p->set[i], &want, seen, err);
	}
	pen__cells_table_fini(&want);
	pen__free(seen);
	return rc;
}

/* ---- sets ---- */

static bool is_same(const struct pen_cells_var *a,
		    const struct pen_cells_var *b)
{
	return a->hash == b->hash && a->ncols == b->ncols &&
	       a->genes.n == b->genes.n &&
	       (a->genes.p == b->genes.p || !a->genes.n ||
		memcmp(a->genes.p, b->genes.p, a->genes.n) == 0);
}

/* Groups the views by their genes, in order of first appearance. of: room
 * for a number per view. */
static int find_sets(struct pen_cells *p, int frame, uint32_t *of,
		     struct pen_err *err)
{
	struct pen_cells_table t;
	int rc = 0;

	if (!pen__cells_table_init(&t, 16))
		rc = pen__fail_nomem(err, "genes", 0);
	for (uint64_t i = 0; rc >= 0 && i < p->nviews; i++) {
		struct pen_cells_var *v = &p->view[i].var[frame];
		const struct pen_span key = { (const uint8_t *)&v->hash,
					      sizeof(v->hash) };
		const uint32_t known = t.n;
		uint32_t id;

		if (!p->view[i].matrix || !v->ncols)
			continue;
		id = pen__cells_table_add(&t, key, pen__cells_hash(key));
		if (id == PEN_CELLS_NONE) {
			rc = pen__fail_nomem(err, "genes", 0);
			break;
		}
		if (id < known && is_same(v, p->set[of[id]].var)) {
			v->set = of[id];
			continue;
		}
		v->set = p->nsets++;
		p->set[v->set] = (struct pen_cells_set){ .var = v, .blob = i };
		if (id == known)
			of[id] = v->set;
	}
	pen__cells_table_fini(&t);
	return rc;
}

/* Drops a map that is the identity. */
static void drop_map(struct pen_cells_set *set)
{
	const uint64_t n = set->var->ncols;
	uint64_t i = 0;

	while (set->map && i < n && i < set->ntake && set->map[i] == i)
		i++;
	if (!set->map || (i < n && i < set->ntake))
		return;
	while (i < n && set->map[i] == PEN_CELLS_NONE)
		i++;
	if (i < n)
		return;
	pen__free(set->map);
	set->map = NULL;
}

static void assign(const struct pen_cells *p, struct pen_cells_view *v)
{
	for (uint32_t i = 0; i < p->nmatrices; i++) {
		const struct pen_cells_slot *t = &p->slot[i];
		struct pen_cells_matrix *m = &v->matrix[i];

		if (t->frame >= PEN_CELLS_FRAMES)
			continue;
		m->map = p->set[v->var[t->frame].set].map;
		m->ntake = p->set[v->var[t->frame].set].ntake;
		if (!m->sparse && !m->map && p->normalize <= 0 &&
		    m->ntake < m->ncols)
			m->extent = m->ntake;
	}
}

int pen__cells_take_genes(struct pen_cells *p, uint64_t *blob,
			  struct pen_err *err)
{
	uint32_t *of = pen__alloc((size_t)p->nviews, sizeof(*of));
	int rc = 0;

	*blob = 0;
	p->set = pen__calloc((size_t)p->nviews * PEN_CELLS_FRAMES,
			     sizeof(*p->set));
	if (!of || !p->set)
		rc = pen__fail_nomem(err, "genes",
				     (size_t)p->nviews * sizeof(*p->set));
	for (int i = 0; rc >= 0 && i < PEN_CELLS_FRAMES; i++) {
		const uint32_t from = p->nsets;

		rc = find_sets(p, i, of, err);
		if (rc >= 0 && from < p->nsets)
			rc = p->join == PEN_CELLS_SAME
				     ? take_sets(p, from, blob, err)
				     : pen__cells_join(p, from, p->nsets, blob,
						       err);
	}
	pen__free(of);
	if (rc < 0)
		return rc;
	for (uint32_t i = 0; i < p->nsets; i++)
		drop_map(&p->set[i]);
	for (uint64_t i = 0; i < p->nviews; i++)
		if (p->view[i].matrix)
			assign(p, &p->view[i]);
	return 0;
}

/* ---- origin of columns ---- */

/* names: those of the set, or none. */
static void name_set(struct pen_cells *p, const struct pen_cells_set *set,
		     struct pen_span names, bool first)
{
	struct pen_bytes b = pen__bytes(names.p, names.n);

	for (uint64_t i = 0; i < set->var->ncols; i++) {
		struct pen_span s = { NULL, 0 };
		uint32_t to = set->map ? set->map[i] : (uint32_t)i;

		if (names.n && !pen__cells_next_name(&b, &s))
			return;
		if (to >= set->ntake)
			continue;
		if (first)
			p->var_row[to] = (uint32_t)i;
		if (!p->gene[to].p)
			p->gene[to] = s;
	}
}

int pen__cells_name_genes(struct pen_cells *p, struct pen_err *err)
{
	const int frame = pen__cells_frame(p);
	const struct pen_cells_var *v0 = &p->view0->var[frame];
	const bool named = p->join || (p->genes && *p->genes == '@');
	uint32_t n;

	if (!p->var || !v0->ncols)
		return 0;
	n = p->set[v0->set].ntake;
	p->var_row = pen__alloc(n, sizeof(*p->var_row));
	p->gene = pen__calloc(n, sizeof(*p->gene));
	if (!p->var_row || !p->gene)
		return pen__fail_nomem(err, "var", n * sizeof(*p->gene));
	memset(p->var_row, 0xff, n * sizeof(*p->var_row));
	/* skip sets of the other frame */
	for (uint32_t i = 0; i < p->nsets; i++) {
		const struct pen_cells_set *set = &p->set[i];

		if (set->var != &p->view[set->blob].var[frame])
			continue;
		name_set(p, set,
			 named ? set->var->genes : (struct pen_span){ 0 },
			 i == v0->set);
	}
	return 0;
}
