/*
 * Single cells among their files: options, what the index blob becomes, and
 * what reading a file's tables needs.
 *
 * Blob: for each matrix that was asked for its sizes, its arrays (data and
 * indices, or the dense one) with their chunk maps, and the offsets of rows
 * (sparse); then the rows a filter left, the columns of obs that were asked
 * for, what genes= needs of var, and a list of what obs has, for inspect.
 * Numbers in tables are this machine's own. bind() looks at none of the tables
 * that have an entry for each row, so that it costs the same for a thousand
 * cells and for a hundred million; whoever takes a number out of one checks
 * it.
 */
#ifndef PEN_FORMAT_CELLS_CELLS_H
#define PEN_FORMAT_CELLS_CELLS_H

#include "format/array.h"
#include "format/cells/cells_file.h"
#include "format/chunked/plain.h"

#define PEN_CELLS_GENES ((uint64_t)1 << 24) /* the most a matrix may have */
#define PEN_CELLS_UNITS 4096		    /* chunks that one row may lie in */
#define PEN_CELLS_NONE UINT32_MAX	    /* a gene that is left out */
#define PEN_CELLS_MATRICES 28		    /* of option matrix */
#define PEN_CELLS_NAME 256 /* bytes of a column's, with a NUL */

enum { PEN_CELLS_DENSE, PEN_CELLS_CSR };		   /* option output */
enum { PEN_CELLS_SAME, PEN_CELLS_INNER, PEN_CELLS_OUTER }; /* option join */

/* Where a matrix's columns are described. */
enum { PEN_CELLS_VAR, PEN_CELLS_RAW_VAR, PEN_CELLS_FRAMES, PEN_CELLS_NOVAR };

/* ---- matrices ---- */

/* A matrix of one file. */
struct pen_cells_matrix {
	uint64_t nrows, ncols;
	uint64_t nnz;  /* numbers stored; dense: nrows * ncols */
	uint64_t most; /* numbers in the longest row */
	struct pen_chunked data, indices; /* dense: data only */
	const uint8_t *indptr;		  /* sparse: nrows + 1 of width bytes */
	uint8_t width;
	bool sparse;
	bool plain;	      /* the bytes of its units are the row's */
	const uint32_t *map;  /* gene to column; NULL: as it is, up to ntake */
	uint32_t *own;	      /* the map, when it is this matrix' alone: */
	uint64_t first, nown; /* its columns, of those that rows have; 0: all */
	uint32_t ntake;
	uint64_t extent; /* dense: columns that are fetched */
};

/* The same matrix in all files: what was asked for, and what it becomes. */
struct pen_cells_slot {
	char path[256]; /* as in the option */
	char name[56];	/* of its fields; _data and _indices fit behind */
	uint8_t frame;	/* PEN_CELLS_VAR, ...; obsm: PEN_CELLS_NOVAR */
	bool list;	/* two fields, NAME_data and NAME_indices */
	enum pen_dtype type;
	uint32_t field;		/* its first one */
	uint32_t data, indices; /* first units of each */
	uint32_t ntake;		/* columns that rows have */
	uint64_t most;		/* numbers in the longest row of all files */
};

/*
 * Where row `row` lies among a matrix's numbers: [*from, *to). Of a sparse one
 * these are elements of its lists, of a dense one columns. Never more than
 * `most`, never beyond the last, whatever the blob says.
 */
void pen__cells_span(const struct pen_cells_matrix *, uint64_t row,
		     uint64_t *from, uint64_t *to);
/* The most units that a row of an array of the matrix is made of. */
uint32_t pen__cells_array_units(const struct pen_cells_matrix *,
				const struct pen_chunked *);
/* As many of them as pen__cells_span() of the row needs; in those that are
 * used object is 0, the file itself, or the number of another one plus 1. */
void pen__cells_array_locate(const struct pen_cells_matrix *,
			     const struct pen_chunked *, uint64_t row,
			     struct pen_unit *);

/* Has a row of a sparse matrix `least` numbers or more in chunks of the array
 * that are not stored? */
bool pen__cells_lacks(const struct pen_cells_matrix *,
		      const struct pen_chunked *, uint64_t least);
/* Does a row lie in chunk `number` (0), before it (-1) or behind it (1)? A row
 * without numbers is where it would be; *any says that it has some. */
int pen__cells_side(const struct pen_cells_matrix *, const struct pen_chunked *,
		    uint64_t number, uint64_t row, bool *any);

/* What is left of columns [at, end) of a row that was fetched. */
struct pen_cells_run {
	const struct pen_cells_matrix *m;
	const struct pen_chunked *a;
	const struct pen_unit *unit;
	const struct pen_span *data;
	uint64_t row, at, end;
	uint8_t *room; /* for those of a row that were narrowed */
};
/* The next numbers in one piece, until the one after; 0 when the bytes are not
 * the array's. *p is NULL when they were never written. */
uint64_t pen__cells_run_next(struct pen_cells_run *, const uint8_t **p);

/* ---- columns of obs ---- */

struct pen_cells_column {
	char name[PEN_CELLS_NAME];
	uint8_t dtype;
	bool nullable;	       /* file.exact: mask says which are missing */
	bool coded;	       /* values are int32, -1 or places in names */
	bool ordered;	       /* coded: names have an order of their own */
	uint32_t nnames;       /* categories, or distinct strings */
	struct pen_buf names;  /* each: length (4 bytes), text */
	struct pen_buf values; /* one for each row of the file */
	struct pen_buf mask;   /* nullable: a byte for each */
};

/* A column of obs or var, of n rows, "_index" being whatever its index is
 * called; close it in any case. */
int pen__cells_column_open(struct pen_cells_file *, const char *frame,
			   const char *name, uint64_t n,
			   struct pen_cells_column *);
void pen__cells_column_close(struct pen_cells_column *);
/* A name and a kind for each column of a frame, its index among them. */
int pen__cells_columns_list(struct pen_cells_file *, const char *frame,
			    struct pen_buf *out);
/* What the index of a frame is called. */
int pen__cells_index_name(struct pen_cells_file *, const char *frame, char *buf,
			  size_t cap);
/* The rows that filter= leaves, as 4 bytes each; NULL text: all. */
int pen__cells_filter(struct pen_cells_file *, const char *text,
		      struct pen_buf *rows);
/* The names of the genes, in the form of column.names; none without var. */
int pen__cells_genes(struct pen_cells_file *, struct pen_buf *names);
/* The next of names; false at the end. */
bool pen__cells_next_name(struct pen_bytes *, struct pen_span *);

/* ---- names by hash ---- */

struct pen_cells_table {
	struct pen_span *s; /* by number */
	uint64_t *hash;
	/* What is compared: most names fit, so that this is all of them that
	 * has to come out of memory. */
	struct pen_cells_key {
		uint32_t n;
		uint8_t text[20];
	} * key;
	struct pen_cells_bucket {
		uint32_t tag; /* upper half of the hash */
		uint32_t id;  /* number + 1, or 0 */
	} * slot;
	uint32_t n, cap;
	uint32_t mask; /* slots - 1 */
};
/* Room for `cap` names before it grows. */
bool pen__cells_table_init(struct pen_cells_table *, uint32_t cap);
void pen__cells_table_fini(struct pen_cells_table *);
uint64_t pen__cells_hash(struct pen_span);
/* Its number, or PEN_CELLS_NONE. */
uint32_t pen__cells_table_find(const struct pen_cells_table *, struct pen_span,
			       uint64_t hash);
/* The same, added when it is not there; PEN_CELLS_NONE: no memory. */
uint32_t pen__cells_table_add(struct pen_cells_table *, struct pen_span,
			      uint64_t hash);
/* Has what finding n of them will look at come nearer: most of the time goes
 * into waiting for memory, which several can do at once. */
void pen__cells_table_near(const struct pen_cells_table *, const uint64_t *hash,
			   uint32_t n);
/* The lines of a list, blanks around them aside; refuses any that is there
 * twice. */
int pen__cells_table_lines(struct pen_cells_table *, const struct pen_buf *,
			   struct pen_err *);

/* ---- the format ---- */

/* A column that was asked for, in the blob. */
struct pen_cells_field {
	struct pen_span name;
	const uint8_t *values;
	const uint8_t *mask; /* a byte for each, 1: missing; NULL: none are */
	struct pen_span names;
	uint8_t dtype;
	bool coded, ordered;
	uint32_t nnames;
	const int32_t *merged; /* its codes among all files'; NULL: the same */
};

/* What codes of a field stand for. */
struct pen_cells_labels {
	struct pen_span *s;
	uint32_t n;
};

/* Of a frame that matrices have their columns from. */
struct pen_cells_var {
	uint64_t ncols;	       /* 0: no matrix is over it */
	uint64_t hash;	       /* of all names; 0: it has none */
	struct pen_span genes; /* names, or a byte for each, if needed */
	uint32_t set;	       /* which of pen_cells.set */
};

/* Genes that some files have alike, and what becomes of them. */
struct pen_cells_set {
	const struct pen_cells_var *var; /* of the first of these files */
	uint64_t blob;			 /* that one's */
	uint32_t *map;			 /* as pen_cells_matrix.map */
	uint32_t ntake;
};

/* What a blob becomes. */
struct pen_cells_view {
	uint64_t nrows, nsamples;
	const uint8_t *rows; /* 4 bytes for each sample; NULL: all rows */
	struct pen_cells_matrix *matrix; /* nmatrices, as in slot */
	struct pen_cells_var var[PEN_CELLS_FRAMES];
	struct pen_span inventory;
	struct pen_span obs_index,
		var_index; /* what indices are called; empty: there is none */
	struct pen_span tree;	       /* copy=true: all that there is */
	struct pen_span facts;	       /* what else a file says of itself */
	struct pen_span warned;	       /* what is doubtful: cells_describe.c */
	struct pen_cells_field *field; /* columns of obs: nobs, once bound */
	uint32_t nfields;
	uint64_t common[2]; /* which blob has what it says of genes; or 0 */
};

/* What a blob that is no file's becomes: what files say of their genes. */
struct pen_cells_common {
	uint64_t key[2];
	struct pen_span genes[PEN_CELLS_FRAMES];
	struct pen_bytes columns; /* of var */
};

struct pen_cells {
	struct pen_plain plain; /* first: what plain.c finds */
	/* options */
	char *matrix, *dtype, *genes, *obs, *filter;
	char *var;
	int output, join;
	double normalize;
	bool log1p, source;
	/*
	 * For who copies cells: numbers and matrices as they are stored, and
	 * columns of obs and var, with the index first, only here and not as
	 * fields, so that there may be any number of them.
	 */
	bool copy;
	/* from open() on */
	enum pen_dtype type; /* of matrices over genes */
	struct pen_cells_slot *slot;
	uint32_t nmatrices;
	uint64_t first;	     /* genes=first:N */
	struct pen_buf list; /* genes=@FILE: its bytes */
	/* from bind() on */
	struct pen_cells_view *view; /* by blob id; some have no matrix */
	const struct pen_cells_view *view0; /* the first that has */
	struct pen_cells_matrix *matrices;
	struct pen_cells_set *set;
	uint32_t nsets;
	struct pen_cells_common *common;
	uint32_t ncommon;
	int32_t **merged; /* by column of obs, nlabelled of them */
	struct pen_cells_labels *label;
	uint32_t nlabelled;
	uint64_t nviews;
	/* In a thread's memory while a row is made: data and genes that were
	 * narrowed, this much for each, then a dense row on its way. */
	size_t piece;
	uint32_t nobs;	     /* columns of obs that are fields */
	uint32_t obs_field;  /* the first of them; source is the one after */
	uint32_t *source_of; /* source=true: object to which file it is */
	uint32_t nsources;
	struct pen_cells_field *vars; /* columns of var, of the first file */
	uint32_t nvars;
	uint32_t *var_row; /* var=: by column, and its name */
	struct pen_span *gene;
};

/* Names in the order of their bytes. */
static inline int pen__cells_compare(struct pen_span a, struct pen_span b)
{
	const size_t n = a.n < b.n ? a.n : b.n;
	const int d = n ? memcmp(a.p, b.p, n) : 0;

	return d ? d : (a.n > b.n) - (a.n < b.n);
}

/* Where a row's numbers begin in a sparse matrix, as the blob has it. */
static inline uint64_t pen__cells_start(const struct pen_cells_matrix *m,
					uint64_t row)
{
	return m->width == 4 ? pen__chunked_u32(m->indptr, row)
			     : pen__chunked_u64(m->indptr, row);
}

/* Sample k's row. */
static inline uint64_t pen__cells_row(const struct pen_cells_view *v,
				      uint64_t k)
{
	const uint64_t row = v->rows ? pen__chunked_u32(v->rows, k) : k;

	return row < v->nrows ? row : 0;
}

/* The frame that columns of var are taken from: the first matrix' own. */
static inline int pen__cells_frame(const struct pen_cells *p)
{
	return p->slot[0].frame == PEN_CELLS_RAW_VAR ? PEN_CELLS_RAW_VAR
						     : PEN_CELLS_VAR;
}

/* Those of all, after those that only zarr has, for plain arrays. */
extern const struct pen_opt pen__zarr_opts[];
#define PEN_CELLS_OPTS (pen__zarr_opts + PEN_PLAIN_NOPTS)
int pen__cells_open(struct pen_format *, struct pen_err *);
void pen__cells_close(struct pen_format *);
void pen__cells_warn(const struct pen_format *, void *arg,
		     void (*see)(void *arg, const struct pen_err *));
int pen__cells_index(const struct pen_format *, const struct pen_cells_source *,
		     struct pen_peek *, struct pen_found *, struct pen_err *);
int pen__cells_bind(struct pen_format *, const struct pen_index *,
		    struct pen_err *);
void pen__cells_unbind(struct pen_format *);
/* A blob of index() that begins so is common to files. */
#define PEN_CELLS_COMMON UINT32_MAX
/* Blobs to views: fills views and what they share. *blob as above. */
int pen__cells_take_views(struct pen_cells *, const struct pen_index *,
			  uint64_t *blob, struct pen_err *);
/* Which genes views take, joined: fills sets, maps and ntake. *blob is that of
 * the file an error is about. */
int pen__cells_take_genes(struct pen_cells *, uint64_t *blob, struct pen_err *);
/* var=: what columns of matrices over var were in the first file. */
int pen__cells_name_genes(struct pen_cells *, struct pen_err *);
/* The sets [from, to) together, for one frame. */
int pen__cells_join(struct pen_cells *, uint32_t from, uint32_t to,
		    uint64_t *blob, struct pen_err *);
/* Does a list of the matrix have all that is stored, as it is stored? */
static inline bool pen__cells_whole(const struct pen_cells_matrix *m)
{
	return m->sparse && !m->map && m->ntake >= m->ncols;
}

/* The most numbers that a list of one of its rows can have. */
static inline uint64_t pen__cells_most(const struct pen_cells_matrix *m)
{
	if (m->sparse)
		return m->most;
	return m->extent < m->ntake ? m->extent : m->ntake;
}

/* Are its numbers normalized, or logarithms taken of them? */
bool pen__cells_changes(const struct pen_cells *,
			const struct pen_cells_slot *);
/* Makes codes mean the same in all views. */
int pen__cells_merge(struct pen_cells *, struct pen_err *);
void pen__cells_shape(const struct pen_format *, uint32_t object, uint64_t k,
		      uint32_t field, int64_t *shape);
void pen__cells_locate(const struct pen_format *, uint32_t object, uint64_t k,
		       struct pen_unit *units);
uint64_t pen__cells_users(const struct pen_format *, uint32_t object,
			  uint64_t k, const struct pen_unit *);
int pen__cells_unpack(const struct pen_format *, const struct pen_unit *,
		      struct pen_span raw, void *out, struct pen_scratch *,
		      struct pen_err *);
int pen__cells_emit(const struct pen_format *, const struct pen_row *,
		    struct pen_err *);
/* Of columns of obs; a category that is missing is NAN. */
bool pen__cells_value(const struct pen_format *, uint32_t object, uint64_t k,
		      uint32_t field, double *out);
void pen__cells_describe(const struct pen_format *, struct pen_describe *);
uint64_t pen__cells_nlabels(const struct pen_format *, uint32_t field);
int pen__cells_label(const struct pen_format *, uint32_t field, uint64_t code,
		     char *buf, size_t cap);

#define PEN_CELLS_BLOCK 256u /* numbers that are converted at once, at most */
/* Of an array's type, in its order; NULL: never written. Genes: what is none
 * of any matrix becomes the largest number. */
void pen__cells_doubles(const struct pen_chunked *, const uint8_t *p,
			uint64_t n, double *out);
void pen__cells_genes_of(const struct pen_chunked *, const uint8_t *p,
			 uint64_t n, uint32_t *out);
/* Adds v[i] to place at[i] of a row, unless that is PEN_CELLS_NONE; returns
 * how many fit before one that does not. */
uint64_t pen__cells_add(enum pen_dtype, void *row, const uint32_t *at,
			const double *v, uint64_t n);
/* n numbers of float32, uint16 or uint8 to float32; of uint16 to uint32. */
void pen__cells_floats(enum pen_dtype, const uint8_t *p, uint64_t n,
		       uint8_t *out);
void pen__cells_widen(const uint8_t *p, uint64_t n, uint8_t *out);
/* Are n genes of 4 bytes all below `end`, at most PEN_CELLS_GENES? */
bool pen__cells_below(const uint8_t *genes, uint64_t n, uint64_t end);

/* ---- for who copies cells elsewhere ---- */

/* Columns of var that option var= asks for, of the first file; there must be
 * a matrix over var. */
uint32_t pen__cells_nvar(const struct pen_format *);
const struct pen_cells_field *pen__cells_var(const struct pen_format *,
					     uint32_t i);
/*
 * Which row of var describes each column that the first matrix has after
 * genes= and join=, PEN_CELLS_NONE when the first file lacks the gene; and its
 * name, of length 0 when only column _index of var has it. With var= only.
 */
uint32_t pen__cells_var_row(const struct pen_format *, uint32_t column);
struct pen_span pen__cells_gene(const struct pen_format *, uint32_t column);
/* A column of obs, of the first file; its labels are those of field
 * obs_field + i. */
const struct pen_cells_field *pen__cells_obs(const struct pen_format *,
					     uint32_t i);
/* Its value of sample k of an object, codes as in the labels; and whether that
 * is missing, of a column with a mask. */
bool pen__cells_obs_take(const struct pen_format *, uint32_t i, uint32_t object,
			 uint64_t k, void *to);
/* The same of source=true: which file. */
uint32_t pen__cells_source_of(const struct pen_format *, uint32_t object);

#endif
