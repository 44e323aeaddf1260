/*
 * Ranks. A single process is rank 0 of 1; under mpirun or srun, the MPI module
 * (a shared object, loaded only then) makes it one of many. All calls are
 * collective unless stated otherwise, and come from one thread.
 *
 * A rank that cannot continue reports it with pen__comm_agree(), at any point:
 * the others get its error from the next call they make, instead of waiting for
 * that rank. If a rank closes while others continue, they get PEN_ECLOSED. So
 * on every path, successful or not:
 *
 *	rc = pen__comm_agree(comm, rc, &err);
 *	pen__comm_close(comm);
 *
 * If a rank dies, or exits without closing, mpirun and srun end the job. If
 * they do not, ranks waiting for a rank of their own machine get PEN_EIO within
 * a second or two.
 */
#ifndef PEN_COMM_COMM_H
#define PEN_COMM_COMM_H

#include <stdbool.h>

#include "base/err.h"

struct pen_channel;

struct pen_comm {
	const struct pen_comm_ops *ops;
	int rank, size;
	int node, nnodes;	    /* number of this host, number of hosts */
	int local_rank, local_size; /* within this host */
	void *priv;
};

/* The ranks of a program that uses the library. */
struct pen_ranks {
	struct pen_comm *comm;
	uint64_t pid; /* process that opened it: a forked child has no ranks */
};

/* The transport. It need not handle ranks that fail. */
struct pen_comm_ops {
	const char *name; /* "self", "mpi" */
	void (*close)(struct pen_comm *);
	int (*reduce)(struct pen_comm *, double *v, size_t n, enum pen_reduce,
		      struct pen_err *);
	/* The same for arrays of int64, uint64, float32 and float64. */
	int (*combine)(struct pen_comm *, void *v, size_t n, enum pen_dtype,
		       enum pen_reduce, struct pen_err *);
	int (*bcast)(struct pen_comm *, void *buf, size_t n, int root,
		     struct pen_err *);
	int (*gather)(struct pen_comm *, const void *mine, size_t n, void **all,
		      size_t *len, struct pen_err *);
	void (*abort)(struct pen_comm *, int exit_code);
	/* Both collective, and NULL if not supported. */
	int (*channel)(struct pen_comm *, struct pen_channel **out,
		       struct pen_err *);
	/* Time of a one-sided get of 1 KB by rank 0 from another rank. */
	int (*window)(struct pen_comm *, int to, double *us, struct pen_err *);
};

/*
 * Detects how the process was launched and opens a matching communicator. If it
 * was launched by mpirun or srun and the module is missing, the error says what
 * to install; the ranks never run as N separate processes.
 *
 * Collective. Each part of a program may open a communicator of its own; their
 * calls do not interfere. The first call must come before threads are started
 * (MPI changes the environment), unless the program already uses MPI. Open
 * before anything that may fail on one rank only: a rank that ends before must
 * exit with a nonzero code, or Open MPI waits for it.
 */
int pen__comm_open(struct pen_comm **out, struct pen_err *err);
void pen__comm_close(struct pen_comm *); /* NULL ok */

int pen__comm_barrier(struct pen_comm *, struct pen_err *err);
/* All ranks get the result, in place; n is the same everywhere. */
int pen__comm_reduce(struct pen_comm *, double *v, size_t n, enum pen_reduce,
		     struct pen_err *err);
/* The same for the types that pen_ranks_reduce() accepts. */
int pen__comm_combine(struct pen_comm *, void *v, size_t n, enum pen_dtype,
		      enum pen_reduce, struct pen_err *err);
/* n and root are the same everywhere. */
int pen__comm_bcast(struct pen_comm *, void *buf, size_t n, int root,
		    struct pen_err *err);
/*
 * Collects every rank's n bytes on rank 0, in rank order; n may differ. On rank
 * 0, *all is one allocation that the caller frees, and len[size] is filled;
 * elsewhere *all is NULL and len is unused.
 */
int pen__comm_gather(struct pen_comm *, const void *mine, size_t n, void **all,
		     size_t *len, struct pen_err *err);
/*
 * A barrier that also reports failure: every rank passes its rc (0 or a
 * negative pen_code). If any failed, all get code and error of the lowest
 * failed rank (on other ranks, the message starts with "rank N failed: ").
 * Returns that code. Costs no more than a barrier.
 */
int pen__comm_agree(struct pen_comm *, int rc, struct pen_err *err);
/*
 * Waits until all ranks are here or close. Those in another call get
 * PEN_ECLOSED from it, and arrive on their own path. For ending together when a
 * rank cannot know where the others are.
 */
void pen__comm_part(struct pen_comm *);

/*
 * Not collective: ends every rank of the job and this process immediately,
 * without flushing anything. For cases that cannot wait for agreement.
 */
void pen__comm_abort(struct pen_comm *, int exit_code);

/*
 * Messages between two ranks, independent of the collective calls. All ranks
 * create a channel together. Its calls are not collective, start an operation
 * and return immediately; any thread may make them, one at a time. Handles are
 * opaque; 0 is none. Messages between two ranks arrive in the order they were
 * sent.
 */
#define PEN_CHANNEL_REQS 64

struct pen_channel_done {
	int i;	  /* index of the handle */
	int from; /* sender of a received message */
	size_t n;
};

struct pen_channel_ops {
	void (*close)(struct pen_channel *); /* no operation is pending */
	/* n <= INT_MAX; the bytes must stay unchanged until it is done. */
	int (*send)(struct pen_channel *, const void *p, size_t n, int to,
		    uint64_t *req, struct pen_err *);
	int (*recv)(struct pen_channel *, void *p, size_t cap, uint64_t *req,
		    struct pen_err *);
	/* Returns how many of n <= PEN_CHANNEL_REQS are done; these become
	 * 0. */
	int (*test)(struct pen_channel *, uint64_t *reqs, int n,
		    struct pen_channel_done *done, struct pen_err *);
	void (*cancel)(struct pen_channel *, uint64_t *reqs, int n);
};

struct pen_channel {
	const struct pen_channel_ops *ops;
	void *priv;
};

/* PEN_ENOTSUP: not supported by these ranks, or MPI allows only one thread. */
int pen__comm_channel(struct pen_comm *, struct pen_channel **out,
		      struct pen_err *err);
/* Tests one-sided calls: *us is the time of a get of 1 KB by rank 0 from
 * `to`. */
int pen__comm_window(struct pen_comm *, int to, double *us,
		     struct pen_err *err);

#endif
