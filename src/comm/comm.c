/*
 * Opening the communicator that fits the launch, and the collective calls.
 *
 * Every call starts with a vote: one reduction of four numbers, in which each
 * rank states which call it makes and whether it failed or is leaving. A rank
 * may therefore fail anywhere, and meets the others in whatever call they are
 * in: all learn of the failure in the same vote, none waits forever, and calls
 * that do not match are an error, not a hang. A barrier is just a vote. The
 * error itself is sent only if there is one.
 */
#include "comm/comm.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "comm/launch.h"
#include "comm/module.h"

enum call {
	CALL_BARRIER,
	CALL_REDUCE,
	CALL_COMBINE,
	CALL_BCAST,
	CALL_GATHER,
	CALL_CHANNEL,
	CALL_WINDOW,
	CALL_PART,
	CALL_CLOSE, /* the highest */
};

/* The votes: the lowest of each; the last is minus the highest call. */
enum { FAILED, LEAVING, CALL_LOW, CALL_HIGH, NVOTES };

static int open_self(struct pen_comm **out, struct pen_err *err)
{
	struct pen_comm *c = pen__calloc(1, sizeof(*c));

	if (!c)
		return pen__fail_nomem(err, "ranks", sizeof(*c));
	c->ops = &pen__comm_self;
	c->size = c->nnodes = c->local_size = 1;
	*out = c;
	return 0;
}

/*
 * An MPI library that does not recognise its launcher believes it runs alone,
 * and N such processes would each do all the work.
 */
static int check_size(const struct pen_comm *c, const struct pen_launch *l,
		      struct pen_err *err)
{
	if (l->size ? c->size == l->size : l->rank <= 0 || c->rank == l->rank)
		return 0;
	return pen__fail(
		err, P_LAUNCH, l->by,
		"%s is %d for the launcher but %d for the MPI library; use "
		"mpirun or mpiexec of that library",
		l->size ? "the number of ranks" : "the rank",
		l->size ? l->size : l->rank, l->size ? c->size : c->rank);
}

/* The module did not load: explains why it is needed and how to get it. */
static int explain(const struct pen_launch *l, const struct pen_err *why,
		   int rc, struct pen_err *err)
{
	if (rc == PEN_ENOTFOUND)
		return pen__fail(
			err, P_NOT_IN_BUILD, why->where,
			"%s started several ranks, but penstock-%s.so is "
			"missing; install %s and rebuild, or set "
			"PENSTOCK_MODULES to its directory",
			l->by, l->mpi ? l->mpi : "openmpi",
			pen__mpi_to_build(l->mpi));
	return pen__fail(err, P_UNSUPPORTED_SYSTEM, why->where,
			 "%s (required because %s started several ranks); "
			 "install %s",
			 why->msg, l->by, pen__mpi_to_run(l->mpi));
}

int pen__comm_open(struct pen_comm **out, struct pen_err *err)
{
	static const struct pen_comm_host host = { pen__alloc, pen__free };
	const struct pen_comm_module *m;
	struct pen_err why = { 0 };
	struct pen_launch l;
	int rc;

	*out = NULL;
	rc = pen__comm_launch(&l, err);
	if (rc)
		return rc;
	if (l.size == 1)
		return open_self(out, err);
	rc = pen__comm_load(l.mpi, &m, &why);
	if (rc)
		return explain(&l, &why, rc, err);
	rc = m->open(&host, out, err);
	if (rc)
		return rc;
	rc = check_size(*out, &l, err);
	if (rc) {
		pen__comm_close(*out);
		*out = NULL;
	}
	return rc;
}

/* Fails only if the transport fails; the caller interprets the votes. */
static int vote(struct pen_comm *c, enum call call, int rc, double *v,
		struct pen_err *err)
{
	v[FAILED] = rc < 0 ? c->rank : c->size;
	v[LEAVING] = call >= CALL_PART ? c->rank : c->size;
	v[CALL_LOW] = call;
	v[CALL_HIGH] = -(double)call;
	return c->ops->reduce(c, v, NVOTES, PEN_MIN, err);
}

/* The rank that a message reports as failed, or -1; a rank may pass on an error
 * that it received. */
static int failed_rank(const char *msg)
{
	int rank = -1, n = 0;

	if (sscanf(msg, "rank %d failed: %n", &rank, &n) != 1 || !n)
		return -1;
	return rank;
}

/* Sends the error of rank `root` to all; root keeps its own. */
static int spread(struct pen_comm *c, int root, int rc, struct pen_err *err)
{
	struct pen_err e = { 0 };
	int failed;

	if (c->rank == root) {
		if (err)
			e = *err;
		pen__err_code(&e, rc);
	}
	failed = c->ops->bcast(c, &e, sizeof(e), root, err);
	if (c->rank == root)
		return rc;
	if (failed)
		return failed;
	e.where[sizeof(e.where) - 1] = e.msg[sizeof(e.msg) - 1] = '\0';
	/* this rank's own error is more precise */
	if (failed_rank(e.msg) == c->rank && rc == e.code)
		return rc;
	if (failed_rank(e.msg) >= 0)
		return pen__fail_as(err, &e, e.where, "%s", e.msg);
	return pen__fail_as(err, &e, e.where, "rank %d failed: %s", root,
			    e.msg[0] ? e.msg : "no details are known");
}

static int meet(struct pen_comm *c, enum call call, int rc, struct pen_err *err)
{
	double v[NVOTES];
	int failed;

	if (c->size == 1)
		return rc < 0 ? rc : 0;
	/* a rank that has failed keeps its own error */
	failed = vote(c, call, rc, v, rc < 0 ? NULL : err);
	if (failed)
		return rc < 0 ? rc : failed;
	if (v[FAILED] < c->size)
		return spread(c, (int)v[FAILED], rc, err);
	if (v[LEAVING] < c->size)
		return pen__fail(err, P_CLOSED, "ranks",
				 "rank %d closed before the others",
				 (int)v[LEAVING]);
	if (v[CALL_LOW] != -v[CALL_HIGH])
		return pen__fail(err, P_RANKS_DISAGREE, "ranks",
				 "the ranks make different collective calls at "
				 "the same time (%d and %d)",
				 (int)v[CALL_LOW], (int)-v[CALL_HIGH]);
	return 0;
}

/*
 * Waits until all ranks leave. Ranks in another call get an error from it, and
 * arrive here on their own path.
 */
static void leave(struct pen_comm *c)
{
	double v[NVOTES];

	while (!vote(c, CALL_CLOSE, 0, v, NULL)) {
		if (v[FAILED] < c->size)
			(void)spread(c, (int)v[FAILED], 0, NULL);
		else if (v[CALL_LOW] == CALL_CLOSE)
			return;
	}
}

void pen__comm_part(struct pen_comm *c)
{
	double v[NVOTES];

	while (c->size > 1 && !vote(c, CALL_PART, 0, v, NULL)) {
		if (v[FAILED] < c->size)
			(void)spread(c, (int)v[FAILED], 0, NULL);
		else if (v[CALL_LOW] == CALL_PART ||
			 -v[CALL_HIGH] == CALL_CLOSE)
			return;
	}
}

void pen__comm_close(struct pen_comm *c)
{
	if (!c)
		return;
	if (c->size > 1)
		leave(c);
	c->ops->close(c);
}

int pen__comm_barrier(struct pen_comm *c, struct pen_err *err)
{
	return meet(c, CALL_BARRIER, 0, err);
}

int pen__comm_agree(struct pen_comm *c, int rc, struct pen_err *err)
{
	return meet(c, CALL_BARRIER, rc, err);
}

int pen__comm_reduce(struct pen_comm *c, double *v, size_t n,
		     enum pen_reduce how, struct pen_err *err)
{
	int rc = meet(c, CALL_REDUCE, 0, err);

	return rc ? rc : c->ops->reduce(c, v, n, how, err);
}

int pen__comm_combine(struct pen_comm *c, void *v, size_t n,
		      enum pen_dtype type, enum pen_reduce how,
		      struct pen_err *err)
{
	const bool whole = type == PEN_I64 || type == PEN_U64;
	int rc = 0;

	if ((!whole && type != PEN_F32 && type != PEN_F64) ||
	    (how == PEN_OR && !whole))
		rc = pen__fail(err, P_BAD_CALL, "ranks",
			       "cannot combine arrays of %s in this way",
			       pen_dtype_name(type));
	rc = meet(c, CALL_COMBINE, rc, err);
	return rc || c->size == 1 ? rc
				  : c->ops->combine(c, v, n, type, how, err);
}

int pen__comm_bcast(struct pen_comm *c, void *buf, size_t n, int root,
		    struct pen_err *err)
{
	int rc = meet(c, CALL_BCAST, 0, err);

	return rc ? rc : c->ops->bcast(c, buf, n, root, err);
}

int pen__comm_gather(struct pen_comm *c, const void *mine, size_t n, void **all,
		     size_t *len, struct pen_err *err)
{
	int rc;

	*all = NULL;
	rc = meet(c, CALL_GATHER, 0, err);
	return rc ? rc : c->ops->gather(c, mine, n, all, len, err);
}

static int no_such(const struct pen_comm *c, struct pen_err *err)
{
	return pen__fail(err, P_NO_TRANSPORT, "ranks",
			 "the ranks are connected by '%s', not by MPI",
			 c->ops->name);
}

int pen__comm_channel(struct pen_comm *c, struct pen_channel **out,
		      struct pen_err *err)
{
	int rc = meet(c, CALL_CHANNEL, 0, err);

	*out = NULL;
	if (rc)
		return rc;
	if (!c->ops->channel)
		return no_such(c, err);
	rc = meet(c, CALL_CHANNEL, c->ops->channel(c, out, err), err);
	if (rc && *out) {
		(*out)->ops->close(*out);
		*out = NULL;
	}
	return rc;
}

int pen__comm_window(struct pen_comm *c, int to, double *us,
		     struct pen_err *err)
{
	int rc = meet(c, CALL_WINDOW, 0, err);

	if (rc)
		return rc;
	if (!c->ops->window)
		return no_such(c, err);
	return meet(c, CALL_WINDOW, c->ops->window(c, to, us, err), err);
}

void pen__comm_abort(struct pen_comm *c, int exit_code)
{
	c->ops->abort(c, exit_code);
}
