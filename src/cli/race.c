/*
 * Arms: arguments, data, the runs and the check. Every run is a process of its
 * own; a Python arm is one more below it. What an arm delivered is compared
 * with what there is before any figure is written.
 */
#include "cli/race.h"

#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/team.h"
#include "cli/race_print.h"
#include "engine/spec.h"
#include "experiment/steps.h"

#define MOST_WORKERS 256
#define MOST_MADE ((uint64_t)1 << 34) /* bytes */

/* ---- arguments ---- */

void race_default(struct race_list *l, const double *v, size_t n)
{
	if (l->n)
		return;
	l->n = n;
	for (size_t i = 0; i < n; i++)
		l->v[i] = v[i];
}

/* "0,5,50"; every value is multiplied. */
static int take_list(const struct args *a, double times, double most,
		     struct race_list *l)
{
	const char *p = a->value;

	l->n = 0;
	do {
		char *end;
		const double v = strtod(p, &end);

		if (end == p || !(v >= 0) || v > most || l->n == RACE_VALUES ||
		    (*end && *end != ','))
			return complain_usage("bench: %s: '%s' is not a list "
					      "of numbers, as 5,50",
					      a->key, a->value);
		l->v[l->n++] = v * times;
		p = *end ? end + 1 : end;
	} while (*p);
	return -1;
}

static int take_count(const struct args *a, uint64_t most, uint64_t *to)
{
	if (pen__parse_size(a->value, to) || !*to || *to > most)
		return complain_usage("bench: %s: '%s' does not do", a->key,
				      a->value);
	return -1;
}

static int take_flag(struct race *r, const struct args *a)
{
	const char *k = a->key;

	if (!strcmp(k, "--load"))
		return take_list(a, 1e-3, 1e5, &r->load);
	if (!strcmp(k, "--compute"))
		return take_list(a, 1e-3, 1e5, &r->compute);
	if (!strcmp(k, "--workers"))
		return take_list(a, 1, MOST_WORKERS, &r->workers);
	if (!strcmp(k, "--rows"))
		return take_list(a, 1, 1e9, &r->rows);
	if (!strcmp(k, "--length"))
		return take_list(a, 1, 1e6, &r->length);
	if (!strcmp(k, "--batch"))
		return take_count(a, 1 << 20, &r->batch);
	if (!strcmp(k, "--steps"))
		return take_count(a, 1 << 24, &r->steps);
	if (!strcmp(k, "--columns"))
		return take_count(a, 1 << 20, &r->cols);
	if (!strcmp(k, "--block"))
		return take_count(a, 1 << 30, &r->block);
	if (!strcmp(k, "--shuffle"))
		r->shuffle = true;
	else if (!strcmp(k, "--python"))
		r->python = a->value;
	else
		return bench_arg(&r->b, a, ARG_FLAG);
	return -1;
}

static int take_arg(struct race *r, const struct args *a, int kind)
{
	if (kind == ARG_BAD)
		return EXIT_USAGE;
	if (kind == ARG_FLAG)
		return take_flag(r, a);
	if (kind == ARG_SETTING &&
	    (!strcmp(a->key, "batch_size") || !strcmp(a->key, "threads") ||
	     !strcmp(a->key, "epochs")))
		return complain_usage("bench: %s= is what the experiment sets; "
				      "see penstock %s --help",
				      a->key, r->cmd->name);
	if (kind == ARG_PATH && !strchr(r->cmd->args, 'P'))
		return complain_usage("%s: makes its own data; what is '%s'?",
				      r->cmd->name, a->value);
	return bench_arg(&r->b, a, kind);
}

/* ---- Python ---- */

static bool has_module(const char *dir)
{
	char path[4200];

	snprintf(path, sizeof(path), "%s/penstock/__init__.py", dir);
	return !access(path, R_OK);
}

/* Beside the program: in the build's tree, or where it was installed. */
static void find_module(struct race *r)
{
	char exe[2048], pattern[2200];
	const ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	glob_t found;

	if (n <= 0)
		return;
	exe[n] = '\0';
	*strrchr(exe, '/') = '\0';
	snprintf(r->module, sizeof(r->module), "%s/../../python", exe);
	if (has_module(r->module))
		return;
	r->module[0] = '\0';
	snprintf(pattern, sizeof(pattern), "%s/../lib/python3*/dist-packages",
		 exe);
	if (glob(pattern, 0, NULL, &found))
		return;
	for (size_t i = 0; i < found.gl_pathc && !r->module[0]; i++)
		if (has_module(found.gl_pathv[i]))
			snprintf(r->module, sizeof(r->module), "%s",
				 found.gl_pathv[i]);
	globfree(&found);
}

static int probe(struct bench *b, const struct trial *t, struct pen_text *j,
		 struct pen_err *err)
{
	const struct race *r = t->arg;
	struct pen_text q = { .compact = true };
	struct pen_answer a;
	int rc;

	(void)b;
	pen__json_open(&q, NULL, '{');
	pen__json_str(&q, "what", "probe");
	pen__json_str(&q, "module", r->module);
	pen__json_close(&q, '}');
	rc = pen__peer_ask(&r->peer, &q, false, &a, err);
	pen__json_open(j, NULL, '{');
	pen__json_str(j, "why", rc ? err->msg : "");
	pen__json_str(j, "torch", rc ? "" : a.torch);
	pen__json_str(j, "penstock", rc ? "" : a.own);
	pen__json_close(j, '}');
	pen__text_fini(&q);
	return 0;
}

static void without(const struct race *r, const char *what, const char *why)
{
	fprintf(r->b.json ? stderr : stdout, "  Without %s: %s %s\n", what,
		r->python, why);
}

static bool is_npy(const char *path)
{
	const size_t n = strlen(path);
	struct stat st;

	return n > 4 && !strcmp(path + n - 4, ".npy") && !stat(path, &st) &&
	       S_ISREG(st.st_mode);
}

static int look_at_python(struct race *r)
{
	const struct trial t = { .title = "Python", .run = probe, .arg = r };
	struct pen_text out = { 0 };
	struct pen_err err = { 0 };
	struct pen_line row;
	bool oom, nomem;
	int rc;

	r->looked = true;
	if (r->given && !is_npy(r->b.path)) {
		without(r, "PyTorch",
			"is given one .npy file, and this is something else");
		return -1;
	}
	find_module(r);
	if (pen__peer_open(&r->peer, r->python, &err)) {
		without(r, "arms in Python", err.msg);
		return -1;
	}
	rc = trial_run(&r->b, &t, &out, &oom);
	if (rc < 0 && !oom && pen__line_parse(&row, out.p, out.n, &nomem)) {
		const char *why = pen__line_text(&row, "why");

		snprintf(r->has.torch, sizeof(r->has.torch), "%.31s",
			 pen__line_text(&row, "torch"));
		snprintf(r->has.own, sizeof(r->has.own), "%.31s",
			 pen__line_text(&row, "penstock"));
		r->peers = r->has.torch[0];
		if (!r->peers)
			without(r, "arms in Python",
				*why ? why
				     : "has no module torch (Debian: "
				       "python3-torch; or name another with "
				       "--python)");
		else if (!r->has.own[0])
			without(r, "penstock from Python",
				"has no module penstock");
		pen__line_fini(&row);
	}
	pen__text_fini(&out);
	return rc;
}

/* ---- data ---- */

int race_open(struct race *r, const struct command *cmd, int argc, char **argv)
{
	struct args a = { .cmd = cmd, .argc = argc, .argv = argv };
	int kind, rc;

	r->cmd = cmd;
	r->name = strchr(cmd->name, ' ') + 1;
	r->python = "/usr/bin/python3";
	snprintf(r->out, sizeof(r->out), "%s.jsonl", r->name);
	rc = bench_init(&r->b, r->out);
	r->b.repeats = 3;
	while (rc < 0 && (kind = args_next(&a)) != ARG_END)
		rc = take_arg(r, &a, kind);
	if (rc < 0 && r->b.spec->npaths) {
		r->given = true;
		rc = bench_open(&r->b);
	} else if (rc < 0) {
		snprintf(r->b.path, sizeof(r->b.path), "generated");
		snprintf(r->b.format, sizeof(r->b.format), "float32");
		rc = bench_open_rows(&r->b);
	}
	return rc;
}

static int make_dir(char *dir, size_t cap)
{
	const char *tmp = getenv("TMPDIR");
	struct pen_err err = { 0 };

	snprintf(dir, cap, "%.200s/penstock-bench.XXXXXX",
		 tmp && *tmp ? tmp : "/tmp");
	if (mkdtemp(dir))
		return -1;
	pen__fail_sys(&err, errno, dir, "cannot be made");
	dir[0] = '\0';
	return complain(&err);
}

/* What the first batches of the user's data add up to. */
static int count_given(struct bench *b, const struct trial *t,
		       struct pen_text *j, struct pen_err *err)
{
	const struct race_point *p = t->arg;
	struct pen_steps s = { .spec = b->spec,
			       .steps = p->cached ? p->cached : p->steps,
			       .batch = p->batch,
			       .threads = pen__cpus() };
	int rc = pen__steps_run(&s, err);
	char sum[32];

	snprintf(sum, sizeof(sum), "%llu",
		 (unsigned long long)(s.tally.sum *
				      (p->cached ? p->steps / p->cached : 1)));
	pen__json_open(j, NULL, '{');
	pen__json_str(j, "sum", sum);
	pen__json_close(j, '}');
	return rc;
}

static int want_given(struct race *r, struct race_point *p)
{
	const struct trial t = { .title = "counting",
				 .run = count_given,
				 .arg = p };
	struct pen_text out = { 0 };
	struct pen_line row;
	bool oom, nomem;
	int rc = trial_run(&r->b, &t, &out, &oom);

	if (rc < 0 && (oom || !pen__line_parse(&row, out.p, out.n, &nomem)))
		rc = EXIT_FAILED;
	pen__text_fini(&out);
	if (rc >= 0)
		return rc;
	snprintf(p->want_sum, sizeof(p->want_sum), "%.31s",
		 pen__line_text(&row, "sum"));
	pen__line_fini(&row);
	return -1;
}

static int use_given(struct race *r, struct race_point *p)
{
	const uint64_t most = (uint64_t)r->b.samples / p->batch;

	if (p->steps > most)
		p->steps = most;
	if (p->cached && p->steps > p->cached)
		p->steps -= p->steps % p->cached;
	if (p->cached > p->steps)
		p->cached = p->steps;
	if (!p->steps)
		return complain_usage(
			"%s: %s samples are not one batch of %s", r->cmd->name,
			grouped((uint64_t)r->b.samples), grouped(p->batch));
	snprintf(p->path, sizeof(p->path), "%s", r->b.path);
	p->rows = (uint64_t)r->b.samples;
	p->cols = (uint64_t)r->b.ncols;
	p->want_samples = p->steps * p->batch;
	return want_given(r, p);
}

static uint64_t made_sum(uint64_t rows, uint64_t cols)
{
	double sum = 0;

	for (uint64_t i = 0; i < rows; i++)
		for (uint64_t k = 0; k < cols; k++)
			sum += (double)pen__made_value(i, k);
	return (uint64_t)sum;
}

/* The file is made once for all points of so many rows. */
static int make_file(const struct race_point *p)
{
	struct pen_err err = { 0 };
	uint64_t sum;

	if (!access(p->path, R_OK))
		return -1;
	if (pen__made_write(p->path, p->rows, p->cols, 0, &sum, &err))
		return complain(&err);
	return -1;
}

int race_data(struct race *r, struct race_point *p, uint64_t rows)
{
	const uint64_t part = p->cached ? p->cached : p->steps;
	int rc = -1;

	if (r->given)
		return use_given(r, p);
	p->rows = rows;
	p->cols = r->cols;
	p->want_samples = p->steps * p->batch;
	if (p->batch > pen__made_most(p->cols))
		return complain_usage("%s: --batch and --columns are too "
				      "large together: %s rows at most",
				      r->cmd->name,
				      grouped(pen__made_most(p->cols)));
	if (!rows || rows > MOST_MADE / 4 / p->cols)
		return complain_usage("%s: data of %s rows x %s columns is not "
				      "made",
				      r->cmd->name, grouped(rows),
				      grouped(p->cols));
	if (!r->made_dir[0])
		rc = make_dir(r->made_dir, sizeof(r->made_dir));
	if (rc >= 0)
		return rc;
	snprintf(p->path, sizeof(p->path), "%s/%llu.npy", r->made_dir,
		 (unsigned long long)rows);
	snprintf(p->want_sum, sizeof(p->want_sum), "%llu",
		 (unsigned long long)(made_sum(part * p->batch, p->cols) *
				      (p->steps / part)));
	if ((double)rows > r->b.samples) {
		r->b.samples = (double)rows;
		r->b.ncols = (double)p->cols;
		r->b.bytes = (double)(rows * p->cols * 4);
		r->b.objects = 1;
	}
	return make_file(p);
}

static int add(struct race *r, const struct race_point *p, const char *arm)
{
	struct race_point *more =
		pen__realloc(r->point, r->npoints + 1, sizeof(*more));
	struct pen_err err = { 0 };

	if (!more) {
		pen__fail_nomem(&err, "arms", sizeof(*more));
		return complain(&err);
	}
	r->point = more;
	more[r->npoints] = *p;
	snprintf(more[r->npoints].arm, sizeof(more->arm), "%s", arm);
	r->npoints++;
	return -1;
}

int race_add(struct race *r, const struct race_point *p, const char *arm)
{
	return add(r, p, arm);
}

int race_add_python(struct race *r, const struct race_point *p, const char *arm,
		    bool own)
{
	struct race_point mine = *p;
	int rc = r->looked ? -1 : look_at_python(r);

	if (rc >= 0)
		return rc;
	if (!r->peers || (own && !r->has.own[0]))
		return -1;
	mine.python = true;
	mine.own = own;
	return add(r, &mine, arm);
}

/* ---- a run ---- */

struct done { /* of either language */
	uint64_t samples, base, peak;
	char sum[32];
	double seconds, step_s, wait_s;
};

static void head(struct pen_text *j, const struct trial *t)
{
	const struct race_point *p = t->arg;

	pen__json_str(j, "experiment", t->kind);
	pen__json_str(j, "arm", p->arm);
	pen__json_str(j, "language", p->python ? "Python" : "C");
	if (p->has_workers)
		pen__json_int(j, "workers", p->workers);
	if (p->length) {
		pen__json_int(j, "length", p->length);
		pen__json_int(j, "block_bytes", p->block);
		return;
	}
	pen__json_int(j, "rows", p->rows);
	pen__json_int(j, "cols", p->cols);
	pen__json_int(j, "batch", p->batch);
	pen__json_int(j, "steps", p->steps);
	pen__json_bool(j, "shuffle", p->shuffle);
	pen__json_num(j, "load_s", p->load_s);
	pen__json_num(j, "compute_s", p->compute_s);
	if (p->load[0])
		pen__json_str(j, "load", p->load);
}

static int run_steps(const struct race *r, const struct race_point *p,
		     struct done *d, struct pen_err *err)
{
	struct pen_steps s = { .steps = p->steps,
			       .batch = p->batch,
			       .threads = p->workers,
			       .cached = strstr(p->arm, "cached") ? p->cached
								  : 0,
			       .load_s = p->load_s,
			       .compute_s = p->compute_s,
			       .shuffle = p->shuffle,
			       .memory = p->memory,
			       .done = &r->b.watch->done,
			       .tally.floats = !r->given };
	struct pen_spec *spec;
	int rc = pen__spec_copy(&spec, r->b.spec, err);

	if (rc)
		return rc;
	if (!r->given)
		rc = pen_spec_add_path(spec, p->path, err);
	atomic_store(&r->b.watch->total, p->steps);
	s.spec = spec;
	if (!rc)
		rc = pen__steps_run(&s, err);
	*d = (struct done){ .samples = s.tally.samples,
			    .base = s.base_bytes,
			    .peak = s.peak_bytes,
			    .seconds = s.seconds,
			    .step_s = s.step_s,
			    .wait_s = s.wait_s };
	snprintf(d->sum, sizeof(d->sum), "%llu",
		 (unsigned long long)s.tally.sum);
	pen_spec_free(spec);
	return rc;
}

static int run_fill(const struct race_point *p, struct done *d,
		    struct pen_err *err)
{
	struct pen_blocks_job q = { .length = p->length,
				    .block_bytes = p->block,
				    .reuse = strstr(p->arm, "reused") };
	int rc = pen__blocks_fill(&q, err);

	d->samples = q.tally.samples;
	d->seconds = q.seconds;
	snprintf(d->sum, sizeof(d->sum), "%llu",
		 (unsigned long long)q.tally.sum);
	return rc;
}

static void put_request(struct pen_text *q, const struct race *r,
			const struct race_point *p)
{
	q->compact = true;
	pen__json_open(q, NULL, '{');
	pen__json_str(q, "what", p->length ? "assemble" : "steps");
	pen__json_str(q, "arm", p->arm);
	pen__json_str(q, "module", r->module);
	pen__json_str(q, "path", p->path);
	pen__json_int(q, "batch", p->batch);
	pen__json_int(q, "workers", p->workers);
	pen__json_int(q, "steps", p->steps);
	pen__json_int(q, "cached", strstr(p->arm, "cached") ? p->cached : 0);
	pen__json_int(q, "length", p->length);
	pen__json_int(q, "block_bytes", p->block);
	pen__json_num(q, "load_s", p->load_s);
	pen__json_num(q, "compute_s", p->compute_s);
	pen__json_bool(q, "shuffle", p->shuffle);
	pen__json_bool(q, "memory", p->memory);
	pen__json_bool(q, "floats", !r->given);
	pen__json_close(q, '}');
}

static int run_python(const struct race *r, const struct race_point *p,
		      struct done *d, struct pen_err *err)
{
	struct pen_text q = { 0 };
	struct pen_answer a;
	int rc;

	put_request(&q, r, p);
	rc = pen__peer_ask(&r->peer, &q, p->memory, &a, err);
	pen__text_fini(&q);
	*d = (struct done){ .samples = a.samples,
			    .base = a.base_bytes,
			    .peak = a.peak_bytes,
			    .seconds = a.seconds,
			    .step_s = a.step_s,
			    .wait_s = a.wait_s };
	snprintf(d->sum, sizeof(d->sum), "%s", a.sum);
	return rc;
}

static void put_figures(struct pen_text *j, const struct race_point *p,
			const struct done *d)
{
	const double bytes = (double)p->length * (double)p->block;

	pen__json_num(j, "seconds", d->seconds);
	if (p->length) {
		pen__json_num(j, "bytes_per_s",
			      d->seconds > 0 ? bytes / d->seconds : 0);
		return;
	}
	pen__json_num(j, "step_s", d->step_s);
	pen__json_num(j, "wait_s", d->wait_s);
	pen__json_num(j, "samples_per_s",
		      d->seconds > 0 ? (double)d->samples / d->seconds : 0);
	if (p->memory && d->peak) {
		pen__json_int(j, "pss_base_bytes", d->base);
		pen__json_int(j, "pss_peak_bytes", d->peak);
	}
}

static int run_point(struct bench *b, const struct trial *t, struct pen_text *j,
		     struct pen_err *err)
{
	const struct race *r = (const struct race *)b; /* b is its first */
	const struct race_point *p = t->arg;
	struct done d = { 0 };
	bool wrong;
	int rc = p->python   ? run_python(r, p, &d, err)
		 : p->length ? run_fill(p, &d, err)
			     : run_steps(r, p, &d, err);

	if (rc)
		return rc;
	wrong = d.samples != p->want_samples || strcmp(d.sum, p->want_sum);
	pen__json_int(j, "n_samples", d.samples);
	pen__json_str(j, "content_sum", d.sum);
	pen__json_int(j, "wanted_samples", p->want_samples);
	pen__json_str(j, "wanted_sum", p->want_sum);
	pen__json_bool(j, "wrong", wrong);
	if (!wrong)
		put_figures(j, p, &d);
	return 0;
}

/* ---- all of them ---- */

static int keep(struct race *r, struct pen_line *row)
{
	struct pen_line *more =
		pen__realloc(r->results.row, r->results.n + 1, sizeof(*more));
	struct pen_err err = { 0 };

	if (!more) {
		pen__line_fini(row);
		pen__fail_nomem(&err, "rows", sizeof(*more));
		return complain(&err);
	}
	r->results.row = more;
	more[r->results.n++] = *row;
	r->wrong = r->wrong || pen__line_true(row, "wrong");
	return -1;
}

static int run_one(struct race *r, const struct race_point *p, unsigned repeat)
{
	struct trial t = { .repeat = repeat,
			   .head = head,
			   .run = run_point,
			   .kind = r->name,
			   .arg = p };
	struct pen_line row;
	int rc;

	snprintf(t.title, sizeof(t.title), "%s", p->arm);
	bench_setup(&r->b, &t, r->name,
		    "arm=%s workers=%llu rows=%llu cols=%llu batch=%llu "
		    "steps=%llu length=%llu block=%llu load=%g compute=%g "
		    "shuffle=%d",
		    p->arm, (unsigned long long)p->workers,
		    (unsigned long long)p->rows, (unsigned long long)p->cols,
		    (unsigned long long)p->batch, (unsigned long long)p->steps,
		    (unsigned long long)p->length, (unsigned long long)p->block,
		    p->load_s, p->compute_s, p->shuffle);
	rc = bench_trial(&r->b, &t, &row);
	if (interrupted())
		rc = 128 + interrupted();
	else if (rc >= 0 && p->python) {
		r->failed = true; /* it was said why; the others go on */
		rc = -1;
	}
	if (rc < 0 && row.n)
		return keep(r, &row);
	pen__line_fini(&row);
	return rc;
}

static void remove_made(struct race *r)
{
	for (size_t i = 0; r->made_dir[0] && i < r->npoints; i++)
		if (!strncmp(r->point[i].path, r->made_dir,
			     strlen(r->made_dir)))
			unlink(r->point[i].path);
	if (r->made_dir[0] && rmdir(r->made_dir))
		fprintf(stderr, "penstock: %s: not removed: %s\n", r->made_dir,
			strerror(errno));
}

int race_end(struct race *r, int rc)
{
	const bool ready = rc < 0;

	r->b.ntrials = r->npoints * r->b.repeats;
	for (unsigned k = 0; rc < 0 && k < r->b.repeats; k++)
		for (size_t i = 0; rc < 0 && i < r->npoints; i++)
			rc = run_one(r, &r->point[i], k);
	pen__peer_close(&r->peer);
	remove_made(r);
	if (ready && (rc < 0 || rc >= 128) && !r->b.json)
		race_print(r);
	if (r->b.start_ns)
		rc = bench_end(&r->b, rc);
	if (!rc && r->wrong)
		rc = EXIT_DATA;
	else if (!rc && r->failed)
		rc = EXIT_FAILED;
	pen__lines_fini(&r->results);
	pen__free(r->point);
	bench_close(&r->b);
	return rc;
}
