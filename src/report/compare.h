/* Compares several results with the first: figures that differ beyond noise,
 * and differences in settings and machine. */
#ifndef PEN_REPORT_COMPARE_H
#define PEN_REPORT_COMPARE_H

#include "report/samples.h"
#include "report/spread.h"

/* The change of a figure between two results. least 0: 2 %, or 5 % if the
 * repeats are epochs of one run, which do not show the noise between runs. */
struct pen_change pen__compare(const struct pen_samples *a,
			       const struct pen_samples *b,
			       const struct pen_figure *, double least);

/* columns: width of the terminal; 0: unknown */
void pen__compare_text(const struct pen_samples *, size_t n, double least,
		       size_t columns, struct pen_text *);
void pen__compare_json(const struct pen_samples *, size_t n, double least,
		       struct pen_text *);
void pen__compare_html(const struct pen_samples *, size_t n, double least,
		       struct pen_text *);

#endif
