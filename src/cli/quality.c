/* Shuffle quality in words. */
#include "engine/quality.h"

#include "cli/cli.h"

static void print_once(const struct pen_quality_result *q)
{
	if (!q->complete)
		printf("  %-14s %s samples, not a whole epoch, %s of them "
		       "repeated\n",
		       "order", grouped(q->nsamples), grouped(q->repeated));
	else if (!q->repeated && !q->missing)
		printf("  %-14s every sample once\n", "order");
	else
		printf("  %-14s %s samples missing, %s repeated\n", "order",
		       grouped(q->missing), grouped(q->repeated));
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
	       "(n_eff; expected %.1f)\n",
	       "mixing", batch, q->n_eff, q->n_eff_expected);
	printf("  %-14s %.3g %% of its pairs are from one chunk (expected "
	       "%.3g %%)\n",
	       "", 100 * q->same_chunk, 100 * q->same_chunk_expected);
	if (q->nclasses)
		printf("  %-14s %.3f bits in a batch, +- %.3f (expected %.3f), "
		       "of %.3f in all; %u classes\n",
		       label, q->batch_entropy, q->batch_entropy_sd,
		       q->batch_entropy_expected, q->entropy, q->nclasses);
	print_once(q);
}
