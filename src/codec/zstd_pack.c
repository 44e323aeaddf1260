/* Zstandard frames with their size in the header; one context per thread. */
#include <zstd.h>

#include "codec/pack.h"

static void free_context(void *p)
{
	ZSTD_freeCCtx(p);
}

static size_t zstd_pack(struct pen_scratch *s, const struct pen_pack *p,
			const void *in, size_t n, void *out, size_t cap)
{
	static const char key;
	struct pen_kept *k = pen__scratch_keep(s, &key);
	size_t got;

	if (k && !k->p && !pen__mem_tick()) {
		k->p = ZSTD_createCCtx();
		k->free = free_context;
	}
	if (!k || !k->p)
		return 0;
	got = ZSTD_compressCCtx(k->p, out, cap, in, n, p->level);
	return ZSTD_isError(got) ? 0 : got;
}

static size_t zstd_bound(size_t n)
{
	return ZSTD_compressBound(n);
}

const struct pen_packer pen__packer_zstd_pack = {
	.name = "zstd",
	.least = 1,
	.most = 22,
	.usual = 3,
	.pack = zstd_pack,
	.bound = zstd_bound,
};
