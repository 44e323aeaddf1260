/*
 * Penstock beside what is used otherwise, PyTorch's DataLoader first of all:
 * the same work by several, in C and in Python. Every batch is added up as it
 * comes, so that a view of memory nobody touched, a loop that ends early, or an
 * array that nothing was stored in is not called fast.
 */
#include <stdio.h>

#include "experiment/peers.h"

#define KEPT 8 /* batches that cost nothing to load */

struct variant {
	const char *name; /* NULL: the end of them */
	enum pen_who who;
	enum {
		NO_WORKERS,
		EACH, /* as many as --workers says, one after another */
		AT_LEAST_ONE,
		ONE_A_CPU,
		EACH_KEPT, /* a few batches that are given over and over */
	} workers;
};

/* All variants of a point whose data has so many rows. */
static int add(struct pen_session *r, const struct variant *v,
	       struct pen_point p, uint64_t rows, struct pen_err *err)
{
	const struct pen_taken *n = pen__value(r, "--workers");
	const bool has_workers = p.has_workers;
	int rc = pen__peers_data(r, &p, rows, err);

	for (; !rc && v->name; v++) {
		const bool each = v->workers != NO_WORKERS &&
				  v->workers != ONE_A_CPU;

		if (v->workers == EACH_KEPT && !p.cached) {
			p.cached = KEPT;
			rc = pen__peers_data(r, &p, rows, err);
		}
		p.has_workers = has_workers && v->workers != NO_WORKERS;
		for (size_t i = 0; !rc && i < (each ? n->n : 1); i++) {
			if (v->workers != NO_WORKERS)
				p.workers = each ? (uint64_t)n->v[i]
						 : r->host.cpus;
			if (p.workers || v->workers != AT_LEAST_ONE)
				rc = pen__peers_add(r, &p, v->name, v->who,
						    err);
		}
	}
	return rc;
}

static struct pen_point point_of(const struct pen_session *r)
{
	return (struct pen_point){
		.batch = (uint64_t)pen__number(r, "--batch"),
		.steps = (uint64_t)pen__number(r, "--steps"),
	};
}

/* A pass over so many rows, in whole batches. */
static int add_pass(struct pen_session *r, const struct variant *v,
		    struct pen_point p, uint64_t rows, struct pen_err *err)
{
	p.has_workers = true;
	p.steps = rows / p.batch;
	if (!p.steps)
		return pen__fail(err, PEN_EINVAL, r->name,
				 "--rows: less than one batch of %s",
				 pen__show_grouped(p.batch).s);
	return add(r, v, p, p.steps * p.batch, err);
}

#define PEERS                                                                  \
	.own = sizeof(struct pen_peers), .head = pen__peers_head,              \
	.describe = pen__peers_describe, .run = pen__peers_run,                \
	.close = pen__peers_close

/* ---- a step with loading behind the computing of the step before ---- */

/* Loading is simulated, so the answer is known: the longer of both, against
 * their sum; and real. */
static int overlap(struct pen_session *r, struct pen_err *err)
{
	static const struct variant variants[] = {
		{ "penstock, not overlapped", PEN_IN_C, NO_WORKERS },
		{ "DataLoader, not overlapped", PEN_IN_PYTHON, NO_WORKERS },
		{ "penstock, overlapped", PEN_IN_C, EACH },
		{ "DataLoader, overlapped", PEN_IN_PYTHON, EACH },
		{ .name = NULL },
	};
	const struct pen_taken *load = pen__value(r, "--load");
	const struct pen_taken *compute = pen__value(r, "--compute");
	const size_t nloads = pen_spec_path(r->spec, 0) ? 0 : load->n;
	struct pen_point p = point_of(r);
	int rc = pen__peers_open(r, err);

	for (size_t i = 0; !rc && i < compute->n; i++)
		for (size_t k = 0; !rc && k <= nloads; k++) {
			const double s = k < nloads ? load->v[k] : 0;

			p.compute_s = compute->v[i];
			p.load_s = s / (double)p.batch;
			snprintf(p.load, sizeof(p.load),
				 k < nloads ? "%g ms simulated"
					    : "of real data",
				 1e3 * s);
			rc = add(r, variants, p, p.steps * p.batch, err);
		}
	return rc;
}

struct pen_experiment pen__exp_overlap = {
	.kind = { .experiment = "overlap" },
	.prepare = overlap,
	PEERS,
};

/* ---- how many workers it takes to keep up ---- */

/* The simulated times make the best answer known: a step takes the longer of
 * computing and of loading divided by the workers. */
static int workers(struct pen_session *r, struct pen_err *err)
{
	static const struct variant variants[] = {
		{ "penstock", PEN_IN_C, EACH },
		{ "DataLoader", PEN_IN_PYTHON, EACH },
		{ .name = NULL },
	};
	const struct pen_taken *load = pen__value(r, "--load");
	const struct pen_taken *compute = pen__value(r, "--compute");
	struct pen_point p = point_of(r);
	int rc = pen__peers_open(r, err);

	p.has_workers = true;
	for (size_t i = 0; !rc && i < load->n * compute->n; i++) {
		p.load_s = load->v[i / compute->n];
		p.compute_s = compute->v[i % compute->n];
		rc = add(r, variants, p, p.steps * p.batch, err);
	}
	return rc;
}

struct pen_experiment pen__exp_workers = {
	.kind = { .experiment = "workers" },
	.prepare = workers,
	PEERS,
};

/* ---- all rows of an array in batches ---- */

static int iterate(struct pen_session *r, struct pen_err *err)
{
	/* threads are what penstock would take; workers are tried */
	static const struct variant variants[] = {
		{ "penstock", PEN_IN_C, ONE_A_CPU },
		{ "penstock from Python", PEN_MODULE, ONE_A_CPU },
		{ "DataLoader", PEN_IN_PYTHON, EACH },
		{ "DataLoader batched", PEN_IN_PYTHON, EACH },
		{ "DataLoader mapping", PEN_IN_PYTHON, EACH },
		{ "slicing", PEN_IN_PYTHON, NO_WORKERS },
		{ .name = NULL },
	};
	const struct pen_taken *rows = pen__value(r, "--rows");
	struct pen_point p = point_of(r);
	int rc = pen__peers_open(r, err);

	p.shuffle = pen__given(r, "--shuffle");
	for (size_t i = 0; !rc && i < rows->n; i++)
		rc = add_pass(r, variants, p, (uint64_t)rows->v[i], err);
	return rc;
}

struct pen_experiment pen__exp_iterate = {
	.kind = { .experiment = "iterate" },
	.prepare = iterate,
	PEERS,
};

/* ---- blocks put together into one array ---- */

/* By concatenation, into memory asked for beforehand, into memory that was used
 * before, and into a file that is mapped. */
static int prealloc(struct pen_session *r, struct pen_err *err)
{
	static const struct variant variants[] = {
		{ "penstock, fresh", PEN_IN_C, NO_WORKERS },
		{ "penstock, reused", PEN_IN_C, NO_WORKERS },
		{ "torch.cat", PEN_IN_PYTHON, NO_WORKERS },
		{ "np.concatenate", PEN_IN_PYTHON, NO_WORKERS },
		{ "preallocated", PEN_IN_PYTHON, NO_WORKERS },
		{ "reused", PEN_IN_PYTHON, NO_WORKERS },
		{ "TensorStore", PEN_MODULE, NO_WORKERS },
		{ .name = NULL },
	};
	const struct pen_taken *length = pen__value(r, "--length");
	struct pen_point p = { .block = (uint64_t)pen__number(r, "--block") &
					~(uint64_t)3 };
	int rc = pen__peers_open(r, err);

	for (size_t i = 0; !rc && i < length->n; i++) {
		p.length = (uint64_t)length->v[i];
		rc = add(r, variants, p, 0, err);
	}
	return rc;
}

struct pen_experiment pen__exp_prealloc = {
	.kind = { .experiment = "prealloc" },
	.prepare = prealloc,
	PEERS,
};

/* ---- what workers cost in memory ---- */

/* The memory of all processes, by proportional share (PSS): a forked worker
 * begins with shared pages and ends up with copies of those that reference
 * counts are in. */
static int memory(struct pen_session *r, struct pen_err *err)
{
	static const struct variant variants[] = {
		{ "penstock", PEN_IN_C, AT_LEAST_ONE },
		{ "penstock from Python", PEN_MODULE, AT_LEAST_ONE },
		{ "DataLoader array", PEN_IN_PYTHON, EACH },
		{ "DataLoader mapped", PEN_IN_PYTHON, EACH },
		{ "DataLoader list", PEN_IN_PYTHON, EACH },
		{ .name = NULL },
	};
	struct pen_point p = point_of(r);
	int rc = pen__peers_open(r, err);

	p.memory = true;
	return rc ? rc
		  : add_pass(r, variants, p, (uint64_t)pen__number(r, "--rows"),
			     err);
}

struct pen_experiment pen__exp_memory = {
	.kind = { .experiment = "memory" },
	.prepare = memory,
	PEERS,
};

/* ---- the most a faster loader could still gain ---- */

/* The same loop with real loading and with a few batches that were kept, which
 * cost nothing to load; what is between the two is all there is to win. */
static int headspace(struct pen_session *r, struct pen_err *err)
{
	static const struct variant variants[] = {
		{ "penstock", PEN_IN_C, EACH },
		{ "DataLoader", PEN_IN_PYTHON, EACH },
		{ "penstock, cached", PEN_IN_C, EACH_KEPT },
		{ "DataLoader, cached", PEN_IN_PYTHON, EACH_KEPT },
		{ .name = NULL },
	};
	const struct pen_taken *compute = pen__value(r, "--compute");
	struct pen_point p = point_of(r);
	int rc = pen__peers_open(r, err);

	p.steps = p.steps < KEPT ? KEPT : p.steps - p.steps % KEPT;
	for (size_t i = 0; !rc && i < compute->n; i++) {
		p.compute_s = compute->v[i];
		rc = add(r, variants, p, p.steps * p.batch, err);
	}
	return rc;
}

/* What a loader that takes no time at all would still gain. */
static void put_headspace(struct pen_text *t, const struct pen_variants *a,
			  const struct pen_variant *like)
{
	static const char *const who[] = { "penstock", "DataLoader" };

	for (size_t i = 0; i < 2; i++) {
		const struct pen_variant *real, *none;
		struct pen_change c;
		char cached[64];

		snprintf(cached, sizeof(cached), "%s, cached", who[i]);
		real = pen__variant_rival(a, like, who[i]);
		none = pen__variant_rival(a, like, cached);
		if (!real || !none)
			continue;
		c = pen__change_of(a, real, none, "step_s");
		if (c.differs && c.share < 0)
			pen__text_add(t,
				      " With %s a faster loader could save at "
				      "most %s of a step.",
				      who[i], pen__show_share(-c.share).s);
		else
			pen__text_add(t,
				      " With %s a faster loader could save "
				      "nothing beyond noise.",
				      who[i]);
	}
}

struct pen_experiment pen__exp_headspace = {
	.kind = { .experiment = "headspace", .versus.more = put_headspace },
	.prepare = headspace,
	PEERS,
};
