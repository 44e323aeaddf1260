/* Orders are exact, repeatable, and as random as documented. */
#include "sampler.h"

#include <math.h>

#include "base/mem.h"
#include "base/rng.h"

/* Is v[0..n) every element of [0, n) once? */
static bool is_permutation(const uint64_t *v, uint64_t n)
{
	uint8_t *seen = calloc(n, 1);
	bool ok = true;

	for (uint64_t i = 0; i < n && ok; i++)
		ok = v[i] < n && !seen[v[i]]++;
	free(seen);
	return ok;
}

/* Pieces, backwards and across epochs, are pieces of the entire order. */
static void check_pieces(struct pen_sampler *s, const uint64_t *whole,
			 uint64_t epoch, uint64_t seed)
{
	static uint64_t part[MAX_N];
	struct pen_rng r = pen__rng(seed, 99);

	for (unsigned i = 0; i < 20; i++) {
		const uint64_t pos = pen__rng_below(&r, s->length);
		const uint64_t n = pen__rng_below(&r, s->length - pos + 1);

		if (i % 5 == 4)
			ids(s, epoch + 1, pos, n, part);
		ids(s, epoch, pos, n, part);
		CHECK(!memcmp(part, whole + pos, n * sizeof(part[0])));
	}
}

/* Each exactly once, equal in a second sampler, different in every epoch. */
static void exactly_once(const char *name, uint64_t n, uint64_t seed,
			 const struct pen_opts_kv *kv, size_t nkv)
{
	static uint64_t a[MAX_N], b[MAX_N];
	const struct pen_population pop = { .n = n };
	struct pen_sampler *s = open_ok(name, &pop, seed, kv, nkv);
	struct pen_sampler *t = open_ok(name, &pop, seed, kv, nkv);

	CHECK_EQ(s->length, n);
	for (uint64_t epoch = 0; epoch < 3; epoch++) {
		ids(s, epoch, 0, n, a);
		CHECK(is_permutation(a, n));
		ids(t, epoch, 0, n, b);
		CHECK(!memcmp(a, b, n * sizeof(a[0])));
		check_pieces(s, a, epoch, seed + n);
		ids(t, epoch + 1, 0, n, b);
		if (n >= 50 && strcmp(name, "sequential"))
			CHECK(memcmp(a, b, n * sizeof(a[0])) != 0);
	}
	pen__sampler_close(s);
	s = open_ok(name, &pop, seed + 1, kv, nkv);
	ids(s, 2, 0, n, b);
	if (n >= 50 && strcmp(name, "sequential"))
		CHECK(memcmp(a, b, n * sizeof(a[0])) != 0);
	pen__sampler_close(s);
	pen__sampler_close(t);
}

static void block_once(uint64_t n, uint64_t chunk, uint64_t chunks,
		       uint64_t seed)
{
	char a[24], b[24];
	const struct pen_opts_kv kv[] = { { "chunk", a }, { "chunks", b } };

	snprintf(a, sizeof(a), "%" PRIu64, chunk);
	snprintf(b, sizeof(b), "%" PRIu64, chunks);
	exactly_once("block", n, seed, kv, 2);
}

static void properties(void)
{
	struct pen_rng r = pen__rng(2024, 1);

	for (uint64_t n = 1; n <= 40; n++) {
		exactly_once("sequential", n, n, NULL, 0);
		exactly_once("shuffle", n, n, NULL, 0);
		exactly_once("block", n, n, NULL, 0);
		for (uint64_t chunk = 1; chunk <= 9; chunk += 2)
			for (uint64_t chunks = 1; chunks <= 6; chunks++)
				block_once(n, chunk, chunks, n);
	}
	for (unsigned i = 0; i < 300; i++) {
		const uint64_t n = 1 + pen__rng_below(&r, MAX_N);
		const uint64_t seed = pen__rng_u64(&r);

		exactly_once("shuffle", n, seed, NULL, 0);
		block_once(n, 1 + pen__rng_below(&r, 100),
			   1 + pen__rng_below(&r, 50), seed);
	}
	block_once(100, 1000000000000000000, 1000000000000000000, 3);
	block_once(1000, 1, 1, 4);
	block_once(1000, 1000, 1, 5);
	block_once(1001, 1000, 1, 5);
}

/* Rows of a window come from as few chunks as possible, and are mixed. */
static void block_locality(void)
{
	enum { N = 64 * 100, CHUNK = 64, CHUNKS = 10 };
	const struct pen_opts_kv kv[] = { { "chunk", "64" },
					  { "chunks", "10" } };
	const struct pen_population pop = { .n = N };
	struct pen_sampler *s = open_ok("block", &pop, 8, kv, 2);
	uint64_t v[CHUNK * CHUNKS];
	unsigned follows = 0;

	CHECK_EQ(s->window, CHUNK * CHUNKS);
	CHECK_EQ(s->chunk, CHUNK);
	for (uint64_t w = 0; w < N / s->window; w++) {
		uint64_t count[N / CHUNK] = { 0 };
		unsigned used = 0;

		ids(s, 5, w * s->window, s->window, v);
		for (unsigned i = 0; i < s->window; i++) {
			used += !count[v[i] / CHUNK]++;
			follows += i && v[i] == v[i - 1] + 1;
		}
		CHECK_EQ(used, CHUNKS);
	}
	CHECK(follows < 60); /* 10 expected; in file order 6390 */
	pen__sampler_close(s);
}

static void big(void)
{
	const struct pen_population million = { .n = 1000000 };
	const struct pen_population trillion = { .n = 1000000000000 };
	static const char *const names[] = { "shuffle", "block" };
	uint64_t *v = malloc(million.n * sizeof(*v));

	for (unsigned k = 0; k < 2; k++) {
		struct pen_sampler *s = open_ok(names[k], &million, 1, NULL, 0);

		ids(s, 0, 0, million.n, v);
		CHECK(is_permutation(v, million.n));
		pen__sampler_close(s);
		s = open_ok(names[k], &trillion, 1, NULL, 0);
		CHECK(s->length == trillion.n);
		ids(s, 3, trillion.n - 1000, 1000, v);
		for (unsigned i = 0; i < 1000; i++) {
			CHECK(v[i] < trillion.n);
			for (unsigned j = 0; j < i; j++)
				if (v[i] == v[j])
					CHECK(v[i] != v[j]);
		}
		pen__sampler_close(s);
	}
	free(v);
}

/* chi-square against expected counts, in standard deviations */
static double excess(const uint64_t *seen, const double *want, size_t k)
{
	double x = 0;

	for (size_t i = 0; i < k; i++)
		x += ((double)seen[i] - want[i]) * ((double)seen[i] - want[i]) /
		     want[i];
	return (x - (double)(k - 1)) / sqrt(2 * (double)(k - 1));
}

static void weighted_with(void)
{
	enum { N = 101, DRAWS = 200000 };
	double w[N + 2], want[N], sum = 0;
	uint64_t seen[N + 2] = { 0 };
	static uint64_t v[DRAWS];
	const struct pen_population pop = { .n = N + 2, .weights = w };
	const struct pen_opts_kv kv = { "length", "200k" };
	struct pen_rng r = pen__rng(1, 1);
	struct pen_sampler *s;

	/* 1e307: sums must not overflow. The last two are never drawn. */
	for (unsigned i = 0; i < N; i++) {
		w[i] = (0.05 + pen__rng_double(&r)) * 1e307;
		sum += w[i] / 1e307;
	}
	w[N] = 0;
	w[N + 1] = -0.0;
	for (unsigned i = 0; i < N; i++)
		want[i] = w[i] / 1e307 / sum * DRAWS;
	s = open_ok("weighted", &pop, 77, &kv, 1);
	CHECK_EQ(s->length, DRAWS);
	ids(s, 4, 0, DRAWS, v);
	for (unsigned i = 0; i < DRAWS; i++)
		seen[v[i]]++;
	CHECK(fabs(excess(seen, want, N)) < 5);
	CHECK_EQ(seen[N] + seen[N + 1], 0);
	s->length = MAX_N; /* pieces of a part will do */
	check_pieces(s, v, 4, 6);
	pen__sampler_close(s);
}

/* Equal weights, one element, tiny and huge ones next to each other. */
static void weighted_edges(void)
{
	static const double one[] = { 3 },
			    mixed[] = { 1e-300, 1e300, 0, 5e-324 };
	struct pen_population pop = { .n = 1, .weights = one };
	const struct pen_opts_kv no = { "replacement", "no" };
	uint64_t v[10];
	struct pen_sampler *s = open_ok("weighted", &pop, 1, NULL, 0);

	CHECK_EQ(s->length, 1);
	ids(s, 0, 0, 1, v);
	CHECK_EQ(v[0], 0);
	pen__sampler_close(s);
	pop = (struct pen_population){ .n = 4, .weights = mixed };
	s = open_ok("weighted", &pop, 1, NULL, 0);
	for (uint64_t e = 0; e < 100; e++) {
		ids(s, e, 0, 4, v);
		CHECK(v[0] == 1 && v[1] == 1 && v[2] == 1 && v[3] == 1);
	}
	pen__sampler_close(s);
	s = open_ok("weighted", &pop, 1, &no, 1);
	CHECK_EQ(s->length, 3);
	ids(s, 0, 0, 3, v);
	CHECK_EQ(v[0], 1);
	CHECK_EQ(v[1] + v[2], 3);
	pen__sampler_close(s);
}

static void weighted_without(void)
{
	enum { N = 12, EPOCHS = 60000 };
	double w[N], first[N - 1], sum = 0;
	uint64_t seen[N] = { 0 }, second = 0, v[N];
	const struct pen_population pop = { .n = N, .weights = w };
	const struct pen_opts_kv kv = { "replacement", "false" };
	struct pen_sampler *s;
	double want = 0;

	for (unsigned i = 0; i < N; i++) {
		w[i] = i; /* element 0 is never drawn */
		sum += w[i];
	}
	s = open_ok("weighted", &pop, 5, &kv, 1);
	CHECK_EQ(s->length, N - 1);
	for (uint64_t e = 0; e < EPOCHS; e++) {
		uint32_t got = 0;

		ids(s, e, 0, N - 1, v);
		for (unsigned i = 0; i < N - 1; i++)
			got |= 1u << v[i];
		CHECK_EQ(got, 0xffe);
		seen[v[0]]++;
		second += v[1] == 11;
	}
	for (unsigned i = 1; i < N; i++) {
		first[i - 1] = w[i] / sum * EPOCHS;
		if (i != 11) /* first i, then 11 of the remaining ones */
			want += w[i] / sum * 11 / (sum - w[i]) * EPOCHS;
	}
	CHECK(fabs(excess(seen + 1, first, N - 1)) < 5);
	CHECK(fabs((double)second - want) < 5 * sqrt(want));
	ids(s, 9, 0, N - 1, v);
	check_pieces(s, v, 9, 1);
	pen__sampler_close(s);
}

static void balanced_counts(const char *replacement, uint64_t length)
{
	enum { N = 1000, CLASSES = 7 };
	static const int64_t name[CLASSES] = {
		-5, 3, 0, INT64_MAX, INT64_MIN + 1, 12, 99
	};
	int64_t labels[N];
	uint64_t size[CLASSES] = { 0 }, drawn[CLASSES] = { 0 };
	static uint64_t v[MAX_N], seen[N];
	uint8_t class_of[N];
	char len[24];
	const struct pen_population pop = { .n = N, .labels = labels };
	const struct pen_opts_kv kv[] = { { "replacement", replacement },
					  { "length", len } };
	struct pen_rng r = pen__rng(6, 6);
	struct pen_sampler *s;

	memset(seen, 0, sizeof(seen));
	snprintf(len, sizeof(len), "%" PRIu64, length);
	for (unsigned i = 0; i < N; i++) {
		/* class 6 has one element, class 0 about half */
		uint64_t c = pen__rng_below(&r, 12);

		c = i == 500 ? 6 : c > 5 ? 0 : c;
		class_of[i] = (uint8_t)c;
		labels[i] = name[c];
		size[c]++;
	}
	s = open_ok("balanced", &pop, 3, kv, 2);
	if (!length)
		length = N;
	CHECK_EQ(s->length, length);
	ids(s, 1, 0, length, v);
	for (uint64_t i = 0; i < length; i++) {
		drawn[class_of[v[i]]]++;
		seen[v[i]]++;
	}
	for (unsigned c = 0; c < CLASSES; c++)
		CHECK(drawn[c] == length / CLASSES ||
		      drawn[c] == length / CLASSES + 1);
	for (unsigned i = 0; i < N && !strcmp(replacement, "no"); i++) {
		const unsigned c = class_of[i];

		CHECK(seen[i] == drawn[c] / size[c] ||
		      seen[i] == drawn[c] / size[c] + 1);
	}
	check_pieces(s, v, 1, 9);
	pen__sampler_close(s);
}

static void balanced_edges(void)
{
	static const int64_t same[3] = { 4, 4, 4 };
	struct pen_population pop = { .n = 3, .labels = same };
	uint64_t v[3];
	struct pen_sampler *s = open_ok("balanced", &pop, 1, NULL, 0);

	ids(s, 0, 0, 3, v);
	CHECK(is_permutation(v, 3));
	pen__sampler_close(s);
	pop.n = 1;
	s = open_ok("balanced", &pop, 1, NULL, 0);
	ids(s, 0, 0, 1, v);
	CHECK_EQ(v[0], 0);
	pen__sampler_close(s);
}

/* ---- chunks drawn by weight ---- */

/* Exactly in proportion on average, whatever the weights of neighbours. */
static void drawn_counts(void)
{
	enum { N = 101, DRAWS = 2000000 };
	const struct pen_opts_kv kv[] = { { "length", "2M" },
					  { "chunk", "8" },
					  { "chunks", "50" } };
	double w[N], sum = 0;
	uint64_t seen[N] = { 0 };
	uint64_t *v = malloc(DRAWS * sizeof(*v));
	const struct pen_population pop = { .n = N, .weights = w };
	struct pen_rng r = pen__rng(1, 1);
	struct pen_sampler *s;

	for (unsigned i = 0; i < N; i++) {
		w[i] = i % 5 ? 1e307 * (0.1 + pen__rng_double(&r)) : 0;
		sum += w[i] / 1e307;
	}
	s = open_ok("weighted", &pop, 77, kv, 3);
	CHECK(s->length == DRAWS && s->chunk == 8 && s->window == 400);
	ids(s, 4, 0, DRAWS, v);
	for (unsigned i = 0; i < DRAWS; i++)
		seen[v[i]]++;
	for (unsigned i = 0; i < N; i++) {
		const double want = w[i] / 1e307 / sum * DRAWS;

		CHECK(fabs((double)seen[i] - want) <= 0.05 * want);
	}
	s->length = MAX_N;
	check_pieces(s, v, 4, 6);
	CHECK_EQ(s->ops->window_end(s, 4, 399), 400);
	CHECK_EQ(s->ops->window_end(s, 4, 400), 800);
	CHECK_EQ(s->ops->window_end(s, 4, MAX_N - 1), MAX_N);
	pen__sampler_close(s);
	free(v);
}

/* With equal weights a draw has all of its chunk, each once. */
static void drawn_whole(void)
{
	enum { N = 64, CHUNK = 8 };
	const struct pen_opts_kv kv[] = { { "chunk", "8" }, { "chunks", "4" } };
	double w[N];
	uint64_t v[N], seen[N] = { 0 };
	const struct pen_population pop = { .n = N, .weights = w };
	struct pen_sampler *s;
	unsigned in_order = 0;

	for (unsigned i = 0; i < N; i++)
		w[i] = 0.3;
	s = open_ok("weighted", &pop, 5, kv, 2);
	ids(s, 0, 0, N, v);
	for (unsigned i = 0; i < N; i++) {
		seen[v[i]]++;
		in_order += i && v[i] == v[i - 1] + 1;
	}
	for (unsigned i = 0; i < N; i++)
		CHECK_EQ(seen[i], seen[i / CHUNK * CHUNK]);
	CHECK(in_order < 20);
	pen__sampler_close(s);
}

/* Classes come equally often on average; unlabelled elements never do. */
static void drawn_balanced(void)
{
	enum { N = 3000, DRAWS = 300000 };
	static const struct pen_opts_kv kv[] = { { "length", "300k" },
						 { "chunk", "16" } };
	static int64_t labels[N];
	static uint64_t v[DRAWS];
	const struct pen_population pop = { .n = N, .labels = labels };
	uint64_t seen[3] = { 0 };
	struct pen_sampler *s;

	for (unsigned i = 0; i < N; i++)
		labels[i] = i % 10 == 0	 ? PEN_NO_LABEL
			    : i % 7 == 0 ? 1
			    : i < 1500	 ? 0
					 : 2;
	for (size_t nkv = 1; nkv <= 2; nkv++) {
		memset(seen, 0, sizeof(seen));
		s = open_ok("balanced", &pop, 5, kv, nkv);
		ids(s, 0, 0, DRAWS, v);
		for (unsigned i = 0; i < DRAWS; i++)
			if (CHECK(labels[v[i]] != PEN_NO_LABEL))
				seen[labels[v[i]]]++;
		for (unsigned c = 0; c < 3; c++)
			CHECK(fabs((double)seen[c] * 3 / DRAWS - 1) < 0.03);
		pen__sampler_close(s);
	}
}

static void drawn_edges(void)
{
	static const double one[] = { 3 }, tiny[] = { 0, 5e-324, 0, 1, 0 };
	static const int64_t none[] = { PEN_NO_LABEL, PEN_NO_LABEL };
	static const struct pen_opts_kv kv[] = { { "chunk", "64" },
						 { "replacement", "no" } };
	struct pen_population pop = { .n = 1, .weights = one };
	struct pen_err e = { 0 };
	uint64_t v[5];
	struct pen_sampler *s = open_ok("weighted", &pop, 1, kv, 1);

	ids(s, 0, 0, 1, v);
	CHECK_EQ(v[0], 0);
	pen__sampler_close(s);
	pop = (struct pen_population){ .n = 5, .weights = tiny };
	s = open_ok("weighted", &pop, 1, kv, 1);
	for (uint64_t epoch = 0; epoch < 50; epoch++) {
		ids(s, epoch, 0, 5, v);
		for (unsigned i = 0; i < 5; i++)
			CHECK(v[i] == 3 || v[i] == 1);
	}
	pen__sampler_close(s);
	pop.weights = (const double[]){ 2, 0, 0, 0, 0 }; /* the first only */
	s = open_ok("weighted", &pop, 1, kv, 1);
	ids(s, 0, 0, 5, v);
	for (unsigned i = 0; i < 5; i++)
		CHECK_EQ(v[i], 0);
	pen__sampler_close(s);
	CHECK_EQ(pen__sampler_open(&s, "weighted", &pop, 1,
				   (struct pen_opts){ kv, 2 }, &e),
		 PEN_EINVAL);
	CHECK_STR(e.where, "sampler.chunk");
	pop = (struct pen_population){ .n = 2, .labels = none };
	CHECK_EQ(pen__sampler_open(&s, "balanced", &pop, 1,
				   (struct pen_opts){ NULL, 0 }, &e),
		 PEN_EINVAL);
	CHECK_STR(e.where, "labels");
}

static void refused(const char *name, const struct pen_population *pop,
		    const char *key, const char *value, const char *says)
{
	const struct pen_opts_kv kv = { key, value };
	struct pen_sampler *s;
	struct pen_err e = { 0 };

	CHECK_EQ(pen__sampler_open(&s, name, pop, 1,
				   (struct pen_opts){ &kv, key ? 1 : 0 }, &e),
		 PEN_EINVAL);
	CHECK(s == NULL);
	if (!CHECK(strstr(e.msg, says) != NULL))
		fprintf(stderr, "%s: %s\n", e.where, e.msg);
	CHECK_EQ(pen__sampler_open(&s, name, pop, 1,
				   (struct pen_opts){ &kv, key ? 1 : 0 }, NULL),
		 PEN_EINVAL);
}

static void refusals(void)
{
	static const double nan_[] = { 1, NAN }, neg[] = { 1, -1 },
			    inf_[] = { 1, INFINITY }, zero[] = { 0, 0 },
			    half[] = { 0, 1 };
	struct pen_population pop = { .n = 2 };
	const struct pen_population none = { .n = 0 };
	const struct pen_population toomany = { .n = (uint64_t)1 << 62 };
	const struct pen_opts_kv kv[] = { { "replacement", "no" },
					  { "length", "2" } };
	struct pen_sampler *s;
	struct pen_err e;

	refused("shufle", &pop, NULL, NULL, "did you mean 'shuffle'?");
	refused("zzz", &pop, NULL, NULL,
		"sequential, shuffle, block, census, scdataset, "
		"annbatch, weighted, balanced, bucket");
	refused("shuffle", &none, NULL, NULL, "cannot draw from 0");
	refused("shuffle", &toomany, NULL, NULL, "cannot draw from");
	refused("shuffle", &pop, "x", "1", "there are no options here");
	refused("block", &pop, "chunk", "0", "out of range");
	refused("block", &pop, "chunk", "x", "is not a count");
	refused("block", &pop, "chunkz", "1", "did you mean 'sampler.chunk'?");
	refused("weighted", &pop, NULL, NULL, "weights=FILE.npy");
	refused("balanced", &pop, NULL, NULL, "labels=FILE.npy");
	refused("bucket", &pop, NULL, NULL, "set lengths=");
	pop.weights = nan_;
	refused("weighted", &pop, NULL, NULL, "weight 1 is");
	pop.weights = neg;
	refused("weighted", &pop, NULL, NULL, "weight 1 is -1");
	pop.weights = inf_;
	refused("weighted", &pop, NULL, NULL, "weight 1 is inf");
	pop.weights = zero;
	refused("weighted", &pop, NULL, NULL, "all weights are 0");
	pop.weights = half;
	CHECK_EQ(pen__sampler_open(&s, "weighted", &pop, 1,
				   (struct pen_opts){ kv, 2 }, &e),
		 PEN_EINVAL);
	CHECK_STR(e.where, "sampler.length");
	CHECK(strstr(e.msg, "but only 1 sample with a weight") != NULL);
}

/* What was cut as one batch: complete ones of the window, sorted by length. */
static uint64_t bucket_spread(struct pen_sampler *s, const uint32_t *len)
{
	static uint64_t a[MAX_N];
	const uint64_t n = s->length, batch = s->pop.batch;
	uint64_t spread = 0;

	ids(s, 0, 0, n, a);
	CHECK(is_permutation(a, n));
	for (uint64_t at = 0; at + batch <= n; at += batch) {
		uint32_t lo = UINT32_MAX, hi = 0;

		for (uint64_t i = at; i < at + batch; i++) {
			lo = len[a[i]] < lo ? len[a[i]] : lo;
			hi = len[a[i]] > hi ? len[a[i]] : hi;
		}
		spread += hi - lo;
	}
	return spread;
}

/* Batches by tokens end where they are full, and nowhere else in a window. */
static void bucket_ends(struct pen_sampler *s, const uint32_t *len)
{
	static uint64_t a[MAX_N];
	const struct pen_population *p = &s->pop;
	uint64_t pos = 0, nth = 0;

	ids(s, 3, 0, s->length, a);
	CHECK(is_permutation(a, s->length));
	for (; pos < s->length; nth++) {
		const uint64_t end = s->ops->batch_end(s, 3, pos);
		uint64_t sum = 0, longest = 0;

		if (!CHECK(end > pos && end <= s->length))
			return;
		for (uint64_t i = pos; i < end; i++) {
			CHECK_EQ(s->ops->batch_end(s, 3, i), end);
			CHECK(i == pos || len[a[i]] >= len[a[i - 1]]);
			longest = len[a[i]] > longest ? len[a[i]] : longest;
			sum += len[a[i]];
		}
		if (p->padded && p->multiple)
			longest = (longest + p->multiple - 1) / p->multiple *
				  p->multiple;
		if (p->padded)
			sum = longest * (end - pos);
		CHECK(sum <= p->tokens || end == pos + 1);
		pos = end;
	}
	CHECK(nth > 1);
}

static void bucket(void)
{
	static uint32_t len[MAX_N];
	const struct pen_opts_kv kv[] = { { "window", "10" },
					  { "together", "4" } };
	struct pen_rng r = pen__rng(11, 1);

	for (uint64_t i = 0; i < MAX_N; i++)
		len[i] = (uint32_t)pen__rng_below(&r, 1000);
	for (uint64_t n = 1; n <= MAX_N; n = n * 5 / 3 + 1)
		for (uint32_t batch = 1; batch < 70; batch = batch * 3 + 1) {
			struct pen_population pop = { .n = n,
						      .lengths = len,
						      .batch = batch };
			struct pen_sampler *s =
				open_ok("bucket", &pop, n, kv, batch % 3);
			static uint64_t a[MAX_N];

			ids(s, 0, 0, n, a);
			check_pieces(s, a, 0, n);
			/* sorted, they differ by a fraction of the total
			 * spread */
			if (n > 1000 && batch > 1)
				CHECK(bucket_spread(s, len) <
				      n / batch * 1000 * 15 / 100);
			pen__sampler_close(s);
			pop.tokens = 5000;
			pop.most = 64;
			pop.padded = batch % 2;
			pop.multiple = n % 3 ? 64 : 0;
			s = open_ok("bucket", &pop, n, kv, batch % 3);
			if (n > 1000)
				bucket_ends(s, len);
			pen__sampler_close(s);
		}
}

/* Every allocation of every sampler fails once: reported, and nothing leaks. */
static void no_memory(void)
{
	static const double w[] = { 1, 2, 3 };
	static const int64_t labels[] = { 1, 2, 1 };
	static const uint32_t lengths[] = { 4, 1, 9 };
	const struct pen_population pop = { .n = 3,
					    .weights = w,
					    .labels = labels,
					    .lengths = lengths,
					    .batch = 1 };
	const struct pen_opts_kv kv[] = { { NULL, NULL },
					  { "replacement", "no" },
					  { "chunk", "2" } };

	for (unsigned k = 0; pen__sampler_at(k); k++) {
		const struct pen_sampler_ops *ops = pen__sampler_at(k);

		CHECK(pen__sampler_find(ops->name) == ops);
		CHECK(ops->help && *ops->help);
		for (size_t o = 0; o < 3; o++) {
			const size_t nkv = o != 0;
			struct pen_sampler *s = NULL;
			struct pen_err e;
			uint64_t nth = 0;
			int ret;

			if (o && !pen__opt_find(ops->opts, kv[o].key))
				continue;
			do {
				memset(&e, 0, sizeof(e));
				pen__mem_fail_nth(++nth, false);
				ret = pen__sampler_open(
					&s, ops->name, &pop, 1,
					(struct pen_opts){ &kv[o], nkv }, &e);
				pen__mem_fail_nth(0, false);
				CHECK(ret == 0 || (ret == PEN_ENOMEM && !s &&
						   e.code == PEN_ENOMEM));
			} while (ret && nth < 50);
			CHECK_EQ(ret, 0);
			CHECK(nth >= 3);
			if (!ret) { /* with all that it needs */
				uint64_t all[3];

				CHECK(s->length <= 3);
				ids(s, 0, 0, s->length, all);
			}
			pen__sampler_close(s);
		}
	}
	pen__sampler_close(NULL);
}

int main(void)
{
	properties();
	bucket();
	block_locality();
	big();
	weighted_with();
	weighted_edges();
	weighted_without();
	balanced_counts("no", 0);
	balanced_counts("no", 5003);
	balanced_counts("yes", 4000);
	balanced_counts("no", 3);
	balanced_edges();
	drawn_counts();
	drawn_whole();
	drawn_balanced();
	drawn_edges();
	refusals();
	no_memory();
	return test_end();
}
