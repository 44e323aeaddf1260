/*
 * Settings of a loader against rate, wait and memory: batches prepared ahead
 * and samples a batch. All variants deliver the same samples.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "experiment/harness.h"

/* Runs with the setup's value for one setting. */
static int with_value(struct pen_run *r, const struct pen_trial *t,
		      struct pen_pass *p, const char *key, struct pen_text *j,
		      struct pen_err *err)
{
	char value[24];
	const struct pen_setting set[] = { { key, value }, { NULL, NULL } };

	snprintf(value, sizeof(value), "%llu",
		 (unsigned long long)t->of->value);
	return pen__run_pass_with(r, t, p, set, j, err);
}

/* ---- batches ahead ---- */

/* A consumer that takes its time is what prefetching is for: one that asks at
 * once empties every queue. */
static int step(void *arg, const struct pen_batch *b, struct pen_err *err)
{
	const struct pen_run *r = arg;
	const bool busy = pen__given(r, "--busy");
	const uint64_t until =
		pen__now_ns() + (uint64_t)pen__number(r, "--step");
	const struct timespec t = { (time_t)(until / 1000000000),
				    (long)(until % 1000000000) };

	(void)b;
	(void)err;
	while (busy && pen__now_ns() < until)
		;
	while (!busy &&
	       clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL))
		;
	return 0;
}

static int run_ahead(struct pen_run *r, const struct pen_trial *t,
		     struct pen_text *j, struct pen_err *err)
{
	const double ns = pen__number(r, "--step");
	struct pen_pass pass = { .content = true,
				 .eat = ns > 0 ? step : NULL,
				 .arg = r };

	pen__json_num(j, "step_s", ns / 1e9);
	return with_value(r, t, &pass, "prefetch", j, err);
}

static int prepare_ahead(struct pen_run *r, struct pen_err *err)
{
	const struct pen_taken *ahead = pen__value(r, "--ahead");

	if (pen__given(r, "--busy") && !(pen__number(r, "--step") > 0))
		return pen__fail(err, PEN_EINVAL, r->name,
				 "--busy has no effect without --step");
	for (size_t i = 0; i < ahead->n; i++) {
		const uint64_t n = (uint64_t)ahead->v[i];
		struct pen_setup *s = pen__setup_add(
			r, n ? pen__show_grouped(n).s : "auto", "", n, err);

		if (!s)
			return PEN_ENOMEM;
		snprintf(s->check, sizeof(s->check), "step=%.0f%s",
			 pen__number(r, "--step"),
			 pen__given(r, "--busy") ? " busy" : "");
	}
	return pen__run_data(r, err);
}

/* Of those that are as good as the best, the one that takes least memory. */
static void words_ahead(struct pen_text *t, const struct pen_variants *a)
{
	static const struct pen_ranking fastest = {
		.what = "Fastest, by batches ahead",
		.key = "samples_per_s",
		.with = "in",
		.also = "own_memory_bytes"
	};
	const struct pen_variant *best = pen__put_best(t, a, &fastest);

	if (best)
		pen__put_leanest(t, a, best);
}

static const struct pen_flag ahead_flags[] = {
	PEN_LIST("--ahead", "LIST",
		 "batches ahead; 0: as the loader chooses (default "
		 "0,1,2,4,8,16)",
		 "0,1,2,4,8,16", 0, 1e6),
	PEN_FLAG("--step", "TIME",
		 "the consumer takes so long for a batch, as 5ms (default: no "
		 "time)",
		 PEN_TAKES_TIME),
	PEN_SWITCH("--busy",
		   "and computes meanwhile, as a model on this CPU does; "
		   "without it, it waits, as for an accelerator"),
	PEN_FLAGS_END,
};

static const char *const ahead_examples[] = {
	"penstock bench prefetch data/ batch_size=64 sampler=shuffle",
	"0 (auto), 1, 2, 4, 8 and 16 batches ahead",
	"penstock bench prefetch data/ --step 5ms --ahead 1,2,3,4,6,8",
	"beside a model that takes 5 ms a batch",
	"penstock bench prefetch --samples 20k --shape 3x64x64 --step 2ms "
	"--busy",
	"on data made for it, and a model that computes on this CPU",
	NULL,
};

const struct pen_experiment pen__exp_prefetch = {
	.kind = { .experiment = "prefetch",
		  .title = "Batches ahead",
		  .columns =
			  "ahead=arm|cache|per s=samples_per_s|wait "
			  "p50=wait_p50_s|wait "
			  "p99=wait_p99_s|waited=wait_share|memory=own_memory_"
			  "bytes|+CPU s per million=cpu_s_per_million",
		  .chart = { { "Samples a second",
			       "By batches prepared ahead. Longer is better.",
			       "samples_per_s" },
			     { "Wait for a batch, 99th percentile",
			       "By batches prepared ahead. Shorter is better.",
			       "wait_p99_s" } },
		  .words = words_ahead },
	.args = "[PATH] [key=value ...] [flags]",
	.summary = "batches ahead against rate, wait and memory",
	.about = "Runs the same epoch with another number of batches prepared "
		 "ahead and says how long the consumer waited for batches "
		 "(median and 99th percentile) and what memory that took. "
		 "Every byte delivered is read once; variants that deliver "
		 "something else have no rate.",
	.flags = ahead_flags,
	.has = PEN_HAS_MADE | PEN_HAS_PASS | PEN_HAS_SPEC,
	.refuses = (const char *const[]){ "prefetch=", PEN_SETS "; see --ahead",
					  NULL },
	.examples = ahead_examples,
	.prepare = prepare_ahead,
	.run = run_ahead,
};

/* ---- samples a batch ---- */

static int run_size(struct pen_run *r, const struct pen_trial *t,
		    struct pen_text *j, struct pen_err *err)
{
	return with_value(r, t, NULL, "batch_size", j, err);
}

static int prepare_sizes(struct pen_run *r, struct pen_err *err)
{
	const struct pen_taken *size = pen__value(r, "--sizes");

	for (size_t i = 0; i < size->n; i++) {
		const uint64_t n = (uint64_t)size->v[i];

		if (!pen__setup_add(r, pen__show_grouped(n).s, "", n, err))
			return PEN_ENOMEM;
	}
	return pen__run_data(r, err);
}

/*
 * Seconds of a batch = c + d x its samples, fitted so that all sizes have the
 * same say: residuals are relative.
 */
static bool fit(const struct pen_variants *a, double *c, double *d)
{
	double s0 = 0, s1 = 0, s2 = 0, t0 = 0, t1 = 0, det;
	size_t n = 0;

	for (size_t i = 0; i < a->n; i++) {
		const double t = pen__median_of(a, &a->v[i], "s_per_batch");
		const double x = pen__median_of(a, &a->v[i], "batch");

		if (isnan(t) || t <= 0 || isnan(x) ||
		    pen__line_true(a->v[i].row, "cold"))
			continue;
		s0 += 1 / (t * t);
		s1 += x / (t * t);
		s2 += x * x / (t * t);
		t0 += 1 / t;
		t1 += x / t;
		n++;
	}
	det = s0 * s2 - s1 * s1;
	if (n < 3 || !(det > 0))
		return false;
	*c = (t0 * s2 - t1 * s1) / det;
	*d = (t1 * s0 - t0 * s1) / det;
	return *d > 0;
}

static void words_size(struct pen_text *t, const struct pen_variants *a)
{
	double c, d;

	if (!fit(a, &c, &d))
		return;
	if (c <= 0) {
		pen__text_add(t,
			      "A batch costs nothing that can be told from its "
			      "samples' %s each.\n",
			      pen__show_time(d).s);
		return;
	}
	pen__text_add(t, "A batch costs about %s, ", pen__show_time(c).s);
	pen__text_add(t, "and each of its samples %s: ", pen__show_time(d).s);
	pen__text_add(t, "from %s samples on, samples are most of it.\n",
		      pen__show_whole(ceil(c / d)).s);
}

static const struct pen_flag size_flags[] = {
	PEN_LIST("--sizes", "LIST",
		 "samples a batch (default 1,4,16,64,256,1024,4096)",
		 "1,4,16,64,256,1024,4096", 1, 4e9),
	PEN_FLAGS_END,
};

static const char *const size_examples[] = {
	"penstock bench batch-size data/ sampler=shuffle",
	"1 to 4,096 samples a batch",
	"penstock bench batch-size x.npy --sizes 32,64,128 threads=1 --repeats "
	"5",
	"three sizes, five times in turns, with one thread",
	"penstock bench batch-size --samples 100k --shape 256",
	"on data made for it",
	NULL,
};

const struct pen_experiment pen__exp_batch_size = {
	.kind = { .experiment = "batch-size",
		  .title = "Batch size",
		  .columns =
			  "batch=arm|cache|per s=samples_per_s|a "
			  "batch=s_per_batch|a "
			  "sample=s_per_sample|p50=batch_p50_s|p99=batch_p99_s|"
			  "CPU s per "
			  "million=cpu_s_per_million|memory=own_memory_bytes",
		  .chart = { { "Samples a second",
			       "By samples a batch. Longer is better.",
			       "samples_per_s" },
			     { "Time of a sample",
			       "By samples a batch: what a batch costs by "
			       "itself is shared by its samples. Shorter is "
			       "better.",
			       "s_per_sample" } },
		  .best =
			  (const struct pen_ranking[]){
				  { .what = "Fastest, by samples a batch",
				    .key = "samples_per_s" },
				  { .what = NULL } },
		  .words = words_size },
	.args = "[PATH] [key=value ...] [flags]",
	.summary = "samples a batch against samples a second",
	.about = "Runs the same epoch in batches of other sizes and says what "
		 "a batch costs by itself and what a sample does, by a line "
		 "through the times of a batch. Every byte delivered is read "
		 "once; variants that deliver something else have no rate.",
	.flags = size_flags,
	.has = PEN_HAS_MADE | PEN_HAS_PASS | PEN_HAS_SPEC,
	.refuses = (const char *const[]){ "-n",
					  "would give every size other "
					  "samples; subset=0:N does it",
					  "batch_size=",
					  PEN_SETS "; see --sizes", NULL },
	.examples = size_examples,
	.prepare = prepare_sizes,
	.run = run_size,
};
