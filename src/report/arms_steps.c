/* Penstock beside others: loops, arrays and memory. */
#include <math.h>
#include <stdio.h>

#include "report/arms.h"

#define FIRST                                                                  \
	PEN_PAGE_COLUMN("with", "group", NULL),                                \
		PEN_COLUMN("arm", "arm", NULL),                                \
		PEN_PAGE_COLUMN("language", "language", NULL)
#define LAST                                                                   \
	PEN_PAGE_COLUMN("~samples", "n_samples", pen__show_whole),             \
		PEN_PAGE_COLUMN("~sum", "content_sum", NULL), PEN_COLUMNS_END

/* ---- steps ---- */

static const struct pen_arm_column step_columns[] = {
	FIRST,
	PEN_COLUMN("step", "step_s", pen__show_time),
	PEN_COLUMN("wait in next()", "wait_s", pen__show_time),
	PEN_RANGE_COLUMNS("step_s", pen__show_time),
	LAST,
};

#define STEP_CHART(words)                                                      \
	{                                                                      \
		{ "Time of a step", words, "step_s", pen__show_time },         \
		{                                                              \
			NULL, NULL, NULL, NULL                                 \
		}                                                              \
	}
static const struct pen_arm_chart overlap_charts[] =
	STEP_CHART("Mean time of a step, shorter is better. Not overlapped: "
		   "the loop loads by itself.");
static const struct pen_arm_chart worker_charts[] =
	STEP_CHART("Mean time of a step, shorter is better. Penstock's workers "
		   "are threads, PyTorch's are processes.");
static const struct pen_arm_chart headspace_charts[] =
	STEP_CHART("Mean time of a step, shorter is better. Cached: the same "
		   "few batches over and over, which no loader can beat.");

/* What a loader that takes no time at all would still gain. */
static void put_headspace(struct pen_text *t, const struct pen_arms *a,
			  const struct pen_arm *like)
{
	static const char *const who[] = { "penstock", "DataLoader" };

	for (size_t i = 0; i < 2; i++) {
		char cached[64];
		double real, none;

		snprintf(cached, sizeof(cached), "%s, cached", who[i]);
		real = pen__arms_median(a, pen__arms_rival(a, like, who[i]),
					"step_s");
		none = pen__arms_median(a, pen__arms_rival(a, like, cached),
					"step_s");
		if (real > 0 && !isnan(none))
			pen__text_add(t,
				      " With %s a faster loader could save at "
				      "most %.1f %% of a step.",
				      who[i], fmax(0, 100 * (1 - none / real)));
	}
}

static const struct pen_versus overlap_versus = {
	.vars = { "load", "compute_s", NULL },
	.less = true,
	.hero = "penstock, overlapped",
	.key = "step_s",
	.show = pen__show_time,
	.what = "a step",
	.compared = "takes %s times as long",
};
static const struct pen_versus worker_versus = {
	.vars = { "load_s", "compute_s", NULL },
	.workers = true,
	.less = true,
	.hero = "penstock",
	.key = "step_s",
	.show = pen__show_time,
	.what = "a step",
	.compared = "takes %s times as long",
};
static const struct pen_versus headspace_versus = {
	.vars = { "compute_s", NULL, NULL },
	.less = true,
	.hero = "penstock",
	.key = "step_s",
	.show = pen__show_time,
	.what = "a step",
	.compared = "takes %s times as long",
	.more = put_headspace,
};

/* ---- rows ---- */

static const struct pen_arm_column iterate_columns[] = {
	FIRST,
	PEN_COLUMN("per s", "samples_per_s", pen__show_count),
	PEN_COLUMN("time", "seconds", pen__show_time),
	PEN_RANGE_COLUMNS("samples_per_s", pen__show_count),
	LAST,
};
static const struct pen_arm_chart iterate_charts[] = {
	{ "Samples a second",
	  "Longer is better. Every arm delivers all rows in batches, which are "
	  "added up.",
	  "samples_per_s", pen__show_count },
	{ NULL, NULL, NULL, NULL },
};
static const struct pen_versus iterate_versus = {
	.vars = { "rows", "cols", NULL },
	.workers = true,
	.hero = "penstock",
	.key = "samples_per_s",
	.show = pen__show_count,
	.what = "samples/s",
	.compared = "has %s times that",
};

/* ---- arrays put together ---- */

static const struct pen_arm_column prealloc_columns[] = {
	FIRST,
	PEN_COLUMN("time", "seconds", pen__show_time),
	PEN_COLUMN("bytes/s", "bytes_per_s", pen__show_bytes),
	PEN_RANGE_COLUMNS("seconds", pen__show_time),
	LAST,
};
static const struct pen_arm_chart prealloc_charts[] = {
	{ "Time to put all blocks into one array", "Shorter is better.",
	  "seconds", pen__show_time },
	{ NULL, NULL, NULL, NULL },
};
static const struct pen_versus prealloc_versus = {
	.vars = { "length", NULL, NULL },
	.less = true,
	.hero = "penstock, reused",
	.key = "seconds",
	.show = pen__show_time,
	.what = "for all blocks",
	.compared = "takes %s times as long",
};

/* ---- memory ---- */

static const struct pen_arm_column memory_columns[] = {
	FIRST,
	PEN_COLUMN("peak", "pss_peak_bytes", pen__show_bytes),
	PEN_COLUMN("before loading", "pss_base_bytes", pen__show_bytes),
	PEN_COLUMN("per s", "samples_per_s", pen__show_count),
	PEN_RANGE_COLUMNS("pss_peak_bytes", pen__show_bytes),
	LAST,
};
static const struct pen_arm_chart memory_charts[] = {
	{ "Peak memory",
	  "Of all processes together, shorter is better; pages that several "
	  "share count once.",
	  "pss_peak_bytes", pen__show_bytes },
	{ NULL, NULL, NULL, NULL },
};
static const struct pen_versus memory_versus = {
	.vars = { "workers", NULL, NULL },
	.less = true,
	.hero = "penstock",
	.key = "pss_peak_bytes",
	.show = pen__show_bytes,
	.what = "at the peak",
	.compared = "takes %s times as much",
};

#define KIND(name, words_of, table, chart)                                     \
	const struct pen_kind pen__kind_##name = {                             \
		.experiment = #name,                                           \
		.title = words_of,                                             \
		.columns = table,                                              \
		.charts = chart##_charts,                                      \
		.words = pen__arms_versus,                                     \
		.versus = &chart##_versus,                                     \
	}
KIND(overlap, "Overlap of loading and computing", step_columns, overlap);
KIND(workers, "Number of workers", step_columns, worker);
KIND(headspace, "Head space", step_columns, headspace);
KIND(iterate, "Iterating", iterate_columns, iterate);
KIND(prealloc, "Putting arrays together", prealloc_columns, prealloc);
KIND(memory, "Memory of workers", memory_columns, memory);
