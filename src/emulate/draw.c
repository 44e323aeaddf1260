/* See draw.h. */
#include "emulate/draw.h"

#include <math.h>
#include <sched.h>
#include <sys/prctl.h>

#include "base/clock.h"

/* Seconds; an upper limit, so that nanoseconds fit in 64 bits. */
#define LONGEST 1e9
/*
 * The kernel wakes a thread late, by tens of microseconds, and by hundreds if a
 * virtual CPU was idle. The thread therefore wakes this much earlier and then
 * polls the clock. The delay is learnt from recent wake-ups; at most an eighth
 * of the wait is spent polling.
 */
#define EARLY_NS 60000
#define EARLY_MOST_NS 400000
static _Thread_local uint64_t late_ns;

/* Uniform in (0, 1), so that its logarithm is finite. */
static double open_unit(struct pen_rng *r)
{
	return ((double)(pen__rng_u64(r) >> 12) + 0.5) * 0x1p-52;
}

static double normal(struct pen_rng *r)
{
	double a = open_unit(r), b = open_unit(r);

	return sqrt(-2 * log(a)) * cos(6.283185307179586 * b);
}

/* Method of Marsaglia and Tsang; shapes below 1 are boosted by a power of a
 * uniform. */
static double gamma_draw(struct pen_rng *r, double shape)
{
	double d, c, boost = 1;

	if (shape <= 0)
		return 0;
	if (shape < 1) {
		boost = pow(open_unit(r), 1 / shape);
		shape += 1;
	}
	d = shape - 1.0 / 3;
	c = 1 / sqrt(9 * d);
	for (;;) {
		double x = normal(r), v = 1 + c * x;

		if (v <= 0)
			continue;
		v = v * v * v;
		if (log(open_unit(r)) < 0.5 * x * x + d - d * v + d * log(v))
			return boost * d * v;
	}
}

/* Product of uniforms, in steps of at most 500 to avoid underflow: Poisson
 * variables add up. */
static double poisson(struct pen_rng *r, double lam)
{
	double n = 0;

	for (; lam > 0; lam -= 500) {
		double limit = exp(-fmin(lam, 500)), p = open_unit(r);

		for (; p > limit; p *= open_unit(r))
			n++;
	}
	return n;
}

double pen__time_draw(const struct pen_time_spec *t, struct pen_rng *r)
{
	double v = t->mean;

	switch (t->type) {
	case PEN_DRAW_UNIFORM:
		v = t->min + (t->max - t->min) * pen__rng_double(r);
		break;
	case PEN_DRAW_GAMMA:
		v = t->scale * gamma_draw(r, t->shape);
		break;
	case PEN_DRAW_EXPONENTIAL:
		v = -t->scale * log(open_unit(r));
		break;
	case PEN_DRAW_POISSON:
		v = poisson(r, t->lam);
		break;
	default:
		if (t->stdev > 0)
			v += t->stdev * normal(r);
	}
	return fmin(fabs(v), LONGEST);
}

/* Negative values are mirrored, as in pen__time_draw(). */
static double normal_mean(double mean, double sd)
{
	double z = mean / sd;

	if (!(sd > 0))
		return fabs(mean);
	return sd * 0.7978845608028654 * exp(-z * z / 2) +
	       mean * erf(z * 0.7071067811865476);
}

static double uniform_mean(double min, double max)
{
	if (min >= 0 || max <= 0)
		return fabs(min + max) / 2;
	return (min * min + max * max) / (2 * (max - min));
}

double pen__time_mean(const struct pen_time_spec *t)
{
	switch (t->type) {
	case PEN_DRAW_UNIFORM:
		return uniform_mean(t->min, t->max);
	case PEN_DRAW_GAMMA:
		return t->shape * t->scale;
	case PEN_DRAW_EXPONENTIAL:
		return t->scale;
	case PEN_DRAW_POISSON:
		return t->lam;
	default:
		return normal_mean(t->mean, t->stdev);
	}
}

void pen__wait_init(void)
{
	struct sched_param p = { .sched_priority = 1 };

	prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
	/* An emulated accelerator must keep its time on busy CPUs. Without the
	 * privilege it runs with normal priority; threads that it starts are
	 * not affected. */
	(void)!sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &p);
}

void pen__wait_fini(void)
{
	struct sched_param p = { .sched_priority = 0 };

	(void)!sched_setscheduler(0, SCHED_OTHER, &p);
}

static void learn(uint64_t late)
{
	late_ns -= late_ns / 64;
	if (late > late_ns)
		late_ns = late < EARLY_MOST_NS ? late : EARLY_MOST_NS;
}

void pen__wait_until(uint64_t ns)
{
	uint64_t now = pen__now_ns(), early, to;

	if (now >= ns)
		return;
	early = late_ns + late_ns / 4;
	if (early > (ns - now) / 8)
		early = (ns - now) / 8;
	if (early < EARLY_NS)
		early = EARLY_NS;
	to = ns - early;
	if (to > now) {
		struct timespec t = { .tv_sec = (time_t)(to / 1000000000),
				      .tv_nsec = (long)(to % 1000000000) };

		/* interrupted by a signal: the caller checks and calls again */
		if (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL))
			return;
		learn(pen__now_ns() - to);
	}
	while (pen__now_ns() < ns)
		;
}
