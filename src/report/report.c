/* HTML and CSV reports: groups rows and selects the code that shows them. */
#include "report/report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "report/variants.h"
#include "report/page_run.h"

/* ---- rows of unknown experiments ---- */

static void count_rows(struct pen_text *t, const struct pen_variants *a)
{
	pen__text_add(t, "%s of unknown experiments.\n",
		      pen__show_counted(a->nrows, "row").s);
}

/* Prints every value unchanged. */
static int show_cells(struct pen_text *t, const struct pen_variants *a,
		      const struct pen_group *g, struct pen_err *err)
{
	static const char *const names[] = { "key", "value", NULL };

	(void)a;
	(void)err;
	for (size_t i = 0; i < g->n; i++) {
		const struct pen_line *r = g->row[i];
		char id[32];

		snprintf(id, sizeof(id), "g%zu-%zu", g->number, i);
		pen__table_open(t, "A row", names);
		for (size_t k = 0; k < r->n; k++) {
			pen__table_row(t, id, k);
			pen__table_text(t, pen__cell_key(r, k));
			pen__table_text(t, pen__cell_text(r, k));
			pen__table_row_end(t);
		}
		pen__table_close(t);
	}
	return 0;
}

static const struct pen_kind other = {
	.title = "Other results",
	.facts = count_rows,
	.show = show_cells,
};

static const struct pen_kind *kind_of(const struct pen_line *r)
{
	const struct pen_kind *k =
		pen__kind_of(pen__line_text(r, "experiment"));

	return k ? k : &other;
}

/* ---- groups ---- */

static bool together(const struct pen_line *a, const struct pen_line *b)
{
	/* if variants are named by their settings, everything else must be
	 * equal */
	if (kind_of(a)->by &&
	    (strcmp(pen__line_text(a, "settings"),
		    pen__line_text(b, "settings")) != 0 ||
	     pen__line_true(a, "cold") != pen__line_true(b, "cold")))
		return false;
	return kind_of(a) == kind_of(b) &&
	       !strcmp(pen__line_text(a, "path"), pen__line_text(b, "path")) &&
	       !strcmp(pen__line_text(a, "host"), pen__line_text(b, "host"));
}

struct section {
	const struct pen_kind *kind;
	struct pen_group g;
};

struct page {
	struct section *section;
	size_t n;
	const struct pen_line **row; /* all rows, ordered by group */
};

/* Collects the rows that belong to row `first`; earlier rows are in other
 * groups. */
static void gather(const struct pen_lines *rows, size_t first, struct page *p,
		   size_t *at)
{
	struct section *s = &p->section[p->n];

	s->kind = kind_of(&rows->row[first]);
	s->g = (struct pen_group){ &p->row[*at], 0, p->n };
	for (size_t i = first; i < rows->n; i++)
		if (together(&rows->row[first], &rows->row[i])) {
			p->row[(*at)++] = &rows->row[i];
			s->g.n++;
		}
	p->n++;
}

static int group_rows(const struct pen_lines *rows, struct page *p,
		      struct pen_err *err)
{
	size_t at = 0;

	p->section = pen__alloc(rows->n, sizeof(*p->section));
	p->row = pen__alloc(rows->n, sizeof(*p->row));
	if (!p->section || !p->row)
		return pen__fail_nomem(err, "report", rows->n * 64);
	for (size_t i = 0; i < rows->n; i++) {
		size_t k = 0;

		while (k < i && !together(&rows->row[k], &rows->row[i]))
			k++;
		if (k == i)
			gather(rows, i, p, &at);
	}
	return 0;
}

/* ---- the page ---- */

/* The last part of a path, for headings. */
static const char *short_name(const struct pen_line *r)
{
	const char *path = pen__line_text(r, "path");
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static int put_section(struct pen_text *t, const struct section *s, bool alone,
		       struct pen_err *err)
{
	const char *name = short_name(s->g.row[0]);
	int rc;

	pen__text_add(t, "<section>\n<h%d>%s%s", alone ? 1 : 2, s->kind->title,
		      *name ? ": " : "");
	pen__html(t, name);
	pen__text_add(t, "</h%d>\n", alone ? 1 : 2);
	rc = pen__variants_verdict(t, s->kind, &s->g, err);
	if (!rc)
		rc = pen__variants_show(t, s->kind, &s->g, err);
	if (!rc)
		pen__about(t, &s->g);
	pen__text_add(t, "</section>\n");
	return rc;
}

/* ---- documents ---- */

static const struct {
	const char *schema;
	void (*show)(struct pen_text *, const struct pen_doc *, size_t number,
		     bool alone);
} documents[] = {
	{ "penstock.result/", pen__run_show },
	{ "penstock.load/", pen__load_show },
	{ "penstock.capacity/", pen__capacity_show },
};

static bool put_document(struct pen_text *t, const struct pen_doc *d,
			 size_t number, bool alone)
{
	for (size_t i = 0; i < sizeof(documents) / sizeof(*documents); i++) {
		if (!pen__doc_is(d, documents[i].schema))
			continue;
		documents[i].show(t, d, number, alone);
		return true;
	}
	return false;
}

/* A run is named after its directory. */
static char *name_of(const char *path)
{
	static const char file[] = "/result.json";
	const size_t n = strlen(path), m = sizeof(file) - 1;

	return pen__strndup(path,
			    n > m && !strcmp(path + n - m, file) ? n - m : n);
}

static int read_document(void *arg, const char *path, struct pen_err *err)
{
	struct pen_results *r = arg;
	char *name = name_of(path);
	struct pen_doc *more;
	int rc;

	more = pen__realloc(r->doc, r->ndocs + 1, sizeof(*more));
	if (more)
		r->doc = more;
	if (!more || !name) {
		pen__free(name);
		return pen__fail_nomem(err, path, sizeof(*more));
	}
	rc = pen__doc_open(&more[r->ndocs], path, err);
	if (rc) {
		pen__free(name);
		return rc;
	}
	more[r->ndocs++].name = name;
	return 0;
}

int pen__results_read(struct pen_results *r, const char *path,
		      struct pen_err *err)
{
	const size_t n = strlen(path), before = r->ndocs;
	struct stat st;
	int rc;

	if (!stat(path, &st) && S_ISDIR(st.st_mode)) {
		rc = pen__doc_walk(path, read_document, r, err);
		return rc || r->ndocs > before
			       ? rc
			       : pen__fail(err, P_NOT_FOUND, path,
					   "the directory contains no "
					   "result.json");
	}
	if (n < 5 || strcmp(path + n - 5, ".json"))
		return pen__lines_read(&r->rows, path, err);
	return read_document(r, path, err);
}

void pen__results_fini(struct pen_results *r)
{
	pen__lines_fini(&r->rows);
	for (size_t i = 0; i < r->ndocs; i++) {
		pen__free((void *)(uintptr_t)r->doc[i].name);
		pen__doc_close(&r->doc[i]);
	}
	pen__free(r->doc);
}

/* A table of all runs. */
static void put_overview(struct pen_text *t, const struct pen_results *r)
{
	static const char *const names[] = { "run",
					     "start",
					     "#accelerators",
					     "#utilisation",
					     "#samples/s",
					     "#read/s",
					     NULL };

	pen__text_add(t, "<h2>All runs</h2>\n");
	pen__table_open(t, "All runs", names);
	for (size_t i = 0; i < r->ndocs; i++) {
		const struct pen_doc *d = &r->doc[i];
		double n = pen__doc_number(d, 0, "accelerators");
		double au = pen__doc_number(d, 0, "totals.au.mean");
		double rate =
			pen__doc_number(d, 0, "totals.samples_per_s.mean");
		double read = 1048576 *
			      pen__doc_number(d, 0, "totals.read_mib_per_s");

		if (isnan(rate))
			rate = pen__doc_number(d, 0, "samples_per_s");
		pen__table_row(t, "all", i);
		pen__table_text(t, d->name);
		pen__table_text(t, pen__doc_when(d, "start").s);
		pen__table_number(t, n, pen__show_whole(n));
		pen__table_number(t, au, pen__show_percent(au));
		pen__table_number(t, rate, pen__show_count(rate));
		pen__table_number(t, read, pen__show_bytes(read));
		pen__table_row_end(t);
	}
	pen__table_close(t);
}

static void put_title(struct pen_text *t, const struct pen_results *r,
		      const struct page *p)
{
	char title[256];
	bool alone = r->ndocs + p->n == 1;

	snprintf(title, sizeof(title), "Penstock: %s",
		 !alone ? "results"
		 : p->n ? p->section[0].kind->title
			: r->doc[0].name);
	pen__page_open(t, title);
	if (!alone)
		pen__text_add(t, "<h1>Results</h1>\n");
}

int pen__report_html(const struct pen_results *r, struct pen_text *t,
		     struct pen_err *err)
{
	struct page p = { 0 };
	int rc = 0;

	if (!r->rows.n && !r->ndocs)
		return pen__fail(err, P_NOT_FOUND, "report",
				 "the files contain no results");
	if (r->rows.n)
		rc = group_rows(&r->rows, &p, err);
	if (!rc) {
		put_title(t, r, &p);
		if (r->ndocs > 1)
			put_overview(t, r);
	}
	for (size_t i = 0; !rc && i < r->ndocs; i++)
		if (!put_document(t, &r->doc[i], i, p.n + r->ndocs == 1))
			rc = pen__fail(
				err, P_UNSUPPORTED_FEATURE, r->doc[i].name,
				"results of kind '%s' have no report page",
				pen__doc_text(&r->doc[i], 0, "schema"));
	for (size_t i = 0; !rc && i < p.n; i++)
		rc = put_section(t, &p.section[i], p.n + r->ndocs == 1, err);
	if (!rc)
		pen__page_close(t);
	pen__free(p.section);
	pen__free(p.row);
	return rc;
}

/* ---- CSV ---- */

/* All keys, in order of first occurrence. */
static const char **all_keys(const struct pen_lines *rows, size_t *n)
{
	const char **key = NULL;

	*n = 0;
	for (size_t i = 0; i < rows->n; i++)
		for (size_t k = 0; k < rows->row[i].n; k++) {
			const char *name = pen__cell_key(&rows->row[i], k);
			const char **more;
			size_t j = 0;

			while (j < *n && strcmp(key[j], name) != 0)
				j++;
			if (j < *n)
				continue;
			more = pen__realloc(key, *n + 1, sizeof(*more));
			if (!more) {
				pen__free(key);
				return NULL;
			}
			key = more;
			key[(*n)++] = name;
		}
	return key;
}

int pen__report_csv(const struct pen_lines *rows, struct pen_text *t,
		    struct pen_err *err)
{
	size_t n;
	const char **key = all_keys(rows, &n);

	if (!key)
		return rows->n ? pen__fail_nomem(err, "CSV", rows->n * 8)
			       : pen__fail(err, P_NOT_FOUND, "report",
					   "the files contain no results");
	for (size_t k = 0; k < n; k++)
		pen__csv_field(t, key[k], !k);
	pen__text_put(t, "\n", 1);
	for (size_t i = 0; i < rows->n; i++) {
		for (size_t k = 0; k < n; k++)
			pen__csv_field(t, pen__line_text(&rows->row[i], key[k]),
				       !k);
		pen__text_put(t, "\n", 1);
	}
	pen__free(key);
	return 0;
}
