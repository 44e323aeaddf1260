/*
 * Penstock compared with other loaders, above all PyTorch's DataLoader: the
 * same work in C and in Python. Every batch is summed up, so that a view of
 * untouched memory, a loop that ends early or an array without content does not
 * look fast. Every run is a separate process; one in Python has another below
 * it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/team.h"
#include "experiment/peers.h"

#define KEPT 8 /* batches to reuse */
#define MOST_VARIANTS 8
#define MOST_MADE ((uint64_t)1 << 34) /* bytes */

typedef unsigned long long ull;

struct peers {
	bool looked; /* Python was probed */
	bool given;  /* the user gave a PATH */
	bool others; /* Python has PyTorch and can read the data */
	bool module_there;
	char why[256];		     /* not others */
	struct pen_peer_answer sums; /* of the first batches of a PATH */
	struct pen_peer_process peer;
	char module[4096];
	struct pen_point *point; /* indexed by a setup's value */
};

enum side { IN_C, IN_PYTHON, MODULE }; /* MODULE: penstock from Python */

/* What an experiment varies follows from its flags: --load, --compute, --rows
 * and --length are lists of values, and every combination is a group. */
struct work {
	bool memory;	   /* sample the memory of all processes */
	bool by_workers;   /* rows have the number of workers */
	bool load_batches; /* --load is the time per batch; then real loading */
	struct variant {
		const char *name; /* NULL: end */
		enum side side;
		enum {
			NO_WORKERS,
			EACH, /* every number in --workers */
			AT_LEAST_ONE,
			ONE_A_CPU,
			EACH_KEPT, /* reuses a few batches */
		} workers;
	} variant[MOST_VARIANTS];
};

/* ---- Python ---- */

static const char *python_of(const struct pen_session *r)
{
	const char *given = pen__value(r, "--python")->text;

	return given ? given : "/usr/bin/python3";
}

#define MODULE_FILE "/penstock/__init__.py"

/* In the build tree, or where it is installed. */
static void find_module(struct peers *g)
{
	static const char *const places[] = {
		"../../python" MODULE_FILE,
		"../lib/python3*/dist-packages" MODULE_FILE, NULL
	};
	const bool found = pen__beside(places, g->module, sizeof(g->module));

	g->module[found ? strlen(g->module) - strlen(MODULE_FILE) : 0] = '\0';
}

static int probe(struct pen_session *r, const void *arg, struct pen_err *err)
{
	struct peers *g = r->own;
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
		    : "the module torch is missing; install python3-torch "
		      "(Debian) or choose another interpreter with --python");
	pen__text_fini(&q);
	return 0;
}

static void without(struct pen_session *r, const char *what, const char *why)
{
	pen__text_add(r->json ? &r->warnings : &r->notes,
		      "  Without %s: %s: %s\n", what, python_of(r), why);
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
	struct peers *g = r->own;
	struct pen_err why = { 0 };
	int rc;

	g->looked = true;
	if (g->given && !is_npy(r->path)) {
		without(r, "PyTorch", "only a single .npy file can be loaded");
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
		without(r, "penstock from Python",
			"the module penstock is missing");
	return rc;
}

/* ---- data ---- */

static int open_peers(struct pen_session *r, struct pen_err *err)
{
	struct peers *g = r->own;

	g->given = pen_spec_path(r->spec, 0);
	if (g->given)
		return pen__run_data(r, err);
	snprintf(r->path, sizeof(r->path), "generated");
	snprintf(r->shared->format, sizeof(r->shared->format), "float32");
	return pen__run_rows_open(r, err);
}

static void close_peers(struct pen_session *r)
{
	struct peers *g = r->own;

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

/* The sum of the first batches of the user's data. */
static int count_given(struct pen_session *r, const void *arg,
		       struct pen_err *err)
{
	const struct pen_point *p = arg;
	struct pen_point plain = { .steps = p->cached ? p->cached : p->steps,
				   .batch = p->batch,
				   .workers = pen__cpus() };

	snprintf(plain.path, sizeof(plain.path), "%s", p->path);
	return run_steps(r, &plain, &((struct peers *)r->own)->sums, err);
}

static int use_given(struct pen_session *r, struct pen_point *p,
		     struct pen_err *err)
{
	const struct pen_peer_answer *sums = &((struct peers *)r->own)->sums;
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
			err, P_TOO_FEW_SAMPLES, r->name,
			"%s samples do not fill one batch of %s; lower --batch",
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

static int set_data(struct pen_session *r, struct pen_point *p, uint64_t rows,
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
	if (((struct peers *)r->own)->given)
		return use_given(r, p, err);
	p->floats = true;
	p->rows = rows;
	p->cols = (uint64_t)pen__number(r, "--columns");
	p->want_samples = p->steps * p->batch;
	if (p->batch > pen__fresh_exact(p->cols))
		return pen__fail(
			err, P_BAD_VALUE, r->name,
			"--batch is too large for this number of --columns; "
			"the maximum is %s",
			pen__show_grouped(pen__fresh_exact(p->cols)).s);
	if (!rows || rows > MOST_MADE / 4 / p->cols)
		return pen__fail(err, P_BAD_VALUE, r->name,
				 "%s rows x %s columns are too large to "
				 "generate; the maximum is 16 GiB",
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
	/* points with the same number of rows share a file */
	if (!access(p->path, R_OK))
		return 0;
	snprintf(cols, sizeof(cols), "%llu", (ull)p->cols);
	rc = pen__fresh_init(&r->made, cols, "float32", err);
	r->made.small = true;
	return rc ? rc : pen__fresh_write(&r->made, &file, err);
}

static int add_variant(struct pen_session *r, const struct pen_point *p,
		       const char *name, enum side side, struct pen_err *err)
{
	struct peers *g = r->own;
	struct pen_point *more;
	struct pen_setup *s;
	int rc;

	if (side != IN_C && !g->looked) {
		rc = look_at_python(r, err);
		if (rc)
			return rc;
	}
	if ((side != IN_C && !g->others) ||
	    (side == MODULE && !g->module_there))
		return 0;
	more = pen__realloc(g->point, r->n + 1, sizeof(*more));
	if (!more)
		return pen__fail_nomem(err, r->name, sizeof(*more));
	g->point = more;
	more[r->n] = *p;
	more[r->n].python = side != IN_C;
	s = pen__setup_add(r, name, "", r->n);
	s->as_it_is = true;
	s->may_fail = side != IN_C;
	return 0;
}

/* ---- a run ---- */

static const struct pen_point *point_of(const struct pen_session *r,
					const struct pen_setup *s)
{
	return &((const struct peers *)r->own)->point[s->value];
}

/* The parameters of the work, for a row and for the request to Python. */
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

static void head(struct pen_text *j, const struct pen_session *r,
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
	const struct peers *g = r->own;
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

static int run(struct pen_session *r, const struct pen_trial *t,
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

static void describe(struct pen_session *r, const struct pen_setup *s,
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

/* ---- variants ---- */

/* Adds all variants of a point. */
static int add(struct pen_session *r, struct pen_point p, struct pen_err *err)
{
	const struct work *w = r->of->work;
	const struct pen_taken *n = pen__value(r, "--workers");
	const uint64_t rows = p.steps * p.batch;
	int rc = set_data(r, &p, rows, err);

	for (const struct variant *v = w->variant; !rc && v->name; v++) {
		const bool each = v->workers != NO_WORKERS &&
				  v->workers != ONE_A_CPU;

		if (v->workers == EACH_KEPT && !p.cached) {
			p.cached = KEPT;
			rc = set_data(r, &p, rows, err);
		}
		p.has_workers = w->by_workers && v->workers != NO_WORKERS;
		for (size_t i = 0; !rc && i < (each ? n->n : 1); i++) {
			if (v->workers != NO_WORKERS)
				p.workers = each ? (uint64_t)n->v[i]
						 : r->host.cpus;
			if (p.workers || v->workers != AT_LEAST_ONE)
				rc = add_variant(r, &p, v->name, v->side, err);
		}
	}
	return rc;
}

/* The loading times of an experiment: simulated, and for some also real. */
static int add_loads(struct pen_session *r, struct pen_point p,
		     struct pen_err *err)
{
	const struct work *w = r->of->work;
	const struct pen_taken *load = pen__value(r, "--load");
	const bool given = pen_spec_path(r->spec, 0);
	int rc = 0;

	for (size_t i = 0; !rc && !given && i < load->n; i++) {
		p.load_s = load->v[i];
		if (w->load_batches) {
			p.load_s /= (double)p.batch;
			snprintf(p.load, sizeof(p.load), "%g ms simulated",
				 1e3 * load->v[i]);
		}
		rc = add(r, p, err);
	}
	if (rc || (load->n && !w->load_batches))
		return rc;
	p.load_s = 0;
	if (w->load_batches)
		snprintf(p.load, sizeof(p.load), "of real data");
	return add(r, p, err);
}

/* A pass over this many rows, in full batches. */
static int set_rows(const struct pen_session *r, struct pen_point *p,
		    uint64_t rows, struct pen_err *err)
{
	p->steps = rows / p->batch;
	if (p->steps)
		return 0;
	return pen__fail(err, P_TOO_FEW_SAMPLES, r->name,
			 "--rows is less than one batch of %s; raise it or "
			 "lower --batch",
			 pen__show_grouped(p->batch).s);
}

static int prepare(struct pen_session *r, struct pen_err *err)
{
	const struct pen_taken *compute = pen__value(r, "--compute");
	const struct pen_taken *rows = pen__value(r, "--rows");
	const struct pen_taken *length = pen__value(r, "--length");
	struct pen_point p = {
		.memory = ((const struct work *)r->of->work)->memory,
		.shuffle = pen__given(r, "--shuffle"),
		.batch = (uint64_t)pen__number(r, "--batch"),
		.steps = (uint64_t)pen__number(r, "--steps"),
		.block = (uint64_t)pen__number(r, "--block") & ~(uint64_t)3,
	};
	int rc = open_peers(r, err);

	if (r->of == &pen__exp_headspace)
		p.steps = p.steps < KEPT ? KEPT : p.steps - p.steps % KEPT;
	for (size_t i = 0; !rc && i < compute->n; i++) {
		p.compute_s = compute->v[i];
		rc = add_loads(r, p, err);
	}
	for (size_t i = 0; !rc && i < rows->n; i++) {
		rc = set_rows(r, &p, (uint64_t)rows->v[i], err);
		if (!rc)
			rc = add(r, p, err);
	}
	for (size_t i = 0; !rc && i < length->n; i++) {
		p.length = (uint64_t)length->v[i];
		rc = add(r, p, err);
	}
	return rc;
}

#define PEERS(variants)                                                        \
	.own = sizeof(struct peers), .work = &(variants), .prepare = prepare,  \
	.head = head, .describe = describe, .run = run, .close = close_peers

/* With simulated loading, the best step time is known: the longer of loading
 * and computing if overlapped, else their sum. */
static const struct work overlap = {
	.load_batches = true,
	.variant = { { "penstock, not overlapped", IN_C, NO_WORKERS },
		     { "DataLoader, not overlapped", IN_PYTHON, NO_WORKERS },
		     { "penstock, overlapped", IN_C, EACH },
		     { "DataLoader, overlapped", IN_PYTHON, EACH } },
};
struct pen_experiment pen__exp_overlap = {
	.kind = { .experiment = "overlap" },
	PEERS(overlap),
};

/* The best step time is the longer of computing and of loading divided by the
 * workers. */
static const struct work workers = {
	.by_workers = true,
	.variant = { { "penstock", IN_C, EACH },
		     { "DataLoader", IN_PYTHON, EACH } },
};
struct pen_experiment pen__exp_workers = {
	.kind = { .experiment = "workers" },
	PEERS(workers),
};

/* penstock runs with its default threads, DataLoader with each number of
 * workers. */
static const struct work iterate = {
	.by_workers = true,
	.variant = { { "penstock", IN_C, ONE_A_CPU },
		     { "penstock from Python", MODULE, ONE_A_CPU },
		     { "DataLoader", IN_PYTHON, EACH },
		     { "DataLoader batched", IN_PYTHON, EACH },
		     { "DataLoader mapping", IN_PYTHON, EACH },
		     { "slicing", IN_PYTHON, NO_WORKERS } },
};
struct pen_experiment pen__exp_iterate = {
	.kind = { .experiment = "iterate" },
	PEERS(iterate),
};

static const struct work prealloc = {
	.variant = { { "penstock, fresh", IN_C, NO_WORKERS },
		     { "penstock, reused", IN_C, NO_WORKERS },
		     { "torch.cat", IN_PYTHON, NO_WORKERS },
		     { "np.concatenate", IN_PYTHON, NO_WORKERS },
		     { "preallocated", IN_PYTHON, NO_WORKERS },
		     { "reused", IN_PYTHON, NO_WORKERS },
		     { "TensorStore", MODULE, NO_WORKERS } },
};
struct pen_experiment pen__exp_prealloc = {
	.kind = { .experiment = "prealloc" },
	PEERS(prealloc),
};

/* By proportional share (PSS): a forked worker starts with shared pages and
 * copies those that hold reference counts. */
static const struct work memory = {
	.memory = true,
	.by_workers = true,
	.variant = { { "penstock", IN_C, AT_LEAST_ONE },
		     { "penstock from Python", MODULE, AT_LEAST_ONE },
		     { "DataLoader array", IN_PYTHON, EACH },
		     { "DataLoader mapped", IN_PYTHON, EACH },
		     { "DataLoader list", IN_PYTHON, EACH } },
};
struct pen_experiment pen__exp_memory = {
	.kind = { .experiment = "memory" },
	PEERS(memory),
};

/* Reused batches cost nothing to load, so the difference is the most that a
 * faster loader could gain. */
static const struct work headspace = {
	.variant = { { "penstock", IN_C, EACH },
		     { "DataLoader", IN_PYTHON, EACH },
		     { "penstock, cached", IN_C, EACH_KEPT },
		     { "DataLoader, cached", IN_PYTHON, EACH_KEPT } },
};

static void put_headspace(struct pen_text *t, const struct pen_variants *a,
			  const struct pen_variant *like)
{
	static const char *const loader[] = { "penstock", "DataLoader" };

	for (size_t i = 0; i < 2; i++) {
		const struct pen_variant *real, *none;
		struct pen_change c;
		char cached[64];

		snprintf(cached, sizeof(cached), "%s, cached", loader[i]);
		real = pen__variant_rival(a, like, loader[i]);
		none = pen__variant_rival(a, like, cached);
		if (!real || !none)
			continue;
		c = pen__change_of(a, real, none, "step_s");
		if (c.differs && c.share < 0)
			pen__text_add(t,
				      " With %s, a faster loader could save at "
				      "most %s of a step.",
				      loader[i], pen__show_share(-c.share).s);
		else
			pen__text_add(t,
				      " With %s, a faster loader could save "
				      "nothing beyond noise.",
				      loader[i]);
	}
}

struct pen_experiment pen__exp_headspace = {
	.kind = { .experiment = "headspace", .versus.more = put_headspace },
	PEERS(headspace),
};
