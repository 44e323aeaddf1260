/* The page of a run; shared by its files. */
#ifndef PEN_REPORT_PAGE_RUN_H
#define PEN_REPORT_PAGE_RUN_H

#include "report/doc.h"
#include "report/page.h"

struct pen_run_page {
	const struct pen_doc *d;
	size_t number; /* makes ids unique on the page */
};

struct pen_id {
	char s[64];
};
/* The id of a part; unique on the page. */
struct pen_id pen__run_id(const struct pen_run_page *, const char *part);

/* Time of the loader threads by stage, of a run or a load. */
void pen__run_stages(struct pen_text *, const struct pen_run_page *,
		     const char *about);

/* Starts a section: its heading (h1 if it is the only one) and its source. */
void pen__section_open(struct pen_text *, const char *kind, const char *title,
		       const char *source, bool alone);

/* The section of a run. */
void pen__run_show(struct pen_text *, const struct pen_doc *, size_t number,
		   bool alone);

/* page_load.c: the same for other documents. */
void pen__load_show(struct pen_text *, const struct pen_doc *, size_t number,
		    bool alone);
void pen__capacity_show(struct pen_text *, const struct pen_doc *,
			size_t number, bool alone);

/* why.c: computes the verdict of a result that has none. */
void pen__run_why(struct pen_text *, const struct pen_doc *);

/* page_run_time.c: the run over time, and the waits for batches. */
void pen__run_time(struct pen_text *, const struct pen_run_page *);
void pen__run_epochs(struct pen_text *, const struct pen_run_page *);
void pen__run_waits(struct pen_text *, const struct pen_run_page *);
void pen__run_machine(struct pen_text *, const struct pen_run_page *);

#endif
