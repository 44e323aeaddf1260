/* Comparisons, for a terminal, for programs and as a page. */
#include "report/compare.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

#define SHORT 60     /* bytes of a value that are shown */
#define SHORTEST 1.0 /* seconds of a single run that can be compared */

/*
 * How much the second half of a run differs from the first. What changes on a
 * machine within a run changes from one to the next, too, and the epochs of a
 * run do not show that by their spread.
 */
static double drift(const struct pen_figure *f, double *room)
{
	const size_t n = f->n / 2;
	double a, b;

	if (!f->within || n < 2)
		return 0;
	memcpy(room, f->v, n * sizeof(*room));
	a = pen__median(room, n);
	memcpy(room, f->v + f->n - n, n * sizeof(*room));
	b = pen__median(room, n);
	return a > 0 && b > 0 ? fabs(a > b ? a / b - 1 : b / a - 1) : INFINITY;
}

struct pen_change pen__compare(const struct pen_samples *a,
			       const struct pen_samples *b,
			       const struct pen_figure *f, double least)
{
	const struct pen_figure *g = pen__samples_figure(b, f->name);
	struct pen_change none = { .share = NAN,
				   .low = NAN,
				   .high = NAN,
				   .from = NAN,
				   .to = NAN,
				   .why = "out of memory" };
	struct pen_change c;
	double *v;

	if (!g) {
		none.why = "not in both";
		return none;
	}
	if (least <= 0)
		least = f->within || g->within ? 0.05 : 0.02;
	v = pen__alloc(f->n + g->n + 1, sizeof(*v));
	if (!v)
		return none;
	if (f->within || g->within)
		least = fmax(least, 2 * fmax(drift(f, v), drift(g, v)));
	memcpy(v, f->v, f->n * sizeof(*v));
	memcpy(v + f->n, g->v, g->n * sizeof(*v));
	c = pen__change(v, f->n, v + f->n, g->n, least);
	pen__free(v);
	if (c.differs && ((f->within && a->seconds < SHORTEST) ||
			  (g->within && b->seconds < SHORTEST))) {
		c.differs = false;
		c.why = "too short a run to tell";
	}
	return c;
}

static const char *verdict(const struct pen_figure *f,
			   const struct pen_change *c)
{
	if (!c->differs)
		return c->why;
	return (c->share > 0) == !f->less ? "better" : "WORSE";
}

static struct pen_shown change_text(double v)
{
	return isfinite(v) ? pen__show_change(v) : (struct pen_shown){ "" };
}

static void figure_text(const struct pen_figure *f, double v, char *buf,
			size_t cap)
{
	if (!isfinite(v)) {
		snprintf(buf, cap, "-");
		return;
	}
	snprintf(buf, cap, "%s%s%s", f->show(v).s, f->unit[0] == '/' ? "" : " ",
		 f->unit);
}

/* ---- what was different ---- */

struct pair {
	const char *key, *from, *to;
};

static const char *value_of(const struct pen_fact *f)
{
	return !f ? "(not set)" : f->varies ? "(several)" : f->value;
}

/* The i-th setting that differs, from *at on in a, then what only b has. */
static bool next_pair(const struct pen_samples *a, const struct pen_samples *b,
		      size_t *at, struct pair *p)
{
	for (; *at < a->nfacts; ++*at) {
		const struct pen_fact *f = &a->fact[*at];
		const struct pen_fact *g = pen__samples_fact(b, f->key);

		if (g && !strcmp(value_of(f), value_of(g)))
			continue;
		*p = (struct pair){ f->key, value_of(f), value_of(g) };
		++*at;
		return true;
	}
	for (; *at - a->nfacts < b->nfacts; ++*at) {
		const struct pen_fact *g = &b->fact[*at - a->nfacts];

		if (pen__samples_fact(a, g->key))
			continue;
		*p = (struct pair){ g->key, value_of(NULL), value_of(g) };
		++*at;
		return true;
	}
	return false;
}

/* ---- the terminal ---- */

static void row_text(struct pen_text *t, const struct pen_figure *f,
		     const struct pen_change *c)
{
	char from[64], to[64], range[104] = "";
	size_t start;

	figure_text(f, c->from, from, sizeof(from));
	figure_text(f, c->to, to, sizeof(to));
	if (isfinite(c->low))
		snprintf(range, sizeof(range), "%s .. %s",
			 change_text(c->low).s, change_text(c->high).s);
	pen__text_add(t, "  ");
	start = t->n;
	pen__text_quote(t, f->name);
	pen__text_add(t, "%*s %18s %18s  %9s  %-22s %s\n",
		      t->n - start < 14 ? (int)(14 - (t->n - start)) : 0, "",
		      from, to, change_text(c->share).s, range, verdict(f, c));
}

static void words(struct pen_text *t, const struct pen_samples *a,
		  const struct pen_samples *b, double least)
{
	size_t better = 0, worse = 0, untold = 0;

	for (size_t i = 0; i < a->nfigures; i++) {
		struct pen_change c = pen__compare(a, b, &a->figure[i], least);

		if (c.differs && (c.share > 0) == !a->figure[i].less)
			better++;
		else if (c.differs)
			worse++;
		else if (!isfinite(c.low))
			untold++;
		if (c.differs && !strcmp(a->figure[i].name, "throughput"))
			pen__text_add(t, "Throughput changed by %s. ",
				      change_text(c.share).s);
	}
	if (!better && !worse)
		pen__text_add(t, "No figure differs beyond its noise");
	else
		pen__text_add(t, "Beyond noise: %zu better, %zu worse", better,
			      worse);
	if (untold)
		pen__text_add(t,
			      "; %zu of one value a side cannot be told "
			      "(give several runs)",
			      untold);
	pen__text_add(t, ".");
	if (a->partial || b->partial)
		pen__text_add(t, " Warning: a run was interrupted.");
	pen__text_add(t, "\n");
}

/* As much of it as a line has room for, in whole characters. */
static void value_text(struct pen_text *t, const char *value)
{
	char text[SHORT + 1];

	pen__quote(text, sizeof(text), value);
	pen__text_add(t, "%s", text);
}

static void samples_text(struct pen_text *t, char letter,
			 const struct pen_samples *s)
{
	pen__text_add(t, "%c: ", letter);
	pen__text_quote(t, s->name);
	pen__text_add(t, " (%zu %s%s)\n", s->nruns,
		      s->nruns == 1 ? "run" : "runs",
		      s->partial ? ", interrupted" : "");
}

void pen__compare_text(const struct pen_samples *s, size_t n, double least,
		       struct pen_text *t)
{
	for (size_t i = 0; i < n; i++)
		samples_text(t, (char)('A' + i), &s[i]);
	for (size_t b = 1; b < n; b++) {
		struct pair p;
		size_t at = 0;
		bool any = false;

		pen__text_add(t, "\n  %-14s %18c %18c  %9s  %-22s\n", "", 'A',
			      (char)('A' + b), "change", "95 % of resamples");
		for (size_t i = 0; i < s->nfigures; i++) {
			struct pen_change c =
				pen__compare(s, &s[b], &s->figure[i], least);

			row_text(t, &s->figure[i], &c);
		}
		while (next_pair(s, &s[b], &at, &p)) {
			pen__text_add(t, "%s  ", any ? "" : "\n  changed:\n");
			pen__text_quote(t, p.key);
			pen__text_add(t, ": ");
			value_text(t, p.from);
			pen__text_add(t, " -> ");
			value_text(t, p.to);
			pen__text_add(t, "\n");
			any = true;
		}
		if (!any)
			pen__text_add(t, "\n  Settings and machine are the "
					 "same.\n");
		pen__text_add(t, "  In words: ");
		words(t, s, &s[b], least);
	}
}

/* ---- programs ---- */

static void number_json(struct pen_text *t, const char *key, double v)
{
	if (isfinite(v))
		pen__json_num(t, key, v);
}

static void row_json(struct pen_text *t, const struct pen_figure *f,
		     const struct pen_change *c)
{
	pen__json_open(t, NULL, '{');
	pen__json_str(t, "figure", f->name);
	number_json(t, "from", c->from);
	number_json(t, "to", c->to);
	number_json(t, "change", c->share);
	number_json(t, "low", c->low);
	number_json(t, "high", c->high);
	pen__json_bool(t, "differs", c->differs);
	if (c->differs)
		pen__json_bool(t, "better", (c->share > 0) == !f->less);
	else
		pen__json_str(t, "why", c->why);
	pen__json_close(t, '}');
}

static void pair_json(struct pen_text *t, const struct pen_samples *a,
		      const struct pen_samples *b, double least)
{
	struct pair p;
	size_t at = 0;

	pen__json_open(t, NULL, '{');
	pen__json_str(t, "a", a->name);
	pen__json_str(t, "b", b->name);
	pen__json_int(t, "runs_a", a->nruns);
	pen__json_int(t, "runs_b", b->nruns);
	pen__json_bool(t, "partial", a->partial || b->partial);
	pen__json_open(t, "figures", '[');
	for (size_t i = 0; i < a->nfigures; i++) {
		struct pen_change c = pen__compare(a, b, &a->figure[i], least);

		row_json(t, &a->figure[i], &c);
	}
	pen__json_close(t, ']');
	pen__json_open(t, "changed", '[');
	while (next_pair(a, b, &at, &p)) {
		pen__json_open(t, NULL, '{');
		pen__json_str(t, "key", p.key);
		pen__json_str(t, "from", p.from);
		pen__json_str(t, "to", p.to);
		pen__json_close(t, '}');
	}
	pen__json_close(t, ']');
	pen__json_close(t, '}');
}

void pen__compare_json(const struct pen_samples *s, size_t n, double least,
		       struct pen_text *t)
{
	pen__json_open(t, NULL, '{');
	pen__json_str(t, "schema", "penstock.compare/1");
	pen__json_open(t, "comparisons", '[');
	for (size_t b = 1; b < n; b++)
		pair_json(t, s, &s[b], least);
	pen__json_close(t, ']');
	pen__json_close(t, '}');
	pen__text_add(t, "\n");
}

/* ---- a page ---- */

static void figures_html(struct pen_text *t, const char *id,
			 const struct pen_samples *a,
			 const struct pen_samples *b, double least)
{
	static const char *const names[] = { "figure",	"#A",	"#B",
					     "#change", "#low", "#high",
					     "verdict", NULL };
	char from[64], to[64];

	pen__table_open(t, "Figures, with 95 % of resampled changes", names);
	for (size_t i = 0; i < a->nfigures; i++) {
		const struct pen_figure *f = &a->figure[i];
		struct pen_change c = pen__compare(a, b, f, least);
		struct pen_shown shown;

		figure_text(f, c.from, from, sizeof(from));
		figure_text(f, c.to, to, sizeof(to));
		pen__table_row(t, id, i);
		pen__table_text(t, f->name);
		snprintf(shown.s, sizeof(shown.s), "%.39s", from);
		pen__table_number(t, c.from, shown);
		snprintf(shown.s, sizeof(shown.s), "%.39s", to);
		pen__table_number(t, c.to, shown);
		pen__table_number(t, c.share, change_text(c.share));
		pen__table_number(t, c.low, change_text(c.low));
		pen__table_number(t, c.high, change_text(c.high));
		pen__table_text(t, verdict(f, &c));
		pen__table_row_end(t);
	}
	pen__table_close(t);
}

static void changes_html(struct pen_text *t, const char *id,
			 const struct pen_samples *a,
			 const struct pen_samples *b)
{
	static const char *const names[] = { "setting or property", "A", "B",
					     NULL };
	struct pair p;
	size_t at = 0, n = 0;

	while (next_pair(a, b, &at, &p)) {
		if (!n)
			pen__table_open(t, "What was different", names);
		pen__table_row(t, id, n++);
		pen__table_text(t, p.key);
		pen__table_text(t, p.from);
		pen__table_text(t, p.to);
		pen__table_row_end(t);
	}
	if (n)
		pen__table_close(t);
	else
		pen__text_add(t, "<p>Settings and machine are the same.</p>\n");
}

void pen__compare_html(const struct pen_samples *s, size_t n, double least,
		       struct pen_text *t)
{
	pen__page_open(t, "Comparison");
	pen__text_add(t, "<h1>Comparison</h1>\n");
	for (size_t b = 1; b < n; b++) {
		struct pen_text in_words = { 0 };
		char id[32];

		pen__text_add(t, "<section>\n<h2>");
		pen__html(t, s->name);
		pen__text_add(t, " (A) and ");
		pen__html(t, s[b].name);
		pen__text_add(t, " (B)</h2>\n<p class=\"verdict\">");
		words(&in_words, s, &s[b], least);
		pen__html(t, in_words.p ? in_words.p : "");
		pen__text_fini(&in_words);
		pen__text_add(t, "</p>\n");
		snprintf(id, sizeof(id), "f%zu", b);
		figures_html(t, id, s, &s[b], least);
		id[0] = 'c';
		changes_html(t, id, s, &s[b]);
		pen__text_add(t, "</section>\n");
	}
	pen__page_close(t);
}
