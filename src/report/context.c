/* Shared by all kinds of results: figures of a row, other load on the machine,
 * description of machine and data. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/report.h"

double pen__line_memory(const struct pen_line *r)
{
	const double own = pen__line_number(r, "own_memory_bytes");

	return isnan(own) ? pen__line_number(r, "peak_memory_bytes") : own;
}

double pen__line_rest(const struct pen_line *r)
{
	const double blocks = pen__line_number(r, "n_rows") /
			      pen__line_number(r, "block_rows");

	return blocks >= 10 ? pen__line_number(r, "samples_per_s_rest") : NAN;
}

const char *pen__line_unit(const struct pen_line *r)
{
	const char *unit = pen__line_text(r, "unit");

	return *unit ? unit : "samples";
}

/* ---- other load on the machine ---- */

struct others {
	double seconds, cpus, cpu_s, stolen_s, load; /* 0: unknown */
};

#define SHORTEST 0.5 /* seconds: the kernel counts in ticks of 10 ms */
#define OTHERS                                                                 \
	0.2 /* share of all CPUs that noticeably slows the measured process */
#define STOLEN 0.05

static double known(double v)
{
	return v > 0 ? v : 0;
}

static void put_others(struct pen_text *t, const struct others *o)
{
	const double all = o->seconds * o->cpus;
	const bool busy = o->cpu_s >= OTHERS * all;
	const bool stolen = o->stolen_s >= STOLEN * all;

	if (o->seconds < SHORTEST || !(all > 0) || (!busy && !stolen))
		return;
	pen__text_add(t, "The machine was busy: ");
	if (busy)
		pen__text_add(t, "other processes used %s of its %s CPUs%s",
			      pen__show_number(o->cpu_s / o->seconds).s,
			      pen__show_whole(o->cpus).s,
			      stolen ? ", and " : "");
	if (stolen)
		pen__text_add(t, "the hypervisor withheld %s of the CPU time",
			      pen__show_share(o->stolen_s / all).s);
	if (o->load > 0)
		pen__text_add(t, " (load average %s)",
			      pen__show_number(o->load).s);
	pen__text_add(t, ". Expect different figures on an idle machine.\n");
}

void pen__others_rows(struct pen_text *t, const struct pen_line *const *row,
		      size_t n)
{
	struct others o = { 0 };

	for (size_t i = 0; i < n; i++) {
		const struct pen_line *r = row[i];

		o.seconds += known(pen__line_number(r, "others.seconds"));
		o.cpu_s += known(pen__line_number(r, "others.cpu_s"));
		o.stolen_s += known(pen__line_number(r, "others.stolen_s"));
		o.cpus = fmax(o.cpus, pen__line_number(r, "others.cpus"));
		o.load = fmax(o.load,
			      pen__line_number(r, "others.load_average"));
	}
	put_others(t, &o);
}

void pen__others_doc(struct pen_text *t, const struct pen_doc *d)
{
	const struct others o = {
		known(pen__doc_number(d, 0, "others.seconds")),
		known(pen__doc_number(d, 0, "others.cpus")),
		known(pen__doc_number(d, 0, "others.cpu_s")),
		known(pen__doc_number(d, 0, "others.stolen_s")),
		known(pen__doc_number(d, 0, "others.load_average")),
	};

	put_others(t, &o);
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

/* Prints the distinct values of a key, separated by semicolons; nothing if
 * there are none. */
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
	const double memory = pen__line_number(r, "memory_bytes");
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
	snprintf(buf, sizeof(buf), "%.120s (%s usable)%s%s%s",
		 pen__line_text(r, "cpu"),
		 pen__show_whole(pen__line_number(r, "cpus")).s,
		 isnan(memory) ? "" : ", ",
		 isnan(memory) ? "" : pen__show_bytes(memory).s,
		 isnan(memory) ? "" : " of memory");
	if (*pen__line_text(r, "cpu"))
		item(t, "CPU", buf);
	items(t, "Kernel", g, "kernel");
	items(t, "Penstock", g, "version");
	when(t, g);
	meta_items(t, g);
	pen__text_add(t, "</dl>\n");
}
