/*
 * Reports of result files. A kind describes the results of one experiment: a
 * summary in plain text, and how they are shown. Rows of one data set on one
 * machine form a group; figures of different groups are never drawn in one
 * chart.
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
	size_t number; /* of the group; makes ids unique on the page */
};

#define PEN_MOST_CHARTS 4
#define PEN_MOST_BEST 4

/* A chart with one bar per variant. */
struct pen_bars_of {
	const char *title, *about, *key;
};

/* The best variant, as a sentence. */
struct pen_ranking {
	const char *what; /* "Fastest in order"; NULL: end of the list */
	const char *key;
	const char *group;	 /* to include; NULL: all */
	const char *with, *also; /* additional figure: "in 12 MB" */
	bool (*takes)(const struct pen_variants *, const struct pen_variant *);
	bool cold; /* only cold ones */
};

/* Compares all variants with one, per group. */
struct pen_versus {
	const char *hero;     /* the variant */
	const char *key;      /* the figure */
	const char *what;     /* "a step": unit of the figure */
	const char *compared; /* "takes %s times as long", for other variants */
	const char *vars[3];  /* keys that define a group */
	const char *workers;  /* variants differ in the number of workers */
	/* Adds text about the group of this variant; may be NULL. */
	void (*more)(struct pen_text *, const struct pen_variants *,
		     const struct pen_variant *);
};

/* Describes the results of one kind, and how they are shown. */
struct pen_kind {
	const char *experiment; /* of the rows; NULL: any other */
	const char *title;
	/*
	 * The outcome in plain text, one sentence per line, if there are enough
	 * runs to estimate noise: the best variants, or the comparison with
	 * one; then additional text. All NULL: nothing is compared.
	 */
	struct pen_ranking best[PEN_MOST_BEST + 1];
	struct pen_versus versus; /* no hero: none */
	void (*words)(struct pen_text *, const struct pen_variants *);
	/* Adds sentences that hold regardless of noise; may be NULL. */
	void (*facts)(struct pen_text *, const struct pen_variants *);
	/* Columns of the tables of variants and of runs, as in experiments.txt;
	 * NULL: no table. */
	const char *columns, *runs;
	struct pen_bars_of chart[PEN_MOST_CHARTS]; /* those with a title */
	/* Sets name, brief name and group of a variant whose rows have no
	 * "arm"; NULL: all have one. */
	void (*name)(struct pen_variant *);
	/* Rows with the same text must have the same content; NULL: uses their
	 * "check". */
	void (*check)(const struct pen_line *, char *buf, size_t cap);
	const char *by; /* key to sort by, in descending order */
	/* Adds charts and tables before the standard ones; may be NULL. */
	int (*show)(struct pen_text *, const struct pen_variants *,
		    const struct pen_group *, struct pen_err *);
};
/* Reads the descriptions of all experiments; must be called first.
 * pen__kind_of() returns that of an experiment, or NULL. */
int pen__experiments_read(struct pen_err *);
const struct pen_kind *pen__kind_of(const char *experiment);

/* The input of a report. */
struct pen_results {
	struct pen_lines rows;
	struct pen_doc *doc;
	size_t ndocs;
};
/* Reads a .json document, a directory of documents, or else a file of rows. */
int pen__results_read(struct pen_results *, const char *path, struct pen_err *);
void pen__results_fini(struct pen_results *);

/* Writes the page. */
int pen__report_html(const struct pen_results *, struct pen_text *,
		     struct pen_err *);
/* export.c: exports documents as CSV (file, key, value) and as OpenMetrics
 * text. */
void pen__documents_csv(const struct pen_results *, struct pen_text *);
void pen__documents_metrics(const struct pen_results *, struct pen_text *);
void pen__csv_field(struct pen_text *, const char *, bool first);

/* Writes rows as CSV; columns in order of first occurrence. */
int pen__report_csv(const struct pen_lines *, struct pen_text *,
		    struct pen_err *);

/* ---- shared by kinds ---- */

/* Peak memory, without pages of mapped files if known. */
double pen__line_memory(const struct pen_line *);
/* Steady-state rate, without the first batch and its time. NAN with fewer than
 * ten blocks: the rest of the first block is ready together with its first
 * batch. */
double pen__line_rest(const struct pen_line *);
/* "cells" or "samples" */
const char *pen__line_unit(const struct pen_line *);
/* Adds a line of plain text if the machine was busy with other work, according
 * to "others" of rows or of a document. */
void pen__others_rows(struct pen_text *, const struct pen_line *const *row,
		      size_t n);
void pen__others_doc(struct pen_text *, const struct pen_doc *);
/* Summary of `capacity --json` as lines of plain text: the number of
 * accelerators and its uncertainty. */
void pen__capacity_words(struct pen_text *, const struct pen_doc *);
/* Describes machine and data as a list. */
void pen__about(struct pen_text *, const struct pen_group *);

#endif
