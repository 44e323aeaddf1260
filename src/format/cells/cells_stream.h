/* Rows that go past the CPU's caches. */
#ifndef PEN_FORMAT_CELLS_CELLS_STREAM_H
#define PEN_FORMAT_CELLS_CELLS_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Copies what will not be read again soon past the CPU's caches. */
void pen__cells_stream(void *to, const void *from, size_t n);
/* Is a row of so many bytes worth it? Smaller ones leave room for their batch
 * in the caches, larger ones have none there themselves. */
static inline bool pen__cells_streams(size_t n)
{
	return n >= 16 << 10 && n <= 320 << 10;
}

#endif
