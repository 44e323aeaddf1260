/*
 * Pages: one file that needs nothing else, no network, no fonts, no library.
 * Text is escaped here and nowhere else; charts are in chart.h.
 */
#ifndef PEN_REPORT_PAGE_H
#define PEN_REPORT_PAGE_H

#include <stdbool.h>

#include "base/show.h"
#include "base/text.h"

/* The hash is that of the script, as a Content-Security-Policy has it. */
extern const char pen__page_css[], pen__page_js[], pen__page_js_hash[];

void pen__html(struct pen_text *, const char *text); /* escaped */
void pen__page_open(struct pen_text *, const char *title);
void pen__page_close(struct pen_text *);

/*
 * A table that can be sorted and copied as CSV. names end with NULL; one that
 * begins with '#' is of numbers, and with '~' (after it) is left out on paper.
 * A cell of numbers has the number itself for sorting and copying, and what is
 * shown; NAN is an empty cell.
 */
void pen__table_open(struct pen_text *, const char *caption,
		     const char *const *names);
void pen__table_row(struct pen_text *, const char *id, size_t number);
void pen__table_text(struct pen_text *, const char *text);
void pen__table_number(struct pen_text *, double, struct pen_shown);
/* A number with its spread, as pen__show_range() has it. */
void pen__put_range(struct pen_text *, const char *shown);
void pen__table_row_end(struct pen_text *);
void pen__table_close(struct pen_text *);

/* On a page: lines of plain text as paragraphs of this class, and freed. */
void pen__put_words(struct pen_text *, struct pen_text *words,
		    const char *class);

#endif
