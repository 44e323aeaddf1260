/*
 * Why does the accelerator wait? From the facts follows one cause, with the
 * figures that support it and advice. All commands and pages use this verdict,
 * so they never disagree about a run.
 *
 * The kernel's accounting comes first: a loader thread is on a CPU, runnable
 * without one, asleep, or idle, and these add up to all of its time. Only time
 * asleep counts against storage, and only time on or without a CPU counts
 * against the CPU, so a run that was starved of CPU is never blamed on storage.
 * If no share reaches half, or figures contradict one another, the cause is
 * unknown and the figures are shown.
 */
#ifndef PEN_VERDICT_VERDICT_H
#define PEN_VERDICT_VERDICT_H

#include "verdict/facts.h"

enum pen_cause {
	PEN_CAUSE_UNKNOWN,
	PEN_CAUSE_NONE,	    /* no wait to explain */
	PEN_CAUSE_CONSUMER, /* the consumer is slower than the loader */
	PEN_CAUSE_CPU, /* other processes use the CPUs, or a quota is used up */
	PEN_CAUSE_LATENCY, /* storage latency: reads do not queue */
	PEN_CAUSE_RATE,	   /* storage bandwidth: reads queue */
	PEN_CAUSE_STORAGE, /* one of the two */
	PEN_CAUSE_OPEN,	   /* opening files */
	PEN_CAUSE_CACHE,   /* memory of other ranks (cache=) */
	PEN_CAUSE_DECODE,  /* the loader's own work, with all CPUs busy: */
	PEN_CAUSE_UNPACK,
	PEN_CAUSE_COPY,
	PEN_CAUSE_PLAN,
	PEN_CAUSE_THREADS,    /* the same, with CPUs to spare */
	PEN_CAUSE_PREPROCESS, /* emulated preprocessing */
	PEN_CAUSE_MEMORY,     /* memory budget, or memory of the machine */
	PEN_CAUSE_PREFETCH,   /* idle threads: too little is prefetched */
	PEN_CAUSE_STARTUP,    /* the first batch */
	PEN_CAUSE_RANK,	      /* one rank is slow and the others wait for it */
	PEN_CAUSE_STEPS,      /* steps differ in length */
	PEN_NCAUSES
};
const char *pen__cause_name(enum pen_cause); /* "storage_latency" */
bool pen__cause_storage(enum pen_cause);     /* the wait was for bytes */

struct pen_verdict {
	enum pen_cause cause;
	int rank; /* the slow rank of PEN_CAUSE_RANK, otherwise -1 */
	enum pen_cause there; /* ... and the cause there */
	char what[256];	      /* one sentence without its full stop */
	char evidence[1024]; /* figures that support it, or all known figures */
	char advice[512];    /* what to change; may be empty */
};

/* all: facts of all ranks joined; rank: facts of each rank, or NULL. */
void pen__verdict(const struct pen_facts *all, const struct pen_facts *rank,
		  int nranks, struct pen_verdict *out);
/* "What: evidence. Advice." */
void pen__verdict_text(const struct pen_verdict *, struct pen_text *);
/* Writes the member "why" of a result: cause, evidence, advice and all figures.
 */
void pen__verdict_json(struct pen_text *, const struct pen_verdict *,
		       const struct pen_facts *);

#endif
