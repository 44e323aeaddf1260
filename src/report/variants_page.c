/* Variants on a page: bars of their medians, and all of them in a table. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "report/variants.h"
#include "report/chart.h"

#define MOST_BARS 40 /* of those that are sorted */

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

/* Cold is not warm; where names are compared, each has its own. */
static double shade(const struct pen_variants *a, const struct pen_variant *m)
{
	size_t seen = 0, mine = 0;

	if (a->kind->by) /* as good as the best, by the words before it */
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

static void put_row(struct pen_text *t, const struct pen_variants *a,
		    const struct pen_variant *m)
{
	const bool proven = pen__line_text(m->row, "content_sum")[0];
	char wrong[216];

	for (size_t i = 0; i < a->ncolumns; i++) {
		const struct pen_figure_column *c = &a->column[i];
		struct pen_shown buf = { "" };
		struct pen_range r;

		if (!pen__column_has(a, c))
			continue;
		if (!c->show) {
			pen__table_text(t, pen__column_cell(a, m, c, &buf));
			continue;
		}
		r = pen__range_of(a, m, c->key);
		(void)pen__column_cell(a, m, c, &buf);
		pen__table_number(t,
				  c->of == '<'	 ? r.low
				  : c->of == '>' ? r.high
						 : r.mid,
				  buf);
	}
	snprintf(wrong, sizeof(wrong), "%s%s", m->n ? "WRONG: " : "", m->wrong);
	pen__table_number(t, (double)m->n, pen__show_whole((double)m->n));
	pen__table_text(t, pen__line_text(m->row, "settings"));
	pen__table_text(t, m->wrong[0] ? wrong : proven ? "right" : "");
}

static void put_table(struct pen_text *t, const struct pen_variants *a,
		      size_t number)
{
	char names[PEN_MOST_COLUMNS][56], id[32];
	const char *name[PEN_MOST_COLUMNS + 4];
	size_t n = 0;

	for (size_t i = 0; i < a->ncolumns; i++) {
		const struct pen_figure_column *c = &a->column[i];

		if (!pen__column_has(a, c))
			continue;
		snprintf(names[n], sizeof(names[n]), "%s%s", c->show ? "#" : "",
			 c->title);
		name[n] = names[n];
		n++;
	}
	name[n++] = "#runs";
	name[n++] = "~settings";
	name[n++] = "content";
	name[n] = NULL;
	snprintf(id, sizeof(id), "g%zu", number);
	pen__text_add(t, "<h3>All variants</h3>\n");
	pen__table_open(t, "All variants", name);
	for (size_t i = 0; i < a->n; i++) {
		pen__table_row(t, id, i);
		put_row(t, a, pen__variant_at(a, i));
		pen__table_row_end(t);
	}
	pen__table_close(t);
}

/* ---- all runs ---- */

/* Of a run that delivered something else, neither times nor rates. */
static void put_run(struct pen_text *t, const struct pen_line *r, bool wrong,
		    const struct pen_figure_column *c)
{
	const bool timed = c->show == pen__show_time ||
			   c->show == pen__show_count;
	const double v = wrong && timed ? NAN
			 : strcmp(c->key, "samples_per_s_rest") != 0
				 ? pen__line_number(r, c->key)
				 : pen__line_rest(r);

	if (c->show)
		pen__table_number(
			t, v, isnan(v) ? (struct pen_shown){ "" } : c->show(v));
	else if (strcmp(c->key, "cache") != 0)
		pen__table_text(t, pen__line_text(r, c->key));
	else
		pen__table_text(t, pen__line_true(r, "oom")    ? "out of memory"
				   : pen__line_true(r, "cold") ? "cold"
							       : "warm");
}

static void put_runs(struct pen_text *t, const struct pen_variants *a,
		     const struct pen_group *g)
{
	struct pen_figure_column c[PEN_MOST_COLUMNS];
	const size_t n = pen__columns_parse(a->kind->runs, c);
	char names[PEN_MOST_COLUMNS][56], id[32];
	const char *name[PEN_MOST_COLUMNS + 1];

	for (size_t i = 0; i < n; i++) {
		snprintf(names[i], sizeof(names[i]), "%s%.47s",
			 c[i].show ? "#" : "", c[i].title);
		name[i] = names[i];
	}
	name[n] = NULL;
	snprintf(id, sizeof(id), "g%zu", g->number);
	pen__text_add(t, "<h3>All runs</h3>\n");
	pen__table_open(t, "All runs", name);
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

/* ---- all of it ---- */

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
	if (!rc && k->columns)
		put_table(t, &a, g->number);
	if (!rc && k->runs)
		put_runs(t, &a, g);
	pen__free(b);
	pen__variants_fini(&a);
	return rc;
}
