/*
 * The reader keys as loader settings: the loader gets what was requested, or
 * there is an error. Also data that several runs open once.
 */
#include <dirent.h>
#include <sys/syscall.h>
#include <time.h>

#include "emulate/data.h"
#include "runs.h"

/* The loader settings of a workload; NULL: see err. */
static struct pen_spec *spec_of(const char *args, struct pen_err *err)
{
	struct pen_spec *s = NULL;
	struct done d;

	*err = (struct pen_err){ 0 };
	if (!CHECK_EQ(runs_settle(&d, "default_small", "none", args), 0) ||
	    !CHECK_EQ(pen_spec_new(&s, err), 0))
		return NULL;
	d.r.rec.naccel = (unsigned)d.c.accelerators;
	if (pen__reader_spec(s, &d.r, PEN_TRAIN, 1, err)) {
		pen_spec_free(s);
		s = NULL;
	}
	runs_end(&d);
	return s;
}

/* Threads and prefetch depth are per accelerator. */
static void test_threads(void)
{
	struct pen_err err;
	struct pen_spec *s;

	s = spec_of("accelerators=160\nreader.read_threads=16", &err);
	if (CHECK(s)) {
		CHECK_EQ(pen_spec_number(s, "threads"), 2560);
		CHECK_EQ(pen_spec_number(s, "prefetch"), 2560);
	}
	pen_spec_free(s);
	s = spec_of("accelerators=64\nreader.prefetch_size=100", &err);
	if (CHECK(s)) {
		CHECK_EQ(pen_spec_number(s, "threads"), 64);
		CHECK_EQ(pen_spec_number(s, "prefetch"), 6400);
	}
	pen_spec_free(s);
	s = spec_of("accelerators=4096\nreader.read_threads=17", &err);
	CHECK(!s);
	CHECK_EQ(err.code, PEN_ENOMEM);
	CHECK_STR(err.where, "reader.read_threads");
}

/* Counts delays of the fault store, which take no time, and directory listings.
 * In parentheses: defined, not called. */
static atomic_uint nreads, nlistings;

int(clock_nanosleep)(clockid_t id, int flags, const struct timespec *t,
		     struct timespec *rest)
{
	if (flags)
		return (int)syscall(SYS_clock_nanosleep, id, flags, t, rest);
	atomic_fetch_add(&nreads, 1);
	return 0;
}

ssize_t getdents64(int fd, void *buf, size_t cap)
{
	atomic_fetch_add(&nlistings, 1);
	return syscall(SYS_getdents64, fd, buf, cap);
}

static void run_over(struct pen_opened *opened, const char *more,
		     unsigned reads, bool lists)
{
	char args[256];
	struct done d;

	snprintf(args, sizeof(args),
		 "loader.store=fault\nloader.store.delay=1ms\n"
		 "dataset.format=npy\ntrain.epochs=2\n"
		 "train.computation_time=0\n%s",
		 more);
	if (!CHECK_EQ(runs_settle(&d, "default_small", "once", args), 0))
		return;
	d.r.opened = opened;
	d.r.probe = true;
	nreads = nlistings = 0;
	d.rc = pen__run(&d.r, &d.err);
	runs_fine(&d, more);
	if (!CHECK_EQ(nreads, reads) || !CHECK_EQ(nlistings > 0, lists))
		fprintf(stderr, "  with %s\n", more);
	runs_end(&d);
}

/* 8 files are indexed with 8 reads, and a sample of each is read twice. */
static void test_opened(void)
{
	struct pen_opened opened = { 0 };

	run_over(NULL, "workflow.generate_data=true", 24, true);
	run_over(&opened, "", 24, true);
	run_over(&opened, "accelerators=2", 16, false);
	run_over(&opened,
		 "accelerators=4\nreader.page_cache=drop\ntrain.epochs=1", 8,
		 false);
	/* different options may give different data */
	run_over(&opened, "loader.store.truncate=100000", 24, true);
	pen__opened_fini(&opened);
	run_over(&opened, "", 24, true);
	pen__opened_fini(&opened);
}

int main(void)
{
	runs_begin();
	test_threads();
	test_opened();
	runs_remove("");
	return test_end();
}
