/*
 * Shuffle quality of an order, measured on its batches, and the expected
 * values. With a label per sample, if there is one.
 *
 * Rows of one chunk are neighbours in the data, so they tell a model less than
 * the same number of rows from all over the data: n_eff is the number of such
 * independent rows that a batch is worth. Entropy expresses the same by a
 * label: the mean entropy of the labels of a batch, next to the entropy of all
 * labels.
 */
#ifndef PEN_QUALITY_QUALITY_H
#define PEN_QUALITY_QUALITY_H

#include <stdbool.h>

#include "penstock.h"

struct pen_text;

struct pen_quality_setup {
	uint64_t nsamples; /* in the data set: ids are below */
	uint64_t expected; /* distinct samples in an epoch; 0: unknown */
	uint32_t batch;	   /* samples per batch */
	uint64_t chunk;	   /* neighbours kept together; 1: single samples */
	const char *label; /* the tensor of labels; borrowed, or NULL */
	/* The order, for expected values, as defined by pen_loader_mixed() for
	 * `order`, which is borrowed. NULL: nothing is expected. */
	int (*mixed)(const void *order, uint64_t epoch, uint64_t position,
		     uint64_t *start, uint64_t *end);
	const void *order;
	uint64_t length;      /* positions of an epoch */
	uint64_t order_chunk; /* that mixed() refers to; 0: any */
	bool in_order, repeats;
	/* Chunks consist of these samples; NULL: of all. Called by new()
	 * only. */
	uint64_t (*chosen)(const void *order, uint64_t i);
	uint64_t nchosen;
};

/* Of the last complete epoch, or of what was seen until there is one. */
struct pen_quality_result {
	uint64_t nbatches;	    /* full ones: for shares and entropies */
	uint64_t nsamples;	    /* all, including short batches */
	uint64_t repeated, missing; /* missing: 0 unless complete */
	bool complete;		    /* an entire epoch was seen */
	/* Share of the pairs of a batch that come from one chunk, and m / (1 +
	 * (m - 1) x that). Expected: the exact mean over the same batches; NAN
	 * if the order has no closed form. */
	double same_chunk, same_chunk_expected;
	double n_eff, n_eff_expected;
	/* In bits: the entropy of the label over all samples, its mean and
	 * deviation over batches, and the mean that n_eff_expected predicts: a
	 * first-order term, so NAN if n_eff_expected is below 13 or the number
	 * of classes, and if the label changes within chunks (more than one in
	 * twenty that share one), which mix better. nclasses is 0 without a
	 * label. */
	uint32_t nclasses;
	double entropy, batch_entropy, batch_entropy_sd, batch_entropy_expected;
	/* share of neighbours in the order that were neighbours in the epoch
	 * before; -1 with a single epoch */
	double neighbours_kept;
};

/* Probability that two of these samples share a chunk: (chunk - 1) / (samples -
 * 1) for entire chunks; the last one may be short. */
double pen__quality_same_chunk(uint64_t chunk, uint64_t samples);
double pen__quality_n_eff(double m, double same_chunk);
/* For n_eff draws from a label of this entropy and number of classes. */
double pen__quality_entropy(double entropy, uint64_t nclasses, double n_eff);

/* Sets up the measurement of a loader's batches. field: the label's, or
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
/* Writes an object of this name. */
void pen__quality_json(struct pen_text *, const char *key,
		       const struct pen_quality_result *);

#endif
