/*
 * The simulation against a plain program of the same model: no heaps, no tree,
 * nothing left out because it is never felt. At every moment it works out how
 * fast each part of each batch goes, by definition, and goes on to the next one
 * that ends.
 */
#include <math.h>

#include "base/rng.h"
#include "simulate/simulate.h"
#include "test.h"

enum { NONE, ASK, MOVE, PARKED, WORK, DONE };

struct part {
	int kind; /* enum pen_sim_part, or PEN_SIM_NPARTS: time */
	uint64_t at;
	double left, speed;
	uint64_t rank, batch;
};

struct batch {
	int state;
	unsigned left;
	double factor;
};

struct rank {
	struct batch *b;
	uint64_t asked, ready, taken, key;
	bool waits, computes;
	double until;
};

struct plain {
	const struct pen_sim *m;
	struct rank *rank;
	struct part *part;
	size_t nparts, room;
	uint64_t world, total, fan;
	double now, hit, abreast;
	uint64_t at_once, flying;
	uint64_t arrived, steps; /* steps: that all have done */
	double ends;		 /* of a step; < 0: not yet */
};

static double drawn(uint64_t key, uint64_t i)
{
	const double u = (double)(pen__rng_at(key, 2 * i) >> 11) * 0x1p-53;
	const double v = (double)(pen__rng_at(key, 2 * i + 1) >> 11) * 0x1p-53;

	return sqrt(-2 * log(1 - u)) * cos(2 * M_PI * v);
}

static void use(struct plain *x, uint64_t r, uint64_t b, struct part p)
{
	const struct pen_sim *m = x->m;
	const double rate[PEN_SIM_NPARTS + 1] = {
		m->storage_rate,
		m->client_rate,
		m->net_rate,
		m->net_rate,
		m->copy_rate,
		1,
		1,
		1,
		1,
	};

	if (!(p.left > 0) || !(rate[p.kind] > 0))
		return;
	if (x->nparts == x->room) {
		x->room = x->room ? 2 * x->room : 64;
		x->part = realloc(x->part, x->room * sizeof(*x->part));
	}
	p.rank = r;
	p.batch = b;
	x->part[x->nparts++] = p;
	x->rank[r].b[b].left++;
}

#define USE(kind, at, amount)                                                  \
	use(x, r, b, (struct part){ kind, at, amount, 0, 0, 0 })

/* Of a batch: read from storage, got from or put to other nodes, and had on
 * the node. */
static void split(const struct plain *x, uint64_t b, double *stored,
		  double *away, double *home)
{
	const struct pen_sim *m = x->m;
	const double n = (double)m->batch, kept = n * x->hit;

	*away = m->cache == PEN_SIM_DDICT ? kept - kept / (double)m->nodes : 0;
	*home = kept - *away;
	*stored = b < m->steps ? n : n - kept;
}

static void begin_ask(struct plain *x, uint64_t r, uint64_t b)
{
	const struct pen_sim *m = x->m;
	const double f = x->rank[r].b[b].factor;
	double stored, away, home, t = 0;

	split(x, b, &stored, &away, &home);
	if (away > 0 && x->fan)
		t = 2 * m->net_latency * x->abreast;
	if (m->depth == 1)
		t += stored * m->reads * m->storage_latency;
	else
		USE(PEN_SIM_NPARTS, 0,
		    f * stored / (double)m->batch * m->reads *
			    m->storage_latency *
			    fmax(1, (double)m->batch /
					    (double)(m->threads * m->depth)));
	USE(PEN_SIM_THREADS, r, t * f);
}

static uint64_t owner(const struct plain *x, uint64_t r, uint64_t b, uint64_t k)
{
	const uint64_t ranks = x->m->ranks, others = x->world - ranks;
	const uint64_t d = pen__rng_at(~x->rank[r].key, b * x->fan + k);
	uint64_t to = pen__mulhi(d, others);

	if (x->fan < x->m->batch)
		to = (uint64_t)(((double)k + (double)(d >> 11) * 0x1p-53) *
				(double)others / (double)x->fan);
	to = to < others ? to : others - 1;
	return to < r / ranks * ranks ? to : to + ranks;
}

static void begin_move(struct plain *x, uint64_t r, uint64_t b)
{
	const struct pen_sim *m = x->m;
	const uint64_t node = r / m->ranks;
	const bool cold = b < m->steps;
	double stored, away, home, bytes;

	split(x, b, &stored, &away, &home);
	bytes = away * m->sample_bytes;
	USE(PEN_SIM_STORAGE, 0, stored * m->sample_bytes);
	USE(PEN_SIM_CLIENT, node, stored * m->sample_bytes);
	/* got, or put here by others, who do so alike */
	USE(PEN_SIM_IN, node,
	    (m->by_net ? stored * m->sample_bytes : 0) + bytes);
	USE(PEN_SIM_OUT, node, cold ? bytes : 0);
	for (uint64_t k = 0; away > 0 && k < x->fan; k++) {
		const uint64_t to = owner(x, r, b, k), of = to / m->ranks;
		const double serve = away * m->cpu_serve / (double)x->fan;

		USE(PEN_SIM_SERVE, to, serve);
		if (!cold && !(serve > 0))
			USE(PEN_SIM_OUT, of, bytes / (double)x->fan);
	}
}

static void begin_work(struct plain *x, uint64_t r, uint64_t b)
{
	const struct pen_sim *m = x->m;
	const bool cold = b < m->steps, ddict = m->cache == PEN_SIM_DDICT;
	double stored, away, home, cpu, copied;

	split(x, b, &stored, &away, &home);
	cpu = stored * m->cpu_load + (x->fan ? away * m->cpu_ask : 0);
	copied = stored + 2 * away;
	if (!cold || ddict) {
		cpu += home * (!ddict ? m->cpu_load
			       : cold ? m->cpu_put
				      : m->cpu_hit);
		copied += home;
	}
	cpu *= x->rank[r].b[b].factor;
	USE(PEN_SIM_THREADS, r, cpu);
	USE(PEN_SIM_CPU, r / m->ranks, cpu);
	USE(PEN_SIM_MEMORY, r / m->ranks, copied * m->sample_bytes);
}

/* --- ranks --- */

static unsigned in_state(const struct plain *x, const struct rank *k, int from,
			 int to)
{
	unsigned n = 0;

	for (uint64_t b = 0; b < x->total; b++)
		n += k->b[b].state >= from && k->b[b].state <= to;
	return n;
}

static bool step_batch(struct plain *x, uint64_t r, uint64_t b)
{
	struct rank *k = &x->rank[r];
	struct batch *a = &k->b[b];

	if (a->left || a->state == NONE || a->state == DONE)
		return false;
	if (a->state == PARKED && in_state(x, k, WORK, WORK) >= x->at_once)
		return false;
	a->state++;
	if (a->state == MOVE)
		begin_move(x, r, b);
	else if (a->state == WORK)
		begin_work(x, r, b);
	return true;
}

static bool step_ask(struct plain *x, uint64_t r)
{
	const struct pen_sim *m = x->m;
	struct rank *k = &x->rank[r];
	const double sigma = log(m->spread) / 2.3263478740408408;
	const uint64_t slots = m->ahead < 64 ? m->ahead : 64, b = k->asked;

	if (b == x->total || b - k->taken >= m->ahead ||
	    b - k->ready >= slots || in_state(x, k, ASK, WORK) >= x->flying ||
	    in_state(x, k, ASK, MOVE) >= x->at_once)
		return false;
	/* the first epoch fills the dictionary, and all wait for its end */
	if (b == m->steps && x->steps < m->steps && x->world > 1 &&
	    m->cache == PEN_SIM_DDICT)
		return false;
	k->asked++;
	k->b[b] = (struct batch){ .state = ASK, .factor = 1 };
	if (sigma > 0)
		k->b[b].factor =
			exp(sigma * drawn(k->key, b) - sigma * sigma / 2);
	begin_ask(x, r, b);
	return true;
}

static void step_rank(struct plain *x, uint64_t r)
{
	const struct pen_sim *m = x->m;
	struct rank *k = &x->rank[r];
	bool any = true;

	while (any) {
		any = false;
		for (uint64_t b = 0; b < x->total; b++)
			any |= step_batch(x, r, b);
		while (k->ready < k->asked && k->b[k->ready].state == DONE)
			k->ready++;
		if (k->waits && k->ready > k->taken) {
			k->waits = false;
			k->computes = true;
			k->until =
				x->now +
				fmax(0,
				     m->compute + m->compute_stdev *
							  drawn(k->key ^ 0x5555,
								k->taken));
			k->taken++;
			any = true;
		}
		any |= step_ask(x, r);
	}
}

static void step_ranks(struct plain *x)
{
	for (uint64_t r = 0; r < x->world; r++) {
		struct rank *k = &x->rank[r];

		if (k->computes && k->until <= x->now * (1 + 1e-15)) {
			k->computes = false;
			if (!x->m->barrier && k->taken % x->m->steps)
				k->waits = true;
			else if (++x->arrived == x->world)
				x->ends = x->now + x->m->sync;
		}
	}
	if (x->ends >= 0 && x->ends <= x->now * (1 + 1e-15)) {
		x->ends = -1;
		x->arrived = 0;
		x->steps += x->m->barrier ? 1 : x->m->steps;
		for (uint64_t r = 0; r < x->world; r++)
			x->rank[r].waits = x->rank[r].taken < x->total;
	}
	for (uint64_t r = 0; r < x->world; r++)
		step_rank(x, r);
}

/* --- time --- */

static double users(const struct plain *x, const struct part *of)
{
	double n = 0;

	for (size_t i = 0; i < x->nparts; i++)
		n += x->part[i].kind == of->kind && x->part[i].at == of->at;
	return n;
}

/* Threads at work on a node: those that answer, those that load. */
static double at_work(const struct plain *x, uint64_t node, double *loading)
{
	double answer = 0;

	for (uint64_t r = node * x->m->ranks; r < (node + 1) * x->m->ranks; r++)
		answer += users(x, &(struct part){ .kind = PEN_SIM_SERVE,
						   .at = r }) > 0;
	*loading = users(x, &(struct part){ .kind = PEN_SIM_CPU, .at = node }) *
		   fmin(x->abreast, (double)x->m->threads / (double)x->at_once);
	return answer;
}

static double speed(const struct plain *x, const struct part *p)
{
	const struct pen_sim *m = x->m;
	const double n = users(x, p);
	double load, answer, s;
	bool first = true;

	for (const struct part *q = x->part; q < p; q++)
		first &= q->kind != p->kind || q->at != p->at;
	switch (p->kind) {
	case PEN_SIM_STORAGE:
		return m->storage_rate / n;
	case PEN_SIM_CLIENT:
		return m->client_rate / n;
	case PEN_SIM_IN:
	case PEN_SIM_OUT:
		return m->net_rate / n;
	case PEN_SIM_MEMORY:
		return m->copy_rate / n;
	case PEN_SIM_THREADS:
		return fmin(x->abreast, (double)m->threads / n);
	case PEN_SIM_CPU:
		answer = at_work(x, p->at, &load);
		s = answer + load > m->cores ? m->cores * load / (answer + load)
					     : m->cores - answer;
		return fmin(x->abreast, s / n);
	case PEN_SIM_SERVE:
		answer = at_work(x, p->at / m->ranks, &load);
		s = fmin(1, m->cores / (answer + load));
		if (m->net_rate > 0)
			s = fmin(s, m->net_rate * m->cpu_serve /
					    (answer * m->sample_bytes));
		return first ? s : 0; /* one after another */
	}
	return 1;
}

static bool go_on(struct plain *x)
{
	double dt = INFINITY;
	size_t n = 0;

	for (size_t i = 0; i < x->nparts; i++) {
		struct part *p = &x->part[i];

		p->speed = speed(x, p);
		dt = fmin(dt, p->left / p->speed);
	}
	for (uint64_t r = 0; r < x->world; r++)
		if (x->rank[r].computes)
			dt = fmin(dt, x->rank[r].until - x->now);
	if (x->ends >= 0)
		dt = fmin(dt, x->ends - x->now);
	if (isinf(dt))
		return false;
	dt = fmax(dt, 0);
	x->now += dt;
	for (size_t i = 0; i < x->nparts; i++) {
		struct part p = x->part[i];
		const double left = p.left - dt * p.speed;

		if (left <= 1e-12 * p.left || left / p.speed < 1e-13) {
			x->rank[p.rank].b[p.batch].left--;
			continue;
		}
		p.left = left;
		x->part[n++] = p;
	}
	x->nparts = n;
	return true;
}

static void set_up(struct plain *x)
{
	const struct pen_sim *m = x->m;
	const uint64_t owners = m->ranks * (m->nodes - 1);
	const double data = (double)(m->nodes * m->ranks * m->steps *
				     m->batch) *
			    m->sample_bytes,
		     room = m->cache_bytes *
			    (m->cache == PEN_SIM_DDICT ? (double)m->nodes : 1);

	x->world = m->nodes * m->ranks;
	x->total = m->steps * m->epochs;
	x->hit = !m->cache ? 0 : m->cache_bytes > 0 ? fmin(1, room / data) : 1;
	x->fan = m->fan < owners ? m->fan : owners;
	x->fan = x->fan < m->batch ? x->fan : m->batch;
	x->abreast = (double)(m->threads < m->batch ? m->threads : m->batch);
	x->at_once = m->at_once ? m->at_once
				: (m->threads + m->batch - 1) / m->batch;
	x->flying = 64;
	if (m->depth == 1 || m->cache == PEN_SIM_DDICT) {
		x->flying = x->at_once + (m->batch > 1);
		x->flying = x->flying < m->threads ? x->flying : m->threads;
	}
	x->ends = -1;
	x->rank = calloc(x->world, sizeof(*x->rank));
	for (uint64_t r = 0; r < x->world; r++) {
		x->rank[r].b = calloc(x->total, sizeof(*x->rank[r].b));
		x->rank[r].key = pen__rng_key(m->seed, r);
		x->rank[r].waits = true;
	}
}

static double plain_seconds(const struct pen_sim *m)
{
	struct plain x = { .m = m };

	set_up(&x);
	step_ranks(&x);
	while (go_on(&x))
		step_ranks(&x);
	for (uint64_t r = 0; r < x.world; r++) {
		CHECK_EQ(x.rank[r].taken, x.total);
		free(x.rank[r].b);
	}
	free(x.rank);
	free(x.part);
	return x.now;
}

/* --- comparing --- */

static bool heads(struct pen_rng *g)
{
	return pen__rng_below(g, 2);
}

static void vary(struct pen_sim *m, uint64_t seed)
{
	struct pen_rng g = pen__rng(seed, 11);

	*m = (struct pen_sim){
		.nodes = 1 + pen__rng_below(&g, 5),
		.ranks = 1 + pen__rng_below(&g, 3),
		.batch = 1 + pen__rng_below(&g, 10),
		.steps = 1 + pen__rng_below(&g, 5),
		.epochs = 1 + pen__rng_below(&g, 3),
		.sample_bytes = 1e6,
		.compute = heads(&g) ? 0.02 : 0.1,
		.compute_stdev = heads(&g) ? 0 : 0.02,
		.barrier = heads(&g),
		.sync = heads(&g) ? 0 : 0.001,
		.threads = 1 + pen__rng_below(&g, 6),
		.ahead = 1 + pen__rng_below(&g, 6),
		.depth = heads(&g) ? 1 : 8,
		.at_once = pen__rng_below(&g, 4) ? 0 : 2,
		/* no two at once: who comes first counts */
		.spread = heads(&g) ? 1.01 : 3,
		.cores = 0.5 + 12 * pen__rng_double(&g),
		.copy_rate = heads(&g) ? 0 : 4e8,
		.cpu_load = heads(&g) ? 0.001 : 0.01,
		.cpu_hit = 0.002,
		.cpu_put = 0.003,
		.cpu_ask = heads(&g) ? 0 : 0.004,
		.cpu_serve = pen__rng_below(&g, 3) ? 0.007 : 0,
		.storage_rate = heads(&g) ? 0 : 3e8,
		.client_rate = heads(&g) ? 0 : 2e8,
		.storage_latency = heads(&g) ? 0 : 0.011,
		.reads = heads(&g) ? 1 : 2.5,
		.net_rate = heads(&g) ? 0 : 2e8,
		.net_latency = heads(&g) ? 0 : 1e-4,
		.by_net = heads(&g),
		.cache = (int)pen__rng_below(&g, 3),
		.cache_bytes = heads(&g) ? 0 : 1.7e7,
		.fan = 1 + pen__rng_below(&g, 8),
		.seed = seed,
	};
}

int main(void)
{
	for (uint64_t i = 0; i < 400; i++) {
		struct pen_sim m;
		struct pen_sim_result r;
		struct pen_err err = { 0 };
		double want;

		vary(&m, i);
		want = plain_seconds(&m);
		CHECK_EQ(pen__simulate(&m, &r, &err), 0);
		if (fabs(r.seconds - want) > 1e-7 * want)
			fprintf(stderr, "%u: %.9g is not %.9g\n", (unsigned)i,
				r.seconds, want);
		CHECK(fabs(r.seconds - want) <= 1e-7 * want);
	}
	return test_end();
}
