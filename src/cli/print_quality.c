/* Prints shuffle quality. */
#include "quality/quality.h"

#include <math.h>

#include "cli/cli.h"

static void print_once(const struct pen_quality_result *q)
{
	if (!q->complete)
		print_line(14, "order", "%s, less than an epoch, %s repeated",
			   counted(q->nsamples, "sample"),
			   grouped(q->repeated));
	else if (!q->repeated && !q->missing)
		print_line(14, "order", "every sample once");
	else
		print_line(14, "order", "%s missing, %s repeated",
			   counted(q->missing, "sample"), grouped(q->repeated));
	if (q->neighbours_kept >= 0)
		print_line(14, "",
			   "%.2g %% of neighbours are the same as in the "
			   "previous epoch",
			   100 * q->neighbours_kept);
}

void print_quality(const struct pen_quality_result *q, uint32_t batch,
		   const char *label)
{
	char expected[64] = "";

	if (!q->nbatches) {
		print_line(14, "mixing",
			   "not measured: there was no full batch of %u",
			   batch);
		print_once(q);
		return;
	}
	if (!isnan(q->n_eff_expected))
		snprintf(expected, sizeof(expected), "; expected %.1f",
			 q->n_eff_expected);
	print_line(14, "mixing",
		   "a batch of %u is worth %.1f independent samples (n_eff%s)",
		   batch, q->n_eff, expected);
	expected[0] = '\0';
	if (!isnan(q->same_chunk_expected))
		snprintf(expected, sizeof(expected), " (expected %.3g %%)",
			 100 * q->same_chunk_expected);
	print_line(14, "",
		   "%.3g %% of the pairs in a batch are from the same chunk%s",
		   100 * q->same_chunk, expected);
	expected[0] = '\0';
	if (!isnan(q->batch_entropy_expected))
		snprintf(expected, sizeof(expected), " (expected: about %.3f)",
			 q->batch_entropy_expected);
	if (q->nclasses)
		print_line(14, label,
			   "entropy of a batch: %.3f bits +- %.3f%s, of %.3f "
			   "in the data; %u %s",
			   q->batch_entropy, q->batch_entropy_sd, expected,
			   q->entropy, q->nclasses,
			   q->nclasses == 1 ? "class" : "classes");
	print_once(q);
}
