/* What `load --json` printed, and what `capacity --json` did, on a page. */
#include <math.h>
#include <stdio.h>

#include "base/mem.h"
#include "report/chart.h"
#include "report/run.h"

static void put_card(struct pen_text *t, const char *what, double v,
		     struct pen_shown shown, const char *unit)
{
	if (isfinite(v))
		pen__text_add(t, "<li><span>%s</span><b>%s%s</b></li>\n", what,
			      shown.s, unit);
}

static void put_cards(struct pen_text *t, const struct pen_doc *d)
{
	double rate = pen__doc_number(d, 0, "samples_per_s");
	double bytes = pen__doc_number(d, 0, "payload_bytes_per_s");
	double first = pen__doc_number(d, 0, "first_batch_s");
	double p50 = pen__doc_number(d, 0, "wait_ns.p50") * 1e-9;
	double p99 = pen__doc_number(d, 0, "wait_ns.p99") * 1e-9;
	double cpu = pen__doc_number(d, 0, "cpu_s_per_gb");
	double memory = pen__doc_number(d, 0, "peak_memory_bytes");

	pen__text_add(t, "<ul class=\"cards\">\n");
	put_card(t, "samples a second", rate, pen__show_count(rate), "");
	put_card(t, "delivered", bytes, pen__show_bytes(bytes), "/s");
	put_card(t, "first batch after", first, pen__show_time(first), "");
	put_card(t, "wait for a batch, median", p50, pen__show_time(p50), "");
	put_card(t, "wait, 99 of 100 below", p99, pen__show_time(p99), "");
	put_card(t, "CPU time a GB", cpu, pen__show_time(cpu), "");
	put_card(t, "memory at most", memory, pen__show_bytes(memory), "");
	pen__text_add(t, "</ul>\n");
}

static void put_stages(struct pen_text *t, const struct pen_run *r)
{
	static const char *const parts[] = { "reading", "unpacking",
					     "making batches", "planning",
					     "idle" };
	static const char *const keys[] = { "stage_ns.read", "stage_ns.unpack",
					    "stage_ns.emit", "stage_ns.plan",
					    "stage_ns.idle" };
	double v[5];
	struct pen_stack stack = { "threads", v };
	struct pen_id id = pen__run_id(r, "stages");
	struct pen_stacks c = {
		.id = id.s,
		.title = "Where the loader's time goes",
		.about = "All threads of the loader, summed. Idle: they were "
			 "ahead of whoever took the batches.",
		.parts = parts,
		.nparts = 5,
		.stack = &stack,
		.n = 1,
		.show = pen__show_time,
	};

	for (int i = 0; i < 5; i++)
		v[i] = pen__doc_number(r->d, 0, keys[i]) * 1e-9;
	if (v[0] + v[1] + v[2] + v[3] > 0)
		pen__chart_stacks(t, &c);
}

/* The rate of every epoch. */
static void put_epochs(struct pen_text *t, const struct pen_run *r)
{
	uint32_t list = pen__doc_at(r->d, 0, "epochs");
	size_t n = 0, m = 0;
	double *seconds = pen__doc_numbers(r->d, list, "seconds", &n);
	double *samples = pen__doc_numbers(r->d, list, "samples", &m);
	double *number = n ? pen__alloc(n, sizeof(*number)) : NULL;
	struct pen_series one = { "samples a second", samples,
				  pen__colour_of(0) };
	struct pen_id id = pen__run_id(r, "epochs");
	struct pen_plot p = {
		.id = id.s,
		.title = "Throughput by epoch",
		.about = "As seen by whoever takes the batches: what was ready "
			 "at the start of an epoch counts for it.",
		.x = { "epoch", pen__show_whole, 0 },
		.y = { "samples/s", pen__show_count, 0 },
		.x_at = number,
		.n = n,
		.series = &one,
		.nseries = 1,
	};

	for (size_t i = 0; seconds && samples && number && i < n; i++) {
		number[i] = (double)i + 1;
		samples[i] = seconds[i] > 0 ? samples[i] / seconds[i] : NAN;
	}
	if (seconds && samples && number && n > 1 && n == m)
		pen__chart_plot(t, &p);
	pen__free(seconds);
	pen__free(samples);
	pen__free(number);
}

/* Every figure of --quality, where it was asked for. */
static void put_quality(struct pen_text *t, const struct pen_run *r)
{
	static const struct {
		const char *name, *path;
	} rows[] = {
		{ "batches looked at", "quality.full_batches" },
		{ "every sample once an epoch", "quality.exactly_once" },
		{ "samples that count as independent, a batch",
		  "quality.n_eff" },
		{ "the same by the closed form", "quality.n_eff_expected" },
		{ "entropy of labels, all data", "quality.label.entropy" },
		{ "entropy of labels, a batch", "quality.label.batch_entropy" },
		{ "the same, expected",
		  "quality.label.batch_entropy_expected" },
		{ "classes", "quality.label.classes" },
	};
	static const char *const names[] = { "how well it is mixed", "#value",
					     NULL };
	struct pen_id id = pen__run_id(r, "quality");
	char text[64];

	if (pen__doc_at(r->d, 0, "quality") == PEN_JDOC_NONE)
		return;
	pen__text_add(t, "<h3>Shuffle quality</h3>\n");
	pen__table_open(t, "Shuffle quality", names);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint32_t node = pen__doc_at(r->d, 0, rows[i].path);

		if (node == PEN_JDOC_NONE)
			continue;
		pen__table_row(t, id.s, i);
		pen__table_text(t, rows[i].name);
		pen__table_text(t,
				pen__doc_shown(r->d, node, text, sizeof(text)));
		pen__table_row_end(t);
	}
	pen__table_close(t);
}

static void put_settings(struct pen_text *t, const struct pen_doc *d)
{
	static const struct {
		const char *name, *path;
	} facts[] = {
		{ "format", "data.format" },
		{ "files", "data.objects" },
		{ "samples", "data.samples" },
		{ "bytes", "data.bytes" },
		{ "share in the page cache", "data.page_cache_share" },
		{ "store", "store" },
		{ "because", "store_reason" },
		{ "sampler", "sampler" },
		{ "seed", "seed" },
		{ "batch size", "batch_size" },
		{ "threads", "threads" },
		{ "batches ahead", "prefetch" },
		{ "reads in flight a thread", "queue_depth" },
		{ "penstock", "version" },
	};
	char text[64];

	pen__text_add(t, "<h3>Data and settings</h3>\n<dl>\n");
	for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++) {
		uint32_t node = pen__doc_at(d, 0, facts[i].path);

		if (node == PEN_JDOC_NONE ||
		    pen__doc_number(d, node, "") < 0) /* not known */
			continue;
		pen__text_add(t, "<dt>%s</dt><dd>", facts[i].name);
		pen__html(t, pen__doc_shown(d, node, text, sizeof(text)));
		pen__text_add(t, "</dd>\n");
	}
	pen__text_add(t, "</dl>\n");
}

static void put_partial(struct pen_text *t, const char *phase)
{
	pen__text_add(t, "<p class=\"warn\">This run was interrupted");
	if (*phase)
		pen__text_add(t, " while ");
	pen__html(t, phase);
	pen__text_add(t, ": its figures are of what ran.</p>\n");
}

void pen__load_show(struct pen_text *t, const struct pen_doc *d, size_t number)
{
	struct pen_run r = { d, number };
	double rate = pen__doc_number(d, 0, "samples_per_s");
	const char *phase = pen__doc_text(d, 0, "phase");

	pen__text_add(t, "<section>\n<h2>");
	pen__html(t, pen__doc_text(d, 0, "data.path"));
	pen__text_add(t, "</h2>\n<p class=\"sub\">");
	pen__html(t, d->name);
	pen__text_add(t,
		      "</p>\n<div class=\"verdict\"><p>%s samples a second "
		      "were loaded.</p></div>\n",
		      isfinite(rate) ? pen__show_count(rate).s : "No");
	if (pen__doc_true(d, 0, "partial"))
		put_partial(t, phase);
	put_cards(t, d);
	put_epochs(t, &r);
	put_stages(t, &r);
	put_quality(t, &r);
	put_settings(t, d);
	pen__text_add(t, "</section>\n");
}

/* ---- capacity ---- */

static void put_curve(struct pen_text *t, const struct pen_run *r)
{
	uint32_t list = pen__doc_at(r->d, 0, "curve");
	size_t n = 0, m = 0;
	double *at = pen__doc_numbers(r->d, list, "accelerators", &n);
	double *au = pen__doc_numbers(r->d, list, "au_percentage", &m);
	double *want = n ? pen__alloc(n, sizeof(*want)) : NULL;
	const struct pen_series series[] = {
		{ "utilisation", au, pen__colour_of(0) },
		{ "wanted", want, pen__colour_of(1) },
	};
	struct pen_id id = pen__run_id(r, "curve");
	struct pen_plot p = {
		.id = id.s,
		.title = "Utilisation by number of accelerators",
		.about = "Medians of the repeats. Where the curve leaves the "
			 "wanted line, storage, loader or CPU are the limit.",
		.x = { "accelerators", pen__show_whole, 0 },
		.y = { "utilisation", pen__show_percent, 100 },
		.x_at = at,
		.n = n,
		.series = series,
		.nseries = 2,
	};

	for (size_t i = 0; want && i < n; i++)
		want[i] = pen__doc_number(r->d, 0, "au_wanted_percentage");
	if (at && au && want && n == m)
		pen__chart_plot(t, &p);
	pen__free(at);
	pen__free(au);
	pen__free(want);
}

void pen__capacity_show(struct pen_text *t, const struct pen_doc *d,
			size_t number)
{
	struct pen_run r = { d, number };
	double fed = pen__doc_number(d, 0, "accelerators");
	double want = pen__doc_number(d, 0, "au_wanted_percentage");
	bool partial = pen__doc_true(d, 0, "partial");

	pen__text_add(t, "<section>\n<h2>Capacity: ");
	pen__html(t, pen__doc_text(d, 0, "workload"));
	pen__text_add(t, "</h2>\n<p class=\"sub\">");
	pen__html(t, d->name);
	pen__text_add(t, "</p>\n<div class=\"verdict\"><p>");
	if (fed > 0)
		pen__text_add(t,
			      "This machine and storage feed %s emulated "
			      "accelerators at %s utilisation or more.",
			      pen__show_whole(fed).s,
			      pen__show_share(want / 100).s);
	else if (!partial)
		pen__text_add(t, "Not even one accelerator is fed at %s.",
			      pen__show_share(want / 100).s);
	if (partial)
		pen__text_add(t, " The search was interrupted: how many more "
				 "are fed is not known.");
	pen__text_add(t, "</p>");
	if (pen__doc_number(d, 0, "cached_share") > 0.1)
		pen__text_add(
			t,
			"<p>%s of the bytes came from the page cache, "
			"not from the device.</p>",
			pen__show_share(pen__doc_number(d, 0, "cached_share"))
				.s);
	pen__text_add(t, "</div>\n");
	put_curve(t, &r);
	pen__text_add(t, "</section>\n");
}
