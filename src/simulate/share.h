/*
 * Things that are shared evenly by all who use them at a moment (processor
 * sharing), in simulated time. A share goes by a time of its own that runs as
 * fast as one user is served, so one who comes or goes changes nothing about
 * the others: each costs a place in a heap, however many there are. Which share
 * lets go of somebody next is what a tree of minima knows, four to a node:
 * most changes are seen by nobody above the leaf. Plain waits have a heap
 * alone. A share may also serve its users one after another, in order.
 */
#ifndef PEN_SIMULATE_SHARE_H
#define PEN_SIMULATE_SHARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"

struct pen_use {
	double until; /* in the share's own time; of waits in simulated time */
	uint32_t who;
};

#define PEN_SHARE_FEW 3

struct pen_share {
	double rate, most; /* of all together, and of one; INFINITY is fine */
	double own, at;	   /* its own time, and when it was looked at */
	double work;	   /* done until then */
	double last;	   /* in its own time: who came last is served */
	struct pen_use *heap;
	uint32_t n, room;
	struct pen_use few[PEN_SHARE_FEW]; /* the heap, as long as they do */
	bool in_order;	 /* one after another, and not all at once */
	uint64_t unused; /* two cache lines */
};

#define PEN_SHARE_LEVELS 16 /* 4^16 is 2^32 */

struct pen_shares {
	struct pen_share *v;
	uint32_t n;
	double now;
	uint32_t last; /* by which share the last one was served; UINT32_MAX: it
			  was a wait */
	struct pen_use *wait;
	uint32_t nwait, wait_room;
	unsigned levels;
	double *due[PEN_SHARE_LEVELS]; /* [0]: of each share */
	struct pen_block mem;	       /* of all that is not a heap */
};

/* 0 or PEN_ENOMEM; n shares (it may be 0) without limits. */
int pen__shares_init(struct pen_shares *, uint32_t n);
void pen__shares_fini(struct pen_shares *);
/* who begins to take `amount` (> 0) of a share, now. 0 or PEN_ENOMEM. */
int pen__share_use(struct pen_shares *, uint32_t share, double amount,
		   uint32_t who);
/* who waits for so many seconds. 0 or PEN_ENOMEM. */
int pen__share_wait(struct pen_shares *, double seconds, uint32_t who);
/* From now on it goes at another rate. */
void pen__share_rate(struct pen_shares *, uint32_t share, double rate);
/* Goes on to whoever is served next, and says who. UINT32_MAX: nobody is. */
uint32_t pen__shares_next(struct pen_shares *);
/* Done by a share until now. */
double pen__share_work(struct pen_shares *, uint32_t share);

#endif
