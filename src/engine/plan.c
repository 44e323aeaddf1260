/*
 * Planning: which samples the next batch has, where their rows go, and, for
 * formats whose samples share units, which units have to be fetched.
 *
 * Which positions of the order a batch takes is up to l->steps: plan_sampled.c,
 * plan_by_length.c, plan_asked.c.
 */
#include <string.h>

#include "base/show.h"
#include "engine/finish.h"
#include "engine/plan.h"

/* The rows of a grain are filled by one thread: less than this is not worth
 * sharing, and two CPUs that write neighbouring memory slow each other down. */
#define GRAIN_BYTES 262144

void pen__plan_seek(struct pen_loader *l, struct pen_cursor to)
{
	l->plan = (struct pen_plan){ .at = to, .held = to, .origin = to.pos };
}

int pen__steps_samples(struct pen_loader *l, uint64_t epoch, uint64_t first,
		       size_t n, uint64_t *out, struct pen_err *err)
{
	const int rc = l->steps->ids(l, epoch, first, n, out, err);

	if (rc ||
	    (!l->choice.list && l->choice.start == 0 && l->choice.step == 1))
		return rc;
	for (size_t i = 0; i < n; i++)
		out[i] = pen__choice_at(&l->choice, out[i]);
	return 0;
}

int pen__steps_fill(struct pen_loader *l, struct pen_pooled *b,
		    const struct pen_step *s, struct pen_err *err)
{
	return pen__steps_samples(l, s->at.epoch, s->first, s->n, b->ids, err);
}

/* Packed fields must all be as long as the first, whose rows are placed
 * already. */
static int check_packed(const struct pen_loader *l, const struct pen_pooled *b,
			uint32_t field, struct pen_err *err)
{
	const struct pen_format *f = l->ds->format;
	const struct pen_field *d = &b->pool->field[field];
	int64_t a[PEN_MAX_DIMS], of[PEN_MAX_DIMS];

	if (field == b->pool->packed)
		return 0;
	for (uint32_t r = 0; r < b->nrows; r++) {
		uint32_t object;
		uint64_t k;

		pen__index_find(f->ix, b->ids[r], &object, &k);
		f->ops->shape(f, object, k, field, a);
		f->ops->shape(f, object, k, b->pool->packed, of);
		if (a[0] != of[0])
			return pen__fail(
				err, P_CONFLICT, d->name,
				"has length %lld in sample %llu, but '%s' has "
				"%lld; packed fields must be equally long, so "
				"exclude one with fields=",
				(long long)a[0], (unsigned long long)b->ids[r],
				b->pool->field[b->pool->packed].name,
				(long long)of[0]);
	}
	return 0;
}

/* Sets the padded shape: the largest of the batch in each dimension that
 * varies. */
static int pad_dims(const struct pen_loader *l, struct pen_pooled *b,
		    uint32_t field, struct pen_err *err)
{
	const struct pen_field *d = &b->pool->field[field];
	const int64_t to = (int64_t)l->ds->spec->pad_multiple;
	int64_t *dims = b->dims[field];

	for (uint32_t j = 0; j < d->ndim; j++) {
		int64_t most = 0;

		if (!(l->varying[field] >> j & 1))
			continue;
		for (uint32_t r = 0; r < b->nrows; r++) {
			const int64_t n =
				b->shapes[field][(size_t)r * d->ndim + j];

			most = n > most ? n : most;
		}
		dims[j] = most % to ? most - most % to + to : most;
	}
	if (!pen__shape_bytes(dims, d->ndim, d->dtype, &b->row_bytes[field]))
		return pen__fail(err, P_BAD_DATA_VALUE, d->name,
				 "too large when padded; use shapes=ragged");
	return 0;
}

/* Sets the shapes of a field's rows and, consecutively, their places. */
static int place_rows(struct pen_loader *l, struct pen_pooled *b,
		      uint32_t field, size_t *bytes, struct pen_err *err)
{
	const struct pen_format *f = l->ds->format;
	const struct pen_field *d = &b->pool->field[field];
	size_t size = pen_dtype_size(d->dtype), total = 0;

	for (uint32_t r = 0; r < b->nrows; r++) {
		int64_t *shape = b->shapes[field] + (size_t)r * d->ndim;
		uint32_t object;
		uint64_t k;
		size_t n;

		pen__index_find(f->ix, b->ids[r], &object, &k);
		f->ops->shape(f, object, k, field, shape);
		if (!pen__shape_bytes(shape, d->ndim, d->dtype, &n) ||
		    !pen__add(total, n, &total))
			return pen__fail(err, P_DAMAGED, d->name,
					 "sample %llu is too large",
					 (unsigned long long)b->ids[r]);
		if (d->layout == PEN_RAGGED)
			b->offsets[field][r + 1] = (int64_t)(total / size);
	}
	*bytes = total;
	return 0;
}

/* Batches that are cut by length, or requested, differ in size: room for the
 * maximum would be too much. */
static size_t room_rows(const struct pen_loader *l, const struct pen_pooled *b)
{
	return l->steps->vary ? b->nrows : b->pool->cap;
}

/* Places a field whose rows differ, and counts its bytes. */
static int place_field(struct pen_loader *l, struct pen_pooled *b,
		       uint32_t field, size_t *bytes, struct pen_err *err)
{
	const struct pen_field *d = &b->pool->field[field];
	int rc;

	if (d->layout == PEN_PACKED) {
		*bytes = (size_t)b->pool->rows * b->pool->pack *
			 pen_dtype_size(d->dtype);
		return check_packed(l, b, field, err);
	}
	rc = place_rows(l, b, field, bytes, err);
	if (rc || d->layout == PEN_RAGGED)
		return rc;
	*bytes = room_rows(l, b) * d->max_bytes;
	if (!l->pad_batch)
		return 0;
	rc = pad_dims(l, b, field, err);
	if (!rc && !pen__mul(b->nrows, b->row_bytes[field], bytes))
		rc = pen__fail(err, P_BAD_DATA_VALUE, d->name,
			       "too large when padded; use shapes=ragged");
	return rc;
}

static int place_fields(struct pen_loader *l, struct pen_pooled *b,
			struct pen_err *err)
{
	const struct pen_pool *p = b->pool;
	const size_t rows = room_rows(l, b);
	size_t at = 0;

	for (uint32_t f = 0; f < p->nfields; f++) {
		const struct pen_field *d = &p->field[f];
		size_t bytes = rows * d->max_bytes;
		int rc = 0;

		if (d->layout != PEN_DENSE)
			rc = place_field(l, b, f, &bytes, err);
		if (rc)
			return rc;
		b->field_off[f] = at;
		at = (at + bytes + 63) & ~(size_t)63;
	}
	for (uint32_t i = 0; p->pack && p->nfields && i < 2; i++) {
		b->field_off[p->nfields + i] = at;
		at += (size_t)p->rows * p->pack * sizeof(int32_t);
		at = (at + 63) & ~(size_t)63;
	}
	/* ragged batches differ: their total is bounded here, where one more
	 * would exceed the budget */
	if (at > b->mem.cap && at > l->budget)
		return pen__fail(err, P_OVER_BUDGET, "memory",
				 "a batch needs %s, but the budget is %s; "
				 "raise memory= or lower batch_size=",
				 pen__show_bytes((double)at).s,
				 pen__show_bytes((double)l->budget).s);
	return pen__pool_reserve(b, at ? at : 1, err);
}

/* A unit for a run of neighbouring records around this one. */
static void chunk_of(const struct pen_loader *l, uint64_t sample,
		     uint32_t object, uint64_t k, struct pen_unit *unit)
{
	const struct pen_format *f = l->ds->format;
	const struct pen_index *ix = f->ix;
	uint64_t first = sample - k, c = l->sampler->chunk;
	uint64_t n = ix->per_object ? ix->per_object
				    : ix->first[object + 1] - first;
	uint64_t from = sample - sample % c, to = from + c;
	struct pen_unit last;

	if (from < first)
		from = first;
	if (to > first + n)
		to = first + n;
	f->ops->locate(f, object, from - first, unit);
	f->ops->locate(f, object, to - 1 - first, &last);
	unit->len = last.offset + last.len - unit->offset;
	unit->id = from;
	unit->flags = PEN_UNIT_SHARED;
}

/* The shared units of one sample; others get PEN_NO_OBJECT. */
static void shared_units(const struct pen_loader *l, uint64_t sample,
			 struct pen_unit *u)
{
	const struct pen_format *f = l->ds->format;
	uint32_t object;
	uint64_t k;

	pen__index_find(f->ix, sample, &object, &k);
	if (l->chunked) {
		chunk_of(l, sample, object, k, u);
		return;
	}
	f->ops->locate(f, object, k, u);
	for (uint32_t i = 0; i < f->units_per_sample; i++)
		if (!(u[i].flags & PEN_UNIT_SHARED))
			u[i].object = PEN_NO_OBJECT;
}

static uint64_t users_of(const struct pen_loader *l, uint64_t sample,
			 const struct pen_unit *u)
{
	const struct pen_format *f = l->ds->format;
	uint32_t object;
	uint64_t k;

	pen__index_find(f->ix, sample, &object, &k);
	return f->ops->users(f, object, k, u);
}

enum held { HELD_ALL, HELD_FULL, HELD_NEVER, HELD_NOMEM };

/* Holds the units of one sample. HELD_FULL: they would exceed limit, or the
 * lane is full, which a limit of units.most ignores. */
static enum held hold_sample(struct pen_loader *l, uint64_t sample,
			     struct pen_unit *u, uint64_t limit)
{
	uint32_t n = l->ds->format->units_per_sample;

	shared_units(l, sample, u);
	if (pen__units_again(&l->units, u, n))
		return HELD_ALL;
	if (!pen__units_fit(&l->units, u, n, limit) ||
	    (limit < l->units.most &&
	     atomic_load(&l->unit_tasks) + n >= l->unit_lane))
		return HELD_FULL;
	for (uint32_t i = 0; i < n; i++) {
		struct pen_live *live;
		bool fresh;

		if (u[i].object == PEN_NO_OBJECT)
			continue;
		if (pen__units_hold(&l->units, &u[i], &live, &fresh))
			return HELD_NOMEM;
		if (fresh && l->units.later_bytes)
			live->users = users_of(l, sample, &u[i]);
		if (fresh) {
			atomic_fetch_add(&l->unit_tasks, 1);
			pen__ring_push(l->ring, PEN_LANE_UNIT, &live->task);
		}
	}
	return HELD_ALL;
}

/*
 * Extends the holds from plan.held to `to` in that epoch. must: there is no
 * alternative; otherwise stops where the budget ends. Padding rows repeat the
 * start of the epoch and are held by the batch itself.
 */
static enum held hold_to(struct pen_loader *l, uint64_t to, bool must,
			 struct pen_unit *u, struct pen_err *err)
{
	struct pen_plan *p = &l->plan;
	enum held h = HELD_ALL;
	uint64_t id;
	bool ours;

	for (; h == HELD_ALL && p->held.pos < to; p->held.pos++) {
		if (l->steps->mine(l, p->held.pos, &ours, err))
			return HELD_NOMEM;
		if (!ours)
			continue;
		if (pen__steps_samples(l, p->held.epoch, p->held.pos, 1, &id,
				       err))
			return HELD_NOMEM;
		h = hold_sample(l, id, u,
				must ? l->units.most : l->unit_budget);
		if (h != HELD_ALL)
			break;
	}
	if (h == HELD_NOMEM)
		pen__fail_nomem(err, "shared units", 0);
	return h;
}

/* End of the sampler's window around pos, whose units are best fetched
 * together. */
static uint64_t window_end(const struct pen_loader *l, uint64_t epoch,
			   uint64_t pos)
{
	struct pen_sampler *s = l->sampler;
	uint64_t end;

	if (!s->window || pos >= l->length)
		return pos < l->length ? pos + 1 : l->length;
	end = s->ops->window_end(s, pen__order_of(l, epoch), pos);
	return end < l->length ? end : l->length;
}

/* Holds half as many units of the next window as this one has: that keeps the
 * threads busy, while all of them would double the memory for most of the time,
 * because a unit is freed only with its last row. */
static enum held hold_ahead(struct pen_loader *l, uint64_t to,
			    struct pen_unit *u, struct pen_err *err)
{
	enum held h = HELD_ALL;

	while (h == HELD_ALL && l->plan.held.pos < to &&
	       pen__units_held(&l->units) < l->plan.ahead)
		h = hold_to(l, l->plan.held.pos + 1, false, u, err);
	return h;
}

/*
 * Makes sure that all units of the batch [at.pos, end) are held and, as far as
 * memory allows, those of its windows and some of the next one.
 */
static enum held hold_batch(struct pen_loader *l, uint64_t end,
			    struct pen_unit *u, struct pen_err *err)
{
	struct pen_plan *p = &l->plan;
	uint64_t window;
	enum held h;

	if (p->held.epoch != p->at.epoch || p->held.pos < p->at.pos)
		p->held = p->at;
	h = hold_to(l, end, false, u, err);
	if (h == HELD_FULL && atomic_load(&l->planned))
		return h; /* other batches will finish and make room */
	if (h == HELD_FULL)
		h = hold_to(l, end, true, u, err);
	if (h == HELD_FULL) {
		pen__fail(err, P_OVER_BUDGET, "memory",
			  "the shared units of one batch need more than the %s "
			  "left for them; raise memory= or lower batch_size=",
			  pen__show_bytes((double)l->units.most).s);
		return HELD_NEVER;
	}
	if (h != HELD_ALL)
		return h;
	window = window_end(l, p->at.epoch, end - 1);
	h = hold_to(l, window, false, u, err);
	if (h == HELD_ALL && p->window != window) {
		p->window = window;
		p->ahead = pen__units_held(&l->units) * 3 / 2;
	}
	if (h == HELD_ALL && window < l->length && l->sampler->window)
		h = hold_ahead(l, window_end(l, p->at.epoch, window), u, err);
	return h == HELD_NOMEM ? h : HELD_ALL;
}

/* Finds the batch's units among the held ones and counts what is missing. */
static int attach_units(struct pen_loader *l, struct pen_pooled *b,
			uint64_t npadding, struct pen_unit *u,
			struct pen_err *err)
{
	uint32_t n = l->ds->format->units_per_sample;

	for (uint32_t r = 0; r < b->nrows; r++) {
		struct pen_live **live = b->live + (size_t)r * n;

		if ((b->extra ? b->extra[r] : r >= b->nrows - npadding) &&
		    hold_sample(l, b->ids[r], u, UINT64_MAX) != HELD_ALL)
			return pen__fail_nomem(err, "shared units", 0);
		shared_units(l, b->ids[r], u);
		if (pen__units_attach(&l->units, u, n, live, b))
			return pen__fail_nomem(err, "shared units", 0);
	}
	return 0;
}

/* Are neighbours in an object read together? */
static bool reads_runs(const struct pen_loader *l)
{
	return l->ds->format->all_plain && !l->shared &&
	       l->ds->ix.pub.per_object != 1 && !l->ds->store->by_range;
}

/*
 * Rows per grain: enough grains for all threads to share a batch, none so small
 * that taking it costs more than doing it. Returns the maximum; *few: from this
 * number on another thread should take the next rows, unless they come in the
 * same read. Until the first rows are done their cost is unknown: the store may
 * be remote.
 */
static uint64_t grain_rows(const struct pen_loader *l,
			   const struct pen_pooled *b, uint64_t *few)
{
	const uint64_t ns =
		atomic_load_explicit(&l->row_ns, memory_order_relaxed);
	const uint64_t share =
		(b->nrows + 2 * l->nthreads - 1) / (2 * l->nthreads);
	uint64_t bytes = 0, rows = share;

	for (uint32_t f = 0; f < b->pool->nfields; f++)
		bytes += b->pool->field[f].max_bytes;
	if (bytes && rows * bytes < GRAIN_BYTES)
		rows = GRAIN_BYTES / bytes + 1;
	/* one request for all rows, whatever they cost */
	if (l->ds->store->far)
		return *few = b->nrows;
	*few = ns ? rows : share;
	if (*few * ns > PEN_WORTH_NS)
		*few = ns < PEN_WORTH_NS ? PEN_WORTH_NS / ns : 1;
	return rows;
}

static void make_grains(struct pen_loader *l, struct pen_pooled *b)
{
	const bool runs = reads_runs(l);
	uint64_t few, most = grain_rows(l, b, &few);
	uint32_t at = 0, n;

	b->ngrains = 0;
	for (; at < b->nrows; at += n) {
		const uint32_t rest = b->nrows - at;

		n = few < rest ? (uint32_t)few : rest;
		while (runs && n < most && n < rest &&
		       b->ids[at + n] == b->ids[at + n - 1] + 1)
			n++;
		b->grain[b->ngrains++] = (struct pen_task){
			.batch = b,
			.first = at,
			.last = at + n,
		};
	}
}

static void deliver_error(struct pen_loader *l, struct pen_pooled *b,
			  const struct pen_err *err)
{
	l->plan.failed = true;
	b->fatal = true;
	b->err = *err;
	if (!b->err.code)
		pen__err_code(&b->err, PEN_ENOMEM);
	pen__order_put(l->order, b->pub.seq, b);
}

/* The request cannot be satisfied, but later ones can. Nothing is held for
 * it. */
static void refuse(struct pen_loader *l, struct pen_pooled *b,
		   const struct pen_step *s, const struct pen_err *err)
{
	const uint64_t seq = l->plan.seq;

	b->err = *err;
	l->steps->done(l, s);
	pen__order_put(l->order, seq, b);
}

static void park(struct pen_loader *l, struct pen_pooled *b)
{
	pen__pool_park(b);
	/* the last planned batch may have finished just before */
	if (!atomic_load(&l->planned))
		pen__pool_unpark(l->pool);
}

static void reset(struct pen_loader *l, struct pen_pooled *b,
		  const struct pen_step *s)
{
	b->pub.seq = l->plan.seq;
	b->pub.epoch = l->plan.at.epoch;
	b->pub.position = s->first;
	b->pub.nskipped = b->pub.nsubstituted = 0;
	b->nrows = s->n;
	b->counts = s->counts;
	b->last = s->last;
	b->nfaults = 0;
	b->fault_lost = false;
	b->err.code = 0;
	b->fatal = !s->alone;
	b->pub.end = s->end;
	atomic_store(&b->faulty, false);
	atomic_store_explicit(&b->gaps, false, memory_order_relaxed);
	atomic_store(&b->waiting, 1);
}

/* Rows at the end that repeat the start of the epoch. */
static uint64_t wrapped(const struct pen_loader *l, const struct pen_step *s)
{
	const uint64_t end = s->first + s->n;

	if (end <= l->length)
		return 0;
	return end - l->length < s->n ? end - l->length : s->n;
}

/* For a step that may fail alone: loads the rows whose units are all held, only
 * so that these holds are released. */
static enum held hold_less(struct pen_loader *l, struct pen_pooled *b,
			   struct pen_step *s, const struct pen_err *err)
{
	s->n = (uint32_t)(l->plan.held.pos - s->first);
	if (!s->alone || !s->n)
		return HELD_NEVER;
	reset(l, b, s);
	b->err = *err;
	return HELD_ALL;
}

/* Cuts the batch into grains, which are queued once its units have arrived. */
static void send(struct pen_loader *l, struct pen_pooled *b)
{
	const struct pen_format *f = l->ds->format;
	const uint32_t pieces = f->all_plain && !l->shared ? f->units_per_sample
							   : 1;

	make_grains(l, b);
	atomic_store(&b->left, b->nrows * pieces);
	atomic_fetch_add(&l->planned, 1);
	if (!b->nrows)
		pen__finish_batch(l, b);
	else if (atomic_fetch_sub(&b->waiting, 1) == 1)
		pen__batch_queue(l->ring, b);
}

void pen__plan_batch(struct pen_loader *l, struct pen_pooled *b)
{
	struct pen_step s = { .n = 0 };
	struct pen_err err = { 0 };
	struct pen_unit *u = l->plan_units;
	enum held h = HELD_ALL;
	int rc;

	if (l->plan.failed || !l->steps->advance(l))
		return; /* set aside until a seek restarts planning */
	if (pen__barrier_holds(l, b))
		return;
	rc = l->steps->next(l, b, &s, &err);
	if (rc == PEN_AGAIN)
		return; /* set aside until the next request */
	reset(l, b, &s);
	if (!rc)
		rc = l->steps->fill(l, b, &s, &err);
	if (!rc)
		rc = place_fields(l, b, &err);
	if (!rc && l->shared && !s.none)
		h = hold_batch(l, s.end, u, &err);
	if (h == HELD_FULL) {
		park(l, b);
		return;
	}
	if (h == HELD_NEVER)
		h = hold_less(l, b, &s, &err);
	if (s.alone && (rc || h == HELD_NEVER)) {
		refuse(l, b, &s, &err);
		return;
	}
	if (rc || h != HELD_ALL ||
	    (l->shared && attach_units(l, b, wrapped(l, &s), u, &err))) {
		deliver_error(l, b, &err);
		return;
	}
	l->steps->done(l, &s);
	send(l, b);
}
