/* Variants as plain text: the table and the summary. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/variants.h"

#define MOST_LINES 20 /* of a sorted table */

/* ---- the table ---- */

size_t pen__columns_parse(const char *text, struct pen_figure_column *c)
{
	size_t n = 0;

	for (; *text && n < PEN_MOST_COLUMNS; c++, n++) {
		const char *next = strstr(text, ", ");
		const size_t len = next ? (size_t)(next - text) : strlen(text);
		const size_t lead = strspn(text, "+<>");
		const char *eq = memchr(text, '=', len);
		const char *key = eq ? eq + 1 : text + lead;
		const struct pen_measure *u;

		*c = (struct pen_figure_column){ .page_only = lead };
		c->of = lead && *text != '+' ? *text : '\0';
		snprintf(c->key, sizeof(c->key), "%.*s",
			 (int)(text + len - key), key);
		snprintf(c->title, sizeof(c->title), "%.*s",
			 eq ? (int)(eq - text - (ptrdiff_t)lead) : 47,
			 eq		? text + lead
			 : c->of == '<' ? "lowest"
			 : c->of == '>' ? "highest"
					: c->key);
		u = pen__measure_of(c->key);
		c->show = u ? u->show : NULL;
		text += len + (next ? 2 : 0);
	}
	return n;
}

const char *pen__line_cache(const struct pen_line *r)
{
	if (pen__line_find(r, "cache"))
		return pen__line_text(r, "cache");
	return pen__line_true(r, "cold") ? "cold" : "warm";
}

const char *pen__column_cell(const struct pen_variants *a,
			     const struct pen_variant *m,
			     const struct pen_figure_column *c,
			     struct pen_shown *buf)
{
	struct pen_range r;

	if (!c->show && !strcmp(c->key, "arm"))
		return m->name;
	if (!c->show && !strcmp(c->key, "group"))
		return m->group;
	if (!c->show)
		return strcmp(c->key, "cache") ? pen__line_text(m->row, c->key)
					       : pen__line_cache(m->row);
	r = pen__range_of(a, m, c->key);
	*buf = !c->of	      ? pen__show_range(r, c->show)
	       : isnan(r.mid) ? (struct pen_shown){ "-" }
			      : c->show(c->of == '<' ? r.low : r.high);
	return buf->s;
}

/* Characters of a UTF-8 string. */
static size_t width(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n += (*s & 0xc0) != 0x80;
	return n;
}

/* Width of each column, 0: hidden; returns the width of the table. */
static size_t find_widths(const struct pen_variants *a, size_t *w)
{
	const struct pen_figure_column *c = a->column;
	size_t all = 0;

	for (size_t i = 0; i < a->ncolumns; i++) {
		struct pen_shown buf;

		w[i] = 0;
		if (c[i].page_only)
			continue;
		w[i] = width(c[i].title);
		for (size_t k = 0; k < a->n; k++) {
			const size_t n = width(
				pen__column_cell(a, &a->v[k], &c[i], &buf));

			w[i] = n > w[i] ? n : w[i];
		}
		all += w[i] + 2;
	}
	return all;
}

static void put_cell(struct pen_text *t, const char *s, size_t w, bool left)
{
	const int pad = (int)(w - width(s));

	pen__text_add(t, "  %*s%s%*s", left ? 0 : pad, "", s, left ? pad : 0,
		      "");
}

/* Ends a line without trailing blanks. */
static void end_line(struct pen_text *t)
{
	while (t->n && t->p[t->n - 1] == ' ')
		t->p[--t->n] = '\0';
	pen__text_add(t, "\n");
}

/* Writes why a variant has no figures. */
static bool put_wrong(struct pen_text *t, const struct pen_variant *m)
{
	if (m->wrong[0])
		pen__text_add(t, "  %s%s\n", m->n ? "WRONG: " : "", m->wrong);
	return m->wrong[0];
}

static bool not_cold(const struct pen_variant *m)
{
	return pen__line_true(m->row, "cold") &&
	       pen__line_number(m->row, "resident") >= 0.05;
}

static void put_line(struct pen_text *t, const struct pen_variants *a,
		     const struct pen_variant *m, const size_t *w)
{
	const struct pen_figure_column *c = a->column;

	for (size_t i = 0; i < a->ncolumns; i++) {
		struct pen_shown buf;

		if (!w[i] || (c[i].show && m->wrong[0]))
			continue;
		put_cell(t, pen__column_cell(a, m, &c[i], &buf), w[i],
			 !c[i].show);
	}
	if (put_wrong(t, m))
		return;
	pen__text_add(t, "%s", not_cold(m) ? "  not cold" : "");
	end_line(t);
}

/* For narrow terminals: the names, then the figures on lines below. */
static void put_folded(struct pen_text *t, const struct pen_variants *a,
		       const struct pen_variant *m, const size_t *w,
		       size_t most)
{
	const struct pen_figure_column *c = a->column;
	size_t at = 0;

	for (size_t i = 0; i < a->ncolumns; i++) {
		struct pen_shown buf;
		const char *cell;
		size_t n;

		if (!w[i] || (c[i].show && m->wrong[0]))
			continue;
		cell = pen__column_cell(a, m, &c[i], &buf);
		if (!c[i].show) {
			pen__text_add(t, "%s%s", *cell ? "  " : "", cell);
			at = most;
			continue;
		}
		n = width(c[i].title) + width(cell) + 3;
		at = at + n > most ? 4 + n : at + n;
		pen__text_add(t, "%s%s %s", at == 4 + n ? "\n    " : ", ",
			      c[i].title, cell);
	}
	if (!put_wrong(t, m))
		pen__text_add(t, "%s\n", not_cold(m) ? ", not cold" : "");
}

/* With a versus, each group has a heading. */
void pen__variants_print(struct pen_text *t, const struct pen_variants *a,
			 size_t most)
{
	const struct pen_figure_column *c = a->column;
	const bool grouped = a->kind->versus.hero;
	const struct pen_variant *last = NULL;
	size_t w[PEN_MOST_COLUMNS];
	const bool folded = find_widths(a, w) + 2 * grouped > most && most;
	const size_t n = a->kind->by && a->n > MOST_LINES ? MOST_LINES : a->n;

	pen__text_add(t, "\n%s", grouped && !folded ? "  " : "");
	for (size_t i = 0; i < a->ncolumns && !folded; i++)
		if (w[i])
			put_cell(t, c[i].title, w[i], !c[i].show);
	if (!folded)
		end_line(t);
	for (size_t i = 0; i < n; i++) {
		const struct pen_variant *m = pen__variant_at(a, i);

		if (grouped && (!last || !pen__same_group(a, last, m)))
			pen__text_add(t, "  %s\n", m->group);
		pen__text_add(t, "%s", grouped ? "  " : "");
		if (folded)
			put_folded(t, a, m, w, most);
		else
			put_line(t, a, m, w);
		last = m;
	}
	if (n < a->n)
		pen__text_add(t, "  ... and %zu more\n", a->n - n);
}

/* ---- summary ---- */

/* Settings without figures, and cold runs that were not cold. */
static void put_notes(struct pen_text *t, const struct pen_variants *a)
{
	size_t oom = 0, warm = 0;

	for (size_t i = 0; i < a->n; i++)
		oom += !a->v[i].n;
	for (size_t i = 0; i < a->nrows; i++)
		warm += pen__line_true(a->row[i], "cold") &&
			!pen__line_true(a->row[i], "oom") &&
			!(pen__line_number(a->row[i], "resident") < 0.05);
	if (warm)
		pen__text_add(t,
			      "%zu %s not cold: the files could not be dropped "
			      "from the page cache.\n",
			      warm, warm == 1 ? "run was" : "runs were");
	if (oom)
		pen__text_add(t, "%s ran out of memory.\n",
			      pen__show_counted(oom, "setting").s);
}

const struct pen_variant *pen__variant_rival(const struct pen_variants *a,
					     const struct pen_variant *like,
					     const char *name)
{
	const char *key = a->kind->versus.key;
	const bool less = pen__measure_of(key)->less;
	const struct pen_variant *best = NULL;
	double at = 0;

	for (size_t i = 0; i < a->n; i++) {
		const struct pen_variant *m = &a->v[i];
		const double v = pen__median_of(a, m, key);

		if (isnan(v) || strcmp(pen__line_text(m->row, "arm"), name) ||
		    !pen__same_group(a, m, like) ||
		    (best && (less ? v >= at : v <= at)))
			continue;
		best = m;
		at = v;
	}
	return best;
}

static void put_others(struct pen_text *t, const struct pen_variants *a,
		       const struct pen_variant *hero)
{
	const struct pen_versus *x = &a->kind->versus;
	const double own = pen__median_of(a, hero, x->key);

	for (size_t i = 0; i < a->n; i++) {
		const struct pen_variant *o = &a->v[i];
		const char *of = pen__line_text(o->row, "arm");
		struct pen_change c;
		char ratio[32];
		double r;

		if (!strcmp(of, x->hero) || !pen__same_group(a, o, hero) ||
		    pen__variant_rival(a, hero, of) != o)
			continue;
		pen__text_add(t, "; %s ", o->name);
		c = pen__change_of(a, hero, o, x->key);
		if (!c.differs) {
			pen__text_add(t, "%s (%s)",
				      isnan(c.low)
					      ? "has too few runs to compare"
					      : "is equal within noise",
				      pen__shown_of(a, o, x->key).s);
			continue;
		}
		r = pen__median_of(a, o, x->key) / own;
		snprintf(ratio, sizeof(ratio), r < 9.95 ? "%.2f" : "%.0f", r);
		pen__text_put(t, x->compared, strcspn(x->compared, "%"));
		pen__text_add(t, "%s%s", ratio, strstr(x->compared, "%s") + 2);
	}
}

static void put_versus(struct pen_text *t, const struct pen_variants *a)
{
	const struct pen_versus *x = &a->kind->versus;

	for (size_t i = 0; i < a->n; i++) {
		const struct pen_variant *first = &a->v[a->by_group[i]];
		const struct pen_variant *hero;

		if (i && pen__same_group(a, first, &a->v[a->by_group[i - 1]]))
			continue;
		hero = pen__variant_rival(a, first, x->hero);
		if (!hero)
			continue;
		pen__text_add(t, "With %s: %s %s %s", hero->group, hero->name,
			      pen__shown_of(a, hero, x->key).s, x->what);
		put_others(t, a, hero);
		pen__text_add(t, ".");
		if (x->more)
			x->more(t, a, hero);
		pen__text_add(t, "\n");
	}
}

/* The largest number of runs of a variant. */
static size_t most_runs(const struct pen_variants *a)
{
	size_t most = 0;

	for (size_t i = 0; i < a->n; i++)
		most = a->v[i].n > most ? a->v[i].n : most;
	return most;
}

static void put_outcome(struct pen_text *t, const struct pen_variants *a)
{
	const struct pen_ranking *best = a->kind->best;

	for (; best->what; best++) {
		const struct pen_variant *m = pen__put_best(t, a, best);

		if (m && best->also && !strcmp(best->also, "own_memory_bytes"))
			pen__put_leanest(t, a, m);
	}
	if (a->kind->versus.hero)
		put_versus(t, a);
	if (a->kind->words)
		a->kind->words(t, a);
}

void pen__variants_words(struct pen_text *t, const struct pen_variants *a)
{
	const struct pen_kind *k = a->kind;
	const size_t runs = most_runs(a);

	if (a->nwrong)
		pen__text_add(
			t,
			"%zu of %zu variants did not deliver the expected "
			"samples; their figures are not shown.\n",
			a->nwrong, a->n);
	/* a ranking needs all variants; a comparison with one does not */
	if (runs >= PEN_LEAST_RUNS && (!a->nwrong || k->versus.hero))
		put_outcome(t, a);
	else if (runs && runs < PEN_LEAST_RUNS &&
		 (k->best->what || k->versus.hero || k->words))
		pen__text_add(
			t,
			"Every setting ran %s: no conclusion is drawn. Use "
			"--repeats 3 or more to tell differences from noise.\n",
			runs == 1 ? "once" : "at most twice");
	else if (!runs)
		pen__text_add(t, "No run finished.\n");
	if (runs && !a->nwrong && k->facts)
		k->facts(t, a);
	put_notes(t, a);
}

void pen__variants_busy(struct pen_text *t, const struct pen_variants *a)
{
	pen__others_rows(t, a->row, a->nrows);
}
