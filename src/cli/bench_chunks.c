/*
 * bench read-chunks: what reading chunks of sparse rows costs, and what making
 * something of them adds. Four readers pass over the same rows, in order,
 * shuffled inside chunks, and shuffled as a whole. Their totals have to agree:
 * no rate is printed otherwise.
 */
#include <string.h>

#include "cli/arms.h"
#include "engine/spec.h"

enum { NONE, INTRA, GLOBAL, NORDERS };
static const char *const orders[] = { "none", "intra-chunk", "global" };

#define NREADERS (PEN_READ_CSR + 1)

struct reading {
	struct arms a;
	uint64_t rows; /* a chunk */
	bool order[NORDERS], reader[NREADERS];
	/* of the first run; of each order's when a run is a part of the rows */
	struct {
		char nnz[32], sum[32];
	} want[NORDERS];
	bool differ;
};

static const struct reading *reading_of(const struct arm *m)
{
	return (const struct reading *)(const void *)m->of;
}

static const struct flag flags[] = {
	{ "-c", "N", "rows a chunk (default 10000)" },
	{ "-s", "ORDER",
	  "none, intra-chunk or global; repeatable, default all" },
	{ "-R", "READER", "raw, table, coo or csr; repeatable, default all" },
	BENCH_FLAGS,
	{ NULL, NULL, NULL },
};

/* ---- one run ---- */

/* An arm's kind is its order, its value the reader. */
static void head(struct pen_text *j, const struct trial *t)
{
	const struct arm *m = t->arg;

	pen__json_str(j, "experiment", "read-chunks");
	pen__json_int(j, "chunk_rows", reading_of(m)->rows);
	pen__json_str(j, "shuffle", orders[m->kind]);
	pen__json_str(j, "reader", pen__readers[m->value]);
}

static void describe(const struct arm *m, struct trial *t)
{
	const struct reading *g = reading_of(m);

	snprintf(t->title, sizeof(t->title), "%s, %s, %s", orders[m->kind],
		 pen__readers[m->value], t->cold ? "cold" : "warm");
	bench_setup(&g->a.b, t, "read-chunks",
		    "rows=%llu shuffle=%s reader=%s epochs=%llu",
		    (unsigned long long)g->rows, orders[m->kind],
		    pen__readers[m->value],
		    (unsigned long long)g->a.b.spec->epochs);
}

static int set_up(struct pen_spec *s, const struct arm *m, struct pen_err *err)
{
	const uint64_t rows = reading_of(m)->rows;
	static const char *const sampler[] = { "sequential", "block",
					       "shuffle" };
	int rc = pen_spec_set(s, "sampler", sampler[m->kind], err);

	if (!rc)
		rc = bench_set(s, "batch_size", rows, err);
	if (!rc)
		rc = pen_spec_set(s, "format.output", "csr", err);
	if (!rc && m->kind == INTRA)
		rc = bench_set(s, "sampler.chunk", rows, err);
	if (!rc && m->kind == INTRA)
		rc = bench_set(s, "sampler.chunks", 1, err);
	return rc;
}

static int run_arm(struct bench *b, const struct trial *t, struct pen_text *j,
		   struct pen_err *err)
{
	const struct arm *m = t->arg;
	struct pen_convert c = { .reader = (enum pen_reader)m->value };
	struct pen_pass pass = { .max_batches = b->batches,
				 .temper = t->cold ? PEN_COLD : PEN_WARM,
				 .eat = pen__convert_batch,
				 .arg = &c,
				 .done = &b->watch->done,
				 .total = &b->watch->total };
	struct pen_spec *s;
	int rc = pen__spec_copy(&s, b->spec, err);

	if (rc)
		return rc;
	rc = set_up(s, m, err);
	pass.spec = s;
	if (!rc)
		rc = pen__pass_run(&pass, err);
	if (!rc) {
		pen__pass_json(j, &pass);
		pen__sums_json(j, &c.sums);
	}
	pen__convert_fini(&c);
	pen__pass_fini(&pass);
	pen_spec_free(s);
	return rc;
}

/* ---- the table ---- */

/* A part of the rows is another one in each order. */
static int kept_at(const struct reading *g, int order)
{
	return g->a.b.batches ? order : 0;
}

static bool agrees(struct reading *g, int order, const struct pen_line *r)
{
	const int i = kept_at(g, order);
	const char *nnz = pen__line_text(r, "nnz");
	const char *sum = pen__line_text(r, "content_sum");

	if (!g->want[i].nnz[0]) {
		snprintf(g->want[i].nnz, sizeof(g->want[i].nnz), "%s", nnz);
		snprintf(g->want[i].sum, sizeof(g->want[i].sum), "%s", sum);
	}
	return !strcmp(g->want[i].nnz, nnz) && !strcmp(g->want[i].sum, sum);
}

static void print_header(const struct reading *g)
{
	if (!g->a.b.json)
		printf("\n  %-11s %-6s %-5s %10s %14s %10s %10s %9s\n",
		       "shuffle", "reader", "cache", "time", "non-zeros",
		       "rows/s", "read", "memory");
}

static void print_row(struct arms *a, const struct arm *m,
		      const struct pen_line *r)
{
	struct reading *g = (struct reading *)(void *)a;
	const int order = m->kind;
	const double rate = pen__line_number(r, "samples_per_s");
	const double s = pen__line_number(r, "seconds");
	const bool oom = pen__line_true(r, "oom");
	const bool same = oom || agrees(g, order, r);

	g->differ = g->differ || !same;
	if (g->a.b.json)
		return;
	printf("  %-11s %-6s %-5s ", pen__line_text(r, "shuffle"),
	       pen__line_text(r, "reader"),
	       pen__line_true(r, "cold") ? "cold" : "warm");
	if (oom) {
		puts("ran out of memory");
		return;
	}
	if (!same) {
		printf("%s non-zeros, not %s, or another content (%s, not "
		       "%s)\n",
		       pen__line_text(r, "nnz"), g->want[kept_at(g, order)].nnz,
		       pen__line_text(r, "content_sum"),
		       g->want[kept_at(g, order)].sum);
		return;
	}
	printf("%10s %14s %10s %8s/s %9s", human_time(s),
	       grouped((uint64_t)pen__line_number(r, "nnz")), human_count(rate),
	       human_bytes(s > 0 ? pen__line_number(r, "read_bytes") / s : 0),
	       human_bytes(pen__line_number(r, "own_memory_bytes")));
	bench_print_end(r);
}

/* ---- arguments ---- */

static int take_arg(struct arms *arms, struct args *a, int kind)
{
	struct reading *g = (struct reading *)(void *)arms;

	if (kind == ARG_FLAG && !strcmp(a->key, "-s"))
		return arms_choose(a, orders, g->order, NORDERS);
	if (kind == ARG_FLAG && !strcmp(a->key, "-R"))
		return arms_choose(a, pen__readers, g->reader, NREADERS);
	if (kind == ARG_FLAG && !strcmp(a->key, "-c")) {
		if (pen__parse_count(a->value, &g->rows) || !g->rows)
			return complain_usage("bench read-chunks: -c: '%s' is "
					      "not a number of rows",
					      a->value);
		return -1;
	}
	if (kind == ARG_SETTING &&
	    (!strcmp(a->key, "batch_size") || !strcmp(a->key, "format.output")))
		return complain_usage("bench read-chunks: %s= is what the "
				      "experiment sets (rows a chunk: -c)",
				      a->key);
	return bench_arg(&arms->b, a, kind);
}

static int prepare(struct arms *a)
{
	struct reading *g = (struct reading *)(void *)a;
	struct pen_err err = { 0 };
	int rc = bench_open(&a->b);

	if (rc >= 0)
		return rc;
	if (!a->b.has_output) {
		pen__fail(&err, PEN_ENOTSUP, a->b.path,
			  "format %s has no format.output=csr: read-chunks is "
			  "for sparse rows",
			  a->b.format);
		return complain(&err);
	}
	arms_settle(g->order, NORDERS);
	arms_settle(g->reader, NREADERS);
	for (int i = 0; i < NORDERS * NREADERS; i++) {
		struct arm *m;

		if (!g->order[i / NREADERS] || !g->reader[i % NREADERS])
			continue;
		m = arms_add(a, "", "", (uint64_t)(i % NREADERS));
		if (!m)
			return EXIT_FAILED;
		m->kind = i / NREADERS;
	}
	print_header(g);
	return -1;
}

static int finish(struct arms *a)
{
	const struct reading *g = (const struct reading *)(const void *)a;

	if (g->differ) {
		fputs("penstock: readers do not agree on what they read: no "
		      "rate here means anything\n",
		      stderr);
		return EXIT_DATA;
	}
	if (!a->b.json && g->want[0].nnz[0] && !a->b.batches)
		printf("\n  All runs agree: %s non-zeros, content %s.\n",
		       g->want[0].nnz, g->want[0].sum);
	return -1;
}

static int run_chunks(int argc, char **argv)
{
	struct reading g = { .a = { .cmd = &pen__bench_chunks,
				    .kind = &pen__kind_chunks,
				    .take = take_arg,
				    .prepare = prepare,
				    .head = head,
				    .describe = describe,
				    .run = run_arm,
				    .row = print_row,
				    .finish = finish },
			     .rows = 10000 };

	return arms_main(&g.a, argc, argv);
}

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

const struct command pen__bench_chunks = {
	.name = "bench read-chunks",
	.args = "PATH [key=value ...] [flags]",
	.summary = "what reading sparse rows costs, and conversions add",
	.about = "Reads all rows in chunks: in order (none), shuffled inside "
		 "chunks that come in random order (intra-chunk), or in one "
		 "random order (global). raw fetches and unpacks; table adds "
		 "a row number for every value, as 64-bit columns; coo makes "
		 "32-bit coordinates; csr makes rows with sorted columns. "
		 "Every pass sums up what it made, and no rate is printed "
		 "when the sums differ.",
	.flags = flags,
	.takes_spec = true,
	.examples = examples,
	.run = run_chunks,
};
