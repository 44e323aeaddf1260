/*
 * Figures of one block of steps of one accelerator. docs/method.md has the
 * formulas. Reads no clock and no file.
 */
#include "emulate/metrics.h"

#include <math.h>

struct pen_mean pen__mean_of(const double *v, size_t n)
{
	struct pen_mean m = { 0, 0 };

	for (size_t i = 0; i < n; i++)
		m.mean += v[i] / (double)n;
	for (size_t i = 0; i < n; i++)
		m.stdev += (v[i] - m.mean) * (v[i] - m.mean) / (double)n;
	m.stdev = sqrt(m.stdev);
	return m;
}

static double proc_sum(const struct pen_step_times *s, size_t from, size_t to)
{
	double sum = 0;

	for (size_t i = from; i < to; i++)
		sum += (double)s->load[i] + (double)s->compute[i];
	return sum;
}

/* The divisor of DLIO: it subtracts excluded steps even if these are all steps,
 * and more than once. */
static double dlio_seconds(const struct pen_config *c,
			   const struct pen_phase *p,
			   const struct pen_step_times *s)
{
	const uint64_t x = c->output.exclude_end_steps;
	size_t head = s->n, tail = x < s->n ? s->n - (size_t)x : 0;

	if (c->output.exclude_start_steps < s->n)
		head = (size_t)c->output.exclude_start_steps;
	return p->seconds - proc_sum(s, 0, head) - proc_sum(s, tail, s->n);
}

static void compute_figures(const struct pen_step_times *s,
			    struct pen_block_figures *f)
{
	const double n = (double)f->steps;
	double sum = 0, sq = 0;

	for (size_t i = 0; i < f->steps; i++)
		sum += (double)s->compute[f->first + i];
	f->compute_mean = sum / n;
	for (size_t i = 0; i < f->steps; i++) {
		double d = (double)s->compute[f->first + i] - f->compute_mean;

		sq += d * d;
	}
	f->compute_stdev = sqrt(sq / n);
}

void pen__block_figures(const struct pen_config *c, const struct pen_phase *p,
			unsigned accel, struct pen_block_figures *f)
{
	const uint64_t head = c->output.exclude_start_steps,
		       tail = c->output.exclude_end_steps;
	const struct pen_step_times *s = p->of ? &p->of[accel] : NULL;
	double batch, t, inside;

	*f = (struct pen_block_figures){ 0 };
	if (!s || !s->n)
		return;
	f->whole = head >= s->n || tail >= s->n - head;
	f->first = f->whole ? 0 : (size_t)head;
	f->steps = f->whole ? s->n : s->n - (size_t)(head + tail);
	inside = proc_sum(s, f->first, f->first + f->steps);
	f->seconds = p->seconds - proc_sum(s, 0, f->first) -
		     proc_sum(s, f->first + f->steps, s->n);
	/* a block cannot be shorter than its steps; clocks may differ slightly
	 */
	if (!(f->seconds >= inside))
		f->seconds = inside;
	compute_figures(s, f);
	if (f->seconds > 0)
		f->au = 100 * f->compute_mean * (double)f->steps / f->seconds;
	if (p->kind == PEN_PHASE_EVAL) {
		batch = (double)c->reader.batch_size_eval;
		if (p->seconds > 0)
			f->throughput = (double)s->n * batch / p->seconds;
		f->dlio_throughput = f->throughput;
		return;
	}
	batch = (double)c->reader.batch_size;
	if (f->seconds > 0)
		f->throughput = (double)f->steps * batch / f->seconds;
	t = dlio_seconds(c, p, s);
	/* for a single step DLIO computes a negative rate */
	if (t > 0 && s->n > 2)
		f->dlio_throughput = ((double)s->n - 2) * batch / t;
}
