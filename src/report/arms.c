/*
 * Arms of an experiment: medians, sentences, bars and a table, the same for
 * all; a line of the table below says what is special. An arm whose count or
 * content was wrong has no figure anywhere.
 */
#include "report/arms.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "report/chart.h"

#define STEP                                                                   \
	{                                                                      \
		"step_s", "step", pen__show_time                               \
	}
#define WAIT                                                                   \
	{                                                                      \
		"wait_s", "wait in next()", pen__show_time                     \
	}
#define SECONDS                                                                \
	{                                                                      \
		"seconds", "time", pen__show_time                              \
	}
#define NOTHING                                                                \
	{                                                                      \
		NULL, NULL, NULL                                               \
	}

static const struct pen_arm_kind kinds[] = {
	{ "overlap",
	  { "load", "compute_s", NULL },
	  false,
	  true,
	  "penstock, overlapped",
	  "a step",
	  "takes %s times as long",
	  "Mean time of a step, shorter is better. Not overlapped: the loop "
	  "loads by itself.",
	  { STEP, WAIT, NOTHING } },
	{ "workers",
	  { "load_s", "compute_s", NULL },
	  true,
	  true,
	  "penstock",
	  "a step",
	  "takes %s times as long",
	  "Mean time of a step, shorter is better. Penstock's workers are "
	  "threads, PyTorch's are processes.",
	  { STEP, WAIT, NOTHING } },
	{ "iterate",
	  { "rows", "cols", NULL },
	  true,
	  false,
	  "penstock",
	  "samples/s",
	  "has %s times that",
	  "Samples a second, longer is better. Every arm delivers all rows in "
	  "batches, which are added up.",
	  { { "samples_per_s", "per s", pen__show_count }, SECONDS, NOTHING } },
	{ "prealloc",
	  { "length", NULL, NULL },
	  false,
	  true,
	  "penstock, reused",
	  "for all blocks",
	  "takes %s times as long",
	  "Time to put all blocks into one array, shorter is better.",
	  { SECONDS, { "bytes_per_s", "bytes/s", pen__show_bytes }, NOTHING } },
	{ "memory",
	  { "workers", NULL, NULL },
	  false,
	  true,
	  "penstock",
	  "at the peak",
	  "takes %s times as much",
	  "Peak memory of all processes together, shorter is better; pages "
	  "that several share count once.",
	  { { "pss_peak_bytes", "peak", pen__show_bytes },
	    { "pss_base_bytes", "before loading", pen__show_bytes },
	    { "samples_per_s", "per s", pen__show_count } } },
	{ "headspace",
	  { "compute_s", NULL, NULL },
	  false,
	  true,
	  "penstock",
	  "a step",
	  "takes %s times as long",
	  "Mean time of a step, shorter is better. Cached: the same few "
	  "batches over and over, which no loader can beat.",
	  { STEP, WAIT, NOTHING } },
};
#define NKINDS (sizeof(kinds) / sizeof(kinds[0]))

const struct pen_arm_kind *pen__arm_kind(const char *experiment)
{
	for (size_t i = 0; i < NKINDS; i++)
		if (!strcmp(kinds[i].experiment, experiment))
			return &kinds[i];
	return &kinds[0];
}

/* ---- names ---- */

static const struct variable {
	const char *key, *name;
	struct pen_shown (*show)(double);
} variables[] = {
	{ "load_s", "load", pen__show_time },
	{ "compute_s", "compute", pen__show_time },
	{ "rows", "rows", pen__show_whole },
	{ "cols", "columns", pen__show_whole },
	{ "length", "blocks", pen__show_whole },
	{ "workers", "workers", pen__show_whole },
	{ NULL, NULL, NULL },
};

void pen__arm_group(const struct pen_arm_kind *k, const struct pen_line *r,
		    char *buf, size_t cap)
{
	size_t at = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < 3 && k->vars[i] && at < cap; i++) {
		const struct variable *v = variables;
		const char *key = k->vars[i], *between = at ? ", " : "";
		const double value = pen__line_number(r, key);
		int n = 0;

		while (v->key && strcmp(v->key, key) != 0)
			v++;
		if (!v->key)
			n = snprintf(buf + at, cap - at, "%s%s %s", between,
				     key, pen__line_text(r, key));
		else if (!isnan(value))
			n = snprintf(buf + at, cap - at, "%s%s %s", between,
				     v->name, v->show(value).s);
		at += n > 0 ? (size_t)n : 0;
	}
}

/* Ours are threads, from Python too; theirs are processes. */
static bool has_threads(const struct pen_line *r)
{
	return !strncmp(pen__line_text(r, "arm"), "penstock", 8);
}

void pen__arm_name(const struct pen_arm_kind *k, const struct pen_line *r,
		   char *buf, size_t cap)
{
	const double n = pen__line_number(r, "workers");

	if (!k->workers || isnan(n))
		snprintf(buf, cap, "%s", pen__line_text(r, "arm"));
	else
		snprintf(buf, cap, "%s, %.0f %s%s", pen__line_text(r, "arm"), n,
			 has_threads(r) ? "thread" : "worker",
			 n == 1 ? "" : "s");
}

/* The same for charts on a phone: "DataLoader 2w" */
static void short_name(const struct pen_arm_kind *k, const struct pen_line *r,
		       char *buf, size_t cap)
{
	const double n = pen__line_number(r, "workers");
	const char *arm = pen__line_text(r, "arm");

	if (!k->workers || isnan(n))
		snprintf(buf, cap, "%.28s", arm);
	else
		snprintf(buf, cap, "%.24s %.0f%c", arm, n,
			 strcmp(pen__line_text(r, "language"), "C") ? 'w'
								    : 't');
}

static bool is(const struct pen_line *r, const char *key, const char *text)
{
	return !strcmp(pen__line_text(r, key), text);
}

static bool same_group(const struct pen_arm_kind *k, const struct pen_line *a,
		       const struct pen_line *b)
{
	for (size_t i = 0; i < 3 && k->vars[i]; i++)
		if (!is(a, k->vars[i], pen__line_text(b, k->vars[i])))
			return false;
	return true;
}

/* ---- medians ---- */

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void fill(struct pen_arm_case *c, const struct pen_arm_kind *k,
		 const struct pen_group *g, double *buf)
{
	const char *setup = pen__line_text(c->row, "setup");

	c->low = c->high = NAN;
	for (size_t f = 0; f < PEN_ARM_FIGURES; f++) {
		size_t n = 0;

		c->value[f] = NAN;
		if (!k->figure[f].key)
			continue;
		for (size_t i = 0; i < g->n; i++) {
			const double v =
				pen__line_number(g->row[i], k->figure[f].key);

			if (!isnan(v) && is(g->row[i], "setup", setup) &&
			    !pen__line_true(g->row[i], "wrong"))
				buf[n++] = v;
		}
		if (!n)
			continue;
		qsort(buf, n, sizeof(*buf), by_value);
		c->value[f] = n % 2 ? buf[n / 2]
				    : (buf[n / 2 - 1] + buf[n / 2]) / 2;
		if (!f) {
			c->n = n;
			c->low = buf[0];
			c->high = buf[n - 1];
		}
	}
	for (size_t i = 0; i < g->n; i++)
		c->nwrong += is(g->row[i], "setup", setup) &&
			     pen__line_true(g->row[i], "wrong");
}

int pen__arm_cases(const struct pen_arm_kind *k, const struct pen_group *g,
		   struct pen_arm_case **out, size_t *n, struct pen_err *err)
{
	struct pen_arm_case *c = pen__calloc(g->n, sizeof(*c));
	double *buf = pen__alloc(g->n, sizeof(*buf));

	*n = 0;
	for (size_t i = 0; c && buf && i < g->n; i++) {
		const char *setup = pen__line_text(g->row[i], "setup");
		size_t at = 0;

		while (at < *n && !is(c[at].row, "setup", setup))
			at++;
		if (at < *n)
			continue;
		c[at].row = g->row[i];
		fill(&c[at], k, g, buf);
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

/* ---- words ---- */

/* The best of an arm in the group of `like`, whatever its workers. */
static const struct pen_arm_case *best(const struct pen_arm_kind *k,
				       const struct pen_arm_case *c, size_t n,
				       const struct pen_line *like,
				       const char *arm)
{
	const struct pen_arm_case *out = NULL;

	for (size_t i = 0; i < n; i++)
		if (c[i].n && !c[i].nwrong && is(c[i].row, "arm", arm) &&
		    same_group(k, c[i].row, like) &&
		    (!out || (k->less ? c[i].value[0] < out->value[0]
				      : c[i].value[0] > out->value[0])))
			out = &c[i];
	return out;
}

static void put_others(struct pen_text *t, const struct pen_arm_kind *k,
		       const struct pen_arm_case *c, size_t n,
		       const struct pen_arm_case *hero)
{
	for (size_t i = 0; i < n; i++) {
		const struct pen_arm_case *o = best(
			k, c, n, hero->row, pen__line_text(c[i].row, "arm"));
		char name[160], ratio[32];
		double r;

		if (o != &c[i] || o == hero || is(o->row, "arm", k->hero))
			continue;
		r = o->value[0] / hero->value[0];
		snprintf(ratio, sizeof(ratio), r < 9.95 ? "%.2f" : "%.0f", r);
		pen__arm_name(k, o->row, name, sizeof(name));
		pen__text_add(t, "; %s ", name);
		pen__text_put(t, k->compared, strcspn(k->compared, "%"));
		pen__text_add(t, "%s%s", ratio, strstr(k->compared, "%s") + 2);
	}
}

/* What a loader that takes no time at all would still gain. */
static void put_headspace(struct pen_text *t, const struct pen_arm_kind *k,
			  const struct pen_arm_case *c, size_t n,
			  const struct pen_line *like)
{
	static const char *const who[] = { "penstock", "DataLoader" };

	for (size_t i = 0; i < 2; i++) {
		char cached[64];
		const struct pen_arm_case *real = best(k, c, n, like, who[i]);
		const struct pen_arm_case *none;

		snprintf(cached, sizeof(cached), "%s, cached", who[i]);
		none = best(k, c, n, like, cached);
		if (real && none && real->value[0] > 0)
			pen__text_add(
				t,
				" With %s a faster loader could save at most "
				"%.1f %% of a step.",
				who[i],
				fmax(0, 100 * (1 - none->value[0] /
							   real->value[0])));
	}
}

static void put_group(struct pen_text *t, const struct pen_arm_kind *k,
		      const struct pen_arm_case *c, size_t n,
		      const struct pen_line *like)
{
	const struct pen_arm_case *hero = best(k, c, n, like, k->hero);
	char group[160], name[160];

	if (!hero)
		return;
	pen__arm_group(k, like, group, sizeof(group));
	pen__arm_name(k, hero->row, name, sizeof(name));
	pen__text_add(t, "With %s: %s %s %s", group, name,
		      k->figure[0].show(hero->value[0]).s, k->what);
	put_others(t, k, c, n, hero);
	pen__text_add(t, ".");
	if (!strcmp(k->experiment, "headspace"))
		put_headspace(t, k, c, n, like);
	pen__text_add(t, "\n");
}

void pen__arm_words(struct pen_text *t, const struct pen_arm_kind *k,
		    const struct pen_arm_case *c, size_t n)
{
	size_t nwrong = 0;

	for (size_t i = 0; i < n; i++) {
		size_t first = 0;

		nwrong += c[i].nwrong;
		while (!same_group(k, c[first].row, c[i].row))
			first++;
		if (first == i)
			put_group(t, k, c, n, c[i].row);
	}
	if (nwrong)
		pen__text_add(t,
			      "%zu %s: another number of samples or another "
			      "content than there is. Such an arm has no "
			      "figures.\n",
			      nwrong,
			      nwrong == 1 ? "run was wrong"
					  : "runs were wrong");
}

/* ---- the page ---- */

static int verdict(struct pen_text *t, const struct pen_group *g,
		   struct pen_err *err)
{
	const struct pen_arm_kind *k =
		pen__arm_kind(pen__line_text(g->row[0], "experiment"));
	struct pen_text words = { 0 };
	struct pen_arm_case *c;
	size_t n;
	int rc = pen__arm_cases(k, g, &c, &n, err);

	if (rc)
		return rc;
	pen__arm_words(&words, k, c, n);
	for (char *p = words.p, *end; p && *p; p = end + 1) {
		end = strchr(p, '\n');
		*end = '\0';
		pen__text_add(t, "<p>");
		pen__html(t, p);
		pen__text_add(t, "</p>\n");
	}
	t->failed = t->failed || words.failed;
	pen__text_fini(&words);
	pen__free(c);
	return 0;
}

struct label {
	char group[160], name[160];
};

static double shade(const struct pen_arm_case *c, size_t n, size_t at)
{
	size_t seen = 0, mine = 0;

	for (size_t i = 0; i < n; i++) {
		size_t k = 0;

		while (!is(c[k].row, "arm", pen__line_text(c[i].row, "arm")))
			k++;
		if (k == i)
			seen++;
		if (is(c[k].row, "arm", pen__line_text(c[at].row, "arm")) &&
		    k == i)
			mine = seen - 1;
	}
	return seen > 1 ? 0.1 + 0.75 * (double)mine / (double)(seen - 1) : 0.1;
}

/* Groups one after another, whatever the order of the rows. */
static size_t fill_bars(struct pen_bar *b, struct label *l,
			const struct pen_arm_kind *k,
			const struct pen_arm_case *c, size_t n)
{
	size_t at = 0;

	for (size_t i = 0; i < n; i++) {
		size_t first = 0;

		while (!same_group(k, c[first].row, c[i].row))
			first++;
		for (size_t j = i; first == i && j < n; j++) {
			if (!same_group(k, c[i].row, c[j].row) || !c[j].n ||
			    c[j].nwrong)
				continue;
			pen__arm_group(k, c[j].row, l[at].group,
				       sizeof(l[at].group));
			short_name(k, c[j].row, l[at].name, sizeof(l[at].name));
			b[at] = (struct pen_bar){
				l[at].group, l[at].name, c[j].value[0],
				k->figure[0].show(c[j].value[0]),
				pen__colour_at(shade(c, n, j))
			};
			at++;
		}
	}
	return at;
}

static int put_bars(struct pen_text *t, const struct pen_arm_kind *k,
		    const struct pen_group *g, const struct pen_arm_case *c,
		    size_t n, struct pen_err *err)
{
	struct pen_bar *b = pen__calloc(n, sizeof(*b));
	struct label *l = pen__calloc(n, sizeof(*l));
	char id[32];
	struct pen_bars bars = { .id = id,
				 .title = k->figure[0].title,
				 .about = k->caption,
				 .bar = b };
	int rc = 0;

	snprintf(id, sizeof(id), "g%zu-arms", g->number);
	if (!b || !l)
		rc = pen__fail_nomem(err, "chart", n * sizeof(*l));
	else
		bars.n = fill_bars(b, l, k, c, n);
	if (bars.n) {
		pen__text_add(t, "<figure>\n");
		pen__chart_bars(t, &bars);
		pen__text_add(t,
			      "<figcaption>%s Medians; the table has the "
			      "lowest and the highest.</figcaption>\n"
			      "</figure>\n",
			      k->caption);
	}
	pen__free(b);
	pen__free(l);
	return rc;
}

static void put_cell(struct pen_text *t, double v,
		     struct pen_shown (*show)(double))
{
	pen__table_number(t, v, isnan(v) ? (struct pen_shown){ "" } : show(v));
}

static void put_row(struct pen_text *t, const struct pen_arm_kind *k,
		    const struct pen_arm_case *c)
{
	char buf[160];

	pen__arm_group(k, c->row, buf, sizeof(buf));
	pen__table_text(t, buf);
	pen__arm_name(k, c->row, buf, sizeof(buf));
	pen__table_text(t, buf);
	pen__table_text(t, pen__line_text(c->row, "language"));
	for (size_t f = 0; f < PEN_ARM_FIGURES; f++)
		if (k->figure[f].key)
			put_cell(t, c->nwrong ? NAN : c->value[f],
				 k->figure[f].show);
	put_cell(t, c->nwrong ? NAN : c->low, k->figure[0].show);
	put_cell(t, c->nwrong ? NAN : c->high, k->figure[0].show);
	put_cell(t, (double)(c->n + c->nwrong), pen__show_whole);
	pen__table_text(t, c->nwrong ? "WRONG" : "right");
	put_cell(t, pen__line_number(c->row, "n_samples"), pen__show_whole);
	pen__table_text(t, pen__line_text(c->row, "content_sum"));
}

static void put_table(struct pen_text *t, const struct pen_arm_kind *k,
		      const struct pen_group *g, const struct pen_arm_case *c,
		      size_t n)
{
	const char *columns[PEN_ARM_FIGURES + 10] = { "with", "arm",
						      "language" };
	char titles[PEN_ARM_FIGURES][40], id[32];
	size_t at = 3;

	for (size_t f = 0; f < PEN_ARM_FIGURES; f++) {
		if (!k->figure[f].key)
			continue;
		snprintf(titles[f], sizeof(titles[f]), "#%s",
			 k->figure[f].title);
		columns[at++] = titles[f];
	}
	columns[at++] = "#lowest";
	columns[at++] = "#highest";
	columns[at++] = "#runs";
	columns[at++] = "content";
	columns[at++] = "#~samples";
	columns[at++] = "~sum";
	snprintf(id, sizeof(id), "g%zu", g->number);
	pen__text_add(t, "<h3>All arms</h3>\n");
	pen__table_open(t, "All arms", columns);
	for (size_t i = 0; i < n; i++) {
		pen__table_row(t, id, i);
		put_row(t, k, &c[i]);
		pen__table_row_end(t);
	}
	pen__table_close(t);
}

static int show(struct pen_text *t, const struct pen_group *g,
		struct pen_err *err)
{
	const struct pen_arm_kind *k =
		pen__arm_kind(pen__line_text(g->row[0], "experiment"));
	struct pen_arm_case *c;
	size_t n;
	int rc = pen__arm_cases(k, g, &c, &n, err);

	if (rc)
		return rc;
	rc = put_bars(t, k, g, c, n, err);
	if (!rc)
		put_table(t, k, g, c, n);
	pen__free(c);
	return rc;
}

#define KIND(which, name)                                                      \
	const struct pen_kind pen__kind_##which = {                            \
		.experiment = #which,                                          \
		.title = name,                                                 \
		.verdict = verdict,                                            \
		.show = show,                                                  \
	}
KIND(overlap, "Overlap of loading and computing");
KIND(workers, "Number of workers");
KIND(iterate, "Iterating");
KIND(prealloc, "Putting arrays together");
KIND(memory, "Memory of workers");
KIND(headspace, "Head space");
