/* Parts of result.json that need all ranks. */
#ifndef PEN_EMULATE_RESULT_H
#define PEN_EMULATE_RESULT_H

#include "emulate/output.h"

/* The run over time, all accelerators, in at most PEN_POINTS points. */
#define PEN_POINTS 1000
struct pen_run_series {
	size_t n;
	uint64_t steps; /* total of one accelerator */
	/* n each, one allocation */
	double *count, *at, *load, *compute, *busy; /* sums over steps */
	double *load_max;
};
/* Collective; every rank gets it. */
int pen__series(struct pen_run_series *, const struct pen_record *,
		struct pen_err *err);
void pen__series_fini(struct pen_run_series *);
void pen__series_json(struct pen_text *, const struct pen_run_series *);

enum { PEN_P50, PEN_P90, PEN_P99, PEN_P99_9, PEN_PMAX, PEN_NPERCENTILES };
/* Training figures of one rank, computed there and sent to rank 0. */
struct pen_rank_figures {
	int rank, node;
	unsigned first, naccel;
	double au; /* mean over its accelerators and epochs */
	uint64_t steps;
	double load[PEN_NPERCENTILES], compute[PEN_NPERCENTILES],
		proc[PEN_NPERCENTILES]; /* seconds */
	struct pen_io_delta io;		/* all phases */
	double train_s, first_batch_s;
	uint64_t peak_memory, buffer_peak, checkpoint_bytes;
};
/* Collective; *all is NULL except on rank 0, where it has comm->size entries.
 */
int pen__ranks_gather(const struct pen_record *, struct pen_rank_figures **all,
		      struct pen_err *err);
void pen__ranks_json(struct pen_text *, const struct pen_rank_figures *, int n);

/* Adds an object with "p50": ..., "buckets": [[upper, count], ...]. */
void pen__hist_json(struct pen_text *, const char *key,
		    const struct pen_hist *);

#endif
