/*
 * Inputs of a simulation: settings and the source of each. A setting that was
 * neither given nor measured is an assumption and is printed as such.
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
	OF(LIST, "nodes", nodes, "1,4,16,64",
	   "numbers of nodes; one row of the table each"),
	COUNT("ranks", ranks, "8", 1, 65536, "accelerators per node"),
	{ .name = "cores",
	  .type = PEN_OPT_DOUBLE,
	  .off = OFF(cores),
	  .dflt = "0",
	  .min = 0,
	  .max = 65536,
	  .help = "cores per node for loading (0: one per thread)" },
	OF(STR, "network", network, "25GB/s,2us",
	   "bandwidth per node and direction, and latency (none: no limit)"),
	OF(STR, "storage", storage, "200GB/s,1ms",
	   "bandwidth of storage for all nodes together, and latency (none: no "
	   "limit)"),
	OF(STR, "client", client, NULL,
	   "storage bandwidth per node that bypasses its network card "
	   "(default: through the card)"),
	OF(STR, "copy", copy, NULL,
	   "memory copy bandwidth per node, all cores together (none: no "
	   "limit)"),
	{ .name = "cache",
	  .type = PEN_OPT_ENUM,
	  .off = OFF(cache),
	  .dflt = "none",
	  .choices = caches,
	  .help = "where later epochs read from: ddict: memory of all nodes; "
		  "local: memory of the node" },
	OF(SIZE, "memory", memory, "0",
	   "memory per node for the cache (0: unlimited)"),
	OF(SIZE, "data", data, "0",
	   "stored size of the data set, instead of samples= (such as 10TB)"),
	{ .name = "seconds",
	  .type = PEN_OPT_DOUBLE,
	  .off = OFF(seconds),
	  .dflt = "60",
	  .min = 0.1,
	  .max = 1e6,
	  .help = "approximate time to measure PATH" },
	COUNT("samples", samples, "0", 0, 1e15,
	      "number of samples in the data set"),
	COUNT("steps", steps, "0", 0, 1e9,
	      "steps per epoch, with data that grows with the cluster (0: from "
	      "samples=)"),
	OF(SIZE, "sample_bytes", sample_bytes, "0", "stored size of a sample"),
	COUNT("batch", batch, "0", 0, 1e9, "samples per rank and step"),
	OF(TIME, "compute", compute, "0", "computing time of a step"),
	OF(TIME, "compute_stdev", compute_stdev, "0",
	   "standard deviation of the computing time"),
	OF(BOOL, "barrier", barrier, "true",
	   "all ranks end each step together"),
	OF(TIME, "sync", sync, "0",
	   "time of the synchronisation after a step (default: from network "
	   "and gradients)"),
	OF(SIZE, "gradients", gradients, "0",
	   "bytes summed over all ranks after a step (ring all-reduce)"),
	COUNT("epochs", epochs, "2", 1, 1e6,
	      "number of epochs; later ones may be cached"),
	COUNT("skip", skip, "0", 0, 1e9,
	      "first steps of an epoch to exclude from utilisation"),
	COUNT("threads", threads, "4", 1, 65536, "loader threads per rank"),
	COUNT("ahead", ahead, "4", 1, 65536,
	      "prefetch depth in batches, per rank"),
	COUNT("depth", depth, "1", 1, 65536,
	      "reads in flight per thread, as with uring (1: synchronous)"),
	COUNT("at_once", at_once, "0", 0, 64,
	      "batches fetched and unpacked at a time (0: enough to keep "
	      "threads busy)"),
	{ .name = "spread",
	  .type = PEN_OPT_DOUBLE,
	  .off = OFF(spread),
	  .dflt = "1",
	  .min = 1,
	  .max = 1e6,
	  .help = "p99 over p50 of the cost of loading a batch" },
	{ .name = "reads",
	  .type = PEN_OPT_DOUBLE,
	  .off = OFF(reads),
	  .dflt = "1",
	  .min = 0,
	  .max = 1e6,
	  .help = "sequential reads per sample" },
	OF(TIME, "cpu_load", cpu_load, "0",
	   "CPU time to load a sample from storage (default: 2 GB/s per core)"),
	OF(TIME, "cpu_hit", cpu_hit, "0",
	   "CPU time to copy a sample from the dictionary, same node (default: "
	   "8 GB/s)"),
	OF(TIME, "cpu_put", cpu_put, "0",
	   "CPU time to put a sample into the dictionary (default: 2 GB/s)"),
	OF(TIME, "cpu_ask", cpu_ask, "0",
	   "CPU time to get a sample from another node (default: 2 GB/s)"),
	OF(TIME, "cpu_serve", cpu_serve, "0",
	   "CPU time to answer another node (default: 2 GB/s)"),
	COUNT("fan", fan, "8", 1, 64,
	      "upper bound of ranks that one batch is requested from, in the "
	      "model"),
	OF(COUNT, "seed", seed, "1", "seed of all random draws"),
	{ .name = NULL },
};
/* one more is for unknown names */
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
					 "replaced by its mean\n");
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

/* --- filling in the model --- */

/* "25GB/s,2us", "25GB/s" or "none"; an omitted latency keeps its value. latency
 * is NULL for links without one. */
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
		return complain_usage(
			P_BAD_VALUE, "simulate",
			"%s=%s is not valid; write a bandwidth%s or none", name,
			text,
			latency ? " and a latency, as in 25GB/s,2us,"
				: ", as in 25GB/s,");
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
		/* and one per rank for answering */
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
	if (a->measured.n)
		sim_use_part(a, a->measured.mid, m);
	return rc;
}

static bool is_given(const struct sim_ask *a, const char *name)
{
	return !strcmp(sim_from(a, name), "given");
}

/* Settings that would be ignored. */
static int check_pairs(const struct sim_ask *a)
{
	if (is_given(a, "samples") && is_given(a, "steps") && a->s.samples &&
	    a->s.steps)
		return complain_usage(
			P_CONFLICT, "simulate",
			"samples= conflicts with steps=, which lets the data "
			"grow with the cluster; omit one of them");
	if (a->s.data && ((is_given(a, "samples") && a->s.samples) ||
			  (is_given(a, "steps") && a->s.steps)))
		return complain_usage(P_CONFLICT, "simulate",
				      "data= conflicts with samples= and "
				      "steps=; omit one of them");
	if (is_given(a, "seconds") && !a->path)
		return complain_usage(P_NO_EFFECT, "simulate",
				      "seconds= has no effect without data to "
				      "measure; name a PATH or omit it");
	if (is_given(a, "sync") && is_given(a, "gradients"))
		return complain_usage(P_NO_EFFECT, "simulate",
				      "gradients= has no effect with sync=; "
				      "omit one of them");
	if (is_given(a, "memory") && a->s.cache == PEN_SIM_NONE)
		return complain_usage(
			P_NO_EFFECT, "simulate",
			"memory= has no effect with cache=none; set "
			"cache=ddict or cache=local, or omit it");
	return -1;
}

/* data= in samples, of the size in which they are stored. */
static void take_data(struct sim_ask *a)
{
	const double each = a->measured.n ? a->measured.stored_bytes
					  : (double)a->s.sample_bytes;

	if (!a->s.data || !(each > 0))
		return;
	a->s.samples = (uint64_t)((double)a->s.data / each);
	sim_say(a, "samples", "data=");
}

static int check_given(const struct sim_ask *a)
{
	const struct sim_settings *s = &a->s;

	if (s->data && !s->samples && !strcmp(sim_from(a, "samples"), "data="))
		return complain_usage(P_TOO_FEW_SAMPLES, "simulate",
				      "data=%s is less than one sample",
				      human_bytes((double)s->data));
	if (!s->batch || !s->sample_bytes || (!s->samples && !s->steps) ||
	    (sim_assumed(a, "compute") && !a->path))
		return complain_usage(
			P_MISSING_SETTING, "simulate",
			"no workload given; name one, or set samples= (or "
			"steps=), sample_bytes=, batch= and compute=");
	if (!s->nodes.n)
		return complain_usage(P_BAD_VALUE, "simulate",
				      "nodes= is empty; list numbers of nodes, "
				      "as in nodes=1,4");
	for (size_t i = 0; i < s->nodes.n; i++)
		if (s->nodes.v[i] < 1 || s->nodes.v[i] > PEN_SIM_MOST_RANKS)
			return complain_usage(
				P_BAD_VALUE, "simulate",
				"nodes=%lld is out of range; use 1 to %u",
				(long long)s->nodes.v[i], PEN_SIM_MOST_RANKS);
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
	/* figures of files depend on the size of a sample */
	if (rc < 0)
		rc = apply_args(a);
	if (rc < 0)
		rc = check_pairs(a);
	for (unsigned i = 0; i < a->nfiles && rc < 0; i++)
		rc = sim_take_file(a, a->file[i]);
	if (rc < 0 && a->path)
		rc = sim_measure(a);
	if (rc < 0)
		rc = apply_args(a);
	if (rc < 0)
		take_data(a);
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
	if (!m->steps) /* no overflow: neither is more than 2^36 */
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
