/*
 * Compressors by name, for writers: the counterpart of codec.h, separate
 * because readers need many more codecs than writers.
 */
#ifndef PEN_CODEC_PACK_H
#define PEN_CODEC_PACK_H

#include "codec/scratch.h"

struct pen_pack {
	int level;   /* on the scale of the library, within the bounds of the
			packer */
	size_t item; /* bytes per number, for blosc's shuffle */
};

struct pen_packer {
	const char *name;	/* zlib, gzip, lzf, zstd, blosc (lz4 inside) */
	int least, most, usual; /* levels */
	/* Compresses n > 0 bytes to at most cap bytes. Returns the size; 0 if
	 * it does not fit or memory is short. Any thread, with its own scratch.
	 */
	size_t (*pack)(struct pen_scratch *, const struct pen_pack *,
		       const void *in, size_t n, void *out, size_t cap);
	/* A sufficient size; 0: not defined, as for lzf, whose output is used
	 * only if it is smaller. */
	size_t (*bound)(size_t n);
};

const struct pen_packer *pen__packer_find(const char *name); /* NULL: none */
const struct pen_packer *pen__packer_at(unsigned i); /* those with a library */

#endif
