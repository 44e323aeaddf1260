/*
 * Chunks of neighbours drawn in proportion to their weight, and mixed: for data
 * where a single sample costs as much as a chunk of its neighbours.
 *
 * A draw selects a chunk in proportion to the sum of its weights, and as many
 * samples from it as it has room for, at even steps through its weights from a
 * random start. So a sample of weight w comes exactly in proportion to w on
 * average, and where all weights of a chunk are equal, each sample comes once.
 * Draws are mixed in windows, as blocks are.
 */
#ifndef PEN_SAMPLER_DRAWN_H
#define PEN_SAMPLER_DRAWN_H

#include "base/alias.h"
#include "sampler/sampler.h"

struct pen_drawn {
	uint64_t chunk, chunks; /* options */

	struct pen_alias alias; /* of chunks */
	double *sum; /* cumulative weights within the chunk; NULL: no chunks */

	uint64_t epoch, cur; /* the current window, once ready */
	bool ready;
	struct pen_perm rows;
};

#define PEN_DRAWN_OPTS(type_)                                                  \
	{ .name = "chunk",                                                     \
	  .type = PEN_OPT_COUNT,                                               \
	  .off = offsetof(type_, drawn.chunk),                                 \
	  .dflt = "1",                                                         \
	  .help = "neighbouring samples drawn together: longer reads, "        \
		  "but less random",                                           \
	  .min = 1,                                                            \
	  .max = 1e9 },                                                        \
	{                                                                      \
		.name = "chunks", .type = PEN_OPT_COUNT,                       \
		.off = offsetof(type_, drawn.chunks), .dflt = "256",           \
		.help = "number of chunks mixed with one another", .min = 1,   \
		.max = 1e9                                                     \
	}

/* One checked weight for each of s->pop.n; sets the sampler's chunk and window.
 * The weights are not used afterwards. */
int pen__drawn_init(struct pen_drawn *, struct pen_sampler *,
		    const double *weights, struct pen_err *);
void pen__drawn_fini(struct pen_drawn *);
void pen__drawn_ids(struct pen_drawn *, const struct pen_sampler *,
		    uint64_t epoch, uint64_t pos, size_t n, uint64_t *out);
/* pen_sampler_ops.window_end */
uint64_t pen__drawn_end(struct pen_sampler *, uint64_t epoch, uint64_t pos);

#endif
