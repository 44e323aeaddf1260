/* Training steps, shared by several threads. */
#ifndef DOC2VEC_CREW_H
#define DOC2VEC_CREW_H

#include "model.h"

struct crew;

/* threads: number of threads, including the caller. NULL: out of memory, or a
 * thread could not be started. */
struct crew *crew_new(struct model *, unsigned threads);
void crew_free(struct crew *);

enum step {
	STEP_DONE,
	STEP_WRONG, /* an id is not a word or document; nothing was changed */
	STEP_NOMEM, /* no memory for the gradients of the batch */
};

/* One step over a batch; *loss: its mean loss. */
enum step crew_step(struct crew *, const struct sequence *, uint32_t n,
		    double *loss);

#endif
