/* raw records: sizes from options, leftovers, byte order, writing. */
#include "golden.h"

static int open_bytes(struct drv *d, const struct pen_opts_kv *kv, size_t nkv,
		      size_t n, struct pen_err *err)
{
	uint8_t bytes[256];

	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)i;
	*err = (struct pen_err){ 0 };
	return drv_open_one(d, "raw", kv, nkv, 1, (struct pen_span){ bytes, n },
			    err);
}

static void test_records(void)
{
	struct pen_opts_kv kv[] = { { "dtype", "int16" },
				    { "shape", "2x3" },
				    { "header", "4" },
				    { "partial", "drop" } };
	struct drv_rows rows = { 0 };
	struct pen_err err;
	struct drv d;

	CHECK_EQ(open_bytes(&d, kv, 4, 41, &err), 0);
	CHECK_EQ(d.ix.nsamples, 3);
	CHECK(d.f->uniform && d.f->all_plain);
	CHECK_EQ(d.f->field[0].ndim, 2);
	CHECK_EQ(d.f->field[0].shape[1], 3);
	CHECK_EQ(d.f->field[0].dtype, PEN_I16);
	CHECK_EQ(drv_sample(&d, 0, 2, &rows, &err), 0);
	CHECK_EQ(rows.len[0], 12);
	CHECK_EQ(((uint8_t *)rows.p[0])[0], 28);
	drv_rows_free(&rows);
	drv_close(&d);

	CHECK_EQ(open_bytes(&d, kv, 3, 41, &err), PEN_EDATA);
	CHECK(strstr(err.msg, "1 bytes are left over") != NULL);
	drv_close(&d);
	CHECK_EQ(open_bytes(&d, kv, 3, 3, &err), PEN_EDATA);
	drv_close(&d);
	CHECK_EQ(open_bytes(&d, kv, 3, 4, &err), 0);
	CHECK_EQ(d.ix.nsamples, 0);
	drv_close(&d);
}

static void test_record_size(void)
{
	struct pen_opts_kv kv[] = { { "record", "8" },
				    { "dtype", "float32" },
				    { "shape", "1,2" } };
	struct pen_err err;
	struct drv d;

	CHECK_EQ(open_bytes(&d, kv, 1, 64, &err), 0);
	CHECK_EQ(d.f->field[0].dtype, PEN_U8);
	CHECK_EQ(d.f->field[0].shape[0], 8);
	drv_close(&d);
	CHECK_EQ(open_bytes(&d, kv, 2, 64, &err), 0);
	CHECK_EQ(d.f->field[0].shape[0], 2);
	drv_close(&d);
	CHECK_EQ(open_bytes(&d, kv, 3, 64, &err), 0);
	CHECK_EQ(d.f->field[0].ndim, 2);
	drv_close(&d);
}

static void test_refused(void)
{
	static const struct {
		struct pen_opts_kv kv[3];
		const char *text;
	} cases[] = {
		{ { { "dtype", "flaot32" }, { "record", "8" } }, "float32" },
		{ { { "shape", "3x" } }, "is not valid" },
		{ { { "shape", "3x0" } }, "is not valid" },
		{ { { "shape", "3 4" } }, "is not valid" },
		{ { { "shape", "99999999999999999999" } }, "is not valid" },
		{ { { "shape", "4294967296x4294967296" } }, "too large" },
		{ { { "record", "7" }, { "dtype", "int16" } }, "multiple" },
		{ { { "record", "8" }, { "shape", "7" } }, "give 7" },
		{ { { "header", "1" } }, "record size is not set" },
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pen_err err;
		struct drv d;
		size_t n = 0;

		while (n < 3 && cases[i].kv[n].key)
			n++;
		CHECK_EQ(open_bytes(&d, cases[i].kv, n, 64, &err), PEN_EINVAL);
		if (!CHECK(strstr(err.msg, cases[i].text) != NULL))
			fprintf(stderr, "  %u: %s\n", i, err.msg);
		drv_close(&d);
	}
}

/* Round trips of every type in both byte orders. */
static void check_type(enum pen_dtype t, const char *big)
{
	const struct pen_opts_kv kv[] = { { "dtype", pen_dtype_name(t) },
					  { "shape", "2x3" },
					  { "header", "5000" },
					  { "big_endian", big } };
	struct golden_out out = { .out.write = golden_write };
	struct pen_field fd = {
		.name = "x", .dtype = t, .ndim = 2, .shape = { 2, 3 }
	};
	const size_t row = 6 * pen_dtype_size(t);
	const uint64_t n = 101;
	uint8_t *data = malloc(row * n);
	const void *arrays = data;
	struct pen_table table = {
		.nsamples = n, .nfields = 1, .field = &fd, .data = &arrays
	};
	struct pen_format *f;
	struct drv d;

	for (size_t i = 0; i < row * n; i++)
		data[i] = (uint8_t)(i * 7 + i / 256);
	CHECK_EQ(pen__format_open(&f, pen__format_find("raw"), kv, 4, NULL), 0);
	CHECK_EQ(f->ops->write(f, &table, &out.out, NULL), 0);
	pen__format_close(f);
	CHECK_EQ(out.buf.n, 5000 + row * n);
	if (strcmp(big, "true") == 0 && pen_dtype_size(t) == 8 && t != PEN_C64)
		CHECK_EQ(out.buf.p[5000 + 7], data[0]);
	CHECK_EQ(drv_open_one(&d, "raw", kv, 4, 1,
			      (struct pen_span){ out.buf.p, out.buf.n }, NULL),
		 0);
	CHECK_EQ(d.ix.nsamples, n);
	for (uint64_t k = 0; k < n; k++) {
		struct drv_rows rows = { 0 };

		CHECK_EQ(drv_sample(&d, 0, k, &rows, NULL), 0);
		CHECK(memcmp(rows.p[0], data + k * row, row) == 0);
		drv_rows_free(&rows);
	}
	drv_close(&d);
	pen__buf_fini(&out.buf);
	free(data);
}

int main(void)
{
	static const struct pen_opts_kv kv = { "record", "4" };

	test_records();
	test_record_size();
	test_refused();
	for (unsigned t = 0; t < PEN_NDTYPES; t++) {
		check_type((enum pen_dtype)t, "false");
		check_type((enum pen_dtype)t, "true");
	}
	golden_check_nomem("raw", kv,
			   (struct pen_span){ (const uint8_t *)"12345678", 8 });
	return test_end();
}
