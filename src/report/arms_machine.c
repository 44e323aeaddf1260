/* Little memory and a busy CPU, in tables, charts and words. */
#include <math.h>
#include <string.h>

#include "report/arms.h"

/* ---- little memory ---- */

static const struct pen_arm_column mmap_columns[] = {
	PEN_COLUMN("way", "arm", NULL),
	PEN_COLUMN("limited by", "limited_by", NULL),
	PEN_COLUMN("limit", "limit_bytes", pen__show_bytes),
	PEN_COLUMN("per s in all", "samples_per_s_in_all", pen__show_count),
	PEN_SPREAD_COLUMN("samples_per_s_in_all"),
	PEN_COLUMN("once open", "samples_per_s", pen__show_count),
	PEN_COLUMN("opening", "open_s", pen__show_time),
	PEN_COLUMN("memory", "own_memory_bytes", pen__show_bytes),
	PEN_COLUMN("with mapped files", "peak_memory_bytes", pen__show_bytes),
	PEN_PAGE_COLUMN("CPU s per million", "cpu_s_per_million",
			pen__show_number),
	PEN_PAGE_COLUMN("dropped pages", "n_drops", pen__show_whole),
	PEN_PAGE_COLUMN("in", "drop_s", pen__show_time),
	PEN_COLUMNS_END,
};

static const struct pen_arm_chart mmap_charts[] = {
	{ "Samples a second",
	  "With less memory than data, opening included: it is then that "
	  "files are read into memory. Longer is better.",
	  "samples_per_s_in_all", pen__show_count },
	{ "Memory of its own",
	  "Without pages of mapped files. Shorter is better.",
	  "own_memory_bytes", pen__show_bytes },
	{ NULL, NULL, NULL, NULL },
};

/* Of those that were kept short of memory. */
static const struct pen_arm *fastest(const struct pen_arms *a)
{
	const struct pen_arm *best = NULL;

	for (size_t i = 0; i < a->narms; i++) {
		const struct pen_arm *c = &a->arm[i];
		const double v = pen__arms_median(a, c, "samples_per_s_in_all");

		if (!isnan(v) &&
		    strcmp(pen__line_text(c->row, "limited_by"), "nothing") &&
		    (!best ||
		     v > pen__arms_median(a, best, "samples_per_s_in_all")))
			best = c;
	}
	return best;
}

static void mmap_words(struct pen_text *t, const struct pen_arms *a)
{
	const struct pen_arm *best = fastest(a);
	const struct pen_arm *in = pen__arms_find(a, "in memory", NULL);

	if (!best)
		return;
	pen__text_add(t,
		      "Fastest with little memory: %s, %s samples a second.\n",
		      pen__line_text(best->row, "arm"),
		      pen__show_count(
			      pen__arms_median(a, best, "samples_per_s_in_all"))
			      .s);
	if (!strcmp(pen__line_text(best->row, "limited_by"), "cgroup")) {
		if (!in)
			pen__text_add(t, "Reading all into memory does not fit "
					 "into the limit.\n");
		return;
	}
	pen__text_add(
		t,
		"Memory was not limited: pages were dropped after "
		"every %s delivered.\n",
		pen__show_bytes(pen__arms_median(a, best, "limit_bytes")).s);
	if (in && pen__arms_median(a, in, "own_memory_bytes") >
			  pen__arms_median(a, in, "limit_bytes"))
		pen__text_add(
			t,
			"`in memory` took %s, more than the limit: it could "
			"not have run.\n",
			pen__show_bytes(
				pen__arms_median(a, in, "own_memory_bytes"))
				.s);
}

const struct pen_kind pen__kind_mmap = {
	.experiment = "mmap",
	.title = "Less memory than data",
	.columns = mmap_columns,
	.charts = mmap_charts,
	.words = mmap_words,
};

/* ---- a busy CPU ---- */

static const struct pen_arm_column neighbour_columns[] = {
	PEN_COLUMN("loader", "group", NULL),
	PEN_COLUMN("", "arm", NULL),
	PEN_COLUMN("cache", "cache", NULL),
	PEN_COLUMN("per s", "samples_per_s", pen__show_count),
	PEN_SPREAD_COLUMN("samples_per_s"),
	PEN_COLUMN("work per s", "work_per_s", pen__show_count),
	PEN_COLUMN("waited", "wait_share", pen__show_share),
	PEN_COLUMN("wait p99", "wait_p99_s", pen__show_time),
	PEN_COLUMN("time", "seconds", pen__show_time),
	PEN_COLUMNS_END,
};

static const struct pen_arm_chart neighbour_charts[] = {
	{ "Samples a second",
	  "Alone and beside busy threads, by threads of "
	  "the loader. Longer is better.",
	  "samples_per_s", pen__show_count },
	{ "Work a second",
	  "Pieces of work that the busy threads got done, alone and beside "
	  "the loader. Longer is better.",
	  "work_per_s", pen__show_count },
	{ NULL, NULL, NULL, NULL },
};

static void neighbour_words(struct pen_text *t, const struct pen_arms *a)
{
	const double alone = pen__arms_median(
		a, pen__arms_find(a, "work alone", ""), "work_per_s");

	for (size_t i = 0; i < a->narms; i++) {
		const struct pen_arm *c = &a->arm[i];
		const char *group = pen__line_text(c->row, "group");
		const double work = pen__arms_median(a, c, "work_per_s");
		const double rate = pen__arms_median(a, c, "samples_per_s");
		const double was = pen__arms_median(
			a, pen__arms_find(a, "loader alone", group),
			"samples_per_s");

		if (isnan(work) || isnan(rate) || isnan(was))
			continue;
		pen__text_add(t, "%s: the loader keeps %s of its rate, ", group,
			      pen__show_share(rate / was).s);
		pen__text_add(t, "the work %s of its own.\n",
			      pen__show_share(work / alone).s);
	}
}

const struct pen_kind pen__kind_neighbour = {
	.experiment = "neighbour",
	.title = "A busy CPU",
	.columns = neighbour_columns,
	.charts = neighbour_charts,
	.words = neighbour_words,
};
