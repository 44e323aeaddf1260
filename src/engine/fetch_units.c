/*
 * See fetch_units.h. One lock guards table, holds and waiters; it is taken once
 * per unit and once per grain of rows, never per row. Freed units keep their
 * memory for the next unit of similar size, so that the steady state allocates
 * nothing.
 */
#include "engine/fetch_units.h"

#include <string.h>

#include "base/err.h"
#include "base/rng.h"

int pen__units_init(struct pen_units *u, struct pen_pool *pool, uint32_t keep,
		    uint64_t cache, uint64_t most)
{
	*u = (struct pen_units){ .pool = pool,
				 .nbuckets = 1024,
				 .keep_idle = keep,
				 .cache_bytes = cache,
				 .most = most,
				 .copied = UINT64_MAX };
	for (uint32_t i = 0; i < PEN_UNIT_KINDS; i++)
		u->share[i] = 1024;
	u->bucket = pen__calloc(u->nbuckets, sizeof(struct pen_live *));
	if (!u->bucket)
		return PEN_ENOMEM;
	pthread_mutex_init(&u->lock, NULL);
	return 0;
}

static void live_free(struct pen_units *u, struct pen_live *l)
{
	pen__pool_account(u->pool, -(int64_t)l->mem.cap);
	pen__block_fini(&l->mem);
	pen__free(l);
}

static void waiters_free(struct pen_waiter *w)
{
	while (w) {
		struct pen_waiter *next = w->next;

		pen__free(w);
		w = next;
	}
}

static void list_free(struct pen_units *u, struct pen_live *l)
{
	while (l) {
		struct pen_live *next = l->next;

		waiters_free(l->waiters);
		live_free(u, l);
		l = next;
	}
}

void pen__units_fini(struct pen_units *u)
{
	if (!u->bucket)
		return;
	for (uint32_t i = 0; i < u->nbuckets; i++)
		list_free(u, u->bucket[i]);
	list_free(u, u->spare);
	waiters_free(u->spare_waiters);
	pen__free(u->bucket);
	pthread_mutex_destroy(&u->lock);
	u->bucket = NULL;
}

static struct pen_live **bucket_of(struct pen_units *u, uint64_t id)
{
	return &u->bucket[pen__mix64(id) & (u->nbuckets - 1)];
}

static void grow(struct pen_units *u)
{
	uint32_t n = u->nbuckets * 2;
	struct pen_live **b = pen__calloc(n, sizeof(*b)), **old = u->bucket;

	if (!b)
		return; /* longer chains, nothing worse */
	u->bucket = b;
	u->nbuckets = n;
	for (uint32_t i = 0; i < n / 2; i++)
		for (struct pen_live *l = old[i], *next; l; l = next) {
			struct pen_live **to = bucket_of(u, l->unit.id);

			next = l->next;
			l->next = *to;
			*to = l;
		}
	pen__free(old);
}

/* Estimated size of a unit: compressed units may turn out smaller than
 * declared, and recent ones show by how much. */
static uint64_t payload_of(const struct pen_units *u,
			   const struct pen_unit *unit)
{
	const uint64_t n = pen__unit_payload(unit);
	const uint32_t share = u->share[unit->field % PEN_UNIT_KINDS];

	return unit->flags & PEN_UNIT_COMPRESSED && share < 1024 &&
			       n <= u->copied
		       ? n / 1024 * share + share
		       : n;
}

/* A spare whose memory fits without wasting more than half of it. */
static struct pen_live *take_spare(struct pen_units *u, size_t need)
{
	for (struct pen_live **p = &u->spare; *p; p = &(*p)->next) {
		struct pen_live *l = *p;

		if (l->mem.cap < need || l->mem.cap / 2 > need + 65536)
			continue;
		*p = l->next;
		u->spare_bytes -= l->mem.cap;
		return l;
	}
	return NULL;
}

static struct pen_idle *idle_of(struct pen_units *u, const struct pen_live *l)
{
	return l->later ? &u->later : &u->idle;
}

static void idle_remove(struct pen_units *u, struct pen_live *l)
{
	struct pen_idle *i = idle_of(u, l);

	*(l->older ? &l->older->newer : &i->oldest) = l->newer;
	*(l->newer ? &l->newer->older : &i->newest) = l->older;
	i->n--;
	i->bytes -= l->mem.cap;
	u->nheld++;
	u->live_bytes += l->mem.cap;
}

static void idle_add(struct pen_units *u, struct pen_live *l)
{
	struct pen_idle *i;

	l->later = u->later_bytes && l->users && l->used % l->users;
	i = idle_of(u, l);
	l->older = i->newest;
	l->newer = NULL;
	*(l->older ? &l->older->newer : &i->oldest) = l;
	i->newest = l;
	i->n++;
	i->bytes += l->mem.cap;
	u->nheld--;
	u->live_bytes -= l->mem.cap;
}

static void unlink_live(struct pen_units *u, struct pen_live *l)
{
	struct pen_live **p = bucket_of(u, l->unit.id);

	while (*p != l)
		p = &(*p)->next;
	*p = l->next;
	u->nlive--;
	u->nheld--;
	u->live_bytes -= l->mem.cap;
}

/* Frees memory that is not held, spare blocks first, until `bytes` more fit. */
static void make_room(struct pen_units *u, uint64_t bytes)
{
	while (u->live_bytes + u->idle.bytes + u->later.bytes + u->spare_bytes +
		       bytes >
	       u->most) {
		struct pen_live *l = u->spare;

		if (l) {
			u->spare = l->next;
			u->spare_bytes -= l->mem.cap;
		} else if (u->idle.oldest || u->later.oldest) {
			l = u->idle.oldest ? u->idle.oldest : u->later.oldest;
			idle_remove(u, l);
			unlink_live(u, l);
		} else {
			return;
		}
		live_free(u, l);
	}
}

static struct pen_live *live_new(struct pen_units *u,
				 const struct pen_unit *unit)
{
	size_t need = payload_of(u, unit);
	struct pen_live *l = take_spare(u, need);

	if (!l) {
		make_room(u, pen__block_cost(need));
		l = pen__calloc(1, sizeof(*l));
		if (!l)
			return NULL;
		if (pen__block_init(&l->mem, need ? need : 1)) {
			pen__free(l);
			return NULL;
		}
		pen__pool_account(u->pool, (int64_t)l->mem.cap);
	}
	l->task = (struct pen_task){ .live = l };
	l->unit = *unit;
	l->n = pen__unit_payload(unit);
	l->holds = l->users = l->used = 0;
	l->ready = l->later = false;
	l->err = (struct pen_err){ 0 };
	l->waiters = NULL;
	return l;
}

static struct pen_live *find(struct pen_units *u, uint64_t id)
{
	struct pen_live *l = *bucket_of(u, id);

	while (l && l->unit.id != id)
		l = l->next;
	return l;
}

bool pen__units_fit(struct pen_units *u, const struct pen_unit *unit,
		    uint32_t n, uint64_t limit)
{
	uint64_t need = 0, have;

	pthread_mutex_lock(&u->lock);
	for (uint32_t i = 0; i < n; i++) {
		const struct pen_live *l = unit[i].object == PEN_NO_OBJECT
						   ? NULL
						   : find(u, unit[i].id);

		if (unit[i].object != PEN_NO_OBJECT && (!l || !l->holds))
			need += pen__block_cost(payload_of(u, &unit[i]));
	}
	have = u->live_bytes;
	pthread_mutex_unlock(&u->lock);
	return need == 0 || (have <= limit && need <= limit - have);
}

int pen__units_hold(struct pen_units *u, const struct pen_unit *unit,
		    struct pen_live **out, bool *fresh)
{
	struct pen_live *l;
	int rc = 0;

	pthread_mutex_lock(&u->lock);
	l = find(u, unit->id);
	*fresh = !l;
	if (!l) {
		if (u->nlive >= u->nbuckets)
			grow(u);
		l = live_new(u, unit);
		if (l) {
			struct pen_live **b = bucket_of(u, unit->id);

			l->next = *b;
			*b = l;
			u->nlive++;
			u->nheld++;
			u->live_bytes += l->mem.cap;
		}
	}
	if (l && !*fresh && !l->holds)
		idle_remove(u, l);
	if (l) {
		l->holds++;
		l->used++;
	} else {
		rc = PEN_ENOMEM;
	}
	pthread_mutex_unlock(&u->lock);
	*out = l;
	return rc;
}

bool pen__units_again(struct pen_units *u, const struct pen_unit *unit,
		      uint32_t n)
{
	uint32_t i, k;

	pthread_mutex_lock(&u->lock);
	for (i = 0; i < n; i++) {
		struct pen_live *l;

		if (unit[i].object == PEN_NO_OBJECT)
			continue;
		l = find(u, unit[i].id);
		if (!l || !l->holds)
			break;
		l->holds++;
		l->used++;
	}
	for (k = 0; i < n && k < i; k++) {
		struct pen_live *l;

		if (unit[k].object == PEN_NO_OBJECT)
			continue;
		l = find(u, unit[k].id);
		l->holds--;
		l->used--;
	}
	pthread_mutex_unlock(&u->lock);
	return i == n;
}

/* Replaces the memory of a unit if it has the wrong size. */
static int refit(struct pen_units *u, struct pen_live *l, size_t n)
{
	struct pen_block old = l->mem, mem;

	if (old.cap >= n && old.cap / 2 <= n + 4096)
		return 0;
	if (pen__block_init(&mem, n))
		return PEN_ENOMEM;
	l->mem = mem;
	u->live_bytes += mem.cap - old.cap;
	pen__pool_account(u->pool, (int64_t)mem.cap - (int64_t)old.cap);
	pen__block_fini(&old);
	return 0;
}

int pen__units_fill(struct pen_units *u, struct pen_live *l, const void *p,
		    size_t n)
{
	const uint64_t size = l->unit.size ? l->unit.size : 1;
	const uint64_t share = (n * 1024 + size - 1) / size;
	uint32_t *of = &u->share[l->unit.field % PEN_UNIT_KINDS];
	int rc;

	pthread_mutex_lock(&u->lock);
	*of = (uint32_t)((7 * (uint64_t)*of + share + 7) / 8);
	*of = *of > 1024 ? 1024 : *of;
	rc = refit(u, l, n);
	pthread_mutex_unlock(&u->lock);
	if (rc)
		return rc;
	memcpy(l->mem.p, p, n);
	l->n = n;
	return 0;
}

struct pen_live *pen__units_find(struct pen_units *u, uint64_t id)
{
	struct pen_live *l;

	pthread_mutex_lock(&u->lock);
	l = find(u, id);
	pthread_mutex_unlock(&u->lock);
	return l;
}

static int wait_for(struct pen_units *u, struct pen_live *l,
		    struct pen_pooled *batch)
{
	struct pen_waiter *w;

	/* a batch asks for all its units in a row: a repeat is at the head */
	if (l->ready || (l->waiters && l->waiters->batch == batch))
		return 0;
	w = u->spare_waiters;
	if (w)
		u->spare_waiters = w->next;
	else
		w = pen__alloc(1, sizeof(*w));
	if (!w)
		return PEN_ENOMEM;
	*w = (struct pen_waiter){ l->waiters, batch };
	l->waiters = w;
	atomic_fetch_add(&batch->waiting, 1);
	return 0;
}

int pen__units_wait(struct pen_units *u, struct pen_live *l,
		    struct pen_pooled *batch)
{
	int rc;

	pthread_mutex_lock(&u->lock);
	rc = wait_for(u, l, batch);
	pthread_mutex_unlock(&u->lock);
	return rc;
}

int pen__units_attach(struct pen_units *u, const struct pen_unit *unit,
		      uint32_t n, struct pen_live **live,
		      struct pen_pooled *batch)
{
	int rc = 0;

	pthread_mutex_lock(&u->lock);
	for (uint32_t i = 0; i < n; i++) {
		live[i] = NULL;
		if (rc || unit[i].object == PEN_NO_OBJECT)
			continue;
		live[i] = find(u, unit[i].id);
		rc = wait_for(u, live[i], batch);
	}
	pthread_mutex_unlock(&u->lock);
	return rc;
}

void pen__units_ready(struct pen_units *u, struct pen_live *l,
		      const struct pen_err *err,
		      void (*wake)(void *arg, struct pen_pooled *), void *arg)
{
	struct pen_waiter *w, *last;

	pthread_mutex_lock(&u->lock);
	l->ready = true;
	if (err)
		l->err = *err;
	w = l->waiters;
	l->waiters = NULL;
	pthread_mutex_unlock(&u->lock);
	if (!w)
		return;
	for (last = w;; last = last->next) {
		if (atomic_fetch_sub(&last->batch->waiting, 1) == 1)
			wake(arg, last->batch);
		if (!last->next)
			break;
	}
	pthread_mutex_lock(&u->lock);
	last->next = u->spare_waiters;
	u->spare_waiters = w;
	pthread_mutex_unlock(&u->lock);
}

/* Removes a unit from the table. Its memory is kept for another one, up to
 * about as much as is in use, so that memory shrinks with demand. */
static void retire(struct pen_units *u, struct pen_live *l)
{
	unlink_live(u, l);
	if (u->spare_bytes > u->live_bytes) {
		live_free(u, l);
		return;
	}
	l->next = u->spare;
	u->spare = l;
	u->spare_bytes += l->mem.cap;
}

void pen__units_release(struct pen_units *u, struct pen_live **live, size_t n)
{
	pthread_mutex_lock(&u->lock);
	for (size_t i = 0; i < n; i++) {
		struct pen_live *l = live[i];

		if (!l || --l->holds)
			continue;
		if (l->err.code) /* a retry may succeed */
			retire(u, l);
		else
			idle_add(u, l);
	}
	while (u->idle.n > u->keep_idle && u->idle.bytes > u->cache_bytes) {
		struct pen_live *l = u->idle.oldest;

		idle_remove(u, l);
		retire(u, l);
	}
	while (u->later.bytes > u->later_bytes) {
		struct pen_live *l = u->later.oldest;

		idle_remove(u, l);
		retire(u, l);
	}
	pthread_mutex_unlock(&u->lock);
}

uint64_t pen__units_bytes(struct pen_units *u)
{
	uint64_t n;

	pthread_mutex_lock(&u->lock);
	n = u->live_bytes;
	pthread_mutex_unlock(&u->lock);
	return n;
}

uint32_t pen__units_held(struct pen_units *u)
{
	uint32_t n;

	pthread_mutex_lock(&u->lock);
	n = u->nheld;
	pthread_mutex_unlock(&u->lock);
	return n;
}
