/* Packing with LZF; unpacking is by name, see codec.h. */
#ifndef PEN_CODEC_LZF_H
#define PEN_CODEC_LZF_H

#include <stddef.h>

/* The size, at most cap; 0 when it does not fit. */
size_t pen__lzf_pack(const void *in, size_t n, void *out, size_t cap);

#endif
