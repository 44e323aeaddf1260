/*
 * When the last row of a batch is done: failed rows are handled by the on_error
 * policy, the tensors are described, and the batch takes its place in the
 * order.
 */
#include <string.h>

#include "engine/finish.h"

static void move_row(struct pen_pooled *b, uint32_t to, uint32_t from)
{
	struct pen_pool *p = b->pool;

	b->ids[to] = b->ids[from];
	for (uint32_t f = 0; f < p->nfields; f++) {
		const struct pen_field *d = &p->field[f];
		size_t len, to_len, size = pen_dtype_size(d->dtype);
		uint8_t *src = pen__batch_row(b, f, from, &len), *dst;

		if (d->layout == PEN_PACKED) {
			/* stays in place: the skipped row becomes padding */
			b->offsets[f][to] = b->offsets[f][from];
		} else if (d->layout == PEN_RAGGED) {
			/* only ever moves down: offsets below `to` are final */
			int64_t *o = b->offsets[f];

			memmove((uint8_t *)b->mem.p + b->field_off[f] +
					(size_t)o[to] * size,
				src, len);
			o[to + 1] = o[to] + (int64_t)(len / size);
		} else {
			dst = pen__batch_row(b, f, to, &to_len);
			memmove(dst, src, len);
		}
		if (d->layout != PEN_DENSE)
			memmove(b->shapes[f] + (size_t)to * d->ndim,
				b->shapes[f] + (size_t)from * d->ndim,
				d->ndim * sizeof(int64_t));
	}
}

/* Closes the gaps left by lists that are shorter than planned. Failed rows keep
 * their room and are settled later, like any other. */
static void close_gaps(struct pen_pooled *b)
{
	for (uint32_t f = 0; f < b->pool->nfields; f++) {
		const struct pen_field *d = &b->pool->field[f];
		const size_t size = pen_dtype_size(d->dtype);
		uint8_t *base = (uint8_t *)b->mem.p + b->field_off[f];
		int64_t *o = b->offsets[f], at, to = 0;

		if (d->layout != PEN_RAGGED || d->ndim != 1)
			continue;
		at = o[0];
		for (uint32_t i = 0; i < b->nrows; i++) {
			const int64_t n = b->shapes[f][i], next = o[i + 1];

			if (to != at)
				memmove(base + (size_t)to * size,
					base + (size_t)at * size,
					(size_t)n * size);
			o[i] = to;
			to += n;
			at = next;
		}
		o[b->nrows] = to;
	}
}

static void note_skipped(struct pen_loader *l, const struct pen_pooled *b)
{
	pthread_mutex_lock(&l->lock);
	for (uint32_t i = 0; i < b->nfaults; i++) {
		uint64_t at = l->nskipped_kept;

		if (at >= PEN_SKIPPED_KEPT)
			break;
		l->skipped[at] = b->fault[i];
		l->skipped_id[at] = b->ids[b->fault[i].row];
		l->nskipped_kept++;
	}
	pthread_mutex_unlock(&l->lock);
}

/* Removes failed rows; the others move up. Ragged offsets are read before they
 * are overwritten, because `to` never passes `from`. */
static void skip_rows(struct pen_loader *l, struct pen_pooled *b)
{
	uint32_t to = 0, bad = 0;

	for (uint32_t from = 0; from < b->nrows; from++) {
		if (bad < b->nfaults && b->fault[bad].row == from) {
			bad++;
			continue;
		}
		if (to != from)
			move_row(b, to, from);
		to++;
	}
	b->nrows = to;
	b->pub.nskipped = bad;
	atomic_fetch_add(&l->nskipped, bad);
}

static bool is_bad(const struct pen_pooled *b, uint32_t row)
{
	for (uint32_t i = 0; i < b->nfaults; i++)
		if (b->fault[i].row == row)
			return true;
	return false;
}

/* Failed rows repeat the nearest good row before them, or else after. In a
 * ragged batch, rows of different lengths cannot replace one another, so failed
 * rows are skipped. */
static void substitute_rows(struct pen_loader *l, struct pen_pooled *b)
{
	bool ragged = false;

	for (uint32_t f = 0; f < b->pool->nfields; f++)
		ragged = ragged || b->pool->field[f].layout >= PEN_RAGGED;
	if (ragged || b->nfaults == b->nrows) {
		skip_rows(l, b);
		return;
	}
	for (uint32_t i = 0; i < b->nfaults; i++) {
		uint32_t row = b->fault[i].row, from = row;

		while (from > 0 && is_bad(b, from))
			from--;
		while (is_bad(b, from))
			from++;
		move_row(b, row, from);
	}
	b->pub.nsubstituted = b->nfaults;
	atomic_fetch_add(&l->nsubstituted, b->nfaults);
}

static void settle_faults(struct pen_loader *l, struct pen_pooled *b)
{
	const struct pen_spec *s = l->ds->spec;
	uint64_t so_far =
		atomic_load(&l->nskipped) + atomic_load(&l->nsubstituted);

	if (b->fault_lost) {
		pen__fail_nomem(&b->err, "errors of a batch", 0);
		return;
	}
	/* neither is the fault of a sample */
	if (s->on_error == PEN_ON_FAIL || b->fault[0].err.code == PEN_ENOMEM ||
	    b->fault[0].err.code == PEN_ECLOSED) {
		b->err = b->fault[0].err;
		return;
	}
	note_skipped(l, b);
	if (s->max_errors && so_far + b->nfaults > s->max_errors) {
		b->err = b->fault[0].err;
		return;
	}
	if (s->on_error == PEN_ON_SKIP)
		skip_rows(l, b);
	else
		substitute_rows(l, b);
}

/* [rows, pack], like the tensors that locate the samples. */
static void describe_packed(const struct pen_pooled *b, struct pen_tensor *t,
			    enum pen_dtype dtype)
{
	const struct pen_pool *p = b->pool;

	t->dtype = dtype;
	t->layout = PEN_PACKED;
	t->ndim = 2;
	t->row_ndim = 1;
	t->shape[0] = p->rows;
	t->shape[1] = p->pack;
	t->nbytes = (size_t)p->rows * p->pack * pen_dtype_size(dtype);
}

static void describe_more(struct pen_pooled *b)
{
	const struct pen_pool *p = b->pool;

	for (uint32_t i = 0; i < 2; i++) {
		struct pen_tensor *t = &b->tensor[b->pub.ntensors++];

		t->name = p->more[i];
		t->data = (uint8_t *)b->mem.p + b->field_off[p->nfields + i];
		t->offsets = b->offsets[p->packed];
		t->shapes = b->shapes[p->packed];
		describe_packed(b, t, PEN_I32);
	}
}

static void describe_tensors(struct pen_pooled *b)
{
	b->pub.ntensors = 0;
	for (uint32_t f = 0; f < b->pool->nfields; f++) {
		const struct pen_field *d = &b->pool->field[f];
		struct pen_tensor *t = &b->tensor[b->pub.ntensors];
		size_t size = pen_dtype_size(d->dtype);

		if (b->pool->hide[f])
			continue;
		b->pub.ntensors++;
		t->name = d->name;
		t->data = (uint8_t *)b->mem.p + b->field_off[f];
		t->dtype = d->dtype;
		t->layout = d->layout;
		t->row_ndim = d->ndim;
		t->offsets = b->offsets[f];
		t->shapes = d->layout == PEN_DENSE ? NULL : b->shapes[f];
		t->pad_before = b->pool->fill[f].before;
		if (d->layout == PEN_RAGGED) {
			t->ndim = 1;
			t->shape[0] = b->offsets[f][b->nrows];
			t->nbytes = (size_t)t->shape[0] * size;
			continue;
		}
		if (d->layout == PEN_PACKED) {
			describe_packed(b, t, d->dtype);
			continue;
		}
		t->ndim = d->ndim + 1;
		t->shape[0] = b->nrows;
		memcpy(&t->shape[1], b->dims[f] ? b->dims[f] : d->shape,
		       d->ndim * sizeof(int64_t));
		t->nbytes = (size_t)b->nrows *
			    (b->dims[f] ? b->row_bytes[f] : d->max_bytes);
	}
	if (b->pool->pack && b->pool->nfields)
		describe_more(b);
}

/* Writes the label of each sample, if labels are delivered. */
static void fill_labels(const struct pen_loader *l, struct pen_pooled *b)
{
	const struct pen_choice *c = &l->choice;
	int64_t *to;

	if (!l->ds->label.on || l->drops)
		return;
	to = (void *)((uint8_t *)b->mem.p +
		      b->field_off[l->ds->format->nfields]);
	for (uint32_t i = 0; i < b->nrows; i++) {
		const uint64_t id = b->ids[i];

		to[i] = c->by_sample ? c->by_sample[id]
				     : c->labels[(id - c->start) / c->step];
		if (to[i] == PEN_NO_LABEL)
			to[i] = -1;
	}
}

void pen__finish_batch(struct pen_loader *l, struct pen_pooled *b)
{
	uint64_t seq = b->pub.seq;

	if (atomic_load_explicit(&b->gaps, memory_order_relaxed))
		close_gaps(b);
	if (atomic_load(&b->faulty))
		settle_faults(l, b);
	if (b->pool->pack && b->nrows)
		pen__pack_finish(b);
	if (!b->err.code)
		fill_labels(l, b);
	describe_tensors(b);
	b->pub.nsamples = b->nrows;
	pen__order_put(l->order, seq, b);
	atomic_fetch_sub(&l->planned, 1);
	if (l->shared)
		pen__pool_unpark(l->pool);
}
