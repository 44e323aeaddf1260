/*
 * Numbers sorted by their upper 32 bits, those alike left in the order they
 * have: O(n), and without memory of its own, which qsort() may ask for.
 */
#ifndef PEN_BASE_SORT_H
#define PEN_BASE_SORT_H

#include <stddef.h>
#include <stdint.h>

/* tmp: room for n more. */
void pen__sort_high(uint64_t *v, uint64_t *tmp, size_t n);

#endif
