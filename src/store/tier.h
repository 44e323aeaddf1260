/* The dictionary as a store, for code that opens it over ranks and queries
 * it. */
#ifndef PEN_STORE_TIER_H
#define PEN_STORE_TIER_H

#include "store/store.h"

struct pen_comm;

struct pen_tier_stats {
	uint64_t hits, hit_bytes;   /* reads served from memory */
	uint64_t reads, read_bytes; /* of the store below */
	uint64_t kept, kept_bytes;  /* of those, put into the dictionary */
	bool full;		    /* no more are put */
};

/* Before it is bound: uses these ranks, which stay the caller's. Binding and
 * closing are collective then. */
void pen__tier_join(struct pen_store *, struct pen_comm *);
/* Whether it has met the other ranks: from then on they learn of errors while
 * it is bound. NULL, or another store: false. */
bool pen__tier_met(const struct pen_store *);
/* Of this process; false: st is not such a store. */
bool pen__tier_stats(const struct pen_store *st, struct pen_tier_stats *);
struct pen_ddict *pen__tier_dict(const struct pen_store *);

#endif
