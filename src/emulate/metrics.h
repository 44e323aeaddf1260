/*
 * Figures out of a record. docs/method.md says how each is computed; where
 * DLIO's formula is wrong, both are here, its own under `dlio_`.
 */
#ifndef PEN_EMULATE_METRICS_H
#define PEN_EMULATE_METRICS_H

#include "emulate/record.h"

/* One accelerator in one block of steps. */
struct pen_block_figures {
	double au;			    /* percent, 0..100 */
	double throughput;		    /* samples/s over the window */
	double dlio_throughput;		    /* with DLIO's literal 2 */
	double compute_mean, compute_stdev; /* over the window */
};
/* The window leaves out the first and last steps as metric says. */
void pen__block_figures(const struct pen_config *, const struct pen_phase *,
			unsigned accel, struct pen_block_figures *);

struct pen_mean {
	double mean, stdev; /* population */
};

/* The whole job, on every rank after joining. */
struct pen_figures {
	size_t nepochs;
	double *au, *throughput, *dlio_throughput; /* per epoch, of all ranks */
	struct pen_mean au_all, throughput_all, dlio_throughput_all;
	bool au_met;
	size_t nevals;
	double *eval_au, *eval_throughput;
	struct pen_mean eval_au_all, eval_throughput_all;
	bool eval_au_met;
	/* checkpoints: duration is the slowest rank's, rate is all bytes over
	 * it, in GiB/s; dlio_: rank 0's own duration */
	size_t nsaves, nloads;
	double *save_s, *load_s;
	struct pen_mean save_time, save_rate, load_time, load_rate;
	struct pen_mean dlio_save_time, dlio_save_rate, dlio_load_time,
		dlio_load_rate;
	/* sums over ranks, training only */
	uint64_t samples, payload_bytes, read_bytes, nreads, device_read_bytes;
	double train_s; /* slowest rank, sum of its training blocks */
	double cpu_s;
	double cached_share; /* 1 - device bytes / read bytes, >= 0 */
	struct pen_hist wait, step;
	double first_batch_s; /* mean over ranks, first block */
};
/* Collective. */
int pen__figures(struct pen_figures *, const struct pen_record *,
		 struct pen_err *err);
void pen__figures_fini(struct pen_figures *);

#endif
