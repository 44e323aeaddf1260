/* The frame of a page, its tables, and numbers in it. */
#include "report/page.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static void put(struct pen_text *t, const char *s)
{
	pen__text_put(t, s, strlen(s));
}

void pen__html(struct pen_text *t, const char *s)
{
	for (size_t n; *s; s += n ? n : 1) {
		const unsigned char c = (unsigned char)*s;

		n = c == '\n' || c == '\t' ? 1 : pen__plain_len(s);
		if (c == '<')
			put(t, "&lt;");
		else if (c == '>')
			put(t, "&gt;");
		else if (c == '&')
			put(t, "&amp;");
		else if (c == '"')
			put(t, "&quot;");
		else if (c == '\'')
			put(t, "&#39;");
		else if (!n)
			put(t, "&#xfffd;");
		else
			pen__text_put(t, s, n);
	}
}

void pen__page_open(struct pen_text *t, const char *title)
{
	put(t, "<!doctype html>\n<html lang=\"en\">\n<head>\n"
	       "<meta charset=\"utf-8\">\n"
	       "<meta name=\"viewport\" "
	       "content=\"width=device-width, initial-scale=1\">\n"
	       "<meta name=\"color-scheme\" content=\"light dark\">\n"
	       "<meta http-equiv=\"Content-Security-Policy\" "
	       "content=\"default-src 'none'; img-src data:; "
	       "style-src 'unsafe-inline'; "
	       "script-src 'unsafe-inline'\">\n"
	       "<link rel=\"icon\" href=\"data:,\">\n<title>");
	pen__html(t, title);
	put(t, "</title>\n<style>\n");
	put(t, pen__page_css);
	put(t, "</style>\n</head>\n<body>\n<main>\n");
}

void pen__page_close(struct pen_text *t)
{
	put(t, "</main>\n<div id=\"tip\" role=\"status\" aria-live=\"polite\" "
	       "hidden></div>\n<script>\n");
	put(t, pen__page_js);
	put(t, "</script>\n</body>\n</html>\n");
}

/* ---- numbers; what is none, because a file lacks it, is nothing ---- */

/* What is not known has no digits. */
static const struct pen_shown unknown = { "-" };

static struct pen_shown scaled(double n, const char *const *unit, size_t nunits)
{
	struct pen_shown out = { "" };
	size_t i = 0;
	int digits;

	if (!(fabs(n) < 1e30))
		return unknown;
	while (fabs(n) >= 999.5 && i + 1 < nunits) {
		n /= 1000;
		i++;
	}
	/* a whole number stays one; three samples a second are 2.83 */
	digits = i == 0 && rint(n) == n ? 0
		 : fabs(n) < 9.995	? 2
		 : fabs(n) < 99.95	? 1
					: 0;
	snprintf(out.s, sizeof(out.s), "%.*f%s", digits, n, unit[i]);
	return out;
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

struct pen_shown pen__show_time(double s)
{
	struct pen_shown out = { "" };

	if (!(fabs(s) < 1e15))
		return unknown;
	if (s < 9.5e-6)
		snprintf(out.s, sizeof(out.s), "%.0f ns", s * 1e9);
	else if (s < 0.9995e-3)
		snprintf(out.s, sizeof(out.s), "%.0f us", s * 1e6);
	else if (s < 0.9995)
		snprintf(out.s, sizeof(out.s), "%.*f ms", s < 9.95e-3 ? 1 : 0,
			 s * 1e3);
	else if (s < 119.95)
		snprintf(out.s, sizeof(out.s), "%.*f s", s < 9.995 ? 2 : 1, s);
	else
		snprintf(out.s, sizeof(out.s), "%.0f min %02.0f s",
			 floor(rint(s) / 60), fmod(rint(s), 60));
	return out;
}

struct pen_shown pen__show_share(double v)
{
	struct pen_shown out = { "" };

	if (!isfinite(v))
		return unknown;
	snprintf(out.s, sizeof(out.s), "%.0f %%", 100 * v);
	return out;
}

struct pen_shown pen__show_whole(double v)
{
	struct pen_shown out = { "" };
	char digits[32];
	size_t to = 0;
	int n;

	if (!(fabs(v) < 1e18))
		return out;
	n = snprintf(digits, sizeof(digits), "%" PRIu64, (uint64_t)fabs(v));
	for (int i = 0; i < n; i++) {
		if (i && (n - i) % 3 == 0)
			out.s[to++] = ',';
		out.s[to++] = digits[i];
	}
	out.s[to] = '\0';
	return out;
}

struct pen_shown pen__show_number(double v)
{
	struct pen_shown out;
	int digits = 1;

	if (!isfinite(v))
		return unknown;
	if (fabs(v) >= 999.5)
		return pen__show_whole(rint(v));
	/* two digits that say something, or ticks of an axis look alike */
	for (double at = 0.995; digits < 6 && fabs(v) < at; at /= 10)
		digits++;
	if (!(fabs(v) > 0))
		digits = 1;
	snprintf(out.s, sizeof(out.s), "%.*f", fabs(v) < 9.95 ? digits : 0, v);
	return out;
}

/* ---- tables ---- */

void pen__table_open(struct pen_text *t, const char *caption,
		     const char *const *names)
{
	put(t, "<div class=\"tools\"><button type=\"button\" class=\"copy\">"
	       "Copy as CSV</button></div>\n"
	       "<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
	       "aria-label=\"");
	pen__html(t, caption);
	put(t, "\">\n<table>\n<caption>");
	pen__html(t, caption);
	put(t, "</caption>\n<colgroup>");
	for (const char *const *n = names; *n; n++)
		put(t, strchr("~#", **n) && strchr(*n, '~')
			       ? "<col class=\"x\">"
			       : "<col>");
	put(t, "</colgroup>\n<thead><tr>");
	for (; *names; names++) {
		pen__text_add(t, "<th scope=\"col\"%s><button type=\"button\">",
			      **names == '#' ? " class=\"n\"" : "");
		pen__html(t, *names + strspn(*names, "#~"));
		put(t, "</button></th>");
	}
	put(t, "</tr></thead>\n<tbody>\n");
}

void pen__table_row(struct pen_text *t, const char *id, size_t number)
{
	pen__text_add(t, "<tr id=\"%s-%zu\">", id, number);
}

void pen__table_text(struct pen_text *t, const char *text)
{
	put(t, "<td>");
	pen__html(t, text);
	put(t, "</td>");
}

void pen__table_number(struct pen_text *t, double v, struct pen_shown shown)
{
	if (!isfinite(v)) {
		put(t, "<td class=\"n\"></td>");
		return;
	}
	pen__text_add(t, "<td class=\"n\" data-v=\"%.9g\">%s</td>", v, shown.s);
}

void pen__table_row_end(struct pen_text *t)
{
	put(t, "</tr>\n");
}

void pen__table_close(struct pen_text *t)
{
	put(t, "</tbody>\n</table>\n</div>\n");
}
