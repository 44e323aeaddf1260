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

/* This rank's positions of the global batch at pos. May pass the epoch's end
 * when padding: those positions wrap round to its start. */
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

/* Those of an epoch that come out: of a tail with fewer samples than ranks,
 * some have none. */
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
	/* what nobody will take must not be held: it would stay for ever */
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
	return batches_from(l, p->at.pos) && pen__epoch_comes(l);
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

void pen__step_done(struct pen_loader *l, const struct pen_step *s)
{
	l->plan.seq++;
	l->plan.at.pos = s->end;
}

const struct pen_steps pen__steps_sampled = {
	.advance = advance,
	.next = next,
	.done = pen__step_done,
	.mine = mine,
	.ids = ids,
	.left = batches_from,
	.count = count,
};
