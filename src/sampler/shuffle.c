/*
 * A global shuffle, different in every epoch, in O(1) memory: position i holds
 * at(i) of a permutation keyed by (seed, epoch). Every sample comes exactly
 * once per epoch. It ignores where samples are stored; see block for that.
 */
#include "sampler/sampler.h"

#include "base/rng.h"

struct shuffle {
	struct pen_perm perm;
	uint64_t epoch; /* of perm, once ready */
	bool ready;
};

static int ids(struct pen_sampler *s, uint64_t epoch, uint64_t pos, size_t n,
	       uint64_t *out, struct pen_err *err)
{
	struct shuffle *p = s->priv;

	(void)err;
	if (!p->ready || p->epoch != epoch) {
		pen__perm_init(&p->perm, s->pop.n, s->seed, epoch);
		p->epoch = epoch;
		p->ready = true;
	}
	pen__perm_range(&p->perm, pos, n, out);
	return 0;
}

static bool mixed(const struct pen_sampler *s, uint64_t epoch, uint64_t pos,
		  uint64_t *start, uint64_t *end)
{
	(void)epoch;
	(void)pos;
	*start = 0;
	*end = s->length;
	return true;
}

const struct pen_sampler_ops pen__sampler_shuffle = {
	.name = "shuffle",
	.help = "all samples in random order, new in every epoch",
	.priv_size = sizeof(struct shuffle),
	.ids = ids,
	.mixed = mixed,
};
