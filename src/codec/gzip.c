/* Deflate in a gzip member (RFC 1952), its CRC checked by libdeflate. */
#include <libdeflate.h>

#include "codec/codec.h"
#include "codec/deflate.h"

static int gzip_unpack(struct pen_scratch *s, const void *in, size_t n,
		       void *out, size_t cap, size_t *got)
{
	if (!s->inflater && !pen__mem_tick())
		s->inflater = libdeflate_alloc_decompressor();
	if (!s->inflater)
		return PEN_ENOMEM;
	return libdeflate_gzip_decompress(s->inflater, in, n, out, cap, got) ==
			       LIBDEFLATE_SUCCESS
		       ? 0
		       : PEN_EDATA;
}

const struct pen_codec pen__codec_gzip = {
	.name = "gzip",
	.ratio = 1032,
	.unpack = gzip_unpack,
};
