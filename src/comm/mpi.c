/*
 * Ranks by MPI: a module of its own, so that only who runs many processes
 * needs an MPI library.
 *
 * Waiting is polite. MPI's own waits poll as fast as they can, and the cores
 * they burn are the loader's: while a rank waits for one that still computes,
 * its threads should fill batches. So every call is a non-blocking one that is
 * tested, first in quick succession, because most waits are short. Then who
 * waits sleeps until the last rank of its host has come, and for other hosts
 * takes naps between tests, short enough to keep a step's time exact.
 *
 * Every open has a communicator of its own, so that the parts of a program, and
 * who else uses MPI in it (mpi4py), do not meet. MPI ends with the process, not
 * with the last close, because it cannot be started twice; and it is left to
 * whoever started it.
 *
 * After an MPI error nothing more is asked of MPI, and the process does not
 * finalize: the launcher sees one that left without, and ends the others. So it
 * is with a process that ends and did not close. A launcher that lets the
 * others live leaves them waiting for it, so who waits long looks whether the
 * ranks of its host are there, and takes one that is not for such an error.
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
/* Open MPI looks at its sockets only in every eighth test. */
#define TESTS 8
/* Between two looks whether the ranks of this host live. */
#define LOOK_NS 500000000u
/* MPI counts are int: more goes in pieces. */
#define PIECE ((size_t)1 << 30)
#define TAG 1

/*
 * What the ranks of one host share: the barrier, and room for few numbers of
 * each rank, twice, because who is quick writes those of the next call while
 * others still read; none is ever two calls ahead.
 */
#define FEW 8
struct board {
	struct pen_host_barrier host;
	atomic_int lost;    /* the first rank that was missed, + 1 */
	double said[][FEW]; /* 2 * local_size, and then the mates */
};

/* A rank of this host. */
struct mate {
	struct pen_alive process;
	int rank;
};

struct ranks {
	struct pen_comm comm; /* priv leads back here */
	const struct pen_comm_host *host;
	MPI_Comm world;	      /* all ranks, and nobody else's */
	MPI_Win window;	      /* holds the board */
	struct board *board;  /* NULL: this host has no memory to share */
	struct mate *mates;   /* local_size of them, on the board */
	uint64_t nreductions; /* calls of the barrier */
	int level;	      /* of threads: the least of any rank */
	int lost;	      /* a rank that ended while others waited; -1 */
	bool broken;
};

/* What there is once in a process, as MPI itself. */
static struct {
	pthread_mutex_t lock;
	int level;   /* of threads; -1: not started or not looked at */
	pid_t owner; /* who started MPI and has to end it; 0: somebody else */
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
		return pen__fail(err, PEN_EIO, "ranks",
				 "rank %d has ended; start the job again",
				 r->lost);
	return pen__fail(err, PEN_EIO, "MPI",
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
	return pen__fail(err, PEN_EIO, call, "rank %d: %.200s", r->comm.rank,
			 text);
}

/*
 * The kernel rounds naps up by the thread's timer slack, 50 us unless told
 * otherwise, which would double them.
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

/* Whether one of this host has ended; now and then, by *looked, 0 at first. */
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
		/* others end because of it, and are not who it was */
		if (atomic_compare_exchange_strong(&r->board->lost, &first,
						   r->mates[i].rank + 1))
			first = r->mates[i].rank + 1;
		r->lost = first - 1;
		return true;
	}
	return false;
}

/* Test until done. `host`: passed when all of this host have come. */
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
		/* it may have ended after this call: one more test */
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
			/* what is left is a matter of microseconds again */
			host = NULL;
			since = 0;
		}
	}
}

/* Ends a call that began with code `rc`. */
static int settle(struct ranks *r, int rc, MPI_Request *req, const char *call,
		  struct pen_err *err)
{
	if (rc == MPI_SUCCESS)
		rc = test_until(r, req, NULL);
	return rc == MPI_SUCCESS ? 0 : mpi_fail(r, rc, call, err);
}

/*
 * Every other call comes after a reduction, the vote: this is where ranks wait
 * for one another, and where sleeping pays.
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
 * Few numbers among ranks of one host, without MPI: all is said when the
 * barrier is passed, and no rank waits for another to pass something on, which
 * takes long where ranks are more than cores.
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

/* n bytes from `from` to rank 0; both ends cut them into the same pieces. */
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

/* Rank 0: room for all; NULL, and what it would take, when there is none. */
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

/* Rank 0 takes every rank's part, its own first. */
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

/* Whether rank 0 found memory for how many bytes. */
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
 * Lengths first; then rank 0 says whether it has room, so that none sends what
 * nobody takes; then the parts.
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
		return pen__fail(err, PEN_ENOTSUP, "MPI",
				 "was started without MPI_THREAD_MULTIPLE");
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
	return pen__fail(err, PEN_ENOMEM, "ranks",
			 "rank %d failed: out of memory: %s asked for", lacking,
			 pen__show_bytes((double)bytes).s);
}

/*
 * Hosts are told apart by who shares memory, and numbered by their lowest
 * rank: names may be equal in containers.
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
	c->node = c->rank ? before : 0; /* Exscan gives rank 0 nothing */
	if (rc == MPI_SUCCESS)
		rc = MPI_Bcast(&c->node, 1, MPI_INT, 0, local);
	return rc;
}

/*
 * Where memory cannot be shared there is no board, and naps have to do; but all
 * of a host do the same.
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

/* All ranks, and how many threads the least of them lets in. */
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
 * At the end of the process that started it, and not of one it forked. With
 * something still open it has not gone through its end, and the job must not
 * believe so.
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

	/* where MPI does wait by itself, it lets others run meanwhile */
	(void)setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
	rc = MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &mpi.level);
	if (rc != MPI_SUCCESS)
		return pen__fail(err, PEN_EIO, "MPI", "cannot be started");
	mpi.owner = getpid();
	(void)MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	if (atexit(finalize))
		return pen__fail_nomem(err, "MPI", 0);
	return 0;
}

/* MPI as it is, or started; under the lock. */
static int enter(struct pen_err *err)
{
	int before = 0, after = 0;
	int rc = 0;

	(void)MPI_Initialized(&before);
	(void)MPI_Finalized(&after);
	if (after)
		return pen__fail(err, PEN_EINVAL, "MPI",
				 "was ended already in this process");
	if (mpi.broken)
		return pen__fail(err, PEN_EIO, "MPI", "an earlier call failed");
	if (before)
		(void)MPI_Query_thread(&mpi.level);
	else
		rc = start(err);
	if (!rc && mpi.level < MPI_THREAD_FUNNELED)
		return pen__fail(err, PEN_ENOTSUP, "MPI",
				 "this MPI library allows no threads");
	if (!rc)
		mpi.nopen++;
	return rc;
}

/* found: there is memory to keep r in; all ranks fail where one has none. */
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
 * A failure after MPI_Init leaves MPI as it is: a process that then ends
 * without finalizing ends the job, which is what has to happen.
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
