/*
 * Steps of a training loop that does not train: take a batch, look at all of
 * it, wait as long as the model would compute. Loading is real, or takes at
 * least a time that was set; what was taken is added up, so that nobody is
 * called fast for leaving something out.
 */
#ifndef PEN_EXPERIMENT_STEPS_H
#define PEN_EXPERIMENT_STEPS_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/text.h"

/*
 * What was delivered. Floats are added as they are: the data that we make has
 * small whole numbers, of which every sum up to 2^24 is exact in any order.
 * Others are added as 32-bit words, modulo 2^64.
 */
struct pen_tally {
	bool floats;
	uint64_t samples, sum;
};
void pen__tally_batch(struct pen_tally *, const struct pen_batch *);
void pen__tally_values(struct pen_tally *, const void *, size_t nbytes);

struct pen_steps {
	const struct pen_spec *spec;
	uint64_t steps, batch; /* how many batches, of how many samples */
	uint64_t threads;      /* that load; 0: the loop does it itself */
	uint64_t cached; /* take only so many, and give them over and over */
	double load_s;	 /* a sample's loading takes so much longer */
	double compute_s;
	bool shuffle;
	bool memory; /* look at it now and then */
	atomic_uint_fast64_t *done;

	struct pen_tally tally;
	double seconds, step_s, wait_s; /* all; means of a step */
	uint64_t base_bytes, peak_bytes;
};
int pen__steps_run(struct pen_steps *, struct pen_err *);

/* ---- arrays put together ---- */

struct pen_blocks_job {
	uint64_t length, block_bytes; /* so many blocks */
	bool reuse; /* into memory that has been written before */
	double seconds;
	struct pen_tally tally;
};
int pen__blocks_fill(struct pen_blocks_job *, struct pen_err *);
/* The sum of so many blocks. */
uint64_t pen__blocks_sum(uint64_t length, uint64_t block_bytes);

#endif
