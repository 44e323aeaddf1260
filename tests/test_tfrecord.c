/* tfrecord: files made in Python, read, damaged, written and read again. */
#include "formats.h"

#include "codec/crc32c.h"

static const struct pen_opts_kv none = { "crc", "true" };

static void test_damage(void)
{
	const struct pen_opts_kv nocrc = { "crc", "false" };
	const struct pen_opts_kv bytes = { "decode", "false" };
	size_t n;
	uint8_t *p = golden_read("small.tfrecord", &n);

	formats_damage("small.tfrecord", "tfrecord", NULL, 0, true, 3);
	formats_damage("same.tfrecord", "tfrecord", NULL, 0, true, 3);
	formats_damage("small.tfrecord", "tfrecord", &nocrc, 1, false, 3);
	formats_damage("same.tfrecord", "tfrecord", &nocrc, 1, false, 3);
	formats_damage("small.tfrecord", "tfrecord", &bytes, 1, true, 17);
	golden_check_nomem("tfrecord", none, (struct pen_span){ p, n });
	golden_check_nomem("tfrecord", bytes, (struct pen_span){ p, n });
	free(p);
}

/* A damaged record costs one sample, and no other sample's shape. */
static void test_skip(void)
{
	struct pen_loader *l = eng_open(NULL,
					"%s/bad/data.tfrecord "
					"sampler=sequential epochs=1 "
					"batch_size=3 on_error=skip",
					golden_dir);
	struct pen_batch *b;

	if (!CHECK(l != NULL) || !CHECK_EQ(pen_loader_next(l, &b, NULL), 0))
		return;
	CHECK_EQ(b->nskipped, 1);
	CHECK_EQ(b->nsamples, 2);
	CHECK_EQ(b->tensors[0].layout, PEN_DENSE);
	pen_batch_unref(b);
	pen_loader_close(l);
}

#define NROWS 5
static float xs[NROWS][2] = {
	{ 1, 2 }, { 3, 4 }, { 5, 6 }, { 7, 8 }, { 9, -1.5f }
};
static int64_t ys[NROWS] = { 0, 1, -1, INT64_MAX, INT64_MIN };
static uint8_t zs[NROWS][3] = { "ab", "cd", "ef", "gh", "ij" };

static struct pen_field fields[] = {
	{ .name = "x", .dtype = PEN_F32, .ndim = 1, .shape = { 2 } },
	{ .name = "y", .dtype = PEN_I64 },
	{ .name = "z", .dtype = PEN_U8, .ndim = 1, .shape = { 3 } },
};
static const void *const data[] = { xs, ys, zs };

static void check_back(struct drv *d)
{
	struct drv_rows r = { 0 };

	for (uint64_t k = 0; k < NROWS; k++) {
		CHECK_EQ(drv_sample(d, 0, k, &r, NULL), 0);
		CHECK(r.len[0] == 8 && !memcmp(r.p[0], xs[k], 8));
		CHECK(r.len[1] == 8 && !memcmp(r.p[1], &ys[k], 8));
		CHECK(r.len[2] == 3 && !memcmp(r.p[2], zs[k], 3));
		drv_rows_free(&r);
	}
}

static void test_write(void)
{
	struct pen_table t = {
		.nsamples = NROWS, .nfields = 3, .field = fields, .data = data
	};
	struct golden_out out = { .out.write = golden_write };
	struct pen_err err = { 0 };
	struct pen_format *f;
	struct drv d;

	CHECK_EQ(pen__format_open(&f, pen__format_find("tfrecord"), NULL, 0,
				  NULL),
		 0);
	CHECK_EQ(f->ops->write(f, &t, &out.out, &err), 0);
	CHECK_EQ(drv_open_one(&d, "tfrecord", NULL, 0, 1,
			      (struct pen_span){ out.buf.p, out.buf.n }, &err),
		 0);
	CHECK_EQ(d.f->nfields, 3);
	CHECK_EQ(d.f->field[1].ndim, 0);
	check_back(&d);
	drv_close(&d);
	pen__buf_fini(&out.buf);
	fields[1].dtype = PEN_U64;
	CHECK_EQ(f->ops->write(f, &t, &out.out, &err), PEN_EINVAL);
	CHECK(strstr(err.msg, "style=dlio") != NULL);
	fields[1].dtype = PEN_I64;
	pen__format_close(f);
	formats_write_nomem("tfrecord", NULL, 0, &t);
}

/* DLIO's layout: known bytes. */
static void test_write_dlio(void)
{
	static const uint8_t payload[] =
		"\x0a\x26\x0a\x12\x0a\x05image\x12\x09\x0a\x07\x0a\x05hello"
		"\x0a\x10\x0a\x04size\x12\x08\x1a\x06\x0a\x04\x05\x05\x05\x05";
	const struct pen_opts_kv kv = { "style", "dlio" };
	struct pen_field fd = {
		.name = "x", .dtype = PEN_U8, .ndim = 1, .shape = { 5 }
	};
	const void *hello = "hello";
	struct pen_table t = {
		.nsamples = 1, .nfields = 1, .field = &fd, .data = &hello
	};
	struct golden_out out = { .out.write = golden_write };
	const uint8_t *p;
	struct pen_format *f;
	uint32_t crc;

	CHECK_EQ(pen__format_open(&f, pen__format_find("tfrecord"), &kv, 1,
				  NULL),
		 0);
	CHECK_EQ(f->ops->write(f, &t, &out.out, NULL), 0);
	p = out.buf.p;
	/* size is one number, 5: three bytes shorter than the text above */
	CHECK_EQ(out.buf.n, 16 + 37);
	CHECK(p[12] == 0x0a && p[13] == 0x23);
	CHECK(!memcmp(p + 14, payload + 2, 20));
	CHECK(!memcmp(p + 34,
		      "\x0a\x0d\x0a\x04size\x12\x05\x1a\x03\x0a\x01"
		      "\x05",
		      15));
	crc = pen__crc32c_mask(pen__crc32c_table(0, p + 12, 37));
	CHECK(!memcmp(p + 49, &crc, 4));
	pen__buf_fini(&out.buf);
	pen__format_close(f);
}

int main(void)
{
	formats_make("tfrecord", "numpy");
	formats_check(12);
	formats_refuse(12);
	test_damage();
	test_skip();
	test_write();
	test_write_dlio();
	return test_end();
}
