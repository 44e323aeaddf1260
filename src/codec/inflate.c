/*
 * Deflate without a wrapper (RFC 1951), as in zip archives, in a zlib wrapper
 * (RFC 1950) and in a gzip member (RFC 1952); libdeflate verifies the checksums
 * of the latter two.
 */
#include <libdeflate.h>

#include "codec/codec.h"
#include "codec/deflate.h"

static int code_of(enum libdeflate_result r)
{
	return r == LIBDEFLATE_SUCCESS ? 0 : PEN_EDATA;
}

static int inflate_unpack(struct pen_scratch *s, const void *in, size_t n,
			  void *out, size_t cap, size_t *got)
{
	struct libdeflate_decompressor *d = pen__inflater(s);

	return d ? code_of(libdeflate_deflate_decompress(d, in, n, out, cap,
							 got))
		 : PEN_ENOMEM;
}

const struct pen_codec pen__codec_inflate = {
	.name = "inflate",
	.ratio = 1032,
	.unpack = inflate_unpack,
};

static int zlib_unpack(struct pen_scratch *s, const void *in, size_t n,
		       void *out, size_t cap, size_t *got)
{
	struct libdeflate_decompressor *d = pen__inflater(s);

	return d ? code_of(libdeflate_zlib_decompress(d, in, n, out, cap, got))
		 : PEN_ENOMEM;
}

const struct pen_codec pen__codec_zlib = {
	.name = "zlib",
	.ratio = 1032,
	.unpack = zlib_unpack,
};

static int gzip_unpack(struct pen_scratch *s, const void *in, size_t n,
		       void *out, size_t cap, size_t *got)
{
	struct libdeflate_decompressor *d = pen__inflater(s);

	return d ? code_of(libdeflate_gzip_decompress(d, in, n, out, cap, got))
		 : PEN_ENOMEM;
}

const struct pen_codec pen__codec_gzip = {
	.name = "gzip",
	.ratio = 1032,
	.unpack = gzip_unpack,
};
