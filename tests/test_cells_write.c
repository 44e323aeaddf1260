/*
 * Writers of single cells: files that anndata, h5py, zarr 2, a reader made from
 * version 3's specification and our own find to hold what was asked, value by
 * value;
 * the same bytes whatever the threads; and nothing under the final name, nor
 * beside it, when anything went wrong.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "codec/pack.h"
#include "format/cells_write.h"
#include "formats.h"

#define NVAR 2
#define NOBS 7
#define MANY 300

/* What check_cells.py knows, too. */
struct cells {
	struct pen_cells_spec spec;
	struct pen_cells_column_spec obs[NOBS], var[NVAR];
	struct pen_cells_dense_spec dense[2];
	const void *var_values[NVAR];
	char (*text)[24];
	const char **gene;
	int32_t *place;
	double *mean;
};

static const char *const types[] = { "B cell", "T cell",
				     "Zelle \xc3\xa4\xc3\xb6",
				     "naive, \"mixed\"", "" };

static const char *many[MANY]; /* too many for int8 */
static char many_text[MANY][16];

static uint64_t in_row(const struct cells *c, uint64_t i)
{
	uint64_t n = 0;

	while (n < i * 7 % 40 && i % 20 + n * 7 < c->spec.ncols)
		n++;
	return n;
}

static void cells_columns(struct cells *c)
{
	static const struct pen_cells_column_spec obs[NOBS] = {
		{ .name = "barcode", .coded = true, .index = true },
		{ .name = "cell_type",
		  .coded = true,
		  .ordered = true,
		  .nnames = 5,
		  .names = types },
		{ .name = "n_counts", .dtype = PEN_I64 },
		{ .name = "frac", .dtype = PEN_F32 },
		{ .name = "is_primary", .dtype = PEN_BOOL },
		{ .name = "kl\xc3\xa4in \"\xf0\x9f\xa7\xac\"",
		  .dtype = PEN_U8 },
		{ .name = "many",
		  .coded = true,
		  .nnames = MANY,
		  .names = many },
	};

	for (int i = 0; i < MANY; i++) {
		snprintf(many_text[i], sizeof(many_text[i]), "n%03d", i % 1000);
		many[i] = many_text[i];
	}
	memcpy(c->obs, obs, sizeof(obs));
	c->var[0] =
		(struct pen_cells_column_spec){ .name = "gene",
						.coded = true,
						.index = true,
						.nnames =
							(uint32_t)c->spec.ncols,
						.names = c->gene };
	c->var[1] = (struct pen_cells_column_spec){ .name = "mean",
						    .dtype = PEN_F64 };
	c->dense[0] = (struct pen_cells_dense_spec){ "obsm/X_pca", PEN_F32, 7 };
	c->dense[1] = (struct pen_cells_dense_spec){ "layers/scaled", PEN_F64,
						     c->spec.ncols };
	c->var_values[0] = c->place;
	c->var_values[1] = c->mean;
	c->spec.obs = c->obs;
	c->spec.var = c->var;
	c->spec.dense = c->dense;
	c->spec.var_values = c->var_values;
	c->spec.nobs = NOBS;
	c->spec.nvar = NVAR;
	c->spec.ndense = 2;
}

static void cells_init(struct cells *c, uint64_t n, uint64_t m, bool full)
{
	*c = (struct cells){ .spec = { .nrows = n, .ncols = m } };
	c->spec.sparse = true;
	c->spec.dtype = PEN_F32;
	c->spec.indices = PEN_I32;
	for (uint64_t i = 0; i < n; i++)
		c->spec.nnz += in_row(c, i);
	c->text = calloc(m + 1, sizeof(*c->text));
	c->gene = calloc(m + 1, sizeof(*c->gene));
	c->place = calloc(m + 1, sizeof(*c->place));
	c->mean = calloc(m + 1, sizeof(*c->mean));
	for (uint64_t j = 0; j < m; j++) {
		snprintf(c->text[j], sizeof(c->text[j]), "G%d", (int)j);
		c->gene[j] = c->text[j];
		c->place[j] = (int32_t)(m - 1 - j);
		c->mean[j] = (double)j / 8;
	}
	if (full)
		cells_columns(c);
}

static void cells_fini(struct cells *c)
{
	free(c->text);
	free(c->gene);
	free(c->place);
	free(c->mean);
}

static void put_number(void *to, uint64_t i, enum pen_dtype t, unsigned v)
{
	switch (t) {
	case PEN_F32:
		((float *)to)[i] = (float)v;
		break;
	case PEN_F64:
		((double *)to)[i] = v;
		break;
	case PEN_U16:
		((uint16_t *)to)[i] = (uint16_t)v;
		break;
	default:
		((int64_t *)to)[i] = v;
	}
}

/* Rows [first, first + n), in memory of their own. */
struct some {
	uint64_t start[65];
	uint32_t index[64 * 40];
	int64_t values[64 * 512]; /* the widest */
	char text[64][24];
	const char *name[64];
	int32_t type[64], many[64];
	int64_t counts[64];
	float frac[64], pca[64 * 7];
	bool primary[64];
	uint8_t small[64];
	double scaled[64 * 512];
	const void *obs[NOBS], *dense[2];
	struct pen_cells_rows r;
};

static void some_obs(const struct cells *c, struct some *s, uint64_t k,
		     uint64_t i)
{
	snprintf(s->text[k], sizeof(s->text[k]), "cell-%d", (int)i);
	s->name[k] = s->text[k];
	s->type[k] = i % 11 ? (int32_t)(i % 5) : -1;
	s->counts[k] = (int64_t)i * 1000003 - 5;
	s->frac[k] = (float)(i % 64) / 64;
	s->primary[k] = i % 3 == 0;
	s->small[k] = (uint8_t)(i % 100);
	s->many[k] = (int32_t)(i * 13 % MANY);
	for (uint64_t j = 0; j < 7; j++)
		s->pca[k * 7 + j] = (float)((i * 7 + j) % 1009);
	for (uint64_t j = 0; j < c->spec.ncols; j++)
		s->scaled[k * c->spec.ncols + j] =
			(double)((i * c->spec.ncols + j) % 251);
}

static void some_fill(const struct cells *c, struct some *s, uint64_t first,
		      uint64_t n)
{
	const uint64_t m = c->spec.ncols;

	memset(s->values, 0, sizeof(s->values));
	s->start[0] = 0;
	for (uint64_t k = 0; k < n; k++) {
		const uint64_t i = first + k, has = in_row(c, i);

		for (uint64_t j = 0; j < has; j++) {
			const uint64_t at = s->start[k] + j;
			const uint32_t gene = (uint32_t)(i % 20 + j * 7);

			s->index[at] = gene;
			put_number(s->values,
				   c->spec.sparse ? at : k * m + gene,
				   c->spec.dtype,
				   (unsigned)((i * 31 + j * 17) % 97 + 1));
		}
		s->start[k + 1] = s->start[k] + has;
		some_obs(c, s, k, i);
	}
	s->obs[0] = s->name;
	s->obs[1] = s->type;
	s->obs[2] = s->counts;
	s->obs[3] = s->frac;
	s->obs[4] = s->primary;
	s->obs[5] = s->small;
	s->obs[6] = s->many;
	s->dense[0] = s->pca;
	s->dense[1] = s->scaled;
	s->r = (struct pen_cells_rows){ n,	s->start, s->index, s->values,
					s->obs, s->dense, NULL };
}

/* "a=b,c=d" */
static size_t split(char *text, struct pen_opts_kv *kv, size_t cap)
{
	size_t n = 0;
	char *p;

	while ((p = strsep(&text, ",")) && n < cap) {
		char *eq = strchr(p, '=');

		if (!eq)
			continue;
		*eq = '\0';
		kv[n++] = (struct pen_opts_kv){ p, eq + 1 };
	}
	return n;
}

/* A full disk, as far as a process can make one: files may not grow. */
static void limit_files(bool on)
{
	static struct rlimit had;
	struct rlimit small;

	if (!had.rlim_max) {
		getrlimit(RLIMIT_FSIZE, &had);
		signal(SIGXFSZ, SIG_IGN);
	}
	small = had;
	small.rlim_cur = 20000;
	setrlimit(RLIMIT_FSIZE, on ? &small : &had);
}

static int write_cells(const struct cells *c, const char *path,
		       const char *settings, uint64_t step, struct pen_err *err)
{
	struct pen_cells_writer *w;
	struct some *s = calloc(1, sizeof(*s));
	struct pen_opts_kv kv[8];
	char text[256];
	size_t n;
	int rc;

	snprintf(text, sizeof(text), "%s", settings);
	n = split(text, kv, 8);
	rc = pen__cells_writer_open(&w, pen__cells_writer_for(path), path,
				    &c->spec, kv, n, err);
	for (uint64_t i = 0; !rc && i < c->spec.nrows; i += step) {
		some_fill(c, s, i,
			  i + step < c->spec.nrows ? step : c->spec.nrows - i);
		rc = pen__cells_writer_rows(w, &s->r, err);
	}
	if (!rc)
		rc = pen__cells_writer_finish(w, err);
	limit_files(false);
	pen__cells_writer_close(w);
	free(s);
	return rc;
}

/* ---- what others read ---- */

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

/* Does this build have what that needs? */
static bool can(const char *name, const char *settings)
{
	const char *by = strstr(settings, "compression=");

	if (!pen__cells_writer_for(name))
		return false;
	return !by || ((strncmp(by + 12, "zstd", 4) != 0 ||
			pen__packer_find("zstd")) &&
		       (strncmp(by + 12, "blosc", 5) != 0 ||
			pen__packer_find("blosc")));
}

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
	write_case(&c, name, settings); /* no numbers at all */
	cells_fini(&c);
}

/* ---- what our own loader reads ---- */

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
	/* in any order: a sum of hashes */
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

/* ---- what goes wrong ---- */

static unsigned entries(const char *dir)
{
	DIR *d = opendir(dir);
	const struct dirent *e;
	unsigned n = 0;

	while (d && (e = readdir(d)))
		n += e->d_name[0] != '.';
	if (d)
		closedir(d);
	return n;
}

static void test_nomem(const char *name, const char *settings)
{
	char dir[96], path[160];
	struct pen_err err;
	struct cells c;
	int rc = PEN_ENOMEM;

	if (!can(name, settings))
		return;
	snprintf(dir, sizeof(dir), "%s/nomem", golden_dir);
	mkdir(dir, 0777);
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	cells_init(&c, 40, 30, true);
	for (uint64_t n = 1; rc && n < 3000; n += 1 + n / 48) {
		err = (struct pen_err){ 0 };
		pen__mem_fail_nth(n, false);
		rc = write_cells(&c, path, settings, 17, &err);
		pen__mem_fail_nth(0, false);
		/* an attribute's list of names is reported as libhdf5's */
		CHECK(!rc || rc == PEN_ENOMEM || rc == PEN_EIO);
		CHECK_EQ(entries(dir), rc ? 0 : 1);
	}
	CHECK_EQ(rc, 0);
	cells_fini(&c);
	nftw(dir, golden_unlink, 16, FTW_DEPTH | FTW_PHYS);
}

static void test_full(const char *name, const char *settings)
{
	char dir[96], path[160];
	struct pen_err err = { 0 };
	struct cells c;

	if (!can(name, settings))
		return;
	snprintf(dir, sizeof(dir), "%s/full", golden_dir);
	mkdir(dir, 0777);
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	cells_init(&c, 700, 300, true);
	limit_files(true);
	CHECK(write_cells(&c, path, settings, 64, &err) < 0);
	CHECK_STR(err.where, path);
	CHECK(strstr(err.msg, "File too large") != NULL);
	CHECK_EQ(entries(dir), 0);
	/* and libhdf5 is not the worse for it */
	CHECK_EQ(write_cells(&c, path, settings, 64, &err), 0);
	cells_fini(&c);
	nftw(dir, golden_unlink, 16, FTW_DEPTH | FTW_PHYS);
}

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
	refused(&c, path, "", "no zarr store");
	CHECK_EQ(rmdir(path), 0);
	/* a store is replaced whole, a file by a store, and back */
	CHECK_EQ(write_cells(&c, path, "", 64, &err), 0);
	snprintf(inner, sizeof(inner), "%s/X/in.pen", path);
	refused(&c, inner, "", "inside of a zarr store");
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
	refused(&c, path, "", "cannot be written");
	if (can("x.h5ad", "")) {
		snprintf(path, sizeof(path), "%s/there.h5ad", golden_dir);
		fclose(fopen(path, "w"));
		CHECK_EQ(write_cells(&c, path, "", 64, &err), 0);
		unlink(path);
		snprintf(path, sizeof(path), "%s/no/where.h5ad", golden_dir);
		refused(&c, path, "", "cannot be written");
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
	refused(&c, path, "", "name of a column");
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
		CHECK_EQ(pen__cells_writer_open(&w, pen__cells_writer_for(path),
						path, &c.spec, NULL, 0, &err),
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
	test_full("f.h5ad", "");
	test_full("f.h5ad", "compression=gzip,level=1,threads=2");
	test_full("f.zarr", "compression=none,chunk=8000");
	test_full("f.zarr", "version=3,shard=1000,compression=none");
	test_nomem("n.h5ad", "threads=1");
	test_nomem("n.h5ad", "compression=gzip,shuffle=true,threads=1");
	test_nomem("n.zarr", "threads=1");
	test_nomem("n.zarr", "version=3,shard=10,compression=zstd,threads=1");
	test_same(".h5ad", "compression=none");
	test_same(".h5ad", "compression=gzip,chunk=300");
	test_same(".zarr", "chunk=300");
	test_same(".zarr", "version=3,chunk=300,shard=50,compression=zstd");
	test_zstd();
	test_others_read();
	return test_end();
}
