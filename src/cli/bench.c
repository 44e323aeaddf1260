/*
 * bench and sweep: the experiments of src/experiment as commands. Help texts
 * and flags come from the descriptions; this file prints progress and results.
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

/* ---- commands, generated from the descriptions ---- */

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

/* The first argument names the experiment. */
static int run_bench(int argc, char **argv)
{
	const char *all[MOST_EXPERIMENTS + 1], *near;
	size_t n = 0;

	if (!argc)
		return complain_usage(
			P_MISSING_SETTING, "bench",
			"no experiment given; see `penstock bench --help`");
	for (; pen__experiments[n]; n++) {
		all[n] = pen__experiments[n]->kind.experiment;
		if (!strcmp(all[n], argv[0]))
			return run_experiment(pen__experiments[n], argc - 1,
					      argv + 1);
	}
	all[n] = NULL;
	near = pen__nearest(argv[0], all);
	return complain_usage(
		P_UNKNOWN_NAME, "bench",
		near ? "unknown experiment '%s'; did you mean '%s'?"
		     : "unknown experiment '%s'; see `penstock %s --help`",
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
			       .ranks = x->ranks,
			       .run = run_named };
	for (const struct pen_flag *f = x->flag;
	     f < x->flag + x->nflags && *at + 1 < MOST_FLAGS; f++)
		flags[(*at)++] = (struct flag){ f->name, f->arg, f->help };
	(*at)++; /* the terminator */
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

/* ---- progress ---- */

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

/* ---- the result ---- */

static void print_row(struct pen_session *r, const struct pen_text *line)
{
	if (!r->json || !pen__run_first(r))
		return;
	json_printed();
	fwrite(line->p, 1, line->n, stdout);
}

static void print_busy(const struct pen_line *const *row, size_t n)
{
	struct pen_text t = { 0 };

	pen__others_rows(&t, row, n);
	print_paragraphs(&t, false);
}

static int print_all(struct pen_session *r, const struct pen_line *const *row,
		     size_t n)
{
	struct pen_text out = { 0 }, words = { 0 };
	struct pen_err err = { 0 };
	struct pen_variants found;
	size_t nwrong;

	if (pen__variants_init(&found, &r->of->kind, row, n, &err))
		return complain(&err);
	if (!r->json)
		print_busy(row, n);
	pen__variants_print(&out, &found, terminal_columns());
	/* rows may be of others: with --resume they are read from a file */
	if (!r->json && out.n)
		print_lines(out.p);
	pen__variants_words(&words, &found);
	if (!r->json) /* long sentences get blank lines between them */
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
		"penstock: %s delivered wrong samples; their throughput is not "
		"shown\n",
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

/* Reports skipped runs and where the rows are. */
static void print_ending(const struct pen_session *r, bool stopped)
{
	if (r->json)
		return;
	if (r->nskipped)
		printf("  %s skipped: already in %s\n",
		       counted(r->nskipped, "run"), shown(r->out));
	if (r->nadded)
		printf("\n  The rows are in %s; to make a page of them: "
		       "penstock report %s\n",
		       shown(r->out), shown(r->out));
	if (stopped)
		printf("  (interrupted%s)\n",
		       r->nadded ? "; the rows so far are kept" : "");
}

/* ---- the command ---- */

static void print_notes_of(const struct pen_session *r)
{
	if (!pen__run_first(r))
		return;
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
			"penstock: %s: %s skipped as incomplete (the first is "
			"line %llu)\n",
			r->out, counted(r->rows.nbad, "line"),
			(unsigned long long)r->rows.first_bad);
}

/* Runs all trials and prints the results. Returns the exit code. */
static int run_all(struct pen_session *r)
{
	struct pen_err err = { 0 };
	const int rc = pen__run_all(r, &err);
	int code;

	if (rc < 0)
		return complain(&err);
	if (!pen__run_first(r))
		return rc ? 128 + interrupted() : EXIT_OK;
	code = print_result(r);
	if (!rc && code < 0 && r->failed)
		code = EXIT_FAILED; /* the cause was printed */
	/* print the location of the rows even after an error */
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

/* The ranks of a job run an experiment together; rank 0 prints. */
static int open_ranks(struct pen_session *r, struct pen_err *err)
{
	struct pen_ranks *ranks;
	const int rc = pen_ranks_open(&ranks, err);

	if (rc)
		return rc;
	if (pen_ranks_size(ranks) == 1) {
		pen_ranks_close(ranks);
		return 0;
	}
	r->ranks = ranks;
	mute(pen_ranks_rank(ranks) != 0);
	return 0;
}

static int run_experiment(const struct pen_experiment *x, int argc, char **argv)
{
	struct pen_err err = { 0 };
	struct pen_ranks *ranks;
	struct pen_session r;
	int rc = pen__run_open(&r, x, &err) ? complain(&err) : -1;

	if (rc < 0 && x->ranks && open_ranks(&r, &err))
		rc = complain(&err);
	r.stop = interrupt_asked;
	r.on_wait = show_progress;
	r.on_row = print_row;
	r.on_error = print_error;
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
	ranks = r.ranks;
	pen__run_close(&r);
	pen_ranks_close(ranks);
	return rc;
}

static const char *const examples[] = {
	"penstock bench blocks cells.h5ad '65536 / [1,4096]'",
	"throughput and memory of block shuffles, from entire blocks to single "
	"rows",
	"penstock bench read-chunks cells.h5ad",
	"cost of reading, and of assembling tables from it",
	"penstock bench workers",
	"step time by number of workers, compared with PyTorch's DataLoader",
	"penstock bench headspace images/ --compute 20",
	"would a faster loader help a model that takes 20 ms per step?",
	"penstock report blocks.jsonl -o report.html",
	"a page with charts of the results",
	NULL,
};

const struct command pen__cmd_bench = {
	.name = "bench",
	.args = "EXPERIMENT [PATH] [key=value ...] [flags]",
	.summary = "run an experiment: vary one setting, measure its effects",
	.about = "Every run is a separate process, so that peak memory is "
		 "measured per run, and appends one row to a file of results; "
		 "`penstock report` turns the file into a page.",
	.examples = examples,
	.sub = list,
	.run = run_bench,
};
