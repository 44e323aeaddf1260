/*
 * What reading chunks of sparse rows costs, and what making something of them
 * adds. Four readers pass over the same rows, in order, shuffled inside chunks,
 * and shuffled as a whole. Their totals have to agree: no rate is shown
 * otherwise.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "experiment/harness.h"
#include "report/chart.h"

enum { NONE, INTRA, GLOBAL, NORDERS };
static const char *const orders[] = { "none", "intra-chunk", "global", NULL };

#define NREADERS (PEN_READ_CSR + 1)

struct reading {
	char nnz[32], sum[32]; /* of the first run */
	bool differ;
};

/* ---- runs ---- */

/* A setup's kind is its order, its value the reader. */
static void head(struct pen_text *j, const struct pen_run *r,
		 const struct pen_setup *s)
{
	pen__json_num(j, "chunk_rows", pen__number(r, "-c"));
	pen__json_str(j, "shuffle", orders[s->kind]);
	pen__json_str(j, "reader", pen__readers[s->value]);
}

static void describe(struct pen_run *r, const struct pen_setup *s,
		     struct pen_trial *t)
{
	const char *order = orders[s->kind], *reader = pen__readers[s->value];

	snprintf(t->title, sizeof(t->title), "%s, %s, %s", order, reader,
		 t->cold ? "cold" : "warm");
	pen__setup_text(r, t, "rows=%.0f shuffle=%s reader=%s epochs=%llu",
			pen__number(r, "-c"), order, reader,
			(unsigned long long)pen_spec_number(r->spec, "epochs"));
}

static int run(struct pen_run *r, const struct pen_trial *t, struct pen_text *j,
	       struct pen_err *err)
{
	static const char *const sampler[] = { "sequential", "block",
					       "shuffle" };
	const bool intra = t->of->kind == INTRA;
	char rows[24];
	const struct pen_setting set[] = {
		{ "sampler", sampler[t->of->kind] },
		{ "batch_size", rows },
		{ "format.output", "csr" },
		{ "sampler.chunk", intra ? rows : NULL },
		{ "sampler.chunks", intra ? "1" : NULL },
		{ NULL, NULL }
	};
	struct pen_convert c = { .reader = (enum pen_reader)t->of->value };
	struct pen_pass pass = { .eat = pen__convert_batch, .arg = &c };
	int rc;

	snprintf(rows, sizeof(rows), "%.0f", pen__number(r, "-c"));
	rc = pen__run_pass_with(r, t, &pass, set, j, err);
	if (!rc)
		pen__sums_json(j, &c.sums);
	pen__convert_fini(&c);
	return rc;
}

static int prepare(struct pen_run *r, struct pen_err *err)
{
	int rc = pen__run_data(r, err);

	if (!rc && !r->shared->has_output)
		rc = pen__fail(err, PEN_ENOTSUP, r->path,
			       "format %s has no format.output=csr: "
			       "read-chunks is for sparse rows",
			       r->shared->format);
	for (size_t i = 0; !rc && i < NORDERS * NREADERS; i++) {
		struct pen_setup *s;

		if (!pen__chosen(r, "-s", i / NREADERS) ||
		    !pen__chosen(r, "-R", i % NREADERS))
			continue;
		s = pen__setup_add(r, "", "", i % NREADERS, err);
		if (!s)
			return PEN_ENOMEM;
		s->kind = (int)(i / NREADERS);
	}
	return rc;
}

/* ---- do they agree? ---- */

/* Were the same rows read? A part of all is another one in another order. */
static bool same_rows(const struct pen_line *a, const struct pen_line *b)
{
	const double n = pen__line_number(a, "n_rows");

	return !pen__line_true(a, "oom") && !pen__line_true(b, "oom") &&
	       n == pen__line_number(b, "n_rows") &&
	       !strcmp(pen__line_text(a, "settings"),
		       pen__line_text(b, "settings")) &&
	       (n >= pen__line_number(a, "samples") ||
		(!strcmp(pen__line_text(a, "shuffle"),
			 pen__line_text(b, "shuffle")) &&
		 pen__line_number(a, "chunk_rows") ==
			 pen__line_number(b, "chunk_rows")));
}

static bool differ(const struct pen_line *a, const struct pen_line *b)
{
	return same_rows(a, b) &&
	       (pen__line_number(a, "nnz") != pen__line_number(b, "nnz") ||
		strcmp(pen__line_text(a, "content_sum"),
		       pen__line_text(b, "content_sum")) != 0);
}

static bool agree(const struct pen_line *const *row, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < i; k++)
			if (differ(row[i], row[k]))
				return false;
	return true;
}

static bool check(struct pen_run *r, const struct pen_setup *s,
		  const struct pen_line *row, struct pen_text *why)
{
	struct reading *g = r->own;

	(void)s;
	if (!g->nnz[0]) {
		snprintf(g->nnz, sizeof(g->nnz), "%s",
			 pen__line_text(row, "nnz"));
		snprintf(g->sum, sizeof(g->sum), "%s",
			 pen__line_text(row, "content_sum"));
	}
	for (size_t i = 0; i < r->rows.n; i++) {
		const struct pen_line *o = &r->rows.row[i];

		if (strcmp(pen__line_text(row, "path"),
			   pen__line_text(o, "path")) ||
		    strcmp(pen__line_text(o, "experiment"), "read-chunks") ||
		    !differ(row, o))
			continue;
		pen__text_add(
			why,
			"%s non-zeros, not %s, or another content (%s, not %s)",
			pen__line_text(row, "nnz"), pen__line_text(o, "nnz"),
			pen__line_text(row, "content_sum"),
			pen__line_text(o, "content_sum"));
		g->differ = true;
		return false;
	}
	return true;
}

static int finish(struct pen_run *r, struct pen_text *t, struct pen_err *err)
{
	const struct reading *g = r->own;

	if (g->differ)
		return pen__fail(err, PEN_EDATA, "",
				 "readers do not agree on what they read: no "
				 "rate here means anything");
	if (g->nnz[0] && !r->batches)
		pen__text_add(t, "All runs agree: %s non-zeros, content %s.\n",
			      pen__show_grouped(strtoull(g->nnz, NULL, 10)).s,
			      g->sum);
	return 0;
}

/* ---- in words ---- */

/* A warm run, when there is one. */
static const struct pen_variant *find(const struct pen_variants *a,
				      const char *shuffle, const char *reader)
{
	const struct pen_variant *cold = NULL;

	for (size_t i = 0; i < a->n; i++) {
		const struct pen_variant *m = &a->v[i];

		if (!m->n ||
		    strcmp(pen__line_text(m->row, "shuffle"), shuffle) != 0 ||
		    strcmp(pen__line_text(m->row, "reader"), reader) != 0)
			continue;
		if (!pen__line_true(m->row, "cold"))
			return m;
		cold = cold ? cold : m;
	}
	return cold;
}

/* "alike" or "+12.3 %": what one takes compared with another. */
static struct pen_shown more(const struct pen_variants *a,
			     const struct pen_variant *m,
			     const struct pen_variant *than)
{
	const struct pen_change c = pen__change_of(a, than, m, "seconds");

	return c.differs ? pen__show_change(c.share)
			 : (struct pen_shown){ "alike" };
}

static void put_made(struct pen_text *t, const struct pen_variants *a,
		     const struct pen_variant *raw)
{
	static const char *const made[] = { "csr", "coo", "table" };
	bool any = false;

	for (size_t i = 0; i < 3; i++) {
		const struct pen_variant *m =
			find(a, pen__line_text(raw->row, "shuffle"), made[i]);

		if (!m)
			continue;
		pen__text_add(t, "%s%s %s",
			      any ? ", " : "Compared with the raw read: ",
			      made[i], more(a, m, raw).s);
		any = true;
	}
	pen__text_add(t, "%s", any ? ".\n" : "");
}

static void words(struct pen_text *t, const struct pen_variants *a)
{
	const struct pen_variant *raw = find(a, "none", "raw");
	const struct pen_variant *global = find(a, "global", "raw");

	if (!agree(a->row, a->nrows) || !raw)
		return;
	pen__text_add(t, "%s %s in order, as they are: %s, %s a second.",
		      pen__show_whole(pen__line_number(raw->row, "n_rows")).s,
		      pen__line_unit(raw->row),
		      pen__shown_of(a, raw, "seconds").s,
		      pen__shown_of(a, raw, "samples_per_s").s);
	if (global)
		pen__text_add(t, " In global random order: %s (%s).",
			      pen__shown_of(a, global, "seconds").s,
			      more(a, global, raw).s);
	pen__text_add(t, "\n");
	put_made(t, a, raw);
}

static void facts(struct pen_text *t, const struct pen_variants *a)
{
	if (!agree(a->row, a->nrows))
		pen__text_add(t, "The readers do not agree on what they read: "
				 "no rate means anything.\n");
}

static void name(const struct pen_line *r, char *buf, size_t cap)
{
	snprintf(buf, cap, "%s, %s", pen__line_text(r, "reader"),
		 pen__line_text(r, "shuffle"));
}

static const char *const bars_of[] = { "raw", "csr", "coo", "table" };

static bool is(const struct pen_variant *m, const char *shuffle,
	       const char *reader, bool cold)
{
	return m->n && pen__line_true(m->row, "cold") == cold &&
	       !strcmp(pen__line_text(m->row, "shuffle"), shuffle) &&
	       !strcmp(pen__line_text(m->row, "reader"), reader);
}

/* One after another by cache, order, reader. */
static size_t fill_bars(struct pen_bar *b, const struct pen_variants *a)
{
	static const char *const title[][3] = {
		{ "in order", "shuffled inside chunks",
		  "in global random order" },
		{ "in order, cold", "shuffled inside chunks, cold",
		  "in global random order, cold" },
	};
	const size_t n = a->n;
	size_t k = 0;

	for (size_t i = 0; i < 24 * n; i++) {
		const struct pen_variant *m = &a->v[i % n];
		const size_t reader = i / n % 4;
		const size_t order = i / n / 4 % 3, cold = i / n / 12;
		struct pen_range r;

		if (!is(m, orders[order], bars_of[reader], cold))
			continue;
		r = pen__range_of(a, m, "seconds");
		if (!isnan(r.mid))
			b[k++] = (struct pen_bar){
				title[cold][order], bars_of[reader], r,
				pen__show_range(r, pen__show_time),
				pen__colour_at(0.15 + 0.25 * (double)reader)
			};
	}
	return k;
}

static int put_bars(struct pen_text *t, const struct pen_group *g,
		    struct pen_err *err)
{
	struct pen_variants a;
	struct pen_bar *b;
	char id[32];
	struct pen_bars bars = {
		.id = id,
		.title = "Time of a pass",
		.about = "Seconds for a pass, by order and reader. The table "
			 "below has all numbers.",
	};
	int rc = pen__variants_init(&a, &pen__exp_read_chunks.kind, g->row,
				    g->n, err);

	if (rc)
		return rc;
	b = pen__calloc(a.n ? a.n : 1, sizeof(*b));
	snprintf(id, sizeof(id), "g%zu-time", g->number);
	if (!b)
		rc = pen__fail_nomem(err, "chart", a.n * sizeof(*b));
	else
		bars.n = fill_bars(b, &a);
	bars.bar = b;
	if (bars.n)
		pen__chart_bars(t, &bars);
	pen__free(b);
	pen__variants_fini(&a);
	return rc;
}

#define COLUMNS(seconds, rate)                                                 \
	"shuffle=shuffle|reader=reader|cache|rows a chunk=chunk_rows|"         \
	"seconds=" seconds "|per s=" rate "|non-zeros=nnz|"                    \
	"content=content_sum|memory=own_memory_bytes|"                         \
	"~peak with mapped files=peak_memory_bytes|read=read_bytes|"           \
	"~CPU s per million=cpu_s_per_million|~settings=settings"

static int show(struct pen_text *t, const struct pen_group *g,
		struct pen_err *err)
{
	const bool rates = agree(g->row, g->n);
	int rc = 0;

	if (rates) {
		pen__text_add(t, "<h3>Time of a pass</h3>\n<figure>\n");
		rc = put_bars(t, g, err);
		pen__text_add(
			t,
			"<figcaption>Shorter is better. raw: fetched and "
			"unpacked, nothing made of it; csr, coo, table: the "
			"same pass, making that of every chunk." PEN_BARS_ABOUT
			"</figcaption>\n</figure>\n");
	}
	/* no figure has such a key: empty cells */
	if (!rc)
		pen__runs_show(t, g,
			       rates ? COLUMNS("seconds", "samples_per_s")
				     : COLUMNS("no_s", "no_per_s"));
	return rc;
}

static const struct pen_flag flags[] = {
	PEN_COUNT("-c", "rows a chunk (default 10000)", "10000", 4e9),
	PEN_NAMES("-s", "ORDER",
		  "none, intra-chunk or global; repeatable, default all",
		  orders),
	PEN_NAMES("-R", "READER",
		  "raw, table, coo or csr; repeatable, default all",
		  pen__readers),
	PEN_FLAGS_END,
};

static const char *const examples[] = {
	"penstock bench read-chunks cells.h5ad",
	"chunks of 10,000 rows, three orders, four readers",
	"penstock bench read-chunks cells.h5ad -s global -R raw -R csr "
	"--repeats 3",
	"what CSR adds to reading, rows in random order",
	"penstock bench read-chunks cells.h5ad --cold threads=4",
	"from the disk, with four threads",
	NULL,
};

const struct pen_experiment pen__exp_read_chunks = {
	.kind = { .experiment = "read-chunks",
		  .title = "Reading chunks",
		  .words = words,
		  .facts = facts,
		  .name = name,
		  .show = show },
	.args = "PATH [key=value ...] [flags]",
	.summary = "what reading sparse rows costs, and conversions add",
	.about = "Reads all rows in chunks: in order (none), shuffled inside "
		 "chunks that come in random order (intra-chunk), or in one "
		 "random order (global). raw fetches and unpacks; table adds a "
		 "row number for every value, as 64-bit columns; coo makes "
		 "32-bit coordinates; csr makes rows with sorted columns. "
		 "Every pass sums up what it made, and no rate is printed when "
		 "the sums differ.",
	.flags = flags,
	.has = PEN_HAS_PASS | PEN_HAS_SPEC,
	.refuses =
		(const char *const[]){
			"batch_size=", PEN_SETS " (rows a chunk: -c)",
			"format.output=", PEN_SETS, "sampler*=", PEN_SETS,
			"shuffle=", PEN_SETS, NULL },
	.examples = examples,
	.own = sizeof(struct reading),
	.prepare = prepare,
	.head = head,
	.describe = describe,
	.run = run,
	.live = "shuffle=shuffle:11|reader=reader:6|cache=cache:5|time=seconds:"
		"10|non-zeros=nnz:14|rows/s=samples_per_s:10|read=read_bytes/"
		"seconds:10|memory=own_memory_bytes:9",
	.check = check,
	.finish = finish,
};
