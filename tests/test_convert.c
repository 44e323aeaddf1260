/*
 * Conversion within memory limits: rows are distributed to buckets and return
 * in the order of the seed, whatever the memory; every allocation fails once;
 * conversions are aborted in every phase.
 */
#include <sys/stat.h>

#include "base/rng.h"
#include "make/convert.h"
#include "make/convert_sums.h"
#include "make/row_shuffle.h"
#include "formats.h"

/* ---- rows ---- */

#define GENES 40u

/* Row i of a matrix, as a function of i. */
struct row {
	uint32_t n, place[GENES];
	float value[GENES];
	int32_t kind;
	double score;
	float pca[2];
};

/* What a bad copy could have wrong. */
enum twist {
	RIGHT,
	VALUE,
	PLACE,
	FEWER,
	KIND,
	SCORE,
	PCA,
	SWAPPED,
	NAMES,
	GENE_NAME,
	TWISTS
};
static enum twist twist;

static void make_row(struct row *r, uint64_t i)
{
	struct pen_rng g = pen__rng(5, i);

	*r = (struct row){ .kind = (int32_t)pen__rng_below(&g, 4) - 1 };
	r->score = pen__rng_double(&g);
	r->pca[0] = (float)pen__rng_double(&g);
	r->pca[1] = (float)(i % 1000);
	for (uint32_t k = 0; i % 7 != 3 && k < GENES; k++) {
		if (pen__rng_below(&g, 3))
			continue;
		r->place[r->n] = k;
		r->value[r->n++] = i % 2 ? (float)(1 + pen__rng_below(&g, 5))
					 : (float)pen__rng_double(&g);
	}
}

/* The same, with one thing wrong in row 1500. */
static void copy_row(struct row *r, uint64_t i)
{
	make_row(r, twist == SWAPPED && i / 2 == 750 ? i ^ 1 : i);
	if (i != 1500 || twist == SWAPPED) /* row 1501 is empty */
		return;
	r->value[0] += twist == VALUE;
	r->place[r->n - 1] = twist == PLACE ? GENES - 1 : r->place[r->n - 1];
	r->n -= twist == FEWER;
	r->kind = twist == KIND ? (r->kind + 2) % 3 : r->kind;
	r->score += twist == SCORE;
	r->pca[1] += twist == PCA;
}

static const char *const kinds[] = { "a", "b", "c" };
static const struct pen_cells_column_spec obs[] = {
	{ .name = "_index", .coded = true, .index = true },
	{ .name = "kind", .coded = true, .nnames = 3, .names = kinds },
	{ .name = "score", .dtype = PEN_F64 },
};
static const char *const other_kinds[] = { "a", "b", "d" };
static const struct pen_cells_column_spec other_obs[] = {
	{ .name = "_index", .coded = true, .index = true },
	{ .name = "kind", .coded = true, .nnames = 3, .names = other_kinds },
	{ .name = "score", .dtype = PEN_F64 },
};
static const struct pen_cells_dense_spec dense[] = {
	{ "obsm/X_pca", PEN_F32, 2 },
};

static struct pen_cells_spec make_spec(uint64_t n)
{
	struct pen_cells_spec s = { .nrows = n,
				    .ncols = GENES,
				    .sparse = true,
				    .dtype = PEN_F32,
				    .indices = PEN_I32,
				    .nobs = 3,
				    .ndense = 1,
				    .obs = obs,
				    .dense = dense };
	struct row r;

	for (uint64_t i = 0; i < n; i++) {
		copy_row(&r, i);
		s.nnz += r.n;
	}
	return s;
}

/* One row at a time; names as codes, as in a shuffle, or as strings. */
static int put_row(struct pen_row_shuffle *d, struct pen_cells_writer *w,
		   uint64_t i, struct pen_err *err)
{
	uint64_t start[2] = { 0 };
	char name[24];
	const char *text = name;
	const int32_t code = (int32_t)i;
	struct row r;
	const void *const o[] = { w ? (const void *)&text : &code, &r.kind,
				  &r.score };
	const void *const m[] = { r.pca };
	const struct pen_cells_rows rows = { 1, start, r.place, r.value,
					     o, m,     NULL };

	copy_row(&r, i);
	start[1] = r.n;
	snprintf(name, sizeof(name), "cell%d", (int)i);
	return w ? pen__cells_writer_rows(w, &rows, err)
		 : pen__row_shuffle_put(d, &rows, err);
}

/* ---- shuffling ---- */

static bool is_row(const struct pen_cells_rows *r, uint64_t k, uint64_t i)
{
	const uint64_t at = r->start[k];
	struct row w;

	make_row(&w, i);
	return r->start[k + 1] - at == w.n &&
	       (!w.n || (memcmp(r->indices + at, w.place, 4 * w.n) == 0 &&
			 memcmp((const float *)r->values + at, w.value,
				4 * w.n) == 0)) &&
	       ((const int32_t *)r->obs[0])[k] == (int32_t)i &&
	       ((const int32_t *)r->obs[1])[k] == w.kind &&
	       memcmp((const double *)r->obs[2] + k, &w.score, 8) == 0 &&
	       memcmp((const float *)r->dense[0] + 2 * k, w.pca, 8) == 0;
}

/* All rows, in the order of the seed; fails only for lack of memory. */
static int shuffle(uint64_t n, uint64_t seed, uint64_t memory,
		   uint64_t *buckets)
{
	const struct pen_cells_spec spec = make_spec(n);
	const struct pen_row_shuffle_setup setup = { &spec, "x", seed, memory };
	struct pen_cells_rows r = { 0 };
	struct pen_err err = { 0 };
	struct pen_row_shuffle *d;
	struct pen_perm perm;
	uint64_t at = 0;
	int rc = pen__row_shuffle_new(&d, &setup, &err);

	if (n)
		pen__row_shuffle_order(&perm, n, seed);
	for (uint64_t i = 0; rc >= 0 && i < n; i++)
		rc = put_row(d, NULL, i, &err);
	while (rc >= 0 && (rc = pen__row_shuffle_take(d, &r, &err)) >= 0 && r.n)
		for (uint64_t k = 0; k < r.n; k++, at++)
			CHECK(at < n && is_row(&r, k, pen__perm_at(&perm, at)));
	CHECK(rc < 0 || at == n);
	CHECK_EQ(err.code, rc);
	if (rc >= 0)
		*buckets = pen__row_shuffle_nbuckets(d);
	pen__row_shuffle_free(d);
	return rc;
}

static void test_shuffle(void)
{
	static const uint64_t sizes[] = { 0, 1, 2, 63, 1024, 1025, 5000 };
	uint64_t few, many;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		for (uint64_t seed = 0; seed < 3; seed++) {
			CHECK_EQ(shuffle(sizes[i], seed, (uint64_t)1 << 30,
					 &few),
				 0);
			CHECK_EQ(shuffle(sizes[i], seed, 131072, &many), 0);
			CHECK_EQ(few, 1);
			CHECK(sizes[i] < 5000 || many > 3);
		}
}

static void test_shuffle_refuses(void)
{
	struct pen_cells_spec spec = make_spec(10);
	const struct pen_row_shuffle_setup setup = { &spec, "x", 1, 1 << 20 };
	struct pen_row_shuffle *d;
	struct pen_err err = { 0 };

	spec.nnz = (uint64_t)1 << 40;
	CHECK_EQ(pen__row_shuffle_new(&d, &setup, &err), PEN_EINVAL);
	CHECK(strstr(err.msg, "set at least") != NULL);
	spec = make_spec(10);
	CHECK_EQ(pen__row_shuffle_new(&d, &setup, &err), 0);
	for (uint64_t i = 0; i < 9; i++)
		CHECK_EQ(put_row(d, NULL, i, &err), 0);
	CHECK_EQ(pen__row_shuffle_take(d, &(struct pen_cells_rows){ 0 }, &err),
		 PEN_EDATA);
	pen__row_shuffle_free(d);
}

static void test_shuffle_nomem(void)
{
	uint64_t nbuckets = 0, i;

	for (i = 1; i < 4000; i += i < 200 ? TEST_EVERY(3) : 37) {
		uint64_t n;
		int rc;

		pen__mem_fail_nth(i, false);
		rc = shuffle(1500, 1, 131072, &nbuckets);
		n = pen__mem_count();
		pen__mem_fail_nth(0, false);
		CHECK(rc == 0 || rc == PEN_ENOMEM);
		if (n < i)
			break;
	}
	CHECK(i < 4000);
}

/* ---- conversion ---- */

static void write_source(const char *path, uint64_t n)
{
	const char *names[GENES];
	char text[GENES][8];
	int32_t place[GENES];
	const struct pen_cells_column_spec var = { .name = "gene",
						   .coded = true,
						   .index = true,
						   .nnames = GENES,
						   .names = names };
	const void *const values[] = { place };
	struct pen_cells_spec spec = make_spec(n);
	struct pen_cells_writer *w;
	struct pen_err err = { 0 };

	for (unsigned i = 0; i < GENES; i++) {
		snprintf(text[i], sizeof(text[i]), "g%u%s", i,
			 twist == GENE_NAME && i == 7 ? "x" : "");
		names[i] = text[i];
		place[i] = (int32_t)i;
	}
	if (twist == NAMES)
		spec.obs = other_obs;
	spec.var = &var;
	spec.nvar = 1;
	spec.var_values = values;
	if (!CHECK_EQ(pen__cells_writer_open(
			      &w, pen__cells_writer_for(path), path, &spec,
			      (struct pen_opts){ NULL, 0 }, &err),
		      0))
		return;
	for (uint64_t i = 0; i < n; i++)
		CHECK_EQ(put_row(NULL, w, i, &err), 0);
	CHECK_EQ(pen__cells_writer_finish(w, &err), 0);
	pen__cells_writer_close(w);
}

/* Aborts in the middle of a phase. */
static int stop(void *arg, enum pen_convert_phase phase, uint64_t done,
		uint64_t total)
{
	CHECK(done <= total);
	return *(int *)arg == (int)phase && done > total / 2;
}

static int convert(const char *from, const char *to, bool shuffle, int *phase,
		   struct pen_err *err)
{
	struct pen_convert_result r;
	struct pen_spec *spec = NULL;
	struct pen_convert c = { .to = pen__cells_writer_for(to)->name,
				 .path = to,
				 .shuffle = shuffle,
				 .verify = true,
				 .seed = 7,
				 .memory = 1 << 20,
				 .tick = phase ? stop : NULL,
				 .arg = phase };
	int rc = pen_spec_new(&spec, err);

	if (rc >= 0)
		rc = pen_spec_add_path(spec, from, err);
	if (rc >= 0)
		rc = pen_spec_set(spec, "index_cache", "off", err);
	if (rc >= 0)
		rc = pen_spec_set(spec, "threads", "1", err);
	if (rc >= 0)
		rc = pen_spec_set(spec, "format.matrix", "X,obsm/X_pca", err);
	c.source = spec;
	if (rc >= 0)
		rc = pen__convert(&c, &r, err);
	pen_spec_free(spec);
	return rc;
}

static unsigned files_in(const char *dir)
{
	return eng_count(dir);
}

static void test_convert(void)
{
	struct pen_err err = { 0 };
	char from[160], to[160];

	snprintf(from, sizeof(from), "%s/a.pen", golden_dir);
	snprintf(to, sizeof(to), "%s/b.pen", golden_dir);
	write_source(from, 3000);
	for (int shuffle = 0; shuffle < 2; shuffle++) {
		if (!CHECK_EQ(convert(from, to, shuffle, NULL, &err), 0))
			fprintf(stderr, "  %s: %s\n", err.where, err.msg);
		CHECK_EQ(unlink(to), 0);
	}
}

static bool open_source(struct pen_cellsource *s, const char *path,
			const struct pen_cellsource *like)
{
	struct pen_spec *spec = NULL;
	struct pen_err err = { 0 };
	int rc = pen_spec_new(&spec, &err);

	if (!rc)
		rc = pen_spec_add_path(spec, path, &err);
	if (!rc)
		rc = pen_spec_set(spec, "index_cache", "off", &err);
	if (!rc)
		rc = pen_spec_set(spec, "format.matrix", "X,obsm/X_pca", &err);
	if (!rc)
		rc = pen__cellsource_open(s, spec, like, &err);
	pen_spec_free(spec);
	if (!CHECK_EQ(rc, 0))
		fprintf(stderr, "  %s: %s\n", err.where, err.msg);
	return !rc;
}

static void add_up(struct pen_cellsource *s, struct pen_sums *sums)
{
	struct pen_cells_rows r;
	uint64_t at = 0;

	CHECK_EQ(pen__sums_init(sums, s->spec.nrows, NULL), 0);
	while (pen__cellsource_next(s, &r, NULL) == 0)
		for (uint64_t i = 0; i < r.n; i++)
			pen__sums_row(sums, s, &r, i, at++);
	CHECK_EQ(at, s->spec.nrows);
}

/* The check after a conversion finds whatever is wrong, and where. */
static void check_finds(void)
{
	char from[160], to[160];

	snprintf(from, sizeof(from), "%s/a.pen", golden_dir);
	snprintf(to, sizeof(to), "%s/bad.pen", golden_dir);
	for (twist = RIGHT; twist < TWISTS; twist++) {
		const bool head = twist == NAMES || twist == GENE_NAME;
		struct pen_sums a = { 0 }, b = { 0 };
		struct pen_cellsource x, y;
		struct pen_err err = { 0 };

		write_source(to, 3000);
		if (!open_source(&x, from, NULL))
			continue;
		if (open_source(&y, to, NULL)) {
			CHECK_EQ(pen__sources_same(&x, &y, "copy", &err),
				 head ? PEN_EDATA : 0);
			CHECK_EQ(err.number, head ? P_COPY_DIFFERS : 0);
			add_up(&x, &a);
			add_up(&y, &b);
			/* rows 1024 to 2047 */
			if (twist == RIGHT)
				CHECK_EQ(pen__sums_differ(&a, &b), -1);
			else if (!head)
				CHECK_EQ(pen__sums_differ(&a, &b), 1);
			b.n--; /* the copy ends early */
			CHECK(pen__sums_differ(&a, &b) >= 0);
			b.n++;
			pen__sums_fini(&a);
			pen__sums_fini(&b);
			pen__cellsource_close(&y);
		}
		pen__cellsource_close(&x);
		CHECK_EQ(unlink(to), 0);
	}
	twist = RIGHT;
}

/* Aborted in any phase: no file remains. */
static void test_ended(void)
{
	struct pen_err err = { 0 };
	char from[160], to[160];
	unsigned n = files_in(golden_dir);

	snprintf(from, sizeof(from), "%s/a.pen", golden_dir);
	snprintf(to, sizeof(to), "%s/b.pen", golden_dir);
	for (int i = PEN_CONVERT_READ; i < PEN_CONVERT_PHASES; i++) {
		CHECK_EQ(convert(from, to, true, &i, &err), PEN_ECLOSED);
		CHECK_EQ(files_in(golden_dir), n);
	}
}

static void test_nomem(void)
{
	struct pen_err err;
	char from[160], to[160];
	unsigned n = files_in(golden_dir) + 1;
	uint64_t i;

	snprintf(from, sizeof(from), "%s/small.pen", golden_dir);
	snprintf(to, sizeof(to), "%s/b.pen", golden_dir);
	write_source(from, 30);
	for (i = 1; i < 20000; i += TEST_EVERY(3)) {
		uint64_t count;
		int rc;

		err = (struct pen_err){ 0 };
		pen__mem_fail_nth(i, false);
		rc = convert(from, to, i % 2, NULL, &err);
		count = pen__mem_count();
		pen__mem_fail_nth(0, false);
		/* a thread that cannot be started counts as lack of memory */
		if (!CHECK(rc == 0 || rc == PEN_ENOMEM ||
			   strstr(err.msg, "cannot start thread")))
			fprintf(stderr, "  %d: %s: %s\n", (int)i, err.where,
				err.msg);
		CHECK_EQ(err.code, rc);
		CHECK_EQ(files_in(golden_dir), n + (rc == 0));
		unlink(to);
		if (count < i)
			break;
	}
	CHECK(i < 20000);
}

int main(void)
{
	snprintf(golden_dir, sizeof(golden_dir), "convert-%d", (int)getpid());
	CHECK_EQ(mkdir(golden_dir, 0777), 0);
	atexit(golden_remove);
	test_shuffle();
	test_shuffle_refuses();
	test_shuffle_nomem();
	test_convert();
	check_finds();
	test_ended();
	test_nomem();
	return test_end();
}
