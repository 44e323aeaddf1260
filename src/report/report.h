/*
 * Reports of result files. A kind is one experiment's: it says in words what
 * came out and then shows it. Rows of one data set on one machine are a group;
 * figures of different groups are never drawn into one chart.
 */
#ifndef PEN_REPORT_REPORT_H
#define PEN_REPORT_REPORT_H

#include "report/doc.h"
#include "report/jsonl.h"
#include "report/page.h"

struct pen_variants; /* variants.h */
struct pen_variant;

struct pen_group {
	const struct pen_line **row;
	size_t n;
	size_t number; /* of the group on the page: makes ids differ */
};

#define PEN_MOST_CHARTS 4
#define PEN_MOST_BEST 4

/* A chart with a bar a variant. */
struct pen_bars_of {
	const char *title, *about, *key;
};

/* Who is best, as a sentence. */
struct pen_ranking {
	const char *what; /* "Fastest in order"; NULL: the end of them */
	const char *key;
	const char *group;	 /* that takes part; NULL: all */
	const char *with, *also; /* another figure, "in 12 MB" */
	bool (*takes)(const struct pen_variants *, const struct pen_variant *);
	bool cold;	  /* only cold ones */
	const char *unit; /* of a rate; NULL: samples */
};

/* One variant that all others are compared with, group by group. */
struct pen_versus {
	const char *hero;     /* the variant */
	const char *key;      /* the figure */
	const char *what;     /* "a step", of the figure */
	const char *compared; /* "takes %s times as long" of another one */
	const char *vars[3];  /* keys that a group's rows have alike */
	const char *workers;  /* variants differ in their number of them */
	/* More about a group, that of this one; may be NULL. */
	void (*more)(struct pen_text *, const struct pen_variants *,
		     const struct pen_variant *);
};

/* What a result of this kind is, and how it is shown. */
struct pen_kind {
	const char *experiment; /* of the rows; NULL: of any others */
	const char *title;
	/*
	 * What came out, in plain text: sentences, a line each, when there are
	 * runs enough to tell noise. First who is best, or how all compare with
	 * one; then what else there is to say. NULL, all of them: nothing is
	 * compared.
	 */
	struct pen_ranking best[PEN_MOST_BEST + 1];
	struct pen_versus versus; /* without a hero: none */
	void (*words)(struct pen_text *, const struct pen_variants *);
	/* What holds whatever the noise, in the same way; may be NULL. */
	void (*facts)(struct pen_text *, const struct pen_variants *);
	/* Columns of the table of variants, and of that of all runs, as
	 * experiments.txt has them; NULL: no such table. */
	const char *columns, *runs;
	struct pen_bars_of chart[PEN_MOST_CHARTS]; /* as many as have titles */
	/* Name of a variant whose rows have no "arm", perhaps also in brief,
	 * and group; NULL: all have one. */
	void (*name)(struct pen_variant *);
	/* Rows for which this is the same text have to have the same content;
	 * NULL: by their "check". */
	void (*check)(const struct pen_line *, char *buf, size_t cap);
	const char *by; /* shows those with most of this figure first */
	/* Charts and tables of its own, before the others; may be NULL. */
	int (*show)(struct pen_text *, const struct pen_variants *,
		    const struct pen_group *, struct pen_err *);
};
/* Fills the descriptions of all experiments, before any is looked at; that of
 * an experiment, by its name (NULL: none). */
int pen__experiments_read(struct pen_err *);
const struct pen_kind *pen__kind_of(const char *experiment);

/* What a report is of. */
struct pen_results {
	struct pen_lines rows;
	struct pen_doc *doc;
	size_t ndocs;
};
/* A file of rows, or a document: by its name, and directories are documents. */
int pen__results_read(struct pen_results *, const char *path, struct pen_err *);
void pen__results_fini(struct pen_results *);

/* The whole page. */
int pen__report_html(const struct pen_results *, struct pen_text *,
		     struct pen_err *);
/* export.c: documents as CSV (file, key, value), and as OpenMetrics text. */
void pen__documents_csv(const struct pen_results *, struct pen_text *);
void pen__documents_metrics(const struct pen_results *, struct pen_text *);
void pen__csv_field(struct pen_text *, const char *, bool first);

/* All keys of all rows, in the order they came. */
int pen__report_csv(const struct pen_lines *, struct pen_text *,
		    struct pen_err *);

/* ---- what kinds share ---- */

/* The most memory it had: without pages of mapped files, when that is known. */
double pen__line_memory(const struct pen_line *);
/* A rate without the first batch and its time: what goes on and on. Only where
 * there were blocks enough: with one or two, the rest of the first block is
 * ready when its first batch is. */
double pen__line_rest(const struct pen_line *);
/* "cells" or "samples" */
const char *pen__line_unit(const struct pen_line *);
/* Was the machine busy with other work? A line of plain text that says so, by
 * "others" of rows or of a document; nothing when it was not. */
void pen__others_rows(struct pen_text *, const struct pen_line *const *row,
		      size_t n);
void pen__others_doc(struct pen_text *, const struct pen_doc *);
/* How many accelerators `capacity --json` found to be fed, and how sure that
 * is, as lines of plain text. */
void pen__capacity_words(struct pen_text *, const struct pen_doc *);
/* The machine and the data, as a list. */
void pen__about(struct pen_text *, const struct pen_group *);

#endif
