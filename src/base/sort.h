/*
 * Sorts numbers by their upper 32 bits, stably, in O(n), and without
 * allocating, which qsort() may do.
 */
#ifndef PEN_BASE_SORT_H
#define PEN_BASE_SORT_H

#include <stddef.h>
#include <stdint.h>

/* tmp: room for n more. */
void pen__sort_high(uint64_t *v, uint64_t *tmp, size_t n);

#endif
