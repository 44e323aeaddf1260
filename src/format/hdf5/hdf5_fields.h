/*
 * The format `hdf5` among its files: options, and the index blob, which
 * hdf5_index.c writes and hdf5_bind.c reads.
 *
 * Blob: mode, superblock version and number of fields (a byte each), then per
 * field a head and, for chunked data, its chunk map: grid cells of the stored
 * chunks (left out when all are stored, which makes the cell the place in the
 * map), offsets, sizes (left out without filters), masks (when there are any).
 */
#ifndef PEN_FORMAT_HDF5_HDF5_FIELDS_H
#define PEN_FORMAT_HDF5_HDF5_FIELDS_H

#include "format/array.h"
#include "format/hdf5/hdf5_filter.h"

#define PEN_H5_MOST_UNITS 4096 /* chunks that one sample may lie in */

enum pen_h5_kind {
	PEN_H5_FLAT,   /* one run of bytes in the file */
	PEN_H5_CHUNKS, /* at least one chunk is stored */
	PEN_H5_EMPTY,  /* nothing is: all fill value */
	PEN_H5_KEPT, /* the bytes are in the blob: those in the file are old */
};

enum { PEN_H5_HAS_CELLS = 1, PEN_H5_HAS_SIZES = 2, PEN_H5_HAS_MASKS = 4 };

/* A field of one object, seen as samples. */
struct pen_h5_view {
	uint64_t n, row;     /* samples, and bytes of one */
	uint64_t at;	     /* flat: where the data begins */
	const uint8_t *kept; /* kept: the data, in the blob */
	uint64_t chunk_bytes, nchunks;
	/* the chunk map, in the blob; NULL when left out */
	const uint8_t *cells, *offsets, *sizes, *masks;
	size_t dims;	 /* in the pool: shape, chunk, grid, ndim each */
	uint32_t ncross; /* chunks a sample lies in */
	uint32_t per;	 /* samples along a chunk */
	uint32_t id0;	 /* number of this field's first chunk */
	uint8_t ndim;	 /* of the data set */
	uint8_t kind, dtype, layout;
	bool swap, whole; /* whole: the data set is one sample */
	bool alone;	  /* a chunk belongs to one sample */
	bool exact;	  /* and is its row */
	bool in_rows;	  /* unpacked rows lie in one piece in a chunk */
	uint8_t fill[PEN_H5_FILL]; /* this machine's byte order */
	struct pen_h5_pipe pipe;
};

struct pen_h5_format {
	/* options */
	int samples; /* enum pen_samples, without `last` */
	char *fields;
	char *chunk, *maxshape; /* the rest: writing */
	int compression;
	int64_t level, num_dset;
	bool shuffle, labels;
	/* from bind() on */
	unsigned superblock, mode;
	struct pen_h5_view *view; /* blob id * nfields + field */
	int64_t *dims;
	size_t ndims, cap_dims;
	uint32_t unit0[PEN_MAX_FIELDS + 1]; /* a field's first unit */
};

/* A data set that can be a field. */
struct pen_h5_pick {
	char name[sizeof(((struct pen_field *)0)->name)];
	uint64_t addr, dim0, nbytes;
	uint32_t ndim;
};

/* Those found so far, and the way there. */
struct pen_h5_picker {
	struct pen_h5 *h;
	struct pen_peek *pk;
	struct pen_h5_pick *c;
	size_t n, cap;
	uint64_t *seen; /* groups */
	size_t nseen, cap_seen;
	unsigned depth;
	unsigned nleft_out;
	unsigned has; /* of the group at hand: bits of names in hdf5_pick.c */
	bool anndata; /* the root is one's */
	bool ranger;  /* the sparse matrix is Cell Ranger's */
	bool any_sparse;   /* a group holds a sparse matrix: */
	char sparse[1024]; /* its path, "" being the root's */
	char path[1024];
	char too_long[1024]; /* a path that is no field's name, or "" */
};
/* whole: the file is one sample, so that any shape will do. */
int pen__h5_pick_all(struct pen_h5_picker *, bool whole, struct pen_err *);
int pen__h5_pick_named(struct pen_h5_picker *, const char *list,
		       struct pen_err *);
void pen__h5_pick_fini(struct pen_h5_picker *);

int pen__h5_index(const struct pen_format *, struct pen_peek *,
		  struct pen_found *, struct pen_err *);
int pen__h5_bind(struct pen_format *, const struct pen_index *,
		 struct pen_err *);
void pen__h5_unbind(struct pen_format *);
void pen__h5_describe(const struct pen_format *, struct pen_describe *);
int pen__h5_write(const struct pen_format *, const struct pen_table *,
		  struct pen_out *, struct pen_err *);

#endif
