/*
 * The cost of a batch, by formulas, and which shared resources can limit it at
 * all. Resources that cannot are only counted, not simulated, which changes
 * nothing but the run time of the simulation:
 *
 *	cores   if every thread has its own
 *	card    the network card of an answering node: its threads send no
 *		faster than they work, so the number of busy threads determines
 *		the slowdown
 *
 * If answering threads are never slowed down, the completion time of a request
 * is known on arrival.
 */
#include <math.h>

#include "simulate/simulate_int.h"

#define MOST_SLOTS 64

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static double held(const struct pen_sim *m, const struct pen_sim_plan *p)
{
	const double data = (double)m->batch * m->sample_bytes *
			    (double)m->steps * (double)p->world;
	double room = m->cache_bytes;

	if (m->cache == PEN_SIM_NONE)
		return 0;
	if (m->cache == PEN_SIM_DDICT)
		room *= (double)m->nodes;
	return m->cache_bytes > 0 && room < data ? room / data : 1;
}

/* Adds n samples read from storage. */
static void add_reads(const struct pen_sim *m, double n, struct pen_sim_cost *c)
{
	const double bytes = n * m->sample_bytes;
	const double each = m->reads * m->storage_latency;

	c->storage = c->own[PEN_SIM_STORAGE] = bytes;
	c->own[PEN_SIM_CLIENT] = bytes;
	if (m->by_net)
		c->own[PEN_SIM_IN] += bytes;
	if (m->depth > 1)
		c->delay = each * n / (double)m->batch *
			   fmax(1, (double)m->batch /
					   (double)(m->threads * m->depth));
	else
		c->ask = each * n;
	c->cpu += n * m->cpu_load;
	c->copied += bytes;
}

/* Adds n samples sent to or received from their owners. As many threads wait
 * for a request as work on the batch. */
static void add_peers(const struct pen_sim *m, const struct pen_sim_plan *p,
		      double n, struct pen_sim_cost *c)
{
	c->peers = n > 0 && p->fan;
	if (!c->peers)
		return;
	c->net = n * m->sample_bytes;
	c->cpu += n * m->cpu_ask;
	c->ask += p->abreast * 2 * m->net_latency;
	c->peer[PEN_SIM_SERVE] = n * m->cpu_serve / p->fan;
	c->copied += 2 * c->net; /* at both ends, equally on all nodes */
}

static void set_costs(const struct pen_sim *m, struct pen_sim_plan *p)
{
	const bool ddict = m->cache == PEN_SIM_DDICT;
	const double n = (double)m->batch, cached = n * p->hit;
	const double away = ddict ? cached * (1 - 1 / (double)m->nodes) : 0;
	struct pen_sim_cost *c = &p->cold, *w = &p->warm;

	add_reads(m, n, c);
	add_peers(m, p, away, c);
	/* all nodes put equally: as much goes out as comes in */
	c->own[PEN_SIM_OUT] = c->net;
	c->own[PEN_SIM_IN] += c->net;
	if (ddict) {
		c->cpu += (cached - away) * m->cpu_put;
		c->copied += (cached - away) * m->sample_bytes;
	}
	add_reads(m, n - cached, w);
	add_peers(m, p, away, w);
	w->own[PEN_SIM_IN] += w->net;
	if (w->peer[PEN_SIM_SERVE] > 0)
		w->sent = w->net;
	else if (w->peers)
		w->peer[PEN_SIM_OUT] = w->net / p->fan;
	/* the page cache stores files, the dictionary samples */
	w->cpu += (cached - away) * (ddict ? m->cpu_hit : m->cpu_load);
	w->memory = (cached - away) * m->sample_bytes;
	w->copied += w->memory;
}

/* The number of batches of a rank in progress. */
static void set_counts(const struct pen_sim *m, struct pen_sim_plan *p)
{
	uint64_t n = m->at_once, owners = m->ranks * (m->nodes - 1);

	p->world = (uint32_t)(m->nodes * m->ranks);
	p->fan = (uint32_t)smaller(smaller(m->fan, owners), m->batch);
	p->evenly = p->fan < m->batch;
	p->abreast = (double)smaller(m->threads, m->batch);
	/* all threads work on the next batch unless it is too small */
	if (!n)
		n = (m->threads + m->batch - 1) / m->batch;
	p->at_once = (uint32_t)smaller(n, MOST_SLOTS);
	p->usual = fmin(p->abreast, (double)m->threads / p->at_once);
	p->slots = (uint32_t)smaller(m->ahead, MOST_SLOTS);
	/* with synchronous reads, threads hold this many batches, plus the next
	 * one when they reach the end of a batch */
	p->flying = MOST_SLOTS;
	if (m->depth == 1 || m->cache == PEN_SIM_DDICT)
		p->flying = (uint32_t)smaller(
			smaller(n + (m->batch > 1), m->threads), MOST_SLOTS);
}

static void set_limits(const struct pen_sim *m, struct pen_sim_plan *p)
{
	const double limit[PEN_SIM_NPARTS] = {
		m->storage_rate, m->client_rate, m->net_rate, m->net_rate,
		m->copy_rate,	 m->cores,	 1,	      (double)m->threads
	};
	const double answering = p->warm.peer[PEN_SIM_SERVE] > 0 ||
						 p->cold.peer[PEN_SIM_SERVE] > 0
					 ? (double)m->ranks
					 : 0;

	for (unsigned i = 0; i < PEN_SIM_NPARTS; i++) {
		p->limit[i] = limit[i];
		p->count[i] = i == PEN_SIM_STORAGE ? 1
			      : i < PEN_SIM_SERVE  ? (uint32_t)m->nodes
						   : p->world;
		p->felt[i] =
			limit[i] > 0 &&
			(i > PEN_SIM_OUT ||
			 p->cold.own[i] + p->warm.own[i] + p->warm.peer[i] > 0);
	}
	p->felt[PEN_SIM_SERVE] = answering > 0;
	p->felt[PEN_SIM_CPU] =
		m->cores <
		(double)m->ranks * p->at_once * p->abreast + answering;
	if (!(p->warm.peer[PEN_SIM_SERVE] > 0))
		return;
	p->thread_rate = p->warm.sent / p->fan / p->warm.peer[PEN_SIM_SERVE];
	p->coupled = p->felt[PEN_SIM_CPU] ||
		     (m->net_rate > 0 &&
		      p->thread_rate * (double)m->ranks > m->net_rate);
}

void pen__sim_plan(const struct pen_sim *m, struct pen_sim_plan *p)
{
	*p = (struct pen_sim_plan){ 0 };
	set_counts(m, p);
	p->hit = held(m, p);
	set_costs(m, p);
	set_limits(m, p);
}
