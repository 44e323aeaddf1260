/* Shared by the packing of places and of numbers. */
#ifndef PEN_CODEC_CELLPACK_INT_H
#define PEN_CODEC_CELLPACK_INT_H

#include "codec/bitpack.h"
#include "codec/cellpack.h"

#define BLOCK PEN_BITPACK

static inline size_t block_of(size_t n, size_t at)
{
	return n - at < BLOCK ? n - at : BLOCK;
}

static inline uint64_t start_of(const struct pen_cellrows *r, uint64_t row)
{
	const uint8_t *p = (const uint8_t *)r->starts + row * r->width;
	uint64_t at;
	uint32_t a;

	if (r->width == 4) {
		memcpy(&a, p, sizeof(a));
		return a;
	}
	memcpy(&at, p, sizeof(at));
	return at;
}

/* End of row `row`; the last one has none. */
static inline uint64_t row_end(const struct pen_cellrows *r, uint32_t row)
{
	if (row >= r->nrows)
		return UINT64_MAX;
	return start_of(r, (uint64_t)row + 1) - start_of(r, 0);
}

/* n <= BLOCK numbers, as a block of bitpack.h. */
void pen__cellpack_block(const uint32_t *, size_t n, struct pen_buf *out);
/* Reserves a head, and fills it in at the end. */
size_t pen__cellpack_begin(struct pen_buf *out);
void pen__cellpack_end(struct pen_buf *out, size_t at, unsigned how);
/* The packing method; `in` is positioned after the head. -1: invalid head. */
int pen__cellpack_open(struct pen_bytes *in, unsigned most, const char **why);

/* Converts n <= BLOCK 32-bit numbers in[i] + add to 8 or 16 bits. False if one
 * does not fit. */
bool pen__cellpack_narrow(const uint32_t *in, uint64_t add, size_t n,
			  unsigned width, uint8_t *out);

/* Tables: see cellpack.h. False if they do not save space, or memory is short;
 * out is unchanged then. */
bool pen__tables_pack(const struct pen_cellrows *, size_t item,
		      const uint8_t *values, uint32_t n, struct pen_buf *out);
/* Sets in->bad if the bytes are not tables. */
void pen__tables_unpack(const struct pen_cellnumbers *, struct pen_bytes *in);

#endif
