/* Zstandard frames through libzstd; one context per thread. */
#include <zstd.h>

#include "codec/codec.h"
#include "penstock.h"

static void free_context(void *p)
{
	ZSTD_freeDCtx(p);
}

static int zstd_unpack(struct pen_scratch *s, const void *in, size_t n,
		       void *out, size_t cap, size_t *got)
{
	if (!s->zstd && !pen__mem_tick()) {
		s->zstd = ZSTD_createDCtx();
		s->zstd_free = free_context;
	}
	if (!s->zstd)
		return PEN_ENOMEM;
	*got = ZSTD_decompressDCtx(s->zstd, out, cap, in, n);
	return ZSTD_isError(*got) ? PEN_EDATA : 0;
}

const struct pen_codec pen__codec_zstd = {
	.name = "zstd",
	.ratio = 131072 / 3, /* a block of one repeated byte */
	.unpack = zstd_unpack,
};
