/*
 * A step has two phases: the gradient of every sequence, then the update of the
 * rows. In each phase, threads take the next piece until none is left. Sums are
 * made in the order of the batch, so the result does not depend on which thread
 * took which piece.
 */
#include "crew.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define ROWS_PIECE 64	 /* rows of words and out */
#define DRIFT_PIECE 4096 /* rows of docs */

struct crew {
	struct model *m;
	struct gradient *gradient;
	uint32_t room; /* allocated gradients */
	unsigned threads;
	pthread_t *thread;
	pthread_barrier_t barrier; /* between phases */
	bool quit;		   /* set before the barrier opens */

	/* the current step */
	const struct sequence *q;
	uint32_t n;
	double share;
	atomic_bool wrong;
	atomic_uint_fast64_t look, words, drift; /* next piece */
};

static void look_on(struct crew *c)
{
	uint64_t i;

	while ((i = atomic_fetch_add(&c->look, 1)) < c->n)
		if (!model_look(c->m, &c->q[i], c->share, &c->gradient[i]))
			atomic_store(&c->wrong, true);
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void update_on(struct crew *c)
{
	uint64_t nwords = c->m->words.rows, ndocs = c->m->docs.rows, i;

	while ((i = atomic_fetch_add(&c->words, ROWS_PIECE)) < nwords)
		model_words(c->m, c->gradient, c->n, i,
			    least(i + ROWS_PIECE, nwords));
	if (c->m->update != UPDATE_ADAM)
		return;
	while ((i = atomic_fetch_add(&c->drift, DRIFT_PIECE)) < ndocs)
		model_drift(c->m, c->q, c->n, i, least(i + DRIFT_PIECE, ndocs));
}

static void meet(struct crew *c)
{
	if (c->threads > 1)
		pthread_barrier_wait(&c->barrier);
}

/* Loop of the other threads. */
static void *work(void *arg)
{
	struct crew *c = arg;

	for (;;) {
		meet(c);
		if (c->quit)
			return NULL;
		look_on(c);
		meet(c);
		meet(c); /* the caller decides whether to go on */
		if (!atomic_load(&c->wrong))
			update_on(c);
		meet(c);
	}
}

/* Allocates a gradient for each of n sequences. */
static bool make_room(struct crew *c, uint32_t n)
{
	struct gradient *more;

	if (n <= c->room)
		return true;
	more = realloc(c->gradient, n * sizeof(*more));
	if (!more)
		return false;
	c->gradient = more;
	for (; c->room < n; c->room++)
		if (!gradient_init(&more[c->room], c->m)) {
			gradient_fini(&more[c->room]);
			return false;
		}
	return true;
}

enum step crew_step(struct crew *c, const struct sequence *q, uint32_t n,
		    double *loss)
{
	uint64_t ntargets = 0;
	bool right;

	for (uint32_t i = 0; i < n; i++)
		ntargets += q[i].ntargets;
	*loss = 0;
	if (!ntargets)
		return STEP_DONE;
	if (!make_room(c, n))
		return STEP_NOMEM;
	c->q = q;
	c->n = n;
	c->share = 1.0 / (double)ntargets;
	atomic_store(&c->wrong, false);
	atomic_store(&c->look, 0);
	atomic_store(&c->words, 0);
	atomic_store(&c->drift, 0);
	meet(c);
	look_on(c);
	meet(c);
	right = !atomic_load(&c->wrong);
	if (right)
		model_begin(c->m);
	meet(c);
	if (right) {
		model_docs(c->m, q, c->gradient, n);
		update_on(c);
	}
	meet(c);
	for (uint32_t i = 0; right && i < n; i++)
		*loss += c->gradient[i].loss * c->share;
	return right ? STEP_DONE : STEP_WRONG;
}

static bool start(struct crew *c)
{
	if (c->threads < 2)
		return true;
	c->thread = calloc(c->threads, sizeof(*c->thread));
	if (!c->thread || pthread_barrier_init(&c->barrier, NULL, c->threads))
		return false;
	for (unsigned i = 1; i < c->threads; i++)
		if (pthread_create(&c->thread[i], NULL, work, c))
			return false;
	return true;
}

struct crew *crew_new(struct model *m, unsigned threads)
{
	struct crew *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->m = m;
	c->threads = threads ? threads : 1;
	/* on failure, threads waiting at the barrier cannot be stopped, but the
	 * program ends anyway */
	return start(c) ? c : NULL;
}

void crew_free(struct crew *c)
{
	if (c->thread) {
		c->quit = true;
		meet(c);
		for (unsigned i = 1; i < c->threads; i++)
			pthread_join(c->thread[i], NULL);
		pthread_barrier_destroy(&c->barrier);
		free(c->thread);
	}
	for (uint32_t i = 0; c->gradient && i < c->room; i++)
		gradient_fini(&c->gradient[i]);
	free(c->gradient);
	free(c);
}
