/* One split of a workload's data set, opened for loading as the workload's
 * reader settings say. */
#ifndef PEN_EMULATE_DATA_H
#define PEN_EMULATE_DATA_H

#include "emulate/layout.h"
#include "emulate/run.h"
#include "engine/loader.h"

struct pen_data {
	struct pen_loader *l;
	struct pen_time_spec preprocess;
	struct pen_rng *rng; /* per worker */
	uint64_t steps;	     /* of every accelerator, an epoch */
	uint64_t nsamples, nbytes;
	uint64_t read_bytes, nreads; /* that are in the record already */
};

/* epochs: how many times it will be gone through. */
int pen__data_open(struct pen_data *, struct pen_run *, enum pen_split,
		   uint64_t epochs, struct pen_err *err);
void pen__data_close(struct pen_data *);
/* data_loader=synthetic: samples out of nothing. */
static inline bool pen__is_synthetic(const struct pen_config *c)
{
	return c->reader.data_loader == PEN_LOADER_SYNTHETIC;
}
/* reader.c: how to load a split, its files apart */
int pen__reader_spec(struct pen_spec *, const struct pen_run *, enum pen_split,
		     uint64_t epochs, struct pen_err *err);
/*
 * Drops the files that will be read from the page cache, or all of it, as
 * page_cache says; ranks share the work. *how says in words what was done.
 */
int pen__data_drop_cache(struct pen_run *, char *how, size_t cap,
			 struct pen_err *err);

#endif
