/* Deflate without a wrapper (RFC 1951), as in zip archives. */
#include <libdeflate.h>

#include "codec/codec.h"
#include "codec/deflate.h"

static int inflate_unpack(struct pen_scratch *s, const void *in, size_t n,
			  void *out, size_t cap, size_t *got)
{
	struct libdeflate_decompressor *d = pen__inflater(s);

	if (!d)
		return PEN_ENOMEM;
	return libdeflate_deflate_decompress(d, in, n, out, cap, got) ==
			       LIBDEFLATE_SUCCESS
		       ? 0
		       : PEN_EDATA;
}

const struct pen_codec pen__codec_inflate = {
	.name = "inflate",
	.ratio = 1032,
	.unpack = inflate_unpack,
};
