/*
 * The plan stage, as the loader and its workers call it: plan.c, and
 * plan_barrier.c, which delays it. What the plan_*.c files share is in
 * loader.h.
 */
#ifndef PEN_ENGINE_PLAN_H
#define PEN_ENGINE_PLAN_H

#include "engine/loader.h"

void pen__plan_seek(struct pen_loader *, struct pen_cursor);
/* Plans the next batch into b and queues its work. */
void pen__plan_batch(struct pen_loader *, struct pen_pooled *b);

/*
 * Ranks that share a cache (plan_barrier.c): the barrier is set when the first
 * epoch starts, and passed by the consumer at its end, together with all other
 * ranks. holds(): the batch has to wait.
 */
void pen__barrier_set(struct pen_loader *, uint64_t epoch);
bool pen__barrier_holds(struct pen_loader *, struct pen_pooled *);
int pen__barrier_pass(struct pen_loader *, struct pen_err *err);
/* On closing, after the threads have ended. */
void pen__barrier_leave(struct pen_loader *);

#endif
