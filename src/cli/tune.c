/*
 * tune: which settings load this data fastest on this machine, in a bounded
 * time. Successive halving: all candidates run for a short time, the better
 * half for twice as long, and so on; the best few and the defaults then run
 * against one another in turns, and that is the evidence.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "cli/child.h"
#include "cli/cli.h"
#include "emulate/workload.h"
#include "report/doc.h"
#include "report/spread.h"
#include "store/store.h"

#define MOST 256
#define MOST_ARGS 128
#define MOST_SETTINGS 8
#define MOST_RUNS 32
#define FINALISTS 4
#define FINAL_RUNS 5

struct candidate {
	char set[MOST_SETTINGS][64]; /* "threads=2" */
	size_t n;
	double rate[MOST_RUNS]; /* of the last round on */
	size_t nruns;
	double median;
	bool is_default;
};

struct tune {
	const char *target;
	bool workload, cold, json, quiet;
	const char *fixed[MOST_ARGS];
	size_t nfixed;
	bool given[5]; /* keys that the user has settled */
	double budget;
	struct candidate c[MOST];
	size_t n;
	uint64_t start_ns, runs, failed;
	double epochs; /* of a run's second, for workloads */
	/* where those leave their results: "output.folder=" and a path */
	char folder[4096];
	char why[256];
};

enum { THREADS, PREFETCH, DEPTH, STORE, CHUNK };
static const char *const load_keys[] = { "threads", "prefetch", "queue_depth",
					 "store", "sampler.chunk" };
static const char *const run_keys[] = { "reader.read_threads",
					"reader.prefetch_size", NULL,
					"reader.odirect", NULL };

static const struct flag flags[] = {
	{ "--seconds", "S", "take about so long in all (default 60)" },
	{ "--cold", NULL,
	  "drop the files from the page cache before each run" },
	{ "--json", NULL, "print the result as JSON" },
	{ "--quiet", NULL, "no progress line" },
	{ NULL, NULL, NULL },
};

/* ---- candidates ---- */

static void set(struct candidate *c, const char *key, const char *value)
{
	if (c->n < MOST_SETTINGS)
		snprintf(c->set[c->n++], sizeof(c->set[0]), "%s=%s", key,
			 value);
}

static void set_number(struct candidate *c, const char *key, unsigned value)
{
	char text[32];

	snprintf(text, sizeof(text), "%u", value);
	set(c, key, text);
}

static struct candidate *next(struct tune *t)
{
	struct candidate *c = &t->c[t->n < MOST ? t->n++ : MOST - 1];

	*c = (struct candidate){ 0 };
	return c;
}

/* Threads worth trying: 1, half, all, and twice the CPUs. */
static size_t thread_counts(const struct tune *t, unsigned *v)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	unsigned all = cpus > 0 ? (unsigned)cpus : 1, n = 0;

	if (t->given[THREADS]) {
		v[0] = 0;
		return 1;
	}
	v[n++] = 1;
	if (all > 3)
		v[n++] = all / 2;
	if (all > 1)
		v[n++] = all;
	v[n++] = 2 * all;
	return n;
}

struct way {
	const char *store, *direct;
	unsigned depth; /* 0: as it is */
};
static const struct way ways[] = {
	{ "posix", NULL, 0 },	 { "mmap", NULL, 0 },	 { "uring", NULL, 8 },
	{ "uring", NULL, 64 },	 { "posix", "true", 0 }, { "uring", "true", 8 },
	{ "uring", "true", 64 },
};

static void add_load(struct tune *t, const struct way *w, unsigned threads,
		     unsigned ahead)
{
	struct candidate *c = next(t);

	if (threads)
		set_number(c, "threads", threads);
	if (ahead && !t->given[PREFETCH])
		set_number(c, "prefetch", ahead);
	if (w->store && !t->given[STORE]) {
		set(c, "store", w->store);
		if (w->direct)
			set(c, "store.direct", w->direct);
	}
	if (w->depth && !t->given[DEPTH])
		set_number(c, "queue_depth", w->depth);
}

static void candidates_load(struct tune *t)
{
	static const unsigned ahead[] = { 2, 16 };
	bool uring = pen__store_uring_works();
	unsigned threads[8];
	size_t n = thread_counts(t, threads);

	next(t)->is_default = true;
	for (size_t i = 0; i < n; i++)
		for (size_t w = 0; w < sizeof(ways) / sizeof(*ways); w++) {
			if (t->given[STORE] && w)
				continue;
			if (!uring && !strcmp(ways[w].store, "uring"))
				continue;
			for (size_t k = 0; k < 2; k++)
				if (!t->given[PREFETCH] || !k)
					add_load(t, &ways[w], threads[i],
						 ahead[k]);
		}
}

/* Chunks of a block shuffle, with blocks of the same size. */
static void candidates_chunk(struct tune *t)
{
	static const unsigned chunk[] = { 8, 32, 128, 512 };
	size_t n = t->n;

	for (size_t i = 0; i < t->nfixed; i++)
		if (!strcmp(t->fixed[i], "sampler=block") && !t->given[CHUNK])
			for (size_t k = 0; k < 4; k++) {
				struct candidate *c = next(t);

				*c = t->c[1 < n ? 1 : 0];
				c->is_default = false;
				set_number(c, "sampler.chunk", chunk[k]);
				set_number(c, "sampler.chunks",
					   16384 / chunk[k]);
			}
}

static void candidates_run(struct tune *t)
{
	static const unsigned ahead[] = { 2, 4, 8 };
	unsigned threads[8];
	size_t n = thread_counts(t, threads);

	next(t)->is_default = true;
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < 3; k++)
			for (unsigned direct = 0; direct < 2; direct++) {
				struct candidate *c;

				if ((t->given[PREFETCH] && k) ||
				    (t->given[STORE] && direct))
					continue;
				c = next(t);
				if (threads[i])
					set_number(c, run_keys[THREADS],
						   threads[i]);
				if (!t->given[PREFETCH])
					set_number(c, run_keys[PREFETCH],
						   ahead[k]);
				if (!t->given[STORE])
					set(c, run_keys[STORE],
					    direct ? "true" : "false");
			}
}

/* ---- a run ---- */

static double rate_of(const struct tune *t, const struct pen_text *printed)
{
	struct pen_doc d = { .name = t->target };
	double rate;

	if (pen__jdoc_open(&d.j, printed->p ? printed->p : "", printed->n,
			   t->target, NULL))
		return NAN;
	/* of a job: all samples over all the time, because what was prepared
	 * before an epoch began counts for nothing there */
	rate = t->workload ? pen__doc_number(&d, 0, "totals.samples") /
				     pen__doc_number(&d, 0, "totals.train_s")
			   : pen__doc_number(&d, 0, "samples_per_s");
	pen__jdoc_close(&d.j);
	return rate;
}

static size_t arguments(const struct tune *t, const struct candidate *c,
			double seconds, const char **argv, char (*room)[64])
{
	size_t n = 0;

	argv[n++] = "";
	argv[n++] = t->workload ? "run" : "load";
	argv[n++] = t->target;
	for (size_t i = 0; i < t->nfixed; i++)
		argv[n++] = t->fixed[i];
	for (size_t i = 0; i < c->n; i++)
		argv[n++] = c->set[i];
	argv[n++] = "--json";
	argv[n++] = "--quiet";
	if (t->workload) {
		/* as fast as it will go, and nothing but loading */
		snprintf(room[0], sizeof(room[0]), "train.epochs=%.0f",
			 fmax(1, t->epochs * seconds));
		argv[n++] = room[0];
		argv[n++] = "train.computation_time=0";
		argv[n++] = "workflow.checkpoint=false";
		argv[n++] = "workflow.evaluation=false";
		argv[n++] = t->folder;
		if (t->cold)
			argv[n++] = "reader.page_cache=drop";
		return n;
	}
	snprintf(room[0], sizeof(room[0]), "%.3f", seconds);
	argv[n++] = "epochs=0";
	argv[n++] = "--seconds";
	argv[n++] = room[0];
	if (t->cold)
		argv[n++] = "--drop-cache";
	return n;
}

static double run_one(struct tune *t, const struct candidate *c, double seconds)
{
	const char *argv[MOST_ARGS + MOST_SETTINGS + 16] = { 0 };
	struct pen_text printed = { 0 };
	struct pen_err err = { 0 };
	struct child done;
	char room[1][64];
	double rate;

	arguments(t, c, seconds, argv, room);
	t->runs++;
	if (child_run(argv, &printed, &done, &err)) {
		/* some ways do not work everywhere: O_DIRECT on tmpfs */
		t->failed++;
		snprintf(t->why, sizeof(t->why), "%.250s", err.msg);
		rate = NAN;
	} else {
		rate = rate_of(t, &printed);
	}
	pen__text_fini(&printed);
	return rate;
}

static void name_of(const struct candidate *c, char *buf, size_t cap)
{
	size_t at = 0;

	snprintf(buf, cap, "%s", c->n ? "" : "defaults");
	for (size_t i = 0; i < c->n && at < cap; i++)
		at += (size_t)snprintf(buf + at, cap - at, "%s%s", i ? " " : "",
				       c->set[i]);
}

static void show_progress(const struct tune *t, const struct candidate *c)
{
	double spent = (double)(pen__now_ns() - t->start_ns) / 1e9;
	char name[256];

	if (t->quiet || t->json || !isatty(STDERR_FILENO))
		return;
	name_of(c, name, sizeof(name));
	fprintf(stderr, "\r\033[K%.0f of %.0f s: %.60s", spent, t->budget,
		name);
	fflush(stderr);
}

static int by_median(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (isnan(x->median) || isnan(y->median))
		return isnan(x->median) - isnan(y->median);
	return (x->median < y->median) - (x->median > y->median);
}

static void add_run(struct tune *t, struct candidate *c, double seconds)
{
	double sorted[MOST_RUNS];

	show_progress(t, c);
	if (c->nruns < MOST_RUNS)
		c->rate[c->nruns++] = run_one(t, c, seconds);
	memcpy(sorted, c->rate, c->nruns * sizeof(*sorted));
	c->median = pen__median(sorted, c->nruns);
	/* what failed once is no candidate, whatever the rest says */
	for (size_t i = 0; i < c->nruns; i++)
		if (isnan(c->rate[i]))
			c->median = NAN;
}

/* One round: everybody left runs once, in a random order. */
static void round_of(struct tune *t, size_t n, double seconds, unsigned number)
{
	struct pen_perm order;

	pen__perm_init(&order, n, 7, number);
	for (size_t i = 0; i < n && !interrupted(); i++) {
		struct candidate *c = &t->c[pen__perm_at(&order, i)];

		/* a longer run says more than the shorter ones before it */
		c->nruns = 0;
		add_run(t, c, seconds);
	}
	qsort(t->c, n, sizeof(*t->c), by_median);
}

/* Half of the time is for the rounds, which take equally long. */
static size_t halve(struct tune *t)
{
	size_t n = t->n, rounds = 1;

	for (size_t k = n; k > FINALISTS; k = (k + 1) / 2)
		rounds++;
	for (unsigned r = 0; r + 1 < rounds && !interrupted(); r++) {
		round_of(t, n, t->budget * 0.55 / (double)(rounds * n), r);
		n = (n + 1) / 2;
		while (n > 1 && isnan(t->c[n - 1].median))
			n--;
	}
	return n < FINALISTS ? n : FINALISTS;
}

/* The best against one another and the defaults, in turns. */
static size_t finals(struct tune *t, size_t n)
{
	double seconds;

	for (size_t i = n; i < t->n; i++)
		if (t->c[i].is_default) {
			struct candidate keep = t->c[i];

			t->c[i] = t->c[n];
			t->c[n++] = keep;
			break;
		}
	seconds = t->budget * 0.45 / (double)(n * FINAL_RUNS);
	for (size_t i = 0; i < n; i++)
		t->c[i].nruns = 0;
	for (unsigned r = 0; r < FINAL_RUNS; r++)
		for (size_t i = 0; i < n && !interrupted(); i++)
			add_run(t, &t->c[(i + r) % n], seconds);
	qsort(t->c, n, sizeof(*t->c), by_median);
	return n;
}

/* For workloads: how many epochs make a second. */
static int pace(struct tune *t)
{
	struct candidate none = { 0 };
	uint64_t start;

	if (!t->workload)
		return -1;
	run_one(t, &none, 0); /* makes the data, too */
	start = pen__now_ns();
	if (!isnan(run_one(t, &none, 0)))
		t->epochs = 1e9 / (double)(pen__now_ns() - start);
	return -1;
}

/* ---- the answer ---- */

static void print_yaml(const struct tune *t, const struct candidate *c)
{
	printf("\nAs YAML:\n");
	if (!c->n)
		printf("  # the defaults are best\n");
	for (size_t i = 0; i < c->n; i++) {
		const char *eq = strchr(c->set[i], '=');
		const char *dot = strrchr(c->set[i], '.');

		if (t->workload && dot && dot < eq) {
			if (!i)
				printf("  reader:\n");
			printf("    %.*s: %s\n", (int)(eq - dot - 1), dot + 1,
			       eq + 1);
		} else {
			printf("  %.*s: %s\n", (int)(eq - c->set[i]), c->set[i],
			       eq + 1);
		}
	}
}

static bool is_word(const char *v)
{
	char *end;

	(void)strtod(v, &end);
	return *end && strcmp(v, "true") && strcmp(v, "false");
}

static void print_python(const struct tune *t, const struct candidate *c)
{
	bool dotted = false;

	if (t->workload)
		return;
	printf("In Python:\n  penstock.Loader(\"%s\"", t->target);
	for (size_t i = 0; i < c->n; i++) {
		const char *eq = strchr(c->set[i], '=');
		const char *value = !strcmp(eq + 1, "true")    ? "True"
				    : !strcmp(eq + 1, "false") ? "False"
							       : eq + 1;
		const char *quote = is_word(eq + 1) ? "\"" : "";

		if (memchr(c->set[i], '.', (size_t)(eq - c->set[i]))) {
			printf(", %s\"%.*s\": %s%s%s", dotted ? "" : "**{",
			       (int)(eq - c->set[i]), c->set[i], quote, value,
			       quote);
			dotted = true;
		} else {
			printf(", %.*s=%s%s%s", (int)(eq - c->set[i]),
			       c->set[i], quote, value, quote);
		}
	}
	printf("%s)\n", dotted ? "}" : "");
}

/* Whether the finals say so, and not by a little. */
static bool is_better(const struct candidate *c, const struct candidate *dflt)
{
	double from[MOST_RUNS], to[MOST_RUNS];
	struct pen_change by;

	memcpy(from, dflt->rate, dflt->nruns * sizeof(*from));
	memcpy(to, c->rate, c->nruns * sizeof(*to));
	by = pen__change(from, dflt->nruns, to, c->nruns, 0.03);
	return by.differs && by.share > 0;
}

static void print_text(const struct tune *t, size_t n)
{
	const struct candidate *dflt = NULL, *best = &t->c[0];
	char name[256];

	for (size_t i = 0; i < n; i++)
		if (t->c[i].is_default)
			dflt = &t->c[i];
	printf("%s: %zu settings tried in %s runs, %s\n", t->target, t->n,
	       grouped(t->runs),
	       human_time((double)(pen__now_ns() - t->start_ns) / 1e9));
	if (t->failed)
		printf("  (%s failed: %s)\n", counted(t->failed, "run"),
		       t->why);
	printf("\n  %12s %21s  %s\n", "samples/s", "lowest .. highest",
	       "settings");
	for (size_t i = 0; i < n; i++) {
		const struct candidate *c = &t->c[i];
		double sorted[MOST_RUNS];

		if (isnan(c->median))
			continue;
		memcpy(sorted, c->rate, c->nruns * sizeof(*sorted));
		pen__median(sorted, c->nruns);
		name_of(c, name, sizeof(name));
		printf("  %12s %9s .. %9s  %s\n", human_count(c->median),
		       human_count(sorted[0]),
		       human_count(sorted[c->nruns - 1]), name);
	}
	if (dflt && isnan(dflt->median)) {
		printf("\nThe defaults do not work here.\n");
	} else if (dflt && !is_better(best, dflt)) {
		best = dflt;
		printf("\nNothing beats the defaults beyond noise: leave "
		       "them.\n");
	} else if (dflt) {
		printf("\nBest: %.2f times the defaults.\n",
		       best->median / dflt->median);
	}
	print_yaml(t, best);
	print_python(t, best);
}

static int print_json(const struct tune *t, size_t n)
{
	struct pen_text j = { 0 };

	pen__json_open(&j, NULL, '{');
	pen__json_str(&j, "schema", "penstock.tune/1");
	pen__json_str(&j, "target", t->target);
	pen__json_int(&j, "tried", t->n);
	pen__json_int(&j, "runs", t->runs);
	pen__json_open(&j, "finalists", '[');
	for (size_t i = 0; i < n; i++) {
		const struct candidate *c = &t->c[i];

		pen__json_open(&j, NULL, '{');
		pen__json_bool(&j, "default", c->is_default);
		pen__json_num(&j, "samples_per_s", c->median);
		pen__json_open(&j, "settings", '[');
		for (size_t k = 0; k < c->n; k++)
			pen__json_str(&j, NULL, c->set[k]);
		pen__json_close(&j, ']');
		pen__json_open(&j, "runs", '[');
		for (size_t k = 0; k < c->nruns; k++)
			pen__json_num(&j, NULL, c->rate[k]);
		pen__json_close(&j, ']');
		pen__json_close(&j, '}');
	}
	pen__json_close(&j, ']');
	pen__json_close(&j, '}');
	pen__text_add(&j, "\n");
	return text_out(&j, NULL);
}

#define FOLDER "output.folder="

static int make_folder(struct tune *t)
{
	const char *tmp = getenv("TMPDIR");
	struct pen_err err = { 0 };

	if (!t->workload)
		return -1;
	snprintf(t->folder, sizeof(t->folder), FOLDER "%s/penstock-tune.XXXXXX",
		 tmp && *tmp ? tmp : "/tmp");
	if (mkdtemp(t->folder + strlen(FOLDER)))
		return -1;
	pen__fail_sys(&err, errno, t->folder + strlen(FOLDER),
		      "cannot be made; TMPDIR names another place");
	t->folder[0] = '\0';
	return complain(&err);
}

static int tune_it(struct tune *t)
{
	struct pen_err err = { 0 };
	size_t n;
	int rc;

	t->start_ns = pen__now_ns();
	rc = make_folder(t);
	if (rc >= 0)
		return rc;
	rc = pace(t);
	if (rc >= 0)
		return rc;
	if (t->workload)
		candidates_run(t);
	else
		candidates_load(t);
	candidates_chunk(t);
	n = finals(t, halve(t));
	if (!t->quiet && !t->json && isatty(STDERR_FILENO))
		fputs("\r\033[K", stderr);
	if (interrupted())
		return 128 + interrupted();
	if (!n || isnan(t->c[0].median)) {
		pen__fail(&err, PEN_EINVAL, t->target, "%s",
			  t->why[0] ? t->why : "no run gave a rate");
		return complain(&err);
	}
	if (t->json)
		return print_json(t, n);
	print_text(t, n);
	return EXIT_OK;
}

static int take(struct tune *t, const struct args *a, int kind)
{
	char *end;

	if (kind == ARG_BAD)
		return EXIT_USAGE;
	if (kind == ARG_FLAG && !strcmp(a->key, "--seconds")) {
		t->budget = strtod(a->value, &end);
		if (*end || !(t->budget >= 1) || t->budget > 1e6)
			return complain_usage("tune: --seconds: '%s' is no "
					      "time of a second or more",
					      a->value);
	} else if (kind == ARG_FLAG) {
		*(!strcmp(a->key, "--cold")   ? &t->cold
		  : !strcmp(a->key, "--json") ? &t->json
					      : &t->quiet) = true;
	} else if (kind == ARG_PATH && !t->target) {
		t->target = a->value;
	} else {
		if (t->nfixed == MOST_ARGS)
			return complain_usage("tune: too many settings");
		t->fixed[t->nfixed++] = a->argv[a->at - 1];
		for (int k = 0; kind == ARG_SETTING && k < 5; k++)
			if (!strcmp(a->key, load_keys[k]) ||
			    (run_keys[k] && !strcmp(a->key, run_keys[k])))
				t->given[k] = true;
	}
	return -1;
}

static int run(int argc, char **argv)
{
	struct args a = { .cmd = &pen__cmd_tune, .argc = argc, .argv = argv };
	struct tune *t = pen__calloc(1, sizeof(*t));
	int kind, rc = -1;

	if (!t)
		return complain_usage("tune: out of memory");
	t->budget = 60;
	while (rc < 0 && (kind = args_next(&a)) != ARG_END)
		rc = take(t, &a, kind);
	if (rc < 0 && !t->target)
		rc = complain_usage("tune: of what? name data or a workload");
	if (rc < 0) {
		t->workload = pen__workload_find(t->target) != NULL;
		rc = tune_it(t);
	}
	if (t->folder[0])
		remove_tree(t->folder + strlen(FOLDER));
	pen__free(t);
	return rc;
}

static const char *const examples[] = {
	"penstock tune data/ batch_size=256 shuffle=true",
	"threads, batches ahead, reads in flight and store for this data",
	"penstock tune x.h5ad sampler=block --seconds 120",
	"chunks of the block shuffle, too",
	"penstock tune unet3d_small",
	"a workload's threads, prefetching and direct reads",
	NULL,
};

const struct command pen__cmd_tune = {
	.name = "tune",
	.args = "PATH|WORKLOAD [key=value ...]",
	.summary = "find the settings that load this data fastest here",
	.about = "Tries stores, threads, batches ahead and reads in flight (of "
		 "a block shuffle also the size of chunks) by successive "
		 "halving: short runs of all, longer ones of the better half, "
		 "and so on; then the best few and the defaults in turns. "
		 "Settings that are given stay. Prints what to set, as YAML "
		 "and for Python, with the evidence.",
	.flags = flags,
	.examples = examples,
	.run = run,
};
