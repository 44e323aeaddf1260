/*
 * Units that several samples share (a compressed member, an HDF5 chunk, a run
 * of neighbouring records), while somebody needs them.
 *
 * The planner holds every unit of a window once per row that will use it; the
 * first hold makes a fetch task. Rows give their hold back when they are
 * emitted. So inside a window a unit is fetched and unpacked exactly once, and
 * windows that overlap in time share what they have in common.
 *
 * A unit nobody holds any more stays idle for a while: a few, so that a unit
 * which ends one batch and begins the next is not fetched twice, and as many as
 * the cache= setting allows. A unit that is known to have more users than held
 * it so far, because their window comes later in the epoch, waits for them as
 * long as there is room.
 */
#ifndef PEN_ENGINE_FETCH_UNITS_H
#define PEN_ENGINE_FETCH_UNITS_H

#include "engine/pool.h"

#define PEN_UNIT_KINDS 4u /* told apart by their number modulo this */

/* A batch that waits for a unit. */
struct pen_waiter {
	struct pen_waiter *next;
	struct pen_pooled *batch;
};

struct pen_live {
	struct pen_task task; /* fetch me; must be first */
	struct pen_unit unit;
	struct pen_block mem; /* the payload: unpacked, or as fetched */
	uint64_t n;	      /* bytes of it */
	uint64_t holds;
	uint64_t users, used; /* holds an epoch, 0: not known; so far */
	bool ready, later;    /* idle, and later windows need it */
	struct pen_err err;   /* code != 0: it could not be had */
	struct pen_waiter *waiters;
	struct pen_live *next;		/* in the hash chain or the free list */
	struct pen_live *older, *newer; /* among the idle ones */
};

/* Units that nobody holds. */
struct pen_idle {
	struct pen_live *oldest, *newest;
	uint32_t n;
	uint64_t bytes;
};

struct pen_units {
	pthread_mutex_t lock;
	struct pen_pool *pool; /* whose memory account is used */
	struct pen_live **bucket;
	uint32_t nbuckets, nlive;
	struct pen_live *spare;	     /* freed ones, with their memory */
	struct pen_idle idle, later; /* later: those that wait for users */
	uint32_t keep_idle;
	uint64_t spare_bytes, cache_bytes;
	uint64_t later_bytes; /* the most that units may take that wait */
	uint64_t live_bytes;  /* held */
	uint64_t most;	      /* bytes of all: held, idle and spare */
	uint32_t nheld;
	/* of their size that compressed units of a kind take, in 1024ths */
	uint32_t share[PEN_UNIT_KINDS];
	/* Encoded units up to this size are filled by a copy, so that they can
	 * have less memory than they declare; larger ones are unpacked into it.
	 * All, until it is set. */
	uint64_t copied;
	struct pen_waiter *spare_waiters;
};

/* Idle units stay while they are at most `keep`, or within `cache` bytes; they
 * and spare memory go when all together would pass `most`. */
int pen__units_init(struct pen_units *, struct pen_pool *, uint32_t keep,
		    uint64_t cache, uint64_t most);
void pen__units_fini(struct pen_units *); /* frees also what is held */

/* Bytes a unit's payload takes. */
static inline uint64_t pen__unit_payload(const struct pen_unit *u)
{
	return u->flags & PEN_UNIT_COMPRESSED ? u->size : u->len;
}

/* Would these units (unused slots passed over) stay within limit bytes? */
bool pen__units_fit(struct pen_units *, const struct pen_unit *, uint32_t n,
		    uint64_t limit);
/* One hold more; *fresh: this is the first, the caller queues the fetch. */
int pen__units_hold(struct pen_units *, const struct pen_unit *,
		    struct pen_live **out, bool *fresh);
/* One hold more of each, if all are held; most rows of a window find theirs
 * so. Unused slots are passed over. */
bool pen__units_again(struct pen_units *, const struct pen_unit *, uint32_t n);
/* The payload of a compressed unit, copied; it may be smaller than declared. */
int pen__units_fill(struct pen_units *, struct pen_live *, const void *,
		    size_t n);
/* Finds a unit that is held. */
struct pen_live *pen__units_find(struct pen_units *, uint64_t id);
/* Makes batch->waiting count the unit, unless it is ready. 0 or ENOMEM. */
int pen__units_wait(struct pen_units *, struct pen_live *, struct pen_pooled *);
/* Finds n units that are held, and waits for each, as above. */
int pen__units_attach(struct pen_units *, const struct pen_unit *, uint32_t n,
		      struct pen_live **live, struct pen_pooled *);
/* The payload is there, or err says why not. Calls wake(arg, batch) for each
 * batch whose last missing unit this was. */
void pen__units_ready(struct pen_units *, struct pen_live *,
		      const struct pen_err *err,
		      void (*wake)(void *arg, struct pen_pooled *), void *arg);
/* Gives n holds back. NULLs are passed over. */
void pen__units_release(struct pen_units *, struct pen_live **live, size_t n);
uint64_t pen__units_bytes(struct pen_units *); /* held now */
uint32_t pen__units_held(struct pen_units *);  /* how many */

#endif
