/* Shuffle quality in words. */
#include "quality/quality.h"

#include <math.h>

#include "cli/cli.h"

static void print_once(const struct pen_quality_result *q)
{
	if (!q->complete)
		printf("  %-14s %s, not a whole epoch, %s of them repeated\n",
		       "order", counted(q->nsamples, "sample"),
		       grouped(q->repeated));
	else if (!q->repeated && !q->missing)
		printf("  %-14s every sample once\n", "order");
	else
		printf("  %-14s %s missing, %s repeated\n", "order",
		       counted(q->missing, "sample"), grouped(q->repeated));
	if (q->neighbours_kept >= 0)
		printf("  %-14s %.2g %% of neighbours as in the epoch before\n",
		       "", 100 * q->neighbours_kept);
}

void print_quality(const struct pen_quality_result *q, uint32_t batch,
		   const char *label)
{
	if (!q->nbatches) {
		printf("  %-14s not measured: there was no whole batch of %u\n",
		       "mixing", batch);
		print_once(q);
		return;
	}
	printf("  %-14s a batch of %u is worth %.1f samples from all over "
	       "(n_eff",
	       "mixing", batch, q->n_eff);
	if (!isnan(q->n_eff_expected))
		printf("; expected %.1f", q->n_eff_expected);
	printf(")\n  %-14s %.3g %% of its pairs are from one chunk", "",
	       100 * q->same_chunk);
	if (!isnan(q->same_chunk_expected))
		printf(" (expected %.3g %%)", 100 * q->same_chunk_expected);
	puts("");
	if (q->nclasses) {
		printf("  %-14s %.3f bits in a batch, +- %.3f", label,
		       q->batch_entropy, q->batch_entropy_sd);
		if (!isnan(q->batch_entropy_expected))
			printf(" (expected: about %.3f)",
			       q->batch_entropy_expected);
		printf(", of %.3f in all; %u %s\n", q->entropy, q->nclasses,
		       q->nclasses == 1 ? "class" : "classes");
	}
	print_once(q);
}
