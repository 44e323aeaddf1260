/*
 * Writers of single cells: anndata, h5py, zarr 2, a reader made from the
 * specification of version 3, and our own loader read the written values back;
 * the bytes do not depend on the threads; and what is refused.
 * test_cells_fail.c tests failures.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "cells_made.h"

/* ---- other readers ---- */

static FILE *manifest;

static void write_case(struct cells *c, const char *name, const char *settings)
{
	struct pen_err err = { 0 };
	char path[256];
	int rc;

	snprintf(path, sizeof(path), "%s/%s", golden_dir, name);
	rc = write_cells(c, path, settings, 64, &err);
	if (!CHECK_EQ(rc, 0))
		fprintf(stderr, "  %s: %s: %s\n", name, err.where, err.msg);
	fprintf(manifest, "%s %d %d %s %s %s %s\n", name, (int)c->spec.nrows,
		(int)c->spec.ncols, c->spec.sparse ? "sparse" : "dense",
		pen_dtype_name(c->spec.dtype), pen_dtype_name(c->spec.indices),
		c->spec.nobs ? "full" : "bare");
}

static const struct {
	const char *name, *settings;
} kinds[] = {
	{ "none.h5ad", "" },
	{ "gzip.h5ad", "compression=gzip,chunk=1000" },
	{ "gzip9.h5ad", "compression=gzip,level=9,shuffle=true,threads=3" },
	{ "lzf.h5ad", "compression=lzf" },
	{ "lzfs.h5ad", "compression=lzf,shuffle=yes,chunk=5000" },
	{ "small.h5ad", "chunk=7" },
	{ "usual.zarr", "" },
	{ "blosc.zarr", "compression=blosc,level=9,chunk=1000" },
	{ "zstd.zarr", "compression=zstd,level=7,threads=3" },
	{ "gzip.zarr", "compression=gzip,chunk=999" },
	{ "none.zarr", "compression=none,chunk=1000" },
	{ "v3.zarr", "version=3" },
	{ "v3zstd.zarr", "version=3,compression=zstd,chunk=1000" },
	{ "v3gzip.zarr", "version=3,compression=gzip,chunk=1000" },
	{ "v3none.zarr", "version=3,compression=none,chunk=1000" },
	{ "v3shard.zarr", "version=3,chunk=500,shard=100" },
	{ "v3shardz.zarr",
	  "version=3,chunk=500,shard=1M,compression=zstd,threads=1" },
	{ "v3shardn.zarr", "version=3,chunk=777,shard=1,compression=none" },
};

static void write_kind(size_t k)
{
	char name[64];
	struct cells c;

	cells_init(&c, 700, 300, true);
	write_case(&c, kinds[k].name, kinds[k].settings);
	c.spec.sparse = false;
	c.spec.dtype = PEN_F64;
	snprintf(name, sizeof(name), "dense-%s", kinds[k].name);
	write_case(&c, name, kinds[k].settings);
	cells_fini(&c);
}

static void write_others(const char *suffix, const char *settings)
{
	static const enum pen_dtype wide[] = { PEN_U16, PEN_I64, PEN_U32 };
	char name[64];
	struct cells c;

	cells_init(&c, 50, 100, false);
	for (int i = 0; i < 3; i++) {
		c.spec.indices = wide[i];
		c.spec.dtype = i ? PEN_I64 : PEN_U16;
		snprintf(name, sizeof(name), "bare-%s%s",
			 pen_dtype_name(wide[i]), suffix);
		write_case(&c, name, settings);
	}
	cells_fini(&c);
	cells_init(&c, 1, 3, true);
	snprintf(name, sizeof(name), "one%s", suffix);
	write_case(&c, name, settings); /* no values at all */
	cells_fini(&c);
}

/* ---- our own loader ---- */

static bool row_right(const struct cells *c, const struct pen_batch *b,
		      uint32_t k, const struct some *s)
{
	const struct pen_tensor *x = formats_tensor(b, "X");
	const struct pen_tensor *n = formats_tensor(b, "n_counts");
	const struct pen_tensor *t = formats_tensor(b, "cell_type");
	const uint64_t m = c->spec.ncols;
	const float *row = (const float *)x->data + k * m;
	uint64_t has = 0;

	for (uint64_t j = 0; j < m; j++)
		has += row[j] != 0;
	for (uint64_t i = s->start[k]; i < s->start[k + 1]; i++)
		if (row[s->index[i]] != ((const float *)s->values)[i])
			return false;
	return has == s->start[k + 1] - s->start[k] &&
	       ((const int64_t *)n->data)[k] == s->counts[k] &&
	       ((const int32_t *)t->data)[k] == s->type[k];
}

static void test_own_reads(const char *name)
{
	struct some *s = calloc(1, sizeof(*s));
	struct pen_err err = { 0 };
	struct pen_loader *l;
	struct pen_batch *b;
	struct cells c;
	uint64_t seen = 0;
	int rc = 0;

	cells_init(&c, 700, 300, true);
	l = eng_open(&err,
		     "%s/%s format=%s batch_size=64 epochs=1 "
		     "sampler=sequential format.obs=n_counts,cell_type",
		     golden_dir, name, strrchr(name, '.') + 1);
	while (l && (rc = pen_loader_next(l, &b, &err)) == 0) {
		some_fill(&c, s, seen, b->nsamples);
		for (uint32_t k = 0; k < b->nsamples; k++)
			CHECK(row_right(&c, b, k, s));
		seen += b->nsamples;
		pen_batch_unref(b);
	}
	CHECK_EQ(rc, PEN_END);
	if (!CHECK_EQ(seen, 700))
		fprintf(stderr, "  %s: %s: %s\n", name, err.where, err.msg);
	pen_loader_close(l);
	cells_fini(&c);
	free(s);
}

/* h5py lacks the filter. */
static void test_zstd(void)
{
	struct pen_err err = { 0 };
	char path[128];
	struct cells c;

	if (!can("x.h5ad", "compression=zstd"))
		return;
	snprintf(path, sizeof(path), "%s/zstd.h5ad", golden_dir);
	cells_init(&c, 700, 300, true);
	CHECK_EQ(write_cells(&c, path,
			     "compression=zstd,shuffle=true,chunk=999", 64,
			     &err),
		 0);
	test_own_reads("zstd.h5ad");
	cells_fini(&c);
}

static void test_others_read(void)
{
	char path[PATH_MAX] = __FILE__, cmd[PATH_MAX + 256];
	const char *source = getenv("SOURCE");

	snprintf(path, sizeof(path), "%s/manifest", golden_dir);
	manifest = fopen(path, "w");
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (!can(kinds[i].name, kinds[i].settings))
			continue;
		write_kind(i);
		test_own_reads(kinds[i].name);
	}
	if (can("x.h5ad", "")) {
		write_others("-a.h5ad", "");
		write_others("-b.h5ad", "compression=gzip");
	}
	write_others("-c.zarr", "");
	write_others("-d.zarr", "version=3,shard=10");
	fclose(manifest);
	if (!test_python_has("anndata, h5py, scipy, zarr"))
		TEST_SKIP("Python modules are not installed");
	snprintf(path, sizeof(path), "%s", __FILE__);
	*strrchr(path, '/') = '\0';
	snprintf(cmd, sizeof(cmd), PYTHON " '%s%s/data/check_cells.py' %s",
		 source ? source : path, source ? "/tests" : "", golden_dir);
	CHECK_EQ(system(cmd), 0);
}

/* ---- the same bytes ---- */

static struct pen_buf sum;

static int add_file(const char *path, const struct stat *st, int kind,
		    struct FTW *at)
{
	char name[64];
	size_t n = 0;
	uint8_t *p;

	(void)at;
	if (kind != FTW_F)
		return 0;
	snprintf(name, sizeof(name), "%s", strrchr(path, '/') + 1);
	p = malloc((size_t)st->st_size + 1);
	FILE *f = fopen(path, "rb");

	n = fread(p, 1, (size_t)st->st_size, f);
	fclose(f);
	/* order-independent: a sum of hashes */
	uint64_t h = 14695981039346656037u;
	for (size_t i = 0; i < n; i++)
		h = (h ^ p[i]) * 1099511628211u;
	for (const char *q = path + strlen(golden_dir) + 2; *q; q++)
		h = (h ^ (uint8_t)*q) * 1099511628211u;
	free(p);
	uint64_t old;
	memcpy(&old, sum.p, 8);
	old += h;
	memcpy(sum.p, &old, 8);
	return 0;
}

static uint64_t sum_of(const char *path)
{
	uint64_t v = 0;

	sum.n = 0;
	pen__buf_le(&sum, 0, 8);
	nftw(path, add_file, 16, FTW_PHYS);
	memcpy(&v, sum.p, 8);
	pen__buf_fini(&sum);
	sum = (struct pen_buf){ 0 };
	return v;
}

static void test_same(const char *suffix, const char *settings)
{
	static const char *const threads[] = { "1", "8", "3" };
	struct pen_err err = { 0 };
	char path[128], all[256];
	uint64_t first = 0, v;
	struct cells c;

	snprintf(path, sizeof(path), "%s/same%s", golden_dir, suffix);
	if (!can(path, settings))
		return;
	cells_init(&c, 700, 300, true);
	for (int i = 0; i < 3; i++) {
		snprintf(all, sizeof(all), "%s,threads=%s", settings,
			 threads[i]);
		CHECK_EQ(write_cells(&c, path, all, 64, &err), 0);
		v = sum_of(path);
		first = i ? first : v;
		CHECK(v == first);
	}
	cells_fini(&c);
}

/* ---- errors ---- */

static void refused(const struct cells *c, const char *path,
		    const char *settings, const char *says)
{
	struct pen_err err = { 0 };

	CHECK(write_cells(c, path, settings, 64, &err) < 0);
	if (!CHECK(strstr(err.msg, says) != NULL))
		fprintf(stderr, "  %s: %s\n", err.where, err.msg);
}

static void test_targets(void)
{
	struct pen_err err = { 0 };
	char path[160], inner[200];
	struct cells c;

	cells_init(&c, 40, 30, true);
	snprintf(path, sizeof(path), "%s/there.zarr", golden_dir);
	mkdir(path, 0777);
	refused(&c, path, "", "not a zarr store");
	CHECK_EQ(rmdir(path), 0);
	/* a store is replaced completely, a file by a store, and back */
	CHECK_EQ(write_cells(&c, path, "", 64, &err), 0);
	snprintf(inner, sizeof(inner), "%s/X/in.pen", path);
	refused(&c, inner, "", "inside a zarr store");
	snprintf(inner, sizeof(inner), "%s/old", path);
	fclose(fopen(inner, "w"));
	CHECK_EQ(write_cells(&c, path, "version=3", 64, &err), 0);
	CHECK(access(inner, F_OK) != 0);
	snprintf(inner, sizeof(inner), "%s/.zgroup", path);
	CHECK(access(inner, F_OK) != 0);
	nftw(path, golden_unlink, 16, FTW_DEPTH | FTW_PHYS);
	fclose(fopen(path, "w"));
	CHECK_EQ(write_cells(&c, path, "", 64, &err), 0);
	nftw(path, golden_unlink, 16, FTW_DEPTH | FTW_PHYS);
	snprintf(path, sizeof(path), "%s/no/where.zarr", golden_dir);
	refused(&c, path, "", "cannot write");
	if (can("x.h5ad", "")) {
		snprintf(path, sizeof(path), "%s/there.h5ad", golden_dir);
		fclose(fopen(path, "w"));
		CHECK_EQ(write_cells(&c, path, "", 64, &err), 0);
		unlink(path);
		snprintf(path, sizeof(path), "%s/no/where.h5ad", golden_dir);
		refused(&c, path, "", "cannot write");
	}
	cells_fini(&c);
}

static void test_settings(void)
{
	struct cells c;
	char path[160];

	cells_init(&c, 40, 30, true);
	snprintf(path, sizeof(path), "%s/s.h5ad", golden_dir);
	if (can(path, "")) {
		refused(&c, path, "compression=blosc", "lzf");
		refused(&c, path, "compression=gzip,level=13", "from 1 to 12");
	}
	snprintf(path, sizeof(path), "%s/s.zarr", golden_dir);
	refused(&c, path, "shard=10", "version=3");
	refused(&c, path, "compression=zstd,level=99", "out of range");
	c.var[1].name = "a\\b";
	refused(&c, path, "", "backslash");
	c.var[1].name = "a/b";
	refused(&c, path, "", "not a valid column name");
	c.var[1].name = "gene";
	refused(&c, path, "", "two columns");
	c.var[1].name = "mean";
	c.var[1].dtype = PEN_C64;
	refused(&c, path, "", "complex64");
	c.var[1].dtype = PEN_F64;
	c.dense[0].path = "varm/x";
	refused(&c, path, "", "obsm/NAME");
	c.dense[0].path = "obsm/x";
	c.spec.dtype = PEN_C64;
	refused(&c, path, "", "complex64");
	c.spec.dtype = PEN_F32;
	c.spec.indices = PEN_I8;
	refused(&c, path, "", "int8");
	c.spec.indices = PEN_U16;
	c.spec.ncols = 70000;
	refused(&c, path, "", "too narrow");
	c.spec.ncols = 30;
	c.place[3] = 30;
	refused(&c, path, "", "beyond its names");
	cells_fini(&c);
	CHECK(!pen__cells_writer_for("x.npy") &&
	      !pen__cells_writer_for(".h5ad") &&
	      !pen__cells_writer_find("npy"));
	CHECK(pen__cells_writer_for("a/x.zarr//") ==
	      pen__cells_writer_find("zarr"));
}

static void test_rows(const char *name)
{
	struct pen_err err = { 0 };
	struct pen_cells_writer *w;
	struct some *s = calloc(1, sizeof(*s));
	char path[160];
	struct cells c;

	if (!can(name, "")) {
		free(s);
		return;
	}
	cells_init(&c, 40, 30, true);
	snprintf(path, sizeof(path), "%s/%s", golden_dir, name);
	for (int wrong = 0; wrong < 6; wrong++) {
		CHECK_EQ(pen__cells_writer_open(
				 &w, pen__cells_writer_for(path), path, &c.spec,
				 (struct pen_opts){ NULL, 0 }, &err),
			 0);
		some_fill(&c, s, 0, wrong == 0 ? 41 : wrong == 1 ? 39 : 40);
		if (wrong == 2)
			s->index[5] = 30;
		if (wrong == 3)
			s->type[5] = 5;
		if (wrong == 4)
			s->start[40]++;
		if (wrong == 5)
			s->start[3] = s->start[4] + 1;
		if (pen__cells_writer_rows(w, &s->r, &err) == 0)
			CHECK_EQ(wrong, 1);
		CHECK(pen__cells_writer_finish(w, &err) < 0);
		pen__cells_writer_close(w);
		CHECK(access(path, F_OK) != 0);
	}
	pen__cells_writer_close(NULL);
	free(s);
	cells_fini(&c);
}

int main(void)
{
	snprintf(golden_dir, sizeof(golden_dir), "cells-write-%d",
		 (int)getpid());
	if (mkdir(golden_dir, 0777))
		return 1;
	atexit(golden_remove);
	test_targets();
	test_settings();
	test_rows("r.h5ad");
	test_rows("r.zarr");
	test_same(".h5ad", "compression=none");
	test_same(".h5ad", "compression=gzip,chunk=300");
	test_same(".zarr", "chunk=300");
	test_same(".zarr", "version=3,chunk=300,shard=50,compression=zstd");
	test_zstd();
	test_others_read();
	return test_end();
}
