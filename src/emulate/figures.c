/*
 * Computes the figures of the job. Each rank fills rows of numbers; the rows of
 * all ranks are combined by sum and by maximum; the results are computed from
 * the combined rows, on every rank. So ranks may have any number of
 * accelerators, and a rank that was interrupted earlier simply adds less.
 */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "emulate/metrics.h"

#define MIB (1024.0 * 1024.0)
#define GIB (1024.0 * MIB)

/* --- rows of one rank --- */

/* An epoch of training, summed over ranks; ... */
enum {
	E_ACCELS, /* accelerators with at least one step */
	E_AU,
	E_RATE,
	E_DLIO_RATE,
	E_STEPS,
	E_LOAD,
	E_COMPUTE,
	E_SLACK,
	E_PAYLOAD,
	E_READ,
	E_NREADS,
	E_DEVICE_R,
	E_DEVICE_W,
	E_WRITTEN,
	E_CPU,
	E_FIRST, /* wait for the first batch */
	E_RANKS,
	E_CACHED, /* cached share before the epoch, of ranks that know it */
	E_CACHED_N,
	E_N
};
/* ... an evaluation; ... */
enum { V_ACCELS, V_AU, V_RATE, V_STEPS, V_PAYLOAD, V_READ, V_N };
/* ... a checkpoint. */
enum { K_BYTES, K_RANK0_S, K_RANK0_START, K_UNVERIFIED, K_EPOCH, K_BLOCK, K_N };

/* All rows in one allocation, then the values that are combined by maximum. */
struct rows {
	size_t nepochs, nevals, nsaves, nloads;
	double *v, *epoch, *eval, *save, *load; /* by sum */
	size_t n;
	double *max, *epoch_s, *save_s, *load_s, *train_s; /* by maximum */
	size_t nmax;
};

/* The counter of phases of a kind. */
static size_t *counter(struct rows *w, enum pen_phase_kind kind)
{
	return kind == PEN_PHASE_EVAL	? &w->nevals
	       : kind == PEN_PHASE_SAVE ? &w->nsaves
					: &w->nloads;
}

static int count_rows(struct rows *w, const struct pen_record *r,
		      struct pen_err *err)
{
	double n[4];
	int rc;

	for (size_t i = 0; i < r->nphases; i++) {
		const struct pen_phase *p = &r->phase[i];

		if (p->kind != PEN_PHASE_TRAIN)
			(*counter(w, p->kind))++;
		else if (p->epoch > w->nepochs)
			w->nepochs = p->epoch;
	}
	n[0] = (double)w->nepochs;
	n[1] = (double)w->nevals;
	n[2] = (double)w->nsaves;
	n[3] = (double)w->nloads;
	rc = pen__comm_reduce(r->comm, n, 4, PEN_MAX, err);
	if (rc)
		return rc;
	w->nepochs = (size_t)n[0];
	w->nevals = (size_t)n[1];
	w->nsaves = (size_t)n[2];
	w->nloads = (size_t)n[3];
	return 0;
}

static int alloc_rows(struct rows *w)
{
	w->n = w->nepochs * E_N + w->nevals * V_N + w->nsaves * K_N +
	       w->nloads * K_N;
	w->nmax = w->nepochs + w->nsaves + w->nloads + 1;
	w->v = pen__calloc(w->n + w->nmax, sizeof(*w->v));
	if (!w->v)
		return PEN_ENOMEM;
	w->epoch = w->v;
	w->eval = w->epoch + w->nepochs * E_N;
	w->save = w->eval + w->nevals * V_N;
	w->load = w->save + w->nsaves * K_N;
	w->max = w->v + w->n;
	w->epoch_s = w->max;
	w->save_s = w->epoch_s + w->nepochs;
	w->load_s = w->save_s + w->nsaves;
	w->train_s = w->load_s + w->nloads;
	return 0;
}

static void add_steps(double *e, const struct pen_phase *p, unsigned naccel)
{
	for (unsigned a = 0; a < naccel; a++) {
		const struct pen_step_times *s = &p->of[a];
		double load = 0, compute = 0;

		for (size_t i = 0; i < s->n; i++) {
			load += (double)s->load[i];
			compute += (double)s->compute[i];
		}
		e[E_STEPS] += (double)s->n;
		e[E_LOAD] += load;
		e[E_COMPUTE] += compute;
		e[E_SLACK] += fmax(0, p->seconds - load - compute);
	}
}

static void add_block(struct rows *w, const struct pen_record *r,
		      const struct pen_phase *p)
{
	double *e = w->epoch + (size_t)(p->epoch - 1) * E_N;
	const struct pen_io_delta *io = &p->io;

	add_steps(e, p, r->naccel);
	e[E_PAYLOAD] += (double)io->payload_bytes;
	e[E_READ] += (double)io->read_bytes;
	e[E_NREADS] += (double)io->nreads;
	e[E_DEVICE_R] += (double)io->device_read_bytes;
	e[E_DEVICE_W] += (double)io->device_write_bytes;
	e[E_WRITTEN] += (double)io->written_bytes;
	e[E_CPU] += io->cpu_s;
	if (!e[E_RANKS]) { /* the first block of the epoch */
		e[E_RANKS] = 1;
		e[E_FIRST] = p->first_batch_s;
		e[E_CACHED_N] = p->cached_before >= 0;
		e[E_CACHED] = fmax(0, p->cached_before);
	}
	w->epoch_s[p->epoch - 1] += p->seconds;
	*w->train_s += p->seconds;
}

/*
 * One epoch of an accelerator: AU is the mean of its blocks, weighted by steps;
 * samples/s is the samples of all windows divided by their time. DLIO uses the
 * weighted mean of rates.
 */
static void add_accel(double *e, const struct pen_record *r, unsigned epoch,
		      unsigned a)
{
	double steps = 0, au = 0, dlio = 0, samples = 0, seconds = 0;
	struct pen_block_figures f;

	for (size_t i = 0; i < r->nphases; i++) {
		const struct pen_phase *p = &r->phase[i];
		double n;

		if (p->kind != PEN_PHASE_TRAIN || p->epoch != epoch)
			continue;
		pen__block_figures(r->c, p, a, &f);
		n = (double)p->of[a].n;
		steps += n;
		au += n * f.au;
		dlio += n * f.dlio_throughput;
		samples += (double)f.steps * (double)r->c->reader.batch_size;
		seconds += f.seconds;
	}
	if (!(steps > 0))
		return;
	e[E_ACCELS]++;
	e[E_AU] += au / steps;
	e[E_DLIO_RATE] += dlio / steps;
	if (seconds > 0)
		e[E_RATE] += samples / seconds;
}

static void add_eval(struct rows *w, size_t k, const struct pen_record *r,
		     const struct pen_phase *p)
{
	double *v = w->eval + k * V_N;
	struct pen_block_figures f;

	for (unsigned a = 0; a < r->naccel; a++) {
		if (!p->of[a].n)
			continue;
		pen__block_figures(r->c, p, a, &f);
		v[V_ACCELS]++;
		v[V_AU] += f.au;
		v[V_RATE] += f.throughput;
		v[V_STEPS] += (double)p->of[a].n;
	}
	v[V_PAYLOAD] += (double)p->io.payload_bytes;
	v[V_READ] += (double)p->io.read_bytes;
}

static void add_ckpt(double *row, double *slowest, const struct pen_record *r,
		     const struct pen_phase *p)
{
	row[K_BYTES] = (double)p->bytes;
	row[K_UNVERIFIED] = !p->verified;
	*slowest = p->seconds;
	if (r->comm->rank)
		return;
	row[K_RANK0_S] = p->seconds;
	row[K_RANK0_START] = p->start;
	row[K_EPOCH] = p->epoch;
	row[K_BLOCK] = p->block;
}

static void fill_rows(struct rows *w, const struct pen_record *r)
{
	struct rows seen = { 0 };

	for (size_t i = 0; i < r->nphases; i++) {
		const struct pen_phase *p = &r->phase[i];
		size_t k = 0;

		if (p->kind != PEN_PHASE_TRAIN)
			k = (*counter(&seen, p->kind))++;
		switch (p->kind) {
		case PEN_PHASE_TRAIN:
			if (p->epoch)
				add_block(w, r, p);
			break;
		case PEN_PHASE_EVAL:
			add_eval(w, k, r, p);
			break;
		case PEN_PHASE_SAVE:
			add_ckpt(w->save + k * K_N, &w->save_s[k], r, p);
			break;
		case PEN_PHASE_LOAD:
			add_ckpt(w->load + k * K_N, &w->load_s[k], r, p);
			break;
		}
	}
	for (unsigned e = 1; e <= w->nepochs; e++)
		for (unsigned a = 0; a < r->naccel; a++)
			add_accel(w->epoch + (size_t)(e - 1) * E_N, r, e, a);
}

/* --- results from the combined rows --- */

static double *take(size_t n, bool *failed)
{
	double *p = pen__calloc(n ? n : 1, sizeof(*p));

	*failed |= !p;
	return p;
}

static int alloc_figures(struct pen_figures *f, const struct rows *w)
{
	bool bad = false;

	f->nepochs = w->nepochs;
	f->nevals = w->nevals;
	f->nsaves = w->nsaves;
	f->nloads = w->nloads;
	f->au = take(w->nepochs, &bad);
	f->throughput = take(w->nepochs, &bad);
	f->dlio_throughput = take(w->nepochs, &bad);
	f->io_rate = take(w->nepochs, &bad);
	f->dlio_io_rate = take(w->nepochs, &bad);
	f->eval_au = take(w->nevals, &bad);
	f->eval_throughput = take(w->nevals, &bad);
	f->save_s = take(w->nsaves, &bad);
	f->load_s = take(w->nloads, &bad);
	f->epoch = pen__calloc(w->nepochs + 1, sizeof(*f->epoch));
	f->save = pen__calloc(w->nsaves + 1, sizeof(*f->save));
	f->load = pen__calloc(w->nloads + 1, sizeof(*f->load));
	return bad || !f->epoch || !f->save || !f->load ? PEN_ENOMEM : 0;
}

static double share_cached(double device, double read)
{
	return read > 0 && device < read ? 1 - device / read : 0;
}

/* Converts samples/s to MiB/s with the mean size of a sample. */
static double mib_rate(double rate, double bytes, uint64_t samples)
{
	return samples ? rate * bytes / (double)samples / MIB : 0;
}

static struct pen_mean times(struct pen_mean m, double by)
{
	return (struct pen_mean){ m.mean * by, m.stdev * by };
}

static void add_io(struct pen_io_delta *io, const double *e)
{
	io->payload_bytes += (uint64_t)e[E_PAYLOAD];
	io->read_bytes += (uint64_t)e[E_READ];
	io->nreads += (uint64_t)e[E_NREADS];
	io->device_read_bytes += (uint64_t)e[E_DEVICE_R];
	io->device_write_bytes += (uint64_t)e[E_DEVICE_W];
	io->written_bytes += (uint64_t)e[E_WRITTEN];
	io->cpu_s += e[E_CPU];
}

static void settle_epoch(struct pen_figures *f, size_t i, const double *e,
			 const struct pen_record *r)
{
	struct pen_epoch_figures *g = &f->epoch[i];

	if (e[E_ACCELS] > 0)
		f->au[i] = e[E_AU] / e[E_ACCELS];
	f->throughput[i] = e[E_RATE];
	f->dlio_throughput[i] = e[E_DLIO_RATE];
	g->steps = (uint64_t)e[E_STEPS];
	g->samples = g->steps * r->c->reader.batch_size;
	g->payload_bytes = (uint64_t)e[E_PAYLOAD];
	g->read_bytes = (uint64_t)e[E_READ];
	g->nreads = (uint64_t)e[E_NREADS];
	g->device_read_bytes = (uint64_t)e[E_DEVICE_R];
	g->cpu_s = e[E_CPU];
	g->first_batch_s = e[E_RANKS] > 0 ? e[E_FIRST] / e[E_RANKS] : 0;
	g->cached_before = e[E_CACHED_N] > 0 ? e[E_CACHED] / e[E_CACHED_N] : -1;
	g->cached_share = share_cached(e[E_DEVICE_R], e[E_READ]);
	f->io_rate[i] = mib_rate(e[E_RATE], e[E_PAYLOAD], g->samples);
	f->dlio_io_rate[i] = e[E_DLIO_RATE] * (double)r->record_bytes / MIB;
	f->samples += g->samples;
	f->load_s_sum += e[E_LOAD];
	f->compute_s_sum += e[E_COMPUTE];
	f->slack_s_sum += e[E_SLACK];
	add_io(&f->io, e);
}

static void settle_training(struct pen_figures *f, const struct rows *w,
			    const struct pen_record *r)
{
	for (size_t i = 0; i < w->nepochs; i++) {
		settle_epoch(f, i, w->epoch + i * E_N, r);
		f->epoch[i].seconds = w->epoch_s[i];
	}
	f->au_all = pen__mean_of(f->au, f->nepochs);
	f->throughput_all = pen__mean_of(f->throughput, f->nepochs);
	f->dlio_throughput_all = pen__mean_of(f->dlio_throughput, f->nepochs);
	f->io_all = pen__mean_of(f->io_rate, f->nepochs);
	/* not per epoch: an epoch prefetches for the next one */
	f->read_io_all =
		times(f->throughput_all,
		      mib_rate(1, (double)f->io.read_bytes, f->samples));
	f->record_io_all =
		times(f->throughput_all, (double)r->record_bytes / MIB);
	f->dlio_io_all = pen__mean_of(f->dlio_io_rate, f->nepochs);
	f->au_met = f->au_all.mean >= 100 * r->c->au;
	f->payload_bytes = f->io.payload_bytes;
	f->read_bytes = f->io.read_bytes;
	f->nreads = f->io.nreads;
	f->device_read_bytes = f->io.device_read_bytes;
	f->cpu_s = f->io.cpu_s;
	f->train_s = *w->train_s;
	f->cached_share = share_cached((double)f->device_read_bytes,
				       (double)f->read_bytes);
	if (f->nepochs)
		f->first_batch_s = f->epoch[0].first_batch_s;
}

static int settle_evals(struct pen_figures *f, const struct rows *w,
			const struct pen_record *r)
{
	const double batch = (double)r->c->reader.batch_size_eval;
	double *io = pen__calloc(w->nevals + 1, sizeof(*io)), read = 0;
	uint64_t all = 0;

	if (!io)
		return PEN_ENOMEM;
	for (size_t i = 0; i < w->nevals; i++) {
		const double *v = w->eval + i * V_N;
		uint64_t samples = (uint64_t)(v[V_STEPS] * batch);

		if (v[V_ACCELS] > 0)
			f->eval_au[i] = v[V_AU] / v[V_ACCELS];
		f->eval_throughput[i] = v[V_RATE];
		io[i] = mib_rate(v[V_RATE], v[V_PAYLOAD], samples);
		read += v[V_READ];
		all += samples;
	}
	f->eval_au_all = pen__mean_of(f->eval_au, f->nevals);
	f->eval_throughput_all = pen__mean_of(f->eval_throughput, f->nevals);
	f->eval_io_all = pen__mean_of(io, f->nevals);
	f->eval_read_io_all =
		times(f->eval_throughput_all, mib_rate(1, read, all));
	f->eval_record_io_all =
		times(f->eval_throughput_all, (double)r->record_bytes / MIB);
	f->eval_au_met = f->eval_au_all.mean >= 100 * r->c->au;
	pen__free(io);
	return 0;
}

/* out: time, rate, DLIO's time, DLIO's rate */
static int settle_ckpts(struct pen_ckpt_figures *k, const double *row,
			const double *slowest, size_t n,
			const struct pen_record *r, struct pen_mean *out[4])
{
	double *v = pen__calloc(4 * n + 1, sizeof(*v));

	if (!v)
		return PEN_ENOMEM;
	for (size_t i = 0; i < n; i++, row += K_N) {
		double bytes = row[K_BYTES], gib;

		if (!(bytes > 0))
			bytes = (double)r->checkpoint_bytes;
		k[i] = (struct pen_ckpt_figures){
			.epoch = (unsigned)row[K_EPOCH],
			.block = (unsigned)row[K_BLOCK],
			.start = row[K_RANK0_START],
			.seconds = slowest[i],
			.dlio_seconds = row[K_RANK0_S],
			.bytes = (uint64_t)bytes,
			.verified = !(row[K_UNVERIFIED] > 0),
		};
		gib = bytes / GIB;
		v[i] = slowest[i];
		v[n + i] = slowest[i] > 0 ? gib / slowest[i] : 0;
		v[2 * n + i] = row[K_RANK0_S];
		/* DLIO divides the size that it counts by the time of rank 0 */
		gib = r->dlio_checkpoint_bytes / GIB;
		v[3 * n + i] = row[K_RANK0_S] > 0 ? gib / row[K_RANK0_S] : 0;
	}
	for (size_t j = 0; j < 4; j++)
		*out[j] = pen__mean_of(v + j * n, n);
	pen__free(v);
	return 0;
}

static int settle(struct pen_figures *f, const struct rows *w,
		  const struct pen_record *r)
{
	struct pen_mean *save[4] = { &f->save_time, &f->save_rate,
				     &f->dlio_save_time, &f->dlio_save_rate };
	struct pen_mean *load[4] = { &f->load_time, &f->load_rate,
				     &f->dlio_load_time, &f->dlio_load_rate };

	if (alloc_figures(f, w))
		return PEN_ENOMEM;
	settle_training(f, w, r);
	memcpy(f->save_s, w->save_s, w->nsaves * sizeof(*w->save_s));
	memcpy(f->load_s, w->load_s, w->nloads * sizeof(*w->load_s));
	if (settle_evals(f, w, r) ||
	    settle_ckpts(f->save, w->save, w->save_s, w->nsaves, r, save) ||
	    settle_ckpts(f->load, w->load, w->load_s, w->nloads, r, load))
		return PEN_ENOMEM;
	return 0;
}

/* Counts up to 2^53 are exact in a double: enough for the nanoseconds of a
 * hundred days. */
static int join_hist(struct pen_hist *out, const struct pen_hist *in,
		     struct pen_comm *comm, struct pen_err *err)
{
	const size_t n = PEN_HIST_N + 2;
	double edge[2], *v = pen__alloc(n, sizeof(*v));
	int rc = v ? 0 : pen__fail_nomem(err, "figures", n * sizeof(*v));

	pen__hist_init(out);
	rc = pen__comm_agree(comm, rc, err);
	if (rc)
		goto done;
	v[0] = (double)in->count;
	v[1] = (double)in->sum;
	for (size_t i = 0; i < PEN_HIST_N; i++)
		v[i + 2] = (double)in->bucket[i];
	/* the negated minimum is also combined by maximum */
	edge[0] = in->count ? (double)in->max : 0;
	edge[1] = in->count ? -(double)in->min : -INFINITY;
	rc = pen__comm_reduce(comm, v, n, PEN_SUM, err);
	if (!rc)
		rc = pen__comm_reduce(comm, edge, 2, PEN_MAX, err);
	if (rc || !(v[0] > 0))
		goto done;
	out->count = (uint64_t)v[0];
	out->sum = (uint64_t)v[1];
	out->max = (uint64_t)edge[0];
	out->min = (uint64_t)-edge[1];
	for (size_t i = 0; i < PEN_HIST_N; i++)
		out->bucket[i] = (uint64_t)v[i + 2];
done:
	pen__free(v);
	return rc;
}

/* --- verdict --- */

/* Sums the facts of all training blocks of this rank. */
static void sum_facts(const struct pen_record *r, struct pen_facts *out)
{
	bool any = false;

	pen__facts_init(out);
	for (size_t i = 0; i < r->nphases; i++) {
		const struct pen_phase *p = &r->phase[i];

		if (p->kind != PEN_PHASE_TRAIN)
			continue;
		if (any)
			pen__facts_join(out, &p->facts);
		else
			*out = p->facts;
		any = true;
	}
}

static void judge(struct pen_figures *f, const struct pen_record *r,
		  const struct pen_facts *rank)
{
	f->facts = rank[0];
	for (int i = 1; i < r->comm->size; i++)
		pen__facts_join(&f->facts, &rank[i]);
	f->facts.fed = f->compute_s_sum > 0 &&
		       (r->c->au > 0 ? f->au_met : f->au_all.mean >= 90);
	pen__verdict(&f->facts, rank, r->comm->size, &f->why);
}

static int find_why(struct pen_figures *f, const struct pen_record *r,
		    struct pen_err *err)
{
	size_t *len = pen__calloc((size_t)r->comm->size, sizeof(*len));
	struct pen_facts mine;
	void *all = NULL;
	int rc = len ? 0 : pen__fail_nomem(err, "ranks", 0);

	sum_facts(r, &mine);
	rc = pen__comm_agree(r->comm, rc, err);
	if (!rc)
		rc = pen__comm_gather(r->comm, &mine, sizeof(mine), &all, len,
				      err);
	if (!rc && all)
		judge(f, r, all);
	pen__free(all);
	pen__free(len);
	return pen__comm_agree(r->comm, rc, err);
}

int pen__figures(struct pen_figures *f, const struct pen_record *r,
		 struct pen_err *err)
{
	struct rows w = { 0 };
	int rc;

	memset(f, 0, sizeof(*f));
	rc = count_rows(&w, r, err);
	if (rc)
		return rc;
	rc = alloc_rows(&w);
	if (rc)
		pen__fail_nomem(err, "figures", w.n * sizeof(*w.v));
	rc = pen__comm_agree(r->comm, rc, err);
	if (rc)
		goto fail;
	fill_rows(&w, r);
	rc = pen__comm_reduce(r->comm, w.v, w.n, PEN_SUM, err);
	if (!rc)
		rc = pen__comm_reduce(r->comm, w.max, w.nmax, PEN_MAX, err);
	if (rc)
		goto fail;
	rc = settle(f, &w, r);
	if (rc)
		pen__fail_nomem(err, "figures", w.n * sizeof(*w.v));
	rc = pen__comm_agree(r->comm, rc, err);
	if (!rc)
		rc = join_hist(&f->wait, &r->wait, r->comm, err);
	if (!rc)
		rc = join_hist(&f->step, &r->step, r->comm, err);
	if (!rc)
		rc = find_why(f, r, err);
	if (!rc)
		goto done;
fail:
	pen__figures_fini(f);
done:
	pen__free(w.v);
	return rc;
}

void pen__figures_fini(struct pen_figures *f)
{
	pen__free(f->au);
	pen__free(f->throughput);
	pen__free(f->dlio_throughput);
	pen__free(f->io_rate);
	pen__free(f->dlio_io_rate);
	pen__free(f->eval_au);
	pen__free(f->eval_throughput);
	pen__free(f->save_s);
	pen__free(f->load_s);
	pen__free(f->epoch);
	pen__free(f->save);
	pen__free(f->load);
	memset(f, 0, sizeof(*f));
}
