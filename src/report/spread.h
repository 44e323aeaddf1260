/*
 * Figures with noise: medians, intervals by resampling, and whether two sets
 * of repeats differ. Same input, same answer: the draws are seeded.
 */
#ifndef PEN_REPORT_SPREAD_H
#define PEN_REPORT_SPREAD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/show.h"

#define PEN_LEAST_CHANGE 0.02 /* a smaller one is not worth telling */
#define PEN_LEAST_RUNS 3      /* fewer tell nothing about noise */

/* Sorts v. NAN when there are none. */
double pen__median(double *v, size_t n);

struct pen_change {
	double from, to;  /* medians */
	double share;	  /* to / from - 1; NAN when there is no telling */
	double low, high; /* 95 % of resampled shares; NAN: too few repeats */
	bool differs;	  /* beyond noise */
	const char *why;  /* when it does not: why not */
};
/*
 * least: changes below this share never count. Sorts both. Differs when the
 * interval leaves out zero and the ranks say so, too: few repeats must not
 * overlap at all.
 */
struct pen_change pen__change(double *from, size_t nfrom, double *to,
			      size_t nto, double least);

/* What several settings reached, each in its repeats. */
struct pen_repeats {
	double *v; /* will be sorted */
	size_t n;
};
/*
 * The place of the best median, the smallest if less is better; n: nobody has
 * one. alike: has room for n; those that pen__change() cannot tell from the
 * best, which is one of them. Only when it is the only one is it the best.
 */
size_t pen__best_of(const struct pen_repeats *, size_t n, bool less,
		    double least, bool *alike);

/*
 * What to set: the default (n: there is none) unless it is told from the best,
 * else the best. alike is that of the best.
 */
size_t pen__choose(const struct pen_repeats *, size_t n, size_t dflt,
		   double least, bool *alike);

/* A median and how far its repeats lie around it. */
struct pen_range {
	double mid, low, high; /* NAN: there are none */
	size_t n;
};
struct pen_range pen__range(double *v, size_t n); /* sorts v */
/* " +-3 %": how far the farthest lies off, from 0.5 % on; with both ends where
 * that is as far as to zero: " (12.1 k..340 k)". */
struct pen_shown pen__show_spread(struct pen_range,
				  struct pen_shown (*show)(double));
/* "81.2 k +-3 %" */
struct pen_shown pen__show_range(struct pen_range,
				 struct pen_shown (*show)(double));

#endif
