/*
 * The block shuffle, implemented in block.c. Other samplers are the same with
 * other defaults: each defines its name, its options and where it comes from.
 */
#ifndef PEN_SAMPLER_BLOCKS_H
#define PEN_SAMPLER_BLOCKS_H

#include "base/rng.h"
#include "sampler/sampler.h"

struct pen_blocks {
	uint64_t opt_chunk, opt_chunks, opt_fetch;
	bool mix;

	uint64_t chunk, per_block; /* elements per chunk, chunks per block */
	uint64_t nchunks;
	uint64_t missing; /* elements missing from the last chunk */
	uint64_t *held;	  /* the chunks of the current block */

	uint64_t epoch; /* of the following, once ready */
	bool ready;
	struct pen_perm chunks;
	uint64_t short_slot; /* where the last chunk lands */

	uint64_t cur; /* the current block, once cur_ready */
	bool cur_ready;
	struct pen_perm rows;
	uint64_t start;	    /* its first position */
	uint64_t short_row; /* its first row after a short chunk */
};

/* Options; the defaults as a user would write them. */
#define PEN_BLOCKS_CHUNK(samples)                                              \
	{                                                                      \
		.name = "chunk", .type = PEN_OPT_COUNT,                        \
		.off = offsetof(struct pen_blocks, opt_chunk),                 \
		.dflt = samples,                                               \
		.help = "number of neighbouring samples kept together",        \
		.min = 1, .max = 1e18                                          \
	}
#define PEN_BLOCKS_CHUNKS(count)                                               \
	{                                                                      \
		.name = "chunks", .type = PEN_OPT_COUNT,                       \
		.off = offsetof(struct pen_blocks, opt_chunks), .dflt = count, \
		.help = "number of chunks mixed with one another", .min = 1,   \
		.max = 1e18                                                    \
	}
#define PEN_BLOCKS_MIX                                                         \
	{                                                                      \
		.name = "mix", .type = PEN_OPT_BOOL,                           \
		.off = offsetof(struct pen_blocks, mix), .dflt = "true",       \
		.help = "mix the samples of a block (false: shuffle chunks "   \
			"only, and keep the order within them)"                \
	}

int pen__blocks_open(struct pen_sampler *, struct pen_err *);
void pen__blocks_close(struct pen_sampler *);
int pen__blocks_ids(struct pen_sampler *, uint64_t epoch, uint64_t pos,
		    size_t n, uint64_t *out, struct pen_err *);
uint64_t pen__blocks_end(struct pen_sampler *, uint64_t epoch, uint64_t pos);
bool pen__blocks_mixed(const struct pen_sampler *, uint64_t epoch, uint64_t pos,
		       uint64_t *start, uint64_t *end);

#define PEN_BLOCKS_OPS                                                         \
	.priv_size = sizeof(struct pen_blocks), .open = pen__blocks_open,      \
	.close = pen__blocks_close, .ids = pen__blocks_ids,                    \
	.window_end = pen__blocks_end, .mixed = pen__blocks_mixed

#endif
