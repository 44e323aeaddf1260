/*
 * Reports of result files. A kind is one experiment's: it says in words what
 * came out and then shows it. Rows of one data set on one machine are a group;
 * figures of different groups are never drawn into one chart.
 */
#ifndef PEN_REPORT_REPORT_H
#define PEN_REPORT_REPORT_H

#include "report/doc.h"
#include "report/page.h"
#include "report/lines.h"

struct pen_arms; /* arms.h */
struct pen_arm_column;
struct pen_arm_chart;
struct pen_versus;

struct pen_group {
	const struct pen_line **row;
	size_t n;
	size_t number; /* of the group on the page: makes ids differ */
};

/* What a result of this kind is, and how it is shown. */
struct pen_kind {
	const char *experiment; /* of the rows; NULL: of any others */
	const char *title;
	/* Paragraphs: the result first. */
	int (*verdict)(struct pen_text *, const struct pen_group *,
		       struct pen_err *);
	/* Charts and tables. */
	int (*show)(struct pen_text *, const struct pen_group *,
		    struct pen_err *);
	/* Instead of these two, arms held against one another (arms.h). */
	const struct pen_arm_column *columns; /* end with title NULL */
	const struct pen_arm_chart *charts;   /* the same */
	/* What came out, in plain text: sentences, a line each. */
	void (*words)(struct pen_text *, const struct pen_arms *);
	const struct pen_versus *versus; /* may be NULL */
};
extern const struct pen_kind pen__kind_blocks, pen__kind_chunks,
	pen__kind_prefetch, pen__kind_batch_size, pen__kind_formats,
	pen__kind_shuffle, pen__kind_startup, pen__kind_resume, pen__kind_mmap,
	pen__kind_neighbour, pen__kind_overlap, pen__kind_workers,
	pen__kind_iterate, pen__kind_prealloc, pen__kind_memory,
	pen__kind_headspace, pen__kind_sweep;

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

/* A setting that was run once or more: medians over its runs. */
struct pen_case {
	const struct pen_line *row; /* the first */
	size_t n;		    /* runs that have figures */
	bool oom;
	double rate, memory, seconds, n_eff;
};
/*
 * One for each different "setup", in the order of the first row; the caller
 * frees. Runs that ran out of memory count when there is no other.
 */
int pen__cases(const struct pen_group *, struct pen_case **out, size_t *n,
	       struct pen_err *);
/* The headline rate: without the first batch, unless the row says otherwise. */
double pen__line_rate(const struct pen_line *);
/* The most memory it had: without pages of mapped files, when that is known. */
double pen__line_memory(const struct pen_line *);
/* "cells" or "samples" */
const char *pen__line_unit(const struct pen_line *);
/* The machine and the data, as a list. */
void pen__about(struct pen_text *, const struct pen_group *);

#endif
