/*
 * The index and its cache: a cached index is reused only while nothing has
 * changed. Whatever happens to the files or to the cache, the result is right
 * or an error, never wrong. And data that changes under a loader is an error of
 * the samples it hit.
 */
#include <ctype.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "engine.h"

#define OPEN "%s %s index_cache=cache batch_size=4 "

static const struct eng_set *set; /* of the current test */

/* Everything is old, so that nothing counts as just changed. */
static int age_one(const char *path, const struct stat *sb, int kind,
		   struct FTW *at)
{
	struct timespec t[2] = { { .tv_sec = 1500000000 },
				 { .tv_sec = 1500000000 } };

	(void)sb;
	(void)kind;
	(void)at;
	return utimensat(AT_FDCWD, path, t, AT_SYMLINK_NOFOLLOW);
}

static void age(void)
{
	CHECK_EQ(nftw(set->name, age_one, 16, FTW_PHYS), 0);
}

/* Loads all of it and checks every value; returns whether the cache was
 * used. */
static bool from_cache(uint64_t want)
{
	struct pen_err err;
	struct pen_loader *l = eng_open(&err, OPEN, set->name, set->read);
	struct pen_batch *b;
	uint64_t n = 0;
	bool cached;

	if (!CHECK(l)) {
		fprintf(stderr, "  %s: %s\n", err.where, err.msg);
		return false;
	}
	cached = l->ds->ix.from_cache;
	while (pen_loader_next(l, &b, &err) == 0) {
		CHECK(eng_right(set, l->ds, b));
		n += b->nsamples;
		pen_batch_unref(b);
	}
	CHECK_EQ(err.code, 0);
	CHECK_EQ(n, want);
	pen_loader_close(l);
	return cached;
}

/* Builds and saves it, until a second one finds it. */
static void keep(uint64_t want)
{
	age();
	from_cache(want);
	CHECK(from_cache(want));
}

static void test_changes(void)
{
	uint64_t total = eng_total(set);
	char path[128], moved[] = "moved";
	struct timespec t[2] = { { .tv_sec = 1400000000 },
				 { .tv_sec = 1400000000 } };

	eng_remove("cache");
	age();
	CHECK(!from_cache(total));
	CHECK(from_cache(total));
	/* one removed, and restored */
	eng_file_name(set, set->nfiles - 1, path, sizeof(path));
	CHECK_EQ(rename(path, moved), 0);
	CHECK(!from_cache(total - eng_in_file(set, set->nfiles - 1)));
	CHECK_EQ(rename(moved, path), 0);
	CHECK(!from_cache(total));
	keep(total);
	/* touched */
	CHECK_EQ(utimensat(AT_FDCWD, path, t, 0), 0);
	CHECK(!from_cache(total));
	CHECK(from_cache(total));
	/* a new, empty directory */
	snprintf(path, sizeof(path), "%s/new", set->name);
	CHECK_EQ(mkdir(path, 0755), 0);
	CHECK(!from_cache(total));
	keep(total);
	CHECK_EQ(rmdir(path), 0);
	keep(total);
}

/* Rewritten in place with another number of samples. */
static void test_rewritten(void)
{
	struct eng_set longer = *set;
	uint64_t total = eng_total(set);
	char path[128];

	eng_file_name(set, 0, path, sizeof(path));
	keep(total);
	longer.per_file += 3;
	eng_make_file(&longer, 0); /* by rename: the folder changes */
	eng_make_file(set, 0);
	keep(total);
	if (strcmp(set->format, "raw") == 0) {
		struct stat sb;

		/* grown in place, which the folder does not show */
		CHECK_EQ(stat(path, &sb), 0);
		CHECK_EQ(truncate(path, sb.st_size * 2), 0);
		age();
		CHECK_EQ(truncate(path, sb.st_size), 0);
		CHECK(!from_cache(total));
	}
	keep(total);
}

static void cache_file(char *buf, size_t cap)
{
	DIR *d = opendir("cache");
	struct dirent *e;

	buf[0] = '\0';
	while (d && (e = readdir(d)) != NULL)
		if (strstr(e->d_name, ".idx"))
			snprintf(buf, cap, "cache/%s", e->d_name);
	closedir(d);
}

/* A new file: one that is truncated and refilled goes to disk. */
static void spill(const char *path, const uint8_t *p, size_t n)
{
	int fd;

	unlink(path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0644);
	CHECK_EQ(write(fd, p, n), n);
	close(fd);
}

static bool opens_from_cache(void)
{
	char text[ENG_TEXT];
	struct pen_dataset *ds = NULL;
	struct pen_spec *spec;
	bool cached;

	snprintf(text, sizeof(text), OPEN, set->name, set->read);
	CHECK_EQ(eng_spec(&spec, text, NULL), 0);
	CHECK_EQ(pen_dataset_open(&ds, spec, NULL), 0);
	CHECK_EQ(pen_dataset_nsamples(ds), eng_total(set));
	cached = ds->ix.from_cache;
	pen_dataset_close(ds);
	pen_spec_free(spec);
	return cached;
}

static void test_damaged_cache(void)
{
	static uint8_t good[16384], bad[16384];
	char path[300];
	ssize_t n;
	int fd;

	eng_remove("cache");
	keep(eng_total(set));
	cache_file(path, sizeof(path));
	fd = open(path, O_RDONLY);
	n = read(fd, good, sizeof(good));
	close(fd);
	CHECK(n > 100 && n < (ssize_t)sizeof(good));
	for (ssize_t i = 0; i < n;
	     i = (ssize_t)test_next_place((size_t)i, (size_t)n)) {
		memcpy(bad, good, (size_t)n);
		bad[i] ^= (uint8_t)(1 << i % 8);
		spill(path, bad, (size_t)n);
		CHECK(!opens_from_cache());
	}
	for (ssize_t i = 0; i <= n; i += i < 200 ? 1 : 37) {
		spill(path, good, (size_t)i);
		CHECK(i == n || !opens_from_cache());
	}
	memcpy(bad, good, (size_t)n);
	spill(path, bad, (size_t)n + 1);
	CHECK(!opens_from_cache());
	spill(path, good, (size_t)n);
	CHECK(opens_from_cache());
	/* not a file at all, and none that could be written */
	unlink(path);
	CHECK_EQ(mkdir(path, 0755), 0);
	CHECK(!opens_from_cache());
	CHECK(!opens_from_cache());
}

/* Complete, with the right checksums, but not usable by its format: as if an
 * older version had written it. */
static void test_foreign_cache(void)
{
	struct pen_dataset *ds;
	struct pen_loader *l;
	struct pen_err err;
	uint64_t n;
	uint8_t *blobs;

	set = eng_find("npy_first");
	eng_remove("cache");
	keep(eng_total(set));
	l = eng_open(&err, OPEN, set->name, set->read);
	if (!CHECK(l && l->ds->ix.from_cache))
		return;
	ds = l->ds;
	n = ds->ix.blob_off[ds->ix.pub.nblobs];
	blobs = ds->ix.blobs;
	ds->ix.blobs = calloc(1, n);
	CHECK_EQ(pen__cache_save(&ds->ix, ds->cache_dir, &ds->key, &err), 0);
	free(ds->ix.blobs);
	ds->ix.blobs = blobs;
	pen_loader_close(l);
	CHECK(!from_cache(eng_total(set)));
	CHECK(from_cache(eng_total(set)));
}

/* Defined here to count calls: names are compared with suffixes by it. */
static unsigned ncompared;

int strcasecmp(const char *a, const char *b)
{
	ncompared++;
	while (*a && tolower((unsigned char)*a) == tolower((unsigned char)*b)) {
		a++;
		b++;
	}
	return tolower((unsigned char)*a) - tolower((unsigned char)*b);
}

/* A cached index knows its format: a million names are not examined one by
 * one. */
static void test_names(void)
{
	static const char *const sets[] = { "npy_file", "npy_first" };
	unsigned n[2];

	for (unsigned i = 0; i < 2; i++) {
		struct pen_loader *l;

		set = eng_find(sets[i]);
		eng_remove("cache");
		keep(eng_total(set));
		ncompared = 0;
		l = eng_open(NULL, OPEN, set->name, set->read);
		n[i] = ncompared;
		pen_loader_close(l);
	}
	CHECK(eng_find(sets[0])->nfiles > 2 * eng_find(sets[1])->nfiles);
	CHECK_EQ(n[0], n[1]);
}

static int always(void *arg)
{
	(void)arg;
	return 1;
}

/* One builds while others wait; what a crash left behind locks out no
 * process. */
static void test_lock(void)
{
	const struct pen_index_key key = { 1, 2 };
	const char *path = "cache/00000000000000010000000000000002.idx.lock";
	const struct pen_stop stop = { always, NULL };
	bool waited;
	int a, b;

	a = pen__cache_lock("cache", &key, NULL, &waited);
	CHECK(a >= 0 && !waited);
	CHECK_EQ(access(path, F_OK), 0);
	b = pen__cache_lock("cache", &key, &stop, &waited);
	CHECK(b < 0);
	pen__cache_unlock(b, "cache", &key);
	pen__cache_unlock(a, "cache", &key);
	CHECK(access(path, F_OK) != 0);
	a = open(path, O_RDWR | O_CREAT, 0600);
	CHECK(a >= 0 && !close(a));
	a = pen__cache_lock("cache", &key, NULL, &waited);
	CHECK(a >= 0 && !waited);
	pen__cache_unlock(a, "cache", &key);
	CHECK(pen__cache_lock("/proc/no/cache", &key, NULL, &waited) < 0);
}

static void test_other_options(void)
{
	struct pen_loader *l;
	struct pen_err err;

	set = eng_find("npy_first");
	eng_remove("cache");
	keep(eng_total(set));
	l = eng_open(&err, "npy_first format.samples=file index_cache=cache");
	CHECK(l && !l->ds->ix.from_cache);
	CHECK_EQ(pen_dataset_nsamples(l->ds), set->nfiles);
	pen_loader_close(l);
	/* the same folder under another name has other paths in its errors */
	l = eng_open(&err, "./npy_first %s index_cache=cache", set->read);
	CHECK(l && !l->ds->ix.from_cache);
	pen_loader_close(l);
	CHECK(from_cache(eng_total(set)));
	/* a cache directory that cannot be created costs only time */
	l = eng_open(&err, "npy_first %s index_cache=/proc/none", set->read);
	CHECK(l && !l->ds->ix.from_cache);
	CHECK_EQ(eng_run(l, 1, NULL, &err), PEN_END);
	pen_loader_close(l);
}

/* Just changed: it could change again within one tick of the clock. */
static void test_racy(void)
{
	struct timespec now[2];

	set = eng_find("npy_file");
	eng_remove("cache");
	clock_gettime(CLOCK_REALTIME, &now[0]);
	now[0].tv_sec += 5;
	now[1] = now[0];
	age();
	CHECK_EQ(utimensat(AT_FDCWD, "npy_file/c1", now, 0), 0);
	CHECK(!from_cache(eng_total(set)));
	CHECK(!from_cache(eng_total(set)));
	keep(eng_total(set));
}

/* ---- data that changes under a loader ---- */

static const struct eng_set rows = {
	.name = "rows",
	.format = "raw",
	.read = "format.shape=4096",
	.nfiles = 1,
	.per_file = 600,
	.field = { { .name = "x",
		     .dtype = PEN_U8,
		     .ndim = 1,
		     .shape = { 4096 } } },
};

/* A mapped file that shrinks: pages past its end are gone. */
static void test_shrinks(const char *policy, const char *store, off_t to)
{
	struct pen_err err = { 0 };
	struct pen_batch *b;
	struct pen_loader *l;
	struct pen_stats st;
	uint64_t n = 0;
	char path[128];
	int rc;

	eng_make(&rows);
	eng_file_name(&rows, 0, path, sizeof(path));
	l = eng_open(&err,
		     "rows %s batch_size=8 prefetch=2 threads=2 "
		     "on_error=%s %s",
		     rows.read, policy, store);
	if (!CHECK(l))
		return;
	CHECK_EQ(pen_loader_next(l, &b, &err), 0);
	pen_batch_unref(b);
	CHECK_EQ(truncate(path, to), 0);
	while ((rc = pen_loader_next(l, &b, &err)) == 0) {
		n += b->nsamples;
		pen_batch_unref(b);
	}
	pen_loader_stats(l, &st, sizeof(st));
	if (strcmp(policy, "fail") == 0) {
		CHECK(rc < 0 && strstr(err.where, path));
	} else {
		CHECK_EQ(rc, PEN_END);
		CHECK(st.nskipped > 0);
		CHECK_EQ(n + st.nskipped, 592);
	}
	pen_loader_close(l);
}

/* Replaced or modified between indexing and opening. */
static void test_stale(const char *store, bool same_size)
{
	struct pen_err err = { 0 };
	struct pen_loader *l;
	char path[128];
	int rc;

	set = eng_find("npy_file");
	eng_make(set);
	age();
	/* at most two batches are made, so the last file is not open yet */
	l = eng_open(&err, "npy_file %s batch_size=1 prefetch=1 threads=1 %s",
		     set->read, store);
	eng_file_name(set, set->nfiles - 1, path, sizeof(path));
	if (!CHECK(l))
		return;
	if (same_size)
		eng_make_file(set, set->nfiles - 1);
	else
		CHECK_EQ(truncate(path, 3), 0);
	rc = eng_run(l, 1, NULL, &err);
	CHECK_EQ(rc, PEN_ESTALE);
	CHECK_STR(err.where, path);
	CHECK_EQ(l->nbatches, set->nfiles - 1);
	pen_loader_close(l);
}

int main(void)
{
	static const char *const sets[] = { "npy_file", "raw", "npz_shared",
					    "npy_first" };

	eng_start("index");
	for (size_t i = 0; i < 4; i++) {
		set = eng_find(sets[i]);
		eng_make(set);
		test_changes();
		if (set->per_file > 1)
			test_rewritten();
		if (i % 2) /* one with equal files, one without */
			test_damaged_cache();
	}
	test_foreign_cache();
	test_names();
	test_lock();
	test_other_options();
	test_racy();
	test_shrinks("fail", "store=mmap", 0);
	test_shrinks("skip", "store=mmap", 0);
	test_shrinks("skip", "store=mmap sampler=shuffle", 4096 * 100);
	test_shrinks("substitute", "store=mmap", 4096 * 100);
	test_shrinks("fail", "store=posix", 4096 * 100);
	test_shrinks("skip", "store=posix", 4096 * 100);
	test_shrinks("skip", "store=uring", 4096 * 100);
	test_stale("store=posix", false);
	test_stale("store=posix", true);
	test_stale("store=mmap", true);
	eng_end();
	return test_end();
}
