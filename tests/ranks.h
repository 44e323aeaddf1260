/*
 * Ranks without MPI: threads of one process, joined by a barrier.
 */
#ifndef RANKS_H
#define RANKS_H

#include <pthread.h>

#include "base/mem.h"
#include "base/team.h"
#include "comm/comm.h"
#include "test.h"

#define RANKS_MAX 8

struct ranks {
	int n;
	pthread_barrier_t barrier;
	const void *given[RANKS_MAX];
	size_t len[RANKS_MAX];
	int rc; /* of rank 0 */
	struct pen_comm comm[RANKS_MAX];
};

static inline void ranks_meet(struct pen_comm *c)
{
	pthread_barrier_wait(&((struct ranks *)c->priv)->barrier);
}

static inline double ranks_join(double a, double b, enum pen_reduce how)
{
	if (how == PEN_SUM)
		return a + b;
	return how == PEN_MIN ? (a < b ? a : b) : (a > b ? a : b);
}

static inline int ranks_reduce(struct pen_comm *c, double *v, size_t n,
			       enum pen_reduce how, struct pen_err *err)
{
	struct ranks *r = c->priv;
	double *sum = malloc((n + 1) * sizeof(*sum));

	(void)err;
	r->given[c->rank] = v;
	ranks_meet(c);
	for (size_t i = 0; i < n; i++) {
		sum[i] = ((const double *)r->given[0])[i];
		for (int k = 1; k < r->n; k++)
			sum[i] = ranks_join(
				sum[i], ((const double *)r->given[k])[i], how);
	}
	ranks_meet(c);
	memcpy(v, sum, n * sizeof(*sum));
	free(sum);
	return 0;
}

static inline int ranks_bcast(struct pen_comm *c, void *buf, size_t n, int root,
			      struct pen_err *err)
{
	struct ranks *r = c->priv;

	(void)err;
	r->given[c->rank] = buf;
	ranks_meet(c);
	if (c->rank != root)
		memcpy(buf, r->given[root], n);
	ranks_meet(c);
	return 0;
}

static inline int ranks_gather(struct pen_comm *c, const void *mine, size_t n,
			       void **all, size_t *len, struct pen_err *err)
{
	struct ranks *r = c->priv;
	size_t total = 0, at = 0;
	char *to = NULL;

	*all = NULL;
	r->given[c->rank] = mine;
	r->len[c->rank] = n;
	ranks_meet(c);
	for (int k = 0; k < r->n; k++)
		total += r->len[k];
	if (!c->rank) {
		to = pen__alloc(total ? total : 1, 1);
		r->rc = to ? 0 : PEN_ENOMEM;
	}
	for (int k = 0; to && k < r->n; k++) {
		memcpy(to + at, r->given[k], r->len[k]);
		at += len[k] = r->len[k];
	}
	*all = to;
	ranks_meet(c);
	return r->rc ? pen__fail_nomem(err, "gather", total) : 0;
}

static inline void ranks_close(struct pen_comm *c)
{
	(void)c;
}

static inline void ranks_abort(struct pen_comm *c, int code)
{
	(void)c;
	exit(code);
}

static const struct pen_comm_ops ranks_ops = {
	.name = "threads",
	.close = ranks_close,
	.reduce = ranks_reduce,
	.bcast = ranks_bcast,
	.gather = ranks_gather,
	.abort = ranks_abort,
};

/* n ranks, `per_node` on each host. */
static inline void ranks_init(struct ranks *r, int n, int per_node)
{
	memset(r, 0, sizeof(*r));
	r->n = n;
	pthread_barrier_init(&r->barrier, NULL, (unsigned)n);
	for (int i = 0; i < n; i++)
		r->comm[i] = (struct pen_comm){ .ops = &ranks_ops,
						.rank = i,
						.size = n,
						.node = i / per_node,
						.nnodes = (n + per_node - 1) /
							  per_node,
						.local_rank = i % per_node,
						.local_size = per_node,
						.priv = r };
}

static inline void ranks_fini(struct ranks *r)
{
	pthread_barrier_destroy(&r->barrier);
}

/* Runs fn(arg, rank) on all ranks. */
static inline void ranks_run(struct ranks *r, void (*fn)(void *, unsigned),
			     void *arg)
{
	struct pen_team *team;

	if (CHECK(!pen__team_start(&team, (unsigned)r->n, "rank", fn, arg,
				   NULL)))
		pen__team_join(team);
}

#endif
