/* Arms as plain text: the table of a terminal, and words. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/arms.h"

#define MOST_COLUMNS 20

/* ---- the table ---- */

const char *pen__arms_cell(const struct pen_arms *a, const struct pen_arm *m,
			   const struct pen_arm_column *c,
			   struct pen_shown *buf)
{
	double v;

	if (!c->show && !strcmp(c->key, "arm"))
		return m->name;
	if (!c->show && !strcmp(c->key, "group"))
		return m->group;
	if (!c->show)
		return pen__line_text(m->row, c->key);
	v = pen__arms_get(a, m, c->key, c->of);
	*buf = isnan(v) ? (struct pen_shown){ "-" } : c->show(v);
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

static void find_widths(const struct pen_arms *a, size_t *w)
{
	const struct pen_arm_column *c = a->kind->columns;

	for (size_t i = 0; c[i].title; i++) {
		struct pen_shown buf;

		w[i] = width(c[i].title);
		for (size_t k = 0; k < a->narms; k++) {
			const size_t n = width(
				pen__arms_cell(a, &a->arm[k], &c[i], &buf));

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

static void put_line(struct pen_text *t, const struct pen_arms *a,
		     const struct pen_arm *m, const size_t *w)
{
	const struct pen_arm_column *c = a->kind->columns;
	const bool cold = pen__line_true(m->row, "cold") &&
			  pen__line_number(m->row, "resident") >= 0.05;

	for (size_t i = 0; c[i].title; i++) {
		struct pen_shown buf;

		if (c[i].page_only)
			continue;
		if (c[i].show && m->wrong[0]) {
			pen__text_add(t, "  %s%s\n", m->n ? "WRONG: " : "",
				      m->wrong);
			return;
		}
		put_cell(t, pen__arms_cell(a, m, &c[i], &buf), w[i],
			 !c[i].show);
	}
	pen__text_add(t, "%s\n", cold ? "  not cold" : "");
}

/* Of a kind with a versus, groups have lines of their own. */
void pen__arms_print(struct pen_text *t, const struct pen_arms *a)
{
	const struct pen_arm_column *c = a->kind->columns;
	const bool grouped = a->kind->versus;
	const struct pen_arm *last = NULL;
	size_t w[MOST_COLUMNS];

	find_widths(a, w);
	pen__text_add(t, "\n%s", grouped ? "  " : "");
	for (size_t i = 0; c[i].title; i++)
		if (!c[i].page_only)
			put_cell(t, c[i].title, w[i], !c[i].show);
	pen__text_add(t, "\n");
	for (size_t i = 0; i < a->narms; i++) {
		const struct pen_arm *m = &a->arm[grouped ? a->by_group[i] : i];

		if (grouped && (!last || !pen__arms_together(a, last, m)))
			pen__text_add(t, "  %s\n", m->group);
		pen__text_add(t, "%s", grouped ? "  " : "");
		put_line(t, a, m, w);
		last = m;
	}
}

/* ---- words ---- */

void pen__arms_words(struct pen_text *t, const struct pen_arms *a)
{
	if (a->nwrong)
		pen__text_add(t,
			      "%zu of %zu arms did not deliver what they "
			      "should have: their figures are not shown.\n",
			      a->nwrong, a->narms);
	/* who is fastest of those left says nothing; who is compared with one
	 * that is right, does */
	if (!a->nwrong || a->kind->versus)
		a->kind->words(t, a);
}

const struct pen_arm *pen__arms_rival(const struct pen_arms *a,
				      const struct pen_arm *like,
				      const char *name)
{
	const struct pen_versus *x = a->kind->versus;
	const struct pen_arm *best = NULL;
	double at = 0;

	for (size_t i = 0; i < a->narms; i++) {
		const struct pen_arm *m = &a->arm[i];
		const double v = pen__arms_median(a, m, x->key);

		if (isnan(v) || strcmp(pen__line_text(m->row, "arm"), name) ||
		    !pen__arms_together(a, m, like) ||
		    (best && (x->less ? v >= at : v <= at)))
			continue;
		best = m;
		at = v;
	}
	return best;
}

static void put_others(struct pen_text *t, const struct pen_arms *a,
		       const struct pen_arm *hero)
{
	const struct pen_versus *x = a->kind->versus;
	const double own = pen__arms_median(a, hero, x->key);

	for (size_t i = 0; i < a->narms; i++) {
		const struct pen_arm *o = &a->arm[i];
		const char *arm = pen__line_text(o->row, "arm");
		char ratio[32];
		double r;

		if (!strcmp(arm, x->hero) || !pen__arms_together(a, o, hero) ||
		    pen__arms_rival(a, hero, arm) != o)
			continue;
		r = pen__arms_median(a, o, x->key) / own;
		snprintf(ratio, sizeof(ratio), r < 9.95 ? "%.2f" : "%.0f", r);
		pen__text_add(t, "; %s ", o->name);
		pen__text_put(t, x->compared, strcspn(x->compared, "%"));
		pen__text_add(t, "%s%s", ratio, strstr(x->compared, "%s") + 2);
	}
}

void pen__arms_versus(struct pen_text *t, const struct pen_arms *a)
{
	const struct pen_versus *x = a->kind->versus;

	for (size_t i = 0; i < a->narms; i++) {
		const struct pen_arm *first = &a->arm[a->by_group[i]];
		const struct pen_arm *hero;

		if (i &&
		    pen__arms_together(a, first, &a->arm[a->by_group[i - 1]]))
			continue;
		hero = pen__arms_rival(a, first, x->hero);
		if (!hero)
			continue;
		pen__text_add(t, "With %s: %s %s %s", hero->group, hero->name,
			      x->show(pen__arms_median(a, hero, x->key)).s,
			      x->what);
		put_others(t, a, hero);
		pen__text_add(t, ".");
		if (x->more)
			x->more(t, a, hero);
		pen__text_add(t, "\n");
	}
}
