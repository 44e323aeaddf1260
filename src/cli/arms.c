/* Arms: arguments, the folder, runs in turns, the table. */
#include "cli/arms.h"
#include "cli/child.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "engine/spec.h"

#define DEFAULT_SAMPLES 10000
#define DEFAULT_REPEATS 3

/* ---- arguments ---- */

bool arms_list(const char *text, uint64_t *v, size_t *n, size_t most)
{
	*n = 0;
	while (*text) {
		const size_t len = strcspn(text, ",");
		char word[32];

		if (!len || len >= sizeof(word) || *n >= most)
			return false;
		snprintf(word, sizeof(word), "%.*s", (int)len, text);
		if (pen__parse_count(word, &v[*n]))
			return false;
		(*n)++;
		text += len + (text[len] == ',');
	}
	return *n > 0;
}

int arms_choose(const struct args *a, const char *const *names, bool *chosen,
		int n)
{
	for (int i = 0; i < n; i++)
		if (*a->value &&
		    !strncmp(names[i], a->value, strlen(a->value))) {
			chosen[i] = true;
			return -1;
		}
	return complain_usage("%s: %s: there is no '%s'", a->cmd->name, a->key,
			      a->value);
}

void arms_settle(bool *chosen, int n)
{
	bool any = false;

	for (int i = 0; i < n; i++)
		any = any || chosen[i];
	for (int i = 0; i < n; i++)
		chosen[i] = !any || chosen[i];
}

/* ---- the folder ---- */

int arms_folder(struct arms *a)
{
	const char *tmp = a->dir ? a->dir : getenv("TMPDIR");
	struct pen_err err = { 0 };

	if (a->folder[0])
		return -1;
	snprintf(a->folder, sizeof(a->folder), "%s/penstock-bench.XXXXXX",
		 tmp && *tmp ? tmp : "/tmp");
	if (mkdtemp(a->folder))
		return -1;
	a->folder[0] = '\0';
	pen__fail_sys(&err, errno, tmp && *tmp ? tmp : "/tmp",
		      a->dir ? "no folder for data can be made there"
			     : "no folder for data can be made there; TMPDIR "
			       "names another place");
	return complain(&err);
}

/* ---- arms ---- */

struct arm *arms_add(struct arms *a, const char *name, const char *group,
		     uint64_t value)
{
	struct arm *more = pen__realloc(a->arm, a->n + 1, sizeof(*more));
	struct pen_err err = { 0 };

	if (!more) {
		pen__fail_nomem(&err, a->cmd->name, sizeof(*more));
		complain(&err);
		return NULL;
	}
	a->arm = more;
	more += a->n++;
	*more = (struct arm){ .of = a, .value = value };
	snprintf(more->name, sizeof(more->name), "%s", name);
	snprintf(more->group, sizeof(more->group), "%s", group);
	snprintf(more->check, sizeof(more->check), "all");
	return more;
}

static void head(struct pen_text *j, const struct trial *t)
{
	const struct arm *m = t->arg;
	const struct bench *b = &m->of->b;
	char check[192] = "";

	if (m->check[0])
		snprintf(check, sizeof(check), "%s batches=%llu epochs=%llu",
			 m->check, (unsigned long long)b->batches,
			 (unsigned long long)b->spec->epochs);
	pen__json_str(j, "experiment", m->of->kind->experiment);
	pen__json_str(j, "arm", m->name);
	pen__json_str(j, "group", m->group);
	pen__json_str(j, "check", check);
	pen__json_str(j, "cache", m->as_it_is ? "" : t->cold ? "cold" : "warm");
	pen__json_int(j, "value", m->value);
	pen__json_int(j, "epochs", m->of->b.spec->epochs);
}

/* A row of this run beside those of before. */
static int keep(struct arms *a, struct pen_line *row)
{
	struct pen_lines *rows = &a->b.rows;
	struct pen_line *more =
		pen__realloc(rows->row, rows->n + 1, sizeof(*more));
	struct pen_err err = { 0 };

	if (!more) {
		pen__line_fini(row);
		pen__fail_nomem(&err, a->cmd->name, sizeof(*more));
		return complain(&err);
	}
	rows->row = more;
	more[rows->n++] = *row;
	return -1;
}

static void describe(const struct arm *m, struct trial *t)
{
	const struct arms *a = m->of;

	snprintf(t->title, sizeof(t->title), "%s%s%s", m->group,
		 m->group[0] ? ", " : "", m->name);
	bench_setup(&a->b, t, a->kind->experiment,
		    "arm=%s group=%s check=%s epochs=%llu", m->name, m->group,
		    m->check, (unsigned long long)a->b.spec->epochs);
}

static struct trial trial_of(const struct arms *a, const struct arm *m,
			     bool cold)
{
	struct trial t = { .cold = cold,
			   .head = a->head ? a->head : head,
			   .run = a->run,
			   .arg = m };

	(a->describe ? a->describe : describe)(m, &t);
	return t;
}

static int run_arm(struct arms *a, const struct arm *m, unsigned repeat,
		   bool cold)
{
	struct trial t = trial_of(a, m, cold);
	struct pen_line row;
	int rc;

	t.repeat = repeat;
	rc = bench_trial(&a->b, &t, &row);
	if (rc < 0 && row.n) { /* else it was there before */
		if (a->row)
			a->row(a, m, &row);
		rc = keep(a, &row);
	} else if (rc >= 0 && m->may_fail) {
		a->failed = true; /* it was said why */
		rc = -1;
	}
	return interrupted() ? 128 + interrupted() : rc;
}

/* Is the arm run from a cold cache, or a warm one? */
static bool is_run(const struct arms *a, const struct arm *m, bool cold)
{
	if (m->as_it_is)
		return !cold;
	return cold ? a->b.cold : a->b.warm;
}

static int run_all(struct arms *a)
{
	int rc = -1;

	/* repeats outside: what the machine does meanwhile hits all alike */
	for (unsigned r = 0; rc < 0 && r < a->b.repeats; r++)
		for (size_t i = 0; rc < 0 && i < 2 * a->n; i++)
			if (is_run(a, &a->arm[i / 2], i % 2 == 0))
				rc = run_arm(a, &a->arm[i / 2], r, i % 2 == 0);
	return rc;
}

/* ---- the table ---- */

static void print_words(const struct pen_arms *found)
{
	struct pen_text t = { 0 };
	char *p, *end;

	pen__arms_words(&t, found);
	for (p = t.n ? t.p : NULL; p && *p; p = end ? end + 1 : NULL) {
		end = strchr(p, '\n');
		if (end)
			*end = '\0';
		/* where sentences are long, with space between them */
		printf("%s  ", found->kind->versus || p == t.p ? "\n" : "");
		print_wrapped(stdout, p, 2, 2);
	}
	pen__text_fini(&t);
}

static int print_all(struct arms *a, const struct pen_line *const *row,
		     size_t n)
{
	struct pen_text out = { 0 };
	struct pen_err err = { 0 };
	struct pen_arms found;
	size_t nwrong;

	if (pen__arms_init(&found, a->kind, row, n, &err))
		return complain(&err);
	pen__arms_print(&out, &found);
	/* rows may be of others: with --resume they are read from a file */
	if (!a->b.json && out.n)
		print_lines(out.p);
	if (!a->b.json)
		print_words(&found);
	if (out.failed)
		pen__fail_nomem(&err, "table", out.n);
	nwrong = found.nwrong;
	pen__text_fini(&out);
	pen__arms_fini(&found);
	if (err.code)
		return complain(&err);
	if (!nwrong)
		return -1;
	fprintf(stderr,
		"penstock: %s: other samples than there should have been, so "
		"no rate is shown\n",
		counted(nwrong, "arm"));
	return EXIT_DATA;
}

/* Rows of these arms: the file may have others. */
static size_t gather(const struct arms *a, const struct pen_line **row)
{
	const struct pen_lines *all = &a->b.rows;
	size_t n = 0;

	for (size_t i = 0; i < 2 * a->n; i++) {
		const struct arm *m = &a->arm[i / 2];
		struct trial t;

		if (!is_run(a, m, i % 2 == 0))
			continue;
		t = trial_of(a, m, i % 2 == 0);
		for (size_t k = 0; k < all->n && n < all->n; k++)
			if (!strcmp(pen__line_text(&all->row[k], "setup"),
				    t.setup))
				row[n++] = &all->row[k];
	}
	return n;
}

static int show(struct arms *a)
{
	const struct pen_line **row;
	struct pen_err err = { 0 };
	size_t n;
	int rc = -1;

	if (!a->kind->columns || !a->b.rows.n)
		return -1;
	row = pen__alloc(a->b.rows.n, sizeof(const struct pen_line *));
	if (!row) {
		pen__fail_nomem(&err, "rows", a->b.rows.n * sizeof(*row));
		return complain(&err);
	}
	n = gather(a, row);
	if (n)
		rc = print_all(a, row, n);
	pen__free(row);
	return rc;
}

static int run(struct arms *a)
{
	int rc, said = -1;

	for (size_t i = 0; i < 2 * a->n; i++)
		if (is_run(a, &a->arm[i / 2], i % 2 == 0))
			a->b.ntrials += a->b.repeats;
	rc = run_all(a);
	if (rc < 0 && a->finish)
		said = a->finish(a);
	else if (rc < 0 || rc >= 128)
		said = show(a);
	if (rc < 0 && said < 0 && a->failed)
		said = EXIT_FAILED;
	/* what is wrong does not hide where the rows are */
	rc = bench_end(&a->b, rc);
	return rc || said < 0 ? rc : said;
}

/* ---- the command ---- */

static int init(struct arms *a)
{
	static char out[64];
	struct pen_err err = { 0 };
	int rc;

	snprintf(out, sizeof(out), "%s.jsonl", a->kind->experiment);
	rc = bench_init(&a->b, out);
	if (rc >= 0)
		return rc;
	if (a->kind->columns)
		a->b.repeats = DEFAULT_REPEATS;
	a->b.any_order = a->any_order;
	a->made.nsamples = DEFAULT_SAMPLES;
	a->shape = a->shape ? a->shape : "32x32";
	a->dtype = "float32";
	if (a->preset.key &&
	    pen_spec_set(a->b.spec, a->preset.key, a->preset.value, &err))
		return complain(&err);
	return -1;
}

int arms_main(struct arms *a, int argc, char **argv)
{
	struct args arg = { .cmd = a->cmd, .argc = argc, .argv = argv };
	int kind, rc = init(a);

	while (rc < 0 && (kind = args_next(&arg)) != ARG_END)
		rc = kind == ARG_BAD ? EXIT_USAGE : a->take(a, &arg, kind);
	if (rc < 0)
		rc = a->prepare(a);
	if (rc < 0)
		rc = run(a);
	if (a->folder[0])
		remove_tree(a->folder);
	pen__free(a->arm);
	bench_close(&a->b);
	return rc;
}
