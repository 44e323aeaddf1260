/* Deflate in a gzip member (RFC 1952); libdeflate verifies its CRC. */
#include <libdeflate.h>

#include "codec/codec.h"
#include "codec/deflate.h"

static int gzip_unpack(struct pen_scratch *s, const void *in, size_t n,
		       void *out, size_t cap, size_t *got)
{
	struct libdeflate_decompressor *d = pen__inflater(s);

	if (!d)
		return PEN_ENOMEM;
	return libdeflate_gzip_decompress(d, in, n, out, cap, got) ==
			       LIBDEFLATE_SUCCESS
		       ? 0
		       : PEN_EDATA;
}

const struct pen_codec pen__codec_gzip = {
	.name = "gzip",
	.ratio = 1032,
	.unpack = gzip_unpack,
};
