/* Turns sums into the shares that the verdict compares. */
#include <math.h>

#include "verdict/verdict_int.h"

#define TICKS_S 0.2 /* enough of the kernel's 10 ms accounting ticks */

double pen__part(double a, double b)
{
	return a > 0 && b > 0 ? a / b : 0;
}

/* The prefetch queue is sometimes full and sometimes empty. The last batches of
 * a run leave the threads idle as well, so many batches are required. */
bool pen__bursts(const struct pen_weighed *w)
{
	const double *v = w->f->v;

	return v[PEN_BATCHES] >= 8 * v[PEN_PREFETCH] &&
	       v[PEN_READY] >= 0.25 * v[PEN_PREFETCH] * v[PEN_BATCHES];
}

static double some(double v)
{
	return v > 0 ? v : 0;
}

/* A thread that is neither on a CPU nor runnable sleeps. A thread with work
 * sleeps for reads, page faults of a mapping, or emulated preprocessing, which
 * is measured separately. A late wake-up from idling counts as waiting for a
 * CPU, so the time asleep is rather underestimated than overestimated. */
static void weigh_threads(struct pen_weighed *w)
{
	const double *v = w->f->v;
	const double idle = some(v[PEN_IDLE_S]);

	w->preprocess = some(v[PEN_PREPROCESS_S]);
	w->all = some(v[PEN_PLAN_S]) + some(v[PEN_OPEN_S]) +
		 some(v[PEN_READ_S]) + some(v[PEN_UNPACK_S]) +
		 some(v[PEN_DECODE_S]) + some(v[PEN_COPY_S]) + w->preprocess +
		 idle;
	w->idle = pen__part(idle, w->all);
	w->kernel = v[PEN_RUN_S] > 0 && v[PEN_QUEUE_S] >= 0;
	w->brief = v[PEN_SECONDS] < BRIEF_S;
	if (!w->kernel) {
		w->active = w->all - idle;
		return;
	}
	w->run = v[PEN_RUN_S];
	w->queue = v[PEN_QUEUE_S];
	w->asleep = some(w->all - idle - w->preprocess - w->run - w->queue);
	w->active = w->run + w->queue + w->asleep + w->preprocess;
}

/* A timed read may include waiting for a CPU: as long as reads waited on
 * average, or for the same share of its time as the threads. Only some reads
 * are timed, so the larger estimate is subtracted. */
static void weigh_reads(struct pen_weighed *w)
{
	const double *v = w->f->v;
	const double mean = v[PEN_TIMED_S] / v[PEN_TIMED_READS],
		     queued = fmax(
			     w->queue / v[PEN_READS],
			     mean * pen__part(w->queue, w->queue + w->asleep));

	w->best_s = v[PEN_BEST_READ_S];
	w->read_s = w->flight = NAN;
	if (!(v[PEN_TIMED_READS] > 0 && w->best_s > 0))
		return;
	w->read_s = fmax(w->best_s, mean - (queued > 0 ? queued : 0));
	w->flight = w->read_s * v[PEN_READS] / v[PEN_SECONDS];
}

/* Only known for a job that may use all CPUs of its machine. */
static double used_by_others(const double *v)
{
	const double all = v[PEN_CPU_ALL_S], used = all - v[PEN_CPU_IDLE_S] -
						    v[PEN_STEAL_S] -
						    v[PEN_CPU_S];

	if (!(v[PEN_HOST_S] >= TICKS_S) ||
	    !(fabs(v[PEN_CPU_ROOM_S] - all) < 0.1 * all))
		return NAN;
	return used / v[PEN_HOST_S];
}

void pen__weigh(const struct pen_facts *f, struct pen_weighed *w)
{
	const double *v = f->v;

	*w = (struct pen_weighed){ .f = f };
	weigh_threads(w);
	weigh_reads(w);
	w->lost = some(v[PEN_SECONDS] - some(v[PEN_COMPUTE_S]));
	w->spread = some(w->lost - some(v[PEN_WAIT_S]) - some(v[PEN_LATE_S]) -
			 some(v[PEN_BARRIER_S]));
	w->cached = pen__facts_cached(f);
	w->busy = NAN;
	if (isfinite(w->cached) && v[PEN_DISK_BUSY_S] >= 0)
		w->busy = v[PEN_DISK_BUSY_S] / v[PEN_HOST_S];
	w->pressure =
		pen__part(fmax(v[PEN_PRESSURE_CPU_S], v[PEN_PRESSURE_GROUP_S]),
			  v[PEN_HOST_S]);
	w->throttled = pen__part(v[PEN_THROTTLED_S], v[PEN_CPU_ROOM_S]);
	w->memory = pen__part(v[PEN_PRESSURE_MEMORY_S], v[PEN_HOST_S]);
	if (v[PEN_HOST_S] >= TICKS_S)
		w->steal = pen__part(v[PEN_STEAL_S], v[PEN_CPU_ALL_S]);
	w->own = pen__part(v[PEN_CPU_S], v[PEN_CPU_ROOM_S]);
	w->threads = v[PEN_THREADS_S] / v[PEN_HOST_S];
	w->cpus = v[PEN_CPU_ROOM_S] / v[PEN_HOST_S];
	w->each = pen__part(v[PEN_THREADS_S], v[PEN_SECONDS]);
	w->others = used_by_others(v);
}
