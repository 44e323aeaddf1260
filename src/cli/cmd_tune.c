/*
 * tune: finds the settings that load this data fastest on this machine, in a
 * bounded time. Successive halving: all candidates run for a short time, the
 * better half for twice as long, and so on; then the best few and the defaults
 * take turns, which gives the evidence. A short run of the defaults comes first
 * to fill the page cache; otherwise later candidates would look faster. A run
 * is never so short that the first batch, which may take an entire shuffle
 * block, dominates it; fewer candidates are tried instead.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "cli/cli.h"
#include "cli/tune.h"
#include "experiment/process.h"
#include "report/doc.h"
#include "report/spread.h"

#define FINALISTS 4
#define FINAL_RUNS 5

/* Share of the time for each phase. */
#define WARMING 0.05
#define ROUNDS 0.45
#define FINALS 0.35
#define TIE 0.15
#define TIE_RUNS 5
#define RAMPS 2.5 /* lower bound of a run, in times of its first batch */

static const struct flag flags[] = {
	{ "--seconds", "S", "total time to spend (default 60)" },
	{ "--cold", NULL,
	  "drop the files from the page cache before each run" },
	{ "--dry-run", NULL, "print the candidates without running them" },
	{ "--json", NULL, "print the result as JSON" },
	{ "--quiet", NULL, "show no progress line" },
	{ NULL, NULL, NULL },
};

/* ---- a run ---- */

/* Learns from a run of the defaults how long later runs must be. */
static void learn(struct tune *t, const struct pen_doc *d, double seconds)
{
	const double first = pen__doc_number(d, 0, "first_batch_s");
	double ramp = seconds; /* no batch at all: the first takes longer than
				  the run */

	if (first > 0)
		ramp = first - pen__doc_number(d, 0, "open_s");
	if (!t->ramp_s || ramp < t->ramp_s)
		t->ramp_s = ramp;
	t->cached = pen__doc_number(d, 0, "data.page_cache_share");
}

static double rate_of(struct tune *t, const struct candidate *c,
		      const struct pen_doc *d, double seconds)
{
	if (!c->n && !t->workload)
		learn(t, d, seconds);
	/* for a job: all samples over all time, because its own rate excludes
	 * batches prefetched before an epoch */
	return t->workload ? pen__doc_number(d, 0, "totals.samples") /
				     pen__doc_number(d, 0, "totals.train_s")
			   : pen__doc_number(d, 0, "samples_per_s");
}

/* Limits the run to loading at full speed. */
static void put_limits(const struct tune *t, const char *time,
		       const char **argv)
{
	const char *const of_run[] = { "train.computation_time=0",
				       "workflow.checkpoint=false",
				       "workflow.evaluation=false",
				       t->folder,
				       time,
				       t->cold ? "reader.page_cache=drop"
					       : NULL };
	const char *const of_load[] = { "epochs=0", "--seconds", time,
					t->cold ? "--drop-cache" : NULL };

	if (t->workload)
		memcpy(argv, of_run, sizeof(of_run));
	else
		memcpy(argv, of_load, sizeof(of_load));
}

static double run_one(struct tune *t, const struct candidate *c, double seconds)
{
	const char *argv[TUNE_ARGS + TUNE_SETTINGS + 16] = {
		"", t->workload ? "run" : "load", t->target, "--json", "--quiet"
	};
	struct pen_process done = { .stop = interrupt_asked };
	struct pen_doc d = { .name = t->target };
	struct pen_err err = { 0 };
	double rate = NAN;
	char time[64];
	size_t n = 5;

	snprintf(time, sizeof(time), t->workload ? "train.epochs=%.0f" : "%.3f",
		 t->workload ? fmax(1, t->epochs * seconds) : seconds);
	for (size_t i = 0; i < t->nfixed; i++)
		argv[n++] = t->fixed[i];
	for (size_t i = 0; i < c->n; i++)
		argv[n++] = c->set[i];
	put_limits(t, time, argv + n);
	t->runs++;
	if (!pen__process_doc(&done, argv, &d, &err)) {
		rate = rate_of(t, c, &d, seconds);
		pen__jdoc_close(&d.j);
	} else if (done.code) {
		/* some settings do not work everywhere, such as O_DIRECT on
		 * tmpfs */
		t->failed++;
		snprintf(t->why, sizeof(t->why), "%.250s", err.msg);
		t->number = err.number;
		t->code = done.code;
	}
	t->over_s += fmax(0, done.real_s - seconds);
	return rate;
}

/* Overhead per run; for workloads it is part of the epochs. */
static double over(const struct tune *t)
{
	return t->runs && !t->workload ? t->over_s / (double)t->runs : 0;
}

/* Shorter runs are meaningless, but there must be time for many runs. */
static double least(const struct tune *t)
{
	return fmin(RAMPS * t->ramp_s, t->budget / 30);
}

/* Seconds for each of `runs` runs that have a share of the time. */
static double seconds_of(const struct tune *t, double share, size_t runs)
{
	const double each = t->budget * share / (double)runs;

	return fmax(fmax(each - over(t), each / 4), fmax(least(t), 0.001));
}

static void show_progress(const struct tune *t, const struct candidate *c)
{
	double spent = (double)(pen__now_ns() - t->start_ns) / 1e9;

	if (t->quiet || t->json || !isatty(STDERR_FILENO))
		return;
	fprintf(stderr, "\r\033[K%.0f of %.0f s: %.60s", spent, t->budget,
		tune_name(c));
	fflush(stderr);
}

static int by_median(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (isnan(x->median) || isnan(y->median))
		return isnan(x->median) - isnan(y->median);
	return (x->median < y->median) - (x->median > y->median);
}

static void add_run(struct tune *t, struct candidate *c, double seconds)
{
	double sorted[TUNE_RUNS];

	show_progress(t, c);
	if (c->nruns < TUNE_RUNS)
		c->rate[c->nruns++] = run_one(t, c, seconds);
	memcpy(sorted, c->rate, c->nruns * sizeof(*sorted));
	c->median = pen__median(sorted, c->nruns);
	/* a candidate that failed once is out */
	for (size_t i = 0; i < c->nruns; i++)
		if (isnan(c->rate[i]))
			c->median = NAN;
}

/* One round: all remaining candidates run once, in random order. */
static void round_of(struct tune *t, size_t n, double seconds, unsigned number)
{
	struct pen_perm order;

	pen__perm_init(&order, n, 7, number);
	for (size_t i = 0; i < n && !interrupted(); i++) {
		struct candidate *c = &t->c[pen__perm_at(&order, i)];

		/* a longer run replaces the shorter ones before it */
		c->nruns = 0;
		add_run(t, c, seconds);
	}
	qsort(t->c, n, sizeof(*t->c), by_median);
}

/* All rounds take the same time. */
static size_t halve(struct tune *t)
{
	size_t n = t->n, rounds = 1;

	for (size_t k = n; k > FINALISTS; k = (k + 1) / 2)
		rounds++;
	for (unsigned r = 0; r + 1 < rounds && !interrupted(); r++) {
		round_of(t, n, seconds_of(t, ROUNDS / (double)(rounds - 1), n),
			 r);
		n = (n + 1) / 2;
		while (n > 1 && isnan(t->c[n - 1].median))
			n--;
	}
	return n < FINALISTS ? n : FINALISTS;
}

/* If the best candidate beats the defaults but not beyond noise, both run some
 * more. */
static void break_tie(struct tune *t, size_t n)
{
	struct candidate *best = &t->c[0], *dflt = tune_default(t, n);
	const double seconds = seconds_of(t, TIE, 2 * TIE_RUNS);

	for (unsigned r = 0; r < TIE_RUNS && !interrupted(); r++) {
		if (!dflt || isnan(dflt->median) || tune_better(best, dflt) ||
		    !(best->median > (1 + TUNE_LEAST) * dflt->median))
			return;
		add_run(t, r % 2 ? best : dflt, seconds);
		add_run(t, r % 2 ? dflt : best, seconds);
	}
}

/* The best candidates and the defaults take turns. */
static size_t finals(struct tune *t, size_t n)
{
	double seconds;

	for (size_t i = n; i < t->n; i++)
		if (t->c[i].is_default) {
			struct candidate keep = t->c[i];

			t->c[i] = t->c[n];
			t->c[n++] = keep;
			break;
		}
	seconds = seconds_of(t, FINALS, n * FINAL_RUNS);
	for (size_t i = 0; i < n; i++)
		t->c[i].nruns = 0;
	for (unsigned r = 0; r < FINAL_RUNS; r++)
		for (size_t i = 0; i < n && !interrupted(); i++)
			add_run(t, &t->c[(i + r) % n], seconds);
	qsort(t->c, n, sizeof(*t->c), by_median);
	break_tie(t, n);
	qsort(t->c, n, sizeof(*t->c), by_median);
	return n;
}

/* Fills the page cache and measures the start-up time of a run. */
static void warm(struct tune *t)
{
	const struct candidate none = { 0 };

	if (t->workload)
		return;
	if (!t->cold)
		run_one(t, &none, t->budget * WARMING / 2);
	run_one(t, &none, t->budget * WARMING / 2);
}

static bool too_many(const struct tune *t)
{
	return (double)t->n * (least(t) + over(t)) > t->budget * ROUNDS;
}

/* Drops candidates if there is no time for all: first those that differ least
 * from others, then direct reads of data that is in the page cache. */
static void thin(struct tune *t)
{
	if (too_many(t))
		tune_leave_out(t, "prefetch=2");
	if (too_many(t) && !t->cold && t->cached > 0.9)
		tune_leave_out(t, "store.direct=true");
}

/* For workloads: measures epochs per second. */
static void pace(struct tune *t)
{
	const struct candidate none = { 0 };
	uint64_t start;

	if (!t->workload)
		return;
	run_one(t, &none, 0); /* also generates the data */
	start = pen__now_ns();
	if (!isnan(run_one(t, &none, 0)))
		t->epochs = 1e9 / (double)(pen__now_ns() - start);
}

#define FOLDER "output.folder="

static int make_folder(struct tune *t)
{
	const char *tmp = getenv("TMPDIR");
	struct pen_err err = { 0 };

	if (!t->workload)
		return -1;
	snprintf(t->folder, sizeof(t->folder), FOLDER "%s/penstock-tune.XXXXXX",
		 tmp && *tmp ? tmp : "/tmp");
	if (mkdtemp(t->folder + strlen(FOLDER)))
		return -1;
	pen__fail_sys(&err, errno, t->folder + strlen(FOLDER),
		      "cannot create a temporary directory; set TMPDIR to a "
		      "writable one");
	t->folder[0] = '\0';
	return complain(&err);
}

static int tune_it(struct tune *t)
{
	struct pen_err err = { 0 };
	size_t n;
	int rc;

	t->start_ns = pen__now_ns();
	pen__others_start(&t->others);
	tune_plan(t);
	if (t->dry)
		return tune_print_plan(t);
	rc = make_folder(t);
	if (rc >= 0)
		return rc;
	pace(t);
	warm(t);
	thin(t);
	n = finals(t, halve(t));
	if (!t->quiet && !t->json && isatty(STDERR_FILENO))
		fputs("\r\033[K", stderr);
	if (interrupted())
		return 128 + interrupted();
	if (!n || isnan(t->c[0].median)) {
		/* the message of a failed run names its object */
		pen__fail(&err,
			  !t->why[0]  ? P_TOO_FEW_SAMPLES
			  : t->number ? t->number
				      : P_RUN_FAILED,
			  t->why[0] ? NULL : t->target, "%s",
			  t->why[0] ? t->why
				    : "no run delivered a batch; raise "
				      "--seconds");
		rc = complain(&err);
		return t->code ? t->code : rc;
	}
	return tune_print(t, n);
}

static int take(struct tune *t, const struct args *a, int kind)
{
	char *end;

	if (kind == ARG_BAD)
		return EXIT_USAGE;
	if (kind == ARG_FLAG && !strcmp(a->key, "--seconds")) {
		t->budget = strtod(a->value, &end);
		if (*end || !(t->budget >= 1) || t->budget > 1e6)
			return complain_usage(P_BAD_VALUE, "tune",
					      "--seconds: '%s' is not a number "
					      "of seconds of at least 1",
					      a->value);
	} else if (kind == ARG_FLAG) {
		*(!strcmp(a->key, "--cold")	 ? &t->cold
		  : !strcmp(a->key, "--json")	 ? &t->json
		  : !strcmp(a->key, "--dry-run") ? &t->dry
						 : &t->quiet) = true;
	} else if (kind == ARG_PATH && !t->target) {
		t->target = a->value;
	} else {
		if (t->nfixed == TUNE_ARGS)
			return complain_usage(P_TOO_LONG, "tune",
					      "too many settings");
		t->fixed[t->nfixed++] = a->argv[a->at - 1];
	}
	return -1;
}

static int run(int argc, char **argv)
{
	struct args a = { .cmd = &pen__cmd_tune, .argc = argc, .argv = argv };
	struct tune *t = pen__calloc(1, sizeof(*t));
	struct pen_err err = { 0 };
	int kind, rc = -1;

	if (!t) {
		pen__fail_nomem(&err, "tune", sizeof(*t));
		return complain(&err);
	}
	t->budget = 60;
	while (rc < 0 && (kind = args_next(&a)) != ARG_END)
		rc = take(t, &a, kind);
	if (rc < 0 && !t->target)
		rc = complain_usage(P_MISSING_SETTING, "tune",
				    "no PATH or WORKLOAD given");
	if (rc < 0) {
		t->workload = pen__names_workload(t->target);
		rc = tune_it(t);
	}
	if (t->folder[0])
		pen__remove_tree(t->folder + strlen(FOLDER));
	pen__free(t);
	return rc;
}

static const char *const examples[] = {
	"penstock tune data/ batch_size=256 shuffle=true",
	"threads, prefetch depth, reads in flight and store for this data",
	"penstock tune x.h5ad sampler=block --seconds 120",
	"also tunes the chunk size of the block shuffle",
	"penstock tune unet3d_small",
	"threads, prefetch depth and direct reads of a workload",
	NULL,
};

const struct command pen__cmd_tune = {
	.name = "tune",
	.args = "PATH|WORKLOAD [key=value ...] [flags]",
	.summary = "find the settings that load this data fastest here",
	.about = "Tries stores, threads, prefetch depths and reads in flight "
		 "(for a block shuffle also the chunk size) by successive "
		 "halving: short runs of all candidates, longer runs of the "
		 "better half, and so on; then the best few and the defaults "
		 "take turns. Settings given on the command line are kept. "
		 "Prints the recommended settings as YAML and for Python, with "
		 "the evidence.",
	.flags = flags,
	.examples = examples,
	.run = run,
};
