/*
 * Noise words in proportion to their weights, five for each of a thousand
 * targets of a sequence: draw i of a row is a function of (key, i), so that
 * any thread can make it, in any order.
 */
#ifndef PEN_TOKEN_NOISE_H
#define PEN_TOKEN_NOISE_H

#include <stddef.h>
#include <stdint.h>

#include "base/alias.h"

struct pen_noise {
	struct pen_alias alias; /* of those that have a weight */
	uint32_t *word;		/* their numbers */
	/* The same for numbers below 65,536: keep, word | other << 16 */
	uint64_t *pair;
	uint32_t n;
};

/* Weights by the number of the word; finite, none negative, one above 0. */
int pen__noise_init(struct pen_noise *, const double *weight, uint32_t n);
void pen__noise_fini(struct pen_noise *);
/* Draws 0 .. n - 1 of a row. out has room for n rounded up to 8. */
void pen__noise_draw(const struct pen_noise *, uint64_t key, size_t n,
		     uint32_t *out);

#endif
