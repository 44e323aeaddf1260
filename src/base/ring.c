/*
 * The queues between threads. One mutex and array slots: an item is a large
 * piece of work (a run of rows, a batch), so a lock of 20 ns around two stores
 * is far below the cost of the item, and lanes, exclusiveness and sleeping can
 * be exact. Waking threads is what costs, so a push signals only if a thread
 * sleeps that has not been signalled yet.
 *
 * A ring does not own its items, does not block pushers (the total number of
 * items is bounded by the pool) and keeps no order across lanes.
 */
#include "base/ring.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "penstock.h"

#define DOZE_MIN_NS 50000
#define DOZE_MAX_NS 500000

struct lane {
	void **item;
	uint32_t head, tail; /* run freely; slot = & mask */
};

struct pen_ring {
	pthread_mutex_t lock;
	pthread_cond_t work; /* poppers */
	struct lane lane[PEN_RING_LANES];
	uint32_t cap, mask;
	unsigned full;	    /* one bit per lane that has items */
	unsigned busy;	    /* bit of the exclusive lane while in use */
	unsigned exclusive; /* bit of the exclusive lane, 0 = none */
	/*
	 * asleep counts poppers in cond_wait, woken those of them that a signal
	 * is on its way to. woken never exceeds the signalled ones, so asleep
	 * == woken means that no further signal is needed.
	 */
	unsigned asleep, woken;
	bool closed;
	void *slots[];
};

static uint32_t pow2_above(uint32_t n)
{
	uint32_t p = 1;

	while (p < n)
		p *= 2;
	return p;
}

/* Adaptive: the lock is held for a few ns, so spinning beats sleeping. */
static void mutex_init(pthread_mutex_t *m)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ADAPTIVE_NP);
	pthread_mutex_init(m, &attr);
	pthread_mutexattr_destroy(&attr);
}

int pen__ring_new(struct pen_ring **out, unsigned cap, int exclusive_lane)
{
	struct pen_ring *r;
	uint32_t slots;
	size_t bytes;

	*out = NULL;
	if (!cap || cap > 1u << 30 || exclusive_lane >= PEN_RING_LANES)
		return PEN_EINVAL;
	slots = pow2_above(cap);
	if (!pen__mul(slots, PEN_RING_LANES * sizeof(void *), &bytes) ||
	    !pen__add(bytes, sizeof(*r), &bytes))
		return PEN_ENOMEM;
	r = pen__calloc(1, bytes);
	if (!r)
		return PEN_ENOMEM;
	mutex_init(&r->lock);
	pthread_cond_init(&r->work, NULL);
	for (unsigned i = 0; i < PEN_RING_LANES; i++)
		r->lane[i].item = r->slots + (size_t)i * slots;
	r->cap = cap;
	r->mask = slots - 1;
	r->exclusive = exclusive_lane < 0 ? 0 : 1u << exclusive_lane;
	*out = r;
	return 0;
}

void pen__ring_free(struct pen_ring *r)
{
	if (!r)
		return;
	pthread_cond_destroy(&r->work);
	pthread_mutex_destroy(&r->lock);
	pen__free(r);
}

/* Lanes that a pop can take from. */
static unsigned poppable(const struct pen_ring *r)
{
	return r->full & ~r->busy;
}

/* How many sleepers to signal for n new items; signal them after unlocking. */
static unsigned to_wake(struct pen_ring *r, unsigned n)
{
	if (n > r->asleep - r->woken)
		n = r->asleep - r->woken;
	r->woken += n;
	return n;
}

static void wake(struct pen_ring *r, unsigned n)
{
	while (n--)
		pthread_cond_signal(&r->work);
}

static bool push(struct pen_ring *r, unsigned lane, void *const *items,
		 unsigned n, unsigned enough)
{
	const unsigned bit = 1u << lane;
	struct lane *l = &r->lane[lane];
	unsigned nwake = 0;

	assert(lane < PEN_RING_LANES);
	if (!n)
		return true;
	pthread_mutex_lock(&r->lock);
	if (r->closed) {
		pthread_mutex_unlock(&r->lock);
		return false;
	}
	assert(n <= r->cap && l->tail - l->head <= r->cap - n);
	for (unsigned i = 0; i < n; i++) {
		assert(items[i]); /* pop could not distinguish it from closed */
		l->item[l->tail++ & r->mask] = items[i];
	}
	r->full |= bit;
	/* from an exclusive lane only one can be taken now */
	if (!(r->busy & bit) && l->tail - l->head >= enough)
		nwake = to_wake(r, r->exclusive & bit ? 1 : n);
	pthread_mutex_unlock(&r->lock);
	wake(r, nwake);
	return true;
}

bool pen__ring_push_many(struct pen_ring *r, unsigned lane, void *const *items,
			 unsigned n)
{
	return push(r, lane, items, n, 0);
}

bool pen__ring_push(struct pen_ring *r, unsigned lane, void *item)
{
	return push(r, lane, &item, 1, 0);
}

bool pen__ring_push_lazily(struct pen_ring *r, unsigned lane, void *item,
			   unsigned enough)
{
	return push(r, lane, &item, 1, enough);
}

void pen__ring_rouse(struct pen_ring *r)
{
	unsigned nwake = 0;

	pthread_mutex_lock(&r->lock);
	if (poppable(r))
		nwake = to_wake(r, 1);
	pthread_mutex_unlock(&r->lock);
	wake(r, nwake);
}

static void *take(struct pen_ring *r, unsigned *lane)
{
	const unsigned i = (unsigned)__builtin_ctz(poppable(r));
	struct lane *l = &r->lane[i];
	const bool lifo = r->exclusive & 1u << i;
	void *item = l->item[(lifo ? --l->tail : l->head++) & r->mask];

	if (l->head == l->tail)
		r->full &= ~(1u << i);
	r->busy |= r->exclusive & 1u << i;
	if (lane)
		*lane = i;
	return item;
}

static void nap(struct pen_ring *r)
{
	r->asleep++;
	pthread_cond_wait(&r->work, &r->lock);
	r->asleep--;
	if (r->woken) /* 0 after a spurious wake-up took another's credit */
		r->woken--;
}

void *pen__ring_pop(struct pen_ring *r, unsigned *lane, bool wait)
{
	void *item = NULL;

	pthread_mutex_lock(&r->lock);
	while (wait && !r->closed && !poppable(r))
		nap(r);
	if (!r->closed && poppable(r))
		item = take(r, lane);
	pthread_mutex_unlock(&r->lock);
	return item;
}

void pen__ring_done(struct pen_ring *r, unsigned lane)
{
	const unsigned bit = 1u << lane;
	unsigned nwake = 0;

	assert(lane < PEN_RING_LANES);
	pthread_mutex_lock(&r->lock);
	if (r->busy & bit) {
		r->busy &= ~bit;
		if (r->full & bit)
			nwake = to_wake(r, 1);
	}
	pthread_mutex_unlock(&r->lock);
	wake(r, nwake);
}

void pen__ring_close(struct pen_ring *r)
{
	pthread_mutex_lock(&r->lock);
	r->closed = true;
	pthread_cond_broadcast(&r->work);
	pthread_mutex_unlock(&r->lock);
}

struct pen_order {
	pthread_mutex_t lock;
	pthread_cond_t come;
	uint64_t next;
	uint32_t cap, mask;
	unsigned waiting;
	bool closed;
	uint64_t taken_ns, pace_ns; /* the last take, and the mean interval */
	void *slot[];
};

/* Waits use the monotonic clock, which is never set. */
static void cond_init(pthread_cond_t *c)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(c, &attr);
	pthread_condattr_destroy(&attr);
}

int pen__order_new(struct pen_order **out, unsigned cap)
{
	struct pen_order *o;
	uint32_t slots;
	size_t bytes;

	*out = NULL;
	if (!cap || cap > 1u << 30)
		return PEN_EINVAL;
	slots = pow2_above(cap);
	if (!pen__mul(slots, sizeof(void *), &bytes) ||
	    !pen__add(bytes, sizeof(*o), &bytes))
		return PEN_ENOMEM;
	o = pen__calloc(1, bytes);
	if (!o)
		return PEN_ENOMEM;
	mutex_init(&o->lock);
	cond_init(&o->come);
	o->cap = cap;
	o->mask = slots - 1;
	o->pace_ns = DOZE_MAX_NS; /* until known, assume slow */
	*out = o;
	return 0;
}

void pen__order_free(struct pen_order *o)
{
	if (!o)
		return;
	pthread_cond_destroy(&o->come);
	pthread_mutex_destroy(&o->lock);
	pen__free(o);
}

void pen__order_put(struct pen_order *o, uint64_t serial, void *item)
{
	bool signal;

	assert(item);
	pthread_mutex_lock(&o->lock);
	assert(serial - o->next < o->cap);
	assert(!o->slot[serial & o->mask]);
	o->slot[serial & o->mask] = item;
	signal = o->waiting && serial == o->next;
	pthread_mutex_unlock(&o->lock);
	if (signal)
		pthread_cond_signal(&o->come);
}

static bool is_ready(const struct pen_order *o)
{
	return o->slot[o->next & o->mask] != NULL;
}

static unsigned count_ready(const struct pen_order *o)
{
	unsigned n = 0;

	while (n < o->cap && o->slot[(o->next + n) & o->mask])
		n++;
	return n;
}

static void *order_take(struct pen_order *o)
{
	void **slot = &o->slot[o->next & o->mask];
	void *item = *slot;

	*slot = NULL;
	o->next++;
	/* put() signalled for one item; the next may be ready already */
	if (o->waiting && is_ready(o))
		pthread_cond_signal(&o->come);
	return item;
}

/*
 * Waking up costs both sides microseconds, and more in a virtual machine. If
 * items come faster than that is worth, the taker sleeps, without asking to be
 * woken, about as long as a quarter of the slots take to fill, and then finds
 * several. Slower items wake it as they come.
 */
static void doze(struct pen_order *o)
{
	uint64_t ns = o->pace_ns * o->cap / 4;

	if (o->pace_ns >= DOZE_MAX_NS || ns < DOZE_MIN_NS)
		return;
	if (ns > DOZE_MAX_NS)
		ns = DOZE_MAX_NS;
	pthread_mutex_unlock(&o->lock);
	nanosleep(&(struct timespec){ .tv_nsec = (long)ns }, NULL);
	pthread_mutex_lock(&o->lock);
}

/* Updates the running mean of the time between items. */
static void keep_pace(struct pen_order *o)
{
	uint64_t now = pen__now_ns();

	if (o->taken_ns)
		o->pace_ns = (o->pace_ns * 7 + (now - o->taken_ns)) / 8;
	o->taken_ns = now;
}

/* Waits until the next item is ready, the order is closed, or `until`. */
static void await(struct pen_order *o, const struct timespec *until)
{
	int rc = 0;

	o->waiting++;
	while (!o->closed && !is_ready(o) && rc != ETIMEDOUT)
		rc = until ? pthread_cond_timedwait(&o->come, &o->lock, until)
			   : pthread_cond_wait(&o->come, &o->lock);
	o->waiting--;
}

void *pen__order_get_within(struct pen_order *o, int64_t ns, unsigned *ready)
{
	struct timespec until;
	void *item = NULL;
	uint64_t at;

	pthread_mutex_lock(&o->lock);
	if (ready)
		*ready = count_ready(o);
	if (ns && !is_ready(o) && !o->closed) {
		doze(o);
		at = pen__now_ns() + (uint64_t)(ns > 0 ? ns : 0);
		until = (struct timespec){ (time_t)(at / 1000000000),
					   (long)(at % 1000000000) };
		await(o, ns < 0 ? NULL : &until);
	}
	if (!o->closed && is_ready(o)) {
		item = order_take(o);
		keep_pace(o);
	}
	pthread_mutex_unlock(&o->lock);
	return item;
}

void *pen__order_get(struct pen_order *o, unsigned *ready)
{
	return pen__order_get_within(o, -1, ready);
}

unsigned pen__order_ready(struct pen_order *o)
{
	unsigned n;

	pthread_mutex_lock(&o->lock);
	n = count_ready(o);
	pthread_mutex_unlock(&o->lock);
	return n;
}

uint64_t pen__order_pace_ns(const struct pen_order *o)
{
	return o->pace_ns;
}

void pen__order_close(struct pen_order *o)
{
	pthread_mutex_lock(&o->lock);
	o->closed = true;
	pthread_cond_broadcast(&o->come);
	pthread_mutex_unlock(&o->lock);
}
