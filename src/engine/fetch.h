/*
 * The fetch stage: fetch.c (rows and units become reads, and finished reads go
 * on to the next stage), fetch_read.c (the reads).
 */
#ifndef PEN_ENGINE_FETCH_H
#define PEN_ENGINE_FETCH_H

#include "engine/worker.h"

/* Starts a row or a shared unit; the free slots must suffice for it. */
void pen__fetch_row(struct pen_worker *, struct pen_pooled *, uint32_t row);
void pen__fetch_unit(struct pen_worker *, struct pen_live *);
/* A read finished: starts the next piece of its unit, or the next stage. */
void pen__fetch_complete(struct pen_worker *, struct pen_slot *);
/* ... but its memory was lost while it was being completed. */
void pen__fetch_lost(struct pen_worker *, struct pen_slot *);

/* fetch_read.c: slots and reads, which know nothing of later stages. */
struct pen_slot *pen__slot_take(struct pen_worker *);
void pen__slot_give(struct pen_worker *, struct pen_slot *);
void pen__slot_release(struct pen_worker *, struct pen_slot *);
/* A row's read, into dst; NULL: the bytes stay in the slot. */
struct pen_slot *pen__slot_row(struct pen_worker *, struct pen_pooled *,
			       uint32_t row, const struct pen_unit *,
			       uint8_t *dst);
/* A read that cannot be started is reaped as a failed one. */
void pen__slot_submit(struct pen_worker *, struct pen_slot *);
/*
 * A pending read may still grow. grow(): extends it by a row that follows on in
 * the object and in memory. pend(): submits the pending read and replaces it
 * with `next`, which may be NULL.
 */
bool pen__slot_grow(const struct pen_worker *, struct pen_slot *pending,
		    const struct pen_pooled *, const struct pen_unit *,
		    const uint8_t *dst);
void pen__slot_pend(struct pen_worker *, struct pen_slot **pending,
		    struct pen_slot *next);
void pen__slot_flush(struct pen_worker *); /* submits all pending reads */
void pen__slot_retry(struct pen_worker *); /* submits stalled reads */
/* Collects finished reads in w->done: w->ndone of them, at least one. */
void pen__slot_reap(struct pen_worker *);
/* Checks what was read (length, and the checksum at the end) and puts it in
 * place. */
int pen__slot_take_in(struct pen_worker *, struct pen_slot *,
		      struct pen_err *err);

#endif
