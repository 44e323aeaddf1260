/*
 * Run by e2e/mpi.sh under mpirun: `comm_ranks all` checks every call, on one
 * host, or with another argument on two; `name` prints the transport; the other
 * words make the last rank fail in a certain way while the rest wait for it in
 * a call that it never makes. Exit 0: as expected; 3: this rank ended with the
 * error that the word implies.
 */
#include "test.h"

#include <signal.h>
#include <unistd.h>

#include "base/mem.h"
#include "comm/comm.h"

#define EXIT_TOLD 3

static void reductions(struct pen_comm *c)
{
	const double n = c->size;
	struct pen_err e = { 0 };
	double *big;
	double v[3];

	for (int how = PEN_SUM; how <= PEN_MAX; how++) {
		const double want[] = { n * (n + 1) / 2, 1, n };

		v[0] = c->rank + 1;
		v[1] = -(c->rank + 1);
		v[2] = 0.5;
		CHECK_EQ(pen__comm_reduce(c, v, 3, how, &e), 0);
		CHECK(v[0] == want[how]);
		CHECK(v[1] == -want[how == PEN_SUM ? 0 : PEN_SUM + 3 - how]);
		CHECK(v[2] == (how == PEN_SUM ? n / 2 : 0.5));
	}
	CHECK_EQ(pen__comm_reduce(c, NULL, 0, PEN_SUM, &e), 0);
	big = pen__alloc(1 << 18, sizeof(*big));
	for (int i = 0; i < 1 << 18; i++)
		big[i] = i;
	CHECK_EQ(pen__comm_reduce(c, big, 1 << 18, PEN_SUM, &e), 0);
	for (int i = 0; i < 1 << 18; i += 4097)
		CHECK(big[i] == i * n);
	pen__free(big);
}

/* The public calls, for every type and operation. */
static void combinations(struct pen_comm *c)
{
	struct pen_ranks ranks = { c, (uint64_t)getpid() };
	const int n = c->size, r = c->rank;
	struct pen_err e = { 0 };
	enum { MANY = 100000 };
	int64_t *big = pen__alloc(MANY, sizeof(*big));
	uint64_t bits[2] = { (uint64_t)1 << r, r == n - 1 };
	float f[2] = { (float)r, 0.5f };
	double d = -r;
	size_t wrong = 0;

	for (int i = 0; i < MANY; i++)
		big[i] = ((int64_t)1 << 40) * i + r;
	CHECK_EQ(pen_ranks_reduce(&ranks, big, MANY, PEN_I64, PEN_SUM, &e), 0);
	for (int i = 0; i < MANY; i++)
		wrong += big[i] != n * ((int64_t)1 << 40) * i + n * (n - 1) / 2;
	CHECK_EQ(wrong, 0);
	CHECK_EQ(pen_ranks_reduce(&ranks, bits, 2, PEN_U64, PEN_OR, &e), 0);
	CHECK(bits[0] == ((uint64_t)1 << n) - 1 && bits[1] == 1);
	CHECK_EQ(pen_ranks_reduce(&ranks, f, 2, PEN_F32, PEN_SUM, &e), 0);
	CHECK(f[0] == (float)(n * (n - 1)) / 2 && f[1] == 0.5f * (float)n);
	CHECK_EQ(pen_ranks_reduce(&ranks, &d, 1, PEN_F64, PEN_MIN, &e), 0);
	CHECK(d == 1 - n);
	CHECK_EQ(pen_ranks_reduce(&ranks, &d, 0, PEN_F64, PEN_MAX, &e), 0);
	CHECK_EQ(pen_ranks_reduce(&ranks, f, 1, PEN_F32, PEN_OR, &e),
		 PEN_EINVAL);
	CHECK_EQ(pen_ranks_reduce(&ranks, f, 1, PEN_F16, PEN_SUM, &e),
		 PEN_EINVAL);
	d = r;
	CHECK_EQ(pen_ranks_broadcast(&ranks, &d, sizeof(d), n - 1, &e), 0);
	CHECK(d == n - 1);
	CHECK_EQ(pen_ranks_agree(&ranks, 0, &e), 0);
	CHECK_EQ(pen_ranks_agree(&ranks, r ? 0 : PEN_EDATA, &e), PEN_EDATA);
	pen__free(big);
}

static void broadcasts(struct pen_comm *c)
{
	const size_t n = 3 << 20;
	unsigned char *p = pen__alloc(n, 1);
	struct pen_err e = { 0 };
	size_t wrong = 0;

	for (int root = 0; root < c->size; root++) {
		memset(p, c->rank + 1, n);
		CHECK_EQ(pen__comm_bcast(c, p, n, root, &e), 0);
		for (size_t i = 0; i < n; i++)
			wrong += p[i] != root + 1;
	}
	CHECK_EQ(wrong, 0);
	CHECK_EQ(pen__comm_bcast(c, NULL, 0, 0, &e), 0);
	pen__free(p);
}

/* Every second rank has no data. */
static size_t part_of(int rank, size_t unit)
{
	return rank % 2 ? 0 : unit * (size_t)(rank + 1);
}

static void gathers(struct pen_comm *c, size_t unit)
{
	const size_t n = part_of(c->rank, unit);
	unsigned char *mine = pen__alloc(n, 1);
	struct pen_err e = { 0 };
	size_t len[64], at = 0, wrong = 0;
	void *all = &e;

	memset(mine, 'a' + c->rank, n);
	CHECK_EQ(pen__comm_gather(c, n ? mine : NULL, n, &all,
				  c->rank ? NULL : len, &e),
		 0);
	if (c->rank) {
		CHECK(all == NULL);
	} else if (CHECK(all != NULL)) {
		for (int i = 0; i < c->size; i++) {
			CHECK_EQ(len[i], part_of(i, unit));
			for (size_t k = 0; k < len[i]; k++, at++)
				wrong += ((unsigned char *)all)[at] != 'a' + i;
		}
		CHECK_EQ(wrong, 0);
	}
	pen__free(all);
	pen__free(mine);
}

/* Without memory on rank 0 all get the error, and can continue. */
static void gather_nomem(struct pen_comm *c)
{
	struct pen_err e = { 0 };
	size_t len[64];
	void *all;

	if (c->rank == 0)
		pen__mem_fail_nth(1, true);
	CHECK_EQ(pen__comm_gather(c, "abc", 3, &all, len, &e), PEN_ENOMEM);
	CHECK(all == NULL);
	CHECK(e.code == PEN_ENOMEM);
	CHECK(strstr(e.msg, c->rank ? "rank 0 failed: out of memory"
				    : "out of memory") == e.msg);
	pen__mem_fail_nth(0, false);
	CHECK_EQ(pen__comm_barrier(c, &e), 0);
}

/* The same when opening and for channels, on any rank. */
static void open_nomem(struct pen_comm *c)
{
	const int last = c->size - 1;
	struct pen_channel *ch = NULL;
	struct pen_comm *other = NULL;
	struct pen_err e = { 0 };
	char want[64];

	snprintf(want, sizeof(want), "rank %d failed: out of memory", last);
	if (c->rank == last)
		pen__mem_fail_nth(1, true);
	CHECK_EQ(pen__comm_open(&other, &e), PEN_ENOMEM);
	CHECK(!other &&
	      strstr(e.msg, c->rank == last ? "out of memory" : want) == e.msg);
	if (c->size > 1) {
		e.msg[0] = '\0';
		CHECK_EQ(pen__comm_channel(c, &ch, &e), PEN_ENOMEM);
		CHECK(!ch && strstr(e.msg, c->rank == last ? "out of memory"
							   : want) == e.msg);
	}
	pen__mem_fail_nth(0, false);
	CHECK_EQ(pen__comm_barrier(c, &e), 0);
	/* and works once there is memory */
	if (CHECK_EQ(pen__comm_open(&other, &e), 0))
		pen__comm_close(other);
}

/* One host, or two, the first with one rank. */
static void places(struct pen_comm *c, int nnodes)
{
	const int node = nnodes > 1 && c->rank > 0;
	struct pen_err e = { 0 };
	double sum = c->rank;

	CHECK(c->rank >= 0 && c->rank < c->size && c->size <= 64);
	CHECK_EQ(c->nnodes, nnodes);
	CHECK_EQ(c->node, node);
	CHECK_EQ(c->local_rank, c->rank - node);
	CHECK_EQ(c->local_size, nnodes == 1 ? c->size : node ? c->size - 1 : 1);
	CHECK_EQ(pen__comm_reduce(c, &sum, 1, PEN_SUM, &e), 0);
	CHECK(sum == c->size * (c->size - 1) / 2.0);
}

/* The last two ranks fail: all get the error of the lower one. */
static void agreement(struct pen_comm *c)
{
	const int low = c->size > 1 ? c->size - 2 : 0;
	struct pen_err e = { .code = 77 };
	char want[64];
	int rc = 0;

	CHECK_EQ(pen__comm_agree(c, 0, &e), 0);
	CHECK_EQ(e.code, 77);
	if (c->rank >= low)
		rc = pen__fail_sys(&e, 5, "the file", "rank%d", c->rank);
	CHECK_EQ(pen__comm_agree(c, rc, &e), PEN_EIO);
	CHECK_EQ(e.code, PEN_EIO);
	CHECK_EQ(e.sys, 5);
	CHECK_STR(e.where, "the file");
	snprintf(want, sizeof(want),
		 c->rank == low ? "rank%d" : "rank %d failed: ", low);
	CHECK(strstr(e.msg, want) == e.msg);
	/* no error is requested */
	CHECK_EQ(pen__comm_agree(c, c->rank ? 0 : PEN_EDATA, NULL), PEN_EDATA);
	CHECK_EQ(pen__comm_barrier(c, NULL), 0);
}

/* Parts of one program: their calls do not interfere, in any order. */
static void several(struct pen_comm *c)
{
	struct pen_comm *parts[3] = { c, NULL, NULL };
	struct pen_err e = { 0 };
	double v[3] = { 1, 10, 100 };

	if (!CHECK_EQ(pen__comm_open(&parts[1], &e), 0) ||
	    !CHECK_EQ(pen__comm_open(&parts[2], &e), 0))
		return;
	for (int i = 0; i < 3; i++)
		CHECK_EQ(pen__comm_reduce(parts[i], &v[i], 1, PEN_SUM, &e), 0);
	CHECK(v[0] == c->size && v[1] == 10. * c->size &&
	      v[2] == 100. * c->size);
	pen__comm_close(parts[1]);
	CHECK_EQ(pen__comm_barrier(parts[2], &e), 0);
	pen__comm_close(parts[2]);
	CHECK_EQ(pen__comm_barrier(c, &e), 0);
}

static void channels(struct pen_comm *c)
{
	const int to = (c->rank + 1) % c->size;
	struct pen_channel_done done[2];
	struct pen_channel *ch = NULL;
	struct pen_err e = { 0 };
	uint64_t reqs[2] = { 0 };
	int mine = c->rank, got = -1, from = -1, n = 0;

	if (c->size == 1) {
		CHECK_EQ(pen__comm_channel(c, &ch, &e), PEN_ENOTSUP);
		return;
	}
	if (!CHECK_EQ(pen__comm_channel(c, &ch, &e), 0))
		return;
	CHECK_EQ(ch->ops->recv(ch, &got, sizeof(got), &reqs[0], &e), 0);
	CHECK_EQ(ch->ops->send(ch, &mine, sizeof(mine), to, &reqs[1], &e), 0);
	while (n >= 0 && (reqs[0] || reqs[1])) {
		n = ch->ops->test(ch, reqs, 2, done, &e);
		for (int i = 0; i < n; i++)
			if (done[i].i == 0)
				from = done[i].from;
	}
	CHECK_EQ(got, (c->rank + c->size - 1) % c->size);
	CHECK_EQ(from, got);
	/* a message that is never sent */
	CHECK_EQ(ch->ops->recv(ch, &got, sizeof(got), &reqs[0], &e), 0);
	ch->ops->cancel(ch, reqs, 2);
	CHECK_EQ(reqs[0], 0);
	ch->ops->close(ch);
	CHECK_EQ(pen__comm_barrier(c, &e), 0);
}

static int all(struct pen_comm *c, int nnodes)
{
	struct pen_err e = { 0 };

	places(c, nnodes);
	for (int i = 0; i < 100; i++)
		CHECK_EQ(pen__comm_barrier(c, &e), 0);
	reductions(c);
	combinations(c);
	broadcasts(c);
	gathers(c, 0);
	gathers(c, 1);
	gathers(c, 1 << 20);
	gather_nomem(c);
	open_nomem(c);
	agreement(c);
	channels(c);
	several(c);
	pen__comm_close(c);
	if (CHECK_EQ(pen__comm_open(&c, &e), 0)) {
		reductions(c); /* even after the last close */
		pen__comm_close(c);
	}
	return test_end();
}

/* One rank reports failure, whatever call the others are in. */
static int wait_in(struct pen_comm *c, const char *call, struct pen_err *e)
{
	double v = 1;
	size_t len[64];
	void *p;

	if (!strcmp(call, "barrier"))
		return pen__comm_barrier(c, e);
	if (!strcmp(call, "reduce"))
		return pen__comm_reduce(c, &v, 1, PEN_SUM, e);
	if (!strcmp(call, "bcast"))
		return pen__comm_bcast(c, &v, sizeof(v), c->size - 1, e);
	if (!strcmp(call, "gather"))
		return pen__comm_gather(c, &v, sizeof(v), &p, len, e);
	return pen__comm_agree(c, 0, e);
}

static int told(struct pen_comm *c, int rc, const struct pen_err *e)
{
	fprintf(stderr, "told %d: %d %s: %s\n", c->rank, rc, e->where, e->msg);
	pen__comm_close(c);
	return rc ? EXIT_TOLD : 0;
}

static int end_last(struct pen_comm *c, const char *how)
{
	if (!strcmp(how, "kill"))
		raise(SIGKILL);
	if (!strcmp(how, "leave"))
		_exit(9);
	if (!strcmp(how, "abort"))
		pen__comm_abort(c, 8);
	pen__comm_close(c); /* "close" */
	return 0;
}

/* Prints the transport, and whether MPI is loaded. */
static int name(struct pen_comm *c)
{
	char line[512];
	bool mpi = false;
	FILE *f = fopen("/proc/self/maps", "r");

	while (f && fgets(line, sizeof(line), f))
		mpi |= strstr(line, "libmpi") != NULL;
	if (f)
		fclose(f);
	printf("%s %d %s\n", c->ops->name, c->size, mpi ? "loaded" : "not");
	pen__comm_close(c);
	return 0;
}

static void ignore(int sig)
{
	(void)sig;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "all";
	const char *call = argc > 2 ? argv[2] : "barrier";
	const char *me = getenv("OMPI_COMM_WORLD_RANK");
	struct pen_err e = { 0 };
	struct pen_comm *c;
	int rc;

	/* as the command does, which ends on its own when interrupted */
	signal(SIGTERM, ignore);
	signal(SIGINT, ignore);
	if (!strcmp(how, "early") && me && !strcmp(me, "1"))
		return 7;
	rc = pen__comm_open(&c, &e);
	if (rc) {
		fprintf(stderr, "not open: %d %s: %s\n", rc, e.where, e.msg);
		return 2;
	}
	if (!strcmp(how, "all"))
		return all(c, argc > 2 ? 2 : 1);
	if (!strcmp(how, "name"))
		return name(c);
	if (c->rank < c->size - 1)
		return told(c, wait_in(c, call, &e), &e);
	if (!strcmp(how, "fail")) {
		rc = pen__fail(&e, P_DAMAGED, "thing", "is broken");
		return told(c, pen__comm_agree(c, rc, &e), &e);
	}
	return end_last(c, how);
}
