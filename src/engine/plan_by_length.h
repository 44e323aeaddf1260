/*
 * Batches that are cut by length: batch_tokens= and pack=.
 *
 * The order of an epoch is cut into batches from its start, each as long as
 * possible; batch number g * world + r belongs to rank r in step g. So the
 * batches are the same for any number of ranks, a step starts at a position,
 * and that is all the state there is. Where a step ends depends on the lengths
 * of its samples, so every rank looks at all of them.
 */
#ifndef PEN_ENGINE_PLAN_BY_LENGTH_H
#define PEN_ENGINE_PLAN_BY_LENGTH_H

#include "engine/plan_lengths.h"
#include "engine/plan_pack.h"
#include "sampler/sampler.h"

#define PEN_BATCHER_RUN 64  /* positions looked up at a time ... */
#define PEN_BATCHER_RUNS 64 /* ... and how many such runs are kept */

struct pen_loader;
struct pen_pooled;

/* A place in the stream of epochs. */
struct pen_cursor {
	uint64_t epoch, pos;
};

/* What all ranks take together, and the part of this one. */
struct pen_step {
	struct pen_cursor at;
	uint64_t end; /* position after it */
	uint64_t first;
	uint32_t n;
	bool none; /* nothing is left in this epoch */
	bool last;
	bool counts; /* counted by pen_steps.left() */
	bool alone;  /* its failure does not affect later steps */
};

/* A run of the order and the lengths of its samples. */
struct pen_batcher_run {
	uint64_t epoch, from;
	uint32_t n; /* 0: empty */
	uint64_t len[PEN_BATCHER_RUN], id[PEN_BATCHER_RUN];
};

/* Walks an order; one for each thread or place that does. */
struct pen_batcher {
	struct pen_loader *l;
	struct pen_sampler *s;
	struct pen_row_packer *packer; /* NULL: nothing is packed */
	/* recent runs: a batch is scanned more than once */
	struct pen_batcher_run run[PEN_BATCHER_RUNS];
};

struct pen_by_length {
	bool padded;	   /* a batch counts as its longest times its number */
	uint64_t budget;   /* elements per batch */
	uint64_t tokens;   /* the same, unless packed */
	uint64_t multiple; /* lengths are rounded up to it */
	uint32_t pack;	   /* length of a packed row; 0: nothing is packed */
	uint32_t rows;	   /* packed rows per batch */
	bool split;
	struct pen_lengths lengths;
	struct pen_batcher *plan, *held, *count;
	struct pen_sampler *counter; /* used by `count` only */
	uint64_t counted, counted_of;
	bool counted_ready;
};

/* Does the sampler sort by length, and so need the lengths? */
bool pen__sorts_by_length(const struct pen_loader *);
int pen__lengths_settle(struct pen_loader *, struct pen_err *);
void pen__by_length_close(struct pen_loader *);

#endif
