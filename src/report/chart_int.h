/* Scales of charts: which numbers stand at an axis, and where values lie. */
#ifndef PEN_REPORT_CHART_INT_H
#define PEN_REPORT_CHART_INT_H

#include "report/chart.h"

/* What the data of an axis spans; starts as zeros. */
struct pen_extent {
	double least, most;
	double positive; /* the least above zero; 0: none */
	bool broken;	 /* not all are whole numbers */
	size_t n;
};
void pen__extent_add(struct pen_extent *, double); /* not of NAN and infinity */

enum {
	PEN_ACROSS = 1, /* labels stand side by side, not one above another */
	PEN_TIGHT = 2,	/* ends where the data ends, not at a tick */
	PEN_LOG = 4
};

#define PEN_MOST_TICKS 16

struct pen_scale {
	bool log;	  /* asked for, and there is something above zero */
	double low, high; /* of the axis; their logarithms when log */
	double at[PEN_MOST_TICKS];
	struct pen_shown label[PEN_MOST_TICKS];
	size_t n; /* ticks: at least one */
};
/*
 * Ticks are 1, 2 or 5 times a power of ten. As many as can be read in room
 * pixels: no label is there twice or touches the next one. A linear scale
 * includes 0, but for counts along x, which begin where the data does.
 */
void pen__scale_fit(struct pen_scale *, const struct pen_axis *,
		    const struct pen_extent *, double room, unsigned flags);
/* 0..1 along the axis, a little outside for what is off it; NAN: nowhere. */
double pen__scale_place(const struct pen_scale *, double);

/* About the width of text in a chart, in pixels. */
double pen__text_width(const char *);

#endif
