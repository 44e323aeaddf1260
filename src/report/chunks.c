/*
 * Reading chunks: what each reader took, for each order. When the readers do
 * not agree on what they read, that is all that is said.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "report/chart.h"
#include "report/report.h"

/* Were the same rows read? A part of all is another one in another order. */
static bool same_rows(const struct pen_line *a, const struct pen_line *b)
{
	const double n = pen__line_number(a, "n_rows");

	return !pen__line_true(a, "oom") && !pen__line_true(b, "oom") &&
	       n == pen__line_number(b, "n_rows") &&
	       !strcmp(pen__line_text(a, "settings"),
		       pen__line_text(b, "settings")) &&
	       (n >= pen__line_number(a, "samples") ||
		(!strcmp(pen__line_text(a, "shuffle"),
			 pen__line_text(b, "shuffle")) &&
		 pen__line_number(a, "chunk_rows") ==
			 pen__line_number(b, "chunk_rows")));
}

static bool agree(const struct pen_group *g)
{
	for (size_t i = 0; i < g->n; i++)
		for (size_t k = 0; k < i; k++) {
			const struct pen_line *a = g->row[i], *b = g->row[k];

			if (same_rows(a, b) &&
			    (pen__line_number(a, "nnz") !=
				     pen__line_number(b, "nnz") ||
			     strcmp(pen__line_text(a, "content_sum"),
				    pen__line_text(b, "content_sum")) != 0))
				return false;
		}
	return true;
}

/* A warm run, when there is one. */
static const struct pen_case *find(const struct pen_case *c, size_t n,
				   const char *shuffle, const char *reader)
{
	const struct pen_case *cold = NULL;

	for (size_t i = 0; i < n; i++)
		if (!c[i].oom &&
		    !strcmp(pen__line_text(c[i].row, "shuffle"), shuffle) &&
		    !strcmp(pen__line_text(c[i].row, "reader"), reader)) {
			if (!pen__line_true(c[i].row, "cold"))
				return &c[i];
			cold = cold ? cold : &c[i];
		}
	return cold;
}

/* "as long", "+12 %" or "1.9 times": what a takes beside b. */
static struct pen_shown more(double a, double b)
{
	struct pen_shown out = { "as long" };

	if (a > 0.95 * b && a < 1.05 * b)
		return out;
	if (a < 1.5 * b)
		snprintf(out.s, sizeof(out.s), "%+.0f %%", 100 * (a / b - 1));
	else
		snprintf(out.s, sizeof(out.s), "%.1f times", a / b);
	return out;
}

static void put_order(struct pen_text *t, const struct pen_case *c, size_t n,
		      const struct pen_case *raw)
{
	static const char *const made[] = { "csr", "coo", "table" };
	bool any = false;

	pen__text_add(t, "<p>Beside the raw read they take: ");
	for (size_t i = 0; i < 3; i++) {
		const struct pen_case *m = find(
			c, n, pen__line_text(raw->row, "shuffle"), made[i]);

		if (m && m->seconds > 0)
			pen__text_add(t, "%s%s %s", any ? ", " : "", made[i],
				      more(m->seconds, raw->seconds).s);
		any = any || m;
	}
	pen__text_add(t, "%s</p>\n", any ? "." : "nothing was made.");
}

static int verdict(struct pen_text *t, const struct pen_group *g,
		   struct pen_err *err)
{
	const struct pen_case *raw, *global;
	struct pen_case *c;
	size_t n;
	int rc = pen__cases(g, &c, &n, err);

	if (rc)
		return rc;
	raw = find(c, n, "none", "raw");
	global = find(c, n, "global", "raw");
	if (!agree(g)) {
		pen__text_add(t, "<p>The readers do not agree on what they "
				 "read: no rate means anything.</p>\n");
	} else if (raw && raw->seconds > 0) {
		pen__text_add(
			t, "<p>%s %s in order, as they are: %s, %s a second.",
			pen__show_whole(pen__line_number(raw->row, "n_rows")).s,
			pen__line_unit(raw->row),
			pen__show_time(raw->seconds).s,
			pen__show_count(raw->rate).s);
		if (global)
			pen__text_add(t, " In global random order: %s (%s).",
				      pen__show_time(global->seconds).s,
				      more(global->seconds, raw->seconds).s);
		pen__text_add(t, "</p>\n");
		put_order(t, c, n, raw);
	} else {
		pen__text_add(t, "<p>%zu %s.</p>\n", g->n,
			      g->n == 1 ? "run" : "runs");
	}
	pen__free(c);
	return 0;
}

static const char *const orders[] = { "none", "intra-chunk", "global" };
static const char *const readers[] = { "raw", "csr", "coo", "table" };

static bool is(const struct pen_case *c, const char *shuffle,
	       const char *reader, bool cold)
{
	return !c->oom && !isnan(c->seconds) &&
	       pen__line_true(c->row, "cold") == cold &&
	       !strcmp(pen__line_text(c->row, "shuffle"), shuffle) &&
	       !strcmp(pen__line_text(c->row, "reader"), reader);
}

/* One after another by cache, order, reader. */
static size_t fill_bars(struct pen_bar *b, const struct pen_case *c, size_t n)
{
	static const char *const title[][3] = {
		{ "in order", "shuffled inside chunks",
		  "in global random order" },
		{ "in order, cold", "shuffled inside chunks, cold",
		  "in global random order, cold" },
	};
	size_t k = 0;

	for (size_t i = 0; i < 24 * n; i++) {
		const size_t at = i % n, reader = i / n % 4;
		const size_t order = i / n / 4 % 3, cold = i / n / 12;

		if (is(&c[at], orders[order], readers[reader], cold))
			b[k++] = (struct pen_bar){
				title[cold][order], readers[reader],
				c[at].seconds, pen__show_time(c[at].seconds),
				pen__colour_at(0.15 + 0.25 * (double)reader)
			};
	}
	return k;
}

static int put_bars(struct pen_text *t, const struct pen_group *g,
		    struct pen_err *err)
{
	struct pen_case *c;
	struct pen_bar *b;
	char id[32];
	struct pen_bars bars = {
		.id = id,
		.title = "Time of a pass",
		.about = "Seconds for a pass, by order and reader; medians "
			 "where there are several runs. The table below has "
			 "all numbers.",
	};
	size_t n;
	int rc = pen__cases(g, &c, &n, err);

	if (rc)
		return rc;
	b = pen__calloc(n, sizeof(*b));
	snprintf(id, sizeof(id), "g%zu-time", g->number);
	if (!b)
		rc = pen__fail_nomem(err, "chart", n * sizeof(*b));
	else
		bars.n = fill_bars(b, c, n);
	bars.bar = b;
	if (bars.n)
		pen__chart_bars(t, &bars);
	pen__free(b);
	pen__free(c);
	return rc;
}

static void put_num(struct pen_text *t, const struct pen_line *r,
		    const char *key, struct pen_shown (*show)(double))
{
	const double v = pen__line_number(r, key);

	pen__table_number(t, v, isnan(v) ? (struct pen_shown){ "" } : show(v));
}

static void put_table(struct pen_text *t, const struct pen_group *g, bool rates)
{
	static const char *const columns[] = {
		"shuffle",    "reader",
		"cache",      "#rows a chunk",
		"#seconds",   "#per s",
		"#non-zeros", "content",
		"#memory",    "#~peak with mapped files",
		"#read",      "#~CPU s per million",
		"~settings",  NULL,
	};
	char id[32];

	snprintf(id, sizeof(id), "g%zu", g->number);
	pen__text_add(t, "<h3>All runs</h3>\n");
	pen__table_open(t, "All runs", columns);
	for (size_t i = 0; i < g->n; i++) {
		const struct pen_line *r = g->row[i];

		pen__table_row(t, id, i);
		pen__table_text(t, pen__line_text(r, "shuffle"));
		pen__table_text(t, pen__line_text(r, "reader"));
		pen__table_text(t, pen__line_true(r, "oom")    ? "out of memory"
				   : pen__line_true(r, "cold") ? "cold"
							       : "warm");
		put_num(t, r, "chunk_rows", pen__show_whole);
		put_num(t, r, rates ? "seconds" : "", pen__show_time);
		put_num(t, r, rates ? "samples_per_s" : "", pen__show_count);
		put_num(t, r, "nnz", pen__show_whole);
		pen__table_text(t, pen__line_text(r, "content_sum"));
		put_num(t, r, "own_memory_bytes", pen__show_bytes);
		put_num(t, r, "peak_memory_bytes", pen__show_bytes);
		put_num(t, r, "read_bytes", pen__show_bytes);
		put_num(t, r, "cpu_s_per_million", pen__show_number);
		pen__table_text(t, pen__line_text(r, "settings"));
		pen__table_row_end(t);
	}
	pen__table_close(t);
}

static int show(struct pen_text *t, const struct pen_group *g,
		struct pen_err *err)
{
	const bool rates = agree(g);
	int rc = 0;

	if (rates) {
		pen__text_add(t, "<h3>Time of a pass</h3>\n<figure>\n");
		rc = put_bars(t, g, err);
		pen__text_add(t, "<figcaption>Shorter is better. raw: fetched "
				 "and unpacked, nothing made of it; csr, coo, "
				 "table: the same pass, making that of every "
				 "chunk.</figcaption>\n</figure>\n");
	}
	if (!rc)
		put_table(t, g, rates);
	return rc;
}

const struct pen_kind pen__kind_chunks = {
	.experiment = "read-chunks",
	.title = "Reading chunks",
	.verdict = verdict,
	.show = show,
};
