/*
 * cast=: every dtype to every other as NumPy's astype does it and, for what
 * does not fit an integer, where NumPy leaves the result to the CPU, as defined
 * here: the nearest value, and 0 for NaN. Then the same through the engine, for
 * any pieces and wherever they start.
 */
#include <math.h>

#include "engine/emit_crop.h"
#include "golden.h"
#include "take.h"

static bool find_type(const char *name, enum pen_dtype *out)
{
	for (int t = 0; t <= PEN_F64; t++)
		if (!strcmp(name, pen_dtype_name((enum pen_dtype)t))) {
			*out = (enum pen_dtype)t;
			return true;
		}
	return false;
}

/* One NaN is as good as another. */
static bool equal(const uint8_t *a, const uint8_t *b, enum pen_dtype t)
{
	if (t >= PEN_F16 && isnan(pen__number_at(a, t, 0)))
		return isnan(pen__number_at(b, t, 0));
	return memcmp(a, b, pen_dtype_size(t)) == 0;
}

static void check_pair(enum pen_dtype from, enum pen_dtype to,
		       const uint8_t *src, const uint8_t *want, size_t n)
{
	struct pen_crop t = { .on = true, .from = from, .to = to, .n = n };
	size_t in = pen_dtype_size(from), out = pen_dtype_size(to), bad = 0;
	uint8_t *got = malloc(n * out + 1), *odd = malloc(n * in + 2);

	/* in two pieces, from an odd address */
	memcpy(odd + 1, src, n * in);
	pen__crop_piece(&t, got, 0, odd + 1, n / 3 * in);
	pen__crop_piece(&t, got, n / 3 * in, odd + 1 + n / 3 * in,
			(n - n / 3) * in);
	for (size_t i = 0; i < n && bad < 3; i++) {
		if (equal(got + i * out, want + i * out, to))
			continue;
		bad++;
		fprintf(stderr, "  %s to %s: %.17g: %.17g, not %.17g\n",
			pen_dtype_name(from), pen_dtype_name(to),
			pen__number_at(src, from, i),
			pen__number_at(got, to, i),
			pen__number_at(want, to, i));
	}
	CHECK_EQ(bad, 0);
	free(got);
	free(odd);
}

static void test_numpy(void)
{
	char script[PATH_MAX] = __FILE__, *slash = strrchr(script, '/');
	const char *source = getenv("SOURCE");
	struct pen_bytes in;
	unsigned pairs = 0;
	uint8_t *all;
	size_t n;

	snprintf(slash + 1, 32, "data/make_casts.py");
	if (source)
		snprintf(script, sizeof(script), "%s/tests/data/make_casts.py",
			 source);
	if (!test_python_has("numpy"))
		return;
	snprintf(golden_dir, sizeof(golden_dir), ".");
	if (!CHECK(golden_python(NULL, script, "casts")))
		return;
	all = golden_read("casts", &n);
	in = pen__bytes(all, n);
	for (; pen__bytes_left(&in); pairs++) {
		const char *a = (const char *)pen__take(&in, 16);
		const char *b = (const char *)pen__take(&in, 16);
		uint64_t k = pen__take_u64(&in);
		enum pen_dtype from, to;
		const uint8_t *src, *want;

		if (!CHECK(find_type(a, &from) && find_type(b, &to)))
			break;
		src = pen__take(&in, k * pen_dtype_size(from));
		want = pen__take(&in, k * pen_dtype_size(to));
		if (!CHECK(src && want && k))
			break;
		check_pair(from, to, src, want, k);
	}
	CHECK_EQ(pairs, 12 * 12);
	free(all);
}

/* ---- out of range ---- */

static int64_t from_double(double v, enum pen_dtype to)
{
	struct pen_crop t = { .on = true, .from = PEN_F64, .to = to, .n = 1 };
	union {
		int64_t i64;
		uint8_t bytes[8];
	} got = { 0 };

	pen__crop_piece(&t, got.bytes, 0, &v, sizeof(v));
	if (to == PEN_I8)
		return (int8_t)got.bytes[0];
	if (to == PEN_I16)
		return (int16_t)got.i64;
	if (to == PEN_I32)
		return (int32_t)got.i64;
	return got.i64;
}

static void test_outside(void)
{
	static const struct {
		enum pen_dtype to;
		int64_t least, most;
	} range[] = {
		{ PEN_I8, INT8_MIN, INT8_MAX },
		{ PEN_U8, 0, UINT8_MAX },
		{ PEN_I16, INT16_MIN, INT16_MAX },
		{ PEN_U16, 0, UINT16_MAX },
		{ PEN_I32, INT32_MIN, INT32_MAX },
		{ PEN_U32, 0, UINT32_MAX },
		{ PEN_I64, INT64_MIN, INT64_MAX },
		{ PEN_U64, 0, -1 /* its bits */ },
	};

	for (size_t i = 0; i < sizeof(range) / sizeof(*range); i++) {
		CHECK_EQ(from_double(-1e30, range[i].to), range[i].least);
		CHECK_EQ(from_double(-INFINITY, range[i].to), range[i].least);
		CHECK_EQ(from_double(1e30, range[i].to), range[i].most);
		CHECK_EQ(from_double(INFINITY, range[i].to), range[i].most);
		CHECK_EQ(from_double(NAN, range[i].to), 0);
		CHECK_EQ(from_double(-0.9, range[i].to), 0);
	}
	CHECK_EQ(from_double(-1, PEN_U8), 0);
	CHECK_EQ(from_double(256, PEN_U8), 255);
	CHECK_EQ(from_double(0x1p63, PEN_I64), INT64_MAX);
	CHECK_EQ(from_double(0x1p64, PEN_U64), -1);
}

/* 64-bit integers keep all bits. */
static void test_wide(void)
{
	static const uint64_t v[] = { 0, 1, INT64_MAX, 1ull << 63, UINT64_MAX };
	struct pen_crop t = { .from = PEN_I64, .to = PEN_U64, .n = 5 };
	uint64_t u[5];
	int64_t i[5];

	pen__crop_piece(&t, u, 0, v, sizeof(v));
	CHECK(u[1] == 1 && u[2] == INT64_MAX && u[3] == 0 && u[4] == 0);
	t = (struct pen_crop){ .from = PEN_U64, .to = PEN_I64, .n = 5 };
	pen__crop_piece(&t, i, 0, v, sizeof(v));
	CHECK(i[1] == 1 && i[2] == INT64_MAX && i[3] == INT64_MAX &&
	      i[4] == INT64_MAX);
}

/* ---- in the engine ---- */

static bool row_right(struct pen_span got, struct pen_span whole,
		      const struct pen_crop *t)
{
	uint8_t *want = malloc(got.n + 1);
	bool ok;

	memset(want, 0xee, got.n);
	pen__crop_piece(t, want, 0, whole.p, whole.n);
	pen__crop_end(t, want, whole.n);
	ok = memcmp(want, got.p, got.n) == 0;
	free(want);
	return ok;
}

static void test_set(const struct eng_set *s, const struct take_ref *ref,
		     size_t n, const char *how, const char *store)
{
	struct pen_crop t = { .on = true, .n = n };
	struct pen_loader *l = take_open(s, how, store);
	struct pen_batch *b;
	int rc;

	if (!l)
		return;
	t.field = l->pool->crop.field;
	t.from = ref->dtype[t.field];
	while ((rc = pen_loader_next(l, &b, NULL)) == 0) {
		t.to = b->tensors[t.field].dtype;
		CHECK(!strcmp(pen_dtype_name(t.to), strstr(how, "cast=") + 5));
		for (uint32_t r = 0; r < b->nsamples; r++)
			if (!CHECK(row_right(take_row(b, t.field, r),
					     ref->row[b->ids[r]][t.field], &t)))
				fprintf(stderr, "  %s %s %s\n", s->name, how,
					store);
		pen_batch_unref(b);
	}
	CHECK_EQ(rc, PEN_END);
	pen_loader_close(l);
}

static void test_engine(const struct eng_set *s, size_t nth)
{
	static const struct {
		const char *how;
		size_t n;
	} cases[] = {
		{ "take=7 cast=float32", 7 },
		{ "read_size=5 take=3x11 threads=3 cast=float64", 33 },
		{ "read_size=4097 take=3000 cast=int8", 3000 },
		{ "read_size=9000 take=2999 threads=3 cast=uint64", 2999 },
		/* more than it has */
		{ "take=5000 sampler=block cast=float16", 5000 },
		{ "take=50000 sampler=block cast=float16", 50000 },
	};
	struct take_ref ref;

	eng_make(s);
	take_ref_init(&ref, s);
	for (size_t i = 0; ref.n && i < sizeof(cases) / sizeof(*cases); i++) {
		/* five bytes at a time are a lot of reads */
		if (i == 1 && ref.bytes > 10000)
			continue;
		if (i >= 4 && (i == 5) != (ref.bytes > 100000))
			continue;
		for (size_t k = (i + nth) % TEST_EVERY(2); k < TAKE_NSTORES;
		     k += TEST_EVERY(2))
			test_set(s, &ref, cases[i].n, cases[i].how,
				 take_stores[k]);
	}
	if (ref.n && !s->varies)
		test_set(s, &ref,
			 ref.row[0][0].n / pen_dtype_size(ref.dtype[0]),
			 "cast=int16", "store=mmap");
	take_ref_fini(&ref);
}

int main(void)
{
	const struct eng_set *s;

	eng_start("cast");
	test_numpy();
	test_outside();
	test_wide();
	for (size_t i = 0; (s = take_set(i)) != NULL; i++)
		test_engine(s, i);
	eng_end();
	return test_end();
}
