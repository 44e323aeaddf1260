/*
 * See fetch.h. A sample with only PLAIN units is read straight into its row,
 * unit by unit. Any other sample is a job: all its units, read for it alone or
 * shared with others, must arrive before its format can make the row.
 */
#include "engine/fetch.h"

#include "engine/emit.h"
#include "engine/finish.h"
#include "engine/unpack.h"

static bool fits(const struct pen_field *d, const struct pen_unit *u,
		 size_t len, struct pen_err *err)
{
	if (u->len == len || d->layout == PEN_PADDED)
		return true;
	pen__fail(err, P_DAMAGED, NULL,
		  "has %llu bytes for the field '%s', but its shape needs %zu",
		  (unsigned long long)u->len, d->name, len);
	return false;
}

/* The row is padded, or only a piece of what is read. */
static bool needs_copy(const struct pen_pooled *b, uint32_t field, uint32_t row)
{
	return b->pool->field[field].layout == PEN_PADDED ||
	       pen__is_piece(b, field, row);
}

/* A sample with only PLAIN units: each is read on its own, merged with the
 * reads of the same field for earlier rows. */
static void fetch_plain(struct pen_worker *w, struct pen_pooled *b,
			uint32_t row, uint32_t object, uint64_t k)
{
	struct pen_unit *u = w->job->unit; /* scratch: no jobs in this mode */

	w->f->ops->locate(w->f, object, k, u);
	for (uint32_t i = 0; i < w->f->units_per_sample; i++, u++) {
		const struct pen_field *d = &b->pool->field[u->field];
		struct pen_slot **pending = &w->pending[i];
		struct pen_err err;
		uint8_t *dst;
		size_t len;

		if (u->object == PEN_NO_OBJECT || b->pool->hide[u->field]) {
			pen__rows_filled(w, b, row, 1);
			continue;
		}
		if (w->l->drops || (w->l->pool->crop.on &&
				    w->l->pool->crop.field == u->field)) {
			pen__slot_pend(w, pending,
				       pen__slot_row(w, b, row, u, NULL));
			(*pending)->drained = true;
			continue;
		}
		dst = pen__batch_row(b, u->field, row, &len);
		if (d->layout != PEN_DENSE && needs_copy(b, u->field, row)) {
			dst = NULL;
		} else if (u->len != len) {
			pen__err_reset(&err);
			fits(d, u, len, &err);
			pen__row_failed(w, b, row, &err);
			pen__rows_filled(w, b, row, 1);
			continue;
		}
		if (!dst || !pen__slot_grow(w, *pending, b, u, dst))
			pen__slot_pend(w, pending,
				       pen__slot_row(w, b, row, u, dst));
	}
}

static struct pen_job *job_take(struct pen_worker *w, struct pen_pooled *b,
				uint32_t row, uint32_t object, uint64_t k)
{
	struct pen_job *j = w->free_job;

	w->free_job = j->next;
	j->batch = b;
	j->row = row;
	j->object = object;
	j->k = k;
	j->left = 0;
	pen__err_reset(&j->err);
	return j;
}

/* No reads of the job are in flight: completes its row, unless it failed. */
static void job_end(struct pen_worker *w, struct pen_job *j)
{
	uint32_t n = w->f->units_per_sample;
	struct pen_pooled *b = j->batch;
	/* the loader is stopping and not everything was read: drop the row */
	const bool left = j->err.code == PEN_ECLOSED &&
			  atomic_load(&w->l->stopping);

	if (j->err.code && !left)
		pen__row_failed(w, b, j->row, &j->err);
	for (uint32_t i = 0; i < n; i++) {
		struct pen_slot *s = j->slot[i];

		j->slot[i] = NULL;
		if (s)
			pen__slot_release(w, s);
	}
	j->next = w->free_job;
	w->free_job = j;
	if (!left)
		pen__rows_filled(w, b, j->row, 1);
}

/* All units of the job have arrived. */
static void job_made(struct pen_worker *w, struct pen_job *j)
{
	pen__emit_sample(w, j);
	job_end(w, j);
}

/* A read for a job; NULL when the unit does not fit its row. */
static struct pen_slot *job_slot(struct pen_worker *w, struct pen_job *j,
				 const struct pen_unit *u)
{
	const struct pen_pool *p = j->batch->pool;
	uint8_t *dst = NULL;
	struct pen_slot *s;
	size_t len;

	if (u->flags & PEN_UNIT_PLAIN && !w->l->drops &&
	    !pen__staged(p, u->field) &&
	    !pen__is_piece(j->batch, u->field, j->row)) {
		dst = pen__batch_row(j->batch, u->field, j->row, &len);
		if (!fits(&p->field[u->field], u, len, &j->err))
			return NULL;
	}
	s = pen__slot_row(w, j->batch, j->row, u, dst);
	s->drained = w->l->drops;
	s->job = j;
	return s;
}

static void fetch_job(struct pen_worker *w, struct pen_pooled *b, uint32_t row,
		      uint32_t object, uint64_t k)
{
	uint32_t n = w->f->units_per_sample;
	struct pen_job *j = job_take(w, b, row, object, k);

	if (!w->l->chunked)
		w->f->ops->locate(w->f, object, k, j->unit);
	for (uint32_t i = 0; i < n; i++) {
		struct pen_live *live = b->live ? b->live[(size_t)row * n + i]
						: NULL;
		struct pen_slot *s;

		j->data[i] = (struct pen_span){ NULL, 0 };
		if (live) {
			j->data[i] = (struct pen_span){ live->mem.p, live->n };
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
	for (uint32_t i = 0; i < n; i++)
		if (j->slot[i])
			pen__slot_submit(w, j->slot[i]);
	if (!j->left)
		job_made(w, j);
}

void pen__fetch_row(struct pen_worker *w, struct pen_pooled *b, uint32_t row)
{
	uint32_t object;
	uint64_t k;

	pen__index_find(w->f->ix, b->ids[row], &object, &k);
	if (w->f->all_plain && !w->l->shared)
		fetch_plain(w, b, row, object, k);
	else
		fetch_job(w, b, row, object, k);
}

/* A read of the job finished, or failed with err. */
static void complete_job(struct pen_worker *w, struct pen_slot *s,
			 const struct pen_err *err)
{
	struct pen_job *j = s->job;

	if (err->code) {
		if (!j->err.code)
			j->err = *err;
	} else {
		j->data[s->index] = (struct pen_span){
			s->dst ? s->dst : (const uint8_t *)s->io.data + s->skew,
			s->unit.len
		};
	}
	if (--j->left == 0)
		job_made(w, j);
}

void pen__fetch_unit(struct pen_worker *w, struct pen_live *live)
{
	struct pen_slot *s = pen__slot_take(w);

	s->unit = live->unit;
	s->live = live;
	s->batch = NULL;
	s->drained = w->l->drops;
	if (!(live->unit.flags & PEN_UNIT_COMPRESSED) && !s->drained)
		s->dst = live->mem.p;
	pen__slot_submit(w, s);
}

static void complete_plain(struct pen_worker *w, struct pen_slot *s,
			   struct pen_err *err)
{
	struct pen_pooled *b = s->batch;

	if (!err->code && !s->dst && !s->drained) /* padded, or a piece */
		pen__emit_plain(b, &s->unit, s->row,
				(const uint8_t *)s->io.data + s->skew);
	for (uint32_t i = 0; err->code && i < s->nrows; i++)
		pen__row_failed(w, b, s->row + i, err);
	pen__rows_filled(w, b, s->row, s->nrows);
	pen__slot_release(w, s);
}

static void complete_unit(struct pen_worker *w, struct pen_slot *s,
			  struct pen_err *err)
{
	struct pen_live *live = s->live;

	if (!err->code && (s->unit.flags & PEN_UNIT_COMPRESSED) &&
	    !w->l->drops) {
		const struct pen_span raw = {
			(const uint8_t *)s->io.data + s->skew, s->unit.len
		};
		int rc = pen__unpack(w, live, raw, err);

		if (rc && !err->code)
			pen__err_code(err, rc);
	}
	pen__slot_release(w, s);
	pen__units_ready(&w->l->units, live, err->code ? err : NULL,
			 pen__batch_queue, w->l->ring);
	atomic_fetch_sub(&w->l->unit_tasks, 1);
}

/* The loader is stopping and pieces are still missing: with a large sample or a
 * slow store they could take minutes, and the batch will not be used. */
static void leave(struct pen_worker *w, struct pen_slot *s)
{
	const struct pen_err closed = { .code = PEN_ECLOSED,
					.number = P_CLOSED };

	if (s->job)
		complete_job(w, s, &closed);
	else
		pen__slot_release(w, s);
}

void pen__fetch_complete(struct pen_worker *w, struct pen_slot *s)
{
	struct pen_err err;
	int rc;

	pen__err_reset(&err);
	rc = pen__slot_take_in(w, s, &err);
	if (rc && !err.code)
		pen__err_code(&err, rc);
	if (!rc && s->at < s->unit.len && atomic_load(&w->l->stopping)) {
		leave(w, s);
	} else if (!rc && s->at < s->unit.len) { /* the next piece */
		const uint64_t before = w->inner_ns, t = pen__now_ns();

		/* a synchronous store reads it here, however long that takes */
		pen__slot_submit(w, s);
		pen__inner_end(w, &w->meter.read_ns, t, before);
	} else if (s->live) {
		complete_unit(w, s, &err);
	} else if (s->job) {
		complete_job(w, s, &err);
	} else {
		complete_plain(w, s, &err);
	}
}

void pen__fetch_lost(struct pen_worker *w, struct pen_slot *s)
{
	s->io.res = PEN_ESTALE;
	s->io.data = NULL;
	if (s->job && !s->job->left) { /* inside emit() */
		pen__io_error(w->q->st, &s->io, &s->job->err);
		job_end(w, s->job);
	} else { /* while it was checked */
		pen__fetch_complete(w, s);
	}
}
