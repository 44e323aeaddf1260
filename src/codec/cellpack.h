/*
 * Encoding of rows of a sparse matrix, places and numbers separately: the
 * chunks of the packed layout.
 *
 * Both have this form:
 *   4 bytes  crc32c of everything that follows
 *   1 byte   packing method
 *   3 bytes  zero
 *   places   1 steps: blocks of bitpack.h with the distance of a place to the
 *              previous one in its row, minus one; the first place of a row is
 *              stored as it is
 *            2 places: blocks of bitpack.h
 *   numbers  0 plain: their bytes
 *            1 integers: their minimum (8 bytes), then blocks of bitpack.h with
 *              the differences to it
 *            2 deflated: first bytes of all numbers, then second bytes, and so
 *              on, as raw deflate
 *            3 tables: the number of distinct values of each row, in blocks of
 *              bitpack.h; these values, row by row, sorted; then blocks with
 *              the index of each number among the values of its row
 * Everything is little-endian. Numbers are restored bit for bit. Their count
 * and the starts of rows are not stored here.
 */
#ifndef PEN_CODEC_CELLPACK_H
#define PEN_CODEC_CELLPACK_H

#include <stdbool.h>

#include "base/bytes.h"
#include "codec/scratch.h"
#include "penstock.h"

#define PEN_CELLPACK_HEAD 8u

/* Consecutive rows: nrows + 1 start offsets of 4 or 8 bytes, at any alignment,
 * relative to the first. */
struct pen_cellrows {
	const void *starts;
	unsigned width;
	uint32_t nrows;
};

/* Places to unpack, 4 or 2 bytes each. */
struct pen_cellplaces {
	const struct pen_cellrows *rows;
	void *to;
	uint32_t n;
	unsigned width;
};

/* Numbers to unpack. */
struct pen_cellnumbers {
	enum pen_dtype dtype; /* up to PEN_F64 */
	/* Result type: the same or, if all are integers that fit, PEN_U8 or
	 * PEN_U16. */
	enum pen_dtype as;
	uint32_t n;
	void *to;
	const struct pen_cellrows *rows; /* the same as for packing */
};

/* Append n places or numbers; set out->bad if memory is short. */
void pen__places_pack(const struct pen_cellrows *, const uint32_t *places,
		      uint32_t n, struct pen_buf *out);
/* rows may be NULL if the numbers have no rows, or rows of equal length. *top,
 * unless NULL: the maximum if all can be unpacked as integers from 0 on,
 * otherwise UINT64_MAX. */
void pen__numbers_pack(const struct pen_cellrows *, enum pen_dtype,
		       const void *values, uint32_t n, struct pen_buf *out,
		       uint64_t *top);

/* Unpacks exactly n. Returns 0, PEN_ENOMEM or PEN_EDATA with the reason in
 * *why. Tolerates rows that contradict n. */
int pen__places_unpack(const struct pen_cellplaces *, const uint8_t *p,
		       size_t len, const char **why);
/* Uses pen__numbers_room() bytes of scratch->mem. */
int pen__numbers_unpack(const struct pen_cellnumbers *, const uint8_t *p,
			size_t len, struct pen_scratch *, const char **why);
size_t pen__numbers_room(enum pen_dtype, uint64_t n);

#endif
