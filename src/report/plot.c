/*
 * Lines over a common x, and stacked bars. Both have a table behind them: the
 * script reads what it shows from there, so that a page has every number once.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/chart_int.h"

struct pen_colour pen__colour_of(unsigned i)
{
	static const struct pen_colour c[] = {
		{ "#1f5fbf", "#79aaf5" }, { "#c4540a", "#f29a5b" },
		{ "#2a7d46", "#6cc48a" }, { "#8a3ab0", "#c792e6" },
		{ "#7a6a00", "#cdbb3c" }, { "#5b6470", "#a3abb6" },
	};

	return c[i % (sizeof(c) / sizeof(c[0]))];
}

/* ---- lines ---- */

/* The frame of a plot: where values lie. */
struct plane {
	const struct pen_plot *p;
	struct pen_frame f;
	double low, high; /* of y; logarithms when it is that */
	double xmax;
};

static double place_x(const struct plane *q, size_t i)
{
	const double at = q->p->place ? q->p->place[i]
				      : q->p->x_at[i] / q->xmax;

	/* no number: at the edge, and in no line */
	return !(at > 0) ? 0 : at > 1 ? 1 : at;
}

static double px(const struct plane *q, double at)
{
	return q->f.left + (q->f.w - q->f.left - q->f.right) * at;
}

static double py(const struct plane *q, double v)
{
	if (q->p->log_y)
		v = log10(v);
	v = (v - q->low) / (q->high - q->low);
	/* what is far above is drawn so, and stays a number */
	v = v > 0 ? fmin(v, 2) : 0;
	return q->f.h - q->f.bottom - (q->f.h - q->f.top - q->f.bottom) * v;
}

/* The smallest above zero and the largest of all series. */
static void extent(const struct pen_plot *p, double *least, double *most)
{
	*least = INFINITY;
	*most = 0;
	for (size_t s = 0; s < p->nseries; s++)
		for (size_t i = 0; i < p->n; i++) {
			const double v = p->series[s].y[i];

			if (!isfinite(v))
				continue;
			if (v > 0 && v < *least)
				*least = v;
			if (v > *most)
				*most = v;
		}
}

static void fit(struct plane *q, const struct pen_frame *like)
{
	const struct pen_plot *p = q->p;
	double least, most, step;

	q->f = *like;
	q->f.h = q->f.h * 0.72;
	extent(p, &least, &most);
	if (p->y.max > 0)
		most = p->y.max;
	q->xmax = p->x.max;
	for (size_t i = 0; i < p->n && !(p->x.max > 0); i++)
		if (isfinite(p->x_at[i]))
			q->xmax = fmax(q->xmax, p->x_at[i]);
	if (!(q->xmax > 0))
		q->xmax = 1;
	if (p->log_y && isfinite(least)) {
		q->low = floor(log10(least));
		q->high = ceil(log10(most));
		if (q->high <= q->low)
			q->high = q->low + 1;
		return;
	}
	step = pen__chart_step(most, q->f.yticks);
	q->low = 0;
	q->high = step * ceil(most * (p->y.max > 0 ? 1 : 1.02) / step);
	if (!(q->high > 0))
		q->high = step;
}

static void put_level(struct pen_text *t, const struct plane *q, double v)
{
	pen__text_add(t,
		      "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" "
		      "y1=\"%.1f\" y2=\"%.1f\"/><text x=\"%.1f\" y=\"%.1f\" "
		      "text-anchor=\"end\">%s</text>\n",
		      q->f.left, q->f.w - q->f.right, py(q, v), py(q, v),
		      q->f.left - 8, py(q, v) + 4,
		      pen__chart_tick(&q->p->y, v).s);
}

static void put_levels(struct pen_text *t, const struct plane *q)
{
	const double step = pen__chart_step(q->high, q->f.yticks);

	if (q->p->log_y)
		for (double e = q->low; e <= q->high; e++)
			put_level(t, q, pow(10, e));
	else
		for (int i = 0; i <= MOST_TICKS && i * step <= q->high * 1.0001;
		     i++)
			put_level(t, q, i * step);
	pen__text_add(t, "<text class=\"axis\" x=\"4\" y=\"%.1f\">",
		      q->f.top - 18);
	pen__html(t, q->p->y.label);
	pen__text_add(t, "</text>\n");
}

static void put_column(struct pen_text *t, const struct plane *q, double at,
		       const char *label)
{
	const double x = px(q, at), y = q->f.h - q->f.bottom;

	pen__text_add(t,
		      "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" "
		      "y1=\"%.1f\" y2=\"%.1f\"/><text x=\"%.1f\" y=\"%.1f\" "
		      "text-anchor=\"middle\">",
		      x, x, q->f.top, y, x, y + 18);
	pen__html(t, label);
	pen__text_add(t, "</text>\n");
}

static void put_columns(struct pen_text *t, const struct plane *q)
{
	const struct pen_plot *p = q->p;
	const double step = pen__chart_step(q->xmax, q->f.xticks);

	for (size_t i = 0; i < p->nticks; i++)
		put_column(t, q, p->tick[i].at, p->tick[i].label);
	for (int i = 0;
	     !p->place && i <= MOST_TICKS && i * step <= q->xmax * 1.0001; i++)
		put_column(t, q, i * step / q->xmax,
			   pen__chart_tick(&p->x, i * step).s);
	pen__text_add(t,
		      "<text class=\"axis\" x=\"%.1f\" y=\"%.1f\" "
		      "text-anchor=\"middle\">",
		      (q->f.left + q->f.w - q->f.right) / 2, q->f.h - 10);
	pen__html(t, p->x.label);
	pen__text_add(t, "</text>\n");
}

/* What a log axis cannot show is a gap. */
static bool shown(const struct plane *q, double v)
{
	return isfinite(v) && (!q->p->log_y || v > 0);
}

static void put_line(struct pen_text *t, const struct plane *q,
		     const struct pen_series *s)
{
	bool pen_down = false;

	pen__text_add(t, "<path class=\"line\" style=\"--l:%s;--d:%s\" d=\"",
		      s->colour.light, s->colour.dark);
	for (size_t i = 0; i < q->p->n; i++) {
		if (!shown(q, s->y[i]) || !isfinite(q->p->x_at[i])) {
			pen_down = false;
			continue;
		}
		pen__text_add(t, "%c%.1f %.1f", pen_down ? 'L' : 'M',
			      px(q, place_x(q, i)), py(q, s->y[i]));
		/* alone between gaps: a line of no length is a dot */
		if (!pen_down && (i + 1 == q->p->n || !shown(q, s->y[i + 1])))
			pen__text_add(t, "h0.1");
		pen_down = true;
	}
	pen__text_add(t, "\"/>\n");
}

static void put_plot(struct pen_text *t, const struct pen_plot *p,
		     const struct pen_frame *like)
{
	struct plane q = { .p = p };

	fit(&q, like);
	pen__chart_open(t, &q.f, p->id, p->title, p->about);
	put_levels(t, &q);
	put_columns(t, &q);
	for (size_t s = 0; s < p->nseries; s++)
		put_line(t, &q, &p->series[s]);
	pen__text_add(t,
		      "<line class=\"cross\" x1=\"0\" x2=\"0\" y1=\"%.1f\" "
		      "y2=\"%.1f\" visibility=\"hidden\"/><rect class=\"pick\" "
		      "tabindex=\"0\" role=\"img\" data-plot=\"%s\" x=\"%.1f\" "
		      "y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" aria-label=\"",
		      q.f.top, q.f.h - q.f.bottom, p->id, px(&q, 0), q.f.top,
		      px(&q, 1) - px(&q, 0), q.f.h - q.f.bottom - q.f.top);
	pen__html(t, p->title);
	pen__text_add(t, ": arrow keys go from point to point\"/>\n</svg>\n");
}

static void put_legend(struct pen_text *t, const char *name,
		       struct pen_colour c)
{
	pen__text_add(t,
		      "<li><span class=\"scale\"><i style=\"--l:%s;--d:%s\">"
		      "</i></span>",
		      c.light, c.dark);
	pen__html(t, name);
	pen__text_add(t, "</li>");
}

static void put_numbers(struct pen_text *t, const struct pen_plot *p)
{
	const char *names[12] = { NULL };
	char name[12][64];
	struct plane q = { .p = p };
	size_t n = p->nseries < 10 ? p->nseries : 10;

	fit(&q, &pen__frame_wide);
	snprintf(name[0], sizeof(name[0]), "#%s", p->x.label);
	names[0] = name[0];
	for (size_t s = 0; s < n; s++) {
		snprintf(name[s + 1], sizeof(name[0]), "#%s",
			 p->series[s].name);
		names[s + 1] = name[s + 1];
	}
	pen__text_add(t, "<details id=\"%s\"><summary>Numbers</summary>\n",
		      p->id);
	pen__table_open(t, p->title, names);
	for (size_t i = 0; i < p->n; i++) {
		pen__text_add(t, "<tr data-p=\"%.5f\">", place_x(&q, i));
		pen__table_number(t, p->x_at[i], p->x.show(p->x_at[i]));
		for (size_t s = 0; s < n; s++)
			pen__table_number(t, p->series[s].y[i],
					  p->y.show(p->series[s].y[i]));
		pen__table_row_end(t);
	}
	pen__table_close(t);
	pen__text_add(t, "</details>\n");
}

void pen__chart_plot(struct pen_text *t, const struct pen_plot *p)
{
	pen__text_add(t, "<figure>\n<h3>");
	pen__html(t, p->title);
	pen__text_add(t, "</h3>\n");
	put_plot(t, p, &pen__frame_wide);
	put_plot(t, p, &pen__frame_narrow);
	if (p->nseries > 1) {
		pen__text_add(t, "<ul class=\"legend\">");
		for (size_t s = 0; s < p->nseries; s++)
			put_legend(t, p->series[s].name, p->series[s].colour);
		pen__text_add(t, "</ul>\n");
	}
	pen__text_add(t, "<figcaption>");
	pen__html(t, p->about);
	pen__text_add(t, "</figcaption>\n");
	put_numbers(t, p);
	pen__text_add(t, "</figure>\n");
}

/* ---- stacked bars ---- */

static double total(const struct pen_stacks *c, const struct pen_stack *s)
{
	double sum = 0;

	for (size_t i = 0; i < c->nparts; i++)
		sum += s->part[i] > 0 ? s->part[i] : 0;
	return sum;
}

static void put_stack(struct pen_text *t, const struct pen_frame *f,
		      const struct pen_stacks *c, size_t at)
{
	const struct pen_stack *s = &c->stack[at];
	const double all = total(c, s), wide = f->w - f->left - f->right;
	const double y = 4 + 34.0 * (double)at;
	double x = f->left;

	pen__text_add(t, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">",
		      f->left - 8, y + 17);
	pen__html(t, s->name);
	pen__text_add(t, "</text>");
	for (size_t i = 0; i < c->nparts && all > 0; i++) {
		const double w = wide * (s->part[i] > 0 ? s->part[i] : 0) / all;
		const struct pen_colour k = pen__colour_of((unsigned)i);

		if (!(w > 0))
			continue;
		pen__text_add(t,
			      "<g class=\"mark\" tabindex=\"-1\" role=\"img\" "
			      "data-row=\"%s-%zu\" style=\"--l:%s;--d:%s\" "
			      "aria-label=\"",
			      c->id, at, k.light, k.dark);
		pen__html(t, c->parts[i]);
		pen__text_add(t,
			      ": %s; %s\"><rect x=\"%.1f\" y=\"%.1f\" "
			      "width=\"%.1f\" height=\"26\"/></g>",
			      c->show(s->part[i]).s,
			      pen__show_share(s->part[i] / all).s, x, y, w);
		x += w;
	}
	pen__text_add(t, "\n");
}

static void put_stacks(struct pen_text *t, const struct pen_stacks *c,
		       const struct pen_frame *like)
{
	struct pen_frame f = *like;

	f.h = 8 + 34.0 * (double)c->n;
	f.left = 64;
	for (size_t i = 0; i < c->n; i++)
		f.left = fmax(f.left,
			      7.0 * (double)strlen(c->stack[i].name) + 12);
	f.right = 8;
	pen__chart_open(t, &f, c->id, c->title, c->about);
	for (size_t i = 0; i < c->n; i++)
		put_stack(t, &f, c, i);
	pen__text_add(t, "</svg>\n");
}

static void put_parts(struct pen_text *t, const struct pen_stacks *c)
{
	const char *names[16] = { "" };
	char name[16][64];
	size_t n = c->nparts < 14 ? c->nparts : 14;

	for (size_t i = 0; i < n; i++) {
		snprintf(name[i], sizeof(name[i]), "#%s", c->parts[i]);
		names[i + 1] = name[i];
	}
	pen__text_add(t, "<details><summary>Numbers</summary>\n");
	pen__table_open(t, c->title, names);
	for (size_t k = 0; k < c->n; k++) {
		pen__table_row(t, c->id, k);
		pen__table_text(t, c->stack[k].name);
		for (size_t i = 0; i < n; i++)
			pen__table_number(t, c->stack[k].part[i],
					  c->show(c->stack[k].part[i]));
		pen__table_row_end(t);
	}
	pen__table_close(t);
	pen__text_add(t, "</details>\n");
}

void pen__chart_stacks(struct pen_text *t, const struct pen_stacks *c)
{
	pen__text_add(t, "<figure>\n<h3>");
	pen__html(t, c->title);
	pen__text_add(t, "</h3>\n");
	put_stacks(t, c, &pen__frame_wide);
	put_stacks(t, c, &pen__frame_narrow);
	pen__text_add(t, "<ul class=\"legend\">");
	for (size_t i = 0; i < c->nparts; i++)
		put_legend(t, c->parts[i], pen__colour_of((unsigned)i));
	pen__text_add(t, "</ul>\n<figcaption>");
	pen__html(t, c->about);
	pen__text_add(t, "</figcaption>\n");
	put_parts(t, c);
	pen__text_add(t, "</figure>\n");
}
