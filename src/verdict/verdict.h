/*
 * Why does the accelerator wait? Facts in, one cause out, with the figure that
 * proves it and what to change. Every command and page asks here, so that no
 * two of them say different things about one run.
 *
 * The kernel's accounts come first: a thread of the loader is on a CPU, ready
 * to run but without one, asleep, or idle, and these add up to all of its
 * time. Storage is named only for time asleep, the CPU for time on it or
 * without it; so a run that was kept from the CPU cannot be blamed on storage.
 * Where no share reaches half, or figures contradict one another, the cause is
 * not known, and the figures are shown.
 */
#ifndef PEN_VERDICT_VERDICT_H
#define PEN_VERDICT_VERDICT_H

#include "verdict/facts.h"

enum pen_cause {
	PEN_CAUSE_UNKNOWN,
	PEN_CAUSE_NONE,	    /* nobody waits */
	PEN_CAUSE_CONSUMER, /* whoever takes the batches is slower */
	PEN_CAUSE_CPU,	    /* others have the CPUs, or a quota ends */
	PEN_CAUSE_LATENCY,  /* of storage: reads do not queue */
	PEN_CAUSE_RATE,	    /* of storage: reads queue */
	PEN_CAUSE_STORAGE,  /* which of the two is not known */
	PEN_CAUSE_OPEN,	    /* of files */
	PEN_CAUSE_CACHE,    /* memory of other ranks (cache=) */
	PEN_CAUSE_DECODE,   /* the loader's own work, and CPUs are full: */
	PEN_CAUSE_UNPACK,
	PEN_CAUSE_COPY,
	PEN_CAUSE_PLAN,
	PEN_CAUSE_THREADS,    /* the same, and CPUs are left */
	PEN_CAUSE_PREPROCESS, /* emulated */
	PEN_CAUSE_MEMORY,     /* the budget, or the machine's */
	PEN_CAUSE_PREFETCH,   /* threads are idle: too little is under way */
	PEN_CAUSE_STARTUP,    /* the first batch */
	PEN_CAUSE_RANK,	      /* one is slow and the others wait for it */
	PEN_CAUSE_STEPS,      /* they differ in length */
	PEN_NCAUSES
};
const char *pen__cause_name(enum pen_cause); /* "storage_latency" */
bool pen__cause_storage(enum pen_cause);     /* bytes were waited for */

struct pen_verdict {
	enum pen_cause cause;
	int rank;	      /* PEN_CAUSE_RANK: which; else -1 */
	enum pen_cause there; /* ... and what is slow there */
	char what[256];	      /* one sentence, without its full stop */
	char evidence[1024];  /* what proves it, or all that is known */
	char advice[512];     /* what to change; "": nothing */
};

/* all: of all ranks together; rank: of each, or NULL. */
void pen__verdict(const struct pen_facts *all, const struct pen_facts *rank,
		  int nranks, struct pen_verdict *out);
/* "What: evidence. Advice." */
void pen__verdict_text(const struct pen_verdict *, struct pen_text *);
/* The member "why" of a result: cause, evidence, advice and all figures. */
void pen__verdict_json(struct pen_text *, const struct pen_verdict *,
		       const struct pen_facts *);

#endif
