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
#ifndef PEN_REPORT_WAYS_H
#define PEN_REPORT_WAYS_H

#include "report/report.h"

struct pen_way_case {
	const struct pen_line *row; /* the first */
	size_t n;		    /* runs that have figures */
	char wrong[200]; /* why there are no figures; "": there are */
};

struct pen_ways {
	const struct pen_line *const *row;
	size_t n;
	struct pen_way_case *c;
	size_t ncases, nwrong;
	double *buf;
};

int pen__ways_init(struct pen_ways *, const struct pen_line *const *row,
		   size_t n, struct pen_err *);
void pen__ways_fini(struct pen_ways *);
/* The median over an arm's runs, NAN without any; *spread: the largest minus
 * the smallest, over the median; may be NULL. */
double pen__ways_get(const struct pen_ways *, const struct pen_way_case *,
		     const char *key, double *spread);
/* The first arm of that name and group (NULL: any) that has figures. */
const struct pen_way_case *pen__ways_find(const struct pen_ways *,
					  const char *name, const char *group);
/* The arm whose median is the largest (or smallest); NULL: none has it. */
const struct pen_way_case *pen__ways_best(const struct pen_ways *,
					  const char *key, bool smallest);

struct pen_way_column {
	const char *title, *key;
	struct pen_shown (*show)(double); /* NULL: a text */
	bool page_only;			  /* not on the terminal */
};

struct pen_way_chart {
	const char *title, *about, *key;
	struct pen_shown (*show)(double);
};

struct pen_way_kind {
	const char *experiment;
	const char *headline; /* the key whose spread is shown */
	const struct pen_way_column *columns; /* end with title NULL */
	const struct pen_way_chart *charts;   /* the same */
	/* What came out, in plain text: sentences, a line each. */
	void (*words)(struct pen_text *, const struct pen_ways *);
};

/* As plain text: a table and the words. */
void pen__ways_print(struct pen_text *, const struct pen_way_kind *,
		     const struct pen_ways *);
int pen__ways_verdict(struct pen_text *, const struct pen_way_kind *,
		      const struct pen_group *, struct pen_err *);
int pen__ways_show(struct pen_text *, const struct pen_way_kind *,
		   const struct pen_group *, struct pen_err *);

extern const struct pen_way_kind pen__ways_prefetch, pen__ways_batch_size,
	pen__ways_formats, pen__ways_shuffle, pen__ways_startup,
	pen__ways_resume, pen__ways_mmap, pen__ways_neighbour;

#endif
