/* Whether two sets of repeats differ: rarely when they are of one kind, and
 * always when one is clearly slower. */
#include "test.h"

#include <math.h>

#include "base/rng.h"
#include "report/spread.h"

#define TRIES 100

static double noise(struct pen_rng *r)
{
	double sum = -6;

	for (int i = 0; i < 12; i++)
		sum += pen__rng_double(r);
	return sum; /* close to normal, deviation 1 */
}

static void draw(struct pen_rng *r, double *v, size_t n, double mean,
		 double deviation)
{
	for (size_t i = 0; i < n; i++)
		v[i] = mean * (1 + deviation * noise(r));
}

static void medians(void)
{
	double v[] = { 5, 1, 4, 2 }, w[] = { 3, 1, 2 };

	CHECK(pen__median(v, 4) == 3);
	CHECK(pen__median(w, 3) == 2);
	CHECK(isnan(pen__median(w, 0)));
}

/* How often are two sets of n found to differ? */
static unsigned found(size_t n, double factor, double deviation)
{
	struct pen_rng r = pen__rng(7, n);
	double a[64], b[64];
	unsigned count = 0;

	for (unsigned i = 0; i < TRIES; i++) {
		struct pen_change c;

		draw(&r, a, n, 1000, deviation);
		draw(&r, b, n, 1000 * factor, deviation);
		c = pen__change(a, n, b, n, 0.02);
		CHECK(c.low <= c.high);
		CHECK(c.differs == !c.why);
		count += c.differs;
	}
	return count;
}

static void same_and_not(void)
{
	static const size_t sizes[] = { 3, 4, 5, 20 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		CHECK(found(sizes[i], 1, 0.05) <= TRIES / 20);
		CHECK(found(sizes[i], 0.9, 0.01) >= TRIES * 19 / 20);
	}
	CHECK(found(20, 0.9, 0.05) >= TRIES * 19 / 20);
	CHECK(found(20, 1.01, 0.001) == 0); /* true, but too little */
}

static void odd_input(void)
{
	double a[] = { 1, 2, 3 }, zero[] = { 0, 0, 0 }, one[] = { 5 };
	double few[] = { 4, 4 };
	struct pen_change c;

	c = pen__change(a, 3, one, 0, 0.02);
	CHECK(!c.differs && isnan(c.share) && c.why);
	c = pen__change(zero, 3, a, 3, 0.02);
	CHECK(!c.differs && isnan(c.share));
	CHECK(!strcmp(c.why, "no share of zero"));
	c = pen__change(zero, 3, zero, 3, 0.02);
	CHECK(!c.differs && !strcmp(c.why, "the same"));
	c = pen__change(one, 1, few, 2, 0.02);
	CHECK(!c.differs && fabs(c.share + 0.2) < 1e-12 && isnan(c.low));
	c = pen__change(a, 3, zero, 3, 0.02);
	CHECK(c.share == -1 && c.differs);
}

/* More than are looked at, and the same answer twice. */
static void many(void)
{
	static double a[20000], b[20000];
	struct pen_rng r = pen__rng(1, 2);
	struct pen_change c, d;

	draw(&r, a, 20000, 100, 0.2);
	draw(&r, b, 20000, 95, 0.2);
	c = pen__change(a, 20000, b, 20000, 0.02);
	CHECK(c.differs && fabs(c.share + 0.05) < 0.02);
	r = pen__rng(1, 2);
	draw(&r, a, 20000, 100, 0.2);
	draw(&r, b, 20000, 95, 0.2);
	d = pen__change(a, 20000, b, 20000, 0.02);
	CHECK(c.low == d.low && c.high == d.high);
}

int main(void)
{
	medians();
	same_and_not();
	odd_input();
	many();
	return test_end();
}
