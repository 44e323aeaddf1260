/*
 * A run of an emulated training job on a page: what came out, in words and
 * figures first, then over time, by part, and what it was run with. All the
 * numbers are of the document; long series were thinned out when it was
 * written, so a page stays small however long the run was.
 */
#include "report/run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "report/chart.h"

struct pen_id pen__run_id(const struct pen_run *r, const char *part)
{
	struct pen_id id;

	snprintf(id.s, sizeof(id.s), "r%zu-%s", r->number, part);
	return id;
}

/* ---- words ---- */

static const struct {
	const char *key, *name;
} stages[] = {
	{ "stages.read_ns", "reading" },
	{ "stages.unpack_ns", "unpacking" },
	{ "stages.emit_ns", "making batches" },
	{ "stages.plan_ns", "planning" },
};
#define NSTAGES (sizeof(stages) / sizeof(stages[0]))

/* What the loader's threads were busy with most. */
static void put_bound(struct pen_text *t, const struct pen_run *r)
{
	double all = 0, most = 0;
	size_t which = 0;

	for (size_t i = 0; i < NSTAGES; i++) {
		double v = pen__doc_number(r->d, 0, stages[i].key);

		if (!(v > 0))
			continue;
		all += v;
		if (v > most) {
			most = v;
			which = i;
		}
	}
	if (!(all > 0))
		return;
	pen__text_add(t,
		      "<p>The loader's threads were busy for %s, %s of it "
		      "%s",
		      pen__show_time(all * 1e-9).s,
		      pen__show_share(most / all).s, stages[which].name);
	all += pen__doc_number(r->d, 0, "stages.idle_ns");
	if (all > 0 && pen__doc_number(r->d, 0, "stages.idle_ns") > 0)
		pen__text_add(
			t, ", and idle for %s of their time",
			pen__show_share(
				pen__doc_number(r->d, 0, "stages.idle_ns") /
				all)
				.s);
	pen__text_add(t, ".</p>\n");
}

/* The first sentence is the result, and stands out. */
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

static void put_head(struct pen_text *t, const struct pen_run *r)
{
	pen__text_add(t, "<h2>");
	pen__html(t, pen__doc_text(r->d, 0, "workload"));
	pen__text_add(t, "</h2>\n<p class=\"sub\">");
	pen__html(t, r->d->name);
	pen__text_add(t, " · ");
	pen__html(t, pen__doc_text(r->d, 0, "start"));
	pen__text_add(t, "</p>\n<div class=\"verdict\">\n");
	put_sentences(t, pen__doc_text(r->d, 0, "verdict"));
	put_bound(t, r);
	pen__text_add(t, "</div>\n");
	if (pen__doc_true(r->d, 0, "partial"))
		pen__text_add(t, "<p class=\"warn\">This run was interrupted: "
				 "its figures are of what ran.</p>\n");
}

static void put_card(struct pen_text *t, const char *what, double v,
		     struct pen_shown shown, const char *unit)
{
	if (!isfinite(v))
		return;
	pen__text_add(t, "<li><span>%s</span><b>%s%s</b></li>\n", what, shown.s,
		      unit);
}

/* Of the rank that had most; NAN: not known. */
static double most_memory(const struct pen_doc *d)
{
	uint32_t list = pen__doc_at(d, 0, "ranks");
	double most = NAN;

	for (uint32_t c = pen__jdoc_first(&d->j, list); c != PEN_JDOC_NONE;
	     c = pen__jdoc_next(&d->j, c))
		most = fmax(most, pen__doc_number(d, c, "peak_memory_bytes"));
	return most;
}

static void put_cards(struct pen_text *t, const struct pen_run *r)
{
	const struct pen_doc *d = r->d;
	double au = pen__doc_number(d, 0, "totals.au.mean");
	double rate = pen__doc_number(d, 0, "totals.samples_per_s.mean");
	double read = pen__doc_number(d, 0, "totals.read_mib_per_s") * 1048576;
	double p50 = pen__doc_number(d, 0, "histograms.wait.p50_ns") * 1e-9;
	double p99 = pen__doc_number(d, 0, "histograms.wait.p99_ns") * 1e-9;
	double n = pen__doc_number(d, 0, "accelerators");
	double cpu = pen__doc_number(d, 0, "totals.cpu_s") /
		     pen__doc_number(d, 0, "totals.train_s");
	double memory = most_memory(d);
	struct pen_shown s;

	snprintf(s.s, sizeof(s.s), "%.1f %%", au);
	pen__text_add(t, "<ul class=\"cards\">\n");
	put_card(t, "utilisation", au, s, "");
	put_card(t, "accelerators", n, pen__show_whole(n), "");
	put_card(t, "samples a second", rate, pen__show_count(rate), "");
	put_card(t, "read", read, pen__show_bytes(read), "/s");
	put_card(t, "wait for a batch, median", p50, pen__show_time(p50), "");
	put_card(t, "wait, 99 of 100 below", p99, pen__show_time(p99), "");
	put_card(t, "CPUs busy, on average", cpu, pen__show_number(cpu), "");
	put_card(t, "memory of a rank, at most", memory,
		 pen__show_bytes(memory), "");
	pen__text_add(t, "</ul>\n");
}

/* ---- by part ---- */

static void put_stages(struct pen_text *t, const struct pen_run *r)
{
	static const char *const parts[] = { "reading", "unpacking",
					     "making batches", "planning",
					     "idle" };
	double v[NSTAGES + 1];
	struct pen_stack stack = { "threads", v };
	struct pen_stacks c = {
		.title = "Where the loader's time goes",
		.about = "All threads of the loader, summed. Idle is good "
			 "when the accelerators are busy: it is room for "
			 "more of them.",
		.parts = parts,
		.nparts = NSTAGES + 1,
		.stack = &stack,
		.n = 1,
		.show = pen__show_time,
	};
	struct pen_id id = pen__run_id(r, "stages");

	for (size_t i = 0; i < NSTAGES; i++)
		v[i] = pen__doc_number(r->d, 0, stages[i].key) * 1e-9;
	v[NSTAGES] = pen__doc_number(r->d, 0, "stages.idle_ns") * 1e-9;
	if (!(v[0] + v[1] + v[2] + v[3] > 0))
		return;
	c.id = id.s;
	pen__chart_stacks(t, &c);
}

static void put_accelerators(struct pen_text *t, const struct pen_run *r)
{
	static const char *const parts[] = { "computing", "waiting for data",
					     "other" };
	double v[3] = {
		pen__doc_number(r->d, 0, "totals.accelerator_compute_s"),
		pen__doc_number(r->d, 0, "totals.accelerator_load_s"),
		pen__doc_number(r->d, 0, "totals.accelerator_slack_s"),
	};
	struct pen_stack stack = { "accelerators", v };
	struct pen_stacks c = {
		.title = "What the accelerators did",
		.about = "Seconds of all emulated accelerators, summed: "
			 "computing, waiting for a batch, and what is between "
			 "(barriers, overshoot).",
		.parts = parts,
		.nparts = 3,
		.stack = &stack,
		.n = 1,
		.show = pen__show_time,
	};
	struct pen_id id = pen__run_id(r, "accel");

	if (!(v[0] + v[1] > 0))
		return;
	c.id = id.s;
	pen__chart_stacks(t, &c);
}

/* One line a rank; of very many, every so many-th. */
static void put_ranks(struct pen_text *t, const struct pen_run *r)
{
	uint32_t list = pen__doc_at(r->d, 0, "ranks");
	size_t n = 0, m = 0;
	double *au = pen__doc_numbers(r->d, list, "au", &n);
	double *at = pen__doc_numbers(r->d, list, "rank", &m);
	struct pen_series series = { "utilisation", au, pen__colour_of(0) };
	struct pen_plot p = {
		.title = "Utilisation by rank",
		.about = "A rank that lags makes all others wait where they "
			 "meet at the end of a step.",
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

static void put_checkpoints(struct pen_text *t, const struct pen_run *r,
			    const char *key, const char *title)
{
	static const char *const names[] = { "#number", "#epoch", "#seconds",
					     "#bytes",	"#GiB/s", NULL };
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
				pen__doc_number(r->d, c, "gib_per_s") };

		pen__table_row(t, id.s, i++);
		pen__table_number(t, v[0], pen__show_whole(v[0]));
		pen__table_number(t, v[1], pen__show_whole(v[1]));
		pen__table_number(t, v[2], pen__show_time(v[2]));
		pen__table_number(t, v[3], pen__show_bytes(v[3]));
		pen__table_number(t, v[4], pen__show_number(v[4]));
		pen__table_row_end(t);
	}
	pen__table_close(t);
}

/* ---- what it was run with ---- */

static void put_fact(struct pen_text *t, const char *name, const char *value)
{
	if (!value[0])
		return;
	pen__text_add(t, "<dt>%s</dt><dd>", name);
	pen__html(t, value);
	pen__text_add(t, "</dd>\n");
}

/* Another part of a fact, unless the file lacks it. */
static void part(char text[128], const char *what, const char *unit)
{
	const size_t n = strlen(text);

	if (what[0])
		snprintf(text + n, 128 - n, "%s%s%s", n ? ", " : "", what,
			 unit);
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
	part(text, pen__show_whole(pen__doc_number(d, 0, "loader.threads")).s,
	     " threads");
	part(text, pen__show_whole(pen__doc_number(d, 0, "loader.prefetch")).s,
	     " batches ahead");
	put_fact(t, "loader", text);
	text[0] = '\0';
	part(text,
	     pen__show_whole(pen__doc_number(d, 0, "data.samples_train")).s,
	     " samples");
	part(text, pen__show_bytes(pen__doc_number(d, 0, "data.bytes_train")).s,
	     "");
	put_fact(t, "data", text);
}

static void put_machine(struct pen_text *t, const struct pen_run *r)
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
	part(text, pen__show_whole(pen__doc_number(d, host, "cpus")).s,
	     " CPUs");
	part(text, pen__show_bytes(memory).s, "");
	put_fact(t, "machine", text);
	put_fact(t, "kernel", pen__doc_text(d, host, "kernel"));
	snprintf(text, sizeof(text), "%s %s", device,
		 pen__doc_text(d, host, "device.model"));
	if (isfinite(ahead))
		part(text, "read-ahead ", pen__show_whole(ahead).s);
	if (isfinite(ahead))
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			 " KiB");
	if (order[0])
		part(text, "scheduler ", order);
	if (device[0])
		put_fact(t, "device", text);
	put_fact(t, "page cache", pen__doc_text(d, 0, "page_cache.state"));
	put_loader(t, d);
	put_fact(t, "penstock", pen__doc_text(d, 0, "version"));
	pen__text_add(t, "</dl>\n");
}

/* Every leaf below a node. */
static size_t put_leaves(struct pen_text *t, const struct pen_run *r,
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

static void put_config(struct pen_text *t, const struct pen_run *r)
{
	static const char *const names[] = { "setting", "value", NULL };
	uint32_t config = pen__doc_at(r->d, 0, "config");

	if (!pen__jdoc_count(&r->d->j, config))
		return;
	pen__text_add(t, "<details><summary>All settings as they were in force"
			 "</summary>\n");
	pen__table_open(t, "Settings", names);
	put_leaves(t, r, config, "", 0);
	pen__table_close(t);
	pen__text_add(t, "</details>\n");
}

void pen__run_show(struct pen_text *t, const struct pen_doc *d, size_t number)
{
	struct pen_run r = { d, number };

	pen__text_add(t, "<section>\n");
	put_head(t, &r);
	put_cards(t, &r);
	pen__run_time(t, &r);
	put_accelerators(t, &r);
	put_stages(t, &r);
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
