/*
 * Compressors by name, for writers: the counterpart of codec.h, apart from it
 * because readers need many more than anybody writes.
 */
#ifndef PEN_CODEC_PACK_H
#define PEN_CODEC_PACK_H

#include "codec/scratch.h"

struct pen_pack {
	int level;   /* the library's own scale, within the packer's bounds */
	size_t item; /* bytes of a number: blosc shuffles by it */
};

struct pen_packer {
	const char *name;	/* zlib, gzip, lzf, zstd, blosc (lz4 inside) */
	int least, most, usual; /* levels */
	/* All n > 0 bytes, to at most cap: how many they became; 0 when they
	 * do not fit or memory is short. Any thread, with its own scratch. */
	size_t (*pack)(struct pen_scratch *, const struct pen_pack *,
		       const void *in, size_t n, void *out, size_t cap);
	/* Room that is always enough; 0: none is, see lzf, whose output is
	 * used only when it is smaller. */
	size_t (*bound)(size_t n);
};

const struct pen_packer *pen__packer_find(const char *name); /* NULL: none */
const struct pen_packer *pen__packer_at(unsigned i); /* those with a library */

#endif
