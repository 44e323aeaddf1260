/*
 * The loop in C, and blocks put together. Simulated loading waits in the
 * engine's workers, through the same hook as emulated preprocessing, so
 * threads, prefetching and hand-over are the real ones.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "experiment/peers.h"

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

static uint64_t sum_up(bool floats, const void *p, size_t nbytes)
{
	const unsigned char *bytes = p;
	uint64_t sum = 0;

	if (floats)
		return sum_floats(p, nbytes / 4);
	for (size_t i = 0; nbytes % 4 && i < nbytes; i++)
		sum += bytes[i];
	for (size_t i = 0; nbytes % 4 == 0 && i < nbytes; i += 4) {
		uint32_t w;

		memcpy(&w, bytes + i, 4);
		sum += w;
	}
	return sum;
}

/* ---- the loop ---- */

struct run {
	const struct pen_point *p;
	struct pen_loader *l;
	struct pen_batch **kept;
	uint64_t *ids;
	uint64_t wait_ns, looked_ns, sum;
	struct pen_peer_answer *to;
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
	const struct pen_point *s = r->p;
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
		*out = r->kept[step % r->p->cached];
		pen_batch_ref(*out);
		return 0;
	}
	rc = r->p->workers ? pen_loader_next(r->l, out, err)
			   : next_alone(r, step, out, err);
	if (rc == PEN_END)
		rc = pen__fail(err, PEN_EDATA, r->p->path,
			       "ended after %llu batches, not %llu",
			       (unsigned long long)step,
			       (unsigned long long)r->p->steps);
	return rc;
}

static void look(struct run *r)
{
	const uint64_t now = pen__now_ns();
	uint64_t bytes;

	if (!r->p->memory || now - r->looked_ns < LOOK_NS)
		return;
	bytes = pen__tree_memory(getpid());
	if (bytes > r->to->peak_bytes)
		r->to->peak_bytes = bytes;
	r->looked_ns = now;
}

/* All of the largest tensor is looked at. */
static void take(struct run *r, const struct pen_batch *b)
{
	const struct pen_tensor *most = NULL;

	for (uint32_t i = 0; i < b->ntensors; i++)
		if (!most || b->tensors[i].nbytes > most->nbytes)
			most = &b->tensors[i];
	r->to->samples += b->nsamples;
	if (most)
		r->sum += sum_up(r->p->floats, most->data, most->nbytes);
}

static int loop(struct run *r, atomic_uint_fast64_t *done, struct pen_err *err)
{
	const struct pen_point *p = r->p;
	const uint64_t start = pen__now_ns();
	const uint64_t compute = WHOLE(p->compute_s * 1e9);

	for (uint64_t i = 0; i < p->steps; i++) {
		const uint64_t before = pen__now_ns();
		struct pen_batch *b;
		uint64_t after;
		int rc = next(r, i, &b, err);

		if (rc)
			return rc;
		after = pen__now_ns();
		r->wait_ns += after - before;
		take(r, b);
		pen_batch_unref(b);
		look(r);
		if (compute)
			wait_until(after + compute);
		atomic_store_explicit(done, i + 1, memory_order_relaxed);
	}
	r->to->seconds = (double)(pen__now_ns() - start) / 1e9;
	r->to->step_s = r->to->seconds / (double)p->steps;
	r->to->wait_s = (double)r->wait_ns / 1e9 / (double)p->steps;
	r->looked_ns = 0;
	look(r);
	return 0;
}

static int keep(struct run *r, struct pen_err *err)
{
	const uint64_t n = r->p->cached;
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

int pen__steps_run(const struct pen_point *p, struct pen_spec *spec,
		   atomic_uint_fast64_t *done, struct pen_peer_answer *to,
		   struct pen_err *err)
{
	struct run r = { .p = p, .to = to };
	double load_s = p->load_s;
	int rc;

	*to = (struct pen_peer_answer){ 0 };
	if (p->memory)
		to->base_bytes = pen__tree_memory(getpid());
	r.ids = pen__calloc(p->batch, sizeof(*r.ids));
	if (!r.ids)
		return pen__fail_nomem(err, "batch", p->batch * 8);
	if (p->workers && load_s > 0)
		pen_spec_on_rows(spec, load_hook, &load_s);
	rc = p->workers ? pen_loader_open(&r.l, spec, err)
			: pen_loader_open_asked(&r.l, spec, err);
	if (!rc && p->cached)
		rc = keep(&r, err);
	if (!rc)
		rc = loop(&r, done, err);
	snprintf(to->sum, sizeof(to->sum), "%llu", (unsigned long long)r.sum);
	for (uint64_t i = 0; r.kept && i < p->cached; i++)
		pen_batch_unref(r.kept[i]);
	pen__free(r.kept);
	pen__free(r.ids);
	pen_loader_close(r.l);
	return rc;
}

/* ---- blocks put together into one array ---- */

/* Which is how replay buffers and caches of samples are filled. Most of what
 * that costs is the kernel's, for memory that was never written before; so the
 * same is done with memory that was. Block i is ones, but for its first value,
 * which is i. */
uint64_t pen__blocks_sum(uint64_t length, uint64_t block_bytes)
{
	return length * (block_bytes / 4 - 1) + length * (length - 1) / 2;
}

int pen__blocks_fill(const struct pen_point *p, bool reuse,
		     struct pen_peer_answer *d, struct pen_err *err)
{
	const size_t per = p->block / 4, all = p->length * p->block;
	float *from = pen__alloc(p->length, p->block);
	float *to = reuse ? pen__alloc(p->length, p->block) : NULL;
	uint64_t start, sum = 0;

	for (uint64_t i = 0; from && i < p->length * per; i++)
		from[i] = i % per ? 1.0f : (float)(i / per);
	if (to)
		memset(to, 1, all);
	start = pen__now_ns();
	if (!to)
		to = pen__alloc(p->length, p->block);
	for (uint64_t i = 0; from && to && i < p->length; i++)
		memcpy(to + i * per, from + i * per, p->block);
	d->seconds = (double)(pen__now_ns() - start) / 1e9;
	for (uint64_t i = 0; from && to && i < p->length; i++)
		sum += (uint64_t)to[i * per] +
		       sum_floats(to + i * per + 1, per - 1);
	d->samples = from && to ? p->length : 0;
	snprintf(d->sum, sizeof(d->sum), "%llu", (unsigned long long)sum);
	pen__free(to);
	pen__free(from);
	return d->samples ? 0 : pen__fail_nomem(err, "blocks", all);
}
