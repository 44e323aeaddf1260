/*
 * Trials of an experiment: interleaved repeats of every setup, each in a child
 * process that leaves a row in a file. The parent has no threads, uses little
 * memory and opens no data, so a plain fork is enough.
 */
#include "experiment/harness.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "comm/comm.h"

typedef unsigned long long ull;

/* ---- ranks ---- */

bool pen__run_first(const struct pen_session *r)
{
	return !r->ranks || !r->ranks->comm->rank;
}

bool pen__run_leads(const struct pen_session *r)
{
	return !r->ranks || !r->ranks->comm->local_rank;
}

/* ---- opening and closing ---- */

static void *share(size_t bytes)
{
	void *p = mmap(NULL, bytes + 1, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

int pen__run_open(struct pen_session *r, const struct pen_experiment *x,
		  struct pen_err *err)
{
	int rc;

	*r = (struct pen_session){ .of = x, .made.nsamples = 10000 };
	snprintf(r->name, sizeof(r->name), "%s%.30s",
		 x == &pen__exp_sweep ? "" : "bench ", x->kind.experiment);
	snprintf(r->out_default, sizeof(r->out_default), "%.50s.jsonl",
		 x->kind.experiment);
	r->out = r->out_default;
	r->repeats = 3;
	r->shape = x->shape ? x->shape : "32x32";
	r->dtype = "float32";
	r->own = share(x->own);
	r->value = pen__calloc(x->nflags, sizeof(*r->value));
	r->shared = share(sizeof(*r->shared));
	if (!r->own || !r->value || !r->shared)
		return pen__fail_nomem(err, r->name, sizeof(*r->value));
	rc = pen_spec_new(&r->spec, err);
	if (!rc && x->preset.first)
		rc = pen_spec_set(r->spec, x->preset.first, x->preset.second,
				  err);
	for (const struct pen_flag *f = x->flag; !rc && f < x->flag + x->nflags;
	     f++)
		if (f->preset[0])
			rc = pen__run_take(r, f->name, f->preset, err);
	pen__host(&r->host);
	return rc;
}

void pen__run_close(struct pen_session *r)
{
	const struct pen_experiment *x = r->of;
	struct stat st;

	if (x->close && r->own)
		x->close(r);
	if (r->folder[0] && pen__run_leads(r))
		pen__remove_tree(r->folder);
	if (r->made_out && !r->nadded && !stat(r->out, &st) && !st.st_size)
		unlink(r->out);
	if (r->shared)
		munmap(r->shared, sizeof(*r->shared) + 1);
	if (r->own)
		munmap(r->own, x->own + 1);
	pen_spec_free(r->spec);
	pen__text_fini(&r->settings);
	pen__text_fini(&r->meta);
	pen__text_fini(&r->notes);
	pen__text_fini(&r->warnings);
	pen__lines_fini(&r->rows);
	pen__free(r->setup);
	pen__free(r->value);
}

/* Checks before hours of runs that rows can be written. */
int pen__run_rows_open(struct pen_session *r, struct pen_err *err)
{
	struct stat st;
	int fd, rc = 0;

	if (!r->cold)
		r->warm = true;
	r->start_ns = pen__now_ns();
	if (!pen__run_first(r))
		return 0;
	r->made_out = stat(r->out, &st) && errno == ENOENT;
	fd = open(r->out, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0) {
		r->made_out = false;
		return pen__fail_sys(err, errno, r->out,
				     "cannot open the file of rows");
	}
	close(fd);
	if (r->resume || r->of->kind.by)
		rc = pen__lines_read(&r->rows, r->out, err);
	return rc;
}

/* Rank 0 chooses a name, and the first rank of every host creates it. */
static int share_folder(struct pen_session *r, const char *tmp,
			struct pen_err *err)
{
	uint64_t name = pen__rng_at(pen__now_ns(), (uint64_t)getpid());
	int rc = pen_ranks_broadcast(r->ranks, &name, sizeof(name), 0, err);

	if (rc)
		return rc;
	snprintf(r->folder, sizeof(r->folder), "%s/penstock-bench.%llx.%d", tmp,
		 (ull)name, r->ranks->comm->node);
	if (pen__run_leads(r) && mkdir(r->folder, 0700)) {
		r->folder[0] = '\0';
		rc = pen__fail_sys(err, errno, tmp,
				   "cannot create a directory for data");
	}
	return pen_ranks_agree(r->ranks, rc, err);
}

int pen__run_folder(struct pen_session *r, struct pen_err *err)
{
	const char *tmp = r->dir ? r->dir : getenv("TMPDIR");

	if (r->folder[0])
		return 0;
	tmp = tmp && *tmp ? tmp : "/tmp";
	if (r->ranks)
		return share_folder(r, tmp, err);
	snprintf(r->folder, sizeof(r->folder), "%s/penstock-bench.XXXXXX", tmp);
	if (mkdtemp(r->folder))
		return 0;
	r->folder[0] = '\0';
	return pen__fail_sys(err, errno, tmp,
			     r->dir ? "cannot create a directory for data"
				    : "cannot create a directory for data; set "
				      "TMPDIR to another directory");
}

/* ---- children ---- */

struct call {
	struct pen_session *r;
	const char *title;
	const struct pen_trial *trial; /* writes a row, or: */
	pen_child_fn fn;
	const void *arg;
};

static int run_row(struct pen_session *, const struct pen_trial *,
		   struct pen_text *, struct pen_err *);

static int call(void *arg, struct pen_text *j, struct pen_err *err)
{
	const struct call *c = arg;

	if (c->trial)
		return run_row(c->r, c->trial, j, err);
	pen__text_add(j, "{}");
	return c->fn(c->r, c->arg, err);
}

static void wait_for(void *arg)
{
	const struct call *c = arg;

	if (c->r->on_wait)
		c->r->on_wait(c->r, c->title);
}

static int run_child(struct call *c, struct pen_text *out, struct pen_err *err)
{
	struct pen_process p = { .stop = c->r->stop,
				 .wait = wait_for,
				 .arg = c };
	int rc;

	atomic_store(&c->r->shared->done, 0);
	atomic_store(&c->r->shared->total, 0);
	if (c->r->ranks)
		return pen_ranks_agree(c->r->ranks, call(c, out, err), err);
	rc = pen__process_call(&p, c->title, call, c, out, err);
	if (c->r->on_wait)
		c->r->on_wait(c->r, NULL);
	return rc;
}

int pen__run_child(struct pen_session *r, const char *title, pen_child_fn fn,
		   const void *arg, struct pen_err *err)
{
	struct call c = { .r = r, .title = title, .fn = fn, .arg = arg };
	struct pen_text out = { 0 };
	const int rc = run_child(&c, &out, err);

	if (rc == PEN_ENOMEM && !err->msg[0])
		pen__fail(err, P_NO_MEMORY, title,
			  "killed by the kernel: out of memory");
	pen__text_fini(&out);
	return rc;
}

/* ---- setups ---- */

struct pen_setup *pen__setup_add(struct pen_session *r, const char *name,
				 const char *group, uint64_t value)
{
	static struct pen_setup lost;
	struct pen_setup *s =
		pen__realloc(r->setup, r->n + 1, sizeof(*r->setup));

	r->nomem = r->nomem || !s;
	if (s) {
		r->setup = s;
		s += r->n++;
	} else {
		s = &lost;
	}
	*s = (struct pen_setup){ .value = value };
	snprintf(s->name, sizeof(s->name), "%s", name);
	snprintf(s->group, sizeof(s->group), "%s", group);
	snprintf(s->check, sizeof(s->check), "all");
	return s;
}

void pen__setup_text(const struct pen_session *r, struct pen_trial *t,
		     const char *fmt, ...)
{
	const size_t cap = sizeof(t->setup);
	size_t at = (size_t)snprintf(t->setup, cap, "%s %s cache=%s ",
				     r->of->kind.experiment, r->path,
				     t->cold ? "cold" : "warm");
	va_list ap;

	/* a string that is too long is cut: --resume repeats such runs */
	if (at >= cap)
		return;
	va_start(ap, fmt);
	vsnprintf(t->setup + at, cap - at, fmt, ap);
	va_end(ap);
	at += strlen(t->setup + at);
	snprintf(t->setup + at, cap - at, " batches=%llu%s%s", (ull)r->batches,
		 r->settings.n ? " " : "", r->settings.n ? r->settings.p : "");
}

/* Whether trial i runs; even trials of a setup are cold, odd ones warm. */
static bool is_run(const struct pen_session *r, size_t i)
{
	const bool cold = i % 2 == 0;

	if (r->setup[i / 2].as_it_is)
		return !cold;
	return cold ? r->cold : r->warm;
}

static struct pen_trial trial_of(struct pen_session *r, size_t i,
				 unsigned repeat)
{
	const struct pen_setup *s = &r->setup[i / 2];
	struct pen_trial t = { .cold = i % 2 == 0, .repeat = repeat, .of = s };

	if (r->of->describe) {
		r->of->describe(r, s, &t);
		return t;
	}
	snprintf(t.title, sizeof(t.title), "%s%s%s", s->group,
		 s->group[0] ? ", " : "", s->name);
	pen__setup_text(r, &t, "arm=%s group=%s check=%s epochs=%llu", s->name,
			s->group, s->check,
			(ull)pen_spec_number(r->spec, "epochs"));
	return t;
}

static bool same(const struct pen_line *row, const char *key, const char *text)
{
	return !strcmp(pen__line_text(row, key), text);
}

/* For kinds whose setup string holds only the varied settings: compares the
 * rest. */
static bool is_ours(const struct pen_session *r, const struct pen_line *row)
{
	return same(row, "experiment", r->of->kind.experiment) &&
	       same(row, "path", r->path) && same(row, "host", r->host.name) &&
	       same(row, "settings", r->settings.n ? r->settings.p : "") &&
	       pen__line_true(row, "cold") == r->cold;
}

static bool is_of(const struct pen_session *r, const struct pen_trial *t,
		  const struct pen_line *row)
{
	return same(row, "setup", t->setup) &&
	       (!r->of->kind.by || is_ours(r, row));
}

static bool is_done(const struct pen_session *r, const struct pen_trial *t,
		    uint64_t repeats)
{
	uint64_t n = 0;

	if (strlen(t->setup) + 1 >= sizeof(t->setup))
		return false;
	for (size_t i = 0; i < r->rows.n; i++)
		n += is_of(r, t, &r->rows.row[i]);
	return n >= repeats;
}

const struct pen_line **pen__run_rows(struct pen_session *r, size_t *n)
{
	const struct pen_line **row =
		pen__alloc(r->rows.n + 1, sizeof(const struct pen_line *));

	*n = 0;
	/* a sweep also shows rows of other values */
	for (size_t k = 0; row && r->of->kind.by && k < r->rows.n; k++)
		if (is_ours(r, &r->rows.row[k]))
			row[(*n)++] = &r->rows.row[k];
	for (size_t i = 0; row && !r->of->kind.by && i < 2 * r->n; i++) {
		const struct pen_trial t = trial_of(r, i, 0);

		for (size_t k = 0; k < r->rows.n && *n < r->rows.n; k++)
			if (is_run(r, i) && is_of(r, &t, &r->rows.row[k]))
				row[(*n)++] = &r->rows.row[k];
	}
	return row;
}

/* ---- rows ---- */

static void put_meta(const struct pen_session *r, struct pen_text *j)
{
	const char *p = r->meta.p, *end = p + r->meta.n;

	if (!r->meta.n)
		return;
	pen__json_open(j, "meta", '{');
	while (p < end) {
		const char *value = p + strlen(p) + 1;

		pen__json_str(j, p, value);
		p = value + strlen(value) + 1;
	}
	pen__json_close(j, '}');
}

static void put_data(const struct pen_session *r, struct pen_text *j)
{
	pen__json_str(j, "format", r->shared->format);
	pen__json_str(j, "unit", r->shared->has_output ? "cells" : "samples");
	pen__json_int(j, "bytes", (uint64_t)r->shared->bytes);
	pen__json_int(j, "objects", (uint64_t)r->shared->objects);
	pen__json_int(j, "samples", (uint64_t)r->shared->samples);
	pen__json_int(j, "n_cols", (uint64_t)r->shared->ncols);
}

static void put_setup(const struct pen_session *r, const struct pen_trial *t,
		      struct pen_text *j)
{
	const struct pen_setup *s = t->of;
	char check[192] = "";

	if (r->of->head) {
		r->of->head(j, r, s);
		return;
	}
	if (s->check[0])
		snprintf(check, sizeof(check), "%s batches=%llu epochs=%llu",
			 s->check, (ull)r->batches,
			 (ull)pen_spec_number(r->spec, "epochs"));
	pen__json_str(j, "arm", s->name);
	pen__json_str(j, "group", s->group);
	pen__json_str(j, "check", check);
	pen__json_str(j, "cache", s->as_it_is ? "" : t->cold ? "cold" : "warm");
	pen__json_int(j, "value", s->value);
	pen__json_int(j, "epochs", pen_spec_number(r->spec, "epochs"));
}

static void put_head(const struct pen_session *r, const struct pen_trial *t,
		     struct pen_text *j)
{
	time_t now = time(NULL);
	char when[32] = "";
	struct tm tm;

	if (gmtime_r(&now, &tm))
		strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm);
	pen__json_open(j, NULL, '{');
	pen__json_str(j, "schema", "penstock.bench/1");
	pen__json_str(j, "setup", t->setup);
	pen__json_str(j, "time", when);
	pen__json_str(j, "host", r->host.name);
	pen__json_str(j, "cpu", r->host.cpu);
	pen__json_int(j, "cpus", r->host.cpus);
	pen__json_int(j, "memory_bytes", r->host.memory_bytes);
	pen__json_str(j, "kernel", r->host.kernel);
	pen__json_str(j, "version", pen_version());
	pen__json_str(j, "path", r->path);
	if (!r->of->kind.by)
		put_data(r, j);
	pen__json_str(j, "settings", r->settings.n ? r->settings.p : "");
	/* those of a sweep start at 0 */
	pen__json_int(j, "repeat", t->repeat + !r->of->kind.by);
	pen__json_bool(j, "cold", t->cold);
	put_meta(r, j);
	pen__json_str(j, "experiment", r->of->kind.experiment);
	put_setup(r, t, j);
}

static int keep(struct pen_session *r, struct pen_line *row,
		struct pen_err *err)
{
	struct pen_line *more =
		pen__realloc(r->rows.row, r->rows.n + 1, sizeof(*more));

	if (!more) {
		pen__line_fini(row);
		return pen__fail_nomem(err, r->name, sizeof(*more));
	}
	r->rows.row = more;
	more[r->rows.n++] = *row;
	return 0;
}

/* In the child: writes the complete row. */
static int run_row(struct pen_session *r, const struct pen_trial *t,
		   struct pen_text *j, struct pen_err *err)
{
	struct pen_others others;
	int rc;

	put_head(r, t, j);
	pen__others_start(&others);
	rc = r->of->run ? r->of->run(r, t, j, err)
			: pen__run_pass_with(r, t, NULL, NULL, j, err);
	pen__others_json(j, "others", &others);
	pen__json_bool(j, "oom", false);
	pen__json_close(j, '}');
	return rc;
}

/* Adds a row with oom=true for a child that ran out of memory. */
static int run_trial(struct pen_session *r, const struct pen_trial *t,
		     struct pen_err *err)
{
	struct call c = { .r = r, .title = t->title, .trial = t };
	struct pen_text line = { .compact = true };
	struct pen_line row;
	bool nomem;
	int rc = run_child(&c, &line, err);

	r->at++;
	if (rc == PEN_ENOMEM) {
		/* the other setups still run */
		if (err->msg[0] && r->on_error)
			r->on_error(r, err);
		pen__text_fini(&line);
		line.compact = true;
		put_head(r, t, &line);
		pen__json_bool(&line, "oom", true);
		pen__json_close(&line, '}');
		rc = 0;
	}
	if (!rc && pen__run_first(r))
		rc = pen__lines_append(r->out, &line, err);
	if (!rc && !pen__line_parse(&row, line.p, line.n, &nomem))
		rc = pen__fail_nomem(err, t->title, line.n); /* row written */
	if (!rc) {
		r->nadded++;
		rc = keep(r, &row, err);
		if (!rc && r->on_row)
			r->on_row(r, &line);
	} else if (rc < 0 && t->of->may_fail) {
		if (r->on_error)
			r->on_error(r, err);
		r->failed = true;
		rc = 0;
	}
	pen__text_fini(&line);
	return rc;
}

/* ---- turns ---- */

/* Runs every warm setup once, so that none is slow for being first; not for
 * single runs, which are not compared. Errors are reported by the next run. */
static int warm_up(struct pen_session *r)
{
	int rc = 0;

	for (size_t i = 1; r->repeats > 1 && rc != PEN_END && i < 2 * r->n;
	     i += 2) {
		const struct pen_trial t = trial_of(r, i, 0);
		struct pen_text line = { 0 };
		char title[160];
		struct call c = { .r = r, .title = title, .trial = &t };
		struct pen_err err = { 0 };

		if (!is_run(r, i) ||
		    (r->resume && !r->ranks && is_done(r, &t, r->repeats)))
			continue;
		snprintf(title, sizeof(title), "warm-up, %.90s", t.title);
		rc = run_child(&c, &line, &err);
		pen__text_fini(&line);
	}
	return rc == PEN_END ? rc : 0;
}

static int turn(struct pen_session *r, unsigned repeat, struct pen_err *err)
{
	struct pen_perm order;
	int rc = 0;

	pen__perm_init(&order, r->n, 0, repeat);
	for (size_t i = 0; !rc && i < 2 * r->n; i++) {
		const size_t k =
			r->mixed_order ? 2 * pen__perm_at(&order, i / 2) + i % 2
				       : i;
		const struct pen_trial t = trial_of(r, k, repeat);
		bool done = false;

		if (!is_run(r, k))
			continue;
		if (r->resume) {
			done = is_done(r, &t, (uint64_t)repeat + 1);
			if (r->ranks)
				rc = pen_ranks_broadcast(r->ranks, &done,
							 sizeof(done), 0, err);
		}
		if (rc)
			return rc;
		if (done) {
			r->nskipped++;
			r->at++;
			continue;
		}
		rc = run_trial(r, &t, err);
		if (!rc && r->stop && r->stop(NULL))
			rc = PEN_END;
	}
	return rc;
}

int pen__run_all(struct pen_session *r, struct pen_err *err)
{
	int rc;

	if (r->nomem)
		return pen__fail_nomem(err, r->name, sizeof(*r->setup));
	for (size_t i = 0; i < 2 * r->n; i++)
		r->ntrials += is_run(r, i) ? r->repeats : 0;
	rc = warm_up(r);
	r->start_ns = pen__now_ns();
	/* interleaved, so that other load on the machine affects all alike */
	for (unsigned i = 0; !rc && i < r->repeats; i++)
		rc = turn(r, i, err);
	return rc;
}
