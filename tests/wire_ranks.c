/*
 * Run by e2e/wire.sh under mpirun: `wire_ranks all TRANSPORT` makes every
 * request to every rank, `bench TRANSPORT` measures how fast a rank of another
 * host (or the next rank) serves rank 0, `idle` measures what the wire costs a
 * computing rank; `kill TRANSPORT` ends the last rank in the middle. Rank 0
 * prints what was chosen and why.
 */
#include "wire.h"

#include <dlfcn.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/futex.h"

#define SAMPLE 1000
#define BATCH 256
#define NSAMPLES ((POOL - SAMPLE) / SAMPLE)
#define SPAN_NS 1000000000u

/* Batches by number, as in a dictionary: the reply is gathered. */
static int serve_samples(void *arg, int from, const void *req, size_t n,
			 struct pen_reply *out, struct pen_err *err)
{
	struct side *s = arg;
	const uint64_t *which = req;
	int rc = 0;

	if (n < sizeof(struct order) || n % 8 || which[0] != UINT64_MAX)
		return serve(arg, from, req, n, out, err);
	atomic_fetch_add(&s->served, 1);
	for (size_t i = 1; i < n / 8 && !rc; i++)
		rc = pen__reply_add(out, s->pool + which[i] * SAMPLE, SAMPLE);
	return rc ? pen__fail_nomem(err, "samples", n) : 0;
}

struct batch {
	struct pen_call call;
	struct iovec iov;
	uint64_t which[BATCH + 3];
	char room[BATCH * SAMPLE];
};

static void *room_of(struct pen_call *c, size_t n)
{
	return n <= BATCH * SAMPLE ? c->arg : NULL;
}

static void ask_batch(struct side *s, struct batch *b, int to, uint64_t n)
{
	static uint64_t drawn;

	b->which[0] = UINT64_MAX;
	for (uint64_t i = 0; i < n; i++)
		b->which[1 + i] = pen__mix64(++drawn) % NSAMPLES;
	b->iov = (struct iovec){ b->which, (n + 1) * 8 };
	if (b->iov.iov_len < sizeof(struct order)) {
		/* one sample is requested as often as fills the request */
		b->which[2] = b->which[3] = b->which[1];
		b->iov.iov_len = sizeof(struct order);
	}
	b->call = (struct pen_call){ .to = to,
				     .req = &b->iov,
				     .nreq = 1,
				     .alloc = room_of,
				     .arg = b->room };
	pen__wire_call(s->wire, &b->call);
}

static double rate(struct side *s, int to, uint64_t n, unsigned depth)
{
	struct batch *b = calloc(depth, sizeof(*b));
	struct pen_err e = { 0 };
	uint64_t begin = pen__now_ns(), now = begin, count = 0;

	for (unsigned i = 0; i < depth; i++)
		ask_batch(s, &b[i], to, n);
	for (unsigned i = 0; now - begin < SPAN_NS; i = (i + 1) % depth) {
		struct pen_call *c = &b[i].call;

		if (!CHECK_EQ(pen__wire_wait(s->wire, &c, 1, &e), 0))
			break;
		CHECK(!memcmp(b[i].room, s->pool + b[i].which[1] * SAMPLE,
			      SAMPLE));
		count += n;
		now = pen__now_ns();
		ask_batch(s, &b[i], to, n);
	}
	for (unsigned i = 0; i < depth; i++) {
		struct pen_call *c = &b[i].call;

		CHECK_EQ(pen__wire_wait(s->wire, &c, 1, &e), 0);
	}
	free(b);
	return (double)count * 1e9 / (double)(now - begin);
}

static void bench(struct side *s)
{
	static const struct {
		uint64_t n;
		unsigned depth;
	} cases[] = { { 1, 1 }, { 16, 1 }, { 256, 1 }, { 256, 2 }, { 256, 4 } };
	struct pen_err e = { 0 };
	int to = 1;

	for (int i = s->comm->size - 1; i > 0; i--)
		if (strcmp(pen__wire_host(s->wire, i),
			   pen__wire_host(s->wire, 0)))
			to = i;
	for (size_t i = 0; i < 5 && !s->comm->rank; i++)
		printf("batch %3d, %u under way: %.0f samples/s\n",
		       (int)cases[i].n, cases[i].depth,
		       rate(s, to, cases[i].n, cases[i].depth));
	CHECK_EQ(pen__comm_barrier(s->comm, &e), 0);
}

/* CPU time of a second without requests. */
static void idle(struct side *s)
{
	uint64_t begin = pen__now_ns();
	struct rusage before, after;
	uint64_t us;

	getrusage(RUSAGE_SELF, &before);
	while (pen__now_ns() - begin < SPAN_NS) {
		_Atomic uint32_t never = 0;

		pen__futex_wait(&never, 0, SPAN_NS);
	}
	getrusage(RUSAGE_SELF, &after);
	us = (uint64_t)(after.ru_utime.tv_sec - before.ru_utime.tv_sec +
			after.ru_stime.tv_sec - before.ru_stime.tv_sec) *
		     1000000u +
	     (uint64_t)(after.ru_utime.tv_usec - before.ru_utime.tv_usec) +
	     (uint64_t)(after.ru_stime.tv_usec - before.ru_stime.tv_usec);
	if (!s->comm->rank)
		printf("idle: %.2f %% of a core\n", (double)us * 1e-4);
}

static void all(struct side *s, uint8_t *const *pools)
{
	struct pen_err e = { 0 };

	for (int to = 0; to < s->comm->size; to++)
		if (to != s->comm->rank)
			kinds(s, to, pools[to]);
	echo(s, s->comm->rank ? 0 : 1);
	crowd(s, pools, 5);
	/* this rank serves others while it waits in a collective call */
	CHECK_EQ(pen__comm_barrier(s->comm, &e), 0);
}

static void end_last(struct side *s, int sig)
{
	struct pen_err e = { 0 };
	struct asked a;
	int rc = 0;

	if (s->comm->rank == s->comm->size - 1)
		raise(sig);
	while (!rc) {
		ask(s, &a, s->comm->size - 1,
		    (struct order){ WHAT_BYTES, 1, 1000, 0 });
		rc = get(s, &a, &e);
		pen__free(a.call.reply);
	}
	fprintf(stderr, "told %s: %s\n", e.where, e.msg);
	if (sig == SIGSTOP)
		_exit(3); /* a stopped process does not close */
}

static void run(struct side *s, const char *how, uint8_t *const *pools)
{
	if (!strcmp(how, "bench"))
		bench(s);
	else if (!strcmp(how, "idle"))
		idle(s);
	else if (!strcmp(how, "kill"))
		end_last(s, SIGKILL);
	else if (!strcmp(how, "stop"))
		end_last(s, SIGSTOP);
	else
		all(s, pools);
}

/* MPI owned by another part of the program, which ends it (Open MPI). */
static intptr_t their(const char *name)
{
	void *so = dlopen("libmpi.so.40", RTLD_NOW | RTLD_GLOBAL);

	return so ? (intptr_t)dlsym(so, name) : 0;
}

static bool start_mpi(void)
{
	int (*init)(int *, char ***, int, int *);
	int level = -1;

	init = (int (*)(int *, char ***, int, int *))their("MPI_Init_thread");
	return init && !init(NULL, NULL, 2, &level) && level == 2;
}

static void end_mpi(void)
{
	int (*finalized)(int *) = (int (*)(int *))their("MPI_Finalized");
	int (*finalize)(void) = (int (*)(void))their("MPI_Finalize");
	int done = 1;

	CHECK(finalized && !finalized(&done));
	CHECK_EQ(done, 0);
	CHECK(finalize && !finalize());
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "all";
	const char *transport = argc > 2 ? argv[2] : NULL;
	struct side s = { 0 };
	struct pen_wire_server server = { &s, serve_samples, sent };
	struct pen_err e = { 0 };
	uint8_t *pools[64];
	int rc;

	if (!strcmp(how, "theirs"))
		CHECK(start_mpi());
	if (pen__comm_open(&s.comm, &e))
		goto fail;
	for (int i = 0; i < s.comm->size; i++)
		pools[i] = make_pool(strcmp(how, "bench") ? i : 0);
	s.pool = pools[s.comm->rank];
	rc = pen__wire_open(&s.wire, s.comm, transport, &server, &e);
	if (rc)
		goto fail;
	if (!s.comm->rank)
		printf("%s\n", pen__wire_why(s.wire));
	fflush(stdout);
	run(&s, how, pools);
	pen__wire_close(s.wire);
	CHECK_EQ(atomic_load(&s.served), atomic_load(&s.sent));
	for (int i = 0; i < s.comm->size; i++)
		free(pools[i]);
	pen__comm_close(s.comm);
	if (!strcmp(how, "theirs"))
		end_mpi();
	return test_end();
fail:
	fprintf(stderr, "%d %s: %s\n", e.code, e.where, e.msg);
	pen__comm_close(s.comm);
	return 2;
}
