/*
 * The packed layout of single cells (.pen): rows in chunks that are packed on
 * their own (codec/cellpack.h), columns of obs and var in pieces packed the
 * same way, and a directory at the end that says where all of them are.
 * docs/packed.md has the bytes.
 */
#ifndef PEN_FORMAT_CELLS_PACKED_H
#define PEN_FORMAT_CELLS_PACKED_H

#include "format/format.h"

#define PEN_PACKED_VERSION 2u	  /* and 1, without what is marked so */
#define PEN_PACKED_HEAD 64u	  /* bytes before the first chunk */
#define PEN_PACKED_FOOT 32u	  /* bytes after the directory */
#define PEN_PACKED_PIECE 32768u	  /* elements of a piece of a table */
#define PEN_PACKED_BYTES 1048576u /* the same of a table of bytes */
#define PEN_PACKED_MOST ((uint64_t)1 << 28) /* numbers in one chunk */

extern const uint8_t pen__packed_magic[8];

/*
 * Where pieces are, in the directory: of each 8 bytes of offset, 4 of length.
 * Chunks of a matrix have two lengths, 4 bytes each: that of places (0 of a
 * dense one), and that of the numbers, which follow.
 */
struct pen_packed_pieces {
	uint64_t n;
	const uint8_t *p;
	unsigned step; /* 12, or 16 of chunks */
};

/* A list of n elements, `piece` of them in each piece but the last. */
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
	PEN_PACKED_TEXT = 8,  /* names are those of rows, in order */
	PEN_PACKED_MASK = 16, /* where the one before is missing; version 2 */
};

struct pen_packed_column {
	struct pen_span name;
	unsigned flags;
	uint32_t nnames;
	struct pen_packed_table
		names; /* coded: bytes; 4 of length, text, ... */
	struct pen_packed_table values;
};

/* X, or (version 2) a sparse one beside it: chunks of whole rows. */
struct pen_packed_matrix {
	struct pen_span path; /* of X: none */
	uint64_t ncols, nnz;
	bool sparse;
	enum pen_dtype dtype, indices;
	/* All numbers are integers from 0 to what 1 or 2 bytes hold; 0: some
	 * are not. */
	unsigned narrow;
	uint32_t group; /* rows of a chunk */
	struct pen_packed_pieces chunks;
	struct pen_packed_table lengths; /* sparse: numbers of each row */
};

/* A matrix beside X; the rows of a piece lie one after another, as they are. */
struct pen_packed_dense {
	struct pen_span path;
	enum pen_dtype dtype;
	uint64_t ncols;
	uint32_t group; /* rows of a piece */
	struct pen_packed_pieces at;
};

/* A directory, read and checked. */
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

/* Close it in any case. */
int pen__packed_open(struct pen_packed *, struct pen_peek *, struct pen_err *);
void pen__packed_close(struct pen_packed *);
/* The next string of 4 bytes of length and text; bad when it is cut off. */
struct pen_span pen__packed_str(struct pen_bytes *);
uint64_t pen__packed_offset(const struct pen_packed_pieces *, uint64_t i);
uint32_t pen__packed_length(const struct pen_packed_pieces *, uint64_t i);
/* Of a chunk: of its numbers; pen__packed_length() is that of its places. */
uint32_t pen__packed_numbers(const struct pen_packed_pieces *, uint64_t i);
/* Can chunk i be n numbers, and as many places? */
bool pen__packed_holds(const struct pen_packed_matrix *, uint64_t i,
		       uint64_t n);
/* All of a table, at the end of out; what: for messages. */
int pen__packed_table(const struct pen_packed *,
		      const struct pen_packed_table *, const char *what,
		      struct pen_buf *out, struct pen_err *);

#endif
