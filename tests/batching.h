/*
 * How batches are cut by length, in the simplest way: the engine is compared
 * with this.
 */
#ifndef BATCHING_H
#define BATCHING_H

#include "test.h"

struct rule {
	uint64_t tokens, multiple, most; /* of a batch */
	bool padded;
	uint32_t rows, pack; /* packed */
	bool split;
};

/* Do samples of these lengths fit into the rows? The longest first, each where
 * it leaves the least room. */
static inline bool packs(const struct rule *r, const uint32_t *len, uint32_t n,
			 uint64_t *over)
{
	uint32_t room[64], piece[1024], np = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t left = len[i];

		if (!r->split && left > r->pack)
			left = r->pack;
		for (; left > r->pack; left -= r->pack)
			piece[np++] = r->pack;
		piece[np++] = left;
	}
	*over = 0;
	for (uint32_t i = 0; i < r->rows; i++)
		room[i] = r->pack;
	for (uint32_t done = 0; done < np; done++) {
		uint32_t big = 0, best = UINT32_MAX;

		for (uint32_t i = 0; i < np; i++)
			if (piece[i] != UINT32_MAX &&
			    (piece[big] == UINT32_MAX || piece[i] > piece[big]))
				big = i;
		for (uint32_t i = 0; i < r->rows; i++)
			if (room[i] >= piece[big] &&
			    (best == UINT32_MAX || room[i] < room[best]))
				best = i;
		if (best == UINT32_MAX)
			*over += piece[big];
		else
			room[best] -= piece[big];
		piece[big] = UINT32_MAX;
	}
	return !*over;
}

static inline uint32_t took(const struct rule *r, uint32_t len)
{
	return r->pack && !r->split && len > r->pack ? r->pack : len;
}

/* How many of the n lengths make a batch; *full: more would not fit. */
static inline uint32_t batch_of(const struct rule *r, const uint32_t *len,
				uint32_t n, bool *full)
{
	uint64_t sum = 0, longest = 0, used = 0, over;
	uint32_t k = 0;

	for (; k < n && k < r->most; k++) {
		uint64_t l = took(r, len[k]);

		l = (l + r->multiple - 1) / r->multiple * r->multiple;
		sum += l;
		longest = l > longest ? l : longest;
		if ((r->padded ? longest * (k + 1) : sum) > r->tokens && k)
			break;
		used = r->padded ? longest * (k + 1) : sum;
	}
	*full = k < n || k == r->most || used >= r->tokens;
	while (r->pack && !packs(r, len, k, &over)) {
		uint64_t gone = 0;

		while (gone < over)
			gone += took(r, len[--k]);
		*full = true;
	}
	return k;
}

#endif
