/*
 * Decompressors by name, for formats whose files say which one they used. A
 * codec whose library was not there at build time is not in the table, and
 * pen__codec_absent() says which library that is.
 */
#ifndef PEN_CODEC_CODEC_H
#define PEN_CODEC_CODEC_H

#include "codec/scratch.h"

struct pen_codec {
	const char *name;
	/* The most bytes one byte can become: a declared size beyond that is
	 * a lie, and nothing is allocated for it. */
	uint32_t ratio;
	/* All of in, to at most cap bytes: *got of them. Returns 0,
	 * PEN_EDATA, or PEN_ENOMEM. */
	int (*unpack)(struct pen_scratch *, const void *in, size_t n, void *out,
		      size_t cap, size_t *got);
};

const struct pen_codec *pen__codec_find(const char *name); /* NULL: none */
const char *pen__codec_absent(const char *name);	   /* NULL: not that */

#endif
