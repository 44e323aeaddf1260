/* Block specs, conversions of sparse batches, and a timed pass. */
#include <unistd.h>

#include "base/mem.h"
#include "experiment/experiment.h"
#include "test.h"

static struct pen_block_sizes *list;
static size_t n;

static int parse(const char *text)
{
	struct pen_err err = { 0 };

	pen__free(list);
	list = NULL;
	n = 0;
	return pen__blocks_parse(text, &list, &n, &err);
}

static void test_specs(void)
{
	CHECK_EQ(parse("64"), 0);
	CHECK_EQ(n, 1);
	CHECK_EQ(list[0].chunk, 64);
	CHECK_EQ(list[0].chunks, 2000);
	CHECK_EQ(parse("256x64"), 0);
	CHECK_EQ(list[0].chunk, 64);
	CHECK_EQ(list[0].chunks, 256);
	CHECK_EQ(parse(" 256 x 64 "), 0);
	CHECK_EQ(list[0].chunks, 256);
	CHECK_EQ(parse("65536 / 1024"), 0);
	CHECK_EQ(list[0].chunk, 64);
	CHECK_EQ(list[0].chunks, 1024);
	CHECK_EQ(parse("64k/100"), 0); /* 64,000 rows */
	CHECK_EQ(list[0].chunk, 640);
	CHECK_EQ(parse("65536/[1,4096]"), 0);
	CHECK_EQ(n, 13);
	CHECK_EQ(list[0].chunks, 1);
	CHECK_EQ(list[0].chunk, 65536);
	CHECK_EQ(list[12].chunks, 4096);
	CHECK_EQ(list[12].chunk, 16);
	CHECK_EQ(parse("65536 / [64, 16]"), 0);
	CHECK_EQ(n, 3);
	CHECK_EQ(list[0].chunks, 64);
	CHECK_EQ(list[2].chunks, 16);
	CHECK_EQ(parse("1024/[8,8]"), 0);
	CHECK_EQ(n, 1);
}

static void test_lists(void)
{
	struct pen_err err = { 0 };

	/* several are one list, and nothing is in it twice */
	CHECK_EQ(parse("1024/[1,4]"), 0);
	CHECK_EQ(pen__blocks_parse("4x256", &list, &n, &err), 0);
	CHECK_EQ(n, 3);
	CHECK_EQ(pen__blocks_parse("8x256", &list, &n, &err), 0);
	CHECK_EQ(n, 4);
}

static void test_bad_specs(void)
{
	static const char *const bad[] = {
		"",	      "x",
		"0",	      "0x4",
		"4x0",	      "4x",
		"x4",	      "4x4x4",
		"1000/3",     "1024/0",
		"1024/",      "1024/[",
		"1024/[1,",   "1024/[1,4",
		"1024/[,4]",  "1024/[1,]",
		"1024/[3,4]", "1024/[1,4]x",
		"1024/[0,4]", "-4x4",
		"1e30x2",     "99999999999x99999999999",
		"a/b",	      "1024/[1,2048]",
		"64 64 x",    "1/2",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char what[64];

		snprintf(what, sizeof(what), "'%s' is refused", bad[i]);
		test_check(parse(bad[i]) == PEN_EINVAL, __FILE__, __LINE__,
			   what);
	}
}

/* ---- conversions ---- */

static const int64_t offsets[] = { 0, 2, 2, 5 };
static int32_t cols[] = { 3, 7, 9, 1, 4 };
static float vals[] = { 1, 2, 3, 4, 5 };
static const uint64_t ids[] = { 10, 20, 30 };
static struct pen_tensor tensor[2];

static struct pen_batch sparse_batch(void)
{
	tensor[0] = (struct pen_tensor){ .name = "X_data",
					 .data = vals,
					 .nbytes = sizeof(vals),
					 .dtype = PEN_F32,
					 .layout = PEN_RAGGED,
					 .offsets = offsets };
	tensor[1] = (struct pen_tensor){ .name = "X_indices",
					 .data = cols,
					 .nbytes = sizeof(cols),
					 .dtype = PEN_I32,
					 .layout = PEN_RAGGED,
					 .offsets = offsets };
	return (struct pen_batch){
		.nsamples = 3, .ntensors = 2, .ids = ids, .tensors = tensor
	};
}

static void test_convert(void)
{
	struct pen_batch b = sparse_batch();
	struct pen_sparse_sums first = { 0 };

	for (int r = PEN_READ_RAW; r <= PEN_READ_CSR; r++) {
		struct pen_sparse_reader c = { .reader = (enum pen_reader)r };
		struct pen_err err = { 0 };

		CHECK_EQ(pen__convert_batch(&c, &b, &err), 0);
		CHECK_EQ(c.sums.nnz, 5);
		CHECK_EQ(c.sums.rows, 2 * 10 + 3 * 30);
		CHECK_EQ(c.sums.cols, 3 + 7 + 9 + 1 + 4);
		if (r == PEN_READ_RAW)
			first = c.sums;
		CHECK_EQ(c.sums.values, first.values);
		pen__convert_fini(&c);
	}
}

/* What was made is what it is called. */
static void test_made(void)
{
	struct pen_batch b = sparse_batch();
	struct pen_sparse_reader c = { .reader = PEN_READ_CSR };
	struct pen_err err = { 0 };
	const int32_t *col;
	const float *val;

	CHECK_EQ(pen__convert_batch(&c, &b, &err), 0);
	CHECK(!memcmp(c.part[0].p, offsets, sizeof(offsets)));
	col = c.part[1].p;
	val = c.part[2].p;
	CHECK(col[2] == 1 && col[3] == 4 && col[4] == 9); /* sorted */
	CHECK(val[2] == 4 && val[3] == 5 && val[4] == 3);
	pen__convert_fini(&c);
	c = (struct pen_sparse_reader){ .reader = PEN_READ_TABLE };
	CHECK_EQ(pen__convert_batch(&c, &b, &err), 0);
	CHECK_EQ(((int64_t *)c.part[0].p)[1], 0);
	CHECK_EQ(((int64_t *)c.part[0].p)[2], 2);
	CHECK_EQ(((int64_t *)c.part[1].p)[4], 4);
	pen__convert_fini(&c);
	c = (struct pen_sparse_reader){ .reader = PEN_READ_COO };
	CHECK_EQ(pen__convert_batch(&c, &b, &err), 0);
	CHECK_EQ(((int32_t *)c.part[0].p)[4], 2);
	CHECK_EQ(((int32_t *)c.part[1].p)[0], 3);
	pen__convert_fini(&c);
}

static void test_refused(void)
{
	struct pen_batch b = sparse_batch();
	struct pen_sparse_reader c = { .reader = PEN_READ_COO };
	struct pen_err err = { 0 };

	tensor[0].dtype = PEN_F64;
	CHECK_EQ(pen__convert_batch(&c, &b, &err), PEN_ENOTSUP);
	b = sparse_batch();
	b.ntensors = 1;
	CHECK_EQ(pen__convert_batch(&c, &b, &err), PEN_ENOTSUP);
	b = sparse_batch();
	tensor[1].layout = PEN_DENSE;
	CHECK_EQ(pen__convert_batch(&c, &b, &err), PEN_ENOTSUP);
	pen__convert_fini(&c);
}

static void test_convert_memory(void)
{
	for (int r = PEN_READ_TABLE; r <= PEN_READ_CSR; r++)
		for (uint64_t k = 1; k <= 4; k++) {
			struct pen_batch b = sparse_batch();
			struct pen_sparse_reader c = {
				.reader = (enum pen_reader)r
			};
			struct pen_err err = { 0 };
			int rc;

			pen__mem_fail_nth(k, false);
			rc = pen__convert_batch(&c, &b, &err);
			pen__mem_fail_nth(0, false);
			CHECK(!rc || rc == PEN_ENOMEM);
			CHECK(rc || k > 3);
			pen__convert_fini(&c);
		}
}

/* ---- a pass ---- */

static int count(void *arg, const struct pen_batch *b, struct pen_err *err)
{
	(void)err;
	*(uint64_t *)arg += b->nsamples;
	return 0;
}

static struct pen_spec *synthetic(void)
{
	static const char *const settings[] = {
		"format=synthetic", "store=posix",     "format.samples=1000",
		"batch_size=64",    "epochs=2",	       "index_cache=off",
		"sampler=block",    "sampler.chunk=8", "sampler.chunks=16",
	};
	struct pen_spec *s = NULL;
	struct pen_err err = { 0 };

	FILE *f = fopen("experiment.tmp", "w");

	if (f)
		fclose(f);
	if (pen_spec_new(&s, &err) ||
	    pen_spec_add_path(s, "experiment.tmp", &err))
		return NULL;
	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
		if (!CHECK_EQ(pen_spec_parse(s, settings[i], &err), 0))
			fprintf(stderr, "%s\n", err.msg);
	return s;
}

static void test_pass(void)
{
	struct pen_spec *s = synthetic();
	uint64_t seen = 0;
	struct pen_pass p = {
		.spec = s, .quality = true, .eat = count, .arg = &seen
	};
	struct pen_text j = { .compact = true };
	struct pen_err err = { 0 };

	if (!s || !CHECK_EQ(pen__pass_run(&p, &err), 0)) {
		fprintf(stderr, "%s: %s\n", err.where, err.msg);
		pen_spec_free(s);
		return;
	}
	CHECK_EQ(p.nsamples, 2000);
	CHECK_EQ(seen, 2000);
	CHECK_EQ(p.nbatches, 32);
	CHECK_EQ(p.first_samples, 64);
	CHECK(p.seconds > 0 && p.first_s > 0 && p.first_s <= p.seconds);
	CHECK(p.p50_s <= p.p99_s && p.p99_s <= p.max_s);
	CHECK(p.slow_share > 0 && p.slow_share <= 1);
	CHECK(p.peak_bytes > 0);
	CHECK(p.has_mixed && p.mixed.complete);
	CHECK_EQ(p.mixed.repeated + p.mixed.missing, 0);
	CHECK(p.mixed.n_eff > 1 && p.mixed.n_eff < 64);
	pen__json_open(&j, NULL, '{');
	pen__pass_json(&j, &p);
	pen__json_close(&j, '}');
	CHECK(j.p && strstr(j.p, "\"n_rows\": 2000"));
	CHECK(j.p && strstr(j.p, "\"n_eff\""));
	pen__text_fini(&j);
	pen__pass_fini(&p);

	p = (struct pen_pass){ .spec = s, .max_batches = 1 };
	CHECK_EQ(pen__pass_run(&p, &err), 0);
	CHECK_EQ(p.nsamples, 64);
	CHECK(p.p50_s == 0); /* the first is told apart */
	pen__pass_fini(&p);
	pen_spec_free(s);
	unlink("experiment.tmp");
}

int main(void)
{
	test_specs();
	test_lists();
	test_bad_specs();
	pen__free(list);
	test_convert();
	test_made();
	test_refused();
	test_convert_memory();
	test_pass();
	return test_end();
}
