/* Numbers as people read them: see show.h. */
#include "base/show.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct pen_shown unknown = { "-" };

static struct pen_shown fixed(double v, int digits, const char *unit)
{
	struct pen_shown out;

	snprintf(out.s, sizeof(out.s), "%.*f%s", digits, v, unit);
	return out;
}

/* Decimals that give v three digits; at most `most`. */
static int decimals(double v, int most)
{
	const int n = fabs(v) < 9.995 ? 2 : fabs(v) < 99.95 ? 1 : 0;

	return n < most ? n : most;
}

static struct pen_shown scaled(double v, const char *const *unit, size_t n)
{
	size_t i = 0;

	if (!(fabs(v) < 1e30))
		return unknown;
	while (fabs(v) >= 999.5 && i + 1 < n) {
		v /= 1000;
		i++;
	}
	/* an integer stays one; three samples per second can be 2.83 */
	return fixed(v, i == 0 && rint(v) == v ? 0 : decimals(v, 2), unit[i]);
}

struct pen_shown pen__show_count(double n)
{
	static const char *const unit[] = { "", " k", " M", " G", " T" };

	return scaled(n, unit, 5);
}

struct pen_shown pen__show_bytes(double n)
{
	static const char *const unit[] = { " B",  " kB", " MB",
					    " GB", " TB", " PB" };

	return scaled(n, unit, 6);
}

/* "2 min 05 s", "3 h 20 min", from entire seconds. */
static struct pen_shown clock_time(double s)
{
	struct pen_shown out;
	const double minutes = floor(s / 60);

	if (s < 7200)
		snprintf(out.s, sizeof(out.s), "%.0f min %02.0f s", minutes,
			 fmod(s, 60));
	else
		snprintf(out.s, sizeof(out.s), "%.0f h %02.0f min",
			 floor(minutes / 60), fmod(minutes, 60));
	return out;
}

struct pen_shown pen__show_time(double s)
{
	const double a = fabs(s);

	if (!(a < 1e15))
		return unknown;
	if (!(a > 0))
		return fixed(0, 0, " s");
	/* by the rounded value: never "1000 us" */
	if (a < 0.9995e-6)
		return fixed(s * 1e9, a < 9.95e-9, " ns");
	if (a < 0.9995e-3)
		return fixed(s * 1e6, decimals(s * 1e6, 1), " us");
	if (a < 0.9995)
		return fixed(s * 1e3, decimals(s * 1e3, 1), " ms");
	if (s < 119.5)
		return fixed(s, decimals(s, 2), " s");
	return clock_time(rint(s));
}

struct pen_shown pen__show_percent(double v)
{
	if (!isfinite(v))
		return unknown;
	/* 0 % and 100 % are shown only for exactly that */
	if (v >= 99.95 && v < 100)
		return fixed(fmin(v, 99.99), 2, " %");
	if (v > 0 && v < 0.1)
		return fixed(v, v < 0.01 ? 3 : 2, " %");
	return fixed(v, rint(v) == v ? 0 : 1, " %");
}

struct pen_shown pen__show_share(double v)
{
	v *= 100;
	/* where an integer percentage would lose too much */
	if (fabs(v) < 9.95 || (v >= 99.5 && v < 100))
		return pen__show_percent(v);
	return isfinite(v) ? fixed(v, 0, " %") : unknown;
}

struct pen_shown pen__show_grouped(uint64_t n)
{
	struct pen_shown out;
	char digits[32];
	const int len = snprintf(digits, sizeof(digits), "%" PRIu64, n);
	size_t to = 0;

	for (int i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			out.s[to++] = ',';
		out.s[to++] = digits[i];
	}
	out.s[to] = '\0';
	return out;
}

struct pen_shown pen__show_whole(double v)
{
	struct pen_shown out;

	if (!(fabs(v) < 1e18))
		return unknown;
	snprintf(out.s, sizeof(out.s), "%s%.40s", rint(v) < 0 ? "-" : "",
		 pen__show_grouped((uint64_t)rint(fabs(v))).s);
	return out;
}

struct pen_shown pen__show_number(double v)
{
	int digits = 1;

	if (!isfinite(v))
		return unknown;
	if (fabs(v) >= 999.5)
		return pen__show_whole(rint(v));
	/* two significant digits, or ticks of an axis look alike */
	for (double at = 0.995; digits < 6 && fabs(v) < at; at /= 10)
		digits++;
	if (!(fabs(v) > 0))
		digits = 1;
	return fixed(v, fabs(v) < 9.95 ? digits : 0, "");
}

struct pen_shown pen__show_change(double share)
{
	const double times = 1 + share;
	struct pen_shown out;

	if (!isfinite(share))
		return unknown;
	if (share < 1 && (share > -0.9 || !(times > 0)))
		snprintf(out.s, sizeof(out.s), "%+.1f %%", 100 * share);
	else if (times < 100)
		snprintf(out.s, sizeof(out.s), "x %.*f",
			 times < 0.1 ? (int)ceil(-log10(times)) + 1
				     : decimals(times, 2),
			 times);
	else
		snprintf(out.s, sizeof(out.s), "x %.40s",
			 pen__show_whole(times).s);
	return out;
}

struct pen_shown pen__show_counted(uint64_t n, const char *what)
{
	const size_t len = strlen(what);
	const char *end = len > 3 && !strcmp(what + len - 3, "tch") ? "es"
								    : "s";
	struct pen_shown out;

	snprintf(out.s, sizeof(out.s), "%.24s %.20s%s", pen__show_grouped(n).s,
		 what, n == 1 ? "" : end);
	return out;
}
