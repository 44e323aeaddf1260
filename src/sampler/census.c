/*
 * The shuffle of the CELLxGENE Census data loader with its sizes: chunks of 64
 * cells are shuffled over the entire epoch, 2,000 of them are mixed, batches
 * are cut across the borders of blocks, and ranks share what was shuffled. Two
 * differences are on purpose: the order does not depend on the number of ranks
 * or threads, and if the number of cells is not a multiple of 64, one chunk is
 * short instead of many by one.
 */
#include "sampler/blocks.h"

static const struct pen_opt options[] = {
	PEN_BLOCKS_CHUNK("64"),
	PEN_BLOCKS_CHUNKS("2000"),
	PEN_BLOCKS_MIX,
	{ .name = NULL },
};

const struct pen_sampler_ops pen__sampler_census = {
	.name = "census",
	.help = "block shuffle with the defaults of CELLxGENE Census: 2,000 "
		"chunks of 64 samples",
	.opts = options,
	PEN_BLOCKS_OPS,
};
