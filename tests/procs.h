/*
 * Ranks without MPI that can be killed: processes, each with a socket to rank
 * 0. A rank that is gone makes calls fail, and none wait.
 */
#ifndef PROCS_H
#define PROCS_H

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "comm/comm.h"
#include "test.h"

#define PROCS_MAX 8

struct procs {
	struct pen_comm comm;
	int fd[PROCS_MAX]; /* rank 0: to each; others: fd[0] */
};

static inline int procs_move(int fd, void *p, size_t n, bool send_it)
{
	char *at = p;

	while (n) {
		ssize_t k = send_it ? send(fd, at, n, MSG_NOSIGNAL)
				    : recv(fd, at, n, 0);

		if (k <= 0)
			return PEN_EIO;
		at += k;
		n -= (size_t)k;
	}
	return 0;
}

/* Rank 0 found one gone: those who wait for rank 0 are to hear of it, too. */
static inline int procs_gone(struct pen_comm *c, struct pen_err *err)
{
	const struct procs *p = c->priv;

	for (int i = 1; !c->rank && i < c->size; i++)
		shutdown(p->fd[i], SHUT_RDWR);
	return pen__fail(err, P_RANK_FAILED, "ranks", "one is gone");
}

static inline int procs_bcast(struct pen_comm *c, void *buf, size_t n, int root,
			      struct pen_err *err)
{
	struct procs *p = c->priv;
	int rc = 0;

	if (root && (c->rank == root || !c->rank))
		rc = procs_move(p->fd[c->rank ? 0 : root], buf, n, c->rank);
	if (c->rank && c->rank != root)
		rc = procs_move(p->fd[0], buf, n, false);
	/* the last first: it may be killed by what another does next */
	for (int i = c->size - 1; !c->rank && i > 0 && !rc; i--)
		if (i != root)
			rc = procs_move(p->fd[i], buf, n, true);
	return rc ? procs_gone(c, err) : 0;
}

static inline int procs_reduce(struct pen_comm *c, double *v, size_t n,
			       enum pen_reduce how, struct pen_err *err)
{
	struct procs *p = c->priv;
	double *other = malloc((n + 1) * sizeof(*other));
	int rc = 0;

	if (c->rank)
		rc = procs_move(p->fd[0], v, n * sizeof(*v), true);
	for (int i = 1; !c->rank && i < c->size && !rc; i++) {
		rc = procs_move(p->fd[i], other, n * sizeof(*v), false);
		for (size_t k = 0; k < n && !rc; k++) {
			if (how == PEN_SUM)
				v[k] += other[k];
			else if (how == PEN_MIN ? other[k] < v[k]
						: other[k] > v[k])
				v[k] = other[k];
		}
	}
	free(other);
	if (rc)
		return procs_gone(c, err);
	return procs_bcast(c, v, n * sizeof(*v), 0, err);
}

static inline int procs_gather(struct pen_comm *c, const void *mine, size_t n,
			       void **all, size_t *len, struct pen_err *err)
{
	struct procs *p = c->priv;
	size_t at = 0;
	char *to = NULL, ok = 1;

	if (c->rank && (procs_move(p->fd[0], &n, sizeof(n), true) ||
			procs_move(p->fd[0], &ok, 1, false)))
		return procs_gone(c, err);
	for (int i = 0; !c->rank && i < c->size; i++) {
		len[i] = n;
		if (i && procs_move(p->fd[i], &len[i], sizeof(n), false))
			return procs_gone(c, err);
		at += len[i];
	}
	/* as MPI does: rank 0 says whether it has room for all */
	if (!c->rank) {
		to = pen__alloc(at + 1, 1);
		ok = to != NULL;
	}
	for (int i = 1; !c->rank && i < c->size; i++)
		if (procs_move(p->fd[i], &ok, 1, true))
			goto fail;
	if (!ok)
		return c->rank ? pen__fail(err, P_NO_MEMORY, "ranks",
					   "rank 0 failed: out of memory")
			       : pen__fail_nomem(err, "ranks", at);
	if (c->rank)
		return procs_move(p->fd[0], (void *)(uintptr_t)mine, n, true)
			       ? procs_gone(c, err)
			       : 0;
	memcpy(to, mine, n);
	at = n;
	for (int i = 1; i < c->size; at += len[i++])
		if (procs_move(p->fd[i], to + at, len[i], false))
			goto fail;
	*all = to;
	return 0;
fail:
	pen__free(to);
	return procs_gone(c, err);
}

static inline void procs_close(struct pen_comm *c)
{
	(void)c;
}

static inline void procs_abort(struct pen_comm *c, int code)
{
	(void)c;
	_exit(code);
}

static const struct pen_comm_ops procs_ops = {
	.name = "sockets",
	.close = procs_close,
	.reduce = procs_reduce,
	.bcast = procs_bcast,
	.gather = procs_gather,
	.abort = procs_abort,
};

/*
 * Runs fn(comm, arg) in n processes, each of them a host of its own where
 * `hosts`; status[rank] is what wait says. What fn returns is the exit code.
 */
static inline void procs_run(int n, bool hosts,
			     int (*fn)(struct pen_comm *, void *), void *arg,
			     int *status)
{
	int up[PROCS_MAX], down[PROCS_MAX];
	pid_t pid[PROCS_MAX];

	fflush(NULL);
	for (int i = 1; i < n; i++) {
		int s[2];

		CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, s));
		up[i] = s[0];
		down[i] = s[1];
	}
	for (int r = 0; r < n; r++) {
		struct procs p = { 0 };

		pid[r] = fork();
		if (pid[r])
			continue;
		for (int i = 1; i < n; i++) {
			if (r && i == r)
				p.fd[0] = down[i];
			else
				close(down[i]);
			if (!r)
				p.fd[i] = up[i];
			else
				close(up[i]);
		}
		p.comm = (struct pen_comm){
			.ops = &procs_ops,
			.rank = r,
			.size = n,
			.node = hosts ? r : 0,
			.nnodes = hosts ? n : 1,
			.local_rank = hosts ? 0 : r,
			.local_size = hosts ? 1 : n,
			.priv = &p,
		};
		atomic_store(&test_failures, 0);
		alarm(600); /* whatever goes wrong */
		_exit(fn(&p.comm, arg));
	}
	for (int i = 1; i < n; i++) {
		close(up[i]);
		close(down[i]);
	}
	for (int r = 0; r < n; r++)
		CHECK(waitpid(pid[r], &status[r], 0) == pid[r]);
}

#endif
