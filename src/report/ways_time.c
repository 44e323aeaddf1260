/* Start-up and resuming, in tables, charts and words. */
#include <math.h>
#include <string.h>

#include "report/ways.h"

static double get(const struct pen_ways *a, const struct pen_way_case *c,
		  const char *key)
{
	return c ? pen__ways_get(a, c, key, NULL) : NAN;
}

/* ---- start-up ---- */

static const struct pen_way_column startup_columns[] = {
	{ "files", "group", NULL, false },
	{ "index", "arm", NULL, false },
	{ "cache", "cache", NULL, false },
	{ "first batch", "startup_s", pen__show_time, false },
	{ "opening", "open_s", pen__show_time, false },
	{ "then", "first_batch_s", pen__show_time, false },
	{ "memory", "own_memory_bytes", pen__show_bytes, false },
	{ NULL, NULL, NULL, false },
};

static const struct pen_way_chart startup_charts[] = {
	{ "Time to the first batch", "By files and index. Shorter is better.",
	  "startup_s", pen__show_time },
	{ NULL, NULL, NULL, NULL },
};

static void startup_words(struct pen_text *t, const struct pen_ways *a)
{
	const struct pen_way_case *most = pen__ways_best(a, "n_files", false);
	const struct pen_way_case *cold, *warm;
	const char *group;

	if (!most)
		return;
	group = pen__line_text(most->row, "group");
	cold = pen__ways_find(a, "no index", group);
	warm = pen__ways_find(a, "index kept", group);
	if (!cold || !warm)
		return;
	pen__text_add(t, "%s: the first batch comes after %s, ", group,
		      pen__show_time(get(a, cold, "startup_s")).s);
	pen__text_add(t, "and after %s when the index was kept.\n",
		      pen__show_time(get(a, warm, "startup_s")).s);
	pen__text_add(
		t, "Opening takes %s a file without an index, ",
		pen__show_time(get(a, cold, "open_s") / get(a, cold, "n_files"))
			.s);
	pen__text_add(
		t, "%s with it.\n",
		pen__show_time(get(a, warm, "open_s") / get(a, warm, "n_files"))
			.s);
}

const struct pen_way_kind pen__ways_startup = {
	.experiment = "startup",
	.headline = "startup_s",
	.columns = startup_columns,
	.charts = startup_charts,
	.words = startup_words,
};
const struct pen_kind pen__kind_startup = {
	.experiment = "startup",
	.title = "Start-up",
	.arms = &pen__ways_startup,
};

/* ---- resuming ---- */

static const struct pen_way_column resume_columns[] = {
	{ "epoch", "group", NULL, false },
	{ "way", "arm", NULL, false },
	{ "first batch", "resume_s", pen__show_time, false },
	{ "opening", "open_s", pen__show_time, false },
	{ "batches before", "batches_before", pen__show_whole, false },
	{ "compared", "batches_compared", pen__show_whole, false },
	{ "samples the same", "n_rows", pen__show_whole, false },
	{ NULL, NULL, NULL, false },
};

static const struct pen_way_chart resume_charts[] = {
	{ "Time to the first batch after resuming",
	  "By place in the epoch and way. Shorter is better.", "resume_s",
	  pen__show_time },
	{ NULL, NULL, NULL, NULL },
};

static void resume_words(struct pen_text *t, const struct pen_ways *a)
{
	const struct pen_way_case *far =
		pen__ways_best(a, "batches_before", false);
	const struct pen_way_case *back, *again;
	const char *group;

	if (!far)
		return;
	pen__text_add(t,
		      "Exact: all batches compared have the same samples%s "
		      "and content as without the interruption.\n",
		      pen__ways_find(a, "on 2 ranks", NULL)
			      ? ", on two ranks as well,"
			      : "");
	group = pen__line_text(far->row, "group");
	back = pen__ways_find(a, "restored", group);
	again = pen__ways_find(a, "read again", group);
	if (!back || !again)
		return;
	pen__text_add(t, "%s of an epoch: %s from a saved state, ", group,
		      pen__show_time(get(a, back, "resume_s")).s);
	pen__text_add(t, "%s by reading everything again.\n",
		      pen__show_time(get(a, again, "resume_s")).s);
}

const struct pen_way_kind pen__ways_resume = {
	.experiment = "resume",
	.headline = "resume_s",
	.columns = resume_columns,
	.charts = resume_charts,
	.words = resume_words,
};
const struct pen_kind pen__kind_resume = {
	.experiment = "resume",
	.title = "Resuming",
	.arms = &pen__ways_resume,
};
