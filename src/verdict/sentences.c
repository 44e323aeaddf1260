/* The sentences of a verdict: every cause with the figures that support it. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/show.h"
#include "verdict/verdict_int.h"

#define SMALL_READ 65536.0
#define ADD(to, ...) add(to, sizeof(to), __VA_ARGS__)

static void add(char *to, size_t cap, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static void add(char *to, size_t cap, const char *fmt, ...)
{
	const size_t n = strlen(to);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(to + n, cap - n, fmt, ap);
	va_end(ap);
}

/* Separates parts of the evidence. */
static void part(char *to, size_t cap)
{
	if (to[0])
		add(to, cap, "; ");
}

static struct pen_shown share_of(double a, double b)
{
	return pen__show_share(pen__part(a, b));
}

static struct pen_shown active_share(const struct pen_weighed *w, double part)
{
	return share_of(part > 1e-6 * w->active ? part : 0, w->active);
}

/* Prefix of loader settings in a workload. */
static const char *own_prefix(const struct pen_weighed *w)
{
	return w->f->training ? "loader." : "";
}

/* The setting has a different name in a workload. */
static const char *threads_key(const struct pen_weighed *w)
{
	return w->f->training ? "reader.read_threads=" : "threads=";
}

/* ---- the CPU ---- */

static void say_own_cpus(char *to, size_t cap, const struct pen_weighed *w)
{
	const double *v = w->f->v, own = w->own * w->cpus, cpus = rint(w->cpus);

	if (!(v[PEN_CPU_ROOM_S] > 0 && v[PEN_HOST_S] > 0))
		return;
	part(to, cap);
	add(to, cap, own < 10 ? "this job used %.2g" : "this job used %.0f",
	    own);
	/* an integer unless a quota applies; clocks differ a little */
	add(to, cap, " of %.4g CPU%s",
	    fabs(w->cpus - cpus) < 0.03 * cpus ? cpus : w->cpus,
	    w->cpus > 1.01 ? "s" : "");
	if (w->others >= 0.05 * w->cpus)
		add(to, cap, ", other processes %.2g", w->others);
}

static void say_cpu(struct pen_verdict *o, const struct pen_weighed *w)
{
	const double *v = w->f->v, wanted = w->run + w->queue;
	char *to = o->evidence;
	const size_t cap = sizeof(o->evidence);

	if (w->throttled >= TAKEN)
		ADD(o->what, "The CPU quota of the control group is exhausted");
	else if (w->steal >= TAKEN)
		ADD(o->what, "The hypervisor withholds CPU time");
	else
		ADD(o->what, "Other processes occupy the CPUs");
	/* the kernel counts stolen time as time on a CPU */
	if (w->kernel && w->steal < TAKEN)
		add(to, cap,
		    "the loader's threads were runnable for %s and had a CPU "
		    "for %s of that",
		    pen__show_time(wanted).s, share_of(w->run, wanted).s);
	if (v[PEN_OWN_QUEUE_S] > 0.1 * w->lost) {
		part(to, cap);
		add(to, cap, "the consumer thread waited %s for a CPU",
		    pen__show_time(v[PEN_OWN_QUEUE_S]).s);
	}
	if (w->throttled >= TAKEN) {
		part(to, cap);
		add(to, cap, "the group was throttled for %s of the time",
		    pen__show_share(w->throttled).s);
	}
	if (w->steal >= TAKEN) {
		part(to, cap);
		add(to, cap, "%s of the CPU time was stolen",
		    pen__show_share(w->steal).s);
	}
	if (w->pressure > 0) {
		part(to, cap);
		add(to, cap, "CPU pressure was %s",
		    pen__show_share(w->pressure).s);
	}
	say_own_cpus(to, cap, w);
	if (w->throttled >= TAKEN)
		ADD(o->advice, "Raise the quota. ");
	else if (w->steal >= TAKEN)
		ADD(o->advice, "Use a machine without noisy neighbours. ");
	else
		ADD(o->advice,
		    "Stop the other processes, or reserve CPUs for this job. ");
	ADD(o->advice, "Faster storage will not help.");
}

/* The two stages that take most CPU time. */
static void say_stages(char *to, size_t cap, const struct pen_weighed *w)
{
	const double *v = w->f->v;
	const struct {
		const char *name;
		double s;
	} stage[] = {
		{ "decoding", v[PEN_DECODE_S] },
		{ "decompressing", v[PEN_UNPACK_S] },
		{ "copying", v[PEN_COPY_S] },
		{ "reading from memory", fmax(0, v[PEN_READ_S] - w->asleep) },
		{ "opening files", v[PEN_OPEN_S] },
		{ "planning", v[PEN_PLAN_S] },
	};
	const size_t n = sizeof(stage) / sizeof(stage[0]);
	size_t first = 0, second = n;
	double sum = 0;

	for (size_t i = 0; i < n; i++) {
		sum += stage[i].s > 0 ? stage[i].s : 0;
		if (stage[i].s > stage[first].s)
			first = i;
	}
	for (size_t i = 0; i < n; i++)
		if (i != first && (second == n || stage[i].s > stage[second].s))
			second = i;
	add(to, cap, "%s takes %s of the work", stage[first].name,
	    share_of(stage[first].s, sum).s);
	if (stage[second].s > 0.1 * sum)
		add(to, cap, " (%s %s)", stage[second].name,
		    share_of(stage[second].s, sum).s);
}

static void say_cached(char *to, size_t cap, const struct pen_weighed *w)
{
	if (w->cached > 0.5)
		add(to, cap, "; %s of the bytes came from the page cache",
		    pen__show_share(w->cached).s);
}

/* How the threads spent their working time. */
static void say_times(char *to, size_t cap, const struct pen_weighed *w)
{
	if (!w->kernel)
		return;
	part(to, cap);
	add(to, cap, "the loader's threads were on a CPU for %s",
	    active_share(w, w->run).s);
	if (pen__part(w->queue, w->active) >= 0.1)
		add(to, cap, ", waiting for a CPU for %s",
		    active_share(w, w->queue).s);
	add(to, cap, " and waiting for storage for %s of their working time",
	    active_share(w, w->asleep).s);
}

/* Each read costs more than copying its bytes. */
static bool small_reads(const struct pen_weighed *w)
{
	const double *v = w->f->v;

	return v[PEN_READ_BYTES] < SMALL_READ * v[PEN_READS];
}

static bool reads_files(const struct pen_weighed *w)
{
	return !strcmp(w->f->store, "posix") || !strcmp(w->f->store, "uring");
}

static void say_copied(struct pen_verdict *o, const struct pen_weighed *w)
{
	const double *v = w->f->v;

	say_cached(o->evidence, sizeof(o->evidence), w);
	if (small_reads(w))
		ADD(o->evidence, "; the mean read size is %s",
		    pen__show_bytes(v[PEN_READ_BYTES] / v[PEN_READS]).s);
	ADD(o->advice, "Storage is not the bottleneck: use more CPUs");
	if (!small_reads(w))
		ADD(o->advice, ", or smaller samples.");
	else if (reads_files(w) && w->cached >= 0.9)
		ADD(o->advice,
		    ", or %sstore=mmap, which reads without system calls.",
		    own_prefix(w));
	else
		ADD(o->advice, ".");
}

static void say_work(struct pen_verdict *o, const struct pen_weighed *w)
{
	static const struct {
		const char *what, *advice;
	} of[PEN_NCAUSES] = {
		[PEN_CAUSE_DECODE] = { "The bottleneck is decoding",
				       "Use more CPUs, or data that is cheaper "
				       "to decode: smaller images, or arrays "
				       "that are already decoded." },
		[PEN_CAUSE_UNPACK] = { "The bottleneck is decompression",
				       "Use more CPUs, or cheaper compression "
				       "(lz4, zstd at a low level, none)." },
		[PEN_CAUSE_COPY] = { "The bottleneck is copying", "" },
		[PEN_CAUSE_PLAN] = { "The bottleneck is choosing the samples",
				     "Use a cheaper sampler, or larger "
				     "samples." },
	};

	ADD(o->what, "%s", of[o->cause].what);
	say_stages(o->evidence, sizeof(o->evidence), w);
	say_times(o->evidence, sizeof(o->evidence), w);
	say_own_cpus(o->evidence, sizeof(o->evidence), w);
	if (o->cause == PEN_CAUSE_COPY)
		say_copied(o, w);
	ADD(o->advice, "%s", of[o->cause].advice);
}

static void say_threads(struct pen_verdict *o, const struct pen_weighed *w)
{
	ADD(o->what,
	    "There are too few threads: all are busy and CPUs are idle");
	ADD(o->evidence, "%s for %.3g CPUs, on a CPU for %s of the time; ",
	    pen__show_counted((uint64_t)fmax(1, round(w->threads)), "thread").s,
	    w->cpus, share_of(w->run, w->all).s);
	say_stages(o->evidence, sizeof(o->evidence), w);
	ADD(o->advice, "Raise %s until there are as many threads as CPUs.",
	    threads_key(w));
}

/* ---- storage ---- */

static void say_device(char *to, size_t cap, const struct pen_weighed *w)
{
	const double *v = w->f->v;

	if (isfinite(w->busy) && v[PEN_DISK_READS] > 0)
		add(to, cap,
		    "; %s was busy for %s of the time, at %s per request and "
		    "%s/s",
		    w->f->device, share_of(v[PEN_DISK_BUSY_S], v[PEN_HOST_S]).s,
		    pen__show_time(v[PEN_DISK_WAIT_S] / v[PEN_DISK_READS]).s,
		    pen__show_bytes(v[PEN_DISK_BYTES] / v[PEN_HOST_S]).s);
}

static void say_reads(char *to, size_t cap, const struct pen_weighed *w)
{
	const double *v = w->f->v;
	const bool stages = !w->kernel;

	add(to, cap, "the loader's threads spent %s of their working time %s",

	    active_share(w, stages ? v[PEN_READ_S] + fmax(0, v[PEN_OPEN_S])
				   : w->asleep)
		    .s,
	    stages ? "reading" : "waiting for reads");
	if (pen__part(w->queue, w->active) >= 0.1)
		add(to, cap, " and %s waiting for a CPU",
		    active_share(w, w->queue).s);
	if (w->read_s > 0)
		add(to, cap,
		    "; a read takes %s (%s at best), with about %.0f in flight",
		    pen__show_time(w->read_s).s, pen__show_time(w->best_s).s,
		    fmax(1, w->flight));
}

/* How to get more reads in flight. Threads need samples to read: a training job
 * prefetches more when it has more threads, a plain loader must be told to. */
static void say_flight(struct pen_verdict *o, const struct pen_weighed *w)
{
	const double *v = w->f->v;
	const bool tight = !w->f->training &&
			   v[PEN_PREFETCH] * v[PEN_BATCH_ROWS] <=
				   w->each + HALF;

	ADD(o->advice, "raise %s%s", threads_key(w),
	    tight ? " and prefetch=" : "");
	if (!strcmp(w->f->store, "uring"))
		ADD(o->advice, ", or %squeue_depth=", own_prefix(w));
	else if (!strcmp(w->f->store, "posix"))
		ADD(o->advice, ", or use %sstore=uring", own_prefix(w));
}

static void say_open(struct pen_verdict *o, const struct pen_weighed *w)
{
	const double *v = w->f->v;

	ADD(o->what, "The bottleneck is opening files");
	ADD(o->evidence,
	    "opening takes %s of the threads' working time, "
	    "reading %s",
	    active_share(w, v[PEN_OPEN_S]).s, active_share(w, v[PEN_READ_S]).s);
	say_times(o->evidence, sizeof(o->evidence), w);
	say_own_cpus(o->evidence, sizeof(o->evidence), w);
	say_device(o->evidence, sizeof(o->evidence), w);
	ADD(o->advice, "Store many samples in one file");
	if (reads_files(w) && w->cached >= 0.9)
		ADD(o->advice,
		    ", or use %sstore=mmap, which opens each file once",
		    own_prefix(w));
	ADD(o->advice, ".");
	if (pen__part(w->asleep, w->active) >= TAKEN)
		ADD(o->advice, " Raising %s also helps.", threads_key(w));
}

static void say_storage(struct pen_verdict *o, const struct pen_weighed *w)
{
	const double *v = w->f->v;

	say_reads(o->evidence, sizeof(o->evidence), w);
	if (o->cause == PEN_CAUSE_LATENCY) {
		ADD(o->what, "The bottleneck is storage latency");
		ADD(o->evidence, "%s",
		    w->read_s < ALONE * w->best_s ? ", so reads do not queue"
						  : "");
		ADD(o->advice, "Keep more reads in flight: ");
		say_flight(o, w);
		ADD(o->advice, ".");
	} else if (o->cause == PEN_CAUSE_RATE) {
		ADD(o->what, "The bottleneck is storage bandwidth");
		ADD(o->evidence, ": they share %s/s",
		    pen__show_bytes(v[PEN_READ_BYTES] / v[PEN_HOST_S]).s);
		ADD(o->advice,
		    "Use faster storage, or read fewer bytes (compression, "
		    "smaller samples, a cache). More threads will not help.");
	} else {
		ADD(o->what, "The bottleneck is storage");
		ADD(o->advice, "Keep more reads in flight: ");
		say_flight(o, w);
		ADD(o->advice, ". If the throughput does not rise, storage is "
			       "at its limit.");
	}
	say_device(o->evidence, sizeof(o->evidence), w);
}

static void say_cache(struct pen_verdict *o, const struct pen_weighed *w)
{
	const double *v = w->f->v;

	ADD(o->what,
	    "The bottleneck is access to the memory of other ranks (cache=)");
	ADD(o->evidence,
	    "the loader's threads waited for %s of their working time, and %s "
	    "of the bytes came from the cache",
	    active_share(w, w->asleep).s,
	    share_of(v[PEN_CACHE_BYTES], v[PEN_CACHE_BYTES] + v[PEN_READ_BYTES])
		    .s);
	ADD(o->advice, "`penstock ddict bench` measures the transport between "
		       "the ranks; cache.width= keeps replicas closer.");
}

/* ---- prefetching ---- */

static void say_memory(struct pen_verdict *o, const struct pen_weighed *w)
{
	const double *v = w->f->v;

	if (w->memory >= TAKEN) {
		ADD(o->what, "The machine is short of memory");
		ADD(o->evidence,
		    "all processes stalled on memory for %s of the time",
		    pen__show_share(w->memory).s);
		ADD(o->advice, "Free some memory, or lower memory=.");
		return;
	}
	ADD(o->what, "The loader's memory budget is too small");
	if (v[PEN_PREFETCH] < v[PEN_PREFETCH_WANTED])
		ADD(o->evidence,
		    "it allows a prefetch depth of %.0f batch%s, and %.0f were "
		    "wanted; ",
		    v[PEN_PREFETCH], v[PEN_PREFETCH] > 1 ? "es" : "",
		    v[PEN_PREFETCH_WANTED]);
	else
		ADD(o->evidence,
		    "planning waited for memory for %s of the time; ",
		    share_of(v[PEN_MEMORY_S], v[PEN_SECONDS]).s);
	ADD(o->evidence, "the loader's threads were idle for %s of their time",
	    pen__show_share(w->idle).s);
	ADD(o->advice, "Raise %smemory=, or lower the batch size.",
	    own_prefix(w));
}

/* Mean number of batches that were ready on request, capped at the prefetch
 * depth. */
static double ready_mean(const struct pen_weighed *w)
{
	const double *v = w->f->v;

	return fmin(v[PEN_READY] / v[PEN_BATCHES], v[PEN_PREFETCH]);
}

static void say_ready(char *to, size_t cap, const struct pen_weighed *w)
{
	const double *v = w->f->v;

	if (v[PEN_BATCHES] > 0 && v[PEN_READY] >= 0 && v[PEN_PREFETCH] > 0)
		add(to, cap, "; on average %.1f of %.0f batches were ready",
		    ready_mean(w), v[PEN_PREFETCH]);
}

static void say_prefetch(struct pen_verdict *o, const struct pen_weighed *w)
{
	const double *v = w->f->v;

	ADD(o->advice, "Raise %s.",
	    w->f->training ? "reader.prefetch_size=" : "prefetch=");
	if (pen__bursts(w)) {
		ADD(o->what, "Batches come in bursts, and the prefetch depth "
			     "is too small to bridge the gaps");
		ADD(o->evidence,
		    "the consumer waited for %s of the time, although on "
		    "average %.1f of %.0f batches were ready and the loader's "
		    "threads were idle for %s of their time",
		    share_of(v[PEN_WAIT_S], v[PEN_SECONDS]).s, ready_mean(w),
		    v[PEN_PREFETCH], pen__show_share(w->idle).s);
		if (pen__part(w->queue, w->active) >= HALF)
			ADD(o->evidence,
			    "; they waited for a CPU for %s of their working "
			    "time",
			    active_share(w, w->queue).s);
		return;
	}
	ADD(o->what, "The prefetch depth is too small to occupy the threads");
	ADD(o->evidence,
	    "the prefetch depth is %.0f batch%s of %s, for %.0f threads, which "
	    "were idle for %s of their time",
	    v[PEN_PREFETCH], v[PEN_PREFETCH] > 1 ? "es" : "",
	    pen__show_counted((uint64_t)v[PEN_BATCH_ROWS], "sample").s, w->each,
	    pen__show_share(w->idle).s);
}

/* ---- the consumer ---- */

static void say_consumer(struct pen_verdict *o, const struct pen_weighed *w)
{
	const double *v = w->f->v;
	const double first = v[PEN_FIRST_S] > 0 ? v[PEN_FIRST_S] : 0;

	if (o->cause == PEN_CAUSE_NONE)
		ADD(o->what, "Storage and loader keep up");
	else
		ADD(o->what, "The consumer is slower than the loader");
	ADD(o->evidence, "%swaited for %s of the time",
	    first > 0 ? "after the first batch, the consumer "
		      : "the consumer ",
	    share_of(v[PEN_WAIT_S] - first, v[PEN_SECONDS] - first).s);
	say_ready(o->evidence, sizeof(o->evidence), w);
	if (w->all > 0)
		ADD(o->evidence,
		    "; the loader's threads were idle for %s of their time",
		    pen__show_share(w->idle).s);
}

static void say_startup(struct pen_verdict *o, const struct pen_weighed *w)
{
	const double *v = w->f->v;

	ADD(o->what, "Most of the wait is for the first batch");
	ADD(o->evidence, "it took %s, of %s lost in total",
	    pen__show_time(v[PEN_FIRST_S]).s, pen__show_time(w->lost).s);
	ADD(o->advice, "Run more steps or epochs before drawing conclusions.");
}

static void say_steps(struct pen_verdict *o, const struct pen_weighed *w)
{
	const double *v = w->f->v;

	ADD(o->what,
	    "Steps differ in length, and accelerators wait for one another");
	ADD(o->evidence,
	    "%s of the time was spent waiting for other ranks, %s waiting for "
	    "accelerators of the same rank, and %s waiting for data",
	    share_of(v[PEN_BARRIER_S], v[PEN_SECONDS]).s,
	    share_of(w->spread, v[PEN_SECONDS]).s,
	    share_of(v[PEN_WAIT_S], v[PEN_SECONDS]).s);
	ADD(o->advice, "Storage and loader cannot change this: "
		       "train.computation_time sets the length of a step.");
}

static void say_unknown(struct pen_verdict *o, const struct pen_weighed *w)
{
	const double *v = w->f->v;

	if (w->brief)
		ADD(o->what,
		    "The run was too short to identify the bottleneck");
	else
		ADD(o->what, "The figures do not point to a single cause");
	if (w->brief)
		ADD(o->evidence, "it took %s; ",
		    pen__show_time(v[PEN_SECONDS]).s);
	if (w->f->training)
		ADD(o->evidence,
		    "waiting for data took %s of the time, late wake-ups %s, "
		    "waiting for other ranks %s; ",
		    share_of(v[PEN_WAIT_S], v[PEN_SECONDS]).s,
		    share_of(v[PEN_LATE_S], v[PEN_SECONDS]).s,
		    share_of(v[PEN_BARRIER_S], v[PEN_SECONDS]).s);
	if (w->all > 0)
		ADD(o->evidence,
		    "the loader's threads were idle for %s of "
		    "their time",
		    pen__show_share(w->idle).s);
	if (w->kernel)
		ADD(o->evidence,
		    "; of the rest they spent %s on a CPU, %s waiting for one, "
		    "and %s asleep",
		    active_share(w, w->run).s, active_share(w, w->queue).s,
		    active_share(w, w->asleep).s);
	say_cached(o->evidence, sizeof(o->evidence), w);
	if (w->pressure > 0)
		ADD(o->evidence, "; CPU pressure was %s",
		    pen__show_share(w->pressure).s);
	if (w->brief)
		ADD(o->advice, "Use more data, or more epochs.");
	else if (!strcmp(w->f->store, "mmap") && w->cached < 0.9)
		ADD(o->advice,
		    "Try %sstore=uring, which measures reading and processing "
		    "separately.",
		    own_prefix(w));
	else
		ADD(o->advice, "`penstock tune` finds the fastest settings by "
			       "measuring them.");
}

void pen__say(struct pen_verdict *o, const struct pen_weighed *w,
	      enum pen_cause cause)
{
	o->cause = cause;
	switch (cause) {
	case PEN_CAUSE_NONE:
	case PEN_CAUSE_CONSUMER:
		say_consumer(o, w);
		break;
	case PEN_CAUSE_CPU:
		say_cpu(o, w);
		break;
	case PEN_CAUSE_LATENCY:
	case PEN_CAUSE_RATE:
	case PEN_CAUSE_STORAGE:
		say_storage(o, w);
		break;
	case PEN_CAUSE_OPEN:
		say_open(o, w);
		break;
	case PEN_CAUSE_CACHE:
		say_cache(o, w);
		break;
	case PEN_CAUSE_DECODE:
	case PEN_CAUSE_UNPACK:
	case PEN_CAUSE_COPY:
	case PEN_CAUSE_PLAN:
		say_work(o, w);
		break;
	case PEN_CAUSE_THREADS:
		say_threads(o, w);
		break;
	case PEN_CAUSE_PREPROCESS:
		ADD(o->what, "The bottleneck is emulated preprocessing");
		ADD(o->evidence,
		    "it takes %s of the working time of the loader's threads",
		    active_share(w, w->preprocess).s);
		ADD(o->advice, "Raise %s.", threads_key(w));
		break;
	case PEN_CAUSE_MEMORY:
		say_memory(o, w);
		break;
	case PEN_CAUSE_PREFETCH:
		say_prefetch(o, w);
		break;
	case PEN_CAUSE_STARTUP:
		say_startup(o, w);
		break;
	case PEN_CAUSE_STEPS:
		say_steps(o, w);
		break;
	default:
		say_unknown(o, w);
	}
}

void pen__say_rank(struct pen_verdict *o, const struct pen_verdict *there,
		   int rank, double own_s, double others_s)
{
	o->cause = PEN_CAUSE_RANK;
	o->rank = rank;
	o->there = there->cause;
	ADD(o->what, "Rank %d is slow, and the others wait for it", rank);
	ADD(o->evidence,
	    "excluding waits for other ranks, its steps took %s in total and "
	    "those of a typical rank %s. On rank %d: %s",
	    pen__show_time(own_s).s, pen__show_time(others_s).s, rank,
	    there->what);
	if (there->evidence[0])
		ADD(o->evidence, ": %s", there->evidence);
	ADD(o->advice, "%s", there->advice);
}

/* ---- output ---- */

const char *pen__cause_name(enum pen_cause c)
{
	static const char *const name[PEN_NCAUSES] = {
		[PEN_CAUSE_UNKNOWN] = "unknown",
		[PEN_CAUSE_NONE] = "none",
		[PEN_CAUSE_CONSUMER] = "consumer",
		[PEN_CAUSE_CPU] = "cpu",
		[PEN_CAUSE_LATENCY] = "storage_latency",
		[PEN_CAUSE_RATE] = "storage_rate",
		[PEN_CAUSE_STORAGE] = "storage",
		[PEN_CAUSE_OPEN] = "open",
		[PEN_CAUSE_CACHE] = "cache",
		[PEN_CAUSE_DECODE] = "decode",
		[PEN_CAUSE_UNPACK] = "unpack",
		[PEN_CAUSE_COPY] = "copy",
		[PEN_CAUSE_PLAN] = "plan",
		[PEN_CAUSE_THREADS] = "threads",
		[PEN_CAUSE_PREPROCESS] = "preprocess",
		[PEN_CAUSE_MEMORY] = "memory",
		[PEN_CAUSE_PREFETCH] = "prefetch",
		[PEN_CAUSE_STARTUP] = "startup",
		[PEN_CAUSE_RANK] = "rank",
		[PEN_CAUSE_STEPS] = "steps",
	};

	return name[c];
}

bool pen__cause_storage(enum pen_cause c)
{
	return c == PEN_CAUSE_LATENCY || c == PEN_CAUSE_RATE ||
	       c == PEN_CAUSE_STORAGE || c == PEN_CAUSE_CACHE;
}

void pen__verdict_text(const struct pen_verdict *v, struct pen_text *t)
{
	pen__text_add(t, "%s", v->what);
	if (v->evidence[0])
		pen__text_add(t, ": %s", v->evidence);
	pen__text_add(t, ".%s%s", v->advice[0] ? " " : "", v->advice);
}

void pen__verdict_json(struct pen_text *t, const struct pen_verdict *v,
		       const struct pen_facts *f)
{
	pen__json_open(t, "why", '{');
	pen__json_str(t, "cause", pen__cause_name(v->cause));
	if (v->rank >= 0) {
		pen__json_int(t, "rank", (uint64_t)v->rank);
		pen__json_str(t, "rank_cause", pen__cause_name(v->there));
	}
	pen__json_str(t, "what", v->what);
	pen__json_str(t, "evidence", v->evidence);
	pen__json_str(t, "advice", v->advice);
	pen__json_open(t, "figures", '{');
	for (int i = 0; i < PEN_NFACTS; i++)
		if (isfinite(f->v[i]))
			pen__json_num(t, pen__fact_name(i), f->v[i]);
	pen__json_close(t, '}');
	pen__json_close(t, '}');
}
