/*
 * MPI messages on a communicator of their own, so that they do not interfere
 * with others, from any thread. The user of a channel tests all its requests
 * together, because a test costs MPI the same for one as for all.
 *
 * After an MPI error, every call of the channel fails and MPI is not called
 * again.
 */
#include <string.h>

#include "base/clock.h"
#include "comm/mpi_int.h"

#define TAG 2

struct channel {
	struct pen_channel channel; /* priv points back here */
	const struct pen_comm_host *host;
	MPI_Comm comm;
	bool broken;
};

static struct channel *channel_of(struct pen_channel *c)
{
	return c->priv;
}

static int mpi_failed(int code, const char *call, struct pen_err *err)
{
	char text[MPI_MAX_ERROR_STRING] = "unknown error";
	int n = 0;

	(void)MPI_Error_string(code, text, &n);
	return pen__fail(err, P_RANK_FAILED, call, "%.200s", text);
}

static int channel_failed(struct channel *ch, int code, const char *call,
			  struct pen_err *err)
{
	ch->broken = true;
	return mpi_failed(code, call, err);
}

static int broken(struct pen_err *err)
{
	return pen__fail(err, P_RANK_FAILED, "MPI",
			 "an earlier MPI call failed");
}

/* A handle is an MPI request; 0 is none. */
static uint64_t handle_of(MPI_Request req)
{
	uint64_t h = 0;

	_Static_assert(sizeof(req) <= sizeof(h), "a handle holds a request");
	memcpy(&h, &req, sizeof(req));
	return h + 1; /* MPICH's requests are small numbers */
}

static MPI_Request request_of(uint64_t h)
{
	MPI_Request req = MPI_REQUEST_NULL;

	h--;
	memcpy(&req, &h, sizeof(req));
	return req;
}

static int channel_send(struct pen_channel *c, const void *p, size_t n, int to,
			uint64_t *out, struct pen_err *err)
{
	struct channel *ch = channel_of(c);
	MPI_Request req;
	int rc;

	*out = 0;
	if (ch->broken)
		return broken(err);
	rc = MPI_Isend(p, (int)n, MPI_BYTE, to, TAG, ch->comm, &req);
	if (rc != MPI_SUCCESS)
		return channel_failed(ch, rc, "MPI_Isend", err);
	*out = handle_of(req);
	return 0;
}

static int channel_recv(struct pen_channel *c, void *p, size_t cap,
			uint64_t *out, struct pen_err *err)
{
	struct channel *ch = channel_of(c);
	MPI_Request req;
	int rc;

	*out = 0;
	if (ch->broken)
		return broken(err);
	rc = MPI_Irecv(p, (int)cap, MPI_BYTE, MPI_ANY_SOURCE, TAG, ch->comm,
		       &req);
	if (rc != MPI_SUCCESS)
		return channel_failed(ch, rc, "MPI_Irecv", err);
	*out = handle_of(req);
	return 0;
}

static int channel_test(struct pen_channel *c, uint64_t *reqs, int n,
			struct pen_channel_done *done, struct pen_err *err)
{
	struct channel *ch = channel_of(c);
	MPI_Request all[PEN_CHANNEL_REQS];
	MPI_Status status[PEN_CHANNEL_REQS];
	int which[PEN_CHANNEL_REQS];
	int k = 0, rc;

	if (ch->broken || n > PEN_CHANNEL_REQS)
		return broken(err);
	for (int i = 0; i < n; i++)
		all[i] = reqs[i] ? request_of(reqs[i]) : MPI_REQUEST_NULL;
	rc = MPI_Testsome(n, all, &k, which, status);
	if (rc != MPI_SUCCESS)
		return channel_failed(ch, rc, "MPI_Testsome", err);
	if (k == MPI_UNDEFINED)
		return 0;
	for (int i = 0; i < k; i++) {
		int len = 0;

		(void)MPI_Get_count(&status[i], MPI_BYTE, &len);
		done[i] = (struct pen_channel_done){
			.i = which[i],
			.from = status[i].MPI_SOURCE,
			.n = len > 0 ? (size_t)len : 0,
		};
		reqs[which[i]] = 0;
	}
	return k;
}

static void channel_cancel(struct pen_channel *c, uint64_t *reqs, int n)
{
	struct channel *ch = channel_of(c);

	for (int i = 0; i < n; i++) {
		MPI_Request req;

		if (!reqs[i] || ch->broken)
			continue;
		req = request_of(reqs[i]);
		(void)MPI_Cancel(&req);
		(void)MPI_Request_free(&req);
		reqs[i] = 0;
	}
}

static void channel_close(struct pen_channel *c)
{
	struct channel *ch = channel_of(c);

	if (!ch->broken)
		(void)MPI_Comm_free(&ch->comm);
	ch->host->free(ch);
}

static const struct pen_channel_ops channel_ops = {
	.close = channel_close,
	.send = channel_send,
	.recv = channel_recv,
	.test = channel_test,
	.cancel = channel_cancel,
};

int pen__mpi_channel(MPI_Comm ranks, const struct pen_comm_host *host,
		     struct pen_channel **out, struct pen_err *err)
{
	struct channel *ch = host->alloc(1, sizeof(*ch));
	const int lacking = pen__mpi_lacking(ranks, ch != NULL);
	MPI_Comm comm;
	int rc;

	/* do not start what other ranks will not join */
	if (lacking >= 0) {
		host->free(ch);
		return pen__mpi_nomem(ranks, lacking, sizeof(*ch), err);
	}
	rc = MPI_Comm_dup(ranks, &comm);
	if (rc != MPI_SUCCESS) {
		host->free(ch);
		return mpi_failed(rc, "MPI_Comm_dup", err);
	}
	(void)MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	*ch = (struct channel){ .host = host, .comm = comm };
	ch->channel.ops = &channel_ops;
	ch->channel.priv = ch;
	*out = &ch->channel;
	return 0;
}

#define GETS 50
#define GET_BYTES 1024

/* Times one-sided gets while the other ranks wait in MPI. */
static int time_gets(MPI_Win win, int to, double *us)
{
	char to_here[GET_BYTES];
	uint64_t begin;
	int rc;

	rc = MPI_Win_lock(MPI_LOCK_SHARED, to, 0, win);
	if (rc != MPI_SUCCESS)
		return rc;
	begin = pen__now_ns();
	for (int i = 0; i < GETS && rc == MPI_SUCCESS; i++) {
		rc = MPI_Get(to_here, GET_BYTES, MPI_BYTE, to, 0, GET_BYTES,
			     MPI_BYTE, win);
		if (rc == MPI_SUCCESS)
			rc = MPI_Win_flush(to, win);
	}
	*us = (double)(pen__now_ns() - begin) * 1e-3 / GETS;
	(void)MPI_Win_unlock(to, win);
	return rc;
}

int pen__mpi_window(MPI_Comm ranks, int to, double *us, struct pen_err *err)
{
	void *p = NULL;
	int rank = 0, rc, ok;
	MPI_Win win;

	rc = MPI_Win_allocate(GET_BYTES, 1, MPI_INFO_NULL, ranks, &p, &win);
	if (rc != MPI_SUCCESS)
		return mpi_failed(rc, "MPI_Win_allocate", err);
	(void)MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
	(void)MPI_Comm_rank(ranks, &rank);
	memset(p, 0, GET_BYTES);
	*us = 0;
	if (rank == 0)
		rc = time_gets(win, to, us);
	ok = rc == MPI_SUCCESS;
	(void)MPI_Allreduce(MPI_IN_PLACE, &ok, 1, MPI_INT, MPI_MIN, ranks);
	(void)MPI_Win_free(&win);
	if (rc != MPI_SUCCESS)
		return mpi_failed(rc, "MPI_Get", err);
	return ok ? 0
		  : pen__fail(err, P_RANK_FAILED, "MPI_Get",
			      "failed on rank 0");
}
