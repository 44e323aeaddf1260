/*
 * capacity: how many accelerators can this machine and storage feed? Doubles
 * the number of emulated accelerators until they are no longer kept busy, then
 * bisects.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/emulate.h"
#include "emulate/draw.h"
#include "emulate/system.h"
#include "report/doc.h"
#include "report/report.h"
#include "report/spread.h"

#define MOST_PROBES 64
#define MOST_REPEATS 31
#define MOST_ACCELERATORS 65536 /* as for the key `accelerators` */
#define MOST_SECONDS 1e6
#define MOST_STEPS 1e9 /* per measurement */

struct probe {
	uint64_t n; /* accelerators per process */
	double au[MOST_REPEATS], rate[MOST_REPEATS]; /* samples/s */
	double bytes[MOST_REPEATS];		     /* bytes read per second */
	unsigned repeats;
	bool fed;
	/* of the repeat with the lowest utilisation */
	struct pen_facts facts;
	struct pen_verdict why;
};

struct search {
	struct emulation e;
	struct probe probe[MOST_PROBES];
	unsigned nprobes;
	struct pen_opened opened; /* by the first measurement, shared by all */
	uint64_t most, repeats;
	uint64_t batches; /* per epoch and process */
	double seconds;	  /* of computation per probe */
	bool json, quiet;
	struct pen_others others;
	bool said_busy;
	/* share of bytes from the page cache in the last probe; NAN: unknown */
	double cached;
	char stopped[320]; /* why the search stopped */
};

static const struct flag flags[] = {
	{ "--max", "N", "upper bound of accelerators to try (4096)" },
	{ "--repeats", "N",
	  "measurements per number of accelerators; medians are compared (3)" },
	{ "--seconds", "S",
	  "seconds of emulated computation per measurement (3)" },
	{ "--lenient", NULL, "report unknown keys as notes instead of errors" },
	{ "--config-dir", "DIR", "look for DIR/workload/NAME.yaml first" },
	{ "--json", NULL, "print the result as JSON" },
	{ "--quiet", NULL, "print only the result" },
	{ NULL, NULL, NULL },
};

/* Range over the repeats, which may be unsorted. */
static struct pen_range range(const double *v, unsigned n)
{
	double s[MOST_REPEATS];

	memcpy(s, v, n * sizeof(*v));
	return pen__range(s, n);
}

static double median(const double *v, unsigned n)
{
	return range(v, n).mid;
}

static int tick(void *arg, const struct pen_progress *p)
{
	(void)arg;
	(void)p;
	return interrupted();
}

/* The workload with n accelerators, shortened to one measurement. */
static void shorten(const struct search *s, uint64_t n, struct pen_config *c)
{
	double step = pen__time_mean(&s->e.c.train.computation_time);
	uint64_t want = 100, have = s->batches / n;

	if (step > 0)
		want = (uint64_t)fmin(ceil(s->seconds / step), MOST_STEPS);
	*c = s->e.c;
	c->accelerators = n;
	c->workflow.checkpoint = c->workflow.evaluation = false;
	c->workflow.train = true;
	c->workflow.generate_data = c->workflow.profiling = false;
	/* the first steps are excluded: some must remain */
	if (want < 8 + c->output.exclude_start_steps)
		want = 8 + c->output.exclude_start_steps;
	c->train.total_training_steps = (int64_t)(want < have ? want : have);
	c->train.epochs = want < have ? 1 : (want + have - 1) / have;
}

/* Measures once. Returns 0 or the exit code. */
static int measure(struct search *s, struct probe *p,
		   const struct pen_config *c)
{
	struct pen_run r = { .set = &s->e.set,
			     .c = c,
			     .comm = s->e.comm,
			     .probe = true,
			     .opened = &s->opened,
			     .tick = tick,
			     .stop = interrupt_asked,
			     .log = { .fd = -1, .quiet = true } };
	struct pen_err err = { 0 };
	int rc = pen__run(&r, &err);
	unsigned i = p->repeats;

	if (!rc) {
		p->au[i] = r.fig.au_all.mean;
		p->rate[i] = r.fig.throughput_all.mean;
		p->bytes[i] = r.fig.train_s > 0
				      ? (double)r.fig.read_bytes / r.fig.train_s
				      : 0;
		p->repeats++;
		s->cached = pen__facts_cached(&r.fig.facts);
		if (p->au[i] <= range(p->au, p->repeats).low) {
			p->facts = r.fig.facts;
			p->why = r.fig.why;
		}
	}
	pen__run_fini(&r);
	if (rc == PEN_ENOMEM) {
		snprintf(s->stopped, sizeof(s->stopped), "%.100s: %.200s",
			 err.where, err.msg);
		return -1;
	}
	if (rc == PEN_ECLOSED && interrupted())
		return 128 + interrupted();
	return rc ? complain(&err) : 0;
}

/* Printed first. Other ranks of the job do not count as other processes. */
static void say_busy(struct search *s)
{
	if (!s->said_busy && s->e.comm->size == 1)
		s->said_busy = print_others(&s->others);
}

static void show(struct search *s, const struct probe *p)
{
	const struct pen_range au = range(p->au, p->repeats);
	const struct pen_range rate = range(p->rate, p->repeats);

	if (s->quiet || s->json || s->e.comm->rank)
		return;
	say_busy(s);
	if (s->nprobes == 1)
		printf("  %12s %26s %14s %12s\n", "accelerators",
		       "utilisation (range)", "samples/s", "read");
	printf("  %12s %7.1f %% (%5.1f .. %5.1f) %14s %10s/s  %s\n",
	       grouped(p->n * (uint64_t)s->e.comm->size), au.mid, au.low,
	       au.high, pen__show_range(rate, pen__show_count).s,
	       human_bytes(median(p->bytes, p->repeats)),
	       p->fed ? "fed" : "starved");
	fflush(stdout);
}

/* Are n accelerators kept busy? 1 or 0; -1: cannot be measured (see stopped),
 * or failed with an exit code in *exit. */
static int try(struct search *s, uint64_t n, int *exit)
{
	struct probe *p = &s->probe[s->nprobes];
	struct pen_config c;

	if (s->nprobes == MOST_PROBES)
		return -1;
	*p = (struct probe){ .n = n };
	shorten(s, n, &c);
	for (uint64_t i = 0; i < s->repeats; i++) {
		int rc = measure(s, p, &c);

		if (rc) {
			*exit = rc > 0 ? rc : -1;
			return -1;
		}
	}
	p->fed = median(p->au, p->repeats) >= 100 * s->e.c.au;
	s->nprobes++;
	show(s, p);
	return p->fed;
}

/* Counts the batches of an epoch, which limit the number of accelerators. */
static int count_batches(struct search *s)
{
	const struct pen_config *c = &s->e.c;
	struct pen_plan_figures p;
	struct pen_config train = *c;
	struct pen_err err = { 0 };

	if (!(pen__time_mean(&c->train.computation_time) > 0))
		return complain_usage(
			P_BAD_VALUE, "capacity",
			"the computing time is 0, so accelerators are never "
			"busy; set train.computation_time");
	train.workflow.checkpoint = train.workflow.generate_data = false;
	train.workflow.train = true;
	if (pen__run_plan(&train, 1, &p, &err))
		return complain(&err);
	s->batches = p.samples_train / c->reader.batch_size /
		     (uint64_t)s->e.comm->size;
	if (s->batches)
		return 0;
	return complain_usage(
		P_TOO_FEW_SAMPLES, "capacity",
		"%s has %s, fewer than one batch for each of %d processes",
		s->e.set.workload, counted(p.samples_train, "sample"),
		s->e.comm->size);
}

/* The largest number that is kept busy; *exit >= 0 if a run failed. */
static uint64_t find(struct search *s, int *exit)
{
	uint64_t good = 0, bad = 0, n = 1, most = s->most;

	if (most > s->batches)
		most = s->batches;
	while (!bad && n <= most) {
		int fed = try(s, n, exit);

		if (fed < 0)
			return good;
		if (!fed)
			bad = n;
		else
			good = n;
		n = n < most && n * 2 > most ? most : n * 2;
	}
	if (!bad)
		snprintf(s->stopped, sizeof(s->stopped), "%s",
			 most == s->most
				 ? "--max"
				 : "the data set is too small for more");
	while (bad && bad - good > 1) {
		int fed;

		n = good + (bad - good) / 2;
		fed = try(s, n, exit);
		if (fed < 0)
			return good;
		if (fed)
			good = n;
		else
			bad = n;
	}
	return good;
}

static int by_n(const void *a, const void *b)
{
	const struct probe *x = a, *y = b;

	return (x->n > y->n) - (x->n < y->n);
}

/* The smallest number that was starved, which explains the limit. NULL: none
 * was. */
static const struct probe *first_starved(const struct search *s)
{
	for (unsigned i = 0; i < s->nprobes; i++)
		if (!s->probe[i].fed)
			return &s->probe[i];
	return NULL;
}

static void print_json(struct search *s, uint64_t best, struct pen_text *t)
{
	uint64_t ranks = (uint64_t)s->e.comm->size;
	const struct probe *starved = first_starved(s);

	pen__json_open(t, NULL, '{');
	pen__json_str(t, "schema", "penstock.capacity/1");
	pen__json_bool(t, "partial", interrupted());
	pen__json_str(t, "workload", s->e.set.workload);
	pen__json_int(t, "accelerators", best * ranks);
	pen__json_num(t, "au_wanted_percentage", 100 * s->e.c.au);
	if (ranks == 1) /* other ranks of the job are not other processes */
		pen__others_json(t, "others", &s->others);
	if (isfinite(s->cached))
		pen__json_num(t, "cached_share", s->cached);
	pen__json_str(t, "stopped", s->stopped);
	if (starved)
		pen__verdict_json(t, &starved->why, &starved->facts);
	pen__json_open(t, "curve", '[');
	for (unsigned i = 0; i < s->nprobes; i++) {
		const struct probe *p = &s->probe[i];

		pen__json_open(t, NULL, '{');
		pen__json_int(t, "accelerators", p->n * ranks);
		pen__json_num(t, "au_percentage", median(p->au, p->repeats));
		pen__json_num(t, "samples_per_s", median(p->rate, p->repeats));
		pen__json_num(t, "read_bytes_per_s",
			      median(p->bytes, p->repeats));
		pen__json_open(t, "au_repeats", '[');
		for (unsigned k = 0; k < p->repeats; k++)
			pen__json_num(t, NULL, p->au[k]);
		pen__json_close(t, ']');
		pen__json_bool(t, "fed", p->fed);
		pen__json_close(t, '}');
	}
	pen__json_close(t, ']');
	pen__json_close(t, '}');
}

/* Utilisation over accelerators as a bar chart: '#' up to the lowest repeat,
 * '+' up to the median, '-' up to the highest. */
static void print_curve(const struct search *s)
{
	puts("");
	for (unsigned i = 0; i < s->nprobes; i++) {
		const struct probe *p = &s->probe[i];
		const struct pen_range au = range(p->au, p->repeats);
		int at = (int)lrint(50 * s->e.c.au);

		printf("  %8s |", grouped(p->n * (uint64_t)s->e.comm->size));
		for (int k = 1; k <= 50; k++)
			putchar(k <= lrint(au.low / 2)	  ? '#'
				: k <= lrint(au.mid / 2)  ? '+'
				: k <= lrint(au.high / 2) ? '-'
				: k == at		  ? ':'
							  : ' ');
		printf("| %5.1f %%\n", au.mid);
	}
}

static void print_why(const struct search *s)
{
	const struct probe *p = first_starved(s);
	struct pen_text t = { 0 };

	if (!p)
		return;
	pen__text_add(&t, "With %s: ",
		      counted(p->n * (uint64_t)s->e.comm->size, "accelerator"));
	pen__verdict_text(&p->why, &t);
	fputs("  ", stdout);
	print_wrapped(stdout, t.p ? t.p : "", 2, 2);
	pen__text_fini(&t);
}

/* The same sentences as on the report page, from the same document. */
static void print_words(const struct search *s, const struct pen_text *json)
{
	struct pen_doc d = { .name = s->e.set.workload };
	struct pen_text words = { 0 };

	if (json->failed ||
	    pen__jdoc_open(&d.j, json->p, json->n, d.name, NULL))
		return;
	pen__capacity_words(&words, &d);
	pen__jdoc_close(&d.j);
	print_paragraphs(&words, false);
}

static int report(struct search *s, uint64_t best)
{
	struct pen_text t = { 0 };

	qsort(s->probe, s->nprobes, sizeof(*s->probe), by_n);
	print_json(s, best, &t);
	if (s->json)
		return text_out(&t, NULL);
	say_busy(s);
	print_curve(s);
	print_words(s, &t);
	pen__text_fini(&t);
	print_why(s);
	if (s->cached > 0.5 &&
	    !(first_starved(s) &&
	      pen__cause_storage(first_starved(s)->why.cause)))
		print_line(
			2, NULL,
			"  %.0f %% of the bytes came from the page cache. To "
			"measure storage, use %smore data.",
			100 * s->cached,
			s->e.c.reader.page_cache == PEN_CACHE_KEEP
				? "reader.page_cache=drop or "
				: "");
	return EXIT_OK;
}

/* Generates the data before the first measurement. */
static int generate(struct search *s)
{
	struct pen_config c = s->e.c;
	struct pen_run r = { .set = &s->e.set,
			     .c = &c,
			     .comm = s->e.comm,
			     .probe = true,
			     .tick = tick,
			     .stop = interrupt_asked,
			     .log = { .fd = -1 } };
	struct pen_err err = { 0 };
	int rc;

	if (!c.workflow.generate_data)
		return 0;
	c.workflow.train = c.workflow.checkpoint = false;
	rc = pen__run(&r, &err);
	pen__run_fini(&r);
	if (rc == PEN_ECLOSED && interrupted())
		return 128 + interrupted();
	return rc ? complain(&err) : 0;
}

static int take_flag(struct search *s, const struct args *a)
{
	uint64_t n;

	if (!strcmp(a->key, "--json")) {
		s->json = true;
	} else if (!strcmp(a->key, "--quiet")) {
		s->quiet = true;
	} else if (!strcmp(a->key, "--seconds")) {
		char *end;

		s->seconds = strtod(a->value, &end);
		if (*end || !(s->seconds > 0 && s->seconds <= MOST_SECONDS))
			return complain_usage(
				P_BAD_VALUE, "capacity",
				"--seconds: '%s' is not a number of seconds",
				a->value);
	} else if (!strcmp(a->key, "--max") || !strcmp(a->key, "--repeats")) {
		if (pen__parse_count(a->value, &n) || !n ||
		    n > (a->key[2] == 'r' ? MOST_REPEATS : MOST_ACCELERATORS))
			return complain_usage(
				P_BAD_VALUE, "capacity",
				"%s: '%s' is not a number from 1 to %s", a->key,
				a->value,
				grouped(a->key[2] == 'r' ? MOST_REPEATS
							 : MOST_ACCELERATORS));
		*(a->key[2] == 'r' ? &s->repeats : &s->most) = n;
	} else {
		return emulation_arg(&s->e, a, ARG_FLAG);
	}
	return -1;
}

static int search(struct search *s)
{
	int exit = -1, rc = count_batches(s);
	uint64_t best = 0;

	if (!rc)
		rc = generate(s);
	if (rc && !interrupted())
		return rc;
	pen__others_start(&s->others);
	if (!s->quiet && !s->json && !s->e.comm->rank)
		print_line(2, NULL,
			   "%s: how many accelerators can be kept busy for "
			   "%.0f %% "
			   "of the time?",
			   s->e.set.workload, 100 * s->e.c.au);
	if (!rc)
		best = find(s, &exit);
	if (exit > 0 && !interrupted())
		return exit;
	if (!s->nprobes && !interrupted())
		return complain_usage(P_OVER_BUDGET, "capacity",
				      "cannot run even one accelerator: %s",
				      s->stopped);
	rc = s->e.comm->rank ? EXIT_OK : report(s, best);
	return interrupted() ? 128 + interrupted() : rc;
}

static int run_capacity(int argc, char **argv)
{
	struct args a = { .cmd = &pen__cmd_capacity,
			  .argc = argc,
			  .argv = argv };
	struct search *s = pen__calloc(1, sizeof(*s));
	int kind, rc = -1;

	if (!s)
		return EXIT_FAILED;
	s->most = 4096;
	s->repeats = 3;
	s->seconds = 3;
	rc = emulation_init(&s->e);
	while (rc < 0 && (kind = args_next(&a)) != ARG_END)
		rc = kind == ARG_BAD	? EXIT_USAGE
		     : kind == ARG_FLAG ? take_flag(s, &a)
					: emulation_arg(&s->e, &a, kind);
	if (rc < 0)
		rc = emulation_open(&s->e, "capacity");
	if (rc < 0)
		rc = search(s);
	pen__opened_fini(&s->opened);
	emulation_close(&s->e);
	pen__free(s);
	return rc;
}

static const char *const examples[] = {
	"penstock capacity unet3d_small",
	"the curve, and the largest number that can be kept busy",
	"penstock capacity resnet50_small reader.page_cache=drop --repeats 5",
	"measures storage instead of the page cache",
	NULL,
};

const struct command pen__cmd_capacity = {
	.name = "capacity",
	.ranks = true,
	.args = "WORKLOAD|FILE [key=value ...] [flags]",
	.summary = "find how many accelerators this machine can feed",
	.about = "Finds the largest number of emulated accelerators that this "
		 "machine and its storage keep at or above the workload's "
		 "utilisation threshold (metric.au). Doubles the number, then "
		 "bisects, and prints the curve. Generates the data first if "
		 "the workload asks for it.",
	.flags = flags,
	.examples = examples,
	.run = run_capacity,
};
