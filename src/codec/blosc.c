/*
 * Blosc 1 buffers through libblosc, on the calling thread only. libblosc
 * allocates its working memory per call and crashes if that fails, so a test
 * allocation of that size is made first.
 */
#include <blosc.h>

#include "codec/codec.h"
#include "penstock.h"

static int blosc_unpack(struct pen_scratch *s, const void *in, size_t n,
			void *out, size_t cap, size_t *got)
{
	size_t size, whole, stored, block;

	(void)s;
	if (blosc_cbuffer_validate(in, n, &size) < 0 || size > cap)
		return PEN_EDATA;
	*got = size;
	if (!size)
		return 0;
	/* libblosc refuses blocks that do not fit into the output */
	blosc_cbuffer_sizes(in, &whole, &stored, &block);
	if (block > cap)
		return PEN_EDATA;
	if (!pen__can_alloc(3 * block + 65536))
		return PEN_ENOMEM;
	return blosc_decompress_ctx(in, out, cap, 1) == (int)size ? 0
								  : PEN_EDATA;
}

const struct pen_codec pen__codec_blosc = {
	.name = "blosc",
	.ratio = 131072 / 3, /* zstd may be inside */
	.unpack = blosc_unpack,
};
