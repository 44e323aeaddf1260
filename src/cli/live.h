/*
 * Progress of a long run: on a terminal a few lines redrawn in place, elsewhere
 * (as under mpirun, which reads the output of ranks through pipes) a line now
 * and then. Called by the thread that waits for batches; most calls only read a
 * coarse clock.
 */
#ifndef PEN_CLI_LIVE_H
#define PEN_CLI_LIVE_H

#include "emulate/run.h"

#define LIVE_SNAPS 16u	 /* 3 seconds */
#define LIVE_SECONDS 60u /* of the curve of rates */

/* Counters at one moment; two of them give rates. */
struct live_snap {
	uint64_t ns, cpu_ns, samples, bytes;
	double compute_s, load_s;
};

struct live {
	bool on, block, color, utf8;
	int ranks;     /* number of ranks; this is the first */
	unsigned rows; /* currently on the screen */
	uint64_t start_ns, next_ns, said_ns;
	/* the current phase and its counters */
	char what[48];
	struct live_snap first, snap[LIVE_SNAPS], second;
	uint64_t nsnaps;
	float rate[LIVE_SECONDS]; /* per second */
	uint64_t nrates;
	/* all parts of the phase, for the remaining time */
	char whole[48];
	uint64_t whole_ns;
	double whole_from;
};

/* quiet: show nothing, as on all ranks but the first. ranks: the number of
 * ranks; the figures shown are those of this one. */
void live_start(struct live *, bool quiet, int ranks);
void live_show(struct live *, const struct pen_progress *);
void live_clear(struct live *); /* removes the lines before other output */

#endif
