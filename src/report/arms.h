/*
 * Experiments that hold arms against one another: the same samples, brought in
 * several ways. The command and the page show them from the same tables and
 * with the same words. Runs of an arm are taken together as a median with its
 * spread; figures of an arm that delivered other samples than it should have
 * are not shown.
 *
 * Keys of a row: "arm" and "group" name it, unless the kind has a versus;
 * "n_rows" has to be "expected_rows" ("n_samples": "wanted_samples");
 * "content_sum" has to be "expected_sum" or "wanted_sum", where that is known
 * beforehand, and the same in all rows with the same "check"; "n_skipped" and
 * "n_substituted" have to be 0; "wrong" is true, or says in words what else is
 * wrong.
 */
#ifndef PEN_REPORT_ARMS_H
#define PEN_REPORT_ARMS_H

#include "report/spread.h"
#include "report/report.h"

struct pen_arm {
	const struct pen_line *row; /* the first */
	char name[96], brief[40], group[96];
	size_t n;	 /* runs that have figures */
	char wrong[200]; /* why there are no figures; "": there are */
};

struct pen_arms {
	const struct pen_kind *kind;
	const struct pen_line *const *row;
	size_t n;
	struct pen_arm *arm;
	size_t narms, nwrong;
	size_t *by_group; /* arms' numbers, a group's one after another */
	double *buf;
};

enum pen_of { PEN_MEDIAN, PEN_SPREAD, PEN_LOWEST, PEN_HIGHEST };

struct pen_arm_column {
	const char *title, *key;
	struct pen_shown (*show)(double); /* NULL: a text */
	enum pen_of of;
	bool page_only; /* not on the terminal */
};
#define PEN_COLUMN(title, key, show)                                           \
	{                                                                      \
		title, key, show, PEN_MEDIAN, false                            \
	}
#define PEN_PAGE_COLUMN(title, key, show)                                      \
	{                                                                      \
		title, key, show, PEN_MEDIAN, true                             \
	}
#define PEN_SPREAD_COLUMN(key)                                                 \
	{                                                                      \
		"spread", key, pen__show_share, PEN_SPREAD, false              \
	}
#define PEN_RANGE_COLUMNS(key, show)                                           \
	{ "lowest", key, show, PEN_LOWEST, false },                            \
	{                                                                      \
		"highest", key, show, PEN_HIGHEST, false                       \
	}
#define PEN_COLUMNS_END                                                        \
	{                                                                      \
		NULL, NULL, NULL, PEN_MEDIAN, false                            \
	}

struct pen_arm_chart {
	const char *title, *about, *key;
	struct pen_shown (*show)(double);
};

/* One arm that all others are compared with, group by group. */
struct pen_versus {
	const char *vars[3]; /* keys that a group's rows have alike */
	bool workers;	     /* arms differ in their number of them */
	bool less;	     /* is better */
	const char *hero;    /* the arm */
	const char *key;     /* the figure */
	struct pen_shown (*show)(double);
	const char *what;     /* "a step", of the figure */
	const char *compared; /* "takes %s times as long" of another arm */
	/* More about a group, that of this arm; may be NULL. */
	void (*more)(struct pen_text *, const struct pen_arms *,
		     const struct pen_arm *);
};

int pen__arms_init(struct pen_arms *, const struct pen_kind *,
		   const struct pen_line *const *row, size_t n,
		   struct pen_err *);
void pen__arms_fini(struct pen_arms *);
/* Is this row a run of the arm that has figures? */
bool pen__arms_is_run(const struct pen_arm *, const struct pen_line *);
/* Did this row deliver other samples than it should have, by what it says? Its
 * figures are none then. */
bool pen__arms_row_wrong(const struct pen_line *);
/* Over an arm's runs; NAN without any. The spread is the largest minus the
 * smallest, over the median. */
double pen__arms_get(const struct pen_arms *, const struct pen_arm *,
		     const char *key, enum pen_of);
/* The median; of NULL: NAN. */
double pen__arms_median(const struct pen_arms *, const struct pen_arm *,
			const char *key);
bool pen__arms_together(const struct pen_arms *, const struct pen_arm *,
			const struct pen_arm *); /* the same group? */
/* The first arm of that name and group (NULL: any) that has figures. */
const struct pen_arm *pen__arms_find(const struct pen_arms *, const char *name,
				     const char *group);
/* The arm whose median is the largest (or smallest); NULL: none has it. */
const struct pen_arm *pen__arms_best(const struct pen_arms *, const char *key,
				     bool smallest);
/* The best of a name in the group of `like`, whatever its workers. */
const struct pen_arm *pen__arms_rival(const struct pen_arms *,
				      const struct pen_arm *like,
				      const char *name);

/* What a column has for an arm; buf is for texts that are made. */
const char *pen__arms_cell(const struct pen_arms *, const struct pen_arm *,
			   const struct pen_arm_column *,
			   struct pen_shown *buf);
/* As plain text: a table, and sentences, a line each. */
void pen__arms_print(struct pen_text *, const struct pen_arms *);
void pen__arms_words(struct pen_text *, const struct pen_arms *);
/* Words of a kind that has a versus. */
void pen__arms_versus(struct pen_text *, const struct pen_arms *);
/* On a page. */
int pen__arms_verdict(struct pen_text *, const struct pen_kind *,
		      const struct pen_group *, struct pen_err *);
int pen__arms_show(struct pen_text *, const struct pen_kind *,
		   const struct pen_group *, struct pen_err *);

#endif
