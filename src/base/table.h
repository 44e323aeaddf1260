/* Samples to be written to a file. */
#ifndef PEN_BASE_TABLE_H
#define PEN_BASE_TABLE_H

#include "base/err.h"

/*
 * An object to write: n samples of some fields. A field's samples are
 * consecutive in memory (data[field]), or made on demand by part() or, in
 * entire samples, by rows(); these return the same bytes each time.
 */
struct pen_table {
	uint64_t nsamples;
	uint32_t nfields;
	const struct pen_field *field; /* shape of one sample, dtype, name */
	const void *const *data;       /* NULL: call part() or rows() */
	/* bytes [off, off + n) of all samples one after another */
	int (*part)(const struct pen_table *, uint32_t field, uint64_t off,
		    size_t n, void *to, struct pen_err *);
	int (*rows)(const struct pen_table *, uint32_t field, uint64_t first,
		    uint64_t n, void *to, struct pen_err *);
	void *arg; /* for part() and rows() */
};

#endif
