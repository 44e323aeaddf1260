/*
 * The page of an emulated training job: summary and figures first, then the run
 * over time, by activity, and its settings. All numbers are from the document;
 * long series were thinned out when it was written, so the page stays small.
 */
#include "report/page_run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "report/chart.h"

struct pen_id pen__run_id(const struct pen_run_page *r, const char *part)
{
	struct pen_id id;

	snprintf(id.s, sizeof(id.s), "r%zu-%s", r->number, part);
	return id;
}

/* ---- stages ---- */

static const struct {
	const char *key, *name;
} stages[] = {
	{ "open", "opening files" }, { "read", "reading" },
	{ "unpack", "unpacking" },   { "decode", "decoding" },
	{ "emit", "copying" },	     { "preprocess", "preprocessing" },
	{ "plan", "planning" },	     { "idle", "idle" },
};
#define NSTAGES (sizeof(stages) / sizeof(stages[0]))

/* Seconds of a stage; 0: unknown. */
static double stage_s(const struct pen_run_page *r, size_t i)
{
	const bool of_load = pen__doc_at(r->d, 0, "stages") == PEN_JDOC_NONE;
	char key[64];
	double v;

	snprintf(key, sizeof(key), of_load ? "stage_ns.%s" : "stages.%s_ns",
		 stages[i].key);
	v = pen__doc_number(r->d, 0, key);
	return v > 0 ? v * 1e-9 : 0;
}

/* ---- summary ---- */

/* The first sentence is the result, and is emphasised. */
static void put_sentences(struct pen_text *t, const char *text)
{
	const char *end = strstr(text, ". ");
	char first[512];

	snprintf(first, sizeof(first), "%.*s",
		 end ? (int)(end + 1 - text) : (int)strlen(text), text);
	pen__text_add(t, "<p>");
	pen__html(t, first);
	pen__text_add(t, "</p>\n");
	if (!end)
		return;
	pen__text_add(t, "<p>");
	pen__html(t, end + 2);
	pen__text_add(t, "</p>\n");
}

static void put_verdict(struct pen_text *t, const struct pen_doc *d)
{
	struct pen_text own = { 0 };

	if (pen__doc_at(d, 0, "why") == PEN_JDOC_NONE &&
	    pen__doc_number(d, 0, "totals.samples") > 0)
		pen__run_why(&own, d);
	put_sentences(t, own.p ? own.p : pen__doc_text(d, 0, "verdict"));
	t->failed |= own.failed;
	pen__text_fini(&own);
}

void pen__section_open(struct pen_text *t, const char *kind, const char *title,
		       const char *source, bool alone)
{
	pen__text_add(t, "<section>\n<h%d>%s", alone ? 1 : 2, kind);
	pen__html(t, title);
	pen__text_add(t, "</h%d>\n<p class=\"sub\">", alone ? 1 : 2);
	pen__html(t, source);
}

static void put_head(struct pen_text *t, const struct pen_run_page *r,
		     bool alone)
{
	pen__section_open(t, "", pen__doc_text(r->d, 0, "workload"), r->d->name,
			  alone);
	pen__text_add(t, " · ");
	pen__html(t, pen__doc_when(r->d, "start").s);
	pen__text_add(t, "</p>\n<div class=\"verdict\">\n");
	put_verdict(t, r->d);
	pen__text_add(t, "</div>\n");
	if (pen__doc_true(r->d, 0, "partial"))
		pen__text_add(t,
			      "<p class=\"warn\">This run was interrupted: the "
			      "figures cover only the part that ran.</p>\n");
}

static void put_card(struct pen_text *t, const char *what, double v,
		     struct pen_shown shown, const char *unit)
{
	if (!isfinite(v))
		return;
	pen__text_add(t, "<li><span>%s</span><b>%s%s</b></li>\n", what, shown.s,
		      unit);
}

/* Of the rank with the highest peak; NAN: unknown. */
static double most_memory(const struct pen_doc *d)
{
	uint32_t list = pen__doc_at(d, 0, "ranks");
	double most = NAN;

	for (uint32_t c = pen__jdoc_first(&d->j, list); c != PEN_JDOC_NONE;
	     c = pen__jdoc_next(&d->j, c))
		most = fmax(most, pen__doc_number(d, c, "peak_memory_bytes"));
	return most;
}

/* Bytes per second; NAN: there are no checkpoints. */
static double checkpoint_rate(const struct pen_doc *d, const char *what)
{
	char path[64];
	double v;

	snprintf(path, sizeof(path), "checkpoints.%s_gib_per_s.mean", what);
	v = pen__doc_number(d, 0, path) * 1073741824;
	return v > 0 ? v : NAN;
}

static void put_cards(struct pen_text *t, const struct pen_run_page *r)
{
	const struct pen_doc *d = r->d;
	const bool trained = pen__doc_number(d, 0, "totals.samples") > 0;
	double au = pen__doc_number(d, 0, "totals.au.mean");
	double rate = pen__doc_number(d, 0, "totals.samples_per_s.mean");
	double read = pen__doc_number(d, 0, "totals.read_mib_per_s") * 1048576;
	double p50 = pen__doc_number(d, 0, "histograms.wait.p50_ns") * 1e-9;
	double p99 = pen__doc_number(d, 0, "histograms.wait.p99_ns") * 1e-9;
	double n = pen__doc_number(d, 0, "accelerators");
	double cpu = pen__doc_number(d, 0, "totals.cpu_s") /
		     pen__doc_number(d, 0, "totals.train_s");
	double memory = most_memory(d);
	double save = checkpoint_rate(d, "save"),
	       load = checkpoint_rate(d, "load");

	pen__text_add(t, "<ul class=\"cards\">\n");
	if (trained)
		put_card(t, "utilisation", au, pen__show_percent(au), "");
	put_card(t, "accelerators", n, pen__show_whole(n), "");
	if (trained) {
		put_card(t, "samples per second", rate, pen__show_count(rate),
			 "");
		put_card(t, "read", read, pen__show_bytes(read), "/s");
		put_card(t, "median wait for a batch", p50, pen__show_time(p50),
			 "");
		put_card(t, "99th percentile wait", p99, pen__show_time(p99),
			 "");
		put_card(t, "busy CPUs, on average", cpu, pen__show_number(cpu),
			 "");
	}
	put_card(t, "checkpoints saved at", save, pen__show_bytes(save), "/s");
	put_card(t, "checkpoints loaded at", load, pen__show_bytes(load), "/s");
	put_card(t, "peak memory per rank", memory, pen__show_bytes(memory),
		 "");
	pen__text_add(t, "</ul>\n");
}

/* ---- breakdowns ---- */

void pen__run_stages(struct pen_text *t, const struct pen_run_page *r,
		     const char *about)
{
	static const char *const names[] = { "threads" };
	struct pen_series part[NSTAGES];
	double v[NSTAGES], all = 0;
	struct pen_id id = pen__run_id(r, "stages");
	struct pen_plot p = {
		.kind = PEN_STACKED,
		.id = id.s,
		.title = "Where the loader's time goes",
		.about = about,
		.y = { "time", pen__show_time, 0 },
		.names = names,
		.n = 1,
		.series = part,
	};

	for (size_t i = 0; i < NSTAGES; i++) {
		const size_t k = p.nseries;

		v[k] = stage_s(r, i);
		part[k] = (struct pen_series){ stages[i].name, &v[k],
					       pen__colour_of((unsigned)k) };
		all += i + 1 < NSTAGES ? v[k] : 0;
		p.nseries += v[k] > 0;
	}
	if (all > 0)
		pen__chart_plot(t, &p);
}

static void put_accelerators(struct pen_text *t, const struct pen_run_page *r)
{
	static const char *const names[] = { "accelerators" };
	const double v[3] = {
		pen__doc_number(r->d, 0, "totals.accelerator_compute_s"),
		pen__doc_number(r->d, 0, "totals.accelerator_load_s"),
		pen__doc_number(r->d, 0, "totals.accelerator_slack_s"),
	};
	const struct pen_series part[] = {
		{ "computing", &v[0], pen__colour_of(0) },
		{ "waiting for data", &v[1], pen__colour_of(1) },
		{ "other", &v[2], pen__colour_of(2) },
	};
	struct pen_id id = pen__run_id(r, "accel");
	struct pen_plot p = {
		.kind = PEN_STACKED,
		.id = id.s,
		.title = "Where the accelerators' time goes",
		.about = "Time of all emulated accelerators, summed: "
			 "computing, waiting for a batch, and other (barriers, "
			 "late wake-ups).",
		.y = { "time", pen__show_time, 0 },
		.names = names,
		.n = 1,
		.series = part,
		.nseries = 3,
	};

	if (v[0] + v[1] > 0)
		pen__chart_plot(t, &p);
}

/* Utilisation per rank. */
static void put_ranks(struct pen_text *t, const struct pen_run_page *r)
{
	uint32_t list = pen__doc_at(r->d, 0, "ranks");
	size_t n = 0, m = 0;
	double *au = pen__doc_numbers(r->d, list, "au", &n);
	double *at = pen__doc_numbers(r->d, list, "rank", &m);
	struct pen_series series = { "utilisation", au, pen__colour_of(0) };
	struct pen_plot p = {
		.title = "Utilisation by rank",
		.about = "A straggler makes all other ranks wait at the "
			 "barrier that ends each step.",
		.x = { "rank", pen__show_whole, 0 },
		.y = { "utilisation", pen__show_percent, 100 },
		.x_at = at,
		.n = n < m ? n : m,
		.series = &series,
		.nseries = 1,
	};
	struct pen_id id = pen__run_id(r, "ranks");

	p.id = id.s;
	if (au && at && p.n > 1)
		pen__chart_plot(t, &p);
	pen__free(au);
	pen__free(at);
}

static void put_checkpoints(struct pen_text *t, const struct pen_run_page *r,
			    const char *key, const char *title)
{
	static const char *const names[] = { "#number",	    "#epoch",
					     "#duration",   "#size",
					     "#per second", NULL };
	uint32_t list = pen__doc_at(r->d, 0, key);
	struct pen_id id = pen__run_id(r, key);
	size_t i = 0;

	if (!pen__jdoc_count(&r->d->j, list))
		return;
	pen__text_add(t, "<h3>%s</h3>\n", title);
	pen__table_open(t, title, names);
	for (uint32_t c = pen__jdoc_first(&r->d->j, list); c != PEN_JDOC_NONE;
	     c = pen__jdoc_next(&r->d->j, c)) {
		double v[5] = { pen__doc_number(r->d, c, "number"),
				pen__doc_number(r->d, c, "epoch"),
				pen__doc_number(r->d, c, "seconds"),
				pen__doc_number(r->d, c, "bytes"),
				1073741824 *
					pen__doc_number(r->d, c, "gib_per_s") };

		pen__table_row(t, id.s, i++);
		pen__table_number(t, v[0], pen__show_whole(v[0]));
		pen__table_number(t, v[1], pen__show_whole(v[1]));
		pen__table_number(t, v[2], pen__show_time(v[2]));
		pen__table_number(t, v[3], pen__show_bytes(v[3]));
		pen__table_number(t, v[4], pen__show_bytes(v[4]));
		pen__table_row_end(t);
	}
	pen__table_close(t);
}

/* ---- machine and settings ---- */

static void put_fact(struct pen_text *t, const char *name, const char *value)
{
	if (!value[0])
		return;
	pen__text_add(t, "<dt>%s</dt><dd>", name);
	pen__html(t, value);
	pen__text_add(t, "</dd>\n");
}

/* Appends a part of a fact, unless it is missing. */
static void part(char text[128], const char *what, const char *unit)
{
	const size_t n = strlen(text);

	if (what[0] && strcmp(what, "-"))
		snprintf(text + n, 128 - n, "%s%s%s", n ? ", " : "", what,
			 unit);
}

/* Appends "4 threads". */
static void part_of(char text[128], double n, const char *what,
		    const char *more)
{
	if (n > 0 && n < 1e18)
		part(text, pen__show_counted((uint64_t)n, what).s, more);
}

static void put_loader(struct pen_text *t, const struct pen_doc *d)
{
	const char *why = pen__doc_text(d, 0, "loader.store_reason");
	char text[128] = "";

	snprintf(text, sizeof(text), why[0] ? "%s (%s)" : "%s%s",
		 pen__doc_text(d, 0, "loader.store"), why);
	put_fact(t, "store", text);
	put_fact(t, "sampler", pen__doc_text(d, 0, "loader.sampler"));
	text[0] = '\0';
	part_of(text, pen__doc_number(d, 0, "loader.threads"), "thread", "");
	part_of(text, pen__doc_number(d, 0, "loader.prefetch"), "batch",
		" prefetched");
	put_fact(t, "loader", text);
	text[0] = '\0';
	part_of(text, pen__doc_number(d, 0, "data.samples_train"), "sample",
		"");
	if (text[0])
		part(text,
		     pen__show_bytes(pen__doc_number(d, 0, "data.bytes_train"))
			     .s,
		     "");
	put_fact(t, "data", text);
}

static void put_machine(struct pen_text *t, const struct pen_run_page *r)
{
	const struct pen_doc *d = r->d;
	uint32_t host = pen__jdoc_first(&d->j, pen__doc_at(d, 0, "hosts"));
	double memory = pen__doc_number(d, host, "memory_bytes"),
	       ahead = pen__doc_number(d, host, "device.read_ahead_kb");
	const char *device = pen__doc_text(d, host, "device.name"),
		   *order = pen__doc_text(d, host, "device.scheduler");
	char text[128] = "";

	pen__text_add(t, "<h3>Machine and data</h3>\n<dl>\n");
	put_fact(t, "host", pen__doc_text(d, host, "name"));
	part(text, pen__doc_text(d, host, "cpu"), "");
	part_of(text, pen__doc_number(d, host, "cpus"), "CPU", "");
	part(text, pen__show_bytes(memory).s, "");
	put_fact(t, "machine", text);
	put_fact(t, "kernel", pen__doc_text(d, host, "kernel"));
	snprintf(text, sizeof(text), "%s", device);
	part(text, pen__doc_text(d, host, "device.model"), "");
	if (isfinite(ahead))
		part(text, "read-ahead ", pen__show_bytes(1024 * ahead).s);
	if (order[0])
		part(text, "scheduler ", order);
	if (device[0])
		put_fact(t, "device", text);
	put_fact(t, "page cache", pen__doc_text(d, 0, "page_cache.state"));
	put_loader(t, d);
	put_fact(t, "penstock", pen__doc_text(d, 0, "version"));
	pen__text_add(t, "</dl>\n");
}

/* Prints every leaf below a node. */
static size_t put_leaves(struct pen_text *t, const struct pen_run_page *r,
			 uint32_t node, const char *key, size_t row)
{
	enum pen_jdoc_type type = pen__jdoc_type(&r->d->j, node);
	struct pen_id id = pen__run_id(r, "config");
	char path[256], text[64];
	unsigned i = 0;

	if (type != PEN_JDOC_OBJECT && type != PEN_JDOC_LIST) {
		pen__table_row(t, id.s, row);
		pen__table_text(t, key);
		pen__table_text(t,
				pen__doc_shown(r->d, node, text, sizeof(text)));
		pen__table_row_end(t);
		return row + 1;
	}
	for (uint32_t c = pen__jdoc_first(&r->d->j, node); c != PEN_JDOC_NONE;
	     c = pen__jdoc_next(&r->d->j, c), i++) {
		if (type == PEN_JDOC_OBJECT)
			snprintf(path, sizeof(path), "%s%s%s", key,
				 key[0] ? "." : "",
				 r->d->j.text + r->d->j.node[c].key);
		else
			snprintf(path, sizeof(path), "%s[%u]", key, i);
		row = put_leaves(t, r, c, path, row);
	}
	return row;
}

static void put_config(struct pen_text *t, const struct pen_run_page *r)
{
	static const char *const names[] = { "setting", "value", NULL };
	uint32_t config = pen__doc_at(r->d, 0, "config");

	if (!pen__jdoc_count(&r->d->j, config))
		return;
	pen__text_add(t, "<details><summary>All settings</summary>\n");
	pen__table_open(t, "Settings", names);
	put_leaves(t, r, config, "", 0);
	pen__table_close(t);
	pen__text_add(t, "</details>\n");
}

void pen__run_show(struct pen_text *t, const struct pen_doc *d, size_t number,
		   bool alone)
{
	struct pen_run_page r = { d, number };

	put_head(t, &r, alone);
	put_cards(t, &r);
	pen__run_time(t, &r);
	put_accelerators(t, &r);
	pen__run_stages(
		t, &r,
		"Time of all loader threads, summed. Idle time while the "
		"accelerators are busy is headroom for more of them.");
	pen__run_waits(t, &r);
	pen__run_epochs(t, &r);
	put_ranks(t, &r);
	pen__run_machine(t, &r);
	put_checkpoints(t, &r, "checkpoints.saves", "Checkpoints saved");
	put_checkpoints(t, &r, "checkpoints.loads", "Checkpoints loaded");
	put_machine(t, &r);
	put_config(t, &r);
	pen__text_add(t, "</section>\n");
}
