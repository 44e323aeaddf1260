/*
 * Rows of a sparse matrix as bytes, places apart from numbers: what chunks of
 * the packed layout are.
 *
 * Either is:
 *   4 bytes  crc32c of all that follows
 *   1 byte   how it is packed
 *   3 bytes  zero
 *   places   1 steps: blocks of bitpack.h of how far a place lies behind the
 *              one before it in its row, less one; the first of a row is
 *              itself
 *            2 as they are: blocks of bitpack.h
 *   numbers  0 plain: their bytes
 *            1 integers: the least of them (8 bytes), then blocks of
 *              bitpack.h of how far each lies above it
 *            2 deflated: first bytes of all numbers, then second bytes, and
 *              so on, by raw deflate
 *            3 tables: how many values each row has, as blocks of bitpack.h;
 *              these values, row by row, sorted; then blocks of which of its
 *              row's each number is
 * Everything is little-endian. What a number was, bit by bit, it becomes
 * again. How many there are, and where rows begin, is not stored here.
 */
#ifndef PEN_CODEC_CELLPACK_H
#define PEN_CODEC_CELLPACK_H

#include <stdbool.h>

#include "base/bytes.h"
#include "codec/scratch.h"
#include "penstock.h"

#define PEN_CELLPACK_HEAD 8u

/* Rows one after another: nrows + 1 starts, of 4 or 8 bytes, at any address.
 * The first one counts as 0. */
struct pen_cellrows {
	const void *starts;
	unsigned width;
	uint32_t nrows;
};

/* Places to be unpacked, of 4 or 2 bytes each. */
struct pen_cellplaces {
	const struct pen_cellrows *rows;
	void *to;
	uint32_t n;
	unsigned width;
};

/* Numbers to be unpacked. */
struct pen_cellnumbers {
	enum pen_dtype dtype; /* up to PEN_F64 */
	/* What they become: the same, or, when all are integers that fit,
	 * PEN_U8 or PEN_U16. */
	enum pen_dtype as;
	uint32_t n;
	void *to;
	const struct pen_cellrows *rows; /* as they were packed with */
};

/* Append n places or numbers; out->bad when memory ran out. */
void pen__places_pack(const struct pen_cellrows *, const uint32_t *places,
		      uint32_t n, struct pen_buf *out);
/* Of numbers of no rows, or all of one length, rows may be NULL. *top, if
 * asked for: the largest, when all can be unpacked as integers from 0 on. */
void pen__numbers_pack(const struct pen_cellrows *, enum pen_dtype,
		       const void *values, uint32_t n, struct pen_buf *out,
		       uint64_t *top);

/* Exactly n; 0, PEN_ENOMEM or PEN_EDATA: *why then says what is wrong. Rows
 * that contradict n are survived. */
int pen__places_unpack(const struct pen_cellplaces *, const uint8_t *p,
		       size_t len, const char **why);
/* Takes pen__numbers_room() of scratch->mem. */
int pen__numbers_unpack(const struct pen_cellnumbers *, const uint8_t *p,
			size_t len, struct pen_scratch *, const char **why);
size_t pen__numbers_room(enum pen_dtype, uint64_t n);

#endif
