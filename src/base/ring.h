/*
 * Queues between threads: the only condition variables in the hot path.
 *
 * A ring is a bounded FIFO with a few lanes; pop takes from the lowest lane
 * that has items, so that finishing a batch precedes starting one. A lane can
 * be exclusive: after a pop from it nothing more is popped from that lane until
 * pen__ring_done(), which makes "one planner at a time" a property of the queue
 * and not a lock that workers wait on. The exclusive lane is last in, first
 * out, because it carries free batches, and the one returned last is still in
 * the CPU's caches; the other lanes are first in, first out.
 *
 * An order is the other end: items arrive with serial numbers in any order and
 * leave in serial order.
 */
#ifndef PEN_BASE_RING_H
#define PEN_BASE_RING_H

#include <stdbool.h>
#include <stdint.h>

#define PEN_RING_LANES 3

struct pen_ring;
/* cap: maximum number of items in a lane (more is a bug: asserted). */
int pen__ring_new(struct pen_ring **out, unsigned cap, int exclusive_lane);
void pen__ring_free(struct pen_ring *);
/* False if closed: the item stays the caller's. */
bool pen__ring_push(struct pen_ring *, unsigned lane, void *item);
bool pen__ring_push_many(struct pen_ring *, unsigned lane, void *const *items,
			 unsigned n);
/* The same, but wakes no thread before the lane has `enough` items: waking one
 * for each costs more than small items do. A thread that then waits for their
 * results must call pen__ring_rouse() first. */
bool pen__ring_push_lazily(struct pen_ring *, unsigned lane, void *item,
			   unsigned enough);
void pen__ring_rouse(struct pen_ring *); /* wakes one thread if there is work */
/* Blocks when `wait`. NULL: closed, or empty and not waiting. */
void *pen__ring_pop(struct pen_ring *, unsigned *lane, bool wait);
void pen__ring_done(struct pen_ring *, unsigned lane);
void pen__ring_close(struct pen_ring *); /* wakes all; pops return NULL */

struct pen_order;
int pen__order_new(struct pen_order **out, unsigned cap);
void pen__order_free(struct pen_order *);
/* serial < next + cap, by the number of batches */
void pen__order_put(struct pen_order *, uint64_t serial, void *item);
/* The next in order; blocks. NULL if closed. *ready: how many were ready. */
void *pen__order_get(struct pen_order *, unsigned *ready);
/* The same, but waits at most ns (0: not at all; negative: no limit). NULL:
 * closed, or not ready in time. */
void *pen__order_get_within(struct pen_order *, int64_t ns, unsigned *ready);
/* How many could be taken now, one after the other. */
unsigned pen__order_ready(struct pen_order *);
/* Mean interval between takes; for the taking thread. */
uint64_t pen__order_pace_ns(const struct pen_order *);
void pen__order_close(struct pen_order *);

#endif
