/*
 * Log-linear histogram of u64 values (nanoseconds, bytes). Every power of two
 * is cut into 64 equal buckets, and a percentile returns the middle of its
 * bucket, so its error is at most 1/128 = 0.8 % of the value; values below 128
 * are exact. Minimum, maximum, count and sum are exact.
 */
#ifndef PEN_BASE_HIST_H
#define PEN_BASE_HIST_H

#include <stdint.h>

#define PEN_HIST_BITS 6
#define PEN_HIST_N ((64 - PEN_HIST_BITS + 1) << PEN_HIST_BITS)

struct pen_hist {
	uint64_t count, sum, min, max;
	uint64_t bucket[PEN_HIST_N];
};

void pen__hist_init(struct pen_hist *h);
void pen__hist_add(struct pen_hist *h, uint64_t v);
void pen__hist_merge(struct pen_hist *into, const struct pen_hist *from);
/* p in 0..100; 0 if empty. p=0 is the minimum, p=100 the maximum. */
uint64_t pen__hist_percentile(const struct pen_hist *h, double p);
/* The share (0..1) of the largest p % of the values in the total sum. */
double pen__hist_top(const struct pen_hist *h, double p);

#endif
