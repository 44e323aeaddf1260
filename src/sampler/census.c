/*
 * The shuffle of the CELLxGENE Census data loader, with its sizes: chunks of 64
 * cells are shuffled over the whole epoch, 2,000 of them are mixed, batches are
 * cut across the borders of blocks, and ranks share what was shuffled. Two
 * things differ on purpose: the order does not depend on how many ranks or
 * threads there are, and where the number of cells is not a multiple of 64, one
 * chunk is short instead of many by one.
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
	.help = "block shuffle of CELLxGENE Census: 2,000 chunks of 64",
	.opts = options,
	PEN_BLOCKS_OPS,
};
