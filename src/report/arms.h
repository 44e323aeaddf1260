/*
 * Experiments that hold arms against one another: the same samples, brought in
 * several ways. The command and the page show them from the same tables and
 * with the same words. Runs of an arm are taken together as a median with its
 * spread; figures of an arm that delivered other samples than it should have
 * are not shown.
 *
 * Keys of a row: "arm" and "group" name it; "n_rows" has to be
 * "expected_rows"; "content_sum" has to be "expected_sum", where that is known
 * beforehand, and the same in all rows with the same "check"; "n_skipped" and
 * "n_substituted" have to be 0; "wrong" says in words what else is wrong.
 */
#ifndef PEN_REPORT_ARMS_H
#define PEN_REPORT_ARMS_H

#include "report/report.h"

struct pen_arm_case {
	const struct pen_line *row; /* the first */
	size_t n;		    /* runs that have figures */
	char wrong[200]; /* why there are no figures; "": there are */
};

struct pen_arms {
	const struct pen_line *const *row;
	size_t n;
	struct pen_arm_case *c;
	size_t ncases, nwrong;
	double *buf;
};

int pen__arms_init(struct pen_arms *, const struct pen_line *const *row,
		   size_t n, struct pen_err *);
void pen__arms_fini(struct pen_arms *);
/* The median over an arm's runs, NAN without any; *spread: the largest minus
 * the smallest, over the median; may be NULL. */
double pen__arms_get(const struct pen_arms *, const struct pen_arm_case *,
		     const char *key, double *spread);
/* The first arm of that name and group (NULL: any) that has figures. */
const struct pen_arm_case *pen__arms_find(const struct pen_arms *,
					  const char *name, const char *group);
/* The arm whose median is the largest (or smallest); NULL: none has it. */
const struct pen_arm_case *pen__arms_best(const struct pen_arms *,
					  const char *key, bool smallest);

struct pen_arm_column {
	const char *title, *key;
	struct pen_shown (*show)(double); /* NULL: a text */
	bool page_only;			  /* not on the terminal */
};

struct pen_arm_chart {
	const char *title, *about, *key;
	struct pen_shown (*show)(double);
};

struct pen_arm_kind {
	const char *experiment;
	const char *headline; /* the key whose spread is shown */
	const struct pen_arm_column *columns; /* end with title NULL */
	const struct pen_arm_chart *charts;   /* the same */
	/* What came out, in plain text: sentences, a line each. */
	void (*words)(struct pen_text *, const struct pen_arms *);
};

/* As plain text: a table and the words. */
void pen__arms_print(struct pen_text *, const struct pen_arm_kind *,
		     const struct pen_arms *);
int pen__arms_verdict(struct pen_text *, const struct pen_arm_kind *,
		      const struct pen_group *, struct pen_err *);
int pen__arms_show(struct pen_text *, const struct pen_arm_kind *,
		   const struct pen_group *, struct pen_err *);

extern const struct pen_arm_kind pen__arms_prefetch, pen__arms_batch_size,
	pen__arms_formats, pen__arms_shuffle, pen__arms_startup,
	pen__arms_resume, pen__arms_mmap, pen__arms_neighbour;

#endif
