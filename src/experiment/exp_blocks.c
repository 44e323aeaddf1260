/*
 * Effect of the block size on speed, memory and shuffle quality. A block is N
 * chunks of C neighbouring rows, shuffled together: long chunks read fast, many
 * chunks mix well, and both need memory.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "experiment/harness.h"
#include "report/chart.h"

#define DEFAULT_GRID "65536 / [1,4096]"
#define MOST_LOG2 12 /* chunks per block at the end of the colour scale */

static const char *const methods[] = { "dense", "csr" };

struct grid {
	struct pen_block_sizes *list;
	size_t n;
};

/* ---- runs ---- */

/* The value of a setup is the index of its block, its kind the method; -1: the
 * format has only one. */
static const char *method_of(const struct pen_setup *s)
{
	return s->kind < 0 ? "as is" : methods[s->kind];
}

static const struct pen_block_sizes *block_of(const struct pen_session *r,
					      const struct pen_setup *s)
{
	return &((const struct grid *)r->own)->list[s->value];
}

static void head(struct pen_text *j, const struct pen_session *r,
		 const struct pen_setup *s)
{
	const struct pen_block_sizes *k = block_of(r, s);

	pen__json_int(j, "chunk_rows", k->chunk);
	pen__json_int(j, "block_chunks", k->chunks);
	pen__json_int(j, "block_rows", k->chunk * k->chunks);
	pen__json_int(j, "batch", pen_spec_number(r->spec, "batch_size"));
	pen__json_str(j, "method", method_of(s));
	pen__json_int(j, "epochs", pen_spec_number(r->spec, "epochs"));
}

static void describe(struct pen_session *r, const struct pen_setup *s,
		     struct pen_trial *t)
{
	const struct pen_block_sizes *k = block_of(r, s);

	snprintf(t->title, sizeof(t->title), "%s chunks of %s, %s, %s",
		 pen__show_grouped(k->chunks).s, pen__show_grouped(k->chunk).s,
		 method_of(s), t->cold ? "cold" : "warm");
	pen__setup_text(
		r, t, "chunk=%llu chunks=%llu batch=%llu method=%s epochs=%llu",
		(unsigned long long)k->chunk, (unsigned long long)k->chunks,
		(unsigned long long)pen_spec_number(r->spec, "batch_size"),
		method_of(s),
		(unsigned long long)pen_spec_number(r->spec, "epochs"));
}

static int run(struct pen_session *r, const struct pen_trial *t,
	       struct pen_text *j, struct pen_err *err)
{
	const struct pen_block_sizes *k = block_of(r, t->of);
	struct pen_pass pass = { .quality = !pen__given(r, "--no-quality"),
				 .label = pen__value(r, "--label")->text };
	const struct pen_spec_change set[] = {
		{ "sampler", "block", 0 },
		{ "sampler.chunk", NULL, k->chunk },
		{ "sampler.chunks", NULL, k->chunks },
		{ "format.output",
		  t->of->kind >= 0 ? methods[t->of->kind] : NULL, 0 },
		{ .key = NULL },
	};

	return pen__run_pass_with(r, t, &pass, set, j, err);
}

static int take(struct pen_session *r, const char *key, const char *value,
		struct pen_err *err)
{
	struct grid *g = r->own;

	if (!key && pen_spec_path(r->spec, 0))
		return pen__blocks_parse(value, &g->list, &g->n, err);
	if (key && !strcmp(key, "format.output"))
		return pen__run_take(r, "-m", value, err);
	return 1;
}

/* Applies flags that are aliases of settings, and the default grid. */
static int settle(struct pen_session *r, struct pen_err *err)
{
	static const char *const same[][2] = { { "-B", "batch_size" },
					       { "-E", "epochs" } };
	struct grid *g = r->own;
	char census[48];
	int rc = 0;

	for (size_t i = 0; !rc && i < 2; i++)
		if (pen__given(r, same[i][0]))
			rc = pen_spec_set(r->spec, same[i][1],
					  pen__value(r, same[i][0])->text, err);
	if (rc || g->n)
		return rc;
	snprintf(census, sizeof(census), "%dx%d", PEN_CENSUS_CHUNKS,
		 PEN_CENSUS_CHUNK);
	rc = pen__blocks_parse(DEFAULT_GRID, &g->list, &g->n, err);
	return rc ? rc : pen__blocks_parse(census, &g->list, &g->n, err);
}

static int prepare(struct pen_session *r, struct pen_err *err)
{
	const struct grid *g = r->own;
	int rc = settle(r, err);

	if (!rc && pen__given(r, "--label") && pen__given(r, "--no-quality"))
		rc = pen__fail(err, P_CONFLICT, r->name,
			       "--label and --no-quality exclude each other; "
			       "remove one of them");
	if (!rc)
		rc = pen__run_data(r, err);
	for (size_t i = 0; !rc && i < g->n; i++)
		for (int k = r->shared->has_output ? 0 : -1;
		     k < (r->shared->has_output ? 2 : 0); k++)
			if (k < 0 || pen__chosen(r, "-m", (size_t)k))
				pen__setup_add(r, "", "", i)->kind = k;
	return rc;
}

static void close_grid(struct pen_session *r)
{
	pen__free(((struct grid *)r->own)->list);
}

/* ---- summary ---- */

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
	return chunk_of(r) == PEN_CENSUS_CHUNK &&
	       chunks_of(r) == PEN_CENSUS_CHUNKS;
}

/* "512 x 128 rows, csr" */
static void name(struct pen_variant *m)
{
	const struct pen_line *r = m->row;

	snprintf(m->name, sizeof(m->name), "%.20s x %.20s rows, %.16s%s",
		 pen__show_whole(chunks_of(r)).s,
		 pen__show_whole(chunk_of(r)).s, pen__line_text(r, "method"),
		 is_census(r) ? " (the Census default)" : "");
}

static bool well_mixed(const struct pen_variants *a,
		       const struct pen_variant *m)
{
	return pen__median_of(a, m, "quality.n_eff") >=
	       pen__line_number(m->row, "batch") / 4;
}

static bool census_only(const struct pen_variants *a,
			const struct pen_variant *m)
{
	(void)a;
	return is_census(m->row);
}

static struct pen_ranking ranking(const char *what)
{
	return (struct pen_ranking){ .what = what,
				     .key = "samples_per_s",
				     .with = "in",
				     .also = "own_memory_bytes" };
}

static void put_mixing(struct pen_text *t, const struct pen_variants *a,
		       const struct pen_variant *m)
{
	const double n_eff = pen__median_of(a, m, "quality.n_eff");
	const double batch = pen__line_number(m->row, "batch");

	if (!isnan(n_eff) && !isnan(batch))
		pen__text_add(t, "n_eff %s of %s", pen__show_number(n_eff).s,
			      pen__show_whole(batch).s);
}

/* Whether one of the fastest variants is poorly mixed. */
static void put_poor(struct pen_text *t, const struct pen_variants *a)
{
	const struct pen_variant *poor = NULL;
	struct pen_ranking c = ranking(
		"Fastest with n_eff of at least a quarter of the batch");

	for (size_t i = 0; i < a->n && !poor; i++)
		if (a->v[i].alike && !well_mixed(a, &a->v[i]))
			poor = &a->v[i];
	if (!poor)
		return;
	pen__text_add(t, "Batches of %s are poorly mixed: ", poor->name);
	put_mixing(t, a, poor);
	pen__text_add(t, ".\n");
	c.takes = well_mixed;
	pen__put_best(t, a, &c);
}

/* The default of the Census loader, compared with the best. */
static void put_census(struct pen_text *t, const struct pen_variants *a,
		       const struct pen_variant *best)
{
	struct pen_ranking c = ranking("");
	const struct pen_variant *m;

	c.takes = census_only;
	m = pen__rank(a, &c).best;
	if (!m || m == best)
		return;
	pen__text_add(
		t, "%s: %s of the best speed, memory %s; ", m->name,
		pen__part_of(a, best, m, "samples_per_s").s,
		pen__show_change(
			pen__median_of(a, m, "own_memory_bytes") /
				pen__median_of(a, best, "own_memory_bytes") -
			1)
			.s);
	put_mixing(t, a, m);
	pen__text_add(t, ".\n");
}

/* The shortest chunks with the same method and cache as the best. */
static void put_short(struct pen_text *t, const struct pen_variants *a,
		      const struct pen_variant *best)
{
	const struct pen_variant *few = best;
	struct pen_change by;

	for (size_t i = 0; i < a->n; i++) {
		const struct pen_variant *m = &a->v[i];

		if (m->n && chunk_of(m->row) < chunk_of(few->row) &&
		    !strcmp(pen__line_text(m->row, "method"),
			    pen__line_text(best->row, "method")) &&
		    pen__line_true(m->row, "cold") ==
			    pen__line_true(best->row, "cold"))
			few = m;
	}
	by = pen__change_of(a, best, few, "samples_per_s");
	if (by.differs && by.share < 0)
		pen__text_add(
			t,
			"Short chunks are slow: with %s per chunk, the speed "
			"is %s of the best.\n",
			pen__show_counted((uint64_t)chunk_of(few->row), "row")
				.s,
			pen__show_share(1 + by.share).s);
}

static void words(struct pen_text *t, const struct pen_variants *a)
{
	struct pen_ranking c = ranking("Fastest from the device");
	const struct pen_variant *best = pen__rank(a, &c).best;

	if (!best)
		return;
	put_poor(t, a);
	put_census(t, a, best);
	put_short(t, a, best);
	if (pen__line_true(best->row, "cold"))
		return;
	c.cold = true;
	pen__put_best(t, a, &c);
}

/* ---- charts ---- */

static double rate_of(const struct pen_line *r)
{
	return pen__line_number(r, "samples_per_s");
}

static void describe_run(const struct pen_line *r, struct pen_mark *m)
{
	const double n_eff = pen__line_number(r, "quality.n_eff");
	char mixed[64] = "", rest[96] = "";

	if (!isnan(n_eff))
		snprintf(mixed, sizeof(mixed), "; n_eff %s",
			 pen__show_number(n_eff).s);
	if (!isnan(pen__line_rest(r)))
		snprintf(rest, sizeof(rest), ", %s after the first batch",
			 pen__show_count(pen__line_rest(r)).s);
	snprintf(m->words, sizeof(m->words),
		 "%s x %s rows, %.16s, %s; %s %.16s/s%s; memory %s; batch p50 "
		 "%s, p99 %s%s",
		 pen__show_whole(chunks_of(r)).s,
		 pen__show_whole(chunk_of(r)).s, pen__line_text(r, "method"),
		 pen__line_true(r, "cold") ? "cold" : "warm",
		 pen__show_count(rate_of(r)).s, pen__line_unit(r), rest,
		 pen__show_bytes(pen__line_memory(r)).s,
		 pen__show_time(pen__line_number(r, "batch_p50_s")).s,
		 pen__show_time(pen__line_number(r, "batch_p99_s")).s, mixed);
}

static void fill_mark(struct pen_mark *m, const struct pen_line *r, double most,
		      double x)
{
	const double rows = pen__line_number(r, "block_rows");

	m->x = x;
	m->y = rate_of(r);
	m->area = rows > 0 && most > 0 ? rows / most : 0;
	m->square = !strcmp(pen__line_text(r, "method"), "csr");
	m->hollow = pen__line_true(r, "cold");
	m->colour = pen__colour_at(log2(fmax(1, chunks_of(r))) / MOST_LOG2);
	describe_run(r, m);
}

/* Large marks first, so that they do not cover small ones. */
static int by_area(const void *a, const void *b)
{
	const struct pen_mark *x = a, *y = b;

	if (x->area != y->area)
		return x->area < y->area ? 1 : -1;
	return (x->row > y->row) - (x->row < y->row);
}

/* Makes a mark for each row that has both figures; returns their number. */
static size_t make_marks(const struct pen_group *g,
			 double (*figure)(const struct pen_line *),
			 struct pen_mark *m)
{
	double most = 0;
	size_t n = 0;

	for (size_t i = 0; i < g->n; i++)
		most = fmax(most, pen__line_number(g->row[i], "block_rows"));
	for (size_t i = 0; i < g->n; i++) {
		const double x = figure(g->row[i]);

		if (isnan(x) || x < 0 || isnan(rate_of(g->row[i])) ||
		    pen__line_true(g->row[i], "oom"))
			continue;
		fill_mark(&m[n], g->row[i], most, x);
		m[n++].row = i;
	}
	qsort(m, n, sizeof(*m), by_area);
	return n;
}

/* A warm run before a cold one, then the faster. */
static bool better(const struct pen_mark *a, const struct pen_mark *than)
{
	return !than ||
	       (a->hollow == than->hollow ? a->y > than->y : than->hollow);
}

/* The setup that is fastest beyond noise; NULL if there is none. */
static const char *find_fastest(const struct pen_variants *a)
{
	const struct pen_ranking c = ranking("");
	const struct pen_ranked o = pen__rank(a, &c);

	return o.nalike == 1 && o.n > 1 ? pen__line_text(o.best->row, "setup")
					: NULL;
}

static void add_notes(const struct pen_group *g, struct pen_mark *m, size_t n,
		      const char *winner)
{
	struct pen_mark *best = NULL, *census = NULL;

	for (struct pen_mark *k = m; k < m + n; k++) {
		if (winner && better(k, best) &&
		    !strcmp(pen__line_text(g->row[k->row], "setup"), winner))
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
	pen__text_add(t, "<ul class=\"legend\">\n<li>chunks per block: 1 <span "
			 "class=\"scale\" aria-hidden=\"true\">");
	for (int i = 0; i <= MOST_LOG2; i++) {
		const struct pen_colour c =
			pen__colour_at((double)i / MOST_LOG2);

		pen__text_add(t, "<i style=\"--l:%s;--d:%s\"></i>", c.light,
			      c.dark);
	}
	pen__text_add(
		t,
		"</span> 4,096</li>\n<li><svg viewBox=\"0 0 46 22\" "
		"aria-hidden=\"true\"><circle cx=\"6\" cy=\"11\" r=\"4\" "
		"fill=\"currentColor\"/><circle cx=\"30\" cy=\"11\" r=\"10\" "
		"fill=\"currentColor\"/></svg>area: rows per "
		"block</li>\n<li><svg viewBox=\"0 0 14 22\" "
		"aria-hidden=\"true\"><circle cx=\"7\" cy=\"11\" r=\"6\" "
		"fill=\"currentColor\"/></svg>dense</li>\n<li><svg viewBox=\"0 "
		"0 14 22\" aria-hidden=\"true\"><rect x=\"1.5\" y=\"5.5\" "
		"width=\"11\" height=\"11\" "
		"fill=\"currentColor\"/></svg>csr</li>\n<li><svg viewBox=\"0 0 "
		"14 22\" aria-hidden=\"true\"><circle cx=\"7\" cy=\"11\" "
		"r=\"5\" fill=\"none\" stroke-width=\"2.5\" "
		"stroke=\"currentColor\"/></svg>hollow: cold</li>\n</ul>\n");
}

struct plot {
	const char *name, *title, *about, *x;
	double (*figure)(const struct pen_line *);
	struct pen_shown (*show)(double);
};

static int put_plot(struct pen_text *t, const struct pen_variants *a,
		    const struct pen_group *g, const struct plot *p,
		    struct pen_err *err)
{
	char id[32], y[48], row[32];
	struct pen_chart c = { .id = id,
			       .rows = row,
			       .title = p->title,
			       .about = p->about,
			       .x = { p->x, p->show, 0 },
			       .y = { y, pen__show_count, 0 } };
	struct pen_mark *m = pen__calloc(g->n, sizeof(*m));

	if (!m)
		return pen__fail_nomem(err, "chart", g->n * sizeof(*m));
	snprintf(id, sizeof(id), "g%zu-%s", g->number, p->name);
	snprintf(row, sizeof(row), "g%zu", g->number);
	snprintf(y, sizeof(y), "%.16s/s", pen__line_unit(g->row[0]));
	c.mark = m;
	c.n = make_marks(g, p->figure, m);
	for (size_t i = 0; i < c.n; i++) {
		c.x.max = fmax(c.x.max, m[i].x);
		c.y.max = fmax(c.y.max, m[i].y);
	}
	if (c.n) {
		add_notes(g, m, c.n, find_fastest(a));
		pen__text_add(t, "<h3>%s</h3>\n<figure id=\"%s\">\n", p->title,
			      id);
		pen__chart_scatter(t, &c);
		put_legend(t);
		pen__text_add(t, "<figcaption>%s</figcaption>\n</figure>\n",
			      p->about);
	}
	pen__free(m);
	return 0;
}

/* ---- the page ---- */

static int show(struct pen_text *t, const struct pen_variants *a,
		const struct pen_group *g, struct pen_err *err)
{
	static const struct plot speed = {
		"speed",
		"Speed against memory",
		"Every mark is a run; up is faster, left is smaller. Rates "
		"cover the entire run, including the first batch. Memory is "
		"the peak of the process without pages of mapped files.",
		"peak memory",
		pen__line_memory,
		pen__show_bytes,
	};
	static const struct plot mixing = {
		"mixing",
		"Speed against shuffle quality",
		"Right is better mixed: n_eff is the number of independent "
		"samples that vary as much as a batch whose samples share "
		"chunks. Its maximum is the batch size.",
		"n_eff: effective samples in a batch",
		n_eff_of,
		pen__show_number,
	};
	int rc = put_plot(t, a, g, &speed, err);

	return rc ? rc : put_plot(t, a, g, &mixing, err);
}

struct pen_experiment pen__exp_blocks = {
	.kind = { .experiment = "blocks",
		  .words = words,
		  .name = name,
		  .show = show },
	.own = sizeof(struct grid),
	.take = take,
	.prepare = prepare,
	.head = head,
	.describe = describe,
	.run = run,
	.close = close_grid,
};
