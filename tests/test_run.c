/*
 * Complete runs in this process: their phases for a table of settings, their
 * figures, failures and interrupts. Nothing here depends on timing.
 */
#include "runs.h"

#include <fcntl.h>
#include <math.h>

#include "emulate/layout.h"
#include "ranks.h"

/* Sampling interval if there are many allocations to fail. */
#define STRIDE (5 * TEST_EVERY(3))

struct want {
	const char *name, *args;
	unsigned epochs, steps, evals, eval_steps, saves, loads;
	bool whole; /* samples are delivered as read */
};

/* 8 files of 1 sample, batches of 2, 2 epochs, unless changed by args. */
static const struct want table[] = {
	{ "plain", "", 2, 4, 0, 0, 0, 0, true },
	{ "no epoch", "train.epochs=0", 0, 4, 0, 0, 0, 0, false },
	{ "steps", "train.total_training_steps=3", 2, 3, 0, 0, 0, 0, true },
	{ "steps of three", "train.total_training_steps=1\naccelerators=3\n", 2,
	  1, 0, 0, 0, 0, true },
	{ "two", "accelerators=2", 2, 2, 0, 0, 0, 0, true },
	{ "three", "accelerators=3", 2, 1, 0, 0, 0, 0, true },
	{ "four", "accelerators=4", 2, 1, 0, 0, 0, 0, true },
	{ "five", "accelerators=5\nreader.batch_size=1", 2, 1, 0, 0, 0, 0,
	  true },
	{ "eval", "workflow.evaluation=true", 2, 4, 2, 4, 0, 0, true },
	{ "eval late",
	  "workflow.evaluation=true\nevaluation.eval_after_epoch=2\n"
	  "evaluation.epochs_between_evals=3\ntrain.epochs=6\n",
	  6, 4, 2, 4, 0, 0, true },
	{ "eval always",
	  "workflow.evaluation=true\nevaluation.epochs_between_evals=0\n"
	  "reader.multiprocessing_context=None\n"
	  "train.epochs=3\n",
	  3, 4, 3, 4, 0, 0, true },
	{ "eval of nothing",
	  "workflow.evaluation=true\ndataset.num_files_eval=0", 2, 4, 0, 0, 0,
	  0, true },
	{ "eval of two",
	  "workflow.evaluation=true\naccelerators=2\n"
	  "reader.batch_size_eval=2\n",
	  2, 2, 2, 1, 0, 0, true },
	{ "save by epoch",
	  "workflow.checkpoint=true\ntrain.epochs=5\n"
	  "checkpoint.epochs_between_checkpoints=2\n",
	  5, 4, 0, 0, 3, 0, true },
	{ "save from epoch 0",
	  "workflow.checkpoint=true\ntrain.epochs=3\n"
	  "checkpoint.checkpoint_after_epoch=0\n"
	  "checkpoint.epochs_between_checkpoints=2\n",
	  3, 4, 0, 0, 2, 0, true },
	{ "save by step",
	  "workflow.checkpoint=true\n"
	  "checkpoint.steps_between_checkpoints=3\n",
	  2, 4, 0, 0, 2, 0, true },
	{ "save at the end",
	  "workflow.checkpoint=true\n"
	  "checkpoint.steps_between_checkpoints=2\naccelerators=2\n",
	  2, 2, 0, 0, 2, 0, true },
	{ "save by step, late",
	  "workflow.checkpoint=true\n"
	  "checkpoint.steps_between_checkpoints=9\n",
	  2, 4, 0, 0, 0, 0, true },
	{ "save by no step",
	  "workflow.checkpoint=true\n"
	  "checkpoint.steps_between_checkpoints=0\n",
	  2, 4, 0, 0, 0, 0, true },
	{ "checkpoints alone",
	  "workflow.checkpoint=true\nworkflow.train=false\n"
	  "checkpoint.num_checkpoints_write=3\n"
	  "checkpoint.num_checkpoints_read=2\n"
	  "checkpoint.time_between_checkpoints=0\n",
	  0, 0, 0, 0, 3, 2, false },
	{ "apart", "train.barrier=false\naccelerators=3", 2, 1, 0, 0, 0, 0,
	  true },
	{ "apart, saved",
	  "train.barrier=false\naccelerators=2\nworkflow.evaluation=true\n"
	  "workflow.checkpoint=true\n"
	  "checkpoint.steps_between_checkpoints=1\n"
	  "train.computation_time={type: exponential, scale: 0.0005}\n",
	  2, 2, 2, 2, 4, 0, true },
	{ "resized", "dataset.record_length_bytes_resize=100", 2, 4, 0, 0, 0, 0,
	  false },
	{ "transformed",
	  "reader.transformed_record_dims=[3,5]\n"
	  "reader.transformed_record_element_type=float32\n",
	  2, 4, 0, 0, 0, 0, false },
	{ "not decoded", "reader.decode=false", 2, 4, 0, 0, 0, 0, true },
	{ "memory", "reader.read_type=memory", 2, 4, 0, 0, 0, 0, false },
	{ "direct", "reader.odirect=true", 2, 4, 0, 0, 0, 0, true },
	{ "dropped", "reader.page_cache=drop\nworkflow.evaluation=true", 2, 4,
	  2, 4, 0, 0, true },
	{ "preprocessed", "reader.preprocess_time=0.0001", 2, 4, 0, 0, 0, 0,
	  true },
	{ "preprocessed, at random",
	  "reader.preprocess_time_stdev=0.0001\naccelerators=2", 2, 2, 0, 0, 0,
	  0, true },
	{ "shuffled", "reader.sample_shuffle=random\nreader.file_shuffle=seed",
	  2, 4, 0, 0, 0, 0, true },
	{ "out of nothing", "reader.data_loader=synthetic", 2, 4, 0, 0, 0, 0,
	  false },
	{ "out of nothing, all said",
	  "reader.data_loader=synthetic\nreader.odirect=true\n"
	  "reader.page_cache=drop\nworkflow.evaluation=true\n",
	  2, 4, 2, 4, 0, 0, false },
	{ "out of nothing in memory",
	  "reader.data_loader=synthetic\nreader.read_type=memory", 2, 4, 0, 0,
	  0, 0, false },
	{ "window",
	  "output.metric.exclude_start_steps=1\n"
	  "output.metric.exclude_end_steps=1\n",
	  2, 4, 0, 0, 0, 0, true },
	{ "small window", "output.metric.exclude_start_steps=100", 2, 4, 0, 0,
	  0, 0, true },
};

static uint64_t steps_of(const struct pen_phase *p, unsigned a)
{
	return p->of ? p->of[a].n : 0;
}

/* AU and samples/s of an epoch, computed from the steps as in docs/method.md.
 */
static void check_au(const struct done *d, unsigned epoch)
{
	const struct pen_record *r = &d->r.rec;
	const size_t head = d->c.output.exclude_start_steps,
		     tail = d->c.output.exclude_end_steps;
	double au = 0, rate = 0, n = 0;

	for (unsigned a = 0; a < r->naccel; a++) {
		double all = 0, sum = 0, samples = 0, time = 0;

		for (size_t i = 0; i < r->nphases; i++) {
			const struct pen_phase *p = &r->phase[i];
			const struct pen_step_times *s;
			size_t from = head, to;
			double in = 0, t = p->seconds, inside = 0;

			if (p->kind != PEN_PHASE_TRAIN || p->epoch != epoch)
				continue;
			s = &p->of[a];
			to = s->n > tail ? s->n - tail : 0;
			if (from >= to) {
				from = 0;
				to = s->n;
			}
			for (size_t k = 0; k < s->n; k++) {
				double both = (double)s->load[k] +
					      (double)s->compute[k];

				if (k >= from && k < to) {
					in += (double)s->compute[k];
					inside += both;
				} else {
					t -= both;
				}
			}
			t = t < inside ? inside : t;
			all += (double)s->n;
			sum += t > 0 ? (double)s->n * 100 * in / t : 0;
			samples +=
				(double)((to - from) * d->c.reader.batch_size);
			time += t;
		}
		n += all > 0; /* a phase that did not start is not counted */
		au += all > 0 ? sum / all : 0;
		rate += time > 0 ? samples / time : 0;
	}
	au /= n > 0 ? n : 1;
	CHECK(fabs(d->r.fig.au[epoch - 1] - au) < 1e-6);
	CHECK(fabs(d->r.fig.throughput[epoch - 1] - rate) <= 1e-9 * rate);
	CHECK(au >= 0 && au <= 100);
}

/* Every phase has the expected steps, and lasts at least as long. */
static void check_phase(const struct done *d, const struct want *w,
			const struct pen_phase *p)
{
	const struct pen_record *r = &d->r.rec;

	CHECK(p->end >= p->start);
	CHECK(p->seconds > 0);
	for (unsigned a = 0; a < r->naccel; a++) {
		double sum = 0;

		if (p->kind == PEN_PHASE_EVAL)
			CHECK_EQ(steps_of(p, a), w->eval_steps);
		CHECK_EQ(steps_of(p, a), steps_of(p, 0));
		for (size_t k = 0; k < steps_of(p, a); k++)
			sum += (double)p->of[a].load[k] +
			       (double)p->of[a].compute[k];
		/* the end of compute is awaited, also in the last step */
		if (!CHECK(p->seconds >= sum * (1 - 1e-5)))
			fprintf(stderr, "  %s: %g s, steps %g s\n", w->name,
				p->seconds, sum);
	}
	if (p->kind == PEN_PHASE_SAVE || p->kind == PEN_PHASE_LOAD)
		CHECK(p->bytes > 0);
}

static void check_phases(const struct done *d, const struct want *w)
{
	const struct pen_record *r = &d->r.rec;
	unsigned n[4] = { 0 };
	uint64_t steps = 0, payload = 0, read = 0;
	double train_s = 0;

	for (size_t i = 0; i < r->nphases; i++) {
		const struct pen_phase *p = &r->phase[i];

		n[p->kind]++;
		check_phase(d, w, p);
		if (p->kind != PEN_PHASE_TRAIN)
			continue;
		steps += steps_of(p, 0);
		payload += p->io.payload_bytes;
		read += p->io.read_bytes;
		train_s += p->seconds;
	}
	CHECK_EQ(steps, (uint64_t)w->epochs * w->steps);
	CHECK_EQ(n[PEN_PHASE_EVAL], w->evals);
	CHECK_EQ(n[PEN_PHASE_SAVE], w->saves);
	CHECK_EQ(n[PEN_PHASE_LOAD], w->loads);
	CHECK_EQ(d->r.fig.nepochs, w->epochs);
	CHECK_EQ(d->r.fig.nevals, w->evals);
	CHECK_EQ(d->r.fig.nsaves, w->saves);
	CHECK_EQ(d->r.fig.payload_bytes, payload);
	CHECK_EQ(d->r.fig.read_bytes, read);
	CHECK(fabs(d->r.fig.train_s - train_s) < 1e-9);
	CHECK_EQ(d->r.fig.samples, steps * r->naccel * d->c.reader.batch_size);
	if (w->whole && !CHECK(read >= payload && read > 0))
		fprintf(stderr, "  %s: %llu of %llu bytes were read\n", w->name,
			(unsigned long long)read, (unsigned long long)payload);
	for (unsigned e = 1; e <= w->epochs; e++)
		check_au(d, e);
}

/* The plan of --dry-run matches the run. */
static void check_plan(const struct done *d, const char *name)
{
	const struct pen_figures *f = &d->r.fig;
	struct pen_plan_figures p;
	struct pen_err err = { 0 };

	if (!CHECK_EQ(pen__run_plan(&d->c, d->r.rec.world, &p, &err), 0))
		return;
	if (d->c.workflow.train)
		CHECK_EQ(p.steps, d->r.rec.steps_per_epoch);
	if (f->nevals)
		CHECK_EQ(p.eval_steps, d->r.rec.eval_steps);
	CHECK_EQ(p.evals, f->nevals);
	if (!CHECK_EQ(p.checkpoints, f->nsaves))
		fprintf(stderr, "  %s\n", name);
	CHECK_EQ(p.checkpoint_bytes, d->r.rec.checkpoint_bytes);
	CHECK_EQ(p.files_missing, 0);
}

static void runs_of_table(void)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		const struct want *w = &table[i];
		struct done d;

		runs_remove("out");
		runs_remove("ckpt");
		runs_do(&d, "default_small", "npz", w->args);
		if (runs_fine(&d, w->name)) {
			unsigned before = atomic_load(&test_failures);

			check_phases(&d, w);
			check_plan(&d, w->name);
			CHECK(!d.r.rec.partial);
			CHECK(runs_there("out/result.json"));
			CHECK(runs_there("out/summary.json"));
			CHECK(runs_there("out/0_output.json"));
			if (atomic_load(&test_failures) > before)
				fprintf(stderr, "  in '%s'\n", w->name);
		}
		runs_end(&d);
	}
}

/* Every format, with one and five samples per file, and one of varying size. */
static void runs_of_formats(void)
{
	static const char *const formats[] = {
		"npy",
		"npz",
		"hdf5",
		"tfrecord",
		"csv",
		"jpeg",
		"png",
		"indexed_binary",
		"mmap_indexed_binary",
		"synthetic",
	};
	char args[256], name[64];

	for (size_t i = 0; i < 3 * sizeof(formats) / sizeof(formats[0]); i++) {
		const char *f = formats[i / 3];
		unsigned n = i % 3 == 1 ? 5 : 1, samples = 8 * n;
		bool image = !strcmp(f, "jpeg") || !strcmp(f, "png"),
		     none = !strcmp(f, "synthetic");
		struct want w = { .name = name, .epochs = 2 };
		struct done d;

		/* npy and npz files are read as a whole and may also serve the
		 * next epoch */
		w.whole = !image && !none && (n == 1 || f[0] != 'n');
		if (image)
			samples = 8;
		w.steps = samples / 2;
		snprintf(name, sizeof(name), "%s-%zu", f, i % 3);
		snprintf(args, sizeof(args),
			 "dataset.format=%s\ndataset.num_samples_per_file=%u\n"
			 "framework=tensorflow\nreader.data_loader=tensorflow\n"
			 "reader.file_shuffle=seed\n"
			 "dataset.record_length_bytes_stdev=%u\n",
			 f, n, i % 3 == 2 ? 700 : 0);
		runs_remove("out");
		runs_do(&d, "default_small", name, args);
		if (runs_fine(&d, name)) {
			check_phases(&d, &w);
			check_plan(&d, name);
		}
		runs_end(&d);
	}
}

/* The small workloads with a part of their data. */
static void plans_of_workloads(void)
{
	static const struct {
		const char *name, *args;
		double least, most; /* bytes read divided by the prediction */
	} all[] = {
		{ "default_small", "dataset.record_length_bytes=40000\n", 1,
		  1.1 },
		{ "unet3d_small",
		  "dataset.num_files_train=7\n"
		  "dataset.record_length_bytes=400000\n"
		  "dataset.record_length_bytes_stdev=10000\n"
		  "train.computation_time=0.001\n",
		  1, 1.1 },
		{ "resnet50_small",
		  "dataset.num_files_train=2\ntrain.computation_time=0.001\n",
		  1, 1.1 },
		{ "cosmoflow_small",
		  "dataset.num_files_train=3\ntrain.computation_time=0.001\n",
		  1, 1.1 },
		{ "bert_small",
		  "dataset.num_files_train=1\ntrain.computation_time=0.001\n",
		  1, 1.1 },
		{ "dlrm_small", "dataset.num_samples_per_file=4\n", 1, 1.1 },
		{ "flux_small",
		  "dataset.num_files_train=16\ntrain.computation_time=0.001\n",
		  0.3, 1.1 },
		{ "retinanet_small",
		  "dataset.num_files_train=24\ntrain.computation_time=0.001\n",
		  0.3, 1.1 },
		{ "megatron_small",
		  "dataset.num_samples_per_file=400\n"
		  "train.computation_time=0.001\n"
		  "train.total_training_steps=20\n",
		  1, 1.1 },
		{ "llama_small",
		  "checkpoint.time_between_checkpoints=0\n"
		  "model.transformer.hidden_size=64\n"
		  "model.transformer.vocab_size=1000\n"
		  "model.transformer.ffn_hidden_size=128\n",
		  0, 0 },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct pen_plan_figures p;
		struct pen_err err = { 0 };
		struct done d;
		double share;

		runs_remove("out");
		runs_remove("ckpt");
		runs_do(&d, all[i].name, all[i].name, all[i].args);
		if (runs_fine(&d, all[i].name)) {
			check_plan(&d, all[i].name);
			CHECK(!pen__run_plan(&d.c, 1, &p, &err));
			share = (double)d.r.fig.read_bytes;
			for (size_t k = 0; k < d.r.rec.nphases; k++)
				if (d.r.rec.phase[k].kind == PEN_PHASE_EVAL)
					share += (double)d.r.rec.phase[k]
							 .io.read_bytes;
			if (p.read_bytes)
				share /= (double)p.read_bytes;
			if (!CHECK(share >= all[i].least &&
				   share <= all[i].most))
				fprintf(stderr, "  %s: %g of what was said\n",
					all[i].name, share);
		}
		runs_end(&d);
		runs_remove(all[i].name);
	}
}

/* Settings at the limits: an error with a reason, or nothing to do. */
static void refusals(void)
{
	static const struct {
		const char *args, *says;
	} all[] = {
		{ "accelerators=5\n", "less than a batch" },
		{ "train.total_training_steps=5\n", "Only have enough data" },
		{ "workflow.evaluation=true\nreader.batch_size_eval=5\n",
		  "less than a batch" },
		{ "loader.batch_size=4\n", "reader.batch_size" },
		{ "loader.epochs=1\n", "train.epochs" },
		{ "loader.store=nonsense\n", "" },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct done d;

		runs_remove("out");
		CHECK(runs_do(&d, "default_small", "npz", all[i].args) < 0);
		if (!CHECK(strstr(d.err.msg, all[i].says)))
			fprintf(stderr, "  '%s: %s' lacks '%s'\n", d.err.where,
				d.err.msg, all[i].says);
		CHECK(!runs_there("out/result.json"));
		CHECK(!runs_there("out/summary.json"));
		runs_end(&d);
	}
}

/* Plans of invalid runs must not fail in other ways. */
static void odd_plans(void)
{
	static const char *const args[] = {
		"dataset.num_files_train=0",
		"dataset.num_files_train=0\ndataset.record_dims=[4,4]",
		"accelerators=65536\nreader.batch_size=16777216",
		"reader.read_threads=0\nreader.prefetch_size=0",
		"train.epochs=0",
		"train.epochs=2147483648\nworkflow.checkpoint=true\n"
		"checkpoint.steps_between_checkpoints=1\n"
		"workflow.evaluation=true",
		"reader.data_loader=synthetic",
	};
	struct pen_plan_figures p;

	for (size_t i = 0; i < sizeof(args) / sizeof(args[0]); i++) {
		struct done d;

		if (CHECK(!runs_settle(&d, "default_small", "npz", args[i])))
			CHECK(!pen__run_plan(&d.c, 1, &p, &d.err));
		runs_end(&d);
	}
	CHECK_EQ(p.read_bytes, 0); /* synthetic */
}

/* --- failures during a run --- */

static void data_file(struct done *d, uint64_t i, char *path)
{
	struct pen_data_layout l;

	CHECK(!pen__layout_init(&l, &d->c, NULL));
	pen__layout_path(&l, i, path, PEN_LAYOUT_PATH);
	pen__layout_fini(&l);
}

static void expect_failure(const char *args, int code)
{
	struct done d;

	runs_remove("out");
	if (!CHECK_EQ(runs_do(&d, "default_small", "bad", args), code))
		fprintf(stderr, "  %s: %s\n", d.err.where, d.err.msg);
	CHECK(d.err.msg[0] && !strchr(d.err.msg, '\n'));
	CHECK(!d.r.rec.partial);
	CHECK(!runs_there("out/result.json"));
	CHECK(!runs_there("out/summary.json"));
	CHECK(!runs_there("out/0_output.json"));
	runs_end(&d);
}

static void failures(void)
{
	static const char no_data[] = "workflow.generate_data=false\n";
	char path[PEN_LAYOUT_PATH];
	struct done d;
	uint8_t byte = 0;
	int fd;

	runs_do(&d, "default_small", "bad", "train.epochs=1");
	runs_fine(&d, "good data");
	data_file(&d, 5, path);
	runs_end(&d);
	expect_failure("loader.store=fault\nloader.store.fail_nth=5\n",
		       PEN_EIO);
	expect_failure("loader.store=fault\nloader.store.fail_nth=9\n"
		       "accelerators=4\ntrain.barrier=false\n",
		       PEN_EIO);
	/* one bit in the middle of the samples */
	fd = open(path, O_RDWR);
	if (CHECK(fd >= 0)) {
		CHECK_EQ(pread(fd, &byte, 1, 600), 1);
		byte ^= 4;
		CHECK_EQ(pwrite(fd, &byte, 1, 600), 1);
		close(fd);
	}
	expect_failure(no_data, PEN_EDATA);
	CHECK(!truncate(path, 700));
	expect_failure(no_data, PEN_EDATA);
	CHECK(!unlink(path));
	expect_failure(no_data, PEN_ENOTFOUND);
	expect_failure("workflow.train=false\nworkflow.checkpoint=true\n"
		       "workflow.generate_data=false\n"
		       "checkpoint.num_checkpoints_read=3\n",
		       PEN_ENOTFOUND);
}

static int countdown(void *arg, const struct pen_progress *p)
{
	int *left = arg;

	CHECK(p->what && p->what[0]);
	return --*left == 0;
}

static const char busy[] =
	"workflow.evaluation=true\nworkflow.checkpoint=true\n"
	"checkpoint.steps_between_checkpoints=3\n";

/* Interrupted after any number of checks: the partial result is consistent. */
static void interrupts(void)
{
	static const char *const how[] = { "", "train.barrier=false\n"
					       "accelerators=2\n" };
	char args[256];

	for (int n = 1, more = 1, mode = 0; mode < 2; n++) {
		int left = n;
		struct done d;

		snprintf(args, sizeof(args), "%s%s", busy, how[mode]);
		runs_remove("out");
		runs_settle(&d, "default_small", "npz", args);
		d.r.tick = countdown;
		d.r.arg = &left;
		d.rc = pen__run(&d.r, &d.err);
		more = left <= 0;
		CHECK_EQ(d.rc, more ? PEN_ECLOSED : 0);
		CHECK_EQ(d.r.rec.partial, more);
		CHECK(runs_there("out/result.json"));
		CHECK(runs_there("out/summary.json"));
		CHECK(d.r.fig.samples <= 16);
		for (unsigned e = 1; e <= d.r.fig.nepochs; e++)
			check_au(&d, e);
		runs_end(&d);
		if (!more) {
			CHECK(n > 8); /* checked at every step */
			mode++;
			n = 0;
		}
	}
}

/* --- ranks --- */

struct job {
	struct ranks ranks;
	struct done d[RANKS_MAX];
	const char *args, *of_rank1;
	int left[RANKS_MAX]; /* checks until the interrupt */
	uint64_t fail_nth;   /* allocation to fail, over all ranks */
};

static void run_rank(void *arg, unsigned i)
{
	struct job *j = arg;
	struct done *d = &j->d[i];
	char args[512];

	snprintf(args, sizeof(args), "%s%s", j->args,
		 i == 1 && j->of_rank1 ? j->of_rank1 : "");
	runs_settle(d, "default_small", "npz", args);
	d->r.comm = &j->ranks.comm[i];
	if (!i && j->fail_nth)
		pen__mem_fail_nth(j->fail_nth, false);
	d->rc = pen__comm_agree(d->r.comm, d->rc, &d->err);
	d->r.tick = countdown;
	d->r.arg = &j->left[i];
	if (!d->rc)
		d->rc = pen__run(&d->r, &d->err);
	pen__comm_close(&j->ranks.comm[i]);
}

static void run_ranks(struct job *j, int n, const char *args,
		      const char *of_rank1)
{
	runs_remove("out");
	ranks_init(&j->ranks, n, n);
	j->args = args;
	j->of_rank1 = of_rank1;
	ranks_run(&j->ranks, run_rank, j);
}

static void end_ranks(struct job *j)
{
	for (int i = 0; i < j->ranks.n; i++)
		runs_end(&j->d[i]);
	ranks_fini(&j->ranks);
	memset(j, 0, sizeof(*j));
}

static void with_ranks(void)
{
	static struct job j;

	run_ranks(&j, 2, busy, NULL);
	for (int i = 0; i < 2; i++) {
		runs_fine(&j.d[i], "two ranks");
		CHECK_EQ(j.d[i].r.rec.steps_per_epoch, 2);
		CHECK_EQ(j.d[i].r.fig.samples, 16);
		CHECK_EQ(j.d[i].r.rec.kept_files + j.d[i].r.rec.generated_files,
			 12);
	}
	end_ranks(&j);
	/* one rank fails: both end with its message */
	run_ranks(&j, 2, busy, "loader.store=fault\nloader.store.fail_nth=3\n");
	CHECK_EQ(j.d[0].rc, PEN_EIO);
	CHECK_EQ(j.d[1].rc, PEN_EIO);
	CHECK(strstr(j.d[0].err.msg, "rank 1 failed: "));
	CHECK(!runs_there("out/result.json"));
	end_ranks(&j);
	run_ranks(&j, 2,
		  "train.barrier=false\nworkflow.checkpoint=true\n"
		  "checkpoint.steps_between_checkpoints=1\n",
		  "loader.store=fault\nloader.store.fail_nth=3\n");
	CHECK_EQ(j.d[0].rc, PEN_EIO);
	CHECK_EQ(j.d[1].rc, PEN_EIO);
	end_ranks(&j);
}

/* One rank is interrupted at any time: all have the partial result. */
static void interrupted_ranks(void)
{
	static const char *const how[] = {
		"workflow.evaluation=true\nworkflow.checkpoint=true\n"
		"checkpoint.steps_between_checkpoints=1\n",
		"workflow.evaluation=true\nworkflow.checkpoint=true\n"
		"checkpoint.steps_between_checkpoints=1\n"
		"train.barrier=false\n",
	};
	static struct job j;

	for (int n = 1, mode = 0; mode < 2; n++) {
		bool more;

		j.left[1] = n;
		run_ranks(&j, 2, how[mode], NULL);
		more = j.left[1] <= 0;
		for (int i = 0; i < 2; i++) {
			if (!CHECK_EQ(j.d[i].rc, more ? PEN_ECLOSED : 0))
				fprintf(stderr, "  rank %d, look %d: %s: %s\n",
					i, n, j.d[i].err.where, j.d[i].err.msg);
			CHECK_EQ(j.d[i].r.rec.partial, more);
		}
		CHECK(runs_there("out/result.json"));
		CHECK(runs_there("out/1_output.json"));
		end_ranks(&j);
		if (!more) {
			mode++;
			n = 0;
		}
	}
}

/* --- memory --- */

/* The n-th allocation fails: an error or success, but never a crash. */
static void out_of_memory(void)
{
	static const char args[] = "workflow.evaluation=true\n"
				   "workflow.checkpoint=true\n"
				   "dataset.num_files_train=4\n"
				   "dataset.num_files_eval=1\n"
				   "train.epochs=1\ntrain.computation_time=0\n"
				   "evaluation.eval_time=0\n";
	uint64_t nth = 1, step = 1, seen = 1;

	for (; nth <= seen; nth += step, step += step < STRIDE) {
		struct done d;

		runs_remove("out");
		runs_settle(&d, "default_small", "mem", args);
		pen__mem_fail_nth(nth, false);
		if (!d.rc)
			d.rc = pen__run(&d.r, &d.err);
		/* number of allocations, more if none failed */
		seen = pen__mem_count() + step;
		pen__mem_fail_nth(0, false);
		if (!CHECK(d.rc <= 0 && d.rc != PEN_ECLOSED))
			fprintf(stderr, "  allocation %llu: %d\n",
				(unsigned long long)nth, d.rc);
		CHECK(!d.rc || d.err.code == d.rc);
		runs_end(&d);
	}
	CHECK(nth > 500);
}

/* With two ranks: both end the same way, whichever fails. */
static void ranks_out_of_memory(void)
{
	static struct job j;
	uint64_t nth = 1, seen = 1;

	for (; nth <= seen; nth += TEST_EVERY(3)) {
		j.fail_nth = nth;
		run_ranks(&j, 2, "train.epochs=1\ntrain.computation_time=0\n",
			  NULL);
		seen = pen__mem_count() + TEST_EVERY(3);
		pen__mem_fail_nth(0, false);
		if (!CHECK(!j.d[0].rc == !j.d[1].rc))
			fprintf(stderr, "  allocation %llu: %d '%s', %d '%s'\n",
				(unsigned long long)nth, j.d[0].rc,
				j.d[0].err.msg, j.d[1].rc, j.d[1].err.msg);
		CHECK(j.d[0].rc != PEN_ECLOSED && j.d[1].rc != PEN_ECLOSED);
		end_ranks(&j);
	}
}

static void kept_or_not(void)
{
	static const char *const formats[] = { "npz", "tfrecord",
					       "indexed_binary" };
	char args[256];

	for (size_t i = 0; i < 3; i++) {
		struct done d;

		snprintf(args, sizeof(args),
			 "dataset.keep_files=false\ndataset.format=%s\n"
			 "framework=tensorflow\n"
			 "reader.data_loader=tensorflow\ntrain.epochs=1\n",
			 formats[i]);
		runs_do(&d, "default_small", "gone", args);
		runs_fine(&d, formats[i]);
		CHECK(!runs_there("gone/train"));
		CHECK(!runs_there("gone/index/train"));
		runs_end(&d);
		/* a probe must not remove the data */
		runs_settle(&d, "default_small", "stays", args);
		d.rc = pen__run(&d.r, &d.err);
		runs_end(&d);
		runs_remove("gone");
	}
}

static const struct {
	const char *name;
	void (*run)(void);
} all[] = {
	{ "table", runs_of_table },
	{ "formats", runs_of_formats },
	{ "plans", plans_of_workloads },
	{ "refusals", refusals },
	{ "odd", odd_plans },
	{ "failures", failures },
	{ "interrupts", interrupts },
	{ "ranks", with_ranks },
	{ "interrupted ranks", interrupted_ranks },
	{ "memory", out_of_memory },
	{ "memory of ranks", ranks_out_of_memory },
	{ "kept", kept_or_not },
};

/* With arguments: only these tests. */
int main(int argc, char **argv)
{
	runs_begin();
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		bool asked = argc < 2;

		for (int k = 1; k < argc; k++)
			asked |= !strcmp(argv[k], all[i].name);
		if (asked)
			all[i].run();
	}
	runs_remove("");
	return test_end();
}
