/*
 * Block sizes: what to choose, in words; speed against memory; how well it
 * mixes against speed; and all rows.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "report/chart.h"
#include "report/report.h"

#define CENSUS_CHUNK 64 /* the Census loader's default: 2000 chunks of 64 */
#define CENSUS_CHUNKS 2000
#define MOST_LOG2 12 /* of chunks a block: the far end of the colours */

/* ---- in words ---- */

static double chunk_of(const struct pen_line *r)
{
	return pen__line_number(r, "chunk_rows");
}

static double chunks_of(const struct pen_line *r)
{
	return pen__line_number(r, "block_chunks");
}

static double n_eff_of(const struct pen_line *r)
{
	return pen__line_number(r, "quality.n_eff");
}

static bool is_census(const struct pen_line *r)
{
	return chunk_of(r) == CENSUS_CHUNK && chunks_of(r) == CENSUS_CHUNKS;
}

/* In the page cache, even though it was to be cold. */
static bool was_warm(const struct pen_line *r)
{
	return !(pen__line_number(r, "resident") < 0.05);
}

/* "512 x 128 rows, csr" */
static void put_setting(struct pen_text *t, const struct pen_line *r)
{
	pen__text_add(t, "%s x %s rows, ", pen__show_whole(chunks_of(r)).s,
		      pen__show_whole(chunk_of(r)).s);
	pen__html(t, pen__line_text(r, "method"));
}

static void put_figures(struct pen_text *t, const struct pen_case *c)
{
	pen__text_add(t, "%s ", pen__show_count(c->rate).s);
	pen__html(t, pen__line_unit(c->row));
	pen__text_add(t, "/s in %s", pen__show_bytes(c->memory).s);
}

struct found {
	const struct pen_case *best, *mixed, *census, *small, *lean, *cold;
	size_t noom;
	bool only_cold;
};

static bool same_method(const struct pen_case *a, const struct pen_case *b)
{
	return !strcmp(pen__line_text(a->row, "method"),
		       pen__line_text(b->row, "method"));
}

static bool well_mixed(const struct pen_case *c)
{
	return c->n_eff >= pen__line_number(c->row, "batch") / 4;
}

/* Warm runs are compared with one another; cold ones when there are no such. */
static struct found find(const struct pen_case *c, size_t n)
{
	struct found f = { .only_cold = true };

	for (size_t i = 0; i < n; i++)
		if (!c[i].oom && !pen__line_true(c[i].row, "cold"))
			f.only_cold = false;
	for (size_t i = 0; i < n; i++) {
		const bool cold = pen__line_true(c[i].row, "cold");

		f.noom += c[i].oom;
		if (c[i].oom || isnan(c[i].rate))
			continue;
		if (cold && !was_warm(c[i].row) &&
		    (!f.cold || c[i].rate > f.cold->rate))
			f.cold = &c[i];
		if (cold != f.only_cold)
			continue;
		if (!f.best || c[i].rate > f.best->rate)
			f.best = &c[i];
		if (well_mixed(&c[i]) &&
		    (!f.mixed || c[i].rate > f.mixed->rate))
			f.mixed = &c[i];
		if (is_census(c[i].row) &&
		    (!f.census || c[i].rate > f.census->rate))
			f.census = &c[i];
	}
	for (size_t i = 0; f.best && i < n; i++) {
		if (c[i].oom || isnan(c[i].rate) ||
		    pen__line_true(c[i].row, "cold") != f.only_cold)
			continue;
		if (same_method(&c[i], f.best) &&
		    (!f.small || chunk_of(c[i].row) < chunk_of(f.small->row)))
			f.small = &c[i];
		if (c[i].rate > 0.9 * f.best->rate &&
		    (!f.lean || c[i].memory < f.lean->memory))
			f.lean = &c[i];
	}
	return f;
}

/* Two rows of a batch from one chunk tell less than two from anywhere. */
static void put_mixing(struct pen_text *t, const struct pen_case *c)
{
	const double batch = pen__line_number(c->row, "batch");

	if (!isnan(c->n_eff) && !isnan(batch))
		pen__text_add(t, ", n_eff %s of %s",
			      pen__show_number(c->n_eff).s,
			      pen__show_whole(batch).s);
}

static void put_best(struct pen_text *t, const struct found *f)
{
	pen__text_add(t, "<p>Fastest%s: ", f->only_cold ? " (cold)" : "");
	put_setting(t, f->best->row);
	pen__text_add(t, ": ");
	put_figures(t, f->best);
	pen__text_add(t, ".</p>\n");
	if (!f->mixed || f->mixed == f->best)
		return;
	pen__text_add(
		t,
		"<p>Its batches are poorly mixed (n_eff %s of %s). "
		"The fastest with an n_eff of at least a quarter of "
		"the batch: ",
		pen__show_number(f->best->n_eff).s,
		pen__show_whole(pen__line_number(f->best->row, "batch")).s);
	put_setting(t, f->mixed->row);
	pen__text_add(t, "%s: ",
		      is_census(f->mixed->row) ? " (the Census default)" : "");
	put_figures(t, f->mixed);
	put_mixing(t, f->mixed);
	pen__text_add(t, ".</p>\n");
}

static void put_census(struct pen_text *t, const struct found *f)
{
	const struct pen_case *c = f->census;

	if (!c || c == f->best || c == f->mixed)
		return;
	pen__text_add(t, "<p>The Census default, ");
	put_setting(t, c->row);
	pen__text_add(t, ", gives ");
	put_figures(t, c);
	pen__text_add(t,
		      ": %.0f %% of the best speed with %.1f times its "
		      "memory",
		      100 * c->rate / f->best->rate,
		      c->memory / f->best->memory);
	put_mixing(t, c);
	pen__text_add(t, ".</p>\n");
}

static void put_costs(struct pen_text *t, const struct found *f)
{
	if (f->lean && f->lean != f->best &&
	    f->lean->memory < 0.9 * f->best->memory) {
		pen__text_add(t, "<p>Least memory within 10 %% of the best: ");
		put_setting(t, f->lean->row);
		pen__text_add(t, ": ");
		put_figures(t, f->lean);
		pen__text_add(t, ".</p>\n");
	}
	if (f->small && f->small->rate < 0.9 * f->best->rate)
		pen__text_add(
			t,
			"<p>Short chunks cost: with %s rows a chunk it is %s a "
			"second, %.0f %% of the best.</p>\n",
			pen__show_whole(chunk_of(f->small->row)).s,
			pen__show_count(f->small->rate).s,
			100 * f->small->rate / f->best->rate);
}

static void put_others(struct pen_text *t, const struct found *f,
		       const struct pen_group *g)
{
	size_t warm = 0;

	for (size_t i = 0; i < g->n; i++) {
		warm += pen__line_true(g->row[i], "cold") &&
			was_warm(g->row[i]) &&
			!pen__line_true(g->row[i], "oom");
	}
	if (f->cold && !f->only_cold) {
		pen__text_add(t, "<p>Cold, from the device, the fastest is ");
		put_setting(t, f->cold->row);
		pen__text_add(t, ": ");
		put_figures(t, f->cold);
		pen__text_add(t, ".</p>\n");
	}
	if (warm)
		pen__text_add(t,
			      "<p>%zu %s not cold: the page cache could not "
			      "be dropped.</p>\n",
			      warm, warm == 1 ? "run was" : "runs were");
	if (f->noom)
		pen__text_add(t, "<p>%zu %s ran out of memory.</p>\n", f->noom,
			      f->noom == 1 ? "setting" : "settings");
}

static int verdict(struct pen_text *t, const struct pen_group *g,
		   struct pen_err *err)
{
	struct pen_case *c;
	struct found f;
	size_t n;
	int rc = pen__cases(g, &c, &n, err);

	if (rc)
		return rc;
	f = find(c, n);
	if (f.best) {
		put_best(t, &f);
		put_census(t, &f);
		put_costs(t, &f);
	} else {
		pen__text_add(t, "<p>No run came to an end.</p>\n");
	}
	put_others(t, &f, g);
	pen__free(c);
	return 0;
}

/* ---- charts ---- */

struct marks {
	struct pen_mark *mark;
	size_t n;
	char *words; /* of all, WORDS bytes each */
};
#define WORDS 448

static void describe(const struct pen_line *r, char *buf)
{
	const double n_eff = pen__line_number(r, "quality.n_eff");
	char mixed[48] = "";

	if (!isnan(n_eff))
		snprintf(mixed, sizeof(mixed), "; n_eff %s",
			 pen__show_number(n_eff).s);
	snprintf(buf, WORDS,
		 "%s x %s rows, %.16s, %s; %s %.16s/s, %s with the first "
		 "batch; memory %s; batch p50 %s, p99 %s%s",
		 pen__show_whole(chunks_of(r)).s,
		 pen__show_whole(chunk_of(r)).s, pen__line_text(r, "method"),
		 pen__line_true(r, "cold") ? "cold" : "warm",
		 pen__show_count(pen__line_rate(r)).s, pen__line_unit(r),
		 pen__show_count(pen__line_number(r, "samples_per_s")).s,
		 pen__show_bytes(pen__line_memory(r)).s,
		 pen__show_time(pen__line_number(r, "batch_p50_s")).s,
		 pen__show_time(pen__line_number(r, "batch_p99_s")).s, mixed);
}

static void fill_mark(struct pen_mark *m, const struct pen_line *r, double most,
		      double x)
{
	const double rows = pen__line_number(r, "block_rows");

	m->x = x;
	m->y = pen__line_rate(r);
	m->area = rows > 0 && most > 0 ? rows / most : 0;
	m->square = !strcmp(pen__line_text(r, "method"), "csr");
	m->hollow = pen__line_true(r, "cold");
	m->colour = pen__colour_at(log2(fmax(1, chunks_of(r))) / MOST_LOG2);
}

/* Large ones first, so that they do not cover small ones. */
static int by_area(const void *a, const void *b)
{
	const struct pen_mark *x = a, *y = b;

	if (x->area != y->area)
		return x->area < y->area ? 1 : -1;
	return (x->row > y->row) - (x->row < y->row);
}

/* A mark for each row that has both figures. */
static int make_marks(const struct pen_group *g,
		      double (*figure)(const struct pen_line *),
		      struct marks *m, struct pen_err *err)
{
	double most = 0;

	*m = (struct marks){ pen__calloc(g->n, sizeof(*m->mark)), 0,
			     pen__alloc(g->n, WORDS) };
	if (!m->mark || !m->words)
		return pen__fail_nomem(err, "chart", g->n * WORDS);
	for (size_t i = 0; i < g->n; i++)
		most = fmax(most, pen__line_number(g->row[i], "block_rows"));
	for (size_t i = 0; i < g->n; i++) {
		const double x = figure(g->row[i]);
		struct pen_mark *to = &m->mark[m->n];

		if (isnan(x) || x < 0 || isnan(pen__line_rate(g->row[i])) ||
		    pen__line_true(g->row[i], "oom"))
			continue;
		fill_mark(to, g->row[i], most, x);
		to->row = i;
		to->words = m->words + m->n * WORDS;
		describe(g->row[i], m->words + m->n * WORDS);
		m->n++;
	}
	qsort(m->mark, m->n, sizeof(*m->mark), by_area);
	return 0;
}

static void drop_marks(struct marks *m)
{
	pen__free(m->mark);
	pen__free(m->words);
}

/* A warm run before a cold one, then the faster. */
static bool better(const struct pen_mark *a, const struct pen_mark *than)
{
	return !than ||
	       (a->hollow == than->hollow ? a->y > than->y : than->hollow);
}

static void add_notes(const struct pen_group *g, struct marks *m)
{
	struct pen_mark *best = NULL, *census = NULL;

	for (size_t i = 0; i < m->n; i++) {
		struct pen_mark *k = &m->mark[i];

		if (better(k, best))
			best = k;
		if (is_census(g->row[k->row]) && better(k, census))
			census = k;
	}
	if (best)
		best->note = best == census ? "fastest, Census default"
					    : "fastest";
	if (census && census != best)
		census->note = "Census default";
}

static void put_legend(struct pen_text *t)
{
	pen__text_add(t, "<ul class=\"legend\">\n<li>chunks a block: 1 <span "
			 "class=\"scale\" aria-hidden=\"true\">");
	for (int i = 0; i <= MOST_LOG2; i++) {
		const struct pen_colour c =
			pen__colour_at((double)i / MOST_LOG2);

		pen__text_add(t, "<i style=\"--l:%s;--d:%s\"></i>", c.light,
			      c.dark);
	}
	pen__text_add(
		t,
		"</span> 4,096</li>\n"
		"<li><svg viewBox=\"0 0 46 22\" aria-hidden=\"true\"><circle "
		"cx=\"6\" cy=\"11\" r=\"4\" fill=\"currentColor\"/><circle "
		"cx=\"30\" cy=\"11\" r=\"10\" fill=\"currentColor\"/></svg>"
		"area: rows a block</li>\n"
		"<li><svg viewBox=\"0 0 14 22\" aria-hidden=\"true\"><circle "
		"cx=\"7\" cy=\"11\" r=\"6\" fill=\"currentColor\"/></svg>"
		"dense</li>\n"
		"<li><svg viewBox=\"0 0 14 22\" aria-hidden=\"true\"><rect "
		"x=\"1.5\" y=\"5.5\" width=\"11\" height=\"11\" "
		"fill=\"currentColor\"/></svg>csr</li>\n"
		"<li><svg viewBox=\"0 0 14 22\" aria-hidden=\"true\"><circle "
		"cx=\"7\" cy=\"11\" r=\"5\" fill=\"none\" stroke-width=\"2.5\" "
		"stroke=\"currentColor\"/></svg>hollow: cold</li>\n</ul>\n");
}

struct plot {
	const char *name, *title, *about, *x;
	double (*figure)(const struct pen_line *);
	struct pen_shown (*show)(double);
};

static int put_plot(struct pen_text *t, const struct pen_group *g,
		    const struct plot *p, struct pen_err *err)
{
	char id[32], y[48], row[32];
	struct pen_chart c = { .id = id,
			       .rows = row,
			       .title = p->title,
			       .about = p->about,
			       .x = { p->x, p->show, 0 },
			       .y = { y, pen__show_count, 0 } };
	struct marks m;
	int rc = make_marks(g, p->figure, &m, err);

	snprintf(id, sizeof(id), "g%zu-%s", g->number, p->name);
	snprintf(row, sizeof(row), "g%zu", g->number);
	snprintf(y, sizeof(y), "%.16s/s", pen__line_unit(g->row[0]));
	for (size_t i = 0; !rc && i < m.n; i++) {
		c.x.max = fmax(c.x.max, m.mark[i].x);
		c.y.max = fmax(c.y.max, m.mark[i].y);
	}
	if (!rc && m.n) {
		add_notes(g, &m);
		c.mark = m.mark;
		c.n = m.n;
		pen__text_add(t, "<h3>%s</h3>\n<figure id=\"%s\">\n", p->title,
			      id);
		pen__chart_scatter(t, &c);
		put_legend(t);
		pen__text_add(t, "<figcaption>%s</figcaption>\n</figure>\n",
			      p->about);
	}
	drop_marks(&m);
	return rc;
}

/* ---- the table ---- */

static const char *const columns[] = {
	"method",
	"cache",
	"#block rows",
	"#chunks",
	"#rows a chunk",
	"#per s",
	"#with first batch",
	"#~seconds",
	"#first batch",
	"#memory",
	"#~of which buffers",
	"#~peak with mapped files",
	"#batch p50",
	"#batch p99",
	"#slowest 10 %",
	"#~CPU s per million",
	"#~payload",
	"#~read",
	"#n_eff",
	"#~n_eff expected",
	"#~batch entropy",
	"~settings",
	NULL,
};

static void put_num(struct pen_text *t, const struct pen_line *r,
		    const char *key, struct pen_shown (*show)(double))
{
	const double v = pen__line_number(r, key);

	pen__table_number(t, v, isnan(v) ? (struct pen_shown){ "" } : show(v));
}

static void put_row(struct pen_text *t, const struct pen_line *r)
{
	const double rate = pen__line_rate(r);

	pen__table_text(t, pen__line_text(r, "method"));
	pen__table_text(t, pen__line_true(r, "oom")    ? "out of memory"
			   : pen__line_true(r, "cold") ? "cold"
						       : "warm");
	put_num(t, r, "block_rows", pen__show_whole);
	put_num(t, r, "block_chunks", pen__show_whole);
	put_num(t, r, "chunk_rows", pen__show_whole);
	pen__table_number(t, rate, pen__show_count(rate));
	put_num(t, r, "samples_per_s", pen__show_count);
	put_num(t, r, "seconds", pen__show_time);
	put_num(t, r, "first_batch_s", pen__show_time);
	put_num(t, r, "own_memory_bytes", pen__show_bytes);
	put_num(t, r, "buffer_peak_bytes", pen__show_bytes);
	put_num(t, r, "peak_memory_bytes", pen__show_bytes);
	put_num(t, r, "batch_p50_s", pen__show_time);
	put_num(t, r, "batch_p99_s", pen__show_time);
	put_num(t, r, "slow_tenth_share", pen__show_share);
	put_num(t, r, "cpu_s_per_million", pen__show_number);
	put_num(t, r, "payload_bytes", pen__show_bytes);
	put_num(t, r, "read_bytes", pen__show_bytes);
	put_num(t, r, "quality.n_eff", pen__show_number);
	put_num(t, r, "quality.n_eff_expected", pen__show_number);
	put_num(t, r, "quality.label.batch_entropy", pen__show_number);
	pen__table_text(t, pen__line_text(r, "settings"));
}

static void put_table(struct pen_text *t, const struct pen_group *g)
{
	char id[32];

	snprintf(id, sizeof(id), "g%zu", g->number);
	pen__text_add(t, "<h3>All runs</h3>\n");
	pen__table_open(t, "All runs", columns);
	for (size_t i = 0; i < g->n; i++) {
		pen__table_row(t, id, i);
		put_row(t, g->row[i]);
		pen__table_row_end(t);
	}
	pen__table_close(t);
}

static int show(struct pen_text *t, const struct pen_group *g,
		struct pen_err *err)
{
	static const struct plot speed = {
		"speed",
		"Speed against memory",
		"Every mark is a run; up is faster, left is smaller. Rates "
		"leave the first batch out, unless the run was told "
		"otherwise. Memory is the most the process had, without "
		"pages of mapped files.",
		"peak memory",
		pen__line_memory,
		pen__show_bytes,
	};
	static const struct plot mixing = {
		"mixing",
		"Speed against shuffle quality",
		"Right is better mixed: n_eff is how many samples drawn at "
		"random would vary as much as a batch does whose samples come "
		"from common chunks. The most it can be is the batch size.",
		"n_eff: effective samples in a batch",
		n_eff_of,
		pen__show_number,
	};
	int rc = put_plot(t, g, &speed, err);

	if (!rc)
		rc = put_plot(t, g, &mixing, err);
	if (!rc)
		put_table(t, g);
	return rc;
}

const struct pen_kind pen__kind_blocks = {
	.experiment = "blocks",
	.title = "Block sizes",
	.verdict = verdict,
	.show = show,
};
