/*
 * Single cells across their files: options, the parsed index blob, and the
 * functions that read a file's tables.
 *
 * A blob contains, for each requested matrix, its sizes, its arrays (data and
 * indices, or the dense one) with their chunk maps, and the row offsets
 * (sparse); then the rows that a filter selects, the requested columns of obs,
 * the part of var that genes= needs, and a list of the columns of obs, for
 * inspect. Numbers in tables are in native byte order. bind() does not read
 * tables that have an entry per row, so it costs the same for a thousand cells
 * and a hundred million; code that takes a number out of such a table must
 * check it.
 */
#ifndef PEN_FORMAT_CELLS_CELLS_H
#define PEN_FORMAT_CELLS_CELLS_H

#include "format/array.h"
#include "format/cells/cells_file.h"
#include "format/chunked/plain.h"

#define PEN_CELLS_GENES ((uint64_t)1 << 24) /* columns of a matrix, at most */
#define PEN_CELLS_UNITS 4096		    /* chunks that one row may span */
#define PEN_CELLS_NONE UINT32_MAX	    /* a gene that is not selected */
#define PEN_CELLS_MATRICES 28		    /* in option matrix, at most */
#define PEN_CELLS_NAME 256 /* bytes of a column name, with its NUL */

enum { PEN_CELLS_DENSE, PEN_CELLS_CSR };		   /* option output */
enum { PEN_CELLS_SAME, PEN_CELLS_INNER, PEN_CELLS_OUTER }; /* option join */

/* The frame that describes the columns of a matrix. */
enum { PEN_CELLS_VAR, PEN_CELLS_RAW_VAR, PEN_CELLS_FRAMES, PEN_CELLS_NOVAR };

/* ---- matrices ---- */

/* A matrix of one file. */
struct pen_cells_matrix {
	uint64_t nrows, ncols;
	uint64_t nnz;  /* values stored; dense: nrows * ncols */
	uint64_t most; /* values in the longest row */
	struct pen_chunked data, indices; /* dense: data only */
	const uint8_t *indptr; /* sparse: nrows + 1 integers of `width` bytes */
	uint8_t width;
	bool sparse;
	bool plain;	      /* the bytes of its units are the row */
	const uint32_t *map;  /* gene to column; NULL: identity, up to ntake */
	uint32_t *own;	      /* the map, if only this matrix uses it: */
	uint64_t first, nown; /* its columns among those of a row; 0: all */
	uint32_t ntake;
	uint64_t extent; /* dense: columns to fetch */
};

/* One matrix of the `matrix` option, across all files. */
struct pen_cells_slot {
	char path[256]; /* as given in the option */
	char name[56];	/* of its fields; leaves room for _data and _indices */
	uint8_t frame;	/* PEN_CELLS_VAR, ...; obsm: PEN_CELLS_NOVAR */
	bool list;	/* two fields, NAME_data and NAME_indices */
	enum pen_dtype type;
	uint32_t field;		/* the first of them */
	uint32_t data, indices; /* the first unit of each */
	uint32_t ntake;		/* columns of a row */
	uint64_t most;		/* values in the longest row of all files */
};

/*
 * The range [*from, *to) of row `row`: elements of the lists of a sparse
 * matrix, columns of a dense one. Never longer than `most` and never beyond the
 * end, whatever the blob contains.
 */
void pen__cells_span(const struct pen_cells_matrix *, uint64_t row,
		     uint64_t *from, uint64_t *to);
/* The largest number of units that a row of this array spans. */
uint32_t pen__cells_array_units(const struct pen_cells_matrix *,
				const struct pen_chunked *);
/* Fills in the units that pen__cells_span() of the row needs. In units that
 * are used, object is 0 (the file itself) or the number of another object
 * plus 1. */
void pen__cells_array_locate(const struct pen_cells_matrix *,
			     const struct pen_chunked *, uint64_t row,
			     struct pen_unit *);

/* Whether a row of a sparse matrix has `least` values or more in chunks of
 * the array that are not stored. */
bool pen__cells_lacks(const struct pen_cells_matrix *,
		      const struct pen_chunked *, uint64_t least);
/* Whether a row is in chunk `number` (0), before it (-1) or after it (1).
 * *any is whether the row has values; an empty row is where its values would
 * be. */
int pen__cells_side(const struct pen_cells_matrix *, const struct pen_chunked *,
		    uint64_t number, uint64_t row, bool *any);

/* The columns [at, end) of a fetched row that are still to be read. */
struct pen_cells_run {
	const struct pen_cells_matrix *m;
	const struct pen_chunked *a;
	const struct pen_unit *unit;
	const struct pen_span *data;
	uint64_t row, at, end;
	uint8_t *room; /* for values widened from a narrower type */
};
/* Returns the length of the next contiguous run of values, or 0 if the bytes
 * do not belong to the array. *p is NULL if the values were never written. */
uint64_t pen__cells_run_next(struct pen_cells_run *, const uint8_t **p);

/* ---- columns of obs ---- */

struct pen_cells_column {
	char name[PEN_CELLS_NAME];
	uint8_t dtype;
	bool nullable;	       /* file.exact: mask marks missing values */
	bool coded;	       /* values are int32: -1 or an index into names */
	bool ordered;	       /* coded: the order of names is meaningful */
	uint32_t nnames;       /* categories, or distinct strings */
	struct pen_buf names;  /* each: length (4 bytes), string */
	struct pen_buf values; /* one per row of the file */
	struct pen_buf mask;   /* nullable: one byte per row */
};

/* Reads a column of obs or var with n rows; the name "_index" means the
 * index, whatever its name. The column must be closed even after an error. */
int pen__cells_column_open(struct pen_cells_file *, const char *frame,
			   const char *name, uint64_t n,
			   struct pen_cells_column *);
void pen__cells_column_close(struct pen_cells_column *);
/* A name and a kind for each column of a frame, including its index. */
int pen__cells_columns_list(struct pen_cells_file *, const char *frame,
			    struct pen_buf *out);
/* The name of the index of a frame. */
int pen__cells_index_name(struct pen_cells_file *, const char *frame, char *buf,
			  size_t cap);
/* The rows that filter= selects, 4 bytes each; NULL text: all. */
int pen__cells_filter(struct pen_cells_file *, const char *text,
		      struct pen_buf *rows);
/* The names of the genes, in the format of column.names; empty without var. */
int pen__cells_genes(struct pen_cells_file *, struct pen_buf *names);
/* Takes the next name; false at the end. */
bool pen__cells_next_name(struct pen_bytes *, struct pen_span *);

/* ---- names by hash ---- */

struct pen_cells_table {
	struct pen_span *s; /* by number */
	uint64_t *hash;
	/* The part that is compared. Most names fit into it, so a lookup
	 * touches no other memory of theirs. */
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
/* Allocates room for `cap` names; the table grows beyond that. */
bool pen__cells_table_init(struct pen_cells_table *, uint32_t cap);
void pen__cells_table_fini(struct pen_cells_table *);
uint64_t pen__cells_hash(struct pen_span);
/* The number of a name, or PEN_CELLS_NONE. */
uint32_t pen__cells_table_find(const struct pen_cells_table *, struct pen_span,
			       uint64_t hash);
/* Adds the name if it is new; PEN_CELLS_NONE: out of memory. */
uint32_t pen__cells_table_add(struct pen_cells_table *, struct pen_span,
			      uint64_t hash);
/* Prefetches the memory that looking up n names will touch: lookups are
 * bound by memory latency, and several misses overlap. */
void pen__cells_table_near(const struct pen_cells_table *, const uint64_t *hash,
			   uint32_t n);
/* Adds the lines of a list, without surrounding blanks; fails if one appears
 * twice. */
int pen__cells_table_lines(struct pen_cells_table *, const struct pen_buf *,
			   struct pen_err *);

/* ---- the format ---- */

/* A requested column, in the blob. */
struct pen_cells_field {
	struct pen_span name;
	const uint8_t *values;
	const uint8_t
		*mask; /* one byte per row, 1: missing; NULL: none is missing */
	struct pen_span names;
	uint8_t dtype;
	bool coded, ordered;
	uint32_t nnames;
	const int32_t *merged; /* codes among all files; NULL: same */
};

/* The labels of a field's codes. */
struct pen_cells_labels {
	struct pen_span *s;
	uint32_t n;
};

/* A frame that describes columns of matrices. */
struct pen_cells_var {
	uint64_t ncols;	       /* 0: no matrix uses it */
	uint64_t hash;	       /* of all names; 0: it has none */
	struct pen_span genes; /* names, or one byte per gene, if needed */
	uint32_t set;	       /* index into pen_cells.set */
};

/* Files with identical genes, and the columns their genes become. */
struct pen_cells_set {
	const struct pen_cells_var *var; /* of the first of these files */
	uint64_t blob;			 /* the blob of that file */
	uint32_t *map;			 /* as pen_cells_matrix.map */
	uint32_t ntake;
};

/* A parsed blob. */
struct pen_cells_view {
	uint64_t nrows, nsamples;
	const uint8_t *rows; /* 4 bytes per sample; NULL: all rows */
	struct pen_cells_matrix *matrix; /* nmatrices, as in slot */
	struct pen_cells_var var[PEN_CELLS_FRAMES];
	struct pen_span inventory;
	struct pen_span obs_index,
		var_index;	/* names of the indices; empty: none */
	struct pen_span tree;	/* copy=true: all contents of the file */
	struct pen_span facts;	/* what else the file states about itself */
	struct pen_span warned; /* warnings: see cells_describe.c */
	struct pen_cells_field
		*field; /* columns of obs: nobs of them, once bound */
	uint32_t nfields;
	uint64_t common[2]; /* key of the blob that describes its genes; or 0 */
};

/* A parsed blob that several files share: the description of their genes. */
struct pen_cells_common {
	uint64_t key[2];
	struct pen_span genes[PEN_CELLS_FRAMES];
	struct pen_bytes columns; /* of var */
};

struct pen_cells {
	struct pen_plain plain; /* must be first: plain.c uses it */
	/* options */
	char *matrix, *dtype, *genes, *obs, *filter;
	char *var;
	int output, join;
	double normalize;
	bool log1p, source;
	/*
	 * For copying cells: values and matrices as stored. Columns of obs and
	 * var, starting with the index, are available here only and not as
	 * fields, so their number is not limited.
	 */
	bool copy;
	/* set by open() */
	enum pen_dtype type; /* of matrices over genes */
	struct pen_cells_slot *slot;
	uint32_t nmatrices;
	uint64_t first;	     /* genes=first:N */
	struct pen_buf list; /* genes=@FILE: its bytes */
	/* set by bind() */
	struct pen_cells_view *view; /* by blob id; some have no matrix */
	const struct pen_cells_view *view0; /* the first with a matrix */
	struct pen_cells_matrix *matrices;
	struct pen_cells_set *set;
	uint32_t nsets;
	struct pen_cells_common *common;
	uint32_t ncommon;
	int32_t **merged; /* by column of obs, nlabelled of them */
	struct pen_cells_labels *label;
	uint32_t nlabelled;
	uint64_t nviews;
	/* Per-thread memory for building a row: widened data and genes, this
	 * many bytes each, followed by a dense row. */
	size_t piece;
	uint32_t nobs;	     /* columns of obs that are fields */
	uint32_t obs_field;  /* the first of them; source follows the last */
	uint32_t *source_of; /* source=true: object to number of its file */
	uint32_t nsources;
	struct pen_cells_field *vars; /* columns of var, from the first file */
	uint32_t nvars;
	uint32_t *var_row; /* var=: the row of each column, and its name */
	struct pen_span *gene;
};

/* Compares names bytewise. */
static inline int pen__cells_compare(struct pen_span a, struct pen_span b)
{
	const size_t n = a.n < b.n ? a.n : b.n;
	const int d = n ? memcmp(a.p, b.p, n) : 0;

	return d ? d : (a.n > b.n) - (a.n < b.n);
}

/* The offset of a row's first value in a sparse matrix, as stored in the
 * blob. */
static inline uint64_t pen__cells_start(const struct pen_cells_matrix *m,
					uint64_t row)
{
	return m->width == 4 ? pen__chunked_u32(m->indptr, row)
			     : pen__chunked_u64(m->indptr, row);
}

/* The row of sample k. */
static inline uint64_t pen__cells_row(const struct pen_cells_view *v,
				      uint64_t k)
{
	const uint64_t row = v->rows ? pen__chunked_u32(v->rows, k) : k;

	return row < v->nrows ? row : 0;
}

/* The frame that columns of var come from: that of the first matrix. */
static inline int pen__cells_frame(const struct pen_cells *p)
{
	return p->slot[0].frame == PEN_CELLS_RAW_VAR ? PEN_CELLS_RAW_VAR
						     : PEN_CELLS_VAR;
}

/* Only zarr has the first one (samples), which is for plain arrays. */
extern const struct pen_opt pen__zarr_opts[];
#define PEN_CELLS_OPTS (pen__zarr_opts + 1)
int pen__cells_open(struct pen_format *, struct pen_err *);
void pen__cells_close(struct pen_format *);
void pen__cells_warn(const struct pen_format *, void *arg,
		     void (*see)(void *arg, const struct pen_err *));
int pen__cells_index(const struct pen_format *, const struct pen_cells_source *,
		     struct pen_peek *, struct pen_found *, struct pen_err *);
int pen__cells_bind(struct pen_format *, const struct pen_index *,
		    struct pen_err *);
void pen__cells_unbind(struct pen_format *);
/* First word of an index() blob that files share. */
#define PEN_CELLS_COMMON UINT32_MAX
/* Parses blobs into views and what they share. *blob as below. */
int pen__cells_take_views(struct pen_cells *, const struct pen_index *,
			  uint64_t *blob, struct pen_err *);
/* Decides which genes the views take, joining them if requested: fills sets,
 * maps and ntake. *blob is the blob of the file that an error refers to. */
int pen__cells_take_genes(struct pen_cells *, uint64_t *blob, struct pen_err *);
/* var=: maps columns of matrices over var to rows of var in the first file. */
int pen__cells_name_genes(struct pen_cells *, struct pen_err *);
/* Joins the sets [from, to), which belong to one frame. */
int pen__cells_join(struct pen_cells *, uint32_t from, uint32_t to,
		    uint64_t *blob, struct pen_err *);
/* Whether a list of the matrix contains all stored values, unchanged. */
static inline bool pen__cells_whole(const struct pen_cells_matrix *m)
{
	return m->sparse && !m->map && m->ntake >= m->ncols;
}

/* The largest number of values in a list of one of its rows. */
static inline uint64_t pen__cells_most(const struct pen_cells_matrix *m)
{
	if (m->sparse)
		return m->most;
	return m->extent < m->ntake ? m->extent : m->ntake;
}

/* Whether its values are normalized or log-transformed. */
bool pen__cells_changes(const struct pen_cells *,
			const struct pen_cells_slot *);
/* Makes codes have the same meaning in all views. */
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
/* For columns of obs; a missing category is NAN. */
bool pen__cells_value(const struct pen_format *, uint32_t object, uint64_t k,
		      uint32_t field, double *out);
void pen__cells_describe(const struct pen_format *, struct pen_describe *);
uint64_t pen__cells_nlabels(const struct pen_format *, uint32_t field);
int pen__cells_label(const struct pen_format *, uint32_t field, uint64_t code,
		     char *buf, size_t cap);

#define PEN_CELLS_BLOCK                                                        \
	256u /* values that are converted at a time, at most                   \
	      */
/* Values of an array's type, in its byte order; NULL: never written. A gene
 * that no matrix can have becomes the largest number. */
void pen__cells_doubles(const struct pen_chunked *, const uint8_t *p,
			uint64_t n, double *out);
void pen__cells_genes_of(const struct pen_chunked *, const uint8_t *p,
			 uint64_t n, uint32_t *out);
/* Adds v[i] to element at[i] of a row, unless that is PEN_CELLS_NONE;
 * returns the number of values before the first that does not fit. */
uint64_t pen__cells_add(enum pen_dtype, void *row, const uint32_t *at,
			const double *v, uint64_t n);
/* Converts n values of float32, uint16 or uint8 to float32; n of uint16 to
 * uint32. */
void pen__cells_floats(enum pen_dtype, const uint8_t *p, uint64_t n,
		       uint8_t *out);
void pen__cells_widen(const uint8_t *p, uint64_t n, uint8_t *out);
/* Whether n genes of 4 bytes are all below `end`, at most PEN_CELLS_GENES. */
bool pen__cells_below(const uint8_t *genes, uint64_t n, uint64_t end);

/* ---- for copying cells elsewhere ---- */

/* The columns of var that option var= selects, from the first file. Requires
 * a matrix over var. */
uint32_t pen__cells_nvar(const struct pen_format *);
const struct pen_cells_field *pen__cells_var(const struct pen_format *,
					     uint32_t i);
/*
 * The row of var that describes a column of the first matrix after genes= and
 * join=, PEN_CELLS_NONE if the first file lacks the gene; and the name of the
 * column, empty if only column _index of var has it. Requires var=.
 */
uint32_t pen__cells_var_row(const struct pen_format *, uint32_t column);
struct pen_span pen__cells_gene(const struct pen_format *, uint32_t column);
/* A column of obs, from the first file; its labels are those of field
 * obs_field + i. */
const struct pen_cells_field *pen__cells_obs(const struct pen_format *,
					     uint32_t i);
/* Its value for sample k of an object, with codes as in the labels, and
 * whether the value is missing, for a column with a mask. */
bool pen__cells_obs_take(const struct pen_format *, uint32_t i, uint32_t object,
			 uint64_t k, void *to);
/* The number of the file, as with source=true. */
uint32_t pen__cells_source_of(const struct pen_format *, uint32_t object);

#endif
