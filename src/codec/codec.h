/*
 * Decompressors by name, for formats whose files name their codec. If the
 * library of a codec was missing at build time, the codec is not in the table,
 * and pen__codec_absent() returns the library.
 */
#ifndef PEN_CODEC_CODEC_H
#define PEN_CODEC_CODEC_H

#include "codec/scratch.h"

struct pen_codec {
	const char *name;
	/* Maximum expansion of one byte: larger declared sizes are rejected
	 * before anything is allocated. */
	uint32_t ratio;
	/* Decompresses in to at most cap bytes, *got of them. Returns 0,
	 * PEN_EDATA or PEN_ENOMEM. */
	int (*unpack)(struct pen_scratch *, const void *in, size_t n, void *out,
		      size_t cap, size_t *got);
};

const struct pen_codec *pen__codec_find(const char *name); /* NULL: none */
const char *pen__codec_absent(const char *name); /* NULL: not missing */

#endif
