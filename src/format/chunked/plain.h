/*
 * Plain arrays as samples: the arrays of a file are fields, and their first
 * axis counts samples, or the file is one sample. Shared by hdf5 and zarr,
 * which differ only in finding the arrays.
 *
 * Blob: PEN_PLAIN_BLOB, mode of samples, version of the file and number of
 * fields (a byte each), number of excluded arrays (4 bytes), then per field its
 * name, storage layout and array (chunks.h).
 */
#ifndef PEN_FORMAT_CHUNKED_PLAIN_H
#define PEN_FORMAT_CHUNKED_PLAIN_H

#include "format/array.h"
#include "format/chunked/chunks.h"

#define PEN_PLAIN_BLOB 'A'
#define PEN_PLAIN_UNITS 4096 /* most chunks of one sample */

enum pen_plain_stored {
	PEN_STORED_COMPACT,
	PEN_STORED_FLAT,
	PEN_STORED_CHUNKS
};

/* A field of one object. */
struct pen_plain_view {
	struct pen_chunked a;
	uint64_t n, row; /* samples, and bytes per sample */
	size_t dims;	 /* in the pool: shape, chunk, grid, ndim each */
	uint32_t ncross; /* chunks per sample */
	uint32_t per;	 /* samples along a chunk */
	uint8_t stored;	 /* enum pen_plain_stored */
	bool whole;	 /* the array is one sample */
	bool alone;	 /* a chunk belongs to one sample */
	bool exact;	 /* and is its row */
	bool in_rows;	 /* unfiltered rows are contiguous in a chunk */
};

/* The private memory of a format starts with this. */
struct pen_plain {
	/* options */
	int samples; /* enum pen_samples, without `last` */
	char *fields;
	/* from bind() on */
	unsigned version, mode;
	uint64_t nleft_out;	     /* arrays that are not fields */
	uint64_t first;		     /* first blob with fields */
	struct pen_plain_view *view; /* blob id * nfields + field */
	int64_t *dims;
	size_t ndims, cap_dims;
	uint32_t unit0[PEN_MAX_FIELDS + 1]; /* first unit of a field */
};

/* Options of these formats. */
#define PEN_PLAIN_OPTS                                                         \
	{ .name = "samples",                                                   \
	  .type = PEN_OPT_ENUM,                                                \
	  .off = offsetof(struct pen_plain, samples),                          \
	  .dflt = "auto",                                                      \
	  .help = "what a sample is: the file, or an entry along the first "   \
		  "axis (auto: first)",                                        \
	  .choices = pen__plain_choices },                                     \
	{                                                                      \
		.name = "fields", .type = PEN_OPT_STR,                         \
		.off = offsetof(struct pen_plain, fields),                     \
		.help = "data sets to read, separated by commas (default: "    \
			"all numeric ones of the greatest length)"             \
	}
extern const char *const pen__plain_choices[];

/* ---- while a file is indexed ---- */

/* An array that can be a field. */
struct pen_plain_pick {
	char name[sizeof(((struct pen_field *)0)->name)];
	uint64_t addr; /* private to the source */
	uint64_t dim0, nbytes;
	uint32_t ndim;
};

/* Arrays found so far, and the current path. */
struct pen_picker {
	const struct pen_plain_source *src;
	const char *name; /* of the file */
	uint64_t size;	  /* upper bound for the stored bytes of a sample */
	unsigned version;
	bool whole; /* the file is one sample, so any shape is valid */
	struct pen_plain_pick *c;
	size_t n, cap;
	unsigned nleft_out; /* arrays that are not fields */
	unsigned has;	 /* bit set of the telling names in the current group */
	bool anndata;	 /* the root is AnnData */
	bool ranger;	 /* the sparse matrix is from Cell Ranger */
	bool any_sparse; /* a group contains a sparse matrix: */
	char sparse[1024]; /* its path, "" for the root */
	char path[1024];
	char too_long[1024]; /* a path too long for a field name, or "" */
};

/* A file format with arrays; a picker is part of its open file. */
struct pen_plain_source {
	const char *noun; /* its word for an array */
	/* Adds all arrays that can be fields. */
	int (*all)(struct pen_picker *, struct pen_err *);
	/* Adds the array at path, or fails with the reason. */
	int (*named)(struct pen_picker *, struct pen_err *);
	/* Writes layout and location of an array to the blob. */
	int (*put)(struct pen_picker *, const struct pen_plain_pick *,
		   const char *where, struct pen_buf *, struct pen_err *);
};

/* For sources: adds the array at path; d has its type and shape. */
int pen__picker_add(struct pen_picker *, uint64_t addr,
		    const struct pen_chunked_put *d, struct pen_err *);
/* For sources: see() takes each name in the current group, judge() ends the
 * group, whose path ends in a slash. */
void pen__picker_see(struct pen_picker *, const char *name);
void pen__picker_judge(struct pen_picker *);
/* Indexes a file according to the options. */
int pen__plain_index(const struct pen_plain *, struct pen_picker *,
		     struct pen_found *, struct pen_err *);
void pen__picker_fini(struct pen_picker *);

/* ---- functions for pen_format_ops ---- */

int pen__plain_bind(struct pen_format *, const struct pen_index *,
		    struct pen_err *);
void pen__plain_unbind(struct pen_format *);
void pen__plain_shape(const struct pen_format *, uint32_t object, uint64_t k,
		      uint32_t field, int64_t *shape);
void pen__plain_locate(const struct pen_format *, uint32_t object, uint64_t k,
		       struct pen_unit *);
int pen__plain_unpack(const struct pen_format *, const struct pen_unit *,
		      struct pen_span raw, void *out, struct pen_scratch *,
		      struct pen_err *);
int pen__plain_emit(const struct pen_format *, const struct pen_row *,
		    struct pen_err *);
void pen__plain_describe(const struct pen_format *, struct pen_describe *);

#endif
