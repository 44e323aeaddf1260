/*
 * Figures recorded while a consumer took batches: the loader's threads, the
 * consumer, the store and the machine. Figures of several blocks of steps and
 * of several ranks are joined by adding them, so a share is always the quotient
 * of two sums. NAN means unknown; no conclusion is drawn from it.
 */
#ifndef PEN_VERDICT_FACTS_H
#define PEN_VERDICT_FACTS_H

#include <stdbool.h>

#include "base/text.h"
#include "penstock.h"

enum pen_fact {
	/* seconds of the loader's threads by stage */
	PEN_PLAN_S,
	PEN_OPEN_S, /* files */
	PEN_READ_S,
	PEN_UNPACK_S,
	PEN_DECODE_S,
	PEN_COPY_S,
	PEN_PREPROCESS_S,
	PEN_IDLE_S,
	/* ... and by the kernel's accounting: on a CPU, and runnable without
	 * one */
	PEN_RUN_S,
	PEN_QUEUE_S,
	PEN_THREADS_S, /* threads x seconds */
	/* the consumer: all of its time; waiting for batches, for the first
	 * batch; computing; woken late; waiting for other ranks; runnable
	 * without a CPU */
	PEN_SECONDS,
	PEN_WAIT_S,
	PEN_FIRST_S,
	PEN_COMPUTE_S,
	PEN_LATE_S,
	PEN_BARRIER_S,
	PEN_OWN_QUEUE_S,
	PEN_BATCHES,
	PEN_READY,    /* sum over requests of the batches that were ready */
	PEN_MEMORY_S, /* plans that waited for the memory budget */
	PEN_CPU_S,    /* of the entire process */
	/* the store */
	PEN_READS,
	PEN_READ_BYTES,
	PEN_DEVICE_BYTES,
	PEN_CACHE_BYTES, /* delivered by cache= */
	PEN_TIMED_READS, /* a sample of the reads is timed: their number and
			    total time */
	PEN_TIMED_S,
	/* the machine: seconds; seconds in which some or all tasks waited for a
	 * CPU, on the host and in the control group of the process; CPU time
	 * lost to its quota (CPUs x seconds); seconds in which all tasks waited
	 * for memory */
	PEN_HOST_S,
	PEN_PRESSURE_CPU_S,
	PEN_PRESSURE_CPU_FULL_S,
	PEN_PRESSURE_GROUP_S,
	PEN_PRESSURE_GROUP_FULL_S,
	PEN_THROTTLED_S,
	PEN_PRESSURE_MEMORY_S,
	PEN_CPU_ROOM_S, /* CPUs available to this process x seconds */
	PEN_CPU_ALL_S,	/* all CPUs x seconds; of that idle, and stolen by the
			   hypervisor */
	PEN_CPU_IDLE_S,
	PEN_STEAL_S,
	PEN_DISK_READS, /* of the device that holds the data, by all processes
			 */
	PEN_DISK_BYTES,
	PEN_DISK_WAIT_S, /* sum over requests */
	PEN_DISK_BUSY_S,
	/* joined by minimum or maximum, not by sum */
	PEN_BEST_READ_S,
	PEN_PREFETCH,
	PEN_PREFETCH_WANTED,
	PEN_BATCH_ROWS,
	PEN_NFACTS
};

struct pen_facts {
	double v[PEN_NFACTS];
	char store[32], device[32]; /* "": unknown */
	bool training; /* accelerators computed; otherwise batches were only
			  consumed */
	bool fed;      /* they reached the wanted utilisation */
};

void pen__facts_init(struct pen_facts *); /* everything unknown */
void pen__facts_join(struct pen_facts *to, const struct pen_facts *from);
/* Turns counters into the difference from an earlier moment. */
void pen__facts_since(struct pen_facts *now, const struct pen_facts *before);
/* Fills in the loader's counters since it was opened. */
void pen__facts_of_loader(struct pen_facts *, const struct pen_stats *);
/* Share of the bytes that came from the page cache; NAN: unknown. */
double pen__facts_cached(const struct pen_facts *);
/* Its name in result.json. */
const char *pen__fact_name(enum pen_fact);

#endif
