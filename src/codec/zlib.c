/* Deflate in a zlib wrapper (RFC 1950); libdeflate verifies its Adler-32. */
#include <libdeflate.h>

#include "codec/codec.h"
#include "codec/deflate.h"

static int zlib_unpack(struct pen_scratch *s, const void *in, size_t n,
		       void *out, size_t cap, size_t *got)
{
	struct libdeflate_decompressor *d = pen__inflater(s);

	if (!d)
		return PEN_ENOMEM;
	return libdeflate_zlib_decompress(d, in, n, out, cap, got) ==
			       LIBDEFLATE_SUCCESS
		       ? 0
		       : PEN_EDATA;
}

const struct pen_codec pen__codec_zlib = {
	.name = "zlib",
	.ratio = 1032,
	.unpack = zlib_unpack,
};
