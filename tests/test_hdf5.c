/*
 * hdf5 against h5py: every layout, chunk index, filter and type that h5py can
 * write, value by value, from memory and through the loader; the structure
 * reader; damaged files; our files read by h5py.
 */
#include "base/rng.h"
#include "codec/codec.h"
#include "codec/lookup3.h"
#include "codec/lzf.h"
#include "codec/byte_shuffle.h"
#include "engine.h"
#include "format/hdf5/hdf5_int.h"
#include "golden.h"

#define MOST_SAMPLES 16u

static void make_files(void)
{
	const char *source = getenv("SOURCE");
	char root[PATH_MAX] = __FILE__, cmd[3 * PATH_MAX];

	if (!test_python_has("anndata, h5py"))
		TEST_SKIP("python3-anndata or python3-h5py is not installed");
	for (int i = 0; i < 2; i++)
		if (strrchr(root, '/'))
			*strrchr(root, '/') = '\0';
	if (!source)
		source = root;
	snprintf(golden_dir, sizeof(golden_dir), "golden-hdf5-%d",
		 (int)getpid());
	atexit(golden_remove);
	snprintf(cmd, sizeof(cmd),
		 PYTHON " '%s/tests/data/make_hdf5.py' %s "
			"'%s/../shared/data/anndata'",
		 source, golden_dir, source);
	if (!CHECK(system(cmd) == 0))
		exit(1);
}

/* Files with a filter that is not in this build. */
static bool absent(const struct golden_case *c)
{
	return (strstr(c->file, "filter-32015") && !pen__codec_find("zstd")) ||
	       (strstr(c->file, "filter-32004") && !pen__codec_find("lz4")) ||
	       (strstr(c->file, "filter-32001") && !pen__codec_find("blosc"));
}

/* ---- values ---- */

static void test_golden(void)
{
	FILE *f = golden_list("manifest");
	struct golden_case c;
	unsigned n = 0;

	while (golden_next(f, &c)) {
		struct pen_opts_kv one = { "fields", c.field };
		const bool big = strncmp(c.file, "many-", 5) == 0 ||
				 strncmp(c.file, "types-", 6) == 0;

		if (absent(&c))
			continue;
		if (!big)
			golden_check(&c, "hdf5", (struct pen_opts_kv){ 0 });
		if (big || n % 8 == 0)
			golden_check(&c, "hdf5", one);
		n++;
	}
	CHECK(n > 500);
	fclose(f);
}

/* One case through the entire engine, shuffled. */
static void load_case(const struct golden_case *c, const char *more)
{
	struct pen_err err;
	struct pen_loader *l = eng_open(&err,
					"%s/%s format.samples=%s "
					"format.fields=%s batch_size=3 "
					"threads=2 epochs=2 %s",
					golden_dir, c->file, c->samples,
					c->field, more);
	struct pen_batch *b;
	uint64_t n = 0, ends = 0;
	size_t nraw, row;
	uint8_t *raw = golden_read(c->raw, &nraw);
	int rc;

	if (!CHECK(l != NULL)) {
		fprintf(stderr, "  %s %s: %s: %s\n", c->file, c->field,
			err.where, err.msg);
		free(raw);
		return;
	}
	row = c->nsamples ? nraw / c->nsamples : 0;
	while (ends < 2) {
		rc = pen_loader_next(l, &b, &err);
		if (rc == PEN_END) {
			ends++;
			continue;
		}
		if (!CHECK_EQ(rc, 0)) {
			fprintf(stderr, "  %s %s %s: %s: %s\n", c->file,
				c->field, more, err.where, err.msg);
			break;
		}
		for (uint32_t i = 0; i < b->nsamples; i++, n++)
			if (!CHECK(memcmp((uint8_t *)b->tensors[0].data +
						  i * row,
					  raw + b->ids[i] * row, row) == 0))
				fprintf(stderr, "  %s %s %s sample %d\n",
					c->file, c->field, more,
					(int)b->ids[i]);
		pen_batch_unref(b);
	}
	if (ends == 2)
		CHECK_EQ(n, 2 * c->nsamples);
	pen_loader_close(l);
	free(raw);
}

static void test_loader(void)
{
	static const char *const how[] = { "sampler=shuffle store=posix",
					   "sampler=block store=mmap",
					   "sampler=sequential" };
	FILE *f = golden_list("manifest");
	struct golden_case c;
	unsigned n = 0, k = 0;

	while (golden_next(f, &c)) {
		/* a sample of all cases, and every special one */
		const bool all = strncmp(c.file, "holes", 5) == 0 ||
				 strncmp(c.file, "small", 5) == 0 ||
				 strncmp(c.file, "filter", 6) == 0;

		if (!c.nsamples || c.nsamples > 9000 || absent(&c) ||
		    (n++ % 9 && !all))
			continue;
		load_case(&c, how[k++ % 3]);
	}
	CHECK(k > 50);
	fclose(f);
}

/* ---- structures ---- */

struct seen {
	struct pen_h5 *h;
	unsigned nobjects, ndatasets, nattrs, nstrings, depth;
	uint64_t path[16];
	uint64_t visited[512];
	unsigned nvisited;
	bool strict; /* the file is not damaged */
	int rc;
};

static int see_attr(void *arg, const struct pen_h5_attr *a, struct pen_err *err)
{
	struct seen *s = arg;
	struct pen_buf text = { 0 };
	uint64_t n;

	s->nattrs++;
	CHECK(pen__h5_count(&a->space, &n));
	if (a->type.vlen_string || a->type.cls == PEN_H5_STRING) {
		for (uint64_t i = 0; i < n; i++) {
			int rc = pen__h5_string(s->h, &a->type, a->data, i,
						&text, err);

			CHECK(rc == 0 || !s->strict);
		}
		s->nstrings++;
	}
	if (!s->strict) {
		pen__buf_fini(&text);
		return 0;
	}
	pen__buf_put(&text, "", 1);
	if (strcmp(a->name, "utf8") == 0)
		CHECK_STR((char *)text.p, "h\xc3\xa9llo");
	if (strcmp(a->name, "list") == 0)
		CHECK_STR((char *)text.p, "xyy");
	if (strcmp(a->name, "fixed") == 0)
		CHECK_STR((char *)text.p, "fixed");
	if (strcmp(a->name, "vector") == 0)
		CHECK(a->type.dtype == PEN_F64 && n == 3 && a->data.n == 24);
	if (strcmp(a->name, "huge") == 0)
		CHECK(a->type.dtype == PEN_I64 && a->data.n == 160000 &&
		      a->data.p[8 * 300] == 300 % 256);
	pen__buf_fini(&text);
	return 0;
}

static int see_object(void *arg, const struct pen_h5_link *l,
		      struct pen_err *err)
{
	struct seen *s = arg;
	struct pen_h5_head hd;
	struct pen_h5_data d;
	int rc;

	if (l->target || l->external)
		return 0;
	for (unsigned i = 0; i < s->nvisited; i++)
		if (s->visited[i] == l->addr)
			return 0;
	if (s->nvisited < 512)
		s->visited[s->nvisited++] = l->addr;
	rc = pen__h5_head_open(s->h, l->addr, &hd, err);
	if (rc < 0)
		return rc;
	s->nobjects++;
	rc = pen__h5_attrs(s->h, &hd, see_attr, s, err);
	if (rc >= 0 && pen__h5_is_dataset(&hd)) {
		rc = pen__h5_data_open(s->h, l->addr, &d, l->name, err);
		s->ndatasets++;
		if (rc >= 0)
			pen__h5_data_close(&d);
	} else if (rc >= 0 && pen__h5_is_group(&hd)) {
		rc = pen__h5_links(s->h, l->addr, see_object, s, err);
	}
	pen__h5_head_close(&hd);
	return rc;
}

/* Walks a file; the number of objects seen. */
static struct seen walk(struct pen_span bytes, bool strict, struct pen_err *err)
{
	struct drv_object o = { .p = malloc(bytes.n ? bytes.n : 1),
				.n = bytes.n };
	struct seen s = { .strict = strict };
	struct pen_h5_link root = { .name = "/" };

	memcpy(o.p, bytes.p, bytes.n);
	o.pk = (struct pen_peek){ .name = "file",
				  .size = o.n,
				  .read = drv_peek };
	s.rc = pen__h5_open(&s.h, &o.pk, err);
	if (s.rc >= 0) {
		root.addr = pen__h5_root(s.h);
		s.rc = see_object(&s, &root, err);
	}
	pen__h5_close(s.h);
	free(o.p);
	return s;
}

static void test_tree(void)
{
	FILE *f = golden_list("tree");
	unsigned nobjects, ndatasets, nattrs, nstrings, nfiles = 0;
	char name[128];

	while (fscanf(f, "%127s %u %u %u %u", name, &nobjects, &ndatasets,
		      &nattrs, &nstrings) == 5) {
		struct pen_err err = { 0 };
		size_t n;
		uint8_t *p = golden_read(name, &n);
		struct seen s = walk((struct pen_span){ p, n }, true, &err);

		if (!CHECK_EQ(s.rc, 0))
			fprintf(stderr, "  %s: %s\n", name, err.msg);
		CHECK_EQ(s.nobjects, nobjects);
		CHECK_EQ(s.ndatasets, ndatasets);
		CHECK_EQ(s.nattrs, nattrs);
		CHECK_EQ(s.nstrings, nstrings);
		CHECK(nattrs > 20 && nstrings > 20);
		nfiles++;
		free(p);
	}
	CHECK(nfiles > 4);
	fclose(f);
}

/* Paths through soft links, and rejected ones. */
static void test_paths(void)
{
	static const struct {
		const char *path;
		int rc;
	} paths[] = {
		{ "a/b/c/x", 0 },
		{ "a/soft", 0 },
		{ "a/near/x", 0 },
		{ "/y", 0 },
		{ "a//b/./c/x", 0 },
		{ "many/a-rather-long-name-number-299", PEN_ENOTFOUND },
		{ "a/dangling", PEN_ENOTFOUND },
		{ "a/far", PEN_ENOTSUP },
		{ "loop", PEN_ENOTSUP },
		{ "none", PEN_ENOTFOUND },
		{ "y/x", PEN_ENOTFOUND },
		{ "names", PEN_ENOTSUP },
		{ "record", PEN_ENOTSUP },
		{ "y,y", PEN_EINVAL },
	};
	static const char *const files[] = { "tree-earliest.h5",
					     "tree-latest.h5" };

	for (unsigned i = 0; i < 2; i++) {
		size_t n;
		uint8_t *p = golden_read(files[i], &n);

		for (unsigned j = 0; j < sizeof(paths) / sizeof(*paths); j++) {
			struct pen_opts_kv kv = { "fields", paths[j].path };
			struct pen_err err = { 0 };
			struct drv d;

			if (!CHECK_EQ(drv_open_one(&d, "hdf5", &kv, 1, 1,
						   (struct pen_span){ p, n },
						   &err),
				      paths[j].rc))
				fprintf(stderr, "  %s: %s\n", paths[j].path,
					err.msg);
			drv_close(&d);
		}
		free(p);
	}
}

/* ---- units ---- */

static void test_units(void)
{
	static const struct {
		const char *file;
		unsigned flags, nunits;
		bool all_plain, uniform;
	} cases[] = {
		{ "l-latest-contiguous-none.h5", PEN_UNIT_PLAIN, 1, true,
		  true },
		{ "compact-latest.h5", PEN_UNIT_PLAIN, 1, true, true },
		{ "l-latest-rows-none.h5", PEN_UNIT_PLAIN, 1, true, false },
		{ "l-latest-rows-gzip.h5",
		  PEN_UNIT_SHARED | PEN_UNIT_COMPRESSED, 1, false, false },
		{ "l-latest-grid-none.h5", PEN_UNIT_SHARED, 6, false, false },
		{ "l-latest-grid-all.h5", PEN_UNIT_SHARED | PEN_UNIT_COMPRESSED,
		  6, false, false },
		{ "l-latest-row-gzip.h5", 0, 1, false, false },
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pen_unit u[8];
		struct drv d;
		size_t n;
		uint8_t *p = golden_read(cases[i].file, &n);

		CHECK_EQ(drv_open_one(&d, "hdf5", NULL, 0, 1,
				      (struct pen_span){ p, n }, NULL),
			 0);
		CHECK_EQ(d.f->units_per_sample, cases[i].nunits);
		CHECK_EQ(d.f->all_plain, cases[i].all_plain);
		CHECK_EQ(d.f->uniform, cases[i].uniform);
		d.f->ops->locate(d.f, 0, 4, u);
		CHECK_EQ(u[0].flags, cases[i].flags);
		drv_close(&d);
		free(p);
	}
}

/* ---- codecs ---- */

static void test_shuffle(void)
{
	static const size_t items[] = { 1, 2, 3, 4, 8, 16 };
	uint8_t in[1000], out[1000], sum[4] = { 0 };

	pen__rng_fill(3, 0, 0, in, sizeof(in));
	for (unsigned i = 0; i < 6; i++) {
		for (size_t n = 0; n < sizeof(in); n += 37) {
			const size_t k = items[i], count = n / k;
			bool ok = true;

			pen__unshuffle(k, in, n, out);
			for (size_t j = 0; j < n; j++)
				ok &= out[j] ==
				      (j < count * k ? in[j % k * count + j / k]
						     : in[j]);
			CHECK(ok);
		}
	}
	CHECK(pen__fletcher32_ok(in, 0, sum));
	CHECK(!pen__fletcher32_ok(in, 10, sum));
}

/* LZF round trips: noise, runs, and repetitions at all distances. */
static void test_lzf(void)
{
	const struct pen_codec *c = pen__codec_find("lzf");
	static uint8_t in[20000], packed[22000], out[20000];
	size_t n, got;

	for (unsigned i = 0; i < 60; i++) {
		const size_t len = i < 20 ? i : (size_t)i * 333;
		const unsigned period = 1u << (i % 15);

		pen__rng_fill(9, i, 0, in, sizeof(in));
		for (size_t j = period; j < len && i % 3; j++)
			in[j] = in[j - period];
		n = pen__lzf_pack(in, len, packed, sizeof(packed));
		CHECK(n > 0 || !len);
		CHECK_EQ(c->unpack(NULL, packed, n, out, len, &got), 0);
		CHECK(got == len && memcmp(in, out, len) == 0);
		if (len) /* too little room */
			CHECK(c->unpack(NULL, packed, n, out, len - 1, &got));
		CHECK(!len || !pen__lzf_pack(in, len, packed, n - 1));
	}
}

static void test_codecs(void)
{
	static const char *const names[] = { "zlib", "lzf", "zstd", "lz4",
					     "blosc" };
	uint8_t in[64], *out = malloc(100);
	struct pen_scratch s;

	CHECK_EQ(pen__scratch_init(&s, 0), 0);
	CHECK(!pen__codec_find("szip") && !pen__codec_absent("szip"));
	for (unsigned i = 0; i < 5; i++) {
		const struct pen_codec *c = pen__codec_find(names[i]);
		size_t got;

		CHECK((c != NULL) == (pen__codec_absent(names[i]) == NULL));
		/* noise: an error, or at most the size of the buffer */
		for (uint64_t k = 0; c && k < 3000; k++) {
			pen__rng_fill(5, k, 0, in, sizeof(in));
			if (c->unpack(&s, in, k % 65, out, 100, &got) == 0)
				CHECK(got <= 100);
		}
	}
	pen__scratch_fini(&s);
	free(out);
}

/* ---- damage ---- */

/* Opens arbitrary bytes and reads some samples. */
static void try_bytes(struct pen_span bytes, const char *samples)
{
	const struct pen_opts_kv kv = { "samples", samples };
	struct pen_err err = { 0 };
	struct drv_rows rows = { 0 };
	struct drv d;

	if (drv_open_one(&d, "hdf5", &kv, 1, 1, bytes, &err) >= 0) {
		const uint64_t n = d.ix.nsamples;

		for (uint64_t i = 0; i < n && i < MOST_SAMPLES; i++) {
			uint64_t k = i & 1 ? n - 1 - i / 2 : i / 2;

			(void)drv_sample(&d, 0, k, &rows, NULL);
			drv_rows_free(&rows);
		}
	} else {
		CHECK(err.code < 0 && err.msg[0] && err.where[0]);
	}
	drv_close(&d);
}

static void truncate_file(const uint8_t *p, size_t n)
{
	const size_t step = (n > 4000 ? n / 2000 : 1) * TEST_EVERY(3);

	for (size_t k = 0; k < n; k += step) {
		try_bytes((struct pen_span){ p, k }, "first");
		if (k % 16 == 0)
			walk((struct pen_span){ p, k }, false, NULL);
	}
}

/* Changes 1 to 4 bytes, close together in half of the cases. */
static void mutate_file(const uint8_t *p, size_t n, uint64_t id, unsigned times)
{
	struct pen_rng r = pen__rng(17, id);
	uint8_t *copy = malloc(n);

	for (unsigned i = 0; i < times; i++) {
		const unsigned k = 1 + (unsigned)pen__rng_below(&r, 4);
		size_t at = (size_t)pen__rng_below(&r, n);

		memcpy(copy, p, n);
		for (unsigned j = 0; j < k; j++) {
			copy[at] = (uint8_t)pen__rng_u64(&r);
			if (pen__rng_below(&r, 4) == 0)
				copy[at] = pen__rng_below(&r, 2) ? 0xff : 0;
			at = i & 1 ? (at + 1) % n
				   : (size_t)pen__rng_below(&r, n);
		}
		try_bytes((struct pen_span){ copy, n },
			  i & 2 ? "file" : "first");
		if (i % 8 == 0)
			walk((struct pen_span){ copy, n }, false, NULL);
	}
	free(copy);
}

/* Damages a block and corrects its checksum. */
static void mutate_summed(const char *file, const char *sign, size_t len_at,
			  size_t len)
{
	struct pen_rng r = pen__rng(18, len_at);
	size_t n, at = 0;
	uint8_t *p = golden_read(file, &n), *copy = malloc(n);

	while (at + 16 < n && memcmp(p + at, sign, 4) != 0)
		at++;
	if (len_at)
		memcpy(&len, p + at + len_at, 8);
	for (unsigned i = 0; CHECK(len <= n - at) && i < 1000; i++) {
		uint32_t sum;

		memcpy(copy, p, n);
		for (unsigned k = 0; k < 1 + i % 3; k++)
			copy[at + 4 + pen__rng_below(&r, len - 8)] =
				(uint8_t)(i & 1 ? 0xff : pen__rng_u64(&r));
		sum = pen__lookup3(copy + at, len - 4);
		memcpy(copy + at + len - 4, &sum, 4);
		try_bytes((struct pen_span){ copy, n }, "file");
		walk((struct pen_span){ copy, n }, false, NULL);
	}
	free(copy);
	free(p);
}

static void test_damage(void)
{
	static const char *const kinds[] = { "flat", "grid", "gzip",
					     "grow", "tree", "row" };
	static const char *const others[] = {
		"holes-earliest.h5",	    "holes-latest.h5",
		"tree-earliest.h5",	    "tree-latest.h5",
		"user-512-earliest.h5",	    "masked.h5",
		"early-latest.h5",	    "filter-32015-latest.h5",
		"filter-32004-earliest.h5", "filter-32001-latest.h5",
		"types-earliest.h5",	    "extended-both-user.h5",
		"extended-table.h5",	    "sums-latest-4x8.h5"
	};
	char name[64];
	uint8_t *p;
	size_t n;

	for (unsigned i = 0; i < 12; i++) {
		snprintf(name, sizeof(name), "small-%s-%s.h5", kinds[i / 2],
			 i & 1 ? "latest" : "earliest");
		p = golden_read(name, &n);
		truncate_file(p, n);
		mutate_file(p, n, i, 1500 / TEST_EVERY(3));
		golden_check_nomem(
			"hdf5",
			(struct pen_opts_kv){ "samples",
					      i & 1 ? "first" : "file" },
			(struct pen_span){ p, n });
		free(p);
	}
	for (unsigned i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		p = golden_read(others[i], &n);
		mutate_file(p, n, 100 + i, 400 / TEST_EVERY(2));
		free(p);
	}
	mutate_summed("extended-both-user.h5", "MDCI", 6, 0);
	mutate_summed("extended-table.h5", "SMTB", 0, 4 + 30 + 4);
}

/* Damage in a checksummed file is detected, or does not change values. */
static void test_exact(void)
{
	size_t n;
	uint8_t *p = golden_read("small-grow-latest.h5", &n);
	struct golden_whole w = { 0 };
	unsigned nwrong = 0;
	struct drv d;

	CHECK_EQ(drv_open_one(&d, "hdf5", NULL, 0, 1, (struct pen_span){ p, n },
			      NULL),
		 0);
	golden_whole_of(&d, &w);
	drv_close(&d);
	for (size_t i = 0; i < n; i++) {
		p[i] ^= 0x10;
		if (drv_open_one(&d, "hdf5", NULL, 0, 1,
				 (struct pen_span){ p, n }, NULL) >= 0)
			nwrong += !golden_same(&d, &w, true);
		drv_close(&d);
		p[i] ^= 0x10;
	}
	CHECK_EQ(nwrong, 0);
	pen__free(w.rows);
	free(p);
}

/* ---- writing ---- */

/* Files ours-0.h5, ...; h5py checks all of them at the end, because loading it
 * takes longer than reading them. */
static unsigned nours;

static int write_file(const struct pen_opts_kv *kv, size_t nkv,
		      enum pen_dtype dtype, const uint8_t *data)
{
	struct pen_field fd = {
		.name = "x", .dtype = dtype, .ndim = 2, .shape = { 6, 5 }
	};
	const void *all[1] = { data };
	struct pen_table t = {
		.nsamples = 4, .nfields = 1, .field = &fd, .data = all
	};
	struct golden_out out = { .out.write = golden_write };
	struct pen_err err = { 0 };
	struct pen_format *f = NULL;
	char path[128];
	FILE *to;
	int rc;

	rc = pen__format_open(&f, pen__format_find("hdf5"), kv, nkv, &err);
	if (rc == 0)
		rc = f->ops->write(f, &t, &out.out, &err);
	pen__format_close(f);
	snprintf(path, sizeof(path), "%s/ours-%u.h5", golden_dir, nours);
	to = rc == 0 ? fopen(path, "wb") : NULL;
	if (to) {
		CHECK(fwrite(out.buf.p, 1, out.buf.n, to) == out.buf.n);
		fclose(to);
	}
	pen__buf_fini(&out.buf);
	return rc;
}

/* Reads the file back, and describes it for h5py. */
static void check_ours(enum pen_dtype dtype, unsigned nparts,
		       const uint8_t *data)
{
	char path[128];
	size_t n;
	struct drv_rows rows = { 0 };
	struct pen_err err = { 0 };
	struct drv d;
	uint8_t *p;
	FILE *f;

	snprintf(path, sizeof(path), "%s/ours-%u.raw", golden_dir, nours);
	f = fopen(path, "wb");
	CHECK(f && fwrite(data, pen_dtype_size(dtype), 120, f) == 120);
	CHECK(f && fclose(f) == 0);
	snprintf(path, sizeof(path), "%s/ours", golden_dir);
	f = fopen(path, "a");
	CHECK(f && fprintf(f, "%u %s\n", nparts,
			   dtype == PEN_F80 ? "longdouble"
					    : pen_dtype_name(dtype)) > 0);
	CHECK(f && fclose(f) == 0);
	snprintf(path, sizeof(path), "ours-%u.h5", nours++);
	p = golden_read(path, &n);
	CHECK_EQ(drv_open_one(&d, "hdf5", NULL, 0, 1, (struct pen_span){ p, n },
			      &err),
		 0);
	CHECK_EQ(d.f->nfields, nparts + 1);
	CHECK_EQ(drv_sample(&d, 0, 3, &rows, &err), 0);
	for (unsigned i = 0; i < nparts; i++)
		CHECK(memcmp(rows.p[i],
			     data + 3 * nparts * rows.len[i] + i * rows.len[i],
			     rows.len[i]) == 0);
	drv_rows_free(&rows);
	drv_close(&d);
	free(p);
}

static void check_by_h5py(void)
{
	static const char code[] =
		"import h5py, numpy as np\n"
		"n = 0\n"
		"for line in open('ours'):\n"
		"    parts, dtype = line.split()\n"
		"    h = h5py.File('ours-%d.h5' % n)\n"
		"    a = np.concatenate([h['records_%d' % i] for i in "
		"range(int(parts))], 1)\n"
		"    assert a.shape == (4, 6, 5) and a.dtype == dtype, line\n"
		"    raw = open('ours-%d.raw' % n, 'rb').read()\n"
		"    assert a.tobytes() == raw, (n, line)\n"
		"    y = h['labels']\n"
		"    assert y.dtype == 'i8' and not y[:].any(), line\n"
		"    n += 1\n"
		"assert n > 15, n\n";

	CHECK(golden_python(golden_dir, "-c", code));
}

static void test_write(void)
{
	struct pen_opts_kv kv[] = { { "compression", "gzip" },
				    { "shuffle", "true" },
				    { "chunk", "2x3x5" },
				    { "num_dset", "3" } };
	const struct pen_opts_kv parts = { "num_dset", "3" };
	struct pen_opts_kv wrong = { "chunk", "2x3" };
	uint8_t data[120 * 16];

	memset(data, 0, sizeof(data));
	if (write_file(NULL, 0, PEN_U8, data) == PEN_ENOTSUP)
		return; /* a build without libhdf5 */
	for (int t = PEN_BOOL; t <= PEN_F80; t++) {
		for (size_t i = 0; i < 120; i++)
			data[i * pen_dtype_size(t)] =
				t == PEN_BOOL ? i & 1 : (uint8_t)i;
		CHECK_EQ(write_file(NULL, 0, t, data), 0);
		check_ours(t, 1, data);
		memset(data, 0, sizeof(data));
	}
	pen__rng_fill(1, 2, 0, data, sizeof(data));
	CHECK_EQ(write_file(kv, 3, PEN_I32, data), 0);
	check_ours(PEN_I32, 1, data);
	kv[0].value = "lzf";
	CHECK_EQ(write_file(kv, 3, PEN_U16, data), 0);
	check_ours(PEN_U16, 1, data);
	memset(data, 7, sizeof(data)); /* noise is stored uncompressed */
	CHECK_EQ(write_file(kv, 1, PEN_F64, data), 0);
	check_ours(PEN_F64, 1, data);
	pen__rng_fill(1, 2, 0, data, sizeof(data));
	kv[0].value = "gzip";
	kv[2].value = "1x2x5";
	CHECK_EQ(write_file(kv, 4, PEN_I16, data), 0);
	check_ours(PEN_I16, 3, data);
	CHECK_EQ(write_file(&parts, 1, PEN_U64, data), 0);
	check_ours(PEN_U64, 3, data);
	check_by_h5py();
	CHECK_EQ(write_file(&wrong, 1, PEN_U8, data), PEN_EINVAL);
	wrong = (struct pen_opts_kv){ "num_dset", "4" };
	CHECK_EQ(write_file(&wrong, 1, PEN_U8, data), PEN_EINVAL);
	CHECK_EQ(write_file(NULL, 0, PEN_C64, data), PEN_ENOTSUP);
}

int main(void)
{
	test_shuffle();
	test_lzf();
	test_codecs();
	make_files();
	test_golden();
	test_tree();
	test_paths();
	test_units();
	golden_check_refused("hdf5");
	golden_check_refused("h5ad");
	test_loader();
	test_damage();
	test_exact();
	test_write();
	return test_end();
}
