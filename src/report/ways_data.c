/* Formats and orders, in tables, charts and words. */
#include <math.h>
#include <string.h>

#include "report/ways.h"

static double get(const struct pen_ways *a, const struct pen_way_case *c,
		  const char *key)
{
	return c ? pen__ways_get(a, c, key, NULL) : NAN;
}

/* ---- formats ---- */

static const struct pen_way_column format_columns[] = {
	{ "format", "arm", NULL, false },
	{ "order", "group", NULL, false },
	{ "cache", "cache", NULL, false },
	{ "on disk", "disk_bytes", pen__show_bytes, false },
	{ "start-up", "startup_s", pen__show_time, false },
	{ "per s", "samples_per_s", pen__show_count, false },
	{ "bytes per s", "bytes_per_s", pen__show_bytes, false },
	{ "CPU s per million", "cpu_s_per_million", pen__show_number, false },
	{ "memory", "own_memory_bytes", pen__show_bytes, true },
	{ "store", "store", NULL, true },
	{ NULL, NULL, NULL, false },
};

static const struct pen_way_chart format_charts[] = {
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
static const struct pen_way_case *fastest(const struct pen_ways *a,
					  const char *group)
{
	const struct pen_way_case *best = NULL;

	for (size_t i = 0; i < a->ncases; i++) {
		const struct pen_way_case *c = &a->c[i];

		if (!strcmp(pen__line_text(c->row, "group"), group) &&
		    !isnan(get(a, c, "samples_per_s")) &&
		    (!best || get(a, c, "samples_per_s") >
				      get(a, best, "samples_per_s")))
			best = c;
	}
	return best;
}

static void format_words(struct pen_text *t, const struct pen_ways *a)
{
	static const char *const group[] = { "in order", "at random" };
	const struct pen_way_case *small =
		pen__ways_best(a, "disk_bytes", true);
	const struct pen_way_case *soon = pen__ways_best(a, "startup_s", true);

	for (size_t i = 0; i < 2; i++) {
		const struct pen_way_case *c = fastest(a, group[i]);

		if (c)
			pen__text_add(
				t, "Fastest %s: %s, %s samples a second.\n",
				group[i], pen__line_text(c->row, "arm"),
				pen__show_count(get(a, c, "samples_per_s")).s);
	}
	if (small)
		pen__text_add(t,
			      "Smallest: %s, %.0f %% of the samples' "
			      "bytes.\n",
			      pen__line_text(small->row, "arm"),
			      100 * get(a, small, "disk_bytes") /
				      get(a, small, "made_bytes"));
	if (soon)
		pen__text_add(t, "First batch soonest: %s, after %s.\n",
			      pen__line_text(soon->row, "arm"),
			      pen__show_time(get(a, soon, "startup_s")).s);
}

const struct pen_way_kind pen__ways_formats = {
	.experiment = "formats",
	.headline = "samples_per_s",
	.columns = format_columns,
	.charts = format_charts,
	.words = format_words,
};
const struct pen_kind pen__kind_formats = {
	.experiment = "formats",
	.title = "Formats",
	.arms = &pen__ways_formats,
};

/* ---- orders ---- */

static const struct pen_way_column shuffle_columns[] = {
	{ "order", "arm", NULL, false },
	{ "chunks", "group", NULL, false },
	{ "cache", "cache", NULL, false },
	{ "per s", "samples_per_s", pen__show_count, false },
	{ "memory", "own_memory_bytes", pen__show_bytes, false },
	{ "read", "read_bytes", pen__show_bytes, false },
	{ "n_eff", "quality.n_eff", pen__show_number, false },
	{ "of", "batch", pen__show_whole, false },
	{ "kept", "quality.neighbours_kept", pen__show_share, false },
	{ "to prepare", "copy_s", pen__show_time, false },
	{ "label entropy", "quality.label.batch_entropy", pen__show_number,
	  true },
	{ NULL, NULL, NULL, false },
};

static const struct pen_way_chart shuffle_charts[] = {
	{ "Samples a second", "By order. Longer is better.", "samples_per_s",
	  pen__show_count },
	{ "How well batches are mixed",
	  "n_eff: how many samples from all over a batch is worth. Longer is "
	  "better.",
	  "quality.n_eff", pen__show_number },
	{ NULL, NULL, NULL, NULL },
};

static void against(struct pen_text *t, const struct pen_ways *a,
		    const char *name, const struct pen_way_case *none)
{
	const struct pen_way_case *c = pen__ways_find(a, name, NULL);

	if (!c || c == none)
		return;
	pen__text_add(t, "%s: %.0f %% of its rate, n_eff %s of %s", name,
		      100 * get(a, c, "samples_per_s") /
			      get(a, none, "samples_per_s"),
		      pen__show_number(get(a, c, "quality.n_eff")).s,
		      pen__show_whole(get(a, c, "batch")).s);
	if (get(a, c, "quality.neighbours_kept") > 0.5)
		pen__text_add(t, ", but the same order every epoch");
	pen__text_add(t, ".\n");
}

static void shuffle_words(struct pen_text *t, const struct pen_ways *a)
{
	const struct pen_way_case *none = pen__ways_find(a, "none", NULL);

	if (!none)
		none = pen__ways_best(a, "samples_per_s", false);
	if (!none)
		return;
	pen__text_add(t, "%s: %s samples a second, n_eff %s of %s.\n",
		      pen__line_text(none->row, "arm"),
		      pen__show_count(get(a, none, "samples_per_s")).s,
		      pen__show_number(get(a, none, "quality.n_eff")).s,
		      pen__show_whole(get(a, none, "batch")).s);
	against(t, a, "pre-shuffled", none);
	against(t, a, "block", none);
	against(t, a, "global", none);
}

const struct pen_way_kind pen__ways_shuffle = {
	.experiment = "shuffle",
	.headline = "samples_per_s",
	.columns = shuffle_columns,
	.charts = shuffle_charts,
	.words = shuffle_words,
};
const struct pen_kind pen__kind_shuffle = {
	.experiment = "shuffle",
	.title = "Orders",
	.arms = &pen__ways_shuffle,
};
