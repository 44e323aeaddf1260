/*
 * Charts as SVG, drawn twice: wide, and narrow for phones; the style sheet
 * shows one of them. Linear axes include 0. Every mark has a description for
 * pointers, keyboards and screen readers.
 */
#ifndef PEN_REPORT_CHART_H
#define PEN_REPORT_CHART_H

#include "report/page.h"
#include "report/spread.h"

/* For light and dark pages: "#rrggbb". */
struct pen_colour {
	char light[8], dark[8];
};
/* 0..1 on a perceptually uniform scale of increasing lightness. */
struct pen_colour pen__colour_at(double);

struct pen_axis {
	const char *label;
	struct pen_shown (*show)(double);
	double max; /* end of the axis; 0: end of the data */
};

struct pen_mark {
	double x, y;
	double area; /* relative to the largest: 0..1 */
	bool square, hollow;
	struct pen_colour colour;
	char words[640];  /* not escaped */
	const char *note; /* label next to it; NULL: none */
	size_t row;	  /* row of the table, for highlighting */
};

struct pen_chart {
	const char *id;	  /* unique on the page */
	const char *rows; /* id prefix of the rows of its table */
	const char *title, *about;
	struct pen_axis x, y;
	const struct pen_mark *mark;
	size_t n;
};
void pen__chart_scatter(struct pen_text *, const struct pen_chart *);

struct pen_bar {
	const char *group; /* a new name starts a group */
	const char *name;
	struct pen_range value; /* bar from 0 to the median, with its spread */
	struct pen_shown shown;
	struct pen_colour colour;
};
#define PEN_BARS_ABOUT                                                         \
	" Bars show medians; thin lines span the lowest to the highest run."
struct pen_bars {
	const char *id, *title, *about;
	const struct pen_bar *bar;
	size_t n;
};
void pen__chart_bars(struct pen_text *, const struct pen_bars *);

/* NAN leaves a gap. */
struct pen_series {
	const char *name;
	const double *y;
	struct pen_colour colour;
};
struct pen_tick {
	double at; /* 0..1 along the axis */
	const char *label;
};
enum pen_plot_kind {
	PEN_LINES,  /* over a common x */
	PEN_STACKED /* shares: a bar per row, a part per series */
};
/*
 * A figure with a legend and a table; the table contains the numbers that
 * pointer and arrow keys show.
 */
struct pen_plot {
	enum pen_plot_kind kind;
	const char *id, *title, *about;
	struct pen_axis x, y;
	bool log_x, log_y;
	const double *x_at;	  /* for lines */
	const char *const *names; /* stacked: names of the rows */
	size_t n;		  /* points or rows */
	const struct pen_series *series;
	size_t nseries;
	const double *low, *high; /* repeats of the first series, or NULL */
	/* Positions along the axis, and labels, if x is not to scale; NULL: x
	 * is to scale, starting at 0. */
	const double *place;
	const struct pen_tick *tick;
	size_t nticks;
};
void pen__chart_plot(struct pen_text *, const struct pen_plot *);
/* Distinct colours: 0, 1, 2, ... */
struct pen_colour pen__colour_of(unsigned);

#endif
