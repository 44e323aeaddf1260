/*
 * The workers. Each owns a queue into the store and a set of slots, one per
 * read in flight, and loops: it takes tasks and issues reads while slots are
 * free, then reaps what has finished and puts it in place. With a synchronous
 * store a round is a group of reads followed by a group of copies; with an
 * asynchronous one the queue never runs dry.
 */
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/guard.h"
#include "engine/emit.h"
#include "engine/fetch.h"
#include "engine/finish.h"
#include "engine/plan.h"

#define AHEAD 3 /* units prefetched before they are put in place */
/* Rounds in which a read is timed. */
#define TIMED_FIRST 16
#define TIMED_EVERY 8

const struct pen_meter *pen__worker_meter(const struct pen_loader *l,
					  unsigned i)
{
	return &l->worker[i].meter;
}

/* Lent memory is often not in the CPU's cache: prefetches a few units ahead. */
static int complete_all(void *arg)
{
	struct pen_worker *w = arg;

	for (; w->at < w->ndone; w->at++) {
		if (w->q->st->lends && w->at + AHEAD < w->ndone) {
			const struct pen_io *later = w->done[w->at + AHEAD];

			pen__ask_for(later->data, later->len);
		}
		pen__fetch_complete(w, w->done[w->at]->user);
	}
	return 0;
}

/*
 * Completion touches lent memory, and a mapping whose file has shrunk faults.
 * The current read then counts as failed and the others continue. What the
 * fault interrupts (a copy, a checksum or a format's emit()) holds no
 * resources.
 */
static void complete_guarded(struct pen_worker *w)
{
	bool lost = true;

	w->at = 0;
	while (lost) {
		pen__guard_run(complete_all, w, &lost);
		if (lost)
			pen__fetch_lost(w, w->done[w->at++]->user);
	}
}

static void reap(struct pen_worker *w)
{
	const uint64_t t0 = pen__now_ns();
	uint64_t end;

	pen__slot_reap(w);
	w->at = 0;
	pen__pass_counts(w);
	if (w->q->st->lends)
		complete_guarded(w);
	else
		complete_all(w);
	pen__rows_flush(w);
	end = pen__stage_end(w, pen__making(w), w->reaped_at);
	pen__pass_counts(w);
	w->rows_ns += w->l->shared ? 0 : end - t0;
	/* all of the first rounds, when reads do not queue yet */
	w->nrounds++;
	w->time_next = !w->timed && (w->nrounds < TIMED_FIRST ||
				     w->nrounds % TIMED_EVERY == 0);
}

/* Resubmits what the store had no room for; a synchronous one reads here. */
static void retry(struct pen_worker *w)
{
	uint64_t t0;

	if (!w->stalled)
		return;
	t0 = pen__now_ns();
	pen__slot_retry(w);
	pen__stage_end(w, &w->meter.read_ns, t0);
}

/* Is a single row enough work before it is passed on? */
static bool slow_rows(const struct pen_loader *l)
{
	const uint64_t ns =
		atomic_load_explicit(&l->row_ns, memory_order_relaxed);

	return !ns || ns > PEN_WORTH_NS;
}

static bool room(const struct pen_worker *w)
{
	uint32_t need = w->f->units_per_sample;

	/* With a store that reads inside submit, pieces are best used
	 * immediately, while they are in the CPU's cache, and a row must not
	 * wait for the slow read of the next one. */
	if (w->inflight && w->q->st->waits &&
	    (w->l->drops || w->l->pool->crop.on || slow_rows(w->l)))
		return false;
	return !w->stalled && w->nfree >= (need ? need : 1) &&
	       w->inflight < w->l->share &&
	       (w->raw_bytes < w->l->raw_limit / 2 || !w->inflight);
}

/* Reports to the planner how long rows take. Threads overwrite each other's
 * mean, which is harmless. */
static void tell_pace(struct pen_worker *w)
{
	atomic_uint_fast64_t *mean = &w->l->row_ns;
	uint64_t old, ns;

	if (!w->nrows)
		return;
	ns = w->rows_ns / w->nrows + 1;
	old = atomic_load_explicit(mean, memory_order_relaxed);
	atomic_store_explicit(mean, old ? (old * 7 + ns) / 8 : ns,
			      memory_order_relaxed);
	w->rows_ns = w->nrows = 0;
}

/* Issues rows of the current grain while there is room. */
static void issue_rows(struct pen_worker *w)
{
	struct pen_task *g = &w->rows;
	const uint32_t first = g->first;

	/* on shutdown, drop rows whose reads have not been issued */
	while (g->first < g->last && room(w) &&
	       !atomic_load_explicit(&w->l->stopping, memory_order_relaxed))
		pen__fetch_row(w, g->batch, g->first++);
	pen__slot_flush(w);
	pen__rows_flush(w);
	w->nrows += g->first - first;
	if (g->first == g->last)
		g->batch = NULL;
}

/* The next task; sleeps only when nothing is in flight. */
static struct pen_task *next_task(struct pen_worker *w, unsigned *lane)
{
	struct pen_task *t = pen__ring_pop(w->l->ring, lane, false);
	uint64_t t0;

	if (t || w->inflight)
		return t;
	t0 = pen__now_ns();
	t = pen__ring_pop(w->l->ring, lane, true);
	pen__stage_end(w, &w->meter.idle_ns, t0);
	w->closed = !t;
	return t;
}

static void do_plan(struct pen_worker *w, struct pen_task *t)
{
	uint64_t t0 = pen__now_ns();

	pen__plan_batch(w->l, t->batch);
	pen__ring_done(w->l->ring, PEN_LANE_PLAN);
	pen__stage_end(w, &w->meter.plan_ns, t0);
}

/* Issues rows of the current grain, or the read of a unit. Returns the time. */
static uint64_t begin(struct pen_worker *w, struct pen_live *unit, uint64_t t0)
{
	const uint32_t before = w->inflight;
	uint64_t t1;

	if (unit)
		pen__fetch_unit(w, unit);
	else
		issue_rows(w);
	/* rows from units in memory take no read: all of the time went into
	 * making them */
	t1 = pen__stage_end(w,
			    w->inflight == before && !w->stalled
				    ? pen__making(w)
				    : &w->meter.read_ns,
			    t0);
	w->rows_ns += unit ? 0 : t1 - t0;
	return t1;
}

/* Plans a batch, or copies rows from lent memory: both finish here. False: the
 * task is a read to start. */
static bool do_at_once(struct pen_worker *w, struct pen_task *t, unsigned lane)
{
	if (lane == PEN_LANE_PLAN) {
		do_plan(w, t);
		return true;
	}
	if (lane == PEN_LANE_ROWS && w->gather) {
		pen__gather_rows(w, t);
		pen__pass_counts(w);
		tell_pace(w);
		return true;
	}
	return false;
}

/* Takes work until the slots are used up or there is none. What a store has
 * read inside submit is passed on before the next slow read. */
static void issue(struct pen_worker *w)
{
	uint64_t since = 0, now = 0;

	while (room(w) && !(w->inflight && w->q->st->waits &&
			    now - since >= PEN_WORTH_NS)) {
		struct pen_task *t = &w->rows;
		unsigned lane = PEN_LANE_ROWS;

		if (atomic_load(&w->l->stopping)) {
			w->rows.batch = NULL;
			w->closed = true;
			return;
		}
		if (!w->rows.batch) {
			if (w->inflight && w->q->late)
				return;
			t = next_task(w, &lane);
			if (!t)
				return;
			if (do_at_once(w, t, lane))
				continue;
			if (lane == PEN_LANE_ROWS)
				w->rows = *t;
		}
		now = pen__now_ns();
		since = since ? since : now;
		now = begin(w, lane == PEN_LANE_UNIT ? t->live : NULL, now);
	}
}

/* Saves the kernel's counters, which end with the thread. */
static void pass_times(struct pen_worker *w)
{
	struct pen_thread_times t;

	if (pen__thread_times(gettid(), &t)) {
		pen__meter_add(&w->meter.cpu_ns, t.cpu_ns);
		pen__meter_add(&w->meter.queue_ns, t.queue_ns);
	}
	atomic_store(&w->meter.tid, 0);
}

void pen__worker_run(void *loader, unsigned i)
{
	struct pen_worker *w = &((struct pen_loader *)loader)->worker[i];

	w->closed = false;
	w->rows.batch = NULL;
	w->time_next = true;
	w->timed = NULL;
	atomic_store(&w->meter.tid, gettid());
	while (!w->closed) {
		issue(w);
		if (w->inflight)
			reap(w);
		retry(w);
		tell_pace(w);
	}
	while (w->inflight || w->stalled) {
		if (w->inflight)
			reap(w);
		retry(w);
	}
	pass_times(w);
}

static int worker_init(struct pen_worker *w, struct pen_loader *l,
		       struct pen_err *err)
{
	uint32_t n = l->ds->format->units_per_sample;
	size_t pad = 0;
	int rc;

	w->l = l;
	w->f = l->ds->format;
	w->nslots = l->depth > n ? l->depth : n;
	/* A job in progress has at least one slot, and one is started only if n
	 * slots are free: this many can exist at a time. */
	w->njobs = w->nslots - (n ? n - 1 : 0);
	rc = pen__queue_open(&w->q, l->ds->store, w->nslots, err);
	if (rc)
		return rc;
	for (uint32_t i = 0; i < l->pool->nfields; i++)
		if ((pen__staged(l->pool, i) ||
		     l->pool->field[i].layout == PEN_PACKED) &&
		    (l->shared || !w->f->all_plain))
			pad += pen__stage_bytes(&w->f->field[i]);
	if (pad && pen__block_init(&w->pad, pad))
		return pen__fail_nomem(err, "padded rows", pad);
	if (pen__gather_fits(l) && pen__gather_new(w))
		return pen__fail_nomem(err, "worker", 0);
	w->slot = pen__calloc(w->nslots, sizeof(*w->slot));
	w->pending = pen__calloc(n, sizeof(*w->pending));
	w->done = pen__calloc(w->nslots, sizeof(*w->done));
	w->job = pen__calloc(w->njobs, sizeof(*w->job));
	if (!w->slot || !w->pending || !w->done || !w->job ||
	    pen__scratch_init(&w->scratch, w->f->scratch_size))
		return pen__fail_nomem(err, "worker", w->f->scratch_size);
	for (uint32_t i = 0; i < w->nslots; i++)
		pen__slot_give(w, &w->slot[i]);
	for (uint32_t i = 0; i < w->njobs; i++) {
		struct pen_job *j = &w->job[i];

		j->unit = pen__calloc(n, sizeof(*j->unit));
		j->data = pen__calloc(n, sizeof(*j->data));
		j->slot = pen__calloc(n, sizeof(*j->slot));
		if (!j->unit || !j->data || !j->slot)
			return pen__fail_nomem(err, "worker", n * 64);
		j->next = w->free_job;
		w->free_job = j;
	}
	return 0;
}

static void worker_fini(struct pen_worker *w)
{
	for (uint32_t i = 0; w->slot && i < w->nslots; i++)
		pen__block_fini(&w->slot[i].raw);
	for (uint32_t i = 0; w->job && i < w->njobs; i++) {
		pen__free(w->job[i].unit);
		pen__free(w->job[i].data);
		pen__free(w->job[i].slot);
	}
	pen__block_fini(&w->pad);
	pen__block_fini(&w->room);
	pen__free(w->gather);
	pen__queue_close(w->q);
	pen__scratch_fini(&w->scratch);
	pen__free(w->slot);
	pen__free(w->pending);
	pen__free(w->done);
	pen__free(w->job);
}

int pen__workers_new(struct pen_loader *l, struct pen_err *err)
{
	l->worker = pen__calloc(l->nthreads, sizeof(*l->worker));
	if (!l->worker)
		return pen__fail_nomem(err, "workers", sizeof(*l->worker));
	pen__store_share_files(l->ds->store, l->nthreads,
			       (unsigned)l->ds->spec->open_files);
	for (uint32_t i = 0; i < l->nthreads; i++) {
		int rc = worker_init(&l->worker[i], l, err);

		if (rc)
			return rc;
	}
	return 0;
}

void pen__workers_free(struct pen_loader *l)
{
	for (uint32_t i = 0; l->worker && i < l->nthreads; i++)
		worker_fini(&l->worker[i]);
	pen__free(l->worker);
	l->worker = NULL;
}
