/*
 * A model of a cluster that trains: when would an epoch be over, how busy are
 * the accelerators, and what holds them up? Pure: no I/O, no clock, the same
 * answer for the same seed on any machine.
 *
 * Events are of whole batches. What batches have to share (storage, network
 * cards, CPUs) is shared evenly by those under way, as docs/scale.md says.
 */
#ifndef PEN_SIMULATE_SIMULATE_H
#define PEN_SIMULATE_SIMULATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum pen_sim_cache {
	PEN_SIM_NONE,  /* every epoch reads the storage */
	PEN_SIM_DDICT, /* later ones the memory of all nodes */
	PEN_SIM_LOCAL, /* later ones what the node itself has kept */
};

/* What is shared. */
enum pen_sim_part {
	PEN_SIM_STORAGE, /* bytes of all nodes */
	/* once a node */
	PEN_SIM_CLIENT, /* its way to the storage */
	PEN_SIM_IN,	/* its network card, either way */
	PEN_SIM_OUT,
	PEN_SIM_MEMORY, /* bytes copied */
	PEN_SIM_CPU,	/* cores that load */
	/* once a rank */
	PEN_SIM_SERVE,	 /* the thread that answers other nodes */
	PEN_SIM_THREADS, /* those that load: they work, or wait for reads */
	PEN_SIM_NPARTS,
};

/* What an epoch is bound by. */
enum pen_sim_limit {
	PEN_SIM_BY_PART, /* and above: of the parts */
	PEN_SIM_BY_COMPUTE = PEN_SIM_NPARTS,
	PEN_SIM_BY_LATENCY, /* nothing is full: answers take long */
	PEN_SIM_BY_WAITING, /* ranks for the slowest of them */
	PEN_SIM_BY_SYNC,    /* what ends a step */
};

/* Seconds and bytes; of rates 0 is "no limit". */
struct pen_sim {
	/* the job */
	uint64_t nodes, ranks; /* ranks of a node */
	uint64_t batch;	       /* samples of a rank's step */
	uint64_t steps;	       /* of an epoch, each rank */
	uint64_t epochs;
	uint64_t skip; /* steps that utilisation leaves out, of an epoch */
	double sample_bytes;
	double compute, compute_stdev; /* of a step: normal, not below 0 */
	bool barrier;		       /* every step ends together */
	double sync;		       /* and then takes this much longer */
	/* the loader of a rank */
	uint64_t threads, ahead;
	uint64_t depth;	  /* reads a thread has in flight; 1: it waits for
			     each of them */
	uint64_t at_once; /* batches fetched, and worked on; 0: as keep
			     threads busy */
	double spread;	  /* p99 over p50 of what a batch costs; 1: none */
	/* a node */
	double cores;	  /* for loading and answering */
	double copy_rate; /* of its memory, by all cores at once */
	/* CPU of a sample: from storage, from memory here; into memory; asked
	 * for and answered between nodes */
	double cpu_load, cpu_hit, cpu_put, cpu_ask, cpu_serve;
	/* what is around it */
	double storage_rate, client_rate, storage_latency;
	double reads; /* of a sample, one after another */
	double net_rate, net_latency;
	bool by_net; /* the storage is reached through the network card */
	int cache;   /* enum pen_sim_cache */
	double cache_bytes; /* of a node; 0: enough */
	uint64_t fan;	    /* ranks that a batch's requests are dealt to */
	uint64_t seed;
	/* Now and then; not 0: stop, PEN_ECLOSED. May be NULL. */
	int (*tick)(void *arg, uint64_t batches);
	void *arg;
};

struct pen_sim_epoch {
	double seconds;
	double utilisation;	     /* computing, of the accelerators' time */
	double data, waiting, sync;  /* the rest of it: for a batch, for the
					slowest rank, for what ends a step */
	double busy[PEN_SIM_NPARTS]; /* of what it could do; 0: no limit */
	double storage_bytes, net_bytes, memory_bytes; /* batches came from */
	uint64_t samples;
};

struct pen_sim_result {
	struct pen_sim_epoch first, later; /* later: the mean of all others */
	double seconds;			   /* of all epochs */
	double first_batch;		   /* until all have one */
	uint64_t batches, events;
	double hit; /* share of samples that the cache holds */
};

/* PEN_EINVAL: something cannot be, and the message names it. */
int pen__simulate(const struct pen_sim *, struct pen_sim_result *,
		  struct pen_err *err);
enum pen_sim_limit pen__sim_limit(const struct pen_sim_epoch *);
const char *pen__sim_limit_name(enum pen_sim_limit); /* "storage" */

#define PEN_SIM_MOST_RANKS (1u << 20)
#define PEN_SIM_MOST_BATCHES 1e10

#endif
