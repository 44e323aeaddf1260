/*
 * Every order in which a few threads can run through the queues of base/ring.c,
 * on small sizes: nothing is lost, taken twice or out of order, and no thread
 * stays asleep.
 *
 * ring.c is compiled into this program with its mutexes and condition variables
 * replaced by those below. Threads are coroutines, and at every lock, wait and
 * signal this program chooses which one continues, which sleeper a signal
 * wakes, whether a timed wait ends, and whether one sleeper wakes without a
 * signal. It tries all choices, depth first, by running the scenario again from
 * its start; a state seen before (memory of the queue, stacks and places of all
 * threads) is not followed again. Everything the queues share is behind a
 * mutex, so there is nothing between two of these points that another thread
 * could notice; ThreadSanitizer holds that (test_ring, test_ring_delays).
 */
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <time.h>
#include <ucontext.h>

enum { THREADS = 4, STACK = 64 << 10, DEPTH = 400 };

enum state { READY, LOCKING, SLEEPING, DOZING, ENDED };

struct thread {
	enum state state;
	const void *on;	 /* the mutex or condition variable */
	bool timed, due; /* a wait that may end, and one that ended so */
	jmp_buf regs;
	char *sp;
	ucontext_t at;
	_Alignas(16) char stack[STACK];
};

static struct thread threads[THREADS];
static unsigned nthreads, self;
static ucontext_t scheduler;
static const void *locked[2]; /* mutexes: of the ring and of the order */
static bool lossy;	      /* a broken queue: signals are lost */
static bool spurious;	      /* one sleeper may wake by itself */
static bool stuck, disordered;

/* --- choices --- */

static struct {
	uint8_t took[DEPTH], of[DEPTH];
	unsigned n, replay; /* length, and how much of it is given */
} path;
static uint64_t *seen;
static size_t nseen, cap_seen;
static uint64_t runs;

static bool add_seen(uint64_t h)
{
	size_t i;

	h += !h;
	if (2 * nseen >= cap_seen) {
		uint64_t *old = seen;
		const size_t n = cap_seen;

		cap_seen = n ? 2 * n : 1 << 12;
		seen = calloc(cap_seen, sizeof(*seen));
		nseen = 0;
		for (i = 0; i < n; i++)
			if (old[i])
				add_seen(old[i]);
		free(old);
	}
	for (i = h & (cap_seen - 1); seen[i]; i = (i + 1) & (cap_seen - 1))
		if (seen[i] == h)
			return false;
	seen[i] = h;
	nseen++;
	return true;
}

static unsigned choose(unsigned n)
{
	if (path.n >= path.replay) {
		path.took[path.n] = 0;
		path.of[path.n] = (uint8_t)n;
	}
	if (path.n >= DEPTH - 1 || path.of[path.n] != n)
		abort(); /* the same choices did not lead to the same state */
	return path.took[path.n++];
}

/* The next path: the last choice that has another branch takes it. */
static bool advance(void)
{
	while (path.n && path.took[path.n - 1] + 1 >= path.of[path.n - 1])
		path.n--;
	if (!path.n)
		return false;
	path.took[path.n - 1]++;
	path.replay = path.n;
	return true;
}

/* --- what ring.c calls --- */

/* Gives control to the scheduler. The registers are in the frame, so that the
 * stack from here on is all that this thread knows. */
static void pause_here(void)
{
	struct thread *t = &threads[self];

	if (setjmp(t->regs) == 0) {
		t->sp = __builtin_frame_address(0);
		swapcontext(&t->at, &scheduler);
	}
}

static bool is_locked(const void *m)
{
	return locked[0] == m || locked[1] == m;
}

static int mc_lock(const pthread_mutex_t *m)
{
	threads[self].state = LOCKING;
	threads[self].on = m;
	pause_here();
	if (is_locked(m))
		abort();
	locked[locked[0] != NULL] = m;
	return 0;
}

static int mc_unlock(const pthread_mutex_t *m)
{
	if (!is_locked(m))
		abort();
	locked[locked[0] != m] = NULL;
	return 0;
}

static int mc_sleep(const pthread_cond_t *c, const pthread_mutex_t *m,
		    bool timed)
{
	struct thread *t = &threads[self];

	mc_unlock(m);
	t->state = SLEEPING;
	t->on = c;
	t->timed = timed;
	t->due = false;
	pause_here();
	timed = t->due;
	t->due = false;
	mc_lock(m);
	return timed ? ETIMEDOUT : 0;
}

static int mc_wait(const pthread_cond_t *c, const pthread_mutex_t *m)
{
	return mc_sleep(c, m, false);
}

static int mc_timedwait(const pthread_cond_t *c, const pthread_mutex_t *m,
			const struct timespec *until)
{
	(void)until;
	return mc_sleep(c, m, true);
}

static void rouse(struct thread *t)
{
	t->state = READY;
	t->on = NULL;
}

static int mc_signal(const pthread_cond_t *c)
{
	unsigned who[THREADS], n = 0;

	threads[self].state = READY;
	pause_here();
	for (unsigned i = 0; i < nthreads; i++)
		if (threads[i].state == SLEEPING && threads[i].on == c)
			who[n++] = i;
	if (n && !lossy)
		rouse(&threads[who[choose(n)]]);
	return 0;
}

static int mc_broadcast(const pthread_cond_t *c)
{
	for (unsigned i = 0; i < nthreads; i++)
		if (threads[i].state == SLEEPING && threads[i].on == c)
			rouse(&threads[i]);
	return 0;
}

static int mc_nanosleep(const struct timespec *ts, struct timespec *left)
{
	(void)ts;
	(void)left;
	threads[self].state = DOZING;
	pause_here();
	return 0;
}

static uint64_t mc_now(void)
{
	return 1000000000; /* time is a choice, not a number */
}

/* first, without the replacements */
#include "base/clock.h"
#include "base/mem.h"

#define pthread_mutex_lock mc_lock
#define pthread_mutex_unlock mc_unlock
#define pthread_cond_wait mc_wait
#define pthread_cond_timedwait mc_timedwait
#define pthread_cond_signal mc_signal
#define pthread_cond_broadcast mc_broadcast
#define nanosleep mc_nanosleep
#define pen__now_ns mc_now
#include "../src/base/ring.c"

/* --- scenarios --- */

enum { ITEMS = 4 };

/* One run of a scenario. All that threads share is here or in the queues, so
 * that the hash of a state sees it. */
static struct {
	struct pen_ring *ring;
	struct pen_order *order;
	char item[ITEMS];
	uint8_t taken[ITEMS];	/* how often */
	uint8_t got[2 * ITEMS]; /* in which order */
	uint8_t serial[ITEMS];
	unsigned ngot, in_lane, nended, nclosed;
} now;

struct scenario {
	const char *name;
	unsigned nthreads;
	unsigned cap;
	int exclusive;
	void (*body)(unsigned i);
	bool (*right)(void); /* after all threads ended */
};
static const struct scenario *running;

static void take_it(const char *it)
{
	const unsigned i = (unsigned)(it - now.item);

	now.taken[i]++;
	now.got[now.ngot++] = (uint8_t)i;
}

static bool took_all(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (now.taken[i] != 1)
			return false;
	return now.ngot == n;
}

static bool took_four(void)
{
	return took_all(4);
}

static bool took_three(void)
{
	return took_all(3);
}

/* Two push two items each, two pop two each. */
static void pushes_and_pops(unsigned i)
{
	for (unsigned k = 0; k < 2; k++) {
		if (i < 2) {
			CHECK(pen__ring_push(now.ring, 0,
					     &now.item[2 * i + k]));
		} else {
			take_it(pen__ring_pop(now.ring, NULL, true));
		}
	}
}

/* One pushes three at once, three pop one each. */
static void many_at_once(unsigned i)
{
	void *three[3] = { &now.item[0], &now.item[1], &now.item[2] };

	if (!i)
		CHECK(pen__ring_push_many(now.ring, 2, three, 3));
	else
		take_it(pen__ring_pop(now.ring, NULL, true));
}

/* Two take turns with the exclusive lane, while the third pushes. */
static void take_turns(unsigned i)
{
	unsigned lane;

	if (i == 2) {
		for (unsigned k = 0; k < 3; k++)
			CHECK(pen__ring_push(now.ring, k == 2 ? 0 : 1,
					     &now.item[k]));
		return;
	}
	for (unsigned k = i; k < 2; k++) {
		take_it(pen__ring_pop(now.ring, &lane, true));
		disordered |= lane == 1 && now.in_lane++;
		pause_here();
		now.in_lane -= lane == 1;
		pen__ring_done(now.ring, lane);
	}
}

/* Without a wake-up for each: the last is followed by a call for help. */
static void lazily(unsigned i)
{
	if (i) {
		take_it(pen__ring_pop(now.ring, NULL, true));
		/* who takes one sees to the rest, as a worker does */
		pen__ring_rouse(now.ring);
		return;
	}
	for (unsigned k = 0; k < 3; k++)
		CHECK(pen__ring_push_lazily(now.ring, 0, &now.item[k], 2));
	pen__ring_rouse(now.ring);
}

/* One closes while others push and pop: all come back. */
static void close_it(unsigned i)
{
	char *it;

	if (i == 0) {
		pen__ring_close(now.ring);
		return;
	}
	if (i == 1 && !pen__ring_push(now.ring, 0, &now.item[0]))
		now.nclosed++;
	it = pen__ring_pop(now.ring, NULL, true);
	if (it)
		take_it(it);
	now.nended++;
}

static bool all_came_back(void)
{
	return now.nended == 3 && now.ngot <= 1 &&
	       (!now.nclosed || !now.ngot) && now.taken[0] == now.ngot;
}

/* Two put serials 0, 2 and 1, 3; one takes all. */
static void in_order(unsigned i)
{
	for (unsigned k = 0; k < 4; k++) {
		if (i == 2)
			take_it(pen__order_get(now.order, NULL));
		else if (k % 2 == i)
			pen__order_put(now.order, k, &now.item[k]);
	}
}

static bool was_in_order(void)
{
	for (unsigned i = 0; i < 4; i++)
		disordered |= now.got[i] != i;
	return took_all(4);
}

/* Two take from one order, with a limit of time; what came too late is there
 * afterwards. */
static void in_time(unsigned i)
{
	char *it;

	if (i < 2) {
		pen__order_put(now.order, 1 - i, &now.item[1 - i]);
		return;
	}
	it = pen__order_get_within(now.order, 1000, NULL);
	if (it)
		take_it(it);
	if (i == 3)
		pen__order_close(now.order);
}

static bool none_twice(void)
{
	return now.taken[0] <= 1 && now.taken[1] <= now.taken[0] &&
	       now.ngot == (unsigned)(now.taken[0] + now.taken[1]);
}

/*
 * Batches: two workers take free ones and put them into the order; the consumer
 * takes three in order, gives the first back for a later serial, and closes.
 */
static void batches(unsigned i)
{
	char *it;

	if (i < 2) {
		while ((it = pen__ring_pop(now.ring, NULL, true)) != NULL)
			pen__order_put(now.order, now.serial[it - now.item],
				       it);
		return;
	}
	for (unsigned k = 0; k < 2; k++) {
		now.serial[k] = (uint8_t)k;
		CHECK(pen__ring_push(now.ring, 0, &now.item[k]));
	}
	for (unsigned k = 0; k < 3; k++) {
		it = pen__order_get(now.order, NULL);
		disordered |= now.serial[it - now.item] != k;
		now.serial[it - now.item] = (uint8_t)(k + 2);
		now.ngot++;
		if (k < 1)
			CHECK(pen__ring_push(now.ring, 0, it));
	}
	pen__ring_close(now.ring);
}

static bool three_came(void)
{
	return now.ngot == 3;
}

static const struct scenario scenarios[] = {
	{ "pushes and pops", 4, 4, -1, pushes_and_pops, took_four },
	{ "many at once", 4, 3, -1, many_at_once, took_three },
	{ "exclusive lane", 3, 3, 1, take_turns, took_three },
	{ "lazily", 4, 3, -1, lazily, took_three },
	{ "close", 4, 2, -1, close_it, all_came_back },
	{ "order", 3, 4, -1, in_order, was_in_order },
	{ "in time", 4, 2, -1, in_time, none_twice },
	{ "batches", 3, 2, -1, batches, three_came },
};

/* --- the search --- */

static uint64_t hash(uint64_t h, const void *p, size_t n)
{
	const uint8_t *at = p;

	for (size_t i = 0; i < n; i++)
		h = (h ^ at[i]) * 0x100000001b3u;
	return h ^ h >> 29;
}

static size_t slots(unsigned cap)
{
	return pow2_above(cap) * sizeof(void *);
}

static uint64_t state_hash(bool may_wake)
{
	uint64_t h = hash(0xcbf29ce484222325u, &now, sizeof(now));

	h = hash(h, now.ring,
		 sizeof(*now.ring) + PEN_RING_LANES * slots(running->cap));
	h = hash(h, now.order, sizeof(*now.order) + slots(running->cap));
	h = hash(h, locked, sizeof(locked));
	h = hash(h, &may_wake, sizeof(may_wake));
	for (unsigned i = 0; i < nthreads; i++) {
		const struct thread *t = &threads[i];

		h = hash(h, &t->state, sizeof(t->state));
		h = hash(h, &t->on, sizeof(t->on));
		h = hash(h, &t->due, sizeof(t->due));
		if (t->state == ENDED)
			continue;
		h = hash(h, t->regs, sizeof(t->regs[0].__jmpbuf));
		if (t->sp)
			h = hash(h, t->sp, (size_t)(t->stack + STACK - t->sp));
	}
	return h;
}

static void start_thread(void)
{
	running->body(self);
	threads[self].state = ENDED;
	swapcontext(&threads[self].at, &scheduler);
}

static void set_up(const struct scenario *s)
{
	memset(&now, 0, sizeof(now));
	memset(locked, 0, sizeof(locked));
	running = s;
	nthreads = s->nthreads;
	CHECK_EQ(pen__ring_new(&now.ring, s->cap, s->exclusive), 0);
	CHECK_EQ(pen__order_new(&now.order, s->cap), 0);
	for (unsigned i = 0; i < nthreads; i++) {
		struct thread *t = &threads[i];

		memset(t, 0, sizeof(*t));
		getcontext(&t->at);
		t->at.uc_stack.ss_sp = t->stack;
		t->at.uc_stack.ss_size = STACK;
		makecontext(&t->at, start_thread, 0);
	}
}

/* What can happen next: thread i continues, or its wait ends without a signal.
 * Returns the number of choices; ends: how many threads have ended. */
static unsigned list_moves(unsigned *move, bool may_wake, unsigned *ends)
{
	unsigned n = 0;

	*ends = 0;
	for (unsigned i = 0; i < nthreads; i++) {
		const struct thread *t = &threads[i];

		*ends += t->state == ENDED;
		if (t->state == READY || t->state == DOZING ||
		    (t->state == LOCKING && !is_locked(t->on)))
			move[n++] = i;
		else if (t->state == SLEEPING && (t->timed || may_wake))
			move[n++] = THREADS + i;
	}
	return n;
}

/* A thread that only could wake by itself is stuck in earnest. */
static bool none_moves(const unsigned *move, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (move[i] < THREADS || threads[move[i] - THREADS].timed)
			return false;
	return true;
}

static void step(unsigned move, bool *may_wake)
{
	if (move >= THREADS) {
		struct thread *t = &threads[move - THREADS];

		if (t->timed)
			t->due = true;
		else
			*may_wake = false;
		rouse(t);
		return;
	}
	self = move;
	swapcontext(&scheduler, &threads[self].at);
}

/* One run along the path, and further by first choices until it ends or comes
 * to a known state. */
static void run_once(const struct scenario *s)
{
	bool may_wake = spurious;
	unsigned move[2 * THREADS], n, ends;

	set_up(s);
	path.n = 0;
	for (;;) {
		n = list_moves(move, may_wake, &ends);
		if (ends == nthreads) {
			CHECK(s->right());
			break;
		}
		if (none_moves(move, n)) {
			stuck = true;
			break;
		}
		if (path.n >= path.replay && !add_seen(state_hash(may_wake)))
			break;
		step(move[choose(n)], &may_wake);
	}
	pen__ring_free(now.ring);
	pen__order_free(now.order);
	runs++;
}

static void search(const struct scenario *s)
{
	free(seen);
	seen = NULL;
	nseen = cap_seen = 0;
	stuck = disordered = false;
	runs = 0;
	path.replay = 0;
	do
		run_once(s);
	while (!stuck && advance());
}

int main(void)
{
	for (size_t i = 0; i < sizeof(scenarios) / sizeof(*scenarios); i++) {
		const struct scenario *s = &scenarios[i];

		for (int wakes = 0; wakes < 2; wakes++) {
			spurious = wakes;
			search(s);
			if (!CHECK(!stuck && !disordered))
				fprintf(stderr, "%s%s: %s\n", s->name,
					wakes ? ", waking by itself" : "",
					stuck ? "a thread stays asleep"
					      : "out of order");
			printf("%s%s: %zu states, %" PRIu64 " runs\n", s->name,
			       wakes ? ", waking by itself" : "", nseen, runs);
			CHECK(nseen > 100);
		}
	}
	/* and it would notice: a queue that loses signals */
	lossy = true;
	spurious = false;
	for (size_t i = 0; i < 4; i++) {
		search(&scenarios[i]);
		CHECK(stuck);
	}
	return test_end();
}
