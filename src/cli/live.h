/*
 * What a long run shows while it goes: on a terminal a few lines that are drawn
 * in place, elsewhere a line now and then, as under mpirun, which reads what
 * its ranks print through pipes. The thread that waits anyway calls it; most
 * calls only look at a coarse clock.
 */
#ifndef PEN_CLI_LIVE_H
#define PEN_CLI_LIVE_H

#include "emulate/run.h"

#define LIVE_SNAPS 16u	 /* 3 seconds */
#define LIVE_SECONDS 60u /* of the rate's curve */

/* Counters at a moment: two give rates. */
struct live_snap {
	uint64_t ns, cpu_ns, samples, bytes;
	double compute_s, load_s;
};

struct live {
	bool on, block, color, utf8;
	int ranks;     /* this is the first of so many */
	unsigned rows; /* drawn, and on the screen now */
	uint64_t start_ns, next_ns, said_ns;
	/* what is under way, and its counters so far */
	char what[48];
	struct live_snap first, snap[LIVE_SNAPS], second;
	uint64_t nsnaps;
	float rate[LIVE_SECONDS]; /* a second */
	uint64_t nrates;
	/* all of its parts, for the time that is left */
	char whole[48];
	uint64_t whole_ns;
	double whole_from;
};

/* quiet: never anything, as all ranks but the first; ranks: there are so many,
 * and what is shown is this one's. */
void live_start(struct live *, bool quiet, int ranks);
void live_show(struct live *, const struct pen_progress *);
void live_clear(struct live *); /* takes the lines away: others are to come */

#endif
