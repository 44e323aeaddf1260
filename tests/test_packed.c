/*
 * The packed layout: the same cells written as h5ad and packed load the same
 * with all options, in any order and with any number of threads; the output of
 * inspect; files damaged at every position.
 */
#include <math.h>
#include <sys/stat.h>

#include "base/rng.h"
#include "codec/crc32c.h"
#include "format/cells/cells_write.h"
#include "format/cells/packed.h"
#include "formats.h"

#define GENES 500u
#define NOBS 6u

/* ---- cells ---- */

struct kind {
	const char *name;
	uint64_t nrows;
	enum pen_dtype dtype;
	bool sparse, sorted, counts;
	const char *rows; /* per chunk */
};

static const struct kind kinds[] = {
	{ "counts", 700, PEN_F32, true, true, true, "0" },
	{ "ints", 333, PEN_I32, true, true, true, "7" },
	{ "wide", 200, PEN_F64, true, true, false, "64" },
	{ "unsorted", 200, PEN_F32, true, false, true, "1" },
	{ "floats", 300, PEN_F32, true, true, false, "16" },
	{ "bytes", 130, PEN_U8, true, true, true, "32" },
	{ "halves", 130, PEN_F16, true, true, true, "128" },
	{ "dense", 150, PEN_F32, false, true, true, "16" },
	{ "densef", 90, PEN_F64, false, true, false, "0" },
	{ "tiny", 6, PEN_F32, true, true, true, "2" },
	{ "tinyf", 5, PEN_F32, true, true, false, "2" },
};

struct cells {
	const struct kind *k;
	struct pen_cells_spec spec;
	struct pen_cells_column_spec obs[NOBS], var[2];
	struct pen_cells_dense_spec dense[1];
	struct pen_cells_csr_spec csr[1]; /* the same as X, if that is sparse */
	const void *var_values[2];
	char (*gene)[16];
	const char **genes;
	int32_t *place;
	bool *chosen;
	/* all rows */
	uint64_t *start;
	uint32_t *indices;
	uint8_t *values;
	char (*cell)[16];
	const char **names;
	int32_t *type;
	int64_t *count;
	double *score;
	bool *flag;
	bool *missing; /* of column count */
	float *pca;
};

static const char *const types[] = { "B", "T", "unknown \xc3\xa4", "" };

static void put_number(const struct kind *k, uint8_t *p, double v)
{
	const int64_t whole = (int64_t)v;
	const float f = (float)v;
	const uint16_t h = (uint16_t)(0x3c00 + ((unsigned)v & 7) * 0x400);

	if (k->dtype == PEN_F32)
		memcpy(p, &f, 4);
	else if (k->dtype == PEN_F64)
		memcpy(p, &v, 8);
	else if (k->dtype == PEN_F16)
		memcpy(p, &h, 2);
	else
		memcpy(p, &whole, pen_dtype_size(k->dtype));
}

static void make_rows(struct cells *c, struct pen_rng *r)
{
	const size_t item = pen_dtype_size(c->k->dtype);
	const uint64_t n = c->k->nrows, genes = c->spec.ncols;
	uint64_t nnz = 0;

	for (uint64_t i = 0; i < n; i++) {
		uint32_t gene = (uint32_t)pen__rng_below(r, 20);

		/* some cells are empty */
		for (; i % 13 != 4 && gene < genes; nnz++) {
			double v = (double)pen__rng_below(
				r, pen__rng_below(r, 9) ? 3 : 90);

			v = c->k->counts ? v + 1 : log1p(v) * 1.3;
			c->indices[nnz] = gene;
			put_number(c->k,
				   c->values +
					   item * (c->k->sparse
							   ? nnz
							   : i * genes + gene),
				   v);
			gene += 1 + (uint32_t)pen__rng_below(r, 30);
		}
		c->start[i + 1] = nnz;
		for (uint64_t j = c->start[i]; !c->k->sorted && j < nnz; j += 2)
			c->indices[j] = c->indices[nnz - 1 - (j - c->start[i])];
	}
	c->spec.nnz = c->csr[0].nnz = c->k->sparse ? nnz : 0;
}

static void make_columns(struct cells *c, struct pen_rng *r)
{
	for (uint64_t i = 0; i < c->k->nrows; i++) {
		snprintf(c->cell[i], sizeof(c->cell[i]), "cell%d",
			 (int)(i * 7919 % 10007));
		c->names[i] = c->cell[i];
		c->type[i] = (int32_t)pen__rng_below(r, 5) - 1;
		c->count[i] = (int64_t)pen__rng_below(r, 1000) - 10;
		c->score[i] = pen__rng_double(r);
		c->flag[i] = pen__rng_below(r, 2);
		c->missing[i] = i % 4 == 1;
		for (int j = 0; j < 3; j++)
			c->pca[i * 3 + j] = (float)pen__rng_double(r);
	}
	for (uint32_t i = 0; i < c->spec.ncols; i++) {
		snprintf(c->gene[i], sizeof(c->gene[i]), "gene%u", i);
		c->genes[i] = c->gene[i];
		c->place[i] = (int32_t)i;
		c->chosen[i] = i % 3 == 1;
	}
}

static void make_spec(struct cells *c)
{
	const struct pen_cells_column_spec obs[NOBS] = {
		{ .name = "barcode", .coded = true, .index = true },
		{ .name = "type", .coded = true, .nnames = 4, .names = types },
		{ .name = "count", .dtype = PEN_I64 },
		{ .name = "count", .dtype = PEN_BOOL, .mask = true },
		{ .name = "score", .dtype = PEN_F64 },
		{ .name = "flag", .dtype = PEN_BOOL },
	};

	memcpy(c->obs, obs, sizeof(obs));
	c->var[0] =
		(struct pen_cells_column_spec){ .name = "symbol",
						.coded = true,
						.index = true,
						.nnames =
							(uint32_t)c->spec.ncols,
						.names = c->genes };
	c->var[1] = (struct pen_cells_column_spec){ .name = "chosen",
						    .dtype = PEN_BOOL };
	c->dense[0] = (struct pen_cells_dense_spec){ "obsm/X_pca", PEN_F32, 3 };
	c->var_values[0] = c->place;
	c->var_values[1] = c->chosen;
	c->spec.obs = c->obs;
	c->spec.var = c->var;
	c->spec.var_values = c->var_values;
	c->spec.dense = c->dense;
	c->spec.nobs = NOBS;
	c->spec.nvar = 2;
	c->spec.ndense = 1;
	c->csr[0] = (struct pen_cells_csr_spec){ "layers/again", c->k->dtype,
						 PEN_I64, c->spec.ncols, 0 };
	c->spec.csr = c->csr;
	c->spec.ncsr = c->k->sparse;
	c->spec.sparse = c->k->sparse;
	c->spec.dtype = c->k->dtype;
	c->spec.indices = PEN_I32;
	c->spec.nrows = c->k->nrows;
}

static void cells_init(struct cells *c, const struct kind *k)
{
	const uint64_t n = k->nrows, genes = n < 10 ? 20 : GENES;
	struct pen_rng r = pen__rng(77, n);

	*c = (struct cells){ .k = k, .spec = { .ncols = genes } };
	c->start = calloc(n + 1, 8);
	c->indices = calloc(n * genes, 4);
	c->values = calloc(n * genes, 8);
	c->cell = calloc(n, sizeof(*c->cell));
	c->names = calloc(n, sizeof(*c->names));
	c->type = calloc(n, 4);
	c->count = calloc(n, 8);
	c->score = calloc(n, 8);
	c->flag = calloc(n, 1);
	c->missing = calloc(n, 1);
	c->pca = calloc(n * 3, 4);
	c->gene = calloc(genes, sizeof(*c->gene));
	c->genes = calloc(genes, sizeof(*c->genes));
	c->place = calloc(genes, 4);
	c->chosen = calloc(genes, 1);
	make_columns(c, &r);
	make_spec(c);
	make_rows(c, &r);
}

static void cells_fini(struct cells *c)
{
	void *const all[] = { c->start, c->indices, c->values, c->cell,
			      c->names, c->type,    c->count,  c->score,
			      c->flag,	c->pca,	    c->gene,   c->genes,
			      c->place, c->chosen,  c->missing };

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		free(all[i]);
}

/* Writes rows [i, i + n); starts are relative to the first of them. */
static int put_rows(const struct cells *c, struct pen_cells_writer *w,
		    uint64_t i, uint64_t n, struct pen_err *err)
{
	const uint64_t at = c->k->sparse ? c->start[i] : i * c->spec.ncols;
	const void *const obs[NOBS] = { c->names + i, c->type + i,
					c->count + i, c->missing + i,
					c->score + i, c->flag + i };
	const void *const dense[] = { c->pca + i * 3 };
	uint64_t start[1001];
	const struct pen_cells_lists csr = {
		start, c->indices + at,
		c->values + at * pen_dtype_size(c->k->dtype)
	};
	const struct pen_cells_rows r = { n,
					  start,
					  c->indices + at,
					  c->values + at * pen_dtype_size(
								   c->k->dtype),
					  obs,
					  dense,
					  &csr };

	for (uint64_t k = 0; k <= n; k++)
		start[k] = c->start[i + k] - c->start[i];
	return pen__cells_writer_rows(w, &r, err);
}

static int write_cells(const struct cells *c, const char *path, uint64_t step,
		       struct pen_err *err)
{
	const struct pen_opts_kv kv[] = { { "rows", c->k->rows },
					  { "source", "a test" } };
	const struct pen_cells_writer_ops *ops = pen__cells_writer_for(path);
	const bool packed = strcmp(ops->name, "packed") == 0;
	struct pen_cells_writer *w;
	int rc = pen__cells_writer_open(&w, ops, path, &c->spec,
					(struct pen_opts){ kv, packed ? 2 : 0 },
					err);

	for (uint64_t i = 0; rc >= 0 && i < c->k->nrows; i += step)
		rc = put_rows(c, w, i,
			      c->k->nrows - i < step ? c->k->nrows - i : step,
			      err);
	if (rc >= 0)
		rc = pen__cells_writer_finish(w, err);
	pen__cells_writer_close(w);
	return rc;
}

/* ---- the same as h5ad ---- */

static void load(const char *path, const char *settings, struct pen_buf *log)
{
	struct pen_err err;
	struct pen_loader *l =
		eng_open(&err, "%s batch_size=50 epochs=1 %s", path, settings);

	if (!CHECK(l != NULL) || !CHECK_EQ(eng_run(l, 1, log, &err), PEN_END))
		fprintf(stderr, "  %s %s: %s: %s\n", path, settings, err.where,
			err.msg);
	pen_loader_close(l);
}

static void compare(const struct kind *k, const char *settings)
{
	struct pen_buf a = { 0 }, b = { 0 };
	char path[160];

	snprintf(path, sizeof(path), "%s/%s.h5ad", golden_dir, k->name);
	load(path, settings, &a);
	snprintf(path, sizeof(path), "%s/%s.pen", golden_dir, k->name);
	load(path, settings, &b);
	if (!CHECK(a.n > 0 && eng_same(&a, &b)))
		fprintf(stderr, "  %s %s\n", k->name, settings);
	pen__buf_fini(&a);
	pen__buf_fini(&b);
}

static void compare_all(const struct kind *k)
{
	static const char *const any[] = {
		"format.obs=type,count,score,flag,barcode",
		"format.filter=type:B|T format.obs=score threads=4",
		"format.matrix=X,obsm/X_pca store=mmap",
		"format.genes=first:7 sampler=shuffle",
		"format.genes=var:chosen format.normalize=100 "
		"format.log1p=true",
		"sampler=block sampler.chunk=16 sampler.chunks=4 threads=8",
		"sampler=block sampler.chunk=5 format.obs=type store=posix",
	};
	static const char *const lists[] = {
		"format.output=csr format.obs=type",
		"format.output=csr sampler=shuffle threads=8",
		"format.matrix=X,layers/again format.output=csr "
		"format.obs=count sampler=block",
		"format.matrix=layers/again,obsm/X_pca format.obs=count",
		"format.copy=true format.matrix=X,layers/again,obsm/X_pca",
		"format.output=csr sampler=block sampler.chunk=8 store=mmap",
	};
	const char *dtype = k->counts ? "" : "format.dtype=float64";
	char how[256];

	for (size_t i = 0; i < sizeof(any) / sizeof(*any); i++) {
		snprintf(how, sizeof(how), "%s %s", any[i], dtype);
		compare(k, how);
	}
	for (size_t i = 0; k->sparse && i < sizeof(lists) / sizeof(*lists);
	     i++) {
		snprintf(how, sizeof(how), "%s %s", lists[i], dtype);
		compare(k, how);
	}
}

static void test_same(void)
{
	static const char *const suffixes[] = { "h5ad", "pen" };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		struct pen_err err = { 0 };
		struct cells c;
		char path[160];

		cells_init(&c, &kinds[i]);
		for (int s = 0; s < 2; s++) {
			snprintf(path, sizeof(path), "%s/%s.%s", golden_dir,
				 kinds[i].name, suffixes[s]);
			if (!CHECK_EQ(write_cells(&c, path, i % 2 ? 33 : 1000,
						  &err),
				      0))
				fprintf(stderr, "  %s: %s: %s\n", path,
					err.where, err.msg);
		}
		compare_all(&kinds[i]);
		cells_fini(&c);
	}
}

/* ---- the file ---- */

struct memory {
	struct pen_peek pk;
	const uint8_t *p;
};

static int read_memory(struct pen_peek *pk, uint64_t off, void *buf, size_t len,
		       struct pen_err *err)
{
	struct memory *m = (struct memory *)pk;

	if (off > pk->size || len > pk->size - off)
		return pen__fail(err, P_IO, pk->name, "is too short");
	memcpy(buf, m->p + off, len);
	return 0;
}

static void test_meta(void)
{
	size_t n;
	uint8_t *p = golden_read("counts.pen", &n);
	struct memory m = {
		.pk = { .name = "counts", .size = n, .read = read_memory },
		.p = p
	};
	struct pen_err err = { 0 };
	struct pen_packed f;
	struct pen_bytes b;
	bool there = false;

	CHECK_EQ(pen__packed_open(&f, &m.pk, &err), 0);
	CHECK_EQ(f.x.group, 1024);
	CHECK_EQ(f.x.indices, PEN_I32);
	CHECK_EQ(f.nobs, NOBS);
	CHECK(f.column[0].flags == (PEN_PACKED_TEXT | PEN_PACKED_INDEX));
	b = pen__bytes(f.meta.p, f.meta.n);
	for (uint32_t i = 0; i < f.nmeta; i++) {
		const struct pen_span key = pen__packed_str(&b);
		const struct pen_span value = pen__packed_str(&b);

		there |= key.n == 6 && memcmp(key.p, "source", 6) == 0 &&
			 value.n == 6 && memcmp(value.p, "a test", 6) == 0;
	}
	CHECK(there);
	pen__packed_close(&f);
	free(p);
}

/* Packed files are smaller than gzip can make them. */
static void test_size(void)
{
	size_t n;
	uint8_t *p = golden_read("counts.pen", &n);
	struct cells c;

	cells_init(&c, &kinds[0]);
	CHECK(n < c.spec.nnz * 3 / 2 + 60000);
	free(p);
	cells_fini(&c);
}

struct facts {
	char text[4096];
};

static void add_fact(void *arg, const char *name, const char *value)
{
	struct facts *f = arg;
	const size_t n = strlen(f->text);

	snprintf(f->text + n, sizeof(f->text) - n, "%s: %s\n", name, value);
}

static void add_advice(void *arg, const char *text)
{
	(void)arg;
	(void)text;
}

static void test_describe(void)
{
	static const char *const says[] = {
		"chunks of 1024 rows, packed",	 "obs type: 4 categories\n",
		"obs barcode: strings\n",	 "obs score: float64\n",
		"obs count: nullable-integer\n", "source: a test\n",
		"order: as in the source\n",	 "chunk: 1024 cells\n"
	};
	struct facts facts = { "" };
	struct pen_describe d = { &facts, add_fact, add_advice };
	struct pen_err err;
	struct drv v;
	size_t n;
	uint8_t *p = golden_read("counts.pen", &n);

	if (CHECK_EQ(drv_open_one(&v, "packed", NULL, 0, 1,
				  (struct pen_span){ p, n }, &err),
		     0))
		v.f->ops->describe(v.f, &d);
	for (size_t i = 0; i < sizeof(says) / sizeof(*says); i++)
		if (!CHECK(strstr(facts.text, says[i]) != NULL))
			fprintf(stderr, "  no \"%s\" in:\n%s", says[i],
				facts.text);
	drv_close(&v);
	free(p);
}

/* ---- damage ---- */

static void test_damage(void)
{
	static const struct pen_opts_kv kv[][2] = {
		{ { "obs", "type,barcode" }, { "output", "csr" } },
		{ { "obs", "type" }, { "filter", "type:B|T" } },
		{ { "genes", "var:chosen" }, { "matrix", "X,obsm/X_pca" } },
		{ { "obs", "count" }, { "matrix", "layers/again,obsm/X_pca" } },
		{ { "obs", "*" }, { "copy", "true" } },
	};
	static const char *const files[] = { "tiny.pen", "tinyf.pen",
					     "tiny.pen", "tiny.pen",
					     "tinyf.pen" };
	uint8_t *p;
	size_t n;

	for (int i = 0; i < 5; i++) {
		formats_damage(files[i], "packed", kv[i], 2, i < 2, 100);
		p = golden_read(files[i], &n);
		for (int k = 0; k < 2; k++)
			golden_check_nomem("packed", kv[i][k],
					   (struct pen_span){ p, n });
		free(p);
	}
}

/* Pieces that repeat the same bytes: more than the file has. */
static void test_overlap(void)
{
	size_t n;
	uint8_t *p = golden_read("ints.pen", &n);
	struct memory m = {
		.pk = { .name = "ints", .size = n, .read = read_memory }, .p = p
	};
	struct pen_bytes foot = pen__bytes(p + n - 32, 32);
	const uint64_t at = pen__take_u64(&foot), len = pen__take_u64(&foot);
	/* after sizes, kinds and rows per chunk */
	uint8_t *chunk = p + at + 24 + 4 + 4 + 8;
	const uint32_t most = (uint32_t)(at - 64);
	struct pen_err err = { 0 };
	struct pen_packed f;
	uint32_t crc;

	CHECK(at + len + 32 == n && pen__packed_open(&f, &m.pk, &err) == 0);
	CHECK(f.version == 2 && f.ncsr == 1 && f.x.chunks.n > 2);
	pen__packed_close(&f);
	for (int i = 0; i < 2; i++, chunk += 16) {
		memset(chunk, 0, 16);
		chunk[0] = 64;
		memcpy(chunk + 12, &most, 4);
	}
	crc = pen__crc32c(0, p + at, len);
	memcpy(p + n - 16, &crc, 4);
	CHECK_EQ(pen__packed_open(&f, &m.pk, &err), PEN_EDATA);
	CHECK(strstr(err.msg, "more values than it contains") != NULL);
	pen__packed_close(&f);
	free(p);
}

/* No file remains when a writer runs out of memory. */
static void test_nomem(void)
{
	struct cells c;
	char path[160];
	uint64_t i;

	cells_init(&c, &kinds[10]);
	snprintf(path, sizeof(path), "%s/nomem.pen", golden_dir);
	for (i = 1; i < 2000; i++) {
		struct pen_err err = { 0 };
		uint64_t n;
		int rc;

		pen__mem_fail_nth(i, false);
		rc = write_cells(&c, path, 2, &err);
		n = pen__mem_count();
		pen__mem_fail_nth(0, false);
		if (n < i)
			break;
		/* incompressible data is stored as it is */
		CHECK(rc == PEN_ENOMEM || rc == 0);
		CHECK((rc == 0) == (access(path, F_OK) == 0));
		unlink(path);
	}
	CHECK(i < 2000);
	cells_fini(&c);
}

int main(void)
{
	snprintf(golden_dir, sizeof(golden_dir), "packed-%d", (int)getpid());
	if (!pen__cells_writer_find("h5ad"))
		TEST_SKIP("libhdf5 is not there");
	CHECK_EQ(mkdir(golden_dir, 0777), 0);
	atexit(golden_remove);
	test_same();
	test_meta();
	test_overlap();
	test_size();
	test_describe();
	test_damage();
	test_nomem();
	return test_end();
}
