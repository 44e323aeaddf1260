/* What samplers say about their order: which positions are mixed, which windows
 * and batches there are, and what the order depends on. */
#include "sampler.h"

/* What a sampler calls mixed are entire chunks, and no part of others. */
static void mixed_chunks(const char *name, uint64_t n)
{
	static uint64_t a[MAX_N];
	const struct pen_population pop = { .n = n, .batch = 16 };
	const struct pen_opts_kv kv = { "chunk", "8" };
	struct pen_sampler *s =
		open_ok(name, &pop, n, &kv, strcmp(name, "shuffle") != 0);
	const uint64_t chunk = s->chunk ? s->chunk : 1;
	uint64_t start, end = 0;

	ids(s, 1, 0, n, a);
	for (uint64_t pos = 0; pos < n; pos = end) {
		static uint64_t seen[MAX_N];
		uint64_t again[2];

		if (!CHECK(s->ops->mixed(s, 1, pos, &start, &end)) ||
		    !CHECK(start == pos && end > pos && end <= n))
			break;
		CHECK(s->ops->mixed(s, 1, end - 1, &again[0], &again[1]));
		CHECK(again[0] == start && again[1] == end);
		memset(seen, 0, sizeof(seen));
		for (uint64_t i = start; i < end; i++)
			seen[a[i] / chunk]++;
		for (uint64_t c = 0; c * chunk < n; c++)
			CHECK(!seen[c] || seen[c] == (c * chunk + chunk < n
							      ? chunk
							      : n - c * chunk));
	}
	if (!strcmp(name, "shuffle"))
		CHECK(s->ops->mixed(s, 0, n / 2, &start, &end) && !start &&
		      end == n);
	pen__sampler_close(s);
}

static void mixes(void)
{
	static const uint64_t n[] = { 1, 7, 8, 9, 100, 1000, 4099 };

	for (size_t i = 0; i < sizeof(n) / sizeof(*n); i++) {
		mixed_chunks("shuffle", n[i]);
		mixed_chunks("block", n[i]);
	}
}

/* So many batches in memory that their rows overflow: all chunks, not few. */
static void endless_fetch(void)
{
	const struct pen_population pop = { .n = 1000, .batch = 1u << 31 };
	const struct pen_opts_kv kv = { "fetch", "17179869184" };
	struct pen_sampler *s = NULL;
	struct pen_err e = { 0 };

	if (pen__sampler_open(&s, "scdataset", &pop, 1,
			      (struct pen_opts){ &kv, 1 }, &e) == 0) {
		CHECK(s->window >= 1000);
		pen__sampler_close(s);
	} else {
		CHECK(strstr(e.msg, "out of range") != NULL);
	}
}

/* The last window is short, and draws no more chunks than its rows fill. */
static void drawn_short_window(void)
{
	enum { N = 4096, CHUNK = 16, CHUNKS = 32, LAST = 64 };
	static double w[N];
	const struct pen_opts_kv kv[] = { { "chunk", "16" },
					  { "chunks", "32" },
					  { "length", "576" } };
	const struct pen_population pop = { .n = N, .weights = w };
	uint64_t v[LAST];
	struct pen_sampler *s;

	for (unsigned i = 0; i < N; i++)
		w[i] = 1;
	s = open_ok("weighted", &pop, 5, kv, 3);
	CHECK_EQ(s->length, CHUNK * CHUNKS + LAST);
	for (uint64_t epoch = 0; epoch < 20; epoch++) {
		bool seen[N / CHUNK] = { false };
		unsigned n = 0;

		ids(s, epoch, CHUNK * CHUNKS, LAST, v);
		for (unsigned i = 0; i < LAST; i++) {
			n += !seen[v[i] / CHUNK];
			seen[v[i] / CHUNK] = true;
		}
		CHECK(n <= LAST / CHUNK);
	}
	pen__sampler_close(s);
}

static uint64_t bucket_order(const struct pen_population *pop)
{
	struct pen_sampler *s = open_ok("bucket", pop, 1, NULL, 0);
	const uint64_t order = s->order;

	pen__sampler_close(s);
	return order;
}

/* A saved position is of use with the same batches only, so their sizes are
 * part of what names the order. */
static void bucket_orders(void)
{
	static const uint32_t len[100] = { 3, 1, 4, 1, 5, 9, 2, 6 };
	struct pen_population pop = { .n = 100, .lengths = len, .batch = 4 };
	uint64_t order = bucket_order(&pop);

	CHECK(order);
	CHECK_EQ(bucket_order(&pop), order);
	pop.batch = 5;
	CHECK(bucket_order(&pop) != order);
	pop.tokens = 50;
	pop.most = 8;
	order = bucket_order(&pop);
	pop.most = 9;
	CHECK(bucket_order(&pop) != order);
	pop.padded = true;
	pop.multiple = 2;
	order = bucket_order(&pop);
	pop.multiple = 4;
	CHECK(bucket_order(&pop) != order);
}

int main(void)
{
	mixes();
	endless_fetch();
	drawn_short_window();
	bucket_orders();
	return test_end();
}
