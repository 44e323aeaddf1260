/*
 * Ranks over MPI: a separate module, so that only multi-process runs need an
 * MPI library.
 *
 * Waiting must leave the cores to the loader. MPI's own waits poll
 * continuously; but while a rank waits for one that still computes, its threads
 * should fill batches. So every call is non-blocking and is tested, first in
 * quick succession, because most waits are short. Then the rank sleeps until
 * the last rank of its host has arrived, and for other hosts takes naps between
 * tests, short enough to keep the time of a step accurate.
 *
 * Every open creates its own communicator, so that parts of a program and other
 * users of MPI in it (mpi4py) do not interfere. MPI ends with the process, not
 * with the last close, because it cannot be started twice; it is finalised only
 * if it was started here.
 *
 * After an MPI error, MPI is not called again and the process does not
 * finalise: the launcher sees a process that exited without MPI_Finalize, and
 * ends the others. The same applies to a process that exits without closing. If
 * the launcher does not end the others, they would wait forever; so ranks that
 * wait for long check whether the ranks of their host are alive, and treat a
 * missing one as such an error.
 */
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/alive.h"
#include "base/clock.h"
#include "base/show.h"
#include "comm/host_barrier.h"
#include "comm/mpi_int.h"

#define SPIN_NS 50000
#define NAP_NS 50000
/* Open MPI polls its sockets only in every eighth test. */
#define TESTS 8
/* Interval of checks whether the ranks of this host are alive. */
#define LOOK_NS 500000000u
/* MPI counts are int: larger transfers are split. */
#define PIECE ((size_t)1 << 30)
#define TAG 1

/*
 * Memory shared by the ranks of a host: the barrier, and room for a few numbers
 * of each rank, twice, because a fast rank writes those of the next call while
 * others still read. No rank is ever two calls ahead.
 */
#define FEW 8
struct board {
	struct pen_host_barrier host;
	atomic_int lost;    /* first rank found missing, + 1 */
	double said[][FEW]; /* 2 * local_size, followed by the mates */
};

/* A rank of this host. */
struct mate {
	struct pen_alive process;
	int rank;
};

struct ranks {
	struct pen_comm comm; /* priv points back here */
	const struct pen_comm_host *host;
	MPI_Comm world;	      /* all ranks, in a communicator of our own */
	MPI_Win window;	      /* holds the board */
	struct board *board;  /* NULL: this host has no shared memory */
	struct mate *mates;   /* local_size of them, on the board */
	uint64_t nreductions; /* number of barrier calls */
	int level;	      /* thread support, the lowest of any rank */
	int lost; /* a rank that ended while others waited; -1: none */
	bool broken;
};

/* Global, as MPI itself is. */
static struct {
	pthread_mutex_t lock;
	int level;   /* thread support; -1: unknown */
	pid_t owner; /* process that started MPI and must end it; 0: not us */
	unsigned nopen;
	bool broken;
} mpi = { .lock = PTHREAD_MUTEX_INITIALIZER, .level = -1 };

static struct ranks *ranks_of(struct pen_comm *c)
{
	return c->priv;
}

static int broken(const struct ranks *r, struct pen_err *err)
{
	if (r->lost >= 0)
		return pen__fail(err, P_RANK_FAILED, "ranks",
				 "rank %d has ended; restart the job", r->lost);
	return pen__fail(err, P_RANK_FAILED, "MPI",
			 "rank %d: an earlier MPI call failed", r->comm.rank);
}

static int mpi_fail(struct ranks *r, int code, const char *call,
		    struct pen_err *err)
{
	char text[MPI_MAX_ERROR_STRING] = "unknown error";
	int n = 0;

	r->broken = true;
	pthread_mutex_lock(&mpi.lock);
	mpi.broken = true;
	pthread_mutex_unlock(&mpi.lock);
	if (r->lost >= 0)
		return broken(r, err);
	(void)MPI_Error_string(code, text, &n);
	return pen__fail(err, P_RANK_FAILED, call, "rank %d: %.200s",
			 r->comm.rank, text);
}

/*
 * The kernel rounds naps up by the thread's timer slack, 50 us by default,
 * which would double them.
 */
static void take_nap(void)
{
	const struct timespec nap = { .tv_nsec = NAP_NS };
	const int slack = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);

	prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	nanosleep(&nap, NULL);
	if (slack > 0)
		prctl(PR_SET_TIMERSLACK, slack, 0, 0, 0);
}

/* True if a rank of this host has ended; checked at intervals, by *looked, 0 at
 * first. */
static bool is_lost(struct ranks *r, uint64_t *looked)
{
	const uint64_t now = pen__now_ns();
	uint64_t space;

	if (!*looked)
		*looked = now;
	if (!r->mates || now - *looked < LOOK_NS)
		return false;
	*looked = now;
	space = pen__alive_space();
	for (int i = 0; i < r->comm.local_size; i++) {
		int first = 0;

		if (i == r->comm.local_rank ||
		    pen__alive_is(&r->mates[i].process, space))
			continue;
		/* keep the first one: others end because of it */
		if (atomic_compare_exchange_strong(&r->board->lost, &first,
						   r->mates[i].rank + 1))
			first = r->mates[i].rank + 1;
		r->lost = first - 1;
		return true;
	}
	return false;
}

/* Tests until done. host: the barrier of this host's ranks, or NULL. */
static int test_until(struct ranks *r, MPI_Request *req,
		      struct pen_host_barrier *host)
{
	uint64_t since = 0, looked = 0;
	bool lost = false;
	int done = 0;

	for (;;) {
		for (int i = 0; i < TESTS; i++) {
			int rc = MPI_Test(req, &done, MPI_STATUS_IGNORE);

			if (rc != MPI_SUCCESS || done)
				return rc;
		}
		/* it may have ended after this call: test once more */
		if (lost)
			return MPI_ERR_OTHER;
		lost = is_lost(r, &looked);
		if (!since)
			since = pen__now_ns();
		if (pen__now_ns() - since < SPIN_NS) {
			sched_yield();
		} else if (!host) {
			take_nap();
		} else if (pen__host_barrier_wait(host, r->nreductions)) {
			/* the rest takes only microseconds */
			host = NULL;
			since = 0;
		}
	}
}

/* Completes a call that was started with result `rc`. */
static int settle(struct ranks *r, int rc, MPI_Request *req, const char *call,
		  struct pen_err *err)
{
	if (rc == MPI_SUCCESS)
		rc = test_until(r, req, NULL);
	return rc == MPI_SUCCESS ? 0 : mpi_fail(r, rc, call, err);
}

/*
 * Every other call follows a reduction, the vote: this is where ranks wait for
 * one another, and where sleeping pays off.
 */
static int reduce_piece(struct ranks *r, double *v, int n, MPI_Op op,
			struct pen_err *err)
{
	struct pen_host_barrier *host = r->board ? &r->board->host : NULL;
	MPI_Request req;
	int rc;

	rc = MPI_Iallreduce(MPI_IN_PLACE, v, n, MPI_DOUBLE, op, r->world, &req);
	r->nreductions++;
	if (host)
		pen__host_barrier_arrive(host, r->nreductions,
					 (unsigned)r->comm.local_size);
	if (rc == MPI_SUCCESS)
		rc = test_until(r, &req, host);
	return rc == MPI_SUCCESS ? 0 : mpi_fail(r, rc, "MPI_Iallreduce", err);
}

static double combine(double a, double b, enum pen_reduce how)
{
	switch (how) {
	case PEN_MIN:
		return b < a ? b : a;
	case PEN_MAX:
		return b > a ? b : a;
	default:
		return a + b;
	}
}

/*
 * Reduces a few numbers among ranks of one host without MPI: the numbers are
 * complete when the barrier opens, and no rank has to forward anything, which
 * is slow with more ranks than cores.
 */
static int reduce_on_board(struct ranks *r, double *v, size_t n,
			   enum pen_reduce how, struct pen_err *err)
{
	const int size = r->comm.local_size;
	const uint64_t call = ++r->nreductions;
	double(*said)[FEW] = r->board->said + (call & 1 ? size : 0);
	struct pen_host_barrier *host = &r->board->host;
	uint64_t since = 0, looked = 0;

	memcpy(said[r->comm.local_rank], v, n * sizeof(*v));
	pen__host_barrier_arrive(host, call, (unsigned)size);
	while (!pen__host_barrier_passed(host, call)) {
		if (!since)
			since = pen__now_ns();
		if (pen__now_ns() - since < SPIN_NS)
			sched_yield();
		else if (!pen__host_barrier_wait(host, call) &&
			 is_lost(r, &looked) &&
			 !pen__host_barrier_passed(host, call))
			return mpi_fail(r, MPI_ERR_OTHER, "ranks", err);
	}
	memcpy(v, said[0], n * sizeof(*v));
	for (int i = 1; i < size; i++)
		for (size_t k = 0; k < n; k++)
			v[k] = combine(v[k], said[i][k], how);
	return 0;
}

static int mpi_reduce(struct pen_comm *c, double *v, size_t n,
		      enum pen_reduce how, struct pen_err *err)
{
	const MPI_Op ops[] = {
		[PEN_SUM] = MPI_SUM,
		[PEN_MIN] = MPI_MIN,
		[PEN_MAX] = MPI_MAX,
	};
	const size_t most = PIECE / sizeof(*v);
	struct ranks *r = ranks_of(c);
	int rc;

	if (r->broken)
		return broken(r, err);
	if (!n)
		return 0;
	if (r->board && c->nnodes == 1 && n <= FEW)
		return reduce_on_board(r, v, n, how, err);
	for (size_t k; n; v += k, n -= k) {
		k = n < most ? n : most;
		rc = reduce_piece(r, v, (int)k, ops[how], err);
		if (rc)
			return rc;
	}
	return 0;
}

static int mpi_combine(struct pen_comm *c, void *v, size_t n,
		       enum pen_dtype type, enum pen_reduce how,
		       struct pen_err *err)
{
	const MPI_Op ops[] = {
		[PEN_SUM] = MPI_SUM,
		[PEN_MIN] = MPI_MIN,
		[PEN_MAX] = MPI_MAX,
		[PEN_OR] = MPI_BOR,
	};
	const MPI_Datatype kind = type == PEN_I64   ? MPI_INT64_T
				  : type == PEN_U64 ? MPI_UINT64_T
				  : type == PEN_F32 ? MPI_FLOAT
						    : MPI_DOUBLE;
	const size_t size = type == PEN_F32 ? 4 : 8;
	struct ranks *r = ranks_of(c);
	unsigned char *p = v;
	MPI_Request req;
	int rc;

	if (r->broken)
		return broken(r, err);
	for (size_t k; n; p += k * size, n -= k) {
		k = n < PIECE / size ? n : PIECE / size;
		rc = MPI_Iallreduce(MPI_IN_PLACE, p, (int)k, kind, ops[how],
				    r->world, &req);
		rc = settle(r, rc, &req, "MPI_Iallreduce", err);
		if (rc)
			return rc;
	}
	return 0;
}

static int mpi_bcast(struct pen_comm *c, void *buf, size_t n, int root,
		     struct pen_err *err)
{
	struct ranks *r = ranks_of(c);
	unsigned char *p = buf;
	MPI_Request req;
	int rc;

	if (r->broken)
		return broken(r, err);
	for (size_t k; n; p += k, n -= k) {
		k = n < PIECE ? n : PIECE;
		rc = MPI_Ibcast(p, (int)k, MPI_BYTE, root, r->world, &req);
		rc = settle(r, rc, &req, "MPI_Ibcast", err);
		if (rc)
			return rc;
	}
	return 0;
}

/* Sends n bytes from `from` to rank 0, in the same pieces on both sides. */
static int carry(struct ranks *r, void *p, size_t n, int from,
		 struct pen_err *err)
{
	const bool sends = r->comm.rank == from;
	unsigned char *at = p;
	MPI_Request req;
	int rc;

	for (size_t k; n; at += k, n -= k) {
		k = n < PIECE ? n : PIECE;
		if (sends)
			rc = MPI_Isend(at, (int)k, MPI_BYTE, 0, TAG, r->world,
				       &req);
		else
			rc = MPI_Irecv(at, (int)k, MPI_BYTE, from, TAG,
				       r->world, &req);
		rc = settle(r, rc, &req, sends ? "MPI_Isend" : "MPI_Irecv",
			    err);
		if (rc)
			return rc;
	}
	return 0;
}

/* Rank 0: allocates room for all; on failure NULL, and *total is the size. */
static void *make_room(struct ranks *r, const size_t *lens, size_t *total)
{
	size_t sum = 0;

	*total = SIZE_MAX;
	for (int i = 0; i < r->comm.size; i++)
		if (__builtin_add_overflow(sum, lens[i], &sum))
			return NULL;
	*total = sum;
	return r->host->alloc(sum, 1);
}

/* Rank 0 receives every rank's part, after its own. */
static int take_all(struct ranks *r, const void *mine, const size_t *lens,
		    unsigned char *all, struct pen_err *err)
{
	int rc = 0;

	if (lens[0])
		memcpy(all, mine, lens[0]);
	for (int i = 1; i < r->comm.size && !rc; i++) {
		all += lens[i - 1];
		rc = carry(r, all, lens[i], i, err);
	}
	return rc;
}

/* Whether rank 0 could allocate `total` bytes. */
struct room {
	size_t total;
	bool ok;
};

static int gather_lens(struct ranks *r, size_t n, size_t *lens,
		       struct pen_err *err)
{
	const int bytes = (int)sizeof(n);
	MPI_Request req;
	int rc;

	rc = MPI_Igather(&n, bytes, MPI_BYTE, lens, bytes, MPI_BYTE, 0,
			 r->world, &req);
	return settle(r, rc, &req, "MPI_Igather", err);
}

/*
 * Lengths first; then rank 0 reports whether it has room, so that no rank sends
 * in vain; then the parts.
 */
static int mpi_gather(struct pen_comm *c, const void *mine, size_t n,
		      void **all, size_t *len, struct pen_err *err)
{
	struct ranks *r = ranks_of(c);
	struct room room = { 0 };
	void *buf = NULL;
	int rc;

	if (r->broken)
		return broken(r, err);
	rc = gather_lens(r, n, len, err);
	if (rc)
		return rc;
	if (c->rank == 0) {
		buf = make_room(r, len, &room.total);
		room.ok = buf != NULL;
	}
	rc = mpi_bcast(c, &room, sizeof(room), 0, err);
	if (rc)
		goto fail;
	if (!room.ok)
		return pen__mpi_nomem(r->world, 0, room.total, err);
	if (c->rank)
		return carry(r, (void *)(uintptr_t)mine, n, c->rank, err);
	rc = take_all(r, mine, len, buf, err);
	if (rc)
		goto fail;
	*all = buf;
	return 0;
fail:
	r->host->free(buf);
	return rc;
}

static int mpi_channel(struct pen_comm *c, struct pen_channel **out,
		       struct pen_err *err)
{
	struct ranks *r = ranks_of(c);

	if (r->broken)
		return broken(r, err);
	if (r->level < MPI_THREAD_MULTIPLE)
		return pen__fail(err, P_UNSUPPORTED_SYSTEM, "MPI",
				 "initialised without MPI_THREAD_MULTIPLE");
	return pen__mpi_channel(r->world, r->host, out, err);
}

static int mpi_window(struct pen_comm *c, int to, double *us,
		      struct pen_err *err)
{
	struct ranks *r = ranks_of(c);

	if (r->broken)
		return broken(r, err);
	return pen__mpi_window(r->world, to, us, err);
}

static void quit(void)
{
	pthread_mutex_lock(&mpi.lock);
	mpi.nopen--;
	pthread_mutex_unlock(&mpi.lock);
}

static void mpi_close(struct pen_comm *c)
{
	struct ranks *r = ranks_of(c);

	if (!r->broken) {
		if (r->board)
			(void)MPI_Win_free(&r->window);
		(void)MPI_Comm_free(&r->world);
	}
	quit();
	r->host->free(r);
}

static void mpi_abort(struct pen_comm *c, int exit_code)
{
	(void)c;
	(void)MPI_Abort(MPI_COMM_WORLD, exit_code);
	_Exit(exit_code);
}

static const struct pen_comm_ops mpi_ops = {
	.name = "mpi",
	.close = mpi_close,
	.reduce = mpi_reduce,
	.combine = mpi_combine,
	.bcast = mpi_bcast,
	.gather = mpi_gather,
	.abort = mpi_abort,
	.channel = mpi_channel,
	.window = mpi_window,
};

int pen__mpi_lacking(MPI_Comm ranks, bool found)
{
	int rank = 0, least;

	(void)MPI_Comm_rank(ranks, &rank);
	least = found ? INT_MAX : rank;
	if (MPI_Allreduce(MPI_IN_PLACE, &least, 1, MPI_INT, MPI_MIN, ranks) !=
	    MPI_SUCCESS)
		return 0;
	return least == INT_MAX ? -1 : least;
}

int pen__mpi_nomem(MPI_Comm ranks, int lacking, size_t bytes,
		   struct pen_err *err)
{
	int rank = 0;

	(void)MPI_Comm_rank(ranks, &rank);
	if (rank == lacking)
		return pen__fail_nomem(err, "ranks", bytes);
	return pen__fail(err, P_NO_MEMORY, "ranks",
			 "rank %d failed: out of memory: cannot allocate %s",
			 lacking, pen__show_bytes((double)bytes).s);
}

/*
 * Hosts are distinguished by shared memory and numbered by their lowest rank:
 * names may be the same in containers.
 */
static int find_nodes(struct ranks *r, MPI_Comm local)
{
	struct pen_comm *c = &r->comm;
	int first, before = 0;
	int rc;

	rc = MPI_Comm_rank(local, &c->local_rank);
	if (rc == MPI_SUCCESS)
		rc = MPI_Comm_size(local, &c->local_size);
	first = c->local_rank == 0;
	if (rc == MPI_SUCCESS)
		rc = MPI_Allreduce(&first, &c->nnodes, 1, MPI_INT, MPI_SUM,
				   r->world);
	if (rc == MPI_SUCCESS)
		rc = MPI_Exscan(&first, &before, 1, MPI_INT, MPI_SUM, r->world);
	c->node = c->rank ? before : 0; /* Exscan: undefined on rank 0 */
	if (rc == MPI_SUCCESS)
		rc = MPI_Bcast(&c->node, 1, MPI_INT, 0, local);
	return rc;
}

/*
 * Without shared memory there is no board, and ranks nap instead; all ranks of
 * a host do the same.
 */
static int share_board(struct ranks *r, MPI_Comm local)
{
	const int n = r->comm.local_size;
	struct board *board = NULL;
	struct mate *mates;
	MPI_Aint mine = 0, size;
	int unit, ok;
	int rc;

	if (n == 1)
		return MPI_SUCCESS;
	if (r->comm.local_rank == 0)
		mine = (MPI_Aint)(sizeof(*board) +
				  (sizeof(double[2][FEW]) + sizeof(*mates)) *
					  (size_t)n);
	rc = MPI_Win_allocate_shared(mine, 1, MPI_INFO_NULL, local, &board,
				     &r->window);
	if (rc == MPI_SUCCESS)
		rc = MPI_Win_shared_query(r->window, 0, &size, &unit, &board);
	ok = rc == MPI_SUCCESS;
	if (ok && mine)
		memset(board, 0, (size_t)mine);
	rc = MPI_Allreduce(MPI_IN_PLACE, &ok, 1, MPI_INT, MPI_MIN, local);
	if (rc != MPI_SUCCESS || !ok)
		return rc;
	mates = (struct mate *)(void *)(board->said + 2 * (size_t)n);
	pen__alive_init(&mates[r->comm.local_rank].process);
	mates[r->comm.local_rank].rank = r->comm.rank;
	rc = MPI_Barrier(local);
	r->board = board;
	r->mates = mates;
	return rc;
}

/* All ranks, and the lowest thread support of any. */
static int find_ranks(struct ranks *r)
{
	struct pen_comm *c = &r->comm;
	int rc;

	rc = MPI_Comm_dup(MPI_COMM_WORLD, &r->world);
	if (rc == MPI_SUCCESS)
		rc = MPI_Comm_set_errhandler(r->world, MPI_ERRORS_RETURN);
	if (rc == MPI_SUCCESS)
		rc = MPI_Comm_rank(r->world, &c->rank);
	if (rc == MPI_SUCCESS)
		rc = MPI_Comm_size(r->world, &c->size);
	r->level = mpi.level;
	if (rc == MPI_SUCCESS)
		rc = MPI_Allreduce(MPI_IN_PLACE, &r->level, 1, MPI_INT, MPI_MIN,
				   r->world);
	return rc;
}

static int find_place(struct ranks *r)
{
	MPI_Comm local;
	int rc;

	rc = MPI_Comm_split_type(r->world, MPI_COMM_TYPE_SHARED, r->comm.rank,
				 MPI_INFO_NULL, &local);
	if (rc != MPI_SUCCESS)
		return rc;
	rc = MPI_Comm_set_errhandler(local, MPI_ERRORS_RETURN);
	if (rc == MPI_SUCCESS)
		rc = find_nodes(r, local);
	if (rc == MPI_SUCCESS)
		rc = share_board(r, local);
	(void)MPI_Comm_free(&local);
	return rc;
}

/*
 * At exit of the process that started MPI, not of a forked child. If a
 * communicator is still open, the process is not ending normally, and the
 * launcher must notice.
 */
static void finalize(void)
{
	int done = 0;

	if (mpi.owner != getpid() || mpi.nopen || mpi.broken)
		return;
	(void)MPI_Finalized(&done);
	if (!done)
		(void)MPI_Finalize();
}

static int start(struct pen_err *err)
{
	int rc;

	/* where MPI waits by itself, let others run */
	(void)setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
	rc = MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &mpi.level);
	if (rc != MPI_SUCCESS)
		return pen__fail(err, P_IO, "MPI", "cannot initialise MPI");
	mpi.owner = getpid();
	(void)MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	if (atexit(finalize))
		return pen__fail_nomem(err, "MPI", 0);
	return 0;
}

/* Uses MPI as it is, or starts it; lock held. */
static int enter(struct pen_err *err)
{
	int before = 0, after = 0;
	int rc = 0;

	(void)MPI_Initialized(&before);
	(void)MPI_Finalized(&after);
	if (after)
		return pen__fail(err, P_BAD_CALL, "MPI",
				 "already finalised in this process");
	if (mpi.broken)
		return pen__fail(err, P_RANK_FAILED, "MPI",
				 "an earlier MPI call failed");
	if (before)
		(void)MPI_Query_thread(&mpi.level);
	else
		rc = start(err);
	if (!rc && mpi.level < MPI_THREAD_FUNNELED)
		return pen__fail(err, P_UNSUPPORTED_SYSTEM, "MPI",
				 "the MPI library does not support threads");
	if (!rc)
		mpi.nopen++;
	return rc;
}

/* found: this rank has memory for r; all ranks fail if one has not. */
static int init(struct ranks *r, bool found, struct pen_err *err)
{
	int rc, lacking;

	pthread_mutex_lock(&mpi.lock);
	rc = enter(err);
	pthread_mutex_unlock(&mpi.lock);
	if (rc)
		return rc;
	rc = find_ranks(r);
	if (rc != MPI_SUCCESS)
		return mpi_fail(r, rc, "MPI", err);
	lacking = pen__mpi_lacking(r->world, found);
	if (lacking >= 0) {
		rc = pen__mpi_nomem(r->world, lacking, sizeof(*r), err);
		(void)MPI_Comm_free(&r->world);
		quit();
		return rc;
	}
	rc = find_place(r);
	return rc == MPI_SUCCESS ? 0 : mpi_fail(r, rc, "MPI", err);
}

/*
 * A failure after MPI_Init leaves MPI running: a process that ends without
 * finalising then ends the job, as it should.
 */
static int mpi_open(const struct pen_comm_host *host, struct pen_comm **out,
		    struct pen_err *err)
{
	struct ranks *r = host->alloc(1, sizeof(*r));
	struct ranks here = { .host = host, .lost = -1 };
	int rc;

	here.comm.ops = &mpi_ops;
	rc = init(&here, r != NULL, err);
	if (rc) {
		host->free(r);
		return rc;
	}
	*r = here;
	r->comm.priv = r;
	*out = &r->comm;
	return 0;
}

extern const struct pen_comm_module pen_comm_module;
__attribute__((visibility("default")))
const struct pen_comm_module pen_comm_module = { PEN_COMM_VERSION, mpi_open };
