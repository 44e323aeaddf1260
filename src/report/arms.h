/*
 * Experiments in which several arms do the same work: rows say which arm, with
 * what, and either its figures or that its work was wrong. The command prints
 * the table and the sentences that the page has, too.
 */
#ifndef PEN_REPORT_ARMS_H
#define PEN_REPORT_ARMS_H

#include "report/report.h"

#define PEN_ARM_FIGURES 3

struct pen_arm_figure {
	const char *key, *title;
	struct pen_shown (*show)(double);
};

struct pen_arm_kind {
	const char *experiment;
	const char *vars[3];  /* keys that tell what is compared apart */
	bool workers;	      /* arms differ in their number of them */
	bool less;	      /* of the first figure, less is better */
	const char *hero;     /* the arm that others are compared with */
	const char *what;     /* "a step", of the first figure */
	const char *compared; /* "takes %s times as long" of another arm */
	const char *caption;
	struct pen_arm_figure figure[PEN_ARM_FIGURES]; /* key NULL: none */
};

/* One setup: medians over its runs, and the first figure's extremes. */
struct pen_arm_case {
	const struct pen_line *row;
	size_t n, nwrong;
	double value[PEN_ARM_FIGURES], low, high;
};

const struct pen_arm_kind *pen__arm_kind(const char *experiment);
int pen__arm_cases(const struct pen_arm_kind *, const struct pen_group *,
		   struct pen_arm_case **out, size_t *n, struct pen_err *);
/* "load 8.0 ms, compute 15 ms": what is compared. */
void pen__arm_group(const struct pen_arm_kind *, const struct pen_line *,
		    char *buf, size_t cap);
/* "DataLoader, 2 workers" */
void pen__arm_name(const struct pen_arm_kind *, const struct pen_line *,
		   char *buf, size_t cap);
/* Sentences, a line each, not escaped. */
void pen__arm_words(struct pen_text *, const struct pen_arm_kind *,
		    const struct pen_arm_case *, size_t n);

#endif
