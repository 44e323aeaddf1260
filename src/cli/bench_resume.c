/*
 * bench resume: going on in the middle of an epoch. A run is followed up to a
 * batch, its state is taken, and it goes on for some batches; another loader
 * has to deliver these, sample by sample: restored from the state, restored by
 * twice as many ranks of half the batch, and by reading all up to there again,
 * which is what loaders without a state do.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cli/arms.h"
#include "engine/loader.h"
#include "engine/spec.h"

#define MOST 16
#define FOLLOWING 8 /* batches that are compared, at most */

enum { RESTORED, RANKS, AGAIN, NWAYS };
static const char *const ways[] = { "restored", "on 2 ranks", "read again" };

struct resume {
	struct arms a;
	uint64_t at[MOST]; /* percent of an epoch */
	size_t n;
};

/* Some batches one after another. */
struct trace {
	uint64_t *ids;
	size_t n, cap;
	size_t end[FOLLOWING]; /* of batch i, in ids */
	size_t nbatches;
	uint64_t sum;
};

static const struct flag flags[] = {
	{ "--at", "LIST",
	  "percents of an epoch to stop at (default 0,10,50,90)" },
	ARMS_FLAGS,
	{ NULL, NULL, NULL },
};

/* ---- traces ---- */

static int keep_batch(struct trace *t, const struct pen_batch *b,
		      struct pen_err *err)
{
	if (t->n + b->nsamples > t->cap) {
		const size_t cap = 2 * t->cap + b->nsamples;
		uint64_t *more = pen__realloc(t->ids, cap, sizeof(*more));

		if (!more)
			return pen__fail_nomem(err, "trace", cap * 8);
		t->ids = more;
		t->cap = cap;
	}
	memcpy(t->ids + t->n, b->ids, b->nsamples * sizeof(*b->ids));
	t->n += b->nsamples;
	t->sum += pen__content_batch(b, b->ids);
	return 0;
}

/* n batches into a trace (NULL: thrown away); *took: of the first. */
static int follow(struct pen_loader *l, uint64_t n, struct trace *t,
		  uint64_t *took, struct pen_err *err)
{
	const uint64_t start = pen__now_ns();
	int rc = 0;

	for (uint64_t i = 0; !rc && i < n; i++) {
		struct pen_batch *b;

		rc = pen_loader_next(l, &b, err);
		if (rc == PEN_END)
			return pen__fail(err, PEN_EDATA, "resume",
					 "the epoch ended early");
		if (rc)
			break;
		if (!i && took)
			*took = pen__now_ns() - start;
		if (t)
			rc = keep_batch(t, b, err);
		if (t && i < FOLLOWING)
			t->end[i] = t->n;
		if (t)
			t->nbatches++;
		pen_batch_unref(b);
	}
	return rc;
}

/* ---- the ways ---- */

struct run {
	struct bench *b;
	uint64_t k, n; /* batches before, and compared */
	struct pen_state state;
	double resume_s, open_s;
};

static int go_on(struct run *r, const struct pen_spec *s, bool again,
		 struct trace *t, struct pen_err *err)
{
	struct pen_loader *l;
	uint64_t start = pen__now_ns(), took = 0;
	double s_before;
	int rc = pen_loader_open(&l, s, err);

	if (rc)
		return rc;
	r->open_s += (double)(pen__now_ns() - start) / 1e9;
	start = pen__now_ns();
	rc = again ? follow(l, r->k, NULL, NULL, err)
		   : pen_loader_restore(l, &r->state, err);
	s_before = (double)(pen__now_ns() - start) / 1e9;
	if (!rc)
		rc = follow(l, r->n, t, &took, err);
	s_before += (double)took / 1e9;
	/* ranks go on side by side: the slower one is what is waited for */
	r->resume_s = s_before > r->resume_s ? s_before : r->resume_s;
	pen_loader_close(l);
	return rc;
}

/* Two ranks' batches of n samples put side by side, as one of 2n. */
static int join(const struct trace *a, const struct trace *b, struct trace *to,
		struct pen_err *err)
{
	to->ids = pen__alloc(a->n + b->n + 1, sizeof(*to->ids));
	if (!to->ids)
		return pen__fail_nomem(err, "trace", (a->n + b->n) * 8);
	for (size_t i = 0; i < a->nbatches && i < b->nbatches; i++) {
		const struct trace *of[] = { a, b };

		for (size_t k = 0; k < 2; k++) {
			const size_t from = i ? of[k]->end[i - 1] : 0;
			const size_t n = of[k]->end[i] - from;

			memcpy(to->ids + to->n, of[k]->ids + from,
			       n * sizeof(*to->ids));
			to->n += n;
		}
		to->end[i] = to->n;
		to->nbatches++;
	}
	to->sum = a->sum + b->sum;
	return 0;
}

static int go_on_ranks(struct run *r, struct pen_spec *s, struct trace *t,
		       struct pen_err *err)
{
	struct trace part[2] = { 0 };
	int rc = bench_set(s, "batch_size", s->batch_size / 2, err);

	if (!rc)
		rc = bench_set(s, "world", 2, err);
	for (uint64_t i = 0; !rc && i < 2; i++) {
		rc = bench_set(s, "rank", i, err);
		if (!rc)
			rc = go_on(r, s, false, &part[i], err);
	}
	if (!rc)
		rc = join(&part[0], &part[1], t, err);
	pen__free(part[0].ids);
	pen__free(part[1].ids);
	return rc;
}

/* ---- one arm ---- */

/* The run that nothing interrupts; says how many batches there are. */
static int reference(struct run *r, const struct pen_spec *s, uint64_t percent,
		     struct trace *t, struct pen_err *err)
{
	struct pen_loader *l;
	uint64_t all;
	int rc = pen_loader_open(&l, s, err);

	if (rc)
		return rc;
	all = pen_loader_nbatches(l);
	/* a short last batch would be another one on two ranks */
	all -= all > 1;
	r->k = all * percent / 100;
	r->k = all && r->k >= all ? all - 1 : r->k;
	r->n = all - r->k < FOLLOWING ? all - r->k : FOLLOWING;
	rc = follow(l, r->k, NULL, NULL, err);
	if (!rc) {
		pen_loader_state(l, &r->state);
		rc = follow(l, r->n, t, NULL, err);
	}
	pen_loader_close(l);
	return rc;
}

static int by_value(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Batches of ranks have the samples of one, dealt out in turn. */
static void sort_batches(struct trace *t)
{
	for (size_t i = 0; i < t->nbatches && i < FOLLOWING; i++) {
		const size_t from = i ? t->end[i - 1] : 0;

		qsort(t->ids + from, t->end[i] - from, sizeof(*t->ids),
		      by_value);
	}
}

static void put_result(struct pen_text *j, const struct run *r,
		       const struct trace *want, const struct trace *got)
{
	char hex[24];

	pen__json_int(j, "batches_before", r->k);
	pen__json_int(j, "batches_compared", r->n);
	pen__json_int(j, "n_rows", got->n);
	pen__json_int(j, "expected_rows", want->n);
	snprintf(hex, sizeof(hex), "%016llx", (unsigned long long)got->sum);
	pen__json_str(j, "content_sum", hex);
	snprintf(hex, sizeof(hex), "%016llx", (unsigned long long)want->sum);
	pen__json_str(j, "expected_sum", hex);
	if (got->n == want->n &&
	    memcmp(got->ids, want->ids, got->n * sizeof(*got->ids)) != 0)
		pen__json_str(j, "wrong", "other samples, or another order");
	pen__json_num(j, "open_s", r->open_s);
	pen__json_num(j, "resume_s", r->resume_s);
}

static int run_arm(struct bench *b, const struct trial *t, struct pen_text *j,
		   struct pen_err *err)
{
	const struct arm *m = t->arg;
	struct trace want = { 0 }, got = { 0 };
	struct run r = { .b = b };
	struct pen_spec *s;
	int rc = arms_spec(b, NULL, 0, &s, err);

	if (rc)
		return rc;
	rc = reference(&r, s, m->value, &want, err);
	if (!rc && m->kind == RANKS)
		rc = go_on_ranks(&r, s, &got, err);
	else if (!rc)
		rc = go_on(&r, s, m->kind == AGAIN, &got, err);
	if (!rc && m->kind == RANKS) {
		sort_batches(&want);
		sort_batches(&got);
	}
	if (!rc)
		put_result(j, &r, &want, &got);
	pen__free(want.ids);
	pen__free(got.ids);
	pen_spec_free(s);
	return rc;
}

/* ---- all of them ---- */

static int prepare(struct arms *a)
{
	const struct resume *g = (const struct resume *)(const void *)a;
	const bool even = g->a.b.spec->batch_size % 2 == 0;

	for (size_t i = 0; i < g->n; i++)
		for (int k = 0; k < NWAYS; k++) {
			char group[48];
			struct arm *m;

			if (k == RANKS && !even)
				continue;
			snprintf(group, sizeof(group), "at %llu %%",
				 (unsigned long long)g->at[i]);
			m = arms_add(a, ways[k], group, g->at[i]);
			if (!m)
				return EXIT_FAILED;
			m->kind = k;
			m->as_it_is = true;
			snprintf(m->check, sizeof(m->check), "%s", group);
		}
	return arms_open(a);
}

static int take_arg(struct arms *a, struct args *arg, int kind)
{
	struct resume *g = (struct resume *)(void *)a;

	if (kind == ARG_FLAG && !strcmp(arg->key, "--at")) {
		bool ok = arms_list(arg->value, g->at, &g->n, MOST);

		for (size_t i = 0; ok && i < g->n; i++)
			ok = g->at[i] < 100;
		return ok ? -1
			  : complain_usage("bench resume: --at: '%s' is not a "
					   "list of percents below 100",
					   arg->value);
	}
	if (kind == ARG_FLAG &&
	    (!strcmp(arg->key, "-n") || !strcmp(arg->key, "--cold")))
		return complain_usage("bench resume: %s has no meaning here",
				      arg->key);
	if (kind == ARG_SETTING &&
	    (!strcmp(arg->key, "rank") || !strcmp(arg->key, "world")))
		return complain_usage("bench resume: %s= is what the "
				      "experiment sets",
				      arg->key);
	return arms_arg(a, arg, kind);
}

static int run_resume(int argc, char **argv)
{
	struct resume g = { .a = { .cmd = &pen__bench_resume,
				   .kind = &pen__kind_resume,
				   .preset = { "sampler", "shuffle" },
				   .any_order = true,
				   .take = take_arg,
				   .prepare = prepare,
				   .run = run_arm },
			    .at = { 0, 10, 50, 90 },
			    .n = 4 };

	return arms_main(&g.a, argc, argv);
}

static const char *const examples[] = {
	"penstock bench resume data/ batch_size=64",
	"at the start, at 10, 50 and 90 % of an epoch in random order",
	"penstock bench resume cells.h5ad sampler=census --at 25,75",
	"in another order",
	"penstock bench resume --samples 50k --shape 256",
	"on data made for it",
	NULL,
};

const struct command pen__bench_resume = {
	.name = "bench resume",
	.args = "[PATH] [key=value ...] [flags]",
	.summary = "going on in mid-epoch: how long, and is it exact?",
	.about = "Compares samples, their order and their content of up to 8 "
		 "batches after the place with those of a run that was not "
		 "interrupted. restored: from the saved state; on 2 ranks: "
		 "the same state, two ranks of half the batch (their samples "
		 "together are compared batch by batch); read again: "
		 "everything up to there is loaded and thrown away. The time "
		 "is from the open loader to the first batch.",
	.flags = flags,
	.takes_spec = true,
	.examples = examples,
	.run = run_resume,
};
