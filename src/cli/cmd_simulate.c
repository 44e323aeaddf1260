/*
 * simulate: predicts how a workload runs on a cluster from measurements on this
 * machine. All inputs are printed with the result.
 */
#include <math.h>
#include <string.h>

#include "cli/cmd_simulate.h"
#include "emulate/config.h"

struct row {
	struct pen_sim m;
	struct pen_sim_result r;
	bool fits;	  /* the data has at least one full step */
	uint64_t steps;	  /* of an epoch; the model may have fewer */
	double low, high; /* seconds of the first epoch, of all parts */
};

struct simulate {
	struct pen_settings set;
	struct sim_ask ask;
	struct progress p;
	bool json, quiet;
	struct row row[64];
	unsigned nrows;
};

static const struct flag flags[] = {
	{ "--from", "FILE",
	  "take measurements from FILE of `load -o` or `ddict bench --json`; "
	  "repeatable" },
	{ "--lenient", NULL, "report unknown keys as notes instead of errors" },
	{ "--config-dir", "DIR", "look for DIR/workload/NAME.yaml first" },
	{ "--json", NULL, "print the result as JSON" },
	{ "--quiet", NULL, "show no progress line" },
	{ NULL, NULL, NULL },
};

static int tick(void *arg, uint64_t batches)
{
	progress_show(arg, batches, 0);
	return interrupted();
}

static const struct pen_sim_epoch *usual(const struct row *w)
{
	return w->m.epochs > 1 ? &w->r.later : &w->r.first;
}

/* Scales the figures of the simulated steps to the entire epoch. */
static void extrapolate(struct row *w)
{
	const double more = (double)w->steps / (double)w->m.steps;
	struct pen_sim_epoch *e[] = { &w->r.first, &w->r.later };

	for (unsigned i = 0; i < 2; i++) {
		e[i]->seconds *= more;
		e[i]->storage_bytes *= more;
		e[i]->net_bytes *= more;
		e[i]->memory_bytes *= more;
		e[i]->samples = (uint64_t)((double)e[i]->samples * more);
	}
	w->r.seconds *= more;
}

/* --- text output --- */

static void print_rate(const char *name, double rate, double latency,
		       const char *from)
{
	if (rate > 0 && latency > 0)
		print_line(14, name, "%s/s, latency %s (%s)", human_bytes(rate),
			   human_time(latency), from);
	else if (rate > 0)
		print_line(14, name, "%s/s (%s)", human_bytes(rate), from);
	else
		print_line(14, name, "no limit (%s)", from);
}

static void print_cpu(const struct sim_ask *a, const char *name, double seconds,
		      const char *what)
{
	print_line(14, name, "%s of CPU per sample, %s (%s)",
		   human_time(seconds), what, sim_from(a, name));
}

static void print_storage(const struct sim_ask *a)
{
	if (a->measured.by_rate)
		print_line(
			14, "storage",
			"%s/s for all nodes (assumed), no latency beyond that",
			human_bytes(a->m.storage_rate));
	else
		print_line(14, "storage",
			   "%s/s for all nodes (assumed), each read takes "
			   "%s (measured)",
			   human_bytes(a->m.storage_rate),
			   human_time(a->m.storage_latency));
}

static void print_measured(const struct sim_ask *a)
{
	const struct sim_measured *x = &a->measured;
	const struct sim_part *slow = &x->part[0], *mid = &x->part[x->mid],
			      *fast = &x->part[x->n - 1];

	print_line(14, "measured",
		   "%s samples/s (%s .. %s), %s/s read (%s/s .. %s/s)",
		   human_count(mid->samples_per_s),
		   human_count(slow->samples_per_s),
		   human_count(fast->samples_per_s),
		   human_bytes(mid->read_rate), human_bytes(slow->read_rate),
		   human_bytes(fast->read_rate));
	print_line(
		14, "",
		"in %u runs of %s in total, after dropping the page cache: %s",
		x->n, human_time(x->seconds), human_bytes(x->read_bytes));
	if (isfinite(x->cached))
		print_line(14, "", "%s of the bytes came from the page cache%s",
			   pen__show_share(x->cached).s,
			   x->given && x->cached > 0.1
				   ? ": storage was not measured"
				   : "");
	else
		print_line(14, "",
			   "where the bytes came from is unknown: a server may "
			   "have cached them");
}

static void print_model(const struct sim_ask *a)
{
	const struct pen_sim *m = &a->m;
	const struct sim_settings *s = &a->s;
	char size[64] = "";

	print_line(14, "samples", "%s (%s), batches of %s (%s)",
		   human_bytes(m->sample_bytes), sim_from(a, "sample_bytes"),
		   grouped(m->batch), sim_from(a, "batch"));
	if (s->steps)
		print_line(14, "steps",
			   "%s per epoch: the data grows with the cluster (%s)",
			   grouped(s->steps), sim_from(a, "steps"));
	else
		print_line(14, "data", "%s, %s (%s)",
			   counted(s->samples, "sample"),
			   human_bytes((double)s->samples * m->sample_bytes),
			   sim_from(a, "samples"));
	print_line(14, "compute", "%s +- %s per step (%s), %s",
		   human_time(m->compute), human_time(m->compute_stdev),
		   sim_from(a, "compute"),
		   m->barrier ? "ranks end each step together"
			      : "ranks do not wait for each other");
	print_line(14, "node", "%s (%s), %g core%s for loading (%s)",
		   counted(m->ranks, "rank"), sim_from(a, "ranks"), m->cores,
		   m->cores == 1 ? "" : "s",
		   s->cores > 0 ? sim_from(a, "cores")
				: "assumed: one per thread");
	if (m->copy_rate > 0)
		print_rate("  memory", m->copy_rate, 0, sim_from(a, "copy"));
	print_line(14, "loader", "%s (%s), prefetch depth %s (%s)",
		   counted(m->threads, "thread"), sim_from(a, "threads"),
		   counted(m->ahead, "batch"), sim_from(a, "ahead"));
	if (a->measured.n && !a->measured.given)
		print_storage(a);
	else
		print_rate("storage", m->storage_rate, m->storage_latency,
			   sim_from(a, "storage"));
	if (m->by_net)
		print_line(14, "  of a node",
			   "through its network card (assumed)");
	else
		print_rate("  of a node", m->client_rate, 0,
			   a->measured.by_rate && !a->measured.given
				   ? "measured"
				   : sim_from(a, "client"));
	print_line(14, "reads",
		   "%.3g per sample (%s), %s in flight per thread (%s)",
		   m->reads, sim_from(a, "reads"), grouped(m->depth),
		   sim_from(a, "depth"));
	print_rate("network", m->net_rate, m->net_latency,
		   sim_from(a, "network"));
	print_cpu(a, "cpu_load", m->cpu_load, "from storage");
	if (m->cache == PEN_SIM_DDICT) {
		print_cpu(a, "cpu_put", m->cpu_put, "into the dictionary");
		print_cpu(a, "cpu_hit", m->cpu_hit,
			  "from the dictionary, same node");
		print_cpu(a, "cpu_ask", m->cpu_ask, "from another node");
		print_cpu(a, "cpu_serve", m->cpu_serve,
			  "to answer another node");
	}
	print_line(14, "spread", "the p99 of a batch is %.3g x its p50 (%s)",
		   m->spread, sim_from(a, "spread"));
	if (m->cache && s->memory)
		snprintf(size, sizeof(size), ", %s per node",
			 human_bytes((double)s->memory));
	else if (m->cache)
		snprintf(size, sizeof(size), ", of unlimited size");
	print_line(14, "cache", "%s (%s)%s",
		   m->cache == PEN_SIM_NONE    ? "none"
		   : m->cache == PEN_SIM_DDICT ? "the memory of all nodes"
					       : "each node's own memory",
		   sim_from(a, "cache"), size);
	puts("");
}

static void print_row(const struct simulate *x, const struct row *w)
{
	const struct pen_sim *m = &w->m;

	printf("  %6s %7s ", grouped(m->nodes), grouped(m->nodes * m->ranks));
	if (!w->fits) {
		printf("less than one full step (%s); steps=N lets the data "
		       "grow\n",
		       counted(x->ask.s.samples, "sample"));
		return;
	}
	printf("%7s %11s %5.1f %% ", grouped(w->steps),
	       human_time(w->r.first.seconds), 100 * w->r.first.utilisation);
	if (m->epochs > 1)
		printf("%11s %5.1f %% ", human_time(w->r.later.seconds),
		       100 * w->r.later.utilisation);
	printf(" %s\n", pen__sim_limit_name(pen__sim_limit(usual(w))));
}

static void print_words(const struct row *w)
{
	const struct pen_sim_epoch *e = usual(w);
	const enum pen_sim_limit by = pen__sim_limit(e);
	const double lost = 100 * (1 - e->utilisation);

	printf("  %s: accelerators compute for %.1f %% of %s epoch",
	       counted(w->m.nodes, "node"), 100 * e->utilisation,
	       w->m.epochs > 1 ? "a later" : "the");
	if (lost >= 0.05)
		printf(";\n  they wait %.1f %% of it for batches, %.1f %% for "
		       "the slowest rank and %.1f %% for\n  the end of a step",
		       100 * e->data, 100 * e->waiting, 100 * e->sync);
	printf(".\n  ");
	if (by < PEN_SIM_BY_COMPUTE)
		printf("The limit is: %s, %.0f %% busy.\n ",
		       pen__sim_limit_name(by), 100 * e->busy[by]);
	else if (by == PEN_SIM_BY_COMPUTE)
		printf("The loaders keep up.");
	else
		printf("The limit is: %s; no resource is saturated.",
		       pen__sim_limit_name(by));
	printf(" An epoch moves %s from storage, %s between nodes.\n",
	       human_bytes(e->storage_bytes), human_bytes(e->net_bytes));
	if (w->m.cache && w->r.hit < 1)
		printf("  The cache holds %.1f %% of the data.\n",
		       100 * w->r.hit);
	else if (w->m.cache)
		printf("  The cache takes %s of memory on each node.\n",
		       human_bytes(w->m.sample_bytes * (double)w->m.batch *
				   (double)w->m.steps * (double)w->m.ranks *
				   (w->m.cache == PEN_SIM_LOCAL
					    ? (double)w->m.nodes
					    : 1)));
}

/* The prediction for measured data. */
static void print_answer(const struct simulate *x, const struct row *w)
{
	const struct sim_measured *m = &x->ask.measured;
	const struct sim_part *mid = &m->part[m->mid];
	const double rate = w->r.first.storage_bytes / w->r.first.seconds /
			    (double)w->m.nodes;
	struct pen_text t = { 0 };

	pen__text_add(&t,
		      "An epoch over %s on %s with %s takes %s (%s to %s). ",
		      human_bytes((double)x->ask.s.samples * m->stored_bytes),
		      counted(w->m.nodes, "node"), counted(w->m.ranks, "rank"),
		      human_time(w->r.first.seconds), human_time(w->low),
		      human_time(w->high));
	if (rate > 1.1 * mid->read_rate && !m->given)
		pen__text_add(&t,
			      "This needs %s/s per node, but only %s/s were "
			      "measured; the rest is extrapolated. ",
			      human_bytes(rate), human_bytes(mid->read_rate));
	if (w->m.nodes > 1 && !m->given)
		pen__text_add(&t, "The bandwidth of storage for all nodes is "
				  "assumed; set storage= if it is known. ");
	pen__text_add(&t, "On this machine: %s", m->why);
	fputs("\n  ", stdout);
	print_wrapped(stdout, t.p ? t.p : "", 2, 2);
	pen__text_fini(&t);
}

static int print_text(struct simulate *x)
{
	const struct row *last = NULL;

	printf("%s, simulated\n\n", x->ask.path	      ? shown(x->ask.path)
				    : x->set.workload ? x->set.workload
						      : "job");
	if (x->ask.measured.n)
		print_measured(&x->ask);
	print_model(&x->ask);
	printf("  %6s %7s %7s %11s %7s ", "nodes", "ranks", "steps",
	       "first epoch", "busy");
	if (x->ask.m.epochs > 1)
		printf("%11s %7s ", "later ones", "busy");
	printf(" limited by\n");
	for (unsigned i = 0; i < x->nrows; i++) {
		print_row(x, &x->row[i]);
		if (x->row[i].fits)
			last = &x->row[i];
	}
	if (last && (!x->ask.measured.n || last->m.compute > 0)) {
		puts("");
		print_words(last);
	}
	if (last && x->ask.measured.n)
		print_answer(x, last);
	if (x->ask.notes.n)
		printf("\n%s", x->ask.notes.p);
	return EXIT_OK;
}

/* --- JSON output --- */

static void json_epoch(struct pen_text *j, const char *key,
		       const struct pen_sim_epoch *e)
{
	static const char *const parts[PEN_SIM_NPARTS] = {
		[PEN_SIM_STORAGE] = "storage", [PEN_SIM_CLIENT] = "client",
		[PEN_SIM_IN] = "network_in",   [PEN_SIM_OUT] = "network_out",
		[PEN_SIM_MEMORY] = "memory",   [PEN_SIM_CPU] = "cpu",
		[PEN_SIM_SERVE] = "serve",     [PEN_SIM_THREADS] = "threads",
	};

	pen__json_open(j, key, '{');
	pen__json_num(j, "seconds", e->seconds);
	pen__json_num(j, "utilisation", e->utilisation);
	pen__json_num(j, "wait_data", e->data);
	pen__json_num(j, "wait_slowest", e->waiting);
	pen__json_num(j, "wait_sync", e->sync);
	pen__json_str(j, "limit", pen__sim_limit_name(pen__sim_limit(e)));
	pen__json_int(j, "samples", e->samples);
	pen__json_num(j, "storage_bytes", e->storage_bytes);
	pen__json_num(j, "network_bytes", e->net_bytes);
	pen__json_num(j, "memory_bytes", e->memory_bytes);
	pen__json_open(j, "busy", '{');
	for (unsigned p = 0; p < PEN_SIM_NPARTS; p++)
		pen__json_num(j, parts[p], e->busy[p]);
	pen__json_close(j, '}');
	pen__json_close(j, '}');
}

static void json_model(struct pen_text *j, const struct sim_ask *a)
{
	const struct pen_sim *m = &a->m;
	const struct {
		const char *name;
		double x;
	} v[] = {
		{ "ranks", (double)m->ranks },
		{ "cores", m->cores },
		{ "samples", (double)a->s.samples },
		{ "sample_bytes", m->sample_bytes },
		{ "batch", (double)m->batch },
		{ "compute", m->compute },
		{ "compute_stdev", m->compute_stdev },
		{ "epochs", (double)m->epochs },
		{ "skip", (double)m->skip },
		{ "threads", (double)m->threads },
		{ "ahead", (double)m->ahead },
		{ "depth", (double)m->depth },
		{ "at_once", (double)m->at_once },
		{ "spread", m->spread },
		{ "reads", m->reads },
		{ "cpu_load", m->cpu_load },
		{ "cpu_hit", m->cpu_hit },
		{ "cpu_put", m->cpu_put },
		{ "cpu_ask", m->cpu_ask },
		{ "cpu_serve", m->cpu_serve },
		{ "storage", m->storage_rate },
		{ "client", m->client_rate },
		{ "network", m->net_rate },
		{ "copy", m->copy_rate },
		{ "cache", (double)m->cache },
		{ "memory", m->cache_bytes },
		{ "fan", (double)m->fan },
		{ "seed", (double)m->seed },
	};

	pen__json_open(j, "settings", '{');
	for (size_t i = 0; i < sizeof(v) / sizeof(*v); i++) {
		pen__json_open(j, v[i].name, '{');
		pen__json_num(j, "value", v[i].x);
		pen__json_str(j, "from", sim_from(a, v[i].name));
		pen__json_close(j, '}');
	}
	pen__json_close(j, '}');
	pen__json_num(j, "storage_latency", m->storage_latency);
	pen__json_num(j, "network_latency", m->net_latency);
	pen__json_bool(j, "barrier", m->barrier);
}

static void json_measured(struct pen_text *j, const struct sim_ask *a)
{
	const struct sim_measured *m = &a->measured;

	pen__json_open(j, "measured", '{');
	pen__json_str(j, "path", a->path);
	pen__json_num(j, "seconds", m->seconds);
	pen__json_num(j, "samples", m->samples);
	pen__json_num(j, "read_bytes", m->read_bytes);
	pen__json_num(j, "stored_sample_bytes", m->stored_bytes);
	if (isfinite(m->cached))
		pen__json_num(j, "cached_share", m->cached);
	pen__json_bool(j, "storage", !m->given);
	pen__json_str(j, "limit", m->by_rate ? "bandwidth" : "latency");
	pen__json_open(j, "parts", '[');
	for (unsigned i = 0; i < m->n; i++) {
		pen__json_open(j, NULL, '{');
		pen__json_num(j, "samples_per_s", m->part[i].samples_per_s);
		pen__json_num(j, "read_bytes_per_s", m->part[i].read_rate);
		pen__json_num(j, "cpu_s_per_sample", m->part[i].cpu_load);
		pen__json_num(j, "read_s", m->part[i].latency);
		pen__json_close(j, '}');
	}
	pen__json_close(j, ']');
	pen__json_close(j, '}');
}

static int print_json(struct simulate *x)
{
	struct pen_text j = { 0 };

	pen__json_open(&j, NULL, '{');
	pen__json_str(&j, "schema", "penstock.simulate/1");
	pen__json_str(&j, "workload", x->set.workload ? x->set.workload : "");
	if (x->ask.measured.n)
		json_measured(&j, &x->ask);
	json_model(&j, &x->ask);
	pen__json_open(&j, "rows", '[');
	for (unsigned i = 0; i < x->nrows; i++) {
		const struct row *w = &x->row[i];

		pen__json_open(&j, NULL, '{');
		pen__json_int(&j, "nodes", w->m.nodes);
		pen__json_int(&j, "accelerators", w->m.nodes * w->m.ranks);
		pen__json_int(&j, "steps", w->steps);
		pen__json_num(&j, "sync", w->m.sync);
		if (w->fits) {
			pen__json_num(&j, "seconds", w->r.seconds);
			pen__json_num(&j, "first_batch", w->r.first_batch);
			pen__json_int(&j, "batches", w->r.batches);
			pen__json_int(&j, "events", w->r.events);
			pen__json_num(&j, "cached", w->r.hit);
			json_epoch(&j, "first", &w->r.first);
			if (x->ask.measured.n) {
				pen__json_num(&j, "first_low_s", w->low);
				pen__json_num(&j, "first_high_s", w->high);
			}
			if (w->m.epochs > 1)
				json_epoch(&j, "later", &w->r.later);
		}
		pen__json_close(&j, '}');
	}
	pen__json_close(&j, ']');
	pen__json_close(&j, '}');
	return text_out(&j, NULL);
}

/* --- running --- */

/* Long epochs of measured data are steady, so this many batches suffice. */
#define MOST_BATCHES 200000

static int run_model(struct simulate *x, struct row *w)
{
	struct pen_err err = { 0 };

	progress_start(&x->p, "batches",
		       w->m.nodes * w->m.ranks * w->m.steps * w->m.epochs);
	x->p.tty = x->p.tty && !x->quiet;
	w->m.tick = tick;
	w->m.arg = &x->p;
	if (pen__simulate(&w->m, &w->r, &err)) {
		progress_end(&x->p);
		return interrupted() ? 128 + interrupted() : complain(&err);
	}
	progress_end(&x->p);
	extrapolate(w);
	return -1;
}

/* Simulates every measured part; the median is the answer. */
static int run_parts(struct simulate *x, struct row *w)
{
	const uint64_t world = w->m.nodes * w->m.ranks;
	const struct sim_measured *m = &x->ask.measured;
	const uint64_t most = 100 + MOST_BATCHES / world;
	int rc = -1;

	w->m.steps = w->steps < most ? w->steps : most;
	w->low = INFINITY;
	for (unsigned i = 0; i < m->n && rc < 0; i++) {
		struct row part = *w;

		sim_use_part(&x->ask, i, &part.m);
		rc = run_model(x, &part);
		if (i == m->mid) {
			part.low = w->low;
			part.high = w->high;
			*w = part;
		}
		w->low = fmin(w->low, part.r.first.seconds);
		w->high = fmax(w->high, part.r.first.seconds);
	}
	return rc;
}

static int run_rows(struct simulate *x)
{
	const struct pen_opt_list *nodes = &x->ask.s.nodes;
	bool any = false;
	int rc = -1;

	if (nodes->n > sizeof(x->row) / sizeof(*x->row))
		return complain_usage(P_TOO_LONG, "simulate",
				      "nodes= has %zu entries; at most 64 are "
				      "allowed",
				      nodes->n);
	for (size_t i = 0; i < nodes->n && rc < 0; i++) {
		struct row *w = &x->row[x->nrows++];

		w->fits = sim_of(&x->ask, (uint64_t)nodes->v[i], &w->m);
		w->steps = w->m.steps;
		any |= w->fits;
		if (w->fits)
			rc = x->ask.measured.n ? run_parts(x, w)
					       : run_model(x, w);
	}
	if (rc >= 0)
		return rc;
	if (!any)
		return complain_usage(
			P_TOO_FEW_SAMPLES, "simulate",
			"the data (%s) is less than one step of all ranks; set "
			"steps=N to let it grow with the cluster",
			counted(x->ask.s.samples, "sample"));
	return -1;
}

static int take_arg(struct simulate *x, const struct args *a, int kind)
{
	struct sim_ask *k = &x->ask;

	if (kind == ARG_BAD)
		return EXIT_USAGE;
	if (kind == ARG_PATH && k->path && !strcmp(a->value, k->path)) {
		return -1;
	} else if (kind == ARG_FLAG && !strcmp(a->key, "--json")) {
		x->json = true;
	} else if (kind == ARG_FLAG && !strcmp(a->key, "--quiet")) {
		x->quiet = k->quiet = true;
	} else if (kind == ARG_FLAG && !strcmp(a->key, "--from")) {
		if (k->nfiles == SIM_MOST_FILES)
			return complain_usage(P_TOO_LONG, "simulate",
					      "too many --from files");
		k->file[k->nfiles++] = a->value;
	} else if (kind == ARG_SETTING &&
		   pen__opt_find(pen__sim_opts, a->key)) {
		if (k->nargs == SIM_MOST_ARGS)
			return complain_usage(P_TOO_LONG, "simulate",
					      "too many settings");
		k->arg[k->nargs++] = a->argv[a->at - 1];
	} else if (kind == ARG_SETTING && k->path) {
		if (k->nload == SIM_MOST_ARGS)
			return complain_usage(P_TOO_LONG, "simulate",
					      "too many settings");
		k->load_arg[k->nload++] = a->argv[a->at - 1];
	} else if (kind == ARG_PATH && k->path) {
		return complain_usage(P_BAD_VALUE, "simulate",
				      "takes one PATH or WORKLOAD, found also "
				      "'%s'",
				      a->value);
	} else {
		return settings_arg(&x->set, &k->workload, a, kind);
	}
	return -1;
}

/* Which settings there are depends on whether data is measured. */
static int find_path(struct sim_ask *k, struct args a)
{
	int kind;

	while ((kind = args_next(&a)) != ARG_END) {
		if (kind == ARG_BAD)
			return EXIT_USAGE;
		if (kind == ARG_PATH && !k->path && sim_is_data(a.value))
			k->path = a.value;
	}
	return -1;
}

static int run_simulate(int argc, char **argv)
{
	struct args a = { .cmd = &pen__cmd_simulate,
			  .argc = argc,
			  .argv = argv };
	struct simulate x = { 0 };
	int kind, rc;

	pen__settings_init(&x.set);
	rc = find_path(&x.ask, a);
	while (rc < 0 && (kind = args_next(&a)) != ARG_END)
		rc = take_arg(&x, &a, kind);
	if (rc < 0)
		rc = sim_resolve(&x.ask, &x.set);
	if (rc < 0)
		rc = run_rows(&x);
	if (rc < 0)
		rc = x.json ? print_json(&x) : print_text(&x);
	sim_ask_fini(&x.ask);
	pen__settings_fini(&x.set);
	return rc;
}

static const char *const examples[] = {
	"penstock simulate data/ data=10TB shuffle=true batch_size=64",
	"how long does an epoch over 10 TB of such data take? measures for a "
	"minute",
	"penstock simulate data/ data=10TB nodes=1,8 ranks=4 "
	"storage=20GB/s,1ms",
	"the same on nodes with 4 ranks each that share storage of known "
	"bandwidth",
	"penstock simulate unet3d_h100 steps=100 nodes=1,64,4096",
	"assumes everything unknown, and marks it as assumed",
	"penstock load data/ batch_size=7 -o load.json",
	"measures what loading costs on this machine; then",
	"penstock simulate unet3d_h100 steps=100 --from load.json cache=ddict",
	"later epochs read from the memory of all nodes",
	"penstock simulate samples=1M sample_bytes=1MB batch=32 compute=50ms",
	"a job without a workload file",
	NULL,
};

const struct command pen__cmd_simulate = {
	.name = "simulate",
	.args = "[PATH|WORKLOAD|FILE] [key=value ...] [flags]",
	.summary = "predict epoch time and bottleneck on a cluster",
	.about = "Predicts how long an epoch takes on a cluster, how busy its "
		 "accelerators are and what limits them, with a model of "
		 "ranks, loaders, storage and network, batch by batch. With a "
		 "PATH, `load` first measures the data on this machine, in "
		 "three cold runs of about seconds= in total, whose spread "
		 "gives the range of the prediction; nodes= and ranks= are "
		 "then 1 by default, and loader settings go to `load`. Data "
		 "that comes from the page cache is refused unless storage= is "
		 "set. With a WORKLOAD, --from adds measurements of `load` and "
		 "`ddict bench`; workload settings are set by name "
		 "(reader.read_threads=8). Everything else is assumed, and "
		 "marked as such in the output. docs/scale.md lists what the "
		 "model omits.",
	.flags = flags,
	.opts = pen__sim_opts,
	.examples = examples,
	.run = run_simulate,
};
