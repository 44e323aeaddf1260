/*
 * Units that several samples share (a compressed member, an HDF5 chunk, a run
 * of neighbouring records), while they are needed.
 *
 * The planner holds every unit of a window once per row that will use it; the
 * first hold creates a fetch task. Rows release their hold when they are
 * emitted. So a unit is fetched and unpacked exactly once per window, and
 * windows that overlap in time share units.
 *
 * A unit that is no longer held stays idle for a while: a few do, so that a
 * unit at the border of two batches is not fetched twice, and as many as cache=
 * allows. A unit that is known to have more users in a later window of the
 * epoch is kept for them while memory allows.
 */
#ifndef PEN_ENGINE_FETCH_UNITS_H
#define PEN_ENGINE_FETCH_UNITS_H

#include "engine/pool.h"

#define PEN_UNIT_KINDS 4u /* distinguished by field number modulo this */

/* A batch that waits for a unit. */
struct pen_waiter {
	struct pen_waiter *next;
	struct pen_pooled *batch;
};

struct pen_live {
	struct pen_task task; /* fetches this unit; must be first */
	struct pen_unit unit;
	struct pen_block mem; /* the payload: unpacked, or as fetched */
	uint64_t n;	      /* size of the payload */
	uint64_t holds;
	uint64_t users, used; /* holds per epoch (0: unknown), and so far */
	bool ready, later;    /* later: idle, and needed by a later window */
	struct pen_err err;   /* code != 0: it could not be fetched */
	struct pen_waiter *waiters;
	struct pen_live *next;		/* in the hash chain or the free list */
	struct pen_live *older, *newer; /* in a list of idle units */
};

/* Units that are not held. */
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
	struct pen_live *spare;	     /* freed units with their memory */
	struct pen_idle idle, later; /* later: kept for later windows */
	uint32_t keep_idle;
	uint64_t spare_bytes, cache_bytes;
	uint64_t later_bytes; /* limit for units in `later` */
	uint64_t live_bytes;  /* of held units */
	uint64_t most; /* limit for held, idle and spare units together */
	uint32_t nheld;
	/* share of their declared size that compressed units take, in
	 * 1024ths */
	uint32_t share[PEN_UNIT_KINDS];
	/* Compressed units up to this size are filled by a copy, so that they
	 * can take less memory than declared; larger ones are unpacked in
	 * place. No limit until it is set. */
	uint64_t copied;
	struct pen_waiter *spare_waiters;
};

/* Idle units are kept while there are at most `keep` of them, or within `cache`
 * bytes; idle units and spare memory are freed when the total would exceed
 * `most`. */
int pen__units_init(struct pen_units *, struct pen_pool *, uint32_t keep,
		    uint64_t cache, uint64_t most);
void pen__units_fini(struct pen_units *); /* also frees held units */

/* Bytes a unit's payload takes. */
static inline uint64_t pen__unit_payload(const struct pen_unit *u)
{
	return u->flags & PEN_UNIT_COMPRESSED ? u->size : u->len;
}

/* Would these units (ignoring unused slots) stay within limit bytes? */
bool pen__units_fit(struct pen_units *, const struct pen_unit *, uint32_t n,
		    uint64_t limit);
/* Adds a hold; *fresh: it is the first, and the caller queues the fetch. */
int pen__units_hold(struct pen_units *, const struct pen_unit *,
		    struct pen_live **out, bool *fresh);
/* Adds a hold to each, if all are held already, as is usual within a window.
 * Unused slots are ignored. */
bool pen__units_again(struct pen_units *, const struct pen_unit *, uint32_t n);
/* Copies the payload of a compressed unit, which may be smaller than
 * declared. */
int pen__units_fill(struct pen_units *, struct pen_live *, const void *,
		    size_t n);
/* Finds a unit that is held. */
struct pen_live *pen__units_find(struct pen_units *, uint64_t id);
/* Counts the unit in batch->waiting unless it is ready. 0 or PEN_ENOMEM. */
int pen__units_wait(struct pen_units *, struct pen_live *, struct pen_pooled *);
/* Finds n held units and waits for each, as above. */
int pen__units_attach(struct pen_units *, const struct pen_unit *, uint32_t n,
		      struct pen_live **live, struct pen_pooled *);
/* The payload has arrived, or failed with err. Calls wake(arg, batch) for each
 * batch whose last missing unit this was. */
void pen__units_ready(struct pen_units *, struct pen_live *,
		      const struct pen_err *err,
		      void (*wake)(void *arg, struct pen_pooled *), void *arg);
/* Releases n holds; NULLs are ignored. */
void pen__units_release(struct pen_units *, struct pen_live **live, size_t n);
uint64_t pen__units_bytes(struct pen_units *); /* of held units */
uint32_t pen__units_held(struct pen_units *);  /* number of held units */

#endif
