/*
 * Bob Jenkins' lookup3: hashlittle() with an initial value of 0, the checksum
 * of structures in HDF5.
 */
#ifndef PEN_CODEC_LOOKUP3_H
#define PEN_CODEC_LOOKUP3_H

#include <stddef.h>
#include <stdint.h>

uint32_t pen__lookup3(const void *, size_t n);

#endif
