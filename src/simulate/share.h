/*
 * Resources that all current users share evenly (processor sharing), in
 * simulated time. A share has its own clock, which runs at the speed at which
 * one user is served, so a user that joins or leaves does not change the
 * others: each costs one heap entry. A tree of minima with four children per
 * node finds the share that releases a user next; most changes do not propagate
 * beyond the leaf. Plain waits have a separate heap. A share may also serve its
 * users in order, one at a time.
 */
#ifndef PEN_SIMULATE_SHARE_H
#define PEN_SIMULATE_SHARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"

struct pen_use {
	double until; /* in the share's time; for waits in simulated time */
	uint32_t who;
};

#define PEN_SHARE_FEW 3

struct pen_share {
	double rate, most; /* limit of all users together, and of one; may be
			      INFINITY */
	double own, at;	   /* its own time, and the simulated time of the last
			      update */
	double work;	   /* done up to then */
	double last;	   /* in its own time: the last user will be served */
	struct pen_use *heap;
	uint32_t n, room;
	struct pen_use few[PEN_SHARE_FEW]; /* inline heap for few users */
	bool in_order;			   /* users are served one at a time */
	uint64_t unused;		   /* two cache lines */
};

#define PEN_SHARE_LEVELS 16 /* 4^16 is 2^32 */

struct pen_shares {
	struct pen_share *v;
	uint32_t n;
	double now;
	uint32_t last; /* the share of the last event; UINT32_MAX: a wait */
	struct pen_use *wait;
	uint32_t nwait, wait_room;
	unsigned levels;
	double *due[PEN_SHARE_LEVELS]; /* [0]: one entry per share */
	struct pen_block mem;	       /* everything but the heaps */
};

/* Makes n shares (n may be 0) without limits. 0 or PEN_ENOMEM. */
int pen__shares_init(struct pen_shares *, uint32_t n);
void pen__shares_fini(struct pen_shares *);
/* User `who` starts to use `amount` (> 0) of a share now. 0 or PEN_ENOMEM. */
int pen__share_use(struct pen_shares *, uint32_t share, double amount,
		   uint32_t who);
/* User `who` waits for `seconds`. 0 or PEN_ENOMEM. */
int pen__share_wait(struct pen_shares *, double seconds, uint32_t who);
/* Changes the rate from now on. */
void pen__share_rate(struct pen_shares *, uint32_t share, double rate);
/* Advances to the next event and returns its user. UINT32_MAX: no events. */
uint32_t pen__shares_next(struct pen_shares *);
/* Work done by a share up to now. */
double pen__share_work(struct pen_shares *, uint32_t share);

#endif
