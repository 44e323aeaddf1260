/*
 * Dictionaries in files: saved, mapped, read again, by the same number of
 * shards; and files that are truncated, changed, or something else.
 */
#include "ddict.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

#define FILE_NAME "ddict.saved"
#define N 500

static void fill(struct pen_ddict *d)
{
	uint8_t buf[MOST + 16];

	for (uint64_t i = 0; i < N; i++) {
		CHECK_EQ(pen_ddict_put(d, num(i), made(i, 1, buf), NULL), 0);
		CHECK_EQ(pen_ddict_put(d, num(i), made(i, 2, buf), NULL), 0);
	}
	CHECK_EQ(pen_ddict_put(d, text("text"), value("", 0), NULL), 0);
	CHECK_EQ(pen_ddict_put(d, (struct pen_key){ "\0\1", 2 },
			       value("nul", 3), NULL),
		 0);
	CHECK_EQ(pen_ddict_pop(d, num(0), NULL, NULL), 0);
}

static void compare(struct pen_ddict *d)
{
	uint64_t wrong = 0, turn;

	CHECK_EQ(length(d), N + 1);
	for (uint64_t i = 0; i < N; i++) {
		struct pen_key k = num(i);
		struct pen_got *g;

		if (!CHECK_EQ(pen_ddict_get_many(d, &k, 1, &g, NULL), 0))
			continue;
		wrong += i ? !is_whole(g->values[0], i, &turn) || turn != 2
			   : g->values[0].data != NULL;
		pen_got_free(g);
	}
	CHECK_EQ(wrong, 0);
	CHECK(has(d, text("text"), "", 0));
	CHECK(has(d, (struct pen_key){ "\0\1", 2 }, "nul", 3));
}

static void round_trip(void)
{
	const char *const mapped[] = { "restore=" FILE_NAME, "verify=true" };
	const char *const writable[] = { "restore=" FILE_NAME, "writable=true",
					 "memory=8MiB" };
	struct pen_ddict *d = open_sized("memory=8MiB");
	struct pen_err err = { 0 };
	struct pen_shard_stats s;
	uint64_t used;

	fill(d);
	CHECK_EQ(pen_ddict_persist(d, FILE_NAME, NULL), 0);
	CHECK_EQ(pen_ddict_put(d, num(N), value("after", 5), NULL), 0);
	pen_ddict_close(d);

	d = open_with(mapped, 2);
	compare(d);
	CHECK_EQ(pen_ddict_put(d, num(1), value("x", 1), &err), PEN_EINVAL);
	CHECK_EQ(pen_ddict_pop(d, num(1), NULL, &err), PEN_EINVAL);
	CHECK_EQ(pen_ddict_clear(d, &err), PEN_EINVAL);
	CHECK(strstr(pen_ddict_transport(d), "mapped") != NULL);
	s = stats_of(d);
	used = s.used_bytes;
	CHECK(s.nkeys == N + 1 && used < s.value_bytes / 20 * 21 + 8192);
	/* saved again from the mapped file */
	CHECK_EQ(pen_ddict_persist(d, FILE_NAME ".2", NULL), 0);
	pen_ddict_close(d);
	CHECK_EQ(rename(FILE_NAME ".2", FILE_NAME), 0);

	d = open_with(writable, 3);
	compare(d);
	CHECK_EQ(pen_ddict_put(d, num(1), value("x", 1), &err), 0);
	CHECK_EQ(pen_ddict_persist(d, FILE_NAME ".none/x", &err),
		 PEN_ENOTFOUND);
	pen_ddict_close(d);
}

static void empty(void)
{
	const char *const set[] = { "restore=" FILE_NAME };
	struct pen_ddict *d = open_sized("memory=2MiB");

	CHECK_EQ(pen_ddict_persist(d, FILE_NAME, NULL), 0);
	pen_ddict_close(d);
	d = open_with(set, 1);
	CHECK_EQ(length(d), 0);
	CHECK_EQ(pen_ddict_contains(d, num(1), NULL), 0);
	pen_ddict_close(d);
}

static uint8_t *slurp(size_t *n)
{
	struct stat st = { 0 };
	int fd = open(FILE_NAME, O_RDONLY);
	uint8_t *p;

	CHECK(fd >= 0 && !fstat(fd, &st));
	*n = (size_t)st.st_size;
	p = pen__alloc(*n, 1);
	CHECK_EQ(read(fd, p, *n), *n);
	close(fd);
	return p;
}

static void spit(const uint8_t *p, size_t n)
{
	int fd = open(FILE_NAME, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	CHECK_EQ(write(fd, p, n), n);
	close(fd);
}

/* Tries to open it, and if that works, looks up every key. */
static int try(bool verify)
{
	const char *const set[] = { "restore=" FILE_NAME,
				    verify ? "verify=true" : "verify=false" };
	struct pen_err err = { 0 };
	struct pen_ddict *d;
	int rc = pen_ddict_open(&d, NULL, set, 2, &err);

	if (rc) {
		CHECK(err.msg[0] && (rc == PEN_EDATA || rc == PEN_ENOTSUP));
		return rc;
	}
	for (uint64_t i = 0; i < N; i++)
		(void)has(d, num(i), "", 0);
	pen_ddict_close(d);
	return 0;
}

static void damaged(void)
{
	struct pen_ddict *d = open_sized("memory=8MiB");
	uint8_t *p, buf[MOST + 16];
	struct pen_rng rng = pen__rng(1, 1);
	size_t n;

	for (uint64_t i = 0; i < 40; i++)
		CHECK_EQ(pen_ddict_put(d, num(i), made(i, 1, buf), NULL), 0);
	CHECK_EQ(pen_ddict_persist(d, FILE_NAME, NULL), 0);
	pen_ddict_close(d);
	p = slurp(&n);
	for (int i = 0; i < 60; i++) {
		spit(p, i < 30 ? (size_t)i * 200 : pen__rng_below(&rng, n));
		CHECK(try(false) < 0);
	}
	for (int i = 0; i < 600; i++) {
		/* every byte of the header, then anywhere */
		const size_t at =
			i < 120 ? (size_t)i
				: 4096 + pen__rng_below(&rng, n - 4096);

		p[at] = (uint8_t)(p[at] ^ 1 << i % 8);
		spit(p, n);
		if (i < 96 || i >= 120)
			CHECK(try(true) < 0);
		(void)try(false);
		p[at] = (uint8_t)(p[at] ^ 1 << i % 8);
	}
	spit(p, n);
	CHECK_EQ(try(true), 0);
	pen__free(p);
}

/* The checksum of version 1 of the file, in other words than the library's: a
 * file that an earlier release saved must open. */
static uint64_t sum_of_version_1(const uint8_t *p, size_t n)
{
	uint64_t lane[2] = { 1, 2 }, word, z;

	for (size_t i = 0; i < n; i += 8) {
		uint64_t *x = &lane[i / 8 % 2];

		memcpy(&word, p + i, 8);
		*x ^= word;
		*x = (*x * 536870912u) | (*x / 34359738368u);
		*x *= 11507291218515648293u;
	}
	z = lane[1] + 11400714819323198485u;
	for (int turn = 0; turn < 2; turn++) {
		z = (z ^ z >> 30) * 13787848793156543929u;
		z = (z ^ z >> 27) * 10723151780598845931u;
		z ^= z >> 31;
		z ^= turn ? 0 : lane[0];
	}
	return z;
}

static void same_format(void)
{
	struct pen_ddict *d = open_sized("memory=8MiB");
	uint8_t *p, head[96] = { 0 };
	uint64_t at, sum;
	size_t n;

	fill(d);
	CHECK_EQ(pen_ddict_persist(d, FILE_NAME, NULL), 0);
	pen_ddict_close(d);
	p = slurp(&n);
	CHECK(!memcmp(p, "PENSHARD\1\0\0\0\0\20\0\0", 16));
	memcpy(head, p, 88);
	memcpy(&sum, p + 88, 8);
	CHECK_EQ(sum_of_version_1(head, sizeof(head)), sum);
	memcpy(&at, p + 64, 8);
	memcpy(&sum, p + 80, 8);
	if (CHECK(at <= n && (n - at) % 16 == 0))
		CHECK_EQ(sum_of_version_1(p + at, n - at), sum);
	pen__free(p);
}

/* A changed key is not found at its place in the index. */
static void damaged_key(void)
{
	const char *const set[] = { "restore=" FILE_NAME, "writable=true",
				    "memory=8MiB" };
	struct pen_ddict *d = open_sized("memory=8MiB");
	struct pen_err err = { 0 };
	uint8_t *p, *at;
	size_t n;

	CHECK_EQ(pen_ddict_put(d, text("a long key"), value("x", 1), NULL), 0);
	CHECK_EQ(pen_ddict_persist(d, FILE_NAME, NULL), 0);
	pen_ddict_close(d);
	p = slurp(&n);
	at = memmem(p, n, "a long key", 10);
	CHECK(at != NULL);
	if (at)
		at[3] ^= 1;
	spit(p, n);
	pen__free(p);
	CHECK_EQ(pen_ddict_open(&d, NULL, set, 3, &err), PEN_EDATA);
	CHECK(strstr(err.where, FILE_NAME) != NULL);
}

static int see_key(void *arg, struct pen_key k)
{
	(void)k;
	++*(uint64_t *)arg;
	return 0;
}

/* Values that still exist are returned, others are an error; never a signal,
 * never zeros that were not put. */
static void use_cut(struct pen_ddict *d, size_t n)
{
	static uint8_t buf[MOST + 16];
	struct pen_err err = { 0 };
	uint64_t seen = 0, turn;

	for (uint64_t i = 0; i < 40; i++) {
		struct pen_key k = num(i);
		uint64_t len = sizeof(buf);
		struct pen_got *g;
		int rc = pen_ddict_get(d, k, buf, &len, &err);

		CHECK_EQ(rc, PEN_ESTALE);
		CHECK(strstr(err.msg, "truncated") != NULL);
		CHECK(strstr(err.where, FILE_NAME) != NULL);
		rc = pen_ddict_get_many(d, &k, 1, &g, &err);
		CHECK_EQ(rc, PEN_ESTALE);
		if (!rc)
			CHECK(is_whole(g->values[0], i, &turn));
		CHECK_EQ(pen_ddict_contains(d, k, &err), PEN_ESTALE);
	}
	CHECK_EQ(pen_ddict_keys(d, -1, see_key, &seen, &err), PEN_ESTALE);
	CHECK_EQ(pen_ddict_persist(d, FILE_NAME ".4", &err), PEN_ESTALE);
	CHECK(access(FILE_NAME ".4", F_OK));
	CHECK_EQ(length(d), 41);
	CHECK_EQ(stats_of(d).total_bytes, n);
}

/* A file that is truncated, or emptied and rewritten, while it is mapped. */
static void cut_short(void)
{
	const char *const set[] = { "restore=" FILE_NAME };
	struct pen_ddict *d = open_sized("memory=8MiB");
	uint8_t *p, buf[MOST + 16];
	size_t n, to[8];

	for (uint64_t i = 0; i < 40; i++)
		CHECK_EQ(pen_ddict_put(d, num(i), made(i, 1, buf), NULL), 0);
	CHECK_EQ(pen_ddict_put(d, text("key"), value("x", 1), NULL), 0);
	CHECK_EQ(pen_ddict_persist(d, FILE_NAME, NULL), 0);
	pen_ddict_close(d);
	p = slurp(&n);
	to[0] = n - 16; /* within the last page: raises no signal */
	to[1] = (n - 1) & ~(size_t)4095;
	to[2] = n / 2;
	to[3] = 4096 + 100;
	to[4] = 4096;
	to[5] = 100;
	to[6] = 0;
	to[7] = n; /* 0, and the original size */
	for (int i = 0; i < 8; i++) {
		spit(p, n);
		d = open_with(set, 1);
		CHECK(has(d, text("key"), "x", 1));
		if (to[i] == n)
			CHECK_EQ(truncate(FILE_NAME, 0), 0);
		CHECK_EQ(truncate(FILE_NAME, (off_t)to[i]), 0);
		use_cut(d, n);
		pen_ddict_close(d);
	}
	pen__free(p);
}

/* Temporary files of a killed program are removed. */
static void left_over(void)
{
	const char *stale = FILE_NAME ".2000000000.tmp";
	struct pen_ddict *d = open_sized("memory=2MiB");
	int fd = open(stale, O_WRONLY | O_CREAT, 0600);

	CHECK(fd >= 0 && !close(fd));
	CHECK_EQ(pen_ddict_persist(d, FILE_NAME, NULL), 0);
	CHECK(access(stale, F_OK));
	pen_ddict_close(d);
}

/* The disk fills up in the middle of a save. */
static void no_room(void)
{
	struct rlimit was, low;
	struct pen_ddict *d = open_sized("memory=8MiB");
	uint8_t buf[MOST + 16];

	for (uint64_t i = 0; i < 2000; i++)
		CHECK_EQ(pen_ddict_put(d, num(i), value(buf, 100), NULL), 0);
	for (uint64_t i = 0; i < 2000; i += 2)
		CHECK_EQ(pen_ddict_pop(d, num(i), NULL, NULL), 0);
	signal(SIGXFSZ, SIG_IGN);
	CHECK_EQ(getrlimit(RLIMIT_FSIZE, &was), 0);
	for (rlim_t most = 4096; most < 120000; most += 4096) {
		low = was;
		low.rlim_cur = most;
		CHECK_EQ(setrlimit(RLIMIT_FSIZE, &low), 0);
		CHECK(pen_ddict_persist(d, FILE_NAME ".3", NULL) < 0);
		CHECK(access(FILE_NAME ".3", F_OK));
	}
	CHECK_EQ(setrlimit(RLIMIT_FSIZE, &was), 0);
	CHECK_EQ(pen_ddict_persist(d, FILE_NAME ".3", NULL), 0);
	pen_ddict_close(d);
	unlink(FILE_NAME ".3");
}

int main(void)
{
	round_trip();
	empty();
	damaged();
	same_format();
	damaged_key();
	cut_short();
	left_over();
	no_room();
	unlink(FILE_NAME);
	return test_end();
}
