/*
 * A grid of settings with several interleaved runs of every cell. A run is
 * `penstock run` of a workload or `penstock load` of data in a separate
 * process, so that it measures what a user gets.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/quote.h"
#include "experiment/harness.h"
#include "report/chart.h"
#include "report/doc.h"

#define MOST_AXES 16
#define MOST_ARGS 256
#define MOST_CELLS 100000
#define MOST_LENGTH 255 /* of a value */

struct axis {
	char key[128];
	char *value[256];
	size_t n;
};

struct sweep {
	const char *target; /* workload or path */
	struct axis axis[MOST_AXES];
	size_t naxes, ncells;
	char *fixed[MOST_ARGS]; /* "key=value", and paths */
	size_t nfixed;
};

/* ---- the grid ---- */

static int refuse(const char *what, const char *why, struct pen_err *err)
{
	return pen__fail(err, P_BAD_VALUE, "sweep", "'%.40s': %s", what, why);
}

/* "1,2,4" or "[64,4096]": values of an axis. */
static int add_axis(struct sweep *s, const char *key, const char *text,
		    struct pen_err *err)
{
	struct axis *x = &s->axis[s->naxes];
	size_t n = strlen(text);
	bool bracket = n > 1 && text[0] == '[' && text[n - 1] == ']';
	const char *p = text + bracket, *end = text + n - bracket;

	if (s->naxes == MOST_AXES)
		return refuse(key, "too many lists; the maximum is 16", err);
	if (strlen(key) >= sizeof(x->key))
		return refuse(key, "the name of the setting is too long", err);
	snprintf(x->key, sizeof(x->key), "%s", key);
	s->naxes++;
	while (p <= end) {
		size_t len = strcspn(p, ",");

		len = p + len > end ? (size_t)(end - p) : len;
		if (!len)
			return refuse(key, "the list has an empty value", err);
		if (len > MOST_LENGTH || x->n == 256)
			return refuse(key,
				      "the list has more than 256 values, or "
				      "one longer than 255 bytes",
				      err);
		x->value[x->n] = pen__alloc(len + 1, 1);
		if (!x->value[x->n])
			return pen__fail_nomem(err, "sweep", len);
		snprintf(x->value[x->n++], len + 1, "%.*s", (int)len, p);
		p += len + 1;
	}
	s->ncells = (s->ncells ? s->ncells : 1) * x->n;
	return s->ncells > MOST_CELLS
		       ? refuse(key,
				"the grid has more than 100,000 combinations",
				err)
		       : 0;
}

static int add_fixed(struct pen_session *r, const char *key, const char *value,
		     struct pen_err *err)
{
	struct sweep *s = r->own;
	struct pen_text t = { 0 };

	pen__text_add(&t, "%s%s%s", key ? key : "", key ? "=" : "", value);
	if (s->nfixed + MOST_AXES + 16 > MOST_ARGS)
		return refuse(value, "too many settings", err);
	s->fixed[s->nfixed] = pen__strdup(t.p ? t.p : "");
	pen__text_fini(&t);
	if (!s->fixed[s->nfixed])
		return pen__fail_nomem(err, "sweep", strlen(value));
	pen__text_add(&r->settings, "%s%s", r->settings.n ? " " : "",
		      s->fixed[s->nfixed++]);
	return 0;
}

static int take(struct pen_session *r, const char *key, const char *value,
		struct pen_err *err)
{
	struct sweep *s = r->own;

	if (key && key[0] == '-') /* --fixed */
		return add_fixed(r, NULL, value, err);
	if (key && (strchr(value, ',') || value[0] == '['))
		return add_axis(s, key, value, err);
	if (key || s->target)
		return add_fixed(r, key, value, err);
	s->target = value;
	snprintf(r->path, sizeof(r->path), "%s", value);
	return 0;
}

/* The value of an axis in a cell: cells are numbered in mixed radix. */
static const char *value_of(const struct sweep *s, size_t cell, size_t axis)
{
	for (size_t i = s->naxes; i-- > axis + 1;)
		cell /= s->axis[i].n;
	return s->axis[axis].value[cell % s->axis[axis].n];
}

/* The varied settings: "threads=2 store=uring". */
static void describe(struct pen_session *r, const struct pen_setup *of,
		     struct pen_trial *t)
{
	const struct sweep *s = r->own;
	const size_t cap = sizeof(t->setup);
	size_t at = 0;

	for (size_t i = 0; i < s->naxes && at < cap; i++)
		at += (size_t)snprintf(t->setup + at, cap - at, "%s%s=%s",
				       i ? " " : "", s->axis[i].key,
				       value_of(s, of->value, i));
	pen__quote(t->title, 61, t->setup);
}

static void head(struct pen_text *j, const struct pen_session *r,
		 const struct pen_setup *of)
{
	const struct sweep *s = r->own;

	pen__json_open(j, "set", '{');
	for (size_t i = 0; i < s->naxes; i++)
		pen__json_str(j, s->axis[i].key, value_of(s, of->value, i));
	pen__json_close(j, '}');
	pen__json_open(j, "fixed", '[');
	for (size_t i = 0; i < s->nfixed; i++)
		pen__json_str(j, NULL, s->fixed[i]);
	pen__json_close(j, ']');
}

static int prepare(struct pen_session *r, struct pen_err *err)
{
	const struct sweep *s = r->own;

	if (!s->target)
		return pen__fail(err, P_MISSING_SETTING, "sweep",
				 "no target given; name a workload or a PATH");
	if (!s->naxes)
		return pen__fail(err, P_MISSING_SETTING, "sweep",
				 "no setting has a list of values; write one "
				 "such as threads=1,2,4");
	r->mixed_order = true;
	for (size_t i = 0; i < s->ncells; i++)
		pen__setup_add(r, "", "", i);
	return pen__run_rows_open(r, err);
}

static void close_sweep(struct pen_session *r)
{
	struct sweep *s = r->own;

	for (size_t i = 0; i < s->naxes; i++)
		for (size_t k = 0; k < s->axis[i].n; k++)
			pen__free(s->axis[i].value[k]);
	for (size_t i = 0; i < s->nfixed; i++)
		pen__free(s->fixed[i]);
}

/* ---- one run ---- */

static const struct figure {
	const char *key, *path;
	double times;
} of_run[] = {
	{ "samples_per_s", "totals.samples_per_s.mean", 1 },
	{ "au", "totals.au.mean", 1 },
	{ "read_bytes_per_s", "totals.read_mib_per_s", 1048576 },
	{ "wait_p50_s", "histograms.wait.p50_ns", 1e-9 },
	{ "wait_p99_s", "histograms.wait.p99_ns", 1e-9 },
	{ "cached_share", "page_cache.cached_share", 1 },
	{ NULL, NULL, 0 },
}, of_load[] = {
	{ "samples_per_s", "samples_per_s", 1 },
	{ "read_bytes_per_s", "read_bytes_per_s", 1 },
	{ "wait_p50_s", "wait_ns.p50", 1e-9 },
	{ "wait_p99_s", "wait_ns.p99", 1e-9 },
	{ "peak_memory_bytes", "peak_memory_bytes", 1 },
	{ "samples", "samples", 1 },
	{ NULL, NULL, 0 },
};

static void put_figures(struct pen_text *j, bool workload,
			const struct pen_doc *d, const struct pen_process *p)
{
	for (const struct figure *f = workload ? of_run : of_load; f->key;
	     f++) {
		const double v = pen__doc_number(d, 0, f->path);

		if (isfinite(v))
			pen__json_num(j, f->key, v * f->times);
	}
	if (workload)
		pen__json_int(j, "peak_memory_bytes", p->peak_bytes);
	pen__json_num(j, "seconds", p->real_s);
	pen__json_num(j, "cpu_s", p->user_s + p->system_s);
}

static int run(struct pen_session *r, const struct pen_trial *t,
	       struct pen_text *j, struct pen_err *err)
{
	const struct sweep *s = r->own;
	const bool workload = pen__names_workload(s->target);
	const char *argv[MOST_ARGS + MOST_AXES + 8] = {
		"", workload ? "run" : "load", s->target, "--json", "--quiet"
	};
	struct pen_doc d = { .name = "output of the run" };
	struct pen_process p = { 0 };
	char set[MOST_AXES][512];
	size_t n = 5;
	int rc;

	for (size_t i = 0; i < s->nfixed; i++)
		argv[n++] = s->fixed[i];
	for (size_t i = 0; i < s->naxes; i++) {
		snprintf(set[i], sizeof(set[i]), "%s=%s", s->axis[i].key,
			 value_of(s, t->of->value, i));
		argv[n++] = set[i];
	}
	if (t->cold)
		argv[n++] = workload ? "reader.page_cache=drop"
				     : "--drop-cache";
	rc = pen__process_doc(&p, argv, &d, err);
	if (rc) {
		snprintf(err->where, sizeof(err->where), "%.255s", t->setup);
		return rc;
	}
	put_figures(j, workload, &d, &p);
	pen__jdoc_close(&d.j);
	return 0;
}

/* ---- the result ---- */

static void words(struct pen_text *t, const struct pen_variants *a)
{
	static const struct pen_ranking fastest = { .what = "Fastest",
						    .key = "samples_per_s" };
	const struct pen_variant *best = pen__put_best(t, a, &fastest);
	const struct pen_variant *last = best;
	struct pen_change c;

	for (size_t i = 0; best && i < a->n; i++)
		if (a->v[i].by < last->by)
			last = &a->v[i];
	if (last == best)
		return;
	c = pen__change_of(a, last, best, "samples_per_s");
	if (c.differs)
		pen__text_add(t, "The slowest (%s) reaches %s of that.\n",
			      last->name, pen__show_share(1 / (1 + c.share)).s);
	else if (!isnan(c.low))
		pen__text_add(t, "The slowest does not differ beyond noise: "
				 "none of the varied settings matters.\n");
}

static void facts(struct pen_text *t, const struct pen_variants *a)
{
	pen__text_add(t, "%s, ", pen__show_counted(a->n, "setting").s);
	pen__text_add(t, "%s.\n", pen__show_counted(a->nrows, "run").s);
}

static void name(struct pen_variant *m)
{
	snprintf(m->name, sizeof(m->name), "%s",
		 pen__line_text(m->row, "setup"));
}

struct curve {
	double x[PEN_MOST_VALUES], y[PEN_MOST_VALUES];
	double low[PEN_MOST_VALUES], high[PEN_MOST_VALUES];
	size_t n;
};

/* Inserts an empty entry. */
static void make_room(struct curve *c, size_t at)
{
	double *const v[] = { c->x, c->y, c->low, c->high };

	for (size_t i = 0; i < 4; i++)
		memmove(v[i] + at + 1, v[i] + at, (c->n - at) * sizeof(double));
	c->n++;
}

/* The best rate for each value of a key; false: the values are not numbers. */
static bool curve_of(const struct pen_variants *a, const char *key,
		     struct curve *out)
{
	out->n = 0;
	for (size_t i = 0; i < a->n; i++) {
		const char *text = pen__line_text(a->v[i].row, key);
		char *end;
		const double x = strtod(text, &end);
		struct pen_range r;
		size_t at = 0;

		if (end == text || *end || !isfinite(x))
			return false;
		while (at < out->n && out->x[at] < x)
			at++;
		r = pen__range_of(a, &a->v[i], "samples_per_s");
		if (at < out->n && out->x[at] == x) {
			if (!(r.mid > out->y[at]))
				continue;
		} else if (out->n == PEN_MOST_VALUES) {
			return false;
		} else {
			make_room(out, at);
		}
		out->x[at] = x;
		out->y[at] = r.mid;
		out->low[at] = r.low;
		out->high[at] = r.high;
	}
	return out->n > 1;
}

/* A value of a setting, with all its digits. */
static struct pen_shown show_value(double v)
{
	struct pen_shown s;

	if (v >= 0 && v < 1e15 && floor(v) == v)
		return pen__show_whole(v);
	snprintf(s.s, sizeof(s.s), "%.6g", v);
	return s;
}

/* number: of the key; the key itself may not be valid in an id */
static void put_curve(struct pen_text *t, const struct pen_group *g,
		      size_t number, const char *key, const struct curve *c)
{
	const struct pen_series one = { "best samples/s", c->y,
					pen__colour_of(0) };
	char id[64], title[160];
	struct pen_plot p = {
		.id = id,
		.title = title,
		.about = "The best median of all combinations with this value; "
			 "the line spans its lowest to highest run.",
		.x = { key, show_value, 0 },
		.y = { "samples/s", pen__show_count, 0 },
		.x_at = c->x,
		.n = c->n,
		.series = &one,
		.nseries = 1,
		.low = c->low,
		.high = c->high,
	};

	snprintf(title, sizeof(title), "Best rate by %s", key);
	snprintf(id, sizeof(id), "k%zu-%zu", g->number, number);
	pen__chart_plot(t, &p);
}

static int show(struct pen_text *t, const struct pen_variants *a,
		const struct pen_group *g, struct pen_err *err)
{
	struct curve k;

	(void)err;
	for (size_t i = 0; i < g->row[0]->n; i++) {
		const char *key = pen__cell_key(g->row[0], i);

		if (!strncmp(key, "set.", 4) && curve_of(a, key, &k))
			put_curve(t, g, i, key + 4, &k);
	}
	return 0;
}

struct pen_experiment pen__exp_sweep = {
	.kind = { .experiment = "sweep",
		  .words = words,
		  .facts = facts,
		  .name = name,
		  .show = show },
	.own = sizeof(struct sweep),
	.take = take,
	.prepare = prepare,
	.head = head,
	.describe = describe,
	.run = run,
	.close = close_sweep,
};
