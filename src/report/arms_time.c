/* Start-up and resuming, in tables, charts and words. */
#include <math.h>
#include <string.h>

#include "report/arms.h"

static double get(const struct pen_arms *a, const struct pen_arm_case *c,
		  const char *key)
{
	return c ? pen__arms_get(a, c, key, NULL) : NAN;
}

/* ---- start-up ---- */

static const struct pen_arm_column startup_columns[] = {
	{ "files", "group", NULL, false },
	{ "index", "arm", NULL, false },
	{ "cache", "cache", NULL, false },
	{ "first batch", "startup_s", pen__show_time, false },
	{ "opening", "open_s", pen__show_time, false },
	{ "then", "first_batch_s", pen__show_time, false },
	{ "memory", "own_memory_bytes", pen__show_bytes, false },
	{ NULL, NULL, NULL, false },
};

static const struct pen_arm_chart startup_charts[] = {
	{ "Time to the first batch", "By files and index. Shorter is better.",
	  "startup_s", pen__show_time },
	{ NULL, NULL, NULL, NULL },
};

static void startup_words(struct pen_text *t, const struct pen_arms *a)
{
	const struct pen_arm_case *most = pen__arms_best(a, "n_files", false);
	const struct pen_arm_case *cold, *warm;
	const char *group;

	if (!most)
		return;
	group = pen__line_text(most->row, "group");
	cold = pen__arms_find(a, "no index", group);
	warm = pen__arms_find(a, "index kept", group);
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

const struct pen_arm_kind pen__arms_startup = {
	.experiment = "startup",
	.headline = "startup_s",
	.columns = startup_columns,
	.charts = startup_charts,
	.words = startup_words,
};
const struct pen_kind pen__kind_startup = {
	.experiment = "startup",
	.title = "Start-up",
	.arms = &pen__arms_startup,
};
