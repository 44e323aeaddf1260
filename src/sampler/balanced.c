/*
 * All classes equally often, however many elements they have: for data with
 * rare labels. Positions are grouped in rounds; a round draws every class once
 * in a random order. So in round r a class is at its r-th draw, and the element
 * is a function of the position, without counters: the elements of a class come
 * in the order of a keyed permutation, and in that of the next one when they
 * are used up.
 *
 * With chunk= neighbours are drawn together, in proportion to weights that
 * balance the classes (drawn.h): they come equally often on average, not in
 * every round.
 *
 * Elements without a label are excluded.
 *
 * An epoch does not contain every element: large classes are cut, small ones
 * repeat. Use another sampler if every element is needed once.
 */
#include "sampler/drawn.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/rng.h"

struct balanced {
	bool replacement;
	uint64_t length;

	uint64_t nclasses;
	uint64_t *start;   /* of each class in members, and the end */
	uint64_t *members; /* elements, class by class */

	struct pen_perm round; /* order of classes, once ready */
	uint64_t round_epoch, round_no;
	bool ready;

	struct pen_drawn drawn;
};

static const struct pen_opt options[] = {
	{ .name = "replacement",
	  .type = PEN_OPT_BOOL,
	  .off = offsetof(struct balanced, replacement),
	  .dflt = "false",
	  .help = "draw independently within each class" },
	{ .name = "length",
	  .type = PEN_OPT_COUNT,
	  .off = offsetof(struct balanced, length),
	  .dflt = "0",
	  .help = "draws per epoch (0 = number of samples)",
	  .min = 0,
	  .max = 1e18 },
	PEN_DRAWN_OPTS(struct balanced),
	{ .name = NULL },
};

struct labelled {
	int64_t label;
	uint64_t id;
};

static int by_label(const void *va, const void *vb)
{
	const struct labelled *a = va, *b = vb;

	if (a->label != b->label)
		return a->label < b->label ? -1 : 1;
	return a->id < b->id ? -1 : a->id > b->id;
}

/* Sorts the labelled elements by label; returns their number. */
static uint64_t sort_labels(struct labelled *v, const int64_t *labels,
			    uint64_t n, uint64_t *nclasses)
{
	uint64_t have = 0;

	for (uint64_t i = 0; i < n; i++)
		if (labels[i] != PEN_NO_LABEL)
			v[have++] = (struct labelled){ labels[i], i };
	qsort(v, have, sizeof(*v), by_label);
	*nclasses = have != 0;
	for (uint64_t i = 1; i < have; i++)
		*nclasses += v[i].label != v[i - 1].label;
	return have;
}

static int group(struct balanced *b, const struct labelled *v, uint64_t n)
{
	uint64_t c = 0;

	b->members = pen__alloc(n, sizeof(*b->members));
	b->start = pen__alloc(b->nclasses + 1, sizeof(*b->start));
	if (!b->members || !b->start)
		return PEN_ENOMEM;
	for (uint64_t i = 0; i < n; i++) {
		if (!i || v[i].label != v[i - 1].label)
			b->start[c++] = i;
		b->members[i] = v[i].id;
	}
	b->start[c] = n;
	return 0;
}

/* Weights that give every class the same sum. */
static int open_chunks(struct pen_sampler *s, struct pen_err *err)
{
	struct balanced *b = s->priv;
	double *w = pen__calloc(s->pop.n, sizeof(*w));
	int rc;

	if (!w)
		return pen__fail_nomem(err, "balanced", s->pop.n * sizeof(*w));
	for (uint64_t c = 0; c < b->nclasses; c++)
		for (uint64_t i = b->start[c]; i < b->start[c + 1]; i++)
			w[b->members[i]] =
				1 / (double)(b->start[c + 1] - b->start[c]);
	rc = pen__drawn_init(&b->drawn, s, w, err);
	pen__free(w);
	return rc;
}

static int balanced_open(struct pen_sampler *s, struct pen_err *err)
{
	struct balanced *b = s->priv;
	struct labelled *v;
	uint64_t have;
	int ret;

	if (!s->pop.labels)
		return pen__fail(
			err, P_MISSING_SETTING, "balanced",
			"needs a label for every sample; set labels=FILE.npy, "
			"labels=field:NAME or labels=folder");
	if (b->length)
		s->length = b->length;
	v = pen__alloc(s->pop.n, sizeof(*v));
	if (!v)
		return pen__fail_nomem(err, "balanced", 0);
	have = sort_labels(v, s->pop.labels, s->pop.n, &b->nclasses);
	ret = group(b, v, have);
	pen__free(v);
	if (ret)
		return pen__fail_nomem(err, "balanced", 0);
	if (!have)
		return pen__fail(
			err, P_LABELS_DO_NOT_FIT, "labels",
			"no sample has a label, so nothing can be drawn");
	return b->drawn.chunk > 1 ? open_chunks(s, err) : 0;
}

static void balanced_close(struct pen_sampler *s)
{
	struct balanced *b = s->priv;

	pen__free(b->start);
	pen__free(b->members);
	pen__drawn_fini(&b->drawn);
}

static void enter_round(struct balanced *b, uint64_t key, uint64_t epoch,
			uint64_t round)
{
	if (b->ready && b->round_epoch == epoch && b->round_no == round)
		return;
	pen__perm_init(&b->round, b->nclasses, pen__rng_key(key, 0), round);
	b->round_epoch = epoch;
	b->round_no = round;
	b->ready = true;
}

/* Which member of class c is drawn in a round. */
static uint64_t draw(const struct balanced *b, uint64_t key, uint64_t c,
		     uint64_t round)
{
	const uint64_t size = b->start[c + 1] - b->start[c];
	const uint64_t mine = pen__rng_key(key, c + 1);
	struct pen_perm perm;

	if (size == 1)
		return 0;
	if (b->replacement) {
		struct pen_rng r = pen__rng(mine, round);

		return pen__rng_below(&r, size);
	}
	pen__perm_init(&perm, size, mine, round / size);
	return pen__perm_at(&perm, round % size);
}

static int ids(struct pen_sampler *s, uint64_t epoch, uint64_t pos, size_t n,
	       uint64_t *out, struct pen_err *err)
{
	struct balanced *b = s->priv;
	const uint64_t key = pen__rng_key(s->seed, epoch);

	(void)err;
	if (b->drawn.sum) {
		pen__drawn_ids(&b->drawn, s, epoch, pos, n, out);
		return 0;
	}
	for (size_t i = 0; i < n; i++) {
		const uint64_t round = (pos + i) / b->nclasses;
		uint64_t c;

		enter_round(b, key, epoch, round);
		c = pen__perm_at(&b->round, (pos + i) % b->nclasses);
		out[i] = b->members[b->start[c] + draw(b, key, c, round)];
	}
	return 0;
}

const struct pen_sampler_ops pen__sampler_balanced = {
	.name = "balanced",
	.help = "every label equally often; rare ones are repeated",
	.opts = options,
	.repeats = true,
	.priv_size = sizeof(struct balanced),
	.open = balanced_open,
	.close = balanced_close,
	.ids = ids,
	.window_end = pen__drawn_end,
};
