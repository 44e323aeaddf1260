/*
 * The header of an npy file: magic, version, and a Python dictionary that
 * says type, order and shape. Read and written here for npy and npz alike.
 */
#ifndef PEN_FORMAT_ARRAY_NPY_HEADER_H
#define PEN_FORMAT_ARRAY_NPY_HEADER_H

#include "format/array.h"

struct pen_npy {
	struct pen_array a; /* a.at: the header's length */
	uint8_t major;	    /* format version */
	uint32_t crc;	    /* crc32 of the header's bytes */
	uint64_t extra;	    /* bytes after the array */
};

/*
 * Reads the header at the beginning of pk. PEN_ENOTSUP only for a type that
 * is not read (with a header that fits the size, as far as one can tell);
 * PEN_EDATA for damage and for data that ends too early.
 */
int pen__npy_read(struct pen_peek *pk, struct pen_npy *out, struct pen_err *);

/* Into and out of an index blob. take() is false when it is not one. */
void pen__npy_put(struct pen_buf *, const struct pen_npy *);
bool pen__npy_take(struct pen_bytes *, struct pen_npy *);

/* Version 1.0, C order, as np.save writes it; bad is set on no memory. */
void pen__npy_header(struct pen_buf *, enum pen_dtype, const int64_t *shape,
		     uint32_t ndim);
/*
 * Header and data of one field of a table. `mode` says which axis counts the
 * samples; FILE takes tables of one sample only.
 */
int pen__npy_write(const struct pen_table *, uint32_t field, enum pen_samples,
		   struct pen_out *, struct pen_err *);
/* Bytes it writes; 0: no memory, or no such array. */
uint64_t pen__npy_size(const struct pen_table *, uint32_t field,
		       enum pen_samples);
/* What the files of a folder are: *other is the format of files that are fields
 * of the same samples, or NULL. An error when it may be both. */
int pen__npy_together(const struct pen_index *, uint64_t nbad,
		      const char **other, struct pen_err *);
/* Resolves AUTO for a writer and checks FILE against the table. */
int pen__npy_write_mode(const struct pen_table *, int option,
			enum pen_samples *out, struct pen_err *);

#endif
