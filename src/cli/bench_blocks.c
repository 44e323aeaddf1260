/*
 * bench blocks: block sizes against speed, memory and how well batches are
 * mixed. A block is N chunks of C neighbouring rows whose rows are shuffled
 * among themselves; long chunks read fast, many chunks mix well, and both
 * together take memory.
 */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "cli/bench.h"
#include "engine/spec.h"

#define DEFAULT_GRID "65536 / [1,4096]"

enum { DENSE, CSR, NMETHODS };
static const char *const methods[] = { "dense", "csr" };

struct grid {
	struct bench b;
	struct pen_blocks *list;
	size_t n;
	bool method[NMETHODS]; /* none: all there are */
	bool keep_first, no_quality;
	const char *label;
};

struct point {
	const struct grid *g;
	struct pen_blocks blocks;
	int method; /* -1: the format has no choice */
};

static const struct flag flags[] = {
	{ "-B", "N", "rows a batch (default 1024), the same as batch_size=" },
	{ "-E", "N", "epochs a run, the same as epochs=" },
	{ "-m", "METHOD",
	  "dense or csr: what batches are made of; repeatable, default both" },
	{ "-F", NULL,
	  "the headline rate includes the first batch; both are kept anyway" },
	{ "--label", "FIELD",
	  "also how evenly this label is mixed: a column that format.obs= "
	  "loads" },
	{ "--no-quality", NULL, "do not measure how well batches are mixed" },
	BENCH_FLAGS,
	{ NULL, NULL, NULL },
};

/* ---- one run ---- */

static const char *method_name(const struct point *p)
{
	return p->method < 0 ? "as is" : methods[p->method];
}

static void head(struct pen_text *j, const struct trial *t)
{
	const struct point *p = t->arg;

	pen__json_str(j, "experiment", "blocks");
	pen__json_int(j, "chunk_rows", p->blocks.chunk);
	pen__json_int(j, "block_chunks", p->blocks.chunks);
	pen__json_int(j, "block_rows", p->blocks.chunk * p->blocks.chunks);
	pen__json_int(j, "batch", p->g->b.spec->batch_size);
	pen__json_str(j, "method", method_name(p));
	pen__json_int(j, "epochs", p->g->b.spec->epochs);
	pen__json_bool(j, "drop_first", !p->g->keep_first);
}

static int set_up(struct pen_spec *s, const struct point *p,
		  struct pen_err *err)
{
	int rc = pen_spec_set(s, "sampler", "block", err);

	if (!rc)
		rc = bench_set(s, "sampler.chunk", p->blocks.chunk, err);
	if (!rc)
		rc = bench_set(s, "sampler.chunks", p->blocks.chunks, err);
	if (!rc && p->method >= 0)
		rc = pen_spec_set(s, "format.output", methods[p->method], err);
	return rc;
}

static int run_point(struct bench *b, const struct trial *t, struct pen_text *j,
		     struct pen_err *err)
{
	const struct point *p = t->arg;
	struct pen_pass pass = { .max_batches = b->batches,
				 .temper = t->cold ? PEN_COLD : PEN_WARM,
				 .quality = !p->g->no_quality,
				 .label = p->g->label,
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
	if (!rc)
		pen__pass_json(j, &pass);
	pen__pass_fini(&pass);
	pen_spec_free(s);
	return rc;
}

/* ---- the table on the terminal ---- */

static void print_header(const struct grid *g)
{
	if (g->b.json)
		return;
	printf("\n  %8s %7s %8s %-6s %-5s %10s %10s %9s %9s %9s %5s %6s\n",
	       "block", "chunks", "rows", "method", "cache", "rows/s",
	       g->keep_first ? "w/o first" : "all", "memory", "p50", "p99",
	       "slow", "n_eff");
}

static const char *or_dash(bool there, const char *text)
{
	return there ? text : "-";
}

static void print_row(const struct grid *g, const struct pen_line *r)
{
	double all = pen__line_number(r, "samples_per_s");
	double rest = pen__line_number(r, "samples_per_s_rest");
	double slow = pen__line_number(r, "slow_tenth_share");
	double n_eff = pen__line_number(r, "quality.n_eff");
	double p50 = pen__line_number(r, "batch_p50_s");
	double p99 = pen__line_number(r, "batch_p99_s");
	char share[16], eff[16];

	if (g->b.json || !r->n)
		return;
	printf("  %8s %7s %8s %-6s %-5s ",
	       human_count(pen__line_number(r, "block_rows")),
	       grouped((uint64_t)pen__line_number(r, "block_chunks")),
	       grouped((uint64_t)pen__line_number(r, "chunk_rows")),
	       pen__line_text(r, "method"),
	       pen__line_true(r, "cold") ? "cold" : "warm");
	if (pen__line_true(r, "oom")) {
		puts("ran out of memory");
		return;
	}
	snprintf(share, sizeof(share), "%.0f %%", 100 * slow);
	snprintf(eff, sizeof(eff), "%.0f", n_eff);
	if (isnan(rest))
		rest = all;
	printf("%10s %10s %9s %9s %9s %5s %6s",
	       human_count(g->keep_first ? all : rest),
	       human_count(g->keep_first ? rest : all),
	       human_bytes(pen__line_number(r, "own_memory_bytes")),
	       or_dash(!isnan(p50), human_time(p50)),
	       or_dash(!isnan(p99), human_time(p99)),
	       or_dash(!isnan(slow), share), or_dash(!isnan(n_eff), eff));
	bench_print_end(r);
}

/* ---- the grid ---- */

static int run_one(struct grid *g, const struct point *p, unsigned repeat,
		   bool cold)
{
	struct trial t = { .cold = cold,
			   .repeat = repeat,
			   .head = head,
			   .run = run_point,
			   .arg = p };
	struct pen_line row;
	int rc;

	snprintf(t.title, sizeof(t.title), "%s x %s rows, %s, %s",
		 grouped(p->blocks.chunks), grouped(p->blocks.chunk),
		 method_name(p), cold ? "cold" : "warm");
	bench_setup(&g->b, &t, "blocks",
		    "chunk=%llu chunks=%llu batch=%llu method=%s epochs=%llu",
		    (unsigned long long)p->blocks.chunk,
		    (unsigned long long)p->blocks.chunks,
		    (unsigned long long)g->b.spec->batch_size, method_name(p),
		    (unsigned long long)g->b.spec->epochs);
	rc = bench_trial(&g->b, &t, &row);
	if (rc < 0)
		print_row(g, &row);
	pen__line_fini(&row);
	return interrupted() ? 128 + interrupted() : rc;
}

static int run_point_all(struct grid *g, const struct point *p, unsigned repeat)
{
	int rc = -1;

	if (g->b.cold)
		rc = run_one(g, p, repeat, true);
	if (rc < 0 && g->b.warm)
		rc = run_one(g, p, repeat, false);
	return rc;
}

static int run_grid(struct grid *g)
{
	const bool any = g->method[DENSE] || g->method[CSR];
	unsigned nmethods = 0;
	int rc = -1;

	for (int m = 0; m < NMETHODS; m++) {
		g->method[m] = g->b.has_output && (!any || g->method[m]);
		nmethods += g->method[m];
	}
	g->b.ntrials = g->n * g->b.repeats * (nmethods ? nmethods : 1) *
		       (unsigned)(g->b.cold + g->b.warm);
	print_header(g);
	/* repeats outside: what the machine does meanwhile hits all alike */
	for (unsigned r = 0; rc < 0 && r < g->b.repeats; r++)
		for (size_t i = 0; rc < 0 && i < g->n; i++) {
			struct point p = { g, g->list[i], -1 };

			if (!nmethods)
				rc = run_point_all(g, &p, r);
			for (int m = 0; rc < 0 && m < NMETHODS; m++) {
				p.method = m;
				if (g->method[m])
					rc = run_point_all(g, &p, r);
			}
		}
	return rc;
}

/* ---- arguments ---- */

static int take_method(struct grid *g, const char *name)
{
	const size_t n = strlen(name);

	for (int m = 0; m < NMETHODS; m++)
		if (n && !strncmp(methods[m], name, n)) {
			g->method[m] = true;
			return -1;
		}
	return complain_usage("bench blocks: -m: '%s' is neither dense nor csr",
			      name);
}

static int take_flag(struct grid *g, struct args *a)
{
	if (!strcmp(a->key, "-m"))
		return take_method(g, a->value);
	if (!strcmp(a->key, "--label")) {
		g->label = a->value;
	} else if (!strcmp(a->key, "-F")) {
		g->keep_first = true;
	} else if (!strcmp(a->key, "--no-quality")) {
		g->no_quality = true;
	} else if (!strcmp(a->key, "-B") || !strcmp(a->key, "-E")) {
		const bool batch = a->key[1] == 'B';

		snprintf(a->key, sizeof(a->key), "%s",
			 batch ? "batch_size" : "epochs");
		return spec_arg(g->b.spec, a, ARG_SETTING);
	} else {
		return bench_arg(&g->b, a, ARG_FLAG);
	}
	return -1;
}

static int take_arg(struct grid *g, struct args *a, int kind)
{
	struct pen_err err = { 0 };

	if (kind == ARG_BAD)
		return EXIT_USAGE;
	if (kind == ARG_FLAG)
		return take_flag(g, a);
	if (kind == ARG_PATH && g->b.spec->npaths)
		return pen__blocks_parse(a->value, &g->list, &g->n, &err)
			       ? complain(&err)
			       : -1;
	if (kind == ARG_SETTING && !strcmp(a->key, "format.output"))
		return take_method(g, a->value);
	return bench_arg(&g->b, a, kind);
}

static int default_grid(struct grid *g)
{
	struct pen_err err = { 0 };
	char census[48];

	if (g->n)
		return -1;
	snprintf(census, sizeof(census), "%dx%d", PEN_CENSUS_CHUNKS,
		 PEN_CENSUS_CHUNK);
	if (pen__blocks_parse(DEFAULT_GRID, &g->list, &g->n, &err) ||
	    pen__blocks_parse(census, &g->list, &g->n, &err))
		return complain(&err);
	return -1;
}

static int run_blocks(int argc, char **argv)
{
	struct args a = { .cmd = &pen__bench_blocks,
			  .argc = argc,
			  .argv = argv };
	struct grid g = { 0 };
	struct pen_err err = { 0 };
	int kind, rc = bench_init(&g.b, "blocks.jsonl");

	if (rc < 0 && bench_set(g.b.spec, "batch_size", 1024, &err))
		rc = complain(&err);
	while (rc < 0 && (kind = args_next(&a)) != ARG_END)
		rc = take_arg(&g, &a, kind);
	if (rc < 0)
		rc = default_grid(&g);
	if (rc < 0)
		rc = bench_open(&g.b);
	if (rc < 0) {
		rc = run_grid(&g);
		rc = bench_end(&g.b, rc);
	}
	pen__free(g.list);
	bench_close(&g.b);
	return rc;
}

static const char *const examples[] = {
	"penstock bench blocks cells.h5ad",
	"the default grid: blocks of 65,536 rows in 1 to 4,096 chunks, and the "
	"Census loader's 2000x64",
	"penstock bench blocks cells.h5ad '65536 / [1,4096]' 256x64 -m csr -n "
	"200",
	"CSR batches only, 200 of them in each run",
	"penstock bench blocks cells.h5ad --cold --warm --repeats 3 "
	"-M disk=x",
	"with and without the page cache, three times in turns",
	"penstock bench blocks cells.h5ad format.obs=plate --label plate",
	"also how evenly plates are mixed",
	"penstock bench blocks cells.h5ad --resume",
	"go on where it was stopped",
	NULL,
};

const struct command pen__bench_blocks = {
	.name = "bench blocks",
	.args = "PATH [BLOCK...] [key=value ...] [flags]",
	.summary = "block sizes against speed, memory and shuffle quality",
	.about = "BLOCK is NxC (N chunks of C rows), B/N (blocks of B rows in "
		 "N chunks), B/[lo,hi] (the same for all powers of 2 from lo "
		 "to hi), or C (2000 chunks of C rows). Each is run with "
		 "sampler=block in a process of its own; a run that is out of "
		 "memory leaves a row that says so, and the grid goes on. "
		 "Rates leave the first batch out, unless -F: it has to wait "
		 "for a whole block.",
	.flags = flags,
	.takes_spec = true,
	.examples = examples,
	.run = run_blocks,
};
