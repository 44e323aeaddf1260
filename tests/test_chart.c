/*
 * Charts: ticks are 1, 2 or 5 times a power of ten, few, distinct and separate,
 * for any range; the output contains no NaN.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/chart_int.h"
#include "test.h"

static bool is_nice(double v)
{
	double m = fabs(v);

	while (m >= 9.9999)
		m /= 10;
	while (m > 0 && m < 0.99999)
		m *= 10;
	return !(m > 0) || fabs(m - 1) < 1e-4 || fabs(m - 2) < 1e-4 ||
	       fabs(m - 5) < 1e-4;
}

/* No label occurs twice, and none touches another. */
static void check_labels(const struct pen_scale *s, double room, bool across)
{
	CHECK(s->n >= 1 && s->n <= PEN_MOST_TICKS);
	CHECK(isfinite(s->low) && isfinite(s->high) && s->high > s->low);
	for (size_t i = 0; i < s->n; i++) {
		const double at = pen__scale_place(s, s->at[i]);

		CHECK(at > -1e-6 && at < 1 + 1e-6);
		for (size_t k = 0; k < i; k++) {
			const double apart =
				room * fabs(at - pen__scale_place(s, s->at[k]));
			const double need =
				across ? (pen__text_width(s->label[i].s) +
					  pen__text_width(s->label[k].s)) /
						 2
				       : 14;

			CHECK(strcmp(s->label[i].s, s->label[k].s) != 0);
			CHECK(apart > need);
		}
	}
}

static struct pen_shown show_same(double v)
{
	(void)v;
	return (struct pen_shown){ "same" };
}

static struct pen_scale fit(const double *v, size_t n, unsigned flags,
			    struct pen_shown (*show)(double), double room)
{
	const struct pen_axis a = { "x", show, 0 };
	struct pen_extent e = { 0 };
	struct pen_scale s;

	for (size_t i = 0; i < n; i++)
		pen__extent_add(&e, v[i]);
	pen__scale_fit(&s, &a, &e, room, flags);
	check_labels(&s, room, flags & PEN_ACROSS);
	return s;
}

static void every_range(void)
{
	static const double ends[][2] = {
		{ 0, 0 },	 { 1, 1 },	    { 0, 1 },
		{ 0, 0.3 },	 { 0, 7 },	    { 0, 9.99 },
		{ 3, 1024 },	 { 0, 1e-9 },	    { 1e-12, 3e-9 },
		{ 1e9, 1e12 },	 { 0, 1e300 },	    { 0, 1.7e308 },
		{ 0, 5e-324 },	 { 1e-308, 1e-9 },  { -1, 1 },
		{ -5, -1 },	 { -1e300, 1e300 }, { -0.02, 0.001 },
		{ NAN, NAN },	 { NAN, 3 },	    { -INFINITY, INFINITY },
		{ 2, INFINITY }, { 0, 50 },	    { 0, 100000.5 },
	};
	static struct pen_shown (*const show[])(double) = {
		pen__show_whole, pen__show_count,   pen__show_time,
		pen__show_bytes, pen__show_percent, pen__show_number,
		show_same,
	};
	static const double rooms[] = { 10, 60, 240, 780 };

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		for (size_t k = 0; k < sizeof(show) / sizeof(show[0]); k++)
			for (unsigned flags = 0; flags < 32; flags++)
				fit(ends[i], 2, flags & 7, show[k],
				    rooms[flags / 8]);
}

static void linear(void)
{
	const double whole[] = { 1, 2, 4 }, parts[] = { 1, 2, 4.5 };
	const double none[] = { 0, 0 }, below[] = { -3, 8 };
	struct pen_scale s =
		fit(whole, 3, PEN_ACROSS | PEN_TIGHT, pen__show_number, 780);

	CHECK_EQ(s.n, 4); /* 1 to 4: no halves of threads */
	CHECK_STR(s.label[0].s, "1");
	CHECK(fabs(s.high - 4) < 1e-9);
	s = fit(parts, 3, PEN_ACROSS | PEN_TIGHT, pen__show_number, 780);
	CHECK_STR(s.label[1].s, "1");
	CHECK(fabs(s.high - 4.5) < 1e-9);
	s = fit(none, 2, 0, pen__show_count, 240);
	CHECK_EQ(s.n, 2);
	CHECK_STR(s.label[1].s, "1");
	s = fit(below, 2, 0, pen__show_number, 240);
	CHECK(s.low <= -3 && s.high >= 8);
	CHECK(s.label[0].s[0] == '-');
	s = fit(whole, 1, PEN_ACROSS | PEN_TIGHT, pen__show_whole, 300);
	CHECK_EQ(s.n, 3); /* one accelerator: 0, 1, 2, not 0, 0, 1 */
	CHECK(fabs(pen__scale_place(&s, 1) - 0.5) < 1e-9);
}

static void steps(void)
{
	for (double most = 1e-7; most < 1e13; most *= 1.37) {
		const double v[] = { most / 3, most };
		const struct pen_scale s = fit(v, 2, 0, pen__show_count, 240);

		for (size_t i = 1; i < s.n; i++)
			CHECK(is_nice(s.at[i] - s.at[i - 1]));
		CHECK(s.high >= most);
		CHECK(most < 1 || s.n >= 3);
	}
}

static void logarithmic(void)
{
	const double v[] = { 0, -1, 1e-6, 0.03, NAN }, none[] = { 0, -2 };
	const double near[] = { 3, 4 }, doubled[] = { 1, 1024 };
	struct pen_scale s = fit(v, 5, PEN_LOG, pen__show_time, 240);

	CHECK(s.log);
	CHECK(fabs(s.low + 6) < 1e-9 && fabs(s.high + 1) < 1e-9);
	CHECK_EQ(s.n, 6);
	CHECK_STR(s.label[0].s, "1 us");
	CHECK(isnan(pen__scale_place(&s, 0)));
	CHECK(isnan(pen__scale_place(&s, -1)));
	CHECK(isnan(pen__scale_place(&s, (double)NAN)));
	CHECK(fabs(pen__scale_place(&s, 1e-6)) < 1e-9);
	s = fit(none, 2, PEN_LOG, pen__show_time, 240);
	CHECK(!s.log);
	s = fit(near, 2, PEN_LOG, pen__show_number, 240);
	CHECK_EQ(s.n, 4); /* 1, 2, 5, 10 */
	s = fit(doubled, 2, PEN_LOG | PEN_ACROSS | PEN_TIGHT, pen__show_whole,
		300);
	CHECK(fabs(pen__scale_place(&s, 1024) - 1) < 1e-9);
}

static void places(void)
{
	const double v[] = { 0, 100 };
	const struct pen_scale s = fit(v, 2, PEN_TIGHT, pen__show_percent, 240);

	CHECK(fabs(pen__scale_place(&s, 50) - 0.5) < 1e-9);
	CHECK(pen__scale_place(&s, 1e300) < 1.1);
	CHECK(pen__scale_place(&s, -1e300) > -0.1);
	CHECK(isnan(pen__scale_place(&s, (double)INFINITY)));
}

/* The output has visible marks and no NaN. */
static void drawn(void)
{
	static const char *const names[] = { "<a & b>" };
	const double x[] = { 1, 2, NAN, 4 }, y[] = { 5, NAN, 3, INFINITY };
	const struct pen_series one = { "y", y, pen__colour_of(0) };
	const struct pen_bar bars[] = {
		{ "",
		  "a",
		  { .mid = NAN, .low = NAN, .high = NAN, .n = 2 },
		  { "-" },
		  pen__colour_of(0) },
		{ "g",
		  "a name that is far too long for the width of a phone",
		  { .mid = 1, .low = 0, .high = INFINITY, .n = 3 },
		  { "1 (0..2)" },
		  pen__colour_of(1) },
	};
	const struct pen_mark mark = {
		.x = NAN, .y = 1, .words = "w", .note = "n"
	};
	struct pen_text t = { 0 };

	for (int kind = 0; kind < 4; kind++)
		pen__chart_plot(
			&t, &(struct pen_plot){
				    .kind = kind / 2 ? PEN_STACKED : PEN_LINES,
				    .id = "p",
				    .title = "t",
				    .about = "a",
				    .x = { "x", pen__show_number, 0 },
				    .y = { "y", pen__show_number, 0 },
				    .log_y = kind % 2,
				    .x_at = x,
				    .names = names,
				    .n = kind / 2 ? 1 : 4,
				    .series = &one,
				    .nseries = 1,
			    });
	/* a single point is drawn as a dot; h0 has no length, but round ends */
	CHECK(strstr(t.p, "class=\"dots\""));
	CHECK(strstr(t.p, "h0"));
	pen__chart_bars(&t, &(struct pen_bars){ "b", "t", "a", bars, 2 });
	CHECK(strstr(t.p, "far too long"));
	pen__chart_scatter(&t, &(struct pen_chart){
				       .id = "c",
				       .rows = "r",
				       .title = "t",
				       .about = "a",
				       .x = { "x", pen__show_number, 0 },
				       .y = { "y", pen__show_number, 0 },
				       .mark = &mark,
				       .n = 1,
			       });
	CHECK(!t.failed);
	CHECK(!strstr(t.p, "\"nan") && !strstr(t.p, " nan"));
	CHECK(!strstr(t.p, "\"inf") && !strstr(t.p, " inf"));
	CHECK(!strstr(t.p, "<a "));
	pen__text_fini(&t);
}

/* Notes of marks at the same position are stacked, inside the chart. */
static void notes(void)
{
	struct pen_mark mark[6];
	struct pen_text t = { 0 };
	double y[6];
	size_t n = 0;
	char *end;

	for (size_t i = 0; i < 6; i++)
		mark[i] = (struct pen_mark){ .x = 9,
					     .y = 9,
					     .area = 1,
					     .words = "w",
					     .note = "a note, and a long one" };
	pen__chart_scatter(&t, &(struct pen_chart){
				       .id = "c",
				       .rows = "r",
				       .title = "t",
				       .about = "a",
				       .x = { "x", pen__show_number, 0 },
				       .y = { "y", pen__show_number, 0 },
				       .mark = mark,
				       .n = 6,
			       });
	end = strstr(t.p, "</svg>");
	CHECK(end);
	for (char *p = t.p; (p = strstr(p, "class=\"note\"")) && p < end; p++)
		if (n < 6)
			y[n++] = strtod(strstr(p, " y=\"") + 4, NULL);
	CHECK_EQ(n, 6);
	for (size_t i = 0; i < n; i++) {
		CHECK(y[i] > 34 && y[i] < 460);
		for (size_t k = 0; k < i; k++)
			CHECK(fabs(y[i] - y[k]) > 16);
	}
	pen__text_fini(&t);
}

int main(void)
{
	every_range();
	linear();
	steps();
	logarithmic();
	places();
	drawn();
	notes();
	return test_end();
}
