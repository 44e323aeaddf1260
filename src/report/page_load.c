/* Pages for the output of `load --json` and `capacity --json`. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "report/chart.h"
#include "report/page_run.h"
#include "report/report.h"
#include "report/spread.h"

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
	put_card(t, "samples per second", rate, pen__show_count(rate), "");
	put_card(t, "delivered", bytes, pen__show_bytes(bytes), "/s");
	put_card(t, "time to first batch", first, pen__show_time(first), "");
	put_card(t, "median wait for a batch", p50, pen__show_time(p50), "");
	put_card(t, "99th percentile wait", p99, pen__show_time(p99), "");
	put_card(t, "CPU time per GB", cpu, pen__show_time(cpu), "");
	put_card(t, "peak memory", memory, pen__show_bytes(memory), "");
	pen__text_add(t, "</ul>\n");
}

/* Throughput per epoch. */
static void put_epochs(struct pen_text *t, const struct pen_run_page *r)
{
	uint32_t list = pen__doc_at(r->d, 0, "epochs");
	size_t n = 0, m = 0;
	double *seconds = pen__doc_numbers(r->d, list, "seconds", &n);
	double *samples = pen__doc_numbers(r->d, list, "samples", &m);
	double *number = n ? pen__alloc(n, sizeof(*number)) : NULL;
	struct pen_series one = { "samples per second", samples,
				  pen__colour_of(0) };
	struct pen_id id = pen__run_id(r, "epochs");
	struct pen_plot p = {
		.id = id.s,
		.title = "Throughput by epoch",
		.about =
			"As seen by the consumer: batches that were prefetched "
			"before an epoch starts count towards that epoch.",
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

/* The figures of --quality, if measured. */
static void put_quality(struct pen_text *t, const struct pen_run_page *r)
{
	static const struct {
		const char *name, *path;
	} rows[] = {
		{ "batches examined", "quality.full_batches" },
		{ "every sample exactly once per epoch",
		  "quality.exactly_once" },
		{ "effective independent samples per batch", "quality.n_eff" },
		{ "effective independent samples per batch, expected",
		  "quality.n_eff_expected" },
		{ "label entropy of the data set", "quality.label.entropy" },
		{ "label entropy of a batch", "quality.label.batch_entropy" },
		{ "label entropy of a batch, expected (approximate)",
		  "quality.label.batch_entropy_expected" },
		{ "number of classes", "quality.label.classes" },
	};
	static const char *const names[] = { "measure", "value", NULL };
	struct pen_id id = pen__run_id(r, "quality");
	char text[64];

	if (pen__doc_at(r->d, 0, "quality") == PEN_JDOC_NONE)
		return;
	pen__text_add(t, "<h3>Shuffle quality</h3>\n");
	pen__table_open(t, "Shuffle quality", names);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint32_t node = pen__doc_at(r->d, 0, rows[i].path);

		if (node == PEN_JDOC_NONE ||
		    pen__jdoc_type(&r->d->j, node) == PEN_JDOC_NULL)
			continue; /* not measured or unknown */
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
		struct pen_shown (*show)(double); /* NULL: unchanged */
	} facts[] = {
		{ "format", "data.format", NULL },
		{ "files", "data.objects", pen__show_whole },
		{ "samples", "data.samples", pen__show_whole },
		{ "size", "data.bytes", pen__show_bytes },
		{ "in the page cache at start", "data.page_cache_share",
		  pen__show_share },
		{ "store", "store", NULL },
		{ "reason for the store", "store_reason", NULL },
		{ "sampler", "sampler", NULL },
		{ "seed", "seed", NULL },
		{ "batch size", "batch_size", NULL },
		{ "threads", "threads", NULL },
		{ "prefetch depth (batches)", "prefetch", NULL },
		{ "reads in flight per thread", "queue_depth", NULL },
		{ "penstock", "version", NULL },
	};
	char text[64];

	pen__text_add(t, "<h3>Data and settings</h3>\n<dl>\n");
	for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++) {
		uint32_t node = pen__doc_at(d, 0, facts[i].path);

		if (node == PEN_JDOC_NONE ||
		    pen__doc_number(d, node, "") < 0) /* unknown */
			continue;
		pen__text_add(t, "<dt>%s</dt><dd>", facts[i].name);
		if (facts[i].show)
			pen__html(
				t,
				facts[i].show(pen__doc_number(d, node, "")).s);
		else
			pen__html(t,
				  pen__doc_shown(d, node, text, sizeof(text)));
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
	pen__text_add(t, ": the figures cover only the part that ran.</p>\n");
}

/* The verdict, if the document has one. */
static void put_why(struct pen_text *t, const struct pen_doc *d)
{
	const char *what = pen__doc_text(d, 0, "why.what");

	if (!what[0])
		return;
	pen__text_add(t, "<p>");
	pen__html(t, what);
	pen__text_add(t, ": ");
	pen__html(t, pen__doc_text(d, 0, "why.evidence"));
	pen__text_add(t, ". ");
	pen__html(t, pen__doc_text(d, 0, "why.advice"));
	pen__text_add(t, "</p>\n");
}

void pen__load_show(struct pen_text *t, const struct pen_doc *d, size_t number,
		    bool alone)
{
	struct pen_run_page r = { d, number };
	double rate = pen__doc_number(d, 0, "samples_per_s");
	const char *phase = pen__doc_text(d, 0, "phase");

	pen__section_open(t, "", pen__doc_text(d, 0, "data.path"), d->name,
			  alone);
	pen__text_add(t, "</p>\n<div class=\"verdict\"><p>");
	if (isfinite(rate))
		pen__text_add(t, "Loaded %s samples per second.</p>\n",
			      pen__show_count(rate).s);
	else
		pen__text_add(t, "No samples were loaded.</p>\n");
	put_why(t, d);
	pen__text_add(t, "</div>\n");
	if (pen__doc_true(d, 0, "partial"))
		put_partial(t, phase);
	put_cards(t, d);
	put_epochs(t, &r);
	pen__run_stages(t, &r,
			"Time of all loader threads, summed. Idle means that "
			"they were ahead of the consumer.");
	put_quality(t, &r);
	put_settings(t, d);
	pen__text_add(t, "</section>\n");
}

/* ---- capacity ---- */

/* The repeats of one point. */
static struct pen_range repeats_of(const struct pen_doc *d, uint32_t point)
{
	const uint32_t list = pen__doc_at(d, point, "au_repeats");
	size_t n;
	double *v = pen__doc_numbers(d, list, NULL, &n);
	const struct pen_range r = pen__range(v, n);

	pen__free(v);
	return r;
}

/*
 * With few repeats, a number differs from the target only if no repeat is on
 * the other side: reports the number that every repeat reached, and that some
 * reached.
 */
static void put_doubt(struct pen_text *t, const struct pen_doc *d, double want)
{
	double every = 0, some = 0, fewest = INFINITY;
	const uint32_t list = pen__doc_at(d, 0, "curve");

	for (uint32_t c = pen__jdoc_first(&d->j, list); c != PEN_JDOC_NONE;
	     c = pen__jdoc_next(&d->j, c)) {
		const double n = pen__doc_number(d, c, "accelerators");
		const struct pen_range r = repeats_of(d, c);

		fewest = fmin(fewest, (double)r.n);
		every = r.low >= want ? fmax(every, n) : every;
		some = r.high >= want ? fmax(some, n) : some;
	}
	if (fewest < PEN_LEAST_RUNS)
		pen__text_add(t,
			      "Every point was measured %s, so the noise is "
			      "unknown; use --repeats 3 or more.\n",
			      fewest < 2 ? "once" : "twice");
	else if (every < some)
		pen__text_add(t,
			      "Within noise: %s reached the target in every "
			      "repeat, %s in some.\n",
			      every > 0 ? pen__show_whole(every).s : "none",
			      pen__show_whole(some).s);
}

void pen__capacity_words(struct pen_text *t, const struct pen_doc *d)
{
	const double fed = pen__doc_number(d, 0, "accelerators");
	const double want = pen__doc_number(d, 0, "au_wanted_percentage");
	const bool partial = pen__doc_true(d, 0, "partial");
	const char *of = pen__doc_text(d, 0, "workload");
	const char *stopped = pen__doc_text(d, 0, "stopped");

	if (fed > 0)
		pen__text_add(t, "This machine and storage feed %s of ",
			      pen__show_counted((uint64_t)fmin(fed, 1e15),
						"emulated accelerator")
				      .s);
	else if (!partial)
		pen__text_add(t, "This machine and storage cannot feed one "
				 "accelerator of ");
	if (fed > 0 || !partial) {
		pen__text_quote(t, of);
		pen__text_add(t, " at %s utilisation%s.\n",
			      pen__show_share(want / 100).s,
			      fed > 0 ? " or more" : "");
	}
	if (!partial)
		put_doubt(t, d, want);
	else
		pen__text_add(t, "The search was interrupted: the limit %s.\n",
			      fed > 0 ? "may be higher" : "is unknown");
	if (*stopped) {
		pen__text_add(t, "Larger numbers were not tried: ");
		pen__text_quote(t, stopped);
		pen__text_add(t, ".\n");
	}
}

/* The lowest and highest repeat of every point; NAN: none. */
static void fill_spread(const struct pen_doc *d, uint32_t list, double *low,
			double *high)
{
	for (uint32_t c = pen__jdoc_first(&d->j, list); c != PEN_JDOC_NONE;
	     c = pen__jdoc_next(&d->j, c)) {
		const struct pen_range r = repeats_of(d, c);

		*low++ = r.low;
		*high++ = r.high;
	}
}

static void put_curve(struct pen_text *t, const struct pen_run_page *r)
{
	uint32_t list = pen__doc_at(r->d, 0, "curve");
	size_t n = 0, m = 0;
	double *at = pen__doc_numbers(r->d, list, "accelerators", &n);
	double *au = pen__doc_numbers(r->d, list, "au_percentage", &m);
	double *more = n ? pen__alloc(3 * n, sizeof(*more)) : NULL;
	const struct pen_series series[] = {
		{ "utilisation", au, pen__colour_of(0) },
		{ "target", more, pen__colour_of(1) },
	};
	struct pen_id id = pen__run_id(r, "curve");
	struct pen_plot p = {
		.id = id.s,
		.title = "Utilisation by number of accelerators",
		.about = "Medians, with lines from the lowest to the highest "
			 "repeat. Where the curve drops below the target, "
			 "storage, loader or CPU is the bottleneck.",
		.x = { "accelerators", pen__show_whole, 0 },
		.y = { "utilisation", pen__show_percent, 100 },
		.x_at = at,
		.n = n,
		.series = series,
		.nseries = 2,
	};

	for (size_t i = 0; more && i < n; i++)
		more[i] = pen__doc_number(r->d, 0, "au_wanted_percentage");
	/* the search doubles the number */
	p.log_x = n && at && at[n - 1] > 16;
	if (at && au && more && n == m) {
		p.low = more + n;
		p.high = more + 2 * n;
		fill_spread(r->d, list, more + n, more + 2 * n);
		pen__chart_plot(t, &p);
	}
	pen__free(at);
	pen__free(au);
	pen__free(more);
}

void pen__capacity_show(struct pen_text *t, const struct pen_doc *d,
			size_t number, bool alone)
{
	struct pen_run_page r = { d, number };
	struct pen_text busy = { 0 }, words = { 0 };

	pen__section_open(t, "Capacity: ", pen__doc_text(d, 0, "workload"),
			  d->name, alone);
	pen__text_add(t, "</p>\n");
	pen__others_doc(&busy, d);
	pen__put_words(t, &busy, " class=\"warn\"");
	pen__text_add(t, "<div class=\"verdict\">");
	pen__capacity_words(&words, d);
	pen__put_words(t, &words, "");
	put_why(t, d);
	if (pen__doc_number(d, 0, "cached_share") > 0.1 &&
	    strncmp(pen__doc_text(d, 0, "why.cause"), "storage", 7) != 0)
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
