/*
 * Random access: batches of requested samples, made by the same plan and the
 * same workers as all others. Requests queue up without bound (a request is a
 * list of numbers); the batches made ahead are bounded by the pool. A free
 * batch without a request is set aside here until the next request wakes it.
 */
#include <string.h>

#include "engine/loader.h"

struct request {
	struct request *next;
	uint64_t pos; /* of its first sample, among all requested */
	uint32_t n;
	uint64_t ids[];
};

struct pen_asked { /* under the loader's lock; the planner pops the head */
	struct request *head, **tail;
	uint64_t end; /* position after the last request */
	struct pen_pooled *resting;
};

/* Takes the first request; without one the batch is set aside. */
static int next(struct pen_loader *l, struct pen_pooled *b, struct pen_step *s,
		struct pen_err *err)
{
	struct pen_asked *a = l->asked;
	struct request *r;

	(void)err;
	pthread_mutex_lock(&l->lock);
	r = a->head;
	if (!r) {
		b->next_parked = a->resting;
		a->resting = b;
	}
	pthread_mutex_unlock(&l->lock);
	if (!r)
		return PEN_AGAIN;
	*s = (struct pen_step){ .at = l->plan.at,
				.first = l->plan.at.pos,
				.n = r->n,
				.counts = true,
				.alone = true };
	s->end = s->first + s->n;
	return 0;
}

static int ids(struct pen_loader *l, uint64_t epoch, uint64_t first, size_t n,
	       uint64_t *out, struct pen_err *err)
{
	const struct request *r = l->asked->head;

	(void)epoch;
	(void)err;
	memcpy(out, r->ids + (first - r->pos), n * sizeof(*out));
	return 0;
}

static void done(struct pen_loader *l, const struct pen_step *s)
{
	struct pen_asked *a = l->asked;
	struct request *r;

	pthread_mutex_lock(&l->lock);
	r = a->head;
	a->head = r->next;
	if (!a->head)
		a->tail = &a->head;
	pthread_mutex_unlock(&l->lock);
	pen__free(r);
	pen__steps_done(l, s);
}

static bool advance(struct pen_loader *l)
{
	(void)l;
	return true;
}

/* There are no epochs, only requests. */
static bool comes(const struct pen_loader *l, uint64_t epoch)
{
	(void)l;
	(void)epoch;
	return false;
}

static int mine(struct pen_loader *l, uint64_t pos, bool *yes,
		struct pen_err *err)
{
	(void)l;
	(void)pos;
	(void)err;
	*yes = true;
	return 0;
}

/* pen_loader_ask() counts the batches. */
static uint64_t left(const struct pen_loader *l, uint64_t pos)
{
	(void)l;
	(void)pos;
	return 0;
}

static uint64_t count(struct pen_loader *l, uint64_t epoch)
{
	(void)epoch;
	return l->length / l->batch;
}

static int open_asked(struct pen_loader *l, struct pen_err *err)
{
	int rc;

	if (l->ds->spec->pack)
		return pen__fail(err, P_CONFLICT, "pack",
				 "cannot be combined with requested batches, "
				 "which are never packed; omit it");
	l->asked = pen__calloc(1, sizeof(*l->asked));
	if (!l->asked)
		return pen__fail_nomem(err, "loader", sizeof(*l->asked));
	l->asked->tail = &l->asked->head;
	l->world = 1;
	l->rank = 0;
	l->typical = l->places = l->batch;
	/* requests come in any order, from all over the data */
	rc = pen__steps_sampler(l, "shuffle", &l->sampler, err);
	if (rc)
		return rc;
	l->length = INT64_MAX;
	l->rows = pen__steps_rows(l, l->sampler->length);
	return 0;
}

static void close_asked(struct pen_loader *l)
{
	struct request *r, *next;

	if (!l->asked)
		return;
	for (r = l->asked->head; r; r = next) {
		next = r->next;
		pen__free(r);
	}
	pen__free(l->asked);
	l->asked = NULL;
}

const struct pen_steps pen__steps_asked = {
	.vary = true,
	.open = open_asked,
	.close = close_asked,
	.bytes = pen__shapes_bytes,
	.comes = comes,
	.advance = advance,
	.next = next,
	.fill = pen__steps_fill,
	.done = done,
	.mine = mine,
	.ids = ids,
	.left = left,
	.count = count,
};

/* Queues the request and returns a batch that was set aside, or NULL. */
static struct pen_pooled *add(struct pen_loader *l, struct request *r)
{
	struct pen_asked *a = l->asked;
	struct pen_pooled *b;

	pthread_mutex_lock(&l->lock);
	r->pos = a->end;
	a->end += r->n;
	*a->tail = r;
	a->tail = &r->next;
	b = a->resting;
	if (b)
		a->resting = b->next_parked;
	pthread_mutex_unlock(&l->lock);
	return b;
}

static int check(const struct pen_loader *l, const uint64_t *ids, uint32_t n,
		 struct pen_err *err)
{
	if (!l->asked)
		return pen__fail(
			err, P_BAD_CALL, "loader",
			"has an order of its own and takes no requests");
	if (!n || n > l->batch)
		return pen__fail(
			err, P_BAD_VALUE, "batch_size",
			"1 to %u samples can be requested at a time, not %u",
			l->batch, n);
	for (uint32_t i = 0; i < n; i++)
		if (ids[i] >= l->choice.n)
			return pen__fail(err, P_BAD_VALUE, "index",
					 "sample %llu does not exist; the "
					 "samples are 0 to %llu",
					 (unsigned long long)ids[i],
					 (unsigned long long)l->choice.n - 1);
	return 0;
}

PEN_API int pen_loader_ask(struct pen_loader *l, const uint64_t *ids,
			   uint32_t n, struct pen_err *err)
{
	int rc = check(l, ids, n, err);
	struct pen_pooled *b;
	struct request *r;

	if (rc)
		return rc;
	r = pen__alloc(1, sizeof(*r) + (size_t)n * sizeof(*ids));
	if (!r)
		return pen__fail_nomem(err, "request", n * sizeof(*ids));
	r->next = NULL;
	r->n = n;
	memcpy(r->ids, ids, (size_t)n * sizeof(*ids));
	b = add(l, r);
	l->left++;
	if (b)
		pen__ring_push(l->ring, PEN_LANE_PLAN, &b->plan);
	else
		pen__ring_rouse(l->ring); /* free batches may wait unseen */
	return 0;
}
