/* See crew.h: two barriers per call, one to start and one to end. */
#include "crew.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

struct member {
	struct crew *of;
	unsigned number;
	pthread_t thread;
};

struct crew {
	unsigned size;
	struct member *member;
	pthread_barrier_t barrier;
	void (*fn)(void *arg, unsigned thread); /* NULL: quit */
	void *arg;
};

static void *work(void *arg)
{
	const struct member *m = arg;
	struct crew *c = m->of;

	for (;;) {
		pthread_barrier_wait(&c->barrier);
		if (!c->fn)
			return NULL;
		c->fn(c->arg, m->number);
		pthread_barrier_wait(&c->barrier);
	}
}

void crew_run(struct crew *c, void (*fn)(void *, unsigned), void *arg)
{
	if (c->size == 1) {
		fn(arg, 0);
		return;
	}
	c->fn = fn;
	c->arg = arg;
	pthread_barrier_wait(&c->barrier);
	fn(arg, 0);
	pthread_barrier_wait(&c->barrier);
}

unsigned crew_size(const struct crew *c)
{
	return c->size;
}

struct crew *crew_new(unsigned threads)
{
	struct crew *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->size = threads;
	c->member = calloc(threads, sizeof(*c->member));
	if (!c->member || pthread_barrier_init(&c->barrier, NULL, threads)) {
		free(c->member);
		free(c);
		return NULL;
	}
	for (unsigned i = 1; i < threads; i++) {
		c->member[i] = (struct member){ .of = c, .number = i };
		/* threads that wait at the barrier cannot be stopped, but the
		 * program ends anyway */
		if (pthread_create(&c->member[i].thread, NULL, work,
				   &c->member[i]))
			return NULL;
	}
	return c;
}

void crew_free(struct crew *c)
{
	if (!c)
		return;
	c->fn = NULL;
	if (c->size > 1)
		pthread_barrier_wait(&c->barrier);
	for (unsigned i = 1; i < c->size; i++)
		pthread_join(c->member[i].thread, NULL);
	pthread_barrier_destroy(&c->barrier);
	free(c->member);
	free(c);
}
