/*
 * The workers. Each owns a queue into the store and a set of slots, one per
 * read in flight, and goes round: take tasks and issue reads while there are
 * free slots, then reap what is done and put it in place. With a synchronous
 * store a round is a group of reads followed by a group of copies, with an
 * asynchronous one the queue never runs dry.
 */
#include <string.h>

#include "base/clock.h"
#include "base/guard.h"
#include "engine/worker.h"

#define AHEAD 3 /* units asked for before they are put in place */

const struct pen_meter *pen__worker_meter(const struct pen_loader *l,
					  unsigned i)
{
	return &l->worker[i].meter;
}

static void pieces_done(struct pen_loader *l, struct pen_pooled *b, uint32_t n)
{
	if (atomic_fetch_sub(&b->left, n) == n)
		pen__finish_batch(l, b);
}

/* Before anything is handed on, so that who has a batch finds in the statistics
 * the reads it took. */
static void pass_counts(struct pen_worker *w)
{
	pen__meter_add(&w->meter.nreads, w->nreads);
	pen__meter_add(&w->meter.read_bytes, w->read_bytes);
	w->nreads = w->read_bytes = 0;
}

/* A row that is plain throughout is done in as many pieces as it has units. */
static void call_hook(struct pen_worker *w)
{
	uint32_t per_row = 1, n;

	if (w->f->all_plain && !w->l->shared)
		per_row = w->f->units_per_sample;
	w->unhooked += w->nfilled;
	n = w->unhooked / per_row;
	w->unhooked %= per_row;
	if (n)
		w->l->hook.rows(w->l->hook.arg, (unsigned)(w - w->l->worker),
				n);
}

/* Rows of a batch are completed in runs: counted, and their shared units given
 * back, in one step, because both are shared with the other workers. */
void pen__rows_flush(struct pen_worker *w)
{
	struct pen_pooled *b = w->filled;
	size_t units = w->f->units_per_sample;

	w->filled = NULL;
	if (!b)
		return;
	if (w->l->hook.rows)
		call_hook(w);
	pass_counts(w);
	if (b->live)
		pen__units_release(&w->l->units,
				   b->live + w->first_filled * units,
				   w->nfilled * units);
	pieces_done(w->l, b, w->nfilled);
}

void pen__rows_filled(struct pen_worker *w, struct pen_pooled *b, uint32_t row,
		      uint32_t n)
{
	if (w->filled != b ||
	    (b->live && row != w->first_filled + w->nfilled)) {
		pen__rows_flush(w);
		w->filled = b;
		w->first_filled = row;
		w->nfilled = 0;
	}
	w->nfilled += n;
}

/* Names the sample and its object in an error. */
static void name_error(struct pen_loader *l, const struct pen_pooled *b,
		       uint32_t row, struct pen_err *err)
{
	char path[4096];

	pen_dataset_object_name(l->ds, b->ids[row], path, sizeof(path));
	pen__err_where(err, path);
	if (err->code == PEN_ESTALE && l->ds->cache_dir[0])
		pen__cache_drop(l->ds->cache_dir, &l->ds->key);
}

void pen__row_failed(struct pen_worker *w, struct pen_pooled *b, uint32_t row,
		     struct pen_err *err)
{
	name_error(w->l, b, row, err);
	pen__batch_fault(b, row, err);
}

/* Lent memory is often far away: units are asked for some ahead. */
static int complete_all(void *arg)
{
	struct pen_worker *w = arg;

	for (; w->at < w->ndone; w->at++) {
		if (w->q->st->lends && w->at + AHEAD < w->ndone) {
			const struct pen_io *later = w->done[w->at + AHEAD];

			pen__ask_for(later->data, later->len);
		}
		pen__slot_complete(w, w->done[w->at]->user);
	}
	return 0;
}

static void lost_slot(struct pen_worker *w, struct pen_slot *s)
{
	if (s->job && !s->job->left)
		pen__job_lost(w, s);
	else /* lost while it was checked */
		pen__slot_fail(w, s, PEN_ESTALE);
}

/*
 * Completion touches lent memory, and a mapping whose file has shrunk faults.
 * The read at hand then counts as failed and the others go on. What the fault
 * interrupted is a copy, a checksum or a format's emit(), none of which holds
 * anything.
 */
static void complete_guarded(struct pen_worker *w)
{
	bool lost = true;

	w->at = 0;
	while (lost) {
		pen__guard_run(complete_all, w, &lost);
		if (lost)
			lost_slot(w, w->done[w->at++]->user);
	}
}

static void reap(struct pen_worker *w)
{
	uint64_t t0 = pen__now_ns(), t1, t2;

	w->ndone = w->q->st->ops->reap(w->q, 1, w->done, w->nslots);
	w->inflight -= w->ndone;
	t1 = pen__now_ns();
	w->unpack_ns = w->again_ns = 0;
	w->at = 0;
	pass_counts(w);
	if (w->q->st->lends)
		complete_guarded(w);
	else
		complete_all(w);
	pen__rows_flush(w);
	t2 = pen__now_ns();
	pass_counts(w);
	pen__meter_add(&w->meter.read_ns, t1 - t0 + w->again_ns);
	pen__meter_add(&w->meter.unpack_ns, w->unpack_ns);
	pen__meter_add(&w->meter.emit_ns, t2 - t1 - w->unpack_ns - w->again_ns);
}

/* What the store had no room for; a synchronous one reads it here. */
static void retry(struct pen_worker *w)
{
	uint64_t t0;

	if (!w->stalled)
		return;
	t0 = pen__now_ns();
	pen__slot_retry(w);
	pen__meter_add(&w->meter.read_ns, pen__now_ns() - t0);
}

static bool room(const struct pen_worker *w)
{
	uint32_t need = w->f->units_per_sample;

	/* pieces are best used at once, while they are in the CPU's cache */
	if (w->inflight && w->q->st->waits &&
	    (w->l->drops || w->l->pool->take.on))
		return false;
	return !w->stalled && w->nfree >= (need ? need : 1) &&
	       (w->raw_bytes < w->l->raw_limit / 2 || !w->inflight);
}

/* Issues rows of the grain at hand while there is room. */
static void issue_rows(struct pen_worker *w)
{
	struct pen_task *g = &w->rows;
	bool plain = w->f->all_plain && !w->l->shared;
	uint32_t object;
	uint64_t k;

	/* a read can take long: what is not begun when all stop is left */
	while (g->first < g->last && room(w) &&
	       !atomic_load_explicit(&w->l->stopping, memory_order_relaxed)) {
		uint32_t row = g->first++;

		pen__index_find(w->f->ix, g->batch->ids[row], &object, &k);
		if (plain)
			pen__issue_plain(w, g->batch, row, object, k);
		else
			pen__issue_job(w, g->batch, row, object, k);
	}
	pen__slot_flush(w);
	pen__rows_flush(w);
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
	pen__meter_add(&w->meter.idle_ns, pen__now_ns() - t0);
	w->closed = !t;
	return t;
}

static void do_plan(struct pen_worker *w, struct pen_task *t)
{
	uint64_t t0 = pen__now_ns();

	pen__plan_batch(w->l, t->batch);
	pen__ring_done(w->l->ring, PEN_LANE_PLAN);
	pen__meter_add(&w->meter.plan_ns, pen__now_ns() - t0);
}

/* Takes work until the slots are used up or there is none. */
static void issue(struct pen_worker *w)
{
	while (room(w)) {
		uint32_t before = w->inflight;
		struct pen_task *t;
		unsigned lane;
		uint64_t t0;

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
			if (lane == PEN_LANE_PLAN) {
				do_plan(w, t);
				continue;
			}
			if (lane == PEN_LANE_ROWS && w->gather) {
				pen__gather_rows(w, t);
				pass_counts(w);
				continue;
			}
			if (lane == PEN_LANE_ROWS)
				w->rows = *t;
		} else {
			lane = PEN_LANE_ROWS;
			t = &w->rows;
		}
		t0 = pen__now_ns();
		if (lane == PEN_LANE_ROWS)
			issue_rows(w);
		else
			pen__issue_unit(w, t->live);
		/* rows out of units that are there take no read: all of it was
		 * making them */
		pen__meter_add(w->inflight == before && !w->stalled
				       ? &w->meter.emit_ns
				       : &w->meter.read_ns,
			       pen__now_ns() - t0);
	}
}

void pen__worker_run(void *loader, unsigned i)
{
	struct pen_worker *w = &((struct pen_loader *)loader)->worker[i];

	w->closed = false;
	w->rows.batch = NULL;
	while (!w->closed) {
		issue(w);
		if (w->inflight)
			reap(w);
		retry(w);
	}
	while (w->inflight || w->stalled) {
		if (w->inflight)
			reap(w);
		retry(w);
	}
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
	/* A job under way has a slot at least, and one is begun only when n
	 * slots are free: so many there can be at once. */
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
	w->done = pen__calloc(w->nslots, sizeof(*w->done));
	w->job = pen__calloc(w->njobs, sizeof(*w->job));
	if (!w->slot || !w->done || !w->job ||
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
	pen__free(w->done);
	pen__free(w->job);
}

int pen__workers_new(struct pen_loader *l, struct pen_err *err)
{
	l->worker = pen__calloc(l->nthreads, sizeof(*l->worker));
	if (!l->worker)
		return pen__fail_nomem(err, "workers", sizeof(*l->worker));
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
