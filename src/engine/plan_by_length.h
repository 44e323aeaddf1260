/*
 * Batches that are cut by length: batch_tokens= and pack=.
 *
 * The order of an epoch is cut into batches from its start on, each as long as
 * it can be; batch number g * world + r is rank r's of step g. So the batches
 * are the same however many ranks there are, a step begins at a position, and
 * that is all a state needs. Where a step ends follows from the lengths of the
 * samples in it, so every rank looks at those of all.
 */
#ifndef PEN_ENGINE_PLAN_BY_LENGTH_H
#define PEN_ENGINE_PLAN_BY_LENGTH_H

#include "engine/plan_lengths.h"
#include "engine/plan_pack.h"
#include "sampler/sampler.h"

#define PEN_BATCHER_RUN 64  /* positions that are asked for at once ... */
#define PEN_BATCHER_RUNS 64 /* ... and so many times that is kept */

struct pen_loader;
struct pen_pooled;

/* A place in the stream of epochs. */
struct pen_cursor {
	uint64_t epoch, pos;
};

/* What all ranks take at once, and what this one does. */
struct pen_step {
	struct pen_cursor at;
	uint64_t end; /* position after it */
	uint64_t first;
	uint32_t n;
	bool none; /* there is no more in this epoch */
	bool last;
	bool counts; /* it is one of those that pen_steps.left() counts */
	bool alone;  /* when it fails, it does so alone */
};

/* A piece of the order and the lengths of what is there. */
struct pen_batcher_run {
	uint64_t epoch, from;
	uint32_t n; /* 0: nothing is known */
	uint64_t len[PEN_BATCHER_RUN], id[PEN_BATCHER_RUN];
};

/* Goes through an order; one for each thread or place that does. */
struct pen_batcher {
	struct pen_loader *l;
	struct pen_sampler *s;
	struct pen_row_packer *packer; /* NULL: nothing is packed */
	/* what it was at lately: a batch is gone over more than once */
	struct pen_batcher_run run[PEN_BATCHER_RUNS];
};

struct pen_by_length {
	bool padded;	   /* the longest times their number counts */
	uint64_t budget;   /* elements of a batch */
	uint64_t tokens;   /* the same, where nothing is packed */
	uint64_t multiple; /* lengths are rounded up to it */
	uint32_t pack;	   /* length of a packed row; 0: nothing is packed */
	uint32_t rows;	   /* packed ones */
	bool split;
	struct pen_lengths lengths;
	struct pen_batcher *plan, *held, *count;
	struct pen_sampler *counter; /* the count's own */
	uint64_t counted, counted_of;
	bool counted_ready;
};

/* Does the sampler sort by length? Then it has to know the lengths. */
bool pen__sorts_by_length(const struct pen_loader *);
int pen__lengths_settle(struct pen_loader *, struct pen_err *);
void pen__by_length_close(struct pen_loader *);

#endif
