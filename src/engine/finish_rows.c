/* Completed rows of one worker: counted in runs, because the counters are
 * shared with other workers. */
#include "engine/finish.h"

static void pieces_done(struct pen_loader *l, struct pen_pooled *b, uint32_t n)
{
	if (atomic_fetch_sub(&b->left, n) == n)
		pen__finish_batch(l, b);
}

/* A row with only PLAIN units is completed in one piece per unit. */
static void call_hook(struct pen_worker *w)
{
	const uint64_t before = w->inner_ns, t0 = pen__now_ns();
	uint32_t per_row = 1, n;

	if (w->f->all_plain && !w->l->shared)
		per_row = w->f->units_per_sample;
	w->unhooked += w->nfilled;
	n = w->unhooked / per_row;
	w->unhooked %= per_row;
	if (n)
		w->l->hook.rows(w->l->hook.arg, (unsigned)(w - w->l->worker),
				n);
	pen__inner_end(w, &w->meter.preprocess_ns, t0, before);
}

/* Completes rows of a batch in runs: counts them and releases their shared
 * units in one step, because both are shared with other workers. */
void pen__rows_flush(struct pen_worker *w)
{
	struct pen_pooled *b = w->filled;
	size_t units = w->f->units_per_sample;

	w->filled = NULL;
	if (!b)
		return;
	if (w->l->hook.rows)
		call_hook(w);
	pen__pass_counts(w);
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
