/* See batch.h. */
#include "batch.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"

const char *const field_names[NFIELDS] = { "doc_ids", "target_ids",
					   "context_ids", "target_noise_ids" };

/* Finds the tensors of a batch, in the order of the names. */
static int find(const struct pen_batch *b, const struct pen_tensor **t,
		struct pen_err *err)
{
	for (unsigned f = 0; f < NFIELDS; f++) {
		t[f] = NULL;
		for (uint32_t i = 0; i < b->ntensors; i++)
			if (!strcmp(b->tensors[i].name, field_names[f]))
				t[f] = &b->tensors[i];
		if (!t[f])
			return fail_at(err, PEN_EINVAL, field_names[f],
				       "the data has no such field; set "
				       "format.tokens=dm");
		if (t[f]->dtype != PEN_I32 ||
		    (t[f]->layout != PEN_DENSE && t[f]->layout != PEN_RAGGED))
			return fail_at(err, PEN_EINVAL, field_names[f],
				       "must be int32 and neither padded nor "
				       "packed; do not set format.dtype, "
				       "shapes or pack");
	}
	return 0;
}

/* Start and length of row i of a field. */
static const int32_t *row(const struct pen_tensor *t, uint32_t i, uint64_t *n)
{
	const int32_t *data = t->data;

	if (t->layout == PEN_RAGGED) {
		*n = (uint64_t)(t->offsets[i + 1] - t->offsets[i]);
		return data + t->offsets[i];
	}
	*n = 1;
	for (uint32_t d = 1; d < t->ndim; d++)
		*n *= (uint64_t)t->shape[d];
	return data + *n * i;
}

static uint64_t total(const int32_t *v, uint64_t n)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i < n; i++)
		sum += (uint32_t)v[i];
	return sum;
}

static bool all_are(const int32_t *v, uint64_t n, uint64_t what)
{
	uint32_t differ = 0;

	for (uint64_t i = 0; i < n; i++)
		differ |= (uint32_t)v[i] ^ (uint32_t)what;
	return !differ;
}

/* Row i of the tensors. */
static int take_row(struct slice *s, const struct pen_tensor *const *t,
		    uint32_t i, struct epoch *e, uint64_t id)
{
	const int32_t *v[NFIELDS];
	uint64_t n[NFIELDS], c;

	for (unsigned f = 0; f < NFIELDS; f++)
		v[f] = row(t[f], i, &n[f]);
	c = n[TARGET];
	if (n[DOC] != c || (c && (n[CONTEXT] % c || n[GUESS] % c)) ||
	    !all_are(v[DOC], c, id))
		return PEN_EDATA;
	s->q[i] = (struct sequence){
		.doc = id,
		.ntargets = (uint32_t)c,
		.ncontext = c ? (uint32_t)(n[CONTEXT] / c) : 0,
		.nwords = c ? (uint32_t)(n[GUESS] / c) : 1,
		.context = v[CONTEXT],
		.guess = v[GUESS],
	};
	e->ntargets += c;
	e->sum += total(v[TARGET], c) + 3 * total(v[CONTEXT], n[CONTEXT]) +
		  7 * total(v[DOC], c);
	return 0;
}

int slice_take(struct slice *s, const struct pen_batch *b, struct epoch *e,
	       struct pen_err *err)
{
	const struct pen_tensor *t[NFIELDS];
	int rc = find(b, t, err);

	if (rc)
		return rc;
	if (b->nsamples > s->room) {
		free(s->q);
		s->room = b->nsamples;
		s->q = calloc(s->room, sizeof(*s->q));
		if (!s->q)
			return fail_nomem(err, "a batch");
	}
	for (uint32_t i = 0; i < b->nsamples; i++) {
		const uint64_t id = b->ids[i], bit = (uint64_t)1 << id % 64;

		if (take_row(s, t, i, e, id))
			return fail_at(err, PEN_EDATA, "batch",
				       "the fields do not match one another");
		if (e->seen[id / 64] & bit)
			return fail_at(err, PEN_EDATA, "epoch",
				       "a sequence occurred twice");
		e->seen[id / 64] |= bit;
	}
	s->n = b->nsamples;
	e->nsamples += b->nsamples;
	return 0;
}

uint64_t epoch_words(const struct epoch *e)
{
	return e->nseen / 64 + 1;
}

int epoch_join(struct epoch *e, struct pen_ranks *ranks, struct pen_err *err)
{
	uint64_t v[3] = { e->nsamples, e->ntargets, e->sum };
	int rc = pen_ranks_reduce(ranks, v, 3, PEN_U64, PEN_SUM, err);

	if (!rc)
		rc = pen_ranks_reduce(ranks, e->seen, epoch_words(e), PEN_U64,
				      PEN_OR, err);
	e->nsamples = v[0];
	e->ntargets = v[1];
	e->sum = v[2];
	return rc;
}

void epoch_clear(struct epoch *e)
{
	e->nsamples = e->ntargets = e->sum = 0;
	memset(e->seen, 0, epoch_words(e) * sizeof(*e->seen));
}

int epoch_check(const struct epoch *e, struct pen_err *err)
{
	uint64_t n = 0;

	for (uint64_t i = 0; i < epoch_words(e); i++)
		n += (unsigned)__builtin_popcountll(e->seen[i]);
	if (e->nsamples != e->nseen)
		return fail_at(err, PEN_EDATA, "epoch",
			       "it had %" PRIu64 " of %" PRIu64
			       " sequences; do not set subset, world, tail or "
			       "on_error",
			       e->nsamples, e->nseen);
	if (n != e->nseen)
		return fail_at(err, PEN_EDATA, "epoch",
			       "a sequence occurred twice");
	return 0;
}
