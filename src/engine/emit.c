/* Makes rows from bytes that have arrived: through the format, padded, or
 * cropped. */
#include <string.h>

#include "base/rng.h"
#include "engine/emit.h"

/* Bytes of a row before it is padded or cropped. */
static int staged_len(struct pen_worker *w, const struct pen_job *j, uint32_t f,
		      struct pen_err *err)
{
	const struct pen_field *d = &w->f->field[f];
	int64_t own[PEN_MAX_DIMS], *shape = own;

	/* a piece has a shape of its own */
	if (j->batch->shapes[f] && !pen__is_piece(j->batch, f, j->row))
		shape = j->batch->shapes[f] + (size_t)j->row * d->ndim;
	else if (w->f->ops->shape && d->layout != PEN_DENSE)
		w->f->ops->shape(w->f, j->object, j->k, f, own);
	else
		memcpy(own, d->shape, sizeof(own));
	if (!pen__shape_bytes(shape, d->ndim, d->dtype, &w->dst_len[f]) ||
	    w->dst_len[f] > d->max_bytes)
		return pen__fail(err, P_DAMAGED, NULL,
				 "larger than every sample in the index");
	return 0;
}

/* The destination of every field for emit(); staged rows are assembled
 * elsewhere first. */
static int rows_of(struct pen_worker *w, const struct pen_job *j,
		   struct pen_err *err)
{
	struct pen_pool *p = j->batch->pool;
	uint8_t *pad = w->pad.p;

	for (uint32_t f = 0; f < p->nfields; f++) {
		w->dst[f] = pen__batch_row(j->batch, f, j->row, &w->dst_len[f]);
		if (!pen__staged(p, f) && !pen__is_piece(j->batch, f, j->row))
			continue;
		if (staged_len(w, j, f, err))
			return PEN_EDATA;
		w->dst[f] = pad;
		pad += pen__stage_bytes(&w->f->field[f]);
	}
	return 0;
}

/* Copies PLAIN units that were not read straight into their row. */
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
			return pen__fail(err, P_DAMAGED, NULL,
					 "has %zu bytes, but %zu are needed",
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

		if (pen__is_piece(j->batch, f, j->row)) {
			pen__copy_piece(j->batch, f, j->row, w->dst[f],
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
		pen__crop_piece(&p->crop, row, 0, w->dst[f], w->dst_len[f]);
		pen__crop_end(&p->crop, row, w->dst_len[f]);
	}
}

/* Records lists that turned out shorter, in fields with one axis. */
static void note_used(struct pen_worker *w, const struct pen_job *j)
{
	for (uint32_t f = 0; f < w->f->nfields; f++) {
		const struct pen_field *d = &j->batch->pool->field[f];

		if (w->used[f] >= w->dst_len[f])
			continue;
		w->dst_len[f] = w->used[f];
		/* cropped by take=, or a piece, which checks its own length */
		if (!j->batch->shapes[f] || pen__is_piece(j->batch, f, j->row))
			continue;
		j->batch->shapes[f][(size_t)j->row * d->ndim] =
			(int64_t)(w->used[f] /
				  pen_dtype_size(w->f->field[f].dtype));
		atomic_store_explicit(&j->batch->gaps, true,
				      memory_order_relaxed);
	}
}

/* The key of a row's random numbers. */
static uint64_t row_key(const struct pen_worker *w, const struct pen_job *j)
{
	const struct pen_pooled *b = j->batch;

	return pen__rng_key(pen__rng_key(w->l->ds->spec->seed, b->pub.epoch),
			    b->ids[j->row]);
}

/* Replaces emit() for records of a run that the engine formed. */
static void emit_chunk(struct pen_worker *w, const struct pen_job *j)
{
	const struct pen_live *live = j->batch->live[j->row];
	struct pen_unit u;

	w->f->ops->locate(w->f, j->object, j->k, &u);
	memcpy(w->dst[u.field],
	       (const uint8_t *)live->mem.p + (u.offset - live->unit.offset),
	       u.len);
}

void pen__emit_sample(struct pen_worker *w, struct pen_job *j)
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
			pen__err_code(err, rc);
		if (rc)
			return;
		note_used(w, j);
	}
	unstage_rows(w, j);
}

void pen__emit_plain(const struct pen_pooled *b, const struct pen_unit *u,
		     uint32_t row, const uint8_t *src)
{
	if (b->pool->field[u->field].layout == PEN_PADDED)
		pen__pad_row(b, u->field, row, src);
	else
		pen__copy_piece(b, u->field, row, src, u->len);
}
