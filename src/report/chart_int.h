/* What the files that draw charts share. */
#ifndef PEN_REPORT_CHART_INT_H
#define PEN_REPORT_CHART_INT_H

#include "report/chart.h"

/* Steps of an axis: about a tenth of it, unless numbers come to their end. */
#define MOST_TICKS 64

struct pen_frame {
	double w, h, left, right, top, bottom; /* margins */
	double xmax, ymax, most_r;
	int xticks, yticks;
	const char *kind, *role; /* group: its parts speak for themselves */
};

extern const struct pen_frame pen__frame_wide, pen__frame_narrow;

/* 1, 2 or 5 times a power of ten, so that about n steps reach max. */
double pen__chart_step(double max, int n);
/* A number of an axis: no zeros at the end that say nothing. */
struct pen_shown pen__chart_tick(const struct pen_axis *, double);
/* <svg> with its title and description; the caller closes it. */
void pen__chart_open(struct pen_text *, const struct pen_frame *,
		     const char *id, const char *title, const char *about);

#endif
