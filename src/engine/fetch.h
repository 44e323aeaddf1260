/*
 * The fetch stage: fetch.c (rows and units become reads, and reads that are
 * done go on to the next stage), fetch_read.c (the reads).
 */
#ifndef PEN_ENGINE_FETCH_H
#define PEN_ENGINE_FETCH_H

#include "engine/worker.h"

/* Begins a row, or a shared unit: nfree slots are enough for it. */
void pen__fetch_row(struct pen_worker *, struct pen_pooled *, uint32_t row);
void pen__fetch_unit(struct pen_worker *, struct pen_live *);
/* A read is done: the next piece of its unit, or the next stage. */
void pen__fetch_complete(struct pen_worker *, struct pen_slot *);
/* ... and while it was completed the memory behind it was lost. */
void pen__fetch_lost(struct pen_worker *, struct pen_slot *);

/* fetch_read.c: slots and reads. They know of nothing that comes after. */
struct pen_slot *pen__slot_take(struct pen_worker *);
void pen__slot_give(struct pen_worker *, struct pen_slot *);
void pen__slot_release(struct pen_worker *, struct pen_slot *);
/* A row's read, into dst; NULL: the bytes stay in the slot. */
struct pen_slot *pen__slot_row(struct pen_worker *, struct pen_pooled *,
			       uint32_t row, const struct pen_unit *,
			       uint8_t *dst);
/* What cannot even be begun is reaped as one that failed. */
void pen__slot_submit(struct pen_worker *, struct pen_slot *);
/*
 * A read that may still grow is pending. grow(): the row follows on from it, in
 * the object and in memory, and is part of it now. pend(): submits what was
 * pending, and `next`, which may be NULL, is that.
 */
bool pen__slot_grow(const struct pen_worker *, struct pen_slot *pending,
		    const struct pen_pooled *, const struct pen_unit *,
		    const uint8_t *dst);
void pen__slot_pend(struct pen_worker *, struct pen_slot **pending,
		    struct pen_slot *next);
void pen__slot_flush(struct pen_worker *); /* submits all pending ones */
void pen__slot_retry(struct pen_worker *); /* submits stalled ones */
/* Those that are done into w->done: w->ndone of them, at least one. */
void pen__slot_reap(struct pen_worker *);
/* What was read, checked (length, checksum at the end) and put in place. */
int pen__slot_take_in(struct pen_worker *, struct pen_slot *,
		      struct pen_err *err);

#endif
