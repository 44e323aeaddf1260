/*
 * Charts as SVG, drawn twice: wide, and narrow for a phone, of which a style
 * sheet shows one. Axes begin at 0. Every mark says in words what it stands
 * for, to a pointer, a keyboard and a screen reader alike.
 */
#ifndef PEN_REPORT_CHART_H
#define PEN_REPORT_CHART_H

#include "report/page.h"

/* On a light and on a dark page: "#rrggbb". */
struct pen_colour {
	char light[8], dark[8];
};
/* 0..1 on a scale that looks even: lightness rises by equal steps. */
struct pen_colour pen__colour_at(double);

struct pen_axis {
	const char *label;
	struct pen_shown (*show)(double);
	double max; /* of the data */
};

struct pen_mark {
	double x, y;
	double area; /* relative to the largest: 0..1 */
	bool square, hollow;
	struct pen_colour colour;
	const char *words; /* not escaped yet */
	const char *note;  /* written beside it; NULL: nothing */
	size_t row;	   /* of the table, for looking it up */
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
	double value;
	struct pen_shown shown;
	struct pen_colour colour;
};
struct pen_bars {
	const char *id, *title, *about;
	const struct pen_bar *bar;
	size_t n;
};
void pen__chart_bars(struct pen_text *, const struct pen_bars *);

/*
 * Lines over a common x, and the table behind them, which is where the numbers
 * are that a pointer or the arrow keys show. NAN: a gap.
 */
struct pen_series {
	const char *name;
	const double *y;
	struct pen_colour colour;
};
struct pen_tick {
	double at; /* 0..1 along the axis */
	const char *label;
};
struct pen_plot {
	const char *id, *title, *about;
	struct pen_axis x, y; /* max 0: as the data has it */
	bool log_y;
	const double *x_at;
	size_t n;
	const struct pen_series *series;
	size_t nseries;
	/* x is not to scale: where its points lie along the axis, and what is
	 * written there; NULL: x is to scale, from 0 on. */
	const double *place;
	const struct pen_tick *tick;
	size_t nticks;
};
void pen__chart_plot(struct pen_text *, const struct pen_plot *);
/* Colours that are told apart: 0, 1, 2, ... */
struct pen_colour pen__colour_of(unsigned);

/* Parts of wholes, one below the other: names are those of the parts. */
struct pen_stack {
	const char *name;
	const double *part;
};
struct pen_stacks {
	const char *id, *title, *about;
	const char *const *parts;
	size_t nparts;
	const struct pen_stack *stack;
	size_t n;
	struct pen_shown (*show)(double);
};
void pen__chart_stacks(struct pen_text *, const struct pen_stacks *);

#endif
