/* Scales of charts: tick labels and positions of values. */
#ifndef PEN_REPORT_CHART_INT_H
#define PEN_REPORT_CHART_INT_H

#include "report/chart.h"

/* The range of the data of an axis; initially zero. */
struct pen_extent {
	double least, most;
	double positive; /* smallest value above zero; 0: none */
	bool broken;	 /* not all values are integers */
	size_t n;
};
void pen__extent_add(struct pen_extent *, double); /* ignores NAN, infinity */

enum {
	PEN_ACROSS = 1, /* horizontal axis: labels are side by side */
	PEN_TIGHT = 2,	/* ends at the data, not at a tick */
	PEN_LOG = 4
};

#define PEN_MOST_TICKS 16

struct pen_scale {
	bool log;	  /* requested, and there are values above zero */
	double low, high; /* ends of the axis; logarithms if log */
	double at[PEN_MOST_TICKS];
	struct pen_shown label[PEN_MOST_TICKS];
	size_t n; /* number of ticks, at least 1 */
};
/*
 * Ticks are 1, 2 or 5 times a power of ten, as many as are readable in room
 * pixels: no label occurs twice or touches the next one. A linear scale
 * includes 0, except for counts along x, which start at the data.
 */
void pen__scale_fit(struct pen_scale *, const struct pen_axis *,
		    const struct pen_extent *, double room, unsigned flags);
/* Position 0..1 along the axis, slightly outside for values off it; NAN: none.
 */
double pen__scale_place(const struct pen_scale *, double);

/* Estimated width of text in pixels. */
double pen__text_width(const char *);

#endif
