/* Little memory and a busy CPU, in tables, charts and words. */
#include <math.h>
#include <string.h>

#include "report/ways.h"

static double get(const struct pen_ways *a, const struct pen_way_case *c,
		  const char *key)
{
	return c ? pen__ways_get(a, c, key, NULL) : NAN;
}

/* ---- little memory ---- */

static const struct pen_way_column mmap_columns[] = {
	{ "way", "arm", NULL, false },
	{ "limited by", "limited_by", NULL, false },
	{ "limit", "limit_bytes", pen__show_bytes, false },
	{ "per s in all", "samples_per_s_in_all", pen__show_count, false },
	{ "once open", "samples_per_s", pen__show_count, false },
	{ "opening", "open_s", pen__show_time, false },
	{ "memory", "own_memory_bytes", pen__show_bytes, false },
	{ "with mapped files", "peak_memory_bytes", pen__show_bytes, false },
	{ "CPU s per million", "cpu_s_per_million", pen__show_number, true },
	{ "dropped pages", "n_drops", pen__show_whole, true },
	{ "in", "drop_s", pen__show_time, true },
	{ NULL, NULL, NULL, false },
};

static const struct pen_way_chart mmap_charts[] = {
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
static const struct pen_way_case *fastest(const struct pen_ways *a)
{
	const struct pen_way_case *best = NULL;

	for (size_t i = 0; i < a->ncases; i++) {
		const struct pen_way_case *c = &a->c[i];
		const double v = get(a, c, "samples_per_s_in_all");

		if (!isnan(v) &&
		    strcmp(pen__line_text(c->row, "limited_by"), "nothing") &&
		    (!best || v > get(a, best, "samples_per_s_in_all")))
			best = c;
	}
	return best;
}

static void mmap_words(struct pen_text *t, const struct pen_ways *a)
{
	const struct pen_way_case *best = fastest(a);
	const struct pen_way_case *in = pen__ways_find(a, "in memory", NULL);

	if (!best)
		return;
	pen__text_add(t,
		      "Fastest with little memory: %s, %s samples a second.\n",
		      pen__line_text(best->row, "arm"),
		      pen__show_count(get(a, best, "samples_per_s_in_all")).s);
	if (!strcmp(pen__line_text(best->row, "limited_by"), "cgroup")) {
		if (!in)
			pen__text_add(t, "Reading all into memory does not fit "
					 "into the limit.\n");
		return;
	}
	pen__text_add(t,
		      "Memory was not limited: pages were dropped after "
		      "every %s delivered.\n",
		      pen__show_bytes(get(a, best, "limit_bytes")).s);
	if (in && get(a, in, "own_memory_bytes") > get(a, in, "limit_bytes"))
		pen__text_add(
			t,
			"`in memory` took %s, more than the limit: it could "
			"not have run.\n",
			pen__show_bytes(get(a, in, "own_memory_bytes")).s);
}

const struct pen_way_kind pen__ways_mmap = {
	.experiment = "mmap",
	.headline = "samples_per_s_in_all",
	.columns = mmap_columns,
	.charts = mmap_charts,
	.words = mmap_words,
};
const struct pen_kind pen__kind_mmap = {
	.experiment = "mmap",
	.title = "Less memory than data",
	.arms = &pen__ways_mmap,
};

/* ---- a busy CPU ---- */

static const struct pen_way_column neighbour_columns[] = {
	{ "loader", "group", NULL, false },
	{ "", "arm", NULL, false },
	{ "cache", "cache", NULL, false },
	{ "per s", "samples_per_s", pen__show_count, false },
	{ "work per s", "work_per_s", pen__show_count, false },
	{ "waited", "wait_share", pen__show_share, false },
	{ "wait p99", "wait_p99_s", pen__show_time, false },
	{ "time", "seconds", pen__show_time, false },
	{ NULL, NULL, NULL, false },
};

static const struct pen_way_chart neighbour_charts[] = {
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

static void neighbour_words(struct pen_text *t, const struct pen_ways *a)
{
	const double alone =
		get(a, pen__ways_find(a, "work alone", ""), "work_per_s");

	for (size_t i = 0; i < a->ncases; i++) {
		const struct pen_way_case *c = &a->c[i];
		const char *group = pen__line_text(c->row, "group");
		const double work = get(a, c, "work_per_s");
		const double rate = get(a, c, "samples_per_s");
		const double was = get(a,
				       pen__ways_find(a, "loader alone", group),
				       "samples_per_s");

		if (isnan(work) || isnan(rate) || isnan(was))
			continue;
		pen__text_add(t, "%s: the loader keeps %s of its rate, ", group,
			      pen__show_share(rate / was).s);
		pen__text_add(t, "the work %s of its own.\n",
			      pen__show_share(work / alone).s);
	}
}

const struct pen_way_kind pen__ways_neighbour = {
	.experiment = "neighbour",
	.headline = "samples_per_s",
	.columns = neighbour_columns,
	.charts = neighbour_charts,
	.words = neighbour_words,
};
const struct pen_kind pen__kind_neighbour = {
	.experiment = "neighbour",
	.title = "A busy CPU",
	.arms = &pen__ways_neighbour,
};
