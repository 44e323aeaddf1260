/* Scales: see chart_int.h. Text widths are estimates, as there is no font to
 * measure. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/chart_int.h"

#define LETTER 7.0 /* width at 12 pixels in a wide font */
#define LARGEST 1e300
#define SMALLEST 1e-290 /* a smaller range counts as empty */

double pen__text_width(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80; /* UTF-8 */
	return LETTER * (double)n;
}

void pen__extent_add(struct pen_extent *e, double v)
{
	if (!isfinite(v))
		return;
	e->least = e->n ? fmin(e->least, v) : v;
	e->most = e->n ? fmax(e->most, v) : v;
	if (v > 0 && (!(e->positive > 0) || v < e->positive))
		e->positive = v;
	e->broken |= v != floor(v);
	e->n++;
}

/* Rounds up to 1, 2 or 5 times a power of ten. */
static double nice(double raw)
{
	const double ten = pow(10, floor(log10(raw)));
	const double m = raw / ten;

	return ten * (m < 1.0001 ? 1 : m < 2.0001 ? 2 : m < 5.0001 ? 5 : 10);
}

/* A label without trailing zeros. */
static struct pen_shown label_of(const struct pen_axis *a, double v)
{
	struct pen_shown s = a->show(fabs(v)), minus;
	char *dot = strchr(s.s, '.'), *end;

	if (!(fabs(v) > 0))
		return (struct pen_shown){ "0" };
	if (dot) {
		end = dot + 1 + strspn(dot + 1, "0123456789");
		for (dot = end; dot[-1] == '0'; dot--)
			;
		dot -= dot[-1] == '.';
		memmove(dot, end, strlen(end) + 1);
	}
	if (v > 0)
		return s;
	snprintf(minus.s, sizeof(minus.s), "-%.46s", s.s);
	return minus;
}

/* False if there are too many ticks. */
static bool add_tick(struct pen_scale *s, const struct pen_axis *a, double v)
{
	if (s->n == PEN_MOST_TICKS)
		return false;
	s->at[s->n] = v;
	s->label[s->n++] = label_of(a, v);
	return true;
}

static bool readable(const struct pen_scale *s, double room, unsigned flags)
{
	for (size_t i = 1; i < s->n; i++) {
		const double apart = room * (pen__scale_place(s, s->at[i]) -
					     pen__scale_place(s, s->at[i - 1]));
		const double both = pen__text_width(s->label[i].s) +
				    pen__text_width(s->label[i - 1].s);

		if (apart < (flags & PEN_ACROSS ? both / 2 + 10 : 18))
			return false;
		for (size_t k = 0; k < i; k++)
			if (!strcmp(s->label[i].s, s->label[k].s))
				return false;
	}
	return true;
}

static bool try_step(struct pen_scale *s, const struct pen_axis *a, double step)
{
	const double from = ceil(s->low / step - 1e-6);
	const double to = floor(s->high / step + 1e-6);

	s->n = 0;
	for (double i = from; i <= to; i++)
		if (!add_tick(s, a, i * step))
			return false;
	return true;
}

static void fit_linear(struct pen_scale *s, const struct pen_axis *a,
		       const struct pen_extent *e, double room, unsigned flags)
{
	/* counts such as epochs start at 1; a single one is centred */
	const bool counts = flags & PEN_TIGHT && flags & PEN_ACROSS &&
			    !e->broken && e->least > 0 && !(a->max > 0);
	const bool one = counts && !(e->most > e->least);
	bool tight = flags & PEN_TIGHT || a->max > 0;
	const double per = flags & PEN_ACROSS ? 64 : 32;
	double low = fmax(fmin(0, e->least), -LARGEST);
	double high = fmin(fmax(0, a->max > 0 ? a->max : e->most), LARGEST);
	double step;

	if (one)
		high = fmin(e->most + 1, LARGEST);
	if (!(high - low > SMALLEST)) {
		high = low + 1;
		tight = true;
	}
	step = nice((one ? 2 : high - low) /
		    fmin(8, fmax(2, floor(room / per))));
	if (!e->broken && step < 1)
		step = 1;
	for (int tries = 0; tries < 12; tries++, step = nice(step * 1.5)) {
		s->low = low < 0  ? step * floor(low * 1.02 / step)
			 : one	  ? step * floor((e->least - 1) / step)
			 : counts ? e->least
				  : 0;
		s->high = tight ? high : step * ceil(high * 1.02 / step);
		if (try_step(s, a, step) && readable(s, room, flags))
			return;
	}
	s->n = 0; /* a single label always fits */
	add_tick(s, a, s->high);
}

/* every: 0: ticks at 1, 2 and 5 of each decade, else one per `every` decades */
static bool try_decades(struct pen_scale *s, const struct pen_axis *a,
			int every)
{
	static const double of[] = { 1, 2, 5 };

	s->n = 0;
	for (double e = floor(s->low); e <= s->high; e += every ? every : 1)
		for (int i = 0; i < (every ? 1 : 3); i++) {
			const double at = e + log10(of[i]);

			if (at > s->low - 1e-9 && at < s->high + 1e-9 &&
			    !add_tick(s, a, of[i] * pow(10, e)))
				return false;
		}
	return true;
}

static void fit_decades(struct pen_scale *s, const struct pen_axis *a,
			double room, unsigned flags)
{
	int every = s->high - s->low > 2;

	while (!try_decades(s, a, every) || !readable(s, room, flags))
		every++;
}

static void fit_log(struct pen_scale *s, const struct pen_axis *a,
		    const struct pen_extent *e, double room, unsigned flags)
{
	const double low = log10(fmin(fmax(e->positive, SMALLEST), LARGEST));
	const double high = log10(fmin(e->most, LARGEST));

	s->low = low;
	s->high = high;
	if (flags & PEN_TIGHT && high > low)
		fit_decades(s, a, room, flags);
	if (s->n > 1)
		return;
	s->low = floor(low + 1e-9);
	s->high = fmax(ceil(high - 1e-9), s->low + 1);
	fit_decades(s, a, room, flags);
}

void pen__scale_fit(struct pen_scale *s, const struct pen_axis *a,
		    const struct pen_extent *e, double room, unsigned flags)
{
	*s = (struct pen_scale){ .log = flags & PEN_LOG && e->positive > 0 };
	(s->log ? fit_log : fit_linear)(s, a, e, room, flags);
}

double pen__scale_place(const struct pen_scale *s, double v)
{
	if (!isfinite(v) || (s->log && !(v > 0)))
		return (double)NAN;
	v = ((s->log ? log10(v) : v) - s->low) / (s->high - s->low);
	return v < -0.05 ? -0.05 : v > 1.05 ? 1.05 : v;
}
