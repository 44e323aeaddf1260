/*
 * The model: ranks that take a batch, compute and meet; loaders that keep some
 * batches ahead of them; a batch is a few stages, each over when all of its
 * parts were served.
 *
 *	ask    latency, with as many requests at once as there are threads
 *	move   bytes through storage and network cards, answers of other nodes
 *	work   CPU of the node
 *
 * Whatever is drawn depends on (seed, rank, batch) and not on the order of
 * events.
 */
#include <math.h>

#include "base/mem.h"
#include "base/rng.h"
#include "simulate/share.h"
#include "simulate/simulate_int.h"

#define MOST_SLOTS 64
#define TICK 65536 /* events */

enum { ASK, MOVE, WORK, DONE };

/* What a batch takes; peers: of each of the fan nodes. */
struct cost {
	double latency, cpu;
	double own[PEN_SIM_CPU], peer[PEN_SIM_CPU];
	double storage, net, memory; /* bytes */
	bool peers;
};

struct job {
	uint64_t batch;
	double factor; /* of what it costs in time */
	uint16_t left; /* parts */
	uint8_t stage;
	bool parked; /* it was, before it worked */
};

struct rank {
	uint64_t asked, taken; /* batches */
	uint64_t free;	       /* jobs, a bit each */
	uint64_t key;	       /* of its draws */
	double since;	       /* it does what it does */
	uint64_t parked;       /* jobs that are fetched, and wait for CPU */
	uint32_t ready, busy;  /* batches loaded, being loaded */
	uint16_t fetching, working; /* of those */
	bool waits;		    /* for a batch */
};

struct sums {
	double at, compute, data, waiting, sync;
};

struct model {
	const struct pen_sim *m;
	struct pen_sim_result *r;
	struct pen_shares s;
	struct rank *rank;
	struct job *job;
	uint32_t world, slots, fan; /* slots: jobs of a rank */
	uint32_t at_once;	    /* that fetch, and that work */
	uint32_t compute, sync; /* first number of those who compute; the end */
	uint32_t time;		/* the share that is time itself */
	uint64_t total;		/* batches of a rank */
	double sigma;
	struct cost cold, warm;
	/* now */
	uint32_t arrived;
	uint64_t step; /* of all epochs */
	double began, met;
	struct sums win;
	double work[PEN_SIM_NPARTS];
	uint32_t without; /* ranks that had no batch yet */
};

/* --- numbers --- */

static double normal(uint64_t key, uint64_t i)
{
	const double u = (double)(pen__rng_at(key, 2 * i) >> 11) * 0x1p-53;
	const double v = (double)(pen__rng_at(key, 2 * i + 1) >> 11) * 0x1p-53;

	return sqrt(-2 * log(1 - u)) * cos(2 * M_PI * v);
}

/* Which share: storage, then those of every node. */
static uint32_t share_of(enum pen_sim_part p, uint32_t node)
{
	return p == PEN_SIM_STORAGE
		       ? 0
		       : 1 + node * (PEN_SIM_NPARTS - 1) + (uint32_t)p - 1;
}

static double limit_of(const struct pen_sim *m, enum pen_sim_part p)
{
	const double v[PEN_SIM_NPARTS] = { m->storage_rate,  m->client_rate,
					   m->net_rate,	     m->net_rate,
					   (double)m->ranks, m->cores };

	return v[p];
}

/* --- setting up --- */

static void set_costs(struct model *x)
{
	const struct pen_sim *m = x->m;
	const double n = (double)m->batch, bytes = n * m->sample_bytes;
	const double data = bytes * (double)m->steps * (double)x->world;
	const double room = m->cache_bytes *
			    (m->cache == PEN_SIM_DDICT ? (double)m->nodes : 1);
	/* the page cache has files, the dictionary has samples */
	const double here = m->cache == PEN_SIM_LOCAL ? m->cpu_load
						      : m->cpu_hit;
	/* a thread that finds no more to do goes on with the next batch */
	const double rounds = fmax(1, n / (double)m->threads) * m->reads;
	const double away = m->cache == PEN_SIM_DDICT ? 1 - 1 / (double)m->nodes
						      : 0;
	double hit = m->cache == PEN_SIM_NONE		 ? 0
		     : m->cache_bytes > 0 && room < data ? room / data
							 : 1;
	struct cost *c = &x->cold, *w = &x->warm;

	x->r->hit = hit;
	x->fan = (uint32_t)m->fan;
	if (x->fan > m->nodes - 1)
		x->fan = (uint32_t)m->nodes - 1;
	if (x->fan > m->batch)
		x->fan = (uint32_t)m->batch;
	c->storage = c->own[PEN_SIM_STORAGE] = c->own[PEN_SIM_CLIENT] = bytes;
	c->latency = rounds * m->storage_latency;
	c->cpu = n * m->cpu_load;
	if (m->cache == PEN_SIM_DDICT)
		c->cpu += n * hit * m->cpu_put;
	c->own[PEN_SIM_OUT] = c->net = bytes * hit * away;
	c->peers = x->fan && c->net > 0;
	if (c->peers)
		c->peer[PEN_SIM_IN] = c->net / x->fan;

	w->storage = w->own[PEN_SIM_STORAGE] = w->own[PEN_SIM_CLIENT] =
		bytes * (1 - hit);
	w->latency = rounds * m->storage_latency * (1 - hit) +
		     (hit * away > 0 ? 2 * m->net_latency : 0);
	/* every node answers as much as it asks: its own CPU pays for both */
	w->cpu = n * (1 - hit) * m->cpu_load + n * hit * (1 - away) * here +
		 n * hit * away * (m->cpu_ask + m->cpu_serve);
	w->own[PEN_SIM_IN] = w->net = bytes * hit * away;
	w->memory = bytes * hit * (1 - away);
	w->peers = x->fan && w->net > 0;
	if (w->peers) {
		w->peer[PEN_SIM_OUT] = w->net / x->fan;
		w->peer[PEN_SIM_SERVE] = n * hit * away * m->cpu_serve / x->fan;
	}
}

static void set_shares(struct model *x)
{
	const struct pen_sim *m = x->m;

	for (uint32_t p = 0; p < PEN_SIM_NPARTS; p++) {
		const double rate = limit_of(m, p);

		for (uint32_t i = 0; i < (p ? m->nodes : 1); i++) {
			struct pen_share *h = &x->s.v[share_of(p, i)];

			h->rate = rate > 0 ? rate : INFINITY;
			if (p == PEN_SIM_SERVE)
				h->most = 1;
			if (p == PEN_SIM_CPU)
				h->most = (double)(m->threads < m->batch
							   ? m->threads
							   : m->batch);
		}
	}
	x->s.v[x->time].most = 1;
}

static uint32_t at_once(const struct pen_sim *m)
{
	uint64_t n = m->at_once;

	/* all threads work on the next batch, unless it is too small */
	if (!n)
		n = (m->threads + m->batch - 1) / m->batch;
	return (uint32_t)(n < MOST_SLOTS ? n : MOST_SLOTS);
}

static int set_up(struct model *x, struct pen_err *err)
{
	const struct pen_sim *m = x->m;
	const uint32_t nshares = 2 + (uint32_t)m->nodes * (PEN_SIM_NPARTS - 1);
	uint64_t njobs;

	x->world = (uint32_t)(m->nodes * m->ranks);
	x->at_once = at_once(m);
	x->slots = (uint32_t)(m->ahead < MOST_SLOTS ? m->ahead : MOST_SLOTS);
	njobs = (uint64_t)x->world * x->slots;
	x->compute = (uint32_t)njobs;
	x->sync = x->compute + x->world;
	x->time = nshares - 1;
	x->total = m->steps * m->epochs;
	x->without = x->world;
	/* of a lognormal, p99 / p50 is exp(2.326 sigma) */
	x->sigma = log(m->spread) / 2.3263478740408408;
	set_costs(x);
	x->rank = pen__calloc(x->world, sizeof(*x->rank));
	x->job = pen__calloc(njobs, sizeof(*x->job));
	if (!x->rank || !x->job || pen__shares_init(&x->s, nshares))
		return pen__fail_nomem(err, "simulation",
				       njobs * sizeof(*x->job));
	set_shares(x);
	for (uint32_t i = 0; i < x->world; i++) {
		x->rank[i].free = UINT64_MAX >> (64 - x->slots);
		x->rank[i].key = pen__rng_key(m->seed, i);
	}
	return 0;
}

/* --- loading --- */

static int use(struct model *x, uint32_t share, double amount, uint32_t j)
{
	if (!(amount > 0) || isinf(x->s.v[share].rate))
		return 0;
	x->job[j].left++;
	return pen__share_use(&x->s, share, amount, j);
}

static int wait_for(struct model *x, double seconds, uint32_t who)
{
	return pen__share_use(&x->s, x->time, seconds, who);
}

static int move_peers(struct model *x, const struct cost *c, uint32_t j)
{
	const struct rank *r = &x->rank[j / x->slots];
	const uint32_t nodes = (uint32_t)x->m->nodes;
	const uint32_t node = j / x->slots / (uint32_t)x->m->ranks;
	int rc = 0;

	for (uint32_t k = 0; k < x->fan && !rc; k++) {
		const uint64_t draw =
			pen__rng_at(~r->key, x->job[j].batch * x->fan + k);
		uint32_t to = node + 1 + (uint32_t)pen__mulhi(draw, nodes - 1);

		to -= to >= nodes ? nodes : 0;
		for (uint32_t p = PEN_SIM_IN; p < PEN_SIM_CPU && !rc; p++)
			rc = use(x, share_of(p, to), c->peer[p], j);
	}
	return rc;
}

static int begin_stage(struct model *x, const struct cost *c, uint32_t j)
{
	struct job *job = &x->job[j];
	const uint32_t node = j / x->slots / (uint32_t)x->m->ranks;
	int rc = 0;

	switch (job->stage) {
	case ASK:
		if (!(c->latency > 0))
			return 0;
		job->left = 1;
		return wait_for(x, c->latency * job->factor, j);
	case MOVE:
		for (uint32_t p = 0; p < PEN_SIM_CPU && !rc; p++)
			rc = use(x, share_of(p, node), c->own[p], j);
		return !rc && c->peers ? move_peers(x, c, j) : rc;
	case WORK:
		return use(x, share_of(PEN_SIM_CPU, node), c->cpu * job->factor,
			   j);
	}
	return 0;
}

/* Whoever was fetched first of those that wait; UINT32_MAX: none. */
static uint32_t unpark(struct model *x, uint32_t i)
{
	struct rank *r = &x->rank[i];
	uint32_t best = UINT32_MAX;

	for (uint64_t m = r->parked; m; m &= m - 1) {
		const uint32_t j = i * x->slots + (uint32_t)__builtin_ctzll(m);

		if (best == UINT32_MAX || x->job[j].batch < x->job[best].batch)
			best = j;
	}
	if (best != UINT32_MAX)
		r->parked &= ~(1ull << best % x->slots);
	return best;
}

/* Goes through stages until one has to be waited for, or a place in it, or
 * the batch is there. */
static int go_on(struct model *x, uint32_t j)
{
	struct job *job = &x->job[j];
	const struct cost *c = job->batch < x->m->steps ? &x->cold : &x->warm;
	struct rank *r = &x->rank[j / x->slots];
	int rc = 0;

	while (!rc && !job->left && job->stage < DONE) {
		if (job->stage == WORK) {
			r->fetching -= !job->parked;
			if (r->working == x->at_once) {
				r->parked |= 1ull << j % x->slots;
				job->parked = true;
				return 0;
			}
			r->working++;
		}
		rc = begin_stage(x, c, j);
		job->stage++;
	}
	if (rc || job->left)
		return rc;
	r->free |= 1ull << j % x->slots;
	r->working--;
	r->busy--;
	r->ready++;
	x->r->batches++;
	return 0;
}

/* A part of a batch was served. */
static int served(struct model *x, uint32_t j)
{
	int rc;

	x->job[j].left--;
	rc = go_on(x, j);
	while (!rc && x->rank[j / x->slots].working < x->at_once) {
		const uint32_t next = unpark(x, j / x->slots);

		if (next == UINT32_MAX)
			break;
		rc = go_on(x, next);
	}
	return rc;
}

static void count(struct model *x, const struct cost *c, bool cold)
{
	struct pen_sim_epoch *e = cold ? &x->r->first : &x->r->later;

	e->storage_bytes += c->storage;
	e->net_bytes += c->net;
	e->memory_bytes += c->memory;
	e->samples += x->m->batch;
}

/* Keeps the loader of a rank at work. */
static int load(struct model *x, uint32_t i)
{
	struct rank *r = &x->rank[i];
	int rc = 0;

	while (!rc && r->free && r->fetching < x->at_once &&
	       r->asked < x->total && r->busy + r->ready < x->m->ahead) {
		const uint32_t slot = (uint32_t)__builtin_ctzll(r->free);
		const uint32_t j = i * x->slots + slot;
		const bool cold = r->asked < x->m->steps;

		r->free &= r->free - 1;
		r->busy++;
		r->fetching++;
		x->job[j] = (struct job){ .batch = r->asked, .factor = 1 };
		if (x->sigma > 0)
			x->job[j].factor =
				exp(x->sigma * normal(r->key, r->asked) -
				    x->sigma * x->sigma / 2);
		count(x, cold ? &x->cold : &x->warm, cold);
		r->asked++;
		rc = go_on(x, j);
	}
	return rc;
}

/* --- computing --- */

/* A rank that waits takes a batch if there is one. */
static int take(struct model *x, uint32_t i)
{
	struct rank *r = &x->rank[i];
	double t = x->m->compute;
	int rc;

	if (!r->waits || !r->ready)
		return load(x, i);
	r->ready--;
	r->waits = false;
	x->win.data += x->s.now - r->since;
	r->since = x->s.now;
	if (!r->taken && !--x->without)
		x->r->first_batch = x->s.now;
	if (x->m->compute_stdev > 0)
		t = fmax(0, t + x->m->compute_stdev *
					    normal(r->key ^ 0x5555, r->taken));
	r->taken++;
	x->win.compute += t;
	rc = wait_for(x, t, x->compute + i);
	return rc ? rc : load(x, i);
}

static void next_window(struct model *x)
{
	x->win = (struct sums){ .at = x->s.now };
}

static void end_epoch(struct model *x)
{
	const uint64_t n = x->step / x->m->steps;
	struct pen_sim_epoch *e = n == 1 ? &x->r->first : &x->r->later;
	const double all = (x->s.now - x->win.at) * x->world;
	const double took = x->s.now - x->began;

	e->seconds += took;
	if (all > 0) {
		e->utilisation += x->win.compute / all;
		e->data += x->win.data / all;
		e->waiting += x->win.waiting / all;
		e->sync += x->win.sync / all;
	}
	for (uint32_t p = 0; p < PEN_SIM_NPARTS; p++) {
		const double rate = limit_of(x->m, p);
		const uint32_t of = p ? (uint32_t)x->m->nodes : 1;
		double work = 0;

		for (uint32_t i = 0; i < of; i++)
			work += pen__share_work(&x->s, share_of(p, i));
		if (rate > 0 && took > 0)
			e->busy[p] += (work - x->work[p]) / (rate * of * took);
		x->work[p] = work;
	}
	x->began = x->s.now;
	next_window(x);
}

/* Everybody is there. */
static int end_step(struct model *x)
{
	const uint64_t steps = x->m->steps;
	int rc = 0;

	x->step += x->m->barrier ? 1 : steps;
	x->arrived = 0;
	for (uint32_t i = 0; i < x->world; i++)
		x->win.waiting += x->met - x->rank[i].since;
	x->win.sync += (x->s.now - x->met) * x->world;
	if (x->step % steps == 0)
		end_epoch(x);
	else if (x->m->skip < steps && x->step % steps == x->m->skip)
		next_window(x);
	if (x->step == x->total)
		return 0;
	for (uint32_t i = 0; i < x->world && !rc; i++) {
		x->rank[i].waits = true;
		x->rank[i].since = x->s.now;
		rc = take(x, i);
	}
	return rc;
}

static int computed(struct model *x, uint32_t i)
{
	struct rank *r = &x->rank[i];

	r->since = x->s.now;
	if (!x->m->barrier && r->taken % x->m->steps) {
		r->waits = true;
		return take(x, i);
	}
	if (++x->arrived < x->world)
		return 0;
	x->met = x->s.now;
	return x->m->sync > 0 ? wait_for(x, x->m->sync, x->sync) : end_step(x);
}

/* --- running --- */

static int happen(struct model *x, uint32_t who)
{
	int rc;

	if (who == x->sync)
		return end_step(x);
	if (who >= x->compute)
		return computed(x, who - x->compute);
	rc = served(x, who);
	return rc ? rc : take(x, who / x->slots);
}

static int run(struct model *x, struct pen_err *err)
{
	const struct pen_sim *m = x->m;
	uint32_t who;
	int rc = 0;

	for (uint32_t i = 0; i < x->world && !rc; i++) {
		x->rank[i].waits = true;
		rc = take(x, i);
	}
	/* a loader whose batches cost nothing has them at once */
	for (uint32_t i = 0; i < x->world && !rc; i++)
		rc = take(x, i);
	while (!rc && (who = pen__shares_next(&x->s)) != UINT32_MAX) {
		rc = happen(x, who);
		if (++x->r->events % TICK == 0 && m->tick &&
		    m->tick(m->arg, x->r->batches))
			return pen__fail(err, PEN_ECLOSED, "simulation",
					 "stopped");
	}
	if (rc)
		return pen__fail_nomem(err, "simulation", 0);
	x->r->seconds = x->s.now;
	return 0;
}

static void average(struct pen_sim_epoch *e, double n)
{
	double *v[] = { &e->seconds,   &e->utilisation, &e->data,
			&e->waiting,   &e->sync,	&e->storage_bytes,
			&e->net_bytes, &e->memory_bytes };

	for (size_t i = 0; i < sizeof(v) / sizeof(*v); i++)
		*v[i] /= n;
	for (unsigned p = 0; p < PEN_SIM_NPARTS; p++)
		e->busy[p] /= n;
	e->samples = (uint64_t)((double)e->samples / n);
}

int pen__simulate(const struct pen_sim *m, struct pen_sim_result *r,
		  struct pen_err *err)
{
	struct model x = { .m = m, .r = r };
	int rc;

	*r = (struct pen_sim_result){ 0 };
	rc = pen__sim_check(m, err);
	if (rc)
		return rc;
	rc = set_up(&x, err);
	if (!rc)
		rc = run(&x, err);
	if (!rc && m->epochs > 1)
		average(&r->later, (double)(m->epochs - 1));
	pen__shares_fini(&x.s);
	pen__free(x.rank);
	pen__free(x.job);
	return rc;
}
