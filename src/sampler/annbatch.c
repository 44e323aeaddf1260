/*
 * The shuffle of annbatch's loader with its sizes: 32 chunks of 512 are mixed.
 */
#include "sampler/blocks.h"

static const struct pen_opt options[] = {
	PEN_BLOCKS_CHUNK("512"),
	PEN_BLOCKS_CHUNKS("32"),
	PEN_BLOCKS_MIX,
	{ .name = NULL },
};

const struct pen_sampler_ops pen__sampler_annbatch = {
	.name = "annbatch",
	.help = "block shuffle with the defaults of annbatch: 32 chunks of 512 "
		"samples",
	.opts = options,
	PEN_BLOCKS_OPS,
};
