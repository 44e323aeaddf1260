/*
 * bench formats: the same samples in every format that can hold them: bytes on
 * disk, time to the first batch, and rate in order and at random. What a loader
 * delivers is held against what was made; pictures that lose something by
 * design are held against themselves.
 */
#include <ftw.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "cli/arms.h"
#include "engine/spec.h"
#include "format/format.h"

enum { ANY, IMAGE, TABLE }; /* what it can hold */

static const struct {
	const char *name, *format, *file;
	struct pen_opts_kv kv[4]; /* for writing; "@" stands for a shape */
	int holds;
	bool typed; /* has to be told dtype and shape */
	bool lossy;
} forms[] = {
	{ "npy", "npy", "x.npy", { { 0 } }, ANY, false, false },
	{ "npz", "npz", "x.npz", { { 0 } }, ANY, false, false },
	{ "npz-deflate",
	  "npz",
	  "d.npz",
	  { { "compress", "true" } },
	  ANY,
	  false,
	  false },
	{ "raw", "raw", "x.raw", { { 0 } }, ANY, true, false },
	{ "hdf5",
	  "hdf5",
	  "x.h5",
	  { { "labels", "false" } },
	  ANY,
	  false,
	  false },
	{ "hdf5-chunked",
	  "hdf5",
	  "c.h5",
	  { { "labels", "false" }, { "chunk", "@" } },
	  ANY,
	  false,
	  false },
	{ "hdf5-gzip",
	  "hdf5",
	  "z.h5",
	  { { "labels", "false" },
	    { "chunk", "@" },
	    { "compression", "gzip" } },
	  ANY,
	  false,
	  false },
	{ "tfrecord", "tfrecord", "x.tfrecord", { { 0 } }, ANY, false, false },
	{ "indexed_binary",
	  "indexed_binary",
	  "x.indexed_binary",
	  { { 0 } },
	  ANY,
	  true,
	  false },
	{ "csv", "csv", "x.csv", { { 0 } }, TABLE, false, false },
	{ "jpeg", "jpeg", "jpeg", { { 0 } }, IMAGE, false, true },
	{ "png", "png", "png", { { 0 } }, IMAGE, false, false },
};
#define NFORMS ((int)(sizeof(forms) / sizeof(forms[0])))

enum { IN_ORDER, AT_RANDOM };
static const char *const orders[] = { "in order", "at random" };

struct formats {
	struct arms a;
	bool chosen[NFORMS], there[NFORMS];
	uint64_t chunk; /* samples a chunk of HDF5 */
	double bytes[NFORMS], write_s[NFORMS];
	int writing;
};

static const struct flag flags[] = {
	{ "--formats", "LIST",
	  "some only, as npy,hdf5-gzip,png (default: all that can hold the "
	  "samples)" },
	{ "--chunk", "N", "samples a chunk of hdf5 (default 16)" },
	ARMS_FLAGS,
	{ NULL, NULL, NULL },
};

/* ---- writing ---- */

static double walked; /* bytes; nftw has no argument */

static int add_size(const char *path, const struct stat *st, int flag,
		    struct FTW *ftw)
{
	(void)path;
	(void)ftw;
	walked += flag == FTW_F ? (double)st->st_size : 0;
	return 0;
}

static void put_shape(const struct pen_fresh *m, const char *before, char *buf,
		      size_t cap)
{
	size_t at = (size_t)snprintf(buf, cap, "%s", before);

	for (uint32_t i = 0; i < m->field.ndim && at < cap; i++)
		at += (size_t)snprintf(buf + at, cap - at, "%s%lld",
				       i || before[0] ? "x" : "",
				       (long long)m->field.shape[i]);
}

static void form_path(const struct formats *g, int i, char *buf, size_t cap)
{
	/* index files lie beside: a folder for each */
	snprintf(buf, cap, "%s/%s/%s", g->a.folder, forms[i].name,
		 forms[i].file);
}

static int write_samples(const struct formats *g, const char *path, int i,
			 struct pen_fresh_file *f, struct pen_err *err)
{
	char one[4400];
	int rc = 0;

	f->path = path;
	f->n = g->a.made.nsamples;
	if (forms[i].holds != IMAGE)
		return pen__fresh_write(&g->a.made, f, err);
	f->path = one;
	f->n = 1;
	for (; !rc && f->first < g->a.made.nsamples; f->first++) {
		snprintf(one, sizeof(one), "%s/%09llu.%s", path,
			 (unsigned long long)f->first, forms[i].format);
		rc = pen__fresh_write(&g->a.made, f, err);
	}
	return rc;
}

static int write_form(struct bench *b, const struct trial *t,
		      struct pen_text *j, struct pen_err *err)
{
	const struct formats *g = t->arg;
	const int i = g->writing;
	struct pen_fresh_file f = { .format = forms[i].format };
	struct pen_opts_kv kv[4];
	char path[4096], shape[256], dir[4096], chunk[32];
	int rc;

	(void)b;
	snprintf(chunk, sizeof(chunk), "%llu", (unsigned long long)g->chunk);
	put_shape(&g->a.made, chunk, shape, sizeof(shape));
	while (f.nkv < 4 && forms[i].kv[f.nkv].key) {
		kv[f.nkv] = forms[i].kv[f.nkv];
		if (!strcmp(kv[f.nkv].value, "@"))
			kv[f.nkv].value = shape;
		f.nkv++;
	}
	f.kv = kv;
	form_path(g, i, path, sizeof(path));
	snprintf(dir, sizeof(dir), "%s/%s%s%s", g->a.folder, forms[i].name,
		 forms[i].holds == IMAGE ? "/" : "",
		 forms[i].holds == IMAGE ? forms[i].file : "");
	rc = pen__make_dirs(dir, 0777, err);
	if (!rc)
		rc = write_samples(g, path, i, &f, err);
	snprintf(dir, sizeof(dir), "%s/%s", g->a.folder, forms[i].name);
	nftw(dir, add_size, 16, FTW_PHYS);
	pen__json_open(j, NULL, '{');
	if (rc == PEN_ENOTSUP)
		pen__json_str(j, "not", err ? err->msg : "");
	pen__json_num(j, "bytes", walked);
	pen__json_close(j, '}');
	return rc == PEN_ENOTSUP ? 0 : rc;
}

static int write_one(struct formats *g, int i)
{
	struct trial t = { .run = write_form, .arg = g };
	struct pen_line row;
	int rc;

	g->writing = i;
	snprintf(t.title, sizeof(t.title), "writing %s", forms[i].name);
	rc = trial_row(&g->a.b, &t, &row);
	if (rc >= 0)
		return rc;
	g->there[i] = !pen__line_text(&row, "not")[0];
	g->bytes[i] = pen__line_number(&row, "bytes");
	if (!g->there[i])
		fprintf(stderr, "penstock: %s left out: %s\n", forms[i].name,
			shown(pen__line_text(&row, "not")));
	pen__line_fini(&row);
	return -1;
}

/* ---- one arm ---- */

static int set_up(const struct formats *g, int i, struct pen_spec *s,
		  struct pen_err *err)
{
	const char *dtype = pen_dtype_name(g->a.made.field.dtype);
	char path[4096], shape[256];
	int rc;

	form_path(g, i, path, sizeof(path));
	put_shape(&g->a.made, "", shape, sizeof(shape));
	rc = arms_path(s, path, err);
	if (!rc)
		rc = pen_spec_set(s, "format", forms[i].format, err);
	if (!rc && (forms[i].typed || forms[i].holds == TABLE))
		rc = pen_spec_set(s, "format.dtype", dtype, err);
	if (!rc && forms[i].typed)
		rc = pen_spec_set(s, "format.shape", shape, err);
	return rc;
}

static int run_arm(struct bench *b, const struct trial *t, struct pen_text *j,
		   struct pen_err *err)
{
	const struct arm *m = t->arg;
	const struct formats *g = (const struct formats *)(const void *)m->of;
	const int i = (int)m->value;
	const struct setting set[] = {
		{ "sampler", m->kind == IN_ORDER ? "sequential" : "shuffle" },
		{ "index_cache", "off" },
	};
	struct pen_pass pass = { .max_batches = b->batches };
	struct pen_spec *s;
	int rc = arms_spec(b, set, 2, &s, err);

	if (rc)
		return rc;
	rc = set_up(g, i, s, err);
	pass.spec = s;
	pen__json_num(j, "disk_bytes", g->bytes[i]);
	pen__json_num(j, "made_bytes",
		      (double)g->a.made.nsamples * (double)g->a.made.row);
	if (!rc)
		rc = arms_pass(b, t, &pass, j, err);
	if (!rc)
		pen__json_num(j, "startup_s", pass.open_s + pass.first_s);
	pen__pass_fini(&pass);
	pen_spec_free(s);
	return rc;
}

/* ---- all of them ---- */

/* Complex and 16-bit numbers have no place in a table of text. */
static bool can_hold(const struct formats *g, int i)
{
	const enum pen_dtype d = g->a.made.field.dtype;

	if (forms[i].holds == IMAGE)
		return pen__fresh_is_image(&g->a.made);
	if (forms[i].holds == TABLE)
		return d == PEN_F32 || d == PEN_F64 ||
		       (d >= PEN_I8 && d <= PEN_U64);
	return true;
}

static int add_arms(struct formats *g, int order)
{
	for (int i = 0; i < NFORMS; i++) {
		struct arm *m;

		if (!g->there[i])
			continue;
		m = arms_add(&g->a, forms[i].name, orders[order], (uint64_t)i);
		if (!m)
			return EXIT_FAILED;
		m->kind = order;
		m->lossy = forms[i].lossy;
		snprintf(m->check, sizeof(m->check), "%s%s",
			 g->a.b.batches ? orders[order] : "all",
			 m->lossy ? forms[i].name : "");
	}
	return -1;
}

static int prepare(struct arms *a)
{
	struct formats *g = (struct formats *)(void *)a;
	bool any = false;
	int rc = arms_open(a);

	for (int i = 0; i < NFORMS; i++)
		any = any || g->chosen[i];
	for (int i = 0; rc < 0 && i < NFORMS; i++)
		if ((!any || g->chosen[i]) && can_hold(g, i))
			rc = write_one(g, i);
		else if (g->chosen[i])
			rc = complain_usage("bench formats: %s cannot hold %s "
					    "%s",
					    forms[i].name, g->a.shape,
					    g->a.dtype);
	if (rc < 0)
		rc = add_arms(g, IN_ORDER);
	if (rc < 0)
		rc = add_arms(g, AT_RANDOM);
	return rc;
}

static int take_formats(struct formats *g, const char *list)
{
	while (*list) {
		const size_t n = strcspn(list, ",");
		int i = 0;

		while (i < NFORMS && (strlen(forms[i].name) != n ||
				      strncmp(forms[i].name, list, n) != 0))
			i++;
		if (i == NFORMS)
			return complain_usage("bench formats: --formats: there "
					      "is no '%.*s'",
					      (int)n, list);
		g->chosen[i] = true;
		list += n + (list[n] == ',');
	}
	return -1;
}

static int take_arg(struct arms *a, struct args *arg, int kind)
{
	struct formats *g = (struct formats *)(void *)a;

	if (kind == ARG_FLAG && !strcmp(arg->key, "--formats"))
		return take_formats(g, arg->value);
	if (kind == ARG_FLAG && !strcmp(arg->key, "--chunk"))
		return pen__parse_count(arg->value, &g->chunk) || !g->chunk
			       ? complain_usage("bench formats: --chunk: '%s' "
						"does not do",
						arg->value)
			       : -1;
	if (kind == ARG_PATH)
		return complain_usage("bench formats: makes its data itself; "
				      "'%s' has no place (see --samples, "
				      "--shape)",
				      arg->value);
	if (kind == ARG_SETTING &&
	    (!strncmp(arg->key, "sampler", 7) ||
	     !strncmp(arg->key, "format", 6) || !strcmp(arg->key, "shuffle")))
		return complain_usage("bench formats: %s= is what the "
				      "experiment sets",
				      arg->key);
	return arms_arg(a, arg, kind);
}

static int run_formats(int argc, char **argv)
{
	struct formats g = { .a = { .cmd = &pen__bench_formats,
				    .kind = &pen__kind_formats,
				    .any_order = true,
				    .take = take_arg,
				    .prepare = prepare,
				    .run = run_arm },
			     .chunk = 16 };

	return arms_main(&g.a, argc, argv);
}

static const char *const examples[] = {
	"penstock bench formats --samples 20k --shape 64x64",
	"numbers: npy, npz, raw, hdf5, tfrecord, indexed_binary, csv",
	"penstock bench formats --shape 224x224x3 --dtype uint8 --samples 1000",
	"pictures: jpeg and png, too",
	"penstock bench formats --formats npy,hdf5-gzip --chunk 64 --cold "
	"--warm --dir /data",
	"two of them, from that disk and from memory",
	NULL,
};

const struct command pen__bench_formats = {
	.name = "bench formats",
	.args = "[key=value ...] [flags]",
	.summary = "the same samples in every format: size, start-up, rate",
	.about = "Makes samples from seed=, writes them in every format that "
		 "can hold them, and loads them in order and at random. "
		 "Start-up is opening without a cached index plus the first "
		 "batch. Floats are even between 0 and 1 and bytes make smooth "
		 "pictures: other data compress otherwise. An arm that "
		 "delivers other samples than were made has no rate.",
	.flags = flags,
	.takes_spec = true,
	.examples = examples,
	.run = run_formats,
};
