/*
 * Writes single cells, some rows at a time, as h5ad, zarr or packed files.
 * Sizes are known in advance; rows come in order and are not kept, so memory
 * does not grow with the file. A file appears under its name when it is
 * finished, and not at all after a failure.
 */
#ifndef PEN_FORMAT_CELLS_CELLS_WRITE_H
#define PEN_FORMAT_CELLS_CELLS_WRITE_H

#include "base/opt.h"
#include "penstock.h"

/* A column of obs or var. */
struct pen_cells_column_spec {
	const char *name;
	enum pen_dtype dtype;
	/* Values are int32: -1 (missing) or an index into names. */
	bool coded;
	/* coded: these are the names of the rows. With names NULL (nnames 0)
	 * the values are the names themselves: const char *, none missing. */
	bool index;
	bool ordered; /* coded: the order of names is meaningful */
	/* Marks the missing values of the preceding column, which has the
	 * same name and contains integers or booleans: true or false
	 * (PEN_BOOL). */
	bool mask;
	uint32_t nnames;
	const char *const *names;
};

/* A dense matrix other than X, under obsm or layers. */
struct pen_cells_dense_spec {
	const char *path; /* "obsm/X_pca", "layers/scaled" */
	enum pen_dtype dtype;
	uint64_t ncols;
};

/* A sparse matrix other than X. */
struct pen_cells_csr_spec {
	const char *path;
	enum pen_dtype dtype, indices; /* as for X */
	uint64_t ncols, nnz;
};

struct pen_cells_spec {
	uint64_t nrows, ncols, nnz;
	bool sparse;		/* X is CSR; false: dense rows */
	enum pen_dtype dtype;	/* of the values of X */
	enum pen_dtype indices; /* of the indices of X: I32, I64, U16, U32 */
	uint32_t nobs, nvar, ndense, ncsr;
	const struct pen_cells_column_spec *obs, *var;
	const void *const *var_values; /* per column of var: ncols values */
	const struct pen_cells_dense_spec *dense;
	const struct pen_cells_csr_spec *csr;
	bool converts; /* its options are named to.X, not format.X */
};

/* Rows of a sparse matrix. */
struct pen_cells_lists {
	const uint64_t *start;	 /* one more than rows, starting at 0 */
	const uint32_t *indices; /* sorted within a row or not */
	const void *values;
};

/* Some rows. */
struct pen_cells_rows {
	uint64_t n;
	const uint64_t *start;	  /* sparse: n + 1, starting at 0 */
	const uint32_t *indices;  /* sparse: sorted within a row or not */
	const void *values;	  /* start[n], or n x ncols of them */
	const void *const *obs;	  /* per column: n values */
	const void *const *dense; /* per matrix: n x ncols values */
	const struct pen_cells_lists *csr; /* per sparse matrix other than X */
};

/* The string of row i of a coded column; NULL if missing. */
static inline const char *
pen__cells_column_text(const struct pen_cells_column_spec *c,
		       const void *values, uint64_t i)
{
	if (!c->names)
		return c->index ? ((const char *const *)values)[i] : NULL;
	return ((const int32_t *)values)[i] < 0
		       ? NULL
		       : c->names[((const int32_t *)values)[i]];
}

struct pen_cells_writer;
struct pen_cells_writer_ops {
	const char *name;	    /* h5ad, zarr, packed */
	const char *help;	    /* one line */
	const char *suffix;	    /* ".h5ad" */
	const struct pen_opt *opts; /* compression=, level=, chunk=, ... */
	size_t priv_size;
	int (*open)(struct pen_cells_writer *, struct pen_err *);
	int (*rows)(struct pen_cells_writer *, const struct pen_cells_rows *,
		    struct pen_err *);
	/* Called after the last row: completes the file under tmp; the
	 * caller syncs and renames it. */
	int (*finish)(struct pen_cells_writer *, struct pen_err *);
	void (*close)(
		struct pen_cells_writer *); /* accepts a half-built writer */
};

struct pen_cells_writer {
	const struct pen_cells_writer_ops *ops;
	void *priv;			   /* parsed options */
	const struct pen_cells_spec *spec; /* the caller's until close */
	char *path, *tmp;    /* tmp: next to path; a file or a directory */
	uint64_t nrows, nnz; /* so far */
	uint64_t *csr_nnz;   /* the same for each sparse matrix other than X */
	bool failed, sealed, finished;
};

/* By name; NULL if unknown, or if its library is not part of the build. */
const struct pen_cells_writer_ops *pen__cells_writer_find(const char *name);
/* By the suffix of a path, ignoring a trailing '/'; NULL if none fits. */
const struct pen_cells_writer_ops *pen__cells_writer_for(const char *path);
const struct pen_cells_writer_ops *pen__cells_writer_at(unsigned i);

/* Removes leftovers of killed writers of that path and restores an old
 * target that one of them had moved aside. */
void pen__cells_writer_clean(const char *path);
/* An existing file, or a directory that looks like a zarr store, is replaced
 * at the end; any other directory is refused. */
int pen__cells_writer_open(struct pen_cells_writer **out,
			   const struct pen_cells_writer_ops *,
			   const char *path, const struct pen_cells_spec *,
			   struct pen_opts given, struct pen_err *);
/* Checks the rows against the spec: their number, and that genes exist. */
int pen__cells_writer_rows(struct pen_cells_writer *,
			   const struct pen_cells_rows *, struct pen_err *);
/* Completes and syncs the file under tmp, where it can be read back; fails
 * if rows are missing. */
int pen__cells_writer_seal(struct pen_cells_writer *, struct pen_err *);
/* Seals the file unless that was done, and renames tmp to path. */
int pen__cells_writer_finish(struct pen_cells_writer *, struct pen_err *);
/* Removes an unfinished file. NULL is allowed. */
void pen__cells_writer_close(struct pen_cells_writer *);

#endif
