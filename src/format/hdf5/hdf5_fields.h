/* Internals of the format `hdf5`. */
#ifndef PEN_FORMAT_HDF5_HDF5_FIELDS_H
#define PEN_FORMAT_HDF5_HDF5_FIELDS_H

#include "format/chunked/plain.h"
#include "format/hdf5/hdf5.h"

struct pen_h5_format {
	struct pen_plain plain; /* must be first: used by plain.c */
	/* options of writing */
	char *chunk, *maxshape;
	int compression;
	int64_t level, num_dset;
	bool shuffle, labels;
};

int pen__h5_index(const struct pen_format *, struct pen_peek *,
		  struct pen_found *, struct pen_err *);
int pen__h5_write(const struct pen_format *, const struct pen_table *,
		  struct pen_out *, struct pen_err *);

#endif
