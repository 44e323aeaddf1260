/* Figures compared with values computed by hand. */
#include "records.h"

#include "emulate/metrics.h"

static struct pen_config config;

/* n steps of load and compute each, in a block of `seconds` */
static void block(struct pen_record *r, int n, double load, double compute,
		  double seconds)
{
	struct pen_phase *p = pen__record_phase(r, PEN_PHASE_TRAIN, 1, 1);

	for (int i = 0; i < n; i++)
		CHECK_EQ(pen__record_step(p, 0, load, compute), 0);
	p->seconds = seconds;
}

static void windows(struct pen_comm *comm)
{
	struct pen_block_figures f;
	struct pen_record r;

	/* 1+1, then 4 x (0.5+1) = 8 s of steps in 8.4 s: a window of 6.4 s with
	 * 4 s of compute and 16 samples */
	record_make(&r, &config, comm);
	record_block(&r, 1, 1, 0.5, 0.4);
	pen__block_figures(&config, &r.phase[0], 0, &f);
	CHECK_NEAR(f.au, 62.5);
	CHECK_NEAR(f.throughput, 2.5);
	CHECK_NEAR(f.dlio_throughput, 1.875); /* (5 - 2) * 4 / 6.4 */
	CHECK_NEAR(f.seconds, 6.4);
	CHECK_NEAR(f.compute_mean, 1);
	CHECK_NEAR(f.compute_stdev, 0);
	CHECK(f.first == 1 && f.steps == 4 && !f.whole);
	/* also without the last step: 4.9 s with 3 steps */
	config.output.exclude_end_steps = 1;
	pen__block_figures(&config, &r.phase[0], 0, &f);
	CHECK_NEAR(f.au, 300 / 4.9);
	CHECK_NEAR(f.throughput, 12 / 4.9);
	CHECK_NEAR(f.dlio_throughput,
		   12 / 4.9); /* where the constant 2 is right */
	/* no step excluded */
	config.output.exclude_end_steps = 0;
	config.output.exclude_start_steps = 0;
	pen__block_figures(&config, &r.phase[0], 0, &f);
	CHECK_NEAR(f.au, 500 / 8.4);
	CHECK_NEAR(f.throughput, 20 / 8.4);
	CHECK_NEAR(f.dlio_throughput, 12 / 8.4);
	/* a number that would overflow in a sum */
	config.output.exclude_start_steps = UINT64_MAX;
	config.output.exclude_end_steps = 5;
	pen__block_figures(&config, &r.phase[0], 0, &f);
	CHECK(f.whole && f.steps == 5);
	CHECK_NEAR(f.au, 500 / 8.4);
	config.output.exclude_start_steps = 1;
	config.output.exclude_end_steps = 0;
	pen__record_fini(&r);
}

static void few_steps(struct pen_comm *comm)
{
	struct pen_block_figures f;
	struct pen_record r;

	record_make(&r, &config, comm);
	block(&r, 2, 0.5, 0.5, 2.25);
	block(&r, 1, 0.5, 0.5, 1.25);
	block(&r, 0, 0, 0, 1);
	/* two steps: a window of one, 1.25 s; DLIO reports 0 samples */
	pen__block_figures(&config, &r.phase[0], 0, &f);
	CHECK_NEAR(f.au, 40);
	CHECK_NEAR(f.throughput, 3.2);
	CHECK_NEAR(f.dlio_throughput, 0);
	CHECK(!f.whole);
	/* one step: excluding it would leave none, so it is included; the
	 * formula of DLIO becomes negative, (1 - 2) * 4 / (1.25 - 1) */
	pen__block_figures(&config, &r.phase[1], 0, &f);
	CHECK_NEAR(f.au, 40);
	CHECK_NEAR(f.throughput, 3.2);
	CHECK_NEAR(f.dlio_throughput, 0);
	CHECK(f.whole);
	/* no steps */
	pen__block_figures(&config, &r.phase[2], 0, &f);
	CHECK(f.au == 0 && f.throughput == 0 && f.dlio_throughput == 0);
	pen__record_fini(&r);
}

static void clocks(struct pen_comm *comm)
{
	struct pen_block_figures f;
	struct pen_record r;

	/* a block shorter than its steps, compute only */
	record_make(&r, &config, comm);
	block(&r, 5, 0, 1, 4.5);
	pen__block_figures(&config, &r.phase[0], 0, &f);
	CHECK_NEAR(f.au, 100);
	CHECK_NEAR(f.throughput, 4);
	block(&r, 5, 0, 0, 0); /* no time at all */
	pen__block_figures(&config, &r.phase[1], 0, &f);
	CHECK(f.au == 0 && f.throughput == 0 && f.dlio_throughput == 0);
	block(&r, 5, 1, 0, 5); /* no compute */
	pen__block_figures(&config, &r.phase[2], 0, &f);
	CHECK(f.au == 0);
	CHECK_NEAR(f.throughput, 4);
	pen__record_fini(&r);
}

static void evaluation(struct pen_comm *comm)
{
	struct pen_block_figures f;
	struct pen_phase *p;
	struct pen_record r;

	record_make(&r, &config, comm);
	p = pen__record_phase(&r, PEN_PHASE_EVAL, 1, 1);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(pen__record_step(p, 0, 0.5, 0.5), 0);
	p->seconds = 5;
	/* AU over 3 steps and 4 s; samples/s over all steps, as DLIO */
	pen__block_figures(&config, p, 0, &f);
	CHECK_NEAR(f.au, 37.5);
	CHECK_NEAR(f.throughput, 1.6);
	CHECK_NEAR(f.dlio_throughput, 1.6);
	pen__record_fini(&r);
}

/* Epoch 1: blocks of 62.5 % and 100/1.5 %, 5 steps each. Epoch 2: 62.5 %. */
static bool fill(struct pen_record *r)
{
	struct pen_phase *p;

	if (!record_block(r, 1, 1, 0.5, 0.4) ||
	    !record_ckpt(r, PEN_PHASE_SAVE, 1, 2 + r->comm->rank) ||
	    !record_block(r, 1, 2, 0.5, 0))
		return false;
	p = pen__record_phase(r, PEN_PHASE_EVAL, 1, 1);
	for (unsigned a = 0; p && a < r->naccel; a++)
		for (int i = 0; i < 4; i++)
			if (pen__record_step(p, a, 0.5, 0.5))
				return false;
	if (!p)
		return false;
	p->seconds = 5;
	p->io.payload_bytes = 8 * 1048576 * r->naccel;
	p->io.read_bytes = 24 * 1048576 * r->naccel;
	if (!record_ckpt(r, PEN_PHASE_SAVE, 2, 4 + r->comm->rank) ||
	    !record_block(r, 2, 1, 0.5, 0.4) ||
	    !record_ckpt(r, PEN_PHASE_LOAD, 1, 1))
		return false;
	r->checkpoint_bytes = (uint64_t)r->comm->size << 30;
	r->dlio_checkpoint_bytes = 0x1p31;
	r->record_bytes = 2 * 1048576;
	for (uint64_t i = 1; i <= 10; i++)
		pen__hist_add(&r->wait, i * 10 + (uint64_t)r->comm->rank);
	return true;
}

/* accels: of all ranks */
static void check_figures(const struct pen_figures *f, unsigned accels,
			  int ranks)
{
	/* 32 samples in 6.4 + 6 s of windows, and 16 in 6.4 */
	const double rate1 = 32 / 12.4 * accels, rate2 = 2.5 * accels,
		     au1 = (62.5 + 200 / 3.0) / 2;

	CHECK_EQ(f->nepochs, 2);
	CHECK_NEAR(f->au[0], au1);
	CHECK_NEAR(f->au[1], 62.5);
	CHECK_NEAR(f->au_all.mean, (au1 + 62.5) / 2);
	CHECK_NEAR(f->au_all.stdev, (au1 - 62.5) / 2);
	CHECK(!f->au_met);
	CHECK_NEAR(f->throughput[0], rate1);
	CHECK_NEAR(f->throughput[1], rate2);
	CHECK_NEAR(f->throughput_all.mean, (rate1 + rate2) / 2);
	CHECK_NEAR(f->dlio_throughput[0], (1.875 + 2) / 2 * accels);
	CHECK_NEAR(f->dlio_throughput[1], 1.875 * accels);
	/* a delivered sample has 1 MiB; the key of DLIO uses the configured 2
	 * MiB; 4000 bytes were read per rank and block */
	CHECK_NEAR(f->io_rate[0], rate1);
	CHECK_NEAR(f->record_io_all.mean, rate1 + rate2);
	CHECK_NEAR(f->record_io_all.stdev, rate1 - rate2);
	CHECK_NEAR(f->read_io_all.mean, (rate1 + rate2) / 2 * 4000 * ranks /
						(20.0 * accels) / 1048576);
	CHECK_NEAR(f->dlio_io_rate[1], 2 * 1.875 * accels);
	CHECK_EQ(f->nevals, 1);
	CHECK_NEAR(f->eval_au[0], 37.5);
	CHECK_NEAR(f->eval_throughput[0], 1.6 * accels);
	CHECK_NEAR(f->eval_io_all.mean, 1.6 * accels);
	CHECK_NEAR(f->eval_record_io_all.mean, 3.2 * accels);
	CHECK_NEAR(f->eval_read_io_all.mean, 4.8 * accels);
	/* rank r takes r s longer; each has 1 GiB */
	CHECK_EQ(f->nsaves, 2);
	CHECK_NEAR(f->save_s[0], 1 + ranks);
	CHECK_NEAR(f->save_s[1], 3 + ranks);
	CHECK_NEAR(f->save_time.mean, 2 + ranks);
	CHECK_NEAR(f->save_rate.mean,
		   ranks * (1 / (1.0 + ranks) + 1 / (3.0 + ranks)) / 2);
	CHECK_NEAR(f->dlio_save_time.mean, 3);
	CHECK_NEAR(f->dlio_save_rate.mean, 2 * (1 / 2.0 + 1 / 4.0) / 2);
	CHECK_EQ(f->save[1].bytes, (uint64_t)ranks << 30);
	CHECK_EQ(f->save[1].block, 2);
	CHECK_EQ(f->nloads, 1);
	CHECK_NEAR(f->load_rate.mean, ranks);
	CHECK_EQ(f->samples, 60 * accels);
	CHECK_EQ(f->payload_bytes, 60 * 1048576 * accels);
	CHECK_EQ(f->read_bytes, 12000 * ranks);
	CHECK_EQ(f->nreads, 120 * ranks);
	CHECK_NEAR(f->cached_share, 0.75);
	CHECK_NEAR(f->epoch[0].cached_before, 0.25);
	CHECK_NEAR(f->train_s, 8.4 + 8 + 8.4);
	CHECK_NEAR(f->epoch[0].seconds, 16.4);
	CHECK_NEAR(f->first_batch_s, 1);
	CHECK_NEAR(f->compute_s_sum, 15 * accels);
	CHECK_NEAR(f->slack_s_sum, 0.8 * accels);
	CHECK_EQ(f->wait.count, 10 * ranks);
	CHECK_EQ(f->wait.min, 10);
	CHECK_EQ(f->wait.max, 100 + ranks - 1);
	CHECK_EQ(f->step.count, 0);
	if (f->facts.training) /* known by rank 0 */
		CHECK_NEAR(f->facts.v[PEN_READ_S], 240e-9 * ranks);
}

static void one_rank(struct pen_comm *comm, unsigned naccel)
{
	struct pen_figures f;
	struct pen_record r;
	struct pen_err err = { 0 };

	record_make(&r, &config, comm);
	r.naccel = r.world = naccel;
	CHECK(fill(&r));
	if (CHECK_EQ(pen__figures(&f, &r, &err), 0))
		check_figures(&f, naccel, 1);
	pen__figures_fini(&f);
	pen__record_fini(&r);
}

/* Rank r has r + 1 accelerators; the last one has no second epoch. */
static void rank_main(void *arg, unsigned i)
{
	struct ranks *all = arg;
	struct pen_figures f;
	struct pen_record r;
	struct pen_err err = { 0 };

	record_make(&r, &config, &all->comm[i]);
	r.naccel = i + 1;
	r.world = 6;
	CHECK(fill(&r));
	if (CHECK_EQ(pen__figures(&f, &r, &err), 0))
		check_figures(&f, 6, 3);
	pen__figures_fini(&f);
	if (i == 2)
		r.phase[5].kind = PEN_PHASE_EVAL;
	if (CHECK_EQ(pen__figures(&f, &r, &err), 0)) {
		CHECK_NEAR(f.au[1], 62.5);
		CHECK_NEAR(f.throughput[1], 7.5);
		CHECK_EQ(f.nevals, 2);
	}
	pen__figures_fini(&f);
	pen__record_fini(&r);
}

static void nothing(struct pen_comm *comm)
{
	struct pen_figures f;
	struct pen_record r;
	struct pen_text t = { 0 };

	record_make(&r, &config, comm);
	memset(&r.wait, 0, sizeof(r.wait)); /* not initialised */
	CHECK_EQ(pen__figures(&f, &r, NULL), 0);
	CHECK(f.nepochs == 0 && f.au_all.mean == 0 && f.samples == 0);
	CHECK_EQ(f.wait.count, 0);
	pen__summary(&r, &f, &t);
	CHECK_STR(t.p, "Nothing was run.");
	pen__text_fini(&t);
	pen__figures_fini(&f);
	pen__record_fini(&r);
}

static void no_memory(struct pen_comm *comm)
{
	struct pen_figures f;
	struct pen_record r;
	struct pen_err err;
	int rc = PEN_ENOMEM;
	uint64_t nth;

	record_make(&r, &config, comm);
	CHECK(fill(&r));
	for (nth = 1; rc && nth < 100; nth++) {
		pen__mem_fail_nth(nth, false);
		rc = pen__figures(&f, &r, &err);
		pen__mem_fail_nth(0, false);
		CHECK(!rc || (rc == PEN_ENOMEM && err.code == rc && !f.au));
	}
	CHECK_EQ(rc, 0);
	CHECK(nth > 2); /* at least one did fail */
	pen__figures_fini(&f);
	pen__record_fini(&r);
}

/* One of three ranks runs out of memory: all of them get the error, none waits.
 */
static void rank_fails(void *arg, unsigned i)
{
	static uint64_t nth;
	static bool more;
	struct ranks *all = arg;
	struct pen_comm *comm = &all->comm[i];
	struct pen_figures f;
	struct pen_record r;
	struct pen_err err = { 0 };
	double failed;

	record_make(&r, &config, comm);
	CHECK(fill(&r));
	if (!i) {
		nth = 0;
		more = true;
	}
	ranks_meet(comm);
	while (more) {
		if (!i)
			pen__mem_fail_nth(++nth, false);
		ranks_meet(comm);
		failed = pen__figures(&f, &r, &err) != 0;
		pen__figures_fini(&f);
		ranks_reduce(comm, &failed, 1, PEN_SUM, NULL);
		CHECK(failed == 0 || failed == 3);
		if (!i)
			more = failed > 0 && nth < 1000;
		ranks_meet(comm);
	}
	CHECK(failed == 0);
	CHECK(nth > 1);
	pen__record_fini(&r);
}

static void says(const struct pen_record *r, const struct pen_figures *f,
		 const char *want)
{
	struct pen_text t = { 0 };

	pen__summary(r, f, &t);
	CHECK_STR(t.p, want);
	pen__text_fini(&t);
}

static void summaries(struct pen_comm *comm)
{
	struct pen_record r;
	struct pen_figures f = { 0 };
	struct pen_ckpt_figures k = { .bytes = 2350000000 };

	record_make(&r, &config, comm);
	f.samples = 100;
	f.compute_s_sum = 90;
	f.au_all.mean = 97.38;
	f.why = (struct pen_verdict){ .cause = PEN_CAUSE_NONE,
				      .what = "It keeps up",
				      .evidence = "by far" };
	says(&r, &f,
	     "Fed 1 emulated accelerator at 97.4 % utilisation (target 90 %). "
	     "It keeps up: by far.");
	r.world = 4;
	r.partial = true;
	f.au_all.mean = 89.99; /* must not print as 90.0 */
	f.facts.v[PEN_READ_BYTES] = 100;
	f.facts.v[PEN_DEVICE_BYTES] = 7;
	snprintf(f.facts.store, sizeof(f.facts.store), "posix");
	snprintf(f.facts.device, sizeof(f.facts.device), "vda");
	says(&r, &f,
	     "Interrupted: the figures cover the part that ran. Fed 4 emulated "
	     "accelerators at 89.9 % utilisation (below the target of 90 %). "
	     "It keeps up: "
	     "by far. Warning: 93 % of the bytes came from the page cache, not "
	     "from the device.");
	r.partial = false;
	f.why.cause = PEN_CAUSE_STORAGE; /* replaces the other warning */
	snprintf(f.why.what, sizeof(f.why.what), "It is storage");
	snprintf(f.why.advice, sizeof(f.why.advice), "Buy some.");
	says(&r, &f,
	     "Fed 4 emulated accelerators at 89.9 % utilisation (below the "
	     "target of 90 %). "
	     "It is storage: by far. Buy some.");
	/* not included in utilisation */
	f.train_s = 10;
	f.nevals = 3;
	f.eval_au_all.mean = 12.38;
	f.nsaves = 10;
	f.save = &k;
	f.save_time.mean = 9.31;
	f.save_rate.mean = 0.235;
	says(&r, &f,
	     "Fed 4 emulated accelerators at 89.9 % utilisation (below the "
	     "target of 90 %). "
	     "It is storage: by far. Buy some. Evaluated 3 times at 12.4 % "
	     "utilisation (target 90 %). Saved 10 checkpoints of 2.35 GB in "
	     "9.31 s each (252 MB/s). Training stops during checkpoints: they "
	     "took 93.1 s in total, training 10.0 s.");
	f.nevals = f.nsaves = 0;
	f.compute_s_sum = 0;
	f.payload_bytes = 30000000;
	says(&r, &f,
	     "Delivered 10 samples/s (3.00 MB/s) to 4 emulated accelerators "
	     "with no compute time: this is the loader's limit on this "
	     "machine. It is "
	     "storage: by far. Buy some.");
	f.samples = 0;
	f.nsaves = 10;
	says(&r, &f,
	     "Saved 10 checkpoints of 2.35 GB in 9.31 s each (252 MB/s).");
	pen__record_fini(&r);
}

int main(void)
{
	struct ranks one, three;

	config_make(&config);
	ranks_init(&one, 1, 1);
	ranks_init(&three, 3, 2);
	windows(&one.comm[0]);
	few_steps(&one.comm[0]);
	clocks(&one.comm[0]);
	evaluation(&one.comm[0]);
	one_rank(&one.comm[0], 1);
	one_rank(&one.comm[0], 3);
	nothing(&one.comm[0]);
	no_memory(&one.comm[0]);
	summaries(&one.comm[0]);
	ranks_run(&three, rank_main, &three);
	ranks_run(&three, rank_fails, &three);
	pen__mem_fail_nth(0, false);
	ranks_fini(&three);
	ranks_fini(&one);
	return test_end();
}
