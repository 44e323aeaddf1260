/*
 * Working memory of one thread for unpacking: plain bytes, and decompressor
 * states made at first use and kept, so that the hot path allocates nothing.
 */
#ifndef PEN_CODEC_SCRATCH_H
#define PEN_CODEC_SCRATCH_H

#include <stddef.h>

#include "base/mem.h"

/* A thing kept for one thread: a decoder's state. */
struct pen_kept {
	const void *key; /* whose; the address of something of the owner's */
	void *p;
	void (*free)(void *);
};
#define PEN_MAX_KEPT 4

struct pen_scratch {
	void *mem; /* as many bytes as the format asked for at bind() */
	size_t size;
	void *inflater;
	void *zstd; /* freed with the function beside it */
	void (*zstd_free)(void *);
	struct pen_block block; /* what mem lies in */
	struct pen_kept kept[PEN_MAX_KEPT];
};

/* 0 or PEN_ENOMEM. mem is 64-byte aligned; size 0 is fine. */
int pen__scratch_init(struct pen_scratch *, size_t size);
void pen__scratch_fini(struct pen_scratch *);
/*
 * Where the owner of key keeps its thing: an entry with p NULL until it puts
 * something there, and `free` with it, which fini() calls. NULL when there
 * are more owners than a thread ever has.
 */
struct pen_kept *pen__scratch_keep(struct pen_scratch *, const void *key);

#endif
