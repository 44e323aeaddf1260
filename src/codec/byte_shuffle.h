/* Byte shuffle in both directions, and the checksum of HDF5's fletcher32
 * filter. */
#ifndef PEN_CODEC_BYTE_SHUFFLE_H
#define PEN_CODEC_BYTE_SHUFFLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Undoes a byte shuffle: first bytes of all elements, then second bytes, ... A
 * rest, if n is not a multiple of item, is copied.
 */
void pen__unshuffle(size_t item, const uint8_t *in, size_t n, uint8_t *out);
/* The same for `count` 4-byte elements in separate streams. */
void pen__weave4(const uint8_t *const in[4], size_t count, uint8_t *out);
/* Shuffles. */
void pen__shuffle(size_t item, const uint8_t *in, size_t n, uint8_t *out);
/* Whether the checksum (4 bytes, little-endian) matches the n bytes. */
bool pen__fletcher32_ok(const uint8_t *p, size_t n, const uint8_t sum[4]);

#endif
