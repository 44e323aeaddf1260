/*
 * gen: generates a data set. Every file is a function of (seed, file number),
 * so any number of threads can write them in any order with the same result. A
 * file gets its final name only when it is complete.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/dtype.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/stale.h"
#include "cli/cli.h"
#include "cli/gen.h"
#include "make/synth.h"

static const char *const lengths[] = { "fixed", "realistic", NULL };

#define OFF(x) offsetof(struct gen, x)
static const struct pen_opt opts[] = {
	{ .name = "format",
	  .type = PEN_OPT_STR,
	  .off = OFF(format),
	  .help = "format of the files (default: by the suffix of PATH, "
		  "otherwise npy)" },
	{ .name = "files",
	  .type = PEN_OPT_COUNT,
	  .off = OFF(files),
	  .dflt = "1",
	  .min = 1,
	  .max = 4e9,
	  .help = "number of files; more than one are written to the directory "
		  "PATH" },
	{ .name = "samples",
	  .type = PEN_OPT_COUNT,
	  .off = OFF(samples),
	  .dflt = "0",
	  .min = 0,
	  .max = 1e15,
	  .help = "samples per file (0: 1, or 10,000 single cells)" },
	{ .name = "shape",
	  .type = PEN_OPT_STR,
	  .off = OFF(shape),
	  .dflt = "64x64",
	  .help = "shape of a sample, such as 3x224x224 (1: a single number)" },
	{ .name = "dtype",
	  .type = PEN_OPT_STR,
	  .off = OFF(dtype),
	  .dflt = "float32",
	  .help = "NumPy name of the element type" },
	{ .name = "classes",
	  .type = PEN_OPT_COUNT,
	  .off = OFF(classes),
	  .dflt = "0",
	  .help = "npz: add a field y with labels below this number" },
	{ .name = "genes",
	  .type = PEN_OPT_COUNT,
	  .off = OFF(genes),
	  .dflt = "20000",
	  .min = 1,
	  .max = 16777216,
	  .help = "single cells: number of columns of the matrix" },
	{ .name = "density",
	  .type = PEN_OPT_DOUBLE,
	  .off = OFF(density),
	  .dflt = "0.062",
	  .help = "single cells: share of nonzero numbers" },
	{ .name = "overlap",
	  .type = PEN_OPT_DOUBLE,
	  .off = OFF(overlap),
	  .dflt = "1",
	  .help = "single cells: share of genes that all files have in "
		  "common" },
	{ .name = "dense",
	  .type = PEN_OPT_BOOL,
	  .off = OFF(dense),
	  .dflt = "false",
	  .help = "single cells: write a dense matrix instead of CSR" },
	{ .name = "pca",
	  .type = PEN_OPT_COUNT,
	  .off = OFF(pca),
	  .dflt = "0",
	  .max = 65536,
	  .help = "single cells: number of columns of obsm/X_pca (0: none)" },
	{ .name = "size",
	  .type = PEN_OPT_SIZE,
	  .off = OFF(size),
	  .dflt = "16MiB",
	  .min = 1,
	  .max = 1e15,
	  .help = "sequences: total size, counting line ends but not ids" },
	{ .name = "length",
	  .type = PEN_OPT_COUNT,
	  .off = OFF(length),
	  .dflt = "0",
	  .max = 1e15,
	  .help = "sequences: letters per sequence (0: 1024, or 300 for "
		  "proteins)" },
	{ .name = "lengths",
	  .type = PEN_OPT_ENUM,
	  .off = OFF(lengths),
	  .dflt = "fixed",
	  .choices = lengths,
	  .help = "sequences: all of equal length, or spread around length= "
		  "with a few very long ones" },
	{ .name = "subfolders",
	  .type = PEN_OPT_COUNT,
	  .off = OFF(subfolders),
	  .dflt = "0",
	  .help = "number of subdirectories to spread the files over (0: "
		  "none)" },
	{ .name = "prefix",
	  .type = PEN_OPT_STR,
	  .off = OFF(prefix),
	  .help = "prefix of the file names (default: img, or cells)" },
	{ .name = "seed",
	  .type = PEN_OPT_COUNT,
	  .off = OFF(seed),
	  .dflt = "0",
	  .help = "seed of the data; equal seeds give equal bytes" },
	{ .name = "threads",
	  .type = PEN_OPT_INT,
	  .off = OFF(threads),
	  .dflt = "0",
	  .min = 0,
	  .max = 1024,
	  .help = "number of threads (0: one per CPU)" },
	{ .name = "store",
	  .type = PEN_OPT_STR,
	  .off = OFF(store),
	  .dflt = "posix",
	  .help = "store that writes the files; store.fsync=true syncs each "
		  "file" },
	{ .name = NULL },
};

static const struct flag flags[] = {
	{ "--force", NULL,
	  "write into a directory that is not empty, or overwrite a file" },
	{ "--json", NULL, "print the result as JSON" },
	{ "--size", "BYTES", "same as size=BYTES" },
	{ "--seed", "N", "same as seed=N" },
	{ "--lengths", "HOW", "same as lengths=HOW" },
	{ NULL, NULL, NULL },
};

/* Fills a piece of the file whose number is in arg. */
static int make_part(const struct pen_table *t, uint32_t field, uint64_t off,
		     size_t n, void *to, struct pen_err *err)
{
	const struct gen *g = *(const struct gen *const *)t->arg;
	const uint64_t file = ((const uint64_t *)t->arg)[1];
	const struct pen_synth s = { .seed = g->seed,
				     .dtype = t->field[0].dtype,
				     .unit = true };

	(void)err;
	if (field == 0) {
		pen__synth_fill(&s, file * 2, off, to, n);
		return 0;
	}
	for (size_t i = 0; i < n; i += 8) {
		const uint64_t y = pen__mulhi(
			pen__rng_at(pen__rng_key(g->seed, file * 2 + 1),
				    (off + i) / 8),
			g->classes);

		memcpy((uint8_t *)to + i, &y, 8);
	}
	return 0;
}

/* Called before n bytes are written. */
static int step(void *arg, size_t n, struct pen_err *err)
{
	struct gen *g = arg;

	if (interrupted())
		return pen__fail(err, P_INTERRUPTED, g->path, "interrupted");
	atomic_fetch_add(&g->bytes, n);
	return 0;
}

void gen_file_name(const struct gen *g, uint64_t i, char *buf, size_t cap)
{
	const struct pen_synth_names names = { .dir = g->path,
					       .prefix = g->prefix  ? g->prefix
							 : g->cells ? "cells"
								    : "img",
					       .suffix = g->suffix,
					       .files = g->files,
					       .subfolders = g->subfolders };

	if (g->single)
		snprintf(buf, cap, "%s", g->path);
	else
		pen__synth_name(&names, i, buf, cap);
}

static int make_file(void *of, uint64_t i, struct pen_err *err)
{
	struct gen *g = of;
	struct {
		const struct gen *g;
		uint64_t file;
	} arg = { g, i };
	struct pen_table t = { .nsamples = g->samples,
			       .nfields = g->nfields,
			       .field = g->field,
			       .part = make_part,
			       .arg = &arg };
	char path[4096];
	const struct pen_made_file to = { .path = path,
					  .step = step,
					  .arg = g };

	gen_file_name(g, i, path, sizeof(path));
	return pen__maker_write(g->maker, &to, &t, err);
}

static int parse_shape(struct gen *g)
{
	struct pen_field *d = &g->field[0];
	const char *s = g->shape;
	char *end;

	d->ndim = 0;
	while (*s && d->ndim < PEN_MAX_DIMS) {
		long long v = strtoll(s, &end, 10);

		if (end == s || v < 1)
			break;
		d->shape[d->ndim++] = v;
		s = end;
		if (*s == 'x' || *s == ',')
			s++;
	}
	if (*s || !d->ndim)
		return complain_usage(
			P_BAD_VALUE, "gen",
			"the shape '%s' is not valid; write it as 3x224x224",
			g->shape);
	if (d->ndim == 1 && d->shape[0] == 1)
		d->ndim = 0;
	return -1;
}

static int settle_dtype(struct gen *g)
{
	const char *names[PEN_NDTYPES + 1];
	int t;

	for (t = 0; t < PEN_NDTYPES; t++)
		names[t] = pen_dtype_name((enum pen_dtype)t);
	names[t] = NULL;
	for (t = 0; t < PEN_NDTYPES; t++)
		if (!strcmp(names[t], g->dtype))
			break;
	if (t == PEN_NDTYPES || t == PEN_F80 || t == PEN_C160) {
		const char *near =
			t == PEN_NDTYPES ? pen__nearest(g->dtype, names) : NULL;

		return complain_usage(P_BAD_VALUE, "gen",
				      "cannot generate dtype '%s'%s%s",
				      g->dtype, near ? "; did you mean " : "",
				      near ? near : "");
	}
	g->field[0].dtype = (enum pen_dtype)t;
	return -1;
}

static int settle_field(struct gen *g)
{
	struct pen_field *d = &g->field[0];
	size_t row, all;
	const int rc = parse_shape(g);

	if (rc >= 0)
		return rc;
	snprintf(d->name, sizeof(d->name), "x");
	if (!pen__shape_bytes(d->shape, d->ndim, d->dtype, &row) ||
	    !pen__mul(row, g->samples, &all))
		return complain_usage(
			P_BAD_VALUE, "gen",
			"a file would be too large; lower samples= or shape=");
	g->file_bytes = all;
	g->nfields = 1;
	if (g->classes) {
		g->field[1] =
			(struct pen_field){ .name = "y", .dtype = PEN_I64 };
		g->nfields = 2;
		g->file_bytes += 8 * g->samples;
	}
	return -1;
}

static bool has_option(const char *format, const char *name)
{
	struct pen_option o;

	for (uint32_t i = 0; !pen_option_at("format", format, i, &o, sizeof(o));
	     i++)
		if (!strcmp(o.name, name))
			return true;
	return false;
}

static int settle_format(struct gen *g, struct pen_err *err)
{
	const char *by_name = pen_format_for(g->path);

	g->made = g->format ? g->format : by_name ? by_name : "npy";
	if (!pen__format_writes(g->made))
		return pen_help_of("format", g->made)
			       ? pen__fail(err, P_CANNOT_WRITE_THIS, g->made,
					   "this format can be read but not "
					   "written; see `penstock formats`")
			       : pen__fail(err, P_UNKNOWN_NAME, g->made,
					   "unknown format; see `penstock "
					   "formats`");
	if (gen_check_name(g, g->made, err))
		return PEN_EINVAL;
	if (has_option(g->made, "tokens"))
		return pen__fail(
			err, P_BAD_VALUE, g->made,
			"is a format for sequences; generate them with "
			"`penstock gen dna PATH`, rna or protein");
	g->suffix = pen_format_suffix(g->made, 0);
	g->single = g->files == 1 && pen__format_names(g->made, g->path);
	if (g->classes && strcmp(g->made, "npz") != 0)
		return pen__fail(
			err, P_CONFLICT, "classes",
			"needs a format with named fields; set format=npz");
	return pen__maker_use(g->maker, g->made, g->for_format.kv,
			      g->for_format.n, err);
}

static int check_space(struct gen *g, struct pen_err *err)
{
	uint64_t need;

	if (strcmp(g->store, "null") == 0)
		return 0;
	if (__builtin_mul_overflow(g->file_bytes, g->files, &need))
		need = UINT64_MAX;
	return pen__synth_space(g->path, need, err);
}

/* Existing files are never overwritten or mixed with ours by accident. */
int gen_check_target(struct gen *g, struct pen_err *err)
{
	struct stat sb;
	uint64_t n = 0;
	int rc;

	if (g->single && g->many)
		return pen__fail(err, P_NO_EFFECT, g->path,
				 "is a single file, where subfolders= and "
				 "prefix= have no effect; omit them");
	if (g->files == 1 && g->overlap < 1)
		return pen__fail(err, P_NO_EFFECT, "overlap",
				 "has no effect on a single file; set files= "
				 "or omit it");
	if (g->force || lstat(g->path, &sb))
		return 0;
	if (g->single || !S_ISDIR(sb.st_mode))
		return pen__fail(err, P_EXISTS, g->path,
				 "already exists; overwrite it with --force");
	rc = pen__maker_count(g->maker, g->path, &n, err);
	if (!rc && n)
		rc = pen__fail(err, P_EXISTS, g->path,
			       "the directory is not empty; write into it "
			       "anyway with --force");
	return rc;
}

static int tick(void *arg)
{
	struct gen *g = arg;

	progress_show(&g->progress, atomic_load(&g->bytes), 0);
	return interrupted();
}

static int make_all(struct gen *g, struct pen_err *err)
{
	struct pen_synth_run run = { .n = g->files,
				     .threads = (unsigned)g->threads,
				     .make = make_file,
				     .tick = tick,
				     .arg = g,
				     .name = g->path };
	int rc;

	progress_start(&g->progress, "bytes", g->file_bytes * g->files);
	rc = pen__synth_run(&run, err);
	progress_end(&g->progress);
	return rc;
}

/* Removes what a killed run left at the target. */
static void clean(const struct gen *g)
{
	char dir[4096];

	snprintf(dir, sizeof(dir), "%.4094s%s", g->path, g->single ? "" : "/");
	pen__stale_remove(dir);
}

/* Removes directories of files that were not written. */
static void drop_dirs(const struct gen *g)
{
	char path[4096], *slash;

	for (uint64_t i = 0; i < g->subfolders && i < g->files; i++) {
		gen_file_name(g, i, path, sizeof(path));
		slash = strrchr(path, '/');
		if (slash)
			*slash = '\0';
		rmdir(path);
	}
	rmdir(g->path);
}

static int generate(struct gen *g)
{
	struct pen_err err = { 0 };
	uint64_t t0 = pen__now_ns();
	struct pen_text j = { 0 };
	double s;
	int rc;

	rc = pen__maker_open(&g->maker, g->store, g->for_store.kv,
			     g->for_store.n, &err);
	if (!rc)
		rc = settle_format(g, &err);
	if (!rc)
		rc = gen_check_target(g, &err);
	if (!rc)
		rc = check_space(g, &err);
	if (!rc) {
		const bool there = !access(g->path, F_OK);

		clean(g);
		rc = make_all(g, &err);
		if (rc && !there)
			drop_dirs(g);
	}
	if (interrupted())
		return 128 + interrupted();
	if (rc)
		return complain(&err);
	s = (double)(pen__now_ns() - t0) / 1e9;
	gen_settle_hint(g);
	if (!g->json) {
		print_line(2, NULL, "%s: %s%s in %s %s %s, %s in %s (%s/s)%s%s",
			   g->path, g->single ? "" : "a directory with ",
			   counted(g->samples * g->files, "sample"),
			   grouped(g->files), g->made,
			   g->files == 1 ? "file" : "files",
			   human_bytes((double)atomic_load(&g->bytes)),
			   human_time(s),
			   human_bytes((double)atomic_load(&g->bytes) / s),
			   g->hint[0] ? "; load it with " : "", g->hint);
		return EXIT_OK;
	}
	pen__json_open(&j, NULL, '{');
	pen__json_str(&j, "schema", "penstock.gen/1");
	pen__json_str(&j, "path", g->path);
	pen__json_int(&j, "files", g->files);
	pen__json_int(&j, "samples", g->samples * g->files);
	pen__json_int(&j, "bytes", atomic_load(&g->bytes));
	pen__json_str(&j, "load_with", g->hint);
	pen__json_num(&j, "seconds", s);
	pen__json_close(&j, '}');
	return text_out(&j, NULL);
}

/* Settings that apply only to some kinds of data. */
#define ONE(x) (1u << GEN_##x)
static const struct {
	const char *name;
	unsigned of;
} only[] = {
	{ "shape", ONE(SAMPLES) }, { "classes", ONE(SAMPLES) },
	{ "genes", ONE(CELLS) },   { "density", ONE(CELLS) },
	{ "overlap", ONE(CELLS) }, { "dense", ONE(CELLS) },
	{ "pca", ONE(CELLS) },	   { "store", ONE(SAMPLES) | ONE(SEQS) },
	{ "size", ONE(SEQS) },	   { "length", ONE(SEQS) },
	{ "lengths", ONE(SEQS) },  { "samples", ONE(SAMPLES) | ONE(CELLS) },
};
#define NONLY (sizeof(only) / sizeof(only[0]))

/* store.X and format.X go to the writers. The loader spec reports other keys
 * with a dot as unknown. */
static int take_setting(struct gen *g, struct pen_spec *spec,
			const struct args *a)
{
	struct pen_pairs *to = NULL;
	struct pen_err err = { 0 };

	if (!strncmp(a->key, "store.", 6))
		to = &g->for_store;
	else if (!strncmp(a->key, "format.", 7))
		to = &g->for_format;
	if (to)
		return pen__pairs_add(to, strchr(a->key, '.') + 1, a->value,
				      &err)
			       ? complain(&err)
			       : -1;
	if (strchr(a->key, '.'))
		return spec_arg(spec, a, ARG_SETTING);
	for (size_t i = 0; i < NONLY; i++)
		if (!strcmp(a->key, only[i].name))
			g->given |= 1u << i;
	g->typed |= !strcmp(a->key, "dtype");
	g->many |= !strcmp(a->key, "subfolders") || !strcmp(a->key, "prefix");
	if (pen__opt_set(opts, g, a->key, a->value, &err))
		return complain(&err);
	return -1;
}

/* --key VALUE instead of key=VALUE. */
static int take_flagged(struct gen *g, struct pen_spec *spec,
			const struct args *a)
{
	struct args b = *a;

	memmove(b.key, b.key + 2, sizeof(b.key) - 2);
	return take_setting(g, spec, &b);
}

static int take_arg(struct gen *g, struct pen_spec *spec, const struct args *a,
		    int kind)
{
	switch (kind) {
	case ARG_BAD:
		return EXIT_USAGE;
	case ARG_FLAG:
		if (!strcmp(a->key, "--force"))
			g->force = true;
		else if (!strcmp(a->key, "--json"))
			g->json = true;
		else
			return take_flagged(g, spec, a);
		return -1;
	case ARG_SETTING:
		return take_setting(g, spec, a);
	default:
		if (gen_kind(g->path) && !g->kind) {
			g->kind = gen_kind(g->path);
			g->path[0] = '\0';
		}
		if (g->path[0])
			return complain_usage(P_BAD_VALUE, "gen",
					      "takes one PATH, found also '%s'",
					      a->value);
		if (strlen(a->value) >= sizeof(g->path))
			return complain_usage(P_TOO_LONG, "gen",
					      "PATH is too long");
		snprintf(g->path, sizeof(g->path), "%s", a->value);
		return -1;
	}
}

/* Images consist of bytes unless dtype= is given. */
static void default_dtype(struct gen *g)
{
	const char *f = g->format ? g->format : pen_format_for(g->path);

	if (!g->typed && f && (!strcmp(f, "jpeg") || !strcmp(f, "png")))
		g->field[0].dtype = PEN_U8;
}

/* The single-cell format requested, or NULL. */
static const char *cells_format(const struct gen *g)
{
	const char *f;

	if (!g->format)
		return pen__cells_format_for(g->path);
	for (unsigned i = 0; (f = pen__cells_format_at(i)); i++)
		if (!strcmp(f, g->format))
			return f;
	return NULL;
}

static int make(struct gen *g)
{
	static const char *const whats[] = {
		"arrays; generate sequences with gen dna, rna or protein",
		"single cells", "sequences"
	};
	int rc, what = GEN_SAMPLES;

	g->cells = cells_format(g);
	if (g->kind)
		what = GEN_SEQS;
	else if (g->cells)
		what = GEN_CELLS;
	for (size_t i = 0; i < NONLY; i++)
		if (g->given & 1u << i && !(only[i].of & 1u << what))
			return complain_usage(P_NO_EFFECT, "gen",
					      "%s= does not apply to %s",
					      only[i].name, whats[what]);
	if (what == GEN_SEQS)
		return gen_seqs(g);
	if (what == GEN_CELLS)
		return gen_cells(g);
	g->samples = g->samples ? g->samples : 1;
	default_dtype(g);
	rc = settle_field(g);
	return rc >= 0 ? rc : generate(g);
}

static int run_gen(int argc, char **argv)
{
	struct args a = { .cmd = &pen__cmd_gen, .argc = argc, .argv = argv };
	struct gen g = { 0 };
	struct pen_err err = { 0 };
	struct pen_spec *spec = NULL;
	int kind, rc = -1;

	if (pen__opt_defaults(opts, &g, &err) || pen_spec_new(&spec, &err))
		rc = complain(&err);
	while (rc < 0 && (kind = args_next(&a)) != ARG_END)
		rc = take_arg(&g, spec, &a, kind);
	if (rc < 0 && (!g.path[0] || (!g.kind && gen_kind(g.path))))
		rc = complain_usage(P_MISSING_SETTING, "gen",
				    "no PATH given: penstock gen PATH ...");
	if (rc < 0 && pen__check_local(g.path, &err))
		rc = complain(&err);
	if (rc < 0)
		rc = settle_dtype(&g);
	if (rc < 0)
		rc = make(&g);
	pen__maker_close(g.maker);
	pen__pairs_clear(&g.for_store);
	pen__pairs_clear(&g.for_format);
	pen_spec_free(spec);
	pen__opt_fini(opts, &g);
	return rc;
}

static const char *const examples[] = {
	"penstock gen data/ files=1000 shape=64x64 dtype=float32",
	"a thousand npy files with one sample each",
	"penstock gen x.npy samples=1M shape=256",
	"one npy file with a million rows",
	"penstock gen data/ format=npz files=64 shape=1024x1024 classes=10",
	"npz files with an array x and a label y",
	"penstock gen x.h5ad samples=200k genes=20k format.compression=gzip",
	"single cells in the layout of CELLxGENE; also x.zarr",
	"penstock gen cells/ format=h5ad files=4 samples=50k overlap=0.8",
	"four files that share 80 % of their genes",
	"penstock gen dna+rna seqs.txt size=0.125GiB",
	"130,946 lines of 1024 letters, half DNA, half RNA, each with an id",
	"penstock gen protein p.fa --size 100MB --lengths realistic",
	"FASTA with realistic protein lengths",
	"penstock gen dna chr.fa size=100MB length=100M",
	"one long sequence",
	NULL,
};

const struct command pen__cmd_gen = {
	.name = "gen",
	.args = "[KIND] PATH [key=value ...] [flags]",
	.summary = "generate a synthetic data set",
	.about = "Generates random samples in one file or many; equal seeds "
		 "give equal samples. A file gets its final name only when it "
		 "is complete. h5ad and zarr files contain single cells: gene "
		 "counts as skewed as real ones, cell types with marker genes, "
		 "one plate after another. format.X sets options of the "
		 "writer: compression, level, chunk, shuffle (h5ad), version "
		 "and shard (zarr). A KIND writes one file of random letters, "
		 "with one sequence and id per line, or FASTA if PATH has its "
		 "suffix: dna, rna, dna+rna (half each), dna+at (half of it "
		 "rich in A and T) or protein.",
	.flags = flags,
	.opts = opts,
	.examples = examples,
	.run = run_gen,
};
