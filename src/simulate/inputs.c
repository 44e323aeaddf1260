/* Checks the inputs of a simulation and names the limit in its result. */
#include <math.h>

#include "simulate/simulate_int.h"

#include "base/show.h"

static int check_count(const char *name, uint64_t n, uint64_t most,
		       struct pen_err *err)
{
	if (n >= 1 && n <= most)
		return 0;
	return pen__fail(err, P_BAD_VALUE, name,
			 "%llu is out of range; use 1 to %llu",
			 (unsigned long long)n, (unsigned long long)most);
}

static int check_counts(const struct pen_sim *m, struct pen_err *err)
{
	const struct {
		const char *name;
		uint64_t n, most;
	} v[] = {
		{ "nodes", m->nodes, PEN_SIM_MOST_RANKS },
		{ "ranks", m->ranks, PEN_SIM_MOST_RANKS },
		{ "batch", m->batch, 1u << 30 },
		{ "steps", m->steps, 1ull << 40 },
		{ "epochs", m->epochs, 1u << 20 },
		{ "threads", m->threads, 65536 },
		{ "ahead", m->ahead, 65536 },
		{ "depth", m->depth, 65536 },
		{ "fan", m->fan, 64 },
	};

	for (size_t i = 0; i < sizeof(v) / sizeof(*v); i++) {
		int rc = check_count(v[i].name, v[i].n, v[i].most, err);

		if (rc)
			return rc;
	}
	if (m->nodes * m->ranks > PEN_SIM_MOST_RANKS)
		return pen__fail(
			err, P_BAD_VALUE, "nodes x ranks",
			"%s are too many; at most %s can be simulated",
			pen__show_counted(m->nodes * m->ranks, "accelerator").s,
			pen__show_grouped(PEN_SIM_MOST_RANKS).s);
	if ((double)(m->nodes * m->ranks) * (double)m->steps *
		    (double)m->epochs >
	    PEN_SIM_MOST_BATCHES)
		return pen__fail(err, P_BAD_VALUE, "steps",
				 "more than %.0e batches; simulate fewer steps "
				 "or epochs (steps=1000)",
				 PEN_SIM_MOST_BATCHES);
	return 0;
}

static int check_numbers(const struct pen_sim *m, struct pen_err *err)
{
	const struct {
		const char *name;
		double x, most;
	} v[] = {
		{ "sample_bytes", m->sample_bytes, 1e15 },
		{ "compute", m->compute, 1e9 },
		{ "compute_stdev", m->compute_stdev, 1e9 },
		{ "sync", m->sync, 1e9 },
		{ "cores", m->cores, 1e6 },
		{ "copy", m->copy_rate, 1e18 },
		{ "cpu_load", m->cpu_load, 1e6 },
		{ "cpu_hit", m->cpu_hit, 1e6 },
		{ "cpu_put", m->cpu_put, 1e6 },
		{ "cpu_ask", m->cpu_ask, 1e6 },
		{ "cpu_serve", m->cpu_serve, 1e6 },
		{ "storage", m->storage_rate, 1e18 },
		{ "client", m->client_rate, 1e18 },
		{ "storage latency", m->storage_latency, 1e6 },
		{ "reads", m->reads, 1e6 },
		{ "network", m->net_rate, 1e18 },
		{ "network latency", m->net_latency, 1e6 },
		{ "memory", m->cache_bytes, 1e18 },
	};

	for (size_t i = 0; i < sizeof(v) / sizeof(*v); i++)
		if (!(v[i].x >= 0 && v[i].x <= v[i].most))
			return pen__fail(err, P_BAD_VALUE, v[i].name,
					 "%g is out of range; use 0 to %g",
					 v[i].x, v[i].most);
	if (!(m->spread >= 1 && m->spread <= 1e6))
		return pen__fail(err, P_BAD_VALUE, "spread",
				 "%g is out of range; use 1 (no spread) to 1e6",
				 m->spread);
	if (!(m->cores > 0))
		return pen__fail(err, P_BAD_VALUE, "cores",
				 "a node needs at least a fraction of a core");
	if (m->cache < PEN_SIM_NONE || m->cache > PEN_SIM_LOCAL)
		return pen__fail(err, P_BAD_VALUE, "cache",
				 "%d is not a known cache", m->cache);
	return 0;
}

int pen__sim_check(const struct pen_sim *m, struct pen_err *err)
{
	int rc = check_counts(m, err);

	return rc ? rc : check_numbers(m, err);
}

enum pen_sim_limit pen__sim_limit(const struct pen_sim_epoch *e)
{
	unsigned most = 0;

	if (e->utilisation >= 0.9)
		return PEN_SIM_BY_COMPUTE;
	if (e->sync > e->data && e->sync > e->waiting)
		return PEN_SIM_BY_SYNC;
	for (unsigned i = 1; i < PEN_SIM_NPARTS; i++)
		if (e->busy[i] > e->busy[most])
			most = i;
	/* the part that is busy most of the time is the one others wait for */
	if (e->busy[most] >= 0.8 || e->busy[most] > e->utilisation)
		return (enum pen_sim_limit)most;
	return e->waiting > e->data ? PEN_SIM_BY_WAITING : PEN_SIM_BY_LATENCY;
}

const char *pen__sim_limit_name(enum pen_sim_limit l)
{
	static const char *const names[] = {
		"storage",	   "node's way to storage", "network, in",
		"network, out",	   "memory bandwidth",	    "loader CPU",
		"answering ranks", "loader threads",	    "compute",
		"latency",	   "the slowest rank",	    "the end of a step",
	};

	return (unsigned)l < sizeof(names) / sizeof(*names) ? names[l] : "?";
}
