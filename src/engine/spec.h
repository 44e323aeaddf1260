/* What to load and how, as set by key=value. */
#ifndef PEN_ENGINE_SPEC_H
#define PEN_ENGINE_SPEC_H

#include <stdbool.h>

#include "base/opt.h"
#include "base/pairs.h"

struct pen_comm;
struct pen_ddict;
struct pen_kept_index;

#define PEN_QUEUE_DEPTH 32 /* reads in flight per thread unless set */

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

/* Stops indexing when asked() returns true; asked is NULL when nothing does. */
struct pen_stop {
	int (*asked)(void *arg);
	void *arg;
};
static inline bool pen__stopped(const struct pen_stop *s)
{
	return s && s->asked && s->asked(s->arg);
}

/* Called for rows that are complete; NULL if unused. */
struct pen_row_hook {
	void (*rows)(void *arg, uint32_t thread, uint32_t n);
	void *arg;
};

struct pen_spec {
	char **paths;
	size_t npaths;
	char *format, *store, *sampler, *shuffle;
	uint64_t batch_size, epochs, seed;
	bool batch_given; /* batch_size was set explicitly */
	uint64_t batch_tokens, pack, pad_multiple;
	int too_long, pad_to;
	int64_t threads, prefetch, queue_depth;
	uint64_t memory, cache;
	bool tier;		/* cache=ddict */
	bool ranked;		/* rank or world was set */
	struct pen_comm *comm;	/* the caller's; NULL: open our own */
	struct pen_ddict *dict; /* the caller's, as the only path; or NULL */
	int tail, on_error, shapes;
	bool drop_last, last_given;
	uint64_t max_errors;
	int64_t rank, world;
	char *index_cache;
	const struct pen_opt *cells; /* only formats with this option */
	char *subset, *weights, *labels, *label_name, *lengths;
	bool mlock;
	bool decode, reshuffle;
	struct pen_opt_list take;
	char *cast, *fields;
	uint64_t read_size, epoch_batches, batch_group;
	uint64_t open_files;
	struct pen_pairs for_store, for_format, for_sampler, for_cache;
	struct pen_pairs for_decode; /* FIELD=NAME:OPTIONS */
	struct pen_pairs for_image;  /* [FIELD.]SETTING */
	char *image;		     /* unused: kept as for_image preset */
	/* Not settings, and owned by the caller: pen_spec_on_stop() etc. */
	struct pen_stop stop;
	struct pen_row_hook hook;
	struct pen_kept_index *kept;
};

extern const struct pen_opt pen__spec_opts[];

/* Is a path a dictionary (ddict:NAME)? */
bool pen__spec_dict(const struct pen_spec *);
/* The store to use: that of the paths, if `store` leaves it open. */
const char *pen__spec_store(const struct pen_spec *);
/* The sampler that `sampler` and `shuffle` together select. */
const char *pen__spec_sampler(const struct pen_spec *);
/* Are the settings of a loader compatible? (spec_check.c) */
int pen__spec_check(const struct pen_spec *, struct pen_err *);
/* The checks for store and cache, which also apply to a data set alone. */
int pen__spec_check_parts(const struct pen_spec *, struct pen_err *);
/* Are they compatible with the store in use? */
struct pen_store;
int pen__spec_check_store(const struct pen_spec *, const struct pen_store *,
			  struct pen_err *);

#endif
