/*
 * The block shuffling of scDataset, with the sizes its authors recommend:
 * chunks of 16, mixed over 256 batches. So the order depends on the batch size,
 * and a saved state fits that one only, unless `chunks` is given.
 */
#include "sampler/blocks.h"

static const struct pen_opt options[] = {
	PEN_BLOCKS_CHUNK("16"),
	{ .name = "fetch",
	  .type = PEN_OPT_COUNT,
	  .off = offsetof(struct pen_blocks, opt_fetch),
	  .dflt = "256",
	  .help = "batches whose samples are mixed with one another",
	  .min = 1,
	  .max = 1e18 },
	{ .name = "chunks",
	  .type = PEN_OPT_COUNT,
	  .off = offsetof(struct pen_blocks, opt_chunks),
	  .dflt = "0",
	  .help = "chunks mixed, whatever the batch size; 0 = by fetch",
	  .min = 0,
	  .max = 1e18 },
	PEN_BLOCKS_MIX,
	{ .name = NULL },
};

const struct pen_sampler_ops pen__sampler_scdataset = {
	.name = "scdataset",
	.help = "block shuffle of scDataset: chunks of 16, over 256 batches",
	.opts = options,
	PEN_BLOCKS_OPS,
};
