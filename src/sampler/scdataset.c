/*
 * The block shuffling of scDataset with the sizes its authors recommend: chunks
 * of 16, mixed over 256 batches. So the order depends on the batch size, and a
 * saved state fits only that size, unless `chunks` is set.
 */
#include "sampler/blocks.h"

static const struct pen_opt options[] = {
	PEN_BLOCKS_CHUNK("16"),
	{ .name = "fetch",
	  .type = PEN_OPT_COUNT,
	  .off = offsetof(struct pen_blocks, opt_fetch),
	  .dflt = "256",
	  .help = "number of batches mixed with one another",
	  .min = 1,
	  .max = 1e18 },
	{ .name = "chunks",
	  .type = PEN_OPT_COUNT,
	  .off = offsetof(struct pen_blocks, opt_chunks),
	  .dflt = "0",
	  .help = "number of chunks mixed with one another, whatever the batch "
		  "size (0 = set by fetch)",
	  .min = 0,
	  .max = 1e18 },
	PEN_BLOCKS_MIX,
	{ .name = NULL },
};

const struct pen_sampler_ops pen__sampler_scdataset = {
	.name = "scdataset",
	.help = "block shuffle with the defaults of scDataset: chunks of 16 "
		"samples, 256 batches",
	.opts = options,
	PEN_BLOCKS_OPS,
};
