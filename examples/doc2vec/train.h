/*
 * Training on batches, by all ranks together: a rank has its slice of a batch;
 * the gradients of words are summed over ranks, row by row, and every rank
 * makes the same updates. The calls are collective.
 */
#ifndef DOC2VEC_TRAIN_H
#define DOC2VEC_TRAIN_H

#include <stdatomic.h>

#include "crew.h"
#include "docs.h"

struct trainer {
	/* set before trainer_open() */
	struct pen_ranks *ranks;
	struct model model; /* with its settings */
	uint32_t nparts;    /* updates per batch */
	bool deterministic; /* false: ranks exchange gradients as floats */

	struct docs docs;
	struct crew *crew;
	struct sums *sums; /* one per thread */
	uint64_t *bits;	   /* rows with a gradient on any rank, */
	uint64_t *rows;	   /* and their numbers */
	uint64_t nrows;
	int64_t *wire;	/* loss, wild, then the sums of these rows */
	float *floats;	/* the same as floats; NULL: not needed */
	int64_t *count; /* targets of each part, then sequences */

	/* the current part */
	struct sequence *q;
	uint32_t n, part;
	double share;
	atomic_uint_fast64_t next;
};

/* A batch, of all ranks. */
struct step {
	uint64_t nsequences, ntargets;
	double loss; /* summed over targets */
};

struct sizes {
	uint32_t dim;
	unsigned threads;
	uint64_t ndocs, nwords;
};

int trainer_open(struct trainer *, const struct sizes *, struct pen_err *);
void trainer_close(struct trainer *);
/* Trains on this rank's slice of a batch, which may be empty. */
int trainer_step(struct trainer *, struct sequence *, uint32_t n, struct step *,
		 struct pen_err *);

#endif
