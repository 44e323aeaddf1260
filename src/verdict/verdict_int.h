/* Shares that the verdict compares; internal to src/verdict. */
#ifndef PEN_VERDICT_INT_H
#define PEN_VERDICT_INT_H

#include "verdict/verdict.h"

#define HALF 0.5  /* a share of at least this is the cause */
#define TAKEN 0.2 /* share lost to the hypervisor, a quota or memory */
#define ALONE 1.5 /* a read takes little longer than the fastest one */
#define BRIEF_S 0.02

struct pen_weighed {
	const struct pen_facts *f;
	bool kernel; /* the kernel accounted for the threads */
	bool brief;  /* too short for a verdict */
	/* thread time: all of it; on a CPU, runnable without one, asleep but
	 * not idle, preprocessing, and the sum of these four */
	double all, run, queue, asleep, preprocess, active;
	double idle;   /* share of all thread time */
	double lost;   /* seconds the consumer did not compute */
	double spread; /* part of lost that is due to steps of different length
			*/
	double cached; /* share of the bytes from the page cache; NAN: unknown
			*/
	double pressure, steal, throttled, memory; /* shares of the time */
	double own;	      /* share of the CPUs that this job used */
	double threads, cpus; /* threads of all ranks; CPUs available to them */
	double each;	      /* threads per rank */
	double others;	      /* CPUs used by other processes; NAN: unknown */
	/* reads: mean time without waiting for a CPU; fastest read; mean number
	 * in flight */
	double read_s, best_s, flight;
	double busy; /* share of the time the device was busy; NAN: unknown */
};

void pen__weigh(const struct pen_facts *, struct pen_weighed *);
/* Threads are idle because all batches are prefetched, yet batches are late. */
bool pen__bursts(const struct pen_weighed *);
/* a / b, at least 0; 0 if either is unknown */
double pen__part(double a, double b);

/* sentences.c: fill in what, evidence and advice */
void pen__say(struct pen_verdict *, const struct pen_weighed *, enum pen_cause);
void pen__say_rank(struct pen_verdict *, const struct pen_verdict *there,
		   int rank, double own_s, double others_s);

#endif
