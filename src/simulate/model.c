/*
 * The model: ranks take a batch, compute and synchronise; loaders prefetch
 * batches for them. A batch passes through stages; a stage ends when all of its
 * parts are served.
 *
 *	ask    latency, during which threads wait (unless reads are
 *asynchronous) move   bytes through storage and network cards, answers of
 *owners work   threads of the rank, cores and memory of the node
 *
 * Random draws depend on (seed, rank, batch), not on the order of events.
 */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "simulate/share.h"
#include "simulate/simulate_int.h"

#define TICK 65536  /* events */
#define MOST_FAN 64 /* as checked in inputs.c */

enum { ASK, MOVE, WORK, DONE };

struct job {
	uint64_t batch;
	double factor; /* multiplies its cost in time */
	uint32_t rank;
	uint16_t left; /* parts not yet served */
	uint8_t stage;
	bool parked; /* it waited for threads before WORK */
};

struct rank {
	/* batches: started, ready in order, taken */
	uint64_t asked, ready, taken;
	uint64_t done; /* slots of batches that are complete ahead of their turn
			*/
	uint64_t parked; /* slots of batches that are fetched and wait for
			    threads */
	uint64_t key;	 /* of its random draws */
	double since;	 /* start of its current state */
	uint16_t fetching, working, flying; /* batches; flying: all of them */
	bool waits;			    /* for a batch */
};

struct sums {
	double at, compute, data, waiting, sync;
};

struct model {
	const struct pen_sim *m;
	struct pen_sim_result *r;
	struct pen_sim_plan p;
	struct pen_shares s;
	struct pen_block mem; /* of ranks and jobs */
	struct rank *rank;
	double *until; /* until when each rank answers requests */
	struct job *job;
	uint32_t first[PEN_SIM_NPARTS]; /* shares */
	uint32_t world, slots;		/* slots: jobs of a rank */
	uint32_t compute, sync; /* event numbers: of the first computing rank,
				   of the end of a step */
	uint64_t total;		/* batches of a rank */
	double sigma;
	/* now */
	uint32_t arrived;
	uint64_t step; /* of all epochs */
	double began, met;
	struct sums win;
	double unfelt[PEN_SIM_NPARTS]; /* work of resources that are only
					  counted */
	double work[PEN_SIM_NPARTS];   /* total at the start of the epoch */
	uint32_t without; /* ranks still without their first batch */
};

/* --- setting up --- */

static double normal(uint64_t key, uint64_t i)
{
	const double u = (double)(pen__rng_at(key, 2 * i) >> 11) * 0x1p-53;
	const double v = (double)(pen__rng_at(key, 2 * i + 1) >> 11) * 0x1p-53;

	return sqrt(-2 * log(1 - u)) * cos(2 * M_PI * v);
}

/* Served in order at a constant rate: the completion time is known on arrival.
 */
static bool is_known(const struct model *x, enum pen_sim_part p)
{
	return p == PEN_SIM_SERVE && !x->p.coupled;
}

static void set_shares(struct model *x)
{
	for (uint32_t p = 0; p < PEN_SIM_NPARTS; p++) {
		double most = INFINITY;

		if (p == PEN_SIM_CPU || p == PEN_SIM_THREADS)
			most = x->p.abreast;
		if (is_known(x, p))
			continue;
		for (uint32_t i = 0; x->p.felt[p] && i < x->p.count[p]; i++) {
			struct pen_share *h = &x->s.v[x->first[p] + i];

			h->rate = x->p.limit[p];
			h->most = most;
			h->in_order = p == PEN_SIM_SERVE;
		}
	}
}

static int set_up(struct model *x, struct pen_err *err)
{
	const struct pen_sim *m = x->m;
	uint32_t nshares = 0;
	uint64_t njobs;
	size_t size;

	pen__sim_plan(m, &x->p);
	x->r->hit = x->p.hit;
	x->world = x->p.world;
	x->slots = x->p.slots;
	njobs = (uint64_t)x->world * x->slots;
	x->compute = (uint32_t)njobs;
	x->sync = x->compute + x->world;
	x->total = m->steps * m->epochs;
	x->without = x->world;
	/* of a lognormal, p99 / p50 is exp(2.326 sigma) */
	x->sigma = log(m->spread) / 2.3263478740408408;
	for (uint32_t p = 0; p < PEN_SIM_NPARTS; p++) {
		x->first[p] = nshares;
		if (x->p.felt[p] && !is_known(x, p))
			nshares += x->p.count[p];
	}
	size = x->world * (sizeof(*x->rank) + sizeof(*x->until)) +
	       njobs * sizeof(*x->job);
	if (pen__block_init(&x->mem, size) || pen__shares_init(&x->s, nshares))
		return pen__fail_nomem(err, "simulation", size);
	memset(x->mem.p, 0, size);
	x->rank = x->mem.p;
	x->until = (void *)(x->rank + x->world);
	x->job = (void *)(x->until + x->world);
	set_shares(x);
	for (uint32_t i = 0; i < x->world; i++)
		x->rank[i].key = pen__rng_key(m->seed, i);
	return 0;
}

/* --- answering threads --- */

/* All busy threads of a node share its cores; answering threads share its
 * network card. */
static void balance(struct model *x, uint32_t node)
{
	const uint32_t ranks = (uint32_t)x->m->ranks;
	const uint32_t first = x->first[PEN_SIM_SERVE] + node * ranks;
	double answering = 0, loading = 0, slow = 1, rate;

	for (uint32_t i = 0; i < ranks; i++)
		answering += x->s.v[first + i].n > 0;
	if (x->p.felt[PEN_SIM_CPU]) {
		const uint32_t cpu = x->first[PEN_SIM_CPU] + node;

		loading = x->s.v[cpu].n * x->p.usual;
		slow = fmin(1, x->m->cores / (answering + loading));
		rate = slow < 1 ? loading * slow : x->m->cores - answering;
		if (loading > 0 && x->s.v[cpu].rate != rate)
			pen__share_rate(&x->s, cpu, rate);
	}
	if (x->m->net_rate > 0)
		slow = fmin(slow,
			    x->m->net_rate / (answering * x->p.thread_rate));
	for (uint32_t i = 0; i < ranks; i++)
		if (x->s.v[first + i].rate != slow)
			pen__share_rate(&x->s, first + i, slow);
}

/* A user joined or left a share. */
static void changed(struct model *x, uint32_t share)
{
	const uint32_t serve = share - x->first[PEN_SIM_SERVE];
	const uint32_t cpu = share - x->first[PEN_SIM_CPU];

	/* an answering thread counts once, however many requests it has */
	if (serve < x->world && x->s.v[share].n <= 1)
		balance(x, serve / (uint32_t)x->m->ranks);
	else if (x->p.felt[PEN_SIM_CPU] && cpu < x->m->nodes)
		balance(x, cpu);
}

/* --- loading --- */

static uint32_t node_of(const struct model *x, uint32_t rank)
{
	return rank / (uint32_t)x->m->ranks;
}

/* i: index of the resource */
static int use(struct model *x, enum pen_sim_part p, uint32_t i, double amount,
	       uint32_t j)
{
	const uint32_t share = x->first[p] + i;
	int rc;

	if (!(amount > 0))
		return 0;
	if (!x->p.felt[p]) {
		x->unfelt[p] += amount;
		return 0;
	}
	x->job[j].left++;
	rc = pen__share_use(&x->s, share, amount, j);
	if (!rc && x->p.coupled)
		changed(x, share);
	return rc;
}

/* Owner number k of a batch among the ranks of other nodes. */
static uint32_t owner(const struct model *x, uint32_t i, uint64_t batch,
		      uint32_t k)
{
	const uint32_t ranks = (uint32_t)x->m->ranks, others = x->world - ranks;
	const uint64_t draw =
		pen__rng_at(~x->rank[i].key, batch * x->p.fan + k);
	uint32_t to;

	if (x->p.evenly)
		to = (uint32_t)(((double)k + (double)(draw >> 11) * 0x1p-53) *
				others / x->p.fan);
	else
		to = (uint32_t)pen__mulhi(draw, others);
	to = to < others ? to : others - 1;
	return to < node_of(x, i) * ranks ? to : to + ranks;
}

/* The batch is answered when its last owner has served it. */
static int ask_owners(struct model *x, const struct pen_sim_cost *c,
		      const uint32_t *to, uint32_t j)
{
	double last = x->s.now;

	for (uint32_t k = 0; k < x->p.fan; k++) {
		double *t = &x->until[to[k]];

		*t = (*t > x->s.now ? *t : x->s.now) + c->peer[PEN_SIM_SERVE];
		last = *t > last ? *t : last;
	}
	x->unfelt[PEN_SIM_SERVE] += c->peer[PEN_SIM_SERVE] * x->p.fan;
	x->job[j].left++;
	return pen__share_wait(&x->s, last - x->s.now, j);
}

static int move_peers(struct model *x, const struct pen_sim_cost *c, uint32_t j)
{
	uint32_t to[MOST_FAN];
	int rc = 0;

	for (uint32_t k = 0; k < x->p.fan; k++)
		to[k] = owner(x, x->job[j].rank, x->job[j].batch, k);
	if (c->peer[PEN_SIM_SERVE] > 0 && is_known(x, PEN_SIM_SERVE))
		rc = ask_owners(x, c, to, j);
	for (uint32_t p = PEN_SIM_OUT; p <= PEN_SIM_SERVE && !rc; p++) {
		if (!(c->peer[p] > 0) || is_known(x, p))
			continue;
		for (uint32_t k = 0; k < x->p.fan && !rc; k++)
			rc = use(x, p,
				 p == PEN_SIM_SERVE ? to[k] : node_of(x, to[k]),
				 c->peer[p], j);
	}
	x->unfelt[PEN_SIM_OUT] += c->sent;
	x->unfelt[PEN_SIM_CPU] += c->peer[PEN_SIM_SERVE] * x->p.fan;
	return rc;
}

static int begin_ask(struct model *x, const struct pen_sim_cost *c, uint32_t j)
{
	const double factor = x->job[j].factor;

	if (c->delay > 0) {
		x->job[j].left++;
		if (pen__share_wait(&x->s, c->delay * factor, j))
			return PEN_ENOMEM;
	}
	return use(x, PEN_SIM_THREADS, x->job[j].rank, c->ask * factor, j);
}

static int begin_move(struct model *x, const struct pen_sim_cost *c, uint32_t j)
{
	const uint32_t node = node_of(x, x->job[j].rank);
	int rc = use(x, PEN_SIM_STORAGE, 0, c->own[PEN_SIM_STORAGE], j);

	for (uint32_t p = PEN_SIM_CLIENT; p <= PEN_SIM_OUT && !rc; p++)
		rc = use(x, p, node, c->own[p], j);
	return !rc && c->peers ? move_peers(x, c, j) : rc;
}

static int begin_work(struct model *x, const struct pen_sim_cost *c, uint32_t j)
{
	const uint32_t i = x->job[j].rank;
	const double cpu = c->cpu * x->job[j].factor;
	int rc = use(x, PEN_SIM_THREADS, i, cpu, j);

	if (!rc)
		rc = use(x, PEN_SIM_CPU, node_of(x, i), cpu, j);
	return rc ? rc : use(x, PEN_SIM_MEMORY, node_of(x, i), c->copied, j);
}

static int begin_stage(struct model *x, uint32_t j)
{
	static int (*const begin[])(struct model *, const struct pen_sim_cost *,
				    uint32_t) = { begin_ask, begin_move,
						  begin_work };
	struct job *job = &x->job[j];

	return begin[job->stage++](
		x, job->batch < x->m->steps ? &x->p.cold : &x->p.warm, j);
}

/* Takes the oldest batch that waits for threads; UINT32_MAX: none. */
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

/* A batch is complete; it is ready once all earlier ones are. */
static void loaded(struct model *x, uint32_t j)
{
	struct rank *r = &x->rank[x->job[j].rank];

	r->working--;
	r->flying--;
	r->done |= 1ull << j % x->slots;
	while (r->done >> r->ready % x->slots & 1) {
		r->done &= ~(1ull << r->ready % x->slots);
		r->ready++;
	}
	x->r->batches++;
}

/* Advances through the stages until one has to wait or the batch is complete.
 */
static int go_on(struct model *x, uint32_t j)
{
	struct job *job = &x->job[j];
	struct rank *r = &x->rank[x->job[j].rank];
	int rc = 0;

	while (!rc && !job->left && job->stage < DONE) {
		if (job->stage == WORK) {
			r->fetching -= !job->parked;
			if (r->working == x->p.at_once) {
				r->parked |= 1ull << j % x->slots;
				job->parked = true;
				return 0;
			}
			r->working++;
		}
		rc = begin_stage(x, j);
	}
	if (!rc && !job->left)
		loaded(x, j);
	return rc;
}

/* All parts of a stage were served. */
static int served(struct model *x, uint32_t j)
{
	int rc = go_on(x, j);

	while (!rc && x->rank[x->job[j].rank].parked &&
	       x->rank[x->job[j].rank].working < x->p.at_once)
		rc = go_on(x, unpark(x, x->job[j].rank));
	return rc;
}

static void count(struct model *x, bool cold)
{
	const struct pen_sim_cost *c = cold ? &x->p.cold : &x->p.warm;
	struct pen_sim_epoch *e = cold ? &x->r->first : &x->r->later;

	e->storage_bytes += c->storage;
	e->memory_bytes += c->memory;
	e->net_bytes += c->net;
	e->samples += x->m->batch;
}

/* A rank that started its second epoch early would miss samples that others
 * have not read yet, so ranks that fill a dictionary synchronise after the
 * first epoch. */
static bool at_barrier(const struct model *x, const struct rank *r)
{
	return r->asked == x->m->steps && x->step < x->m->steps &&
	       x->m->cache == PEN_SIM_DDICT && x->world > 1;
}

/* Keeps the loader of a rank busy. */
static int load(struct model *x, uint32_t i)
{
	struct rank *r = &x->rank[i];
	int rc = 0;

	while (!rc && r->asked < x->total &&
	       r->asked - r->taken < x->m->ahead &&
	       r->asked - r->ready < x->slots && r->flying < x->p.flying &&
	       r->fetching < x->p.at_once && !at_barrier(x, r)) {
		const uint32_t j =
			i * x->slots + (uint32_t)(r->asked % x->slots);

		r->flying++;
		r->fetching++;
		x->job[j] = (struct job){ .batch = r->asked,
					  .factor = 1,
					  .rank = i };
		if (x->sigma > 0)
			x->job[j].factor =
				exp(x->sigma * normal(r->key, r->asked) -
				    x->sigma * x->sigma / 2);
		count(x, r->asked < x->m->steps);
		r->asked++;
		rc = go_on(x, j);
	}
	return rc;
}

/* --- computing --- */

/* A waiting rank takes a batch if one is ready. */
static int take(struct model *x, uint32_t i)
{
	struct rank *r = &x->rank[i];
	double t = x->m->compute;
	int rc;

	if (!r->waits || r->ready == r->taken)
		return load(x, i);
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
	rc = pen__share_wait(&x->s, t, x->compute + i);
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
		const double could = x->p.limit[p] * x->p.count[p] * took;
		double work = x->unfelt[p];

		if (x->p.felt[p] && !is_known(x, p))
			for (uint32_t i = 0; i < x->p.count[p]; i++)
				work += pen__share_work(&x->s, x->first[p] + i);
		/* counted resources are charged when the work starts */
		if (could > 0)
			e->busy[p] += fmin(1, (work - x->work[p]) / could);
		x->work[p] = work;
	}
	x->began = x->s.now;
	next_window(x);
}

/* All ranks have reached the end of the step. */
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
	return x->m->sync > 0 ? pen__share_wait(&x->s, x->m->sync, x->sync)
			      : end_step(x);
}

/* --- running --- */

static int happen(struct model *x, uint32_t who)
{
	int rc;

	if (who == x->sync)
		return end_step(x);
	if (who >= x->compute)
		return computed(x, who - x->compute);
	if (x->p.coupled && x->s.last < x->s.n)
		changed(x, x->s.last);
	if (--x->job[who].left)
		return 0;
	rc = served(x, who);
	return rc ? rc : take(x, x->job[who].rank);
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
	/* batches that cost nothing are ready immediately */
	for (uint32_t i = 0; i < x->world && !rc; i++)
		rc = take(x, i);
	while (!rc && (who = pen__shares_next(&x->s)) != UINT32_MAX) {
		rc = happen(x, who);
		if (++x->r->events % TICK == 0 && m->tick &&
		    m->tick(m->arg, x->r->batches))
			return pen__fail(err, P_INTERRUPTED, "simulation",
					 "interrupted");
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
	pen__block_fini(&x.mem);
	return rc;
}
