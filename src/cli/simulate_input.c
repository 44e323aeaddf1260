/*
 * What a simulation starts from: settings and where each of them came from.
 * Whatever was neither given nor measured is an assumption, and said to be.
 */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "cli/cmd_simulate.h"
#include "emulate/config.h"
#include "emulate/draw.h"

#define OFF(x) offsetof(struct sim_settings, x)
#define COUNT(n, at, d, lo, hi, h)                                             \
	{                                                                      \
		.name = n, .type = PEN_OPT_COUNT, .off = OFF(at), .dflt = d,   \
		.min = lo, .max = hi, .help = h                                \
	}
#define OF(t, n, at, d, h)                                                     \
	{                                                                      \
		.name = n, .type = PEN_OPT_##t, .off = OFF(at), .dflt = d,     \
		.help = h                                                      \
	}

static const char *const caches[] = { "none", "ddict", "local", NULL };

const struct pen_opt pen__sim_opts[] = {
	OF(LIST, "nodes", nodes, "1,4,16,64", "one table row each"),
	COUNT("ranks", ranks, "8", 1, 65536, "accelerators of a node"),
	{ .name = "cores",
	  .type = PEN_OPT_DOUBLE,
	  .off = OFF(cores),
	  .dflt = "0",
	  .min = 0,
	  .max = 65536,
	  .help = "of a node, for loading; 0: one for each thread" },
	OF(STR, "network", network, "25GB/s,2us",
	   "a node's, each way, and its latency; or none: no limit"),
	OF(STR, "storage", storage, "200GB/s,1ms",
	   "of all nodes together, and its latency; or none: no limit"),
	OF(STR, "client", client, NULL,
	   "of the storage, what one node gets, past its network card; unless "
	   "given, it comes through that"),
	OF(STR, "copy", copy, NULL,
	   "what a node's memory copies, all cores at once; or none: no "
	   "limit"),
	{ .name = "cache",
	  .type = PEN_OPT_ENUM,
	  .off = OFF(cache),
	  .dflt = "none",
	  .choices = caches,
	  .help = "none, ddict (memory of all nodes), local (each its own)" },
	OF(SIZE, "memory", memory, "0", "of a node, for it; 0: enough"),
	COUNT("samples", samples, "0", 0, 1e15, "of the data set"),
	COUNT("steps", steps, "0", 0, 1e9,
	      "of an epoch, with data that grows with the cluster; 0: as "
	      "samples= says"),
	OF(SIZE, "sample_bytes", sample_bytes, "0", "of a sample, stored"),
	COUNT("batch", batch, "0", 0, 1e9, "samples of a rank's step"),
	OF(TIME, "compute", compute, "0", "of a step"),
	OF(TIME, "compute_stdev", compute_stdev, "0", "its standard deviation"),
	OF(BOOL, "barrier", barrier, "true", "every step ends together"),
	OF(TIME, "sync", sync, "0",
	   "what the end of a step takes; unless given, by network and "
	   "gradients"),
	OF(SIZE, "gradients", gradients, "0",
	   "summed up over all ranks after a step (a ring)"),
	COUNT("epochs", epochs, "2", 1, 1e6,
	      "the first, and later ones, which may be cached"),
	COUNT("skip", skip, "0", 0, 1e9,
	      "first steps of an epoch that utilisation leaves out"),
	COUNT("threads", threads, "4", 1, 65536, "of a rank's loader"),
	COUNT("ahead", ahead, "4", 1, 65536, "batches, of a rank's loader"),
	COUNT("depth", depth, "1", 1, 65536,
	      "reads a thread has in flight (uring); 1: it waits for each"),
	COUNT("at_once", at_once, "0", 0, 64,
	      "batches fetched at once, and unpacked; 0: as keep threads busy"),
	{ .name = "spread",
	  .type = PEN_OPT_DOUBLE,
	  .off = OFF(spread),
	  .dflt = "1",
	  .min = 1,
	  .max = 1e6,
	  .help = "p99 over p50 of what a batch costs to load" },
	{ .name = "reads",
	  .type = PEN_OPT_DOUBLE,
	  .off = OFF(reads),
	  .dflt = "1",
	  .min = 0,
	  .max = 1e6,
	  .help = "of a sample from storage, one after another" },
	OF(TIME, "cpu_load", cpu_load, "0",
	   "CPU to load a sample from storage; unless given, 2 GB/s a core"),
	OF(TIME, "cpu_hit", cpu_hit, "0",
	   "CPU to copy one from the dictionary, on the node; unless given, 8 "
	   "GB/s"),
	OF(TIME, "cpu_put", cpu_put, "0",
	   "CPU to put one in; unless given, 2 GB/s"),
	OF(TIME, "cpu_ask", cpu_ask, "0",
	   "CPU to get one from another node; unless given, 2 GB/s"),
	OF(TIME, "cpu_serve", cpu_serve, "0",
	   "CPU to answer for one; unless given, 2 GB/s"),
	COUNT("fan", fan, "8", 1, 64,
	      "most ranks that a batch is asked from, in the model"),
	OF(COUNT, "seed", seed, "1", "of all that is drawn"),
	{ .name = NULL },
};
/* one more is for names that there are not */
_Static_assert(sizeof(pen__sim_opts) / sizeof(*pen__sim_opts) <=
		       SIM_MOST_SETTINGS,
	       "settings");

static unsigned number_of(const char *name)
{
	unsigned i = 0;

	while (pen__sim_opts[i].name && strcmp(pen__sim_opts[i].name, name))
		i++;
	return i;
}

const char *sim_from(const struct sim_ask *a, const char *name)
{
	const char *from = a->from[number_of(name)];

	return from ? from : "assumed";
}

void sim_say(struct sim_ask *a, const char *name, const char *from)
{
	a->from[number_of(name)] = from;
}

bool sim_assumed(const struct sim_ask *a, const char *name)
{
	return !a->from[number_of(name)];
}

/* --- the workload --- */

uint64_t sim_ns(double seconds)
{
	return (uint64_t)fmin(fmax(seconds, 0) * 1e9, 9e18);
}

static int take_workload(struct sim_ask *a, struct pen_settings *set)
{
	static const char *const names[] = { "samples",	      "sample_bytes",
					     "batch",	      "compute",
					     "compute_stdev", "threads",
					     "ahead",	      "barrier",
					     "skip",	      NULL };
	struct pen_config c = { 0 };
	struct pen_err err = { 0 };
	int rc = pen__settings_load(set, a->workload, &err);

	if (!rc)
		rc = pen__config_settle(&c, set, &err);
	if (rc)
		return complain(&err);
	print_notes(set);
	if (__builtin_mul_overflow(c.dataset.num_files_train,
				   c.dataset.num_samples_per_file,
				   &a->s.samples))
		a->s.samples = 0;
	a->s.sample_bytes = pen__config_sample_bytes(&c);
	a->s.batch = c.reader.batch_size;
	a->s.compute = sim_ns(pen__time_mean(&c.train.computation_time));
	if (c.train.computation_time.type == PEN_DRAW_NORMAL)
		a->s.compute_stdev = sim_ns(c.train.computation_time.stdev);
	else
		pen__text_add(&a->notes, "the workload's computation_time is "
					 "taken as its mean\n");
	a->s.threads =
		c.reader.read_threads > 0 ? (uint64_t)c.reader.read_threads : 1;
	a->s.ahead = c.reader.prefetch_size > 0
			     ? (uint64_t)c.reader.prefetch_size
			     : 1;
	if (a->s.ahead < a->s.threads)
		a->s.ahead = a->s.threads;
	a->s.barrier = c.train.barrier;
	a->s.skip = c.output.exclude_start_steps;
	for (unsigned i = 0; names[i]; i++)
		sim_say(a, names[i], set->workload);
	pen__config_fini(&c);
	return -1;
}

/* --- as the model takes it --- */

/* "25GB/s,2us", "25GB/s" or "none"; a latency that is not there stays.
 * latency may be NULL: there is none. */
static int parse_link(const char *name, const char *text, double *rate,
		      double *latency)
{
	static const struct pen_opt opts[] = {
		{ .name = "latency", .type = PEN_OPT_TIME }, { .name = NULL }
	};
	const size_t n = strcspn(text, ",");
	char size[64];
	uint64_t v = 0, ns = 0;

	*rate = 0;
	if (!strcmp(text, "none")) {
		if (latency)
			*latency = 0;
		return -1;
	}
	snprintf(size, sizeof(size), "%.*s", (int)(n < 63 ? n : 63), text);
	if (strlen(size) > 2 && !strcmp(size + strlen(size) - 2, "/s"))
		size[strlen(size) - 2] = '\0';
	if (n > 63 || pen__parse_size(size, &v) || !v ||
	    (text[n] && (!latency || pen__opt_set(opts, &ns, "latency",
						  text + n + 1, NULL))))
		return complain_usage("simulate: %s=%s: write a rate%s or none",
				      name, text,
				      latency ? " and a latency, as 25GB/s,2us,"
					      : ", as 25GB/s,");
	*rate = (double)v;
	if (text[n])
		*latency = (double)ns / 1e9;
	return -1;
}

static double cost(const struct sim_ask *a, const char *name, uint64_t ns,
		   double rate)
{
	return sim_assumed(a, name) ? (double)a->s.sample_bytes / rate
				    : (double)ns / 1e9;
}

static int fill(struct sim_ask *a)
{
	const struct sim_settings *s = &a->s;
	struct pen_sim *m = &a->m;
	int rc;

	*m = (struct pen_sim){
		.ranks = s->ranks,
		.batch = s->batch,
		.epochs = s->epochs,
		.skip = s->skip,
		.sample_bytes = (double)s->sample_bytes,
		.compute = (double)s->compute / 1e9,
		.compute_stdev = (double)s->compute_stdev / 1e9,
		.barrier = s->barrier,
		.threads = s->threads,
		.ahead = s->ahead,
		.depth = s->depth,
		.at_once = s->at_once,
		.spread = s->spread,
		.reads = s->reads,
		/* and one for each rank to answer with */
		.cores = s->cores > 0 ? s->cores
				      : (double)(s->ranks * (s->threads + 1)),
		.cpu_load = cost(a, "cpu_load", s->cpu_load, 2e9),
		.cpu_hit = cost(a, "cpu_hit", s->cpu_hit, 8e9),
		.cpu_put = cost(a, "cpu_put", s->cpu_put, 2e9),
		.cpu_ask = cost(a, "cpu_ask", s->cpu_ask, 2e9),
		.cpu_serve = cost(a, "cpu_serve", s->cpu_serve, 2e9),
		.cache = s->cache,
		.cache_bytes = (double)s->memory,
		.fan = s->fan,
		.seed = s->seed,
	};
	rc = parse_link("network", s->network ? s->network : "none",
			&m->net_rate, &m->net_latency);
	if (rc < 0)
		rc = parse_link("storage", s->storage ? s->storage : "none",
				&m->storage_rate, &m->storage_latency);
	m->by_net = !s->client && m->storage_rate > 0;
	if (rc < 0 && s->client)
		rc = parse_link("client", s->client, &m->client_rate, NULL);
	if (rc < 0 && s->copy)
		rc = parse_link("copy", s->copy, &m->copy_rate, NULL);
	return rc;
}

static bool is_given(const struct sim_ask *a, const char *name)
{
	return !strcmp(sim_from(a, name), "given");
}

/* What would be taken, and not looked at. */
static int check_pairs(const struct sim_ask *a)
{
	if (is_given(a, "samples") && is_given(a, "steps") && a->s.samples &&
	    a->s.steps)
		return complain_usage("simulate: samples= contradicts steps=, "
				      "with which the data grows with the "
				      "cluster: leave one of them out");
	if (is_given(a, "sync") && is_given(a, "gradients"))
		return complain_usage("simulate: gradients= has no effect "
				      "with sync=: leave one of them out");
	if (is_given(a, "memory") && a->s.cache == PEN_SIM_NONE)
		return complain_usage("simulate: memory= has no effect with "
				      "cache=none: give cache=ddict or "
				      "cache=local, or leave it out");
	return -1;
}

static int check_given(const struct sim_ask *a)
{
	const struct sim_settings *s = &a->s;
	int rc = check_pairs(a);

	if (rc >= 0)
		return rc;
	if (!s->batch || !s->sample_bytes || (!s->samples && !s->steps) ||
	    sim_assumed(a, "compute"))
		return complain_usage("simulate: which workload? Name one, or "
				      "give samples= (or steps=), "
				      "sample_bytes=, batch= and compute=");
	if (!s->nodes.n)
		return complain_usage("simulate: nodes= has to name some");
	for (size_t i = 0; i < s->nodes.n; i++)
		if (s->nodes.v[i] < 1 || s->nodes.v[i] > PEN_SIM_MOST_RANKS)
			return complain_usage("simulate: nodes=%lld is not "
					      "from 1 to %u",
					      (long long)s->nodes.v[i],
					      PEN_SIM_MOST_RANKS);
	return -1;
}

static int apply_args(struct sim_ask *a)
{
	struct pen_err err = { 0 };

	for (unsigned i = 0; i < a->nargs; i++) {
		const char *eq = strchr(a->arg[i], '=');
		char key[64];

		snprintf(key, sizeof(key), "%.*s", (int)(eq - a->arg[i]),
			 a->arg[i]);
		if (pen__opt_set(pen__sim_opts, &a->s, key, eq + 1, &err))
			return complain(&err);
		sim_say(a, key, "given");
	}
	return -1;
}

int sim_resolve(struct sim_ask *a, struct pen_settings *set)
{
	struct pen_err err = { 0 };
	int rc = -1;

	if (pen__opt_defaults(pen__sim_opts, &a->s, &err))
		return complain(&err);
	if (a->workload || set->workload)
		rc = take_workload(a, set);
	/* what files say depends on what a sample is */
	if (rc < 0)
		rc = apply_args(a);
	for (unsigned i = 0; i < a->nfiles && rc < 0; i++)
		rc = sim_take_file(a, a->file[i]);
	if (rc < 0)
		rc = apply_args(a);
	if (rc < 0)
		rc = check_given(a);
	return rc < 0 ? fill(a) : rc;
}

void sim_ask_fini(struct sim_ask *a)
{
	pen__opt_fini(pen__sim_opts, &a->s);
	pen__text_fini(&a->notes);
}

bool sim_of(const struct sim_ask *a, uint64_t nodes, struct pen_sim *m)
{
	const uint64_t world = nodes * a->s.ranks;

	*m = a->m;
	m->nodes = nodes;
	m->steps = a->s.steps;
	if (!m->steps) /* neither is more than 2^36 */
		m->steps = a->s.samples / a->s.batch / world;
	m->sync = (double)a->s.sync / 1e9;
	if (sim_assumed(a, "sync") && a->s.barrier) {
		m->sync = 2 * m->net_latency * ceil(log2((double)world));
		if (nodes > 1 && m->net_rate > 0)
			m->sync += 2 * (double)a->s.gradients / m->net_rate *
				   (double)(world - 1) / (double)world;
	}
	return m->steps > 0;
}
