/* CRC-32C (Castagnoli), used by TFRecord and zarr. */
#ifndef PEN_CODEC_CRC32C_H
#define PEN_CODEC_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Continues from crc (0 to start). Any thread. */
uint32_t pen__crc32c(uint32_t crc, const void *p, size_t n);
/* The same by table: reference for tests. */
uint32_t pen__crc32c_table(uint32_t crc, const void *p, size_t n);

/*
 * Masked as in TFRecord, because the crc of bytes that include their own crc is
 * meaningless.
 */
static inline uint32_t pen__crc32c_mask(uint32_t crc)
{
	return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

#endif
