/*
 * Ranks. A process alone is rank 0 of 1; under mpirun or srun the MPI module
 * (a shared object of its own, loaded only then) makes it one of many. All
 * calls are collective unless stated otherwise and come from one thread.
 *
 * A rank that cannot go on says so with pen__comm_agree(), at any point: the
 * others, whichever call they come to next, get its error out of that call
 * instead of waiting for a rank that will not come. A rank that only closes
 * while others go on gives them PEN_ECLOSED. So on every path, good or bad:
 *
 *	rc = pen__comm_agree(comm, rc, &err);
 *	pen__comm_close(comm);
 *
 * A rank that dies, or leaves without closing, takes the job with it (mpirun's
 * and srun's doing), never leaves it waiting.
 */
#ifndef PEN_COMM_COMM_H
#define PEN_COMM_COMM_H

#include "base/err.h"

enum pen_reduce { PEN_SUM, PEN_MIN, PEN_MAX };

struct pen_comm {
	const struct pen_comm_ops *ops;
	int rank, size;
	int node, nnodes;	    /* which host this is, of how many */
	int local_rank, local_size; /* on this host */
	void *priv;
};

/* What moves the bytes. Ranks that fail are no concern of these. */
struct pen_comm_ops {
	const char *name; /* "self", "mpi" */
	void (*close)(struct pen_comm *);
	int (*reduce)(struct pen_comm *, double *v, size_t n, enum pen_reduce,
		      struct pen_err *);
	int (*bcast)(struct pen_comm *, void *buf, size_t n, int root,
		     struct pen_err *);
	int (*gather)(struct pen_comm *, const void *mine, size_t n, void **all,
		      size_t *len, struct pen_err *);
	void (*abort)(struct pen_comm *, int exit_code);
};

/*
 * Looks at how we were launched and opens what fits. Launched by mpirun or
 * srun but the module is not there: an error that says what to install, never
 * N runs that each believe to be alone. Works once per process, and before
 * threads are started (MPI changes the environment). Open before what may fail
 * on one rank only: who ends before has to exit with a code other than 0, else
 * Open MPI waits for it.
 */
int pen__comm_open(struct pen_comm **out, struct pen_err *err);
void pen__comm_close(struct pen_comm *); /* NULL ok */

int pen__comm_barrier(struct pen_comm *, struct pen_err *err);
/* All get the result, in place; n is the same everywhere. */
int pen__comm_reduce(struct pen_comm *, double *v, size_t n, enum pen_reduce,
		     struct pen_err *err);
/* n and root are the same everywhere. */
int pen__comm_bcast(struct pen_comm *, void *buf, size_t n, int root,
		    struct pen_err *err);
/*
 * Every rank's n bytes to rank 0, in rank order; n may differ. On rank 0 *all
 * is one allocation, the caller's to free, and len[size] is filled; elsewhere
 * *all is NULL and len is not used.
 */
int pen__comm_gather(struct pen_comm *, const void *mine, size_t n, void **all,
		     size_t *len, struct pen_err *err);
/*
 * A barrier that also tells of failure: every rank gives its rc (0 or a
 * negative pen_code); when any failed, all get the lowest failed rank's code
 * and error (others' messages say which rank it was). Returns that code. Costs
 * what a barrier costs.
 */
int pen__comm_agree(struct pen_comm *, int rc, struct pen_err *err);

/*
 * Not collective: ends every rank of the job and this process, at once and
 * with no chance to write anything. For what cannot wait for agreement.
 */
void pen__comm_abort(struct pen_comm *, int exit_code);

#endif
