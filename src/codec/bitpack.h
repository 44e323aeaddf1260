/*
 * Mostly small 32-bit numbers in few bits each: blocks of 256 numbers of one
 * width, and a list of the few exceptions that do not fit.
 *
 * A block of m numbers (256, or the rest at the end):
 *   1 byte   bits 0-5: the width w, 0..32; bits 6-7: log2 of the bytes of the
 *            upper part of an exception
 *   1 byte   number of exceptions, e
 *   words    number i is bits [w (i/8), w (i/8) + w) of lane i % 8; a lane is
 *            every eighth 32-bit word. As many rows of eight words as m
 *            numbers need
 *   e bytes  positions of the exceptions in the block
 *   e parts  their bits above the lower w
 */
#ifndef PEN_CODEC_BITPACK_H
#define PEN_CODEC_BITPACK_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

#define PEN_BITPACK 256u /* numbers per block */

/* Maximum size of a block. */
#define PEN_BITPACK_BOUND (2 + 4 * PEN_BITPACK)

/* Packs n <= PEN_BITPACK numbers into at most PEN_BITPACK_BOUND bytes, and
 * returns their number. */
size_t pen__bitpack(const uint32_t *in, size_t n, uint8_t *out);
/*
 * Unpacks the next block, of n <= PEN_BITPACK numbers. out has room for
 * PEN_BITPACK; the rest of it is overwritten. Sets in->bad if the bytes are not
 * a block.
 */
void pen__bitunpack(struct pen_bytes *in, size_t n, uint32_t *out);
/* The same without vectors: reference for tests. */
void pen__bitunpack_plain(struct pen_bytes *in, size_t n, uint32_t *out);

#endif
