/*
 * Files: what listing finds and skips, patterns, open files, sinks; and how a
 * store is chosen, and objects that were never files.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "store/files.h"
#include "store/ram.h"
#include "test.h"

static char root[64];

static void make_file(const char *path, size_t n)
{
	const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	CHECK(fd >= 0);
	for (size_t i = 0; i < n; i++)
		CHECK_EQ(write(fd, "x", 1), 1);
	close(fd);
}

static struct pen_store *open_posix(void)
{
	struct pen_store *st = NULL;
	struct pen_err err;

	CHECK_EQ(pen__store_open(&st, "posix", NULL, 0, &err), 0);
	return st;
}

static bool only_npy(void *arg, const char *dir, const char *name)
{
	const size_t n = name ? strlen(name) : 0;

	(void)dir;
	*(unsigned *)arg += name != NULL;
	return n > 4 && strcmp(name + n - 4, ".npy") == 0;
}

/* The listed paths, sorted, one per line. */
static int list(const char *path, bool npy, char *out, size_t cap)
{
	struct pen_store *st = open_posix();
	struct pen_objects set = { 0 };
	struct pen_err err = { 0 };
	unsigned asked = 0;
	char buf[4200];
	int rc = st->ops->list(st, path, npy ? only_npy : NULL, &asked, &set,
			       &err);

	*out = '\0';
	pen__objects_sort(&set);
	for (uint32_t i = 0; i < set.nobj && !rc; i++) {
		const size_t n = strlen(out);

		CHECK(pen__object_path(&set, i, buf, sizeof(buf)));
		snprintf(out + n, cap - n, "%s\n", buf);
	}
	for (uint64_t i = 0; i < set.ndir && !rc; i++) {
		struct stat sb;

		CHECK_EQ(stat(set.names + set.dir[i].name, &sb), 0);
		CHECK_EQ(set.dir[i].ino, sb.st_ino);
		CHECK(set.dir[i].mtime_ns != 0);
	}
	if (rc) {
		CHECK_EQ(err.code, rc);
		CHECK(err.where[0] && err.msg[0]);
	}
	pen__objects_fini(&set);
	pen__store_close(st);
	return rc;
}

static void listed(const char *path, bool npy, const char *want)
{
	char out[2000];

	CHECK_EQ(list(path, npy, out, sizeof(out)), 0);
	CHECK_STR(out, want);
}

static void not_listed(const char *path, int code)
{
	char out[2000];

	CHECK_EQ(list(path, false, out, sizeof(out)), code);
}

static void make_tree(void)
{
	static const char *const dirs[] = { "t",   "t/a",    "t/a/deep",
					    "t/b", "t/.hid", "t/c.tmp",
					    "t/e" };
	static const char *const files[] = {
		"t/1.npy",   "t/2.txt",	      "t/a/1.npy", "t/a/deep/3.npy",
		"t/b/1.npy", "t/.hid/4.npy",  "t/.5.npy",  "t/6.npy.tmp",
		"t/7.npy~",  "t/c.tmp/8.npy", "t/[9].npy", "t/b/2.txt",
	};

	for (unsigned i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
		CHECK_EQ(mkdir(dirs[i], 0755), 0);
	for (unsigned i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		make_file(files[i], i + 1);
	CHECK_EQ(mkfifo("t/fifo.npy", 0644), 0);
	CHECK_EQ(symlink("../2.txt", "t/a/link.npy"), 0);
	CHECK_EQ(symlink("nowhere", "t/a/dangling.npy"), 0);
	CHECK_EQ(symlink("loop.npy", "t/a/loop.npy"), 0);
	CHECK_EQ(symlink("..", "t/a/up"), 0);
}

static void test_list(void)
{
	listed("t", true,
	       "t/1.npy\nt/[9].npy\nt/a/1.npy\nt/a/link.npy\n"
	       "t/a/deep/3.npy\nt/b/1.npy\n");
	listed("t", false,
	       "t/1.npy\nt/2.txt\nt/[9].npy\nt/a/1.npy\nt/a/link.npy\n"
	       "t/a/deep/3.npy\nt/b/1.npy\nt/b/2.txt\n");
	listed(".//t/./a/", true, "t/a/1.npy\nt/a/link.npy\nt/a/deep/3.npy\n");
	listed("t/a/up/b", true, "t/a/up/b/1.npy\n");
	listed("t/e", false, "");
	listed("t/2.txt", false, "t/2.txt\n");
	listed("t/2.txt", true, "");
	listed("t/.5.npy", true, "t/.5.npy\n");
	not_listed("t/none", PEN_ENOTFOUND);
	not_listed("t/2.txt/x", PEN_ENOTFOUND);
	not_listed("t/fifo.npy", PEN_ENOTSUP);
	not_listed("", PEN_EINVAL);
	CHECK_EQ(chdir("t/b"), 0);
	listed(".", false, "1.npy\n2.txt\n");
	listed("./1.npy", false, "1.npy\n");
	listed("*.npy", false, "1.npy\n");
	listed("../e/../b/*", false, "../e/../b/1.npy\n../e/../b/2.txt\n");
	CHECK_EQ(chdir("../.."), 0);
}

static void test_patterns(void)
{
	char out[2000], abs[256];

	listed("t/*.npy", false, "t/1.npy\nt/[9].npy\n");
	listed("t/[9].npy", false, "t/[9].npy\n"); /* there as it is */
	listed("t/?/1.npy", false, "t/a/1.npy\nt/b/1.npy\n");
	listed("t/[ab]/*.npy", false, "t/a/1.npy\nt/a/link.npy\nt/b/1.npy\n");
	listed("t/*/deep/*", false, "t/a/deep/3.npy\n");
	listed("t/a*", true, "t/a/1.npy\nt/a/link.npy\nt/a/deep/3.npy\n");
	listed("t/.h*/*", false, "t/.hid/4.npy\n");
	listed("t/a/u*/b/1.npy", false, "t/a/up/b/1.npy\n");
	listed("t/*.txt", true, ""); /* found, but not wanted */
	not_listed("t/*.jpg", PEN_ENOTFOUND);
	not_listed("none/*", PEN_ENOTFOUND);
	not_listed("t/2.txt/*", PEN_ENOTFOUND);
	not_listed("t/*/none", PEN_ENOTFOUND);
	CHECK(getcwd(abs, 200) != NULL);
	snprintf(abs + strlen(abs), sizeof(abs) - strlen(abs), "/t/b/*.txt");
	CHECK_EQ(list(abs, false, out, sizeof(out)), 0);
	CHECK(out[0] == '/' && strstr(out, "/t/b/2.txt\n"));
}

static void test_denied(void)
{
	if (geteuid() == 0)
		return; /* root has all permissions */
	CHECK_EQ(mkdir("t/shut", 0), 0);
	not_listed("t", PEN_EIO);
	CHECK_EQ(rmdir("t/shut"), 0);
}

/* Every directory visited is recorded, so that new files are noticed. */
static void test_dirs(void)
{
	struct pen_store *st = open_posix();
	struct pen_objects set = { 0 };

	CHECK_EQ(st->ops->list(st, "t/*/1.npy", NULL, NULL, &set, NULL), 0);
	pen__objects_sort(&set);
	CHECK_EQ(set.nobj, 2);
	CHECK_EQ(set.ndir, 4); /* t, t/a, t/b, and t/e which has none yet */
	pen__objects_fini(&set);
	CHECK_EQ(st->ops->list(st, "t", NULL, NULL, &set, NULL), 0);
	CHECK_EQ(st->ops->list(st, "t/", NULL, NULL, &set, NULL), 0);
	CHECK_EQ(st->ops->list(st, "t/a", NULL, NULL, &set, NULL), 0);
	pen__objects_sort(&set);
	CHECK_EQ(set.nobj, 8);
	CHECK_EQ(set.ndir, 5);
	pen__objects_fini(&set);
	pen__store_close(st);
}

#define NFILES 100u

static void make_many(struct pen_objects *set, struct pen_store *st)
{
	char name[32];

	CHECK_EQ(mkdir("m", 0755), 0);
	for (unsigned i = 0; i < NFILES; i++) {
		snprintf(name, sizeof(name), "m/%03u", i);
		make_file(name, i + 1);
	}
	CHECK_EQ(st->ops->list(st, "m", NULL, NULL, set, NULL), 0);
	pen__objects_sort(set);
	CHECK_EQ(set->nobj, NFILES);
}

static unsigned open_fds(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 1000; fd++)
		n += fcntl(fd, F_GETFD) != -1;
	return n;
}

static void test_cache(struct pen_store *st, unsigned cap)
{
	struct pen_files *fs = pen__calloc(1, sizeof(*fs));
	const unsigned before = open_fds();
	struct pen_file *f, *held[NFILES];
	uint64_t serial;
	int sys = 0;

	CHECK_EQ(pen__files_init(fs, st, cap, 0, NULL), 0);
	for (unsigned round = 0; round < 3; round++)
		for (uint32_t i = 0; i < NFILES; i++) {
			CHECK_EQ(pen__files_get(fs, i, &f, &sys), 0);
			CHECK_EQ(f->object, i);
			CHECK_EQ(lseek(f->fd, 0, SEEK_END), i + 1);
			pen__files_put(f);
		}
	CHECK(open_fds() <= before + cap + 1); /* one for the directory */
	/* a hit opens nothing, and what is reused stays */
	CHECK_EQ(pen__files_get(fs, 5, &f, &sys), 0);
	serial = f->serial;
	pen__files_put(f);
	for (uint32_t i = 10; cap > 1 && i < 90; i++) {
		CHECK_EQ(pen__files_get(fs, i, &f, &sys), 0);
		pen__files_put(f);
		CHECK_EQ(pen__files_get(fs, 5, &f, &sys), 0);
		CHECK_EQ(f->serial, serial);
		pen__files_put(f);
	}
	/* pinned files are never dropped */
	for (uint32_t i = 0; i < cap && i < NFILES; i++)
		CHECK_EQ(pen__files_get(fs, i, &held[i], &sys), 0);
	if (cap < NFILES)
		CHECK_EQ(pen__files_get(fs, cap, &f, &sys), PEN_END);
	for (uint32_t i = 0; i < cap && i < NFILES; i++) {
		CHECK_EQ(held[i]->object, i);
		CHECK_EQ(held[i]->pins, 1);
		pen__files_put(held[i]);
	}
	if (cap < NFILES) {
		CHECK_EQ(pen__files_get(fs, cap, &f, &sys), 0);
		pen__files_put(f);
	}
	pen__files_fini(fs);
	pen__free(fs);
	CHECK_EQ(open_fds(), before);
}

/* The process runs out of descriptors before the cache is full. */
static void test_few_fds(struct pen_store *st)
{
	struct pen_files *fs = pen__calloc(1, sizeof(*fs));
	const unsigned before = open_fds();
	struct rlimit old, few;
	struct pen_file *f, *held[NFILES];
	unsigned n = 0;
	int sys = 0, rc;

	CHECK_EQ(pen__files_init(fs, st, 64, 0, NULL), 0);
	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &old), 0);
	few = old;
	few.rlim_cur = before + 6;
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
	for (uint32_t i = 0; i < NFILES; i++) {
		CHECK_EQ(pen__files_get(fs, i, &f, &sys), 0);
		pen__files_put(f);
	}
	while ((rc = pen__files_get(fs, n, &held[n], &sys)) == 0)
		n++;
	CHECK_EQ(rc, PEN_END);
	CHECK(n >= 1 && n < 64);
	while (n)
		pen__files_put(held[--n]);
	CHECK_EQ(pen__files_get(fs, 50, &f, &sys), 0);
	pen__files_put(f);
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &old), 0);
	pen__files_fini(fs);
	pen__free(fs);
}

/* Descriptors the kernel has room for without growing its table. */
static unsigned long descriptors(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	unsigned long n = 0;
	char line[256];

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, "FDSize:", 7))
			n = strtoul(line + 7, NULL, 10);
	if (f)
		fclose(f);
	return n;
}

/* There is room for the files of all queues once the first is open. */
static void test_room(struct pen_store *st)
{
	struct pen_files *fs = pen__calloc(1, sizeof(*fs));
	const unsigned fds = open_fds();
	unsigned long most = 32 * 64;
	struct rlimit lim;

	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &lim), 0);
	most = lim.rlim_cur < most ? (unsigned long)lim.rlim_cur : most;
	st->nqueues = 32;
	CHECK_EQ(pen__files_init(fs, st, 64, 0, NULL), 0);
	CHECK(descriptors() >= most);
	CHECK_EQ(open_fds(), fds);
	st->nqueues = 0;
	pen__files_fini(fs);
	pen__free(fs);
}

static void test_stale(struct pen_store *st)
{
	struct pen_files *fs = pen__calloc(1, sizeof(*fs));
	struct pen_file *f;
	int sys = 0;

	CHECK_EQ(pen__files_init(fs, st, 4, 0, NULL), 0);
	make_file("m/003", 77);
	CHECK_EQ(pen__files_get(fs, 3, &f, &sys), PEN_ESTALE);
	CHECK_EQ(unlink("m/004"), 0);
	CHECK_EQ(pen__files_get(fs, 4, &f, &sys), PEN_ENOTFOUND);
	CHECK_EQ(sys, ENOENT);
	st->checks_stale = false;
	CHECK_EQ(pen__files_get(fs, 3, &f, &sys), 0);
	pen__files_put(f);
	st->checks_stale = true;
	pen__files_fini(fs);
	pen__free(fs);
}

static void test_open_files(void)
{
	struct pen_store *st = open_posix();
	struct pen_objects set = { 0 };

	make_many(&set, st);
	CHECK_EQ(pen__store_bind(st, &set, NULL), 0);
	test_room(st);
	test_cache(st, 1);
	test_cache(st, 2);
	test_cache(st, 13);
	test_cache(st, NFILES);
	st->max_open = 1; /* full paths then */
	test_cache(st, 7);
	test_few_fds(st);
	test_stale(st);
	pen__store_close(st);
	pen__objects_fini(&set);
}

/* Bytes written before are changed, buffered ones and others; none after. */
static void test_sink_patch(void)
{
	struct pen_store *st = open_posix();
	struct pen_err err = { 0 };
	char *big = calloc(1, 300000), got[8] = "";
	struct pen_sink *s;
	int fd;

	CHECK_EQ(pen__sink_open(&s, st, "patched", &err), 0);
	CHECK_EQ(pen__sink_write(s, "abcdefgh", 8, &err), 0);
	CHECK_EQ(st->ops->sink_patch(s, 2, "XY", 2, &err), 0);
	CHECK_EQ(pen__sink_write(s, big, 300000, &err), 0);
	CHECK_EQ(pen__sink_write(s, "tail", 4, &err), 0);
	CHECK_EQ(st->ops->sink_patch(s, 6, "ZZZ", 3, &err), 0);
	CHECK_EQ(st->ops->sink_patch(s, 300008, "TAIL", 4, &err), 0);
	CHECK_EQ(st->ops->sink_patch(s, 300009, "TAIL", 4, &err), PEN_EINVAL);
	CHECK_EQ(st->ops->sink_patch(s, UINT64_MAX, "T", 1, &err), PEN_EINVAL);
	CHECK_EQ(pen__sink_close(s, true, &err), 0);
	fd = open("patched", O_RDONLY);
	CHECK_EQ(pread(fd, got, 8, 0), 8);
	CHECK(memcmp(got, "abXYefZZ", 8) == 0);
	CHECK_EQ(pread(fd, got, 8, 8), 8);
	CHECK(memcmp(got, "Z\0\0\0\0\0\0\0", 8) == 0);
	CHECK_EQ(pread(fd, got, 8, 300008), 4);
	CHECK(memcmp(got, "TAIL", 4) == 0);
	close(fd);
	unlink("patched");
	free(big);
	pen__store_close(st);
}

/* A full device: the message gives the missing space, nothing stays behind. */
static void test_sink_errors(void)
{
	struct pen_store *st = open_posix();
	struct rlimit old, small;
	struct pen_sink *s;
	struct pen_err err;

	CHECK_EQ(pen__sink_open(&s, st, "k/", &err), PEN_EINVAL);
	CHECK_EQ(pen__sink_open(&s, st, "t/2.txt/x/y", &err), PEN_ENOTFOUND);
	CHECK_EQ(pen__sink_open(&s, st, "k/l/m", &err), 0);
	/* writing past the file size limit fails like a full disk */
	CHECK_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
	small = old;
	small.rlim_cur = 4096;
	signal(SIGXFSZ, SIG_IGN);
	CHECK_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
	CHECK_EQ(pen__sink_write(s, root, sizeof(root), &err), 0);
	CHECK_EQ(s->written, sizeof(root));
	{
		char *big = calloc(1, 1 << 20);

		CHECK_EQ(pen__sink_write(s, big, 1 << 20, &err), PEN_EIO);
		CHECK_EQ(err.sys, EFBIG);
		free(big);
	}
	CHECK_EQ(pen__sink_close(s, true, &err), PEN_EIO);
	CHECK_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);
	CHECK_EQ(access("k/l/m", F_OK), -1);
	CHECK_EQ(rmdir("k/l"), 0); /* so it is empty */
	pen__store_close(st);
}

static void test_unknown(void)
{
	const struct pen_opts_kv kv = { "no_such", "1" };
	struct pen_store *st;
	struct pen_err err;

	CHECK_EQ(pen__store_open(&st, "posxi", NULL, 0, &err), PEN_EINVAL);
	CHECK(strstr(err.msg, "posix"));
	CHECK_EQ(pen__store_open(&st, "posix", &kv, 1, &err), PEN_EINVAL);
	CHECK_EQ(pen__store_open(&st, "fault", &kv, 1, &err), PEN_EINVAL);
	CHECK(!pen__store_find("x"));
	CHECK(pen__store_find("posix") && pen__store_find("null"));
}

static void test_ram_put(void)
{
	struct pen_store *st;
	struct pen_objects set = { 0 };
	struct pen_queue *q;
	char buf[8] = "";

	CHECK_EQ(pen__store_open(&st, "ram", NULL, 0, NULL), 0);
	CHECK_EQ(pen__ram_put(st, "b", "old", 3, NULL), 0);
	CHECK_EQ(pen__ram_put(st, "x/a", "12345", 5, NULL), 0);
	CHECK_EQ(pen__ram_put(st, "b", "newer", 5, NULL), 0);
	CHECK_EQ(pen__ram_put(st, "c", NULL, 0, NULL), 0);
	CHECK_EQ(st->ops->list(st, "ram:", NULL, NULL, &set, NULL), 0);
	pen__objects_sort(&set);
	CHECK_EQ(set.nobj, 3);
	CHECK_EQ(pen__store_bind(st, &set, NULL), 0);
	CHECK_EQ(pen__queue_open(&q, st, 1, NULL), 0);
	CHECK_EQ(pen__queue_read(q, 0, 0, buf, 5, NULL), 0);
	CHECK_STR(buf, "newer");
	CHECK_EQ(pen__queue_read(q, 2, 1, buf, 4, NULL), 0);
	CHECK_STR(buf, "2345r");
	pen__queue_close(q);
	pen__store_close(st);
	pen__objects_fini(&set);
}

/* Data in the page cache: small files stay mapped; for larger ones the mapped
 * pages would count as memory of this process, without benefit. */
static void test_pick(void)
{
	struct pen_objects set = { .nobj = 2000 };

	set.total_bytes = set.nobj * 16384;
	CHECK_STR(pen__store_pick(&set, true, false, 16384, 1).name, "mmap");
	set.total_bytes = set.nobj * 114788;
	CHECK_STR(pen__store_pick(&set, true, false, 114788, 1).name, "posix");
	CHECK_STR(pen__store_pick(&set, false, false, 1024, 1).name, "mmap");
	CHECK_STR(pen__store_pick(&set, false, true, 1024, 1).name, "posix");
}

/* A store without sinks says so. */
static void test_read_only(void)
{
	struct pen_store *st = open_posix();
	struct pen_store_ops ops = *st->ops;
	struct pen_err err = { 0 };
	struct pen_sink *s;

	ops.sink_open = NULL;
	st->ops = &ops;
	CHECK_EQ(pen__sink_open(&s, st, "new/file", &err), PEN_ENOTSUP);
	CHECK(strstr(err.msg, "cannot be written to") != NULL);
	CHECK(access("new", F_OK) != 0);
	pen__store_close(st);
}

int main(void)
{
	snprintf(root, sizeof(root), "test_files.XXXXXX");
	if (!mkdtemp(root) || chdir(root))
		return 1;
	make_tree();
	test_list();
	test_patterns();
	test_denied();
	test_dirs();
	test_open_files();
	test_sink_errors();
	test_sink_patch();
	test_read_only();
	test_unknown();
	test_pick();
	test_ram_put();
	if (chdir("..") == 0) {
		char cmd[128];

		snprintf(cmd, sizeof(cmd), "rm -rf ./%s", root);
		CHECK_EQ(system(cmd), 0);
	}
	return test_end();
}
