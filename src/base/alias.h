/*
 * Draws in proportion to weights in O(1): Walker's alias table. Draw number i
 * is a function of (key, i), so that any of them can be repeated alone.
 */
#ifndef PEN_BASE_ALIAS_H
#define PEN_BASE_ALIAS_H

#include "base/rng.h"

/* Element i of a fair draw is kept if the coin is below `keep`. */
struct pen_alias_slot {
	uint64_t keep, other;
};

struct pen_alias {
	struct pen_alias_slot *table;
	uint64_t n;
};

/* Weights are finite, none is negative and one is above 0. 0 or PEN_ENOMEM. */
int pen__alias_init(struct pen_alias *, const double *weights, uint64_t n);
void pen__alias_fini(struct pen_alias *);

/* Takes words 2i and 2i + 1 of the stream. */
static inline uint64_t pen__alias_draw(const struct pen_alias *a, uint64_t key,
				       uint64_t i)
{
	struct pen_rng r = { key, 2 * i };
	/* not rng_below, which may draw more words than these two */
	const uint64_t at = pen__mulhi(pen__rng_u64(&r), a->n);
	const struct pen_alias_slot *slot = &a->table[at];

	return pen__rng_u64(&r) < slot->keep ? at : slot->other;
}

#endif
