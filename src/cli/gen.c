/*
 * gen: makes a data set. Every sample is a function of (seed, its number), so
 * files can be made in any order by any number of threads and come out the
 * same; a file has its final name only when it is complete.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/team.h"
#include "cli/cli.h"
#include "engine/spec.h"
#include "engine/write.h"
#include "format/format.h"
#include "store/store.h"

struct gen {
	/* settings */
	char *format, *dtype, *shape, *prefix, *store;
	uint64_t files, samples, classes, subfolders, seed;
	int64_t threads;
	/* settled */
	char path[3072];
	bool single, force, json;
	const struct pen_format_ops *ops;
	struct pen_format *f;
	struct pen_store *st;
	struct pen_field field[2];
	uint32_t nfields;
	uint64_t file_bytes; /* payload of one, about */
	/* running */
	atomic_uint_fast64_t next, done, bytes;
	atomic_bool failed;
	struct pen_err *errs; /* per thread */
};

#define OFF(x) offsetof(struct gen, x)
static const struct pen_opt opts[] = {
	{ .name = "format",
	  .type = PEN_OPT_STR,
	  .off = OFF(format),
	  .help = "by the suffix of PATH, else npy" },
	{ .name = "files",
	  .type = PEN_OPT_COUNT,
	  .off = OFF(files),
	  .dflt = "1",
	  .min = 1,
	  .max = 4e9,
	  .help = "how many; more than one go into the directory PATH" },
	{ .name = "samples",
	  .type = PEN_OPT_COUNT,
	  .off = OFF(samples),
	  .dflt = "1",
	  .min = 1,
	  .max = 1e15,
	  .help = "in each file" },
	{ .name = "shape",
	  .type = PEN_OPT_STR,
	  .off = OFF(shape),
	  .dflt = "64x64",
	  .help = "of a sample, as 3x224x224; 1 for one "
		  "number" },
	{ .name = "dtype",
	  .type = PEN_OPT_STR,
	  .off = OFF(dtype),
	  .dflt = "float32",
	  .help = "of its elements, as NumPy names them" },
	{ .name = "classes",
	  .type = PEN_OPT_COUNT,
	  .off = OFF(classes),
	  .dflt = "0",
	  .help = "npz: adds a field y with labels below this" },
	{ .name = "subfolders",
	  .type = PEN_OPT_COUNT,
	  .off = OFF(subfolders),
	  .dflt = "0",
	  .help = "spread the files over this many" },
	{ .name = "prefix",
	  .type = PEN_OPT_STR,
	  .off = OFF(prefix),
	  .dflt = "img",
	  .help = "file names begin with it" },
	{ .name = "seed",
	  .type = PEN_OPT_COUNT,
	  .off = OFF(seed),
	  .dflt = "0",
	  .help = "same seed, same bytes" },
	{ .name = "threads",
	  .type = PEN_OPT_INT,
	  .off = OFF(threads),
	  .dflt = "0",
	  .min = 0,
	  .max = 1024,
	  .help = "0 = as many as CPUs" },
	{ .name = "store",
	  .type = PEN_OPT_STR,
	  .off = OFF(store),
	  .dflt = "posix",
	  .help = "what writes; store.fsync=true makes each "
		  "file durable" },
	{ .name = NULL },
};

static const struct flag flags[] = {
	{ "--force", NULL,
	  "write into a directory that is not empty, or over "
	  "a file" },
	{ "--json", NULL, "print the result as JSON" },
	{ NULL, NULL, NULL },
};

/* [0, 1) in the float type asked for, from 32 or 64 random bits each. */
static void make_floats(void *buf, size_t n, enum pen_dtype t)
{
	float *f = buf;
	double *d = buf;

	if (t == PEN_F32 || t == PEN_C64) {
		for (size_t i = 0; i < n / 4; i++) {
			uint32_t u;

			memcpy(&u, &f[i], 4);
			f[i] = (float)(u >> 8) * 0x1p-24f;
		}
	} else {
		for (size_t i = 0; i < n / 8; i++) {
			uint64_t u;

			memcpy(&u, &d[i], 8);
			d[i] = (double)(u >> 11) * 0x1p-53;
		}
	}
}

static void shape_values(void *buf, size_t n, enum pen_dtype t)
{
	uint8_t *b = buf;
	uint16_t *h = buf;

	switch (t) {
	case PEN_BOOL:
		for (size_t i = 0; i < n; i++)
			b[i] &= 1;
		break;
	case PEN_F16: /* 0x3800 | 10 bits: [0.5, 1), exact and never NaN */
		for (size_t i = 0; i < n / 2; i++)
			h[i] = (uint16_t)(0x3800 | (h[i] & 0x3ff));
		break;
	case PEN_F32:
	case PEN_C64:
	case PEN_F64:
	case PEN_C128:
		make_floats(buf, n, t);
		break;
	default:
		break;
	}
}

/* Samples [first, first + n) of the file whose number is in arg. */
static int make_rows(const struct pen_table *t, uint32_t field, uint64_t first,
		     uint64_t n, void *to, struct pen_err *err)
{
	const struct gen *g = *(const struct gen *const *)t->arg;
	uint64_t file = ((const uint64_t *)t->arg)[1], id;
	size_t row;

	(void)err;
	(void)!pen__shape_bytes(t->field[field].shape, t->field[field].ndim,
				t->field[field].dtype, &row);
	for (uint64_t i = 0; i < n; i++) {
		id = (file * g->samples + first + i) * 2 + field;
		if (field == 1) {
			struct pen_rng r = pen__rng(g->seed, id);
			uint64_t y = pen__rng_below(&r, g->classes);

			memcpy((uint8_t *)to + i * row, &y, 8);
			continue;
		}
		pen__rng_fill(g->seed, id, 0, (uint8_t *)to + i * row, row);
		shape_values((uint8_t *)to + i * row, row, t->field[0].dtype);
	}
	return 0;
}

/* Before n bytes are written. */
static int step(void *arg, size_t n, struct pen_err *err)
{
	struct gen *g = arg;

	if (interrupted())
		return pen__fail(err, PEN_ECLOSED, g->path, "interrupted");
	atomic_fetch_add(&g->bytes, n);
	return 0;
}

static void file_name(const struct gen *g, uint64_t i, char *buf, size_t cap)
{
	char sub[32] = "";
	int width = snprintf(NULL, 0, "%llu", (unsigned long long)g->files);

	if (g->single) {
		snprintf(buf, cap, "%s", g->path);
		return;
	}
	if (g->subfolders > 1)
		snprintf(sub, sizeof(sub), "%0*llu/",
			 snprintf(NULL, 0, "%llu",
				  (unsigned long long)g->subfolders),
			 (unsigned long long)(i % g->subfolders));
	snprintf(buf, cap, "%s/%s%s_%0*llu_of_%llu%s", g->path, sub, g->prefix,
		 width, (unsigned long long)i, (unsigned long long)g->files,
		 g->ops->suffixes[0]);
}

static int make_file(struct gen *g, uint64_t i, struct pen_err *err)
{
	struct {
		const struct gen *g;
		uint64_t file;
	} arg = { g, i };
	struct pen_table t = { .nsamples = g->samples,
			       .nfields = g->nfields,
			       .field = g->field,
			       .rows = make_rows,
			       .arg = &arg };
	char path[4096];
	struct pen_write w = {
		.st = g->st, .path = path, .step = step, .arg = g
	};

	file_name(g, i, path, sizeof(path));
	return pen__write_object(&w, g->f, &t, err);
}

static void make_files(void *arg, unsigned t)
{
	struct gen *g = arg;
	uint64_t i;

	while (!atomic_load(&g->failed) && !interrupted() &&
	       (i = atomic_fetch_add(&g->next, 1)) < g->files) {
		if (make_file(g, i, &g->errs[t])) {
			atomic_store(&g->failed, true);
			return;
		}
		atomic_fetch_add(&g->done, 1);
	}
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
		return complain_usage("gen: shape=%s is not a shape; write it "
				      "as 3x224x224",
				      g->shape);
	if (d->ndim == 1 && d->shape[0] == 1)
		d->ndim = 0;
	return -1;
}

static int settle_field(struct gen *g)
{
	struct pen_field *d = &g->field[0];
	const char *names[PEN_NDTYPES + 1];
	size_t row, all;
	int t;

	for (t = 0; t < PEN_NDTYPES; t++)
		names[t] = pen_dtype_name((enum pen_dtype)t);
	names[t] = NULL;
	for (t = 0; t < PEN_NDTYPES; t++)
		if (!strcmp(names[t], g->dtype))
			break;
	if (t == PEN_NDTYPES || t == PEN_F80 || t == PEN_C160) {
		const char *near = pen__nearest(g->dtype, names);

		return complain_usage("gen: dtype=%s cannot be made%s%s",
				      g->dtype, near ? "; did you mean " : "",
				      near ? near : "");
	}
	d->dtype = (enum pen_dtype)t;
	snprintf(d->name, sizeof(d->name), "x");
	t = parse_shape(g);
	if (t >= 0)
		return t;
	if (!pen__shape_bytes(d->shape, d->ndim, d->dtype, &row) ||
	    !pen__mul(row, g->samples, &all))
		return complain_usage("gen: a file would be too large");
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

static int settle_format(struct gen *g, const struct pen_pairs *kv,
			 struct pen_err *err)
{
	const struct pen_format_ops *by_name = pen__format_for(g->path);

	g->ops = g->format ? pen__format_find(g->format)
		 : by_name ? by_name
			   : pen__format_find("npy");
	if (!g->ops || !g->ops->write)
		return pen__fail(err, PEN_EINVAL, g->format,
				 g->ops ? "can only be read"
					: "is not a "
					  "format; see "
					  "`penstock "
					  "formats`");
	g->single = g->files == 1 && pen__format_takes(g->ops, g->path);
	if (g->classes && strcmp(g->ops->name, "npz") != 0)
		return pen__fail(err, PEN_EINVAL, "classes",
				 "needs a format with named fields: "
				 "format=npz");
	return pen__format_open(&g->f, g->ops, kv->kv, kv->n, err);
}

static int check_space(struct gen *g, struct pen_err *err)
{
	struct statvfs v;
	char dir[3072];
	uint64_t need, have;

	snprintf(dir, sizeof(dir), "%s", g->path);
	while (statvfs(dir, &v)) {
		char *slash = strrchr(dir, '/');

		if (slash && slash != dir)
			*slash = '\0';
		else
			snprintf(dir, sizeof(dir), slash ? "/" : ".");
		if (!slash || slash == dir) {
			if (statvfs(dir, &v))
				return 0;
			break;
		}
	}
	if (__builtin_mul_overflow(g->file_bytes, g->files, &need))
		need = UINT64_MAX;
	have = (uint64_t)v.f_bavail * v.f_frsize;
	if (need <= have || strcmp(g->store, "null") == 0)
		return 0;
	return pen__fail(err, PEN_EIO, g->path,
			 "needs %s, but only %s are free there",
			 human_bytes((double)need), human_bytes((double)have));
}

/* Nothing of others is written over or mixed with ours by accident. */
static int check_target(struct gen *g, struct pen_err *err)
{
	struct pen_objects there = { 0 };
	struct stat sb;
	int rc = 0;

	if (g->force || lstat(g->path, &sb))
		return 0;
	if (g->single || !S_ISDIR(sb.st_mode))
		return pen__fail(err, PEN_EINVAL, g->path,
				 "exists already; --force writes over it");
	if (g->st->ops->list)
		rc = g->st->ops->list(g->st, g->path, NULL, NULL, &there, err);
	if (!rc && there.nobj)
		rc = pen__fail(err, PEN_EINVAL, g->path,
			       "is not empty; --force writes into it all the "
			       "same");
	pen__objects_fini(&there);
	return rc;
}

static int make_all(struct gen *g, struct pen_err *err)
{
	unsigned n = g->threads > 0 ? (unsigned)g->threads : pen__cpus();
	uint64_t total = g->file_bytes * g->files;
	struct pen_team *team;
	struct progress p;
	int rc;

	if (n > g->files)
		n = (unsigned)g->files;
	g->errs = pen__calloc(n, sizeof(*g->errs));
	if (!g->errs)
		return pen__fail_nomem(err, "gen", n);
	progress_start(&p, "bytes", total);
	rc = pen__team_start(&team, n, "pen-gen", make_files, g, err);
	if (rc)
		return rc;
	while (p.tty && !atomic_load(&g->failed) && !interrupted() &&
	       atomic_load(&g->done) < g->files) {
		nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
		progress_show(&p, atomic_load(&g->bytes), 0);
	}
	pen__team_join(team);
	progress_end(&p);
	for (unsigned i = 0; i < n; i++)
		if (g->errs[i].code && !rc) {
			*err = g->errs[i];
			rc = err->code;
		}
	return rc;
}

static int generate(struct gen *g, const struct pen_pairs *for_store,
		    const struct pen_pairs *for_format)
{
	struct pen_err err = { 0 };
	uint64_t t0 = pen__now_ns();
	struct pen_text j = { 0 };
	double s;
	int rc;

	rc = pen__store_open(&g->st, g->store, for_store->kv, for_store->n,
			     &err);
	if (!rc && !g->st->ops->sink_open)
		rc = pen__fail(&err, PEN_EINVAL, g->store, "cannot write");
	if (!rc)
		rc = settle_format(g, for_format, &err);
	if (!rc)
		rc = check_target(g, &err);
	if (!rc)
		rc = check_space(g, &err);
	if (!rc)
		rc = make_all(g, &err);
	if (interrupted())
		return 128 + interrupted();
	if (rc)
		return complain(&err);
	s = (double)(pen__now_ns() - t0) / 1e9;
	if (!g->json) {
		printf("%s: %s samples in %s %s %s, %s in %s (%s/s)\n", g->path,
		       grouped(g->samples * g->files), grouped(g->files),
		       g->ops->name, g->files == 1 ? "file" : "files",
		       human_bytes((double)atomic_load(&g->bytes)),
		       human_time(s),
		       human_bytes((double)atomic_load(&g->bytes) / s));
		return EXIT_OK;
	}
	pen__json_open(&j, NULL, '{');
	pen__json_str(&j, "schema", "penstock.gen/1");
	pen__json_str(&j, "path", g->path);
	pen__json_int(&j, "files", g->files);
	pen__json_int(&j, "samples", g->samples * g->files);
	pen__json_int(&j, "bytes", atomic_load(&g->bytes));
	pen__json_num(&j, "seconds", s);
	pen__json_close(&j, '}');
	return text_out(&j, NULL);
}

/* store.X and format.X are kept by a spec; the rest is ours. */
static int take_setting(struct gen *g, struct pen_spec *spec,
			const struct args *a)
{
	struct pen_err err = { 0 };

	if (strchr(a->key, '.'))
		return spec_arg(spec, a, ARG_SETTING);
	if (pen__opt_set(opts, g, a->key, a->value, &err))
		return complain(&err);
	return -1;
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
		else
			g->json = true;
		return -1;
	case ARG_SETTING:
		return take_setting(g, spec, a);
	default:
		if (g->path[0])
			return complain_usage("gen: one PATH, not '%s' as "
					      "well",
					      a->value);
		if (strlen(a->value) >= sizeof(g->path))
			return complain_usage("gen: PATH is too long");
		snprintf(g->path, sizeof(g->path), "%s", a->value);
		return -1;
	}
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
	if (rc < 0 && !g.path[0])
		rc = complain_usage("gen: where to? penstock gen PATH ...");
	if (rc < 0)
		rc = settle_field(&g);
	if (rc < 0)
		rc = generate(&g, &spec->for_store, &spec->for_format);
	pen__format_close(g.f);
	pen__store_close(g.st);
	pen_spec_free(spec);
	pen__opt_fini(opts, &g);
	pen__free(g.errs);
	return rc;
}

static const char *const examples[] = {
	"penstock gen data/ files=1000 shape=64x64 dtype=float32",
	"a thousand npy files of one sample each",
	"penstock gen x.npy samples=1M shape=256",
	"one npy file with a million rows",
	"penstock gen data/ format=npz files=64 shape=1024x1024 classes=10",
	"npz files with an array x and a label y",
	NULL,
};

const struct command pen__cmd_gen = {
	.name = "gen",
	.args = "PATH [key=value ...] [flags]",
	.summary = "make a data set to try things with",
	.about = "Makes random samples, the same ones for the same seed, in "
		 "one file or many. No file has its final name before it is "
		 "complete.",
	.flags = flags,
	.opts = opts,
	.examples = examples,
	.run = run_gen,
};
