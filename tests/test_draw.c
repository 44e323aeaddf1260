/*
 * Emulated times: mean and variance of every distribution compared with theory,
 * with fixed seeds and bounds of five standard errors; a draw is a function of
 * its stream.
 */
#include "test.h"

#include <math.h>

#include "emulate/draw.h"

#define N 200000

struct law {
	const char *name;
	struct pen_time_spec t;
	double mean, var, kurt; /* kurt: fourth central moment / var^2 */
};

/* Compares bytes, so that -0 and 0 differ. */
static bool same(double a, double b)
{
	return memcmp(&a, &b, sizeof(a)) == 0;
}

static void check_law(const struct law *l, uint64_t seed)
{
	double sum = 0, sq = 0, mean, var, off;

	for (uint64_t i = 0; i < N; i++) {
		struct pen_rng g = pen__rng(seed, i), again = g;
		double v = pen__time_draw(&l->t, &g);

		if (!(v >= 0) || !same(v, pen__time_draw(&l->t, &again))) {
			CHECK(!"a draw is not one, or not again");
			return;
		}
		sum += v;
		sq += (v - l->mean) * (v - l->mean);
	}
	mean = sum / N;
	off = mean - l->mean;
	var = sq / N - off * off;
	if (!CHECK(fabs(off) <= 5 * sqrt(l->var / N) + 1e-12) ||
	    !CHECK(fabs(var - l->var) <=
		   5 * l->var * sqrt((l->kurt - 1) / N) + 1e-12))
		fprintf(stderr, "  %s: mean %g for %g, variance %g for %g\n",
			l->name, mean, l->mean, var, l->var);
	if (!CHECK(fabs(pen__time_mean(&l->t) - l->mean) <= 1e-5 * l->mean))
		fprintf(stderr, "  %s: %g is said for %g\n", l->name,
			pen__time_mean(&l->t), l->mean);
}

/* Moments of |x|, x normal, by numerical integration. */
static struct law folded(double m, double s)
{
	struct law l = { .name = "folded normal",
			 .t = { .mean = m, .stdev = s } };
	double p[5] = { 0 }, h = s / 1000;

	for (double x = m - 12 * s; x < m + 12 * s; x += h) {
		double z = (x - m) / s, w = exp(-z * z / 2) * h;
		double f = w / (s * sqrt(2 * M_PI)), a = fabs(x);

		for (int k = 0; k < 5; k++)
			p[k] += f * pow(a, k);
	}
	l.mean = p[1];
	l.var = p[2] - p[1] * p[1];
	l.kurt = (p[4] - 4 * p[3] * p[1] + 6 * p[2] * p[1] * p[1] -
		  3 * pow(p[1], 4)) /
		 (l.var * l.var);
	return l;
}

static void laws(void)
{
	const struct law all[] = {
		{ "constant", { .mean = 0.25 }, 0.25, 0, 3 },
		{ "normal", { .mean = 10, .stdev = 1 }, 10, 1, 3 },
		{ "uniform",
		  { .type = PEN_DRAW_UNIFORM, .min = 1, .max = 3 },
		  2,
		  4.0 / 12,
		  1.8 },
		{ "uniform around 0",
		  { .type = PEN_DRAW_UNIFORM, .min = -1, .max = 1 },
		  0.5,
		  1.0 / 12,
		  1.8 },
		{ "gamma",
		  { .type = PEN_DRAW_GAMMA, .shape = 4, .scale = 0.5 },
		  2,
		  1,
		  3 + 6.0 / 4 },
		{ "gamma below 1",
		  { .type = PEN_DRAW_GAMMA, .shape = 0.3, .scale = 2 },
		  0.6,
		  1.2,
		  3 + 6 / 0.3 },
		{ "exponential",
		  { .type = PEN_DRAW_EXPONENTIAL, .scale = 2 },
		  2,
		  4,
		  9 },
		{ "poisson",
		  { .type = PEN_DRAW_POISSON, .lam = 0.7 },
		  0.7,
		  0.7,
		  3 + 1 / 0.7 },
		{ "poisson in pieces",
		  { .type = PEN_DRAW_POISSON, .lam = 1100 },
		  1100,
		  1100,
		  3 + 1.0 / 1100 },
	};
	struct law l;

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		check_law(&all[i], 7 + i);
	l = folded(0, 2);
	check_law(&l, 100);
	l = folded(0.5, 1);
	check_law(&l, 101);
}

static void edges(void)
{
	const struct pen_time_spec nothing = { 0 }, below = { .mean = -0.5 },
				   long_one = { .type = PEN_DRAW_GAMMA,
						.shape = 1e6,
						.scale = 1e6 },
				   none = { .type = PEN_DRAW_POISSON };
	struct pen_rng g = pen__rng(1, 2);

	CHECK(same(pen__time_draw(&nothing, &g), 0));
	CHECK(same(pen__time_mean(&nothing), 0));
	CHECK(same(pen__time_draw(&none, &g), 0));
	CHECK(same(pen__time_draw(&below, &g), 0.5));
	CHECK(same(pen__time_mean(&below), 0.5));
	/* must fit in nanoseconds */
	CHECK(pen__time_draw(&long_one, &g) <= 1e9);
}

int main(void)
{
	laws();
	edges();
	return test_end();
}
