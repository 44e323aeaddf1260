/*
 * bench startup: how long until the first batch, by the number of files, with
 * an index that has to be made and with one that was kept. Only the first
 * batch is taken; it is held against what was made.
 */
#include <string.h>

#include "base/mem.h"
#include "cli/arms.h"
#include "engine/dataset.h"
#include "engine/spec.h"
#include "engine/synth.h"

#define MOST 16
#define MOST_FILES 10000000
#define A_FOLDER 1000 /* files */

enum { COLD_INDEX, WARM_INDEX, NINDEX };
static const char *const names[] = { "no index", "index kept" };

struct startup {
	struct arms a;
	uint64_t files[MOST];
	size_t n;
	bool given; /* a PATH */
};

static const struct flag flags[] = {
	{ "--files", "LIST",
	  "how many are made, of one sample each (default "
	  "1,10,100,1000,10000)" },
	ARMS_FLAGS,
	{ NULL, NULL, NULL },
};

/* ---- files ---- */

static void dir_path(const struct startup *g, uint64_t files, char *buf,
		     size_t cap)
{
	snprintf(buf, cap, "%s/n%llu", g->a.folder, (unsigned long long)files);
}

struct making {
	const struct startup *g;
	struct bench *b;
	char dir[4096];
};

static int make_file(void *arg, uint64_t i, struct pen_err *err)
{
	const struct making *k = arg;
	struct pen_fresh_file f = { .format = "npy", .first = i, .n = 1 };
	char path[4200];
	int rc = 0;

	/* padded, so that names sort as numbers do */
	snprintf(path, sizeof(path), "%s/%06llu", k->dir,
		 (unsigned long long)(i / A_FOLDER));
	if (i % A_FOLDER == 0)
		rc = pen__make_dirs(path, 0777, err);
	snprintf(path, sizeof(path), "%s/%06llu/%03llu.npy", k->dir,
		 (unsigned long long)(i / A_FOLDER),
		 (unsigned long long)(i % A_FOLDER));
	f.path = path;
	return rc ? rc : pen__fresh_write(&k->g->a.made, &f, err);
}

static int make_files(struct bench *b, const struct trial *t,
		      struct pen_text *j, struct pen_err *err)
{
	const struct startup *g = t->arg;
	struct making k = { .g = g, .b = b };
	int rc = 0;

	for (size_t n = 0; !rc && n < g->n; n++) {
		dir_path(g, g->files[n], k.dir, sizeof(k.dir));
		for (uint64_t i = 0; !rc && i < g->files[n]; i++)
			rc = make_file(&k, i, err);
	}
	pen__json_open(j, NULL, '{');
	pen__json_close(j, '}');
	return rc;
}

static int make_all(struct startup *g)
{
	const struct trial t = { .title = "making files",
				 .run = make_files,
				 .arg = g };
	struct pen_err err = { 0 };
	struct pen_line row;
	char path[4096];
	uint64_t most = 0;
	int rc;

	for (size_t i = 0; i < g->n; i++)
		most = g->files[i] > most ? g->files[i] : most;
	g->a.made.nsamples = most;
	rc = arms_made(&g->a);
	if (rc < 0)
		rc = trial_row(&g->a.b, &t, &row);
	if (rc >= 0)
		return rc;
	pen__line_fini(&row);
	dir_path(g, most, path, sizeof(path));
	if (pen_spec_add_path(g->a.b.spec, path, &err) ||
	    pen_spec_set(g->a.b.spec, "format.samples", "file", &err))
		return complain(&err);
	return -1;
}

/* ---- one arm ---- */

/* Opened once, so that the index is there. */
static int keep_index(const struct pen_spec *s, struct pen_err *err)
{
	struct pen_dataset *ds;
	const int rc = pen_dataset_open(&ds, s, err);

	if (!rc)
		pen_dataset_close(ds);
	return rc;
}

static int put_sum(const struct startup *g, const struct pen_pass *p,
		   struct pen_text *j, struct pen_err *err)
{
	const char *sampler = pen__spec_sampler(p->spec);
	uint64_t sum;
	char hex[24];
	int rc;

	if (g->given || p->spec->subset || p->spec->cast || p->spec->take.n ||
	    (sampler && strcmp(sampler, "sequential") != 0))
		return 0;
	rc = pen__fresh_sum(&g->a.made, 0, p->nsamples, &sum, err);
	snprintf(hex, sizeof(hex), "%016llx", (unsigned long long)sum);
	pen__json_str(j, "expected_sum", hex);
	return rc;
}

static int run_arm(struct bench *b, const struct trial *t, struct pen_text *j,
		   struct pen_err *err)
{
	const struct arm *m = t->arg;
	const struct startup *g = (const struct startup *)(const void *)m->of;
	struct pen_pass pass = { .max_batches = 1 };
	char path[4096], cache[4096];
	const struct setting set = { "index_cache",
				     m->kind == COLD_INDEX ? "off" : cache };
	struct pen_spec *s;
	int rc;

	snprintf(cache, sizeof(cache), "%s/index", g->a.folder);
	rc = arms_spec(b, &set, 1, &s, err);
	if (rc)
		return rc;
	dir_path(g, m->value, path, sizeof(path));
	if (!g->given)
		rc = arms_path(s, path, err);
	if (!rc && m->kind == WARM_INDEX)
		rc = keep_index(s, err);
	pass.spec = s;
	if (!rc)
		rc = arms_pass(b, t, &pass, j, err);
	if (!rc) {
		pen__json_int(j, "n_files", m->value);
		pen__json_num(j, "startup_s", pass.open_s + pass.first_s);
		rc = put_sum(g, &pass, j, err);
	}
	pen__pass_fini(&pass);
	pen_spec_free(s);
	return rc;
}

/* ---- all of them ---- */

static int prepare(struct arms *a)
{
	struct startup *g = (struct startup *)(void *)a;
	int rc = g->given ? -1 : make_all(g);

	if (rc < 0)
		rc = arms_open(a);
	if (rc < 0)
		rc = arms_folder(a);
	if (rc >= 0)
		return rc;
	if (g->given) {
		g->files[0] = (uint64_t)g->a.b.objects;
		g->n = 1;
	}
	for (size_t i = 0; i < g->n; i++)
		for (int k = 0; k < NINDEX; k++) {
			char files[48];
			struct arm *m;

			snprintf(files, sizeof(files), "%s",
				 counted(g->files[i], "file"));
			m = arms_add(&g->a, names[k], files, g->files[i]);
			if (!m)
				return EXIT_FAILED;
			m->kind = k;
			m->samples = g->given ? 0 : g->files[i];
			snprintf(m->check, sizeof(m->check), "%s", files);
		}
	return -1;
}

static int take_arg(struct arms *a, struct args *arg, int kind)
{
	struct startup *g = (struct startup *)(void *)a;

	if (kind == ARG_FLAG && !strcmp(arg->key, "--files")) {
		if (!arms_list(arg->value, g->files, &g->n, MOST))
			return complain_usage("bench startup: --files: '%s' is "
					      "not a list as 1,100",
					      arg->value);
		for (size_t i = 0; i < g->n; i++)
			if (!g->files[i] || g->files[i] > MOST_FILES)
				return complain_usage(
					"bench startup: --files: 1 to 10M");
		return -1;
	}
	if (kind == ARG_FLAG &&
	    (!strcmp(arg->key, "-n") || !strcmp(arg->key, "--samples")))
		return complain_usage("bench startup: %s: it is one batch, of "
				      "--files samples",
				      arg->key);
	if (kind == ARG_SETTING && !strcmp(arg->key, "index_cache"))
		return complain_usage("bench startup: index_cache= is what the "
				      "experiment sets");
	g->given = g->given || kind == ARG_PATH;
	return arms_arg(a, arg, kind);
}

static int run_startup(int argc, char **argv)
{
	struct startup g = { .a = { .cmd = &pen__bench_startup,
				    .kind = &pen__kind_startup,
				    .any_order = true,
				    .shape = "8x8",
				    .take = take_arg,
				    .prepare = prepare,
				    .run = run_arm },
			     .files = { 1, 10, 100, 1000, 10000 },
			     .n = 5 };

	return arms_main(&g.a, argc, argv);
}

static const char *const examples[] = {
	"penstock bench startup",
	"1 to 10,000 files of one small sample each",
	"penstock bench startup --files 1000,100k --cold --dir /data",
	"up to 100,000, on that disk, past the page cache",
	"penstock bench startup data/",
	"data that are there",
	NULL,
};

const struct command pen__bench_startup = {
	.name = "bench startup",
	.args = "[PATH] [key=value ...] [flags]",
	.summary = "time to the first batch, by files and index",
	.about = "From opening to the first batch: finding the files, making "
		 "an index of them or reading the one that was kept, and "
		 "loading a batch. Files are npy of one sample (8x8 float32, "
		 "or --shape), a thousand a folder.",
	.flags = flags,
	.takes_spec = true,
	.examples = examples,
	.run = run_startup,
};
