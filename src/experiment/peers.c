/*
 * Penstock and others: Python, data, and one variant. Every run is a process of
 * its own; one in Python is one more below it. What it delivered is compared
 * with what there is before any figure is written.
 */
#include "experiment/peers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/team.h"

#define MOST_MADE ((uint64_t)1 << 34) /* bytes */

typedef unsigned long long ull;

/* ---- Python ---- */

static const char *python_of(const struct pen_session *r)
{
	const char *given = pen__value(r, "--python")->text;

	return given ? given : "/usr/bin/python3";
}

#define MODULE "/penstock/__init__.py"

/* In the build's tree, or where it was installed. */
static void find_module(struct pen_peers *g)
{
	static const char *const places[] = {
		"../../python" MODULE, "../lib/python3*/dist-packages" MODULE,
		NULL
	};
	const bool found = pen__beside(places, g->module, sizeof(g->module));

	g->module[found ? strlen(g->module) - strlen(MODULE) : 0] = '\0';
}

static int probe(struct pen_session *r, const void *arg, struct pen_err *err)
{
	struct pen_peers *g = r->own;
	struct pen_text q = { .compact = true };
	struct pen_peer_answer a;
	int rc;

	(void)arg;
	pen__json_open(&q, NULL, '{');
	pen__json_str(&q, "what", "probe");
	pen__json_str(&q, "module", g->module);
	pen__json_close(&q, '}');
	rc = pen__peer_ask(&g->peer, &q, false, &a, err);
	g->others = !rc && a.torch;
	g->module_there = !rc && a.own;
	snprintf(g->why, sizeof(g->why), "%s",
		 rc ? err->msg
		    : "has no module torch (Debian: python3-torch; or name "
		      "another with --python)");
	pen__text_fini(&q);
	return 0;
}

static void without(struct pen_session *r, const char *what, const char *why)
{
	pen__text_add(r->json ? &r->warnings : &r->notes,
		      "  Without %s: %s %s\n", what, python_of(r), why);
}

static bool is_npy(const char *path)
{
	const size_t n = strlen(path);
	struct stat st;

	return n > 4 && !strcmp(path + n - 4, ".npy") && !stat(path, &st) &&
	       S_ISREG(st.st_mode);
}

static int look_at_python(struct pen_session *r, struct pen_err *err)
{
	struct pen_peers *g = r->own;
	struct pen_err why = { 0 };
	int rc;

	g->looked = true;
	if (g->given && !is_npy(r->path)) {
		without(r, "PyTorch",
			"is given one .npy file, and this is something else");
		return 0;
	}
	find_module(g);
	if (pen__peer_open(&g->peer, python_of(r), &why)) {
		without(r, "variants in Python", why.msg);
		return 0;
	}
	rc = pen__run_child(r, "Python", probe, NULL, err);
	if (!rc && !g->others)
		without(r, "variants in Python", g->why);
	else if (!rc && !g->module_there)
		without(r, "penstock from Python", "has no module penstock");
	return rc;
}

/* ---- data ---- */

int pen__peers_open(struct pen_session *r, struct pen_err *err)
{
	struct pen_peers *g = r->own;

	g->given = pen_spec_path(r->spec, 0);
	if (g->given)
		return pen__run_data(r, err);
	snprintf(r->path, sizeof(r->path), "generated");
	snprintf(r->shared->format, sizeof(r->shared->format), "float32");
	return pen__run_rows_open(r, err);
}

void pen__peers_close(struct pen_session *r)
{
	struct pen_peers *g = r->own;

	pen__peer_close(&g->peer);
	pen__free(g->point);
}

static int run_steps(const struct pen_session *r, const struct pen_point *p,
		     struct pen_peer_answer *d, struct pen_err *err)
{
	const bool ahead = p->load_s > 0 &&
			   !pen_spec_number(r->spec, "prefetch");
	const uint64_t threads = p->workers ? p->workers : 1;
	const struct pen_spec_change set[] = {
		{ "path", p->floats ? p->path : NULL, 0 },
		{ "batch_size", NULL, p->batch },
		{ "threads", NULL, threads },
		{ "prefetch", NULL,
		  !ahead       ? 0
		  : p->workers ? 2 * threads
			       : 1 },
		{ "shuffle", p->shuffle ? "true" : "false", 0 },
		{ .key = NULL },
	};
	struct pen_spec *spec;
	int rc = pen__run_spec(r, set, &spec, err);

	if (rc)
		return rc;
	atomic_store(&r->shared->total, p->steps);
	rc = pen__steps_run(p, spec, &r->shared->done, d, err);
	pen_spec_free(spec);
	return rc;
}

/* What the first batches of the user's data add up to. */
static int count_given(struct pen_session *r, const void *arg,
		       struct pen_err *err)
{
	const struct pen_point *p = arg;
	struct pen_point plain = { .steps = p->cached ? p->cached : p->steps,
				   .batch = p->batch,
				   .workers = pen__cpus() };

	snprintf(plain.path, sizeof(plain.path), "%s", p->path);
	return run_steps(r, &plain, &((struct pen_peers *)r->own)->sums, err);
}

static int use_given(struct pen_session *r, struct pen_point *p,
		     struct pen_err *err)
{
	const struct pen_peer_answer *sums =
		&((struct pen_peers *)r->own)->sums;
	const uint64_t most = (uint64_t)r->shared->samples / p->batch;
	int rc;

	if (p->steps > most)
		p->steps = most;
	if (p->cached && p->steps > p->cached)
		p->steps -= p->steps % p->cached;
	if (p->cached > p->steps)
		p->cached = p->steps;
	if (!p->steps)
		return pen__fail(
			err, PEN_EINVAL, r->name,
			"%s samples are not one batch of %s",
			pen__show_grouped((uint64_t)r->shared->samples).s,
			pen__show_grouped(p->batch).s);
	snprintf(p->path, sizeof(p->path), "%s", r->path);
	p->rows = (uint64_t)r->shared->samples;
	p->cols = (uint64_t)r->shared->ncols;
	p->want_samples = p->steps * p->batch;
	rc = pen__run_child(r, "counting", count_given, p, err);
	snprintf(p->want_sum, sizeof(p->want_sum), "%llu",
		 strtoull(sums->sum, NULL, 10) *
			 (p->cached ? p->steps / p->cached : 1));
	return rc;
}

static uint64_t made_sum(uint64_t rows, uint64_t cols)
{
	double sum = 0;

	for (uint64_t i = 0; i < rows; i++)
		for (uint64_t k = 0; k < cols; k++)
			sum += pen__fresh_small(i, k);
	return (uint64_t)sum;
}

int pen__peers_data(struct pen_session *r, struct pen_point *p, uint64_t rows,
		    struct pen_err *err)
{
	const uint64_t part = p->cached ? p->cached : p->steps;
	const struct pen_fresh_file file = { .path = p->path,
					     .format = "npy",
					     .n = rows };
	char cols[24];
	int rc;

	if (p->length) {
		p->want_samples = p->length;
		snprintf(p->want_sum, sizeof(p->want_sum), "%llu",
			 (ull)pen__blocks_sum(p->length, p->block));
		return 0;
	}
	if (((struct pen_peers *)r->own)->given)
		return use_given(r, p, err);
	p->floats = true;
	p->rows = rows;
	p->cols = (uint64_t)pen__number(r, "--columns");
	p->want_samples = p->steps * p->batch;
	if (p->batch > pen__fresh_exact(p->cols))
		return pen__fail(
			err, PEN_EINVAL, r->name,
			"--batch and --columns are too large together: %s rows "
			"at most",
			pen__show_grouped(pen__fresh_exact(p->cols)).s);
	if (!rows || rows > MOST_MADE / 4 / p->cols)
		return pen__fail(err, PEN_EINVAL, r->name,
				 "data of %s rows x %s columns is not made",
				 pen__show_grouped(rows).s,
				 pen__show_grouped(p->cols).s);
	rc = pen__run_folder(r, err);
	if (rc)
		return rc;
	snprintf(p->path, sizeof(p->path), "%s/%llu.npy", r->folder, (ull)rows);
	snprintf(p->want_sum, sizeof(p->want_sum), "%llu",
		 (ull)(made_sum(part * p->batch, p->cols) * (p->steps / part)));
	if ((double)rows > r->shared->samples) {
		r->shared->samples = (double)rows;
		r->shared->ncols = (double)p->cols;
		r->shared->bytes = (double)(rows * p->cols * 4);
		r->shared->objects = 1;
	}
	/* the file is made once for all points of so many rows */
	if (!access(p->path, R_OK))
		return 0;
	snprintf(cols, sizeof(cols), "%llu", (ull)p->cols);
	rc = pen__fresh_init(&r->made, cols, "float32", err);
	r->made.small = true;
	return rc ? rc : pen__fresh_write(&r->made, &file, err);
}

int pen__peers_add(struct pen_session *r, const struct pen_point *p,
		   const char *name, enum pen_who who, struct pen_err *err)
{
	struct pen_peers *g = r->own;
	struct pen_point *more;
	struct pen_setup *s;
	int rc;

	if (who != PEN_IN_C && !g->looked) {
		rc = look_at_python(r, err);
		if (rc)
			return rc;
	}
	if ((who != PEN_IN_C && !g->others) ||
	    (who == PEN_MODULE && !g->module_there))
		return 0;
	more = pen__realloc(g->point, r->n + 1, sizeof(*more));
	if (!more)
		return pen__fail_nomem(err, r->name, sizeof(*more));
	g->point = more;
	more[r->n] = *p;
	more[r->n].python = who != PEN_IN_C;
	s = pen__setup_add(r, name, "", r->n);
	s->as_it_is = true;
	s->may_fail = who != PEN_IN_C;
	return 0;
}

/* ---- a run ---- */

static const struct pen_point *point_of(const struct pen_session *r,
					const struct pen_setup *s)
{
	return &((const struct pen_peers *)r->own)->point[s->value];
}

/* The work, in a row and in what Python is asked. */
static void put_work(struct pen_text *j, const struct pen_point *p)
{
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
}

void pen__peers_head(struct pen_text *j, const struct pen_session *r,
		     const struct pen_setup *s)
{
	const struct pen_point *p = point_of(r, s);

	pen__json_str(j, "arm", s->name);
	pen__json_str(j, "language", p->python ? "Python" : "C");
	if (p->has_workers)
		pen__json_int(j, "workers", p->workers);
	put_work(j, p);
	if (p->load[0])
		pen__json_str(j, "load", p->load);
}

static int run_python(const struct pen_session *r, const struct pen_setup *of,
		      const struct pen_point *p, struct pen_peer_answer *d,
		      struct pen_err *err)
{
	const struct pen_peers *g = r->own;
	struct pen_text q = { .compact = true };
	int rc;

	pen__json_open(&q, NULL, '{');
	pen__json_str(&q, "what", p->length ? "assemble" : "steps");
	pen__json_str(&q, "variant", of->name);
	pen__json_str(&q, "module", g->module);
	pen__json_str(&q, "path", p->path);
	pen__json_int(&q, "workers", p->workers);
	pen__json_int(&q, "cached", p->cached);
	put_work(&q, p);
	pen__json_bool(&q, "memory", p->memory);
	pen__json_bool(&q, "floats", p->floats);
	pen__json_close(&q, '}');
	rc = pen__peer_ask(&g->peer, &q, p->memory, d, err);
	pen__text_fini(&q);
	return rc;
}

static void put_figures(struct pen_text *j, const struct pen_point *p,
			const struct pen_peer_answer *d)
{
	const double s = d->seconds;

	pen__json_num(j, "seconds", s);
	if (p->length) {
		pen__json_num(j, "bytes_per_s",
			      s > 0 ? (double)p->length * (double)p->block / s
				    : 0);
		return;
	}
	pen__json_num(j, "step_s", d->step_s);
	pen__json_num(j, "wait_s", d->wait_s);
	pen__json_num(j, "samples_per_s", s > 0 ? (double)d->samples / s : 0);
	if (p->memory && d->peak_bytes) {
		pen__json_int(j, "pss_base_bytes", d->base_bytes);
		pen__json_int(j, "pss_peak_bytes", d->peak_bytes);
	}
}

int pen__peers_run(struct pen_session *r, const struct pen_trial *t,
		   struct pen_text *j, struct pen_err *err)
{
	const struct pen_point *p = point_of(r, t->of);
	struct pen_peer_answer d = { 0 };
	bool wrong;
	int rc = p->python ? run_python(r, t->of, p, &d, err)
		 : p->length
			 ? pen__blocks_fill(p, strstr(t->of->name, "reused"),
					    &d, err)
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

void pen__peers_describe(struct pen_session *r, const struct pen_setup *s,
			 struct pen_trial *t)
{
	const struct pen_point *p = point_of(r, s);

	snprintf(t->title, sizeof(t->title), "%s", s->name);
	pen__setup_text(
		r, t,
		"arm=%s workers=%llu rows=%llu cols=%llu batch=%llu steps=%llu "
		"length=%llu block=%llu load=%g compute=%g shuffle=%d",
		s->name, (ull)p->workers, (ull)p->rows, (ull)p->cols,
		(ull)p->batch, (ull)p->steps, (ull)p->length, (ull)p->block,
		p->load_s, p->compute_s, p->shuffle);
}
