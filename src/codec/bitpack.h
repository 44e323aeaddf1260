/*
 * Numbers of 32 bits, most of them small, in few bits each: blocks of 256
 * that have one width, and a list of the few that do not fit it.
 *
 * A block of m numbers (256, or what is left at the end):
 *   1 byte   bits 0-5: the width w, 0..32; bits 6-7: log2 of the bytes that
 *            an exception's upper part takes
 *   1 byte   exceptions, e
 *   words    number i is bits [w (i/8), w (i/8) + w) of lane i % 8, a lane
 *            being every eighth 32-bit word: as many rows of eight words as
 *            hold m numbers
 *   e bytes  where exceptions are in the block
 *   e parts  what lies above their lower w bits
 */
#ifndef PEN_CODEC_BITPACK_H
#define PEN_CODEC_BITPACK_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

#define PEN_BITPACK 256u /* numbers of a block */

/* Bytes that are enough for a block. */
#define PEN_BITPACK_BOUND (2 + 4 * PEN_BITPACK)

/* Packs n <= PEN_BITPACK numbers to at most PEN_BITPACK_BOUND bytes, and
 * returns how many. */
size_t pen__bitpack(const uint32_t *in, size_t n, uint8_t *out);
/*
 * The next block, of n <= PEN_BITPACK numbers. out has room for PEN_BITPACK;
 * what lies past n there is lost. in->bad when the bytes are no block.
 */
void pen__bitunpack(struct pen_bytes *in, size_t n, uint32_t *out);
/* The same by plain arithmetic: what the other is tested against. */
void pen__bitunpack_plain(struct pen_bytes *in, size_t n, uint32_t *out);

#endif
