/* Inflate, deflate and crc32, through libdeflate. */
#ifndef PEN_CODEC_DEFLATE_H
#define PEN_CODEC_DEFLATE_H

#include <stdint.h>

#include "codec/scratch.h"
#include "penstock.h"

/* Continues from crc (0 to start), as zlib's crc32(). */
uint32_t pen__crc32(uint32_t crc, const void *p, size_t n);

/* Raw deflate, exactly out_len bytes out: 0, PEN_EDATA or PEN_ENOMEM. */
int pen__inflate(struct pen_scratch *, const void *in, size_t in_len, void *out,
		 size_t out_len);
/* One member of gzip (RFC 1952): what is given, and what came of it. */
struct pen_gunzip {
	const void *in;
	size_t n;
	void *out;
	size_t cap;
	size_t used, got; /* bytes of in, of out */
};
/* 0, PEN_END when out is too small, PEN_EDATA or PEN_ENOMEM. */
int pen__gunzip(struct pen_scratch *, struct pen_gunzip *);
/*
 * As much of the beginning as the given input allows, for a look at a header:
 * out is zero-filled first, and what is in it is a guess until the whole has
 * been inflated and checked. 0 or PEN_ENOMEM.
 */
int pen__inflate_start(struct pen_scratch *, const void *in, size_t in_len,
		       void *out, size_t out_len);
/* Compresses at a level 1..12; the size, or 0 when it does not fit or memory
 * is short. pen__deflate_bound: room that is always enough. */
size_t pen__deflate(int level, const void *in, size_t in_len, void *out,
		    size_t out_cap);
size_t pen__deflate_bound(size_t in_len);

#endif
