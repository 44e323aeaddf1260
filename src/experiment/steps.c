/*
 * The loop. Simulated loading waits in the engine's workers, through the same
 * hook as emulated preprocessing, so threads, prefetching and hand-over are the
 * real ones.
 */
#include "experiment/steps.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "experiment/peer.h"

#define SPIN_NS 80000	 /* a sleep ends so much late at most, mostly */
#define LOOK_NS 10000000 /* at memory, no more often */
#define WHOLE(x) ((uint64_t)(x))

/* To a few microseconds: sleeps, and spins the rest. */
static void wait_until(uint64_t ns)
{
	const uint64_t early = ns - (ns > SPIN_NS ? SPIN_NS : ns);
	const struct timespec t = { (time_t)(early / 1000000000),
				    (long)(early % 1000000000) };

	if (pen__now_ns() < early)
		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t,
				       NULL) == EINTR)
			;
	while (pen__now_ns() < ns)
		;
}

/* ---- sums ---- */

#define LANES 32

static uint64_t sum_floats(const float *v, size_t n)
{
	float lane[LANES] = { 0 };
	double all = 0;
	size_t i = 0;

	for (; i + LANES <= n; i += LANES)
		for (size_t k = 0; k < LANES; k++)
			lane[k] += v[i + k];
	for (size_t k = 0; k < LANES; k++)
		all += (double)lane[k];
	for (; i < n; i++)
		all += (double)v[i];
	return WHOLE(all);
}

void pen__tally_values(struct pen_tally *t, const void *p, size_t nbytes)
{
	const unsigned char *bytes = p;
	uint64_t sum = 0;

	if (t->floats) {
		t->sum += sum_floats(p, nbytes / 4);
		return;
	}
	if (nbytes % 4) {
		for (size_t i = 0; i < nbytes; i++)
			sum += bytes[i];
	} else {
		for (size_t i = 0; i < nbytes; i += 4) {
			uint32_t w;

			memcpy(&w, bytes + i, 4);
			sum += w;
		}
	}
	t->sum += sum;
}

void pen__tally_batch(struct pen_tally *t, const struct pen_batch *b)
{
	const struct pen_tensor *most = NULL;

	for (uint32_t i = 0; i < b->ntensors; i++)
		if (!most || b->tensors[i].nbytes > most->nbytes)
			most = &b->tensors[i];
	t->samples += b->nsamples;
	if (most)
		pen__tally_values(t, most->data, most->nbytes);
}

/* ---- the loop ---- */

struct run {
	struct pen_steps *s;
	struct pen_loader *l;
	struct pen_batch **kept;
	uint64_t *ids;
	uint64_t wait_ns, looked_ns;
};

static void load_hook(void *arg, uint32_t worker, uint32_t n)
{
	const double *s = arg;

	(void)worker;
	wait_until(pen__now_ns() + WHOLE(*s * n * 1e9));
}

/* No thread loads ahead: a batch is asked for when it is needed. */
static int next_alone(struct run *r, uint64_t step, struct pen_batch **out,
		      struct pen_err *err)
{
	const struct pen_steps *s = r->s;
	const uint64_t until =
		pen__now_ns() + WHOLE(s->load_s * (double)s->batch * 1e9);
	int rc;

	for (uint64_t i = 0; i < s->batch; i++)
		r->ids[i] = step * s->batch + i;
	rc = pen_loader_ask(r->l, r->ids, (uint32_t)s->batch, err);
	if (!rc)
		rc = pen_loader_next(r->l, out, err);
	if (s->load_s > 0)
		wait_until(until);
	return rc;
}

static int next(struct run *r, uint64_t step, struct pen_batch **out,
		struct pen_err *err)
{
	int rc;

	if (r->kept) {
		*out = r->kept[step % r->s->cached];
		pen_batch_ref(*out);
		return 0;
	}
	rc = r->s->threads ? pen_loader_next(r->l, out, err)
			   : next_alone(r, step, out, err);
	if (rc == PEN_END)
		rc = pen__fail(err, PEN_EDATA, pen_spec_path(r->s->spec, 0),
			       "ended after %llu batches, not %llu",
			       (unsigned long long)step,
			       (unsigned long long)r->s->steps);
	return rc;
}

static void look(struct run *r)
{
	const uint64_t now = pen__now_ns();
	uint64_t bytes;

	if (!r->s->memory || now - r->looked_ns < LOOK_NS)
		return;
	bytes = pen__tree_memory(getpid());
	if (bytes > r->s->peak_bytes)
		r->s->peak_bytes = bytes;
	r->looked_ns = now;
}

static int loop(struct run *r, struct pen_err *err)
{
	struct pen_steps *s = r->s;
	const uint64_t start = pen__now_ns();
	const uint64_t compute = WHOLE(s->compute_s * 1e9);

	for (uint64_t i = 0; i < s->steps; i++) {
		const uint64_t before = pen__now_ns();
		struct pen_batch *b;
		uint64_t after;
		int rc = next(r, i, &b, err);

		if (rc)
			return rc;
		after = pen__now_ns();
		r->wait_ns += after - before;
		pen__tally_batch(&s->tally, b);
		pen_batch_unref(b);
		look(r);
		if (compute)
			wait_until(after + compute);
		if (s->done)
			atomic_store_explicit(s->done, i + 1,
					      memory_order_relaxed);
	}
	s->seconds = (double)(pen__now_ns() - start) / 1e9;
	s->step_s = s->seconds / (double)s->steps;
	s->wait_s = (double)r->wait_ns / 1e9 / (double)s->steps;
	r->looked_ns = 0;
	look(r);
	return 0;
}

/* ---- opening ---- */

static int set(struct pen_spec *s, const char *key, uint64_t value,
	       struct pen_err *err)
{
	char buf[32];

	snprintf(buf, sizeof(buf), "%llu", (unsigned long long)value);
	return pen_spec_set(s, key, buf, err);
}

static int open_loader(struct run *r, struct pen_err *err)
{
	struct pen_steps *s = r->s;
	struct pen_spec *spec;
	int rc = pen_spec_copy(&spec, s->spec, err);

	if (rc)
		return rc;
	rc = set(spec, "batch_size", s->batch, err);
	if (!rc)
		rc = set(spec, "threads", s->threads ? s->threads : 1, err);
	if (!rc && !pen_spec_number(spec, "prefetch") && s->load_s > 0)
		rc = set(spec, "prefetch", s->threads ? 2 * s->threads : 1,
			 err);
	if (!rc)
		rc = pen_spec_set(spec, "shuffle",
				  s->shuffle ? "true" : "false", err);
	if (s->threads && s->load_s > 0)
		pen_spec_on_rows(spec, load_hook, &s->load_s);
	if (!rc)
		rc = s->threads ? pen_loader_open(&r->l, spec, err)
				: pen_loader_open_asked(&r->l, spec, err);
	pen_spec_free(spec);
	return rc;
}

static int keep(struct run *r, struct pen_err *err)
{
	const uint64_t n = r->s->cached;
	struct pen_batch **kept = pen__calloc(n, sizeof(*kept));
	int rc = kept ? 0 : pen__fail_nomem(err, "batches", n * sizeof(*kept));

	for (uint64_t i = 0; !rc && i < n; i++) {
		rc = next(r, i, &kept[i], err);
		if (!rc)
			continue;
		while (i--)
			pen_batch_unref(kept[i]);
		pen__free(kept);
		return rc;
	}
	r->kept = kept;
	return rc;
}

int pen__steps_run(struct pen_steps *s, struct pen_err *err)
{
	struct run r = { .s = s };
	int rc;

	if (s->memory)
		s->base_bytes = pen__tree_memory(getpid());
	r.ids = pen__calloc(s->batch, sizeof(*r.ids));
	if (!r.ids)
		return pen__fail_nomem(err, "batch", s->batch * 8);
	rc = open_loader(&r, err);
	if (!rc && s->cached)
		rc = keep(&r, err);
	if (!rc)
		rc = loop(&r, err);
	for (uint64_t i = 0; r.kept && i < s->cached; i++)
		pen_batch_unref(r.kept[i]);
	pen__free(r.kept);
	pen__free(r.ids);
	pen_loader_close(r.l);
	return rc;
}
