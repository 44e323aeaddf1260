/*
 * Penstock beside what is used otherwise, PyTorch's DataLoader first of all:
 * the same work by several, in C and in Python. Every batch is added up as it
 * comes, so that a view of memory nobody touched, a loop that ends early, or an
 * array that nothing was stored in is not called fast.
 */
#include <stdio.h>

#include "experiment/peers.h"
#include "experiment/steps.h"

/* Sets nobody but the experiment. */
static const char *const refused[] = {
	"batch_size=", PEN_SETS "; see its flags",
	"threads=",    PEN_SETS "; see its flags",
	"epochs=",     PEN_SETS "; see its flags",
	"sampler*=",   PEN_SETS,
	"shuffle=",    PEN_SETS,
	NULL
};

#define PEERS(with_spec)                                                       \
	.has = PEN_HAS_PEERS | (with_spec ? PEN_HAS_SPEC : 0),                 \
	.refuses = refused, .own = sizeof(struct pen_peers),                   \
	.head = pen__peers_head, .describe = pen__peers_describe,              \
	.run = pen__peers_run, .close = pen__peers_close

#define COLUMNS(figures, first)                                                \
	"+with=group|variant=arm|+language=language|" figures "|<" first       \
	"|>" first "|+~samples=n_samples|+~sum=content_sum"

#define STEPS(n) PEN_COUNT("--steps", "how many (default " n ")", n, 1 << 24)
#define BATCH(what, n)                                                         \
	PEN_COUNT("--batch", what " in a batch (default " n ")", n, 1 << 20)
#define COLS(what, n)                                                          \
	PEN_COUNT("--columns", "of " what " (default " n ")", n, 1 << 20)
#define WORKERS(arg, help, preset)                                             \
	PEN_LIST("--workers", arg, help, preset, 0, 256)

struct name {
	const char *name;
	enum pen_who who;
};

static int add(struct pen_run *r, const struct pen_point *p,
	       const struct name *n, size_t many, struct pen_err *err)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < many; i++)
		rc = pen__peers_add(r, p, n[i].name, n[i].who, err);
	return rc;
}

static struct pen_point point_of(const struct pen_run *r)
{
	return (struct pen_point){
		.batch = (uint64_t)pen__number(r, "--batch"),
		.steps = (uint64_t)pen__number(r, "--steps"),
	};
}

static int some_workers(const struct pen_run *r, struct pen_err *err)
{
	return pen__number(r, "--workers") >= 1
		       ? 0
		       : pen__fail(err, PEN_EINVAL, r->name,
				   "--workers: one at least");
}

/* ---- a step with loading behind the computing of the step before ---- */

static int overlap_pair(struct pen_run *r, struct pen_point *p,
			struct pen_err *err)
{
	static const struct name alone[] = {
		{ "penstock, not overlapped", PEN_IN_C },
		{ "DataLoader, not overlapped", PEN_IN_PYTHON },
	};
	static const struct name ahead[] = {
		{ "penstock, overlapped", PEN_IN_C },
		{ "DataLoader, overlapped", PEN_IN_PYTHON },
	};
	int rc;

	p->workers = 0;
	rc = add(r, p, alone, 2, err);
	p->workers = (uint64_t)pen__number(r, "--workers");
	return rc ? rc : add(r, p, ahead, 2, err);
}

/* Loading is simulated, so the answer is known: the longer of both, against
 * their sum; and real. */
static int overlap(struct pen_run *r, struct pen_err *err)
{
	const struct pen_taken *load = pen__value(r, "--load");
	const struct pen_taken *compute = pen__value(r, "--compute");
	int rc = some_workers(r, err);

	if (!rc)
		rc = pen__peers_open(r, err);
	for (size_t i = 0; !rc && i < compute->n; i++) {
		struct pen_point p = point_of(r);

		p.compute_s = compute->v[i];
		rc = pen__peers_data(r, &p, p.steps * p.batch, err);
		for (size_t k = 0;
		     !rc && !pen_spec_path(r->spec, 0) && k < load->n; k++) {
			p.load_s = load->v[k] / (double)p.batch;
			snprintf(p.load, sizeof(p.load), "%g ms simulated",
				 1e3 * load->v[k]);
			rc = overlap_pair(r, &p, err);
		}
		p.load_s = 0;
		snprintf(p.load, sizeof(p.load), "of real data");
		if (!rc)
			rc = overlap_pair(r, &p, err);
	}
	return rc;
}

static const struct pen_flag overlap_flags[] = {
	PEN_MS("--load", "MS", "simulated loading of a batch (default 8)", "8"),
	PEN_MS("--compute", "MS", "computing of a step; a list (default 15)",
	       "15"),
	WORKERS("N", "that load while the step computes (default 1)", "1"),
	STEPS("40"),
	BATCH("samples", "32"),
	COLS("data that is made", "4096"),
	PEN_FLAGS_END,
};

static const char *const overlap_examples[] = {
	"penstock bench overlap",
	"loading of 8 ms and computing of 15 ms: 15 ms a step, or 23",
	"penstock bench overlap --load 10,20 --compute 10,20",
	"four pairs of times",
	"penstock bench overlap x.npy --compute 2 --workers 2",
	"real loading of a file, by two threads or processes",
	NULL,
};

const struct pen_experiment pen__exp_overlap = {
	.kind = { .experiment = "overlap",
		  .title = "Overlap of loading and computing",
		  .columns = COLUMNS("step=step_s|wait in next()=wait_s",
				     "step_s"),
		  .chart = { { "Time of a step",
			       "Mean time of a step, shorter is better. Not "
			       "overlapped: the loop loads by itself.",
			       "step_s" } },
		  .versus = { .vars = { "load", "compute_s", NULL },
			      .hero = "penstock, overlapped",
			      .key = "step_s",
			      .what = "a step",
			      .compared = "takes %s times as long" } },
	.args = "[PATH] [key=value ...] [flags]",
	.summary = "a step with loading behind computing, and without",
	.about = "The loop takes a batch, looks at all of it and waits as long "
		 "as a model would compute. Overlapped, the next batch is "
		 "loaded meanwhile, by threads of penstock or by processes of "
		 "PyTorch's DataLoader; else the loop loads it itself. "
		 "Simulated loading takes a set time at least; real loading is "
		 "of PATH, or of data made for the run.",
	.flags = overlap_flags,
	.examples = overlap_examples,
	.prepare = overlap,
	PEERS(true),
};

/* ---- how many workers it takes to keep up ---- */

/* The simulated times make the best answer known: a step takes the longer of
 * computing and of loading divided by the workers. */
static int workers(struct pen_run *r, struct pen_err *err)
{
	static const struct name names[] = { { "penstock", PEN_IN_C },
					     { "DataLoader", PEN_IN_PYTHON } };
	const struct pen_taken *load = pen__value(r, "--load");
	const struct pen_taken *compute = pen__value(r, "--compute");
	const struct pen_taken *n = pen__value(r, "--workers");
	int rc = pen__peers_open(r, err);

	for (size_t i = 0; !rc && i < load->n * compute->n; i++) {
		struct pen_point p = point_of(r);

		p.has_workers = true;
		p.load_s = load->v[i / compute->n];
		p.compute_s = compute->v[i % compute->n];
		rc = pen__peers_data(r, &p, p.steps * p.batch, err);
		for (size_t k = 0; !rc && k < n->n; k++) {
			p.workers = (uint64_t)n->v[k];
			rc = add(r, &p, names, 2, err);
		}
	}
	return rc;
}

static const struct pen_flag workers_flags[] = {
	WORKERS("N,...", "how many; 0: the loop loads (default 0,1,2,3,4)",
		"0,1,2,3,4"),
	PEN_MS("--load", "MS,...", "loading of a sample (default 10)", "10"),
	PEN_MS("--compute", "MS,...", "computing of a step (default 3)", "3"),
	STEPS("40"),
	BATCH("samples", "1"),
	COLS("the data that is made", "64"),
	PEN_FLAGS_END,
};

static const char *const workers_examples[] = {
	"penstock bench workers",
	"0 to 4 workers, times that end in seconds",
	"penstock bench workers --load 50 --compute 15 --steps 100",
	"the times of the usual guides",
	"penstock bench workers --load 5,20 --compute 5 --workers 0,2,8",
	"two kinds of data",
	NULL,
};

const struct pen_experiment pen__exp_workers = {
	.kind = { .experiment = "workers",
		  .title = "Number of workers",
		  .columns = COLUMNS("step=step_s|wait in next()=wait_s",
				     "step_s"),
		  .chart = { { "Time of a step",
			       "Mean time of a step, shorter is better. "
			       "Penstock's workers are threads, PyTorch's are "
			       "processes.",
			       "step_s" } },
		  .versus = { .vars = { "load_s", "compute_s", NULL },
			      .workers = true,
			      .hero = "penstock",
			      .key = "step_s",
			      .what = "a step",
			      .compared = "takes %s times as long" } },
	.args = "[key=value ...] [flags]",
	.summary = "step and waiting time by the number of workers",
	.about = "Loading a sample and computing a step take set times; what "
		 "is measured is how well workers hide the one behind the "
		 "other: mean time of a step, and of that in next(). Workers "
		 "are threads of penstock, which runs its real engine with a "
		 "wait in it, and processes of PyTorch's DataLoader; both keep "
		 "two batches a worker ahead.",
	.flags = workers_flags,
	.examples = workers_examples,
	.prepare = workers,
	PEERS(true),
};

/* ---- all rows of an array in batches ---- */

static int iterate_size(struct pen_run *r, uint64_t rows, struct pen_err *err)
{
	static const struct name first[] = {
		{ "penstock", PEN_IN_C },
		{ "penstock from Python", PEN_MODULE },
	};
	static const struct name loaders[] = {
		{ "DataLoader", PEN_IN_PYTHON },
		{ "DataLoader batched", PEN_IN_PYTHON },
		{ "DataLoader mapping", PEN_IN_PYTHON },
		{ "slicing", PEN_IN_PYTHON },
	};
	const struct pen_taken *n = pen__value(r, "--workers");
	struct pen_point p = point_of(r);
	int rc;

	p.shuffle = pen__given(r, "--shuffle");
	p.has_workers = true;
	p.steps = rows / p.batch;
	if (!p.steps)
		return pen__fail(err, PEN_EINVAL, r->name,
				 "--rows: less than one batch of %s",
				 pen__show_grouped(p.batch).s);
	rc = pen__peers_data(r, &p, p.steps * p.batch, err);
	/* threads are what penstock would take; workers are tried */
	p.workers = r->host.cpus;
	if (!rc)
		rc = add(r, &p, first, 2, err);
	for (size_t i = 0; !rc && i < 3 * n->n; i++) {
		p.workers = (uint64_t)n->v[i % n->n];
		rc = add(r, &p, &loaders[i / n->n], 1, err);
	}
	p.has_workers = false;
	return rc ? rc : add(r, &p, &loaders[3], 1, err);
}

static int iterate(struct pen_run *r, struct pen_err *err)
{
	const struct pen_taken *rows = pen__value(r, "--rows");
	int rc = pen__peers_open(r, err);

	for (size_t i = 0; !rc && i < rows->n; i++)
		rc = iterate_size(r, (uint64_t)rows->v[i], err);
	return rc;
}

static const struct pen_flag iterate_flags[] = {
	PEN_LIST("--rows", "N,...", "of the array (default 16384,65536)",
		 "16384,65536", 1, 1e9),
	COLS("float32", "256"),
	BATCH("rows", "256"),
	WORKERS("N,...", "of DataLoader (default 0,2)", "0,2"),
	PEN_SWITCH("--shuffle", "in random order instead of as they are"),
	PEN_FLAGS_END,
};

static const char *const iterate_examples[] = {
	"penstock bench iterate",
	"two sizes, rows of 1 KiB, in order",
	"penstock bench iterate --rows 1e6 --shuffle --workers 0,1,2,4",
	"a million rows in random order",
	"penstock bench iterate --rows 4096 --columns 150000 --batch 32",
	"large rows",
	NULL,
};

const struct pen_experiment pen__exp_iterate = {
	.kind = { .experiment = "iterate",
		  .title = "Iterating",
		  .columns = COLUMNS("per s=samples_per_s|time=seconds",
				     "samples_per_s"),
		  .chart = { { "Samples a second",
			       "Longer is better. Every variant delivers all "
			       "rows in batches, which are added up.",
			       "samples_per_s" } },
		  .versus = { .vars = { "rows", "cols", NULL },
			      .workers = true,
			      .hero = "penstock",
			      .key = "samples_per_s",
			      .what = "samples/s",
			      .compared = "has %s times that" } },
	.args = "[key=value ...] [flags]",
	.summary = "all rows of an array in batches, by every usual means",
	.about = "penstock in C and from Python reads the .npy file, from the "
		 "page cache; the others have the array in memory: PyTorch's "
		 "DataLoader as it is commonly used (a row an index, default "
		 "collate), batched (a BatchSampler, the array indexed once a "
		 "batch), over a mapping of tensors with __getitems__, and "
		 "plain slicing of the tensor. Every batch is added up, by one "
		 "thread, and count and sum are checked.",
	.flags = iterate_flags,
	.examples = iterate_examples,
	.prepare = iterate,
	PEERS(true),
};

/* ---- blocks put together into one array ---- */

/* By concatenation, into memory asked for beforehand, into memory that was used
 * before, and into a file that is mapped. */
static int prealloc(struct pen_run *r, struct pen_err *err)
{
	static const struct name names[] = {
		{ "penstock, fresh", PEN_IN_C },
		{ "penstock, reused", PEN_IN_C },
		{ "torch.cat", PEN_IN_PYTHON },
		{ "np.concatenate", PEN_IN_PYTHON },
		{ "preallocated", PEN_IN_PYTHON },
		{ "reused", PEN_IN_PYTHON },
		{ "TensorStore", PEN_MODULE },
	};
	const uint64_t block = (uint64_t)pen__number(r, "--block");
	const struct pen_taken *length = pen__value(r, "--length");
	int rc = pen__peers_open(r, err);

	for (size_t i = 0; !rc && i < length->n; i++) {
		const uint64_t n = (uint64_t)length->v[i];
		struct pen_point p = { .length = n,
				       .block = block & ~(uint64_t)3,
				       .want_samples = n };

		snprintf(p.want_sum, sizeof(p.want_sum), "%llu",
			 (unsigned long long)pen__blocks_sum(n, p.block));
		rc = add(r, &p, names, 7, err);
	}
	return rc;
}

static const struct pen_flag prealloc_flags[] = {
	PEN_LIST("--length", "N,...", "blocks (default 16,64,256)", "16,64,256",
		 1, 1e6),
	{ "--block", "SIZE", "bytes of a block (default 256KiB)",
	  PEN_TAKES_SIZES, "256KiB", 64, 1 << 26, 1, NULL },
	PEN_FLAGS_END,
};

static const char *const prealloc_examples[] = {
	"penstock bench prealloc",
	"16 to 256 blocks of 256 KiB",
	"penstock bench prealloc --length 50,300,500 --block 3520000",
	"the sizes of a well-known comparison",
	NULL,
};

const struct pen_experiment pen__exp_prealloc = {
	.kind = { .experiment = "prealloc",
		  .title = "Putting arrays together",
		  .columns = COLUMNS("time=seconds|bytes/s=bytes_per_s",
				     "seconds"),
		  .chart = { { "Time to put all blocks into one array",
			       "Shorter is better.", "seconds" } },
		  .versus = { .vars = { "length", NULL, NULL },
			      .hero = "penstock, reused",
			      .key = "seconds",
			      .what = "for all blocks",
			      .compared = "takes %s times as long" } },
	.args = "[flags]",
	.summary = "arrays put together: concatenated or preallocated",
	.about = "Blocks are in memory; what is measured is bringing them into "
		 "one array: torch.cat and np.concatenate of a list, a tensor "
		 "made beforehand and filled, the same with memory that had "
		 "been written before (reused), penstock.TensorStore, which is "
		 "a mapped file, and copying in C into fresh and reused "
		 "memory. The array's content is checked in every run.",
	.flags = prealloc_flags,
	.examples = prealloc_examples,
	.prepare = prealloc,
	PEERS(false),
};

/* ---- what workers cost in memory ---- */

/* The memory of all processes, by proportional share (PSS): a forked worker
 * begins with shared pages and ends up with copies of those that reference
 * counts are in. */
static int memory(struct pen_run *r, struct pen_err *err)
{
	static const struct name names[] = {
		{ "penstock", PEN_IN_C },
		{ "penstock from Python", PEN_MODULE },
		{ "DataLoader array", PEN_IN_PYTHON },
		{ "DataLoader mapped", PEN_IN_PYTHON },
		{ "DataLoader list", PEN_IN_PYTHON },
	};
	const struct pen_taken *n = pen__value(r, "--workers");
	struct pen_point p = point_of(r);
	int rc = pen__peers_open(r, err);

	p.memory = true;
	p.has_workers = true;
	p.steps = (uint64_t)pen__number(r, "--rows") / p.batch;
	if (!rc && !p.steps)
		rc = pen__fail(err, PEN_EINVAL, r->name,
			       "--rows: less than a batch");
	if (!rc)
		rc = pen__peers_data(r, &p, p.steps * p.batch, err);
	for (size_t i = 0; !rc && i < n->n; i++) {
		const size_t from = n->v[i] > 0 ? 0 : 2;

		p.workers = (uint64_t)n->v[i];
		rc = add(r, &p, names + from, 5 - from, err);
	}
	return rc;
}

static const struct pen_flag memory_flags[] = {
	WORKERS("N,...", "how many (default 1,2,4)", "1,2,4"),
	PEN_COUNT("--rows", "of the data (default 65536)", "65536", 1e9),
	COLS("float32", "256"),
	BATCH("rows", "256"),
	PEN_FLAGS_END,
};

static const char *const memory_examples[] = {
	"penstock bench memory",
	"1, 2 and 4 workers on 64 MiB",
	"penstock bench memory --rows 1000000 --workers 1,4,16",
	"a gigabyte, many workers",
	NULL,
};

const struct pen_experiment pen__exp_memory = {
	.kind = { .experiment = "memory",
		  .title = "Memory of workers",
		  .columns =
			  COLUMNS("peak=pss_peak_bytes|before "
				  "loading=pss_base_bytes|per s=samples_per_s",
				  "pss_peak_bytes"),
		  .chart = { { "Peak memory",
			       "Of all processes together, shorter is better; "
			       "pages that several share count once.",
			       "pss_peak_bytes" } },
		  .versus = { .vars = { "workers", NULL, NULL },
			      .hero = "penstock",
			      .key = "pss_peak_bytes",
			      .what = "at the peak",
			      .compared = "takes %s times as much" } },
	.args = "[key=value ...] [flags]",
	.summary = "peak memory by the number of workers",
	.about = "All variants go through the same rows once: penstock's "
		 "threads, which map the file, and DataLoader's processes, "
		 "with the data as one array in memory, as the mapped file, "
		 "and as a list of rows, as it is in many programs. Memory is "
		 "that of the process and all below it, shared pages counted "
		 "once (PSS), looked at every 10 to 20 ms while it runs; "
		 "Python and PyTorch themselves are in it, and so is the "
		 "mapped file. 'before loading' is what was there when the "
		 "workers were started.",
	.flags = memory_flags,
	.examples = memory_examples,
	.prepare = memory,
	PEERS(true),
};

/* ---- the most a faster loader could still gain ---- */

#define KEPT 8

/* The same loop with real loading and with a few batches that were kept, which
 * cost nothing to load; what is between the two is all there is to win. */
static int headspace(struct pen_run *r, struct pen_err *err)
{
	static const struct name names[] = {
		{ "penstock", PEN_IN_C },
		{ "DataLoader", PEN_IN_PYTHON },
		{ "penstock, cached", PEN_IN_C },
		{ "DataLoader, cached", PEN_IN_PYTHON },
	};
	const struct pen_taken *compute = pen__value(r, "--compute");
	struct pen_point p = point_of(r);
	const uint64_t steps = p.steps < KEPT ? KEPT : p.steps - p.steps % KEPT;
	int rc = some_workers(r, err);

	if (!rc)
		rc = pen__peers_open(r, err);
	for (size_t i = 0; !rc && i < 2 * compute->n; i++) {
		p.compute_s = compute->v[i / 2];
		p.workers = (uint64_t)pen__number(r, "--workers");
		p.cached = i % 2 ? KEPT : 0;
		p.steps = steps;
		rc = pen__peers_data(r, &p, steps * p.batch, err);
		if (!rc)
			rc = add(r, &p, names + i % 2 * 2, 2, err);
	}
	return rc;
}

/* What a loader that takes no time at all would still gain. */
static void put_headspace(struct pen_text *t, const struct pen_variants *a,
			  const struct pen_variant *like)
{
	static const char *const who[] = { "penstock", "DataLoader" };

	for (size_t i = 0; i < 2; i++) {
		const struct pen_variant *real, *none;
		struct pen_change c;
		char cached[64];

		snprintf(cached, sizeof(cached), "%s, cached", who[i]);
		real = pen__variant_rival(a, like, who[i]);
		none = pen__variant_rival(a, like, cached);
		if (!real || !none)
			continue;
		c = pen__change_of(a, real, none, "step_s");
		if (c.differs && c.share < 0)
			pen__text_add(t,
				      " With %s a faster loader could save at "
				      "most %s of a step.",
				      who[i], pen__show_share(-c.share).s);
		else
			pen__text_add(t,
				      " With %s a faster loader could save "
				      "nothing beyond noise.",
				      who[i]);
	}
}

static const struct pen_flag headspace_flags[] = {
	PEN_MS("--compute", "MS,...", "computing of a step (default 0,1,5)",
	       "0,1,5"),
	WORKERS("N", "threads, or processes of DataLoader (default 2)", "2"),
	STEPS("200"),
	BATCH("samples", "64"),
	COLS("data that is made", "1024"),
	PEN_FLAGS_END,
};

static const char *const headspace_examples[] = {
	"penstock bench headspace",
	"data made for it, steps of 0, 1 and 5 ms",
	"penstock bench headspace images/ --compute 20 --batch 32",
	"would a faster loader help a model that takes 20 ms a step?",
	NULL,
};

const struct pen_experiment pen__exp_headspace = {
	.kind = { .experiment = "headspace",
		  .title = "Head space",
		  .columns = COLUMNS("step=step_s|wait in next()=wait_s",
				     "step_s"),
		  .chart = { { "Time of a step",
			       "Mean time of a step, shorter is better. "
			       "Cached: the same few batches over and over, "
			       "which no loader can beat.",
			       "step_s" } },
		  .versus = { .vars = { "compute_s", NULL, NULL },
			      .hero = "penstock",
			      .key = "step_s",
			      .what = "a step",
			      .compared = "takes %s times as long",
			      .more = put_headspace } },
	.args = "[PATH] [key=value ...] [flags]",
	.summary = "the most a faster loader could still gain",
	.about = "A loop that takes a batch, looks at all of it and waits as "
		 "long as a model would compute, with real loading of PATH (or "
		 "of data made for it) and with eight batches that were kept "
		 "and are given over and over. No loader can be faster than "
		 "that, so the difference is the most that is to be gained. "
		 "PyTorch takes part when PATH is one .npy file.",
	.flags = headspace_flags,
	.examples = headspace_examples,
	.prepare = headspace,
	PEERS(true),
};
