/*
 * Charts as SVG, drawn twice: wide, and narrow for a phone, of which a style
 * sheet shows one. Linear axes include 0. Every mark says in words what it
 * stands for, to a pointer, a keyboard and a screen reader alike.
 */
#ifndef PEN_REPORT_CHART_H
#define PEN_REPORT_CHART_H

#include "report/page.h"
#include "report/spread.h"

/* On a light and on a dark page: "#rrggbb". */
struct pen_colour {
	char light[8], dark[8];
};
/* 0..1 on a scale that looks even: lightness rises by equal steps. */
struct pen_colour pen__colour_at(double);

struct pen_axis {
	const char *label;
	struct pen_shown (*show)(double);
	double max; /* where it ends; 0: as the data does */
};

struct pen_mark {
	double x, y;
	double area; /* relative to the largest: 0..1 */
	bool square, hollow;
	struct pen_colour colour;
	char words[640];  /* not escaped yet */
	const char *note; /* written beside it; NULL: nothing */
	size_t row;	  /* of the table, for looking it up */
};

struct pen_chart {
	const char *id;	  /* unlike all others of the page */
	const char *rows; /* of the table that has all this in numbers */
	const char *title, *about;
	struct pen_axis x, y;
	const struct pen_mark *mark;
	size_t n;
};
void pen__chart_scatter(struct pen_text *, const struct pen_chart *);

struct pen_bar {
	const char *group; /* new ones begin a group */
	const char *name;
	struct pen_range value; /* drawn from 0 to its middle, with the rest */
	struct pen_shown shown;
	struct pen_colour colour;
};
#define PEN_BARS_ABOUT                                                         \
	" Bars are medians; the thin lines go from the lowest to the highest " \
	"run."
struct pen_bars {
	const char *id, *title, *about;
	const struct pen_bar *bar;
	size_t n;
};
void pen__chart_bars(struct pen_text *, const struct pen_bars *);

/* NAN is a gap. */
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
	PEN_STACKED /* parts of wholes: a bar a row, its parts the series */
};
/*
 * A figure with a legend, and the table behind it, which is where the numbers
 * are that a pointer or the arrow keys show.
 */
struct pen_plot {
	enum pen_plot_kind kind;
	const char *id, *title, *about;
	struct pen_axis x, y;
	bool log_x, log_y;
	const double *x_at;	  /* lines */
	const char *const *names; /* stacked: of the rows */
	size_t n;		  /* points, rows */
	const struct pen_series *series;
	size_t nseries;
	const double *low, *high; /* of the first one's repeats, or NULL */
	/* x is not to scale: where its points lie along the axis, and what is
	 * written there; NULL: x is to scale, from 0 on. */
	const double *place;
	const struct pen_tick *tick;
	size_t nticks;
};
void pen__chart_plot(struct pen_text *, const struct pen_plot *);
/* Colours that are told apart: 0, 1, 2, ... */
struct pen_colour pen__colour_of(unsigned);

#endif
