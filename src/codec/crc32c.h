/* CRC-32C (Castagnoli): what TFRecord and zarr protect their bytes with. */
#ifndef PEN_CODEC_CRC32C_H
#define PEN_CODEC_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Continues from crc (0 to start). Any thread. */
uint32_t pen__crc32c(uint32_t crc, const void *p, size_t n);
/* The same by table, whatever the CPU has: what the other is tested against. */
uint32_t pen__crc32c_table(uint32_t crc, const void *p, size_t n);

/*
 * As TFRecord stores it: turned and moved, because the crc of bytes that
 * contain their own crc says nothing.
 */
static inline uint32_t pen__crc32c_mask(uint32_t crc)
{
	return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

#endif
