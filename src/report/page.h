/*
 * Pages: one file that needs nothing else, no network, no fonts, no library.
 * Text is escaped here and nowhere else; charts are in chart.h.
 */
#ifndef PEN_REPORT_PAGE_H
#define PEN_REPORT_PAGE_H

#include <stdbool.h>

#include "base/text.h"

extern const char pen__page_css[], pen__page_js[];

void pen__html(struct pen_text *, const char *text); /* escaped */
void pen__page_open(struct pen_text *, const char *title);
void pen__page_close(struct pen_text *);

/* Numbers as people read them: good until the end of the statement. */
struct pen_shown {
	char s[40];
};
struct pen_shown pen__show_count(double);  /* "81.2 k" */
struct pen_shown pen__show_bytes(double);  /* "1.35 GB" */
struct pen_shown pen__show_time(double s); /* "12.3 ms" */
struct pen_shown pen__show_share(double);  /* "38 %" */
struct pen_shown pen__show_whole(double);  /* "65,536" */
struct pen_shown pen__show_number(double); /* "340", "4.2" */

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
void pen__table_row_end(struct pen_text *);
void pen__table_close(struct pen_text *);

#endif
