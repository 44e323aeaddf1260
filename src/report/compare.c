/* Comparisons as text, JSON and HTML. */
#include "report/compare.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

#define SHORT 60 /* maximum bytes of a value */
#define LINE 80
static const char too_short[] = "run too short";
#define SHORTEST 1.0 /* minimum seconds of a single run to compare */

/*
 * How much the second half of a run differs from the first. A machine that
 * changes within a run also changes between runs, and the spread of the epochs
 * does not show that.
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
		c.why = too_short;
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

/* "4.79 k samples/s", but "114 kB/sample" */
static const char *blank_before(const char *unit)
{
	return unit[0] && unit[0] != '/' ? " " : "";
}

static void figure_text(const struct pen_figure *f, double v, char *buf,
			size_t cap)
{
	if (!isfinite(v)) {
		snprintf(buf, cap, "-");
		return;
	}
	snprintf(buf, cap, "%s%s%s", f->show(v).s, blank_before(f->unit),
		 f->unit);
}

/* ---- differences ---- */

struct pair {
	const char *key, *from, *to;
};

static const char *value_of(const struct pen_fact *f)
{
	return !f ? "(not set)" : f->varies ? "(several)" : f->value;
}

/* Finds the next setting that differs: from *at on in a, then those only in b.
 */
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

/* ---- text ---- */

/* A figure as text, and the widths of the columns. */
struct row {
	char name[256], unit[32], range[104];
	struct pen_shown from, to, change;
};
struct widths {
	int name, value, unit, change, range;
	bool split; /* verdicts do not fit on the line: they get their own */
};

static struct pen_shown value_shown(const struct pen_figure *f, double v)
{
	return isfinite(v) ? f->show(v) : (struct pen_shown){ "-" };
}

/* "-52.3..-19.4 %", "x 2.54..3.09", "+71.3 %..x 59.4" */
static void range_text(const struct pen_change *c, char *buf, size_t cap)
{
	const struct pen_shown low = change_text(c->low);
	const struct pen_shown high = change_text(c->high);
	const char *unit = strstr(low.s, " %");
	const bool shares = unit && strstr(high.s, " %");
	const bool times = low.s[0] == 'x' && high.s[0] == 'x';

	buf[0] = '\0';
	if (isfinite(c->low))
		snprintf(buf, cap, "%.*s..%s",
			 shares ? (int)(unit - low.s) : (int)strlen(low.s),
			 low.s, high.s + (times ? 2 : 0));
}

static void fill_row(struct row *r, const struct pen_figure *f,
		     const struct pen_change *c)
{
	pen__quote(r->name, sizeof(r->name), f->name);
	snprintf(r->unit, sizeof(r->unit), "%s%s", blank_before(f->unit),
		 f->unit);
	r->from = value_shown(f, c->from);
	r->to = value_shown(f, c->to);
	r->change = change_text(c->share);
	range_text(c, r->range, sizeof(r->range));
}

static void widen(int *w, const char *text)
{
	const int n = (int)strlen(text);

	*w = n > *w ? n : *w;
}

static void row_text(struct pen_text *t, const struct widths *w,
		     const struct row *r, const char *end)
{
	pen__text_add(t, "  %-*s %*s  %*s%-*s %*s", w->name, r->name, w->value,
		      r->from.s, w->value, r->to.s, w->unit, r->unit, w->change,
		      r->change.s);
	if (w->split && *end)
		pen__text_add(t, "\n      %s%s%s", end, r->range[0] ? ": " : "",
			      r->range);
	else if (!w->split && w->range)
		pen__text_add(t, "  %-*s  %s", w->range, r->range, end);
	else if (!w->split)
		pen__text_add(t, "  %s", end);
	while (t->n && t->p[t->n - 1] == ' ')
		t->p[--t->n] = '\0';
	pen__text_add(t, "\n");
}

static void figures_text(struct pen_text *t, const struct pen_samples *a,
			 const struct pen_samples *b, char letter, double least,
			 size_t columns)
{
	struct row head = { .range = "95 % interval",
			    .from = { "A" },
			    .to = { { letter, '\0' } },
			    .change = { "change" } };
	struct widths w = { .change = 6 };
	int longest = 0;
	struct row r;

	for (size_t pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < a->nfigures; i++) {
			const struct pen_figure *f = &a->figure[i];
			const struct pen_change c =
				pen__compare(a, b, f, least);

			fill_row(&r, f, &c);
			widen(&w.name, r.name);
			widen(&w.value, r.from.s);
			widen(&w.value, r.to.s);
			widen(&w.unit, r.unit);
			widen(&w.change, r.change.s);
			if (r.range[0])
				widen(&w.range, head.range);
			widen(&w.range, r.range);
			widen(&longest, verdict(f, &c));
			w.split = (size_t)(w.name + 2 * w.value + w.unit +
					   w.change + w.range + longest + 10) >
				  columns;
			if (pass && !i)
				row_text(t, &w, &head, "");
			if (pass)
				row_text(t, &w, &r, verdict(f, &c));
		}
}

static void put_throughput(struct pen_text *t, struct pen_shown change)
{
	const bool times = change.s[0] == 'x';

	pen__text_add(t, "Throughput changed by %s%s. ",
		      times ? "a factor of " : "", change.s + (times ? 2 : 0));
}

static void words(struct pen_text *t, const struct pen_samples *a,
		  const struct pen_samples *b, double least)
{
	size_t better = 0, worse = 0, untold = 0, brief = 0;

	for (size_t i = 0; i < a->nfigures; i++) {
		struct pen_change c = pen__compare(a, b, &a->figure[i], least);

		if (c.differs && (c.share > 0) == !a->figure[i].less)
			better++;
		else if (c.differs)
			worse++;
		else if (!isfinite(c.low))
			untold++;
		brief += c.why == too_short;
		if (c.differs && !strcmp(a->figure[i].name, "throughput"))
			put_throughput(t, change_text(c.share));
	}
	if (!better && !worse && brief)
		pen__text_add(t,
			      "A run of less than %g s is too short to tell; "
			      "load more epochs, or pass several runs",
			      SHORTEST);
	else if (!better && !worse)
		pen__text_add(t, "No figure differs beyond noise");
	else
		pen__text_add(t, "Beyond noise: %zu better, %zu worse", better,
			      worse);
	if (untold && !brief)
		pen__text_add(t,
			      "; %zu %s with one value per side cannot be "
			      "compared (pass several runs)",
			      untold, untold == 1 ? "figure" : "figures");
	pen__text_add(t, ".");
	if (a->partial || b->partial)
		pen__text_add(t, " Warning: a run was interrupted.");
	pen__text_add(t, "\n");
}

/* A setting that differs, on two lines if it is long. */
static void pair_text(struct pen_text *t, const struct pair *p, size_t columns)
{
	char from[SHORT + 1], to[SHORT + 1];
	const size_t start = t->n;

	pen__quote(from, sizeof(from), p->from);
	pen__quote(to, sizeof(to), p->to);
	pen__text_add(t, "    ");
	pen__text_quote(t, p->key);
	pen__text_add(t, ": %s", from);
	pen__text_add(
		t, "%s-> %s\n",
		t->n - start + strlen(to) + 4 > columns ? "\n      " : " ", to);
}

/* Breaks a paragraph into indented lines. */
static void wrapped_text(struct pen_text *t, const char *s, size_t columns)
{
	size_t at = 1;

	pen__text_add(t, " ");
	while (*(s += strspn(s, " \n"))) {
		const size_t n = strcspn(s, " \n");

		if (at + 1 + n > columns) {
			pen__text_add(t, "\n ");
			at = 1;
		}
		at += 1 + n;
		pen__text_add(t, " %.*s", (int)n, s);
		s += n;
	}
	pen__text_add(t, "\n");
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

static void comparison_text(struct pen_text *t, const struct pen_samples *a,
			    const struct pen_samples *b, char letter,
			    double least, size_t columns)
{
	struct pen_text summary = { 0 };
	struct pair p;
	size_t at = 0;
	bool any = false;

	pen__text_add(t, "\n");
	figures_text(t, a, b, letter, least, columns);
	while (next_pair(a, b, &at, &p)) {
		pen__text_add(t, "%s", any ? "" : "\n  Differences:\n");
		pair_text(t, &p, columns);
		any = true;
	}
	if (!any)
		pen__text_add(t, "\n  Settings and machine are the same.\n");
	pen__text_add(&summary, "Summary: ");
	words(&summary, a, b, least);
	pen__text_add(t, "\n");
	wrapped_text(t, summary.p ? summary.p : "",
		     columns < LINE ? columns : LINE);
	t->failed |= summary.failed;
	pen__text_fini(&summary);
}

void pen__compare_text(const struct pen_samples *s, size_t n, double least,
		       size_t columns, struct pen_text *t)
{
	columns = columns ? columns : LINE;
	for (size_t i = 0; i < n; i++)
		samples_text(t, (char)('A' + i), &s[i]);
	for (size_t b = 1; b < n; b++)
		comparison_text(t, s, &s[b], (char)('A' + b), least, columns);
}

/* ---- JSON ---- */

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

/* ---- HTML ---- */

static void figures_html(struct pen_text *t, const char *id,
			 const struct pen_samples *a,
			 const struct pen_samples *b, double least)
{
	static const char *const names[] = { "figure",	"#A",	      "#B",
					     "#change", "#95 % from", "#to",
					     "verdict", NULL };
	char from[64], to[64];

	pen__text_add(t, "<h3>Figures</h3>\n");
	pen__table_open(t, "Figures with the 95 % interval of each change",
			names);
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
		if (!n) {
			pen__text_add(t, "<h3>Differences</h3>\n");
			pen__table_open(t, "Differences", names);
		}
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
