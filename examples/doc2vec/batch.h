/* Batches of the loader as sequences of the model; the check of an epoch. */
#ifndef DOC2VEC_BATCH_H
#define DOC2VEC_BATCH_H

#include "model.h"
#include "penstock.h"

/* The fields of a batch. */
enum { DOC, TARGET, CONTEXT, GUESS, NFIELDS };
extern const char *const field_names[NFIELDS];

/* What an epoch has delivered to this rank. */
struct epoch {
	uint64_t nsamples, ntargets, nbatches;
	uint64_t sum;	/* of targets and contexts, independent of the order */
	uint64_t *seen; /* a bit per sequence */
	uint64_t nseen; /* sequences of the data set */
};

struct slice {
	struct sequence *q;
	uint32_t n, room;
};

/* Splits a batch into sequences, whose arrays are those of the batch, and adds
 * it to the epoch. */
int slice_take(struct slice *, const struct pen_batch *, struct epoch *,
	       struct pen_err *);
uint64_t epoch_words(const struct epoch *); /* length of seen */
/* Adds what all ranks took; every rank gets the result. Collective. */
int epoch_join(struct epoch *, struct pen_ranks *, struct pen_err *);
/* As if nothing had been taken; nbatches is kept. */
void epoch_clear(struct epoch *);
/* A joined epoch: every sequence once. */
int epoch_check(const struct epoch *, struct pen_err *);

#endif
