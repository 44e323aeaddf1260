/* npz against NumPy: stored, deflated, zip64; read, written and damaged. */
#include <sys/mman.h>

#include "golden.h"

static const struct pen_opts_kv none = { NULL, NULL };
static const struct pen_opts_kv no_crc = { "crc", "false" };

static void test_golden(void)
{
	FILE *f = golden_list("manifest");
	struct golden_case c;
	unsigned n = 0;

	while (golden_next(f, &c)) {
		if (!ends_in(c.file, ".npz"))
			continue;
		golden_check(&c, "npz", none);
		golden_check(&c, "npz", no_crc);
		n++;
	}
	CHECK(n > 50);
	fclose(f);
}

static void test_damage(void)
{
	static const struct {
		const char *file;
		struct pen_opts_kv kv;
	} cases[] = {
		{ "savez.npz", { "samples", "last" } },
		{ "savez.npz", { "samples", "file" } },
		{ "savez-c.npz", { "samples", "last" } },
		{ "one-b-deflated.npz", { "samples", "file" } },
		{ "one-b-stream.npz", { "samples", "file" } },
		{ "zip64.npz", { "samples", "last" } },
		{ "left-out-c.npz", { "samples", "last" } },
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t n;
		uint8_t *p = golden_read(cases[i].file, &n);
		const struct pen_span s = { p, n };

		golden_check_damage("npz", cases[i].kv, s, true,
				    i == 3 ? 1 : 17);
		golden_check_nomem("npz", cases[i].kv, s);
		free(p);
	}
}

static int open_file(struct drv *d, const char *file,
		     const struct pen_opts_kv *kv, size_t nkv,
		     struct pen_err *err)
{
	size_t n;
	uint8_t *p = golden_read(file, &n);
	int rc = drv_open_one(d, "npz", kv, nkv, 2, (struct pen_span){ p, n },
			      err);

	free(p);
	return rc;
}

static void test_fields(void)
{
	struct pen_opts_kv kv[] = { { "samples", "first" },
				    { "fields", "y,x" } };
	struct pen_err err = { 0 };
	struct drv d;

	CHECK_EQ(open_file(&d, "table-stored.npz", kv, 2, &err), 0);
	CHECK_EQ(d.f->nfields, 2);
	CHECK_STR(d.f->field[0].name, "y");
	CHECK_STR(d.f->field[1].name, "x");
	drv_close(&d);
	kv[1].value = "y,nothing";
	CHECK_EQ(open_file(&d, "table-stored.npz", kv, 2, &err), PEN_ENOTFOUND);
	CHECK(strstr(err.msg, "nothing.npy") != NULL);
	drv_close(&d);
	/* a requested member that is not numeric is an error */
	kv[0].value = "file";
	kv[1].value = "x,o";
	CHECK_EQ(open_file(&d, "left-out.npz", kv, 2, &err), PEN_ENOTSUP);
	CHECK(strstr(err.msg, "pickle") != NULL);
	CHECK(strstr(err.where, "o.npy") != NULL);
	drv_close(&d);
	/* x and y differ in length along the first axis */
	kv[0].value = "first";
	CHECK_EQ(open_file(&d, "savez.npz", kv, 1, &err), PEN_EDATA);
	CHECK(strstr(err.msg, "samples=first") != NULL);
	drv_close(&d);
}

/* Flags of units. */
static void test_units(void)
{
	struct pen_opts_kv kv[] = { { "samples", "first" },
				    { "fields", "x" },
				    { "crc", "true" } };
	struct pen_unit u;
	struct drv d;

	CHECK_EQ(open_file(&d, "table-stored.npz", kv, 3, NULL), 0);
	d.f->ops->locate(d.f, 0, 2, &u);
	CHECK_EQ(u.flags, PEN_UNIT_SHARED | PEN_UNIT_CRC32);
	CHECK(!d.f->all_plain);
	drv_close(&d);
	kv[2].value = "false";
	CHECK_EQ(open_file(&d, "table-stored.npz", kv, 3, NULL), 0);
	d.f->ops->locate(d.f, 0, 2, &u);
	CHECK_EQ(u.flags, PEN_UNIT_PLAIN);
	CHECK_EQ(u.len, 48);
	CHECK(d.f->all_plain && d.f->uniform);
	drv_close(&d);
	CHECK_EQ(open_file(&d, "table-deflated.npz", kv, 3, NULL), 0);
	d.f->ops->locate(d.f, 0, 2, &u);
	CHECK_EQ(u.flags, PEN_UNIT_SHARED | PEN_UNIT_COMPRESSED);
	CHECK_EQ(d.f->scratch_size, 0);
	drv_close(&d);
	kv[0].value = "file";
	CHECK_EQ(open_file(&d, "table-deflated.npz", kv, 3, NULL), 0);
	d.f->ops->locate(d.f, 0, 0, &u);
	CHECK_EQ(u.flags, 0);
	CHECK_EQ(d.f->scratch_size, u.size);
	drv_close(&d);
	kv[2].value = "true";
	CHECK_EQ(open_file(&d, "table-stored.npz", kv, 3, NULL), 0);
	d.f->ops->locate(d.f, 0, 0, &u);
	CHECK_EQ(u.flags, PEN_UNIT_PLAIN | PEN_UNIT_CRC32);
	CHECK(d.f->all_plain);
	drv_close(&d);
}

static void test_many(void)
{
	static const struct pen_opts_kv kv = { "samples", "file" };
	static const char *const files[] = { "dlio-stored.npz", "savez-c.npz",
					     "left-out.npz",
					     "one-a-stored.npz" };
	struct pen_err err = { 0 };
	struct drv_rows rows = { 0 };
	struct drv d;

	CHECK_EQ(drv_start(&d, pen__format_find("npz"), &kv, 1, &err), 0);
	for (unsigned i = 0; i < 3; i++) {
		size_t n;
		uint8_t *p = golden_read(files[i], &n);

		drv_add(&d, p, n);
		free(p);
	}
	CHECK_EQ(drv_bind(&d, 0, &err), 0);
	CHECK_EQ(d.ix.nblobs, 2); /* skipped members do not count */
	CHECK_EQ(d.f->nfields, 2);
	for (uint32_t i = 0; i < 3; i++) {
		CHECK_EQ(drv_sample(&d, i, 0, &rows, &err), 0);
		drv_rows_free(&rows);
	}
	drv_close(&d);
	CHECK_EQ(drv_start(&d, pen__format_find("npz"), &kv, 1, &err), 0);
	for (unsigned i = 0; i < 2; i++) {
		size_t n;
		uint8_t *p = golden_read(files[3 * i], &n);

		drv_add(&d, p, n);
		free(p);
	}
	CHECK_EQ(drv_bind(&d, 0, &err), PEN_EDATA);
	CHECK(strstr(err.where, "object-1") && strstr(err.msg, "fields="));
	drv_close(&d);
}

/* x and y of savez.npz against their dumps, samples along axis 0. */
static int write_dlio(const struct pen_opts_kv *kv, size_t nkv,
		      struct golden_out *out)
{
	struct pen_field fd[2] = {
		{ .name = "x", .dtype = PEN_U8, .ndim = 2, .shape = { 5, 7 } },
		{ .name = "y", .dtype = PEN_I64 },
	};
	size_t n[2];
	uint8_t *x = golden_read("savez.npz.last2.x.raw", &n[0]);
	uint8_t *y = golden_read("savez.npz.last2.y.raw", &n[1]);
	const void *data[2] = { x, y };
	struct pen_table t = {
		.nsamples = 4, .nfields = 2, .field = fd, .data = data
	};
	struct pen_format *f;
	int rc;

	*out = (struct golden_out){ .out.write = golden_write };
	rc = pen__format_open(&f, pen__format_find("npz"), kv, nkv, NULL);
	if (rc == 0)
		rc = f->ops->write(f, &t, &out->out, NULL);
	pen__format_close(f);
	free(x);
	free(y);
	return rc;
}

/* NumPy reads our files like its own. */
static void check_with_numpy(const struct golden_out *out)
{
	static const char compare[] =
		"import numpy as np, zipfile\n"
		"a, b = np.load('ours.npz'), np.load('savez.npz')\n"
		"assert zipfile.ZipFile('ours.npz').testzip() is None\n"
		"assert a.files == b.files\n"
		"for k in a.files:\n"
		"    assert a[k].dtype == b[k].dtype\n"
		"    assert np.array_equal(a[k], b[k])\n";
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/ours.npz", golden_dir);
	f = fopen(path, "wb");
	CHECK(f && fwrite(out->buf.p, 1, out->buf.n, f) == out->buf.n);
	if (f)
		fclose(f);
	CHECK(golden_python(golden_dir, "-c", compare));
}

static void test_write(void)
{
	struct pen_opts_kv kv[] = { { "samples", "last" },
				    { "compress", "true" },
				    { "level", "6" } };
	static const char *const levels[] = { "1", "12" };
	struct golden_out out;
	size_t n;
	uint8_t *p = golden_read("savez.npz", &n);

	CHECK_EQ(write_dlio(kv, 1, &out), 0);
	check_with_numpy(&out);
	/* newer Pythons write 4.5, older ones 2.0 */
	if (p[4] == 20)
		CHECK(out.buf.n == n && memcmp(out.buf.p, p, n) == 0);
	pen__buf_fini(&out.buf);
	free(p);
	for (unsigned i = 0; i < 2; i++) {
		kv[2].value = levels[i];
		CHECK_EQ(write_dlio(kv, 3, &out), 0);
		check_with_numpy(&out);
		pen__buf_fini(&out.buf);
	}
	for (uint64_t i = 1;; i++) {
		int rc;

		pen__mem_fail_nth(i, false);
		rc = write_dlio(kv, 3, &out);
		n = pen__mem_count();
		pen__mem_fail_nth(0, false);
		pen__buf_fini(&out.buf);
		if (n < i) {
			CHECK_EQ(rc, 0);
			break;
		}
		CHECK_EQ(rc, PEN_ENOMEM);
	}
}

/*
 * More than 2 GiB, without using memory: the array is a mapping of zeros that
 * is never written, and only the small pieces of the output are kept.
 */
#define BIG_ROW ((size_t)2200 << 20)

struct sparse {
	struct pen_out out;
	struct pen_peek pk;
	uint64_t at;
	unsigned n;
	struct {
		uint64_t at;
		struct pen_buf b;
	} piece[16];
};

static int sparse_write(struct pen_out *o, const void *p, size_t n,
			struct pen_err *err)
{
	struct sparse *s = (struct sparse *)o;

	(void)err;
	if (n < 1u << 20 && CHECK(s->n < 16)) {
		s->piece[s->n].at = s->at;
		pen__buf_put(&s->piece[s->n++].b, p, n);
	}
	s->at += n;
	return 0;
}

static int sparse_read(struct pen_peek *pk, uint64_t off, void *buf, size_t len,
		       struct pen_err *err)
{
	struct sparse *s =
		(struct sparse *)((char *)pk - offsetof(struct sparse, pk));
	uint8_t *to = buf;

	(void)err;
	DRV_MUST(off <= s->at && len <= s->at - off);
	memset(buf, 0, len);
	for (unsigned i = 0; i < s->n; i++) {
		const struct pen_buf *b = &s->piece[i].b;

		for (size_t j = 0; j < b->n; j++)
			if (s->piece[i].at + j >= off &&
			    s->piece[i].at + j < off + len)
				to[s->piece[i].at + j - off] = b->p[j];
	}
	return 0;
}

static void test_beyond_2g(void)
{
	struct pen_field fd[2] = {
		{ .name = "x",
		  .dtype = PEN_U8,
		  .ndim = 1,
		  .shape = { (int64_t)BIG_ROW } },
		{ .name = "y", .dtype = PEN_I32 },
	};
	struct sparse s = { .out.write = sparse_write };
	struct pen_found found = { 0 };
	struct pen_err err = { 0 };
	void *zero = mmap(NULL, BIG_ROW, PROT_READ,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int32_t seven = 7;
	const void *data[2] = { zero, &seven };
	struct pen_table t = {
		.nsamples = 1, .nfields = 2, .field = fd, .data = data
	};
	struct pen_format *f;

	if (zero == MAP_FAILED)
		return;
	CHECK_EQ(pen__format_open(&f, pen__format_find("npz"), NULL, 0, NULL),
		 0);
	CHECK_EQ(f->ops->write(f, &t, &s.out, &err), 0);
	s.pk = (struct pen_peek){ .name = "sparse",
				  .size = s.at,
				  .read = sparse_read };
	f->nobjects_hint = 2;
	if (!CHECK_EQ(f->ops->index(f, &s.pk, &found, &err), 0))
		fprintf(stderr, "  %s: %s\n", err.where, err.msg);
	CHECK_EQ(found.nsamples, 1);
	for (unsigned i = 0; i < s.n; i++)
		pen__buf_fini(&s.piece[i].b);
	pen__buf_fini(&found.blob);
	pen__format_close(f);
	munmap(zero, BIG_ROW);
}

int main(void)
{
	golden_make("npz");
	test_golden();
	test_fields();
	test_units();
	test_many();
	golden_check_refused("npz");
	test_damage();
	test_write();
	test_beyond_2g();
	return test_end();
}
