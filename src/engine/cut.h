/*
 * Batches that are cut by length: batch_tokens= and pack=.
 *
 * The order of an epoch is cut into batches from its start on, each as long as
 * it can be; batch number g * world + r is rank r's of step g. So the batches
 * are the same however many ranks there are, a step begins at a position, and
 * that is all a state needs. Where a step ends follows from the lengths of the
 * samples in it, so every rank looks at those of all.
 */
#ifndef PEN_ENGINE_CUT_H
#define PEN_ENGINE_CUT_H

#include "engine/lengths.h"
#include "engine/packer.h"
#include "sampler/sampler.h"

#define PEN_CUT_AHEAD 256

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
};

/* Goes through an order; one for each thread or place that does. */
struct pen_cutter {
	struct pen_loader *l;
	struct pen_sampler *s;
	struct pen_packer *packer; /* NULL: nothing is packed */
	uint64_t epoch, from;	   /* what is at hand: positions [from, + n) */
	uint32_t n;
	uint64_t len[PEN_CUT_AHEAD], id[PEN_CUT_AHEAD];
};

struct pen_cut {
	bool on;
	bool padded;	   /* the longest times their number counts */
	uint64_t budget;   /* elements of a batch */
	uint64_t multiple; /* lengths are rounded up to it */
	uint32_t pack;	   /* length of a packed row; 0: nothing is packed */
	uint32_t rows;	   /* packed ones */
	bool split;
	uint32_t typical; /* samples of a batch, on average */
	struct pen_lengths lengths;
	struct pen_cutter *plan, *held, *count;
	struct pen_sampler *counter; /* the count's own */
	uint64_t counted, counted_of;
	bool counted_ready;
};

/* After the choice is known and before the sampler is opened: what the settings
 * ask for. Then, once it is open. */
int pen__cut_settle(struct pen_loader *, struct pen_err *);
int pen__cut_open(struct pen_loader *, struct pen_sampler *counter,
		  struct pen_err *);
void pen__cut_close(struct pen_loader *);
/* The step that begins there. */
int pen__cut_step(struct pen_cutter *, struct pen_cursor, struct pen_step *,
		  struct pen_err *);
/* This rank's batches of an epoch. */
uint64_t pen__cut_count(struct pen_loader *, uint64_t epoch);
/* The rows of a packed batch, of ids that packer->ids has in order. */
int pen__cut_pack(struct pen_cutter *, const struct pen_step *,
		  struct pen_pooled *, struct pen_err *);

#endif
