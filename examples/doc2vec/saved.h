/* Checkpoints: one file with all that a run needs to continue, on any number of
 * ranks. Rank 0 writes and reads it; the calls are collective. */
#ifndef DOC2VEC_SAVED_H
#define DOC2VEC_SAVED_H

#include "batch.h"
#include "train.h"

struct saved {
	struct pen_state state; /* of the loader */
	struct epoch epoch;	/* begun, and joined; seen is not stored here */
	double loss;		/* of that epoch, summed over targets */
	uint64_t steps, content; /* batches in all; of a complete epoch */
	double recent;		 /* loss, as a moving average */
};

int saved_write(const struct saved *, struct trainer *, const char *path,
		struct pen_err *);
/* epoch.seen must have room. */
int saved_read(struct saved *, struct trainer *, const char *path,
	       struct pen_err *);

#endif
