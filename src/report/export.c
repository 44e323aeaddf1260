/*
 * Exports documents: CSV in long form (file, key, value for every leaf) and
 * OpenMetrics text, for a text-file collector or a push gateway.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/report.h"

/* ---- CSV ---- */

void pen__csv_field(struct pen_text *t, const char *s, bool first)
{
	if (!first)
		pen__text_put(t, ",", 1);
	/* spreadsheets would interpret these as formulas */
	if (strchr("=+-@", s[0]) && s[0] && s[strspn(s, "+-.0123456789eE")])
		pen__text_put(t, "'", 1);
	if (!s[strcspn(s, "\",\r\n")]) {
		pen__text_put(t, s, strlen(s));
		return;
	}
	pen__text_put(t, "\"", 1);
	for (; *s; s++) {
		pen__text_put(t, s, 1);
		if (*s == '"')
			pen__text_put(t, s, 1);
	}
	pen__text_put(t, "\"", 1);
}

static void put_leaves(struct pen_text *t, const struct pen_doc *d,
		       uint32_t node, const char *key)
{
	enum pen_jdoc_type type = pen__jdoc_type(&d->j, node);
	char path[512], text[64];
	unsigned i = 0;

	if (type != PEN_JDOC_OBJECT && type != PEN_JDOC_LIST) {
		pen__csv_field(t, d->name, true);
		pen__csv_field(t, key, false);
		pen__csv_field(t, pen__doc_shown(d, node, text, sizeof(text)),
			       false);
		pen__text_put(t, "\n", 1);
		return;
	}
	for (uint32_t c = pen__jdoc_first(&d->j, node); c != PEN_JDOC_NONE;
	     c = pen__jdoc_next(&d->j, c), i++) {
		if (type == PEN_JDOC_OBJECT)
			snprintf(path, sizeof(path), "%s%s%s", key,
				 key[0] ? "." : "",
				 d->j.text + d->j.node[c].key);
		else
			snprintf(path, sizeof(path), "%s.%u", key, i);
		put_leaves(t, d, c, path);
	}
}

void pen__documents_csv(const struct pen_results *r, struct pen_text *t)
{
	pen__text_add(t, "file,key,value\n");
	for (size_t i = 0; i < r->ndocs; i++)
		put_leaves(t, &r->doc[i], 0, "");
}

/* ---- OpenMetrics ---- */

static const struct {
	const char *name, *unit, *help;
	const char *of_run, *of_load; /* paths; NULL: not available */
	double times;
} metrics[] = {
	{ "penstock_utilisation_ratio", "ratio",
	  "fraction of time that the emulated accelerators spent computing",
	  "totals.au.mean", NULL, 0.01 },
	{ "penstock_samples_per_second", "", "samples delivered per second",
	  "totals.samples_per_s.mean", "samples_per_s", 1 },
	{ "penstock_read_bytes_per_second", "",
	  "bytes read from the store per second", "totals.read_mib_per_s",
	  "read_bytes_per_s", 1 },
	{ "penstock_payload_bytes", "bytes", "bytes delivered in batches",
	  "totals.payload_bytes", "payload_bytes", 1 },
	{ "penstock_wait_p50_seconds", "seconds", "median wait for a batch",
	  "histograms.wait.p50_ns", "wait_ns.p50", 1e-9 },
	{ "penstock_wait_p99_seconds", "seconds",
	  "99th percentile of the wait for a batch", "histograms.wait.p99_ns",
	  "wait_ns.p99", 1e-9 },
	{ "penstock_first_batch_seconds", "seconds",
	  "time from opening to the first batch", "totals.first_batch_s",
	  "first_batch_s", 1 },
	{ "penstock_cpu_seconds", "seconds", "CPU time of the run",
	  "totals.cpu_s", "cpu_s", 1 },
	{ "penstock_accelerators", "", "emulated accelerators", "accelerators",
	  NULL, 1 },
	{ "penstock_memory_peak_bytes", "bytes", "peak memory", NULL,
	  "peak_memory_bytes", 1 },
};

static void put_label(struct pen_text *t, const char *name, const char *value,
		      bool first)
{
	pen__text_add(t, "%s%s=\"", first ? "" : ",", name);
	for (size_t n; *value; value += n ? n : 1) {
		n = pen__plain_len(value);
		if (*value == '"' || *value == '\\')
			pen__text_put(t, "\\", 1);
		if (*value == '\n')
			pen__text_put(t, "\\n", 2);
		else if (!n) /* the format requires UTF-8 */
			pen__text_put(t, "\xef\xbf\xbd", 3);
		else
			pen__text_put(t, value, n);
	}
	pen__text_put(t, "\"", 1);
}

void pen__documents_metrics(const struct pen_results *r, struct pen_text *t)
{
	for (size_t m = 0; m < sizeof(metrics) / sizeof(metrics[0]); m++) {
		bool any = false;

		for (size_t i = 0; i < r->ndocs; i++) {
			const struct pen_doc *d = &r->doc[i];
			bool run = pen__doc_is(d, "penstock.result/");
			const char *path = run ? metrics[m].of_run
					       : metrics[m].of_load;
			double v = path ? pen__doc_number(d, 0, path) : NAN;

			if (!isfinite(v))
				continue;
			if (!any)
				pen__text_add(t, "# TYPE %s gauge\n",
					      metrics[m].name);
			if (!any && metrics[m].unit[0])
				pen__text_add(t, "# UNIT %s %s\n",
					      metrics[m].name, metrics[m].unit);
			if (!any)
				pen__text_add(t, "# HELP %s %s\n",
					      metrics[m].name, metrics[m].help);
			any = true;
			if (strstr(path, "_mib_"))
				v *= 1048576;
			pen__text_add(t, "%s{", metrics[m].name);
			put_label(t, "result", d->name, true);
			put_label(t, "name",
				  pen__doc_text(d, 0,
						run ? "workload" : "data.path"),
				  false);
			pen__text_add(t, "} %.9g\n", v * metrics[m].times);
		}
	}
	pen__text_add(t, "# EOF\n");
}
