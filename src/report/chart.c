/*
 * Charts: layout and SVG output. All kinds share frames, scales (chart_axis.c),
 * labels cut to the available width, spreads and legends.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/chart_int.h"

/* ---- colours ---- */

static double gamma_of(double v)
{
	return v <= 0.0031308 ? 12.92 * v : 1.055 * pow(v, 1 / 2.4) - 0.055;
}

/* Converts lightness, chroma and hue of OKLab; false: outside sRGB. */
static bool to_rgb(double light, double chroma, double hue, double *rgb)
{
	const double a = chroma * cos(hue), b = chroma * sin(hue);
	const double l = pow(light + 0.3963377774 * a + 0.2158037573 * b, 3);
	const double m = pow(light - 0.1055613458 * a - 0.0638541728 * b, 3);
	const double s = pow(light - 0.0894841775 * a - 1.2914855480 * b, 3);

	rgb[0] = 4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s;
	rgb[1] = -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s;
	rgb[2] = -0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s;
	for (int i = 0; i < 3; i++)
		if (rgb[i] < -1e-4 || rgb[i] > 1 + 1e-4)
			return false;
	return true;
}

static void to_hex(double light, double hue, char *out)
{
	double rgb[3], chroma = 0.16;

	while (!to_rgb(light, chroma, hue, rgb) && chroma > 0)
		chroma -= 0.005;
	for (int i = 0; i < 3; i++) {
		const double v = gamma_of(rgb[i] < 0 ? 0 : rgb[i]);

		snprintf(out + 1 + 2 * i, 3, "%02x",
			 (unsigned)lrint(255 * (v > 1 ? 1 : v)) & 255);
	}
	out[0] = '#';
}

struct pen_colour pen__colour_at(double at)
{
	struct pen_colour c;

	at = at < 0 ? 0 : at > 1 ? 1 : at;
	/* violet, blue, green, yellow */
	to_hex(0.32 + 0.44 * at, (300 - 200 * at) * M_PI / 180, c.light);
	to_hex(0.56 + 0.36 * at, (300 - 200 * at) * M_PI / 180, c.dark);
	return c;
}

struct pen_colour pen__colour_of(unsigned i)
{
	static const struct pen_colour c[] = {
		{ "#1f5fbf", "#79aaf5" }, { "#c4540a", "#f29a5b" },
		{ "#2a7d46", "#6cc48a" }, { "#8a3ab0", "#c792e6" },
		{ "#7a6a00", "#cdbb3c" }, { "#5b6470", "#a3abb6" },
		{ "#0d7373", "#5cc4c4" }, { "#a8324a", "#ee8a9d" },
	};

	return c[i % (sizeof(c) / sizeof(c[0]))];
}

/* ---- frames ---- */

struct frame {
	double w, h, left, right, top, bottom; /* margins */
	double most_r;			       /* radius of the largest mark */
	const char *kind, *role; /* group: its parts have labels of their own */
	struct pen_scale x, y;	 /* log is set before they are fitted */
	bool x_tight;
	const struct pen_tick *tick; /* instead of those of x */
	size_t nticks;
};

static const struct frame frames[] = {
	{ .w = 860,
	  .h = 460,
	  .top = 34,
	  .bottom = 56,
	  .most_r = 14,
	  .kind = "wide",
	  .role = "group" },
	{ .w = 360,
	  .h = 380,
	  .top = 34,
	  .bottom = 50,
	  .most_r = 10,
	  .kind = "narrow",
	  .role = "group" },
};

static double room_x(const struct frame *f)
{
	return f->w - f->left - f->right;
}

static double room_y(const struct frame *f)
{
	return f->h - f->top - f->bottom;
}

static double px(const struct frame *f, double share)
{
	return f->left + room_x(f) * share;
}

static double py(const struct frame *f, double share)
{
	return f->h - f->bottom - room_y(f) * share;
}

/* y first: its labels determine the width left for x. */
static void fit(struct frame *f, const struct pen_axis *x,
		const struct pen_extent *ex, const struct pen_axis *y,
		const struct pen_extent *ey)
{
	double last;

	pen__scale_fit(&f->y, y, ey, room_y(f), f->y.log ? PEN_LOG : 0);
	f->left = 40;
	for (size_t i = 0; i < f->y.n; i++)
		f->left = fmax(f->left, pen__text_width(f->y.label[i].s) + 16);
	f->right = 24;
	pen__scale_fit(&f->x, x, ex, room_x(f) - 20,
		       PEN_ACROSS | (f->x_tight ? PEN_TIGHT : 0) |
			       (f->x.log ? PEN_LOG : 0));
	last = pen__text_width(f->x.label[f->x.n - 1].s) / 2 + 4;
	f->right = fmax(f->right, last);
}

/* Escapes text and cuts it to the available width. */
static void put_cut(struct pen_text *t, const char *s, double room)
{
	const size_t n = strlen(s);
	char part[256];
	size_t to = n < sizeof(part) ? n : sizeof(part) - 1;

	snprintf(part, sizeof(part), "%.*s", (int)to, s);
	while (to && pen__text_width(part) > room) {
		while (to && ((unsigned char)part[to - 1] & 0xc0) == 0x80)
			to--; /* do not split a UTF-8 character */
		part[to ? --to : 0] = '\0';
	}
	pen__html(t, part);
	if (to < n)
		pen__text_add(t, "\xe2\x80\xa6");
}

static void open_svg(struct pen_text *t, const struct frame *f, const char *id,
		     const char *title, const char *about)
{
	pen__text_add(t,
		      "<svg class=\"%s\" viewBox=\"0 0 %.0f %.0f\" "
		      "role=\"%s\" aria-labelledby=\"%s-%s-t %s-%s-d\">\n"
		      "<title id=\"%s-%s-t\">",
		      f->kind, f->w, f->h, f->role, id, f->kind, id, f->kind,
		      id, f->kind);
	pen__html(t, title);
	pen__text_add(t, "</title><desc id=\"%s-%s-d\">", id, f->kind);
	pen__html(t, about);
	pen__text_add(t, "</desc>\n");
}

static void put_column(struct pen_text *t, const struct frame *f, double at,
		       const char *label)
{
	const double x = px(f, at), y = f->h - f->bottom;

	pen__text_add(t,
		      "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" "
		      "y1=\"%.1f\" y2=\"%.1f\"/><text x=\"%.1f\" y=\"%.1f\" "
		      "text-anchor=\"middle\">",
		      x, x, f->top, y, x, y + 18);
	pen__html(t, label);
	pen__text_add(t, "</text>\n");
}

static void put_level(struct pen_text *t, const struct frame *f, double at,
		      const char *label)
{
	pen__text_add(t,
		      "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" "
		      "y1=\"%.1f\" y2=\"%.1f\"/><text x=\"%.1f\" y=\"%.1f\" "
		      "text-anchor=\"end\">",
		      f->left, f->w - f->right, py(f, at), py(f, at),
		      f->left - 8, py(f, at) + 4);
	pen__html(t, label);
	pen__text_add(t, "</text>\n");
}

/* Prints those of the given ticks that fit. */
static void put_given(struct pen_text *t, const struct frame *f)
{
	double end = -1e9;

	for (size_t i = 0; i < f->nticks; i++) {
		const double half = pen__text_width(f->tick[i].label) / 2;
		const double x = px(f, f->tick[i].at);

		if (x - half < end + 8)
			continue;
		put_column(t, f, f->tick[i].at, f->tick[i].label);
		end = x + half;
	}
}

static void put_axes(struct pen_text *t, const struct frame *f, const char *x,
		     const char *y)
{
	for (size_t i = 0; i < f->y.n; i++)
		put_level(t, f, pen__scale_place(&f->y, f->y.at[i]),
			  f->y.label[i].s);
	pen__text_add(t, "<text class=\"axis\" x=\"4\" y=\"%.1f\">",
		      f->top - 18);
	put_cut(t, y, f->w * 0.8);
	pen__text_add(t, "</text>\n");
	for (size_t i = 0; !f->tick && i < f->x.n; i++)
		put_column(t, f, pen__scale_place(&f->x, f->x.at[i]),
			   f->x.label[i].s);
	put_given(t, f);
	pen__text_add(t,
		      "<text class=\"axis\" x=\"%.1f\" y=\"%.1f\" "
		      "text-anchor=\"middle\">",
		      px(f, 0.5), f->h - 10);
	put_cut(t, x, f->w * 0.7);
	pen__text_add(t, "</text>\n");
}

/* ---- points ---- */

static void put_mark(struct pen_text *t, const struct frame *f,
		     const struct pen_chart *c, size_t i)
{
	const struct pen_mark *m = &c->mark[i];
	const double r = fmax(3.5, f->most_r * sqrt(m->area));
	const double x = px(f, pen__scale_place(&f->x, m->x));
	const double y = py(f, pen__scale_place(&f->y, m->y));

	if (!isfinite(x) || !isfinite(y))
		return;
	pen__text_add(t,
		      "<g class=\"mark%s\" tabindex=\"%d\" role=\"img\" "
		      "data-row=\"%s-%zu\" style=\"--l:%s;--d:%s\" "
		      "aria-label=\"",
		      m->hollow ? " hollow" : "", i ? -1 : 0, c->rows, m->row,
		      m->colour.light, m->colour.dark);
	pen__html(t, m->words);
	pen__text_add(t, "\">");
	if (m->square) /* same area as the circle */
		pen__text_add(t,
			      "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
			      "height=\"%.1f\"/>",
			      x - 0.886 * r, y - 0.886 * r, 1.772 * r,
			      1.772 * r);
	else
		pen__text_add(t, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"/>",
			      x, y, r);
	pen__text_add(t, "</g>\n");
}

#define MOST_NOTES 8

struct box {
	double x0, x1, y;
};

/* True if a note at b does not overlap the others. */
static bool is_free(const struct box *had, size_t n, const struct box *b)
{
	for (size_t i = 0; i < n; i++)
		if (b->x0 < had[i].x1 && had[i].x0 < b->x1 &&
		    fabs(b->y - had[i].y) < 17)
			return false;
	return true;
}

/* Places a note towards the middle, near its mark, inside the frame, and not
 * over another note. */
static void put_note(struct pen_text *t, const struct frame *f,
		     const struct pen_mark *m, struct box *had, size_t n)
{
	const double x = px(f, pen__scale_place(&f->x, m->x));
	const double y = py(f, pen__scale_place(&f->y, m->y));
	const bool left = x > px(f, 0.5);
	const double room = left ? x - 24 : f->w - x - 24;
	const double wide = fmin(pen__text_width(m->note) * 1.08, room);
	struct box b = { left ? x - 20 - wide : x + 20,
			 left ? x - 20 : x + 20 + wide, 0 };

	for (int i = 0; i < 2 * MOST_NOTES; i++) {
		const double off = i % 2 ? 34 + 18 * (i / 2)
					 : -24 - 18 * (i / 2);

		b.y = y + off;
		if (b.y > f->top + 10 && b.y < f->h - f->bottom - 4 &&
		    is_free(had, n, &b))
			break;
	}
	had[n] = b;
	pen__text_add(t,
		      "<line class=\"lead\" x1=\"%.1f\" y1=\"%.1f\" "
		      "x2=\"%.1f\" y2=\"%.1f\"/><text class=\"note\" "
		      "x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">",
		      x, y, x + (left ? -16 : 16), b.y - 4,
		      x + (left ? -20 : 20), b.y, left ? "end" : "start");
	put_cut(t, m->note, room / 1.08);
	pen__text_add(t, "</text>\n");
}

void pen__chart_scatter(struct pen_text *t, const struct pen_chart *c)
{
	const struct pen_axis x = { c->x.label, c->x.show, 0 };
	const struct pen_axis y = { c->y.label, c->y.show, 0 };
	struct pen_extent ex = { 0 }, ey = { 0 };

	for (size_t i = 0; i < c->n; i++) {
		pen__extent_add(&ex, c->mark[i].x);
		pen__extent_add(&ey, c->mark[i].y);
	}
	for (size_t k = 0; k < 2; k++) {
		struct frame f = frames[k];
		struct box notes[MOST_NOTES];
		size_t n = 0;

		fit(&f, &x, &ex, &y, &ey);
		open_svg(t, &f, c->id, c->title, c->about);
		put_axes(t, &f, x.label, y.label);
		for (size_t i = 0; i < c->n; i++)
			put_mark(t, &f, c, i);
		for (size_t i = 0; i < c->n && n < MOST_NOTES; i++)
			if (c->mark[i].note && isfinite(c->mark[i].x) &&
			    isfinite(c->mark[i].y))
				put_note(t, &f, &c->mark[i], notes, n++);
		pen__text_add(t, "</svg>\n");
	}
}

/* ---- lines ---- */

/* The position of point i along the axis; NAN: none. */
static double place_x(const struct frame *f, const struct pen_plot *p, size_t i)
{
	double at = pen__scale_place(&f->x, p->x_at[i]);

	if (p->place)
		at = isfinite(p->x_at[i]) ? p->place[i] : (double)NAN;
	return at < 0 ? 0 : at > 1 ? 1 : at;
}

static void fit_plot(struct frame *f, const struct pen_plot *p)
{
	struct pen_extent x = { 0 }, y = { 0 };

	f->h *= 0.72;
	for (size_t i = 0; i < p->n; i++) {
		pen__extent_add(&x, p->x_at[i]);
		for (size_t s = 0; s < p->nseries; s++)
			pen__extent_add(&y, p->series[s].y[i]);
		if (p->low) {
			pen__extent_add(&y, p->low[i]);
			pen__extent_add(&y, p->high[i]);
		}
	}
	f->x_tight = true;
	f->x.log = p->log_x;
	f->y.log = p->log_y;
	fit(f, &p->x, &x, &p->y, &y);
	if (p->place) {
		f->tick = p->tick;
		f->nticks = p->nticks;
	}
}

/* One path through all points. Each has a dot if there are few, and so has a
 * single point between gaps. */
static void put_line(struct pen_text *t, const struct frame *f,
		     const struct pen_plot *p, const struct pen_series *s)
{
	const bool few = (double)p->n * 12 < room_x(f);
	struct pen_text dots = { 0 };
	double last_x = 0, last_y = 0;
	unsigned run = 0; /* points of the current line */

	pen__text_add(t, "<path class=\"line\" style=\"--l:%s;--d:%s\" d=\"",
		      s->colour.light, s->colour.dark);
	for (size_t i = 0; i <= p->n; i++) {
		const bool end = i == p->n;
		const double x = end ? (double)NAN : px(f, place_x(f, p, i));
		const double y = end ? (double)NAN
				     : py(f, pen__scale_place(&f->y, s->y[i]));

		if (isfinite(x) && isfinite(y)) {
			pen__text_add(t, "%c%.1f %.1f", run ? 'L' : 'M', x, y);
			if (few)
				pen__text_add(&dots, "M%.1f %.1fh0", x, y);
			run++;
			last_x = x;
			last_y = y;
			continue;
		}
		if (run == 1 && !few)
			pen__text_add(&dots, "M%.1f %.1fh0", last_x, last_y);
		run = 0;
	}
	pen__text_add(t,
		      "\"/><path class=\"dots\" style=\"--l:%s;--d:%s\" "
		      "d=\"%s\"/>\n",
		      s->colour.light, s->colour.dark, dots.p ? dots.p : "");
	t->failed |= dots.failed;
	pen__text_fini(&dots);
}

/* Lines from the lowest to the highest repeat of each point. */
static void put_spreads(struct pen_text *t, const struct frame *f,
			const struct pen_plot *p)
{
	pen__text_add(t, "<path class=\"spread\" d=\"");
	for (size_t i = 0; p->low && i < p->n; i++) {
		const double x = px(f, place_x(f, p, i));
		const double low = py(f, pen__scale_place(&f->y, p->low[i]));
		const double high = py(f, pen__scale_place(&f->y, p->high[i]));

		if (isfinite(x) && isfinite(low) && isfinite(high))
			pen__text_add(t,
				      "M%.1f %.1fV%.1fM%.1f %.1fh8M%.1f %.1fh8",
				      x, low, high, x - 4, low, x - 4, high);
	}
	pen__text_add(t, "\"/>\n");
}

static void put_lines(struct pen_text *t, const struct frame *like,
		      const struct pen_plot *p)
{
	struct frame f = *like;

	fit_plot(&f, p);
	open_svg(t, &f, p->id, p->title, p->about);
	put_axes(t, &f, p->x.label, p->y.label);
	put_spreads(t, &f, p);
	for (size_t s = p->nseries; s-- > 0;) /* draw the first one on top */
		put_line(t, &f, p, &p->series[s]);
	pen__text_add(t,
		      "<line class=\"cross\" x1=\"0\" x2=\"0\" y1=\"%.1f\" "
		      "y2=\"%.1f\" visibility=\"hidden\"/><rect class=\"pick\" "
		      "tabindex=\"0\" role=\"img\" data-plot=\"%s\" x=\"%.1f\" "
		      "y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" aria-label=\"",
		      f.top, f.h - f.bottom, p->id, f.left, f.top, room_x(&f),
		      room_y(&f));
	pen__html(t, p->title);
	pen__text_add(
		t, ": use the arrow keys to move between points\"/>\n</svg>\n");
}

/* ---- rows: bars, and stacked bars ---- */

/* Names are to the left of their rows, or above them if they would take too
 * much of the width. */
struct rows {
	bool above;
	double height, step; /* of a bar; distance to the next row */
};

static void fit_rows(struct frame *f, struct rows *r, double names)
{
	f->left = fmax(64, names + 12);
	r->above = f->left > 0.42 * f->w;
	if (r->above) {
		f->left = 8;
		r->step += 18;
	}
}

static void put_name(struct pen_text *t, const struct frame *f,
		     const struct rows *r, const char *name, double *y)
{
	if (r->above)
		pen__text_add(t, "<text x=\"%.1f\" y=\"%.1f\">", f->left,
			      *y + 13);
	else
		pen__text_add(t,
			      "<text x=\"%.1f\" y=\"%.1f\" "
			      "text-anchor=\"end\">",
			      f->left - 8, *y + r->height / 2 + 5);
	put_cut(t, name, r->above ? f->w - 16 : f->left - 12);
	pen__text_add(t, "</text>");
	*y += r->above ? 18 : 0;
}

/* The label after a bar; on narrow screens without the spread, which is also
 * drawn. */
static struct pen_shown bar_label(const struct frame *f,
				  const struct pen_bar *b)
{
	struct pen_shown s = b->shown;
	char *off = strstr(s.s, " +-") ? strstr(s.s, " +-") : strstr(s.s, " (");

	if (off && f->w < frames[0].w)
		*off = '\0';
	return s;
}

/* A missing value has length 0. */
static double bar_end(const struct frame *f, double most, double v)
{
	return px(f, v > 0 && most > 0 ? fmin(v / most, 1) : 0);
}

static void put_bar(struct pen_text *t, const struct frame *f,
		    const struct pen_bar *b, double y, double most)
{
	const double x = bar_end(f, most, b->value.mid);
	const double low = bar_end(f, most, b->value.low);
	const double high = bar_end(f, most, b->value.high);
	const bool spread = b->value.n > 1 && high - low > 0.5;

	pen__text_add(t,
		      "<rect class=\"bar\" x=\"%.1f\" y=\"%.1f\" "
		      "width=\"%.1f\" height=\"18\" style=\"--l:%s;--d:%s\"/>",
		      f->left, y, fmax(1, x - f->left), b->colour.light,
		      b->colour.dark);
	/* a wider line behind makes it stand out */
	for (int i = 0; spread && i < 2; i++)
		pen__text_add(
			t,
			"<path class=\"spread%s\" d=\"M%.1f %.1fV%.1fM%.1f "
			"%.1fH%.1fM%.1f %.1fV%.1f\"/>",
			i ? "" : " under", low, y + 5, y + 13, low, y + 9, high,
			high, y + 5, y + 13);
	pen__text_add(t, "<text x=\"%.1f\" y=\"%.1f\">",
		      (spread ? fmax(x, high) : x) + 6, y + 14);
	pen__put_range(t, bar_label(f, b).s);
	pen__text_add(t, "</text>\n");
}

static bool begins_group(const struct pen_bars *c, size_t i)
{
	return c->bar[i].group[0] &&
	       (!i || strcmp(c->bar[i].group, c->bar[i - 1].group) != 0);
}

static void put_bars(struct pen_text *t, const struct frame *like,
		     const struct pen_bars *c)
{
	struct frame f = *like;
	struct rows r = { .height = 18, .step = 24 };
	double y = 0, names = 0, most = 0;

	f.role = "img";
	f.right = 60; /* for the label of the longest bar */
	f.h = 4;
	for (size_t i = 0; i < c->n; i++) {
		const struct pen_bar *b = &c->bar[i];
		const struct pen_shown label = bar_label(&f, b);

		names = fmax(names, pen__text_width(b->name));
		f.right = fmax(f.right, pen__text_width(label.s) + 14);
		if (isfinite(b->value.high))
			most = fmax(most, b->value.high);
	}
	fit_rows(&f, &r, names);
	for (size_t i = 0; i < c->n; i++)
		f.h += r.step + (begins_group(c, i) ? 30 : 0);
	open_svg(t, &f, c->id, c->title, c->about);
	for (size_t i = 0; i < c->n; i++, y += 24) {
		if (begins_group(c, i)) {
			pen__text_add(t,
				      "<text class=\"axis\" x=\"4\" "
				      "y=\"%.1f\">",
				      y + 20);
			put_cut(t, c->bar[i].group, f.w * 0.88);
			pen__text_add(t, "</text>\n");
			y += 30;
		}
		put_name(t, &f, &r, c->bar[i].name, &y);
		put_bar(t, &f, &c->bar[i], y, most);
	}
	pen__text_add(t, "</svg>\n");
}

void pen__chart_bars(struct pen_text *t, const struct pen_bars *c)
{
	put_bars(t, &frames[0], c);
	put_bars(t, &frames[1], c);
}

static double part_of(const struct pen_series *s, size_t row)
{
	return s->y[row] > 0 && isfinite(s->y[row]) ? s->y[row] : 0;
}

static void put_parts(struct pen_text *t, const struct frame *f,
		      const struct pen_plot *p, size_t row, double y)
{
	double all = 0, x = f->left;

	for (size_t i = 0; i < p->nseries; i++)
		all += part_of(&p->series[i], row);
	for (size_t i = 0; i < p->nseries && all > 0; i++) {
		const struct pen_series *s = &p->series[i];
		const double share = part_of(s, row) / all;

		if (!(share > 0))
			continue;
		pen__text_add(t,
			      "<g class=\"mark\" tabindex=\"-1\" role=\"img\" "
			      "data-row=\"%s-%zu\" style=\"--l:%s;--d:%s\" "
			      "aria-label=\"",
			      p->id, row, s->colour.light, s->colour.dark);
		pen__html(t, s->name);
		pen__text_add(t,
			      ": %s; %s\"><rect x=\"%.1f\" y=\"%.1f\" "
			      "width=\"%.1f\" height=\"26\"/></g>",
			      p->y.show(s->y[row]).s, pen__show_share(share).s,
			      x, y, room_x(f) * share);
		x += room_x(f) * share;
	}
	pen__text_add(t, "\n");
}

static void put_stacks(struct pen_text *t, const struct frame *like,
		       const struct pen_plot *p)
{
	struct frame f = *like;
	struct rows r = { .height = 26, .step = 34 };
	double y = 4, names = 0;

	for (size_t i = 0; i < p->n; i++)
		names = fmax(names, pen__text_width(p->names[i]));
	f.right = 8;
	fit_rows(&f, &r, names);
	f.h = 8 + r.step * (double)p->n;
	open_svg(t, &f, p->id, p->title, p->about);
	for (size_t i = 0; i < p->n; i++, y += 34) {
		put_name(t, &f, &r, p->names[i], &y);
		put_parts(t, &f, p, i, y);
	}
	pen__text_add(t, "</svg>\n");
}

/* ---- figures ---- */

static void put_legend(struct pen_text *t, const struct pen_plot *p)
{
	pen__text_add(t, "<ul class=\"legend\">");
	for (size_t i = 0; i < p->nseries; i++) {
		pen__text_add(t,
			      "<li><span class=\"scale\"><i style=\"--l:%s;"
			      "--d:%s\"></i></span>",
			      p->series[i].colour.light,
			      p->series[i].colour.dark);
		pen__html(t, p->series[i].name);
		pen__text_add(t, "</li>");
	}
	pen__text_add(t, "</ul>\n");
}

#define MOST_COLUMNS 16

/* A row is a point with its position along the axis, or a bar with its name. */
static void put_row(struct pen_text *t, const struct frame *f,
		    const struct pen_plot *p, size_t row, size_t nseries)
{
	if (p->kind == PEN_STACKED) {
		pen__table_row(t, p->id, row);
		pen__table_text(t, p->names[row]);
	} else {
		const double at = place_x(f, p, row);

		pen__text_add(t, "<tr data-p=\"%.5f\">", at > 0 ? at : 0);
		pen__table_number(t, p->x_at[row], p->x.show(p->x_at[row]));
	}
	for (size_t s = 0; s < nseries; s++) {
		const double v[] = { p->series[s].y[row],
				     p->low ? p->low[row] : 0,
				     p->low ? p->high[row] : 0 };

		for (size_t k = 0; k < (!s && p->low ? 3 : 1); k++)
			pen__table_number(t, v[k], p->y.show(v[k]));
	}
	pen__table_row_end(t);
}

static void put_numbers(struct pen_text *t, const struct pen_plot *p)
{
	static const char *const of[] = { "lowest", "highest" };
	const bool lines = p->kind == PEN_LINES;
	const size_t most = MOST_COLUMNS - 3; /* besides x, lowest, highest */
	const size_t n = p->nseries < most ? p->nseries : most;
	const char *names[MOST_COLUMNS + 1] = { NULL };
	char name[MOST_COLUMNS][64];
	struct frame f = frames[0];
	size_t at = 0;

	if (lines)
		fit_plot(&f, p);
	snprintf(name[at], sizeof(name[0]), "%s%s", lines ? "#" : "",
		 lines ? p->x.label : "");
	names[at] = name[at];
	for (size_t s = 0; s < n; s++)
		for (size_t k = 0; k < (!s && p->low ? 3 : 1); k++) {
			snprintf(name[++at], sizeof(name[0]), "#%s",
				 k ? of[k - 1] : p->series[s].name);
			names[at] = name[at];
		}
	pen__text_add(t, "<details id=\"%s\"><summary>Numbers</summary>\n",
		      p->id);
	pen__table_open(t, p->title, names);
	for (size_t i = 0; i < p->n; i++)
		put_row(t, &f, p, i, n);
	pen__table_close(t);
	pen__text_add(t, "</details>\n");
}

void pen__chart_plot(struct pen_text *t, const struct pen_plot *p)
{
	pen__text_add(t, "<figure>\n<h3>");
	pen__html(t, p->title);
	pen__text_add(t, "</h3>\n");
	for (size_t i = 0; i < 2; i++)
		(p->kind == PEN_STACKED ? put_stacks : put_lines)(t, &frames[i],
								  p);
	if (p->nseries > 1)
		put_legend(t, p);
	pen__text_add(t, "<figcaption>");
	pen__html(t, p->about);
	pen__text_add(t, "</figcaption>\n");
	put_numbers(t, p);
	pen__text_add(t, "</figure>\n");
}
