/*
 * Parts of result.json that need all ranks: figures per rank, and the run over
 * time. A million steps become a thousand points, so that the file stays small;
 * the files of DLIO have every step.
 */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "emulate/result.h"

static const double percent_at[PEN_NPERCENTILES] = { 50, 90, 99, 99.9, 100 };
static const char *const percent_name[PEN_NPERCENTILES] = { "p50", "p90", "p99",
							    "p99_9", "max" };

/* --- over time --- */

static int series_alloc(struct pen_run_series *s)
{
	double *v = pen__calloc(6 * s->n + 1, sizeof(*v));

	if (!v)
		return PEN_ENOMEM;
	s->count = v;
	s->at = v + s->n;
	s->load = v + 2 * s->n;
	s->compute = v + 3 * s->n;
	s->busy = v + 4 * s->n;
	s->load_max = v + 5 * s->n;
	return 0;
}

static void series_add(struct pen_run_series *s, const struct pen_record *r,
		       unsigned a)
{
	uint64_t step = 0;

	for (size_t i = 0; i < r->nphases; i++) {
		const struct pen_phase *p = &r->phase[i];
		struct pen_lay lay;
		double at = p->start - r->start;

		if (p->kind != PEN_PHASE_TRAIN)
			continue;
		lay = pen__lay_of(p, a);
		for (size_t k = 0; k < p->of[a].n; k++, step++) {
			double load = (double)p->of[a].load[k] * lay.scale,
			       work = (double)p->of[a].compute[k] * lay.scale;
			size_t b = (size_t)((double)step * (double)s->n /
					    (double)s->steps);

			b = b < s->n ? b : s->n - 1;
			s->count[b]++;
			s->at[b] += at;
			s->load[b] += load;
			s->compute[b] += work;
			s->busy[b] += load + work + lay.slack;
			s->load_max[b] = fmax(s->load_max[b], load);
			at += load + work + lay.slack;
		}
	}
}

static double longest(const struct pen_record *r)
{
	double most = 0;

	for (unsigned a = 0; a < r->naccel; a++) {
		double n = 0;

		for (size_t i = 0; i < r->nphases; i++)
			if (r->phase[i].kind == PEN_PHASE_TRAIN)
				n += (double)r->phase[i].of[a].n;
		most = fmax(most, n);
	}
	return most;
}

int pen__series(struct pen_run_series *s, const struct pen_record *r,
		struct pen_err *err)
{
	double steps = longest(r);
	int rc;

	*s = (struct pen_run_series){ 0 };
	rc = pen__comm_reduce(r->comm, &steps, 1, PEN_MAX, err);
	if (rc)
		return rc;
	s->steps = (uint64_t)steps;
	s->n = s->steps < PEN_POINTS ? (size_t)s->steps : PEN_POINTS;
	rc = series_alloc(s);
	if (rc)
		pen__fail_nomem(err, "series", 6 * s->n * sizeof(double));
	rc = pen__comm_agree(r->comm, rc, err);
	if (rc)
		goto fail;
	for (unsigned a = 0; a < r->naccel && s->n; a++)
		series_add(s, r, a);
	rc = pen__comm_reduce(r->comm, s->count, 5 * s->n, PEN_SUM, err);
	if (!rc)
		rc = pen__comm_reduce(r->comm, s->load_max, s->n, PEN_MAX, err);
	if (!rc)
		return 0;
fail:
	pen__series_fini(s);
	return rc;
}

void pen__series_fini(struct pen_run_series *s)
{
	pen__free(s->count);
	*s = (struct pen_run_series){ 0 };
}

void pen__series_json(struct pen_text *t, const struct pen_run_series *s)
{
	static const char *const column[] = { "t", "load_mean_s", "load_max_s",
					      "au" };

	pen__json_open(t, "series", '{');
	pen__json_int(t, "steps", s->steps);
	pen__json_num(t, "steps_per_point",
		      s->n ? (double)s->steps / (double)s->n : 0);
	for (size_t c = 0; c < 4; c++) {
		pen__json_open(t, column[c], '[');
		t->compact = true;
		for (size_t i = 0; i < s->n; i++) {
			double n = s->count[i] > 0 ? s->count[i] : 1;
			double au = s->busy[i] > 0
					    ? 100 * s->compute[i] / s->busy[i]
					    : 0;
			double v[] = { s->at[i] / n, s->load[i] / n,
				       s->load_max[i], au };

			pen__json_num(t, NULL, v[c]);
		}
		pen__json_close(t, ']');
		t->compact = false;
	}
	pen__json_close(t, '}');
}

/* --- ranks --- */

struct three {
	struct pen_hist load, compute, proc;
};

static uint64_t to_ns(double s)
{
	return s > 0 && s < 1e9 ? (uint64_t)(s * 1e9 + 0.5) : 0;
}

static void percentiles(const struct pen_hist *h, double *out)
{
	for (size_t i = 0; i < PEN_NPERCENTILES; i++)
		out[i] = (double)pen__hist_percentile(h, percent_at[i]) / 1e9;
}

static void add_delta(struct pen_io_delta *to, const struct pen_io_delta *d)
{
	to->payload_bytes += d->payload_bytes;
	to->read_bytes += d->read_bytes;
	to->nreads += d->nreads;
	to->device_read_bytes += d->device_read_bytes;
	to->device_write_bytes += d->device_write_bytes;
	to->written_bytes += d->written_bytes;
	to->cpu_s += d->cpu_s;
}

static void rank_block(struct pen_rank_figures *f, struct three *h,
		       const struct pen_record *r, const struct pen_phase *p)
{
	struct pen_block_figures b;

	f->train_s += p->seconds;
	for (unsigned a = 0; a < r->naccel; a++) {
		const struct pen_step_times *s = &p->of[a];

		pen__block_figures(r->c, p, a, &b);
		f->au += b.au * (double)s->n;
		f->steps += s->n;
		for (size_t i = 0; i < s->n; i++) {
			uint64_t load = to_ns((double)s->load[i]),
				 work = to_ns((double)s->compute[i]);

			pen__hist_add(&h->load, load);
			pen__hist_add(&h->compute, work);
			pen__hist_add(&h->proc, load + work);
		}
	}
}

static void rank_fill(struct pen_rank_figures *f, struct three *h,
		      const struct pen_record *r)
{
	bool begun = false;

	pen__hist_init(&h->load);
	pen__hist_init(&h->compute);
	pen__hist_init(&h->proc);
	f->rank = r->comm->rank;
	f->node = r->comm->node;
	f->first = r->first;
	f->naccel = r->naccel;
	f->peak_memory = r->peak_memory;
	f->buffer_peak = r->buffer_peak;
	for (size_t i = 0; i < r->nphases; i++) {
		const struct pen_phase *p = &r->phase[i];

		add_delta(&f->io, &p->io);
		f->checkpoint_bytes += p->bytes;
		if (p->kind != PEN_PHASE_TRAIN)
			continue;
		if (!begun)
			f->first_batch_s = p->first_batch_s;
		begun = true;
		rank_block(f, h, r, p);
	}
	if (f->steps)
		f->au /= (double)f->steps;
	percentiles(&h->load, f->load);
	percentiles(&h->compute, f->compute);
	percentiles(&h->proc, f->proc);
}

int pen__ranks_gather(const struct pen_record *r, struct pen_rank_figures **all,
		      struct pen_err *err)
{
	struct pen_rank_figures *mine = pen__calloc(1, sizeof(*mine));
	struct three *h = pen__alloc(1, sizeof(*h));
	size_t *len = pen__calloc((size_t)r->comm->size, sizeof(*len));
	void *got = NULL;
	int rc = 0;

	*all = NULL;
	if (!mine || !h || !len)
		rc = pen__fail_nomem(err, "ranks", sizeof(*h));
	rc = pen__comm_agree(r->comm, rc, err);
	if (!rc) {
		rank_fill(mine, h, r);
		rc = pen__comm_gather(r->comm, mine, sizeof(*mine), &got, len,
				      err);
		rc = pen__comm_agree(r->comm, rc, err);
	}
	if (rc)
		pen__free(got);
	else
		*all = got;
	pen__free(len);
	pen__free(h);
	pen__free(mine);
	return rc;
}

static void put_percentiles(struct pen_text *t, const char *key,
			    const double *v)
{
	const bool compact = t->compact;

	pen__json_open(t, key, '{');
	t->compact = true;
	for (size_t i = 0; i < PEN_NPERCENTILES; i++)
		pen__json_num(t, percent_name[i], v[i]);
	pen__json_close(t, '}');
	t->compact = compact;
}

void pen__ranks_json(struct pen_text *t, const struct pen_rank_figures *all,
		     int n)
{
	pen__json_open(t, "ranks", '[');
	for (int i = 0; i < n; i++) {
		const struct pen_rank_figures *f = &all[i];

		pen__json_open(t, NULL, '{');
		pen__json_int(t, "rank", (uint64_t)f->rank);
		pen__json_int(t, "host", (uint64_t)f->node);
		pen__json_int(t, "first_accelerator", f->first);
		pen__json_int(t, "accelerators", f->naccel);
		pen__json_num(t, "au", f->au);
		pen__json_int(t, "steps", f->steps);
		put_percentiles(t, "load_s", f->load);
		put_percentiles(t, "compute_s", f->compute);
		put_percentiles(t, "proc_s", f->proc);
		pen__json_num(t, "train_s", f->train_s);
		pen__json_num(t, "first_batch_s", f->first_batch_s);
		pen__json_num(t, "cpu_s", f->io.cpu_s);
		pen__json_int(t, "peak_memory_bytes", f->peak_memory);
		pen__json_int(t, "buffer_peak_bytes", f->buffer_peak);
		pen__json_int(t, "payload_bytes", f->io.payload_bytes);
		pen__json_int(t, "read_bytes", f->io.read_bytes);
		pen__json_int(t, "reads", f->io.nreads);
		pen__json_int(t, "device_read_bytes", f->io.device_read_bytes);
		pen__json_int(t, "device_write_bytes",
			      f->io.device_write_bytes);
		pen__json_int(t, "checkpoint_bytes", f->checkpoint_bytes);
		pen__json_close(t, '}');
	}
	pen__json_close(t, ']');
}

/* --- histograms --- */

/* The largest value of bucket i: see base/hist.c. */
static uint64_t bucket_end(unsigned i)
{
	const uint64_t sub = (uint64_t)1 << PEN_HIST_BITS;

	if (i < 2 * sub)
		return i;
	return ((sub + (i & (sub - 1)) + 1) << ((i >> PEN_HIST_BITS) - 1)) - 1;
}

void pen__hist_json(struct pen_text *t, const char *key,
		    const struct pen_hist *h)
{
	pen__json_open(t, key, '{');
	pen__json_int(t, "count", h->count);
	pen__json_num(t, "mean_ns",
		      h->count ? (double)h->sum / (double)h->count : 0);
	pen__json_int(t, "min_ns", h->count ? h->min : 0);
	for (size_t i = 0; i < PEN_NPERCENTILES; i++) {
		static const char *const name[PEN_NPERCENTILES] = {
			"p50_ns", "p90_ns", "p99_ns", "p99_9_ns", "max_ns"
		};

		pen__json_int(t, name[i],
			      pen__hist_percentile(h, percent_at[i]));
	}
	pen__json_open(t, "buckets", '[');
	t->compact = true;
	for (unsigned i = 0; i < PEN_HIST_N; i++) {
		if (!h->bucket[i])
			continue;
		pen__json_open(t, NULL, '[');
		pen__json_int(t, NULL, bucket_end(i));
		pen__json_int(t, NULL, h->bucket[i]);
		pen__json_close(t, ']');
	}
	pen__json_close(t, ']');
	t->compact = false;
	pen__json_close(t, '}');
}
