/*
 * Joins the genes of files that have different ones into one list: genes that
 * all files have, in the order of the first (inner), or all genes, new ones at
 * the end (outer). Each file gets a map from its genes to the list; nothing is
 * rewritten. Refuses files without gene names and with duplicate names.
 *
 * The names of the first file go into a table. Several threads look up the
 * names of the other files, one file at a time; the few new names are added
 * afterwards, in the order of the files.
 */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/team.h"
#include "format/cells/cells.h"

#define BLOCK 32u
#define WORTH 200000u /* names that justify a thread */

struct joiner {
	struct pen_cells *p;
	struct pen_cells_set *set;
	uint32_t nsets;
	struct pen_cells_table t;
	uint32_t *last; /* by name: the last set that added it, from 1 */
	uint32_t cap;	/* elements of last */
	uint64_t *all;	/* bitmap by name: all sets have it (inner) */
	uint32_t *to;	/* by name: its column, or PEN_CELLS_NONE */
	struct pen_err *err;
	/* during lookup */
	struct finder *finder;
	atomic_uint_fast32_t next;    /* the next set to process */
	atomic_uint_fast32_t bad_set; /* the first set with an error */
};

/* State of a thread. Bits instead of counters stay in the L1 cache. */
struct finder {
	uint64_t *now, *all; /* names in this set, names in all sets so far */
	uint32_t set;	     /* the set that failed, with: */
	struct pen_err err;
};

static int no_room(const struct joiner *j)
{
	return pen__fail_nomem(j->err, "genes", j->t.n * sizeof(*j->to));
}

static bool grow(struct joiner *j)
{
	const uint32_t cap = j->t.cap;
	uint32_t *last;

	if (j->cap >= cap)
		return true;
	last = pen__realloc(j->last, cap, sizeof(*last));
	if (!last)
		return false;
	memset(last + j->cap, 0, (cap - j->cap) * sizeof(*last));
	j->last = last;
	j->cap = cap;
	return true;
}

static int fail_twice(struct pen_span s, struct pen_err *err)
{
	return pen__fail(
		err, P_BAD_DATA_VALUE, NULL,
		"gene '%.*s' appears twice, so it cannot be joined by name",
		s.n < 100 ? (int)s.n : 100, (const char *)s.p);
}

/* ---- lookup ---- */

/* A few names of a set. */
struct block {
	struct pen_span s[BLOCK];
	uint64_t hash[BLOCK];
	uint32_t n;
};

static void next_block(const struct joiner *j, struct pen_bytes *in,
		       uint64_t left, struct block *b)
{
	for (b->n = 0; b->n < BLOCK && b->n < left; b->n++) {
		if (!pen__cells_next_name(in, &b->s[b->n]))
			break;
		b->hash[b->n] = pen__cells_hash(b->s[b->n]);
	}
	pen__cells_table_near(&j->t, b->hash, b->n);
}

static size_t nwords(const struct joiner *j)
{
	return j->t.n / 64 + 1;
}

/* Writes numbers of the table to the map; unknown names stay NONE. */
static int find_set(const struct joiner *j, struct finder *f, uint32_t nth)
{
	const struct pen_cells_set *set = &j->set[nth];
	const struct pen_cells_var *v = set->var;
	struct pen_bytes in = pen__bytes(v->genes.p, v->genes.n);
	struct block b;

	memset(f->now, 0, nwords(j) * sizeof(*f->now));
	for (uint64_t i = 0; i < v->ncols; i += b.n) {
		next_block(j, &in, v->ncols - i, &b);
		if (!b.n)
			break;
		for (uint32_t k = 0; k < b.n; k++) {
			const uint32_t id =
				pen__cells_table_find(&j->t, b.s[k], b.hash[k]);

			set->map[i + k] = id;
			if (id == PEN_CELLS_NONE)
				continue;
			if (f->now[id / 64] >> id % 64 & 1)
				return fail_twice(b.s[k], &f->err);
			f->now[id / 64] |= (uint64_t)1 << id % 64;
		}
	}
	for (size_t i = 0; i < nwords(j); i++)
		f->all[i] &= f->now[i];
	return 0;
}

static void find_sets(void *arg, unsigned thread)
{
	struct joiner *j = arg;
	struct finder *f = &j->finder[thread];
	uint_fast32_t i, bad;

	while ((i = atomic_fetch_add(&j->next, 1)) < j->nsets) {
		/* report the error of the first set */
		if (i > atomic_load(&j->bad_set))
			return;
		if (find_set(j, f, (uint32_t)i) >= 0)
			continue;
		f->set = (uint32_t)i;
		bad = atomic_load(&j->bad_set);
		while (i < bad &&
		       !atomic_compare_exchange_weak(&j->bad_set, &bad, i))
			;
		return;
	}
}

static unsigned count_threads(const struct joiner *j)
{
	const unsigned cpus = pen__cpus();
	uint64_t n = 0;

	for (uint32_t i = 1; i < j->nsets; i++)
		n += j->set[i].var->ncols;
	n = n / WORTH + 1;
	n = n < cpus ? n : cpus;
	return n < j->nsets ? (unsigned)n : 1;
}

/* All sets except the first, which is in the table. */
static int find_all(struct joiner *j, unsigned n)
{
	struct pen_team *team = NULL;
	bool ok = true;

	j->finder = pen__calloc(n, sizeof(*j->finder));
	for (unsigned i = 0; j->finder && i < n; i++) {
		struct finder *f = &j->finder[i];

		f->now = pen__calloc(nwords(j), sizeof(*f->now));
		f->all = pen__alloc(nwords(j), sizeof(*f->all));
		if (f->all)
			memset(f->all, 0xff, nwords(j) * sizeof(*f->all));
		ok &= f->now && f->all;
	}
	if (!j->finder || !ok)
		return no_room(j);
	atomic_init(&j->next, 1);
	atomic_init(&j->bad_set, j->nsets);
	/* if no thread can be started, this one does all the work */
	if (n > 1 &&
	    pen__team_start(&team, n - 1, "pen-join", find_sets, j, NULL) >= 0)
		find_sets(j, n - 1);
	else
		find_sets(j, 0);
	pen__team_join(team);
	for (unsigned i = 0; i < n; i++)
		for (size_t k = 0; k < nwords(j); k++)
			j->all[k] &= j->finder[i].all[k];
	return 0;
}

static int find_rest(struct joiner *j, uint64_t *blob)
{
	const unsigned n = count_threads(j);
	const uint32_t end = j->nsets;
	int rc = find_all(j, n);

	for (unsigned i = 0; rc >= 0 && i < n; i++) {
		const struct finder *f = &j->finder[i];

		if (atomic_load(&j->bad_set) == end ||
		    f->set != atomic_load(&j->bad_set))
			continue;
		*blob = j->set[f->set].blob;
		if (j->err)
			*j->err = f->err;
		rc = f->err.code;
	}
	for (unsigned i = 0; j->finder && i < n; i++) {
		pen__free(j->finder[i].now);
		pen__free(j->finder[i].all);
	}
	pen__free(j->finder);
	j->finder = NULL;
	return rc;
}

/* ---- adding ---- */

/* Adds a name of set nth that is not in the table, unless another set has
 * added it since. */
static int add_name(struct joiner *j, struct pen_span s, uint32_t nth,
		    uint32_t *to)
{
	const uint32_t id = pen__cells_table_add(&j->t, s, pen__cells_hash(s));

	if (id == PEN_CELLS_NONE || !grow(j))
		return no_room(j);
	if (j->last[id] == nth + 1)
		return fail_twice(s, j->err);
	j->last[id] = nth + 1;
	*to = id;
	return 0;
}

/* Adds the names of a set that the table lacks. */
static int add_set(struct joiner *j, uint32_t nth)
{
	const struct pen_cells_set *set = &j->set[nth];
	const struct pen_cells_var *v = set->var;
	struct pen_bytes in = pen__bytes(v->genes.p, v->genes.n);
	struct pen_span s;
	int rc = 0;

	for (uint64_t i = 0;
	     rc >= 0 && i < v->ncols && pen__cells_next_name(&in, &s); i++)
		if (set->map[i] == PEN_CELLS_NONE)
			rc = add_name(j, s, nth, &set->map[i]);
	return rc;
}

static int make_map(struct joiner *j, struct pen_cells_set *set)
{
	const struct pen_cells_var *v = set->var;

	if (!v->genes.n)
		return pen__fail(
			j->err, P_FILES_DISAGREE, NULL,
			"the file has no gene names, which format.join= needs");
	set->map = pen__alloc(v->ncols, sizeof(*set->map));
	if (!set->map)
		return no_room(j);
	memset(set->map, 0xff, v->ncols * sizeof(*set->map));
	return 0;
}

/* Finds the number of every gene of every set. */
static int add_sets(struct joiner *j, uint64_t *blob)
{
	const bool outer = j->p->join == PEN_CELLS_OUTER;
	int rc = 0;

	for (uint32_t i = 0; rc >= 0 && i < j->nsets; i++) {
		*blob = j->set[i].blob;
		rc = make_map(j, &j->set[i]);
	}
	if (rc >= 0) {
		*blob = j->set[0].blob;
		rc = add_set(j, 0);
	}
	if (rc >= 0) {
		j->all = pen__alloc(nwords(j), sizeof(*j->all));
		if (!j->all)
			return no_room(j);
		memset(j->all, 0xff, nwords(j) * sizeof(*j->all));
	}
	if (rc >= 0 && j->nsets > 1)
		rc = find_rest(j, blob);
	for (uint32_t i = 1; rc >= 0 && outer && i < j->nsets; i++) {
		*blob = j->set[i].blob;
		rc = add_set(j, i);
	}
	return rc;
}

/* ---- the list ---- */

/* Drops names that some file lacks; returns the length of the list. */
static uint32_t number(struct joiner *j)
{
	const bool inner = j->p->join == PEN_CELLS_INNER;
	uint32_t n = 0;

	for (uint32_t i = 0; i < j->t.n; i++)
		j->to[i] = inner && !(j->all[i / 64] >> i % 64 & 1)
				   ? PEN_CELLS_NONE
				   : n++;
	return n;
}

static int no_gene(const struct joiner *j, struct pen_span gene,
		   const char *what)
{
	struct pen_near near = pen__near(gene.p, gene.n);

	for (uint32_t i = 0; i < j->t.n; i++)
		if (j->to[i] != PEN_CELLS_NONE)
			pen__near_see(&near, j->t.s[i].p, j->t.s[i].n);
	return pen__fail(j->err, P_BAD_DATA_VALUE, "genes",
			 "gene '%.*s' of the list is not %s%s",
			 gene.n < 100 ? (int)gene.n : 100, (const char *)gene.p,
			 what, pen__near_text(&near).s);
}

/* genes=@FILE: columns in the order of the file. */
static int choose(struct joiner *j, const struct pen_cells_table *want)
{
	const char *what = j->p->join == PEN_CELLS_INNER ? "in all files"
							 : "in any file";

	for (uint32_t i = 0; i < want->n; i++) {
		const uint32_t id =
			pen__cells_table_find(&j->t, want->s[i], want->hash[i]);

		if (id == PEN_CELLS_NONE || j->to[id] == PEN_CELLS_NONE)
			return no_gene(j, want->s[i], what);
	}
	for (uint32_t i = 0; i < j->t.n; i++)
		j->to[i] = pen__cells_table_find(want, j->t.s[i], j->t.hash[i]);
	return 0;
}

static int choose_listed(struct joiner *j, uint32_t *n)
{
	struct pen_cells_table want;
	int rc = 0;

	if (!pen__cells_table_init(&want, 1024))
		rc = no_room(j);
	if (rc >= 0)
		rc = pen__cells_table_lines(&want, &j->p->list, j->err);
	if (rc >= 0 && !want.n)
		rc = pen__fail(j->err, P_BAD_VALUE, "genes",
			       "format.genes=%s selects no gene", j->p->genes);
	if (rc >= 0)
		rc = choose(j, &want);
	*n = want.n;
	pen__cells_table_fini(&want);
	return rc;
}

static int take(struct joiner *j, uint32_t *n)
{
	const struct pen_cells *p = j->p;

	*n = number(j);
	if (!*n)
		return pen__fail(
			j->err, P_FILES_DISAGREE, "genes",
			"no gene is in all files; use format.join=outer to "
			"take the genes of any file");
	if (p->genes && *p->genes == '@')
		return choose_listed(j, n);
	if (!p->first)
		return 0;
	if (p->first > *n)
		return pen__fail(
			j->err, P_BAD_VALUE, "genes",
			"the joined files have %" PRIu32
			" genes, but format.genes= asks for the first %" PRIu64,
			*n, p->first);
	*n = (uint32_t)p->first;
	for (uint32_t i = 0; i < j->t.n; i++)
		if (j->to[i] >= p->first)
			j->to[i] = PEN_CELLS_NONE;
	return 0;
}

static int join(struct joiner *j, uint64_t *blob)
{
	uint32_t n = 0;
	int rc = add_sets(j, blob);

	if (rc < 0)
		return rc;
	j->to = pen__alloc(j->t.n ? j->t.n : 1, sizeof(*j->to));
	rc = j->to ? take(j, &n) : no_room(j);
	for (uint32_t i = 0; rc >= 0 && i < j->nsets; i++) {
		struct pen_cells_set *set = &j->set[i];

		set->ntake = n;
		for (uint64_t k = 0; k < set->var->ncols; k++)
			if (set->map[k] != PEN_CELLS_NONE)
				set->map[k] = j->to[set->map[k]];
	}
	return rc;
}

int pen__cells_join(struct pen_cells *p, uint32_t from, uint32_t to,
		    uint64_t *blob, struct pen_err *err)
{
	struct joiner j = {
		.p = p, .set = p->set + from, .nsets = to - from, .err = err
	};
	int rc;

	if (pen__cells_table_init(&j.t, (uint32_t)p->set[from].var->ncols) &&
	    grow(&j))
		rc = join(&j, blob);
	else
		rc = no_room(&j);
	pen__cells_table_fini(&j.t);
	pen__free(j.last);
	pen__free(j.all);
	pen__free(j.to);
	return rc;
}
