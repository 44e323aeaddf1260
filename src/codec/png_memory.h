/*
 * Our allocator for libspng, which decodes and encodes PNG. Its functions get
 * no context, and libspng reports "damaged" for some images if zlib ran out of
 * memory, so a failed allocation is recorded here.
 */
#ifndef PEN_CODEC_PNG_MEMORY_H
#define PEN_CODEC_PNG_MEMORY_H

#include <spng.h>
#include <stdbool.h>

#include "base/mem.h"

/* For the context that this thread created last. */
static _Thread_local bool no_memory;

static inline void *pen__png_noted(void *p)
{
	no_memory = no_memory || !p;
	return p;
}

static inline void *pen__png_alloc(size_t n)
{
	return pen__png_noted(pen__alloc(n, 1));
}

static inline void *pen__png_calloc(size_t n, size_t size)
{
	return pen__png_noted(pen__calloc(n, size));
}

static inline void *pen__png_realloc(void *p, size_t n)
{
	return pen__png_noted(pen__realloc(p, n, 1));
}

/* flags: SPNG_CTX_ENCODER, or 0. NULL: no memory. */
static inline spng_ctx *pen__png_new(int flags)
{
	struct spng_alloc mem = { pen__png_alloc, pen__png_realloc,
				  pen__png_calloc, pen__free };

	no_memory = false;
	return spng_ctx_new2(&mem, flags);
}

#endif
