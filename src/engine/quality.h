/*
 * How well an order is mixed, measured on the batches that come out of it, and
 * what theory says it should be. One label a sample, when there is one.
 */
#ifndef PEN_ENGINE_QUALITY_H
#define PEN_ENGINE_QUALITY_H

#include <stdbool.h>

#include "penstock.h"

struct pen_quality_setup {
	uint64_t nsamples; /* of the data set: ids are below */
	uint32_t batch;	   /* samples a batch */
	uint64_t chunk;	   /* neighbours kept together; 1: single samples */
	uint64_t window;   /* samples mixed with one another */
	/* Which tensor of a batch has the label; an integer a sample. -1:
	 * none. */
	int label;
};

struct pen_quality_result {
	uint64_t nbatches, nsamples; /* full batches of the last epoch */
	uint64_t repeated, missing;  /* of the last complete epoch */
	bool complete;		     /* a whole epoch was seen */
	/* pairs of a batch that come from one chunk */
	double same_chunk, same_chunk_expected;
	/* m / (1 + (m - 1) x same_chunk), and with (chunk - 1)/(window - 1) */
	double n_eff, n_eff_expected;
	/* bits; the label's over the whole, its mean and deviation over
	 * batches, and what n_eff_expected lets one expect of that mean.
	 * expected is for labels that stay the same over whole chunks */
	uint32_t nclasses;
	double entropy, batch_entropy, batch_entropy_sd, batch_entropy_expected;
	/* neighbours in the order that were neighbours in the epoch before;
	 * -1 with a single epoch */
	double neighbours_kept;
};

struct pen_quality;
int pen__quality_new(struct pen_quality **out, const struct pen_quality_setup *,
		     struct pen_err *);
void pen__quality_free(struct pen_quality *);
int pen__quality_batch(struct pen_quality *, const struct pen_batch *,
		       struct pen_err *);
void pen__quality_epoch(struct pen_quality *); /* an epoch ended */
void pen__quality_result(const struct pen_quality *,
			 struct pen_quality_result *);

#endif
