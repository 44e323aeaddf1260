/*
 * The training loop. One thread emulates all accelerators of a process: a step
 * hands each of them its batch, in turn, and lasts until the last one has
 * computed, because in training all wait for all (the exchange of gradients).
 * So a step costs one sleep with any number of accelerators, and the loader has
 * all CPUs.
 *
 * A batch is returned to the loader as soon as an accelerator has it: a real
 * one would have copied it to the device.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "emulate/data.h"
#include "emulate/draw.h"

/* Interval between checks for interrupts during compute. */
#define LOOK_NS 50000000

/* Time of all accelerators so far, for progress reports. */
struct spent {
	double compute_s, load_s;
};

struct loop {
	struct pen_run *r;
	struct pen_data *d;
	struct pen_phase *p; /* current block */
	const struct pen_time_spec *time;
	enum pen_phase_kind kind;
	unsigned epoch;
	uint64_t steps;	       /* steps to run */
	uint64_t step;	       /* steps done in this epoch */
	uint64_t before_block; /* steps in earlier blocks */
	uint64_t block_ns;     /* start of the block */
	bool begun;	       /* a batch of this epoch was requested */
	struct spent *spent;   /* over all epochs */
	uint64_t *free_at; /* without barrier: end of compute per accelerator */
	struct pen_io_delta before;
	struct pen_facts facts_before;
	/* of the block: time that the last accelerator waited for its batch,
	 * woke up late, or waited for other ranks */
	uint64_t wait_ns, late_ns, barrier_ns;
};

static void take_counts(const struct pen_loader *l, struct pen_io_delta *d)
{
	struct pen_self_io io;
	struct pen_stats s;

	pen_loader_stats(l, &s, sizeof(s));
	pen__self_io(&io);
	*d = (struct pen_io_delta){
		.payload_bytes = s.payload_bytes,
		.read_bytes = s.read_bytes,
		.nreads = s.nreads,
		.device_read_bytes = io.read_bytes,
		.device_write_bytes = io.write_bytes,
		.cpu_s = (double)pen__cpu_ns() / 1e9,
	};
}

static void subtract(struct pen_io_delta *a, const struct pen_io_delta *b)
{
	a->payload_bytes -= b->payload_bytes;
	a->read_bytes -= b->read_bytes;
	a->nreads -= b->nreads;
	a->device_read_bytes -= b->device_read_bytes;
	a->device_write_bytes -= b->device_write_bytes;
	a->cpu_s -= b->cpu_s;
}

/* Takes the counters of the loader, this thread and the machine. */
static void take_facts(const struct loop *o, struct pen_facts *f)
{
	const struct pen_record *r = &o->r->rec;
	struct pen_stats s;

	pen_loader_stats(o->d->l, &s, sizeof(s));
	pen__facts_init(f);
	pen__facts_of_loader(f, &s);
	pen__machine_facts(f, r->device, (unsigned)r->comm->local_size);
	f->v[PEN_THREADS_S] = f->v[PEN_SECONDS] * s.nthreads;
	f->v[PEN_BATCH_ROWS] = o->d->batch;
}

/* Reports progress. waited: ns spent waiting for the current batch. */
static int look(struct loop *o, uint64_t waited, struct pen_err *err)
{
	const bool train = o->kind == PEN_PHASE_TRAIN;
	struct pen_progress p = {
		.what = train ? "epoch" : "evaluation after epoch",
		.part = o->epoch,
		.parts = train ? (unsigned)o->r->c->train.epochs : 0,
		.done = o->step,
		.total = o->steps,
		.unit = "steps",
		.loader = o->d->l,
		.wait = train ? &o->r->rec.wait : NULL,
		.compute_s = o->spent->compute_s,
		.load_s = o->spent->load_s + (double)waited / 1e9,
	};

	return o->r->tick ? pen__run_tick(o->r, &p, err) : 0;
}

/* Emulates compute until the monotonic clock reads ns. */
static int compute(struct loop *o, uint64_t ns, struct pen_err *err)
{
	for (;;) {
		uint64_t now = pen__now_ns(), next = now + LOOK_NS;
		int rc = look(o, 0, err);

		if (rc || now >= ns)
			return rc;
		pen__wait_until(next < ns ? next : ns);
	}
}

/* Draws the compute time of the next step of an accelerator. */
static double draw(const struct loop *o, unsigned accel)
{
	const struct pen_run *r = o->r;
	uint64_t step = o->before_block + o->p->of[accel].n;
	uint64_t id = (step * r->rec.world + r->rec.first + accel) * 2 +
		      (o->kind == PEN_PHASE_EVAL);
	struct pen_rng g =
		pen__rng(pen__rng_key(r->c->train.seed, o->epoch), id);

	return pen__time_draw(o->time, &g);
}

/* Waits for the next batch, unless the run is to end. */
static int await(struct loop *o, struct pen_batch **b, struct pen_err *err)
{
	uint64_t waited = 0;
	int rc;

	while ((rc = pen_loader_next_within(o->d->l, LOOK_NS, b, err)) ==
	       PEN_AGAIN) {
		waited += LOOK_NS;
		rc = look(o, waited, err);
		if (rc)
			return rc;
	}
	if (rc < 0)
		pen__reader_err(err);
	return rc;
}

/* Fetches a batch for one accelerator. *at: time of arrival. */
static int fetch(struct loop *o, uint64_t *at, struct pen_err *err)
{
	struct pen_batch *b;
	int rc = await(o, &b, err);

	/* the loader first reports the end of the previous epoch */
	if (rc == PEN_END && !o->begun)
		rc = await(o, &b, err);
	o->begun = true;
	*at = pen__now_ns();
	if (rc == PEN_END)
		return pen__fail(
			err, P_DAMAGED, "dataset",
			"the epoch ended early because samples were skipped");
	if (!rc)
		pen_batch_unref(b);
	return rc;
}

static int note(struct loop *o, unsigned accel, uint64_t load_ns, double busy,
		struct pen_err *err)
{
	struct pen_record *r = &o->r->rec;

	if (!o->p->of[accel].n && !accel)
		o->p->first_batch_s = (double)load_ns / 1e9;
	if (pen__record_step(o->p, accel, (double)load_ns / 1e9, busy))
		return pen__fail_nomem(err, "steps", o->steps * 8);
	o->spent->compute_s += busy;
	o->spent->load_s += (double)load_ns / 1e9;
	if (o->kind != PEN_PHASE_TRAIN)
		return 0;
	pen__hist_add(&r->wait, load_ns);
	pen__hist_add(&r->step, load_ns + (uint64_t)(busy * 1e9));
	return 0;
}

/* One step of all accelerators; ends when the last one has computed, on every
 * rank. */
static int step_together(struct loop *o, struct pen_err *err)
{
	uint64_t t0 = pen__now_ns(), at = t0, end = 0, next;
	int rc = 0;

	for (unsigned a = 0; !rc && a < o->r->rec.naccel; a++) {
		double busy = draw(o, a);

		rc = fetch(o, &at, err);
		if (!rc)
			rc = note(o, a, at - t0, busy, err);
		next = at + (uint64_t)(busy * 1e9);
		end = next > end ? next : end;
	}
	o->wait_ns += at - t0;
	if (!rc)
		rc = compute(o, end, err);
	t0 = pen__now_ns();
	o->late_ns += t0 > end ? t0 - end : 0;
	rc = pen__run_agree(o->r, rc, err);
	o->barrier_ns += pen__now_ns() - t0;
	o->step += !rc;
	return rc;
}

/* The accelerator that is free first among those with steps left in this block.
 */
static unsigned first_free(const struct loop *o, uint64_t each)
{
	unsigned best = o->r->rec.naccel;

	for (unsigned a = 0; a < o->r->rec.naccel; a++)
		if (o->p->of[a].n < each && (best == o->r->rec.naccel ||
					     o->free_at[a] < o->free_at[best]))
			best = a;
	return best;
}

/* Without barrier: the accelerator that is free first gets the next batch. The
 * block ends when the last one has computed. */
static int steps_apart(struct loop *o, uint64_t to, struct pen_err *err)
{
	uint64_t n = o->r->rec.naccel, each = to - o->before_block, end = 0;
	int rc = 0;

	for (uint64_t i = 0; !rc && i < each * n; i++) {
		unsigned a = first_free(o, each);
		double busy = draw(o, a);
		uint64_t at = 0;

		rc = compute(o, o->free_at[a], err);
		if (!rc)
			rc = fetch(o, &at, err);
		if (!rc)
			rc = note(o, a, at - o->free_at[a], busy, err);
		if (rc)
			return rc;
		o->wait_ns += (at - o->free_at[a]) / n;
		o->free_at[a] = at + (uint64_t)(busy * 1e9);
		o->step = o->before_block + (i + 1) / n;
	}
	for (uint64_t a = 0; a < n; a++)
		end = o->free_at[a] > end ? o->free_at[a] : end;
	return compute(o, end, err);
}

/* Runs the current block up to step `to` of the epoch. */
static int run_steps(struct loop *o, uint64_t to, struct pen_err *err)
{
	int rc = 0;

	if (!o->r->c->train.barrier)
		return steps_apart(o, to, err);
	while (!rc && o->step < to)
		rc = step_together(o, err);
	return rc;
}

static int start_block(struct loop *o, unsigned block, struct pen_err *err)
{
	struct pen_run *r = o->r;

	o->p = pen__record_phase(&r->rec, o->kind, o->epoch, block);
	if (!o->p)
		return pen__fail_nomem(err, "steps", 0);
	if (o->kind == PEN_PHASE_TRAIN)
		pen__log(&r->log, "Starting block %u", block);
	o->before_block = o->step;
	o->wait_ns = o->late_ns = o->barrier_ns = 0;
	take_facts(o, &o->facts_before);
	take_counts(o->d->l, &o->before);
	/* data prefetched since the last block counts for this one */
	o->before.read_bytes = o->d->read_bytes;
	o->before.nreads = o->d->nreads;
	o->before.device_read_bytes = r->counted.read_bytes;
	o->before.device_write_bytes = r->counted.write_bytes;
	o->p->start = pen__unix_time();
	o->block_ns = pen__now_ns();
	for (unsigned a = 0; a < r->rec.naccel; a++)
		o->free_at[a] = o->block_ns;
	return 0;
}

static void log_block(struct loop *o)
{
	struct pen_run *r = o->r;
	struct pen_block_figures f;
	unsigned e = o->epoch, b = o->p->block;

	pen__log(&r->log, "Ending block %u - %zu steps completed in %.2f s", b,
		 o->p->of[0].n, o->p->seconds);
	pen__block_figures(r->c, o->p, 0, &f);
	pen__log(&r->log,
		 "Epoch %u - Block %u [Training] Accelerator Utilization [AU] "
		 "(%%): %.4f",
		 e, b, f.au);
	pen__log(&r->log,
		 "Epoch %u - Block %u [Training] Throughput (samples/second): "
		 "%.4f",
		 e, b, f.throughput * r->rec.world);
	pen__log(&r->log,
		 "Epoch %u - Block %u [Training] Computation time per step "
		 "(second): %.4f+/-%.4f (set value: {'mean': %g})",
		 e, b, f.compute_mean, f.compute_stdev,
		 pen__time_mean(o->time));
}

/* Computes the facts of the block. */
static void settle_facts(struct loop *o)
{
	struct pen_phase *p = o->p;
	struct pen_facts *f = &p->facts;
	double compute = 0;

	take_facts(o, f);
	pen__facts_since(f, &o->facts_before);
	f->training = true;
	snprintf(f->store, sizeof(f->store), "%s", o->r->rec.store);
	for (unsigned a = 0; a < o->r->rec.naccel; a++)
		for (size_t i = 0; i < p->of[a].n; i++)
			compute += (double)p->of[a].compute[i];
	/* only of the steps: taking the facts of many threads takes time */
	f->v[PEN_THREADS_S] *= p->seconds / f->v[PEN_SECONDS];
	f->v[PEN_SECONDS] = p->seconds;
	f->v[PEN_WAIT_S] = (double)o->wait_ns / 1e9;
	f->v[PEN_LATE_S] = (double)o->late_ns / 1e9;
	f->v[PEN_BARRIER_S] = (double)o->barrier_ns / 1e9;
	f->v[PEN_COMPUTE_S] = compute / o->r->rec.naccel;
	f->v[PEN_FIRST_S] = p->epoch == 1 && p->block == 1 ? p->first_batch_s
							   : 0;
}

static void end_block(struct loop *o)
{
	struct pen_io_delta *d = &o->p->io;

	o->p->end = pen__unix_time();
	o->p->seconds = (double)(pen__now_ns() - o->block_ns) / 1e9;
	take_counts(o->d->l, d);
	o->d->read_bytes = d->read_bytes;
	o->d->nreads = d->nreads;
	o->r->counted.read_bytes = d->device_read_bytes;
	o->r->counted.write_bytes = d->device_write_bytes;
	subtract(d, &o->before);
	settle_facts(o);
	if (o->kind == PEN_PHASE_TRAIN)
		log_block(o);
}

/* Runs all steps of an epoch, in blocks separated by checkpoints. */
static int train_epoch(struct loop *o, struct pen_err *err)
{
	struct pen_run *r = o->r;
	uint64_t every = o->steps; /* steps per block */
	bool by_step = r->ckpt && r->c->checkpoint.steps_between > 0;
	unsigned block = 1;
	int rc = start_block(o, block, err);

	if (by_step)
		every = (uint64_t)r->c->checkpoint.steps_between;
	while (!rc && o->step < o->steps) {
		uint64_t left = o->steps - o->step;

		rc = run_steps(o, o->step + (every < left ? every : left), err);
		if (rc || !by_step || every > left)
			continue;
		end_block(o);
		rc = pen__run_checkpoint(r, o->epoch, block, o->step, false,
					 err);
		o->p = NULL;
		if (!rc && o->step < o->steps)
			rc = start_block(o, ++block, err);
	}
	if (o->p)
		end_block(o);
	return pen__run_agree(r, rc, err);
}

static int evaluate(struct loop *o, struct pen_err *err)
{
	struct pen_run *r = o->r;
	struct pen_block_figures f;
	int rc;

	pen__log(&r->log, "Starting eval - %llu steps expected",
		 (unsigned long long)o->steps);
	rc = start_block(o, 1, err);
	if (rc)
		return rc;
	rc = run_steps(o, o->steps, err);
	end_block(o);
	rc = pen__run_agree(r, rc, err);
	pen__log(&r->log, "Ending eval - %llu steps completed in %.2f s",
		 (unsigned long long)o->step, o->p->seconds);
	pen__block_figures(r->c, o->p, 0, &f);
	pen__log(&r->log,
		 "Epoch %u [Eval] Accelerator Utilization [AU] (%%): %.4f",
		 o->epoch, f.au);
	pen__log(&r->log, "Epoch %u [Eval] Throughput (samples/second): %.4f",
		 o->epoch, f.throughput * r->rec.world);
	return rc;
}

/* Number of evaluations in the first `epochs` epochs. */
static uint64_t evals_in(const struct pen_config *c, uint64_t epochs)
{
	if (!c->workflow.evaluation || !c->dataset.num_files_eval)
		return 0;
	return pen__run_times(epochs, c->evaluation.eval_after_epoch,
			      c->evaluation.epochs_between_evals);
}

static bool eval_due(const struct pen_config *c, uint64_t epoch)
{
	return evals_in(c, epoch) > evals_in(c, epoch - 1);
}

static bool checkpoint_due(const struct pen_run *r, uint64_t epoch)
{
	uint64_t first = r->c->checkpoint.after_epoch,
		 every = r->c->checkpoint.epochs_between;

	return r->ckpt && r->c->checkpoint.steps_between < 0 &&
	       pen__run_times(epoch, first, every) >
		       pen__run_times(epoch - 1, first, every);
}

struct training {
	struct pen_run *r;
	struct pen_data train, eval;
	struct spent training, evaluating;
	uint64_t *free_at;
};

/* Discards batches that were prefetched for the next epoch: they were read with
 * the old state of the page cache. */
static int rewind_loader(struct pen_data *d, struct pen_err *err)
{
	struct pen_state at;

	if (!d->l)
		return 0;
	pen_loader_state(d->l, &at);
	return pen_loader_restore(d->l, &at, err);
}

static int clear_cache(struct training *t, struct pen_err *err)
{
	struct pen_run *r = t->r;
	int rc = 0;

	if (r->c->reader.page_cache != PEN_CACHE_KEEP) {
		rc = pen__data_drop_cache(r, r->rec.cache_state,
					  sizeof(r->rec.cache_state), err);
		rc = pen__run_agree(r, rc, err);
		if (!rc)
			rc = rewind_loader(&t->train, err);
		if (!rc)
			rc = rewind_loader(&t->eval, err);
	}
	return pen__run_agree(r, rc, err);
}

static int run_epoch(struct training *t, unsigned epoch, struct pen_err *err)
{
	struct pen_run *r = t->r;
	struct loop o = { .r = r,
			  .d = &t->train,
			  .kind = PEN_PHASE_TRAIN,
			  .time = &r->c->train.computation_time,
			  .epoch = epoch,
			  .steps = t->train.steps,
			  .spent = &t->training,
			  .free_at = t->free_at };
	size_t first = r->rec.nphases;
	double cached;
	uint64_t t0;
	int rc = pen__run_mark_epoch(r, epoch, err);

	if (!rc && epoch > 1)
		rc = clear_cache(t, err);
	if (rc)
		return rc;
	cached = pen_dataset_cached(pen_loader_dataset(t->train.l));
	if (r->c->train.total_training_steps > 0)
		pen__log(&r->log,
			 "Starting epoch %u: Overriding number of steps to "
			 "%llu.",
			 epoch, (unsigned long long)o.steps);
	else
		pen__log(&r->log, "Starting epoch %u: %llu steps expected",
			 epoch, (unsigned long long)o.steps);
	t0 = pen__now_ns();
	rc = train_epoch(&o, err);
	if (r->rec.nphases > first)
		r->rec.phase[first].cached_before = cached;
	if (!rc && checkpoint_due(r, epoch))
		rc = pen__run_checkpoint(r, epoch, 1, o.step, false, err);
	pen__log(&r->log, "Ending epoch %u - %llu steps completed in %.2f s",
		 epoch, (unsigned long long)o.step,
		 (double)(pen__now_ns() - t0) / 1e9);
	if (!rc && eval_due(r->c, epoch)) {
		struct loop e = { .r = r,
				  .d = &t->eval,
				  .kind = PEN_PHASE_EVAL,
				  .time = &r->c->evaluation.eval_time,
				  .epoch = epoch,
				  .steps = t->eval.steps,
				  .spent = &t->evaluating,
				  .free_at = t->free_at };

		rc = evaluate(&e, err);
	}
	r->rec.epoch[r->rec.nepochs - 1].end = pen__unix_time();
	return rc;
}

/* Opens both loaders; ranks start together. */
static int open_data(struct training *t, struct pen_err *err)
{
	struct pen_run *r = t->r;
	uint64_t epochs = r->c->train.epochs, evals, t0;
	int rc;

	evals = evals_in(r->c, epochs);
	rc = clear_cache(t, err);
	if (rc)
		return rc;
	pen__self_io(&r->counted);
	t0 = pen__now_ns();
	t->free_at = pen__calloc(r->rec.naccel, sizeof(*t->free_at));
	if (!t->free_at)
		rc = pen__fail_nomem(err, "accelerators", 0);
	if (!rc)
		rc = pen__data_open(&t->train, r, PEN_TRAIN, epochs, err);
	if (!rc && evals)
		rc = pen__data_open(&t->eval, r, PEN_VALID, evals, err);
	r->rec.open_s = (double)(pen__now_ns() - t0) / 1e9;
	return pen__run_agree(r, rc, err);
}

static void note_loader(struct training *t)
{
	struct pen_record *c = &t->r->rec;
	const struct pen_loader *l = t->train.l;
	const struct pen_dataset *ds = pen_loader_dataset(l);
	struct pen_loader_info how;
	struct pen_dataset_info what;
	struct pen_stats s;

	pen_loader_stats(l, &s, sizeof(s));
	c->steps_per_epoch = t->train.steps;
	c->eval_steps = t->eval.steps;
	c->nsamples_train = t->train.nsamples;
	c->nsamples_eval = t->eval.nsamples;
	c->data_bytes_train = t->train.nbytes;
	c->data_bytes_eval = t->eval.nbytes;
	c->buffer_peak = s.memory_peak_bytes;
	c->nthreads = s.nthreads;
	c->prefetch = s.prefetch;
	c->queue_depth = s.queue_depth;
	pen_loader_get_info(l, &how, sizeof(how));
	pen_dataset_get_info(ds, &what, sizeof(what));
	snprintf(c->store, sizeof(c->store), "%s", pen_dataset_store(ds));
	snprintf(c->store_reason, sizeof(c->store_reason), "%s",
		 what.store_reason);
	snprintf(c->sampler, sizeof(c->sampler), "%s", how.sampler);
}

/* Logs each line of a text as a warning. */
static void warn_lines(struct pen_log *log, struct pen_text *t)
{
	for (char *at = t->p, *end; at && *at; at = end) {
		end = at + strcspn(at, "\n");
		if (*end)
			*end++ = '\0';
		pen__log_warn(log, "%s", at);
	}
	pen__text_fini(t);
}

static void log_plan(const struct training *t)
{
	const struct pen_run *r = t->r;
	const struct pen_config *c = r->c;
	struct pen_log *log = (struct pen_log *)(uintptr_t)&r->log;
	struct pen_text misses = { 0 };

	pen__run_misses(c, t->train.steps, &misses);
	warn_lines(log, &misses);
	pen__log(log,
		 "Max steps per epoch: %llu = %llu * %llu / %llu / %u (samples "
		 "per file * num files / batch size / comm size)",
		 (unsigned long long)t->train.steps,
		 (unsigned long long)c->dataset.num_samples_per_file,
		 (unsigned long long)c->dataset.num_files_train,
		 (unsigned long long)c->reader.batch_size, r->rec.world);
	if (t->eval.l)
		pen__log(log,
			 "Steps per eval: %llu = %llu * %llu / %llu / %u "
			 "(samples per file * num files / batch size eval / "
			 "comm size)",
			 (unsigned long long)t->eval.steps,
			 (unsigned long long)c->dataset.num_samples_per_file,
			 (unsigned long long)c->dataset.num_files_eval,
			 (unsigned long long)c->reader.batch_size_eval,
			 r->rec.world);
	if (t->train.nsamples !=
	    c->dataset.num_samples_per_file * c->dataset.num_files_train)
		pen__log_warn(
			log,
			"The files contain %llu samples, not %llu files * "
			"%llu; all of them are used",
			(unsigned long long)t->train.nsamples,
			(unsigned long long)c->dataset.num_files_train,
			(unsigned long long)c->dataset.num_samples_per_file);
}

int pen__run_train(struct pen_run *r, struct pen_err *err)
{
	struct training t = { .r = r };
	int rc = open_data(&t, err);

	if (!rc) {
		note_loader(&t);
		log_plan(&t);
		pen__wait_init();
	}
	for (uint64_t e = 1; !rc && e <= r->c->train.epochs; e++)
		rc = run_epoch(&t, (unsigned)e, err);
	pen__wait_fini();
	if (t.train.l)
		note_loader(&t);
	pen__data_close(&t.train);
	pen__data_close(&t.eval);
	pen__free(t.free_at);
	return rc;
}
