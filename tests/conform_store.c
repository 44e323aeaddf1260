/*
 * What every store must do, run over the registry and over the settings that
 * change how a store works: reads anywhere, many in flight, closing in flight,
 * objects that are missing or changed, writing, out of memory, threads.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/team.h"
#include "store/store.h"
#include "saved.h"

#define MAX_KV 4

/* A store and its settings. */
struct variant {
	const char *store;
	struct pen_opts_kv kv[MAX_KV];
	unsigned max_open; /* 0: the default */
};

static const struct variant variants[] = {
	{ .store = "posix", .kv = { { "direct", "true" } } },
	{ .store = "posix", .kv = { { "fadvise", "random" } }, .max_open = 1 },
	{ .store = "posix",
	  .kv = { { "readahead", "256KiB" }, { "dropcache", "yes" } } },
	{ .store = "posix", .kv = { { "fsync", "true" } } },
	{ .store = "uring", .kv = { { "direct", "true" } } },
	{ .store = "uring", .kv = { { "fixed_files", "true" } } },
	{ .store = "uring",
	  .kv = { { "fixed_files", "true" }, { "dropcache", "true" } },
	  .max_open = 2 },
	{ .store = "uring", .max_open = 1 },
	{ .store = "uring", .kv = { { "sqpoll", "true" } } },
	{ .store = "mmap", .kv = { { "populate", "true" } } },
	{ .store = "mmap",
	  .kv = { { "hugepages", "true" }, { "advise", "sequential" } } },
	{ .store = "null", .kv = { { "size", "10k" }, { "objects", "5" } } },
	{ .store = "fault", .kv = { { "under", "uring" } } },
	{ .store = "fault", .kv = { { "under", "mmap" } } },
	{ .store = "fault", .kv = { { "under", "ram" } } },
	{ .store = "fault",
	  .kv = { { "direct", "true" }, { "delay", "1us" } } },
	{ .store = "fault", .kv = { { "under", "fault" } } },
};

static const size_t sizes[] = { 0,    1,     511,    4095,    4096,
				4097, 65536, 300001, 5u << 20 };
#define NSIZES (sizeof(sizes) / sizeof(sizes[0]))

static char root[64];

/* Content is a function of the size, so that it can be checked anywhere. */
static void make_file(const char *path, size_t n)
{
	const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	uint8_t *p = malloc(n + 1);

	CHECK(fd >= 0 && p);
	pen__rng_fill(1, n, 0, p, n);
	CHECK_EQ(write(fd, p, n), n);
	free(p);
	close(fd);
}

static void make_files(void)
{
	char name[64];
	save_values("d.dict", sizes, NSIZES);

	CHECK_EQ(mkdir("d", 0755), 0);
	for (size_t i = 0; i < NSIZES; i++) {
		snprintf(name, sizeof(name), "d/%zu.bin", sizes[i]);
		make_file(name, sizes[i]);
	}
}

/* A fixture: an open store with its objects and a queue. */
struct rig {
	const struct variant *v;
	struct pen_store *st;
	struct pen_objects set;
	struct pen_queue *q;
	bool blank; /* content has no meaning (null) */
};

static void rig_close(struct rig *r)
{
	pen__queue_close(r->q);
	pen__store_close(r->st);
	pen__objects_fini(&r->set);
	r->q = NULL;
	r->st = NULL;
}

static int rig_list(struct rig *r, const struct variant *v, const char *path,
		    struct pen_err *err)
{
	size_t nkv = 0;
	int rc;

	*r = (struct rig){ .v = v, .blank = strcmp(v->store, "null") == 0 };
	while (nkv < MAX_KV && v->kv[nkv].key)
		nkv++;
	rc = pen__store_open(&r->st, v->store, v->kv, nkv, err);
	if (rc)
		return rc;
	if (v->max_open)
		r->st->max_open = v->max_open;
	rc = r->st->ops->list(r->st, path, NULL, NULL, &r->set, err);
	if (!r->st->in_order)
		pen__objects_sort(&r->set);
	return rc;
}

static int rig_bind(struct rig *r, unsigned depth, struct pen_err *err)
{
	int rc = pen__store_bind(r->st, &r->set, err);

	return rc ? rc : pen__queue_open(&r->q, r->st, depth, err);
}

static int rig_open(struct rig *r, const struct variant *v, unsigned depth,
		    struct pen_err *err)
{
	int rc = rig_list(
		r, v, strcmp(v->store, "dictionary") ? "d" : "ddict:./d.dict",
		err);

	if (!rc)
		rc = rig_bind(r, depth, err);
	if (rc)
		rig_close(r);
	return rc;
}

/* The bytes of [off, off + n) of an object, for any store. */
static bool same(const struct rig *r, uint32_t object, uint64_t off,
		 const void *p, size_t n)
{
	uint8_t *want;
	bool ok;

	if (r->blank || !n)
		return true;
	want = malloc(n);
	pen__rng_fill(1, r->set.obj[object].size, off, want, n);
	ok = want && memcmp(p, want, n) == 0;
	free(want);
	return ok;
}

/* The expected result of a read of len at off. */
static int64_t there(const struct rig *r, uint32_t object, uint64_t off,
		     size_t len)
{
	const uint64_t size = r->set.obj[object].size;

	if (off >= size)
		return 0;
	return (int64_t)(len < size - off ? len : size - off);
}

/* Widens a read to what the store supports. */
static void widen(const struct pen_store *st, struct pen_io *io)
{
	const uint64_t a = st->align;
	const uint64_t off = io->offset / a * a;

	io->len = (io->len + (io->offset - off) + a - 1) / a * a;
	io->offset = off;
}

static void check_io(const struct rig *r, struct pen_io *io)
{
	CHECK_EQ(io->res, there(r, io->object, io->offset, io->len));
	CHECK_EQ(io->sys, 0);
	if (!r->st->lends)
		CHECK(io->data == io->buf);
	if (io->res > 0)
		CHECK(same(r, io->object, io->offset, io->data,
			   (size_t)io->res));
	if (r->st->ops->release)
		r->st->ops->release(r->q, io);
}

static void one_read(struct rig *r, struct pen_block *b, uint32_t object,
		     uint64_t off, size_t len)
{
	struct pen_io io = { .object = object, .offset = off, .len = len };
	struct pen_io *done = NULL;

	widen(r->st, &io);
	CHECK_EQ(pen__block_reserve(b, io.len + 4096), 0);
	io.buf = b->p;
	io.user = &io;
	CHECK_EQ(r->st->ops->submit(r->q, &io), 0);
	CHECK_EQ(r->st->ops->reap(r->q, 1, &done, 1), 1);
	CHECK(done == &io && io.user == &io);
	check_io(r, &io);
	CHECK_EQ(r->st->ops->reap(r->q, 0, &done, 1), 0);
	CHECK_EQ(r->st->ops->reap(r->q, 1, &done, 1), 0);
}

static void test_reads(struct rig *r)
{
	struct pen_block b = { 0 };

	for (uint32_t i = 0; i < r->set.nobj; i++) {
		const uint64_t n = r->set.obj[i].size;
		const size_t most = n < 6u << 20 ? (size_t)n : 6u << 20;

		one_read(r, &b, i, 0, most);
		one_read(r, &b, i, 0, 1);
		one_read(r, &b, i, 0, 0);
		one_read(r, &b, i, 0, most + 5);
		one_read(r, &b, i, 1, 1);
		one_read(r, &b, i, 4093, 7);
		one_read(r, &b, i, n / 3, n / 5 < 70000 ? n / 5 : 70000);
		one_read(r, &b, i, n ? n - 1 : 0, 1);
		one_read(r, &b, i, n ? n - 1 : 0, 100);
		one_read(r, &b, i, n, 10);
		one_read(r, &b, i, n, 0);
		one_read(r, &b, i, n + 1, 10);
		one_read(r, &b, i, n + 123456, 4096);
		one_read(r, &b, i, (uint64_t)1 << 62, 10);
	}
	pen__block_fini(&b);
}

static void test_blocking(struct rig *r)
{
	const size_t most = 2u << 20;
	uint8_t *buf = malloc(most + 1);
	struct pen_err err;

	for (uint32_t i = 0; i < r->set.nobj; i++) {
		const uint64_t n = r->set.obj[i].size;
		const size_t len = n < most ? (size_t)n : most;

		buf[len] = 0xaa;
		CHECK_EQ(pen__queue_read(r->q, i, 0, buf, len, &err), 0);
		CHECK(same(r, i, 0, buf, len));
		CHECK_EQ(buf[len], 0xaa);
		CHECK_EQ(pen__queue_read(r->q, i, n, buf, 0, &err), 0);
		CHECK_EQ(pen__queue_read(r->q, i, n, buf, 1, &err), PEN_EDATA);
		CHECK(strstr(err.msg, "ends at byte"));
		if (n < 3)
			continue;
		CHECK_EQ(pen__queue_read(r->q, i, n - 2, buf, 2, &err), 0);
		CHECK(same(r, i, n - 2, buf, 2));
		CHECK_EQ(pen__queue_read(r->q, i, n - 2, buf, 3, &err),
			 PEN_EDATA);
		CHECK_EQ(pen__queue_read(r->q, i, 1, buf, len - 1, &err), 0);
		CHECK(same(r, i, 1, buf, len - 1));
	}
	free(buf);
}

#define IO_MAX 20000u

static void random_io(struct rig *r, struct pen_rng *rng, struct pen_io *io)
{
	uint64_t size;

	io->object = (uint32_t)pen__rng_below(rng, r->set.nobj);
	size = r->set.obj[io->object].size;
	io->offset = pen__rng_below(rng, size + 10);
	io->len = pen__rng_below(rng, IO_MAX);
	widen(r->st, io);
}

/* Keeps a queue full: every read comes back once, with its own bytes. */
static void churn(struct rig *r, unsigned nreads, uint64_t seed)
{
	const unsigned depth = r->q->depth;
	const size_t room = IO_MAX + 3 * 4096;
	struct pen_io *io = calloc(depth, sizeof(*io));
	struct pen_io **done = calloc(depth, sizeof(*done));
	struct pen_io **idle = calloc(depth, sizeof(*idle));
	struct pen_rng rng = pen__rng(seed, depth);
	unsigned nidle = depth, sent = 0, back = 0;
	struct pen_block b = { 0 };

	CHECK_EQ(pen__block_init(&b, depth * (room / 4096 * 4096 + 4096)), 0);
	for (unsigned i = 0; i < depth; i++) {
		io[i].buf = (char *)b.p + i * (room / 4096 * 4096 + 4096);
		idle[i] = &io[i];
		random_io(r, &rng, &io[i]);
	}
	while (back < nreads) {
		unsigned n;
		int rc = 0;

		while (sent < nreads && nidle && !rc) {
			rc = r->st->ops->submit(r->q, idle[nidle - 1]);
			if (!rc) {
				nidle--;
				sent++;
			}
		}
		CHECK(rc == 0 || rc == PEN_END);
		n = r->st->ops->reap(r->q, 1, done, depth);
		if (!CHECK(n >= 1))
			break;
		for (unsigned i = 0; i < n; i++) {
			check_io(r, done[i]);
			random_io(r, &rng, done[i]);
			idle[nidle++] = done[i];
		}
		back += n;
	}
	CHECK_EQ(r->st->ops->reap(r->q, 0, done, depth), 0);
	pen__block_fini(&b);
	free(io);
	free(done);
	free(idle);
}

/* More than depth are refused, all of them come back, in pieces. */
static void test_full(struct rig *r)
{
	const unsigned depth = r->q->depth;
	struct pen_io *io = calloc(depth + 1, sizeof(*io));
	struct pen_io **done = calloc(depth, sizeof(*done));
	struct pen_block b = { 0 };
	unsigned n = 0, back = 0;

	CHECK_EQ(pen__block_init(&b, 4096 * (depth + 1)), 0);
	for (; n <= depth; n++) {
		io[n] = (struct pen_io){ .object = (uint32_t)(r->set.nobj - 1),
					 .len = 4096,
					 .buf = (char *)b.p + 4096 * n };
		if (r->st->ops->submit(r->q, &io[n]))
			break;
	}
	CHECK_EQ(n, depth);
	while (back < n) {
		const unsigned got = r->st->ops->reap(
			r->q, n - back < 3 ? n - back : 3, done, 3);

		if (!CHECK(got >= 1))
			break;
		back += got;
		for (unsigned i = 0; i < got; i++)
			check_io(r, done[i]);
	}
	CHECK_EQ(back, n);
	/* closed with all of them in flight */
	for (unsigned i = 0; i < depth; i++)
		CHECK_EQ(r->st->ops->submit(r->q, &io[i]), 0);
	pen__queue_close(r->q);
	r->q = NULL;
	pen__block_fini(&b);
	free(io);
	free(done);
}

struct crew {
	struct rig rig;
	atomic_uint failed;
};

static void crew_member(void *arg, unsigned i)
{
	struct crew *c = arg;
	struct rig mine = c->rig;

	if (pen__queue_open(&mine.q, mine.st, 8, NULL)) {
		atomic_fetch_add(&c->failed, 1);
		return;
	}
	churn(&mine, 200, i);
	pen__queue_close(mine.q);
}

static void test_threads(struct rig *r)
{
	struct crew c = { .rig = *r };
	struct pen_team *team;

	CHECK_EQ(pen__team_start(&team, 4, "conform", crew_member, &c, NULL),
		 0);
	pen__team_join(team);
	CHECK_EQ(atomic_load(&c.failed), 0);
}

static int read_all(struct rig *r, uint32_t object, struct pen_err *err)
{
	const size_t n = r->set.obj[object].size;
	void *buf = malloc(n + 1);
	int rc = pen__queue_read(r->q, object, 0, buf, n, err);

	if (!rc)
		CHECK(same(r, object, 0, buf, n));
	free(buf);
	return rc;
}

/* One of two objects is not what was listed; the other one is. */
static void spoiled(const struct variant *v, void (*spoil)(void), int code)
{
	struct pen_err err = { 0 };
	struct rig r;
	int rc;

	make_file("s/1", 100);
	make_file("s/2", 200);
	CHECK_EQ(rig_list(&r, v, "s", &err), 0);
	CHECK_EQ(r.set.nobj, r.blank ? r.set.nobj : 2);
	spoil();
	rc = rig_bind(&r, 4, &err);
	if (!rc && !r.blank) {
		rc = read_all(&r, 1, &err);
		CHECK_EQ(read_all(&r, 0, NULL), 0);
	}
	if (!r.blank) {
		CHECK_EQ(rc, code);
		CHECK_EQ(err.code, code);
		CHECK(strstr(err.where, "s/2"));
	}
	rig_close(&r);
}

static void spoil_gone(void)
{
	CHECK_EQ(unlink("s/2"), 0);
}
static void spoil_longer(void)
{
	make_file("s/2", 201);
}
static void spoil_touched(void)
{
	const struct timespec t[2] = { { 1, 0 }, { 1, 1 } };

	CHECK_EQ(utimensat(AT_FDCWD, "s/2", t, 0), 0);
}
static void spoil_dir(void)
{
	CHECK_EQ(unlink("s/2"), 0);
	CHECK_EQ(mkdir("s/2", 0755), 0);
}

static void test_spoiled(const struct variant *v)
{
	CHECK_EQ(mkdir("s", 0755), 0);
	spoiled(v, spoil_gone, PEN_ENOTFOUND);
	spoiled(v, spoil_longer, PEN_ESTALE);
	spoiled(v, spoil_touched, PEN_ESTALE);
	spoiled(v, spoil_dir, PEN_ESTALE);
	CHECK_EQ(rmdir("s/2"), 0);
	CHECK_EQ(unlink("s/1"), 0);
	CHECK_EQ(rmdir("s"), 0);
}

/* In pieces of all sizes; 1.5 MB in total. */
static int write_pieces(struct pen_store *st, const char *path, bool commit,
			struct pen_err *err)
{
	static const size_t piece[] = { 1, 7, 4096,   100000, 700000,
					0, 3, 262144, 400000, 5 };
	struct pen_sink *s;
	size_t total = 0, at = 0;
	uint8_t *p;
	int rc = pen__sink_open(&s, st, path, err);

	if (rc)
		return rc;
	for (unsigned i = 0; i < 10; i++)
		total += piece[i];
	p = malloc(total);
	pen__rng_fill(1, total, 0, p, total);
	for (unsigned i = 0; i < 10 && !rc; i++) {
		rc = pen__sink_write(s, p + at, piece[i], err);
		at += piece[i];
	}
	if (!rc)
		CHECK_EQ(s->written, total);
	free(p);
	if (!rc)
		return pen__sink_close(s, commit, err);
	CHECK(pen__sink_close(s, false, NULL) == 0);
	return rc;
}

static void test_sinks(const struct variant *v)
{
	struct pen_err err = { 0 };
	struct rig r;

	CHECK_EQ(rig_list(&r, v, "d", &err), 0);
	if (!r.st->ops->sink_open) {
		rig_close(&r);
		return; /* read-only */
	}
	CHECK_EQ(write_pieces(r.st, "w/x/1.bin", true, &err), 0);
	CHECK_EQ(write_pieces(r.st, "w/x/1.bin", true, &err), 0); /* again */
	CHECK_EQ(write_pieces(r.st, "w/x/2.bin", false, &err), 0);
	pen__objects_fini(&r.set);
	CHECK_EQ(r.st->ops->list(r.st, r.blank ? "" : "w", NULL, NULL, &r.set,
				 &err),
		 0);
	pen__objects_sort(&r.set);
	if (!r.blank) {
		char path[64];

		CHECK_EQ(r.set.nobj, 1);
		CHECK_EQ(r.set.obj[0].size, 1466256);
		CHECK(pen__object_path(&r.set, 0, path, sizeof(path)));
		CHECK_STR(path, "w/x/1.bin");
		CHECK_EQ(rig_bind(&r, 1, &err), 0);
		CHECK_EQ(read_all(&r, 0, &err), 0);
	}
	rig_close(&r);
	/* nothing else exists: neither 2.bin nor temporary files */
	unlink("w/x/1.bin");
	if (access("w", F_OK) == 0) {
		CHECK_EQ(rmdir("w/x"), 0);
		CHECK_EQ(rmdir("w"), 0);
	}
}

/* Everything once; the only error is "out of memory". */
static void whole_life(const struct variant *v)
{
	struct pen_err err = { 0 };
	struct rig r;
	int rc = rig_open(&r, v, 2, &err);

	if (!rc) {
		rc = pen__queue_read(r.q, (uint32_t)r.set.nobj - 1, 5,
				     (char[8]){ 0 }, 8, &err);
		if (!rc && r.st->ops->sink_open)
			rc = write_pieces(r.st, "w/1.bin", true, &err);
		rig_close(&r);
	}
	if (rc) {
		CHECK_EQ(rc, PEN_ENOMEM);
		CHECK_EQ(err.code, PEN_ENOMEM);
	}
}

static void test_nomem(const struct variant *v)
{
	uint64_t n = 0, count;

	do {
		pen__mem_fail_nth(++n, false);
		whole_life(v);
		count = pen__mem_count();
		pen__mem_fail_nth(0, false);
	} while (count >= n && n < 1000);
	CHECK(n > 3 && n < 1000);
	unlink("w/1.bin");
	rmdir("w");
}

static void conform(const struct variant *v)
{
	static const unsigned depths[] = { 1, 64 };
	struct pen_err err = { 0 };
	struct rig r;
	bool writes;
	int rc = rig_open(&r, v, 1, &err);

	if (rc == PEN_ENOTSUP) {
		printf("%s left out: %s: %s\n", v->store, err.where, err.msg);
		return;
	}
	if (!CHECK_EQ(rc, 0)) {
		fprintf(stderr, "%s: %s: %s\n", v->store, err.where, err.msg);
		return;
	}
	test_reads(&r);
	test_blocking(&r);
	test_threads(&r);
	for (unsigned i = 0; i < 2; i++) {
		pen__queue_close(r.q);
		CHECK_EQ(pen__queue_open(&r.q, r.st, depths[i], &err), 0);
		churn(&r, 500 / TEST_EVERY(2), 99);
		if (!v->max_open)
			test_full(&r);
	}
	writes = r.st->ops->sink_open != NULL;
	rig_close(&r);
	if (writes) { /* to files */
		test_spoiled(v);
		test_sinks(v);
	}
	test_nomem(v);
}

/* ---- specific to one store ---- */

/* Memory is refused before it is allocated: the file is a hole. */
static void test_ram_too_big(void)
{
	const struct variant v = { .store = "ram" };
	struct pen_err err;
	struct rig r;

	make_file("hole", 1);
	if (truncate("hole", (off_t)1 << 43) == 0) {
		CHECK_EQ(rig_list(&r, &v, "hole", &err), 0);
		CHECK_EQ(rig_bind(&r, 1, &err), PEN_ENOMEM);
		CHECK(strstr(err.msg, "mmap"));
		rig_close(&r);
	}
	unlink("hole");
}

/* More objects than mmap maps for all: each queue has its own, and lends more
 * at a time than it keeps. */
static void test_mmap_many(void)
{
	enum { N = 33000, LENT = 100 };
	const struct variant v = { .store = "mmap", .max_open = 3 };
	struct pen_io io[LENT], *done;
	struct pen_rng rng = pen__rng(1, 2);
	struct rig r;

	CHECK_EQ(rig_list(&r, &v, "d/300001.bin", NULL), 0);
	CHECK_EQ(r.set.nobj, 1);
	/* the same file repeatedly */
	for (uint32_t i = 0; i < N; i++)
		CHECK_EQ(pen__objects_add(&r.set, 0, "300001.bin", 300001,
					  r.set.obj[0].mtime_ns),
			 0);
	CHECK_EQ(rig_bind(&r, 1, NULL), 0);
	churn(&r, 1000, 7);
	for (unsigned i = 0; i < LENT; i++) {
		random_io(&r, &rng, &io[i]);
		CHECK_EQ(r.st->ops->submit(r.q, &io[i]), 0);
		CHECK_EQ(r.st->ops->reap(r.q, 1, &done, 1), 1);
	}
	for (unsigned i = 0; i < LENT; i++)
		check_io(&r, &io[i]);
	rig_close(&r);
}

/* Mapped pages that disappeared are an error, not a signal. */
static void test_mmap_shrinks(void)
{
	const struct variant v = { .store = "mmap" };
	struct pen_err err = { 0 };
	struct rig r;

	make_file("shrinks", 300001);
	CHECK_EQ(rig_list(&r, &v, "shrinks", &err), 0);
	CHECK_EQ(rig_bind(&r, 1, &err), 0);
	CHECK_EQ(read_all(&r, 0, &err), 0);
	CHECK_EQ(truncate("shrinks", 100), 0);
	CHECK_EQ(read_all(&r, 0, &err), PEN_ESTALE);
	CHECK_STR(err.where, "shrinks");
	rig_close(&r);
	CHECK_EQ(unlink("shrinks"), 0);
}

struct expect {
	struct pen_opts_kv kv[MAX_KV];
	int64_t res[6]; /* of six reads of 100 bytes at offset 50 */
	int sys;
};

static void test_faults(void)
{
	static const struct expect cases[] = {
		{ { { "fail_nth", "2" } },
		  { 100, PEN_EIO, 100, 100, 100, 100 },
		  EIO },
		{ { { "fail_every", "3" }, { "fail_errno", "28" } },
		  { 100, 100, PEN_EIO, 100, 100, PEN_EIO },
		  ENOSPC },
		{ { { "short_nth", "4" }, { "under", "mmap" } },
		  { 100, 100, 100, 50, 100, 100 },
		  0 },
		{ { { "short_nth", "1" }, { "short_bytes", "7" } },
		  { 7, 100, 100, 100, 100, 100 },
		  0 },
		{ { { "truncate", "70" }, { "under", "ram" } },
		  { 20, 20, 20, 20, 20, 20 },
		  0 },
		{ { { "truncate", "20" } }, { 0, 0, 0, 0, 0, 0 }, 0 },
		{ { { "fail_object", "001.b" }, { "fail_errno", "2" } },
		  { PEN_ENOTFOUND, PEN_ENOTFOUND, PEN_ENOTFOUND, PEN_ENOTFOUND,
		    PEN_ENOTFOUND, PEN_ENOTFOUND },
		  ENOENT },
		{ { { "fail_object", "zzz" },
		    { "delay", "1ns" },
		    { "delay_every", "2" } },
		  { 100, 100, 100, 100, 100, 100 },
		  0 },
	};

	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		struct variant v = { .store = "fault" };
		char buf[100];
		struct rig r;

		memcpy(v.kv, cases[c].kv, sizeof(v.kv));
		CHECK_EQ(rig_list(&r, &v, "d/300001.bin", NULL), 0);
		CHECK_EQ(rig_bind(&r, 2, NULL), 0);
		for (unsigned i = 0; i < 6; i++) {
			struct pen_io io = { .offset = 50,
					     .len = 100,
					     .buf = buf };
			struct pen_io *done;

			CHECK_EQ(r.st->ops->submit(r.q, &io), 0);
			CHECK_EQ(r.st->ops->reap(r.q, 1, &done, 1), 1);
			CHECK_EQ(io.res, cases[c].res[i]);
			CHECK_EQ(io.sys, io.res < 0 ? cases[c].sys : 0);
			r.st->ops->release(r.q, &io);
		}
		rig_close(&r);
	}
}

/* Two queues share a rate: the bytes cannot come sooner, however fast the
 * machine is. A read past the end of its object takes only what exists. */
static void test_rate(void)
{
	struct variant v = { .store = "fault", .kv = { { "rate", "100000" } } };
	char buf[2][1000];
	struct pen_queue *other;
	uint64_t t0, bytes = 0;
	struct rig r;

	CHECK_EQ(rig_list(&r, &v, "d/300001.bin", NULL), 0);
	CHECK_EQ(rig_bind(&r, 2, NULL), 0);
	CHECK_EQ(pen__queue_open(&other, r.st, 2, NULL), 0);
	t0 = pen__now_ns();
	for (unsigned i = 0; i < 6; i++) {
		struct pen_queue *q = i % 2 ? other : r.q;
		struct pen_io *done, io = { .offset = i == 5 ? 299900 : 50,
					    .len = 1000,
					    .buf = buf[i % 2] };

		CHECK_EQ(r.st->ops->submit(q, &io), 0);
		CHECK_EQ(r.st->ops->reap(q, 1, &done, 1), 1);
		CHECK_EQ(io.res, i == 5 ? 101 : 1000);
		bytes += (uint64_t)io.res;
	}
	CHECK(pen__now_ns() - t0 >= bytes * 10000);
	CHECK(r.st->waits);
	pen__queue_close(other);
	rig_close(&r);
}

static void test_errors(void)
{
	const struct variant v = { .store = "posix" };
	struct pen_io io = { .offset = 10, .len = 20, .res = 5 };
	struct pen_err err;
	struct rig r;

	CHECK_EQ(rig_open(&r, &v, 1, &err), 0);
	CHECK_EQ(pen__io_error(r.st, &io, &err), PEN_EDATA);
	CHECK(strstr(err.msg, "ends at byte 15") && strstr(err.where, "d/"));
	io.res = PEN_ESTALE;
	CHECK_EQ(pen__io_error(r.st, &io, &err), PEN_ESTALE);
	CHECK(strstr(err.msg, "changed since"));
	io.res = PEN_EIO;
	io.sys = EIO;
	CHECK_EQ(pen__io_error(r.st, &io, &err), PEN_EIO);
	CHECK_EQ(err.sys, EIO);
	CHECK_EQ(pen__io_error(r.st, &io, NULL), PEN_EIO);
	io.res = 20;
	CHECK_EQ(pen__io_error(r.st, &io, &err), 0);
	rig_close(&r);
}

int main(void)
{
	const struct pen_store_ops *ops;

	snprintf(root, sizeof(root), "conform_store.XXXXXX");
	if (!mkdtemp(root) || chdir(root))
		return 1;
	make_files();
	for (unsigned i = 0; (ops = pen__store_at(i)); i++)
		conform(&(struct variant){ .store = ops->name });
	for (size_t i = 0; i < sizeof(variants) / sizeof(variants[0]); i++)
		if (pen__store_find(variants[i].store))
			conform(&variants[i]);
	test_ram_too_big();
	test_mmap_many();
	test_mmap_shrinks();
	test_faults();
	test_rate();
	test_errors();
	CHECK_EQ(system("rm -rf ../$(basename $PWD)"), 0);
	return test_end();
}
