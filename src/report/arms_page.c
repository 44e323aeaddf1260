/* Arms on a page: bars of their medians, and all of them in a table. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "report/arms.h"
#include "report/chart.h"

/* Lines of plain text as paragraphs. */
static void put_words(struct pen_text *t, struct pen_text *words)
{
	char *p = words->n ? words->p : NULL;

	while (p && *p) {
		char *end = p + strcspn(p, "\n");
		const bool more = *end;

		*end = '\0';
		pen__text_add(t, "<p>");
		pen__html(t, p);
		pen__text_add(t, "</p>\n");
		p = more ? end + 1 : NULL;
	}
	t->failed = t->failed || words->failed;
}

int pen__arms_verdict(struct pen_text *t, const struct pen_kind *k,
		      const struct pen_group *g, struct pen_err *err)
{
	struct pen_text words = { 0 };
	struct pen_arms a;
	int rc = pen__arms_init(&a, k, g->row, g->n, err);

	if (rc)
		return rc;
	pen__arms_words(&words, &a);
	put_words(t, &words);
	pen__text_fini(&words);
	pen__arms_fini(&a);
	return 0;
}

/* ---- bars ---- */

/* Cold is not warm; where names are compared, each has its own. */
static double shade(const struct pen_arms *a, const struct pen_arm *m)
{
	size_t seen = 0, mine = 0;

	if (!a->kind->versus)
		return pen__line_true(m->row, "cold") ? 0.7 : 0.3;
	for (size_t i = 0; i < a->narms; i++) {
		const char *name = pen__line_text(a->arm[i].row, "arm");
		size_t k = 0;

		while (strcmp(pen__line_text(a->arm[k].row, "arm"), name) != 0)
			k++;
		if (k < i)
			continue;
		if (!strcmp(pen__line_text(m->row, "arm"), name))
			mine = seen;
		seen++;
	}
	return seen > 1 ? 0.1 + 0.75 * (double)mine / (double)(seen - 1) : 0.1;
}

static void put_chart(struct pen_text *t, const struct pen_arms *a,
		      const struct pen_arm_chart *c, struct pen_bar *b,
		      const char *id)
{
	struct pen_bars bars = {
		.id = id, .title = c->title, .about = c->about, .bar = b
	};

	for (size_t i = 0; i < a->narms; i++) {
		const struct pen_arm *m = &a->arm[a->by_group[i]];
		const double v = pen__arms_median(a, m, c->key);

		if (!isnan(v))
			b[bars.n++] =
				(struct pen_bar){ m->group, m->brief, v,
						  c->show(v),
						  pen__colour_at(shade(a, m)) };
	}
	if (!bars.n)
		return;
	pen__text_add(t, "<h3>%s</h3>\n<figure>\n", c->title);
	pen__chart_bars(t, &bars);
	pen__text_add(t, "<figcaption>%s</figcaption>\n</figure>\n", c->about);
}

/* ---- the table ---- */

#define MOST_COLUMNS 20

static void put_row(struct pen_text *t, const struct pen_arms *a,
		    const struct pen_arm *m)
{
	const struct pen_arm_column *c = a->kind->columns;
	const bool proven = pen__line_text(m->row, "content_sum")[0];
	char wrong[216];

	for (; c->title; c++) {
		struct pen_shown buf;
		double v;

		if (!c->show) {
			pen__table_text(t, pen__arms_cell(a, m, c, &buf));
			continue;
		}
		v = pen__arms_get(a, m, c->key, c->of);
		pen__table_number(
			t, v, isnan(v) ? (struct pen_shown){ "" } : c->show(v));
	}
	snprintf(wrong, sizeof(wrong), "%s%s", m->n ? "WRONG: " : "", m->wrong);
	pen__table_number(t, (double)m->n, pen__show_whole((double)m->n));
	pen__table_text(t, pen__line_text(m->row, "settings"));
	pen__table_text(t, m->wrong[0] ? wrong : proven ? "right" : "");
}

static void put_table(struct pen_text *t, const struct pen_arms *a,
		      size_t number)
{
	const struct pen_arm_column *c = a->kind->columns;
	char names[MOST_COLUMNS][48], id[32];
	const char *name[MOST_COLUMNS + 4];
	size_t n = 0;

	for (; c[n].title && n < MOST_COLUMNS; n++) {
		snprintf(names[n], sizeof(names[n]), "%s%s",
			 c[n].show ? "#" : "", c[n].title);
		name[n] = names[n];
	}
	name[n++] = "#runs";
	name[n++] = "~settings";
	name[n++] = "content";
	name[n] = NULL;
	snprintf(id, sizeof(id), "g%zu", number);
	pen__text_add(t, "<h3>All arms</h3>\n");
	pen__table_open(t, "All arms", name);
	for (size_t i = 0; i < a->narms; i++) {
		pen__table_row(t, id, i);
		put_row(t, a, &a->arm[i]);
		pen__table_row_end(t);
	}
	pen__table_close(t);
}

int pen__arms_show(struct pen_text *t, const struct pen_kind *k,
		   const struct pen_group *g, struct pen_err *err)
{
	struct pen_arms a;
	struct pen_bar *b;
	char id[32];
	int rc = pen__arms_init(&a, k, g->row, g->n, err);

	if (rc)
		return rc;
	b = pen__calloc(a.narms ? a.narms : 1, sizeof(*b));
	if (!b)
		rc = pen__fail_nomem(err, "chart", a.narms * sizeof(*b));
	for (size_t i = 0; !rc && k->charts[i].title; i++) {
		snprintf(id, sizeof(id), "g%zu-%zu", g->number, i);
		put_chart(t, &a, &k->charts[i], b, id);
	}
	if (!rc)
		put_table(t, &a, g->number);
	pen__free(b);
	pen__arms_fini(&a);
	return rc;
}
