/*
 * The measurements of a run: the input of all figures and files. One record per
 * process, with the steps of every accelerator that the process emulates.
 */
#ifndef PEN_EMULATE_RECORD_H
#define PEN_EMULATE_RECORD_H

#include "base/hist.h"
#include "comm/comm.h"
#include "emulate/config.h"
#include "verdict/facts.h"

enum pen_phase_kind {
	PEN_PHASE_TRAIN,
	PEN_PHASE_EVAL,
	PEN_PHASE_SAVE,
	PEN_PHASE_LOAD
};

/* Steps of one accelerator. proc = load + compute. Seconds. */
struct pen_step_times {
	float *load, *compute;
	size_t n, cap;
};

/* Activity of the loader and the machine during a phase, of this process. */
struct pen_io_delta {
	uint64_t payload_bytes;	     /* delivered in batches */
	uint64_t read_bytes, nreads; /* requested from the store */
	uint64_t device_read_bytes, device_write_bytes; /* /proc/self/io */
	uint64_t written_bytes;				/* checkpoints */
	double cpu_s;
};

/* A block of steps between checkpoints, an evaluation, or a checkpoint. */
struct pen_phase {
	enum pen_phase_kind kind;
	unsigned epoch;		   /* from 1 */
	unsigned block;		   /* from 1: block1, save_ckpt1, load_ckpt1 */
	double start, end;	   /* seconds since 1970 */
	double seconds;		   /* by the monotonic clock */
	struct pen_step_times *of; /* naccel; NULL for checkpoints */
	double first_batch_s;	   /* wait for the phase's first batch */
	double cached_before;	   /* share in the page cache; < 0: unknown */
	struct pen_io_delta io;
	struct pen_facts facts; /* training: for the verdict */
	uint64_t bytes;		/* checkpoint: share of this process */
	bool verified;
};

struct pen_epoch_mark {
	unsigned epoch;
	double start, end; /* seconds since 1970 */
	char *meminfo;	   /* /proc/meminfo at the start, or NULL */
};

struct pen_record {
	const struct pen_config *c;
	struct pen_comm *comm;
	unsigned naccel;   /* emulated by this process */
	unsigned world;	   /* all accelerators of the job */
	unsigned first;	   /* global number of its first accelerator */
	double start, end; /* seconds since 1970 */
	double generate_s; /* 0: nothing was generated */
	uint64_t generated_bytes, generated_files, kept_files;
	double open_s; /* time to find and index the data */
	uint64_t steps_per_epoch, eval_steps;
	uint64_t seed;				/* seed of the sample order */
	uint64_t nsamples_train, nsamples_eval; /* in the data set */
	uint64_t data_bytes_train, data_bytes_eval; /* bytes of the files */
	uint64_t record_bytes;	      /* per sample, as configured */
	uint64_t checkpoint_bytes;    /* all ranks */
	double dlio_checkpoint_bytes; /* as DLIO counts it */
	struct pen_phase *phase;
	size_t nphases, cap;
	struct pen_epoch_mark *epoch;
	size_t nepochs;
	struct pen_hist wait, step;	   /* ns, training only */
	uint64_t peak_memory, buffer_peak; /* bytes */
	uint32_t nthreads, prefetch, queue_depth;
	char store[32], store_reason[160], sampler[32];
	char cache_state[160]; /* what was done to the page cache */
	char device[32];       /* that stores the data: "vda"; "": unknown */
	bool partial;	       /* interrupted */
};

void pen__record_fini(struct pen_record *);
/* Adds a zeroed phase, with room for steps if it has any; NULL: out of memory.
 */
struct pen_phase *pen__record_phase(struct pen_record *, enum pen_phase_kind,
				    unsigned epoch, unsigned block);
/* 0 or PEN_ENOMEM */
int pen__record_step(struct pen_phase *, unsigned accel, double load,
		     double compute);

#endif
