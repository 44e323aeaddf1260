/* Byte shuffle, both ways, and the checksum of HDF5's fletcher32 filter. */
#ifndef PEN_CODEC_BYTE_SHUFFLE_H
#define PEN_CODEC_BYTE_SHUFFLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Undoes a byte shuffle: first bytes of all items, then second bytes, ...
 * become whole items. What is left when n is no multiple of item is copied.
 */
void pen__unshuffle(size_t item, const uint8_t *in, size_t n, uint8_t *out);
/* The same for `count` items of four bytes whose streams lie apart. */
void pen__weave4(const uint8_t *const in[4], size_t count, uint8_t *out);
/* Does one. */
void pen__shuffle(size_t item, const uint8_t *in, size_t n, uint8_t *out);
/* Is the checksum (4 bytes, little-endian) that of the n bytes before it? */
bool pen__fletcher32_ok(const uint8_t *p, size_t n, const uint8_t sum[4]);

#endif
