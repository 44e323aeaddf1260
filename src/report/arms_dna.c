/* Sequences to Doc2Vec: what each part took. */
#include <math.h>
#include <stdio.h>

#include "report/arms.h"

static const struct pen_arm_column columns[] = {
	PEN_COLUMN("data", "group", NULL),
	PEN_COLUMN("with", "arm", NULL),
	PEN_COLUMN("dictionary", "dict_s", pen__show_time),
	PEN_COLUMN("vocabulary", "vocab_s", pen__show_time),
	PEN_COLUMN("an epoch", "epoch_s", pen__show_time),
	PEN_SPREAD_COLUMN("epoch_s"),
	PEN_COLUMN("of it waiting", "load_s", pen__show_time),
	PEN_COLUMN("model", "model_s", pen__show_time),
	PEN_COLUMN("real", "real_s", pen__show_time),
	PEN_COLUMN("user", "user_s", pen__show_time),
	PEN_COLUMN("system", "system_s", pen__show_time),
	PEN_COLUMN("overall", "overall_s", pen__show_time),
	PEN_PAGE_COLUMN("sequences/s", "samples_per_s", pen__show_count),
	PEN_PAGE_COLUMN("memory", "peak_memory_bytes", pen__show_bytes),
	PEN_PAGE_COLUMN("~sequences", "n_sequences", pen__show_whole),
	PEN_PAGE_COLUMN("~dictionary bytes a byte", "dict_bytes_per_byte",
			pen__show_number),
	PEN_PAGE_COLUMN("~sum", "content_sum", NULL),
	PEN_COLUMNS_END,
};

static const struct pen_arm_chart charts[] = {
	{ "Time of an epoch", "Every sequence once. Shorter is better.",
	  "epoch_s", pen__show_time },
	{ "Waiting for data in an epoch",
	  "How long the model had to wait for its batches.", "load_s",
	  pen__show_time },
	{ NULL, NULL, NULL, NULL },
};

static void words(struct pen_text *t, const struct pen_arms *a)
{
	const struct pen_arm *most = pen__arms_best(a, "n_sequences", false);
	const struct pen_arm *best = NULL;

	for (size_t i = 0; most && i < a->narms; i++)
		if (pen__arms_together(a, most, &a->arm[i]) &&
		    (!best || pen__arms_median(a, &a->arm[i], "epoch_s") <
				      pen__arms_median(a, best, "epoch_s")))
			best = &a->arm[i];
	if (!best)
		return;
	pen__text_add(
		t, "%s: %s sequences are in the dictionary after %s",
		pen__line_text(best->row, "group"),
		pen__show_whole(pen__arms_median(a, best, "n_sequences")).s,
		pen__show_time(pen__arms_median(a, best, "dict_s")).s);
	pen__text_add(t,
		      "; the fastest epoch takes %s (%s), %s of it waiting "
		      "for data.\n",
		      pen__show_time(pen__arms_median(a, best, "epoch_s")).s,
		      pen__line_text(best->row, "arm"),
		      pen__show_time(pen__arms_median(a, best, "load_s")).s);
}

const struct pen_kind pen__kind_dna = {
	.experiment = "dna",
	.title = "Sequences to Doc2Vec",
	.columns = columns,
	.charts = charts,
	.words = words,
};
