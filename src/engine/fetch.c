/*
 * The workers. Each owns a queue into the store and a set of slots, one per
 * read in flight, and goes round: take tasks and issue reads while there are
 * free slots, then reap what is done and put it in place. With a synchronous
 * store a round is a group of reads followed by a group of copies, with an
 * asynchronous one the queue never runs dry.
 *
 * A unit that is its row as it is (PLAIN) is read straight into the batch.
 * Neighbouring rows become one read. Everything else is read into the slot's
 * buffer (or lent by the store) and handed to the format.
 */
#include <string.h>

#include "base/clock.h"
#include "base/guard.h"
#include "codec/deflate.h"
#include "engine/loader.h"

#define PREFETCH_LINES 4 /* the hardware follows on from there */

/* A sample that needs its format: all its units have to be there first. */
struct job {
	struct pen_pooled *batch;
	uint64_t k;
	uint32_t row, object;
	uint32_t left; /* reads under way */
	struct pen_unit *unit;
	struct pen_span *data;
	struct slot **slot; /* per unit: to be given back after emit */
	struct pen_err err; /* code != 0: this sample failed */
	struct job *next;
};

/* A read in flight. */
struct slot {
	struct pen_io io;
	struct pen_unit unit;
	struct pen_pooled *batch;
	struct job *job;
	struct pen_live *live;
	uint8_t *dst;	 /* where the bytes belong; NULL: they stay here */
	size_t skew;	 /* bytes before them, read for alignment */
	size_t raw_len;	 /* counted in the worker's raw_bytes */
	uint32_t row, nrows;
	uint32_t index;	 /* of the unit in its job */
	struct pen_block raw;
	struct slot *next;
};

struct pen_worker {
	struct pen_meter meter;
	struct pen_loader *l;
	const struct pen_format *f;
	struct pen_queue *q;
	struct pen_scratch scratch;
	struct slot *slot, *free, *pending;
	struct pen_io **done;
	struct job *job, *free_job;
	struct pen_block pad; /* one row before it is padded */
	uint64_t raw_bytes;   /* in slots' buffers under way */
	uint64_t raw_cap;     /* of all slots' buffers */
	uint32_t nslots, nfree, inflight;
	struct pen_task rows; /* the grain at hand; batch NULL: none */
	bool closed;
	uint32_t ndone;	      /* being completed: done[at] is next */
	volatile uint32_t at;
	/* of this round, passed on at its end: */
	uint64_t unpack_ns, nreads, read_bytes;
	struct pen_pooled *filled; /* this batch got nfilled more pieces */
	uint32_t first_filled, nfilled;
	void *dst[PEN_MAX_FIELDS];
	size_t dst_len[PEN_MAX_FIELDS];
};

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

/* Rows of a batch are completed in runs: counted, and their shared units given
 * back, in one step, because both are shared with the other workers. */
static void flush_filled(struct pen_worker *w)
{
	struct pen_pooled *b = w->filled;
	size_t units = w->f->units_per_sample;

	w->filled = NULL;
	if (!b)
		return;
	if (b->live)
		pen__units_release(&w->l->units,
				   b->live + w->first_filled * units,
				   w->nfilled * units);
	pieces_done(w->l, b, w->nfilled);
}

static void add_filled(struct pen_worker *w, struct pen_pooled *b, uint32_t row,
		       uint32_t n)
{
	if (w->filled != b ||
	    (b->live && row != w->first_filled + w->nfilled)) {
		flush_filled(w);
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

static void row_failed(struct pen_worker *w, struct pen_pooled *b, uint32_t row,
		       struct pen_err *err)
{
	name_error(w->l, b, row, err);
	pen__batch_fault(b, row, err);
}

static struct slot *slot_take(struct pen_worker *w)
{
	struct slot *s = w->free;

	w->free = s->next;
	w->nfree--;
	s->job = NULL;
	s->live = NULL;
	s->dst = NULL;
	s->skew = s->raw_len = 0;
	s->io.lent = NULL;
	return s;
}

static void slot_give(struct pen_worker *w, struct slot *s)
{
	s->next = w->free;
	w->free = s;
	w->nfree++;
}

static void release(struct pen_worker *w, struct slot *s)
{
	w->raw_bytes -= s->raw_len;
	if (w->raw_cap > w->l->raw_limit && s->raw.p) {
		w->raw_cap -= s->raw.cap;
		pen__pool_account(w->l->pool, -(int64_t)s->raw.cap);
		pen__block_fini(&s->raw);
	}
	if (s->io.lent && w->q->st->ops->release)
		w->q->st->ops->release(w->q, &s->io);
	slot_give(w, s);
}

static int prepare_raw(struct pen_worker *w, struct slot *s,
		       struct pen_err *err)
{
	size_t align = w->q->st->align > 1 ? w->q->st->align : 1;
	uint64_t from = s->unit.offset - s->unit.offset % align;
	size_t len, cap = s->raw.cap;

	s->skew = s->unit.offset - from;
	if (!pen__add(s->unit.len, s->skew + align - 1, &len))
		return pen__fail(err, PEN_EDATA, NULL, "unit is too large");
	len -= len % align;
	s->io.offset = from;
	s->io.len = len;
	if (w->q->st->lends)
		return 0;
	if (pen__block_reserve(&s->raw, len))
		return pen__fail_nomem(err, "read buffer", len);
	w->raw_cap += s->raw.cap - cap;
	pen__pool_account(w->l->pool, (int64_t)(s->raw.cap - cap));
	s->io.buf = s->raw.p;
	return 0;
}

/* Does the store take this range into this memory as it is? */
static bool aligned(const struct pen_store *st, const struct pen_io *io)
{
	uint64_t a = st->align;

	return a <= 1 || (io->offset % a == 0 && io->len % a == 0 &&
			  (uintptr_t)io->buf % a == 0);
}

/* Points the io at its destination, or at the slot's own buffer. */
static int prepare(struct pen_worker *w, struct slot *s, struct pen_err *err)
{
	s->io.object = s->unit.object;
	s->io.offset = s->unit.offset;
	s->io.len = s->unit.len;
	s->io.buf = s->dst;
	s->io.user = s;
	if (s->dst && (w->q->st->lends || aligned(w->q->st, &s->io)))
		return 0;
	return prepare_raw(w, s, err);
}

static void complete(struct pen_worker *w, struct slot *s);

static void fail_slot(struct pen_worker *w, struct slot *s, int code)
{
	s->io.res = code;
	s->io.data = NULL;
	complete(w, s);
}

static void prefetch_lent(const struct pen_io *io)
{
	const char *p = io->data;

	for (unsigned i = 0; p && i < PREFETCH_LINES && i * 64 < io->len; i++)
		__builtin_prefetch(p + (size_t)i * 64, 0, 0);
}

static void submit(struct pen_worker *w, struct slot *s)
{
	struct pen_err err = { 0 };

	if (prepare(w, s, &err)) {
		fail_slot(w, s, err.code);
		return;
	}
	if (s->io.buf == s->raw.p && s->raw.p) {
		s->raw_len = s->io.len;
		w->raw_bytes += s->raw_len;
	}
	w->nreads++;
	w->inflight++;
	/* slots never outnumber the queue's depth, so it is never full */
	w->q->st->ops->submit(w->q, &s->io);
	if (w->q->st->lends)
		prefetch_lent(&s->io);
}

static void flush(struct pen_worker *w)
{
	struct slot *s = w->pending;

	w->pending = NULL;
	if (s)
		submit(w, s);
}

/* Does this row follow on from the pending one, in the object and in memory? */
static bool follows(const struct slot *s, const struct pen_unit *u,
		    const struct pen_pooled *b, const uint8_t *dst)
{
	return s && s->batch == b && s->dst && s->unit.object == u->object &&
	       s->unit.offset + s->unit.len == u->offset &&
	       s->dst + s->unit.len == dst &&
	       !((s->unit.flags | u->flags) & PEN_UNIT_CRC32);
}

static bool fits_row(const struct pen_field *d, const struct pen_unit *u,
		     size_t len, struct pen_err *err)
{
	if (u->len == len || d->layout == PEN_PADDED)
		return true;
	pen__fail(err, PEN_EDATA, NULL,
		  "has %llu bytes for field %s, but its shape needs %zu",
		  (unsigned long long)u->len, d->name, len);
	return false;
}

static struct slot *plain_slot(struct pen_worker *w, struct pen_pooled *b,
			       uint32_t row, const struct pen_unit *u,
			       uint8_t *dst)
{
	struct slot *s = slot_take(w);

	s->unit = *u;
	s->batch = b;
	s->row = row;
	s->nrows = 1;
	s->dst = dst;
	return s;
}

/* A sample all of whose units are PLAIN: each goes on its own. */
static void issue_plain(struct pen_worker *w, struct pen_pooled *b,
			uint32_t row, uint32_t object, uint64_t k)
{
	struct pen_unit *u = w->job->unit; /* scratch: no jobs in this mode */

	w->f->ops->locate(w->f, object, k, u);
	for (uint32_t i = 0; i < w->f->units_per_sample; i++, u++) {
		const struct pen_field *d = &b->pool->field[u->field];
		struct pen_err err = { 0 };
		uint8_t *dst;
		size_t len;

		if (u->object == PEN_NO_OBJECT) {
			add_filled(w, b, row, 1);
			continue;
		}
		dst = pen__batch_row(b, u->field, row, &len);
		if (!fits_row(d, u, len, &err)) {
			row_failed(w, b, row, &err);
			add_filled(w, b, row, 1);
			continue;
		}
		if (d->layout == PEN_PADDED)
			dst = NULL;
		if (dst && follows(w->pending, u, b, dst)) {
			w->pending->unit.len += u->len;
			w->pending->nrows++;
			continue;
		}
		flush(w);
		w->pending = plain_slot(w, b, row, u, dst);
	}
}

static struct job *job_take(struct pen_worker *w, struct pen_pooled *b,
			    uint32_t row, uint32_t object, uint64_t k)
{
	struct job *j = w->free_job;

	w->free_job = j->next;
	j->batch = b;
	j->row = row;
	j->object = object;
	j->k = k;
	j->left = 0;
	j->err.code = 0;
	return j;
}

/* Every field's row for emit(); padded ones are made whole first. */
static int rows_of(struct pen_worker *w, const struct job *j,
		   struct pen_err *err)
{
	struct pen_pool *p = j->batch->pool;
	uint8_t *pad = w->pad.p;

	for (uint32_t f = 0; f < p->nfields; f++) {
		const struct pen_field *d = &p->field[f];
		int64_t *shape;

		w->dst[f] = pen__batch_row(j->batch, f, j->row,
					   &w->dst_len[f]);
		if (d->layout != PEN_PADDED)
			continue;
		shape = j->batch->shapes[f] + (size_t)j->row * d->ndim;
		if (!pen__shape_bytes(shape, d->ndim, d->dtype,
				      &w->dst_len[f]) ||
		    w->dst_len[f] > d->max_bytes)
			return pen__fail(err, PEN_EDATA, NULL,
					 "is larger than any sample indexed");
		w->dst[f] = pad;
		pad += d->max_bytes;
	}
	return 0;
}

/* PLAIN units among others: those not read straight into their row. */
static int place_plain(struct pen_worker *w, const struct job *j,
		       struct pen_err *err)
{
	for (uint32_t i = 0; i < w->f->units_per_sample; i++) {
		const struct pen_unit *u = &j->unit[i];
		const struct pen_span *s = &j->data[i];

		if (u->object == PEN_NO_OBJECT ||
		    !(u->flags & PEN_UNIT_PLAIN) || s->p == w->dst[u->field])
			continue;
		if (s->n != w->dst_len[u->field])
			return pen__fail(err, PEN_EDATA, NULL,
					 "has %zu bytes where %zu are needed",
					 s->n, w->dst_len[u->field]);
		memcpy(w->dst[u->field], s->p, s->n);
	}
	return 0;
}

static void pad_rows(struct pen_worker *w, const struct job *j)
{
	struct pen_pool *p = j->batch->pool;

	for (uint32_t f = 0; f < p->nfields; f++) {
		const struct pen_field *d = &p->field[f];
		size_t len;

		if (d->layout == PEN_PADDED)
			pen__pad_row(d, pen__batch_row(j->batch, f, j->row,
						       &len),
				     w->dst[f],
				     j->batch->shapes[f] +
					     (size_t)j->row * d->ndim);
	}
}

/* In place of emit() for records out of a run we made up. */
static void emit_chunk(struct pen_worker *w, const struct job *j)
{
	const struct pen_live *live = j->batch->live[j->row];
	struct pen_unit u;

	w->f->ops->locate(w->f, j->object, j->k, &u);
	memcpy(w->dst[u.field],
	       (const uint8_t *)live->mem.p + (u.offset - live->unit.offset),
	       u.len);
}

static void emit(struct pen_worker *w, struct job *j)
{
	struct pen_row row = {
		.k = j->k, .object = j->object, .units = j->unit,
		.nunits = w->f->units_per_sample, .data = j->data,
		.dst = w->dst, .dst_len = w->dst_len, .scratch = &w->scratch,
	};
	struct pen_err *err = &j->err;

	if (err->code || rows_of(w, j, err))
		return;
	if (w->l->chunked) {
		emit_chunk(w, j);
	} else {
		int rc = place_plain(w, j, err);

		if (!rc)
			rc = w->f->ops->emit(w->f, &row, err);
		if (rc && !err->code)
			err->code = rc;
		if (rc)
			return;
	}
	pad_rows(w, j);
}

static void job_end(struct pen_worker *w, struct job *j)
{
	uint32_t n = w->f->units_per_sample;
	struct pen_pooled *b = j->batch;

	if (j->err.code)
		row_failed(w, b, j->row, &j->err);
	for (uint32_t i = 0; i < n; i++) {
		struct slot *s = j->slot[i];

		j->slot[i] = NULL;
		if (s)
			release(w, s);
	}
	j->next = w->free_job;
	w->free_job = j;
	add_filled(w, b, j->row, 1);
}

/* A read for a job; NULL when the unit does not fit its row. */
static struct slot *job_slot(struct pen_worker *w, struct job *j,
			     const struct pen_unit *u)
{
	const struct pen_field *d = &j->batch->pool->field[u->field];
	uint8_t *dst = NULL;
	struct slot *s;
	size_t len;

	if (u->flags & PEN_UNIT_PLAIN && d->layout != PEN_PADDED) {
		dst = pen__batch_row(j->batch, u->field, j->row, &len);
		if (!fits_row(d, u, len, &j->err))
			return NULL;
	}
	s = plain_slot(w, j->batch, j->row, u, dst);
	s->job = j;
	return s;
}

/* A sample that goes through emit(). */
static void issue_job(struct pen_worker *w, struct pen_pooled *b, uint32_t row,
		      uint32_t object, uint64_t k)
{
	uint32_t n = w->f->units_per_sample;
	struct job *j = job_take(w, b, row, object, k);

	if (!w->l->chunked)
		w->f->ops->locate(w->f, object, k, j->unit);
	for (uint32_t i = 0; i < n; i++) {
		struct pen_live *live = b->live ? b->live[(size_t)row * n + i]
						: NULL;
		struct slot *s;

		j->data[i] = (struct pen_span){ NULL, 0 };
		if (live) {
			j->data[i] = (struct pen_span){
				live->mem.p, pen__unit_payload(&live->unit)
			};
			if (live->err.code && !j->err.code)
				j->err = live->err;
			continue;
		}
		if (w->l->chunked || j->unit[i].object == PEN_NO_OBJECT)
			continue;
		s = job_slot(w, j, &j->unit[i]);
		if (!s)
			continue;
		s->index = i;
		j->slot[i] = s;
		j->left++;
	}
	if (!j->left) {
		emit(w, j);
		job_end(w, j);
		return;
	}
	/* the job could end inside the last submit: keep a hold on it */
	j->left++;
	for (uint32_t i = 0; i < n; i++)
		if (j->slot[i])
			submit(w, j->slot[i]);
	if (--j->left == 0) {
		emit(w, j);
		job_end(w, j);
	}
}

static void issue_unit(struct pen_worker *w, struct pen_live *live)
{
	struct slot *s = slot_take(w);

	s->unit = live->unit;
	s->live = live;
	s->batch = NULL;
	if (!(live->unit.flags & PEN_UNIT_PACKED))
		s->dst = live->mem.p;
	submit(w, s);
}

/* What was read, checked: length and checksum. */
static int check_slot(struct pen_worker *w, struct slot *s, struct pen_err *err)
{
	const struct pen_unit *u = &s->unit;
	const uint8_t *p;
	uint32_t crc;

	if (s->io.res < 0 || (uint64_t)s->io.res < s->skew + u->len)
		return pen__io_error(w->q->st, &s->io, err);
	w->read_bytes += (uint64_t)s->io.res;
	p = (const uint8_t *)s->io.data + s->skew;
	if (s->dst && s->dst != p)
		memcpy(s->dst, p, u->len);
	if (!(u->flags & PEN_UNIT_CRC32))
		return 0;
	crc = pen__crc32(u->crc_seed, s->dst ? s->dst : p, u->len);
	if (crc == u->crc)
		return 0;
	return pen__fail(err, PEN_EDATA, NULL,
			 "checksum is %08x, but %08x is stored: the data is "
			 "damaged",
			 crc, u->crc);
}

static void complete_plain(struct pen_worker *w, struct slot *s)
{
	const struct pen_unit *u = &s->unit;
	struct pen_pooled *b = s->batch;
	struct pen_err err = { 0 };
	int rc = check_slot(w, s, &err);

	if (!rc && !s->dst) { /* a padded row */
		const struct pen_field *d = &b->pool->field[u->field];
		size_t len;

		pen__pad_row(d, pen__batch_row(b, u->field, s->row, &len),
			     (const uint8_t *)s->io.data + s->skew,
			     b->shapes[u->field] + (size_t)s->row * d->ndim);
	}
	for (uint32_t i = 0; rc && i < s->nrows; i++)
		row_failed(w, b, s->row + i, &err);
	add_filled(w, b, s->row, s->nrows);
	release(w, s);
}

static void complete_unit(struct pen_worker *w, struct slot *s)
{
	struct pen_live *live = s->live;
	struct pen_err err = { 0 };
	int rc = check_slot(w, s, &err);

	if (!rc && (s->unit.flags & PEN_UNIT_PACKED)) {
		struct pen_span raw = {
			(const uint8_t *)s->io.data + s->skew, s->unit.len
		};
		uint64_t t = pen__now_ns();

		rc = w->f->ops->unpack(w->f, &s->unit, raw, live->mem.p,
				       &w->scratch, &err);
		if (rc && !err.code)
			err.code = rc;
		w->unpack_ns += pen__now_ns() - t;
	}
	release(w, s);
	pen__units_ready(&w->l->units, live, rc ? &err : NULL, pen__plan_rows,
			 w->l);
	atomic_fetch_sub(&w->l->unit_tasks, 1);
}

static void complete_job(struct pen_worker *w, struct slot *s)
{
	struct job *j = s->job;
	struct pen_err err = { 0 };

	if (check_slot(w, s, &err)) {
		if (!j->err.code)
			j->err = err;
	} else {
		j->data[s->index] = (struct pen_span){
			s->dst ? s->dst
			       : (const uint8_t *)s->io.data + s->skew,
			s->unit.len
		};
	}
	if (--j->left == 0) {
		emit(w, j);
		job_end(w, j);
	}
}

static void complete(struct pen_worker *w, struct slot *s)
{
	if (s->live)
		complete_unit(w, s);
	else if (s->job)
		complete_job(w, s);
	else
		complete_plain(w, s);
}

static int complete_all(void *arg)
{
	struct pen_worker *w = arg;

	for (; w->at < w->ndone; w->at++)
		complete(w, w->done[w->at]->user);
	return 0;
}

static void lost_slot(struct pen_worker *w, struct slot *s)
{
	struct job *j = s->job;

	if (!j || j->left) { /* lost while it was checked */
		fail_slot(w, s, PEN_ESTALE);
		return;
	}
	s->io.res = PEN_ESTALE; /* lost inside emit() */
	pen__io_error(w->q->st, &s->io, &j->err);
	job_end(w, j);
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
	w->unpack_ns = 0;
	w->at = 0;
	if (w->q->st->lends)
		complete_guarded(w);
	else
		complete_all(w);
	flush_filled(w);
	t2 = pen__now_ns();
	pen__meter_add(&w->meter.nreads, w->nreads);
	pen__meter_add(&w->meter.read_bytes, w->read_bytes);
	w->nreads = w->read_bytes = 0;
	pen__meter_add(&w->meter.read_ns, t1 - t0);
	pen__meter_add(&w->meter.unpack_ns, w->unpack_ns);
	pen__meter_add(&w->meter.emit_ns, t2 - t1 - w->unpack_ns);
}

static bool room(const struct pen_worker *w)
{
	uint32_t need = w->f->units_per_sample;

	return w->nfree >= (need ? need : 1) &&
	       (w->raw_bytes < w->l->raw_limit || !w->inflight);
}

/* Issues rows of the grain at hand while there is room. */
static void issue_rows(struct pen_worker *w)
{
	struct pen_task *g = &w->rows;
	bool plain = w->f->all_plain && !w->l->shared;
	uint32_t object;
	uint64_t k;

	while (g->first < g->last && room(w)) {
		uint32_t row = g->first++;

		pen__index_find(w->f->ix, g->batch->ids[row], &object, &k);
		if (plain)
			issue_plain(w, g->batch, row, object, k);
		else
			issue_job(w, g->batch, row, object, k);
	}
	flush(w);
	flush_filled(w);
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
		struct pen_task *t;
		unsigned lane;
		uint64_t t0;

		if (!w->rows.batch) {
			t = next_task(w, &lane);
			if (!t)
				return;
			if (lane == PEN_LANE_PLAN) {
				do_plan(w, t);
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
			issue_unit(w, t->live);
		pen__meter_add(&w->meter.read_ns, pen__now_ns() - t0);
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
	}
	while (w->inflight)
		reap(w);
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
	rc = pen__queue_open(&w->q, l->ds->store, w->nslots, err);
	if (rc)
		return rc;
	for (uint32_t i = 0; i < w->f->nfields; i++)
		if (w->f->field[i].layout == PEN_PADDED)
			pad += w->f->field[i].max_bytes;
	if (pad && pen__block_init(&w->pad, pad))
		return pen__fail_nomem(err, "padded rows", pad);
	w->slot = pen__calloc(w->nslots, sizeof(*w->slot));
	w->done = pen__calloc(w->nslots, sizeof(*w->done));
	w->job = pen__calloc(w->nslots, sizeof(*w->job));
	if (!w->slot || !w->done || !w->job ||
	    pen__scratch_init(&w->scratch, w->f->scratch_size))
		return pen__fail_nomem(err, "worker", w->f->scratch_size);
	for (uint32_t i = 0; i < w->nslots; i++) {
		struct job *j = &w->job[i];

		slot_give(w, &w->slot[i]);
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
	for (uint32_t i = 0; w->job && i < w->nslots; i++) {
		pen__free(w->job[i].unit);
		pen__free(w->job[i].data);
		pen__free(w->job[i].slot);
	}
	pen__block_fini(&w->pad);
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
