/* Compression with LZF; for decompression see codec.h. */
#ifndef PEN_CODEC_LZF_H
#define PEN_CODEC_LZF_H

#include <stddef.h>

/* Returns the size, at most cap; 0 if it does not fit. */
size_t pen__lzf_pack(const void *in, size_t n, void *out, size_t cap);

#endif
