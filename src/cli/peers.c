/*
 * Penstock and others: arguments, Python, data, and one arm. Every run is a
 * process of its own; a Python arm is one more below it. What an arm delivered
 * is compared with what there is before any figure is written.
 */
#include "cli/peers.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/team.h"
#include "engine/spec.h"
#include "experiment/steps.h"

#define MOST_WORKERS 256
#define MOST_MADE ((uint64_t)1 << 34) /* bytes */

/* ---- arguments ---- */

/* "0,5,50"; every value is multiplied. */
static int take_list(const struct args *a, double times, double most,
		     struct peer_list *l)
{
	const char *p = a->value;

	l->n = 0;
	do {
		char *end;
		const double v = strtod(p, &end);

		if (end == p || !(v >= 0) || v > most || l->n == PEER_VALUES ||
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

static int take_flag(struct peers *r, const struct args *a)
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
		return bench_arg(&r->a.b, a, ARG_FLAG);
	return -1;
}

static int take_arg(struct arms *arms, struct args *a, int kind)
{
	struct peers *r = (struct peers *)(void *)arms;

	if (kind == ARG_FLAG)
		return take_flag(r, a);
	if (kind == ARG_SETTING &&
	    (!strcmp(a->key, "batch_size") || !strcmp(a->key, "threads") ||
	     !strcmp(a->key, "epochs")))
		return complain_usage("bench: %s= is what the experiment sets; "
				      "see penstock %s --help",
				      a->key, r->a.cmd->name);
	if (kind == ARG_PATH && !strchr(r->a.cmd->args, 'P'))
		return complain_usage("%s: makes its own data; what is '%s'?",
				      r->a.cmd->name, a->value);
	return bench_arg(&r->a.b, a, kind);
}

/* ---- Python ---- */

static bool has_module(const char *dir)
{
	char path[4200];

	snprintf(path, sizeof(path), "%s/penstock/__init__.py", dir);
	return !access(path, R_OK);
}

/* Beside the program: in the build's tree, or where it was installed. */
static void find_module(struct peers *r)
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
	const struct peers *r = t->arg;
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

static void without(const struct peers *r, const char *what, const char *why)
{
	fprintf(r->a.b.json ? stderr : stdout, "  Without %s: %s %s\n", what,
		shown(r->python), shown(why));
}

static bool is_npy(const char *path)
{
	const size_t n = strlen(path);
	struct stat st;

	return n > 4 && !strcmp(path + n - 4, ".npy") && !stat(path, &st) &&
	       S_ISREG(st.st_mode);
}

static void found(struct peers *r, const struct pen_line *row)
{
	const char *why = pen__line_text(row, "why");

	snprintf(r->has.torch, sizeof(r->has.torch), "%.31s",
		 pen__line_text(row, "torch"));
	snprintf(r->has.own, sizeof(r->has.own), "%.31s",
		 pen__line_text(row, "penstock"));
	r->others = r->has.torch[0];
	if (!r->others)
		without(r, "arms in Python",
			*why ? why
			     : "has no module torch (Debian: python3-torch; or "
			       "name another with --python)");
	else if (!r->has.own[0])
		without(r, "penstock from Python", "has no module penstock");
}

static int look_at_python(struct peers *r)
{
	const struct trial t = { .title = "Python", .run = probe, .arg = r };
	struct pen_err err = { 0 };
	struct pen_line row;
	int rc;

	r->looked = true;
	if (r->given && !is_npy(r->a.b.path)) {
		without(r, "PyTorch",
			"is given one .npy file, and this is something else");
		return -1;
	}
	find_module(r);
	if (pen__peer_open(&r->peer, r->python, &err)) {
		without(r, "arms in Python", err.msg);
		return -1;
	}
	rc = trial_row(&r->a.b, &t, &row);
	if (rc < 0) {
		found(r, &row);
		pen__line_fini(&row);
	}
	return rc;
}

/* ---- data ---- */

static int prepare(struct arms *a)
{
	struct peers *r = (struct peers *)(void *)a;
	int rc;

	r->given = a->b.spec->npaths;
	if (r->given) {
		rc = bench_open(&a->b);
	} else {
		snprintf(a->b.path, sizeof(a->b.path), "generated");
		snprintf(a->b.format, sizeof(a->b.format), "float32");
		rc = bench_open_rows(&a->b);
	}
	return rc < 0 ? r->add(r) : rc;
}

/* What the first batches of the user's data add up to. */
static int count_given(struct bench *b, const struct trial *t,
		       struct pen_text *j, struct pen_err *err)
{
	const struct peer_point *p = t->arg;
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

static int want_given(struct peers *r, struct peer_point *p)
{
	const struct trial t = { .title = "counting",
				 .run = count_given,
				 .arg = p };
	struct pen_line row;
	const int rc = trial_row(&r->a.b, &t, &row);

	if (rc >= 0)
		return rc;
	snprintf(p->want_sum, sizeof(p->want_sum), "%.31s",
		 pen__line_text(&row, "sum"));
	pen__line_fini(&row);
	return -1;
}

static int use_given(struct peers *r, struct peer_point *p)
{
	const uint64_t most = (uint64_t)r->a.b.samples / p->batch;

	if (p->steps > most)
		p->steps = most;
	if (p->cached && p->steps > p->cached)
		p->steps -= p->steps % p->cached;
	if (p->cached > p->steps)
		p->cached = p->steps;
	if (!p->steps)
		return complain_usage("%s: %s samples are not one batch of %s",
				      r->a.cmd->name,
				      grouped((uint64_t)r->a.b.samples),
				      grouped(p->batch));
	snprintf(p->path, sizeof(p->path), "%s", r->a.b.path);
	p->rows = (uint64_t)r->a.b.samples;
	p->cols = (uint64_t)r->a.b.ncols;
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
static int make_file(const struct peer_point *p)
{
	struct pen_err err = { 0 };
	uint64_t sum;

	if (!access(p->path, R_OK))
		return -1;
	if (pen__made_write(p->path, p->rows, p->cols, 0, &sum, &err))
		return complain(&err);
	return -1;
}

int peers_data(struct peers *r, struct peer_point *p, uint64_t rows)
{
	const uint64_t part = p->cached ? p->cached : p->steps;
	int rc;

	if (r->given)
		return use_given(r, p);
	p->rows = rows;
	p->cols = r->cols;
	p->want_samples = p->steps * p->batch;
	if (p->batch > pen__made_most(p->cols))
		return complain_usage("%s: --batch and --columns are too "
				      "large together: %s rows at most",
				      r->a.cmd->name,
				      grouped(pen__made_most(p->cols)));
	if (!rows || rows > MOST_MADE / 4 / p->cols)
		return complain_usage("%s: data of %s rows x %s columns is not "
				      "made",
				      r->a.cmd->name, grouped(rows),
				      grouped(p->cols));
	rc = arms_folder(&r->a);
	if (rc >= 0)
		return rc;
	snprintf(p->path, sizeof(p->path), "%s/%llu.npy", r->a.folder,
		 (unsigned long long)rows);
	snprintf(p->want_sum, sizeof(p->want_sum), "%llu",
		 (unsigned long long)(made_sum(part * p->batch, p->cols) *
				      (p->steps / part)));
	if ((double)rows > r->a.b.samples) {
		r->a.b.samples = (double)rows;
		r->a.b.ncols = (double)p->cols;
		r->a.b.bytes = (double)(rows * p->cols * 4);
		r->a.b.objects = 1;
	}
	return make_file(p);
}

int peers_add(struct peers *r, const struct peer_point *p, const char *name)
{
	struct peer_point *more =
		pen__realloc(r->point, r->a.n + 1, sizeof(*more));
	struct pen_err err = { 0 };
	struct arm *m;

	if (!more) {
		pen__fail_nomem(&err, "arms", sizeof(*more));
		return complain(&err);
	}
	r->point = more;
	more[r->a.n] = *p;
	m = arms_add(&r->a, name, "", r->a.n);
	if (!m)
		return EXIT_FAILED;
	m->as_it_is = true;
	m->may_fail = p->python;
	return -1;
}

int peers_add_python(struct peers *r, const struct peer_point *p,
		     const char *name, bool own)
{
	struct peer_point mine = *p;
	int rc = r->looked ? -1 : look_at_python(r);

	if (rc >= 0)
		return rc;
	if (!r->others || (own && !r->has.own[0]))
		return -1;
	mine.python = true;
	mine.own = own;
	return peers_add(r, &mine, name);
}

/* ---- a run ---- */

struct done { /* of either language */
	uint64_t samples, base, peak;
	char sum[32];
	double seconds, step_s, wait_s;
};

static const struct peers *peers_of(const struct arm *m)
{
	return (const struct peers *)(const void *)m->of;
}

static void head(struct pen_text *j, const struct trial *t)
{
	const struct arm *m = t->arg;
	const struct peer_point *p = &peers_of(m)->point[m->value];

	pen__json_str(j, "experiment", m->of->kind->experiment);
	pen__json_str(j, "arm", m->name);
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

static int run_steps(const struct arm *m, const struct peer_point *p,
		     struct done *d, struct pen_err *err)
{
	const struct peers *r = peers_of(m);
	struct pen_steps s = { .steps = p->steps,
			       .batch = p->batch,
			       .threads = p->workers,
			       .cached = strstr(m->name, "cached") ? p->cached
								   : 0,
			       .load_s = p->load_s,
			       .compute_s = p->compute_s,
			       .shuffle = p->shuffle,
			       .memory = p->memory,
			       .done = &r->a.b.watch->done,
			       .tally.floats = !r->given };
	struct pen_spec *spec;
	int rc = pen__spec_copy(&spec, r->a.b.spec, err);

	if (rc)
		return rc;
	if (!r->given)
		rc = pen_spec_add_path(spec, p->path, err);
	atomic_store(&r->a.b.watch->total, p->steps);
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

static int run_fill(const struct arm *m, const struct peer_point *p,
		    struct done *d, struct pen_err *err)
{
	struct pen_blocks_job q = { .length = p->length,
				    .block_bytes = p->block,
				    .reuse = strstr(m->name, "reused") };
	int rc = pen__blocks_fill(&q, err);

	d->samples = q.tally.samples;
	d->seconds = q.seconds;
	snprintf(d->sum, sizeof(d->sum), "%llu",
		 (unsigned long long)q.tally.sum);
	return rc;
}

static void put_request(struct pen_text *q, const struct arm *m,
			const struct peer_point *p)
{
	const struct peers *r = peers_of(m);

	q->compact = true;
	pen__json_open(q, NULL, '{');
	pen__json_str(q, "what", p->length ? "assemble" : "steps");
	pen__json_str(q, "arm", m->name);
	pen__json_str(q, "module", r->module);
	pen__json_str(q, "path", p->path);
	pen__json_int(q, "batch", p->batch);
	pen__json_int(q, "workers", p->workers);
	pen__json_int(q, "steps", p->steps);
	pen__json_int(q, "cached", strstr(m->name, "cached") ? p->cached : 0);
	pen__json_int(q, "length", p->length);
	pen__json_int(q, "block_bytes", p->block);
	pen__json_num(q, "load_s", p->load_s);
	pen__json_num(q, "compute_s", p->compute_s);
	pen__json_bool(q, "shuffle", p->shuffle);
	pen__json_bool(q, "memory", p->memory);
	pen__json_bool(q, "floats", !r->given);
	pen__json_close(q, '}');
}

static int run_python(const struct arm *m, const struct peer_point *p,
		      struct done *d, struct pen_err *err)
{
	struct pen_text q = { 0 };
	struct pen_answer a;
	int rc;

	put_request(&q, m, p);
	rc = pen__peer_ask(&peers_of(m)->peer, &q, p->memory, &a, err);
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

static void put_figures(struct pen_text *j, const struct peer_point *p,
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

static int run_arm(struct bench *b, const struct trial *t, struct pen_text *j,
		   struct pen_err *err)
{
	const struct arm *m = t->arg;
	const struct peer_point *p = &peers_of(m)->point[m->value];
	struct done d = { 0 };
	bool wrong;
	int rc = p->python   ? run_python(m, p, &d, err)
		 : p->length ? run_fill(m, p, &d, err)
			     : run_steps(m, p, &d, err);

	(void)b;
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

static void describe(const struct arm *m, struct trial *t)
{
	const struct peer_point *p = &peers_of(m)->point[m->value];

	snprintf(t->title, sizeof(t->title), "%s", m->name);
	bench_setup(&m->of->b, t, m->of->kind->experiment,
		    "arm=%s workers=%llu rows=%llu cols=%llu batch=%llu "
		    "steps=%llu length=%llu block=%llu load=%g compute=%g "
		    "shuffle=%d",
		    m->name, (unsigned long long)p->workers,
		    (unsigned long long)p->rows, (unsigned long long)p->cols,
		    (unsigned long long)p->batch, (unsigned long long)p->steps,
		    (unsigned long long)p->length, (unsigned long long)p->block,
		    p->load_s, p->compute_s, p->shuffle);
}

int peers_main(struct peers *r, const struct command *cmd,
	       const struct pen_kind *kind, int argc, char **argv)
{
	int rc;

	r->a.cmd = cmd;
	r->a.kind = kind;
	r->a.take = take_arg;
	r->a.prepare = prepare;
	r->a.head = head;
	r->a.describe = describe;
	r->a.run = run_arm;
	r->python = "/usr/bin/python3";
	rc = arms_main(&r->a, argc, argv);
	pen__peer_close(&r->peer);
	pen__free(r->point);
	return rc;
}
