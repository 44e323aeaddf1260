/*
 * The format arrays: content over all stores, files damaged or truncated
 * anywhere, and out of memory. How folders are interpreted, and stores that
 * Python wrote, are in python/test_arrays.py.
 */
#include "engine.h"

#define ROWS 40

static void put(const char *path, const void *p, size_t n)
{
	FILE *f = fopen(path, "w");

	CHECK(f && fwrite(p, 1, n, f) == n);
	if (f)
		fclose(f);
}

static size_t get(const char *path, uint8_t *p, size_t cap)
{
	FILE *f = fopen(path, "r");
	const size_t n = f ? fread(p, 1, cap, f) : 0;

	if (f)
		fclose(f);
	CHECK(n && n < cap);
	return n;
}

static void make(void)
{
	static const char about[] =
		"{\"format\": \"penstock-tensors\", \"version\": 1, "
		"\"length\": "
		"40, \"arrays\": {\"x\": {}, \"in/y\": {}}}";
	double x[ROWS], y[ROWS];

	for (int i = 0; i < ROWS; i++) {
		x[i] = i + 0.5;
		y[i] = 3 * i;
	}
	CHECK_EQ(mkdir("plain", 0755), 0);
	eng_numbers("plain/x.npy", PEN_F64, x, ROWS);
	eng_numbers("plain/y.npy", PEN_I64, y, ROWS);
	CHECK_EQ(mkdir("store", 0755), 0);
	CHECK_EQ(mkdir("store/in", 0755), 0);
	eng_numbers("store/x.npy", PEN_F64, x, ROWS);
	eng_numbers("store/in/y.npy", PEN_I64, y, ROWS);
	put("store/store.json", about, sizeof(about) - 1);
}

/* Rows are right, or there is an error; the number of rows. */
static uint64_t load(const char *how, bool content)
{
	struct pen_err err;
	struct pen_loader *l = eng_open(&err, "%s batch_size=7", how);
	struct pen_batch *b;
	uint64_t n = 0;
	int rc = 0;

	if (!l)
		return 0;
	CHECK_STR(pen_dataset_format(l->ds), "arrays");
	while ((rc = pen_loader_next(l, &b, &err)) == 0) {
		const double *x = b->tensors[0].data;
		const int64_t *y = b->tensors[1].data;

		for (uint32_t i = 0; content && i < b->nsamples; i++) {
			CHECK(x[i] == (double)b->ids[i] + 0.5);
			CHECK_EQ(y[i], 3 * (int64_t)b->ids[i]);
		}
		n += b->nsamples;
		pen_batch_unref(b);
	}
	CHECK(rc == PEN_END || rc < 0);
	pen_loader_close(l);
	return rc < 0 ? 0 : n;
}

static void test_stores(void)
{
	static const char *const how[] = {
		"store=posix",
		"store=posix shuffle=true threads=3",
		"store=mmap",
		"store=ram shuffle=true",
		"store=posix read_size=8",
		"cache=ddict cache.memory=1MiB",
		"store=fault store.delay=10us shuffle=true",
	};
	char text[128];

	for (size_t i = 0; i < sizeof(how) / sizeof(*how); i++) {
		snprintf(text, sizeof(text), "plain %s", how[i]);
		CHECK_EQ(load(text, true), ROWS);
		snprintf(text, sizeof(text), "store %s fields=x,in/y", how[i]);
		CHECK_EQ(load(text, true), ROWS);
	}
	CHECK_EQ(load("plain/x.npy plain/y.npy format=arrays", true), ROWS);
	CHECK_EQ(load("plain store format=arrays", true), 0);
}

/* Consecutive rows are one read per array. */
static void test_runs(void)
{
	struct pen_loader *l = eng_open(NULL, "plain store=posix threads=1 "
					      "batch_size=40");
	struct pen_stats st;
	struct pen_batch *b;

	CHECK_EQ(pen_loader_next(l, &b, NULL), 0);
	CHECK_EQ(b->nsamples, ROWS);
	pen_batch_unref(b);
	pen_loader_stats(l, &st, sizeof(st));
	CHECK(st.nreads <= 4);
	pen_loader_close(l);
}

/* No lost or changed byte causes a crash, and no lost one goes unnoticed. */
static void test_damage(const char *set, const char *path)
{
	uint8_t was[4096], is[4096];
	const size_t n = get(path, was, sizeof(was));

	for (size_t i = 0; i < n; i += TEST_EVERY(7)) {
		put(path, was, i);
		CHECK_EQ(load(set, false), 0);
	}
	for (size_t i = 0; i < n && i < 256; i += TEST_EVERY(3)) {
		for (int bit = 0; bit < 8; bit += 3) {
			memcpy(is, was, n);
			is[i] ^= (uint8_t)(1 << bit);
			put(path, is, n);
			load(set, false);
		}
	}
	put(path, was, n);
	CHECK_EQ(load(set, true), ROWS);
}

static void test_nomem(const char *how)
{
	for (uint64_t nth = 1;; nth = eng_next_nth(nth)) {
		struct pen_err err;
		struct pen_loader *l;

		pen__mem_fail_nth(nth, false);
		l = eng_open(&err, "%s threads=1", how);
		pen__mem_fail_nth(0, false);
		pen_loader_close(l);
		if (l || !CHECK_EQ(err.code, PEN_ENOMEM))
			break;
	}
}

int main(void)
{
	eng_start("arrays");
	make();
	test_stores();
	test_runs();
	test_damage("plain format=arrays", "plain/x.npy");
	test_damage("plain format=arrays", "plain/y.npy");
	test_damage("store format=arrays", "store/in/y.npy");
	test_damage("store format=arrays", "store/store.json");
	test_nomem("plain");
	test_nomem("store fields=x");
	eng_end();
	return test_end();
}
