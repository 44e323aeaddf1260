/* npy against NumPy: every type, order and shape, read and written. */
#include "golden.h"

static const struct pen_opts_kv none = { NULL, NULL };

static void test_golden(void)
{
	FILE *f = golden_list("manifest");
	struct golden_case c;
	unsigned n = 0;

	while (golden_next(f, &c)) {
		if (!ends_in(c.file, ".npy"))
			continue;
		golden_check(&c, "npy", none);
		n++;
	}
	CHECK(n > 1000);
	fclose(f);
}

static int some_rows(const struct pen_table *t, uint32_t field, uint64_t first,
		     uint64_t n, void *to, struct pen_err *err)
{
	const struct pen_field *fd = &t->field[field];
	const uint8_t *raw = t->arg;
	size_t row;

	(void)err;
	CHECK(pen__shape_bytes(fd->shape, fd->ndim, fd->dtype, &row));
	memcpy(to, raw + first * row, n * row);
	return 0;
}

static int no_rows(const struct pen_table *t, uint32_t field, uint64_t first,
		   uint64_t n, void *to, struct pen_err *err)
{
	(void)field;
	(void)first;
	(void)n;
	(void)to;
	return pen__fail(err, P_IO, t->field[0].name, "no rows today");
}

/* Arrays that NumPy wrote in C order and little-endian are written byte for
 * byte. */
static void check_write(const struct golden_case *c)
{
	const struct pen_opts_kv kv = { "samples", c->samples };
	struct golden_out out = { .out.write = golden_write };
	struct pen_field fd = { .name = "x", .ndim = c->ndim };
	struct pen_format *f;
	size_t n, nraw;
	uint8_t *file = golden_read(c->file, &n);
	uint8_t *raw = golden_read(c->raw, &nraw);
	const void *data = raw;
	struct pen_table t = { .nsamples = c->nsamples,
			       .nfields = 1,
			       .field = &fd,
			       .data = &data,
			       .rows = some_rows,
			       .arg = raw };

	while (strcmp(pen_dtype_name(fd.dtype), c->dtype) != 0)
		fd.dtype++;
	memcpy(fd.shape, c->shape, sizeof(fd.shape));
	CHECK_EQ(pen__format_open(&f, pen__format_find("npy"), &kv, 1, NULL),
		 0);
	CHECK_EQ(f->ops->write(f, &t, &out.out, NULL), 0);
	if (!CHECK(out.buf.n == n && memcmp(out.buf.p, file, n) == 0))
		fprintf(stderr, "  in %s samples=%s\n", c->file, c->samples);
	/* and the same with samples generated on demand */
	out.buf.n = 0;
	t.data = NULL;
	CHECK_EQ(f->ops->write(f, &t, &out.out, NULL), 0);
	CHECK(out.buf.n == n && memcmp(out.buf.p, file, n) == 0);
	pen__format_close(f);
	pen__buf_fini(&out.buf);
	free(file);
	free(raw);
}

static void test_write(void)
{
	FILE *f = golden_list("manifest");
	struct golden_case c;
	unsigned n = 0;

	while (golden_next(f, &c)) {
		if (!ends_in(c.file, "-0.npy") && strcmp(c.file, "deep.npy"))
			continue;
		check_write(&c);
		n++;
	}
	CHECK(n > 200);
	fclose(f);
}

static void test_write_refuses(void)
{
	struct pen_opts_kv kv = { "samples", "file" };
	struct golden_out out = { .out.write = golden_write };
	struct pen_field fd[2] = { { .name = "x", .dtype = PEN_F32 },
				   { .name = "y", .dtype = PEN_F32 } };
	float v[2] = { 1, 2 };
	const void *data[2] = { v, v };
	struct pen_table t = {
		.nsamples = 2, .nfields = 1, .field = fd, .data = data
	};
	struct pen_err err = { 0 };
	struct pen_format *f;

	CHECK_EQ(pen__format_open(&f, pen__format_find("npy"), &kv, 1, NULL),
		 0);
	CHECK_EQ(f->ops->write(f, &t, &out.out, &err), PEN_EINVAL);
	CHECK(strstr(err.msg, "samples=first") != NULL);
	t.nsamples = 1;
	t.nfields = 2;
	CHECK_EQ(f->ops->write(f, &t, &out.out, &err), PEN_EINVAL);
	CHECK(strstr(err.msg, "npz") != NULL);
	pen__format_close(f);
	CHECK_EQ(out.buf.n, 0);
	/* a failure of the generator is passed on unchanged */
	t = (struct pen_table){
		.nsamples = 2, .nfields = 1, .field = fd, .rows = no_rows
	};
	kv.value = "last";
	CHECK_EQ(pen__format_open(&f, pen__format_find("npy"), &kv, 1, NULL),
		 0);
	CHECK_EQ(f->ops->write(f, &t, &out.out, &err), PEN_EIO);
	pen__format_close(f);
	pen__buf_fini(&out.buf);
}

static void test_damage(void)
{
	static const char *const files[] = { "int16-5-0.npy", "uint8-9-3.npy",
					     "float64-0-1.npy" };
	static const struct pen_opts_kv file = { "samples", "file" };
	static const struct pen_opts_kv last = { "samples", "last" };
	size_t n;

	for (unsigned i = 0; i < 3; i++) {
		uint8_t *p = golden_read(files[i], &n);
		const struct pen_span s = { p, n };

		golden_check_damage("npy", i == 1 ? last : file, s, false, 1);
		golden_check_nomem("npy", i == 1 ? last : file, s);
		free(p);
	}
}

/* Opens several golden files as one data set. */
static int open_many(struct drv *d, const char *const *files,
		     const char *samples, struct pen_err *err)
{
	const struct pen_opts_kv kv = { "samples", samples };

	CHECK_EQ(drv_start(d, pen__format_find("npy"), &kv, 1, err), 0);
	for (; *files; files++) {
		size_t n;
		uint8_t *p = golden_read(*files, &n);

		drv_add(d, p, n);
		free(p);
	}
	return drv_bind(d, 0, err);
}

static void test_many(void)
{
	/* (3, 4), (1, 6) and (5,) of float32; (3, 4) of int16 */
	static const char *const alike[] = { "float32-5-0.npy", "version-2.npy",
					     NULL };
	static const char *const vary[] = { "float32-5-0.npy",
					    "float32-6-0.npy", NULL };
	static const char *const ranks[] = { "float32-5-0.npy",
					     "float32-4-0.npy", NULL };
	static const char *const types[] = { "float32-5-0.npy", "int16-5-0.npy",
					     NULL };
	static const char *const empty[] = { "float32-2-0.npy",
					     "float32-5-0.npy", NULL };
	struct pen_err err = { 0 };
	struct drv_rows rows = { 0 };
	struct drv d;

	CHECK_EQ(open_many(&d, alike, "auto", &err), 0);
	CHECK_EQ(d.ix.nsamples, 2);
	CHECK(d.f->uniform);
	CHECK_EQ(d.f->field[0].max_bytes, 48);
	drv_close(&d);

	CHECK_EQ(open_many(&d, vary, "file", &err), 0);
	CHECK(d.f->all_plain && !d.f->uniform);
	CHECK_EQ(d.f->field[0].shape[0], -1);
	CHECK_EQ(d.f->field[0].shape[1], -1);
	CHECK_EQ(d.f->field[0].max_bytes, 48);
	CHECK_EQ(drv_sample(&d, 1, 0, &rows, &err), 0);
	CHECK_EQ(rows.len[0], 24);
	drv_rows_free(&rows);
	drv_close(&d);

	CHECK_EQ(open_many(&d, ranks, "file", &err), PEN_EDATA);
	CHECK_STR(err.where, "object-1");
	CHECK(strstr(err.msg, "1 axes (5)") && strstr(err.msg, "2 (3x4)"));
	drv_close(&d);
	CHECK_EQ(open_many(&d, types, "first", &err), PEN_EDATA);
	CHECK_STR(err.where, "object-1");
	CHECK(strstr(err.msg, "int16") && strstr(err.msg, "float32"));
	drv_close(&d);

	/* (0, 3) has no samples along the first axis, so it does not define the
	 * field */
	CHECK_EQ(open_many(&d, empty, "first", &err), 0);
	CHECK_EQ(d.ix.nsamples, 3);
	CHECK_EQ(d.f->field[0].shape[0], 4);
	drv_close(&d);
	/* but the file is a sample */
	CHECK_EQ(open_many(&d, empty, "file", &err), 0);
	CHECK_EQ(d.f->field[0].shape[0], -1);
	CHECK_EQ(drv_sample(&d, 0, 0, &rows, &err), 0);
	CHECK_EQ(rows.len[0], 0);
	drv_rows_free(&rows);
	drv_close(&d);
}

static void test_refused(void)
{
	static const struct pen_opts_kv kv[] = { { "trailing", "ignore" } };
	static const char *const scalar[] = { "float32-0-0.npy", NULL };
	static const char *const none_left[] = { "float32-2-0.npy", NULL };
	struct pen_err err = { 0 };
	struct drv d;
	size_t n;
	uint8_t *p;

	golden_check_refused("npy");
	CHECK_EQ(open_many(&d, scalar, "first", &err), PEN_EINVAL);
	CHECK(strstr(err.msg, "samples=file") != NULL);
	drv_close(&d);
	/* alone it would have a sample per entry of axis 0, but has none */
	CHECK_EQ(open_many(&d, scalar, "auto", &err), 0);
	drv_close(&d);
	/* (0, 3) along the last axis: 3 empty samples */
	CHECK_EQ(open_many(&d, none_left, "last", &err), PEN_EDATA);
	CHECK(strstr(err.msg, "0 bytes each") != NULL);
	drv_close(&d);
	p = golden_read("bad-long.npy", &n);
	CHECK_EQ(drv_open_one(&d, "npy", kv, 1, 2, (struct pen_span){ p, n },
			      &err),
		 0);
	drv_close(&d);
	free(p);
}

static void count_text(void *arg, const char *text)
{
	unsigned *n = arg;

	CHECK(text[0] != '\0');
	++*n;
}

static void count_fact(void *arg, const char *name, const char *value)
{
	(void)arg;
	CHECK(name[0] && value[0]);
}

static void test_describe(void)
{
	static const char *const plain[] = { "float32-5-0.npy", NULL };
	static const char *const worst[] = { "float32-8-1.npy", NULL };
	unsigned advice = 0;
	struct pen_describe s = { &advice, count_fact, count_text };
	struct drv d;

	CHECK_EQ(open_many(&d, plain, "first", NULL), 0);
	d.f->ops->describe(d.f, &s);
	CHECK_EQ(advice, 0);
	drv_close(&d);
	CHECK_EQ(open_many(&d, worst, "last", NULL), 0);
	d.f->ops->describe(d.f, &s);
	CHECK_EQ(advice, 2); /* strided and big-endian */
	drv_close(&d);
}

static void test_registry(void)
{
	CHECK(pen__format_for("a/b.NPY") == pen__format_find("npy"));
	CHECK(pen__format_for("x.npz") == pen__format_find("npz"));
	CHECK(pen__format_for("x.raw") == pen__format_find("raw"));
	CHECK(pen__format_for("x.npy.txt") == NULL);
	CHECK(pen__format_find("nothing") == NULL);
	CHECK(pen__format_takes(pen__format_find("npy"), ".npy"));
	CHECK(!pen__format_takes(pen__format_find("npy"), "npy"));
	CHECK_EQ(pen_dtype_size(PEN_C160), 32);
	CHECK_EQ(pen_dtype_size(PEN_NDTYPES), 0);
	CHECK_STR(pen_dtype_name(PEN_F16), "float16");
}

int main(void)
{
	test_registry();
	golden_make("npy");
	test_golden();
	test_write();
	test_write_refuses();
	test_damage();
	test_many();
	test_refused();
	test_describe();
	return test_end();
}
