/*
 * Ranks that are processes without a launcher, so nothing ends the others when
 * one fails or dies: an allocation that fails on one rank is an error on all,
 * and a killed rank leaves none waiting, wherever the others are.
 */
#include "ddict.h"
#include "procs.h"

#include <fcntl.h>
#include <sys/mman.h>

#include "ddict/dictionary_int.h"

#define KEYS 64

/* ThreadSanitizer ends a forked child that starts a thread. */
#ifdef __SANITIZE_THREAD__
#define CAN_FORK false
#else
#define CAN_FORK true
#endif

#define SAVED "ddict.ranks"

/* Exit codes of ranks that failed, or should have. */
enum { FAILED_ONE, WRONG, NOT_REACHED };

struct way {
	const char *set[4];
	uint32_t n;
	bool hosts; /* each rank is a host of its own */
	int who;
	uint64_t nth; /* number of the allocation that fails there */
};

static struct pen_ddict *open_way(struct pen_comm *c, const struct way *w)
{
	struct pen_err err = { 0 };
	struct pen_ddict *d = NULL;

	if (!CHECK_EQ(pen__ddict_open(&d, c, w->set, w->n, &err), 0))
		fprintf(stderr, "%s: %s\n", err.where, err.msg);
	return d;
}

static void put_all(struct pen_ddict *d, uint64_t turn)
{
	uint8_t buf[MOST + 16];

	for (uint64_t i = 0; i < KEYS; i++)
		CHECK_EQ(pen_ddict_put(d, num(i), made(i, turn, buf), NULL), 0);
}

static uint64_t get_all(struct pen_ddict *d)
{
	struct pen_key k[KEYS];
	uint64_t wrong = 0, turn;
	struct pen_got *g;

	for (uint64_t i = 0; i < KEYS; i++)
		k[i] = num(i);
	if (!CHECK_EQ(pen_ddict_get_many(d, k, KEYS, &g, NULL), 0))
		return KEYS;
	for (uint64_t i = 0; i < KEYS; i++)
		wrong += !is_whole(g->values[i], i, &turn);
	pen_got_free(g);
	return wrong;
}

/* Returns whether it failed; if so on all ranks, with the cause on the failed
 * one and its number on the others. */
static bool same_for_all(struct pen_comm *c, const struct way *w, int rc,
			 const struct pen_err *err)
{
	double v[2] = { rc, -rc };
	char who[32];

	snprintf(who, sizeof(who), "rank %d failed: ", w->who);
	CHECK_EQ(pen__comm_reduce(c, v, 2, PEN_MIN, NULL), 0);
	CHECK(v[0] == -v[1]);
	if (!rc)
		return false;
	if (!CHECK(strstr(err->msg, "memory") &&
		   !strstr(err->msg, who) == (c->rank == w->who)))
		fprintf(stderr, "rank %d, %d of rank %d: %s: %s\n", c->rank,
			(int)w->nth, w->who, err->where, err->msg);
	return true;
}

/* Runs out of memory on one rank when opening, saving or restoring. */
static int short_open(struct pen_comm *c, void *arg)
{
	const struct way *w = arg;
	struct pen_err err = { 0 };
	struct pen_ddict *d = NULL;
	const bool saved = !strncmp(w->set[0], "restore", 7);
	bool reached;
	int rc;

	if (c->rank == w->who)
		pen__mem_fail_nth(w->nth, false);
	rc = pen__ddict_open(&d, c, w->set, w->n, &err);
	reached = pen__mem_count() >= w->nth;
	pen__mem_fail_nth(0, false);
	CHECK_EQ(!rc, d != NULL);
	/* some memory is optional: the fallback is used */
	if (!same_for_all(c, w, rc, &err)) {
		if (!saved)
			put_all(d, 1);
		CHECK_EQ(pen__comm_barrier(c, &err), 0);
		CHECK_EQ(get_all(d), 0);
		CHECK_EQ(pen__comm_barrier(c, &err), 0);
	}
	pen_ddict_close(d);
	pen__comm_close(c);
	if (test_failures)
		return WRONG;
	return c->rank == w->who && !reached ? NOT_REACHED : FAILED_ONE;
}

static int short_save(struct pen_comm *c, void *arg)
{
	const struct way *w = arg;
	struct pen_err err = { 0 };
	struct pen_ddict *d = open_way(c, w);
	bool reached;
	int rc;

	put_all(d, 2);
	CHECK_EQ(pen__comm_barrier(c, &err), 0);
	if (c->rank == w->who)
		pen__mem_fail_nth(w->nth, false);
	rc = pen_ddict_persist(d, SAVED, &err);
	reached = pen__mem_count() >= w->nth;
	pen__mem_fail_nth(0, false);
	(void)same_for_all(c, w, rc, &err);
	CHECK_EQ(get_all(d), 0);
	pen_ddict_close(d);
	pen__comm_close(c);
	if (test_failures)
		return WRONG;
	return c->rank == w->who && !reached ? NOT_REACHED : FAILED_ONE;
}

static void run_short(int (*fn)(struct pen_comm *, void *), struct way w)
{
	for (w.who = 0; w.who < 2; w.who++) {
		bool more = true;

		for (w.nth = 1; more && w.nth < 200; w.nth++) {
			int status[PROCS_MAX];

			procs_run(2, w.hosts, fn, &w, status);
			for (int i = 0; i < 2; i++)
				if (!CHECK(status[i] == 0 ||
					   (i == w.who &&
					    WIFEXITED(status[i]) &&
					    WEXITSTATUS(status[i]) ==
						    NOT_REACHED)))
					fprintf(stderr,
						"rank %d of 2: %#x; "
						"allocation %d of rank %d\n",
						i, (unsigned)status[i],
						(int)w.nth, w.who);
			more = status[w.who] == 0;
		}
		CHECK(!more && w.nth > 2);
	}
}

/* --- ranks that are killed --- */

static int pipes[2]; /* for children that outlive their parents */

struct death {
	struct way w;
	const char *in;
	bool forks;
};

/* A child that inherits all sockets of its parent, and stays. */
static void leave_child(void)
{
	char c;

	if (fork())
		return;
	close(pipes[1]);
	alarm(60);
	(void)!read(pipes[0], &c, 1);
	_exit(0);
}

static int one_step(struct pen_comm *c, struct pen_ddict *d, const char *in,
		    uint64_t i, struct pen_err *err)
{
	struct pen_key k = num(i % KEYS);
	uint8_t buf[MOST + 16];
	struct pen_got *g;
	int rc;

	if (!strcmp(in, "barrier"))
		return pen__comm_barrier(c, err);
	if (!strcmp(in, "put"))
		return pen_ddict_put(d, k, made(k.number, i, buf), err);
	rc = pen_ddict_get_many(d, &k, 1, &g, err);
	if (!rc)
		pen_got_free(g);
	return rc;
}

/* Rank 1 is killed during a common operation; the others notice, and close
 * without waiting. */
static int dies(struct pen_comm *c, void *arg)
{
	const struct death *t = arg;
	struct pen_ddict *d = open_way(c, &t->w);
	struct pen_err err = { 0 };
	int rc = 0;

	put_all(d, 1);
	CHECK_EQ(pen__comm_barrier(c, &err), 0);
	for (uint64_t i = 0; i < 1000000 && !rc; i++) {
		if (c->rank == 1 && i == 100 && t->forks)
			leave_child();
		if (c->rank == 1 && i == 100)
			raise(SIGKILL);
		/* shared memory outlives its creator */
		if (!t->w.hosts && i > 1000)
			rc = pen__comm_barrier(c, &err);
		else
			rc = one_step(c, d, t->in, i, &err);
	}
	CHECK_EQ(rc, PEN_EIO);
	if (t->w.hosts && strcmp(t->in, "barrier"))
		CHECK(strstr(err.where, "rank 1"));
	if (!t->w.hosts)
		CHECK_EQ(get_all(d), 0);
	pen_ddict_close(d);
	return test_failures ? WRONG : 0;
}

static void killed(const char *in, bool hosts, bool forks)
{
	struct death t = {
		.w = { { "memory=4MiB", "transport=tcp" }, 2, hosts, 1, 0 },
		.in = in,
		.forks = forks,
	};
	int status[PROCS_MAX];

	procs_run(3, hosts, dies, &t, status);
	if (!CHECK_EQ(status[0], 0) || !CHECK_EQ(status[2], 0))
		fprintf(stderr, "killed in %s, hosts %d\n", in, hosts);
	CHECK(WIFSIGNALED(status[1]) && WTERMSIG(status[1]) == SIGKILL);
}

/* --- truncated files --- */

/* Every rank has its shard in a file, and requests values that were truncated
 * on the other. */
static int served_cut(struct pen_comm *c, void *arg)
{
	const struct way *w = arg;
	struct pen_ddict *d = open_way(c, w);
	struct pen_err err = { 0 };
	uint64_t nstale = 0;

	CHECK_EQ(get_all(d), 0);
	CHECK_EQ(pen__comm_barrier(c, &err), 0);
	CHECK_EQ(truncate(c->rank ? SAVED ".1-of-2" : SAVED ".0-of-2", 5000),
		 0);
	CHECK_EQ(pen__comm_barrier(c, &err), 0);
	for (uint64_t i = 0; i < KEYS; i++) {
		struct pen_key k = num(i);
		struct pen_got *g;

		nstale += pen_ddict_get_many(d, &k, 1, &g, &err) == PEN_ESTALE;
		CHECK(strstr(err.msg, "truncated") != NULL);
	}
	CHECK_EQ(nstale, KEYS);
	CHECK_EQ(pen__comm_barrier(c, &err), 0);
	pen_ddict_close(d);
	pen__comm_close(c);
	return test_failures ? WRONG : 0;
}

/* A value that is missing when it is to be sent ends the call. */
static int sends_cut(struct pen_comm *c, void *arg)
{
	const uint64_t n = 1 << 20;
	struct pen_ddict *d = open_way(c, arg);
	struct pen_err err = { 0 };
	struct pen_key k = num(0);
	int fd = open(SAVED, O_RDWR | O_CREAT, 0600);
	void *p;

	CHECK(fd >= 0 && !ftruncate(fd, (off_t)n));
	p = mmap(NULL, n, PROT_READ, MAP_SHARED, fd, 0);
	while (pen__ddict_owner(d, k) != 1)
		k.number++;
	if (!c->rank && CHECK(p != MAP_FAILED)) {
		CHECK_EQ(ftruncate(fd, 4096), 0);
		CHECK_EQ(pen_ddict_put(d, k, value(p, n), &err), PEN_EIO);
		if (!CHECK(strstr(err.where, "rank 1") &&
			   strstr(err.msg, "truncated")))
			fprintf(stderr, "%s: %s\n", err.where, err.msg);
	}
	CHECK_EQ(pen__comm_barrier(c, &err), 0);
	pen_ddict_close(d);
	pen__comm_close(c);
	close(fd);
	return test_failures ? WRONG : 0;
}

/* --- settings that differ --- */

static int differ(struct pen_comm *c, void *arg)
{
	const char *set[] = { "memory=4MiB",
			      c->rank ? "transport=tcp" : "transport=auto" };
	struct pen_err err = { 0 };
	struct pen_ddict *d;

	(void)arg;
	CHECK_EQ(pen__ddict_open(&d, c, set, 2, &err), PEN_EINVAL);
	CHECK(strstr(err.msg, "transport") != NULL);
	pen__comm_close(c);
	return test_failures ? WRONG : 0;
}

int main(void)
{
	const struct way shared = { { "memory=4MiB" }, 1, false, 0, 0 };
	const struct way wired = {
		{ "memory=4MiB", "transport=tcp" }, 2, true, 0, 0
	};
	const struct way mapped = { { "restore=" SAVED }, 1, false, 0, 0 };
	const struct way read_in = { { "restore=" SAVED, "writable=true",
				       "memory=4MiB" },
				     3,
				     false,
				     0,
				     0 };
	struct way served = {
		{ "restore=" SAVED, "transport=tcp" }, 2, true, 0, 0
	};
	struct way sent = wired;
	static const char *const in[] = { "put", "get", "barrier" };
	int status[PROCS_MAX];

	if (!CAN_FORK)
		TEST_SKIP("ThreadSanitizer does not allow it");
	run_short(short_open, shared);
	run_short(short_open, wired);
	run_short(short_save, shared);
	run_short(short_open, mapped);
	run_short(short_open, read_in);
	procs_run(2, true, served_cut, &served, status);
	CHECK(!status[0] && !status[1]);
	procs_run(2, true, sends_cut, &sent, status);
	CHECK(!status[0] && !status[1]);
	remove(SAVED);
	remove(SAVED ".0-of-2");
	remove(SAVED ".1-of-2");
	procs_run(2, true, differ, NULL, status);
	CHECK(!status[0] && !status[1]);
	for (size_t i = 0; i < 3; i++) {
		killed(in[i], false, false);
		killed(in[i], true, false);
	}
	if (CHECK_EQ(pipe(pipes), 0)) {
		killed("get", true, true);
		close(pipes[1]);
		close(pipes[0]);
	}
	return test_end();
}
