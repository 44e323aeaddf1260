/*
 * Chunks of neighbours drawn in proportion to their weight, and mixed: for data
 * where a single sample costs as much as its neighbours with it.
 *
 * A draw takes a chunk in proportion to the sum of its weights, and as many
 * samples out of it as it has room for, at even steps through its weights from
 * a random start. So a sample of weight w comes exactly in proportion to w on
 * average, and where all weights of a chunk are alike, each of it comes once.
 * Draws are mixed in windows as blocks are.
 */
#ifndef PEN_SAMPLER_DRAWN_H
#define PEN_SAMPLER_DRAWN_H

#include "base/alias.h"
#include "sampler/sampler.h"

struct pen_drawn {
	uint64_t chunk, chunks; /* options */

	struct pen_alias alias; /* of chunks */
	double *sum; /* of weights, from the start of the chunk; NULL: chunks
			are not asked for */

	uint64_t epoch, cur; /* the window at hand, once ready */
	bool ready;
	struct pen_perm rows;
};

#define PEN_DRAWN_OPTS(type_)                                                  \
	{ .name = "chunk",                                                     \
	  .type = PEN_OPT_COUNT,                                               \
	  .off = offsetof(type_, drawn.chunk),                                 \
	  .dflt = "1",                                                         \
	  .help = "neighbouring samples drawn together; fewer and longer "     \
		  "reads, and less random",                                    \
	  .min = 1,                                                            \
	  .max = 1e9 },                                                        \
	{                                                                      \
		.name = "chunks", .type = PEN_OPT_COUNT,                       \
		.off = offsetof(type_, drawn.chunks), .dflt = "256",           \
		.help = "chunks whose samples are mixed with one another",     \
		.min = 1, .max = 1e9                                           \
	}

/* One weight for each of s->pop.n, checked; sets the sampler's chunk and
 * window. The weights are not needed any more afterwards. */
int pen__drawn_init(struct pen_drawn *, struct pen_sampler *,
		    const double *weights, struct pen_err *);
void pen__drawn_fini(struct pen_drawn *);
void pen__drawn_ids(struct pen_drawn *, const struct pen_sampler *,
		    uint64_t epoch, uint64_t pos, size_t n, uint64_t *out);
uint64_t pen__drawn_end(const struct pen_sampler *, uint64_t pos);

#endif
