/* One split of a workload's data set, opened for loading as the workload's
 * reader settings say. */
#ifndef PEN_EMULATE_DATA_H
#define PEN_EMULATE_DATA_H

#include "emulate/layout.h"
#include "emulate/run.h"

struct pen_data {
	struct pen_loader *l;
	struct pen_time_spec preprocess;
	struct pen_rng *rng; /* per worker */
	uint64_t steps;	     /* of every accelerator, an epoch */
	uint64_t nsamples, nbytes;
	uint32_t batch;		     /* samples of one */
	uint64_t read_bytes, nreads; /* that are in the record already */
};

/* epochs: how many times it will be gone through. */
int pen__data_open(struct pen_data *, struct pen_run *, enum pen_split,
		   uint64_t epochs, struct pen_err *err);
void pen__data_close(struct pen_data *);
/* The loader's settings, without looking at any data. */
int pen__data_check(const struct pen_run *, struct pen_err *err);
/* Too little data for one step, or for those that are wanted. */
int pen__fail_no_step(const char *where, uint64_t samples, uint64_t batch,
		      unsigned world, struct pen_err *err);
int pen__fail_few_steps(const struct pen_config *, uint64_t steps,
			struct pen_err *err);
/* reader.c: how to load a split, its files apart */
int pen__reader_spec(struct pen_spec *, const struct pen_run *, enum pen_split,
		     uint64_t epochs, struct pen_err *err);
/* An error of the loader names its settings as a workload's keys. */
void pen__reader_err(struct pen_err *err);
/*
 * Drops the files that will be read from the page cache, or all of it, as
 * page_cache says; ranks share the work. *how says in words what was done.
 */
int pen__data_drop_cache(struct pen_run *, char *how, size_t cap,
			 struct pen_err *err);

#endif
