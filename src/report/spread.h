/*
 * Figures with noise: medians, intervals by resampling, and whether two sets
 * of repeats differ. Same input, same answer: the draws are seeded.
 */
#ifndef PEN_REPORT_SPREAD_H
#define PEN_REPORT_SPREAD_H

#include <stdbool.h>
#include <stddef.h>

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

#endif
