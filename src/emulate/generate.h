/*
 * Generates the data set of a workload: in parallel, resumable, and identical
 * for the same seed in any order of work.
 *
 * An existing file that is complete and has the right shape is kept; a file of
 * other settings is replaced. A file gets its name only when it is complete, so
 * a killed run is continued by starting it again.
 */
#ifndef PEN_EMULATE_GENERATE_H
#define PEN_EMULATE_GENERATE_H

#include <stdatomic.h>

#include "comm/comm.h"
#include "emulate/layout.h"

struct pen_generate {
	const struct pen_config *c;
	struct pen_comm *comm; /* rank r generates files r, r + size, ... */
	unsigned threads;      /* 0: one per CPU, divided among local ranks */
	/* Called regularly by the calling thread, which does not write: a
	 * result other than 0 stops the generation. May be NULL. */
	int (*tick)(void *arg, const struct pen_generate *);
	void *arg;
	/* progress; any thread may read */
	atomic_uint_fast64_t files_done; /* generated or kept */
	atomic_uint_fast64_t files_kept; /* existing files among them */
	atomic_uint_fast64_t bytes_done; /* written */
	/* Of this rank. bytes_total is an estimate of the bytes to write; 0
	 * until existing files are known. */
	uint64_t files_total;
	atomic_uint_fast64_t bytes_total;
};

/* Collective. On success the data set is complete. */
int pen__generate(struct pen_generate *, struct pen_err *err);

#endif
