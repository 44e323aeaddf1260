/* Detection of differences: rarely for equal distributions, always for clearly
 * slower ones. */
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

/* The share of pairs of n repeats that are found to differ. */
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
	CHECK(found(20, 1.01, 0.001) == 0); /* real, but too small */
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

/* More repeats than are used; the result is deterministic. */
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

/* Among equal settings the best is hardly ever called the only one; a clearly
 * better one is, also if less is better. */
static void best(void)
{
	struct pen_rng r = pen__rng(11, 3);
	double v[5][5];
	struct pen_repeats of[5];
	unsigned alone = 0, ahead = 0;
	bool alike[5];

	for (unsigned i = 0; i < TRIES; i++) {
		size_t at, n = 0;

		for (size_t k = 0; k < 5; k++) {
			draw(&r, v[k], 5, 1000, 0.1);
			of[k] = (struct pen_repeats){ v[k], 5 };
		}
		at = pen__best_of(of, 5, i % 2, 0.02, alike);
		CHECK(at < 5 && alike[at]);
		for (size_t k = 0; k < 5; k++)
			n += alike[k];
		alone += n == 1;
		draw(&r, v[3], 5, i % 2 ? 500 : 2000, 0.1);
		CHECK(pen__best_of(of, 5, i % 2, 0.02, alike) == 3);
		ahead += !alike[0] && !alike[1] && !alike[2] && !alike[4];
	}
	CHECK(alone <= 3 && ahead >= 97);
	/* none, and one without enough repeats */
	for (size_t k = 0; k < 5; k++)
		of[k].n = 0;
	CHECK(pen__best_of(of, 5, false, 0.02, alike) == 5);
	of[2].n = 1;
	of[4].n = 5;
	CHECK(pen__best_of(of, 5, false, 0.02, alike) < 5);
	CHECK(alike[2] && alike[4] && !alike[0]);
}

/* The default is kept unless another is better beyond noise. */
static void chosen(void)
{
	double slow[] = { 100, 101, 99, 100, 102 };
	double more[] = { 104, 98, 112, 101, 99 };
	double fast[] = { 150, 151, 149, 152, 150 };
	double also[] = { 151, 148, 152, 150, 149 };
	const struct pen_repeats of[] = {
		{ slow, 5 }, { more, 5 }, { fast, 5 }, { also, 5 }
	};
	bool alike[4];

	CHECK(pen__choose(of, 2, 0, 0.03, alike) == 0);
	CHECK(alike[0] && alike[1]);
	CHECK(pen__choose(of, 2, 2, 0.03, alike) == 1); /* no default */
	CHECK(pen__choose(of, 4, 0, 0.03, alike) >= 2);
	CHECK(!alike[0] && !alike[1] && alike[2] && alike[3]);
	CHECK(pen__choose(of, 3, 0, 0.03, alike) == 2);
	CHECK(!alike[0] && !alike[1] && alike[2]);
}

static void shown(void)
{
	double v[] = { 81200, 80000, 83000 }, w[] = { 10, 4000, 100 };
	double one[] = { 5 }, same[] = { 7, 7, 7 };

	CHECK_STR(pen__show_range(pen__range(v, 3), pen__show_count).s,
		  "81.2 k +-2 %");
	CHECK_STR(pen__show_range(pen__range(w, 3), pen__show_count).s,
		  "100 (10..4.00 k)");
	CHECK_STR(pen__show_range(pen__range(one, 1), pen__show_count).s, "5");
	CHECK_STR(pen__show_range(pen__range(same, 3), pen__show_count).s, "7");
	CHECK_STR(pen__show_range(pen__range(one, 0), pen__show_count).s, "-");
}

int main(void)
{
	medians();
	same_and_not();
	odd_input();
	many();
	best();
	chosen();
	shown();
	return test_end();
}
