/*
 * How a loader divides its memory: the prefetch depth, and what is left for
 * shared units and read buffers.
 */
#include "base/show.h"
#include "engine/loader.h"

#define LARGE (32u << 20) /* a batch that fits in no CPU cache */
#define AHEAD_BYTES (64u << 20)
#define MOST_AHEAD 4096
#define ROOM (1u << 20) /* about what stays in a CPU's cache */

/*
 * Batches that must be in progress for every thread to have its reads in
 * flight: twice as many rows as that, since batches leave in order and one slow
 * read delays those behind it. Where rows come in one read, or from shared
 * units, a batch may be a single read. Beyond AHEAD_BYTES only requested
 * threads count, with one read each.
 */
static uint64_t ahead_for_reads(const struct pen_loader *l, uint64_t batch)
{
	const struct pen_store *st = l->ds->store;
	const uint64_t threads = l->nthreads,
		       reads = threads * (st->waits || (st->lends && !st->far)
						  ? 1
						  : l->depth),
		       rows = l->rows, most = AHEAD_BYTES / batch,
		       least = (threads + rows - 1) / rows + 1;
	uint64_t n = 2 * ((reads + rows - 1) / rows) + 1;

	if (l->ds->ix.pub.per_object != 1 && n < threads + 1)
		n = threads + 1;
	n = n < most ? n : most;
	n = n < MOST_AHEAD ? n : MOST_AHEAD;
	return n < least && l->ds->spec->threads > 0 ? least : n;
}

/* Reads a thread may have in flight; with more than its share of the planned
 * rows, other threads would find none. */
static uint64_t share_of(const struct pen_loader *l, uint64_t batches)
{
	const uint64_t units = l->ds->format->units_per_sample;
	const uint64_t rows = (batches * l->rows - 1) / l->nthreads + 1;

	return l->shared ? UINT64_MAX : rows * (units ? units : 1);
}

/*
 * Divides the memory: batches first, then shared units, then buffers for reads
 * that cannot go straight into a batch. Small batches are kept few, so that
 * they stay in the CPU's caches between worker and consumer.
 */
int pen__budget_settle(struct pen_loader *l, const struct pen_format *out,
		       struct pen_err *err)
{
	const struct pen_spec *s = l->ds->spec;
	uint64_t batch = l->steps->bytes(l, out);
	uint64_t want, most, rooms, least = 4;

	l->budget = s->memory ? s->memory : pen__memory_available() / 4;
	if (batch > l->budget / 2)
		return pen__fail(err, P_OVER_BUDGET, "memory",
				 "two batches need %s, but the budget is %s; "
				 "raise memory=%s",
				 pen__show_bytes((double)batch * 2).s,
				 pen__show_bytes((double)l->budget).s,
				 l->rows > 1 ? " or lower batch_size=" : "");
	most = l->budget / 2 / batch;
	if (!l->shared)
		most = l->budget * 3 / 4 / batch;
	want = s->prefetch > 0 ? (uint64_t)s->prefetch : (8u << 20) / batch;
	/* fresh memory costs more than most of the work done in it, and two
	 * such batches provide work and reads in flight for all threads */
	if (batch >= LARGE && l->rows >= l->nthreads * l->depth)
		least = 2;
	if (s->prefetch == 0) {
		want = want < least ? least : want > 32 ? 32 : want;
		least = ahead_for_reads(l, batch);
		want = want < least ? least : want;
	}
	l->wanted = (uint32_t)want;
	/* one more is with the consumer */
	if (want + 1 > most)
		want = most > 2 ? most - 1 : 1;
	l->prefetch = (uint32_t)want;
	l->share = share_of(l, want + 1);
	l->unit_budget = l->budget - (want + 1) * batch;
	l->raw_limit = l->budget / 8 / l->nthreads;
	l->room_limit = l->budget / 32 / l->nthreads;
	if (l->room_limit > ROOM)
		l->room_limit = ROOM;
	if (l->shared) {
		/* memory kept for reuse, read buffers, and what is cached */
		rooms = l->nthreads * l->room_limit;
		l->unit_budget -= rooms < l->unit_budget ? rooms
							 : l->unit_budget;
		l->unit_most = l->unit_budget - l->unit_budget / 4;
		l->unit_budget = l->unit_most - l->unit_most / 4;
	}
	return 0;
}
