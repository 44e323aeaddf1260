/* Formats and orders, in tables, charts and words. */
#include <math.h>
#include <string.h>

#include "report/arms.h"

/* ---- formats ---- */

static const struct pen_arm_column format_columns[] = {
	PEN_COLUMN("format", "arm", NULL),
	PEN_COLUMN("order", "group", NULL),
	PEN_COLUMN("cache", "cache", NULL),
	PEN_COLUMN("on disk", "disk_bytes", pen__show_bytes),
	PEN_COLUMN("start-up", "startup_s", pen__show_time),
	PEN_COLUMN("per s", "samples_per_s", pen__show_count),
	PEN_SPREAD_COLUMN("samples_per_s"),
	PEN_COLUMN("bytes per s", "bytes_per_s", pen__show_bytes),
	PEN_COLUMN("CPU s per million", "cpu_s_per_million", pen__show_number),
	PEN_PAGE_COLUMN("memory", "own_memory_bytes", pen__show_bytes),
	PEN_PAGE_COLUMN("store", "store", NULL),
	PEN_COLUMNS_END,
};

static const struct pen_arm_chart format_charts[] = {
	{ "Samples a second", "By order and format. Longer is better.",
	  "samples_per_s", pen__show_count },
	{ "Start-up",
	  "Opening without a cached index, and the first batch. Shorter is "
	  "better.",
	  "startup_s", pen__show_time },
	{ "Bytes on disk", "Of the same samples. Shorter is better.",
	  "disk_bytes", pen__show_bytes },
	{ NULL, NULL, NULL, NULL },
};

/* Of a group; cold ones are told by the table. */
static const struct pen_arm *fastest(const struct pen_arms *a,
				     const char *group)
{
	const struct pen_arm *best = NULL;

	for (size_t i = 0; i < a->narms; i++) {
		const struct pen_arm *c = &a->arm[i];

		if (!strcmp(pen__line_text(c->row, "group"), group) &&
		    !isnan(pen__arms_median(a, c, "samples_per_s")) &&
		    (!best ||
		     pen__arms_median(a, c, "samples_per_s") >
			     pen__arms_median(a, best, "samples_per_s")))
			best = c;
	}
	return best;
}

static void format_words(struct pen_text *t, const struct pen_arms *a)
{
	static const char *const group[] = { "in order", "at random" };
	const struct pen_arm *small = pen__arms_best(a, "disk_bytes", true);
	const struct pen_arm *soon = pen__arms_best(a, "startup_s", true);

	for (size_t i = 0; i < 2; i++) {
		const struct pen_arm *c = fastest(a, group[i]);

		if (c)
			pen__text_add(
				t, "Fastest %s: %s, %s samples a second.\n",
				group[i], pen__line_text(c->row, "arm"),
				pen__show_count(
					pen__arms_median(a, c, "samples_per_s"))
					.s);
	}
	if (small)
		pen__text_add(t,
			      "Smallest: %s, %.0f %% of the samples' "
			      "bytes.\n",
			      pen__line_text(small->row, "arm"),
			      100 * pen__arms_median(a, small, "disk_bytes") /
				      pen__arms_median(a, small, "made_bytes"));
	if (soon)
		pen__text_add(
			t, "First batch soonest: %s, after %s.\n",
			pen__line_text(soon->row, "arm"),
			pen__show_time(pen__arms_median(a, soon, "startup_s"))
				.s);
}

const struct pen_kind pen__kind_formats = {
	.experiment = "formats",
	.title = "Formats",
	.columns = format_columns,
	.charts = format_charts,
	.words = format_words,
};

/* ---- orders ---- */

static const struct pen_arm_column shuffle_columns[] = {
	PEN_COLUMN("order", "arm", NULL),
	PEN_COLUMN("chunks", "group", NULL),
	PEN_COLUMN("cache", "cache", NULL),
	PEN_COLUMN("per s", "samples_per_s", pen__show_count),
	PEN_SPREAD_COLUMN("samples_per_s"),
	PEN_COLUMN("memory", "own_memory_bytes", pen__show_bytes),
	PEN_COLUMN("read", "read_bytes", pen__show_bytes),
	PEN_COLUMN("n_eff", "quality.n_eff", pen__show_number),
	PEN_COLUMN("of", "batch", pen__show_whole),
	PEN_COLUMN("kept", "quality.neighbours_kept", pen__show_share),
	PEN_COLUMN("to prepare", "copy_s", pen__show_time),
	PEN_PAGE_COLUMN("label entropy", "quality.label.batch_entropy",
			pen__show_number),
	PEN_COLUMNS_END,
};

static const struct pen_arm_chart shuffle_charts[] = {
	{ "Samples a second", "By order. Longer is better.", "samples_per_s",
	  pen__show_count },
	{ "How well batches are mixed",
	  "n_eff: how many samples from all over a batch is worth. Longer is "
	  "better.",
	  "quality.n_eff", pen__show_number },
	{ NULL, NULL, NULL, NULL },
};

static void against(struct pen_text *t, const struct pen_arms *a,
		    const char *name, const struct pen_arm *none)
{
	const struct pen_arm *c = pen__arms_find(a, name, NULL);

	if (!c || c == none)
		return;
	pen__text_add(
		t, "%s: %.0f %% of its rate, n_eff %s of %s", name,
		100 * pen__arms_median(a, c, "samples_per_s") /
			pen__arms_median(a, none, "samples_per_s"),
		pen__show_number(pen__arms_median(a, c, "quality.n_eff")).s,
		pen__show_whole(pen__arms_median(a, c, "batch")).s);
	if (pen__arms_median(a, c, "quality.neighbours_kept") > 0.5)
		pen__text_add(t, ", but the same order every epoch");
	pen__text_add(t, ".\n");
}

static void shuffle_words(struct pen_text *t, const struct pen_arms *a)
{
	const struct pen_arm *none = pen__arms_find(a, "none", NULL);

	if (!none)
		none = pen__arms_best(a, "samples_per_s", false);
	if (!none)
		return;
	pen__text_add(
		t, "%s: %s samples a second, n_eff %s of %s.\n",
		pen__line_text(none->row, "arm"),
		pen__show_count(pen__arms_median(a, none, "samples_per_s")).s,
		pen__show_number(pen__arms_median(a, none, "quality.n_eff")).s,
		pen__show_whole(pen__arms_median(a, none, "batch")).s);
	against(t, a, "pre-shuffled", none);
	against(t, a, "block", none);
	against(t, a, "global", none);
}

const struct pen_kind pen__kind_shuffle = {
	.experiment = "shuffle",
	.title = "Orders",
	.columns = shuffle_columns,
	.charts = shuffle_charts,
	.words = shuffle_words,
};
