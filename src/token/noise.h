/*
 * Noise words in proportion to their weights. Draw i of a row is a function of
 * (key, i), so any thread can make it, in any order.
 */
#ifndef PEN_TOKEN_NOISE_H
#define PEN_TOKEN_NOISE_H

#include <stddef.h>
#include <stdint.h>

#include "base/alias.h"

struct pen_noise {
	struct pen_alias alias; /* words with a weight above 0 */
	uint32_t *word;		/* their ids */
	/* The same for ids below 65,536: keep, word | other << 16 */
	uint64_t *pair;
	uint32_t n;
};

/* One weight per word id: finite, not negative, at least one above 0. */
int pen__noise_init(struct pen_noise *, const double *weight, uint32_t n);
void pen__noise_fini(struct pen_noise *);
/* Draws 0 .. n - 1 of a row. out has room for n rounded up to 8. */
void pen__noise_draw(const struct pen_noise *, uint64_t key, size_t n,
		     uint32_t *out);

#endif
