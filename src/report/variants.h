/*
 * Variants of one thing held against one another: the same samples, brought in
 * several ways. The command and the page show them from the same descriptions
 * (struct pen_kind) and with the same words. Runs of a variant are taken
 * together as a median with its spread, and none is called better than another
 * within noise; figures of a variant that delivered other samples than it
 * should have are not shown.
 *
 * Keys of a row: "arm" and "group" name the variant, unless the kind has a
 * versus; "n_rows" has to be "expected_rows" ("n_samples": "wanted_samples");
 * "content_sum" has to be "expected_sum" or "wanted_sum", where that is known
 * beforehand, and the same in all rows with the same "check"; "n_skipped" and
 * "n_substituted" have to be 0; "wrong" is true, or says in words what else is
 * wrong. How a figure is shown, and whether less of it is better, follows from
 * the end of its key (pen__measure_of).
 */
#ifndef PEN_REPORT_VARIANTS_H
#define PEN_REPORT_VARIANTS_H

#include "report/report.h"
#include "report/spread.h"

#define PEN_MOST_COLUMNS 24

struct pen_variant {
	const struct pen_line *row; /* the first */
	char name[96], brief[40], group[96];
	size_t n;	 /* runs that have figures */
	bool alike;	 /* with the best of the last ranking, or the best */
	double by;	 /* median of the figure that they are sorted by */
	char wrong[200]; /* why there are no figures; "": there are */
};

struct pen_figure_column {
	char title[48], key[48];
	struct pen_shown (*show)(double); /* NULL: a text */
	char of;   /* '<' the lowest, '>' the highest run; else the median */
	int width; /* of a table as it goes */
	bool page_only;
};

struct pen_variants {
	const struct pen_kind *kind;
	const struct pen_line *const *row;
	size_t nrows;
	struct pen_variant *v;
	size_t n, nwrong;
	size_t *by_group; /* their numbers, a group's one after another */
	struct pen_figure_column column[PEN_MOST_COLUMNS];
	size_t ncolumns;
	/* room for what is computed */
	double *buf;
	struct pen_repeats *repeats;
	struct pen_variant **who;
	bool *flag;
};

int pen__variants_init(struct pen_variants *, const struct pen_kind *,
		       const struct pen_line *const *row, size_t n,
		       struct pen_err *);
void pen__variants_fini(struct pen_variants *);
/* Is this row a run of the variant that has figures? */
bool pen__is_run(const struct pen_variant *, const struct pen_line *);
/* Did this row deliver other samples than it should have, by what it says? Its
 * figures are none then. */
bool pen__row_wrong(const struct pen_line *);
/* The same, and by other rows; kind, row and nrows are enough for it. */
bool pen__run_wrong(const struct pen_variants *, const struct pen_line *,
		    char *why, size_t cap);

/* ---- figures ---- */

struct pen_measure {
	const char *tail; /* of the key */
	struct pen_shown (*show)(double);
	bool less; /* is better */
};
const struct pen_measure *pen__measure_of(const char *key); /* NULL: a text */
/* A figure over a variant's runs; of NULL: none. */
struct pen_range pen__range_of(const struct pen_variants *,
			       const struct pen_variant *, const char *key);
size_t pen__values_of(const struct pen_variants *, const struct pen_variant *,
		      const char *key, double *to); /* room for all rows */
double pen__median_of(const struct pen_variants *, const struct pen_variant *,
		      const char *key); /* or NAN */
/* As people read it: "81.2 k +-3 %". */
struct pen_shown pen__shown_of(const struct pen_variants *,
			       const struct pen_variant *, const char *key);
/* What a figure changes by from one variant to another; beyond noise? */
struct pen_change pen__change_of(const struct pen_variants *,
				 const struct pen_variant *from,
				 const struct pen_variant *to, const char *key);
/* What is left of a figure: "62 %", or "all (within noise)". */
struct pen_shown pen__part_of(const struct pen_variants *,
			      const struct pen_variant *of,
			      const struct pen_variant *part, const char *key);

/* ---- who is best ---- */

struct pen_ranked {
	struct pen_variant *best; /* by its median; NULL: nobody took part */
	size_t n, nalike;	  /* that took part; that are as good */
};
/* Variants of fewer than PEN_LEAST_RUNS take no part, and cold ones only with
 * one another, when there are no warm ones. */
struct pen_ranked pen__rank(const struct pen_variants *,
			    const struct pen_ranking *);
/* The outcome as a line: the best, when it is one beyond noise, or those that
 * are alike. Returns the best median's. */
const struct pen_variant *pen__put_best(struct pen_text *,
					const struct pen_variants *,
					const struct pen_ranking *);
/* Of those that are alike, as a line: who takes the least memory. */
void pen__put_leanest(struct pen_text *, const struct pen_variants *,
		      const struct pen_variant *best);

/* ---- which one ---- */

/* The i-th as they are shown: by group, or the best first. */
const struct pen_variant *pen__variant_at(const struct pen_variants *,
					  size_t i);
bool pen__same_group(const struct pen_variants *, const struct pen_variant *,
		     const struct pen_variant *);
/* The first of that name and group (NULL: any) that has figures. */
const struct pen_variant *pen__variant_find(const struct pen_variants *,
					    const char *name,
					    const char *group);
/* Whose median is the largest; NULL: none has it. */
const struct pen_variant *pen__variant_most(const struct pen_variants *,
					    const char *key);
/* The best of a name in the group of `like`, whatever its workers. */
const struct pen_variant *pen__variant_rival(const struct pen_variants *,
					     const struct pen_variant *like,
					     const char *name);

/* ---- shown ---- */

/* Does the column have a figure in any variant? Texts always do. */
bool pen__column_has(const struct pen_variants *,
		     const struct pen_figure_column *);
/* What a column has for a variant; buf is for texts that are made. */
const char *pen__column_cell(const struct pen_variants *,
			     const struct pen_variant *,
			     const struct pen_figure_column *,
			     struct pen_shown *buf);
/* As plain text: that the machine was busy, if it was; a table, in the given
 * width (0: any); and sentences, a line each. */
void pen__variants_busy(struct pen_text *, const struct pen_variants *);
void pen__variants_print(struct pen_text *, const struct pen_variants *,
			 size_t width);
void pen__variants_words(struct pen_text *, const struct pen_variants *);
/* On a page. */
int pen__variants_verdict(struct pen_text *, const struct pen_kind *,
			  const struct pen_group *, struct pen_err *);
int pen__variants_show(struct pen_text *, const struct pen_kind *,
		       const struct pen_group *, struct pen_err *);
size_t pen__columns_parse(const char *text, struct pen_figure_column *);

#endif
