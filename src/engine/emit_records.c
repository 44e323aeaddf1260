/*
 * The fast path for records of one size in memory that a store lends: no slots
 * and no units, only the place of each row, and a copy. Rows of 1 KiB from a
 * mapping are bound by memory latency, so a group of them is located first and
 * then copied in a tight loop, where the CPU keeps several copies in flight and
 * the next rows are prefetched.
 *
 * Errors (an object that ends early, a mapping that lost its file) fail their
 * rows as on the normal path.
 */
#include <string.h>

#include "base/guard.h"
#include "engine/emit.h"
#include "engine/finish.h"

#define GROUP 64
#define AHEAD 4 /* rows prefetched before they are copied */

struct pen_gather {
	struct pen_io io[GROUP];
	struct pen_io *done[GROUP];
	uint8_t *dst[GROUP];
	uint32_t row[GROUP + 1]; /* first row of each io, and the end */
	uint32_t n;
	volatile uint32_t at;
	uint32_t most;	    /* reads in a group: GROUP, or the queue's depth */
	uint64_t base, len; /* record k of an object is at base + k * len */
	uint32_t field;
};

bool pen__gather_fits(const struct pen_loader *l)
{
	const struct pen_format *f = l->ds->format;

	/* one blob: all objects have the same layout */
	return l->ds->store->lends && !l->ds->store->far && f->uniform &&
	       !l->drops && !l->pool->crop.on && !l->shared &&
	       f->ix->nblobs == 1 && f->nfields == 1 &&
	       f->field[0].layout == PEN_DENSE;
}

int pen__gather_new(struct pen_worker *w)
{
	struct pen_gather *g = pen__calloc(1, sizeof(*g));
	struct pen_unit u;

	if (!g)
		return PEN_ENOMEM;
	w->f->ops->locate(w->f, 0, 0, &u);
	g->base = u.offset;
	g->len = u.len;
	g->field = u.field;
	g->most = w->nslots < GROUP ? w->nslots : GROUP;
	w->gather = g;
	return 0;
}

/* Locates the next rows; neighbours become one io. */
static void locate(struct pen_worker *w, struct pen_gather *g,
		   struct pen_task *t)
{
	const struct pen_index *ix = w->f->ix;
	const uint64_t *ids = t->batch->ids;
	struct pen_io *io = NULL;
	uint32_t row = t->first, object;
	uint64_t k, offset;
	size_t len;
	uint8_t *dst = pen__batch_row(t->batch, g->field, row, &len);

	g->n = 0;
	for (; row < t->last; row++, dst += g->len) {
		pen__index_find(ix, ids[row], &object, &k);
		offset = g->base + k * g->len;
		if (io && io->object == object &&
		    io->offset + io->len == offset) {
			io->len += g->len;
			continue;
		}
		if (g->n == g->most)
			break;
		io = &g->io[g->n];
		io->object = object;
		io->offset = offset;
		io->len = g->len;
		io->lent = NULL;
		io->user = g->dst + g->n;
		g->dst[g->n] = dst;
		g->row[g->n++] = row;
	}
	g->row[g->n] = row;
	t->first = row;
}

static int copy(void *arg)
{
	struct pen_gather *g = arg;

	for (uint32_t i = g->at; i < g->at + AHEAD && i < g->n; i++)
		pen__ask_for_copy(g->io[i].data, g->io[i].len);
	for (uint32_t i = g->at; i < g->n; i++) {
		const struct pen_io *io = &g->io[i];

		g->at = i;
		if (i + AHEAD < g->n)
			pen__ask_for_copy(io[AHEAD].data, io[AHEAD].len);
		if (io->res == (int64_t)io->len)
			memcpy(g->dst[i], io->data, io->len);
	}
	return 0;
}

static void copy_guarded(struct pen_gather *g)
{
	bool lost = true;

	g->at = 0;
	while (lost && g->at < g->n) {
		pen__guard_run(copy, g, &lost);
		if (lost)
			g->io[g->at++].res = PEN_ESTALE;
	}
}

static void fail_rows(struct pen_worker *w, struct pen_pooled *b, uint32_t i)
{
	struct pen_gather *g = w->gather;
	struct pen_err err;

	pen__err_reset(&err);
	pen__io_error(w->q->st, &g->io[i], &err);
	for (uint32_t row = g->row[i]; row < g->row[i + 1]; row++)
		pen__row_failed(w, b, row, &err);
}

/* All rows of a grain, a group at a time. */
void pen__gather_rows(struct pen_worker *w, struct pen_task *t)
{
	const struct pen_store_ops *ops = w->q->st->ops;
	struct pen_gather *g = w->gather;
	uint64_t t0 = pen__now_ns(), t1, read_ns = 0, emit_ns = 0;
	uint32_t first = t->first;

	while (t->first < t->last) {
		locate(w, g, t);
		for (uint32_t i = 0; i < g->n; i++)
			ops->submit(w->q, &g->io[i]);
		for (uint32_t i = 0; i < g->n;)
			i += ops->reap(w->q, 1, g->done, GROUP);
		t1 = pen__now_ns();
		read_ns += t1 - t0;
		copy_guarded(g);
		for (uint32_t i = 0; i < g->n; i++) {
			const struct pen_io *io = &g->io[i];

			if (io->res != (int64_t)io->len)
				fail_rows(w, t->batch, i);
			else
				w->read_bytes += io->len;
			if (io->lent)
				ops->release(w->q, &g->io[i]);
		}
		w->nreads += g->n;
		t0 = pen__now_ns();
		emit_ns += t0 - t1;
	}
	w->rows_ns += read_ns + emit_ns;
	w->nrows += t->last - first;
	pen__meter_add(&w->meter.read_ns, read_ns);
	pen__meter_add(&w->meter.emit_ns, emit_ns);
	pen__rows_filled(w, t->batch, first, t->last - first);
	pen__rows_flush(w);
	pen__stage_end(w, &w->meter.emit_ns, t0);
}
