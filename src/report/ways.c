/* Arms: runs taken together, held against one another, and printed. */
#include "report/ways.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static bool same(const struct pen_line *a, const struct pen_line *b,
		 const char *key)
{
	return !strcmp(pen__line_text(a, key), pen__line_text(b, key));
}

static bool has(const struct pen_line *r, const char *key)
{
	return pen__line_text(r, key)[0] != '\0';
}

static bool ran(const struct pen_line *r)
{
	return !pen__line_true(r, "oom");
}

/* ---- is it right? ---- */

static bool is_short(const struct pen_line *r, char *why, size_t cap)
{
	const double n = pen__line_number(r, "n_rows");
	const double want = pen__line_number(r, "expected_rows");

	if (has(r, "wrong")) {
		snprintf(why, cap, "%s", pen__line_text(r, "wrong"));
		return true;
	}
	if (pen__line_number(r, "n_skipped") > 0 ||
	    pen__line_number(r, "n_substituted") > 0) {
		snprintf(why, cap, "samples were left out or replaced");
		return true;
	}
	if (!isnan(want) && n != want) {
		snprintf(why, cap, "%.0f samples, not %.0f", n, want);
		return true;
	}
	if (has(r, "expected_sum") &&
	    strcmp(pen__line_text(r, "expected_sum"),
		   pen__line_text(r, "content_sum")) != 0) {
		snprintf(why, cap, "content %.16s, not %.16s",
			 pen__line_text(r, "content_sum"),
			 pen__line_text(r, "expected_sum"));
		return true;
	}
	return false;
}

/* Two arms that differ are both in doubt: nobody knows which one is right. */
static bool differs(const struct pen_ways *a, const struct pen_line *r,
		    char *why, size_t cap)
{
	for (size_t i = 0; has(r, "check") && i < a->n; i++) {
		const struct pen_line *o = a->row[i];

		if (!ran(o) || !same(r, o, "check") ||
		    !same(r, o, "settings") ||
		    (same(r, o, "content_sum") && same(r, o, "n_rows")))
			continue;
		snprintf(why, cap, "content %.16s, but %.16s with %.60s",
			 pen__line_text(r, "content_sum"),
			 pen__line_text(o, "content_sum"),
			 pen__line_text(o, "arm"));
		return true;
	}
	return false;
}

static void fill(struct pen_ways *a, struct pen_way_case *c)
{
	for (size_t i = 0; i < a->n; i++) {
		const struct pen_line *r = a->row[i];

		if (!same(r, c->row, "setup") || !ran(r))
			continue;
		c->n++;
		if (!c->wrong[0] && !is_short(r, c->wrong, sizeof(c->wrong)))
			differs(a, r, c->wrong, sizeof(c->wrong));
	}
	a->nwrong += c->wrong[0] != '\0';
	if (!c->n)
		snprintf(c->wrong, sizeof(c->wrong), "ran out of memory");
}

int pen__ways_init(struct pen_ways *a, const struct pen_line *const *row,
		   size_t n, struct pen_err *err)
{
	*a = (struct pen_ways){ .row = row, .n = n };
	a->c = pen__calloc(n ? n : 1, sizeof(*a->c));
	a->buf = pen__alloc(n ? n : 1, sizeof(*a->buf));
	if (!a->c || !a->buf) {
		pen__ways_fini(a);
		return pen__fail_nomem(err, "arms", n * sizeof(*a->c));
	}
	for (size_t i = 0; i < n; i++) {
		size_t k = 0;

		while (k < a->ncases && !same(a->c[k].row, row[i], "setup"))
			k++;
		if (k < a->ncases)
			continue;
		a->c[k].row = row[i];
		a->ncases++;
		fill(a, &a->c[k]);
	}
	return 0;
}

void pen__ways_fini(struct pen_ways *a)
{
	pen__free(a->c);
	pen__free(a->buf);
	a->c = NULL;
	a->buf = NULL;
}

/* ---- figures ---- */

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double pen__ways_get(const struct pen_ways *a, const struct pen_way_case *c,
		     const char *key, double *spread)
{
	double mid;
	size_t n = 0;

	if (spread)
		*spread = NAN;
	for (size_t i = 0; !c->wrong[0] && i < a->n; i++) {
		const double v = pen__line_number(a->row[i], key);

		if (!isnan(v) && ran(a->row[i]) &&
		    same(a->row[i], c->row, "setup"))
			a->buf[n++] = v;
	}
	if (!n)
		return NAN;
	qsort(a->buf, n, sizeof(*a->buf), by_value);
	mid = n % 2 ? a->buf[n / 2] : (a->buf[n / 2 - 1] + a->buf[n / 2]) / 2;
	if (spread && n > 1 && mid > 0)
		*spread = (a->buf[n - 1] - a->buf[0]) / mid;
	return mid;
}

const struct pen_way_case *pen__ways_find(const struct pen_ways *a,
					  const char *name, const char *group)
{
	for (size_t i = 0; i < a->ncases; i++)
		if (!a->c[i].wrong[0] &&
		    (!name ||
		     !strcmp(pen__line_text(a->c[i].row, "arm"), name)) &&
		    (!group ||
		     !strcmp(pen__line_text(a->c[i].row, "group"), group)))
			return &a->c[i];
	return NULL;
}

const struct pen_way_case *pen__ways_best(const struct pen_ways *a,
					  const char *key, bool smallest)
{
	const struct pen_way_case *best = NULL;
	double at = 0;

	for (size_t i = 0; i < a->ncases; i++) {
		const double v = pen__ways_get(a, &a->c[i], key, NULL);

		if (isnan(v) || (best && (smallest ? v >= at : v <= at)))
			continue;
		best = &a->c[i];
		at = v;
	}
	return best;
}

/* ---- plain text ---- */

#define MOST_COLUMNS 16

/* What stands in a column; buf is for texts that are made. */
static const char *cell(const struct pen_way_kind *k, const struct pen_ways *a,
			const struct pen_way_case *c, size_t i,
			struct pen_shown *buf)
{
	const struct pen_way_column *col = &k->columns[i];
	double v;

	if (!col->show)
		return pen__line_text(c->row, col->key);
	v = pen__ways_get(a, c, col->key, NULL);
	*buf = isnan(v) ? (struct pen_shown){ "-" } : col->show(v);
	return buf->s;
}

/* Characters, as UTF-8 has them. */
static size_t width(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n += (*s & 0xc0) != 0x80;
	return n;
}

static void widths(const struct pen_way_kind *k, const struct pen_ways *a,
		   size_t *w)
{
	for (size_t i = 0; k->columns[i].title; i++) {
		struct pen_shown buf;

		w[i] = width(k->columns[i].title);
		for (size_t c = 0; c < a->ncases; c++) {
			const size_t n = width(cell(k, a, &a->c[c], i, &buf));

			w[i] = n > w[i] ? n : w[i];
		}
	}
}

static void put_cell(struct pen_text *t, const char *s, size_t w, bool left)
{
	const int pad = (int)(w - width(s));

	pen__text_add(t, "  %*s%s%*s", left ? 0 : pad, "", s, left ? pad : 0,
		      "");
}

static void put_line(struct pen_text *t, const struct pen_way_kind *k,
		     const struct pen_ways *a, const struct pen_way_case *c,
		     const size_t *w)
{
	double spread;
	bool told = false;

	for (size_t i = 0; k->columns[i].title; i++) {
		const struct pen_way_column *col = &k->columns[i];
		struct pen_shown buf;

		if (col->page_only || (col->show && c->wrong[0] && told))
			continue;
		if (col->show && c->wrong[0]) {
			pen__text_add(t, "  %s", c->wrong);
			told = true;
			continue;
		}
		put_cell(t, cell(k, a, c, i, &buf), w[i], !col->show);
		if (strcmp(col->key, k->headline) != 0)
			continue;
		pen__ways_get(a, c, k->headline, &spread);
		put_cell(t, isnan(spread) ? "-" : pen__show_share(spread).s, 6,
			 false);
	}
	pen__text_add(t, "%s\n",
		      pen__line_true(c->row, "cold") && !c->wrong[0] &&
				      pen__line_number(c->row, "resident") >=
					      0.05
			      ? "  not cold"
			      : "");
}

void pen__ways_print(struct pen_text *t, const struct pen_way_kind *k,
		     const struct pen_ways *a)
{
	size_t w[MOST_COLUMNS];

	widths(k, a, w);
	pen__text_add(t, "\n");
	for (size_t i = 0; k->columns[i].title; i++) {
		if (k->columns[i].page_only)
			continue;
		put_cell(t, k->columns[i].title, w[i], !k->columns[i].show);
		if (!strcmp(k->columns[i].key, k->headline))
			put_cell(t, "spread", 6, false);
	}
	pen__text_add(t, "\n");
	for (size_t i = 0; i < a->ncases; i++)
		put_line(t, k, a, &a->c[i], w);
	pen__text_add(t, "\n");
	if (!a->nwrong)
		k->words(t, a);
}
