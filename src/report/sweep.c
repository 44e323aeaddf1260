/*
 * Sweeps: the best settings, all of them as bars, and for every setting that
 * has numbers, how the best rate with each of its values compares.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "report/chart.h"
#include "report/report.h"

#define MOST_BARS 40
#define MOST_VALUES 64

static int by_rate(const void *a, const void *b)
{
	const double x = ((const struct pen_case *)a)->rate;
	const double y = ((const struct pen_case *)b)->rate;

	/* those without one last */
	if (isnan(x) || isnan(y))
		return isnan(x) - isnan(y);
	return (x < y) - (x > y);
}

static int sorted_cases(const struct pen_group *g, struct pen_case **c,
			size_t *n, struct pen_err *err)
{
	int rc = pen__cases(g, c, n, err);

	if (!rc)
		qsort(*c, *n, sizeof(**c), by_rate);
	return rc;
}

static int verdict(struct pen_text *t, const struct pen_group *g,
		   struct pen_err *err)
{
	struct pen_case *c;
	size_t n;
	int rc = sorted_cases(g, &c, &n, err);

	if (rc)
		return rc;
	if (n) {
		pen__text_add(t, "<p>Best: ");
		pen__html(t, pen__line_text(c[0].row, "setup"));
		pen__text_add(t, ": %s samples/s",
			      pen__show_count(c[0].rate).s);
		if (n > 1 && c[n - 1].rate > 0)
			pen__text_add(t, ", %.2f times the slowest",
				      c[0].rate / c[n - 1].rate);
		pen__text_add(t, ".</p>\n<p>%zu settings, %zu runs.</p>\n", n,
			      g->n);
	}
	pen__free(c);
	return 0;
}

static void put_bars(struct pen_text *t, const struct pen_group *g,
		     const struct pen_case *c, size_t n)
{
	struct pen_bar bar[MOST_BARS];
	struct pen_bars b = { .title = "Rate by settings",
			      .about = "Medians of samples a second, the "
				       "fastest first.",
			      .bar = bar };
	char id[32];

	snprintf(id, sizeof(id), "s%zu", g->number);
	b.id = id;
	for (; b.n < n && b.n < MOST_BARS; b.n++)
		bar[b.n] = (struct pen_bar){
			.group = "samples/s",
			.name = pen__line_text(c[b.n].row, "setup"),
			.value = c[b.n].rate,
			.shown = pen__show_count(c[b.n].rate),
			.colour = pen__colour_of(b.n ? 5 : 0),
		};
	pen__text_add(t, "<figure>\n");
	pen__chart_bars(t, &b);
	pen__text_add(t, "<figcaption>%s</figcaption>\n</figure>\n", b.about);
}

static void put_table(struct pen_text *t, const struct pen_group *g,
		      const struct pen_case *c, size_t n)
{
	static const char *const names[] = { "settings",  "#samples/s",
					     "#memory",	  "#utilisation",
					     "#wait p99", "#runs",
					     NULL };
	char id[32];

	snprintf(id, sizeof(id), "t%zu", g->number);
	pen__table_open(t, "All settings", names);
	for (size_t i = 0; i < n; i++) {
		const double au = pen__line_number(c[i].row, "au");
		const double p99 = pen__line_number(c[i].row, "wait_p99_s");

		pen__table_row(t, id, i);
		pen__table_text(t, pen__line_text(c[i].row, "setup"));
		pen__table_number(t, c[i].rate, pen__show_count(c[i].rate));
		pen__table_number(t, c[i].memory, pen__show_bytes(c[i].memory));
		pen__table_number(t, au, pen__show_share(au / 100));
		pen__table_number(t, p99, pen__show_time(p99));
		pen__table_number(t, (double)c[i].n,
				  pen__show_whole((double)c[i].n));
		pen__table_row_end(t);
	}
	pen__table_close(t);
}

struct curve {
	double x[MOST_VALUES], y[MOST_VALUES];
	size_t n;
};

/* The best rate with each value of a key; false: they are no numbers. */
static bool curve_of(const struct pen_case *c, size_t n, const char *key,
		     struct curve *out)
{
	out->n = 0;
	for (size_t i = 0; i < n; i++) {
		const char *text = pen__line_text(c[i].row, key);
		char *end;
		const double x = strtod(text, &end);
		size_t at = 0;

		if (end == text || *end || !isfinite(x))
			return false;
		while (at < out->n && out->x[at] < x)
			at++;
		if (at < out->n && out->x[at] == x) {
			out->y[at] = fmax(out->y[at], c[i].rate);
			continue;
		}
		if (out->n == MOST_VALUES)
			return false;
		memmove(&out->x[at + 1], &out->x[at],
			(out->n - at) * sizeof(double));
		memmove(&out->y[at + 1], &out->y[at],
			(out->n - at) * sizeof(double));
		out->x[at] = x;
		out->y[at] = c[i].rate;
		out->n++;
	}
	return out->n > 1;
}

/* A value that was set: its digits as they are. */
static struct pen_shown show_value(double v)
{
	struct pen_shown s;

	if (v >= 0 && v < 1e15 && floor(v) == v)
		return pen__show_whole(v);
	snprintf(s.s, sizeof(s.s), "%.6g", v);
	return s;
}

/* number: of the key; what others named it is no part of an id */
static void put_curve(struct pen_text *t, const struct pen_group *g,
		      size_t number, const char *key, const struct curve *c)
{
	const struct pen_series one = { "best samples/s", c->y,
					pen__colour_of(0) };
	char id[64], title[160];
	struct pen_plot p = {
		.id = id,
		.title = title,
		.about = "The best of all settings with this value.",
		.x = { key, show_value, 0 },
		.y = { "samples/s", pen__show_count, 0 },
		.x_at = c->x,
		.n = c->n,
		.series = &one,
		.nseries = 1,
	};

	snprintf(title, sizeof(title), "Best rate by %s", key);
	snprintf(id, sizeof(id), "k%zu-%zu", g->number, number);
	pen__chart_plot(t, &p);
}

static int show(struct pen_text *t, const struct pen_group *g,
		struct pen_err *err)
{
	struct pen_case *c;
	struct curve k;
	size_t n;
	int rc = sorted_cases(g, &c, &n, err);

	if (rc)
		return rc;
	put_bars(t, g, c, n);
	for (size_t i = 0; n && i < c[0].row->n; i++) {
		const char *key = pen__cell_key(c[0].row, i);

		if (!strncmp(key, "set.", 4) && curve_of(c, n, key, &k))
			put_curve(t, g, i, key + 4, &k);
	}
	put_table(t, g, c, n);
	pen__free(c);
	return 0;
}

const struct pen_kind pen__kind_sweep = {
	.experiment = "sweep",
	.title = "Sweep",
	.verdict = verdict,
	.show = show,
};
