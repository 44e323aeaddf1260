/*
 * Things that are shared evenly by all who use them at a moment (processor
 * sharing), in simulated time. A share goes by a time of its own that runs as
 * fast as one user is served, so one who comes or goes changes nothing about
 * the others: each costs a place in a heap, however many there are. Among the
 * shares a second heap knows which one lets go of somebody next.
 */
#ifndef PEN_SIMULATE_SHARE_H
#define PEN_SIMULATE_SHARE_H

#include <stddef.h>
#include <stdint.h>

struct pen_share {
	double rate, most; /* of all together, and of one; INFINITY is fine */
	double own, at;	   /* its own time, and when it was looked at */
	double work;	   /* done until then */
	struct pen_use {
		double until; /* in its own time */
		uint32_t who;
	} * heap;
	uint32_t n, room;
	uint32_t place; /* among all, plus 1; 0: nobody uses it */
};

struct pen_shares {
	struct pen_share *v;
	uint32_t n;
	double now;
	struct pen_due {
		double when;
		uint32_t share;
	} * due;
	uint32_t ndue;
};

/* 0 or PEN_ENOMEM; n shares without limits. */
int pen__shares_init(struct pen_shares *, uint32_t n);
void pen__shares_fini(struct pen_shares *);
/* who begins to take `amount` (> 0) of a share, now. 0 or PEN_ENOMEM. */
int pen__share_use(struct pen_shares *, uint32_t share, double amount,
		   uint32_t who);
/* Goes on to whoever is served next, and says who. UINT32_MAX: nobody is. */
uint32_t pen__shares_next(struct pen_shares *);
/* Done by a share until now. */
double pen__share_work(struct pen_shares *, uint32_t share);

#endif
