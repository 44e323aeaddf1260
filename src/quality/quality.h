/*
 * How well an order is mixed, measured on the batches that come out of it, and
 * what theory says it should be. One label a sample, when there is one.
 *
 * Rows of one chunk are neighbours in the data, so they tell a model less than
 * as many rows from all over would: n_eff is how many rows from all over a
 * batch is worth. Entropy says the same by a label: of the labels of a batch,
 * the mean over batches, beside the entropy of the whole.
 */
#ifndef PEN_QUALITY_QUALITY_H
#define PEN_QUALITY_QUALITY_H

#include <stdbool.h>

#include "penstock.h"

struct pen_text;

struct pen_quality_setup {
	uint64_t nsamples; /* of the data set: ids are below */
	uint64_t expected; /* different samples in an epoch; 0: unknown */
	uint32_t batch;	   /* samples a batch */
	uint64_t chunk;	   /* neighbours kept together; 1: single samples */
	const char *label; /* the tensor that has it; borrowed, or NULL */
	/* The order, for what theory expects: as pen_loader_mixed() says of
	 * `order`, which is borrowed. NULL: it expects nothing. */
	int (*mixed)(const void *order, uint64_t epoch, uint64_t position,
		     uint64_t *start, uint64_t *end);
	const void *order;
	uint64_t length;      /* positions of an epoch */
	uint64_t order_chunk; /* that mixed() speaks of; 0: of any */
	bool in_order, repeats;
	/* Chunks are of these samples; NULL: of all. Called by new() only. */
	uint64_t (*chosen)(const void *order, uint64_t i);
	uint64_t nchosen;
};

/* Of the last complete epoch, or of what was seen while there is none. */
struct pen_quality_result {
	uint64_t nbatches;	    /* full ones: shares and entropies */
	uint64_t nsamples;	    /* all, of short batches as well */
	uint64_t repeated, missing; /* missing: 0 unless complete */
	bool complete;		    /* a whole epoch was seen */
	/* Pairs of a batch that come from one chunk, and m / (1 + (m - 1) x
	 * that). Expected: the exact mean over the same batches; NAN where the
	 * order has none in closed form. */
	double same_chunk, same_chunk_expected;
	double n_eff, n_eff_expected;
	/* bits; the label's over the whole, its mean and deviation over
	 * batches, and what n_eff_expected lets one expect of that mean: a
	 * first-order term, so NAN where n_eff_expected is below 13 or the
	 * number of classes, and where the label changes within chunks (over
	 * one in twenty that share one), which mix better. nclasses is 0
	 * without a label. */
	uint32_t nclasses;
	double entropy, batch_entropy, batch_entropy_sd, batch_entropy_expected;
	/* neighbours in the order that were neighbours in the epoch before;
	 * -1 with a single epoch */
	double neighbours_kept;
};

/* Two of these samples share a chunk: (chunk - 1) / (samples - 1) of whole
 * chunks; the last one may be short. */
double pen__quality_same_chunk(uint64_t chunk, uint64_t samples);
double pen__quality_n_eff(double m, double same_chunk);
/* Of n_eff draws from a label of this entropy and so many classes. */
double pen__quality_entropy(double entropy, uint64_t nclasses, double n_eff);

/* What a loader's batches are to be held against. field: the label's, or
 * NULL. */
int pen__quality_setup(struct pen_quality_setup *, const struct pen_loader *,
		       const char *field, struct pen_err *);

struct pen_quality;
int pen__quality_new(struct pen_quality **out, const struct pen_quality_setup *,
		     struct pen_err *);
void pen__quality_free(struct pen_quality *);
int pen__quality_batch(struct pen_quality *, const struct pen_batch *,
		       struct pen_err *);
void pen__quality_epoch(struct pen_quality *); /* an epoch ended */
void pen__quality_result(const struct pen_quality *,
			 struct pen_quality_result *);
/* As an object of this name. */
void pen__quality_json(struct pen_text *, const char *key,
		       const struct pen_quality_result *);

#endif
