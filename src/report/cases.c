/* Runs of one setting taken together, and what a group is about. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "report/report.h"

double pen__line_rate(const struct pen_line *r)
{
	const double all = pen__line_number(r, "samples_per_s");
	const double rest = pen__line_number(r, "samples_per_s_rest");

	return pen__line_true(r, "drop_first") && !isnan(rest) ? rest : all;
}

double pen__line_memory(const struct pen_line *r)
{
	const double own = pen__line_number(r, "own_memory_bytes");

	return isnan(own) ? pen__line_number(r, "peak_memory_bytes") : own;
}

const char *pen__line_unit(const struct pen_line *r)
{
	const char *unit = pen__line_text(r, "unit");

	return *unit ? unit : "samples";
}

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double seconds_of(const struct pen_line *r)
{
	return pen__line_number(r, "seconds");
}

static double n_eff_of(const struct pen_line *r)
{
	return pen__line_number(r, "quality.n_eff");
}

/* The median of a figure over all runs of a setup; NAN: none has it. */
static double median(const struct pen_group *g, const char *setup,
		     double (*what)(const struct pen_line *), double *buf)
{
	size_t n = 0;

	for (size_t i = 0; i < g->n; i++) {
		const double v = what(g->row[i]);

		if (!isnan(v) && !pen__line_true(g->row[i], "oom") &&
		    !strcmp(pen__line_text(g->row[i], "setup"), setup))
			buf[n++] = v;
	}
	if (!n)
		return NAN;
	qsort(buf, n, sizeof(*buf), by_value);
	return n % 2 ? buf[n / 2] : (buf[n / 2 - 1] + buf[n / 2]) / 2;
}

static void fill(struct pen_case *c, const struct pen_group *g, double *buf)
{
	const char *setup = pen__line_text(c->row, "setup");

	for (size_t i = 0; i < g->n; i++)
		c->n += !pen__line_true(g->row[i], "oom") &&
			!strcmp(pen__line_text(g->row[i], "setup"), setup);
	c->oom = !c->n;
	c->rate = median(g, setup, pen__line_rate, buf);
	c->memory = median(g, setup, pen__line_memory, buf);
	c->seconds = median(g, setup, seconds_of, buf);
	c->n_eff = median(g, setup, n_eff_of, buf);
}

int pen__cases(const struct pen_group *g, struct pen_case **out, size_t *n,
	       struct pen_err *err)
{
	struct pen_case *c = pen__calloc(g->n, sizeof(*c));
	double *buf = pen__alloc(g->n, sizeof(*buf));

	*n = 0;
	for (size_t i = 0; c && buf && i < g->n; i++) {
		const char *setup = pen__line_text(g->row[i], "setup");
		size_t k = 0;

		while (k < *n &&
		       strcmp(pen__line_text(c[k].row, "setup"), setup) != 0)
			k++;
		if (k < *n)
			continue;
		c[k].row = g->row[i];
		fill(&c[k], g, buf);
		(*n)++;
	}
	pen__free(buf);
	if (!c || !buf) {
		pen__free(c);
		return pen__fail_nomem(err, "report", g->n * sizeof(*c));
	}
	*out = c;
	return 0;
}

/* ---- the machine and the data ---- */

static void item(struct pen_text *t, const char *name, const char *value)
{
	if (!*value)
		return;
	pen__text_add(t, "<dt>%s</dt><dd>", name);
	pen__html(t, value);
	pen__text_add(t, "</dd>\n");
}

/* The different values of a key, with commas, and nothing when there is none */
static void items(struct pen_text *t, const char *name,
		  const struct pen_group *g, const char *key)
{
	struct pen_text all = { 0 };

	for (size_t i = 0; i < g->n; i++) {
		const char *v = pen__line_text(g->row[i], key);
		size_t k = 0;

		while (k < i && strcmp(pen__line_text(g->row[k], key), v) != 0)
			k++;
		if (*v && k == i)
			pen__text_add(&all, "%s%s", all.n ? "; " : "", v);
	}
	item(t, name, all.n ? all.p : "");
	t->failed = t->failed || all.failed;
	pen__text_fini(&all);
}

static void meta_items(struct pen_text *t, const struct pen_group *g)
{
	const struct pen_line *r = g->row[0];

	for (size_t i = 0; i < r->n; i++) {
		struct pen_text name = { 0 };

		if (strncmp(pen__cell_key(r, i), "meta.", 5) != 0)
			continue;
		pen__html(&name, pen__cell_key(r, i) + 5);
		if (name.n)
			items(t, name.p, g, pen__cell_key(r, i));
		t->failed = t->failed || name.failed;
		pen__text_fini(&name);
	}
}

static void when(struct pen_text *t, const struct pen_group *g)
{
	const char *first = pen__line_text(g->row[0], "time"), *last = first;
	char buf[96];

	for (size_t i = 1; i < g->n; i++) {
		const char *v = pen__line_text(g->row[i], "time");

		first = strcmp(v, first) < 0 ? v : first;
		last = strcmp(v, last) > 0 ? v : last;
	}
	snprintf(buf, sizeof(buf), "%.40s%s%.40s", first,
		 strcmp(first, last) ? " to " : "",
		 strcmp(first, last) ? last : "");
	item(t, "Measured", buf);
}

void pen__about(struct pen_text *t, const struct pen_group *g)
{
	const struct pen_line *r = g->row[0];
	char buf[256];

	pen__text_add(t, "<h3>Machine and data</h3>\n<dl>\n");
	items(t, "Data", g, "path");
	snprintf(buf, sizeof(buf), "%s %s x %s, %s%s%.64s",
		 pen__show_whole(pen__line_number(r, "samples")).s,
		 pen__line_unit(r),
		 pen__show_whole(pen__line_number(r, "n_cols")).s,
		 pen__show_bytes(pen__line_number(r, "bytes")).s, " of ",
		 pen__line_text(r, "format"));
	if (!isnan(pen__line_number(r, "samples")) &&
	    !isnan(pen__line_number(r, "bytes")))
		item(t, "Size", buf);
	items(t, "Settings", g, "settings");
	items(t, "Machine", g, "host");
	snprintf(buf, sizeof(buf), "%.120s (%s usable), %s of memory",
		 pen__line_text(r, "cpu"),
		 pen__show_whole(pen__line_number(r, "cpus")).s,
		 pen__show_bytes(pen__line_number(r, "memory_bytes")).s);
	if (*pen__line_text(r, "cpu"))
		item(t, "CPU", buf);
	items(t, "Kernel", g, "kernel");
	items(t, "Penstock", g, "version");
	when(t, g);
	meta_items(t, g);
	pen__text_add(t, "</dl>\n");
}
