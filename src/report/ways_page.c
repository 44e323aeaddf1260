/* Arms on a page: bars of their medians, and all of them in a table. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "report/ways.h"
#include "report/chart.h"

/* Lines of plain text as paragraphs. */
static void put_words(struct pen_text *t, const struct pen_text *words)
{
	const char *p = words->n ? words->p : "";

	while (*p) {
		const size_t n = strcspn(p, "\n");
		char line[512];

		snprintf(line, sizeof(line), "%.*s", (int)n, p);
		if (n) {
			pen__text_add(t, "<p>");
			pen__html(t, line);
			pen__text_add(t, "</p>\n");
		}
		p += n + (p[n] != '\0');
	}
	t->failed = t->failed || words->failed;
}

int pen__ways_verdict(struct pen_text *t, const struct pen_way_kind *k,
		      const struct pen_group *g, struct pen_err *err)
{
	struct pen_text words = { 0 };
	struct pen_ways a;
	int rc = pen__ways_init(&a, g->row, g->n, err);

	if (rc)
		return rc;
	if (a.nwrong)
		pen__text_add(
			&words,
			"%zu of %zu arms did not deliver what they should "
			"have: their rates are not shown.\n",
			a.nwrong, a.ncases);
	else
		k->words(&words, &a);
	put_words(t, &words);
	pen__text_fini(&words);
	pen__ways_fini(&a);
	return 0;
}

static void put_chart(struct pen_text *t, const struct pen_ways *a,
		      const struct pen_way_chart *c, struct pen_bar *b,
		      const char *id)
{
	struct pen_bars bars = {
		.id = id, .title = c->title, .about = c->about, .bar = b
	};

	/* a group's bars have to be neighbours */
	for (size_t i = 0; i < a->ncases; i++) {
		const char *group = pen__line_text(a->c[i].row, "group");
		size_t k = 0;

		while (k < i &&
		       strcmp(pen__line_text(a->c[k].row, "group"), group) != 0)
			k++;
		for (size_t m = i; k == i && m < a->ncases; m++) {
			const struct pen_line *r = a->c[m].row;
			const double v =
				pen__ways_get(a, &a->c[m], c->key, NULL);

			if (isnan(v) ||
			    strcmp(pen__line_text(r, "group"), group) != 0)
				continue;
			b[bars.n++] = (struct pen_bar){
				group, pen__line_text(r, "arm"), v, c->show(v),
				pen__colour_at(pen__line_true(r, "cold") ? 0.7
									 : 0.3)
			};
		}
	}
	if (!bars.n)
		return;
	pen__text_add(t, "<h3>%s</h3>\n<figure>\n", c->title);
	pen__chart_bars(t, &bars);
	pen__text_add(t, "<figcaption>%s</figcaption>\n</figure>\n", c->about);
}

static void put_names(const struct pen_way_kind *k, char names[][48],
		      const char **name)
{
	size_t n = 0;

	for (size_t i = 0; k->columns[i].title && n < 20; i++) {
		snprintf(names[n], 48, "%s%s", k->columns[i].show ? "#" : "",
			 k->columns[i].title);
		name[n] = names[n];
		n++;
		if (!strcmp(k->columns[i].key, k->headline))
			name[n++] = "#spread";
	}
	name[n++] = "#runs";
	name[n++] = "~settings";
	name[n++] = "wrong";
	name[n] = NULL;
}

static void put_case(struct pen_text *t, const struct pen_way_kind *k,
		     const struct pen_ways *a, const struct pen_way_case *c)
{
	for (size_t i = 0; k->columns[i].title; i++) {
		const struct pen_way_column *col = &k->columns[i];
		double v, spread;

		if (!col->show) {
			pen__table_text(t, pen__line_text(c->row, col->key));
			continue;
		}
		v = pen__ways_get(a, c, col->key, &spread);
		pen__table_number(t, v,
				  isnan(v) ? (struct pen_shown){ "" }
					   : col->show(v));
		if (!strcmp(col->key, k->headline))
			pen__table_number(t, spread,
					  isnan(spread)
						  ? (struct pen_shown){ "" }
						  : pen__show_share(spread));
	}
	pen__table_number(t, (double)c->n, pen__show_whole((double)c->n));
	pen__table_text(t, pen__line_text(c->row, "settings"));
	pen__table_text(t, c->wrong);
}

static void put_table(struct pen_text *t, const struct pen_way_kind *k,
		      const struct pen_ways *a, size_t number)
{
	char names[20][48], id[32];
	const char *name[26];

	put_names(k, names, name);
	snprintf(id, sizeof(id), "g%zu", number);
	pen__text_add(t, "<h3>All arms</h3>\n");
	pen__table_open(t, "All arms", name);
	for (size_t i = 0; i < a->ncases; i++) {
		pen__table_row(t, id, i);
		put_case(t, k, a, &a->c[i]);
		pen__table_row_end(t);
	}
	pen__table_close(t);
}

int pen__ways_show(struct pen_text *t, const struct pen_way_kind *k,
		   const struct pen_group *g, struct pen_err *err)
{
	struct pen_ways a;
	struct pen_bar *b;
	char id[32];
	int rc = pen__ways_init(&a, g->row, g->n, err);

	if (rc)
		return rc;
	b = pen__calloc(a.ncases ? a.ncases : 1, sizeof(*b));
	if (!b)
		rc = pen__fail_nomem(err, "chart", a.ncases * sizeof(*b));
	for (size_t i = 0; !rc && k->charts[i].title; i++) {
		snprintf(id, sizeof(id), "g%zu-%zu", g->number, i);
		put_chart(t, &a, &k->charts[i], b, id);
	}
	if (!rc)
		put_table(t, k, &a, g->number);
	pen__free(b);
	pen__ways_fini(&a);
	return rc;
}
