/*
 * bench read-chunks: what reading chunks of sparse rows costs, and what making
 * something of them adds. Four readers pass over the same rows, in order,
 * shuffled inside chunks, and shuffled as a whole. Their totals have to agree:
 * no rate is printed otherwise.
 */
#include <string.h>

#include "cli/bench.h"
#include "engine/spec.h"

enum { NONE, INTRA, GLOBAL, NORDERS };
static const char *const orders[] = { "none", "intra-chunk", "global" };

#define NREADERS (PEN_READ_CSR + 1)

struct reading {
	struct bench b;
	uint64_t rows; /* a chunk */
	bool order[NORDERS], reader[NREADERS];
	/* of the first run; of each order's when a run is a part of the rows */
	struct {
		char nnz[32], sum[32];
	} want[NORDERS];
	bool differ;
};

struct point {
	const struct reading *g;
	int order, reader;
};

static const struct flag flags[] = {
	{ "-c", "N", "rows a chunk (default 10000)" },
	{ "-s", "ORDER",
	  "none, intra-chunk or global; repeatable, default all" },
	{ "-R", "READER", "raw, table, coo or csr; repeatable, default all" },
	BENCH_FLAGS,
	{ NULL, NULL, NULL },
};

/* ---- one run ---- */

static void head(struct pen_text *j, const struct trial *t)
{
	const struct point *p = t->arg;

	pen__json_str(j, "experiment", "read-chunks");
	pen__json_int(j, "chunk_rows", p->g->rows);
	pen__json_str(j, "shuffle", orders[p->order]);
	pen__json_str(j, "reader", pen__readers[p->reader]);
}

static int set_up(struct pen_spec *s, const struct point *p,
		  struct pen_err *err)
{
	static const char *const sampler[] = { "sequential", "block",
					       "shuffle" };
	int rc = pen_spec_set(s, "sampler", sampler[p->order], err);

	if (!rc)
		rc = bench_set(s, "batch_size", p->g->rows, err);
	if (!rc)
		rc = pen_spec_set(s, "format.output", "csr", err);
	if (!rc && p->order == INTRA)
		rc = bench_set(s, "sampler.chunk", p->g->rows, err);
	if (!rc && p->order == INTRA)
		rc = bench_set(s, "sampler.chunks", 1, err);
	return rc;
}

static int run_point(struct bench *b, const struct trial *t, struct pen_text *j,
		     struct pen_err *err)
{
	const struct point *p = t->arg;
	struct pen_convert c = { .reader = (enum pen_reader)p->reader };
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
	rc = set_up(s, p, err);
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
	return g->b.batches ? order : 0;
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
	if (!g->b.json)
		printf("\n  %-11s %-6s %-5s %10s %14s %10s %10s %9s\n",
		       "shuffle", "reader", "cache", "time", "non-zeros",
		       "rows/s", "read", "memory");
}

static void print_row(struct reading *g, int order, const struct pen_line *r)
{
	const double rate = pen__line_number(r, "samples_per_s");
	const double s = pen__line_number(r, "seconds");
	const bool oom = pen__line_true(r, "oom");
	const bool same = oom || agrees(g, order, r);

	g->differ = g->differ || !same;
	if (g->b.json)
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

/* ---- all of them ---- */

static int run_one(struct reading *g, const struct point *p, unsigned repeat,
		   bool cold)
{
	struct trial t = { .cold = cold,
			   .repeat = repeat,
			   .head = head,
			   .run = run_point,
			   .arg = p };
	struct pen_line row;
	int rc;

	snprintf(t.title, sizeof(t.title), "%s, %s, %s", orders[p->order],
		 pen__readers[p->reader], cold ? "cold" : "warm");
	bench_setup(&g->b, &t, "read-chunks",
		    "rows=%llu shuffle=%s reader=%s epochs=%llu",
		    (unsigned long long)g->rows, orders[p->order],
		    pen__readers[p->reader],
		    (unsigned long long)g->b.spec->epochs);
	rc = bench_trial(&g->b, &t, &row);
	if (rc < 0 && row.n)
		print_row(g, p->order, &row);
	pen__line_fini(&row);
	return interrupted() ? 128 + interrupted() : rc;
}

static int run_order(struct reading *g, int order, unsigned repeat)
{
	int rc = -1;

	for (int i = 0; rc < 0 && i < NREADERS; i++) {
		const struct point p = { g, order, i };

		if (!g->reader[i])
			continue;
		if (g->b.cold)
			rc = run_one(g, &p, repeat, true);
		if (rc < 0 && g->b.warm)
			rc = run_one(g, &p, repeat, false);
	}
	return rc;
}

/* Nothing chosen is everything; returns how many then are. */
static unsigned settle(bool *chosen, int n)
{
	unsigned k = 0;

	for (int i = 0; i < n; i++)
		k += chosen[i];
	for (int i = 0; !k && i < n; i++)
		chosen[i] = true;
	return k ? k : (unsigned)n;
}

static int run_all(struct reading *g)
{
	const unsigned per = settle(g->reader, NREADERS);
	int rc = -1;

	if (!g->b.has_output) {
		struct pen_err err = { 0 };

		pen__fail(&err, PEN_ENOTSUP, g->b.path,
			  "format %s has no format.output=csr: read-chunks is "
			  "for sparse rows",
			  g->b.format);
		return complain(&err);
	}
	g->b.ntrials = (uint64_t)settle(g->order, NORDERS) * per *
		       g->b.repeats * (unsigned)(g->b.cold + g->b.warm);
	print_header(g);
	for (unsigned r = 0; rc < 0 && r < g->b.repeats; r++)
		for (int o = 0; rc < 0 && o < NORDERS; o++)
			if (g->order[o])
				rc = run_order(g, o, r);
	if (rc < 0 && g->differ) {
		fputs("penstock: readers do not agree on what they read: no "
		      "rate here means anything\n",
		      stderr);
		return EXIT_DATA;
	}
	if (rc < 0 && !g->b.json && g->want[0].nnz[0] && !g->b.batches)
		printf("\n  All runs agree: %s non-zeros, content %s.\n",
		       g->want[0].nnz, g->want[0].sum);
	return rc;
}

/* ---- arguments ---- */

static int choose(const char *flag, const char *value, const char *const *names,
		  bool *chosen, int n)
{
	for (int i = 0; i < n; i++)
		if (*value && !strncmp(names[i], value, strlen(value))) {
			chosen[i] = true;
			return -1;
		}
	return complain_usage("bench read-chunks: %s: there is no '%s'", flag,
			      value);
}

static int take_arg(struct reading *g, struct args *a, int kind)
{
	if (kind == ARG_BAD)
		return EXIT_USAGE;
	if (kind == ARG_FLAG && !strcmp(a->key, "-s"))
		return choose("-s", a->value, orders, g->order, NORDERS);
	if (kind == ARG_FLAG && !strcmp(a->key, "-R"))
		return choose("-R", a->value, pen__readers, g->reader,
			      NREADERS);
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
	return bench_arg(&g->b, a, kind);
}

static int run_chunks(int argc, char **argv)
{
	struct args a = { .cmd = &pen__bench_chunks,
			  .argc = argc,
			  .argv = argv };
	struct reading g = { .rows = 10000 };
	int kind, rc = bench_init(&g.b, "read-chunks.jsonl");

	while (rc < 0 && (kind = args_next(&a)) != ARG_END)
		rc = take_arg(&g, &a, kind);
	if (rc < 0)
		rc = bench_open(&g.b);
	if (rc < 0) {
		rc = run_all(&g);
		rc = bench_end(&g.b, rc);
	}
	bench_close(&g.b);
	return rc;
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
