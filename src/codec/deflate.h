/* Inflate, deflate and crc32, through libdeflate. */
#ifndef PEN_CODEC_DEFLATE_H
#define PEN_CODEC_DEFLATE_H

#include <stdint.h>

#include "codec/scratch.h"
#include "penstock.h"

/* Continues from crc (0 to start), as zlib's crc32(). */
uint32_t pen__crc32(uint32_t crc, const void *p, size_t n);

/* The decompressor of a thread, created on first use; NULL: no memory. */
struct libdeflate_decompressor;
struct libdeflate_decompressor *pen__inflater(struct pen_scratch *);

/* Raw deflate to exactly out_len bytes: 0, PEN_EDATA or PEN_ENOMEM. */
int pen__inflate(struct pen_scratch *, const void *in, size_t in_len, void *out,
		 size_t out_len);
/* One gzip member (RFC 1952): input and result. */
struct pen_gunzip {
	const void *in;
	size_t n;
	void *out;
	size_t cap;
	size_t used, got; /* bytes of in and of out */
};
/* 0, PEN_END if out is too small, PEN_EDATA or PEN_ENOMEM. */
int pen__gunzip(struct pen_scratch *, struct pen_gunzip *);
/*
 * Inflates the start as far as the input allows, to look at a header: out is
 * zero-filled first, and its contents are unverified until everything has been
 * inflated and checked. 0 or PEN_ENOMEM.
 */
int pen__inflate_start(struct pen_scratch *, const void *in, size_t in_len,
		       void *out, size_t out_len);
/* Compresses at a level of 1..12. Returns the size, or 0 if it does not fit or
 * memory is short. pen__deflate_bound: a sufficient size. */
size_t pen__deflate(int level, const void *in, size_t in_len, void *out,
		    size_t out_cap);
size_t pen__deflate_bound(size_t in_len);

#endif
