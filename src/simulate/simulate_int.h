/* Internal to src/simulate. */
#ifndef PEN_SIMULATE_INT_H
#define PEN_SIMULATE_INT_H

#include "simulate/simulate.h"

/* The cost of a batch. */
struct pen_sim_cost {
	double ask;    /* thread time until answers start to arrive */
	double delay;  /* the same if no thread waits for it */
	double cpu;    /* CPU time of processing, */
	double copied; /* and bytes copied through memory */
	/* in between: load on the receiving node, and on each owner (with the
	 * network card of its node) */
	double own[PEN_SIM_NPARTS], peer[PEN_SIM_NPARTS];
	double sent; /* by the owners' threads, at the speed of their work */
	double storage, net, memory; /* bytes by source */
	bool peers;
};

/* Derived from the settings before the simulation starts. */
struct pen_sim_plan {
	struct pen_sim_cost cold, warm; /* first epoch, later epochs */
	double hit;
	uint32_t world;
	uint32_t fan; /* owners that a batch is spread over */
	bool evenly; /* the modelled owners are spread evenly and stand for more
		      */
	uint32_t at_once,
		flying; /* batches: in each of the two phases, and in total */
	uint32_t slots; /* batches started and not yet ready in order */
	double limit[PEN_SIM_NPARTS];	/* 0: no limit */
	uint32_t count[PEN_SIM_NPARTS]; /* number of instances */
	bool felt[PEN_SIM_NPARTS];	/* false: never a limit, only counted */
	double abreast, usual; /* threads that a batch can use, and gets when
				  the loader is full */
	bool coupled; /* cores or the network card slow answering threads down
		       */
	double thread_rate; /* bytes per second that one of them sends */
};

int pen__sim_check(const struct pen_sim *, struct pen_err *err);
void pen__sim_plan(const struct pen_sim *, struct pen_sim_plan *);

#endif
