/*
 * The packed layout of single cells (.pen): rows in chunks that are packed
 * individually (codec/cellpack.h), columns of obs and var in pieces packed the
 * same way, and a directory at the end with their locations. docs/packed.md
 * specifies the bytes.
 */
#ifndef PEN_FORMAT_CELLS_PACKED_H
#define PEN_FORMAT_CELLS_PACKED_H

#include "format/format.h"

#define PEN_PACKED_VERSION 2u	/* and 1, which lacks the features marked so */
#define PEN_PACKED_HEAD 64u	/* bytes before the first chunk */
#define PEN_PACKED_FOOT 32u	/* bytes after the directory */
#define PEN_PACKED_PIECE 32768u /* elements of a piece of a table */
#define PEN_PACKED_BYTES 1048576u	    /* the same of a table of bytes */
#define PEN_PACKED_MOST ((uint64_t)1 << 28) /* values in one chunk */

extern const uint8_t pen__packed_magic[8];

/*
 * Locations of pieces, in the directory: an offset of 8 bytes and a length of 4
 * bytes each. Chunks of a matrix have two lengths of 4 bytes: that of the gene
 * indices (0 if dense) and that of the values, which follow them.
 */
struct pen_packed_pieces {
	uint64_t n;
	const uint8_t *p;
	unsigned step; /* 12, or 16 for chunks */
};

/* A list of n elements; each piece but the last has `piece` of them. */
struct pen_packed_table {
	enum pen_dtype dtype;
	uint64_t n;
	uint32_t piece;
	struct pen_packed_pieces at;
};

enum {
	PEN_PACKED_CODED = 1,
	PEN_PACKED_INDEX = 2,
	PEN_PACKED_ORDERED = 4,
	PEN_PACKED_TEXT = 8, /* names are the row names, in order */
	PEN_PACKED_MASK =
		16, /* marks missing values of the column before; version 2 */
};

struct pen_packed_column {
	struct pen_span name;
	unsigned flags;
	uint32_t nnames;
	struct pen_packed_table
		names; /* coded: bytes; 4 of length, text, ... */
	struct pen_packed_table values;
};

/* X, or (version 2) another sparse matrix: chunks of complete rows. */
struct pen_packed_matrix {
	struct pen_span path; /* empty for X */
	uint64_t ncols, nnz;
	bool sparse;
	enum pen_dtype dtype, indices;
	/* Bytes (1 or 2) that fit all values, which are unsigned integers;
	 * 0: they are not. */
	unsigned narrow;
	uint32_t group; /* rows per chunk */
	struct pen_packed_pieces chunks;
	struct pen_packed_table lengths; /* sparse: values per row */
};

/* A dense matrix other than X: the rows of a piece follow one another, not
 * packed. */
struct pen_packed_dense {
	struct pen_span path;
	enum pen_dtype dtype;
	uint64_t ncols;
	uint32_t group; /* rows per piece */
	struct pen_packed_pieces at;
};

/* A directory that has been read and checked. */
struct pen_packed {
	struct pen_peek *pk;
	struct pen_buf dir; /* its bytes, which everything here points into */
	uint32_t version;
	uint64_t nrows;
	struct pen_packed_matrix x;
	struct pen_span meta; /* pairs of strings */
	uint32_t nmeta, nobs, nvar, ndense, ncsr;
	struct pen_packed_column *column; /* of obs, then of var */
	struct pen_packed_dense *dense;
	struct pen_packed_matrix *csr;
};

/* Must be closed even after an error. */
int pen__packed_open(struct pen_packed *, struct pen_peek *, struct pen_err *);
void pen__packed_close(struct pen_packed *);
/* The next string: 4 bytes of length, then text; sets bad if truncated. */
struct pen_span pen__packed_str(struct pen_bytes *);
uint64_t pen__packed_offset(const struct pen_packed_pieces *, uint64_t i);
uint32_t pen__packed_length(const struct pen_packed_pieces *, uint64_t i);
/* The length of a chunk's values; pen__packed_length() is that of its gene
 * indices. */
uint32_t pen__packed_numbers(const struct pen_packed_pieces *, uint64_t i);
/* Whether chunk i can contain n values and as many gene indices. */
bool pen__packed_holds(const struct pen_packed_matrix *, uint64_t i,
		       uint64_t n);
/* Appends the contents of a table to out; what: for messages. */
int pen__packed_table(const struct pen_packed *,
		      const struct pen_packed_table *, const char *what,
		      struct pen_buf *out, struct pen_err *);

#endif
