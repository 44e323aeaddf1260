/*
 * Some rows of a matrix as bytes: what a chunk of the packed layout is.
 *
 * A chunk:
 *   4 bytes  crc32c of all that follows
 *   1 byte   how the places are packed: 0 there are none (dense rows),
 *            1 steps, 2 as they are
 *   1 byte   how the numbers are packed: 0 plain, 1 integers,
 *            2 deflated
 *   2 bytes  zero
 *   4 bytes  length of the places that follow, packed
 *   places   blocks of bitpack.h. Steps: how far a place lies behind the one
 *            before it in its row, less one; the first of a row is itself
 *   numbers  plain: their bytes; integers: the least of them (8 bytes), then
 *            blocks of how far each lies above it; deflated: first bytes of
 *            all numbers, then second bytes, and so on, by raw deflate
 * Everything is little-endian. What a number was, bit by bit, it becomes
 * again.
 */
#ifndef PEN_CODEC_CELLPACK_H
#define PEN_CODEC_CELLPACK_H

#include <stdbool.h>

#include "base/bytes.h"
#include "codec/scratch.h"
#include "penstock.h"

#define PEN_CELLPACK_HEAD 12u

/* What is in a chunk; not stored in it. */
struct pen_cellpack {
	enum pen_dtype dtype; /* up to PEN_F64 */
	uint32_t n;	      /* numbers */
	/* Sparse: where rows end, the last one at n. NULL: dense. */
	const uint32_t *end;
	uint32_t nrows;
};

/* Appends a chunk; out->bad when memory ran out. */
void pen__cellpack(const struct pen_cellpack *, const uint32_t *places,
		   const void *values, struct pen_buf *out);
/* Working memory, of scratch->mem, that any chunk of these needs. */
size_t pen__cellpack_room(enum pen_dtype, uint64_t n);
/*
 * Exactly n places and numbers. places is NULL when nobody asks for them or
 * there are none. 0, PEN_ENOMEM or PEN_EDATA; *why then says what is
 * wrong.
 */
int pen__cellunpack(const struct pen_cellpack *, const uint8_t *p, size_t n,
		    uint32_t *places, void *values, struct pen_scratch *,
		    const char **why);

#endif
