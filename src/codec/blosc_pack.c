/*
 * Blosc 1 with LZ4 and byte shuffle, the default of zarr, on the calling thread
 * only. libblosc allocates its working memory per call and crashes if that
 * fails, so a test allocation is made first.
 */
#include <blosc.h>

#include "codec/pack.h"

#define ROOM ((size_t)32 << 20) /* for all threads together */

static size_t blosc_pack(struct pen_scratch *s, const struct pen_pack *p,
			 const void *in, size_t n, void *out, size_t cap)
{
	int got;

	(void)s;
	if (n > BLOSC_MAX_BUFFERSIZE || !pen__can_alloc(2 * n + ROOM))
		return 0;
	got = blosc_compress_ctx(p->level, BLOSC_SHUFFLE,
				 p->item <= BLOSC_MAX_TYPESIZE ? p->item : 1, n,
				 in, out, cap, BLOSC_LZ4_COMPNAME, 0, 1);
	return got > 0 ? (size_t)got : 0;
}

static size_t blosc_bound(size_t n)
{
	return n + BLOSC_MAX_OVERHEAD;
}

const struct pen_packer pen__packer_blosc_pack = {
	.name = "blosc",
	.least = 1,
	.most = 9,
	.usual = 5,
	.pack = blosc_pack,
	.bound = blosc_bound,
};
