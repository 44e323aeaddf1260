/* Variants on a page: bars of their medians, and tables. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "report/variants.h"
#include "report/chart.h"

#define MOST_BARS 40 /* of a sorted chart */

int pen__variants_verdict(struct pen_text *t, const struct pen_kind *k,
			  const struct pen_group *g, struct pen_err *err)
{
	struct pen_text busy = { 0 }, words = { 0 };
	struct pen_variants a;
	int rc = pen__variants_init(&a, k, g->row, g->n, err);

	if (rc)
		return rc;
	pen__variants_busy(&busy, &a);
	pen__put_words(t, &busy, " class=\"warn\"");
	pen__text_add(t, "<div class=\"verdict\">\n");
	pen__variants_words(&words, &a);
	pen__put_words(t, &words, "");
	pen__text_add(t, "</div>\n");
	pen__variants_fini(&a);
	return 0;
}

/* ---- bars ---- */

/* Cold and warm differ; with a versus, each name has a colour. */
static double shade(const struct pen_variants *a, const struct pen_variant *m)
{
	size_t seen = 0, mine = 0;

	if (a->kind->by) /* set by pen__rank() */
		return m->alike ? 0.2 : 0.6;
	if (!a->kind->versus.hero)
		return pen__line_true(m->row, "cold") ? 0.7 : 0.3;
	for (size_t i = 0; i < a->n; i++) {
		const char *name = pen__line_text(a->v[i].row, "arm");
		size_t k = 0;

		while (strcmp(pen__line_text(a->v[k].row, "arm"), name) != 0)
			k++;
		if (k < i)
			continue;
		if (!strcmp(pen__line_text(m->row, "arm"), name))
			mine = seen;
		seen++;
	}
	return seen > 1 ? 0.1 + 0.75 * (double)mine / (double)(seen - 1) : 0.1;
}

static void put_chart(struct pen_text *t, const struct pen_variants *a,
		      const struct pen_bars_of *c, struct pen_bar *b,
		      const char *id)
{
	struct pen_bars bars = {
		.id = id, .title = c->title, .about = c->about, .bar = b
	};
	struct pen_shown (*show)(double) = pen__measure_of(c->key)->show;
	const size_t n = a->kind->by && a->n > MOST_BARS ? MOST_BARS : a->n;

	for (size_t i = 0; i < n; i++) {
		const struct pen_variant *m = &a->v[a->by_group[i]];
		const struct pen_range r = pen__range_of(a, m, c->key);

		if (!isnan(r.mid))
			b[bars.n++] =
				(struct pen_bar){ m->group, m->brief, r,
						  pen__show_range(r, show),
						  pen__colour_at(shade(a, m)) };
	}
	if (!bars.n)
		return;
	pen__text_add(t, "<h3>%s</h3>\n<figure>\n", c->title);
	pen__chart_bars(t, &bars);
	pen__text_add(t, "<figcaption>%s%s</figcaption>\n</figure>\n", c->about,
		      PEN_BARS_ABOUT);
}

/* ---- the table ---- */

/* Opens a table; "#" marks columns of numbers. more: other columns, or NULL. */
static void open_table(struct pen_text *t, const char *title,
		       const struct pen_figure_column *c, size_t n,
		       const char *const *more)
{
	char names[PEN_MOST_COLUMNS][56];
	const char *name[PEN_MOST_COLUMNS + 4];

	for (size_t i = 0; i < n; i++) {
		snprintf(names[i], sizeof(names[i]), "%s%.47s",
			 c[i].show ? "#" : "", c[i].title);
		name[i] = names[i];
	}
	while (more && *more)
		name[n++] = *more++;
	name[n] = NULL;
	pen__text_add(t, "<h3>%s</h3>\n", title);
	pen__table_open(t, title, name);
}

/* True if the variants ran with settings, or if their content is known. */
static bool any_settings(const struct pen_variants *a)
{
	for (size_t i = 0; i < a->n; i++)
		if (pen__line_text(a->v[i].row, "settings")[0])
			return true;
	return false;
}

static bool any_content(const struct pen_variants *a)
{
	for (size_t i = 0; i < a->n; i++)
		if (a->v[i].wrong[0] ||
		    pen__line_text(a->v[i].row, "content_sum")[0])
			return true;
	return false;
}

static void put_row(struct pen_text *t, const struct pen_variants *a,
		    const struct pen_variant *m)
{
	const bool proven = pen__line_text(m->row, "content_sum")[0];
	char wrong[216];

	for (size_t i = 0; i < a->ncolumns; i++) {
		const struct pen_figure_column *c = &a->column[i];
		struct pen_shown buf = { "" };
		const char *cell = pen__column_cell(a, m, c, &buf);
		const struct pen_range r = pen__range_of(a, m, c->key);

		if (c->show)
			pen__table_number(t,
					  c->of == '<'	 ? r.low
					  : c->of == '>' ? r.high
							 : r.mid,
					  buf);
		else
			pen__table_text(t, cell);
	}
	snprintf(wrong, sizeof(wrong), "%s%s", m->n ? "WRONG: " : "", m->wrong);
	pen__table_number(t, (double)m->n, pen__show_whole((double)m->n));
	if (any_settings(a))
		pen__table_text(t, pen__line_text(m->row, "settings"));
	if (any_content(a))
		pen__table_text(t, m->wrong[0] ? wrong
				   : proven    ? "correct"
					       : "");
}

static void put_table(struct pen_text *t, const struct pen_variants *a,
		      const char *id)
{
	const char *more[4] = { "#runs" };
	size_t nmore = 1;

	if (any_settings(a))
		more[nmore++] = "~settings";
	if (any_content(a))
		more[nmore++] = "content";

	open_table(t, "All variants", a->column, a->ncolumns, more);
	for (size_t i = 0; i < a->n; i++) {
		pen__table_row(t, id, i);
		put_row(t, a, pen__variant_at(a, i));
		pen__table_row_end(t);
	}
	pen__table_close(t);
}

/* ---- all runs ---- */

static double run_value(const struct pen_line *r, const char *key)
{
	return strcmp(key, "samples_per_s_rest") != 0 ? pen__line_number(r, key)
						      : pen__line_rest(r);
}

/* A run that delivered unexpected samples has no times and rates. */
static void put_run(struct pen_text *t, const struct pen_line *r, bool wrong,
		    const struct pen_figure_column *c)
{
	const bool timed = c->show == pen__show_time ||
			   c->show == pen__show_count;
	const double v = wrong && timed ? NAN : run_value(r, c->key);

	if (c->show)
		pen__table_number(
			t, v, isnan(v) ? (struct pen_shown){ "" } : c->show(v));
	else if (strcmp(c->key, "cache") != 0)
		pen__table_text(t, pen__line_text(r, c->key));
	else
		pen__table_text(t, pen__line_true(r, "oom")
					   ? "out of memory"
					   : pen__line_cache(r));
}

/* Drops the columns of figures that no run has. */
static size_t drop_empty(const struct pen_group *g, struct pen_figure_column *c,
			 size_t n)
{
	size_t kept = 0;

	for (size_t k = 0; k < n; k++) {
		bool any = !c[k].show;

		for (size_t i = 0; i < g->n && !any; i++)
			any = !isnan(run_value(g->row[i], c[k].key));
		if (any)
			c[kept++] = c[k];
	}
	return kept;
}

static void put_runs(struct pen_text *t, const struct pen_variants *a,
		     const struct pen_group *g, const char *id)
{
	struct pen_figure_column c[PEN_MOST_COLUMNS];
	const size_t n = drop_empty(g, c, pen__columns_parse(a->kind->runs, c));

	open_table(t, "All runs", c, n, NULL);
	for (size_t i = 0; i < g->n; i++) {
		size_t of = 0;

		while (of < a->n && !pen__is_run(&a->v[of], g->row[i]))
			of++;
		pen__table_row(t, id, i);
		for (size_t k = 0; k < n; k++)
			put_run(t, g->row[i], of < a->n && a->v[of].wrong[0],
				&c[k]);
		pen__table_row_end(t);
	}
	pen__table_close(t);
}

/* ---- everything ---- */

int pen__variants_show(struct pen_text *t, const struct pen_kind *k,
		       const struct pen_group *g, struct pen_err *err)
{
	struct pen_variants a;
	struct pen_bar *b;
	char id[32];
	int rc = pen__variants_init(&a, k, g->row, g->n, err);

	if (rc)
		return rc;
	if (k->by)
		(void)pen__rank(&a, &(struct pen_ranking){ .key = k->by });
	b = pen__calloc(a.n ? a.n : 1, sizeof(*b));
	if (!b)
		rc = pen__fail_nomem(err, "chart", a.n * sizeof(*b));
	for (size_t i = 0; !rc && i < PEN_MOST_CHARTS; i++) {
		snprintf(id, sizeof(id), "g%zu-%zu", g->number, i);
		if (k->chart[i].title)
			put_chart(t, &a, &k->chart[i], b, id);
	}
	if (!rc && k->show)
		rc = k->show(t, &a, g, err);
	snprintf(id, sizeof(id), "g%zu", g->number);
	if (!rc && k->runs)
		put_runs(t, &a, g, id);
	else if (!rc && k->columns)
		put_table(t, &a, id);
	pen__free(b);
	pen__variants_fini(&a);
	return rc;
}
