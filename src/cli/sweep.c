/*
 * sweep: a grid of settings, every cell run several times in turns, one row a
 * run added to a file. A cell is `penstock run` of a workload, or `penstock
 * load` of data, in a process of its own: what is measured is what a user
 * gets.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "cli/child.h"
#include "cli/cli.h"
#include "emulate/system.h"
#include "penstock.h"
#include "report/doc.h"
#include "report/report.h"

#define MOST_AXES 16
#define MOST_VALUES 256
#define MOST_ARGS 256
#define MOST_CELLS 100000
#define MOST_LENGTH 255 /* of a value */

struct axis {
	char key[128];
	char *value[MOST_VALUES];
	size_t n;
};

struct sweep {
	const char *target; /* workload or path */
	bool workload;
	struct axis axis[MOST_AXES];
	size_t naxes, ncells;
	const char *fixed[MOST_ARGS]; /* "key=value" as given, and paths */
	size_t nfixed;
	const char *out;
	uint64_t repeats, seed;
	bool resume, quiet, json, cold;
	struct pen_lines before;
	struct pen_host host;
	/* while it runs */
	uint64_t start_ns, done, skipped, failed;
};

static const struct flag flags[] = {
	{ "--repeats", "N", "runs of every cell, in turns (default 3)" },
	{ "-o", "FILE", "where rows are added (default sweep.jsonl)" },
	{ "--fixed", "KEY=VALUE",
	  "a setting whose value has a comma in it and is not a list" },
	{ "--cold", NULL,
	  "drop the files from the page cache before each run" },
	{ "--resume", NULL, "leave out what the file has rows of" },
	{ "--json", NULL, "print the rows instead of a table" },
	{ "--quiet", NULL, "no progress line" },
	{ NULL, NULL, NULL },
};

/* ---- the grid ---- */

/* "1,2,4" or "[64,4096]": values of an axis. */
static int axis_arg(struct sweep *s, const char *key, const char *text)
{
	struct axis *x = &s->axis[s->naxes];
	size_t n = strlen(text);
	bool bracket = n > 1 && text[0] == '[' && text[n - 1] == ']';
	const char *p = text + bracket, *end = text + n - bracket;

	if (s->naxes == MOST_AXES)
		return complain_usage("sweep: at most %d lists", MOST_AXES);
	if (strlen(key) >= sizeof(x->key))
		return complain_usage("sweep: '%.40s...' is no setting", key);
	snprintf(x->key, sizeof(x->key), "%s", key);
	x->n = 0;
	while (p <= end) {
		size_t len = strcspn(p, ",");

		if (p + len > end)
			len = (size_t)(end - p);
		if (!len || len > MOST_LENGTH || x->n == MOST_VALUES)
			return complain_usage("sweep: '%s' has %s value", key,
					      !len ? "an empty"
					      : len > MOST_LENGTH
						      ? "too long a"
						      : "too many a");
		x->value[x->n] = pen__alloc(len + 1, 1);
		if (!x->value[x->n])
			return complain_usage("sweep: out of memory");
		memcpy(x->value[x->n], p, len);
		x->value[x->n++][len] = '\0';
		p += len + 1;
	}
	s->naxes++;
	s->ncells *= x->n;
	if (s->ncells > MOST_CELLS)
		return complain_usage("sweep: more than %d cells", MOST_CELLS);
	return -1;
}

static int fixed_arg(struct sweep *s, const char *arg)
{
	if (s->nfixed + MOST_AXES + 16 > MOST_ARGS)
		return complain_usage("sweep: too many settings");
	s->fixed[s->nfixed++] = arg;
	return -1;
}

/* Value of an axis in a cell: cells count like the digits of a number. */
static const char *value_of(const struct sweep *s, size_t cell, size_t axis)
{
	for (size_t i = s->naxes; i-- > axis + 1;)
		cell /= s->axis[i].n;
	return s->axis[axis].value[cell % s->axis[axis].n];
}

/* "threads=2 store=uring": what is varied. */
static void name_of(const struct sweep *s, size_t cell, char *buf, size_t cap)
{
	size_t at = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < s->naxes && at < cap; i++)
		at += (size_t)snprintf(buf + at, cap - at, "%s%s=%s",
				       i ? " " : "", s->axis[i].key,
				       value_of(s, cell, i));
}

/* What all cells have alike. */
static void settings_of(const struct sweep *s, char *buf, size_t cap)
{
	size_t at = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < s->nfixed && at < cap; i++)
		at += (size_t)snprintf(buf + at, cap - at, "%s%s", i ? " " : "",
				       s->fixed[i]);
}

/* A row of a sweep as this one: the same but for what is varied. */
static bool is_ours(const struct sweep *s, const struct pen_line *r)
{
	char settings[4096];

	settings_of(s, settings, sizeof(settings));
	return !strcmp(pen__line_text(r, "experiment"), "sweep") &&
	       !strcmp(pen__line_text(r, "path"), s->target) &&
	       !strcmp(pen__line_text(r, "host"), s->host.name) &&
	       !strcmp(pen__line_text(r, "settings"), settings) &&
	       pen__line_true(r, "cold") == s->cold;
}

/* ---- one run ---- */

static int run_cell(const struct sweep *s, size_t cell, struct pen_text *out,
		    struct child *c, struct pen_err *err)
{
	const char *argv[MOST_ARGS + MOST_AXES + 8] = { "" };
	char set[MOST_AXES][512];
	size_t n = 1;

	argv[n++] = s->workload ? "run" : "load";
	argv[n++] = s->target;
	for (size_t i = 0; i < s->nfixed; i++)
		argv[n++] = s->fixed[i];
	for (size_t i = 0; i < s->naxes; i++) {
		snprintf(set[i], sizeof(set[i]), "%s=%s", s->axis[i].key,
			 value_of(s, cell, i));
		argv[n++] = set[i];
	}
	argv[n++] = "--json";
	argv[n++] = "--quiet";
	if (s->cold)
		argv[n++] = s->workload ? "reader.page_cache=drop"
					: "--drop-cache";
	return child_run(argv, out, c, err);
}

static void number(struct pen_text *t, const char *key, const struct pen_doc *d,
		   const char *path, double times)
{
	double v = pen__doc_number(d, 0, path);

	if (isfinite(v))
		pen__json_num(t, key, v * times);
}

static void figures(struct pen_text *t, const struct sweep *s,
		    const struct pen_doc *d, const struct child *c)
{
	if (s->workload) {
		number(t, "samples_per_s", d, "totals.samples_per_s.mean", 1);
		number(t, "au", d, "totals.au.mean", 1);
		number(t, "read_bytes_per_s", d, "totals.read_mib_per_s",
		       1048576);
		number(t, "wait_p50_s", d, "histograms.wait.p50_ns", 1e-9);
		number(t, "wait_p99_s", d, "histograms.wait.p99_ns", 1e-9);
		number(t, "cached_share", d, "page_cache.cached_share", 1);
		pen__json_int(t, "peak_memory_bytes", c->peak_bytes);
	} else {
		number(t, "samples_per_s", d, "samples_per_s", 1);
		number(t, "read_bytes_per_s", d, "read_bytes_per_s", 1);
		number(t, "wait_p50_s", d, "wait_ns.p50", 1e-9);
		number(t, "wait_p99_s", d, "wait_ns.p99", 1e-9);
		number(t, "peak_memory_bytes", d, "peak_memory_bytes", 1);
		number(t, "samples", d, "samples", 1);
	}
	pen__json_num(t, "seconds", c->real_s);
	pen__json_num(t, "cpu_s", c->user_s + c->system_s);
}

/* The row of a run; what it printed is a document. */
static int make_row(const struct sweep *s, size_t cell, unsigned repeat,
		    const struct pen_text *printed, const struct child *c,
		    struct pen_text *row)
{
	struct pen_doc d = { .name = s->target };
	struct pen_err err = { 0 };
	char setup[1024], settings[4096];

	if (pen__jdoc_open(&d.j, printed->p ? printed->p : "", printed->n,
			   "what the run printed", &err))
		return complain(&err);
	name_of(s, cell, setup, sizeof(setup));
	row->compact = true;
	pen__json_open(row, NULL, '{');
	pen__json_str(row, "experiment", "sweep");
	pen__json_str(row, "version", pen_version());
	pen__json_str(row, "path", s->target);
	pen__json_str(row, "host", s->host.name);
	pen__json_str(row, "cpu", s->host.cpu);
	pen__json_int(row, "cpus", s->host.cpus);
	pen__json_str(row, "setup", setup);
	pen__json_int(row, "repeat", repeat);
	settings_of(s, settings, sizeof(settings));
	pen__json_str(row, "settings", settings);
	pen__json_bool(row, "cold", s->cold);
	pen__json_open(row, "set", '{');
	for (size_t i = 0; i < s->naxes; i++)
		pen__json_str(row, s->axis[i].key, value_of(s, cell, i));
	pen__json_close(row, '}');
	pen__json_open(row, "fixed", '[');
	for (size_t i = 0; i < s->nfixed; i++)
		pen__json_str(row, NULL, s->fixed[i]);
	pen__json_close(row, ']');
	figures(row, s, &d, c);
	pen__json_close(row, '}');
	pen__jdoc_close(&d.j);
	return -1;
}

static bool is_there(const struct sweep *s, const char *setup, unsigned repeat)
{
	for (size_t i = 0; i < s->before.n; i++) {
		const struct pen_line *r = &s->before.row[i];

		if (is_ours(s, r) &&
		    !strcmp(pen__line_text(r, "setup"), setup) &&
		    pen__line_number(r, "repeat") == repeat)
			return true;
	}
	return false;
}

static void show_progress(const struct sweep *s, const char *setup)
{
	uint64_t all = s->ncells * s->repeats;
	double spent = (double)(pen__now_ns() - s->start_ns) / 1e9;
	uint64_t ran = s->done - s->skipped;
	char name[61];

	if (s->quiet || !isatty(STDERR_FILENO))
		return;
	pen__quote(name, sizeof(name), setup);
	fprintf(stderr, "\r\033[Krun %s of %s: %s", grouped(s->done + 1),
		grouped(all), name);
	if (ran)
		fprintf(stderr, ", about %s left",
			human_time(spent / (double)ran *
				   (double)(all - s->done)));
	fflush(stderr);
}

static int one(struct sweep *s, size_t cell, unsigned repeat)
{
	struct pen_text printed = { 0 }, row = { 0 };
	struct pen_err err = { 0 };
	struct child c;
	char setup[1024];
	int rc = -1;

	name_of(s, cell, setup, sizeof(setup));
	show_progress(s, setup);
	if (s->resume && is_there(s, setup, repeat)) {
		s->done++;
		s->skipped++;
		return -1;
	}
	(void)run_cell(s, cell, &printed, &c, &err);
	if (interrupted()) { /* what it printed may be half */
		rc = 128 + interrupted();
	} else if (err.code) {
		snprintf(err.where, sizeof(err.where), "%.255s", setup);
		rc = complain(&err);
		if (c.code > 0 && c.code <= EXIT_MISSED)
			rc = c.code; /* what kind of failure it was */
	}
	if (rc < 0)
		rc = make_row(s, cell, repeat, &printed, &c, &row);
	if (rc < 0 && pen__lines_append(s->out, &row, &err))
		rc = complain(&err);
	if (rc < 0 && s->json)
		fputs(row.p, stdout); /* a row has its end of line */
	s->done++;
	pen__text_fini(&printed);
	pen__text_fini(&row);
	return rc;
}

/* Repeats in turns, and each time in another order: what changes on the
 * machine meanwhile does not fall on a few cells. */
static int run_all(struct sweep *s)
{
	int rc = -1;

	s->start_ns = pen__now_ns();
	for (unsigned r = 0; r < s->repeats && rc < 0; r++) {
		struct pen_perm order;

		pen__perm_init(&order, s->ncells, s->seed, r);
		for (size_t i = 0; i < s->ncells && rc < 0; i++) {
			if (interrupted())
				rc = 128 + interrupted();
			else
				rc = one(s, pen__perm_at(&order, i), r);
		}
	}
	if (!s->quiet && isatty(STDERR_FILENO))
		fputs("\r\033[K", stderr);
	return rc;
}

/* ---- the result ---- */

static int by_rate(const void *a, const void *b)
{
	double x = ((const struct pen_case *)a)->rate;
	double y = ((const struct pen_case *)b)->rate;

	if (isnan(x) || isnan(y))
		return isnan(x) - isnan(y);
	return (x < y) - (x > y);
}

static int print_cases(const struct sweep *s, const struct pen_group *g)
{
	struct pen_err err = { 0 };
	struct pen_case *c;
	size_t n;

	if (pen__cases(g, &c, &n, &err))
		return complain(&err);
	qsort(c, n, sizeof(*c), by_rate);
	printf("  %12s %10s %6s  %s\n", "samples/s", "memory", "runs",
	       "settings");
	for (size_t i = 0; i < n && i < 20; i++)
		printf("  %12s %10s %6zu  %s\n", pen__show_count(c[i].rate).s,
		       pen__show_bytes(c[i].memory).s, c[i].n,
		       shown(pen__line_text(c[i].row, "setup")));
	if (n > 20)
		printf("  ... and %zu more\n", n - 20);
	while (n && !(c[n - 1].rate > 0))
		n--;
	if (n)
		printf("\nBest: %s (%s samples/s, %.2f x the slowest). All "
		       "rows are in %s; penstock report %s -o sweep.html "
		       "draws them.\n",
		       shown(pen__line_text(c[0].row, "setup")),
		       human_count(c[0].rate), c[0].rate / c[n - 1].rate,
		       shown(s->out), shown(s->out));
	pen__free(c);
	return EXIT_OK;
}

/* Of all such rows that the file has now. */
static int print_result(const struct sweep *s)
{
	struct pen_lines rows = { 0 };
	const struct pen_line **of;
	struct pen_err err = { 0 };
	struct pen_group g = { 0 };
	int rc;

	if (pen__lines_read(&rows, s->out, &err))
		return complain(&err);
	of = pen__alloc(rows.n + 1, sizeof(*of));
	for (size_t i = 0; of && i < rows.n; i++)
		if (is_ours(s, &rows.row[i]))
			of[g.n++] = &rows.row[i];
	g.row = of;
	rc = of ? print_cases(s, &g) : EXIT_FAILED;
	pen__free(of);
	pen__lines_fini(&rows);
	return rc;
}

/* ---- arguments ---- */

static int flag_arg(struct sweep *s, const struct args *a)
{
	if (!strcmp(a->key, "-o"))
		s->out = a->value;
	else if (!strcmp(a->key, "--fixed"))
		return fixed_arg(s, a->value);
	else if (!strcmp(a->key, "--cold"))
		s->cold = true;
	else if (!strcmp(a->key, "--resume"))
		s->resume = true;
	else if (!strcmp(a->key, "--json"))
		s->json = true;
	else if (!strcmp(a->key, "--quiet"))
		s->quiet = true;
	else if (pen__parse_count(a->value, &s->repeats) || !s->repeats ||
		 s->repeats > 10000)
		return complain_usage("sweep: --repeats: '%s' is no number "
				      "of runs",
				      a->value);
	return -1;
}

static int take(struct sweep *s, const struct args *a, int kind)
{
	if (kind == ARG_BAD)
		return EXIT_USAGE;
	if (kind == ARG_FLAG)
		return flag_arg(s, a);
	if (kind == ARG_SETTING &&
	    (strchr(a->value, ',') || a->value[0] == '['))
		return axis_arg(s, a->key, a->value);
	if (kind == ARG_SETTING || s->target)
		return fixed_arg(s, a->argv[a->at - 1]);
	s->target = a->value;
	s->workload = names_workload(a->value);
	return -1;
}

static int run(int argc, char **argv)
{
	struct args a = { .cmd = &pen__cmd_sweep, .argc = argc, .argv = argv };
	struct sweep *s = pen__calloc(1, sizeof(*s));
	struct pen_err err = { 0 };
	int kind, rc = -1;

	if (!s)
		return complain_usage("sweep: out of memory");
	*s = (struct sweep){ .repeats = 3, .out = "sweep.jsonl", .ncells = 1 };
	while (rc < 0 && (kind = args_next(&a)) != ARG_END)
		rc = take(s, &a, kind);
	if (rc < 0 && !s->target)
		rc = complain_usage("sweep: of what? name a workload or data");
	if (rc < 0 && !s->naxes)
		rc = complain_usage("sweep: nothing varies; give a list, as "
				    "threads=1,2,4");
	pen__host(&s->host);
	if (rc < 0 && s->resume) {
		kind = pen__lines_read(&s->before, s->out, &err);
		if (kind && kind != PEN_ENOTFOUND)
			rc = complain(&err);
	}
	if (rc < 0)
		rc = run_all(s);
	if (rc < 0)
		rc = s->json ? EXIT_OK : print_result(s);
	/* also of one that was refused half way */
	for (size_t i = 0; i < MOST_AXES; i++)
		for (size_t k = 0; k < s->axis[i].n; k++)
			pen__free(s->axis[i].value[k]);
	pen__lines_fini(&s->before);
	pen__free(s);
	return rc;
}

static const char *const examples[] = {
	"penstock sweep data/ threads=1,2,4 store=posix,mmap,uring "
	"shuffle=true",
	"twelve ways to load this data, three times each",
	"penstock sweep unet3d_small reader.read_threads=1,2,4 "
	"accelerators=1,4",
	"a training job with other numbers of threads and accelerators",
	"penstock sweep data/ threads=1,2,4 --resume",
	"go on after a crash, or with more values",
	NULL,
};

const struct command pen__cmd_sweep = {
	.name = "sweep",
	.args = "WORKLOAD|PATH key=1,2,4 other=[64,4096] [key=value ...]",
	.summary = "run a grid of settings, and say which are best",
	.about = "Every setting with a list is varied; every combination runs "
		 "several times, in turns and in changing order, as `penstock "
		 "run` of a workload or `penstock load` of data would, each "
		 "in a process of its own. One row a run is added to a file, "
		 "which `penstock report` draws and `penstock compare` takes.",
	.flags = flags,
	.examples = examples,
	.run = run,
};
