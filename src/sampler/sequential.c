/*
 * The order of the data itself, every epoch. The fastest for most stores, and
 * the baseline for others; it does not shuffle.
 */
#include "sampler/sampler.h"

static int ids(struct pen_sampler *s, uint64_t epoch, uint64_t pos, size_t n,
	       uint64_t *out, struct pen_err *err)
{
	(void)s;
	(void)epoch;
	(void)err;
	for (size_t i = 0; i < n; i++)
		out[i] = pos + i;
	return 0;
}

const struct pen_sampler_ops pen__sampler_sequential = {
	.name = "sequential",
	.help = "the order of the data",
	.in_order = true,
	.ids = ids,
};
