/* The skeleton of a page, tables and numbers. */
#include "report/page.h"

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
	       "style-src 'unsafe-inline'; script-src '");
	put(t, pen__page_js_hash);
	put(t, "'\">\n"
	       "<link rel=\"icon\" href=\"data:,\">\n<title>");
	pen__html(t, title);
	put(t, "</title>\n<style>\n");
	put(t, pen__page_css);
	put(t, "</style>\n</head>\n<body>\n<main>\n");
}

void pen__page_close(struct pen_text *t)
{
	put(t, "</main>\n<div id=\"tip\" role=\"status\" aria-live=\"polite\" "
	       "hidden></div>\n<script>"); /* the hash covers every byte */
	put(t, pen__page_js);
	put(t, "</script>\n</body>\n</html>\n");
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

void pen__put_range(struct pen_text *t, const char *shown)
{
	const char *off = strstr(shown, " +-");
	const size_t n = off ? (size_t)(off - shown) : strlen(shown);

	pen__text_put(t, shown, n);
	if (off)
		pen__text_add(t, " &plusmn;%s", off + 3);
}

void pen__table_number(struct pen_text *t, double v, struct pen_shown shown)
{
	if (!isfinite(v)) {
		put(t, "<td class=\"n\"></td>");
		return;
	}
	pen__text_add(t, "<td class=\"n\" data-v=\"%.9g\">", v);
	pen__put_range(t, shown.s);
	put(t, "</td>");
}

void pen__table_row_end(struct pen_text *t)
{
	put(t, "</tr>\n");
}

void pen__table_close(struct pen_text *t)
{
	put(t, "</tbody>\n</table>\n</div>\n");
}

void pen__put_words(struct pen_text *t, struct pen_text *words,
		    const char *class)
{
	char *p = words->n ? words->p : NULL;

	while (p && *p) {
		char *end = p + strcspn(p, "\n");
		const bool more = *end;

		*end = '\0';
		pen__text_add(t, "<p%s>", class);
		for (char *off; (off = strstr(p, " +-")); p = off + 3) {
			*off = '\0';
			pen__html(t, p);
			pen__text_add(t, " &plusmn;");
		}
		pen__html(t, p);
		pen__text_add(t, "</p>\n");
		p = more ? end + 1 : NULL;
	}
	t->failed = t->failed || words->failed;
	pen__text_fini(words);
}
