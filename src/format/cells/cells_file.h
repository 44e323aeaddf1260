/*
 * A file of single cells while it is indexed, independent of its container:
 * groups and lists by path, their attributes, and arrays that become entries of
 * the blob. HDF5, zarr and packed files each provide a table of functions; no
 * other code depends on the container.
 */
#ifndef PEN_FORMAT_CELLS_CELLS_FILE_H
#define PEN_FORMAT_CELLS_CELLS_FILE_H

#include "format/format.h"

#define PEN_CELLS_PATH 640

struct pen_cells_node {
	char path[PEN_CELLS_PATH];
	uint64_t addr; /* meaning depends on the source */
	bool group;
	bool member; /* of the compound at addr; last part of path */
};

struct pen_cells;
struct pen_cells_source;

/* Chunks of an array that are not stored and read as its fill value. */
struct pen_cells_absent {
	uint64_t n, of;
	uint64_t end;	/* of a list: where the last of them ends */
	char names[96]; /* the first few */
};

/* One file while it is indexed. */
struct pen_cells_file {
	const struct pen_cells_source *src;
	void *in; /* private to the source */
	struct pen_peek *pk;
	struct pen_err *err;
	struct pen_buf *warned; /* warnings, or NULL: not wanted */
	char name[200];		/* for messages */
	const char *var;	/* path of the frame that describes its genes */
	bool exact;		/* columns with a mask keep it and their type */
	uint64_t nrows, ncols;	/* of the matrix */
};

/* A complete list of a file: numbers in native byte order, or strings. */
struct pen_cells_list {
	bool text;
	enum pen_dtype dtype; /* of numbers */
	size_t size;	      /* bytes of an element */
	uint64_t n;
	/* numbers, or strings in the format of column.names */
	struct pen_buf data;
	/* from an attribute: the categories that its codes refer to */
	bool coded;
	struct pen_cells_node categories;
	struct pen_cells_absent absent;
};

/* An array that was added to the blob. */
struct pen_cells_shape {
	enum pen_dtype dtype;
	uint32_t ndim;
	uint64_t dim[2];
	uint64_t most; /* upper bound of the elements, from the stored bytes */
	struct pen_cells_absent absent;
	/* A matrix that shares rows of dim[1] with others: its columns are
	 * [first, first + n); n 0: all. */
	uint64_t first, n;
};

struct pen_cells_source {
	/* f->pk is set; sets in and name. nfiles: objects of the data set */
	int (*open)(struct pen_cells_file *, uint64_t nfiles);
	void (*close)(
		struct pen_cells_file *); /* accepts a partly opened file */
	/* 1: found, 0: not found, or an error */
	int (*find)(struct pen_cells_file *, const char *path,
		    struct pen_cells_node *);
	/* A string attribute, or a boolean as True or False; empty if
	 * absent. */
	int (*text_attr)(struct pen_cells_file *, const struct pen_cells_node *,
			 const char *name, char *buf, size_t cap);
	/* An attribute of two numbers: 1, 0 if absent, or an error. */
	int (*shape_attr)(struct pen_cells_file *,
			  const struct pen_cells_node *, const char *name,
			  uint64_t shape[2]);
	/* member: of the list's compound type, else NULL. Refuses data that
	 * is neither strings nor numbers. */
	int (*list)(struct pen_cells_file *, const struct pen_cells_node *,
		    const char *member, struct pen_cells_list *);
	/* For inspect: name and kind of each column of a frame. Unreadable
	 * columns are omitted; only missing memory and failed reads are
	 * errors. */
	int (*inventory)(struct pen_cells_file *, const char *frame,
			 struct pen_buf *out);
	/* The same for the members of a group, "" being the root; nothing if
	 * it does not exist. Kinds: an encoding-type ("csr_matrix"),
	 * "group", or a type, with its shape if it is a matrix ("float32
	 * 700x50"). */
	int (*children)(struct pen_cells_file *, const char *group,
			struct pen_buf *out);
	/* For inspect: names and values of facts that the file states. May
	 * be NULL. */
	int (*facts)(struct pen_cells_file *, struct pen_buf *out);
	/* Adds an array to the blob: see format/chunked/chunks.h. */
	int (*array)(struct pen_cells_file *, const struct pen_cells_node *,
		     bool list, struct pen_buf *, struct pen_cells_shape *);
	/* Whether the file contains plain arrays instead of cells, and the
	 * options allow that: 1 and the arrays, 0, or an error. NULL: never. */
	int (*plain)(struct pen_cells_file *, const struct pen_cells *,
		     struct pen_found *);
};

extern const struct pen_cells_source pen__cells_in_hdf5;
extern const struct pen_cells_source pen__cells_in_zarr;
extern const struct pen_cells_source pen__cells_in_packed;

/* The contents of the file except frames: path and kind of every matrix and
 * of everything that is not read here. */
int pen__cells_tree(struct pen_cells_file *, struct pen_buf *out);
/* The same for a group or a frame: "obs/NAME". */
int pen__cells_tree_of(struct pen_cells_file *, const char *group, bool frame,
		       struct pen_buf *out);
/* Whether an object of that kind is a matrix that can be read. */
bool pen__cells_is_matrix(struct pen_span path, struct pen_span kind);
/* "FILE:path" */
void pen__cells_where(const struct pen_cells_file *, const char *path,
		      char *buf, size_t cap);
int pen__cells_refuse(const struct pen_cells_file *, int kind, const char *path,
		      const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* Adds a warning about absent chunks, either damage or a note. */
void pen__cells_warn_absent(struct pen_cells_file *, const char *path,
			    const struct pen_cells_absent *, bool damage);
/* Fails if the object does not exist. */
int pen__cells_need(struct pen_cells_file *, const char *path,
		    struct pen_cells_node *);
int pen__cells_list_open(struct pen_cells_file *, const struct pen_cells_node *,
			 struct pen_cells_list *);
void pen__cells_list_close(struct pen_cells_list *);
/* Every element as a string, in the format of column.names. */
int pen__cells_list_names(struct pen_cells_file *,
			  const struct pen_cells_list *, struct pen_buf *);
/* The same for the list at a node, or for the values of a group {values,
 * mask}. */
int pen__cells_names(struct pen_cells_file *, const struct pen_cells_node *,
		     struct pen_buf *, uint64_t *n);
double pen__cells_number(enum pen_dtype, const uint8_t *); /* any alignment */
/* Appends a line of the inventory, or a string of a list. */
void pen__cells_put_text(struct pen_buf *, const void *, size_t n);

#endif
