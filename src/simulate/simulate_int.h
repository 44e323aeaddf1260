/* Between the files of the simulation. */
#ifndef PEN_SIMULATE_INT_H
#define PEN_SIMULATE_INT_H

#include "simulate/simulate.h"

/* What a batch takes. */
struct pen_sim_cost {
	double ask;    /* time of threads until answers begin to come */
	double delay;  /* the same, where no thread waits for it */
	double cpu;    /* and then it is worked on, */
	double copied; /* through memory */
	/* between the two: of the node it is for, and of each of its owners
	 * (with their nodes' network cards) */
	double own[PEN_SIM_NPARTS], peer[PEN_SIM_NPARTS];
	double sent; /* by owners' threads, as fast as these work */
	double storage, net, memory; /* bytes, by where they come from */
	bool peers;
};

/* What follows from the settings, before anything happens. */
struct pen_sim_plan {
	struct pen_sim_cost cold, warm; /* of the first epoch, of later ones */
	double hit;
	uint32_t world;
	uint32_t fan; /* owners that a batch is dealt to */
	bool evenly;  /* one of each so many: they stand for more samples */
	uint32_t at_once, flying; /* batches: fetched or worked on, and both */
	uint32_t slots;		  /* batches begun and not yet in order */
	double limit[PEN_SIM_NPARTS];	/* 0: none */
	uint32_t count[PEN_SIM_NPARTS]; /* how many there are */
	bool felt[PEN_SIM_NPARTS];	/* false: never what one waits for */
	double abreast, usual; /* threads a batch can use, and has when all
				  that may are worked on */
	bool coupled; /* answering threads are slowed down by cores or network
			 card */
	double thread_rate; /* bytes that one of them sends */
};

int pen__sim_check(const struct pen_sim *, struct pen_err *err);
void pen__sim_plan(const struct pen_sim *, struct pen_sim_plan *);

#endif
