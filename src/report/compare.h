/* Several results held against the first: what differs beyond noise, and what
 * was different about them. */
#ifndef PEN_REPORT_COMPARE_H
#define PEN_REPORT_COMPARE_H

#include "report/samples.h"
#include "report/spread.h"

/* The change of a figure from one result to another. least 0: 2 %, and 5 % when
 * repeats are parts of one run, which do not show how runs differ. */
struct pen_change pen__compare(const struct pen_samples *a,
			       const struct pen_samples *b,
			       const struct pen_figure *, double least);

void pen__compare_text(const struct pen_samples *, size_t n, double least,
		       struct pen_text *);
void pen__compare_json(const struct pen_samples *, size_t n, double least,
		       struct pen_text *);
void pen__compare_html(const struct pen_samples *, size_t n, double least,
		       struct pen_text *);

#endif
