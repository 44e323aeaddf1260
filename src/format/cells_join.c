/*
 * Genes of files that have different ones, as one list: those that all have,
 * in the order of the first (inner), or all, new ones after those before
 * (outer). Each file gets a map from its genes to the list; nothing is
 * rewritten. Refuses files without names of genes, and with names that are
 * there twice.
 */
#include <inttypes.h>

#include "base/mem.h"
#include "format/cells.h"

#define BLOCK 32u

struct joiner {
	struct pen_cells *p;
	struct pen_cells_table t;
	struct seen {		/* by name */
		uint32_t files; /* how many sets have it */
		uint32_t last;	/* the last of them, counted from 1 */
	} * seen;
	uint32_t cap; /* of these */
	uint32_t *to; /* by name: its column, or PEN_CELLS_NONE */
	struct pen_err *err;
};

static int no_room(const struct joiner *j)
{
	return pen__fail_nomem(j->err, "genes", j->t.n * sizeof(*j->to));
}

static bool grow(struct joiner *j)
{
	const uint32_t cap = j->t.cap;
	struct seen *seen;

	if (j->cap >= cap)
		return true;
	seen = pen__realloc(j->seen, cap, sizeof(*seen));
	if (!seen)
		return false;
	memset(seen + j->cap, 0, (cap - j->cap) * sizeof(*seen));
	j->seen = seen;
	j->cap = cap;
	return true;
}

/* Names of a set, a few at a time. */
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

/* Their numbers of the table go to map. nth: which set it is. */
static int add_block(struct joiner *j, const struct block *b, uint32_t nth,
		     uint32_t *map)
{
	const bool add = j->p->join == PEN_CELLS_OUTER || !nth;

	for (uint32_t i = 0; i < b->n; i++) {
		const struct pen_span s = b->s[i];
		const uint32_t id =
			add ? pen__cells_table_add(&j->t, s, b->hash[i])
			    : pen__cells_table_find(&j->t, s, b->hash[i]);

		map[i] = id;
		if (id == PEN_CELLS_NONE && !add)
			continue;
		if (id == PEN_CELLS_NONE || !grow(j))
			return no_room(j);
		if (j->seen[id].last == nth + 1)
			return pen__fail(j->err, PEN_EDATA, NULL,
					 "gene %.*s is there twice, so that "
					 "its name does not say which to join",
					 s.n < 100 ? (int)s.n : 100,
					 (const char *)s.p);
		j->seen[id].last = nth + 1;
		j->seen[id].files++;
	}
	return 0;
}

static int add_set(struct joiner *j, struct pen_cells_set *set, uint32_t nth)
{
	const struct pen_cells_var *v = set->var;
	struct pen_bytes in = pen__bytes(v->genes.p, v->genes.n);
	struct block b;
	int rc = 0;

	if (!v->genes.n)
		return pen__fail(j->err, PEN_EDATA, NULL,
				 "has no names of genes, which join= needs");
	set->map = pen__alloc(v->ncols, sizeof(*set->map));
	if (!set->map)
		return no_room(j);
	memset(set->map, 0xff, v->ncols * sizeof(*set->map));
	for (uint64_t i = 0; rc >= 0 && i < v->ncols; i += b.n) {
		next_block(j, &in, v->ncols - i, &b);
		if (!b.n)
			break;
		rc = add_block(j, &b, nth, set->map + i);
	}
	return rc;
}

/* The list without what some file lacks; its length. */
static uint32_t number(struct joiner *j, uint32_t nsets)
{
	const bool inner = j->p->join == PEN_CELLS_INNER;
	uint32_t n = 0;

	for (uint32_t i = 0; i < j->t.n; i++)
		j->to[i] = inner && j->seen[i].files < nsets ? PEN_CELLS_NONE
							     : n++;
	return n;
}

/* genes=@FILE: columns as it lists them. */
static int choose(struct joiner *j, const struct pen_cells_table *want)
{
	const char *what = j->p->join == PEN_CELLS_INNER
				   ? "in all of the files"
				   : "in any of the files";

	for (uint32_t i = 0; i < want->n; i++) {
		const uint32_t id =
			pen__cells_table_find(&j->t, want->s[i], want->hash[i]);

		if (id == PEN_CELLS_NONE || j->to[id] == PEN_CELLS_NONE)
			return pen__fail(j->err, PEN_EDATA, "genes",
					 "gene %.*s of the list is not %s",
					 want->s[i].n < 100 ? (int)want->s[i].n
							    : 100,
					 (const char *)want->s[i].p, what);
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
		rc = pen__fail(j->err, PEN_EINVAL, "genes",
			       "no gene is left by genes=%s", j->p->genes);
	if (rc >= 0)
		rc = choose(j, &want);
	*n = want.n;
	pen__cells_table_fini(&want);
	return rc;
}

static int take(struct joiner *j, uint32_t nsets, uint32_t *n)
{
	const struct pen_cells *p = j->p;

	*n = number(j, nsets);
	if (!*n)
		return pen__fail(j->err, PEN_EDATA, "genes",
				 "no gene is in all of the files; "
				 "join=outer takes those of any");
	if (p->genes && *p->genes == '@')
		return choose_listed(j, n);
	if (!p->first)
		return 0;
	if (p->first > *n)
		return pen__fail(j->err, PEN_EINVAL, "genes",
				 "there are %" PRIu32 " genes in the join, "
				 "fewer than the first %" PRIu64,
				 *n, p->first);
	*n = (uint32_t)p->first;
	for (uint32_t i = 0; i < j->t.n; i++)
		if (j->to[i] >= p->first)
			j->to[i] = PEN_CELLS_NONE;
	return 0;
}

static int join(struct joiner *j, struct pen_cells_set *set, uint32_t nsets,
		uint64_t *blob)
{
	uint32_t n = 0;
	int rc = 0;

	for (uint32_t i = 0; rc >= 0 && i < nsets; i++) {
		*blob = set[i].blob;
		rc = add_set(j, &set[i], i);
	}
	if (rc < 0)
		return rc;
	j->to = pen__alloc(j->t.n ? j->t.n : 1, sizeof(*j->to));
	rc = j->to ? take(j, nsets, &n) : no_room(j);
	for (uint32_t i = 0; rc >= 0 && i < nsets; i++) {
		set[i].ntake = n;
		for (uint64_t k = 0; k < set[i].var->ncols; k++)
			if (set[i].map[k] != PEN_CELLS_NONE)
				set[i].map[k] = j->to[set[i].map[k]];
	}
	return rc;
}

int pen__cells_join(struct pen_cells *p, uint32_t from, uint32_t to,
		    uint64_t *blob, struct pen_err *err)
{
	struct joiner j = { .p = p, .err = err };
	int rc;

	if (pen__cells_table_init(&j.t, (uint32_t)p->set[from].var->ncols) &&
	    grow(&j))
		rc = join(&j, p->set + from, to - from, blob);
	else
		rc = no_room(&j);
	pen__cells_table_fini(&j.t);
	pen__free(j.seen);
	pen__free(j.to);
	return rc;
}
