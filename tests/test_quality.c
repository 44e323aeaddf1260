/*
 * Shuffle quality: measured on batches, against the same by NumPy; and
 * expected, against a simulation in NumPy and published figures.
 */
#include "test.h"

#include <ftw.h>
#include <limits.h>
#include <math.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/text.h"
#include "quality/quality.h"
#include "sampler/sampler.h"

#define NEAR(a, b, by)                                                         \
	test_near((a), (b), (by), __FILE__, __LINE__, #a " ~ " #b)

static char dir[64];

static bool test_near(double a, double b, double by, const char *file, int line,
		      const char *what)
{
	char buf[256];

	snprintf(buf, sizeof(buf), "%.160s (%.9g, %.9g)", what, a, b);
	return test_check(fabs(a - b) <= by, file, line, buf);
}

/* ---- published figures ---- */

static double expect(double h, uint64_t k, uint32_t m, uint64_t chunk,
		     uint64_t window)
{
	const double same = pen__quality_same_chunk(chunk, window);

	return pen__quality_entropy(h, k, pen__quality_n_eff(m, same));
}

static double n_eff(uint32_t m, uint64_t chunk, uint64_t chunks)
{
	return pen__quality_n_eff(
		m, pen__quality_same_chunk(chunk, chunk * chunks));
}

static void published(void)
{
	/* 14 plates in runs, 200,000 cells, batches of 1,024 */
	NEAR(n_eff(1024, 64, 256), 207, 0.6);
	NEAR(expect(3.601, 14, 1024, 64, 16384), 3.556, 0.0006);
	NEAR(expect(3.601, 14, 1024, 1, 200000), 3.592, 0.0006);
	/* the defaults of loaders */
	NEAR(n_eff(1024, 64, 2000), 681, 0.5);
	NEAR(n_eff(1024, 64, 1024), 516, 0.6);
	NEAR(n_eff(64, 16, 1024), 60.5, 0.1); /* fetches of 256 x 64 */
	NEAR(n_eff(4096, 256, 64), 63, 0.5);
	NEAR(n_eff(4096, 32, 256), 248, 0.5);
	/* scDataset, batches of 64, 14 plates: predicted, then measured */
	NEAR(expect(3.770, 14, 64, 16, 64 * 64), 3.590, 0.001);
	NEAR(expect(3.770, 14, 64, 16, 64 * 64), 3.582, 0.07);
	NEAR(expect(3.770, 14, 64, 256, 64 * 256), 3.480, 0.001);
	NEAR(expect(3.770, 14, 64, 256, 64 * 256), 3.479, 0.07);
	NEAR(expect(3.770, 14, 64, 64, 64 * 16), 3.055, 0.001);
	NEAR(expect(3.770, 14, 64, 64, 64 * 16), 3.000, 0.07);
}

/* All its settings whose n_eff is 13 or more: blocks and fetch factors of
 * powers of 4, each against the other extreme. */
static void ordered(void)
{
	static const uint64_t v[] = { 1, 4, 16, 64, 256, 1024 };

	for (int b = 0; b < 6; b++) {
		for (int f = 0; f < 6; f++) {
			const double h = expect(3.77, 14, 64, v[b], 64 * v[f]);

			CHECK(h >= 0 && h < 3.77);
			if (b)
				CHECK(h <= expect(3.77, 14, 64, v[b - 1],
						  64 * v[f]));
			if (f)
				CHECK(h >= expect(3.77, 14, 64, v[b],
						  64 * v[f - 1]));
		}
	}
	CHECK(pen__quality_same_chunk(1, 1) == 0);
	CHECK(pen__quality_same_chunk(64, 64) == 1);
	CHECK(pen__quality_same_chunk(64, 1) == 0);
	CHECK(pen__quality_same_chunk(128, 64) == 1);
	NEAR(pen__quality_same_chunk(4, 10), (2 * 12 + 2) / 90.0, 1e-15);
	CHECK(pen__quality_entropy(3, 1, 5) == 0);
	CHECK(pen__quality_entropy(0.1, 100, 1) == 0);
	CHECK(pen__quality_n_eff(64, 1) == 1);
	CHECK(pen__quality_n_eff(64, 0) == 64);
	CHECK(pen__quality_n_eff(1, 0.5) == 1);
}

/* ---- Python ---- */

static bool python(const char *what)
{
	const char *source = getenv("SOURCE");
	char path[PATH_MAX] = __FILE__, *slash = strrchr(path, '/');
	int status = -1;
	pid_t pid;

	snprintf(slash ? slash + 1 : path, 32, "data/check_quality.py");
	if (source)
		snprintf(path, sizeof(path), "%s/tests/data/check_quality.py",
			 source);
	pid = fork();
	if (pid == 0) {
		execl("/usr/bin/python3", "/usr/bin/python3", path, what, dir,
		      (char *)NULL);
		_exit(127);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static FILE *file(const char *name, const char *mode)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, mode);
	if (!CHECK(f != NULL))
		exit(1);
	return f;
}

static unsigned numbers(const char *name, double *v, unsigned most)
{
	FILE *f = file(name, "r");
	unsigned n = 0;

	while (n < most && fscanf(f, "%lf", &v[n]) == 1)
		n++;
	fclose(f);
	return n;
}

static int drop(const char *path, const struct stat *st, int kind,
		struct FTW *at)
{
	(void)st;
	(void)kind;
	(void)at;
	return remove(path);
}

static void clean_up(void)
{
	(void)!nftw(dir, drop, 16, FTW_DEPTH | FTW_PHYS);
}

static void have_python(void)
{
	if (!test_python_has("numpy"))
		TEST_SKIP("NumPy is not installed");
	snprintf(dir, sizeof(dir), "quality-%d", (int)getpid());
	if (!CHECK(mkdir(dir, 0777) == 0))
		exit(1);
	atexit(clean_up);
}

/* ---- orders ---- */

struct order {
	const char *sampler;
	struct pen_opts_kv kv[2];
	size_t nkv;
	uint64_t n, epochs;
	uint32_t batch;
	bool same; /* every epoch like the first one */
	uint64_t classes;
	enum pen_dtype dtype;
};

static int64_t label_of(const struct order *o, uint64_t id)
{
	/* in runs, and some of them negative or large */
	const uint64_t run = id * o->classes / o->n;

	return (int64_t)(run * run) % 251 - 3;
}

static void put_label(const struct order *o, void *to, uint32_t i, int64_t v)
{
	switch (o->dtype) {
	case PEN_U8:
		((uint8_t *)to)[i] = (uint8_t)(v + 3);
		break;
	case PEN_I16:
		((int16_t *)to)[i] = (int16_t)v;
		break;
	case PEN_I32:
		((int32_t *)to)[i] = (int32_t)v;
		break;
	default:
		((int64_t *)to)[i] = v * 1000000007;
	}
}

/* One batch of an order, into q and, unless NULL, two files. */
static int one_batch(const struct order *o, struct pen_sampler *s,
		     struct pen_quality *q, uint64_t epoch, uint64_t pos,
		     FILE *const *to)
{
	const uint64_t left = s->length - pos;
	const uint32_t m = left < o->batch ? (uint32_t)left : o->batch;
	uint64_t *ids = calloc(m, sizeof(*ids));
	int64_t *labels = calloc(m, sizeof(*labels));
	struct pen_tensor t = { .name = "plate",
				.data = labels,
				.dtype = o->dtype,
				.nbytes = m * pen_dtype_size(o->dtype),
				.ndim = 1,
				.shape = { m } };
	struct pen_batch b = { .position = pos,
			       .epoch = epoch,
			       .nsamples = m,
			       .ntensors = 1,
			       .ids = ids,
			       .tensors = &t };
	int rc;

	CHECK_EQ(s->ops->ids(s, o->same ? 0 : epoch, pos, m, ids, NULL), 0);
	for (uint32_t i = 0; i < m; i++) {
		const int64_t v = label_of(o, ids[i]);

		put_label(o, labels, i, v);
		if (to)
			fwrite(&v, sizeof(v), 1, to[1]);
	}
	if (to)
		fwrite(ids, sizeof(*ids), m, to[0]);
	rc = pen__quality_batch(q, &b, NULL);
	free(ids);
	free(labels);
	return rc;
}

static int mixed(const void *order, uint64_t epoch, uint64_t pos,
		 uint64_t *start, uint64_t *end)
{
	const struct pen_sampler *s = order;

	return s->ops->mixed && s->ops->mixed(s, epoch, pos, start, end);
}

/* Every epoch has the order of the first. */
static int mixed_once(const void *order, uint64_t epoch, uint64_t pos,
		      uint64_t *start, uint64_t *end)
{
	(void)epoch;
	return mixed(order, 0, pos, start, end);
}

static uint64_t fail_nth; /* allocation of quality, not of the sampler */

static int run(const struct order *o, struct pen_quality_result *r,
	       FILE *const *to)
{
	const struct pen_population pop = { .n = o->n };
	struct pen_quality_setup set = { .nsamples = o->n,
					 .expected = o->n,
					 .batch = o->batch };
	struct pen_sampler *s;
	struct pen_quality *q;
	int rc;

	if (!CHECK(!pen__sampler_open(&s, o->sampler, &pop, 5,
				      (struct pen_opts){ o->kv, o->nkv },
				      NULL)))
		exit(1);
	set.chunk = s->chunk ? s->chunk : 1;
	set.label = "plate";
	set.mixed = o->same ? mixed_once : mixed;
	set.order = s;
	set.length = s->length;
	set.order_chunk = s->chunk;
	set.in_order = s->ops->in_order;
	set.repeats = s->ops->repeats;
	pen__mem_fail_nth(fail_nth, false);
	rc = pen__quality_new(&q, &set, NULL);
	for (uint64_t e = 0; !rc && e < o->epochs; e++) {
		for (uint64_t p = 0; !rc && p < s->length; p += o->batch)
			rc = one_batch(o, s, q, e, p, to);
		if (!rc)
			pen__quality_epoch(q);
	}
	if (!rc)
		pen__quality_result(q, r);
	pen__mem_fail_nth(0, false);
	pen__quality_free(q);
	pen__sampler_close(s);
	return rc;
}

static const struct order orders[] = {
	{ "block",
	  { { "chunk", "16" }, { "chunks", "20" } },
	  2,
	  10007,
	  2,
	  64,
	  false,
	  14,
	  PEN_I32 },
	{ "block",
	  { { "chunk", "64" }, { "chunks", "7" } },
	  2,
	  10007,
	  2,
	  256,
	  true,
	  3000,
	  PEN_I64 },
	{ "block",
	  { { "chunk", "8" }, { "mix", "false" } },
	  2,
	  5000,
	  3,
	  50,
	  false,
	  14,
	  PEN_I16 },
	{ "shuffle", { { NULL, NULL } }, 0, 9001, 1, 100, false, 2, PEN_U8 },
	{ "sequential", { { NULL, NULL } }, 0, 700, 2, 700, false, 1, PEN_U8 },
	{ "shuffle", { { NULL, NULL } }, 0, 77, 2, 1, false, 9, PEN_I64 },
};

static void against_numpy(const struct order *o)
{
	struct pen_quality_result r;
	FILE *to[2] = { file("ids", "w"), file("labels", "w") }, *f;
	double v[10] = { 0 };

	CHECK_EQ(run(o, &r, to), 0);
	fclose(to[0]);
	fclose(to[1]);
	f = file("setup", "w");
	fprintf(f, "%llu %u %s %llu", (unsigned long long)o->n, o->batch,
		o->nkv ? o->kv[0].value : "1", (unsigned long long)o->epochs);
	fclose(f);
	if (o->batch == 1) { /* NumPy has no pairs either */
		CHECK(r.same_chunk == 0 && r.batch_entropy == 0);
		return;
	}
	if (!CHECK(python("measure")) ||
	    !CHECK_EQ(numbers("measured", v, 10), 10))
		return;
	CHECK(r.complete);
	CHECK_EQ(r.nsamples, o->n);
	CHECK_EQ(r.nbatches, v[0]);
	CHECK_EQ(r.repeated, v[1]);
	CHECK_EQ(r.missing, v[2]);
	NEAR(r.same_chunk, v[3], 1e-12);
	NEAR(r.n_eff, v[4], 1e-9);
	CHECK_EQ(r.nclasses, v[5]);
	NEAR(r.entropy, v[6], 1e-10);
	NEAR(r.batch_entropy, v[7], 1e-10);
	NEAR(r.batch_entropy_sd, v[8], 1e-10);
	NEAR(r.neighbours_kept, v[9], 1e-12);
}

/* The closed forms, against a shuffle drawn by NumPy. */
static void against_simulation(void)
{
	/* 14 plates, their entropy is 3.6 bits */
	static const int64_t runs[] = { 3000,  21000, 9000, 14000, 5000,
					11072, 8000,  6000, 15000, 4000,
					10000, 7000,  6000, 12000 };
	FILE *f = file("runs", "w");
	double v[26] = { 0 };

	fwrite(runs, sizeof(runs), 1, f);
	fclose(f);
	if (!CHECK(python("simulate")) ||
	    !CHECK_EQ(numbers("simulated", v, 26), 26))
		return;
	for (int i = 0; i < 5; i++) {
		const double *s = v + 1 + 5 * i;
		const uint64_t chunk = (uint64_t)s[1], window = (uint64_t)s[2];
		const double same = pen__quality_same_chunk(chunk, window);

		NEAR(s[3], same, 0.02 * same);
		/* with few draws left, the formula is a first-order term */
		NEAR(s[4], expect(v[0], 14, (uint32_t)s[0], chunk, window),
		     pen__quality_n_eff(s[0], same) < 40 ? 0.07 : 0.01);
	}
}

/*
 * The expected value of a block shuffle is the mean over its epochs, for any
 * borders of batches, windows and chunks: batches over several windows, windows
 * over several batches, a short chunk, a single window.
 */
static void exact(void)
{
	static const struct {
		const char *chunk, *chunks;
		uint64_t n;
		uint32_t batch;
	} of[] = {
		{ "4", "3", 101, 16 },	{ "8", "2", 200, 64 },
		{ "16", "4", 250, 24 }, { "5", "1", 99, 12 },
		{ "3", "90", 77, 10 },
	};

	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		struct order o = { .sampler = "block",
				   .kv = { { "chunk", of[i].chunk },
					   { "chunks", of[i].chunks } },
				   .nkv = 2,
				   .n = of[i].n,
				   .batch = of[i].batch,
				   .classes = 1,
				   .dtype = PEN_U8 };
		struct pen_quality_result r;
		double same = 0, want = 0;

		for (o.epochs = 1; o.epochs <= 100; o.epochs++) {
			CHECK_EQ(run(&o, &r, NULL), 0);
			same += r.same_chunk;
			want += r.same_chunk_expected;
		}
		NEAR(same / want, 1, 0.04);
	}
}

/* Batches that take entire windows leave nothing to chance. */
static void whole_windows(void)
{
	struct order o = { "block", { { "chunk", "16" }, { "chunks", "32" } },
			   2,	    65536,
			   1,	    1024,
			   false,   14,
			   PEN_I32 };
	struct pen_quality_result r;

	CHECK_EQ(run(&o, &r, NULL), 0);
	NEAR(r.n_eff, 64, 1e-9);
	NEAR(r.n_eff_expected, 64, 1e-9);
	/* neighbours stay neighbours: no closed form, so no value */
	o.kv[1] = (struct pen_opts_kv){ "mix", "false" };
	CHECK_EQ(run(&o, &r, NULL), 0);
	CHECK(isnan(r.n_eff_expected) && isnan(r.same_chunk_expected));
	CHECK(isnan(r.batch_entropy_expected) && r.n_eff > 0);
	/* many more classes than draws: no expected entropy */
	o.kv[1] = (struct pen_opts_kv){ "chunks", "32" };
	o.classes = 3000;
	CHECK_EQ(run(&o, &r, NULL), 0);
	CHECK(isnan(r.batch_entropy_expected) && r.n_eff_expected > 0);
	/* each once: no two of a batch are the same */
	o = (struct order){ .sampler = "shuffle",
			    .n = 1000,
			    .epochs = 1,
			    .batch = 64,
			    .classes = 3,
			    .dtype = PEN_U8 };
	CHECK_EQ(run(&o, &r, NULL), 0);
	CHECK(r.n_eff == 64 && r.n_eff_expected == 64);
	CHECK(r.batch_entropy_expected > 0);
}

/* Our own block shuffle is as good as expected. */
static void as_expected(void)
{
	static const struct order o = {
		"block", { { "chunk", "64" }, { "chunks", "256" } },
		2,	 131072,
		2,	 1024,
		false,	 14,
		PEN_I32
	};
	struct pen_quality_result r;

	CHECK_EQ(run(&o, &r, NULL), 0);
	NEAR(r.n_eff_expected, 207, 0.6);
	NEAR(r.n_eff, r.n_eff_expected, 0.02 * r.n_eff_expected);
	NEAR(r.batch_entropy, r.batch_entropy_expected, 0.01);
	CHECK(r.neighbours_kept >= 0 && r.neighbours_kept < 0.001);
	CHECK(!r.repeated && !r.missing);
}

/* ---- errors ---- */

static struct pen_quality *new_one(struct pen_quality_setup set)
{
	struct pen_quality *q = NULL;

	CHECK_EQ(pen__quality_new(&q, &set, NULL), 0);
	return q;
}

static void feed(struct pen_quality *q, uint64_t pos, const uint64_t *ids,
		 uint32_t n, int want)
{
	const struct pen_batch b = { .position = pos,
				     .nsamples = n,
				     .ids = ids };
	struct pen_err err = { 0 };

	CHECK_EQ(pen__quality_batch(q, &b, &err), want);
	CHECK_EQ(err.code, want);
}

static void faults(void)
{
	static const uint64_t ids[] = { 1, 2, 2, 9, 10, 3 };
	struct pen_quality_setup set = {
		.nsamples = 10,
		.batch = 4,
		.chunk = 2,
		.expected = 10,
	};
	struct pen_quality *q = new_one(set);
	struct pen_quality_result r;

	pen__quality_result(q, &r);
	CHECK(!r.complete && !r.nbatches && !r.missing && r.n_eff == 0);
	CHECK(isnan(r.n_eff_expected));
	feed(q, 0, ids, 4, 0);
	feed(q, 4, ids, 5, PEN_EINVAL);	    /* more than a batch */
	feed(q, 4, ids + 4, 1, PEN_EINVAL); /* no such sample */
	feed(q, 4, ids + 5, 1, 0);
	feed(q, 5, ids, 0, 0);
	pen__quality_result(q, &r);
	CHECK(!r.complete && r.nbatches == 1 && r.nsamples == 5);
	CHECK(r.repeated == 1 && r.missing == 0 && r.neighbours_kept == -1);
	NEAR(r.same_chunk, 1 / 6.0, 1e-15); /* the two 2s */
	pen__quality_epoch(q);
	pen__quality_result(q, &r);
	CHECK(r.complete && r.repeated == 1 && r.missing == 6);
	/* an incomplete epoch does not count */
	feed(q, 0, ids, 3, 0);
	pen__quality_result(q, &r);
	CHECK(r.nsamples == 5 && r.missing == 6);
	pen__quality_free(q);
	set.label = "y";
	q = new_one(set);
	feed(q, 0, ids, 4, PEN_EINVAL); /* no such tensor */
	pen__quality_free(q);
	set.batch = 0;
	CHECK_EQ(pen__quality_new(&q, &set, NULL), PEN_EINVAL);
	pen__quality_free(NULL);
}

static uint64_t at(const void *list, uint64_t i)
{
	return ((const uint64_t *)list)[i];
}

/* Chunks consist of the chosen samples. */
static void chosen(void)
{
	static const uint64_t list[] = { 7, 3, 30, 12 };
	static const uint64_t of_list[] = { 3, 7, 12, 30 };
	static const uint64_t of_range[] = { 10, 15, 20, 25 };
	struct pen_quality_setup set = {
		.nsamples = 40,
		.batch = 4,
		.chunk = 2,
		.expected = 4,
		.chosen = at,
		.nchosen = 4,
		.order = list,
	};
	struct pen_quality *q = new_one(set);
	struct pen_quality_result r;

	feed(q, 0, of_list, 4, 0);
	pen__quality_epoch(q);
	pen__quality_result(q, &r);
	NEAR(r.same_chunk, 2 / 6.0, 1e-15);
	CHECK(!r.missing && !r.repeated);
	pen__quality_free(q);
	set.order = of_range;
	q = new_one(set);
	feed(q, 0, of_range, 4, 0);
	feed(q, 4, of_list, 1, PEN_EINVAL);
	pen__quality_result(q, &r);
	NEAR(r.same_chunk, 2 / 6.0, 1e-15);
	pen__quality_free(q);
}

static void out_of_memory(void)
{
	struct pen_quality_result r;
	int rc = PEN_ENOMEM;

	for (fail_nth = 1; rc && fail_nth < 100; fail_nth++) {
		rc = run(&orders[1], &r, NULL);
		CHECK(rc == 0 || rc == PEN_ENOMEM);
	}
	CHECK(fail_nth > 9); /* tables of classes grow */
	fail_nth = 0;
	CHECK_EQ(rc, 0);
}

static void as_json(void)
{
	static const struct pen_quality_result r = {
		.nbatches = 3,
		.nclasses = 2,
		.entropy = 1,
		.neighbours_kept = -1,
	};
	struct pen_quality_result none = r;
	struct pen_text t = { 0 };

	pen__quality_json(&t, NULL, &r);
	CHECK(t.p && strstr(t.p, "\"full_batches\": 3"));
	CHECK(t.p && strstr(t.p, "\"label\""));
	CHECK(t.p && !strstr(t.p, "neighbours_kept"));
	CHECK(t.p && strstr(t.p, "\"n_eff\": 0"));
	pen__text_fini(&t);
	/* no full batch: nothing was measured */
	none.nbatches = 0;
	pen__quality_json(&t, NULL, &none);
	CHECK(t.p && strstr(t.p, "\"n_eff\": null"));
	CHECK(t.p && strstr(t.p, "\"same_chunk\": null"));
	CHECK(t.p && strstr(t.p, "\"batch_entropy\": null"));
	pen__text_fini(&t);
}

int main(void)
{
	published();
	ordered();
	as_expected();
	exact();
	whole_windows();
	faults();
	chosen();
	out_of_memory();
	as_json();
	have_python();
	for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++)
		against_numpy(&orders[i]);
	against_simulation();
	return test_end();
}
