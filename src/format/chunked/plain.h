/*
 * Plain arrays as samples: arrays of a file are fields, their first axis counts
 * samples, or the file is one. What hdf5 and zarr have in common, which is all
 * but the way to the arrays.
 *
 * Blob: PEN_PLAIN_BLOB, what a sample is, the file's version and the number
 * of fields (a byte each), how many arrays are left out (4 bytes), then per
 * field its name, how it is stored and the array (chunks.h).
 */
#ifndef PEN_FORMAT_CHUNKED_PLAIN_H
#define PEN_FORMAT_CHUNKED_PLAIN_H

#include "format/array.h"
#include "format/chunked/chunks.h"

#define PEN_PLAIN_BLOB 'A'
#define PEN_PLAIN_UNITS 4096 /* chunks that one sample may lie in */

enum pen_plain_stored {
	PEN_STORED_COMPACT,
	PEN_STORED_FLAT,
	PEN_STORED_CHUNKS
};

/* A field of one object. */
struct pen_plain_view {
	struct pen_chunked a;
	uint64_t n, row; /* samples, and bytes of one */
	size_t dims;	 /* in the pool: shape, chunk, grid, ndim each */
	uint32_t ncross; /* chunks a sample lies in */
	uint32_t per;	 /* samples along a chunk */
	uint8_t stored;	 /* enum pen_plain_stored */
	bool whole;	 /* the array is one sample */
	bool alone;	 /* a chunk belongs to one sample */
	bool exact;	 /* and is its row */
	bool in_rows;	 /* unpacked rows lie in one piece in a chunk */
};

/* What a format's private memory begins with. */
struct pen_plain {
	/* options */
	int samples; /* enum pen_samples, without `last` */
	char *fields;
	/* from bind() on */
	unsigned version, mode;
	uint64_t nleft_out;	     /* arrays that are no fields */
	uint64_t first;		     /* blob that has fields */
	struct pen_plain_view *view; /* blob id * nfields + field */
	int64_t *dims;
	size_t ndims, cap_dims;
	uint32_t unit0[PEN_MAX_FIELDS + 1]; /* a field's first unit */
};

/* Its options. */
#define PEN_PLAIN_NOPTS 2
#define PEN_PLAIN_OPTS                                                         \
	{ .name = "samples",                                                   \
	  .type = PEN_OPT_ENUM,                                                \
	  .off = offsetof(struct pen_plain, samples),                          \
	  .dflt = "auto",                                                      \
	  .help = "what is a sample: the file, or a step along the first "     \
		  "axis of every data set (auto: that)",                       \
	  .choices = pen__plain_choices },                                     \
	{                                                                      \
		.name = "fields", .type = PEN_OPT_STR,                         \
		.off = offsetof(struct pen_plain, fields),                     \
		.help = "data sets to read, a/x,a/y,...; all numeric ones as " \
			"long as the largest when empty"                       \
	}
extern const char *const pen__plain_choices[];

/* ---- while a file is indexed ---- */

/* An array that can be a field. */
struct pen_plain_pick {
	char name[sizeof(((struct pen_field *)0)->name)];
	uint64_t addr; /* the source's own */
	uint64_t dim0, nbytes;
	uint32_t ndim;
};

/* Those found so far, and the way there. */
struct pen_picker {
	const struct pen_plain_source *src;
	const char *name; /* of the file */
	uint64_t size;	  /* bytes that can be stored of a sample, or more */
	unsigned version;
	bool whole; /* the file is one sample, so that any shape will do */
	struct pen_plain_pick *c;
	size_t n, cap;
	unsigned nleft_out; /* arrays that are no fields */
	unsigned has;	    /* of the group at hand: bits of names that tell */
	bool anndata;	    /* the root is one's */
	bool ranger;	    /* the sparse matrix is Cell Ranger's */
	bool any_sparse;    /* a group holds a sparse matrix: */
	char sparse[1024];  /* its path, "" being the root's */
	char path[1024];
	char too_long[1024]; /* a path that is no field's name, or "" */
};

/* A kind of file that has arrays; a picker is part of what it has open. */
struct pen_plain_source {
	const char *noun; /* what it calls an array */
	/* Adds all that can be fields. */
	int (*all)(struct pen_picker *, struct pen_err *);
	/* Adds the one at path, or says why not. */
	int (*named)(struct pen_picker *, struct pen_err *);
	/* How it is stored, and where. */
	int (*put)(struct pen_picker *, const struct pen_plain_pick *,
		   const char *where, struct pen_buf *, struct pen_err *);
};

/* For sources: adds the array at path; d has its type and shape. */
int pen__picker_add(struct pen_picker *, uint64_t addr,
		    const struct pen_chunked_put *d, struct pen_err *);
/* For sources: a name in the group at hand; and at its end, path being that of
 * the group, with a slash at its end. */
void pen__picker_see(struct pen_picker *, const char *name);
void pen__picker_judge(struct pen_picker *);
/* All of a file, by the options. */
int pen__plain_index(const struct pen_plain *, struct pen_picker *,
		     struct pen_found *, struct pen_err *);
void pen__picker_fini(struct pen_picker *);

/* ---- later: what pen_format_ops has ---- */

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
