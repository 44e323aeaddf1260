/* Arms: arguments, data made on the spot, runs in turns, the table. */
#include "cli/arms.h"

#include <errno.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "engine/loader.h"
#include "engine/spec.h"
#include "engine/synth.h"

#define DEFAULT_SAMPLES 10000
#define DEFAULT_REPEATS 3

int arms_init(struct arms *a, const struct command *cmd,
	      const struct pen_way_kind *kind, const char *out)
{
	int rc;

	*a = (struct arms){
		.cmd = cmd, .kind = kind, .shape = "32x32", .dtype = "float32"
	};
	a->made.nsamples = DEFAULT_SAMPLES;
	rc = bench_init(&a->b, out);
	a->b.repeats = DEFAULT_REPEATS;
	a->b.any_order = true;
	return rc;
}

int arms_arg(struct arms *a, const struct args *arg, int kind)
{
	if (kind == ARG_BAD)
		return EXIT_USAGE;
	if (kind != ARG_FLAG)
		return bench_arg(&a->b, arg, kind);
	if (!strcmp(arg->key, "--shape"))
		a->shape = arg->value;
	else if (!strcmp(arg->key, "--dtype"))
		a->dtype = arg->value;
	else if (!strcmp(arg->key, "--dir"))
		a->dir = arg->value;
	else if (strcmp(arg->key, "--samples") != 0)
		return bench_arg(&a->b, arg, kind);
	else if (pen__parse_count(arg->value, &a->made.nsamples) ||
		 !a->made.nsamples || a->made.nsamples > (uint64_t)1 << 40)
		return complain_usage("%s: --samples: '%s' does not do",
				      a->cmd->name, arg->value);
	return -1;
}

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

/* ---- data made on the spot ---- */

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
		      "no folder for data can be made there; see --dir");
	return complain(&err);
}

static int remove_one(const char *path, const struct stat *st, int flag,
		      struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	remove(path); /* what stays is found by its name */
	return 0;
}

static int make_data(struct bench *b, const struct trial *t, struct pen_text *j,
		     struct pen_err *err)
{
	const struct arms *a = t->arg;
	const struct pen_fresh_file file = { .path = b->spec->paths[0],
					     .format = "npy",
					     .n = a->made.nsamples };
	uint64_t sum = 0;
	char hex[24];
	int rc = pen__synth_space(a->folder, a->made.nsamples * a->made.row,
				  err);

	if (!rc)
		rc = pen__fresh_write(&a->made, &file, err);
	if (!rc)
		rc = pen__fresh_sum(&a->made, 0, a->made.nsamples, &sum, err);
	snprintf(hex, sizeof(hex), "%016llx", (unsigned long long)sum);
	pen__json_open(j, NULL, '{');
	pen__json_str(j, "sum", hex);
	pen__json_close(j, '}');
	return rc;
}

static int make_in_child(struct arms *a)
{
	const struct trial t = { .title = "making data",
				 .run = make_data,
				 .arg = a };
	struct pen_text out = { 0 };
	struct pen_line row;
	bool oom, nomem;
	int rc = trial_run(&a->b, &t, &out, &oom);

	if (rc < 0 && (oom || !pen__line_parse(&row, out.p, out.n, &nomem)))
		rc = EXIT_FAILED;
	if (rc < 0) {
		snprintf(a->sum, sizeof(a->sum), "%s",
			 pen__line_text(&row, "sum"));
		pen__line_fini(&row);
	}
	pen__text_fini(&out);
	return rc;
}

int arms_made(struct arms *a)
{
	struct pen_err err = { 0 };

	if (pen__fresh_init(&a->made, a->shape, a->dtype, &err))
		return complain(&err);
	if (a->made.nsamples > UINT64_MAX / 2 / a->made.row)
		return complain_usage("%s: --samples: too many", a->cmd->name);
	a->made.seed = a->b.spec->seed;
	a->is_made = true;
	return arms_folder(a);
}

static int make(struct arms *a)
{
	struct pen_err err = { 0 };
	char path[4096];
	const int rc = arms_made(a);

	if (rc >= 0)
		return rc;
	snprintf(path, sizeof(path), "%s/x.npy", a->folder);
	if (pen_spec_add_path(a->b.spec, path, &err))
		return complain(&err);
	return make_in_child(a);
}

int arms_open(struct arms *a)
{
	int rc = a->b.spec->npaths ? -1 : make(a);

	if (rc < 0)
		rc = bench_open(&a->b);
	/* another folder every time, but the same data */
	if (rc < 0 && a->is_made)
		snprintf(a->b.path, sizeof(a->b.path),
			 "made: %s samples of %.64s %.16s, seed %llu",
			 grouped(a->made.nsamples), a->shape, a->dtype,
			 (unsigned long long)a->made.seed);
	return rc;
}

void arms_close(struct arms *a)
{
	if (a->folder[0])
		nftw(a->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	pen__lines_fini(&a->rows);
	pen__free(a->arm);
	bench_close(&a->b);
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

static int keep(struct arms *a, const struct pen_line *row)
{
	struct pen_line *more =
		pen__realloc(a->rows.row, a->rows.n + 1, sizeof(*more));
	struct pen_err err = { 0 };

	if (!more) {
		pen__fail_nomem(&err, a->cmd->name, sizeof(*more));
		return complain(&err);
	}
	a->rows.row = more;
	more[a->rows.n++] = *row;
	return -1;
}

/* Was left out: the row of before has its place. */
static int keep_before(struct arms *a, const struct trial *t)
{
	unsigned nth = t->repeat;
	int rc = -1;

	for (size_t i = 0; i < a->b.before.n; i++) {
		struct pen_line *r = &a->b.before.row[i];

		if (strcmp(pen__line_text(r, "setup"), t->setup) != 0 || nth--)
			continue;
		rc = keep(a, r);
		if (rc < 0) /* it has moved; an empty one stays */
			*r = (struct pen_line){ 0 };
		break;
	}
	return rc;
}

static int run_arm(struct arms *a, const struct arm *m, unsigned repeat,
		   bool cold)
{
	struct trial t = { .cold = cold,
			   .repeat = repeat,
			   .head = head,
			   .run = a->run,
			   .arg = m };
	struct pen_line row;
	int rc;

	snprintf(t.title, sizeof(t.title), "%s%s%s", m->group,
		 m->group[0] ? ", " : "", m->name);
	bench_setup(&a->b, &t, a->kind->experiment,
		    "arm=%s group=%s check=%s epochs=%llu", m->name, m->group,
		    m->check, (unsigned long long)a->b.spec->epochs);
	rc = bench_trial(&a->b, &t, &row);
	if (rc < 0 && row.n)
		rc = keep(a, &row);
	else if (rc < 0)
		rc = keep_before(a, &t);
	return interrupted() ? 128 + interrupted() : rc;
}

static int run_all(struct arms *a)
{
	int rc = -1;

	/* repeats outside: what the machine does meanwhile hits all alike */
	for (unsigned r = 0; rc < 0 && r < a->b.repeats; r++)
		for (size_t i = 0; rc < 0 && i < a->n; i++) {
			const struct arm *m = &a->arm[i];

			if (a->b.cold && !m->as_it_is)
				rc = run_arm(a, m, r, true);
			if (rc < 0 && (a->b.warm || m->as_it_is))
				rc = run_arm(a, m, r, false);
		}
	return rc;
}

static int print_all(struct arms *a, const struct pen_line *const *row)
{
	struct pen_text out = { 0 };
	struct pen_err err = { 0 };
	struct pen_ways found;
	size_t nwrong;
	int rc = -1;

	if (pen__ways_init(&found, row, a->rows.n, &err))
		return complain(&err);
	pen__ways_print(&out, a->kind, &found);
	nwrong = found.nwrong;
	pen__ways_fini(&found);
	if (out.failed)
		rc = complain((pen__fail_nomem(&err, "table", out.n), &err));
	else if (!a->b.json && out.n)
		fwrite(out.p, 1, out.n, stdout);
	pen__text_fini(&out);
	if (rc < 0 && nwrong) {
		fprintf(stderr,
			"penstock: %s: other samples than there should have "
			"been, so no rate is shown\n",
			counted(nwrong, "arm"));
		return EXIT_DATA;
	}
	return rc;
}

int arms_run(struct arms *a)
{
	const unsigned tempers = (unsigned)(a->b.cold + a->b.warm);
	const struct pen_line **row;
	struct pen_err err = { 0 };
	int rc, said = -1;

	for (size_t i = 0; i < a->n; i++)
		a->b.ntrials +=
			a->b.repeats * (a->arm[i].as_it_is ? 1 : tempers);
	rc = run_all(a);
	row = pen__alloc(a->rows.n + 1, sizeof(const struct pen_line *));
	for (size_t i = 0; row && i < a->rows.n; i++)
		row[i] = &a->rows.row[i];
	if (!row)
		said = complain(
			(pen__fail_nomem(&err, "rows", a->rows.n * 8), &err));
	else if (a->rows.n && (rc < 0 || rc >= 128))
		said = print_all(a, row);
	pen__free(row);
	return bench_end(&a->b, rc < 0 && said >= 0 ? said : rc);
}

/* ---- in a child ---- */

int arms_spec(const struct bench *b, const struct setting *set, size_t n,
	      struct pen_spec **out, struct pen_err *err)
{
	int rc = pen__spec_copy(out, b->spec, err);

	if (rc)
		return rc;
	for (size_t i = 0; !rc && i < n; i++)
		rc = pen_spec_set(*out, set[i].key, set[i].value, err);
	if (rc)
		pen_spec_free(*out);
	return rc;
}

int arms_path(struct pen_spec *s, const char *path, struct pen_err *err)
{
	char *copy = pen__strdup(path);

	if (!copy)
		return pen__fail_nomem(err, path, strlen(path));
	pen__free(s->paths[0]);
	s->paths[0] = copy;
	return 0;
}

/* Every sample of the data, once an epoch, as it is in the files? */
static bool is_whole(const struct pen_spec *s)
{
	static const char *const all[] = {
		"sequential", "shuffle",   "block",
		"census",     "scdataset", "annbatch"
	};
	const char *sampler = pen__spec_sampler(s);

	if (s->subset || s->drop_last || s->tail == PEN_TAIL_DROP ||
	    s->tail == PEN_TAIL_PAD || s->world > 1 || s->epoch_batches)
		return false;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (!sampler || !strcmp(sampler, all[i]))
			return true;
	return false;
}

/* Samples in the first n batches (0: all): each epoch ends with a short one. */
static uint64_t in_batches(uint64_t samples, const struct pen_spec *s,
			   uint64_t n)
{
	const uint64_t each = (samples + s->batch_size - 1) / s->batch_size;
	const uint64_t whole = n && each ? n / each : s->epochs;
	const uint64_t rest = n && each ? n % each : 0;

	if (s->epochs && whole >= s->epochs)
		return s->epochs * samples;
	return whole * samples + rest * s->batch_size;
}

/* What has to come, by the data and not by the loader, where that is clear. */
static void put_expected(const struct arms *a, const struct pen_pass *p,
			 const struct arm *m, struct pen_text *j)
{
	const struct pen_spec *s = p->spec;
	const uint64_t samples = m->samples ? m->samples
					    : (uint64_t)a->b.samples;
	char hex[24];

	if (is_whole(s))
		pen__json_int(j, "expected_rows",
			      in_batches(samples, s, p->max_batches));
	else if (!p->max_batches)
		pen__json_int(j, "expected_rows",
			      atomic_load(&a->b.watch->total));
	if (!a->sum[0] || m->lossy || !is_whole(s) || p->max_batches ||
	    s->cast || s->take.n || !s->decode)
		return;
	snprintf(hex, sizeof(hex), "%016llx",
		 (unsigned long long)s->epochs * strtoull(a->sum, NULL, 16));
	pen__json_str(j, "expected_sum", hex);
}

int arms_pass(struct bench *b, const struct trial *t, struct pen_pass *p,
	      struct pen_text *j, struct pen_err *err)
{
	const struct arm *m = t->arg;
	const struct pen_spec *s = p->spec;
	double nbatches;
	int rc;

	p->content = true;
	p->done = &b->watch->done;
	p->total = &b->watch->total;
	if (p->temper == PEN_AS_IT_IS && !m->as_it_is)
		p->temper = t->cold ? PEN_COLD : PEN_WARM;
	rc = pen__pass_run(p, err);
	if (rc)
		return rc;
	nbatches = p->nbatches ? (double)p->nbatches : 1;
	pen__pass_json(j, p);
	put_expected(m->of, p, m, j);
	pen__json_int(j, "batch", s->batch_size);
	pen__json_num(j, "s_per_batch", p->seconds / nbatches);
	pen__json_num(j, "s_per_sample",
		      p->nsamples ? p->seconds / (double)p->nsamples : 0);
	pen__json_num(j, "wait_share",
		      p->seconds > 0 ? p->wait_s / p->seconds : 0);
	pen__json_num(j, "bytes_per_s",
		      p->seconds > 0
			      ? (double)p->stats.payload_bytes / p->seconds
			      : 0);
	return 0;
}

int arms_pass_with(struct bench *b, const struct trial *t,
		   const struct setting *set, size_t n, struct pen_text *j,
		   struct pen_err *err)
{
	struct pen_pass pass = { .max_batches = b->batches };
	struct pen_spec *s;
	int rc = arms_spec(b, set, n, &s, err);

	if (rc)
		return rc;
	pass.spec = s;
	rc = arms_pass(b, t, &pass, j, err);
	pen__pass_fini(&pass);
	pen_spec_free(s);
	return rc;
}
