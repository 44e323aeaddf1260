/*
 * What was recorded while a consumer took batches: the loader's threads, the
 * consumer itself, the store and the machine. Figures of several blocks of
 * steps, and of several ranks, are joined by adding them up, so a share is
 * always one sum over another. NAN: not known, and then nothing is concluded
 * from it.
 */
#ifndef PEN_VERDICT_FACTS_H
#define PEN_VERDICT_FACTS_H

#include <stdbool.h>

#include "base/text.h"
#include "penstock.h"

enum pen_fact {
	/* seconds of the loader's threads, by stage */
	PEN_PLAN_S,
	PEN_OPEN_S, /* files */
	PEN_READ_S,
	PEN_UNPACK_S,
	PEN_DECODE_S,
	PEN_COPY_S,
	PEN_PREPROCESS_S,
	PEN_IDLE_S,
	/* ... and as the kernel counts them: on a CPU, and ready to run but
	 * without one */
	PEN_RUN_S,
	PEN_QUEUE_S,
	PEN_THREADS_S, /* threads x seconds */
	/* the consumer: all of its time; waiting for batches, for the first
	 * one; computing; woken late; waiting for other ranks; ready to run
	 * but without a CPU */
	PEN_SECONDS,
	PEN_WAIT_S,
	PEN_FIRST_S,
	PEN_COMPUTE_S,
	PEN_LATE_S,
	PEN_BARRIER_S,
	PEN_OWN_QUEUE_S,
	PEN_BATCHES,
	PEN_READY, /* batches that were there when one was asked for, summed */
	PEN_MEMORY_S, /* plans waited for the memory budget */
	PEN_CPU_S,    /* of the whole process */
	/* the store */
	PEN_READS,
	PEN_READ_BYTES,
	PEN_DEVICE_BYTES,
	PEN_CACHE_BYTES, /* answered by cache= */
	PEN_TIMED_READS, /* some reads were timed: how many, and how long */
	PEN_TIMED_S,
	/* the machine: seconds; of them, something or everything waited for a
	 * CPU, here and in the process's own control group; that had used up
	 * its quota (CPUs x seconds); everything waited for memory */
	PEN_HOST_S,
	PEN_PRESSURE_CPU_S,
	PEN_PRESSURE_CPU_FULL_S,
	PEN_PRESSURE_GROUP_S,
	PEN_PRESSURE_GROUP_FULL_S,
	PEN_THROTTLED_S,
	PEN_PRESSURE_MEMORY_S,
	PEN_CPU_ROOM_S, /* CPUs this process may use x seconds */
	PEN_CPU_ALL_S, /* of all CPUs; of it nobody used, the hypervisor took */
	PEN_CPU_IDLE_S,
	PEN_STEAL_S,
	PEN_DISK_READS, /* of the device with the data, by everybody */
	PEN_DISK_BYTES,
	PEN_DISK_WAIT_S, /* requests, summed */
	PEN_DISK_BUSY_S,
	/* not added up: the least and the most of all */
	PEN_BEST_READ_S,
	PEN_PREFETCH,
	PEN_PREFETCH_WANTED,
	PEN_BATCH_ROWS,
	PEN_NFACTS
};

struct pen_facts {
	double v[PEN_NFACTS];
	char store[32], device[32]; /* "": not known */
	bool training; /* accelerators computed; else batches were only taken */
	bool fed;      /* they were busy enough */
};

void pen__facts_init(struct pen_facts *); /* nothing is known */
void pen__facts_join(struct pen_facts *to, const struct pen_facts *from);
/* What happened between two points of time. */
void pen__facts_since(struct pen_facts *now, const struct pen_facts *before);
/* The loader's part, since it was opened. */
void pen__facts_of_loader(struct pen_facts *, const struct pen_stats *);
/* Share of the bytes that the device did not have to read; NAN: where they came
 * from is not known. */
double pen__facts_cached(const struct pen_facts *);
/* Its name in result.json. */
const char *pen__fact_name(enum pen_fact);

#endif
