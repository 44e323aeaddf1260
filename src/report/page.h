/*
 * Pages: self-contained HTML files that need no network, fonts or libraries.
 * Text is escaped here and nowhere else; charts are in chart.h.
 */
#ifndef PEN_REPORT_PAGE_H
#define PEN_REPORT_PAGE_H

#include <stdbool.h>

#include "base/show.h"
#include "base/text.h"

/* The hash of the script, for the Content-Security-Policy. */
extern const char pen__page_css[], pen__page_js[], pen__page_js_hash[];

void pen__html(struct pen_text *, const char *text); /* escaped */
void pen__page_open(struct pen_text *, const char *title);
void pen__page_close(struct pen_text *);

/*
 * A table that can be sorted and copied as CSV. names is NULL-terminated; '#'
 * marks a column of numbers, '~' (after it) a column omitted in print. A cell
 * of numbers has the number for sorting and copying, and its text; NAN is an
 * empty cell.
 */
void pen__table_open(struct pen_text *, const char *caption,
		     const char *const *names);
void pen__table_row(struct pen_text *, const char *id, size_t number);
void pen__table_text(struct pen_text *, const char *text);
void pen__table_number(struct pen_text *, double, struct pen_shown);
/* Prints a number with its spread, in the format of pen__show_range(). */
void pen__put_range(struct pen_text *, const char *shown);
void pen__table_row_end(struct pen_text *);
void pen__table_close(struct pen_text *);

/* Prints lines of plain text as paragraphs with the attributes in class, and
 * frees them. */
void pen__put_words(struct pen_text *, struct pen_text *words,
		    const char *class);

#endif
