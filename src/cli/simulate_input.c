/*
 * What a simulation starts from: settings and where each of them came from.
 * Whatever was neither given nor measured is an assumption, and said to be.
 */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "cli/simulate.h"
#include "emulate/config.h"
#include "emulate/draw.h"
#include "report/doc.h"

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
	COUNT("cores", cores, "0", 0, 65536,
	      "of a node, for loading; 0: one a thread"),
	OF(STR, "network", network, "25GB/s,2us",
	   "a node's, each way, and its latency; or none: no limit"),
	OF(STR, "storage", storage, "200GB/s,1ms",
	   "of all nodes together, and its latency; or none: no limit"),
	OF(STR, "client", client, NULL,
	   "of the storage, what one node gets; as the network unless given"),
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
	   "what the end of a step takes; 0: by network and gradients"),
	OF(SIZE, "gradients", gradients, "0",
	   "summed up over all ranks after a step (a ring)"),
	COUNT("epochs", epochs, "2", 1, 1e6,
	      "the first, and later ones, which may be cached"),
	COUNT("skip", skip, "0", 0, 1e9,
	      "first steps of an epoch that utilisation leaves out"),
	COUNT("threads", threads, "4", 1, 65536, "of a rank's loader"),
	COUNT("ahead", ahead, "4", 1, 65536, "batches, of a rank's loader"),
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
	   "CPU to load a sample from storage; 0: 2 GB/s a core"),
	OF(TIME, "cpu_hit", cpu_hit, "0",
	   "CPU to copy one from the dictionary, on the node; 0: 8 GB/s"),
	OF(TIME, "cpu_put", cpu_put, "0", "CPU to put one in; 0: 2 GB/s"),
	OF(TIME, "cpu_ask", cpu_ask, "0",
	   "CPU to get one from another node; 0: 2 GB/s"),
	OF(TIME, "cpu_serve", cpu_serve, "0",
	   "CPU to answer for one; 0: 2 GB/s"),
	COUNT("fan", fan, "8", 1, 64,
	      "most nodes that a batch is asked from, in the model"),
	OF(COUNT, "seed", seed, "1", "of all that is drawn"),
	{ .name = NULL },
};

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

static void say(struct sim_ask *a, const char *name, const char *from)
{
	a->from[number_of(name)] = from;
}

static bool assumed(const struct sim_ask *a, const char *name)
{
	return !a->from[number_of(name)];
}

/* --- the workload --- */

static uint64_t ns_of(double seconds)
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
	a->s.compute = ns_of(pen__time_mean(&c.train.computation_time));
	if (c.train.computation_time.type == PEN_DRAW_NORMAL)
		a->s.compute_stdev = ns_of(c.train.computation_time.stdev);
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
		say(a, names[i], set->workload);
	pen__config_fini(&c);
	return -1;
}

/* --- what was measured --- */

static bool positive(double x)
{
	return x > 0 && x < 1e18;
}

/* A count out of a file, unless something said it already. */
static void take_count(struct sim_ask *a, const struct pen_doc *d,
		       const char *path, const char *name, uint64_t *to)
{
	const double x = pen__doc_number(d, 0, path);

	if (!assumed(a, name) || !positive(x) || x > 1e15)
		return;
	*to = (uint64_t)x;
	say(a, name, d->name);
}

/* Bunches of batches tell nothing of what one of them costs. */
static void take_spread(struct sim_ask *a, const struct pen_doc *d, double each)
{
	const double p50 = pen__doc_number(d, 0, "wait_ns.p50") / 1e9,
		     p99 = pen__doc_number(d, 0, "wait_ns.p99") / 1e9;

	if (p50 > each / 2 && p99 >= p50 && p99 < 1e6 * p50) {
		a->s.spread = p99 / p50;
		say(a, "spread", d->name);
		return;
	}
	pen__text_add(&a->notes,
		      "%s: batches came in bunches, so its p99 and p50 are "
		      "not taken as spread\n",
		      d->name);
}

/* With many in flight they do not come one after another. */
static void take_reads(struct sim_ask *a, const struct pen_doc *d, double n)
{
	const double reads = pen__doc_number(d, 0, "nreads");

	if (!positive(reads) || reads / n > 1e6 ||
	    !strcmp(pen__doc_text(d, 0, "store"), "uring"))
		return;
	a->s.reads = reads / n;
	say(a, "reads", d->name);
}

static int take_load(struct sim_ask *a, const struct pen_doc *d)
{
	const double n = pen__doc_number(d, 0, "samples"),
		     cpu = pen__doc_number(d, 0, "cpu_s"),
		     batches = pen__doc_number(d, 0, "batches"),
		     seconds = pen__doc_number(d, 0, "seconds"),
		     bytes = fmax(pen__doc_number(d, 0, "read_bytes"),
				  pen__doc_number(d, 0, "payload_bytes"));

	if (!positive(n) || !positive(cpu) || !positive(batches) ||
	    !positive(seconds) || !positive(bytes))
		return complain_usage("%s: nothing was loaded: measure with "
				      "`penstock load PATH -o FILE`",
				      d->name);
	if (!a->s.sample_bytes) {
		a->s.sample_bytes = (uint64_t)(bytes / n);
		say(a, "sample_bytes", d->name);
	}
	take_count(a, d, "data.samples", "samples", &a->s.samples);
	take_count(a, d, "batch_size", "batch", &a->s.batch);
	take_count(a, d, "threads", "threads", &a->s.threads);
	take_count(a, d, "prefetch", "ahead", &a->s.ahead);
	a->s.cpu_load =
		ns_of(cpu / n * (double)a->s.sample_bytes / (bytes / n));
	say(a, "cpu_load", d->name);
	take_reads(a, d, n);
	take_spread(a, d, seconds / batches);
	return -1;
}

static double way_cpu(const struct pen_doc *d, const char *name)
{
	const uint32_t ways = pen__doc_at(d, 0, "ways");

	for (uint32_t w = pen__jdoc_first(&d->j, ways); w != PEN_JDOC_NONE;
	     w = pen__jdoc_next(&d->j, w))
		if (!strcmp(pen__doc_text(d, w, "name"), name))
			return pen__doc_number(d, w, "cpu_seconds_each");
	return NAN;
}

static int take_ddict(struct sim_ask *a, const struct pen_doc *d)
{
	const double size = pen__doc_number(d, 0, "size"),
		     put = way_cpu(d, "put_many"),
		     here = way_cpu(d, "get_many, copied"),
		     ranks = pen__doc_number(d, 0, "ranks");
	double there = way_cpu(d, "get_many, ahead, copied");
	const bool shared =
		!strncmp(pen__doc_text(d, 0, "transport"), "shared memory", 13);
	double scale;

	if (!positive(size) || !positive(put) || !positive(here) ||
	    !positive(there))
		return complain_usage("%s: not all was measured: try `penstock "
				      "ddict bench --json > FILE`",
				      d->name);
	scale = a->s.sample_bytes ? (double)a->s.sample_bytes / size : 1;
	if (scale > 2 || scale < 0.5)
		pen__text_add(&a->notes,
			      "%s: values of %s stand for samples of %s; "
			      "measure with size=%llu\n",
			      d->name, human_bytes(size),
			      human_bytes((double)a->s.sample_bytes),
			      (unsigned long long)a->s.sample_bytes);
	if (shared) {
		a->s.cpu_put = ns_of(put * scale);
		a->s.cpu_hit = ns_of(here * scale);
		say(a, "cpu_put", d->name);
		say(a, "cpu_hit", d->name);
		return -1;
	}
	/* both ends were measured at once, and one in `ranks` was at home */
	if (!(ranks >= 2 && ranks < 1e6))
		return complain_usage("%s: of fewer than 2 ranks", d->name);
	there *= scale;
	if (!assumed(a, "cpu_hit"))
		there -= (double)a->s.cpu_hit / 1e9 / ranks;
	there = fmax(there, 0) / (1 - 1 / ranks);
	a->s.cpu_ask = a->s.cpu_serve = ns_of(there / 2);
	say(a, "cpu_ask", d->name);
	say(a, "cpu_serve", d->name);
	return -1;
}

static int take_file(struct sim_ask *a, const char *path)
{
	struct pen_doc d;
	struct pen_err err = { 0 };
	int rc;

	if (pen__doc_open(&d, path, &err))
		return complain(&err);
	if (pen__doc_is(&d, "penstock.load/"))
		rc = take_load(a, &d);
	else if (pen__doc_is(&d, "penstock.ddict.bench/"))
		rc = take_ddict(a, &d);
	else
		rc = complain_usage("%s: neither of `penstock load -o FILE` "
				    "nor of `penstock ddict bench --json`",
				    path);
	pen__doc_close(&d);
	return rc;
}

/* --- as the model takes it --- */

/* "25GB/s,2us", "25GB/s" or "none"; a latency that is not there stays. */
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
		*latency = 0;
		return -1;
	}
	snprintf(size, sizeof(size), "%.*s", (int)(n < 63 ? n : 63), text);
	if (strlen(size) > 2 && !strcmp(size + strlen(size) - 2, "/s"))
		size[strlen(size) - 2] = '\0';
	if (pen__parse_size(size, &v) || !v ||
	    (text[n] && pen__opt_set(opts, &ns, "latency", text + n + 1, NULL)))
		return complain_usage("simulate: %s=%s: write a rate and a "
				      "latency, as 25GB/s,2us, or none",
				      name, text);
	*rate = (double)v;
	if (text[n])
		*latency = (double)ns / 1e9;
	return -1;
}

static double cost(const struct sim_ask *a, const char *name, uint64_t ns,
		   double rate)
{
	return assumed(a, name) ? (double)a->s.sample_bytes / rate
				: (double)ns / 1e9;
}

static int fill(struct sim_ask *a)
{
	const struct sim_settings *s = &a->s;
	struct pen_sim *m = &a->m;
	double unused = 0;
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
		.at_once = s->at_once,
		.spread = s->spread,
		.reads = s->reads,
		.cores = (double)(s->cores ? s->cores : s->ranks * s->threads),
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
	m->client_rate = m->net_rate;
	if (rc < 0 && !s->client && m->storage_rate <= 0)
		m->client_rate = 0;
	if (rc < 0 && s->client)
		rc = parse_link("client", s->client, &m->client_rate, &unused);
	return rc;
}

static int check_given(const struct sim_ask *a)
{
	const struct sim_settings *s = &a->s;

	if (!s->batch || !s->sample_bytes || (!s->samples && !s->steps))
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
		say(a, key, "given");
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
		rc = take_file(a, a->file[i]);
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
	if (assumed(a, "sync") && a->s.barrier) {
		m->sync = 2 * m->net_latency * ceil(log2((double)world));
		if (nodes > 1 && m->net_rate > 0)
			m->sync += 2 * (double)a->s.gradients / m->net_rate *
				   (double)(world - 1) / (double)world;
	}
	return m->steps > 0;
}
