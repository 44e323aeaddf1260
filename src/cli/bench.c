/*
 * bench and sweep: the experiments of src/experiment as commands. Their words
 * and flags are the descriptions'; here is what people see of a run.
 */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "experiment/harness.h"

#define MOST_EXPERIMENTS 31
#define MOST_FLAGS 400 /* of all */

/* ---- commands, made of descriptions ---- */

static struct flag flags[MOST_FLAGS];
static char names[MOST_EXPERIMENTS][48];
static struct command made[MOST_EXPERIMENTS];
static const struct command *list[MOST_EXPERIMENTS + 1];

static int run_experiment(const struct pen_experiment *x, int argc,
			  char **argv);

struct command pen__cmd_sweep = { .name = "sweep" };

static int run_sweep(int argc, char **argv)
{
	return run_experiment(&pen__exp_sweep, argc, argv);
}

/* Which one it is, is the first argument. */
static int run_bench(int argc, char **argv)
{
	const char *all[MOST_EXPERIMENTS + 1], *near;
	size_t n = 0;

	if (!argc)
		return complain_usage("bench: which experiment? see penstock "
				      "bench --help");
	for (; pen__experiments[n]; n++) {
		all[n] = pen__experiments[n]->kind.experiment;
		if (!strcmp(all[n], argv[0]))
			return run_experiment(pen__experiments[n], argc - 1,
					      argv + 1);
	}
	all[n] = NULL;
	near = pen__nearest(argv[0], all);
	return complain_usage(near ? "bench: no experiment '%s'; did you mean "
				     "'%s'?"
				   : "bench: no experiment '%s'; see penstock "
				     "%s --help",
			      argv[0], near ? near : "bench");
}

static int run_named(int argc, char **argv)
{
	return run_bench(argc + 1, argv - 1);
}

static void make(struct command *c, const struct pen_experiment *x,
		 const char *name, size_t *at)
{
	*c = (struct command){ .name = name,
			       .args = x->args,
			       .summary = x->summary,
			       .about = x->about,
			       .flags = &flags[*at],
			       .takes_spec = x->settings,
			       .examples = &x->examples[0].first,
			       .run = run_named };
	for (const struct pen_flag *f = x->flag;
	     f < x->flag + x->nflags && *at + 1 < MOST_FLAGS; f++)
		flags[(*at)++] = (struct flag){ f->name, f->arg, f->help };
	(*at)++; /* the end of them */
}

int bench_commands(void)
{
	struct pen_err err = { 0 };
	size_t at = 0, n = 0;

	if (pen__experiments_read(&err))
		return complain(&err);
	for (; pen__experiments[n] && n < MOST_EXPERIMENTS; n++) {
		snprintf(names[n], sizeof(names[n]), "bench %s",
			 pen__experiments[n]->kind.experiment);
		make(&made[n], pen__experiments[n], names[n], &at);
		list[n] = &made[n];
	}
	make(&pen__cmd_sweep, &pen__exp_sweep, "sweep", &at);
	pen__cmd_sweep.run = run_sweep;
	return EXIT_OK;
}

/* ---- while it runs ---- */

/* "12 s", "3 min" */
static const char *roughly(double s)
{
	static char buf[32];

	if (s < 90)
		snprintf(buf, sizeof(buf), "%.0f s", s);
	else if (s < 5400)
		snprintf(buf, sizeof(buf), "%.0f min", s / 60);
	else
		snprintf(buf, sizeof(buf), "%.1f h", s / 3600);
	return buf;
}

static void show_progress(struct pen_session *r, const char *title)
{
	const double total = (double)atomic_load(&r->shared->total);
	const double part =
		total > 0 ? (double)atomic_load(&r->shared->done) / total : 0;
	const double s = (double)(pen__now_ns() - r->start_ns) / 1e9;
	const double at = (double)(r->at - r->nskipped) + part;

	if (r->quiet || !r->ntrials || !isatty(STDERR_FILENO))
		return;
	fputs("\r\033[K", stderr);
	if (!title)
		return;
	fprintf(stderr, "run %s of %s: %s", grouped(r->at + 1),
		grouped(r->ntrials), title);
	if (total > 0)
		fprintf(stderr, ", %.0f %%", 100 * part);
	if (at > 0.2)
		fprintf(stderr, ", about %s left",
			roughly(s / at *
				((double)(r->ntrials - r->nskipped) - at)));
	fflush(stderr);
}

static void print_error(struct pen_session *r, const struct pen_err *err)
{
	(void)r;
	complain(err);
}

/* ---- a table as it goes ---- */

bool print_others(const struct pen_others *others)
{
	struct pen_text json = { .compact = true }, t = { 0 };
	struct pen_line row;
	bool nomem, said;

	pen__json_open(&json, NULL, '{');
	pen__others_json(&json, "others", others);
	pen__json_close(&json, '}');
	if (!json.failed && pen__line_parse(&row, json.p, json.n, &nomem)) {
		pen__others_rows(&t, &(const struct pen_line *){ &row }, 1);
		pen__line_fini(&row);
	}
	pen__text_fini(&json);
	said = t.n;
	print_paragraphs(&t, false);
	return said;
}

static bool said_busy; /* that the machine is */

static void print_busy(struct pen_session *r, const struct pen_line *const *row,
		       size_t n)
{
	struct pen_text t = { 0 };

	if (r->json || said_busy)
		return;
	pen__others_rows(&t, row, n);
	said_busy = t.n;
	print_paragraphs(&t, false);
}

static void print_warming(struct pen_session *r,
			  const struct pen_others *others)
{
	if (r->of->live && !r->json)
		said_busy = print_others(others);
}

static void print_live(const struct pen_line *row,
		       const struct pen_figure_column *c)
{
	const double v = pen__line_number(row, c->key);
	const char *cache = pen__line_true(row, "cold") ? "cold" : "warm";
	struct pen_shown s = { "-" };

	if (!c->show) {
		printf(" %-*s", c->width,
		       strcmp(c->key, "cache") != 0
			       ? pen__line_text(row, c->key)
			       : cache);
		return;
	}
	if (!isnan(v))
		s = c->show(v);
	if (strlen(s.s) > (size_t)c->width && c->show == pen__show_whole)
		s = pen__show_count(v);
	printf(" %*s", c->width, s.s);
}

/* Ends a line of the table: says when a run that should be cold was not. */
static void print_end(const struct pen_line *row)
{
	const double resident = pen__line_number(row, "resident");

	if (!pen__line_true(row, "cold") || resident < 0.05)
		puts("");
	else if (isnan(resident))
		puts("  perhaps not cold");
	else
		printf("  not cold: %.0f %% in memory\n", 100 * resident);
}

/* By itself, or beside those that came before. */
static bool is_wrong(const struct pen_session *r, const struct pen_line *row,
		     char *why, size_t cap)
{
	const struct pen_line **of =
		pen__alloc(r->rows.n, sizeof(const struct pen_line *));
	struct pen_variants a = { .kind = &r->of->kind, .row = of };
	bool wrong;

	for (size_t i = 0; of && i < r->rows.n; i++)
		if (!strcmp(pen__line_text(&r->rows.row[i], "path"), r->path) &&
		    !strcmp(pen__line_text(&r->rows.row[i], "experiment"),
			    a.kind->experiment))
			of[a.nrows++] = &r->rows.row[i];
	wrong = pen__run_wrong(&a, row, why, cap);
	pen__free(of);
	return wrong;
}

static void print_row(struct pen_session *r, const struct pen_line *row,
		      const struct pen_text *line)
{
	char why[200] = "ran out of memory";
	struct pen_figure_column c[PEN_MOST_COLUMNS];
	size_t n, i = 0;

	if (r->json)
		fwrite(line->p, 1, line->n, stdout);
	if (!r->of->live || r->json)
		return;
	n = pen__columns_parse(r->of->live, c);
	if (r->nadded == 1) {
		print_busy(r, &row, 1);
		printf("\n ");
		for (size_t k = 0; k < n; k++)
			printf(" %*s", c[k].show ? c[k].width : -c[k].width,
			       c[k].title);
		puts("");
	}
	/* what it is, up to its cache; then what came out */
	printf(" ");
	do
		print_live(row, &c[i]);
	while (strcmp(c[i++].key, "cache") != 0 && i < n);
	if (pen__line_true(row, "oom") || is_wrong(r, row, why, sizeof(why))) {
		printf(" %s\n", why);
		return;
	}
	for (; i < n; i++)
		print_live(row, &c[i]);
	print_end(row);
}

/* ---- the result ---- */

static int print_all(struct pen_session *r, const struct pen_line *const *row,
		     size_t n)
{
	struct pen_text out = { 0 }, words = { 0 };
	struct pen_err err = { 0 };
	struct pen_variants found;
	size_t nwrong;

	if (pen__variants_init(&found, &r->of->kind, row, n, &err))
		return complain(&err);
	print_busy(r, row, n);
	if (r->of->kind.columns)
		pen__variants_print(&out, &found, terminal_columns());
	/* rows may be of others: with --resume they are read from a file */
	if (!r->json && out.n)
		print_lines(out.p);
	pen__variants_words(&words, &found);
	if (!r->json) /* where sentences are long, with space between them */
		print_paragraphs(&words, r->of->kind.versus.hero);
	pen__text_fini(&words);
	if (out.failed)
		pen__fail_nomem(&err, "table", out.n);
	nwrong = found.nwrong;
	pen__text_fini(&out);
	pen__variants_fini(&found);
	if (err.code)
		return complain(&err);
	if (!nwrong)
		return -1;
	fprintf(stderr,
		"penstock: %s: other samples than there should have been, so "
		"no rate is shown\n",
		counted(nwrong, "variant"));
	return EXIT_DATA;
}

static int print_result(struct pen_session *r)
{
	const struct pen_line **row;
	struct pen_err err = { 0 };
	size_t n;
	int rc = -1;

	row = pen__run_rows(r, &n);
	if (!row) {
		pen__fail_nomem(&err, "rows", r->rows.n * sizeof(*row));
		return complain(&err);
	}
	if (n)
		rc = print_all(r, row, n);
	pen__free(row);
	return rc;
}

/* The end of all: what was left out, where the rows are. */
static void print_ending(const struct pen_session *r, bool stopped)
{
	if (r->json)
		return;
	if (r->nskipped)
		printf("  %s left out: %s has them\n",
		       counted(r->nskipped, "run"), shown(r->out));
	if (r->nadded)
		printf("\n  Rows are in %s; for a page of them: penstock "
		       "report %s\n",
		       shown(r->out), shown(r->out));
	if (stopped)
		printf("  (interrupted%s)\n",
		       r->nadded ? ": the rows so far are kept" : "");
}

/* ---- the command ---- */

static void print_notes_of(const struct pen_session *r)
{
	if (!r->json && r->notes.n)
		print_lines(r->notes.p);
	for (const char *p = r->warnings.n ? r->warnings.p : ""; *p;) {
		const int n = (int)strcspn(p, "\n");
		char line[4096];

		snprintf(line, sizeof(line), "%.*s", n, p);
		fprintf(stderr, "%s\n", shown(line));
		p += n + (p[n] == '\n');
	}
	if (r->rows.nbad)
		fprintf(stderr,
			"penstock: %s: %s skipped (line %llu is the first): "
			"not whole\n",
			r->out, counted(r->rows.nbad, "line"),
			(unsigned long long)r->rows.first_bad);
}

/* All trials, and what came of them. The exit code. */
static int run_all(struct pen_session *r)
{
	struct pen_err err = { 0 };
	const int rc = pen__run_all(r, &err);
	int code;

	if (rc < 0)
		return complain(&err);
	code = print_result(r);
	if (!rc && code < 0 && r->failed)
		code = EXIT_FAILED; /* it was said why */
	/* what is wrong does not hide where the rows are */
	print_ending(r, rc);
	if (rc)
		return 128 + interrupted();
	return code < 0 ? EXIT_OK : code;
}

static int take_args(struct pen_session *r, const struct command *cmd, int argc,
		     char **argv)
{
	struct args a = { .cmd = cmd, .argc = argc, .argv = argv };
	struct pen_err err = { 0 };
	int kind, rc = 0;

	while (!rc && (kind = args_next(&a)) != ARG_END) {
		if (kind == ARG_BAD)
			return EXIT_USAGE;
		rc = pen__run_take(r, kind == ARG_PATH ? NULL : a.key, a.value,
				   &err);
	}
	return rc ? complain(&err) : -1;
}

static const struct command *command_of(const struct pen_experiment *x)
{
	for (size_t i = 0; pen__experiments[i]; i++)
		if (pen__experiments[i] == x)
			return list[i];
	return &pen__cmd_sweep;
}

static int run_experiment(const struct pen_experiment *x, int argc, char **argv)
{
	struct pen_err err = { 0 };
	struct pen_session r;
	int rc = pen__run_open(&r, x, &err) ? complain(&err) : -1;

	r.stop = interrupt_asked;
	r.on_wait = show_progress;
	r.on_row = print_row;
	r.on_error = print_error;
	r.on_others = print_warming;
	r.on_open = warn_of;
	if (rc < 0)
		rc = take_args(&r, command_of(x), argc, argv);
	if (rc < 0 && (rc = pen__run_prepare(&r, &err)))
		rc = rc == PEN_END ? 128 + interrupted() : complain(&err);
	else if (!rc)
		rc = -1;
	if (rc < 0) {
		print_notes_of(&r);
		rc = run_all(&r);
	}
	pen__run_close(&r);
	return rc;
}

static const char *const examples[] = {
	"penstock bench blocks cells.h5ad '65536 / [1,4096]'",
	"speed and memory of block shuffles, from whole blocks to single rows",
	"penstock bench read-chunks cells.h5ad",
	"what reading costs, and what making tables of it adds",
	"penstock bench workers",
	"step time by the number of workers, beside PyTorch's DataLoader",
	"penstock bench headspace images/ --compute 20",
	"would a faster loader help a model of 20 ms a step?",
	"penstock report blocks.jsonl -o report.html",
	"a page with charts of what was measured",
	NULL,
};

const struct command pen__cmd_bench = {
	.name = "bench",
	.args = "EXPERIMENT [PATH] [key=value ...] [flags]",
	.summary = "experiments: one thing varied, everything measured",
	.about = "Every run is a process of its own, so that its peak memory "
		 "is its own, and leaves one row in a file of results, which "
		 "`penstock report` makes a page of.",
	.examples = examples,
	.sub = list,
	.run = run_bench,
};
