/* The dictionary as a store, for who opens it over ranks and asks about it. */
#ifndef PEN_STORE_TIER_H
#define PEN_STORE_TIER_H

#include "store/store.h"

struct pen_comm;

struct pen_tier_stats {
	uint64_t hits, hit_bytes;   /* reads answered out of memory */
	uint64_t reads, read_bytes; /* by the store beneath */
	uint64_t kept, kept_bytes;  /* of those, put into the dictionary */
	bool full;		    /* no more are */
};

/* Before it is bound: over these ranks, which stay the caller's. Binding and
 * closing it is collective then. */
void pen__tier_join(struct pen_store *, struct pen_comm *);
/* Whether it has met the other ranks: from then on they know of what fails
 * while it is bound. NULL, or another store: false. */
bool pen__tier_met(const struct pen_store *);
/* Of this process; false: st is no such store. */
bool pen__tier_stats(const struct pen_store *st, struct pen_tier_stats *);
struct pen_ddict *pen__tier_dict(const struct pen_store *);

#endif
