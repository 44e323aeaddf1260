/*
 * simulate: what a cluster would make of a workload, from what was measured
 * here. Everything that went into the answer is printed with it.
 */
#include <math.h>
#include <string.h>

#include "cli/cmd_simulate.h"
#include "emulate/config.h"

struct row {
	struct pen_sim m;
	struct pen_sim_result r;
	bool fits; /* the data has a full step */
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
	  "what `load -o FILE` or `ddict bench --json` measured; often" },
	{ "--lenient", NULL, "unknown keys are notes, not errors" },
	{ "--config-dir", "DIR", "look for DIR/workload/NAME.yaml first" },
	{ "--json", NULL, "print the result as JSON" },
	{ "--quiet", NULL, "no progress line" },
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

/* --- for people --- */

static void print_rate(const char *name, double rate, double latency,
		       const char *from)
{
	if (rate > 0 && latency > 0)
		printf("  %-14s %s/s, latency %s (%s)\n", name,
		       human_bytes(rate), human_time(latency), from);
	else if (rate > 0)
		printf("  %-14s %s/s (%s)\n", name, human_bytes(rate), from);
	else
		printf("  %-14s no limit (%s)\n", name, from);
}

static void print_cpu(const struct sim_ask *a, const char *name, double seconds,
		      const char *what)
{
	printf("  %-14s %s of CPU a sample, %s (%s)\n", name,
	       human_time(seconds), what, sim_from(a, name));
}

static void print_model(const struct sim_ask *a)
{
	const struct pen_sim *m = &a->m;
	const struct sim_settings *s = &a->s;

	printf("  %-14s %s (%s), batches of %s (%s)\n", "samples",
	       human_bytes(m->sample_bytes), sim_from(a, "sample_bytes"),
	       grouped(m->batch), sim_from(a, "batch"));
	if (s->steps)
		printf("  %-14s %s an epoch: the data grows with the cluster "
		       "(%s)\n",
		       "steps", grouped(s->steps), sim_from(a, "steps"));
	else
		printf("  %-14s %s, %s (%s)\n", "data",
		       counted(s->samples, "sample"),
		       human_bytes((double)s->samples * m->sample_bytes),
		       sim_from(a, "samples"));
	printf("  %-14s %s +- %s a step (%s), %s\n", "compute",
	       human_time(m->compute), human_time(m->compute_stdev),
	       sim_from(a, "compute"),
	       m->barrier ? "steps end together" : "ranks do not wait");
	printf("  %-14s %s (%s), %g core%s for loading (%s)\n", "node",
	       counted(m->ranks, "rank"), sim_from(a, "ranks"), m->cores,
	       m->cores == 1 ? "" : "s",
	       s->cores > 0 ? sim_from(a, "cores") : "assumed: one a thread");
	if (m->copy_rate > 0)
		print_rate("  memory", m->copy_rate, 0, sim_from(a, "copy"));
	printf("  %-14s %s (%s), %s ahead (%s)\n", "loader",
	       counted(m->threads, "thread"), sim_from(a, "threads"),
	       counted(m->ahead, "batch"), sim_from(a, "ahead"));
	print_rate("storage", m->storage_rate, m->storage_latency,
		   sim_from(a, "storage"));
	if (m->by_net)
		printf("  %-14s through its network card (assumed)\n",
		       "  of a node");
	else
		print_rate("  of a node", m->client_rate, 0,
			   sim_from(a, "client"));
	printf("  %-14s %.3g of a sample (%s), %s in flight a thread (%s)\n",
	       "reads", m->reads, sim_from(a, "reads"), grouped(m->depth),
	       sim_from(a, "depth"));
	print_rate("network", m->net_rate, m->net_latency,
		   sim_from(a, "network"));
	print_cpu(a, "cpu_load", m->cpu_load, "from storage");
	if (m->cache == PEN_SIM_DDICT) {
		print_cpu(a, "cpu_put", m->cpu_put, "into the dictionary");
		print_cpu(a, "cpu_hit", m->cpu_hit, "out of it, on a node");
		print_cpu(a, "cpu_ask", m->cpu_ask, "from another node");
		print_cpu(a, "cpu_serve", m->cpu_serve, "answered to one");
	}
	printf("  %-14s p99 is %.3g x p50 of a batch (%s)\n", "spread",
	       m->spread, sim_from(a, "spread"));
	printf("  %-14s %s (%s)", "cache",
	       m->cache == PEN_SIM_NONE	   ? "none"
	       : m->cache == PEN_SIM_DDICT ? "the memory of all nodes"
					   : "each node's own memory",
	       sim_from(a, "cache"));
	if (m->cache && s->memory)
		printf(", %s a node", human_bytes((double)s->memory));
	else if (m->cache)
		printf(", of any size");
	printf("\n\n");
}

static void print_row(const struct simulate *x, const struct row *w)
{
	const struct pen_sim *m = &w->m;

	printf("  %6s %9s ", grouped(m->nodes), grouped(m->nodes * m->ranks));
	if (!w->fits) {
		printf("fewer than one full step: %s; steps=N lets the data "
		       "grow\n",
		       counted(x->ask.s.samples, "sample"));
		return;
	}
	printf("%7s %11s %6.1f %% ", grouped(m->steps),
	       human_time(w->r.first.seconds), 100 * w->r.first.utilisation);
	if (m->epochs > 1)
		printf("%11s %6.1f %% ", human_time(w->r.later.seconds),
		       100 * w->r.later.utilisation);
	printf("  %s\n", pen__sim_limit_name(pen__sim_limit(usual(w))));
}

static void print_words(const struct row *w)
{
	const struct pen_sim_epoch *e = usual(w);
	const enum pen_sim_limit by = pen__sim_limit(e);
	const double lost = 100 * (1 - e->utilisation);

	printf("  %s: accelerators compute %.1f %% of %s epoch",
	       counted(w->m.nodes, "node"), 100 * e->utilisation,
	       w->m.epochs > 1 ? "a later" : "the");
	if (lost >= 0.05)
		printf(";\n  they wait %.1f %% of it for batches, %.1f %% for "
		       "the slowest rank, %.1f %% for the\n  end of a step",
		       100 * e->data, 100 * e->waiting, 100 * e->sync);
	printf(".\n  ");
	if (by < PEN_SIM_BY_COMPUTE)
		printf("The limit is: %s, %.0f %% busy.\n ",
		       pen__sim_limit_name(by), 100 * e->busy[by]);
	else if (by == PEN_SIM_BY_COMPUTE)
		printf("They are fed.");
	else
		printf("The limit is: %s; nothing is full.",
		       pen__sim_limit_name(by));
	printf(" An epoch moves %s from storage, %s between nodes.\n",
	       human_bytes(e->storage_bytes), human_bytes(e->net_bytes));
	if (w->m.cache && w->r.hit < 1)
		printf("  The cache holds %.1f %% of the data.\n",
		       100 * w->r.hit);
	else if (w->m.cache)
		printf("  The cache takes %s of each node.\n",
		       human_bytes(w->m.sample_bytes * (double)w->m.batch *
				   (double)w->m.steps * (double)w->m.ranks *
				   (w->m.cache == PEN_SIM_LOCAL
					    ? (double)w->m.nodes
					    : 1)));
}

static int print_text(struct simulate *x)
{
	const struct row *last = NULL;

	printf("%s, simulated\n\n",
	       x->set.workload ? x->set.workload : "a job");
	print_model(&x->ask);
	printf("  %6s %9s %7s %11s %8s ", "nodes", "ranks", "steps",
	       "first epoch", "busy");
	if (x->ask.m.epochs > 1)
		printf("%11s %8s ", "later ones", "busy");
	printf("  limited by\n");
	for (unsigned i = 0; i < x->nrows; i++) {
		print_row(x, &x->row[i]);
		if (x->row[i].fits)
			last = &x->row[i];
	}
	if (last) {
		puts("");
		print_words(last);
	}
	if (x->ask.notes.n)
		printf("\n%s", x->ask.notes.p);
	return EXIT_OK;
}

/* --- for programs --- */

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

static int print_json(struct simulate *x)
{
	struct pen_text j = { 0 };

	pen__json_open(&j, NULL, '{');
	pen__json_str(&j, "schema", "penstock.simulate/1");
	pen__json_str(&j, "workload", x->set.workload ? x->set.workload : "");
	json_model(&j, &x->ask);
	pen__json_open(&j, "rows", '[');
	for (unsigned i = 0; i < x->nrows; i++) {
		const struct row *w = &x->row[i];

		pen__json_open(&j, NULL, '{');
		pen__json_int(&j, "nodes", w->m.nodes);
		pen__json_int(&j, "accelerators", w->m.nodes * w->m.ranks);
		pen__json_int(&j, "steps", w->m.steps);
		pen__json_num(&j, "sync", w->m.sync);
		if (w->fits) {
			pen__json_num(&j, "seconds", w->r.seconds);
			pen__json_num(&j, "first_batch", w->r.first_batch);
			pen__json_int(&j, "batches", w->r.batches);
			pen__json_int(&j, "events", w->r.events);
			pen__json_num(&j, "cached", w->r.hit);
			json_epoch(&j, "first", &w->r.first);
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

static int run_rows(struct simulate *x)
{
	const struct pen_opt_list *nodes = &x->ask.s.nodes;
	struct pen_err err = { 0 };
	bool any = false;

	if (nodes->n > sizeof(x->row) / sizeof(*x->row))
		return complain_usage("simulate: nodes= names %zu, and at most "
				      "64 go into a table",
				      nodes->n);
	for (size_t i = 0; i < nodes->n; i++) {
		struct row *w = &x->row[x->nrows++];

		w->fits = sim_of(&x->ask, (uint64_t)nodes->v[i], &w->m);
		if (!w->fits)
			continue;
		any = true;
		progress_start(&x->p, "batches",
			       w->m.nodes * w->m.ranks * w->m.steps *
				       w->m.epochs);
		x->p.tty = x->p.tty && !x->quiet;
		w->m.tick = tick;
		w->m.arg = &x->p;
		if (pen__simulate(&w->m, &w->r, &err)) {
			progress_end(&x->p);
			return interrupted() ? 128 + interrupted()
					     : complain(&err);
		}
		progress_end(&x->p);
	}
	if (!any)
		return complain_usage("simulate: the data (%s) is less than "
				      "one step of all ranks; steps=N lets it "
				      "grow with the cluster",
				      counted(x->ask.s.samples, "sample"));
	return -1;
}

static int take_arg(struct simulate *x, const struct args *a, int kind)
{
	struct sim_ask *k = &x->ask;

	if (kind == ARG_BAD)
		return EXIT_USAGE;
	if (kind == ARG_FLAG && !strcmp(a->key, "--json")) {
		x->json = true;
	} else if (kind == ARG_FLAG && !strcmp(a->key, "--quiet")) {
		x->quiet = true;
	} else if (kind == ARG_FLAG && !strcmp(a->key, "--from")) {
		if (k->nfiles == SIM_MOST_FILES)
			return complain_usage("simulate: too many --from");
		k->file[k->nfiles++] = a->value;
	} else if (kind == ARG_SETTING &&
		   pen__opt_find(pen__sim_opts, a->key)) {
		if (k->nargs == SIM_MOST_ARGS)
			return complain_usage("simulate: too many settings");
		k->arg[k->nargs++] = a->argv[a->at - 1];
	} else {
		return settings_arg(&x->set, &k->workload, a, kind);
	}
	return -1;
}

static int run_simulate(int argc, char **argv)
{
	struct args a = { .cmd = &pen__cmd_simulate,
			  .argc = argc,
			  .argv = argv };
	struct simulate x = { 0 };
	int kind, rc = -1;

	pen__settings_init(&x.set);
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
	"penstock simulate unet3d_h100 steps=100 nodes=1,64,4096",
	"with all that is not known assumed, and said to be",
	"penstock load data/ batch_size=7 -o load.json",
	"what loading costs on this machine; then",
	"penstock simulate unet3d_h100 steps=100 --from load.json cache=ddict",
	"later epochs out of the memory of all nodes",
	"penstock simulate samples=1M sample_bytes=1MB batch=32 compute=50ms",
	"a job of your own",
	NULL,
};

const struct command pen__cmd_simulate = {
	.name = "simulate",
	.args = "[WORKLOAD|FILE] [key=value ...] [flags]",
	.summary = "what a cluster would make of a workload",
	.about = "Predicts how long an epoch takes on a cluster and how busy "
		 "its accelerators are, and names what holds them up: a model "
		 "of ranks, loaders, storage and network, batch by batch. "
		 "What `load` and `ddict bench` measured comes by --from, "
		 "settings of the workload by their names "
		 "(reader.read_threads=8); all else is assumed and printed. "
		 "See docs/scale.md for what the model leaves out.",
	.flags = flags,
	.opts = pen__sim_opts,
	.examples = examples,
	.run = run_simulate,
};
