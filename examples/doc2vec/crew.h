/* The steps of training, shared by a few threads. */
#ifndef DOC2VEC_CREW_H
#define DOC2VEC_CREW_H

#include "model.h"

struct crew;

/* `threads` of them, the caller's included. NULL: no memory, or no thread. */
struct crew *crew_new(struct model *, unsigned threads);
void crew_free(struct crew *);

enum step {
	STEP_DONE,
	STEP_WRONG, /* a number is no word or no document: nothing changed */
	STEP_NOMEM, /* for the gradients of so many sequences */
};

/* One step over a batch: *loss is its mean. */
enum step crew_step(struct crew *, const struct sequence *, uint32_t n,
		    double *loss);

#endif
