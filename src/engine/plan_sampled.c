/*
 * Steps of one size. A position is a place in the epoch's global order. Global
 * batch g takes world * batch_size positions, and this rank takes its slice of
 * them, so the order does not depend on the number of ranks.
 */
#include "engine/loader.h"

static uint64_t global_batch(const struct pen_loader *l)
{
	return l->world * l->batch;
}

static uint64_t batches_from(const struct pen_loader *l, uint64_t pos)
{
	/* a state saved with a longer epoch may be past the end of this one */
	uint64_t rest = pos < l->length ? l->length - pos : 0;
	uint64_t g = global_batch(l);

	return rest / g + (l->tail != PEN_TAIL_DROP && rest % g ? 1 : 0);
}

/* This rank's positions of the global batch at pos. With padding they may
 * exceed the end of the epoch, and wrap around to its start. */
static uint32_t slice(const struct pen_loader *l, uint64_t pos, uint64_t *first)
{
	uint64_t rest = l->length - pos;

	if (rest >= global_batch(l) || l->tail == PEN_TAIL_PAD) {
		*first = pos + l->rank * l->batch;
		return l->batch;
	}
	*first = pos + rest * l->rank / l->world;
	return (uint32_t)(pos + rest * (l->rank + 1) / l->world - *first);
}

int pen__steps_sampler(const struct pen_loader *l, const char *name,
		       struct pen_sampler **out, struct pen_err *err)
{
	const struct pen_spec *s = l->ds->spec;
	const struct pen_by_length *c = &l->by_length;
	struct pen_population pop = {
		.n = l->choice.n,
		.weights = l->choice.weights,
		.labels = l->choice.labels,
		.lengths = l->choice.lengths ? l->choice.lengths
					     : c->lengths.table,
		.batch = l->typical,
		.tokens = c->tokens,
		.most = l->batch,
		.padded = c->padded,
		.multiple = c->multiple,
	};

	return pen__sampler_open(
		out, name ? name : pen__spec_sampler(s), &pop, s->seed,
		(struct pen_opts){ s->for_sampler.kv,
				   name ? 0 : s->for_sampler.n },
		err);
}

uint32_t pen__steps_rows(const struct pen_loader *l, uint64_t n)
{
	if (n > l->batch)
		return l->batch;
	return n ? (uint32_t)n : 1;
}

bool pen__steps_comes(const struct pen_loader *l, uint64_t epoch)
{
	return !l->ds->spec->epochs || epoch < l->ds->spec->epochs;
}

/* A batch has no more rows than an epoch has samples for this rank, unless
 * padding repeats some. */
static int open_sampled(struct pen_loader *l, struct pen_err *err)
{
	const uint64_t global = global_batch(l),
		       group = l->ds->spec->batch_group,
		       most = l->ds->spec->epoch_batches;
	int rc = 0;

	l->typical = l->batch;
	l->pad_batch = pen__sorts_by_length(l);
	if (l->pad_batch)
		rc = pen__lengths_settle(l, err);
	if (!rc)
		rc = pen__steps_sampler(l, NULL, &l->sampler, err);
	if (rc)
		return rc;
	l->length = l->sampler->length;
	if (most && most <= l->length / global)
		l->length = most * global;
	if (group)
		l->length -= l->length % (global * group);
	l->rows = l->batch;
	if (l->tail != PEN_TAIL_PAD)
		l->rows = pen__steps_rows(
			l, l->length / l->world + (l->length % l->world > 0));
	l->places = l->rows;
	return 0;
}

/* The batches of an epoch that are delivered: of a tail with fewer samples than
 * ranks, some ranks get none. */
static uint64_t count(struct pen_loader *l, uint64_t epoch)
{
	const uint64_t n = batches_from(l, 0);
	uint64_t first;

	(void)epoch;
	return n && !slice(l, (n - 1) * global_batch(l), &first) ? n - 1 : n;
}

static int ids(struct pen_loader *l, uint64_t epoch, uint64_t first, size_t n,
	       uint64_t *out, struct pen_err *err)
{
	struct pen_sampler *s = l->sampler;
	int rc = 0;

	for (size_t done = 0; !rc && done < n;) {
		uint64_t pos = (first + done) % s->length;
		size_t run = n - done;

		if (run > s->length - pos)
			run = s->length - pos;
		rc = s->ops->ids(s, pen__order_of(l, epoch), pos, run,
				 out + done, err);
		done += run;
	}
	return rc;
}

static int mine(struct pen_loader *l, uint64_t pos, bool *yes,
		struct pen_err *err)
{
	uint64_t g = global_batch(l);
	uint64_t start = pos - (pos - l->plan.origin) % g, first;
	uint32_t n = slice(l, start, &first);

	(void)err;
	/* do not hold what no batch takes: it would never be released */
	*yes = !(l->tail == PEN_TAIL_DROP && l->length - start < g) &&
	       pos >= first && pos < first + n;
	return 0;
}

static bool advance(struct pen_loader *l)
{
	struct pen_plan *p = &l->plan;

	if (!batches_from(l, p->at.pos)) {
		p->at = (struct pen_cursor){ p->at.epoch + 1, 0 };
		p->origin = 0;
	}
	return batches_from(l, p->at.pos) && pen__steps_comes(l, p->at.epoch);
}

static int next(struct pen_loader *l, struct pen_pooled *b, struct pen_step *s,
		struct pen_err *err)
{
	const struct pen_plan *p = &l->plan;

	(void)b;
	(void)err;
	*s = (struct pen_step){ .at = p->at, .counts = true };
	s->end = p->at.pos + global_batch(l);
	if (s->end > l->length)
		s->end = l->length;
	s->n = slice(l, p->at.pos, &s->first);
	return 0;
}

void pen__steps_done(struct pen_loader *l, const struct pen_step *s)
{
	l->plan.seq++;
	l->plan.at.pos = s->end;
}

const struct pen_steps pen__steps_sampled = {
	.open = open_sampled,
	.close = pen__by_length_close,
	.bytes = pen__shapes_bytes,
	.comes = pen__steps_comes,
	.advance = advance,
	.next = next,
	.fill = pen__steps_fill,
	.done = pen__steps_done,
	.mine = mine,
	.ids = ids,
	.left = batches_from,
	.count = count,
};
