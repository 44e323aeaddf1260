/* A run on a page; what its files share. */
#ifndef PEN_REPORT_PAGE_RUN_H
#define PEN_REPORT_PAGE_RUN_H

#include "report/doc.h"
#include "report/page.h"

struct pen_run_page {
	const struct pen_doc *d;
	size_t number; /* on the page: makes ids differ */
};

struct pen_id {
	char s[64];
};
/* Of a part: unlike all others on the page. */
struct pen_id pen__run_id(const struct pen_run_page *, const char *part);

/* Where the loader's threads spent their time, in a run or a load. */
void pen__run_stages(struct pen_text *, const struct pen_run_page *,
		     const char *about);

/* The whole section. */
void pen__run_show(struct pen_text *, const struct pen_doc *, size_t number);

/* load.c: the same of other documents. */
void pen__load_show(struct pen_text *, const struct pen_doc *, size_t number);
void pen__capacity_show(struct pen_text *, const struct pen_doc *,
			size_t number);

/* why.c: a result without a verdict of this version gets one. */
void pen__run_why(struct pen_text *, const struct pen_doc *);

/* page_run_time.c: what went on over time, and how long batches were waited
 * for. */
void pen__run_time(struct pen_text *, const struct pen_run_page *);
void pen__run_epochs(struct pen_text *, const struct pen_run_page *);
void pen__run_waits(struct pen_text *, const struct pen_run_page *);
void pen__run_machine(struct pen_text *, const struct pen_run_page *);

#endif
