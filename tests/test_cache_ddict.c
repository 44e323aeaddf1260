/*
 * cache=ddict: batches are the same as without it, for any format; what was
 * read once is not read again, by this loader, another process, or another
 * rank; out of memory, a store that fails, files that change, and a rank that
 * dies.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "engine.h"
#include "procs.h"
#include "store/tier.h"

#if defined(__SANITIZE_THREAD__)
#define CAN_FORK 0
#else
#define CAN_FORK 1
#endif

static const struct eng_set big = {
	.name = "big",
	.format = "npy",
	.write = "samples=first",
	.read = "format.samples=first",
	.nfiles = 4,
	.per_file = 2048,
	.field = { { .name = "x",
		     .dtype = PEN_F32,
		     .ndim = 1,
		     .shape = { 64 } } },
};
#define BIG_BYTES (4 * 2048 * 256u)

static struct pen_stats stats_of(struct pen_loader *l)
{
	struct pen_stats s;

	pen_loader_stats(l, &s, sizeof(s));
	return s;
}

/* All batches of some settings, without and with a cache. */
static void compare(const char *what, const char *cache, uint64_t *reads)
{
	struct pen_buf plain = { 0 }, cached = { 0 };
	struct pen_err err = { 0 };
	struct pen_loader *l = eng_open(&err, "%s epochs=2", what);

	CHECK(l && eng_run(l, 2, &plain, &err) == PEN_END);
	pen_loader_close(l);
	l = eng_open(&err, "%s epochs=2 %s", what, cache);
	if (!CHECK(l != NULL)) {
		fprintf(stderr, "%s %s: %s: %s\n", what, cache, err.where,
			err.msg);
		return;
	}
	CHECK_EQ(eng_run(l, 2, &cached, &err), PEN_END);
	CHECK(eng_same(&plain, &cached));
	*reads = stats_of(l).nreads;
	CHECK(*reads || stats_of(l).cache_hits);
	pen_loader_close(l);
	pen__buf_fini(&plain);
	pen__buf_fini(&cached);
}

/* One loader fills a cache that others, with other orders, find full. */
static void test_format(const struct eng_set *s)
{
	static const char *const ways[] = {
		"shuffle=true seed=7 threads=2",
		"threads=3 batch_size=5",
		"shuffle=true seed=3 world=3 rank=1",
		"sampler=block sampler.chunk=4 seed=5 store=uring",
		"shuffle=true store=mmap",
		"shuffle=true decode=false",
	};
	struct pen_loader *first;
	struct pen_err err = { 0 };
	char what[256], name[64], cache[128];
	uint64_t reads = 0;

	snprintf(name, sizeof(name), "%s.%d", s->name, (int)getpid());
	snprintf(cache, sizeof(cache),
		 "cache=ddict cache.memory=16MiB cache.name=%s", name);
	first = eng_open(&err, "%s %s store=posix %s", s->name, s->read, cache);
	if (!CHECK(first && eng_run(first, 1, NULL, &err) == PEN_END)) {
		fprintf(stderr, "%s: %s: %s\n", s->name, err.where, err.msg);
		pen_loader_close(first);
		return;
	}
	CHECK_EQ(stats_of(first).cache_hits + stats_of(first).nreads > 0, 1);
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		if (strstr(ways[i], "uring") && !pen__store_uring_works())
			continue;
		snprintf(what, sizeof(what), "%s %s %s", s->name, s->read,
			 ways[i]);
		compare(what, cache, &reads);
		/* neighbours that a shuffle reads one by one, or units made for
		 * its chunks, are other ranges than those of a sequential
		 * pass */
		if (i < 3 && !strncmp(s->format, "np", 2))
			CHECK_EQ(reads, 0);
		compare(what, cache, &reads);
		if (!CHECK_EQ(reads, 0))
			fprintf(stderr, "%s\n", what);
	}
	pen_loader_close(first);
	snprintf(what, sizeof(what), "%s %s shuffle=true", s->name, s->read);
	compare(what, "cache=ddict,1MB cache.memory=16MiB", &reads);
	CHECK(reads > 0);
}

/* Does every row contain what was written? Counts rows. */
static int run_right(struct pen_loader *l, uint64_t epochs, uint64_t *rows,
		     struct pen_err *err)
{
	struct pen_batch *b;
	int rc = 0;

	while (epochs && rc >= 0) {
		rc = pen_loader_next(l, &b, err);
		if (rc == PEN_END)
			epochs--;
		if (rc)
			continue;
		CHECK(eng_right(&big, l->ds, b));
		*rows += b->nsamples;
		pen_batch_unref(b);
	}
	return rc;
}

static void test_full(void)
{
	struct pen_tier_stats t = { 0 };
	struct pen_err err = { 0 };
	uint64_t rows = 0;
	struct pen_loader *l =
		eng_open(&err, "big format.samples=first shuffle=true epochs=3 "
			       "batch_size=64 cache=ddict cache.memory=1MiB");

	CHECK(l && run_right(l, 3, &rows, &err) == PEN_END);
	CHECK_EQ(rows, 3 * 8192);
	CHECK(pen__tier_stats(l->ds->store, &t));
	CHECK(t.full && t.hits && t.kept && t.kept_bytes < 1 << 20);
	CHECK_EQ(t.hit_bytes + t.read_bytes, 3 * BIG_BYTES);
	CHECK_EQ(stats_of(l).read_bytes, t.read_bytes);
	CHECK_EQ(stats_of(l).cache_bytes, t.hit_bytes);
	pen_loader_close(l);
}

static void test_failing(void)
{
	struct pen_err err = { 0 };
	uint64_t rows = 0;
	struct pen_loader *l;

	l = eng_open(&err, "big format.samples=first cache=ddict "
			   "cache.memory=16MiB store=fault store.fail_nth=7");
	CHECK(l && run_right(l, 1, &rows, &err) == PEN_EIO);
	CHECK(strstr(err.where, "big/"));
	pen_loader_close(l);
	/* failed reads are not kept: the second epoch has all of them */
	rows = 0;
	l = eng_open(&err, "big format.samples=first cache=ddict epochs=2 "
			   "cache.memory=16MiB store=fault store.under=mmap "
			   "store.fail_nth=100 on_error=skip");
	CHECK(l && run_right(l, 1, &rows, &err) == PEN_END);
	CHECK(rows < 8192);
	rows = 0;
	CHECK_EQ(run_right(l, 1, &rows, &err), PEN_END);
	CHECK_EQ(rows, 8192);
	pen_loader_close(l);
}

/* A file that was replaced is read, not found. */
static void test_changed(void)
{
	const struct eng_set *s = eng_find("npy_file");
	struct eng_set other = *s;
	struct pen_err err = { 0 };
	struct pen_loader *first;
	char cache[128];
	uint64_t reads;

	snprintf(cache, sizeof(cache),
		 "cache=ddict cache.memory=16MiB cache.name=changed.%d",
		 (int)getpid());
	first = eng_open(&err, "npy_file format.samples=file %s", cache);
	CHECK(first && eng_run(first, 1, NULL, &err) == PEN_END);
	compare("npy_file format.samples=file", cache, &reads);
	CHECK_EQ(reads, 0);
	other.field[0].shape[0] = 4;
	other.field[0].shape[1] = 3;
	eng_make(&other);
	compare("npy_file format.samples=file", cache, &reads);
	CHECK(reads >= s->nfiles);
	eng_make(s);
	pen_loader_close(first);
}

static void test_settings(void)
{
	static const struct {
		const char *set, *says;
	} bad[] = {
		{ "cache=ddct", "use a size" },
		{ "cache=ddict,", "" },
		{ "cache=ddict,many", "" },
		{ "cache.memory=1G", "without cache=ddict" },
		{ "cache=ddict cache.colour=red", "" },
		{ "cache=ddict cache.width=2", "does not divide" },
		{ "cache=ddict cache.memory=1", "" },
		{ "cache=ddict store=ddict", "omit one" },
	};
	struct pen_err err;
	struct pen_loader *l;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		l = eng_open(&err, "big format.samples=first %s", bad[i].set);
		CHECK(!l);
		if (!CHECK(strstr(err.msg, bad[i].says)))
			fprintf(stderr, "%s: %s\n", bad[i].set, err.msg);
		pen_loader_close(l);
	}
	l = eng_open(&err, "big format.samples=first store=ddict "
			   "store.memory=16MiB store.under=mmap");
	CHECK(l && eng_run(l, 1, NULL, &err) == PEN_END);
	pen_loader_close(l);
}

/* --- processes --- */

static void other_process(int go, const char *cache)
{
	uint64_t reads = 1;
	char c;

	atomic_store(&test_failures, 0);
	alarm(600);
	if (read(go, &c, 1) != 1)
		_exit(9);
	compare("big format.samples=first shuffle=true", cache, &reads);
	_exit(test_failures || reads ? 1 : 0);
}

static void test_processes(void)
{
	struct pen_err err = { 0 };
	struct pen_loader *l;
	int go[2], status;
	char cache[128];
	pid_t pid;

	snprintf(cache, sizeof(cache),
		 "cache=ddict cache.memory=16MiB cache.name=two.%d",
		 (int)getpid());
	CHECK_EQ(pipe(go), 0);
	fflush(NULL);
	pid = fork();
	if (!pid)
		other_process(go[0], cache);
	l = eng_open(&err, "big format.samples=first %s", cache);
	CHECK(l && eng_run(l, 1, NULL, &err) == PEN_END);
	CHECK_EQ(write(go[1], "x", 1), 1);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	pen_loader_close(l);
	close(go[0]);
	close(go[1]);
}

/* --- ranks --- */

/* nth: the allocation that fails in opening; 0: none. */
static struct pen_loader *open_short(struct pen_comm *c, const char *how,
				     uint64_t nth, struct pen_err *err)
{
	struct pen_spec *spec = NULL;
	struct pen_loader *l = NULL;
	char text[ENG_TEXT];

	snprintf(text, sizeof(text),
		 "big format.samples=first shuffle=true batch_size=16 "
		 "threads=2 cache=ddict cache.memory=16MiB %s",
		 how);
	CHECK_EQ(eng_spec(&spec, text, err), 0);
	spec->comm = c;
	pen__mem_fail_nth(nth, false);
	if (pen_loader_open(&l, spec, err))
		l = NULL;
	pen__mem_fail_nth(0, false);
	pen_spec_free(spec);
	return l;
}

static struct pen_loader *open_rank(struct pen_comm *c, const char *how,
				    struct pen_err *err)
{
	return open_short(c, how, 0, err);
}

static int rank_loads(struct pen_comm *c, void *how)
{
	struct pen_err err = { 0 };
	uint64_t rows = 0;
	struct pen_loader *l = open_rank(c, how, &err);
	double v[2];

	if (!CHECK(l != NULL))
		return 1;
	CHECK_EQ(l->world, c->size);
	CHECK_EQ(run_right(l, 1, &rows, &err), PEN_END);
	v[0] = (double)stats_of(l).read_bytes;
	v[1] = (double)rows;
	CHECK_EQ(pen__comm_reduce(c, v, 2, PEN_SUM, &err), 0);
	CHECK_EQ((uint64_t)v[1], 8192);
	CHECK_EQ((uint64_t)v[0], BIG_BYTES);
	if (l->ds->spec->epochs > 1)
		CHECK_EQ(run_right(l, 2, &rows, &err), PEN_END);
	v[0] = (double)stats_of(l).read_bytes;
	CHECK_EQ(pen__comm_reduce(c, v, 1, PEN_SUM, &err), 0);
	CHECK_EQ((uint64_t)v[0], BIG_BYTES);
	pen_loader_close(l);
	pen__comm_close(c);
	return test_failures != 0;
}

static void test_ranks(int n, bool hosts, const char *how)
{
	int status[PROCS_MAX];
	char copy[256];

	snprintf(copy, sizeof(copy), "%s", how);
	procs_run(n, hosts, rank_loads, copy, status);
	for (int i = 0; i < n; i++)
		if (!CHECK_EQ(status[i], 0))
			fprintf(stderr, "rank %d of %d, %s\n", i, n, how);
}

/* Rank 1 dies in the second epoch; the others get an error, and do not wait for
 * it. */
static int rank_dies(struct pen_comm *c, void *how)
{
	struct pen_err err = { 0 };
	struct pen_batch *b;
	struct pen_loader *l = open_rank(c, how, &err);
	int rc = 0;

	if (!CHECK(l && eng_run(l, 1, NULL, &err) == PEN_END))
		return 1;
	if (c->rank == 1)
		raise(SIGKILL);
	while (rc >= 0) {
		rc = pen_loader_next(l, &b, &err);
		if (!rc)
			pen_batch_unref(b);
	}
	CHECK_EQ(rc, PEN_ECLOSED);
	CHECK_STR(err.where, "cache=ddict");
	if (!CHECK(strstr(err.msg, "rank 1")))
		fprintf(stderr, "%s\n", err.msg);
	pen_loader_close(l);
	pen__comm_close(c);
	return test_failures != 0;
}

static void test_death(void)
{
	int status[PROCS_MAX];
	char how[] = "epochs=0 on_error=skip";

	procs_run(3, true, rank_dies, how, status);
	CHECK_EQ(status[0], 0);
	CHECK(WIFSIGNALED(status[1]));
	CHECK_EQ(status[2], 0);
}

/* An error on one rank ends all of them. */
static int rank_fails(struct pen_comm *c, void *how)
{
	struct pen_err err = { 0 };
	struct pen_loader *l;

	(void)how;
	l = open_rank(c, c->rank == 1 ? "store=posix store.colour=red" : "",
		      &err);
	CHECK(!l);
	CHECK(strstr(err.msg, "colour") || strstr(err.where, "colour"));
	pen__comm_close(c);
	return test_failures != 0;
}

static void test_one_fails(void)
{
	int status[PROCS_MAX];

	procs_run(3, false, rank_fails, NULL, status);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(status[i], 0);
}

/* A rank that fails in the first epoch is noticed where the others wait for it,
 * and none of them waits when closing. */
static int rank_breaks(struct pen_comm *c, void *how)
{
	struct pen_err err = { 0 };
	struct pen_loader *l;

	(void)how;
	l = open_rank(c,
		      c->rank == 1 ? "epochs=3 store=fault store.fail_nth=40"
				   : "epochs=3",
		      &err);
	if (!CHECK(l != NULL))
		return 1;
	CHECK_EQ(eng_run(l, 3, NULL, &err), PEN_EIO);
	if (!CHECK(!strstr(err.msg, "rank 1 failed: ") == (c->rank == 1)))
		fprintf(stderr, "%d: %s: %s\n", c->rank, err.where, err.msg);
	pen_loader_close(l);
	pen__comm_close(c);
	return test_failures != 0;
}

/* The same for a rank that only stops. */
static int rank_stops(struct pen_comm *c, void *how)
{
	struct pen_err err = { 0 };
	struct pen_loader *l = open_rank(c, how, &err);
	struct pen_batch *b;

	if (!CHECK(l != NULL))
		return 1;
	if (c->rank == 1) {
		CHECK_EQ(pen_loader_next(l, &b, &err), 0);
		pen_batch_unref(b);
	} else {
		CHECK_EQ(eng_run(l, 3, NULL, &err), PEN_ECLOSED);
		CHECK(strstr(err.msg, "rank 1 closed") != NULL);
	}
	pen_loader_close(l);
	pen__comm_close(c);
	return test_failures != 0;
}

/* After the first epoch a rank may stop: it serves the others until they do. */
static int rank_stops_later(struct pen_comm *c, void *how)
{
	struct pen_err err = { 0 };
	struct pen_loader *l = open_rank(c, how, &err);
	uint64_t rows = 0;

	if (!CHECK(l != NULL))
		return 1;
	CHECK_EQ(run_right(l, c->rank == 1 ? 1 : 3, &rows, &err), PEN_END);
	pen_loader_close(l);
	pen__comm_close(c);
	return test_failures != 0;
}

/* Opening, with the n-th allocation of one rank failing. */
static int rank_short(struct pen_comm *c, void *nth)
{
	struct pen_err err = { 0 };
	struct pen_loader *l;
	double v[2];

	l = open_short(c, "epochs=2", c->rank == 1 ? *(uint64_t *)nth : 0,
		       &err);
	v[0] = l ? 0 : err.code;
	v[1] = -v[0];
	CHECK_EQ(pen__comm_reduce(c, v, 2, PEN_MIN, NULL), 0);
	CHECK(v[0] == -v[1]);
	if (!l && !CHECK(!strstr(err.msg, "rank 1 failed: ") == (c->rank == 1)))
		fprintf(stderr, "%d: %s: %s\n", c->rank, err.where, err.msg);
	if (l)
		CHECK_EQ(eng_run(l, 2, NULL, &err), PEN_END);
	pen_loader_close(l);
	pen__comm_close(c);
	return test_failures != 0;
}

static void test_short(void)
{
	for (uint64_t nth = 1; nth < 500; nth += 1 + nth / 4) {
		int status[PROCS_MAX];

		procs_run(2, true, rank_short, &nth, status);
		if (!CHECK(!status[0] && !status[1]))
			fprintf(stderr, "allocation %d: %#x %#x\n", (int)nth,
				(unsigned)status[0], (unsigned)status[1]);
	}
}

static void test_ends(void)
{
	static int (*const ends[])(struct pen_comm *,
				   void *) = { rank_breaks, rank_stops,
					       rank_stops_later };
	char how[] = "epochs=3";

	for (int i = 0; i < 6; i++) {
		int status[PROCS_MAX];

		procs_run(3, i % 2, ends[i / 2], how, status);
		for (int r = 0; r < 3; r++)
			if (!CHECK_EQ(status[r], 0))
				fprintf(stderr, "rank %d, end %d\n", r, i);
	}
}

int main(void)
{
	eng_start("cache_ddict");
	eng_make(&big);
	for (size_t i = 0; i < sizeof(eng_sets) / sizeof(eng_sets[0]); i++)
		eng_make(&eng_sets[i]);
	if (CAN_FORK) { /* before threads are started */
		test_processes();
		test_ranks(2, false, "epochs=1");
		test_ranks(4, true, "epochs=1");
		test_ranks(4, false, "epochs=3");
		test_ranks(2, true, "epochs=3");
		test_ranks(4, true, "epochs=3 cache.width=2");
		test_one_fails();
		test_ends();
		test_short();
		test_death();
	}
	for (size_t i = 0; i < sizeof(eng_sets) / sizeof(eng_sets[0]); i++)
		test_format(&eng_sets[i]);
	test_full();
	test_failing();
	test_changed();
	test_settings();
	eng_end();
	return test_end();
}
