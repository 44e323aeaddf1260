/*
 * Working memory of one thread for unpacking: bytes, and decompressor states
 * created on first use and kept, so that the hot path allocates nothing.
 */
#ifndef PEN_CODEC_SCRATCH_H
#define PEN_CODEC_SCRATCH_H

#include <stddef.h>

#include "base/mem.h"

/* State kept for one thread, for example of a decoder. */
struct pen_kept {
	const void *key; /* identifies the owner, by an address it owns */
	void *p;
	void (*free)(void *);
};
#define PEN_MAX_KEPT 8

struct pen_scratch {
	void *mem; /* as many bytes as the format requested at bind() */
	size_t size;
	void *inflater;
	void *zstd; /* freed with zstd_free */
	void (*zstd_free)(void *);
	struct pen_block block; /* the memory of mem */
	struct pen_kept kept[PEN_MAX_KEPT];
};

/* 0 or PEN_ENOMEM. mem is 64-byte aligned; size 0 is fine. */
int pen__scratch_init(struct pen_scratch *, size_t size);
void pen__scratch_fini(struct pen_scratch *);
/*
 * The slot of the owner of key: p is NULL until the owner sets it, together
 * with `free`, which fini() calls. NULL if there are too many owners.
 */
struct pen_kept *pen__scratch_keep(struct pen_scratch *, const void *key);

#endif
