/*
 * Writing single cells, a row at a time, whatever the file is like: h5ad, zarr
 * or packed. Sizes are known before; rows come in order and are not kept, so
 * that memory does not grow with the file. A file appears under its name when
 * it is finished, and not at all when anything failed.
 */
#ifndef PEN_FORMAT_CELLS_CELLS_WRITE_H
#define PEN_FORMAT_CELLS_CELLS_WRITE_H

#include "base/opt.h"
#include "penstock.h"

/* A column of obs or var. */
struct pen_cells_column_spec {
	const char *name;
	enum pen_dtype dtype;
	/* Values are int32: -1 (missing), or places among names. */
	bool coded;
	/* coded: these are the names of the rows themselves. With names NULL
	 * (nnames 0) the values are the names: const char *, none missing. */
	bool index;
	bool ordered; /* coded: the order of names means something */
	/* Says of the column before it, whose name it has, where that is
	 * missing: true or false (PEN_BOOL). That one is of integers or
	 * booleans. */
	bool mask;
	uint32_t nnames;
	const char *const *names;
};

/* A matrix beside X: of dense rows, under obsm or layers. */
struct pen_cells_dense_spec {
	const char *path; /* "obsm/X_pca", "layers/scaled" */
	enum pen_dtype dtype;
	uint64_t ncols;
};

/* A sparse one, likewise. */
struct pen_cells_csr_spec {
	const char *path;
	enum pen_dtype dtype, indices; /* as X's */
	uint64_t ncols, nnz;
};

struct pen_cells_spec {
	uint64_t nrows, ncols, nnz;
	bool sparse;		/* X is CSR; false: dense rows */
	enum pen_dtype dtype;	/* of X's numbers */
	enum pen_dtype indices; /* of X's indices: I32, I64, U16, U32 */
	uint32_t nobs, nvar, ndense, ncsr;
	const struct pen_cells_column_spec *obs, *var;
	const void *const *var_values; /* per column of var: ncols values */
	const struct pen_cells_dense_spec *dense;
	const struct pen_cells_csr_spec *csr;
	bool converts; /* its options are given as to.X, not format.X */
};

/* Rows of a sparse matrix. */
struct pen_cells_lists {
	const uint64_t *start;	 /* one more than rows, from 0 */
	const uint32_t *indices; /* sorted within a row or not */
	const void *values;
};

/* Some rows. */
struct pen_cells_rows {
	uint64_t n;
	const uint64_t *start;	  /* sparse: n + 1, from 0 */
	const uint32_t *indices;  /* sparse: sorted within a row or not */
	const void *values;	  /* start[n], or n x ncols of them */
	const void *const *obs;	  /* per column: n values */
	const void *const *dense; /* per matrix: n x ncols values */
	const struct pen_cells_lists *csr; /* per sparse one beside X */
};

/* The text of row i of a coded column; NULL when it is missing. */
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
	/* After the last row: the file is whole under tmp; it is synced and
	 * renamed by who called. */
	int (*finish)(struct pen_cells_writer *, struct pen_err *);
	void (*close)(struct pen_cells_writer *); /* copes with half-built */
};

struct pen_cells_writer {
	const struct pen_cells_writer_ops *ops;
	void *priv;			   /* options parsed */
	const struct pen_cells_spec *spec; /* the caller's until close */
	char *path, *tmp;    /* tmp: beside path; a file or a directory */
	uint64_t nrows, nnz; /* so far */
	uint64_t *csr_nnz;   /* the same of each sparse matrix beside X */
	bool failed, sealed, finished;
};

/* By name, or NULL; a writer whose library is absent is not there. */
const struct pen_cells_writer_ops *pen__cells_writer_find(const char *name);
/* By the suffix of a path, a trailing '/' left out; NULL when none fits. */
const struct pen_cells_writer_ops *pen__cells_writer_for(const char *path);
const struct pen_cells_writer_ops *pen__cells_writer_at(unsigned i);

/* Removes what writers of that path left who were killed; what one of them had
 * moved aside comes back. */
void pen__cells_writer_clean(const char *path);
/* A file, or what looks like a zarr store, is replaced at the end; any other
 * directory is refused. */
int pen__cells_writer_open(struct pen_cells_writer **out,
			   const struct pen_cells_writer_ops *,
			   const char *path, const struct pen_cells_spec *,
			   const struct pen_opts_kv *kv, size_t nkv,
			   struct pen_err *);
/* Checks the rows against the spec: their number, and that genes exist. */
int pen__cells_writer_rows(struct pen_cells_writer *,
			   const struct pen_cells_rows *, struct pen_err *);
/* The file is whole and on the disk, under tmp, and can be looked at; refuses
 * when rows are missing. */
int pen__cells_writer_seal(struct pen_cells_writer *, struct pen_err *);
/* The same, unless that was done, and tmp becomes path. */
int pen__cells_writer_finish(struct pen_cells_writer *, struct pen_err *);
/* Removes what is unfinished. NULL is fine. */
void pen__cells_writer_close(struct pen_cells_writer *);

#endif
