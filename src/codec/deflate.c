/*
 * Raw deflate and crc32 through libdeflate, which is two to three times as fast
 * as zlib because it works on entire buffers. It cannot stream, which is not
 * needed: every unit has a known size.
 */
#include "codec/deflate.h"

#include <libdeflate.h>
#include <string.h>

#include "base/mem.h"

uint32_t pen__crc32(uint32_t crc, const void *p, size_t n)
{
	/* libdeflate restarts the crc on a NULL buffer */
	return n ? libdeflate_crc32(crc, p, n) : crc;
}

struct libdeflate_decompressor *pen__inflater(struct pen_scratch *s)
{
	if (!s->inflater && !pen__mem_tick())
		s->inflater = libdeflate_alloc_decompressor();
	return s->inflater;
}

int pen__inflate(struct pen_scratch *s, const void *in, size_t in_len,
		 void *out, size_t out_len)
{
	struct libdeflate_decompressor *d = pen__inflater(s);
	char none = 0; /* a valid address for empty buffers */

	if (!d)
		return PEN_ENOMEM;
	if (libdeflate_deflate_decompress(d, in_len ? in : &none, in_len,
					  out_len ? out : &none, out_len,
					  NULL) != LIBDEFLATE_SUCCESS)
		return PEN_EDATA;
	return 0;
}

int pen__gunzip(struct pen_scratch *s, struct pen_gunzip *g)
{
	struct libdeflate_decompressor *d = pen__inflater(s);

	if (!d)
		return PEN_ENOMEM;
	switch (libdeflate_gzip_decompress_ex(d, g->in, g->n, g->out, g->cap,
					      &g->used, &g->got)) {
	case LIBDEFLATE_SUCCESS:
		return 0;
	case LIBDEFLATE_INSUFFICIENT_SPACE:
		return PEN_END;
	default:
		return PEN_EDATA;
	}
}

int pen__inflate_start(struct pen_scratch *s, const void *in, size_t in_len,
		       void *out, size_t out_len)
{
	struct libdeflate_decompressor *d = pen__inflater(s);
	size_t got;

	if (!d)
		return PEN_ENOMEM;
	if (!in_len || !out_len)
		return 0;
	memset(out, 0, out_len);
	/* The usual result is "not enough room" or "not enough input". The
	 * bytes decoded so far have been written. */
	(void)libdeflate_deflate_decompress(d, in, in_len, out, out_len, &got);
	return 0;
}

size_t pen__deflate(int level, const void *in, size_t in_len, void *out,
		    size_t out_cap)
{
	struct libdeflate_compressor *c;
	char none = 0;
	size_t n;

	if (pen__mem_tick())
		return 0;
	c = libdeflate_alloc_compressor(level);
	if (!c)
		return 0;
	n = libdeflate_deflate_compress(c, in_len ? in : &none, in_len, out,
					out_cap);
	libdeflate_free_compressor(c);
	return n;
}

size_t pen__deflate_bound(size_t in_len)
{
	return libdeflate_deflate_compress_bound(NULL, in_len);
}
