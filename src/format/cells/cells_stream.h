/* Copying rows without polluting the CPU caches. */
#ifndef PEN_FORMAT_CELLS_CELLS_STREAM_H
#define PEN_FORMAT_CELLS_CELLS_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Copies data that will not be read soon, bypassing the caches. */
void pen__cells_stream(void *to, const void *from, size_t n);
/* Whether this pays for a row of n bytes. Smaller rows leave room for their
 * batch in the caches; larger ones do not fit there themselves. */
static inline bool pen__cells_streams(size_t n)
{
	return n >= 16 << 10 && n <= 320 << 10;
}

#endif
