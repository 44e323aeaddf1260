/*
 * The plan stage, as the loader and its workers call it: plan.c, and
 * plan_barrier.c, which holds it up. What plan_*.c have in common is in
 * loader.h.
 */
#ifndef PEN_ENGINE_PLAN_H
#define PEN_ENGINE_PLAN_H

#include "engine/loader.h"

void pen__plan_seek(struct pen_loader *, struct pen_cursor);
/* Plans the next batch into b and queues its work. */
void pen__plan_batch(struct pen_loader *, struct pen_pooled *b);

/*
 * Ranks that share a cache (plan_barrier.c): set when the first epoch starts,
 * passed by the consumer at its end, with all other ranks. holds(): the batch
 * waits.
 */
void pen__barrier_set(struct pen_loader *, uint64_t epoch);
bool pen__barrier_holds(struct pen_loader *, struct pen_pooled *);
int pen__barrier_pass(struct pen_loader *, struct pen_err *err);
/* closing; its threads are gone */
void pen__barrier_leave(struct pen_loader *);

#endif
