/*
 * Makes a workload's data set: in parallel, resumable, the same from the same
 * seed whoever makes it and in whatever order.
 *
 * A file that is there, complete and of the right shape, is kept; one of other
 * settings is made again. No file has its name before it is complete, so a run
 * that was killed is taken up by starting it again.
 */
#ifndef PEN_EMULATE_GENERATE_H
#define PEN_EMULATE_GENERATE_H

#include <stdatomic.h>

#include "comm/comm.h"
#include "emulate/layout.h"

struct pen_generate {
	const struct pen_config *c;
	struct pen_comm *comm; /* rank r makes files r, r + size, ... */
	unsigned threads; /* 0: as many as CPUs, shared among local ranks */
	/* Asked now and then by the calling thread, which does not write: a
	 * result other than 0 ends it. May be NULL. */
	int (*tick)(void *arg, const struct pen_generate *);
	void *arg;
	/* progress; any thread may read */
	atomic_uint_fast64_t files_done; /* made or kept */
	atomic_uint_fast64_t files_kept; /* of these, were there already */
	atomic_uint_fast64_t bytes_done; /* written */
	/* Of this rank. The bytes are about those to be written, and known
	 * (else 0) once it is known what is there already. */
	uint64_t files_total;
	atomic_uint_fast64_t bytes_total;
};

/* Collective. All of the data set is there when it returns 0. */
int pen__generate(struct pen_generate *, struct pen_err *err);

#endif
