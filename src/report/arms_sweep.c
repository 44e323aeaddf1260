/* Batches ahead and batch sizes, in tables, charts and words. */
#include <math.h>
#include <string.h>

#include "report/arms.h"

/* ---- batches ahead ---- */

static const struct pen_arm_column prefetch_columns[] = {
	PEN_COLUMN("ahead", "arm", NULL),
	PEN_COLUMN("cache", "cache", NULL),
	PEN_COLUMN("per s", "samples_per_s", pen__show_count),
	PEN_SPREAD_COLUMN("samples_per_s"),
	PEN_COLUMN("wait p50", "wait_p50_s", pen__show_time),
	PEN_COLUMN("wait p99", "wait_p99_s", pen__show_time),
	PEN_COLUMN("waited", "wait_share", pen__show_share),
	PEN_COLUMN("memory", "own_memory_bytes", pen__show_bytes),
	PEN_PAGE_COLUMN("CPU s per million", "cpu_s_per_million",
			pen__show_number),
	PEN_COLUMNS_END,
};

static const struct pen_arm_chart prefetch_charts[] = {
	{ "Samples a second", "By batches prepared ahead. Longer is better.",
	  "samples_per_s", pen__show_count },
	{ "Wait for a batch, 99th percentile",
	  "By batches prepared ahead. Shorter is better.", "wait_p99_s",
	  pen__show_time },
	{ NULL, NULL, NULL, NULL },
};

/* The least that reaches 95 % of the best. */
static void prefetch_words(struct pen_text *t, const struct pen_arms *a)
{
	const struct pen_arm *best = pen__arms_best(a, "samples_per_s", false);
	const struct pen_arm *lean = best;
	double most;

	if (!best)
		return;
	most = pen__arms_median(a, best, "samples_per_s");
	for (size_t i = 0; i < a->narms; i++)
		if (pen__arms_median(a, &a->arm[i], "samples_per_s") >=
			    0.95 * most &&
		    pen__arms_median(a, &a->arm[i], "own_memory_bytes") <
			    pen__arms_median(a, lean, "own_memory_bytes"))
			lean = &a->arm[i];
	pen__text_add(t, "Fastest with %s ahead: %s samples a second, ",
		      pen__line_text(best->row, "arm"),
		      pen__show_count(most).s);
	pen__text_add(
		t, "waiting %s of the time.\n",
		pen__show_share(pen__arms_median(a, best, "wait_share")).s);
	if (lean == best)
		return;
	pen__text_add(t, "%s ahead comes within 5 %% of it in ",
		      pen__line_text(lean->row, "arm"));
	pen__text_add(
		t, "%s instead of %s of memory.\n",
		pen__show_bytes(pen__arms_median(a, lean, "own_memory_bytes"))
			.s,
		pen__show_bytes(pen__arms_median(a, best, "own_memory_bytes"))
			.s);
}

const struct pen_kind pen__kind_prefetch = {
	.experiment = "prefetch",
	.title = "Batches ahead",
	.columns = prefetch_columns,
	.charts = prefetch_charts,
	.words = prefetch_words,
};

/* ---- batch sizes ---- */

static const struct pen_arm_column batch_columns[] = {
	PEN_COLUMN("batch", "arm", NULL),
	PEN_COLUMN("cache", "cache", NULL),
	PEN_COLUMN("per s", "samples_per_s", pen__show_count),
	PEN_SPREAD_COLUMN("samples_per_s"),
	PEN_COLUMN("a batch", "s_per_batch", pen__show_time),
	PEN_COLUMN("a sample", "s_per_sample", pen__show_time),
	PEN_COLUMN("p50", "batch_p50_s", pen__show_time),
	PEN_COLUMN("p99", "batch_p99_s", pen__show_time),
	PEN_COLUMN("CPU s per million", "cpu_s_per_million", pen__show_number),
	PEN_COLUMN("memory", "own_memory_bytes", pen__show_bytes),
	PEN_COLUMNS_END,
};

static const struct pen_arm_chart batch_charts[] = {
	{ "Samples a second", "By samples a batch. Longer is better.",
	  "samples_per_s", pen__show_count },
	{ "Time of a sample",
	  "By samples a batch: what a batch costs by itself is shared by its "
	  "samples. Shorter is better.",
	  "s_per_sample", pen__show_time },
	{ NULL, NULL, NULL, NULL },
};

/*
 * Seconds of a batch = c + d x its samples, fitted so that all sizes have the
 * same say: residuals are relative.
 */
static bool fit(const struct pen_arms *a, double *c, double *d)
{
	double s0 = 0, s1 = 0, s2 = 0, t0 = 0, t1 = 0, det;
	size_t n = 0;

	for (size_t i = 0; i < a->narms; i++) {
		const double t = pen__arms_median(a, &a->arm[i], "s_per_batch");
		const double x = pen__arms_median(a, &a->arm[i], "batch");

		if (isnan(t) || t <= 0 || isnan(x) ||
		    pen__line_true(a->arm[i].row, "cold"))
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

static void batch_words(struct pen_text *t, const struct pen_arms *a)
{
	const struct pen_arm *best = pen__arms_best(a, "samples_per_s", false);
	double c, d;

	if (!best)
		return;
	pen__text_add(
		t, "Fastest with batches of %s: %s samples a second.\n",
		pen__line_text(best->row, "arm"),
		pen__show_count(pen__arms_median(a, best, "samples_per_s")).s);
	if (!fit(a, &c, &d))
		return;
	if (c <= 0) {
		pen__text_add(t,
			      "A batch costs nothing that can be told from "
			      "its samples' %s each.\n",
			      pen__show_time(d).s);
		return;
	}
	pen__text_add(t, "A batch costs about %s, ", pen__show_time(c).s);
	pen__text_add(t, "and each of its samples %s: ", pen__show_time(d).s);
	pen__text_add(t, "from %s samples on, samples are most of it.\n",
		      pen__show_whole(ceil(c / d)).s);
}

const struct pen_kind pen__kind_batch_size = {
	.experiment = "batch-size",
	.title = "Batch size",
	.columns = batch_columns,
	.charts = batch_charts,
	.words = batch_words,
};
