/*
 * The log-linear histogram: an add is a count-leading-zeros, a shift and an
 * increment, so that every batch can afford it. Fixed size, no allocation; not
 * atomic, because each thread has its own and they are merged when read.
 */
#include "base/hist.h"

#include <math.h>
#include <string.h>

#define SUB ((uint64_t)1 << PEN_HIST_BITS)

/*
 * Values below 2 * SUB have their own bucket. Above, with m the position of the
 * highest bit, the PEN_HIST_BITS bits below it select one of SUB buckets; m =
 * 63 gives at most (63 - BITS) * SUB + 2 * SUB - 1 = PEN_HIST_N - 1.
 */
static unsigned bucket_of(uint64_t v)
{
	unsigned shift;

	if (v < 2 * SUB)
		return (unsigned)v;
	shift = 63u - (unsigned)__builtin_clzll(v) - PEN_HIST_BITS;
	return (unsigned)((shift << PEN_HIST_BITS) + (v >> shift));
}

/* The middle of a bucket: at most half its width from any value in it. */
static uint64_t value_of(unsigned i)
{
	unsigned shift;

	if (i < 2 * SUB)
		return i;
	shift = (i >> PEN_HIST_BITS) - 1;
	return ((SUB + (i & (SUB - 1))) << shift) +
	       (((uint64_t)1 << shift) >> 1);
}

void pen__hist_init(struct pen_hist *h)
{
	memset(h, 0, sizeof(*h));
	h->min = UINT64_MAX;
}

void pen__hist_add(struct pen_hist *h, uint64_t v)
{
	h->count++;
	h->sum += v;
	if (v < h->min)
		h->min = v;
	if (v > h->max)
		h->max = v;
	h->bucket[bucket_of(v)]++;
}

void pen__hist_merge(struct pen_hist *into, const struct pen_hist *from)
{
	if (!from->count)
		return;
	into->count += from->count;
	into->sum += from->sum;
	if (from->min < into->min)
		into->min = from->min;
	if (from->max > into->max)
		into->max = from->max;
	for (unsigned i = 0; i < PEN_HIST_N; i++)
		into->bucket[i] += from->bucket[i];
}

uint64_t pen__hist_percentile(const struct pen_hist *h, double p)
{
	uint64_t rank, seen = 0, v = 0;

	if (!h->count)
		return 0;
	if (!(p > 0))
		return h->min;
	if (p >= 100)
		return h->max;
	/* nearest rank: the smallest value with p % of all at or below it */
	rank = (uint64_t)ceil(p / 100 * (double)h->count);
	if (rank < 1)
		rank = 1;
	if (rank > h->count)
		rank = h->count;
	for (unsigned i = 0; i < PEN_HIST_N && seen < rank; i++) {
		seen += h->bucket[i];
		v = value_of(i);
	}
	if (v < h->min)
		v = h->min;
	return v > h->max ? h->max : v;
}

double pen__hist_top(const struct pen_hist *h, double p)
{
	uint64_t left = (uint64_t)ceil(p / 100 * (double)h->count);
	double sum = 0, share;

	if (!h->count || !h->sum)
		return 0;
	for (unsigned i = PEN_HIST_N; i-- > 0 && left;) {
		uint64_t n = h->bucket[i] < left ? h->bucket[i] : left, v;

		v = value_of(i) < h->max ? value_of(i) : h->max;
		sum += (double)n * (double)v;
		left -= n;
	}
	share = sum / (double)h->sum;
	return share < 1 ? share : 1;
}
