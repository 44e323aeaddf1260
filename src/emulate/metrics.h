/*
 * Figures computed from a record. docs/method.md has the formulas; where that
 * of DLIO is wrong, both figures are present, that of DLIO as `dlio_`.
 */
#ifndef PEN_EMULATE_METRICS_H
#define PEN_EMULATE_METRICS_H

#include "emulate/record.h"
#include "verdict/verdict.h"

/* One accelerator in one block of steps. */
struct pen_block_figures {
	double au;			    /* percent, 0..100 */
	double throughput;		    /* samples/s over the window */
	double dlio_throughput;		    /* with the constant 2 of DLIO */
	double compute_mean, compute_stdev; /* over the window */
	size_t first, steps;		    /* the window */
	double seconds;			    /* duration of the window */
	bool whole; /* too few steps to exclude any: all are included */
};
/* The window excludes the first and last steps as set by output.metric. */
void pen__block_figures(const struct pen_config *, const struct pen_phase *,
			unsigned accel, struct pen_block_figures *);

struct pen_mean {
	double mean, stdev; /* population */
};
struct pen_mean pen__mean_of(const double *v, size_t n); /* 0, 0 if n is 0 */

/* Training of one epoch, all ranks. */
struct pen_epoch_figures {
	uint64_t steps, samples, payload_bytes, read_bytes, nreads,
		device_read_bytes;
	double seconds;	      /* sum of the blocks, slowest rank */
	double cpu_s;	      /* sum */
	double first_batch_s; /* mean over ranks, first block */
	double cached_before; /* share in the page cache; < 0: unknown */
	double cached_share;  /* 1 - device bytes / read bytes, >= 0 */
};

/* One checkpoint, all ranks. */
struct pen_ckpt_figures {
	unsigned epoch, block;
	double start, seconds, dlio_seconds;
	uint64_t bytes;
	bool verified;
};

/* The entire job, on every rank. */
struct pen_figures {
	size_t nepochs;
	double *au, *throughput, *dlio_throughput; /* per epoch, of all ranks */
	struct pen_mean au_all, throughput_all, dlio_throughput_all;
	/* MiB/s: delivered in batches; read from the store (mean bytes per
	 * sample times throughput); throughput and dlio_throughput times the
	 * configured record size */
	double *io_rate, *dlio_io_rate;
	struct pen_mean io_all, read_io_all, record_io_all, dlio_io_all;
	bool au_met;
	struct pen_epoch_figures *epoch; /* nepochs */
	size_t nevals;
	double *eval_au, *eval_throughput;
	struct pen_mean eval_au_all, eval_throughput_all;
	struct pen_mean eval_io_all, eval_read_io_all, eval_record_io_all;
	bool eval_au_met;
	/* checkpoints: duration of the slowest rank; rate is all bytes divided
	 * by it, in GiB/s; dlio_: duration of rank 0 */
	size_t nsaves, nloads;
	double *save_s, *load_s;
	struct pen_ckpt_figures *save, *load;
	struct pen_mean save_time, save_rate, load_time, load_rate;
	struct pen_mean dlio_save_time, dlio_save_rate, dlio_load_time,
		dlio_load_rate;
	/* sums over ranks, training only */
	uint64_t samples, payload_bytes, read_bytes, nreads, device_read_bytes;
	struct pen_io_delta io; /* all counters */
	double train_s;		/* slowest rank, sum of its training blocks */
	double cpu_s;
	double cached_share; /* 1 - device bytes / read bytes, >= 0 */
	/* time of all accelerators by activity */
	double load_s_sum, compute_s_sum, slack_s_sum;
	struct pen_hist wait, step;
	double first_batch_s; /* mean over ranks, first block */
	/* rank 0: facts of all ranks during training, and why the accelerators
	 * waited */
	struct pen_facts facts;
	struct pen_verdict why;
};
/* Collective. */
int pen__figures(struct pen_figures *, const struct pen_record *,
		 struct pen_err *err);
void pen__figures_fini(struct pen_figures *);

/* Utilisation for display with one decimal: never rounds up to the target. */
double pen__shown_au(double au, double wanted);
/* A summary of a few sentences; no newline at the end. */
void pen__summary(const struct pen_record *, const struct pen_figures *,
		  struct pen_text *);

#endif
