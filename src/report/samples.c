/*
 * Reads results. Tables define the figures and their location in each kind of
 * result.
 *
 * In a single run, the epochs are the repeats (without the first one, which
 * includes start-up, if there are more than three). Of several runs, each
 * contributes its median: epochs of one run have more in common with each other
 * than with those of other runs, so counting them separately would
 * underestimate the noise.
 */
#include "report/samples.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "report/variants.h"
#include "report/doc.h"
#include "report/jsonl.h"
#include "report/report.h"
#include "report/spread.h"

#define MAX_FACTS 4096 /* lookup is linear */

/* A figure: a number, or numbers of the members of a list; divided by `per`. */
struct source {
	const char *name, *unit;
	struct pen_shown (*show)(double);
	bool less;
	const char *list; /* "epochs"; NULL: one number per run */
	const char *at, *per;
};

static struct pen_shown show_ns(double v)
{
	return pen__show_time(v * 1e-9);
}

static struct pen_shown show_gib(double v)
{
	return pen__show_bytes(v * 1073741824);
}

static const struct source of_run[] = {
	{ "throughput", "samples/s", pen__show_count, false, "epochs",
	  "samples_per_s", NULL },
	{ "utilisation", "", pen__show_percent, false, "epochs", "au", NULL },
	/* shows read amplification, independent of the rate */
	{ "read", "/sample", pen__show_bytes, true, "epochs", "read_bytes",
	  "samples" },
	{ "cpu", "/sample", pen__show_time, true, "epochs", "cpu_s",
	  "samples" },
	{ "save", "/s", show_gib, false, "checkpoints.saves", "gib_per_s",
	  NULL },
	{ "restore", "/s", show_gib, false, "checkpoints.loads", "gib_per_s",
	  NULL },
	{ "first_batch", "", pen__show_time, true, NULL, "totals.first_batch_s",
	  NULL },
	{ "wait_p50", "", show_ns, true, NULL, "histograms.wait.p50_ns", NULL },
	{ "wait_p99", "", show_ns, true, NULL, "histograms.wait.p99_ns", NULL },
	{ "memory", "", pen__show_bytes, true, "ranks", "peak_memory_bytes",
	  NULL },
	{ 0 },
};

static const struct source of_load[] = {
	{ "throughput", "samples/s", pen__show_count, false, "epochs",
	  "samples", "seconds" },
	{ "payload", "/s", pen__show_bytes, false, "epochs", "payload_bytes",
	  "seconds" },
	{ "cpu", "/GB", pen__show_time, true, NULL, "cpu_s_per_gb", NULL },
	{ "open", "", pen__show_time, true, NULL, "open_s", NULL },
	{ "first_batch", "", pen__show_time, true, NULL, "first_batch_s",
	  NULL },
	{ "wait_p50", "", show_ns, true, NULL, "wait_ns.p50", NULL },
	{ "wait_p99", "", show_ns, true, NULL, "wait_ns.p99", NULL },
	{ "memory", "", pen__show_bytes, true, NULL, "peak_memory_bytes",
	  NULL },
	{ 0 },
};

/* Prefixes of keys that must be equal for a fair comparison. */
static const char *const conditions_run[] = {
	"version",    "workload",	  "config",    "loader.",
	"hosts",      "accelerators",	  "processes", "data.samples",
	"data.bytes", "page_cache.state", NULL
};
static const char *const conditions_load[] = {
	"version", "data.",   "store",	  "sampler",	 "seed",
	"batch",   "threads", "prefetch", "queue_depth", NULL
};

struct kind {
	const char *schema; /* without its version */
	const struct source *source;
	const char *const *conditions;
};
static const struct kind kinds[] = {
	{ "penstock.result/", of_run, conditions_run },
	{ "penstock.load/", of_load, conditions_load },
};

/* ---- adding ---- */

static void *grow(struct pen_samples *s, void *p, size_t n, size_t *cap,
		  size_t size)
{
	size_t want = *cap ? 2 * *cap : 16;
	void *more;

	if (n < *cap)
		return p;
	more = pen__realloc(p, want, size);
	if (!more) {
		s->nomem = true;
		return NULL;
	}
	*cap = want;
	return more;
}

static struct pen_figure *figure_of(struct pen_samples *s,
				    const struct source *k, const char *name)
{
	struct pen_figure *f;
	void *more;

	for (size_t i = 0; i < s->nfigures; i++)
		if (!strcmp(s->figure[i].name, name))
			return &s->figure[i];
	more = grow(s, s->figure, s->nfigures, &s->figures_cap, sizeof(*f));
	if (!more)
		return NULL;
	s->figure = more;
	f = &s->figure[s->nfigures];
	*f = (struct pen_figure){ .name = pen__strdup(name),
				  .show = k->show,
				  .unit = k->unit,
				  .less = k->less };
	if (!f->name) {
		s->nomem = true;
		return NULL;
	}
	s->nfigures++;
	return f;
}

static void value_add(struct pen_samples *s, struct pen_figure *f, double v)
{
	void *more;

	if (!f || !isfinite(v))
		return;
	more = grow(s, f->v, f->n, &f->cap, sizeof(*f->v));
	if (!more)
		return;
	f->v = more;
	f->v[f->n++] = v;
}

static void fact_add(struct pen_samples *s, const char *key, const char *value)
{
	struct pen_fact *f;
	void *more;

	for (size_t i = 0; i < s->nfacts; i++) {
		if (strcmp(s->fact[i].key, key))
			continue;
		if (strcmp(s->fact[i].value, value))
			s->fact[i].varies = true;
		return;
	}
	if (s->nfacts == MAX_FACTS)
		return;
	more = grow(s, s->fact, s->nfacts, &s->facts_cap, sizeof(*f));
	if (!more)
		return;
	s->fact = more;
	f = &s->fact[s->nfacts];
	*f = (struct pen_fact){ pen__strdup(key), pen__strdup(value), false };
	if (f->key && f->value) {
		s->nfacts++;
		return;
	}
	pen__free(f->key);
	pen__free(f->value);
	s->nomem = true;
}

/* ---- documents ---- */

/*
 * Rates of the members of a list; neighbours are combined until they are an
 * eighth of the total. Single short epochs are not meaningful, because the next
 * epoch is prefetched during the current one.
 */
static size_t rates_of(const struct pen_doc *d, uint32_t list,
		       const struct source *k, double *v)
{
	double all = 0, of = 0, per = 0;
	size_t n = 0;

	for (uint32_t c = pen__jdoc_first(&d->j, list); c != PEN_JDOC_NONE;
	     c = pen__jdoc_next(&d->j, c))
		all += pen__doc_number(d, c, k->per);
	for (uint32_t c = pen__jdoc_first(&d->j, list); c != PEN_JDOC_NONE;
	     c = pen__jdoc_next(&d->j, c)) {
		of += pen__doc_number(d, c, k->at);
		per += pen__doc_number(d, c, k->per);
		if (!(per * 8 >= all) || per <= 0)
			continue;
		v[n] = of / per;
		n += isfinite(v[n]);
		of = per = 0;
	}
	return n;
}

/* The values of a run; v has room for all members of the list. */
static size_t values_of(const struct pen_doc *d, const struct source *k,
			double *v)
{
	uint32_t list = k->list ? pen__doc_at(d, 0, k->list) : PEN_JDOC_NONE;
	size_t n = 0;

	if (!k->list) {
		v[0] = pen__doc_number(d, 0, k->at);
		return isfinite(v[0]);
	}
	if (k->per)
		return rates_of(d, list, k, v);
	for (uint32_t c = pen__jdoc_first(&d->j, list); c != PEN_JDOC_NONE;
	     c = pen__jdoc_next(&d->j, c)) {
		v[n] = pen__doc_number(d, c, k->at);
		n += isfinite(v[n]);
	}
	return n;
}

static void take_figure(struct pen_samples *s, const struct pen_doc *d,
			const struct source *k, bool alone)
{
	uint32_t count =
		k->list ? pen__jdoc_count(&d->j, pen__doc_at(d, 0, k->list))
			: 1;
	double *v = pen__alloc(count + 1, sizeof(*v));
	struct pen_figure *f;
	size_t n, from = 0;

	if (!v) {
		s->nomem = true;
		return;
	}
	n = values_of(d, k, v);
	f = n ? figure_of(s, k, k->name) : NULL;
	if (f && alone && k->list) {
		f->within = n > 1;
		if (n > 3 && !strcmp(k->list, "epochs"))
			from = 1;
		for (size_t i = from; i < n; i++)
			value_add(s, f, v[i]);
	} else if (f) {
		value_add(s, f, pen__median(v, n));
	}
	pen__free(v);
}

static bool is_condition(const char *key, const char *const *list)
{
	for (; *list; list++)
		if (!strncmp(key, *list, strlen(*list)))
			return true;
	return false;
}

/* Adds all leaves below a node that are conditions, as facts. */
static void take_facts(struct pen_samples *s, const struct pen_doc *d,
		       uint32_t node, const char *key,
		       const char *const *conditions)
{
	enum pen_jdoc_type type = pen__jdoc_type(&d->j, node);
	char path[256], text[64];
	unsigned i = 0;

	if (type == PEN_JDOC_OBJECT || type == PEN_JDOC_LIST) {
		for (uint32_t c = pen__jdoc_first(&d->j, node);
		     c != PEN_JDOC_NONE; c = pen__jdoc_next(&d->j, c), i++) {
			if (type == PEN_JDOC_OBJECT)
				snprintf(path, sizeof(path), "%s%s%s", key,
					 key[0] ? "." : "",
					 d->j.text + d->j.node[c].key);
			else
				snprintf(path, sizeof(path), "%s[%u]", key, i);
			if (key[0] || is_condition(path, conditions) ||
			    pen__jdoc_type(&d->j, c) == PEN_JDOC_OBJECT)
				take_facts(s, d, c, path, conditions);
		}
		return;
	}
	if (!is_condition(key, conditions))
		return;
	fact_add(s, key, pen__doc_shown(d, node, text, sizeof(text)));
}

static void add_seconds(struct pen_samples *s, const struct pen_doc *d)
{
	uint32_t list = pen__doc_at(d, 0, "epochs");

	for (uint32_t c = pen__jdoc_first(&d->j, list); c != PEN_JDOC_NONE;
	     c = pen__jdoc_next(&d->j, c)) {
		double v = pen__doc_number(d, c, "seconds");

		s->seconds += v > 0 ? v : 0;
	}
}

static int read_document(struct pen_samples *s, const char *path, bool alone,
			 struct pen_err *err)
{
	const struct kind *k = NULL;
	struct pen_doc d;
	int rc = pen__doc_open(&d, path, err);

	if (rc)
		return rc;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (pen__doc_is(&d, kinds[i].schema))
			k = &kinds[i];
	if (k) {
		for (const struct source *f = k->source; f->name; f++)
			take_figure(s, &d, f, alone);
		take_facts(s, &d, 0, "", k->conditions);
		s->partial |= pen__doc_true(&d, 0, "partial");
		add_seconds(s, &d);
		s->nruns++;
	} else {
		rc = pen__fail(err, P_UNSUPPORTED_FEATURE, path,
			       "contains nothing to compare; use results of "
			       "run, load, bench or sweep");
	}
	pen__doc_close(&d);
	return rc;
}

/* ---- rows ---- */

static double rate_of(const struct pen_line *r)
{
	return pen__line_number(r, "samples_per_s");
}

static const struct {
	struct source k;
	double (*of)(const struct pen_line *);
} of_rows[] = {
	{ { "throughput", "samples/s", pen__show_count, false, 0, 0, 0 },
	  rate_of },
	{ { "memory", "", pen__show_bytes, true, 0, 0, 0 }, pen__line_memory },
};

static int read_rows(struct pen_samples *s, const char *path,
		     struct pen_err *err)
{
	struct pen_lines rows = { 0 };
	int rc = pen__lines_read(&rows, path, err);
	char name[256];

	for (size_t i = 0; !rc && i < rows.n; i++) {
		const struct pen_line *r = &rows.row[i];
		const char *setup = pen__line_text(r, "setup");
		const bool none = pen__line_true(r, "oom") || pen__row_wrong(r);

		for (size_t k = 0; k < 2 && !none; k++) {
			double v = of_rows[k].of(r);

			snprintf(name, sizeof(name), "%s%s%s", setup,
				 setup[0] ? ": " : "", of_rows[k].k.name);
			if (isfinite(v))
				value_add(s, figure_of(s, &of_rows[k].k, name),
					  v);
		}
		for (size_t c = 0; c < r->n; c++)
			if (!strncmp(pen__cell_key(r, c), "machine", 7) ||
			    !strncmp(pen__cell_key(r, c), "data", 4) ||
			    !strcmp(pen__cell_key(r, c), "version"))
				fact_add(s, pen__cell_key(r, c),
					 pen__cell_text(r, c));
	}
	s->nruns += rows.n;
	pen__lines_fini(&rows);
	if (!rc && !s->nruns)
		rc = pen__fail(err, P_NOT_A_RESULT, path,
			       "contains no complete row");
	return rc;
}

/* ---- directories ---- */

struct below {
	struct pen_samples *s; /* NULL: count only */
	size_t n;
	bool alone;
};

static int found(void *arg, const char *path, struct pen_err *err)
{
	struct below *b = arg;

	b->n++;
	return b->s ? read_document(b->s, path, b->alone, err) : 0;
}

static bool ends_with(const char *s, const char *end)
{
	size_t n = strlen(s), m = strlen(end);

	return n >= m && !strcmp(s + n - m, end);
}

int pen__samples_read(struct pen_samples *s, const char *path,
		      struct pen_err *err)
{
	struct below b = { 0 };
	struct stat st;
	int rc;

	*s = (struct pen_samples){ .name = path };
	if (stat(path, &st))
		return pen__fail_sys(err, errno, path, "cannot open");
	if (S_ISDIR(st.st_mode)) {
		rc = pen__doc_walk(path, found, &b, err);
		if (!rc && !b.n)
			return pen__fail(
				err, P_NOT_FOUND, path,
				"the directory contains no result.json");
		b = (struct below){ s, 0, b.n == 1 };
		if (!rc)
			rc = pen__doc_walk(path, found, &b, err);
	} else if (ends_with(path, ".jsonl")) {
		rc = read_rows(s, path, err);
	} else {
		rc = read_document(s, path, true, err);
	}
	if (!rc && s->nomem)
		rc = pen__fail_nomem(err, path, 0);
	return rc;
}

void pen__samples_fini(struct pen_samples *s)
{
	for (size_t i = 0; i < s->nfigures; i++) {
		pen__free(s->figure[i].name);
		pen__free(s->figure[i].v);
	}
	for (size_t i = 0; i < s->nfacts; i++) {
		pen__free(s->fact[i].key);
		pen__free(s->fact[i].value);
	}
	pen__free(s->figure);
	pen__free(s->fact);
}

const struct pen_figure *pen__samples_figure(const struct pen_samples *s,
					     const char *name)
{
	for (size_t i = 0; i < s->nfigures; i++)
		if (!strcmp(s->figure[i].name, name))
			return &s->figure[i];
	return NULL;
}

const struct pen_fact *pen__samples_fact(const struct pen_samples *s,
					 const char *key)
{
	for (size_t i = 0; i < s->nfacts; i++)
		if (!strcmp(s->fact[i].key, key))
			return &s->fact[i];
	return NULL;
}
