/*
 * Threads that compute all the time, as a training step on the CPU does, and
 * count what they got done. They work within the first cache: they want the
 * CPU, not the memory.
 */
#include <math.h>

#include "base/clock.h"
#include "base/team.h"
#include "experiment/experiment.h"

#define NUMBERS 1024

/* One piece of work: about 10 us. */
static double piece(double seed)
{
	double v[NUMBERS], sum = 0;

	for (int i = 0; i < NUMBERS; i++)
		v[i] = seed + i;
	for (int k = 0; k < 4; k++)
		for (int i = 0; i < NUMBERS; i++) {
			v[i] = v[i] * 0.999 + 0.5;
			sum += v[i];
		}
	return sum;
}

static void work(void *arg, unsigned i)
{
	struct pen_busy *b = arg;
	double x = i;

	while (!atomic_load_explicit(&b->stop, memory_order_relaxed)) {
		x = fmod(piece(x), 7);
		atomic_fetch_add_explicit(&b->done, 1, memory_order_relaxed);
	}
	/* so that the work cannot be left out */
	if (x == 0.123)
		atomic_fetch_add(&b->done, 1);
}

int pen__busy_start(struct pen_busy *b, unsigned threads, struct pen_err *err)
{
	atomic_store(&b->done, 0);
	atomic_store(&b->stop, false);
	b->start_ns = pen__now_ns();
	b->team = NULL;
	return threads ? pen__team_start(&b->team, threads, "pen-busy", work, b,
					 err)
		       : 0;
}

double pen__busy_stop(struct pen_busy *b)
{
	const double n = (double)atomic_load(&b->done);
	const double s = (double)(pen__now_ns() - b->start_ns) / 1e9;

	atomic_store(&b->stop, true);
	pen__team_join(b->team);
	b->team = NULL;
	return s > 0 ? n / s : 0;
}
