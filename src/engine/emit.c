/*
 * Samples that go through their format: all their units have to be there, read
 * for them alone or shared with others, before emit() can make the row.
 */
#include <string.h>

#include "base/rng.h"
#include "engine/fetch.h"

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

/* Bytes of a row before it is padded or cut. */
static int staged_len(struct pen_worker *w, const struct pen_job *j, uint32_t f,
		      struct pen_err *err)
{
	const struct pen_field *d = &w->f->field[f];
	int64_t own[PEN_MAX_DIMS], *shape = own;

	/* a piece has a shape of its own */
	if (j->batch->shapes[f] && !pen__row_cut(j->batch, f, j->row))
		shape = j->batch->shapes[f] + (size_t)j->row * d->ndim;
	else if (w->f->ops->shape && d->layout != PEN_DENSE)
		w->f->ops->shape(w->f, j->object, j->k, f, own);
	else
		memcpy(own, d->shape, sizeof(own));
	if (!pen__shape_bytes(shape, d->ndim, d->dtype, &w->dst_len[f]) ||
	    w->dst_len[f] > d->max_bytes)
		return pen__fail(err, PEN_EDATA, NULL,
				 "is larger than any sample indexed");
	return 0;
}

/* Every field's row for emit(); staged ones are made whole first. */
static int rows_of(struct pen_worker *w, const struct pen_job *j,
		   struct pen_err *err)
{
	struct pen_pool *p = j->batch->pool;
	uint8_t *pad = w->pad.p;

	for (uint32_t f = 0; f < p->nfields; f++) {
		w->dst[f] = pen__batch_row(j->batch, f, j->row, &w->dst_len[f]);
		if (!pen__staged(p, f) && !pen__row_cut(j->batch, f, j->row))
			continue;
		if (staged_len(w, j, f, err))
			return PEN_EDATA;
		w->dst[f] = pad;
		pad += pen__stage_bytes(&w->f->field[f]);
	}
	return 0;
}

/* PLAIN units among others: those not read straight into their row. */
static int place_plain(struct pen_worker *w, const struct pen_job *j,
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

static void unstage_rows(struct pen_worker *w, const struct pen_job *j)
{
	struct pen_pool *p = j->batch->pool;

	for (uint32_t f = 0; f < p->nfields; f++) {
		const struct pen_field *d = &p->field[f];
		size_t len;
		void *row;

		if (pen__row_cut(j->batch, f, j->row)) {
			pen__cut_row(j->batch, f, j->row, w->dst[f],
				     w->dst_len[f]);
			continue;
		}
		if (!pen__staged(p, f) || p->hide[f])
			continue;
		if (d->layout == PEN_PADDED) {
			pen__pad_row(j->batch, f, j->row, w->dst[f]);
			continue;
		}
		row = pen__batch_row(j->batch, f, j->row, &len);
		pen__take_piece(&p->take, row, 0, w->dst[f], w->dst_len[f]);
		pen__take_end(&p->take, row, w->dst_len[f]);
	}
}

/* Lists that turned out shorter: of one axis, which is what shapes have. */
static void note_used(struct pen_worker *w, const struct pen_job *j)
{
	for (uint32_t f = 0; f < w->f->nfields; f++) {
		const struct pen_field *d = &j->batch->pool->field[f];

		if (w->used[f] >= w->dst_len[f])
			continue;
		w->dst_len[f] = w->used[f];
		/* cut to one shape by take=, or a piece, which looks itself */
		if (!j->batch->shapes[f] || pen__row_cut(j->batch, f, j->row))
			continue;
		j->batch->shapes[f][(size_t)j->row * d->ndim] =
			(int64_t)(w->used[f] /
				  pen_dtype_size(w->f->field[f].dtype));
		atomic_store_explicit(&j->batch->gaps, true,
				      memory_order_relaxed);
	}
}

/* What a row's randomness is keyed by. */
static uint64_t row_key(const struct pen_worker *w, const struct pen_job *j)
{
	const struct pen_pooled *b = j->batch;

	return pen__rng_key(pen__rng_key(w->l->ds->spec->seed, b->pub.epoch),
			    b->ids[j->row]);
}

/* In place of emit() for records out of a run we made up. */
static void emit_chunk(struct pen_worker *w, const struct pen_job *j)
{
	const struct pen_live *live = j->batch->live[j->row];
	struct pen_unit u;

	w->f->ops->locate(w->f, j->object, j->k, &u);
	memcpy(w->dst[u.field],
	       (const uint8_t *)live->mem.p + (u.offset - live->unit.offset),
	       u.len);
}

static void emit(struct pen_worker *w, struct pen_job *j)
{
	struct pen_row row = {
		.k = j->k,
		.object = j->object,
		.units = j->unit,
		.nunits = w->f->units_per_sample,
		.data = j->data,
		.dst = w->dst,
		.dst_len = w->dst_len,
		.used = w->used,
		.scratch = &w->scratch,
		.key = row_key(w, j),
	};
	struct pen_err *err = &j->err;

	if (err->code || w->l->drops || rows_of(w, j, err))
		return;
	memcpy(w->used, w->dst_len, w->f->nfields * sizeof(*w->used));
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
		note_used(w, j);
	}
	unstage_rows(w, j);
}

static void job_end(struct pen_worker *w, struct pen_job *j)
{
	uint32_t n = w->f->units_per_sample;
	struct pen_pooled *b = j->batch;
	/* not all of it was read because all stop: its row is left as it is */
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
	    !pen__row_cut(j->batch, u->field, j->row)) {
		dst = pen__batch_row(j->batch, u->field, j->row, &len);
		if (!pen__slot_fits(&p->field[u->field], u, len, &j->err))
			return NULL;
	}
	s = pen__slot_plain(w, j->batch, j->row, u, dst);
	s->drained = w->l->drops;
	s->job = j;
	return s;
}

/* A sample that goes through emit(). */
void pen__issue_job(struct pen_worker *w, struct pen_pooled *b, uint32_t row,
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
	if (!j->left) {
		emit(w, j);
		job_end(w, j);
		return;
	}
	/* the job could end inside the last submit: keep a hold on it */
	j->left++;
	for (uint32_t i = 0; i < n; i++)
		if (j->slot[i])
			pen__slot_submit(w, j->slot[i]);
	if (--j->left == 0) {
		emit(w, j);
		job_end(w, j);
	}
}

void pen__job_read(struct pen_worker *w, struct pen_slot *s,
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
	if (--j->left == 0) {
		emit(w, j);
		job_end(w, j);
	}
}

void pen__job_lost(struct pen_worker *w, struct pen_slot *s)
{
	s->io.res = PEN_ESTALE;
	pen__io_error(w->q->st, &s->io, &s->job->err);
	job_end(w, s->job);
}
