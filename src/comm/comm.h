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
 * and srun's doing). Where they do not, who waits for one of its own machine is
 * told within a second or two (PEN_EIO).
 */
#ifndef PEN_COMM_COMM_H
#define PEN_COMM_COMM_H

#include <stdbool.h>

#include "base/err.h"

enum pen_reduce { PEN_SUM, PEN_MIN, PEN_MAX };

struct pen_channel;

struct pen_comm {
	const struct pen_comm_ops *ops;
	int rank, size;
	int node, nnodes;	    /* which host this is, of how many */
	int local_rank, local_size; /* on this host */
	void *priv;
};

/* The ranks of a program that uses the library. */
struct pen_ranks {
	struct pen_comm *comm;
	uint64_t pid; /* that opened it: a forked child has no ranks */
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
	/* Both collective, and NULL where there is no such thing. */
	int (*channel)(struct pen_comm *, struct pen_channel **out,
		       struct pen_err *);
	/* How long rank 0 takes for a one-sided get of 1 KB from a rank. */
	int (*window)(struct pen_comm *, int to, double *us, struct pen_err *);
};

/*
 * Looks at how we were launched and opens what fits. Launched by mpirun or
 * srun but the module is not there: an error that says what to install, never
 * N runs that each believe to be alone.
 *
 * Collective, and as often as there are parts of the program that need it: each
 * has a communicator of its own, and their calls do not meet. The first time is
 * before threads are started (MPI changes the environment), unless the program
 * has MPI already, which is then used as it is. Open before what may fail on
 * one rank only: who ends before has to exit with a code other than 0, else
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
 * and error (others' messages begin with "rank N failed: "). Returns that code.
 * Costs what a barrier costs.
 */
int pen__comm_agree(struct pen_comm *, int rc, struct pen_err *err);
/*
 * Waits until all ranks are here, or close. Those that are in another call get
 * PEN_ECLOSED out of it, and come by their own way. For what a rank has to end
 * together with the others and cannot know where they are.
 */
void pen__comm_part(struct pen_comm *);

/*
 * Not collective: ends every rank of the job and this process, at once and
 * with no chance to write anything. For what cannot wait for agreement.
 */
void pen__comm_abort(struct pen_comm *, int exit_code);

/*
 * Messages from one rank to another, beside the collective calls. A channel is
 * made by all ranks together, and lives on its own; its calls are not
 * collective, and one thread at a time may make them, any one. They begin
 * something and return at once. Handles are of use to the channel only; 0 is
 * none. Messages between two ranks arrive in the order they were sent.
 */
#define PEN_CHANNEL_REQS 64

struct pen_channel_done {
	int i;	  /* which of the handles */
	int from; /* of a message that came */
	size_t n;
};

struct pen_channel_ops {
	void (*close)(struct pen_channel *); /* nothing is under way */
	/* n <= INT_MAX; the bytes stay as they are until it is done. */
	int (*send)(struct pen_channel *, const void *p, size_t n, int to,
		    uint64_t *req, struct pen_err *);
	int (*recv)(struct pen_channel *, void *p, size_t cap, uint64_t *req,
		    struct pen_err *);
	/* How many of n <= PEN_CHANNEL_REQS are done; they become 0. */
	int (*test)(struct pen_channel *, uint64_t *reqs, int n,
		    struct pen_channel_done *done, struct pen_err *);
	void (*cancel)(struct pen_channel *, uint64_t *reqs, int n);
};

struct pen_channel {
	const struct pen_channel_ops *ops;
	void *priv;
};

/* PEN_ENOTSUP: these ranks have none, or MPI lets in one thread only. */
int pen__comm_channel(struct pen_comm *, struct pen_channel **out,
		      struct pen_err *err);
/* Whether one-sided calls work: us for a get of 1 KB by rank 0 from `to`. */
int pen__comm_window(struct pen_comm *, int to, double *us,
		     struct pen_err *err);

#endif
