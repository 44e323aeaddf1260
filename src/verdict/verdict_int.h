/* Figures as the verdict weighs them; what its files share. */
#ifndef PEN_VERDICT_INT_H
#define PEN_VERDICT_INT_H

#include "verdict/verdict.h"

#define HALF 0.5  /* a share from which on something is the cause */
#define TAKEN 0.2 /* by the hypervisor, by a quota, for memory */
#define ALONE 1.5 /* a read takes hardly longer than the best one */
#define BRIEF_S 0.02

struct pen_weighed {
	const struct pen_facts *f;
	bool kernel; /* it says what the threads did */
	bool brief;  /* but a few ms late: too short for that */
	/* the threads' time: all of it; on a CPU, ready without one, asleep
	 * but not idle, preprocessing, and these four together */
	double all, run, queue, asleep, preprocess, active;
	double idle;   /* share of all */
	double lost;   /* seconds the consumer did not compute */
	double spread; /* of it, because steps differ in length */
	double cached; /* share of the bytes that the device did not read; NAN:
			  it is not known where they came from */
	double pressure, steal, throttled, memory; /* shares of the time */
	double own;	      /* share of the CPUs that this job had itself */
	double threads, cpus; /* of all ranks; that they may use */
	double each;	      /* threads of a rank */
	double others; /* CPUs that other processes used; NAN: not known */
	/* reads: how long one takes, without waiting for a CPU; the best one;
	 * how many at a time */
	double read_s, best_s, flight;
	double busy; /* the device, share of the time; NAN: not known */
};

void pen__weigh(const struct pen_facts *, struct pen_weighed *);
/* Threads are idle because enough is prefetched, and yet batches are late. */
bool pen__bursts(const struct pen_weighed *);
/* a / b, at least 0; 0 when either is not known */
double pen__part(double a, double b);

/* words.c: fill in what, evidence and advice */
void pen__say(struct pen_verdict *, const struct pen_weighed *, enum pen_cause);
void pen__say_rank(struct pen_verdict *, const struct pen_verdict *there,
		   int rank, double own_s, double others_s);

#endif
