/* Deflate without a wrapper (RFC 1951), as zip archives have it. */
#include <libdeflate.h>

#include "codec/codec.h"
#include "codec/deflate.h"

static int inflate_unpack(struct pen_scratch *s, const void *in, size_t n,
			  void *out, size_t cap, size_t *got)
{
	if (!s->inflater && !pen__mem_tick())
		s->inflater = libdeflate_alloc_decompressor();
	if (!s->inflater)
		return PEN_ENOMEM;
	return libdeflate_deflate_decompress(s->inflater, in, n, out, cap,
					     got) == LIBDEFLATE_SUCCESS
		       ? 0
		       : PEN_EDATA;
}

const struct pen_codec pen__codec_inflate = {
	.name = "inflate",
	.ratio = 1032,
	.unpack = inflate_unpack,
};
