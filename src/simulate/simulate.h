/*
 * A model of a training cluster: how long does an epoch take, how busy are the
 * accelerators, and what limits them? Pure: no I/O, no clock, the same result
 * for the same seed on any machine.
 *
 * Events concern entire batches. Batches in progress share storage, network
 * cards and CPUs evenly; see docs/scale.md.
 */
#ifndef PEN_SIMULATE_SIMULATE_H
#define PEN_SIMULATE_SIMULATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum pen_sim_cache {
	PEN_SIM_NONE,  /* every epoch reads from storage */
	PEN_SIM_DDICT, /* later epochs read from the memory of all nodes */
	PEN_SIM_LOCAL, /* later epochs read from the memory of the own node */
};

/* Shared resources. */
enum pen_sim_part {
	PEN_SIM_STORAGE, /* bytes per second of all nodes */
	/* one per node */
	PEN_SIM_CLIENT, /* its path to storage */
	PEN_SIM_IN,	/* its network card, each direction */
	PEN_SIM_OUT,
	PEN_SIM_MEMORY, /* bytes copied */
	PEN_SIM_CPU,	/* cores for loading */
	/* one per rank */
	PEN_SIM_SERVE,	 /* the thread that answers other nodes */
	PEN_SIM_THREADS, /* loader threads, which work or wait for reads */
	PEN_SIM_NPARTS,
};

/* What limits an epoch. */
enum pen_sim_limit {
	PEN_SIM_BY_PART, /* values below BY_COMPUTE are enum pen_sim_part */
	PEN_SIM_BY_COMPUTE = PEN_SIM_NPARTS,
	PEN_SIM_BY_LATENCY, /* nothing is saturated, but answers take long */
	PEN_SIM_BY_WAITING, /* ranks wait for the slowest one */
	PEN_SIM_BY_SYNC,    /* what ends a step */
};

/* Units are seconds and bytes; a rate of 0 means no limit. */
struct pen_sim {
	/* the job */
	uint64_t nodes, ranks; /* ranks per node */
	uint64_t batch;	       /* samples per rank and step */
	uint64_t steps;	       /* per epoch and rank */
	uint64_t epochs;
	uint64_t skip; /* first steps of an epoch, excluded from utilisation */
	double sample_bytes;
	double compute,
		compute_stdev; /* per step: normal distribution, cut at 0 */
	bool barrier;	       /* all ranks end a step together */
	double sync;	       /* and the synchronisation takes this long */
	/* the loader of a rank */
	uint64_t threads, ahead;
	uint64_t depth;	  /* reads in flight per thread; 1: synchronous */
	uint64_t at_once; /* batches fetched and processed at a time; 0: enough
			     to keep the threads busy */
	double spread;	  /* p99 over p50 of the cost of a batch; 1: none */
	/* a node */
	double cores;	  /* for loading and answering */
	double copy_rate; /* of its memory, all cores together */
	/* CPU per sample: load from storage, copy from local memory, put into
	 * memory, request from and answer to another node */
	double cpu_load, cpu_hit, cpu_put, cpu_ask, cpu_serve;
	/* the environment */
	double storage_rate, client_rate, storage_latency;
	double reads; /* sequential reads per sample */
	double net_rate, net_latency;
	bool by_net;	    /* storage is reached through the network card */
	int cache;	    /* enum pen_sim_cache */
	double cache_bytes; /* per node; 0: unlimited */
	uint64_t fan; /* ranks that the requests of a batch are spread over */
	uint64_t seed;
	/* Called now and then; nonzero stops with PEN_ECLOSED. May be NULL. */
	int (*tick)(void *arg, uint64_t batches);
	void *arg;
};

struct pen_sim_epoch {
	double seconds;
	double utilisation; /* share of accelerator time spent computing */
	double data, waiting, sync;  /* the rest: waiting for a batch, for the
					slowest rank, and synchronising */
	double busy[PEN_SIM_NPARTS]; /* share of capacity; 0: no limit */
	double storage_bytes, net_bytes, memory_bytes; /* by source */
	uint64_t samples;
};

struct pen_sim_result {
	struct pen_sim_epoch first, later; /* later: mean of all other epochs */
	double seconds;			   /* all epochs */
	double first_batch;		   /* until all ranks have one */
	uint64_t batches, events;
	double hit; /* share of samples in the cache */
};

/* PEN_EINVAL: an input is out of range, and the error names it. */
int pen__simulate(const struct pen_sim *, struct pen_sim_result *,
		  struct pen_err *err);
enum pen_sim_limit pen__sim_limit(const struct pen_sim_epoch *);
const char *pen__sim_limit_name(enum pen_sim_limit); /* "storage" */

#define PEN_SIM_MOST_RANKS (1u << 20)
#define PEN_SIM_MOST_BATCHES 1e10

#endif
