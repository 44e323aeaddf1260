/* Runs of one setting taken together, and what a group is about. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "report/arms.h"

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

static double seconds_of(const struct pen_line *r)
{
	return pen__line_number(r, "seconds");
}

static double n_eff_of(const struct pen_line *r)
{
	return pen__line_number(r, "quality.n_eff");
}

/* The median of a figure over all runs of a setup; NAN: none has it. */
static double median(const struct pen_arms *a, const struct pen_arm *m,
		     double (*what)(const struct pen_line *))
{
	size_t n = 0;

	for (size_t i = 0; i < a->n; i++) {
		const double v = what(a->row[i]);

		if (!isnan(v) && pen__arms_is_run(m, a->row[i]))
			a->buf[n++] = v;
	}
	return n ? pen__median(a->buf, n) : NAN;
}

int pen__cases(const struct pen_group *g, struct pen_case **out, size_t *n,
	       struct pen_err *err)
{
	struct pen_arms a;
	struct pen_case *c;
	int rc = pen__arms_init(&a, NULL, g->row, g->n, err);

	if (rc)
		return rc;
	c = pen__calloc(a.narms ? a.narms : 1, sizeof(*c));
	for (size_t i = 0; c && i < a.narms; i++) {
		const struct pen_arm *m = &a.arm[i];

		c[i] = (struct pen_case){
			.row = m->row,
			.n = m->n,
			.oom = !m->n,
			.rate = median(&a, m, pen__line_rate),
			.memory = median(&a, m, pen__line_memory),
			.seconds = median(&a, m, seconds_of),
			.n_eff = median(&a, m, n_eff_of),
		};
	}
	*n = a.narms;
	pen__arms_fini(&a);
	*out = c;
	return c ? 0 : pen__fail_nomem(err, "report", *n * sizeof(*c));
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
