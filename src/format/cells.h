/*
 * Single cells among their files: options, what the index blob becomes, and
 * what reading a file's tables needs.
 *
 * Blob: sizes of the matrix, its arrays (data and indices, or the dense one)
 * with their chunk maps, the offsets of rows (sparse), the rows a filter left,
 * the columns of obs that were asked for, what genes= needs of var, and a list
 * of what obs has, for inspect. Numbers in tables are this machine's own.
 */
#ifndef PEN_FORMAT_CELLS_H
#define PEN_FORMAT_CELLS_H

#include "format/array.h"
#include "format/hdf5_filter.h"

#define PEN_CELLS_GENES ((uint64_t)1 << 24) /* the most a matrix may have */
#define PEN_CELLS_UNITS 4096		    /* chunks that one row may lie in */
#define PEN_CELLS_NONE UINT32_MAX	    /* a gene that is left out */

enum { PEN_CELLS_DENSE, PEN_CELLS_CSR }; /* option output */

/* ---- arrays: where the numbers lie ---- */

/* A data set seen as rows and columns; a list is a single row. */
struct pen_cells_array {
	uint64_t ncols;
	uint64_t at; /* flat: where the first number is */
	uint64_t chunk_rows, chunk_cols, grid_cols;
	uint64_t chunk_bytes, nchunks;
	/* the chunk map, in the blob; NULL when left out */
	const uint8_t *cells, *offsets, *sizes, *masks;
	uint32_t id0; /* number of its first chunk */
	uint8_t dtype, item;
	bool flat; /* rows are runs of bytes, one after another */
	bool swap;
	uint8_t fill[8];
	struct pen_h5_pipe pipe;
};

/* For the blob; list: of one axis, whose chunks must all be stored. */
int pen__cells_array_put(struct pen_h5 *, const struct pen_h5_data *, bool list,
			 struct pen_buf *, const char *where, struct pen_err *);
bool pen__cells_array_take(struct pen_bytes *, struct pen_cells_array *);
/* Units that columns [from, to) of a row are made of. */
uint32_t pen__cells_array_units(const struct pen_cells_array *, uint64_t from,
				uint64_t to);
void pen__cells_array_locate(const struct pen_cells_array *, uint64_t row,
			     uint64_t from, uint64_t to, struct pen_unit *);

/* What is left of columns [at, end) of a row that was fetched. */
struct pen_cells_run {
	const struct pen_cells_array *a;
	const struct pen_unit *unit;
	const struct pen_span *data;
	uint64_t row, at, end;
	uint8_t *room; /* for those of a row that were narrowed */
};
/* The next numbers in one piece, until the one after; 0 when the bytes are not
 * the array's. *p is NULL when they were never written. */
uint64_t pen__cells_run_next(struct pen_cells_run *, const uint8_t **p);

/* An unpacked chunk in two bytes a number, in place: how many bytes it has
 * then, or 0: its numbers need more. */
int pen__cells_narrow(const struct pen_cells_array *, void *chunk);
/* n of its numbers as they were. */
void pen__cells_widen(const struct pen_cells_array *, const uint8_t *p,
		      uint64_t n, uint8_t *out);

/* ---- columns of obs ---- */

struct pen_cells_column {
	char name[sizeof(((struct pen_field *)0)->name)];
	uint8_t dtype;
	bool coded;	       /* values are int32, -1 or places in names */
	uint32_t nnames;       /* categories, or distinct strings */
	struct pen_buf names;  /* each: length (4 bytes), text */
	struct pen_buf values; /* one for each row of the file */
};

/* One file while it is indexed. */
struct pen_cells_file {
	struct pen_h5 *h;
	struct pen_peek *pk;
	struct pen_err *err;
	const char *var;       /* path of the frame its genes are in */
	uint64_t nrows, ncols; /* of the matrix */
};

/* A list of a file, whole. */
struct pen_cells_list {
	struct pen_h5_data d;
	struct pen_buf data;
	uint64_t n;
	uint64_t categories; /* attribute: the object it refers to */
};
int pen__cells_list_open(struct pen_cells_file *, uint64_t addr,
			 const char *path, struct pen_cells_list *);
void pen__cells_list_close(struct pen_cells_list *);
/* Every element as text, in the form of column.names. */
int pen__cells_list_names(struct pen_cells_file *,
			  const struct pen_cells_list *, const char *path,
			  struct pen_buf *);
/* The same of the list at addr, or of the values of a group {values, mask}. */
int pen__cells_names(struct pen_cells_file *, uint64_t addr, const char *path,
		     struct pen_buf *, uint64_t *n);
/* A list of compounds becomes one of this member. */
int pen__cells_member(struct pen_cells_file *, struct pen_cells_list *,
		      const char *name, const char *path);
/* Is there an object? 1, 0, or an error. */
int pen__cells_there(struct pen_cells_file *, const char *path, uint64_t *addr);
/* An attribute that is a string; empty when there is none. */
int pen__cells_text_attr(struct pen_cells_file *, const struct pen_h5_head *,
			 const char *name, char *buf, size_t cap);
double pen__cells_number(enum pen_dtype, const uint8_t *); /* any alignment */

/* A column of obs or var, of n rows; close it in any case. */
int pen__cells_column_open(struct pen_cells_file *, const char *frame,
			   const char *name, uint64_t n,
			   struct pen_cells_column *);
void pen__cells_column_close(struct pen_cells_column *);
/* For inspect: a line for each column, into out. */
int pen__cells_columns_list(struct pen_cells_file *, struct pen_buf *out);
/* The rows that filter= leaves, as 4 bytes each; NULL text: all. */
int pen__cells_filter(struct pen_cells_file *, const char *text,
		      struct pen_buf *rows);
/* The names of the genes, in the form of column.names; none without var. */
int pen__cells_genes(struct pen_cells_file *, struct pen_buf *names);
/* The next of names; false at the end. */
bool pen__cells_next_name(struct pen_bytes *, struct pen_span *);

/* ---- the format ---- */

/* A requested column, in the blob. */
struct pen_cells_field {
	const uint8_t *values;
	struct pen_span names;
	uint8_t dtype;
	bool coded;
	uint32_t nnames;
	const int32_t *merged; /* its codes among all files'; NULL: the same */
};

/* What a blob becomes. */
struct pen_cells_view {
	uint64_t nrows, ncols, nnz, nsamples;
	struct pen_cells_array data, indices; /* dense: data only */
	const uint8_t *indptr;		      /* nrows + 1 of width bytes */
	const uint8_t *rows; /* 4 bytes for each sample; NULL: all rows */
	uint32_t *map;	     /* gene to column; NULL: as it is, up to ntake */
	uint32_t ntake;
	uint64_t extent; /* dense: columns that are fetched */
	uint8_t width;
	bool sparse;
	bool plain; /* the bytes of its units are the row's */
	uint64_t genes_hash;
	uint64_t most;	/* numbers in the longest row */
	uint64_t piece; /* bytes of a row's numbers, at most, if filtered */
	struct pen_span genes, inventory;
	struct pen_cells_field *field;
};

struct pen_cells {
	/* options */
	char *matrix, *dtype, *genes, *obs, *filter;
	int output;
	double normalize;
	bool log1p;
	/* from open() on */
	enum pen_dtype type;
	uint64_t first;	     /* genes=first:N */
	struct pen_buf list; /* genes=@FILE: its bytes */
	/* from bind() on */
	struct pen_cells_view *view; /* by blob id */
	struct pen_cells_field *field;
	int32_t *merged[PEN_MAX_FIELDS]; /* by column of obs */
	uint64_t nviews;
	uint32_t nobs;	  /* columns of obs that are fields */
	uint32_t indices; /* the first unit of indices */
};

/* Names in the order of their bytes. */
static inline int pen__cells_compare(struct pen_span a, struct pen_span b)
{
	const size_t n = a.n < b.n ? a.n : b.n;
	const int d = n ? memcmp(a.p, b.p, n) : 0;

	return d ? d : (a.n > b.n) - (a.n < b.n);
}

static inline uint64_t pen__cells_u32(const uint8_t *p, uint64_t i)
{
	uint32_t v;

	memcpy(&v, p + i * sizeof(v), sizeof(v));
	return v;
}

static inline uint64_t pen__cells_u64(const uint8_t *p, uint64_t i)
{
	uint64_t v;

	memcpy(&v, p + i * sizeof(v), sizeof(v));
	return v;
}

/* Where a row's numbers begin in a sparse matrix. */
static inline uint64_t pen__cells_start(const struct pen_cells_view *v,
					uint64_t row)
{
	return v->width == 4 ? pen__cells_u32(v->indptr, row)
			     : pen__cells_u64(v->indptr, row);
}

extern const struct pen_opt pen__cells_opts[];
int pen__cells_open(struct pen_format *, struct pen_err *);
void pen__cells_close(struct pen_format *);
int pen__cells_index(const struct pen_format *, struct pen_peek *,
		     struct pen_found *, struct pen_err *);
int pen__cells_bind(struct pen_format *, const struct pen_index *,
		    struct pen_err *);
void pen__cells_unbind(struct pen_format *);
/* Which genes a view takes: fills its map and ntake. */
int pen__cells_take_genes(const struct pen_cells *, struct pen_cells_view *,
			  const char *where, struct pen_err *);
/* Makes codes mean the same in all views. */
int pen__cells_merge(struct pen_cells *, struct pen_err *);
void pen__cells_shape(const struct pen_format *, uint32_t object, uint64_t k,
		      uint32_t field, int64_t *shape);
void pen__cells_locate(const struct pen_format *, uint32_t object, uint64_t k,
		       struct pen_unit *units);
int pen__cells_unpack(const struct pen_format *, const struct pen_unit *,
		      struct pen_span raw, void *out, struct pen_scratch *,
		      struct pen_err *);
int pen__cells_emit(const struct pen_format *, const struct pen_row *,
		    struct pen_err *);
/* Of columns of obs; a category that is missing is NAN. */
bool pen__cells_value(const struct pen_format *, uint32_t object, uint64_t k,
		      uint32_t field, double *out);
void pen__cells_describe(const struct pen_format *, struct pen_describe *);

#endif
