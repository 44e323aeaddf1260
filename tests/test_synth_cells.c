/*
 * Generated single cells: rows depend on their number only, statistics resemble
 * measured cells, files share genes, and files do not depend on the number of
 * threads.
 */
#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "format/cells/cells_write.h"
#include "make/synth_cells.h"
#include "golden.h"

static const struct pen_synth_cells_setup usual = {
	.seed = 7,
	.ncells = 1000,
	.ngenes = 20000,
	.density = 0.062,
	.overlap = 1,
	.dtype = PEN_F32,
};

static const struct pen_cells_rows *make(const struct pen_synth_cells_setup *s,
					 struct pen_synth_cells **c,
					 struct pen_synth_rows **b)
{
	struct pen_err err = { 0 };
	const struct pen_cells_rows *r = NULL;

	CHECK_EQ(pen__synth_cells_new(c, s, &err), 0);
	CHECK_EQ(pen__synth_rows_new(b, *c, (uint32_t)s->ncells, &err), 0);
	r = pen__synth_rows_make(*b, 0, (uint32_t)s->ncells);
	CHECK(r != NULL);
	return r;
}

static void unmake(struct pen_synth_cells *c, struct pen_synth_rows *b)
{
	pen__synth_rows_free(b);
	pen__synth_cells_free(c);
}

static bool near(double v, double lo, double hi)
{
	if (v < lo || v > hi)
		fprintf(stderr, "  %g is not in [%g, %g]\n", v, lo, hi);
	return v >= lo && v <= hi;
}

static void test_counts(void)
{
	struct pen_synth_cells *c;
	struct pen_synth_rows *b;
	const struct pen_cells_rows *r = make(&usual, &c, &b);
	const uint64_t n = r->start[r->n];
	const float *v = r->values;
	double one = 0, small = 0, sum = 0;

	CHECK_EQ(n, pen__synth_cells_spec(c)->nnz);
	CHECK(near((double)n / 1000 / 20000, 0.060, 0.064));
	for (uint64_t i = 0; i < n; i++) {
		CHECK(v[i] >= 1 && v[i] == floorf(v[i]));
		one += v[i] == 1;
		small += v[i] < 16;
		sum += v[i];
	}
	CHECK(near(one / (double)n, 0.73, 0.79));
	CHECK(near(small / (double)n, 0.995, 0.999));
	CHECK(near(sum / (double)n, 1.4, 1.8));
	for (uint64_t k = 0; k < r->n; k++) {
		double all = 0;

		for (uint64_t i = r->start[k]; i < r->start[k + 1]; i++) {
			CHECK(i == r->start[k] ||
			      r->indices[i - 1] < r->indices[i]);
			all += v[i];
		}
		CHECK_EQ(((const int32_t *)r->obs[4])[k],
			 r->start[k + 1] - r->start[k]);
		CHECK(((const float *)r->obs[5])[k] == (float)all);
		CHECK(near(((const float *)r->obs[6])[k], 0, 20));
	}
	unmake(c, b);
}

/* Gene means are skewed, and cell types have different markers. */
static void test_genes(void)
{
	static uint32_t met[20000], of_type[2][20000];
	struct pen_synth_cells *c;
	struct pen_synth_rows *b;
	const struct pen_cells_rows *r = make(&usual, &c, &b);
	const int32_t *type = r->obs[1];
	unsigned often = 0, never = 0, marked = 0;
	double ntype[2] = { 0 };

	for (uint64_t k = 0; k < r->n; k++) {
		for (uint64_t i = r->start[k]; i < r->start[k + 1]; i++) {
			met[r->indices[i]]++;
			if (type[k] < 2)
				of_type[type[k]][r->indices[i]]++;
		}
		if (type[k] < 2)
			ntype[type[k]]++;
	}
	for (unsigned g = 0; g < 20000; g++) {
		often += met[g] > 500;
		never += met[g] < 20;
		marked += of_type[0][g] / ntype[0] >
			  0.4 + of_type[1][g] / ntype[1];
	}
	CHECK(near(often, 100, 2000));
	CHECK(near(never, 5000, 16000));
	CHECK(near(marked, 30, 128));
	CHECK(ntype[0] > 200 && ntype[0] > ntype[1]);
	unmake(c, b);
}

static void test_obs(void)
{
	struct pen_synth_cells *c;
	struct pen_synth_rows *b;
	const struct pen_cells_rows *r = make(&usual, &c, &b);
	const int32_t *plate = r->obs[2];
	const char *const *name = r->obs[0];
	unsigned primary = 0, changes = 0;

	for (uint64_t k = 0; k < r->n; k++) {
		primary += ((const bool *)r->obs[7])[k];
		changes += k && plate[k] != plate[k - 1];
		CHECK(!k || plate[k] >= plate[k - 1]);
		CHECK(strlen(name[k]) == 18 && !strcmp(name[k] + 16, "-1"));
	}
	CHECK_EQ(changes, 13);
	CHECK(near(primary, 900, 980));
	unmake(c, b);
}

/* A row made alone equals the row made among others. */
static void test_alone(void)
{
	struct pen_synth_cells_setup s = usual;
	struct pen_synth_cells *c;
	struct pen_synth_rows *b, *one;
	struct pen_err err;
	const struct pen_cells_rows *r, *q;

	s.npca = 5;
	r = make(&s, &c, &b);
	CHECK_EQ(pen__synth_rows_new(&one, c, 3, &err), 0);
	for (uint64_t k = 999; k < 1000; k -= 37) {
		const uint64_t n = r->start[k + 1] - r->start[k];

		q = pen__synth_rows_make(one, k, 1);
		CHECK(q && q->start[1] == n);
		CHECK(!memcmp(q->indices, r->indices + r->start[k], n * 4));
		CHECK(!memcmp(q->values, (const float *)r->values + r->start[k],
			      n * 4));
		CHECK_STR(((const char *const *)q->obs[0])[0],
			  ((const char *const *)r->obs[0])[k]);
		CHECK(!memcmp(q->dense[0], (const float *)r->dense[0] + k * 5,
			      20));
	}
	pen__synth_rows_free(one);
	unmake(c, b);
}

/* The same counts in every dtype, within its range, and dense. */
static void test_types(void)
{
	static const enum pen_dtype types[] = { PEN_I8,	 PEN_U8,  PEN_I16,
						PEN_U16, PEN_I32, PEN_U32,
						PEN_I64, PEN_U64, PEN_F16,
						PEN_F64 };
	struct pen_synth_cells_setup s = usual;
	struct pen_synth_cells *c, *d;
	struct pen_synth_rows *b, *e;
	const struct pen_cells_rows *r, *q;

	s.ncells = 50;
	s.ngenes = 300;
	r = make(&s, &c, &b);
	for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
		const size_t item = pen_dtype_size(types[t]);

		s.dtype = types[t];
		q = make(&s, &d, &e);
		CHECK_EQ(q->start[50], r->start[50]);
		for (uint64_t i = 0; i < r->start[50] && item <= 8; i++) {
			const uint8_t *p = q->values;
			uint64_t v = 0;

			memcpy(&v, p + i * item, item);
			if (types[t] < PEN_F16 &&
			    ((const float *)r->values)[i] < 128)
				CHECK_EQ(v, ((const float *)r->values)[i]);
		}
		unmake(d, e);
	}
	s.dtype = PEN_F32;
	s.dense = true;
	q = make(&s, &d, &e);
	for (uint64_t k = 0; k < 50; k++) {
		double sum = 0;

		for (uint64_t i = r->start[k]; i < r->start[k + 1]; i++)
			CHECK(((const float *)
				       q->values)[k * 300 + r->indices[i]] ==
			      ((const float *)r->values)[i]);
		for (uint64_t g = 0; g < 300; g++)
			sum += ((const float *)q->values)[k * 300 + g];
		CHECK(sum == ((const float *)r->obs[5])[k]);
	}
	unmake(d, e);
	unmake(c, b);
}

/* Files share the expected genes and have different cells. */
static void test_overlap(void)
{
	struct pen_synth_cells_setup s = usual;
	struct pen_synth_cells *c[2];
	struct pen_synth_rows *b[2];
	const struct pen_cells_rows *r[2];
	const char *const *name[2];
	unsigned same = 0;

	s.ncells = 10;
	s.overlap = 0.7;
	for (int i = 0; i < 2; i++) {
		s.file = (uint64_t)i;
		r[i] = make(&s, &c[i], &b[i]);
		name[i] = pen__synth_cells_spec(c[i])->var[0].names;
	}
	for (unsigned g = 0; g < 20000; g++)
		same += !strcmp(name[0][g], name[1][g]);
	CHECK(near(same, 13700, 14300));
	CHECK(memcmp(r[0]->indices, r[1]->indices, 400) != 0);
	CHECK(strcmp(((const char *const *)r[0]->obs[0])[0],
		     ((const char *const *)r[1]->obs[0])[0]) != 0);
	unmake(c[0], b[0]);
	unmake(c[1], b[1]);
}

/* The highest density, where the last genes are hard to draw; few genes; no
 * cells. */
static void test_borders(void)
{
	static const uint64_t genes[] = { 1, 2, 51, 52, 64, 65, 3000 };
	struct pen_synth_cells_setup s = usual;
	struct pen_synth_cells *c;
	struct pen_synth_rows *b;
	struct pen_err err = { 0 };

	s.density = 0.5;
	s.ncells = 40;
	for (size_t i = 0; i < sizeof(genes) / sizeof(genes[0]); i++) {
		const struct pen_cells_rows *r;

		s.ngenes = genes[i];
		r = make(&s, &c, &b);
		for (uint64_t k = 0; k < r->start[40]; k++)
			CHECK(r->indices[k] < genes[i] &&
			      ((const float *)r->values)[k] >= 1);
		unmake(c, b);
	}
	s.ncells = 0;
	CHECK_EQ(pen__synth_cells_new(&c, &s, &err), 0);
	CHECK_EQ(pen__synth_cells_spec(c)->nnz, 0);
	pen__synth_cells_free(c);
	s.density = 0.51;
	CHECK(pen__synth_cells_new(&c, &s, &err) < 0);
	s.density = NAN;
	CHECK(pen__synth_cells_new(&c, &s, &err) < 0);
	s = usual;
	s.ngenes = 0;
	CHECK(pen__synth_cells_new(&c, &s, &err) < 0);
	s = usual;
	s.dtype = PEN_BOOL;
	CHECK(pen__synth_cells_new(&c, &s, &err) < 0);
	s = usual;
	s.overlap = 1.5;
	CHECK(pen__synth_cells_new(&c, &s, &err) < 0);
	pen__synth_cells_free(NULL);
	pen__synth_rows_free(NULL);
}

/* ---- files ---- */

static int write_file(const char *path, unsigned threads, const char *packing,
		      int (*tick)(void *, uint64_t))
{
	struct pen_synth_cells_setup s = usual;
	const struct pen_opts_kv kv = { "compression", packing };
	struct pen_synth_cells_run run = {
		.format = pen__cells_writer_for(path)->name,
		.kv = &kv,
		.nkv = 1,
		.path = path,
		.threads = threads,
		.tick = tick
	};
	struct pen_synth_cells *c;
	struct pen_err err = { 0 };
	int rc;

	s.ngenes = 500;
	s.ncells = 3000;
	rc = pen__synth_cells_new(&c, &s, &err);
	if (!rc)
		rc = pen__synth_cells_write(c, &run, &err);
	pen__synth_cells_free(c);
	return rc;
}

static int stop(void *arg, uint64_t n)
{
	(void)arg;
	return n > 1500;
}

static void test_files(const char *suffix, const char *packing)
{
	char path[96];
	uint8_t *a, *b;
	size_t n, m;

	snprintf(path, sizeof(path), "%s/x%s", golden_dir, suffix);
	CHECK_EQ(write_file(path, 8, packing, stop), PEN_ECLOSED);
	CHECK(access(path, F_OK) != 0);
	CHECK_EQ(write_file(path, 1, packing, NULL), 0);
	snprintf(path, sizeof(path), "x%s", suffix);
	a = golden_read(path, &n);
	snprintf(path, sizeof(path), "%s/x%s", golden_dir, suffix);
	CHECK_EQ(write_file(path, 8, packing, NULL), 0);
	snprintf(path, sizeof(path), "x%s", suffix);
	b = golden_read(path, &m);
	CHECK(n == m && n > 100000 && !memcmp(a, b, n));
	free(a);
	free(b);
	snprintf(path, sizeof(path), "%s/x%s", golden_dir, suffix);
	CHECK_EQ(unlink(path), 0);
}

static void test_nomem(void)
{
	char path[96];
	int rc = PEN_ENOMEM;

	snprintf(path, sizeof(path), "%s/nomem.zarr", golden_dir);
	/* failures of the writer are tested in test_cells_fail.c */
	for (uint64_t n = 1; rc && n < 2000; n += 1 + n / 16) {
		pen__mem_fail_nth(n, false);
		rc = write_file(path, 2, "none", NULL);
		pen__mem_fail_nth(0, false);
		/* a thread that cannot be started is a system error */
		if (!CHECK(!rc || rc == PEN_ENOMEM || rc == PEN_EIO))
			fprintf(stderr, "  allocation %d: %d\n", (int)n, rc);
		CHECK(!rc == !access(path, F_OK));
	}
	CHECK_EQ(rc, 0);
}

int main(void)
{
	snprintf(golden_dir, sizeof(golden_dir), "synth-cells-%d",
		 (int)getpid());
	if (mkdir(golden_dir, 0777))
		return 1;
	atexit(golden_remove);
	test_counts();
	test_genes();
	test_obs();
	test_alone();
	test_types();
	test_overlap();
	test_borders();
	if (pen__cells_writer_find("h5ad")) {
		test_files(".h5ad", "none");
		test_files(".h5ad", "gzip");
	}
	test_nomem();
	return test_end();
}
