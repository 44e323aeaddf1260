/*
 * Comparison of variants: several ways to deliver the same samples. The command
 * and the page use the same descriptions (struct pen_kind) and sentences. The
 * runs of a variant are combined into a median and its spread, and no variant
 * is called better within noise. A variant that delivered unexpected samples
 * has no figures.
 *
 * Keys of a row: "arm" and "group" name the variant, unless the kind has a
 * versus. "n_rows" must equal "expected_rows" ("n_samples": "wanted_samples").
 * "content_sum" must equal "expected_sum" or "wanted_sum", if present, and the
 * sums of all rows with the same "check". "n_skipped" and "n_substituted" must
 * be 0. "wrong" is true, or describes another defect. The end of a key
 * determines how a figure is shown and whether less is better
 * (pen__measure_of).
 */
#ifndef PEN_REPORT_VARIANTS_H
#define PEN_REPORT_VARIANTS_H

#include "report/report.h"
#include "report/spread.h"

#define PEN_MOST_COLUMNS 24

struct pen_variant {
	const struct pen_line *row; /* its first row */
	char name[96], brief[40], group[96];
	size_t n;   /* runs with figures */
	bool alike; /* equal to the best of the last ranking within noise */
	double by;  /* median of the figure to sort by */
	char wrong[200]; /* why there are no figures; "": there are */
};

struct pen_figure_column {
	char title[48], key[48];
	struct pen_shown (*show)(double); /* NULL: text */
	char of; /* '<' lowest, '>' highest run; else the median */
	bool page_only;
};

struct pen_variants {
	const struct pen_kind *kind;
	const struct pen_line *const *row;
	size_t nrows;
	struct pen_variant *v;
	size_t n, nwrong;
	size_t *by_group; /* indices of v, ordered by group */
	struct pen_figure_column column[PEN_MOST_COLUMNS]; /* not empty */
	size_t ncolumns;
	/* scratch space */
	double *buf;
	struct pen_repeats *repeats;
	struct pen_variant **entry;
	bool *flag;
};

int pen__variants_init(struct pen_variants *, const struct pen_kind *,
		       const struct pen_line *const *row, size_t n,
		       struct pen_err *);
void pen__variants_fini(struct pen_variants *);
/* Whether this row is a run of the variant, with figures. */
bool pen__is_run(const struct pen_variant *, const struct pen_line *);
/* Whether this row shows that it delivered unexpected samples. */
bool pen__row_wrong(const struct pen_line *);

/* ---- figures ---- */

struct pen_measure {
	const char *tail; /* suffix of the key */
	struct pen_shown (*show)(double);
	bool less; /* lower is better */
};
const struct pen_measure *pen__measure_of(const char *key); /* NULL: text */
/* A figure over the runs of a variant; empty for NULL. */
struct pen_range pen__range_of(const struct pen_variants *,
			       const struct pen_variant *, const char *key);
size_t pen__values_of(const struct pen_variants *, const struct pen_variant *,
		      const char *key, double *to); /* room for all rows */
double pen__median_of(const struct pen_variants *, const struct pen_variant *,
		      const char *key); /* or NAN */
/* Formatted: "81.2 k +-3 %". */
struct pen_shown pen__shown_of(const struct pen_variants *,
			       const struct pen_variant *, const char *key);
/* The change of a figure from one variant to another. */
struct pen_change pen__change_of(const struct pen_variants *,
				 const struct pen_variant *from,
				 const struct pen_variant *to, const char *key);
/* The remaining share of a figure: "62 %", or "all (within noise)". */
struct pen_shown pen__part_of(const struct pen_variants *,
			      const struct pen_variant *of,
			      const struct pen_variant *part, const char *key);

/* ---- ranking ---- */

struct pen_ranked {
	struct pen_variant *best; /* by its median; NULL: no participants */
	size_t n, nalike;	  /* participants; those equal to the best */
};
/* Excludes variants with fewer than PEN_LEAST_RUNS runs. Cold variants are
 * ranked only if there are no warm ones. */
struct pen_ranked pen__rank(const struct pen_variants *,
			    const struct pen_ranking *);
/* A line with the best variant, or those equal to it within noise. Returns the
 * one with the best median. */
const struct pen_variant *pen__put_best(struct pen_text *,
					const struct pen_variants *,
					const struct pen_ranking *);
/* A line with the variant of the least memory among those equal to the best. */
void pen__put_leanest(struct pen_text *, const struct pen_variants *,
		      const struct pen_variant *best);

/* ---- lookup ---- */

/* The i-th in display order: by group, or the best first. */
const struct pen_variant *pen__variant_at(const struct pen_variants *,
					  size_t i);
bool pen__same_group(const struct pen_variants *, const struct pen_variant *,
		     const struct pen_variant *);
/* The first with this name and group (NULL: any) and figures. */
const struct pen_variant *pen__variant_find(const struct pen_variants *,
					    const char *name,
					    const char *group);
/* The variant with the largest median; NULL: none has the figure. */
const struct pen_variant *pen__variant_most(const struct pen_variants *,
					    const char *key);
/* The best with this name in the group of `like`, for any worker count. */
const struct pen_variant *pen__variant_rival(const struct pen_variants *,
					     const struct pen_variant *like,
					     const char *name);

/* ---- output ---- */

/* Page cache of a run: "cold", "warm", or "" if it does not matter. */
const char *pen__line_cache(const struct pen_line *);
/* The cell of a variant; buf holds formatted numbers. */
const char *pen__column_cell(const struct pen_variants *,
			     const struct pen_variant *,
			     const struct pen_figure_column *,
			     struct pen_shown *buf);
/* As plain text: a warning if the machine was busy; a table of the given width
 * (0: any); the summary, one sentence per line. */
void pen__variants_busy(struct pen_text *, const struct pen_variants *);
void pen__variants_print(struct pen_text *, const struct pen_variants *,
			 size_t width);
void pen__variants_words(struct pen_text *, const struct pen_variants *);
/* HTML. */
int pen__variants_verdict(struct pen_text *, const struct pen_kind *,
			  const struct pen_group *, struct pen_err *);
int pen__variants_show(struct pen_text *, const struct pen_kind *,
		       const struct pen_group *, struct pen_err *);
size_t pen__columns_parse(const char *text, struct pen_figure_column *);

#endif
