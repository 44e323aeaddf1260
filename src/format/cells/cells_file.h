/*
 * A file of single cells while it is indexed, whatever it is stored in: groups
 * and lists by path, their attributes, and arrays that become entries of the
 * blob. HDF5 and zarr each have a table of functions; nobody else asks which
 * of them it is.
 */
#ifndef PEN_FORMAT_CELLS_CELLS_FILE_H
#define PEN_FORMAT_CELLS_CELLS_FILE_H

#include "format/format.h"

#define PEN_CELLS_PATH 640

struct pen_cells_node {
	char path[PEN_CELLS_PATH];
	uint64_t addr; /* the source's own */
	bool group;
	bool member; /* of the structures at addr: the last part of path */
};

struct pen_cells;
struct pen_cells_source;

/* Chunks of an array that are not stored, and read as its fill value. */
struct pen_cells_absent {
	uint64_t n, of;
	uint64_t end;	/* of a list: where the last of them ends */
	char names[96]; /* the first ones */
};

/* One file while it is indexed. */
struct pen_cells_file {
	const struct pen_cells_source *src;
	void *in; /* the source's */
	struct pen_peek *pk;
	struct pen_err *err;
	struct pen_buf *warned; /* what is doubtful, or NULL: nobody asks */
	char name[200];		/* for messages */
	const char *var;	/* path of the frame its genes are in */
	bool exact;	       /* columns with a mask keep it, and their type */
	uint64_t nrows, ncols; /* of the matrix */
};

/* A list of a file, whole: numbers in this machine's order, or texts. */
struct pen_cells_list {
	bool text;
	enum pen_dtype dtype; /* of numbers */
	size_t size;	      /* bytes of one */
	uint64_t n;
	/* numbers, or texts in the form of column.names */
	struct pen_buf data;
	/* attribute: where the categories are that it has the codes of */
	bool coded;
	struct pen_cells_node categories;
	struct pen_cells_absent absent;
};

/* An array that went into the blob. */
struct pen_cells_shape {
	enum pen_dtype dtype;
	uint32_t ndim;
	uint64_t dim[2];
	uint64_t most; /* elements that what is stored can be */
	struct pen_cells_absent absent;
	/* A matrix among others, in rows of dim[1]: columns [first, first + n)
	 * are its own; n 0: all are. */
	uint64_t first, n;
};

struct pen_cells_source {
	/* f->pk is there; sets in and name. nfiles: objects of the data set */
	int (*open)(struct pen_cells_file *, uint64_t nfiles);
	void (*close)(struct pen_cells_file *); /* copes with half-open */
	/* 1, 0 when it is not there, or an error */
	int (*find)(struct pen_cells_file *, const char *path,
		    struct pen_cells_node *);
	/* An attribute that is a string, or True or False; empty when there is
	 * none. */
	int (*text_attr)(struct pen_cells_file *, const struct pen_cells_node *,
			 const char *name, char *buf, size_t cap);
	/* One of two numbers: 1, 0 when there is none, or an error. */
	int (*shape_attr)(struct pen_cells_file *,
			  const struct pen_cells_node *, const char *name,
			  uint64_t shape[2]);
	/* member: of the structures the list has, else NULL. Refuses what is
	 * neither text nor numbers. */
	int (*list)(struct pen_cells_file *, const struct pen_cells_node *,
		    const char *member, struct pen_cells_list *);
	/* For inspect: name and kind of each column of a frame. What cannot be
	 * read is left out; only a lack of memory and of bytes is an error. */
	int (*inventory)(struct pen_cells_file *, const char *frame,
			 struct pen_buf *out);
	/* The same of what is in a group, "" being the root; nothing, when it
	 * is not there. Kinds: an encoding-type ("csr_matrix"), "group", or a
	 * type, with a size when it is a matrix ("float32 700x50"). */
	int (*children)(struct pen_cells_file *, const char *group,
			struct pen_buf *out);
	/* For inspect: name and value of what it says of itself. May be NULL.
	 */
	int (*facts)(struct pen_cells_file *, struct pen_buf *out);
	/* An array for the blob: see format/chunked/chunks.h. */
	int (*array)(struct pen_cells_file *, const struct pen_cells_node *,
		     bool list, struct pen_buf *, struct pen_cells_shape *);
	/* A file that has no cells but arrays, and options that leave it so: 1,
	 * and what these are, 0 or an error. NULL: no such files. */
	int (*plain)(struct pen_cells_file *, const struct pen_cells *,
		     struct pen_found *);
};

extern const struct pen_cells_source pen__cells_in_hdf5;
extern const struct pen_cells_source pen__cells_in_zarr;
extern const struct pen_cells_source pen__cells_in_packed;

/* What there is besides frames: path and kind of every matrix, and of all that
 * nothing here reads. */
int pen__cells_tree(struct pen_cells_file *, struct pen_buf *out);
/* The same of a group or a frame: "obs/NAME". */
int pen__cells_tree_of(struct pen_cells_file *, const char *group, bool frame,
		       struct pen_buf *out);
/* Is a thing of that kind a matrix that can be read? */
bool pen__cells_is_matrix(struct pen_span path, struct pen_span kind);
/* "FILE:path" */
void pen__cells_where(const struct pen_cells_file *, const char *path,
		      char *buf, size_t cap);
int pen__cells_refuse(const struct pen_cells_file *, int code, const char *path,
		      const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* Absent chunks become a warning: damage, or nothing but worth knowing. */
void pen__cells_warn_absent(struct pen_cells_file *, const char *path,
			    const struct pen_cells_absent *, bool damage);
/* It has to be there. */
int pen__cells_need(struct pen_cells_file *, const char *path,
		    struct pen_cells_node *);
int pen__cells_list_open(struct pen_cells_file *, const struct pen_cells_node *,
			 struct pen_cells_list *);
void pen__cells_list_close(struct pen_cells_list *);
/* Every element as text, in the form of column.names. */
int pen__cells_list_names(struct pen_cells_file *,
			  const struct pen_cells_list *, struct pen_buf *);
/* The same of the list at a node, or of the values of a group {values, mask}.
 */
int pen__cells_names(struct pen_cells_file *, const struct pen_cells_node *,
		     struct pen_buf *, uint64_t *n);
double pen__cells_number(enum pen_dtype, const uint8_t *); /* any alignment */
/* A line of the inventory, or a text of a list. */
void pen__cells_put_text(struct pen_buf *, const void *, size_t n);

#endif
