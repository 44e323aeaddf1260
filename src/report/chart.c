/* Charts: where things go, and SVG of it. */
#include "report/chart_int.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- colours ---- */

static double gamma_of(double v)
{
	return v <= 0.0031308 ? 12.92 * v : 1.055 * pow(v, 1 / 2.4) - 0.055;
}

/* Lightness, chroma and hue of the OKLab space; false: no screen has it. */
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
	to_hex(0.32 + 0.50 * at, (300 - 200 * at) * M_PI / 180, c.light);
	to_hex(0.46 + 0.46 * at, (300 - 200 * at) * M_PI / 180, c.dark);
	return c;
}

/* ---- frames ---- */

const struct pen_frame pen__frame_wide = {
	.w = 860,
	.h = 460,
	.left = 76,
	.right = 24,
	.top = 34,
	.bottom = 56,
	.most_r = 14,
	.xticks = 8,
	.yticks = 6,
	.kind = "wide",
	.role = "group",
};
const struct pen_frame pen__frame_narrow = {
	.w = 360,
	.h = 380,
	.left = 56,
	.right = 22,
	.top = 34,
	.bottom = 50,
	.most_r = 10,
	.xticks = 4,
	.yticks = 6,
	.kind = "narrow",
	.role = "group",
};

static double plot_x(const struct pen_frame *f, double v)
{
	return f->left + (f->w - f->left - f->right) * v / f->xmax;
}

static double plot_y(const struct pen_frame *f, double v)
{
	return f->h - f->bottom - (f->h - f->top - f->bottom) * v / f->ymax;
}

/* 1, 2 or 5 times a power of ten, so that about n steps reach max. */
double pen__chart_step(double max, int n)
{
	const double raw = max > 0 ? max / n : 1;
	const double ten = pow(10, floor(log10(raw)));
	const double m = raw / ten;

	return ten * (m <= 1 ? 1 : m <= 2 ? 2 : m <= 5 ? 5 : 10);
}

/* A number of an axis: no zeros at the end that say nothing. */
struct pen_shown pen__chart_tick(const struct pen_axis *a, double v)
{
	struct pen_shown s = a->show(v);
	char *dot = strchr(s.s, '.'), *end;

	if (!(v > 0))
		return (struct pen_shown){ "0" };
	if (!dot)
		return s;
	end = dot + 1 + strspn(dot + 1, "0123456789");
	for (dot = end; dot[-1] == '0'; dot--)
		;
	dot -= dot[-1] == '.';
	memmove(dot, end, strlen(end) + 1);
	return s;
}

static void put_axis_x(struct pen_text *t, const struct pen_frame *f,
		       const struct pen_axis *a, double step)
{
	const double y0 = f->h - f->bottom;

	for (int i = 0; i <= MOST_TICKS && i * step <= f->xmax * 1.0001; i++) {
		const double v = i * step;

		pen__text_add(t,
			      "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" "
			      "y1=\"%.1f\" y2=\"%.1f\"/><text x=\"%.1f\" "
			      "y=\"%.1f\" text-anchor=\"middle\">%s</text>\n",
			      plot_x(f, v), plot_x(f, v), f->top, y0,
			      plot_x(f, v), y0 + 18, pen__chart_tick(a, v).s);
	}
	pen__text_add(t,
		      "<text class=\"axis\" x=\"%.1f\" y=\"%.1f\" "
		      "text-anchor=\"middle\">",
		      (f->left + f->w - f->right) / 2, f->h - 10);
	pen__html(t, a->label);
	pen__text_add(t, "</text>\n");
}

static void put_axis_y(struct pen_text *t, const struct pen_frame *f,
		       const struct pen_axis *a, double step)
{
	for (int i = 0; i <= MOST_TICKS && i * step <= f->ymax * 1.0001; i++) {
		const double v = i * step;

		pen__text_add(t,
			      "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" "
			      "y1=\"%.1f\" y2=\"%.1f\"/><text x=\"%.1f\" "
			      "y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
			      f->left, f->w - f->right, plot_y(f, v),
			      plot_y(f, v), f->left - 8, plot_y(f, v) + 4,
			      pen__chart_tick(a, v).s);
	}
	pen__text_add(t, "<text class=\"axis\" x=\"4\" y=\"%.1f\">",
		      f->top - 18);
	pen__html(t, a->label);
	pen__text_add(t, "</text>\n");
}

void pen__chart_open(struct pen_text *t, const struct pen_frame *f,
		     const char *id, const char *title, const char *about)
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

/* ---- scatter ---- */

static void put_mark(struct pen_text *t, const struct pen_frame *f,
		     const struct pen_chart *c, size_t i)
{
	const struct pen_mark *m = &c->mark[i];
	const double r = fmax(3.5, f->most_r * sqrt(m->area));
	const double x = plot_x(f, m->x), y = plot_y(f, m->y);

	pen__text_add(t,
		      "<g class=\"mark%s\" tabindex=\"%d\" role=\"img\" "
		      "data-row=\"%s-%zu\" style=\"--l:%s;--d:%s\" "
		      "aria-label=\"",
		      m->hollow ? " hollow" : "", i ? -1 : 0, c->rows, m->row,
		      m->colour.light, m->colour.dark);
	pen__html(t, m->words);
	pen__text_add(t, "\">");
	if (m->square) /* of the same area as the circle */
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

/* Where a note goes: towards the middle, above unless there is no room; one
 * after the other, so that they do not cover one another. */
static void put_note(struct pen_text *t, const struct pen_frame *f,
		     const struct pen_mark *m, double *last_y)
{
	const double x = plot_x(f, m->x), y = plot_y(f, m->y);
	const bool left = x > (f->left + f->w - f->right) / 2;
	double ty = y - 24;

	if (ty < f->top + 10)
		ty = y + 34;
	if (fabs(ty - *last_y) < 16)
		ty = *last_y + 18;
	*last_y = ty;
	pen__text_add(t,
		      "<line class=\"lead\" x1=\"%.1f\" y1=\"%.1f\" "
		      "x2=\"%.1f\" y2=\"%.1f\"/><text class=\"note\" "
		      "x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">",
		      x, y, x + (left ? -16 : 16), ty - 4,
		      x + (left ? -20 : 20), ty, left ? "end" : "start");
	pen__html(t, m->note);
	pen__text_add(t, "</text>\n");
}

static void put_scatter(struct pen_text *t, const struct pen_frame *like,
			const struct pen_chart *c)
{
	struct pen_frame f = *like;
	const double xstep = pen__chart_step(c->x.max, f.xticks);
	const double ystep = pen__chart_step(c->y.max, f.yticks);
	double last_y = -1000;

	f.xmax = xstep * ceil(c->x.max * 1.02 / xstep);
	f.ymax = ystep * ceil(c->y.max * 1.02 / ystep);
	if (!(f.xmax > 0))
		f.xmax = xstep;
	if (!(f.ymax > 0))
		f.ymax = ystep;
	pen__chart_open(t, &f, c->id, c->title, c->about);
	put_axis_x(t, &f, &c->x, xstep);
	put_axis_y(t, &f, &c->y, ystep);
	for (size_t i = 0; i < c->n; i++)
		put_mark(t, &f, c, i);
	for (size_t i = 0; i < c->n; i++)
		if (c->mark[i].note)
			put_note(t, &f, &c->mark[i], &last_y);
	pen__text_add(t, "</svg>\n");
}

void pen__chart_scatter(struct pen_text *t, const struct pen_chart *c)
{
	put_scatter(t, &pen__frame_wide, c);
	put_scatter(t, &pen__frame_narrow, c);
}

/* ---- bars ---- */

static void put_bar(struct pen_text *t, const struct pen_frame *f,
		    const struct pen_bar *b, double y)
{
	/* what has no number is as short as nothing */
	const double x = plot_x(f, b->value > 0 ? b->value : 0);

	pen__text_add(t, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">",
		      f->left - 8, y + 14);
	pen__html(t, b->name);
	pen__text_add(t,
		      "</text><rect class=\"bar\" x=\"%.1f\" y=\"%.1f\" "
		      "width=\"%.1f\" height=\"18\" style=\"--l:%s;--d:%s\"/>"
		      "<text x=\"%.1f\" y=\"%.1f\">%s</text>\n",
		      f->left, y, fmax(1, x - f->left), b->colour.light,
		      b->colour.dark, x + 6, y + 14, b->shown.s);
}

static bool begins_group(const struct pen_bars *c, size_t i)
{
	return !i || strcmp(c->bar[i].group, c->bar[i - 1].group) != 0;
}

static void put_bars(struct pen_text *t, const struct pen_frame *like,
		     const struct pen_bars *c)
{
	struct pen_frame f = *like;
	double y = 0;

	f.role = "img";
	f.left = 64;
	for (size_t i = 0; i < c->n; i++) /* 7: a letter, about */
		f.left =
			fmax(f.left, 7.0 * (double)strlen(c->bar[i].name) + 12);
	f.right = 84; /* for what stands behind the longest */
	f.h = 4;
	for (size_t i = 0; i < c->n; i++) {
		f.h += begins_group(c, i) ? 54 : 24;
		f.xmax = fmax(f.xmax, c->bar[i].value);
	}
	if (!(f.xmax > 0))
		f.xmax = 1;
	pen__chart_open(t, &f, c->id, c->title, c->about);
	for (size_t i = 0; i < c->n; i++) {
		if (begins_group(c, i)) {
			pen__text_add(t,
				      "<text class=\"axis\" x=\"4\" "
				      "y=\"%.1f\">",
				      y + 20);
			pen__html(t, c->bar[i].group);
			pen__text_add(t, "</text>\n");
			y += 30;
		}
		put_bar(t, &f, &c->bar[i], y);
		y += 24;
	}
	pen__text_add(t, "</svg>\n");
}

void pen__chart_bars(struct pen_text *t, const struct pen_bars *c)
{
	put_bars(t, &pen__frame_wide, c);
	put_bars(t, &pen__frame_narrow, c);
}
