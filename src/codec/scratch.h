/*
 * Working memory of one thread for unpacking: plain bytes, and decompressor
 * states made at first use and kept, so that the hot path allocates nothing.
 */
#ifndef PEN_CODEC_SCRATCH_H
#define PEN_CODEC_SCRATCH_H

#include <stddef.h>

#include "base/mem.h"

struct pen_scratch {
	void *mem; /* as many bytes as the format asked for at bind() */
	size_t size;
	void *inflater;
	struct pen_block block; /* what mem lies in */
};

/* 0 or PEN_ENOMEM. mem is 64-byte aligned; size 0 is fine. */
int pen__scratch_init(struct pen_scratch *, size_t size);
void pen__scratch_fini(struct pen_scratch *);

#endif
