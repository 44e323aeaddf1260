/*
 * Loaders whose queues are slow at random: before and after every lock, wait
 * and signal of base/ring.c, a thread may give way to others or stop for a
 * moment. The order and the bytes are those of a single thread, a loader can be
 * closed at any time, and under ThreadSanitizer the accesses are still ordered.
 *
 * ring.c is compiled into this program with these delays, and used by the
 * entire library. SEED=N in the environment draws others.
 */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

static atomic_uint_fast64_t delay_seed;
static _Thread_local uint64_t delay_state;

static void delay(void)
{
	uint64_t x = delay_state;

	if (!x) /* a thread of its own */
		x = 0x9e3779b97f4a7c15u *
		    (1 + atomic_fetch_add(&delay_seed, 1));
	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	delay_state = x;
	for (unsigned n = x % 8 ? 0 : x >> 32 & 15; n; n--)
		sched_yield();
	if (x % 512 == 1)
		poll(NULL, 0, 1);
}

static int slow_lock(pthread_mutex_t *m)
{
	int rc;

	delay();
	rc = pthread_mutex_lock(m);
	delay();
	return rc;
}

static int slow_unlock(pthread_mutex_t *m)
{
	int rc;

	delay();
	rc = pthread_mutex_unlock(m);
	delay();
	return rc;
}

static int slow_signal(pthread_cond_t *c)
{
	delay();
	return pthread_cond_signal(c);
}

static int slow_wait(pthread_cond_t *c, pthread_mutex_t *m)
{
	int rc;

	delay();
	rc = pthread_cond_wait(c, m);
	delay();
	return rc;
}

#define pthread_mutex_lock slow_lock
#define pthread_mutex_unlock slow_unlock
#define pthread_cond_signal slow_signal
#define pthread_cond_wait slow_wait
#include "../src/base/ring.c"
#undef pthread_mutex_lock
#undef pthread_mutex_unlock
#undef pthread_cond_signal
#undef pthread_cond_wait

#include "engine.h"

static const char *const ways[] = {
	"threads=2 prefetch=2", "threads=4",	      "threads=8 prefetch=3",
	"threads=5 store=mmap", "threads=3 cache=1M", "threads=8 memory=400M",
};

static const char *const orders[] = {
	"batch_size=4",
	"batch_size=3 sampler=shuffle seed=7",
	"batch_size=16 sampler=block seed=2 tail=drop",
};

static void same_order(const struct eng_set *s, unsigned i)
{
	struct pen_buf one = { 0 }, many = { 0 };
	const char *order = orders[i % 3];
	struct pen_loader *l;
	struct pen_err err;

	l = eng_open(&err, "%s %s %s epochs=3 threads=1", s->name, s->read,
		     order);
	if (!CHECK(l))
		return;
	CHECK_EQ(eng_run(l, 3, &one, &err), PEN_END);
	pen_loader_close(l);
	l = eng_open(&err, "%s %s %s epochs=3 %s", s->name, s->read, order,
		     ways[i % (sizeof(ways) / sizeof(*ways))]);
	if (CHECK(l)) {
		CHECK_EQ(eng_run(l, 3, &many, &err), PEN_END);
		CHECK(eng_same(&one, &many));
	}
	pen_loader_close(l);
	pen__buf_fini(&one);
	pen__buf_fini(&many);
}

/* Closed after any number of batches, with some of them still held. */
static void close_early(const struct eng_set *s, unsigned after)
{
	struct pen_batch *b[3] = { NULL };
	struct pen_err err;
	struct pen_loader *l = eng_open(
		&err, "%s %s epochs=0 batch_size=2 threads=%u prefetch=4",
		s->name, s->read, 1 + after % 6);

	if (!CHECK(l))
		return;
	for (unsigned i = 0; i < after; i++) {
		pen_batch_unref(b[i % 3]);
		b[i % 3] = NULL;
		CHECK(pen_loader_next(l, &b[i % 3], &err) >= 0);
	}
	pen_loader_close(l);
	for (unsigned i = 0; i < 3; i++)
		pen_batch_unref(b[i]);
}

int main(void)
{
	static const char *const sets[] = { "npy_first", "npz_shared",
					    "npz_ragged" };
	const char *seed = getenv("SEED");

	atomic_store(&delay_seed, seed ? strtoul(seed, NULL, 10) : 1);
	eng_start("ring_delays");
	for (unsigned k = 0; k < 3; k++) {
		const struct eng_set *s = eng_find(sets[k]);

		eng_make(s);
		for (unsigned i = 0; i < 12; i++)
			same_order(s, i);
		for (unsigned i = 0; i < 16; i++)
			close_early(s, i);
	}
	eng_end();
	return test_end();
}
