/* What to load and how, as set by key=value. */
#ifndef PEN_ENGINE_SPEC_H
#define PEN_ENGINE_SPEC_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/opt.h"

struct pen_comm;

enum pen_tail { PEN_TAIL_AUTO, PEN_TAIL_KEEP, PEN_TAIL_DROP, PEN_TAIL_PAD };
enum pen_on_error { PEN_ON_FAIL, PEN_ON_SKIP, PEN_ON_SUBSTITUTE };
enum pen_pad_to { PEN_PAD_AUTO, PEN_PAD_DATA, PEN_PAD_BATCH };
enum pen_too_long {
	PEN_LONG_AUTO,
	PEN_LONG_FAIL,
	PEN_LONG_ALONE,
	PEN_LONG_CUT,
	PEN_LONG_SPLIT
};
enum pen_shapes { PEN_SHAPES_AUTO, PEN_SHAPES_RAGGED, PEN_SHAPES_PADDED };

/* Settings for an implementation that is chosen later. */
struct pen_pairs {
	struct pen_opts_kv *kv;
	size_t n;
};

struct pen_spec {
	char **paths;
	size_t npaths;
	char *format, *store, *sampler, *shuffle;
	uint64_t batch_size, epochs, seed;
	bool batch_given; /* batch_size was set, and is not the default */
	uint64_t batch_tokens, pack, pad_multiple;
	int too_long, pad_to;
	int64_t threads, prefetch, queue_depth;
	uint64_t memory, cache;
	bool tier;	       /* cache=ddict */
	bool ranked;	       /* rank or world was set */
	struct pen_comm *comm; /* the caller's, for tier; NULL: our own */
	int tail, on_error, shapes;
	bool drop_last;
	uint64_t max_errors;
	int64_t rank, world;
	char *index_cache;
	char *subset, *weights, *labels, *lengths;
	bool mlock;
	bool decode, reshuffle;
	struct pen_opt_list take;
	char *cast, *fields;
	uint64_t read_size, epoch_batches;
	uint64_t open_files;
	struct pen_pairs for_store, for_format, for_sampler, for_cache;
	/* Not a setting: while data is indexed, its being true ends that with
	 * PEN_ECLOSED. NULL: nothing does. */
	const atomic_bool *stop;
};

extern const struct pen_opt pen__spec_opts[];

int pen__spec_copy(struct pen_spec **out, const struct pen_spec *,
		   struct pen_err *);
/* Which sampler `sampler` and `shuffle` ask for together. */
const char *pen__spec_sampler(const struct pen_spec *);
void pen__pairs_clear(struct pen_pairs *);
/* The value of "key" among the pairs, or NULL. */
const char *pen__pairs_get(const struct pen_pairs *, const char *key);

#endif
