/*
 * The same samples in every format that supports them: bytes on disk, time to
 * the first batch, and rate in order and in random order. The output is
 * compared with the generated samples; lossy images are compared with one
 * another.
 */
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "experiment/harness.h"

enum { ANY, IMAGE, TABLE, TYPED }; /* content; TYPED: needs dtype and shape */

#define NFORMS 12
static const struct {
	const char *format, *file;
	struct pen_opts_kv kv[4]; /* for writing; "@": the chunk shape */
	int holds;
	bool lossy;
} forms[NFORMS] = {
	{ .format = "npy", .file = "x.npy" },
	{ .format = "npz", .file = "x.npz" },
	{ .format = "npz", .file = "d.npz", .kv = { { "compress", "true" } } },
	{ .format = "raw", .file = "x.raw", .holds = TYPED },
	{ .format = "hdf5", .file = "x.h5", .kv = { { "labels", "false" } } },
	{ .format = "hdf5",
	  .file = "c.h5",
	  .kv = { { "labels", "false" }, { "chunk", "@" } } },
	{ .format = "hdf5",
	  .file = "z.h5",
	  .kv = { { "labels", "false" },
		  { "chunk", "@" },
		  { "compression", "gzip" } } },
	{ .format = "tfrecord", .file = "x.tfrecord" },
	{ .format = "indexed_binary",
	  .file = "x.indexed_binary",
	  .holds = TYPED },
	{ .format = "csv", .file = "x.csv", .holds = TABLE },
	{ .format = "jpeg", .file = "jpeg", .holds = IMAGE, .lossy = true },
	{ .format = "png", .file = "png", .holds = IMAGE },
};
static const char *const orders[] = { "in order", "at random" };

/* The names of --formats have the same order. */
static const char *name_of(const struct pen_session *r, size_t i)
{
	return pen__name(r, "--formats", i);
}

struct formats {
	bool written[NFORMS];
	double bytes[NFORMS];
	char why[256]; /* not written */
};

/* ---- writing ---- */

static double walked; /* bytes; nftw() passes no argument */

static int add_size(const char *path, const struct stat *st, int flag,
		    struct FTW *ftw)
{
	(void)path;
	(void)ftw;
	walked += flag == FTW_F ? (double)st->st_size : 0;
	return 0;
}

/* Each format has a directory, because index files are stored next to it. */
static void form_path(const struct pen_session *r, size_t i, char *buf,
		      size_t cap)
{
	snprintf(buf, cap, "%s/%s/%s", r->folder, name_of(r, i), forms[i].file);
}

static int write_samples(const struct pen_session *r, const char *path,
			 size_t i, struct pen_fresh_file *f,
			 struct pen_err *err)
{
	char one[4400];
	int rc = 0;

	f->path = path;
	f->n = r->made.nsamples;
	if (forms[i].holds != IMAGE)
		return pen__fresh_write(&r->made, f, err);
	f->path = one;
	f->n = 1;
	for (; !rc && f->first < r->made.nsamples; f->first++) {
		snprintf(one, sizeof(one), "%s/%09llu.%s", path,
			 (unsigned long long)f->first, forms[i].format);
		rc = pen__fresh_write(&r->made, f, err);
	}
	f->path = path;
	return rc;
}

static int write_form(struct pen_session *r, const void *arg,
		      struct pen_err *err)
{
	const size_t i = *(const size_t *)arg;
	struct pen_fresh_file f = { .format = forms[i].format };
	struct formats *g = r->own;
	struct pen_opts_kv kv[4];
	char path[4096], shape[256], dir[4096], chunk[320];
	int rc;

	pen__put_shape(&r->made.field, shape, sizeof(shape));
	snprintf(chunk, sizeof(chunk), "%.0fx%s", pen__number(r, "--chunk"),
		 shape);
	while (f.nkv < 4 && forms[i].kv[f.nkv].key) {
		kv[f.nkv] = forms[i].kv[f.nkv];
		if (!strcmp(kv[f.nkv].value, "@"))
			kv[f.nkv].value = chunk;
		f.nkv++;
	}
	f.kv = kv;
	form_path(r, i, path, sizeof(path));
	snprintf(dir, sizeof(dir), "%s/%s", r->folder, name_of(r, i));
	rc = pen__make_dirs(forms[i].holds == IMAGE ? path : dir, 0777, false,
			    err);
	if (!rc)
		rc = write_samples(r, path, i, &f, err);
	nftw(dir, add_size, 16, FTW_PHYS);
	g->bytes[i] = walked;
	g->written[i] = !rc;
	snprintf(g->why, sizeof(g->why), "%s", rc ? err->msg : "");
	return rc == PEN_ENOTSUP ? 0 : rc;
}

static int write_one(struct pen_session *r, size_t i, struct pen_err *err)
{
	const struct formats *g = r->own;
	char title[64];
	int rc;

	snprintf(title, sizeof(title), "writing %s", name_of(r, i));
	rc = pen__run_child(r, title, write_form, &i, err);
	if (!rc && !g->written[i])
		pen__text_add(&r->warnings, "penstock: %s: skipped: %s\n",
			      name_of(r, i), g->why);
	return rc;
}

/* ---- one variant ---- */

static int run(struct pen_session *r, const struct pen_trial *t,
	       struct pen_text *j, struct pen_err *err)
{
	const size_t i = (size_t)t->of->value;
	const bool typed = forms[i].holds == TYPED;
	const bool table = forms[i].holds == TABLE;
	const char *dtype = pen_dtype_name(r->made.field.dtype);
	char path[4096], shape[256];
	const struct pen_spec_change set[] = {
		{ "path", path, 0 },
		{ "sampler", t->of->kind ? "shuffle" : "sequential", 0 },
		{ "index_cache", "off", 0 },
		{ "format", forms[i].format, 0 },
		{ "format.dtype", typed || table ? dtype : NULL, 0 },
		{ "format.shape", typed ? shape : NULL, 0 },
		{ .key = NULL },
	};
	struct pen_pass pass = { .content = true };
	int rc;

	form_path(r, i, path, sizeof(path));
	pen__put_shape(&r->made.field, shape, sizeof(shape));
	pen__json_num(j, "disk_bytes", ((struct formats *)r->own)->bytes[i]);
	pen__json_num(j, "made_bytes",
		      (double)r->made.nsamples * (double)r->made.row);
	rc = pen__run_pass_with(r, t, &pass, set, j, err);
	pen__json_num(j, "startup_s", pass.open_s + pass.first_s);
	return rc;
}

/* ---- all variants ---- */

/* A text table cannot store complex and 16-bit floating-point numbers. */
static bool can_hold(const struct pen_session *r, size_t i)
{
	const enum pen_dtype d = r->made.field.dtype;

	if (forms[i].holds == IMAGE)
		return pen__fresh_is_image(&r->made);
	if (forms[i].holds == TABLE)
		return d == PEN_F32 || d == PEN_F64 ||
		       (d >= PEN_I8 && d <= PEN_U64);
	return true;
}

static void add(struct pen_session *r, int order)
{
	const struct formats *g = r->own;

	for (size_t i = 0; i < NFORMS; i++) {
		struct pen_setup *s;

		if (!g->written[i])
			continue;
		s = pen__setup_add(r, name_of(r, i), orders[order], i);
		s->kind = order;
		s->lossy = forms[i].lossy;
		snprintf(s->check, sizeof(s->check), "%s%s",
			 r->batches ? orders[order] : "all",
			 s->lossy ? s->name : "");
	}
}

static int prepare(struct pen_session *r, struct pen_err *err)
{
	int rc = pen__run_data(r, err);

	for (size_t i = 0; !rc && i < NFORMS; i++)
		if (!pen__chosen(r, "--formats", i))
			continue;
		else if (can_hold(r, i))
			rc = write_one(r, i, err);
		else if (pen__given(r, "--formats"))
			rc = pen__fail(
				err, P_CANNOT_WRITE_THIS, r->name,
				"the format '%s' cannot store samples of %s %s",
				name_of(r, i), r->shape, r->dtype);
	add(r, 0);
	add(r, 1);
	return rc;
}

struct pen_experiment pen__exp_formats = {
	.kind = { .experiment = "formats" },
	.own = sizeof(struct formats),
	.prepare = prepare,
	.run = run,
};
