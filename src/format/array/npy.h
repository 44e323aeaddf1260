/* Shared by npy, npz and arrays, besides the header. */
#ifndef PEN_FORMAT_ARRAY_NPY_H
#define PEN_FORMAT_ARRAY_NPY_H

#include "codec/npy_header.h"
#include "format/array.h"

/* Version 1.0, C order, as np.save writes it; sets bad if memory is short. */
void pen__npy_header(struct pen_buf *, enum pen_dtype, const int64_t *shape,
		     uint32_t ndim);
/*
 * Header and data of one field of a table. The mode selects the axis that
 * counts samples; FILE requires a table of one sample.
 */
int pen__npy_write(const struct pen_table *, uint32_t field, enum pen_samples,
		   struct pen_out *, struct pen_err *);
/* Bytes it writes; 0: no memory, or not a valid array. */
uint64_t pen__npy_size(const struct pen_table *, uint32_t field,
		       enum pen_samples);
/* Whether the files of a folder are fields of the same samples: *other is the
 * format that reads them so, or NULL. Ambiguous folders are an error. */
int pen__npy_together(const struct pen_index *, uint64_t nbad,
		      const char **other, struct pen_err *);
/* Resolves AUTO for a writer, and checks FILE against the table. */
int pen__npy_write_mode(const struct pen_table *, int option,
			enum pen_samples *out, struct pen_err *);

#endif
