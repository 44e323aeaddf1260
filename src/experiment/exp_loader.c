/*
 * Effect of the prefetch depth and the batch size on rate, wait time and
 * memory. All variants deliver the same samples.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "experiment/harness.h"

/* ---- prefetch depth ---- */

/* Prefetching helps a consumer that needs time for each batch; one that does
 * not empties any queue. */
static int step(void *arg, const struct pen_batch *b, struct pen_err *err)
{
	const struct pen_session *r = arg;
	const bool busy = pen__given(r, "--busy");
	const uint64_t until =
		pen__now_ns() + (uint64_t)pen__number(r, "--step");
	const struct timespec t = { (time_t)(until / 1000000000),
				    (long)(until % 1000000000) };

	(void)b;
	(void)err;
	while (busy && pen__now_ns() < until)
		;
	while (!busy &&
	       clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL))
		;
	return 0;
}

static int run_ahead(struct pen_session *r, const struct pen_trial *t,
		     struct pen_text *j, struct pen_err *err)
{
	const double ns = pen__number(r, "--step");
	struct pen_pass pass = { .content = true,
				 .eat = ns > 0 ? step : NULL,
				 .arg = r };

	pen__json_num(j, "step_s", ns / 1e9);
	return pen__run_pass_with(r, t, &pass, NULL, j, err);
}

static int prepare_ahead(struct pen_session *r, struct pen_err *err)
{
	if (pen__given(r, "--busy") && !(pen__number(r, "--step") > 0))
		return pen__fail(
			err, P_NO_EFFECT, r->name,
			"--busy has no effect without --step; set --step");
	pen__run_vary(r);
	for (struct pen_setup *s = r->setup; s < r->setup + r->n; s++)
		snprintf(s->check, sizeof(s->check), "step=%.0f%s",
			 pen__number(r, "--step"),
			 pen__given(r, "--busy") ? " busy" : "");
	return pen__run_data(r, err);
}

struct pen_experiment pen__exp_prefetch = {
	.kind = { .experiment = "prefetch" },
	.prepare = prepare_ahead,
	.run = run_ahead,
};

/* ---- batch size ---- */

/*
 * Fits seconds per batch = c + d x samples. Residuals are relative, so that all
 * sizes have equal weight.
 */
static bool fit(const struct pen_variants *a, double *c, double *d)
{
	double s0 = 0, s1 = 0, s2 = 0, t0 = 0, t1 = 0, det;
	size_t n = 0;

	for (size_t i = 0; i < a->n; i++) {
		const double t = pen__median_of(a, &a->v[i], "s_per_batch");
		const double x = pen__median_of(a, &a->v[i], "batch");

		if (isnan(t) || t <= 0 || isnan(x) ||
		    pen__line_true(a->v[i].row, "cold"))
			continue;
		s0 += 1 / (t * t);
		s1 += x / (t * t);
		s2 += x * x / (t * t);
		t0 += 1 / t;
		t1 += x / t;
		n++;
	}
	det = s0 * s2 - s1 * s1;
	if (n < 3 || !(det > 0))
		return false;
	*c = (t0 * s2 - t1 * s1) / det;
	*d = (t1 * s0 - t0 * s1) / det;
	return *d > 0;
}

static void words_size(struct pen_text *t, const struct pen_variants *a)
{
	double c, d;

	if (!fit(a, &c, &d))
		return;
	if (c <= 0) {
		pen__text_add(t,
			      "The cost per sample is %s; a cost per batch "
			      "cannot be distinguished from noise.\n",
			      pen__show_time(d).s);
		return;
	}
	pen__text_add(t, "A batch costs about %s ", pen__show_time(c).s);
	pen__text_add(t, "plus %s per sample: ", pen__show_time(d).s);
	pen__text_add(t, "from %s samples on, the samples cost more.\n",
		      pen__show_whole(ceil(c / d)).s);
}

struct pen_experiment pen__exp_batch_size = {
	.kind = { .experiment = "batch-size", .words = words_size },
};
