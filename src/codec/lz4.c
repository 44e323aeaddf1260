/* LZ4 blocks (not frames), through liblz4. */
#include <limits.h>
#include <lz4.h>

#include "codec/codec.h"
#include "penstock.h"

static int lz4_unpack(struct pen_scratch *s, const void *in, size_t n,
		      void *out, size_t cap, size_t *got)
{
	int k;

	(void)s;
	if (n > INT_MAX)
		return PEN_EDATA;
	k = LZ4_decompress_safe(in, out, (int)n,
				cap < INT_MAX ? (int)cap : INT_MAX);
	*got = k < 0 ? 0 : (size_t)k;
	return k < 0 ? PEN_EDATA : 0;
}

const struct pen_codec pen__codec_lz4 = {
	.name = "lz4",
	.ratio = 255,
	.unpack = lz4_unpack,
};
