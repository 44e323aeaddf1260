/*
 * bench neighbour: loading beside a training step that wants the CPU. Both
 * alone, and both together with another number of loader threads: who takes
 * how much from whom.
 */
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/team.h"
#include "cli/arms.h"
#include "engine/spec.h"

#define MOST 16

enum { WORK, LOADER, BOTH };

struct neighbour {
	struct arms a;
	uint64_t threads[MOST], busy, work_ms;
	size_t n;
};

static const struct flag flags[] = {
	{ "--threads", "LIST",
	  "of the loader (default 1, 2, 4 ... up to twice the CPUs)" },
	{ "--busy", "N", "threads that compute (default: one a CPU)" },
	{ "--alone", "MS",
	  "milliseconds the work is measured alone (default 1000)" },
	ARMS_FLAGS,
	{ NULL, NULL, NULL },
};

static int work_alone(const struct neighbour *g, struct pen_text *j,
		      struct pen_err *err)
{
	const struct timespec t = { (time_t)(g->work_ms / 1000),
				    (long)(g->work_ms % 1000) * 1000000 };
	struct pen_busy w;
	int rc = pen__busy_start(&w, (unsigned)g->busy, err);

	if (rc)
		return rc;
	nanosleep(&t, NULL);
	pen__json_num(j, "work_per_s", pen__busy_stop(&w));
	return 0;
}

static int run_arm(struct bench *b, const struct trial *t, struct pen_text *j,
		   struct pen_err *err)
{
	const struct arm *m = t->arg;
	const struct neighbour *g =
		(const struct neighbour *)(const void *)m->of;
	char value[24];
	const struct setting set = { "threads", value };
	struct pen_busy w;
	int rc;

	pen__json_int(j, "busy_threads", m->kind == LOADER ? 0 : g->busy);
	pen__json_int(j, "loader_threads", m->value);
	if (m->kind == WORK)
		return work_alone(g, j, err);
	snprintf(value, sizeof(value), "%llu", (unsigned long long)m->value);
	rc = pen__busy_start(&w, m->kind == BOTH ? (unsigned)g->busy : 0, err);
	if (rc)
		return rc;
	rc = arms_pass_with(b, t, &set, 1, j, err);
	if (m->kind == BOTH)
		pen__json_num(j, "work_per_s", pen__busy_stop(&w));
	return rc;
}

static int prepare(struct arms *a)
{
	const struct neighbour *g = (const struct neighbour *)(const void *)a;
	struct arm *m = arms_add(a, "work alone", "", 0);

	if (!m)
		return EXIT_FAILED;
	m->kind = WORK;
	m->as_it_is = true;
	m->check[0] = '\0';
	for (size_t i = 0; i < g->n; i++)
		for (int k = LOADER; k <= BOTH; k++) {
			char group[48], name[48] = "loader alone";

			snprintf(group, sizeof(group), "%s",
				 counted(g->threads[i], "thread"));
			if (k == BOTH)
				snprintf(name, sizeof(name), "beside %s busy",
					 grouped(g->busy));
			m = arms_add(a, name, group, g->threads[i]);
			if (!m)
				return EXIT_FAILED;
			m->kind = k;
		}
	return arms_open(a);
}

static int take_number(const struct args *arg, uint64_t most, uint64_t *to)
{
	if (pen__parse_count(arg->value, to) || !*to || *to > most)
		return complain_usage("bench neighbour: %s: '%s' does not do",
				      arg->key, arg->value);
	return -1;
}

static int take_arg(struct arms *a, struct args *arg, int kind)
{
	struct neighbour *g = (struct neighbour *)(void *)a;

	if (kind == ARG_FLAG && !strcmp(arg->key, "--threads")) {
		bool ok = arms_list(arg->value, g->threads, &g->n, MOST);

		for (size_t i = 0; ok && i < g->n; i++)
			ok = g->threads[i] && g->threads[i] <= 1024;
		return ok ? -1
			  : complain_usage("bench neighbour: --threads: '%s' "
					   "is not a list as 1,2,4",
					   arg->value);
	}
	if (kind == ARG_FLAG && !strcmp(arg->key, "--busy"))
		return take_number(arg, 1024, &g->busy);
	if (kind == ARG_FLAG && !strcmp(arg->key, "--alone"))
		return take_number(arg, 3600000, &g->work_ms);
	if (kind == ARG_SETTING && !strcmp(arg->key, "threads"))
		return complain_usage("bench neighbour: threads= is what the "
				      "experiment sets; see --threads");
	return arms_arg(a, arg, kind);
}

static int run_neighbour(int argc, char **argv)
{
	/* epochs enough for a scheduler to have its say */
	struct neighbour g = { .a = { .cmd = &pen__bench_neighbour,
				      .kind = &pen__kind_neighbour,
				      .preset = { "epochs", "10" },
				      .any_order = true,
				      .take = take_arg,
				      .prepare = prepare,
				      .run = run_arm },
			       .busy = pen__cpus(),
			       .work_ms = 1000 };

	for (uint64_t t = 1; t <= 2 * g.busy && g.n < MOST; t *= 2)
		g.threads[g.n++] = t;
	return arms_main(&g.a, argc, argv);
}

static const char *const examples[] = {
	"penstock bench neighbour data/ sampler=shuffle",
	"loader threads 1, 2, 4 ... beside one busy thread a CPU",
	"penstock bench neighbour pictures/ --threads 1,2 --busy 2 epochs=1",
	"two busy threads",
	"penstock bench neighbour --samples 50k",
	"on data made for it",
	NULL,
};

const struct command pen__bench_neighbour = {
	.name = "bench neighbour",
	.args = "[PATH] [key=value ...] [flags]",
	.summary = "loading beside work that wants the CPU: who starves whom",
	.about = "Busy threads compute in the first cache and count what they "
		 "get done; the loader runs its epochs (10, or epochs=). Each "
		 "is measured alone and both together, for several numbers "
		 "of loader threads. A run that lasts less than a second says "
		 "little: give more epochs.",
	.flags = flags,
	.takes_spec = true,
	.examples = examples,
	.run = run_neighbour,
};
