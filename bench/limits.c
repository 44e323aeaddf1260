/*
 * The limits of the machine: the loops that a loader would be if it had nothing
 * to decide. Plain C without any code of the library, so that the reference
 * cannot share its mistakes.
 *
 * Every loop first runs untimed passes (which fault in the pages and show how
 * long a pass takes), then as many complete passes as fill the requested time.
 * Each pass sums up one word of every sample; a sum that differs from that of a
 * plain pass in order is an error, so that no loop can omit samples.
 *
 * Prints one JSON line. Also generates the data sets that have too many files
 * or are too large for a script.
 */
#include "limits.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void die(const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "pen_limits: ");
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, "\n");
	exit(1);
}

void *need(size_t n, size_t size)
{
	void *p = NULL;

	if (n > SIZE_MAX / 2 / size ||
	    posix_memalign(&p, 4096, (n * size + 4095) & ~(size_t)4095))
		die("cannot allocate %zu x %zu bytes", n, size);
	memset(p, 1, n * size);
	return p;
}

void *need_huge(size_t n, size_t size)
{
	const size_t huge = 2 << 20, all = (n * size + huge) & ~(huge - 1);
	void *p = NULL;

	if (n > SIZE_MAX / 2 / size || posix_memalign(&p, huge, all))
		die("cannot allocate %zu x %zu bytes", n, size);
	madvise(p, all, MADV_HUGEPAGE);
	return p;
}

static double seconds_of(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double now(void)
{
	return seconds_of(CLOCK_MONOTONIC);
}

double cpu_now(void)
{
	return seconds_of(CLOCK_PROCESS_CPUTIME_ID);
}

uint64_t random_at(uint64_t seed, uint64_t n)
{
	uint64_t z = seed + (n + 1) * 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

uint64_t next_random(uint64_t *state)
{
	const uint64_t v = random_at(*state, 0);

	*state += 0x9e3779b97f4a7c15u;
	return v;
}

/* Every sample once, in an order that hardware prefetchers cannot predict. */
uint32_t *shuffled(uint32_t n)
{
	uint32_t *v = need(n, sizeof(*v));
	uint64_t state = 1;

	for (uint32_t i = 0; i < n; i++)
		v[i] = i;
	for (uint32_t i = n; i > 1; i--) {
		const uint32_t j = (uint32_t)(next_random(&state) % i);
		const uint32_t t = v[i - 1];

		v[i - 1] = v[j];
		v[j] = t;
	}
	return v;
}

uint64_t first_word(const void *p)
{
	uint64_t w;

	memcpy(&w, p, sizeof(w));
	return w;
}

struct worker {
	struct loop *loop;
	pthread_t thread;
	uint64_t sum;
	char *batch; /* reused: page faults would cost more than the copy */
};

static void *work(void *arg)
{
	struct worker *w = arg;
	struct loop *l = w->loop;
	const uint64_t per_pass = (l->nsamples + l->batch - 1) / l->batch;
	const uint64_t end = per_pass * l->npasses;
	uint64_t b;

	while ((b = atomic_fetch_add(&l->next, 1)) < end) {
		const uint32_t first = (uint32_t)(b % per_pass) * l->batch;
		const uint32_t left = l->nsamples - first;

		w->sum += l->body(l, &l->order[first],
				  left < l->batch ? left : l->batch, w->batch);
	}
	return NULL;
}

/* One timed run; returns the sum over all workers. */
static uint64_t run_once(struct loop *l, struct worker *w, uint64_t npasses,
			 double *seconds)
{
	uint64_t sum = 0;
	double start;

	l->npasses = npasses;
	atomic_store(&l->next, 0);
	start = now();
	for (unsigned i = 0; i < l->nthreads; i++) {
		w[i].sum = 0;
		w[i].loop = l;
		if (pthread_create(&w[i].thread, NULL, work, &w[i]))
			die("pthread_create failed");
	}
	for (unsigned i = 0; i < l->nthreads; i++) {
		pthread_join(w[i].thread, NULL);
		sum += w[i].sum;
	}
	*seconds = now() - start;
	return sum;
}

/* A CPU has a limited number of cache lines in flight: some are faster if only
 * the first lines of a later row are prefetched, some with all of them. */
static void choose_lead(struct loop *l, struct worker *w, double *took)
{
	const size_t all = l->lead;
	double less;

	l->lead = all < 256 ? all : 256;
	run_once(l, w, 1, &less);
	if (less < *took)
		*took = less;
	else
		l->lead = all;
}

void run_loop(struct loop *l, double seconds)
{
	struct worker *w = need(l->nthreads, sizeof(*w));
	uint64_t npasses;
	double took, cpu;

	for (unsigned i = 0; i < l->nthreads; i++)
		w[i].batch = need_huge(l->batch, l->row);
	/* times the second pass; the first has page faults */
	run_once(l, w, 1, &took);
	if (run_once(l, w, 1, &took) != l->expect)
		die("the content sum is wrong");
	if (l->lead)
		choose_lead(l, w, &took);
	npasses = (uint64_t)(seconds / (took > 1e-6 ? took : 1e-6)) + 1;
	cpu = cpu_now();
	if (run_once(l, w, npasses, &took) != l->expect * npasses)
		die("the content sum is wrong");
	printf("{\"samples\": %" PRIu64 ", \"seconds\": %.6f, "
	       "\"cpu_s\": %.6f}\n",
	       npasses * l->nsamples, took, cpu_now() - cpu);
}

/* run COMMAND...: time and memory of a command. In C because the kernel counts
 * the memory of the parent at the time of the fork. */
static void cmd_run(char **arg)
{
	const double start = now();
	const pid_t pid = fork();
	struct rusage u;
	int status;

	if (pid < 0)
		die("fork: %s", strerror(errno));
	if (pid == 0) {
		const int null = open("/dev/null", O_WRONLY);

		if (null >= 0)
			dup2(null, 1);
		execvp(arg[0], arg);
		die("%s: %s", arg[0], strerror(errno));
	}
	if (wait4(pid, &status, 0, &u) != pid)
		die("wait4: %s", strerror(errno));
	if (!WIFEXITED(status))
		die("%s was killed", arg[0]);
	if (WEXITSTATUS(status)) /* it has printed a message */
		exit(WEXITSTATUS(status));
	printf("{\"seconds\": %.6f, \"cpu_s\": %.6f, "
	       "\"peak_memory_bytes\": %ld}\n",
	       now() - start,
	       (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
		       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6,
	       u.ru_maxrss * 1024);
}

uint64_t number(const char *s)
{
	char *end;
	uint64_t v;

	errno = 0;
	v = strtoull(s, &end, 10);
	if (errno || end == s || *end || *s == '-')
		die("'%s' is not a number", s);
	return v;
}

double decimal(const char *s)
{
	char *end;
	const double v = strtod(s, &end);

	if (end == s || *end || v < 0)
		die("'%s' is not a number", s);
	return v;
}

static const struct {
	const char *name, *usage;
	int nargs; /* -1: one or more */
	void (*run)(char **arg);
} commands[] = {
	{ "rows", "FILE OFFSET ROW NROWS BATCH THREADS SECONDS", 7, cmd_rows },
	{ "decode", "KIND LIST ROW BATCH THREADS SECONDS", 6, cmd_decode },
	{ "cells", "MAP PATH dense|csr ROWS CHUNKS BATCH THREADS", 7,
	  cmd_cells },
	{ "tokens", "chars|vocab|dm FILE BATCH THREADS SECONDS", 5,
	  cmd_tokens },
	{ "direct", "FILE SIZE DEPTH THREADS SECONDS", 5, cmd_direct },
	{ "place", "FILE PROCESSES SECONDS", 3, cmd_place },
	{ "warm", "LIST", 1, cmd_warm },
	{ "scan", "DIR", 1, cmd_scan },
	{ "run", "COMMAND...", -1, cmd_run },
	{ "make_tiny", "DIR COUNT", 2, cmd_make_tiny },
	{ "make_random", "FILE BYTES", 2, cmd_make_random },
};

int main(int argc, char **argv)
{
	const size_t n = sizeof(commands) / sizeof(commands[0]);

	for (size_t i = 0; i < n && argc > 1; i++) {
		const int nargs = commands[i].nargs;

		if (strcmp(argv[1], commands[i].name) ||
		    (nargs < 0 ? argc < 3 : argc != nargs + 2))
			continue;
		commands[i].run(argv + 2);
		return 0;
	}
	for (size_t i = 0; i < n; i++)
		fprintf(stderr, "%s pen_limits %s %s\n",
			i ? "      " : "usage:", commands[i].name,
			commands[i].usage);
	return 2;
}
