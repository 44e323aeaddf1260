/*
 * bench blocks: block sizes against speed, memory and how well batches are
 * mixed. A block is N chunks of C neighbouring rows whose rows are shuffled
 * among themselves; long chunks read fast, many chunks mix well, and both
 * together take memory.
 */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "cli/arms.h"
#include "engine/spec.h"

#define DEFAULT_GRID "65536 / [1,4096]"

enum { DENSE, CSR, NMETHODS };
static const char *const methods[] = { "dense", "csr" };

struct grid {
	struct arms a;
	struct pen_blocks *list;
	size_t n;
	bool method[NMETHODS]; /* none: all there are */
	bool keep_first, no_quality;
	const char *label;
};

static const struct grid *grid_of(const struct arm *m)
{
	return (const struct grid *)(const void *)m->of;
}

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

/* An arm's value is the place of its block, its kind the method; -1: the
 * format has no choice. */
static const char *method_name(const struct arm *m)
{
	return m->kind < 0 ? "as is" : methods[m->kind];
}

static void head(struct pen_text *j, const struct trial *t)
{
	const struct arm *m = t->arg;
	const struct grid *g = grid_of(m);
	const struct pen_blocks *k = &g->list[m->value];

	pen__json_str(j, "experiment", "blocks");
	pen__json_int(j, "chunk_rows", k->chunk);
	pen__json_int(j, "block_chunks", k->chunks);
	pen__json_int(j, "block_rows", k->chunk * k->chunks);
	pen__json_int(j, "batch", g->a.b.spec->batch_size);
	pen__json_str(j, "method", method_name(m));
	pen__json_int(j, "epochs", g->a.b.spec->epochs);
	pen__json_bool(j, "drop_first", !g->keep_first);
}

static void describe(const struct arm *m, struct trial *t)
{
	const struct grid *g = grid_of(m);
	const struct pen_blocks *k = &g->list[m->value];

	snprintf(t->title, sizeof(t->title), "%s chunks of %s, %s, %s",
		 grouped(k->chunks), grouped(k->chunk), method_name(m),
		 t->cold ? "cold" : "warm");
	bench_setup(&g->a.b, t, "blocks",
		    "chunk=%llu chunks=%llu batch=%llu method=%s epochs=%llu",
		    (unsigned long long)k->chunk, (unsigned long long)k->chunks,
		    (unsigned long long)g->a.b.spec->batch_size, method_name(m),
		    (unsigned long long)g->a.b.spec->epochs);
}

static int set_up(struct pen_spec *s, const struct arm *m, struct pen_err *err)
{
	const struct pen_blocks *k = &grid_of(m)->list[m->value];
	int rc = pen_spec_set(s, "sampler", "block", err);

	if (!rc)
		rc = bench_set(s, "sampler.chunk", k->chunk, err);
	if (!rc)
		rc = bench_set(s, "sampler.chunks", k->chunks, err);
	if (!rc && m->kind >= 0)
		rc = pen_spec_set(s, "format.output", methods[m->kind], err);
	return rc;
}

static int run_arm(struct bench *b, const struct trial *t, struct pen_text *j,
		   struct pen_err *err)
{
	const struct arm *m = t->arg;
	const struct grid *g = grid_of(m);
	struct pen_pass pass = { .max_batches = b->batches,
				 .temper = t->cold ? PEN_COLD : PEN_WARM,
				 .quality = !g->no_quality,
				 .label = g->label,
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
	if (!rc)
		pen__pass_json(j, &pass);
	pen__pass_fini(&pass);
	pen_spec_free(s);
	return rc;
}

/* ---- the table on the terminal ---- */

static void print_header(const struct grid *g)
{
	if (g->a.b.json)
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

static void print_row(struct arms *a, const struct arm *m,
		      const struct pen_line *r)
{
	const struct grid *g = (const struct grid *)(const void *)a;
	double all = pen__line_number(r, "samples_per_s");
	double rest = pen__line_number(r, "samples_per_s_rest");
	double slow = pen__line_number(r, "slow_tenth_share");
	double n_eff = pen__line_number(r, "quality.n_eff");
	double p50 = pen__line_number(r, "batch_p50_s");
	double p99 = pen__line_number(r, "batch_p99_s");
	char share[16], eff[16];

	(void)m;
	if (a->b.json)
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
		return spec_arg(g->a.b.spec, a, ARG_SETTING);
	} else {
		return bench_arg(&g->a.b, a, ARG_FLAG);
	}
	return -1;
}

static int take_arg(struct arms *arms, struct args *a, int kind)
{
	struct grid *g = (struct grid *)(void *)arms;
	struct pen_err err = { 0 };

	if (kind == ARG_FLAG)
		return take_flag(g, a);
	if (kind == ARG_PATH && g->a.b.spec->npaths)
		return pen__blocks_parse(a->value, &g->list, &g->n, &err)
			       ? complain(&err)
			       : -1;
	if (kind == ARG_SETTING && !strcmp(a->key, "format.output"))
		return take_method(g, a->value);
	return bench_arg(&g->a.b, a, kind);
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

static int prepare(struct arms *a)
{
	struct grid *g = (struct grid *)(void *)a;
	int rc = default_grid(g);

	if (rc < 0)
		rc = bench_open(&a->b);
	if (rc >= 0)
		return rc;
	arms_settle(g->method, NMETHODS);
	for (size_t i = 0; i < g->n; i++)
		for (int k = a->b.has_output ? 0 : -1;
		     k < (a->b.has_output ? NMETHODS : 0); k++) {
			struct arm *m;

			if (k >= 0 && !g->method[k])
				continue;
			m = arms_add(a, "", "", i);
			if (!m)
				return EXIT_FAILED;
			m->kind = k;
		}
	print_header(g);
	return -1;
}

static int run_blocks(int argc, char **argv)
{
	struct grid g = { .a = { .cmd = &pen__bench_blocks,
				 .kind = &pen__kind_blocks,
				 .preset = { "batch_size", "1024" },
				 .take = take_arg,
				 .prepare = prepare,
				 .head = head,
				 .describe = describe,
				 .run = run_arm,
				 .row = print_row } };
	const int rc = arms_main(&g.a, argc, argv);

	pen__free(g.list);
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
