/*
 * convert: single cells from h5ad, zarr or packed files to one of these.
 * make/convert.c does the work; this file handles arguments, progress and the
 * report.
 */
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "cli/cli.h"
#include "make/convert.h"
#include "make/maker.h"

#define MOST_PATHS 4096
#define MOST_NAMED 12 /* omitted items that are listed by name */

struct convert {
	/* settings */
	char *to;
	bool shuffle;
	uint64_t seed, memory;
	/* flags */
	bool json, force, quick;
	bool shuffles; /* a setting that only applies to shuffling was given */
	const char *path[MOST_PATHS];
	size_t npaths;
	struct pen_spec *spec;
	struct pen_opts_kv kv[32]; /* the writer's */
	size_t nkv;
	char origin[1024], seed_text[24];
	struct progress progress;
	int phase;
};

#define OFF(x) offsetof(struct convert, x)
static const struct pen_opt opts[] = {
	{ .name = "to",
	  .type = PEN_OPT_STR,
	  .off = OFF(to),
	  .help = "output format: h5ad, zarr or packed (default: by the suffix "
		  "of DST)" },
	{ .name = "shuffle",
	  .type = PEN_OPT_BOOL,
	  .off = OFF(shuffle),
	  .dflt = "false",
	  .help = "write the cells in a random order, even if they do not fit "
		  "into memory" },
	{ .name = "seed",
	  .type = PEN_OPT_COUNT,
	  .off = OFF(seed),
	  .dflt = "0",
	  .help = "seed of the order; equal seeds and numbers of cells give "
		  "equal orders" },
	{ .name = "memory",
	  .type = PEN_OPT_SIZE,
	  .off = OFF(memory),
	  .dflt = "0",
	  .help = "memory for shuffling (0: a quarter of the free memory)" },
	{ .name = NULL },
};

static const struct flag flags[] = {
	{ "--json", NULL, "print the result as JSON" },
	{ "--no-verify", NULL, "do not read the output back and compare it" },
	{ "--force", NULL, "replace DST if it exists" },
	{ NULL, NULL, NULL },
};

/* ---- arguments ---- */

/* All single-cell formats have the same settings. */
static bool of_cells(const char *key)
{
	struct pen_option o;

	for (uint32_t i = 0;
	     !pen_option_at("format", "packed", i, &o, sizeof(o)); i++)
		if (!strcmp(o.name, key))
			return true;
	return false;
}

/* Settings of the loader that say how to read, and not what. */
static bool of_reading(const char *key)
{
	static const char *const names[] = {
		"format",      "index_cache", "mlock", "open_files", "prefetch",
		"queue_depth", "read_size",   "store", "threads",
	};

	if (strncmp(key, "format.", 7) == 0 || strncmp(key, "store.", 6) == 0)
		return strcmp(key, "format.fields") != 0;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(key, names[i]))
			return true;
	return false;
}

static int refuse_setting(const char *key)
{
	struct pen_err err = { 0 };

	pen__fail(&err, P_NO_EFFECT, key,
		  "has no effect on convert, which reads every cell once; "
		  "filter=, genes=, matrix= and obs= select parts");
	return complain(&err);
}

/* to.X goes to the writer; X is a setting of convert or of the single-cell
 * format; those of reading (store.X, threads) go to the loader. */
static int take_setting(struct convert *c, const struct args *a)
{
	struct pen_err err = { 0 };
	char key[160];
	int rc;

	if (strncmp(a->key, "to.", 3) == 0) {
		/* argv is never modified: the key can point into it */
		const char *arg = a->argv[a->at - 1];
		const size_t n = strlen(a->key) - 3;
		char *name = pen__strndup(arg + 3 + strspn(arg, "+"), n);

		if (!name || c->nkv == sizeof(c->kv) / sizeof(*c->kv)) {
			pen__free(name);
			return complain_usage(P_TOO_LONG, "convert",
					      "too many settings");
		}
		c->kv[c->nkv++] = (struct pen_opts_kv){ name, a->value };
		return -1;
	}
	c->shuffles |= !strcmp(a->key, "seed") || !strcmp(a->key, "memory");
	if (pen__opt_find(opts, a->key))
		return pen__opt_set(opts, c, a->key, a->value, &err)
			       ? complain(&err)
			       : -1;
	snprintf(key, sizeof(key), "%s%s", of_cells(a->key) ? "format." : "",
		 a->key);
	rc = pen_spec_set(c->spec, key, a->value, &err);
	if (rc)
		return complain(&err);
	return of_reading(key) ? -1 : refuse_setting(a->key);
}

static int take_arg(struct convert *c, const struct args *a, int kind)
{
	switch (kind) {
	case ARG_BAD:
		return EXIT_USAGE;
	case ARG_FLAG:
		c->json |= !strcmp(a->key, "--json");
		c->quick |= !strcmp(a->key, "--no-verify");
		c->force |= !strcmp(a->key, "--force");
		return -1;
	case ARG_SETTING:
		return take_setting(c, a);
	default:
		if (c->npaths == MOST_PATHS)
			return complain_usage(
				P_TOO_LONG, "convert",
				"too many paths; name a directory or @LIST");
		c->path[c->npaths++] = a->value;
		return -1;
	}
}

/* ---- running ---- */

static int tick(void *arg, enum pen_convert_phase phase, uint64_t done,
		uint64_t total)
{
	static const char *const titles[] = { "counting", "reading", "writing",
					      "verifying" };
	struct convert *c = arg;

	if (c->phase != (int)phase) {
		if (c->phase >= 0)
			progress_end(&c->progress);
		progress_start(&c->progress, "cells", total);
		c->progress.title = titles[phase];
		c->phase = (int)phase;
	}
	progress_show(&c->progress, done, 0);
	return interrupted();
}

static const char *find_format(const struct convert *c, const char *dst)
{
	const char *to, *by_name = pen__cells_format_for(dst);
	char names[128] = "";

	to = c->to ? c->to : by_name;
	if (to && by_name && strcmp(to, by_name) != 0 &&
	    pen__cells_format_suffix(to)) {
		complain_usage(P_CONFLICT, dst,
			       "the suffix means %s, but to=%s; change the "
			       "suffix or omit to=",
			       by_name, to);
		return NULL;
	}
	if (to && pen__cells_format_suffix(to))
		return to;
	for (unsigned i = 0; (to = pen__cells_format_at(i)); i++)
		snprintf(names + strlen(names), sizeof(names) - strlen(names),
			 "%s%s (%s)", i ? ", " : "", to,
			 pen__cells_format_suffix(to));
	if (c->to)
		complain_usage(P_UNKNOWN_NAME, "to",
			       "cannot convert to '%s'; use %s", c->to, names);
	else
		complain_usage(P_MISSING_SETTING, "convert",
			       "the suffix of %s is unknown; set to= to a "
			       "format or use its suffix: %s",
			       dst, names);
	return NULL;
}

/* One line per kind of omitted item. */
static void print_left(const struct pen_left_kind *k)
{
	const char *name = "";
	uint32_t n = 0;

	printf("  omitted: %s (", k->kind);
	while (n < MOST_NAMED && (name = pen__left_next(k, name)))
		printf("%s%s", n++ ? ", " : "", shown(name));
	if (k->n > n)
		printf(" and %s more", grouped(k->n - n));
	printf(")%s\n",
	       strcmp(k->kind, "raw") ? "" : ": matrix=raw selects it as X");
}

static void put_left(struct pen_text *j, const struct pen_left *left)
{
	pen__json_open(j, "left_out", '[');
	for (uint32_t i = 0; i < left->n; i++) {
		pen__json_open(j, NULL, '{');
		pen__json_str(j, "kind", left->of[i].kind);
		pen__json_open(j, "names", '[');
		for (const char *s = ""; (s = pen__left_next(&left->of[i], s));)
			pen__json_str(j, NULL, s);
		pen__json_close(j, ']');
		pen__json_close(j, '}');
	}
	pen__json_close(j, ']');
}

static void print_text(const struct convert *c, const char *dst,
		       const struct pen_convert_result *r, double s)
{
	printf("%s: %s x %s, %s in %s (%s cells/s)\n", shown(dst),
	       counted(r->ncells, "cell"), counted(r->ngenes, "gene"),
	       human_bytes((double)r->bytes_out), human_time(s),
	       human_count(s > 0 ? (double)r->ncells / s : 0));
	printf("  %s before; the output is %.2f of that%s\n",
	       human_bytes((double)r->bytes_in),
	       r->bytes_in ? (double)r->bytes_out / (double)r->bytes_in : 0,
	       c->quick ? "; not verified" : "; verified cell by cell");
	if (c->shuffle)
		printf("  shuffled with seed %" PRIu64 ", in %s\n", c->seed,
		       counted(r->buckets, "bucket"));
	if (r->nbeside)
		printf("  with %s %s in addition to X\n", grouped(r->nbeside),
		       r->nbeside == 1 ? "matrix" : "matrices");
	for (uint32_t i = 0; i < r->left.n; i++)
		print_left(&r->left.of[i]);
}

static int print_json(const struct convert *c, const char *dst,
		      const struct pen_convert_result *r, double s)
{
	static const char *const phases[] = { "count", "read", "write",
					      "verify" };
	struct pen_text j = { 0 };

	pen__json_open(&j, NULL, '{');
	pen__json_str(&j, "schema", "penstock.convert/1");
	pen__json_str(&j, "path", dst);
	pen__json_int(&j, "cells", r->ncells);
	pen__json_int(&j, "genes", r->ngenes);
	pen__json_int(&j, "nonzeros", r->nnz);
	pen__json_int(&j, "files", r->nobjects);
	pen__json_int(&j, "bytes_before", r->bytes_in);
	pen__json_int(&j, "bytes_after", r->bytes_out);
	pen__json_num(&j, "ratio",
		      r->bytes_in ? (double)r->bytes_out / (double)r->bytes_in
				  : 0);
	pen__json_num(&j, "seconds", s);
	pen__json_num(&j, "cells_per_second",
		      s > 0 ? (double)r->ncells / s : 0);
	pen__json_open(&j, "phases", '{');
	for (int i = 0; i < PEN_CONVERT_PHASES; i++)
		pen__json_num(&j, phases[i], r->seconds[i]);
	pen__json_close(&j, '}');
	pen__json_bool(&j, "verified", !c->quick);
	pen__json_bool(&j, "shuffled", c->shuffle);
	if (c->shuffle) {
		pen__json_int(&j, "seed", c->seed);
		pen__json_int(&j, "buckets", r->buckets);
		pen__json_int(&j, "bucket_bytes", r->bucket_bytes);
	}
	pen__json_int(&j, "matrices_beside", r->nbeside);
	put_left(&j, &r->left);
	pen__json_close(&j, '}');
	return text_out(&j, NULL);
}

static void note(struct convert *c, const char *to, const char *key,
		 const char *value)
{
	char *name;

	if (!pen__opt_find(pen__cells_format_opts(to), key) ||
	    c->nkv == sizeof(c->kv) / sizeof(*c->kv))
		return;
	for (size_t i = 0; i < c->nkv; i++)
		if (!strcmp(c->kv[i].key, key))
			return;
	name = pen__strdup(key);
	if (name)
		c->kv[c->nkv++] = (struct pen_opts_kv){ name, value };
}

/* Records the source and the shuffle seed in formats that can store them. */
static void note_origin(struct convert *c, const char *to)
{
	size_t n = 0;

	for (size_t i = 0; i + 1 < c->npaths && n < sizeof(c->origin); i++)
		n += (size_t)snprintf(c->origin + n, sizeof(c->origin) - n,
				      "%s%s", i ? ", " : "", c->path[i]);
	note(c, to, "source", c->origin);
	snprintf(c->seed_text, sizeof(c->seed_text), "%" PRIu64, c->seed);
	if (c->shuffle)
		note(c, to, "shuffle_seed", c->seed_text);
}

static int convert(struct convert *c)
{
	const char *dst = c->path[c->npaths - 1];
	const char *to = find_format(c, dst);
	struct pen_convert_result r;
	struct pen_err err = { 0 };
	struct stat sb;
	double s = 0;
	int rc = 0;

	if (!to)
		return EXIT_USAGE;
	if (c->shuffles && !c->shuffle)
		return complain_usage(P_NO_EFFECT, "convert",
				      "seed= and memory= have no effect "
				      "without shuffle=true");
	pen__cells_clean(dst);
	if (!c->force && lstat(dst, &sb) == 0)
		return complain_usage(
			P_EXISTS, dst,
			"already exists; replace it with --force");
	for (size_t i = 0; !rc && i + 1 < c->npaths; i++)
		rc = pen_spec_add_path(c->spec, c->path[i], &err);
	if (!rc) {
		note_origin(c, to);
		rc = pen__convert(&(struct pen_convert){ .source = c->spec,
							 .to = to,
							 .path = dst,
							 .kv = c->kv,
							 .nkv = c->nkv,
							 .shuffle = c->shuffle,
							 .verify = !c->quick,
							 .seed = c->seed,
							 .memory = c->memory,
							 .opened = warn_of,
							 .tick = tick,
							 .arg = c },
				  &r, &err);
	}
	if (c->phase >= 0)
		progress_end(&c->progress);
	if (interrupted())
		return 128 + interrupted();
	if (rc)
		return complain(&err);
	for (int i = 0; i < PEN_CONVERT_PHASES; i++)
		s += r.seconds[i];
	rc = EXIT_OK;
	if (c->json)
		rc = print_json(c, dst, &r, s);
	else
		print_text(c, dst, &r, s);
	pen__left_fini(&r.left);
	return rc;
}

static int run_convert(int argc, char **argv)
{
	struct args a = { .cmd = &pen__cmd_convert,
			  .argc = argc,
			  .argv = argv };
	struct convert *c = pen__calloc(1, sizeof(*c));
	struct pen_err err = { 0 };
	int kind, rc = -1;

	if (!c)
		return EXIT_FAILED;
	c->phase = -1;
	if (pen__opt_defaults(opts, c, &err) || pen_spec_new(&c->spec, &err) ||
	    pen_spec_set(c->spec, "index_cache", "off", &err))
		rc = complain(&err);
	while (rc < 0 && (kind = args_next(&a)) != ARG_END)
		rc = take_arg(c, &a, kind);
	if (rc < 0 && c->npaths < 2)
		rc = complain_usage(P_MISSING_SETTING, "convert",
				    "needs a source and a destination: "
				    "penstock convert SRC... DST");
	if (rc < 0)
		rc = convert(c);
	for (size_t i = 0; i < c->nkv; i++)
		pen__free((void *)(uintptr_t)c->kv[i].key);
	pen_spec_free(c->spec);
	pen__opt_fini(opts, c);
	pen__free(c);
	return rc;
}

static const char *const examples[] = {
	"penstock convert cells.h5ad cells.pen",
	"half the size of gzip, and several times faster to load",
	"penstock convert cells.h5ad cells.pen shuffle=true seed=1",
	"the same in random order, so that sequential reading suffices",
	"penstock convert a.h5ad b.h5ad all.pen join=outer",
	"merge two files, with the genes of both",
	"penstock convert cells.pen back.h5ad to.compression=gzip",
	"back to h5ad, for other programs",
	NULL,
};

const struct command pen__cmd_convert = {
	.name = "convert",
	.args = "SRC... DST [key=value ...] [flags]",
	.summary = "convert single-cell data to a fast layout, and back",
	.about = "Reads all cells of h5ad, zarr or packed (.pen) files through "
		 "the loader, with all columns of obs and var, layers and obsm "
		 "(or the matrix that matrix= names), and writes one file. "
		 "Omitted parts (uns, raw, varm, obsp, ...) are listed. The "
		 "output is read back and compared cell by cell before it gets "
		 "its final name; on failure nothing is left behind. Settings: "
		 "those below, those listed by `penstock formats h5ad` for "
		 "reading (matrix, genes, filter, join, dtype, ...), and to.X "
		 "for the writer (to.compression, to.rows, ...). Memory use "
		 "does not grow with the matrix.",
	.flags = flags,
	.opts = opts,
	.examples = examples,
	.run = run_convert,
};
