/*
 * Statistics of noisy figures: medians, bootstrap intervals, and whether two
 * sets of repeats differ. Deterministic: the draws are seeded.
 */
#ifndef PEN_REPORT_SPREAD_H
#define PEN_REPORT_SPREAD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/show.h"

#define PEN_LEAST_CHANGE 0.02 /* smaller changes are ignored */
#define PEN_LEAST_RUNS 3      /* fewer do not show noise */

/* Sorts v. NAN if n is 0. */
double pen__median(double *v, size_t n);

struct pen_change {
	double from, to;  /* medians */
	double share;	  /* to / from - 1; NAN: undefined */
	double low, high; /* 95 % interval of share; NAN: too few repeats */
	bool differs;	  /* beyond noise */
	const char *why;  /* if it does not differ: the reason */
};
/*
 * least: smaller changes are ignored. Sorts both. They differ if the interval
 * excludes zero and the rank test agrees; few repeats must not overlap at all.
 */
struct pen_change pen__change(double *from, size_t nfrom, double *to,
			      size_t nto, double least);

/* The repeats of one of several settings. */
struct pen_repeats {
	double *v; /* is sorted */
	size_t n;
};
/*
 * The index of the best median, the smallest if less is better; n: none. alike
 * (room for n): the settings that pen__change() cannot distinguish from the
 * best, including the best itself.
 */
size_t pen__best_of(const struct pen_repeats *, size_t n, bool less,
		    double least, bool *alike);

/*
 * The recommended setting: the default (n: none) unless it differs from the
 * best, else the best. alike as in pen__best_of().
 */
size_t pen__choose(const struct pen_repeats *, size_t n, size_t dflt,
		   double least, bool *alike);

/* A median and the range of its repeats. */
struct pen_range {
	double mid, low, high; /* NAN: no repeats */
	size_t n;
};
struct pen_range pen__range(double *v, size_t n); /* sorts v */
/* " +-3 %": the largest deviation, if at least 0.5 %; the range if it reaches
 * 100 %: " (12.1 k..340 k)". */
struct pen_shown pen__show_spread(struct pen_range,
				  struct pen_shown (*show)(double));
/* "81.2 k +-3 %" */
struct pen_shown pen__show_range(struct pen_range,
				 struct pen_shown (*show)(double));

#endif
