/*
 * Compressors that need only libdeflate, and the lookup of all others. A thread
 * keeps the state of a compressor, because creating it costs more than
 * compressing a small chunk.
 */
#include "codec/pack.h"

#include <libdeflate.h>
#include <string.h>

#include "codec/lzf.h"

#define LEVELS 13

static void free_deflater(void *p)
{
	libdeflate_free_compressor(p);
}

static struct libdeflate_compressor *deflater(struct pen_scratch *s, int level)
{
	static const char keys[LEVELS]; /* an address for each level */
	struct pen_kept *k = pen__scratch_keep(s, &keys[level]);

	if (!k)
		return NULL;
	if (!k->p && !pen__mem_tick()) {
		k->p = libdeflate_alloc_compressor(level);
		k->free = free_deflater;
	}
	return k->p;
}

static size_t zlib_pack(struct pen_scratch *s, const struct pen_pack *p,
			const void *in, size_t n, void *out, size_t cap)
{
	struct libdeflate_compressor *c = deflater(s, p->level);

	return c ? libdeflate_zlib_compress(c, in, n, out, cap) : 0;
}

static size_t zlib_bound(size_t n)
{
	return libdeflate_zlib_compress_bound(NULL, n);
}

static size_t gzip_pack(struct pen_scratch *s, const struct pen_pack *p,
			const void *in, size_t n, void *out, size_t cap)
{
	struct libdeflate_compressor *c = deflater(s, p->level);

	return c ? libdeflate_gzip_compress(c, in, n, out, cap) : 0;
}

static size_t gzip_bound(size_t n)
{
	return libdeflate_gzip_compress_bound(NULL, n);
}

static size_t lzf_pack(struct pen_scratch *s, const struct pen_pack *p,
		       const void *in, size_t n, void *out, size_t cap)
{
	(void)s;
	(void)p;
	return pen__lzf_pack(in, n, out, cap);
}

static size_t lzf_bound(size_t n)
{
	(void)n;
	return 0;
}

static const struct pen_packer own[] = {
	{ "zlib", 1, LEVELS - 1, 4, zlib_pack, zlib_bound },
	{ "gzip", 1, LEVELS - 1, 4, gzip_pack, gzip_bound },
	{ "lzf", 0, LEVELS - 1, 0, lzf_pack, lzf_bound },
};

const struct pen_packer *pen__packer_find(const char *name)
{
	const struct pen_packer *p;

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (!strcmp(own[i].name, name))
			return &own[i];
	for (unsigned i = 0; (p = pen__packer_at(i)); i++)
		if (!strcmp(p->name, name))
			return p;
	return NULL;
}
