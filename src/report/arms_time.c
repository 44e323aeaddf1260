/* Start-up and resuming, in tables, charts and words. */
#include <math.h>
#include <string.h>

#include "report/arms.h"

/* ---- start-up ---- */

static const struct pen_arm_column startup_columns[] = {
	PEN_COLUMN("files", "group", NULL),
	PEN_COLUMN("index", "arm", NULL),
	PEN_COLUMN("cache", "cache", NULL),
	PEN_COLUMN("first batch", "startup_s", pen__show_time),
	PEN_SPREAD_COLUMN("startup_s"),
	PEN_COLUMN("opening", "open_s", pen__show_time),
	PEN_COLUMN("then", "first_batch_s", pen__show_time),
	PEN_COLUMN("memory", "own_memory_bytes", pen__show_bytes),
	PEN_COLUMNS_END,
};

static const struct pen_arm_chart startup_charts[] = {
	{ "Time to the first batch", "By files and index. Shorter is better.",
	  "startup_s", pen__show_time },
	{ NULL, NULL, NULL, NULL },
};

static void startup_words(struct pen_text *t, const struct pen_arms *a)
{
	const struct pen_arm *most = pen__arms_best(a, "n_files", false);
	const struct pen_arm *cold, *warm;
	const char *group;

	if (!most)
		return;
	group = pen__line_text(most->row, "group");
	cold = pen__arms_find(a, "no index", group);
	warm = pen__arms_find(a, "index kept", group);
	if (!cold || !warm)
		return;
	pen__text_add(t, "%s: the first batch comes after %s, ", group,
		      pen__show_time(pen__arms_median(a, cold, "startup_s")).s);
	pen__text_add(t, "and after %s when the index was kept.\n",
		      pen__show_time(pen__arms_median(a, warm, "startup_s")).s);
	pen__text_add(t, "Opening takes %s a file without an index, ",
		      pen__show_time(pen__arms_median(a, cold, "open_s") /
				     pen__arms_median(a, cold, "n_files"))
			      .s);
	pen__text_add(t, "%s with it.\n",
		      pen__show_time(pen__arms_median(a, warm, "open_s") /
				     pen__arms_median(a, warm, "n_files"))
			      .s);
}

const struct pen_kind pen__kind_startup = {
	.experiment = "startup",
	.title = "Start-up",
	.columns = startup_columns,
	.charts = startup_charts,
	.words = startup_words,
};

/* ---- resuming ---- */

static const struct pen_arm_column resume_columns[] = {
	PEN_COLUMN("epoch", "group", NULL),
	PEN_COLUMN("way", "arm", NULL),
	PEN_COLUMN("first batch", "resume_s", pen__show_time),
	PEN_SPREAD_COLUMN("resume_s"),
	PEN_COLUMN("opening", "open_s", pen__show_time),
	PEN_COLUMN("batches before", "batches_before", pen__show_whole),
	PEN_COLUMN("compared", "batches_compared", pen__show_whole),
	PEN_COLUMN("samples the same", "n_rows", pen__show_whole),
	PEN_COLUMNS_END,
};

static const struct pen_arm_chart resume_charts[] = {
	{ "Time to the first batch after resuming",
	  "By place in the epoch and way. Shorter is better.", "resume_s",
	  pen__show_time },
	{ NULL, NULL, NULL, NULL },
};

static void resume_words(struct pen_text *t, const struct pen_arms *a)
{
	const struct pen_arm *far = pen__arms_best(a, "batches_before", false);
	const struct pen_arm *back, *again;
	const char *group;

	if (!far)
		return;
	pen__text_add(t,
		      "Exact: all batches compared have the same samples%s "
		      "and content as without the interruption.\n",
		      pen__arms_find(a, "on 2 ranks", NULL)
			      ? ", on two ranks as well,"
			      : "");
	group = pen__line_text(far->row, "group");
	back = pen__arms_find(a, "restored", group);
	again = pen__arms_find(a, "read again", group);
	if (!back || !again)
		return;
	pen__text_add(t, "%s of an epoch: %s from a saved state, ", group,
		      pen__show_time(pen__arms_median(a, back, "resume_s")).s);
	pen__text_add(t, "%s by reading everything again.\n",
		      pen__show_time(pen__arms_median(a, again, "resume_s")).s);
}

const struct pen_kind pen__kind_resume = {
	.experiment = "resume",
	.title = "Resuming",
	.columns = resume_columns,
	.charts = resume_charts,
	.words = resume_words,
};
