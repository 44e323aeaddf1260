/* Percentiles against a sorted array, at every scale. */
#include "test.h"

#include <math.h>

#include "base/hist.h"
#include "base/rng.h"

static int by_value(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static bool near(uint64_t got, uint64_t want)
{
	const uint64_t d = got > want ? got - want : want - got;

	return want < 128 ? d == 0 : (double)d <= (double)want / 128;
}

static void edges(void)
{
	static struct pen_hist h;

	pen__hist_init(&h);
	CHECK_EQ(pen__hist_percentile(&h, 50), 0);
	for (unsigned bit = 0; bit < 64; bit++)
		for (int d = -1; d <= 1; d++) {
			uint64_t v =
				((uint64_t)1 << bit) + (uint64_t)(int64_t)d;

			pen__hist_init(&h);
			pen__hist_add(&h, 0);
			pen__hist_add(&h, v);
			pen__hist_add(&h, UINT64_MAX);
			CHECK(near(pen__hist_percentile(&h, 50), v));
			CHECK_EQ(pen__hist_percentile(&h, 0), 0);
			CHECK(pen__hist_percentile(&h, 100) == UINT64_MAX);
		}
	pen__hist_init(&h);
	pen__hist_add(&h, 1000003);
	for (int p = 0; p <= 100; p++)
		CHECK_EQ(pen__hist_percentile(&h, p), 1000003);
}

static void random_values(unsigned shift)
{
	enum { N = 5000 };
	static uint64_t v[N];
	static struct pen_hist h, part[2];
	struct pen_rng r = pen__rng(7, shift);
	uint64_t sum = 0;

	pen__hist_init(&h);
	pen__hist_init(&part[0]);
	pen__hist_init(&part[1]);
	for (unsigned i = 0; i < N; i++) {
		v[i] = pen__rng_u64(&r) >> shift >> pen__rng_below(&r, 20);
		sum += v[i];
		pen__hist_add(&h, v[i]);
		pen__hist_add(&part[i % 2], v[i]);
	}
	qsort(v, N, sizeof(v[0]), by_value);
	CHECK_EQ(h.count, N);
	CHECK(h.sum == sum && h.min == v[0] && h.max == v[N - 1]);
	for (double p = 1; p < 100; p += 0.7) {
		unsigned rank = (unsigned)(p / 100 * N);

		rank += (double)rank < p / 100 * N;
		CHECK(near(pen__hist_percentile(&h, p), v[rank - 1]));
	}
	for (double p = 5, top; p <= 100; p += 19) {
		double want = 0;

		for (unsigned i = 0; i < p / 100 * N; i++)
			want += (double)v[N - 1 - i];
		top = pen__hist_top(&h, p);
		/* the total sum would exceed 64 bits */
		if (shift >= 16 && sum)
			CHECK(fabs(top - want / (double)sum) < 0.01);
		CHECK(top >= 0 && top <= 1);
	}
	pen__hist_merge(&part[0], &part[1]);
	CHECK(!memcmp(&part[0], &h, sizeof(h)));
	pen__hist_init(&part[1]);
	pen__hist_merge(&part[0], &part[1]);
	CHECK(!memcmp(&part[0], &h, sizeof(h)));
}

int main(void)
{
	edges();
	for (unsigned shift = 0; shift < 60; shift += 4)
		random_values(shift);
	return test_end();
}
