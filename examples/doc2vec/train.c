/*
 * A part of a batch has two phases: the gradient of every sequence, and the
 * update of the rows that have one. In each, threads take the next piece until
 * none is left. Sums are integers, so it does not matter who takes which.
 */
#include "train.h"

#include <stdlib.h>
#include <string.h>

#include "options.h"

#define PIECE 16	    /* rows */
enum { LOSS, WILD, FIRST }; /* positions on the wire */

int trainer_open(struct trainer *t, const struct sizes *z, struct pen_err *err)
{
	const uint64_t rows = 2 * z->nwords;
	uint64_t n;
	bool enough = model_init(&t->model, z->dim, z->nwords);

	n = FIRST + rows * (t->model.stride + 1);
	t->sums = calloc(z->threads, sizeof(*t->sums));
	for (unsigned i = 0; enough && t->sums && i < z->threads; i++)
		enough = sums_init(&t->sums[i], &t->model);
	t->bits = calloc(rows / 64 + 1, sizeof(*t->bits));
	t->rows = calloc(rows + 1, sizeof(*t->rows));
	t->wire = calloc(n, sizeof(*t->wire));
	t->count = calloc(t->nparts + 1, sizeof(*t->count));
	if (!t->deterministic)
		t->floats = calloc(n, sizeof(*t->floats));
	if (!enough || !t->sums || !t->bits || !t->rows || !t->wire ||
	    !t->count || (!t->deterministic && !t->floats))
		return fail_nomem(err, "the vectors");
	t->crew = crew_new(z->threads);
	if (!t->crew)
		return fail_at(err, PEN_ENOMEM, "--train-threads",
			       "cannot start that many threads");
	return docs_open(&t->docs, t->ranks, &t->model, z->ndocs, err);
}

void trainer_close(struct trainer *t)
{
	docs_close(&t->docs);
	for (unsigned i = 0; t->sums && t->crew && i < crew_size(t->crew); i++)
		sums_fini(&t->sums[i]);
	crew_free(t->crew);
	free(t->sums);
	free(t->bits);
	free(t->rows);
	free(t->wire);
	free(t->floats);
	free(t->count);
	model_fini(&t->model);
}

/* The targets of part k of a sequence. */
static struct part part_of(const struct trainer *t, const struct sequence *q,
			   uint32_t k)
{
	const uint64_t n = q->ntargets;

	return (struct part){ q, (uint32_t)(n * k / t->nparts),
			      (uint32_t)(n * (k + 1) / t->nparts) };
}

static void look_on(void *arg, unsigned thread)
{
	struct trainer *t = arg;
	uint64_t i;

	while ((i = atomic_fetch_add(&t->next, 1)) < t->n) {
		const struct part p = part_of(t, &t->q[i], t->part);

		model_look(&t->model, &p, t->share, &t->sums[thread]);
	}
}

static int64_t *wire_row(const struct trainer *t, uint64_t i)
{
	return t->wire + FIRST + i * (t->model.stride + 1);
}

/* Moves the sums of row number i of all threads to the wire. */
static void pack(struct trainer *t, uint64_t i)
{
	const uint32_t n = t->model.stride + 1;
	int64_t *to = wire_row(t, i);

	memset(to, 0, n * sizeof(*to));
	for (unsigned k = 0; k < crew_size(t->crew); k++) {
		int64_t *from = t->sums[k].total + t->rows[i] * n;

		if (!from[n - 1])
			continue;
		for (uint32_t d = 0; d < n; d++)
			to[d] += from[d];
		memset(from, 0, n * sizeof(*from));
	}
}

static void rows_on(struct trainer *t, bool packs, bool updates)
{
	uint64_t i;

	while ((i = atomic_fetch_add(&t->next, PIECE)) < t->nrows)
		for (uint64_t k = i; k < i + PIECE && k < t->nrows; k++) {
			if (packs)
				pack(t, k);
			if (updates)
				model_update(&t->model, t->rows[k],
					     wire_row(t, k), t->share);
		}
}

static void pack_on(void *arg, unsigned thread)
{
	(void)thread;
	rows_on(arg, true, false);
}

static void update_on(void *arg, unsigned thread)
{
	(void)thread;
	rows_on(arg, false, true);
}

static void both_on(void *arg, unsigned thread)
{
	(void)thread;
	rows_on(arg, true, true);
}

static void run(struct trainer *t, void (*fn)(void *, unsigned))
{
	atomic_store(&t->next, 0);
	crew_run(t->crew, fn, t);
}

/* Lists the rows that have a gradient on any rank. */
static int find_rows(struct trainer *t, struct pen_err *err)
{
	const uint64_t rows = 2 * t->model.nwords, n = rows / 64 + 1;
	int rc = 0;

	for (uint64_t i = 0; i < n; i++) {
		t->bits[i] = t->model.update == UPDATE_ADAM ? UINT64_MAX : 0;
		for (unsigned k = 0; k < crew_size(t->crew); k++) {
			t->bits[i] |= t->sums[k].bits[i];
			t->sums[k].bits[i] = 0;
		}
	}
	if (pen_ranks_size(t->ranks) > 1)
		rc = pen_ranks_reduce(t->ranks, t->bits, n, PEN_U64, PEN_OR,
				      err);
	t->nrows = 0;
	for (uint64_t i = 0; i < n; i++)
		for (uint64_t b = t->bits[i]; b; b &= b - 1) {
			const uint64_t row =
				i * 64 + (unsigned)__builtin_ctzll(b);

			if (row < rows)
				t->rows[t->nrows++] = row;
		}
	return rc;
}

/* Sums what is on the wire over all ranks. */
static int exchange(struct trainer *t, struct pen_err *err)
{
	const uint64_t n = FIRST + t->nrows * (t->model.stride + 1);
	int rc;

	if (t->deterministic)
		return pen_ranks_reduce(t->ranks, t->wire, n, PEN_I64, PEN_SUM,
					err);
	for (uint64_t i = 0; i < n; i++)
		t->floats[i] = (float)((double)t->wire[i] / FIXED);
	rc = pen_ranks_reduce(t->ranks, t->floats, n, PEN_F32, PEN_SUM, err);
	for (uint64_t i = 0; i < n && !rc; i++)
		t->wire[i] = (int64_t)((double)t->floats[i] * FIXED);
	return rc;
}

static int diverged(const struct trainer *t, struct pen_err *err)
{
	return fail_at(err, PEN_EDATA, "--rate",
		       "%g is too high: after %llu updates the gradient is too "
		       "large or not a number; use a lower rate",
		       t->model.rate, (unsigned long long)t->model.steps);
}

static int train_part(struct trainer *t, double *loss, struct pen_err *err)
{
	const bool many = pen_ranks_size(t->ranks) > 1;
	int rc;

	model_begin(&t->model, (uint64_t)t->count[t->nparts]);
	t->share = 1.0 / (double)t->count[t->part];
	run(t, look_on);
	t->wire[LOSS] = t->wire[WILD] = 0;
	for (unsigned k = 0; k < crew_size(t->crew); k++) {
		t->wire[LOSS] += t->sums[k].loss;
		t->wire[WILD] += t->sums[k].wild;
		t->sums[k].loss = 0;
	}
	rc = find_rows(t, err);
	if (!rc && many) {
		run(t, pack_on);
		rc = exchange(t, err);
	}
	if (!rc && t->wire[WILD])
		rc = diverged(t, err);
	if (rc)
		return rc;
	run(t, many ? update_on : both_on);
	*loss += (double)t->wire[LOSS] / FIXED;
	return 0;
}

/* Counts targets and sequences of all ranks. */
static int count(struct trainer *t, struct step *s, struct pen_err *err)
{
	int rc = 0;

	memset(t->count, 0, (t->nparts + 1) * sizeof(*t->count));
	t->count[t->nparts] = t->n;
	for (uint32_t i = 0; i < t->n && !rc; i++) {
		if (!model_accepts(&t->model, &t->q[i]))
			rc = fail_at(err, PEN_EDATA, "batch",
				     "an id is not that of a word, or there "
				     "are too many noise words; check that "
				     "format.vocab belongs to this data");
		for (uint32_t k = 0; k < t->nparts; k++) {
			const struct part p = part_of(t, &t->q[i], k);

			t->count[k] += p.last - p.first;
		}
	}
	if (!rc)
		rc = pen_ranks_reduce(t->ranks, t->count, t->nparts + 1,
				      PEN_I64, PEN_SUM, err);
	s->nsequences = (uint64_t)t->count[t->nparts];
	for (uint32_t k = 0; k < t->nparts; k++)
		s->ntargets += (uint64_t)t->count[k];
	return rc;
}

int trainer_step(struct trainer *t, struct sequence *q, uint32_t n,
		 struct step *s, struct pen_err *err)
{
	int rc;

	*s = (struct step){ 0 };
	t->q = q;
	t->n = n;
	rc = count(t, s, err);
	if (!rc)
		rc = docs_fetch(&t->docs, q, n, err);
	for (t->part = 0; t->part < t->nparts && !rc; t->part++)
		if (t->count[t->part])
			rc = train_part(t, &s->loss, err);
	if (!rc)
		rc = docs_store(&t->docs, q, n, err);
	return rc;
}
