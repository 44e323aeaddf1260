/*
 * Slow reads: as many are in flight as there are threads, from the first read
 * to the last, so that a store that answers after 20 ms delivers N samples in
 * ceil(N / threads) x 20 ms.
 *
 * Time is simulated. The fault store sleeps by clock_nanosleep(), which is
 * defined here: a read ends when all reads that could be in flight at this
 * moment are in flight, and then the clock that the library sees advances by
 * the delay. The work between two reads takes no time on this clock, however
 * busy the machine is. Where reads are missing the clock stands still: after a
 * minute of that the test has failed and lets everything pass.
 */
#include <errno.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/team.h"
#include "engine.h"

#define NFILES 3200
#define STUCK_S 60

/* Reads one after another: those of the index, then those of samples. */
struct phase {
	uint64_t reads; /* not finished yet */
	unsigned width; /* that could be in flight; 0: they take no time */
	uint64_t ticks; /* they took */
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t moved;
	struct phase phase[3]; /* the last one is empty */
	unsigned at;
	unsigned flying;
	uint64_t now_ns, nticks;
	bool stuck;
} sim = { .lock = PTHREAD_MUTEX_INITIALIZER,
	  .moved = PTHREAD_COND_INITIALIZER };

int clock_gettime(clockid_t id, struct timespec *t)
{
	uint64_t ns;

	if (id != CLOCK_MONOTONIC)
		return (int)syscall(SYS_clock_gettime, id, t);
	ns = __atomic_load_n(&sim.now_ns, __ATOMIC_RELAXED) + 1000000000u;
	*t = (struct timespec){ (time_t)(ns / 1000000000u),
				(long)(ns % 1000000000u) };
	return 0;
}

/* n reads of this phase have finished. */
static void count(struct phase *p, unsigned n)
{
	if (!CHECK(p->reads >= n))
		return;
	p->reads -= n;
	sim.at += !p->reads;
}

static void tick(struct phase *p, uint64_t ns)
{
	const unsigned n = sim.flying;

	__atomic_store_n(&sim.now_ns, sim.now_ns + ns, __ATOMIC_RELAXED);
	sim.flying = 0;
	sim.nticks++;
	p->ticks++;
	count(p, n);
	pthread_cond_broadcast(&sim.moved);
}

static void await(uint64_t tick)
{
	struct timespec give_up;

	clock_gettime(CLOCK_REALTIME, &give_up);
	give_up.tv_sec += STUCK_S;
	while (sim.nticks == tick && !sim.stuck) {
		if (pthread_cond_timedwait(&sim.moved, &sim.lock, &give_up) !=
		    ETIMEDOUT)
			continue;
		fprintf(stderr, "%u reads in flight where %u could be\n",
			sim.flying, sim.phase[sim.at].width);
		sim.stuck = true;
		CHECK(!sim.stuck);
		pthread_cond_broadcast(&sim.moved);
	}
}

/* In parentheses: it is defined, not called. */
int(clock_nanosleep)(clockid_t id, int flags, const struct timespec *t,
		     struct timespec *rest)
{
	const uint64_t ns =
		(uint64_t)t->tv_sec * 1000000000u + (uint64_t)t->tv_nsec;
	struct phase *p;

	CHECK(id == CLOCK_MONOTONIC && !flags && rest);
	pthread_mutex_lock(&sim.lock);
	p = &sim.phase[sim.at];
	if (!p->width || sim.stuck)
		count(p, 1);
	else if (++sim.flying == (p->reads < p->width ? p->reads : p->width))
		tick(p, ns);
	else
		await(sim.nticks);
	pthread_mutex_unlock(&sim.lock);
	return 0;
}

static const struct eng_set files = { .name = "files",
				      .format = "npy",
				      .write = "samples=file",
				      .nfiles = NFILES,
				      .per_file = 1,
				      .field = { { .name = "x",
						   .dtype = PEN_F32,
						   .ndim = 1,
						   .shape = { 4 } } } };

/* What no thread can do without the others: the last reads may be fewer. */
static uint64_t arithmetic(uint64_t reads, unsigned width)
{
	return (reads + width - 1) / width;
}

/* Takes all batches of this many epochs. */
static void take(const char *settings, uint64_t epochs)
{
	struct pen_loader *l =
		eng_open(NULL, "%s store=fault store.delay=20ms epochs=%u",
			 settings, (unsigned)epochs);

	if (!CHECK(l))
		return;
	CHECK_EQ(eng_run(l, epochs, NULL, NULL), PEN_END);
	pen_loader_close(l);
}

/* This many reads to index, then this many of samples. */
static void load(unsigned threads, struct phase index, uint64_t reads,
		 uint64_t epochs, const char *settings)
{
	char text[ENG_TEXT];

	sim.phase[0] = index;
	sim.phase[1] = (struct phase){ reads, threads, 0 };
	sim.phase[2] = (struct phase){ 0 };
	sim.at = sim.flying = 0;
	snprintf(text, sizeof(text), "%s threads=%u", settings, threads);
	take(text, epochs);
	CHECK_EQ(sim.at, 2);
	CHECK_EQ(sim.phase[1].ticks, arithmetic(reads, threads));
	if (sim.stuck)
		fprintf(stderr, "  with %s\n", text);
	sim.stuck = false;
}

/* n samples of `files`, this many times. */
static void load_files(unsigned threads, uint64_t n, uint64_t epochs,
		       const char *more)
{
	const struct phase index = { NFILES, 0, 0 };
	char text[256];

	snprintf(text, sizeof(text), "files subset=0:%u %s", (unsigned)n, more);
	load(threads, index, n * epochs, epochs, text);
}

static void test_threads(void)
{
	static const unsigned threads[] = { 1, 2, 3, 8, 16, 31, 64 };
	static const char *const more[] = {
		"batch_size=1",
		"batch_size=7 sampler=shuffle",
		"batch_size=32",
		"batch_size=400",
		"batch_size=256 store.under=uring",
		"store.under=mmap",
	};

	for (size_t i = 0; i < sizeof(threads) / sizeof(*threads); i++)
		for (size_t k = 0; k < sizeof(more) / sizeof(*more); k++)
			load_files(threads[i], 50 * threads[i], 1, more[k]);
}

/* As a training job sets it: reader.prefetch_size batches, but at least as many
 * as threads, of reader.batch_size samples; tests/test_reader.c. */
static void test_training(void)
{
	static const struct {
		unsigned threads, prefetch, batch;
	} of[] = { { 2, 2, 1 },	  { 2, 2, 4 },	{ 4, 4, 1 },   { 4, 4, 7 },
		   { 8, 8, 1 },	  { 8, 8, 4 },	{ 8, 100, 4 }, { 1, 2, 4 },
		   { 64, 64, 1 }, { 64, 64, 2 } };
	char more[128];

	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
		snprintf(more, sizeof(more),
			 "prefetch=%u batch_size=%u sampler=shuffle tail=drop",
			 of[i].prefetch, of[i].batch);
		load_files(of[i].threads,
			   (uint64_t)50 * of[i].threads / of[i].batch *
				   of[i].batch,
			   2, more);
	}
}

/* Samples that take several reads, or are decompressed, parsed, or made from
 * shared units. */
static void test_formats(void)
{
	static const char *const set[] = { "npz_packed", "npz_shared",
					   "tfrecord", "csv" };
	static const unsigned threads[] = { 2, 8 };

	for (size_t i = 0; i < sizeof(set) / sizeof(*set); i++) {
		struct eng_set s = *eng_find(set[i]);
		struct phase count[2];
		char text[256];

		s.nfiles = 400;
		s.more = 0;
		eng_make(&s);
		/* no file is in two batches, or it may be read twice */
		snprintf(text, sizeof(text), "%s %s batch_size=%u", s.name,
			 s.read, 2 * s.per_file);
		for (unsigned k = 0; k < 2; k++) { /* reads of k + 1 epochs */
			sim.phase[0] = (struct phase){ UINT32_MAX, 0, 0 };
			sim.at = 0;
			take(text, k + 1);
			count[k] = sim.phase[0];
		}
		count[1].reads = count[0].reads - count[1].reads;
		count[0].reads = UINT32_MAX - count[0].reads - count[1].reads;
		for (unsigned k = 0; k < 2; k++)
			load(threads[k], count[0], count[1].reads * 2, 2, text);
	}
}

/* No thread waits for the end of an epoch. */
static void test_epochs(void)
{
	load_files(8, 401, 3, "batch_size=16");
}

/* Indexing has as many reads in flight as loading. With fewer threads each
 * takes several files at a time: with these numbers, all take equally many. */
static void test_index(void)
{
	static const unsigned threads[] = { 10, 25, 50, 64 };

	for (size_t i = 0; i < sizeof(threads) / sizeof(*threads); i++) {
		const unsigned n = threads[i];

		if (n < pen__cpus()) /* as many as there are CPUs */
			continue;
		load(n, (struct phase){ NFILES, n, 0 }, 400, 1,
		     "files subset=0:400");
		CHECK_EQ(sim.phase[0].ticks, arithmetic(NFILES, n));
	}
}

/* Many threads share the files that may be open. */
static void test_open_files(void)
{
	struct rlimit had, few;

	getrlimit(RLIMIT_NOFILE, &had);
	few = had;
	few.rlim_cur = 256;
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
	load_files(64, NFILES, 1, "");
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &had), 0);
}

int main(void)
{
	eng_start("latency");
	eng_make(&files);
	test_open_files();
	test_threads();
	test_training();
	test_formats();
	test_epochs();
	test_index();
	eng_end();
	return test_end();
}
