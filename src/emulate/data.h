/* One split of the data set of a workload, opened with the reader settings of
 * the workload. */
#ifndef PEN_EMULATE_DATA_H
#define PEN_EMULATE_DATA_H

#include "emulate/layout.h"
#include "emulate/run.h"

struct pen_data {
	struct pen_loader *l;
	struct pen_time_spec preprocess;
	struct pen_rng *rng; /* per worker */
	uint64_t steps;	     /* per accelerator and epoch */
	uint64_t nsamples, nbytes;
	uint32_t batch;		     /* samples per batch */
	uint64_t read_bytes, nreads; /* already in the record */
};

/* epochs: the number of epochs that will be read. */
int pen__data_open(struct pen_data *, struct pen_run *, enum pen_split,
		   uint64_t epochs, struct pen_err *err);
void pen__data_close(struct pen_data *);
/* Validates the loader settings without reading data. */
int pen__data_check(const struct pen_run *, struct pen_err *err);
/* Errors: not enough data for one step, or for total_training_steps. */
int pen__fail_no_step(const char *where, uint64_t samples, uint64_t batch,
		      unsigned world, struct pen_err *err);
int pen__fail_few_steps(const struct pen_config *, uint64_t steps,
			struct pen_err *err);
/* reader.c: the loader settings of a split, without its files */
int pen__reader_spec(struct pen_spec *, const struct pen_run *, enum pen_split,
		     uint64_t epochs, struct pen_err *err);
/* Replaces names of loader settings in an error by keys of the workload. */
void pen__reader_err(struct pen_err *err);
/*
 * Drops the files to be read, or everything, from the page cache, as set by
 * page_cache; ranks share the work. *how describes what was done.
 */
int pen__data_drop_cache(struct pen_run *, char *how, size_t cap,
			 struct pen_err *err);

#endif
