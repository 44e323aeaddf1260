/*
 * A sampler defines which sample comes at which position of an epoch. The
 * answer is a function of (seed, epoch, position) alone, never of threads or
 * ranks, so that resuming is a seek and any number of ranks share one order.
 */
#ifndef PEN_SAMPLER_SAMPLER_H
#define PEN_SAMPLER_SAMPLER_H

#include <stdbool.h>

#include "base/opt.h"

#define PEN_NO_LABEL INT64_MIN /* the element belongs to no class */

/* What a sampler draws from. Arrays are borrowed until close. */
struct pen_population {
	uint64_t n;
	const double *weights;	 /* per element, or NULL */
	const int64_t *labels;	 /* per element, or NULL */
	const uint32_t *lengths; /* per element, or NULL */
	uint32_t batch; /* average samples in a rank's batch; 0: unknown */
	/* Batches end where they would exceed this many tokens or samples; 0:
	 * all have `batch` samples. */
	uint64_t tokens;
	uint32_t most;
	bool padded;	   /* tokens are the longest times their number */
	uint64_t multiple; /* ... rounded up to this; 0: not rounded */
};

struct pen_sampler {
	const struct pen_sampler_ops *ops;
	void *priv; /* ops->priv_size bytes, options parsed */
	struct pen_population pop;
	uint64_t seed;
	/* Set by open(): */
	uint64_t length; /* positions in an epoch */
	uint64_t window; /* positions best planned together; 0 = irrelevant */
	uint64_t chunk;	 /* consecutive elements kept together; 0 = none */
	uint64_t
		order; /* hash of what else the order depends on; 0 = nothing */
};

struct pen_sampler_ops {
	const char *name;
	const char *help;
	const struct pen_opt *opts;
	size_t priv_size;
	bool in_order;	/* neighbours follow one another */
	bool by_length; /* needs pop.lengths */
	bool repeats;	/* an element may come several times per epoch */
	bool by_weight; /* needs pop.weights */
	/* Options parsed, pop and seed set. length defaults to pop.n. */
	int (*open)(struct pen_sampler *, struct pen_err *);
	void (*close)(struct pen_sampler *);
	/*
	 * Elements at positions [pos, pos + n) of an epoch; pos + n <= length.
	 * Any epoch and position, in any order; called by one thread at a
	 * time, so a sampler may keep tables of the epoch it is in.
	 */
	int (*ids)(struct pen_sampler *, uint64_t epoch, uint64_t pos, size_t n,
		   uint64_t *out, struct pen_err *);
	/* Position after the window that pos is in, whose units are best
	 * fetched together. Called only if `window` is not 0. */
	uint64_t (*window_end)(struct pen_sampler *, uint64_t epoch,
			       uint64_t pos);
	/*
	 * The positions [*start, *end) around pos that contain entire chunks in
	 * a uniformly random order, and no part of other chunks. False, or
	 * NULL: the order is not of this kind. Any thread, while others use the
	 * sampler.
	 */
	bool (*mixed)(const struct pen_sampler *, uint64_t epoch, uint64_t pos,
		      uint64_t *start, uint64_t *end);
	/* With pop.tokens: the latest end of a batch that starts at pos. NULL:
	 * batches end anywhere. */
	uint64_t (*batch_end)(struct pen_sampler *, uint64_t epoch,
			      uint64_t pos);
};

const struct pen_sampler_ops *pen__sampler_at(unsigned i);
const struct pen_sampler_ops *pen__sampler_find(const char *name);

int pen__sampler_open(struct pen_sampler **out, const char *name,
		      const struct pen_population *, uint64_t seed,
		      struct pen_opts given, struct pen_err *err);
void pen__sampler_close(struct pen_sampler *);
/* Does this sampler exist, with these options? */
int pen__sampler_try(const char *name, const struct pen_opts_kv *kv, size_t nkv,
		     struct pen_err *err);

#endif
