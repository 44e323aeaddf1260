/* See sort.h: insertion sort for a few, else radix sort from the lowest digit.
 * Digits that are equal in all numbers, as the upper ones of small numbers are,
 * cost nothing. */
#include "base/sort.h"

#include <string.h>

#define FEW 32

static void insert(uint64_t *v, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		const uint64_t x = v[i];
		size_t k = i;

		for (; k && v[k - 1] >> 32 > x >> 32; k--)
			v[k] = v[k - 1];
		v[k] = x;
	}
}

void pen__sort_high(uint64_t *v, uint64_t *tmp, size_t n)
{
	size_t count[4][256] = { { 0 } };

	if (n <= FEW) {
		insert(v, n);
		return;
	}
	for (size_t i = 0; i < n; i++)
		for (unsigned d = 0; d < 4; d++)
			count[d][v[i] >> (32 + 8 * d) & 255]++;
	for (unsigned d = 0; d < 4; d++) {
		const unsigned shift = 32 + 8 * d;
		size_t at = 0;

		if (count[d][v[0] >> shift & 255] == n)
			continue;
		for (unsigned b = 0; b < 256; b++) {
			const size_t k = count[d][b];

			count[d][b] = at;
			at += k;
		}
		for (size_t i = 0; i < n; i++)
			tmp[count[d][v[i] >> shift & 255]++] = v[i];
		memcpy(v, tmp, n * sizeof(*v));
	}
}
