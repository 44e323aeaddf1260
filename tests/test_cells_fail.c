/*
 * Writers of single cells when something fails: memory, the disk, the last
 * sync. Nothing remains under the final name or next to it, and libhdf5 keeps
 * working until the process ends.
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "cells_made.h"

/* Simulates a full disk: files may not grow beyond this; 0: no limit. */
static void limit_files(rlim_t most)
{
	static struct rlimit had;
	struct rlimit small;

	if (!had.rlim_max) {
		getrlimit(RLIMIT_FSIZE, &had);
		signal(SIGXFSZ, SIG_IGN);
	}
	small = had;
	small.rlim_cur = most;
	setrlimit(RLIMIT_FSIZE, most ? &small : &had);
}

/* Replace those of the C library: nothing here has to survive a crash, and
 * directories can be made to fail. */
static bool dirs_do_not_sync;

int fsync(int fd)
{
	struct stat sb;

	if (!dirs_do_not_sync || fstat(fd, &sb) || !S_ISDIR(sb.st_mode))
		return 0;
	errno = EIO;
	return -1;
}

int syncfs(int fd)
{
	(void)fd;
	return 0;
}

static unsigned entries(const char *dir)
{
	DIR *d = opendir(dir);
	const struct dirent *e;
	unsigned n = 0;

	while (d && (e = readdir(d)))
		n += e->d_name[0] != '.';
	if (d)
		closedir(d);
	return n;
}

static void test_nomem(const char *name, const char *settings)
{
	char dir[96], path[160];
	struct pen_err err;
	struct cells c;
	int rc = PEN_ENOMEM;

	if (!can(name, settings))
		return;
	snprintf(dir, sizeof(dir), "%s/nomem", golden_dir);
	mkdir(dir, 0777);
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	cells_init(&c, 40, 30, true);
	for (uint64_t n = 1; rc && n < 3000; n += 1 + n / 48) {
		err = (struct pen_err){ 0 };
		pen__mem_fail_nth(n, false);
		rc = write_cells(&c, path, settings, 17, &err);
		pen__mem_fail_nth(0, false);
		/* an attribute's list of names is reported as a failure of
		 * libhdf5 */
		CHECK(!rc || rc == PEN_ENOMEM || rc == PEN_EIO);
		CHECK_EQ(entries(dir), rc ? 0 : 1);
	}
	CHECK_EQ(rc, 0);
	cells_fini(&c);
	nftw(dir, golden_unlink, 16, FTW_DEPTH | FTW_PHYS);
}

/* The disk is full at any point. libhdf5 would abort when the file is closed
 * or the process ends. */
static void test_full(const char *name, const char *settings)
{
	char dir[96], path[160];
	struct pen_err err = { 0 };
	struct stat sb;
	struct cells c;

	if (!can(name, settings))
		return;
	snprintf(dir, sizeof(dir), "%s/full", golden_dir);
	mkdir(dir, 0777);
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	cells_init(&c, 700, 300, true);
	CHECK_EQ(write_cells(&c, path, settings, 64, &err), 0);
	CHECK_EQ(stat(path, &sb), 0);
	if (S_ISDIR(sb.st_mode))
		sb.st_size = 20001;
	for (off_t most = sb.st_size - 1; most > 0; most -= 4096) {
		nftw(path, golden_unlink, 16, FTW_DEPTH | FTW_PHYS);
		err = (struct pen_err){ 0 };
		limit_files((rlim_t)most);
		CHECK(write_cells(&c, path, settings, 64, &err) < 0);
		limit_files(0);
		CHECK_STR(err.where, path);
		CHECK(strstr(err.msg, "File too large") != NULL);
		CHECK_EQ(entries(dir), 0);
		if (S_ISDIR(sb.st_mode))
			break;
	}
	/* libhdf5 still works afterwards */
	CHECK_EQ(write_cells(&c, path, settings, 64, &err), 0);
	cells_fini(&c);
	nftw(dir, golden_unlink, 16, FTW_DEPTH | FTW_PHYS);
}

/* The very last step. */
static void test_sync(const char *name)
{
	char path[160];
	struct pen_err err = { 0 };
	struct cells c;

	if (!can(name, ""))
		return;
	snprintf(path, sizeof(path), "%s/%s", golden_dir, name);
	cells_init(&c, 40, 30, true);
	dirs_do_not_sync = true;
	CHECK_EQ(write_cells(&c, path, "", 17, &err), PEN_EIO);
	dirs_do_not_sync = false;
	CHECK_STR(err.where, path);
	CHECK(strstr(err.msg, "its directory cannot be synced") != NULL);
	CHECK(access(path, F_OK) == 0);
	cells_fini(&c);
	nftw(path, golden_unlink, 16, FTW_DEPTH | FTW_PHYS);
}

#ifdef __SANITIZE_ADDRESS__ /* the memory of the sanitizer cannot be limited   \
			     */
#define test_removed(name)
#else
/* Takes all memory of this process except what it already has. */
static void take_all_memory(void)
{
	const struct rlimit none = { 0, 0 };

	setrlimit(RLIMIT_AS, &none);
	for (size_t n = (size_t)1 << 20; n >= 16; n /= 2) {
		void *volatile p;

		do
			p = malloc(n);
		while (p); /* NOLINT(clang-analyzer-unix.Malloc): on purpose */
	}
}

/* A file that is given up is removed even if no memory is left. */
static void test_removed(const char *name)
{
	char dir[96], path[160];
	struct pen_err err = { 0 };
	int status = -1;
	pid_t pid;

	snprintf(dir, sizeof(dir), "%s/removed", golden_dir);
	mkdir(dir, 0777);
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	pid = fork();
	if (pid == 0) {
		struct some *s = calloc(1, sizeof(*s));
		struct pen_opts_kv kv = { "compression", "none" };
		struct pen_cells_writer *w;
		struct cells c;

		cells_init(&c, 40, 30, true);
		some_fill(&c, s, 0, 17);
		if (pen__cells_writer_open(&w, pen__cells_writer_for(path),
					   path, &c.spec,
					   (struct pen_opts){ &kv, 1 }, &err) ||
		    pen__cells_writer_rows(w, &s->r, &err))
			_exit(1);
		take_all_memory();
		pen__cells_writer_close(w);
		_exit(0);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	CHECK_EQ(status, 0);
	CHECK_EQ(entries(dir), 0);
	nftw(dir, golden_unlink, 16, FTW_DEPTH | FTW_PHYS);
}
#endif

int main(void)
{
	snprintf(golden_dir, sizeof(golden_dir), "cells-fail-%d",
		 (int)getpid());
	if (mkdir(golden_dir, 0777))
		return 1;
	atexit(golden_remove);
	test_full("f.h5ad", "");
	test_full("f.h5ad", "compression=gzip,level=1,threads=2");
	test_full("f.zarr", "compression=none,chunk=8000");
	test_full("f.zarr", "version=3,shard=1000,compression=none");
	test_sync("s.zarr");
	test_sync("s.h5ad");
	test_removed("x.zarr");
	test_nomem("n.h5ad", "threads=1");
	test_nomem("n.h5ad", "compression=gzip,shuffle=true,threads=1");
	test_nomem("n.zarr", "threads=1");
	test_nomem("n.zarr", "version=3,shard=10,compression=zstd,threads=1");
	return test_end();
}
