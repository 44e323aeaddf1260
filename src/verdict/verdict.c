/* The decisions; see verdict.h. sentences.c puts them into words. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "verdict/verdict_int.h"

#define FULL 0.8    /* of the CPUs: this job uses them itself */
#define MOST 0.75   /* of the time: threads did little else */
#define LITTLE 0.1  /* of the time: not worth blaming */
#define CACHED 0.9  /* of the bytes: the device cannot be the cause */
#define SLOWER 0.25 /* of the time: one rank differs from the others */
#define QUEUE 4	    /* reads in flight: they may slow each other down */
#define BUSY 0.9    /* of the time: the device is saturated */

static double share(const struct pen_weighed *w, double part)
{
	return pen__part(part, w->active);
}

/* The threads got less than half of the CPU time they could have used. Threads
 * in excess of the CPUs wait for one another; that does not count. */
static bool others_have_cpus(const struct pen_weighed *w)
{
	const double wanted = w->run + w->queue, room = w->f->v[PEN_CPU_ROOM_S];
	const double most = room > 0 && room < wanted ? room : wanted;

	return w->run < HALF * most;
}

/* For documents without the kernel's accounting. */
static bool pressed(const struct pen_weighed *w)
{
	return !w->kernel && w->pressure >= HALF && w->own < HALF;
}

/* CPUs were taken away, or the consuming thread did not get one. */
static bool consumer_starved(const struct pen_weighed *w)
{
	const double *v = w->f->v;

	if (w->steal >= TAKEN || w->throttled >= TAKEN)
		if (!w->kernel || share(w, w->run + w->queue) >= HALF)
			return true;
	return w->f->training && w->own < FULL &&
	       pen__part(v[PEN_OWN_QUEUE_S], w->lost) >= HALF;
}

static bool loader_starved(const struct pen_weighed *w)
{
	return w->kernel && share(w, w->queue) >= HALF && others_have_cpus(w);
}

/* Threads sleep in reads: which limit of storage is it? */
static enum pen_cause storage(const struct pen_weighed *w)
{
	const double *v = w->f->v, ratio = w->read_s / w->best_s;

	if (w->memory >= TAKEN)
		return PEN_CAUSE_MEMORY;
	if (pen__part(v[PEN_CACHE_BYTES],
		      v[PEN_CACHE_BYTES] + v[PEN_READ_BYTES]) >= HALF)
		return PEN_CAUSE_CACHE;
	if (v[PEN_OPEN_S] > v[PEN_READ_S])
		return PEN_CAUSE_OPEN;
	if (w->cached >= CACHED)
		return PEN_CAUSE_UNKNOWN;
	if (ratio < ALONE || w->busy < HALF)
		return PEN_CAUSE_LATENCY;
	/* Reads that share the bandwidth slow down in proportion to their
	 * number. With few reads in flight that could be chance, and a page
	 * cache hit is faster than any queue explains. */
	if (w->flight >= QUEUE && ratio >= HALF * w->flight &&
	    ratio <= 2 * w->flight && !(w->busy < BUSY))
		return PEN_CAUSE_RATE;
	return PEN_CAUSE_STORAGE;
}

/* The stage that takes most CPU time. Reading is copying here, from the page
 * cache or from memory; opening files takes less than half. */
static enum pen_cause own_work(const struct pen_weighed *w)
{
	const double *v = w->f->v;
	const double stage[] = {
		v[PEN_COPY_S] +
			fmax(0, v[PEN_OPEN_S] + v[PEN_READ_S] - w->asleep),
		v[PEN_DECODE_S],
		v[PEN_UNPACK_S],
		v[PEN_PLAN_S],
	};
	static const enum pen_cause cause[] = { PEN_CAUSE_COPY,
						PEN_CAUSE_DECODE,
						PEN_CAUSE_UNPACK,
						PEN_CAUSE_PLAN };
	size_t most = 0;

	for (size_t i = 1; i < 4; i++)
		if (stage[i] > stage[most])
			most = i;
	if (w->kernel && w->threads < w->cpus - HALF &&
	    share(w, w->queue) < TAKEN)
		return PEN_CAUSE_THREADS;
	return cause[most];
}

/* Without the kernel's accounting only stage times are known, and they include
 * waiting for a CPU. */
static enum pen_cause by_stage(const struct pen_weighed *w)
{
	const double *v = w->f->v,
		     reading = v[PEN_READ_S] + fmax(0, v[PEN_OPEN_S]);

	if (share(w, reading) >= HALF && w->cached < HALF)
		return pressed(w) ? PEN_CAUSE_UNKNOWN : PEN_CAUSE_STORAGE;
	if (share(w, reading) >= HALF && !(w->cached >= CACHED))
		return PEN_CAUSE_UNKNOWN;
	if (pressed(w))
		return PEN_CAUSE_CPU;
	/* page faults of a mapping count as copying */
	if (!strcmp(w->f->store, "mmap") && !(w->cached >= CACHED))
		return PEN_CAUSE_UNKNOWN;
	return own_work(w);
}

/* Batches come in bursts, and using the idle time of the threads would make up
 * for at least half of the time lost. Otherwise the work itself costs more than
 * the gaps. */
static bool bursts_cost(const struct pen_weighed *w)
{
	return pen__bursts(w) &&
	       w->idle * w->f->v[PEN_SECONDS] >= HALF * w->lost;
}

/* Threads were idle and yet the consumer waited: more or faster threads would
 * not help. */
static enum pen_cause idle_threads(const struct pen_weighed *w)
{
	const double *v = w->f->v;
	const bool few = v[PEN_PREFETCH] * v[PEN_BATCH_ROWS] < w->each - HALF;

	if (pen__part(v[PEN_MEMORY_S], v[PEN_SECONDS]) >= HALF ||
	    (v[PEN_PREFETCH] < v[PEN_PREFETCH_WANTED] &&
	     (few || w->idle >= HALF)))
		return PEN_CAUSE_MEMORY;
	return few || bursts_cost(w) ? PEN_CAUSE_PREFETCH : PEN_CAUSE_UNKNOWN;
}

/* Batches are late: look at what the loader's threads did. */
static enum pen_cause of_loader(const struct pen_weighed *w)
{
	enum pen_cause held = PEN_CAUSE_UNKNOWN;

	if (!(w->all > 0))
		return PEN_CAUSE_UNKNOWN;
	if (w->idle >= TAKEN)
		held = idle_threads(w);
	if (held != PEN_CAUSE_UNKNOWN || w->idle >= HALF)
		return held;
	if (share(w, w->preprocess) >= HALF)
		return PEN_CAUSE_PREPROCESS;
	if (!w->kernel)
		return by_stage(w);
	if (share(w, w->f->v[PEN_OPEN_S]) >= HALF)
		return PEN_CAUSE_OPEN;
	if (share(w, w->asleep) >= HALF)
		return storage(w);
	if (share(w, w->run + w->queue) >= MOST)
		return own_work(w);
	return PEN_CAUSE_UNKNOWN;
}

/* Accelerators wait for data or for something else. */
static enum pen_cause of_training(const struct pen_weighed *w)
{
	const double *v = w->f->v;

	if (v[PEN_FIRST_S] >= HALF * w->lost &&
	    w->lost - v[PEN_FIRST_S] < LITTLE * v[PEN_SECONDS])
		return PEN_CAUSE_STARTUP;
	if (consumer_starved(w))
		return PEN_CAUSE_CPU;
	/* batches are late at times but not on average */
	if (bursts_cost(w) && v[PEN_WAIT_S] >= HALF * w->lost)
		return idle_threads(w);
	if (loader_starved(w))
		return PEN_CAUSE_CPU;
	if (w->spread >= HALF * w->lost)
		return PEN_CAUSE_STEPS;
	/* ranks that take turns waiting for one another wait for the data of
	 * other ranks or for longer steps */
	if (v[PEN_WAIT_S] < LITTLE * w->lost)
		return v[PEN_BARRIER_S] >= HALF * w->lost ? PEN_CAUSE_STEPS
							  : PEN_CAUSE_UNKNOWN;
	return of_loader(w);
}

static enum pen_cause cause_of(const struct pen_weighed *w)
{
	const double *v = w->f->v;

	if (!(v[PEN_SECONDS] > 0))
		return PEN_CAUSE_UNKNOWN;
	if (w->f->training && w->f->fed)
		return PEN_CAUSE_NONE;
	if (w->brief)
		return PEN_CAUSE_UNKNOWN;
	if (w->f->training)
		return of_training(w);
	if (v[PEN_WAIT_S] < HALF * v[PEN_SECONDS] && w->idle >= HALF)
		return PEN_CAUSE_CONSUMER;
	return consumer_starved(w) || loader_starved(w) ? PEN_CAUSE_CPU
							: of_loader(w);
}

/* ---- ranks ---- */

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Seconds of a rank without waiting for other ranks. */
static double own_time(const struct pen_facts *f)
{
	return f->v[PEN_SECONDS] - f->v[PEN_BARRIER_S];
}

/* Share of the loader's time spent idle. */
static double idle_share(const struct pen_facts *f)
{
	struct pen_weighed w;

	pen__weigh(f, &w);
	return w.idle;
}

/* The median over all ranks but one, of at least two ranks. */
static double median_without(const struct pen_facts *rank, int n, int without,
			     double (*of)(const struct pen_facts *))
{
	double *v = pen__calloc((size_t)n, sizeof(*v)), m;
	int k = 0;

	if (!v)
		return NAN;
	for (int i = 0; i < n; i++)
		if (i != without)
			v[k++] = of(&rank[i]);
	qsort(v, (size_t)k, sizeof(*v), by_value);
	m = k % 2 ? v[k / 2] : (v[k / 2 - 1] + v[k / 2]) / 2;
	pen__free(v);
	return m;
}

/*
 * Ranks that all wait for data alternate in being last, or one is always
 * slightly later. That rank is the cause only if the loaders of the other ranks
 * have time to spare.
 */
static bool others_could(const struct pen_facts *rank, int n, int slow,
			 double more_s)
{
	const struct pen_facts *f = &rank[slow];

	if (f->v[PEN_WAIT_S] < HALF * more_s)
		return true; /* something other than data is slow there */
	return median_without(rank, n, slow, idle_share) - idle_share(f) >=
	       SLOWER;
}

/* The rank that all others wait for, or -1. */
static int slow_rank(const struct pen_facts *all, const struct pen_facts *rank,
		     int n, double *others_s)
{
	double more_s;
	int slow = 0;

	if (!all->training || all->fed || n < 2)
		return -1;
	for (int i = 1; i < n; i++)
		if (own_time(&rank[i]) > own_time(&rank[slow]))
			slow = i;
	*others_s = median_without(rank, n, slow, own_time);
	more_s = own_time(&rank[slow]) - *others_s;
	if (more_s >= SLOWER * rank[slow].v[PEN_SECONDS] &&
	    others_could(rank, n, slow, more_s))
		return slow;
	return -1;
}

void pen__verdict(const struct pen_facts *all, const struct pen_facts *rank,
		  int nranks, struct pen_verdict *out)
{
	struct pen_verdict there;
	struct pen_weighed w;
	double others_s = 0;
	int slow = rank ? slow_rank(all, rank, nranks, &others_s) : -1;

	*out = (struct pen_verdict){ .rank = -1 };
	if (slow < 0) {
		pen__weigh(all, &w);
		pen__say(out, &w, cause_of(&w));
		return;
	}
	pen__verdict(&rank[slow], NULL, 0, &there);
	pen__say_rank(out, &there, slow, own_time(&rank[slow]), others_s);
}
