/* Queues under many threads: nothing lost, nothing twice, no thread left
 * asleep. And threads: a team starts completely or not at all. */
#include "test.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/ring.h"
#include "base/rng.h"
#include "base/team.h"

static void ring_basic(void)
{
	struct pen_ring *r;
	int v[8];
	void *many[3] = { &v[4], &v[5], &v[6] };
	unsigned lane = 9;

	CHECK_EQ(pen__ring_new(&r, 5, 1), 0);
	CHECK(pen__ring_pop(r, &lane, false) == NULL);
	CHECK(pen__ring_push(r, 2, &v[0]));
	CHECK(pen__ring_push(r, 1, &v[1]));
	CHECK(pen__ring_push(r, 1, &v[2]));
	CHECK(pen__ring_push(r, 0, &v[3]));
	CHECK(pen__ring_push_many(r, 0, many, 3));
	CHECK(pen__ring_push_many(r, 0, many, 0));
	/* lane 0 first, in order */
	for (unsigned i = 3; i <= 6; i++) {
		CHECK(pen__ring_pop(r, &lane, true) == &v[i]);
		CHECK_EQ(lane, 0);
	}
	CHECK(pen__ring_pop(r, &lane, true) == &v[2]);
	CHECK_EQ(lane, 1);
	/* last in, first out; while lane 1 is busy, lane 2 is served */
	CHECK(pen__ring_pop(r, &lane, true) == &v[0]);
	CHECK_EQ(lane, 2);
	CHECK(pen__ring_pop(r, &lane, false) == NULL);
	pen__ring_done(r, 1);
	CHECK(pen__ring_pop(r, NULL, true) == &v[1]);
	pen__ring_done(r, 1);
	pen__ring_done(r, 0); /* not exclusive: nothing to do */
	pen__ring_push(r, 0, &v[0]);
	pen__ring_close(r);
	CHECK(!pen__ring_push(r, 0, &v[1]));
	CHECK(!pen__ring_push_many(r, 0, many, 2));
	CHECK(pen__ring_pop(r, &lane, true) == NULL);
	pen__ring_free(r);
	pen__ring_free(NULL);
	CHECK(pen__ring_new(&r, 0, -1) != 0);
	CHECK(pen__ring_new(&r, 4, PEN_RING_LANES) != 0);
	pen__mem_fail_nth(1, false);
	CHECK_EQ(pen__ring_new(&r, 4, -1), PEN_ENOMEM);
	pen__mem_fail_nth(0, false);
}

/*
 * Stress: an item moves lane 2 -> 1 -> 0 -> out, as a batch does. Lane 1 is
 * exclusive. With ITEMS in total no lane can overflow.
 */
enum { ITEMS = 64, POPPERS = 6, TURNS = 300 };

struct item {
	unsigned turns; /* by the holder of the item */
	unsigned lane;
};

struct stress {
	struct pen_ring *ring;
	struct item item[ITEMS];
	unsigned plain; /* written by the holder of lane 1 only */
	atomic_uint holders, finished, popped;
};

static void step(struct stress *s, struct item *it, unsigned lane)
{
	CHECK_EQ(it->lane, lane);
	if (lane == 1) {
		CHECK_EQ(atomic_fetch_add(&s->holders, 1), 0);
		s->plain++;
		atomic_fetch_sub(&s->holders, 1);
		pen__ring_done(s->ring, 1);
	}
	if (lane) {
		it->lane = lane - 1;
		CHECK(pen__ring_push(s->ring, lane - 1, it));
	} else if (++it->turns < TURNS) {
		it->lane = 2;
		CHECK(pen__ring_push(s->ring, 2, it));
	} else {
		atomic_fetch_add(&s->finished, 1);
	}
}

static void popper(void *arg, unsigned i)
{
	struct stress *s = arg;
	struct item *it;
	unsigned lane;

	(void)i;
	while ((it = pen__ring_pop(s->ring, &lane, true)) != NULL) {
		atomic_fetch_add(&s->popped, 1);
		step(s, it, lane);
	}
}

static void ring_stress(void)
{
	static struct stress s;
	struct pen_team *team;
	struct pen_err err;
	void *many[ITEMS];

	CHECK_EQ(pen__ring_new(&s.ring, ITEMS, 1), 0);
	CHECK_EQ(pen__team_start(&team, POPPERS, "pop", popper, &s, &err), 0);
	for (unsigned round = 1; round <= 3; round++) {
		for (unsigned i = 0; i < ITEMS; i++) {
			s.item[i] = (struct item){ 0, 2 };
			many[i] = &s.item[i];
		}
		CHECK(pen__ring_push_many(s.ring, 2, many, ITEMS / 2));
		for (unsigned i = ITEMS / 2; i < ITEMS; i++)
			CHECK(pen__ring_push(s.ring, 2, many[i]));
		while (atomic_load(&s.finished) < round * ITEMS)
			sched_yield();
		CHECK_EQ(atomic_load(&s.finished), round * ITEMS);
		CHECK_EQ(s.plain, round * ITEMS * TURNS);
		for (unsigned i = 0; i < ITEMS; i++)
			CHECK_EQ(s.item[i].turns, TURNS);
	}
	CHECK_EQ(atomic_load(&s.popped), 3 * ITEMS * TURNS * 3);
	pen__ring_close(s.ring); /* wakes all, or the join hangs */
	pen__team_join(team);
	pen__ring_free(s.ring);
}

/* Close while the ring is busy: poppers leave, pushers are told. */
struct churn {
	struct pen_ring *ring;
	int item[POPPERS];
	atomic_uint turns;
};

static void churner(void *arg, unsigned i)
{
	struct churn *c = arg;
	void *it = &c->item[i];

	while (pen__ring_push(c->ring, i % 3, it)) {
		unsigned lane;

		it = pen__ring_pop(c->ring, &lane, true);
		if (!it)
			return;
		pen__ring_done(c->ring, lane);
		atomic_fetch_add(&c->turns, 1);
	}
}

static void ring_close_busy(void)
{
	for (unsigned round = 0; round < 20; round++) {
		struct churn c = { 0 };
		struct pen_team *team;

		CHECK_EQ(pen__ring_new(&c.ring, POPPERS, 1), 0);
		CHECK_EQ(pen__team_start(&team, POPPERS, "churn", churner, &c,
					 NULL),
			 0);
		while (atomic_load(&c.turns) < 100 * round)
			sched_yield();
		pen__ring_close(c.ring);
		pen__team_join(team);
		pen__ring_free(c.ring);
	}
}

/* Items pushed without a wake-up come out when there are enough of them, and
 * before that when a thread rouses the ring. */
struct lazy {
	struct pen_ring *ring;
	atomic_uint got;
};

static void lazy_popper(void *arg, unsigned i)
{
	struct lazy *z = arg;

	(void)i;
	while (pen__ring_pop(z->ring, NULL, true)) {
		atomic_fetch_add(&z->got, 1);
		pen__ring_done(z->ring, 2);
	}
}

static void ring_lazy(void)
{
	struct lazy z = { 0 };
	struct pen_team *team;
	int v;

	CHECK_EQ(pen__ring_new(&z.ring, 16, 2), 0);
	pen__ring_rouse(z.ring);
	CHECK_EQ(pen__team_start(&team, 2, "t", lazy_popper, &z, NULL), 0);
	for (unsigned n = 1; n <= 200; n++) {
		CHECK(pen__ring_push_lazily(z.ring, 2, &v, 8));
		pen__ring_rouse(z.ring);
		while (atomic_load(&z.got) < n)
			sched_yield();
	}
	for (unsigned n = 0; n < 800; n += 8) {
		for (unsigned i = 0; i < 8; i++)
			CHECK(pen__ring_push_lazily(z.ring, 2, &v, 8));
		/* some may have come before the others: then no wake-up was
		 * needed */
		pen__ring_rouse(z.ring);
		while (atomic_load(&z.got) < 200 + n + 8)
			sched_yield();
	}
	pen__ring_close(z.ring);
	CHECK(!pen__ring_push_lazily(z.ring, 2, &v, 8));
	pen__team_join(team);
	pen__ring_free(z.ring);
}

static void order_basic(void)
{
	struct pen_order *o;
	int v[8];
	unsigned ready = 9;

	CHECK_EQ(pen__order_new(&o, 5), 0);
	pen__order_put(o, 2, &v[2]);
	pen__order_put(o, 1, &v[1]);
	pen__order_put(o, 0, &v[0]);
	pen__order_put(o, 4, &v[4]);
	CHECK(pen__order_get(o, &ready) == &v[0]);
	CHECK_EQ(ready, 3);
	CHECK(pen__order_get(o, NULL) == &v[1]);
	CHECK(pen__order_get(o, &ready) == &v[2]);
	CHECK_EQ(ready, 1);
	pen__order_put(o, 3, &v[3]);
	pen__order_close(o);
	CHECK(pen__order_get(o, &ready) == NULL);
	pen__order_free(o);
	pen__order_free(NULL);
	CHECK(pen__order_new(&o, 0) != 0);
	pen__mem_fail_nth(1, false);
	CHECK_EQ(pen__order_new(&o, 4), PEN_ENOMEM);
	pen__mem_fail_nth(0, false);
}

/*
 * Stress: workers finish serials in any order; there are as many as the order
 * has room for, because a worker gets one only after one was taken.
 */
enum { SERIALS = 20000, ROOM = 16 };

struct parcel {
	uint64_t serial;
};

struct mail {
	struct pen_order *order;
	struct pen_ring *free; /* parcels ready for work */
	struct parcel parcel[ROOM];
};

static void worker(void *arg, unsigned i)
{
	struct mail *m = arg;
	struct pen_rng r = pen__rng(1, i);
	struct parcel *p;

	while ((p = pen__ring_pop(m->free, NULL, true)) != NULL) {
		if (pen__rng_below(&r, 4) == 0)
			sched_yield(); /* lets later serials overtake */
		pen__order_put(m->order, p->serial, p);
	}
}

static void order_stress(unsigned nworkers)
{
	static struct mail m;
	struct pen_team *team;
	unsigned ready;

	CHECK_EQ(pen__order_new(&m.order, ROOM), 0);
	CHECK_EQ(pen__ring_new(&m.free, ROOM, -1), 0);
	CHECK_EQ(pen__team_start(&team, nworkers, "work", worker, &m, NULL), 0);
	for (unsigned i = 0; i < ROOM; i++) {
		m.parcel[i].serial = i;
		CHECK(pen__ring_push(m.free, 0, &m.parcel[i]));
	}
	for (uint64_t i = 0; i < SERIALS; i++) {
		struct parcel *p = pen__order_get(m.order, &ready);

		CHECK_EQ(p->serial, i);
		p->serial += ROOM;
		CHECK(pen__ring_push(m.free, 0, p));
	}
	pen__ring_close(m.free);
	pen__team_join(team);
	pen__ring_free(m.free);
	pen__order_free(m.order);
}

/* Several consumers: each gets its own, and close wakes them all. */
struct crowd {
	struct pen_order *order;
	atomic_uint got;
};

static void consumer(void *arg, unsigned i)
{
	struct crowd *c = arg;

	(void)i;
	while (pen__order_get(c->order, NULL))
		atomic_fetch_add(&c->got, 1);
}

static void order_crowd(void)
{
	struct crowd c = { 0 };
	struct pen_team *team;
	int item;

	CHECK_EQ(pen__order_new(&c.order, 8), 0);
	CHECK_EQ(pen__team_start(&team, 4, "crowd", consumer, &c, NULL), 0);
	for (uint64_t i = 0; i < 4000; i += 8) {
		for (unsigned j = 8; j-- > 0;)
			pen__order_put(c.order, i + j, &item);
		while (atomic_load(&c.got) < i + 8)
			sched_yield();
	}
	pen__order_close(c.order);
	pen__team_join(team);
	CHECK_EQ(atomic_load(&c.got), 4000);
	pen__order_free(c.order);
}

struct roll {
	atomic_uint seen[32];
	char name[16];
};

static void answer(void *arg, unsigned i)
{
	struct roll *r = arg;

	atomic_fetch_add(&r->seen[i], 1);
	if (i == 7)
		pthread_getname_np(pthread_self(), r->name, sizeof(r->name));
}

static void teams(void)
{
	struct roll r = { 0 };
	struct pen_team *team;
	struct pen_err e = { 0 };

	CHECK_EQ(pen__team_start(&team, 32, "a-very-long-name", answer, &r, &e),
		 0);
	pen__team_join(team);
	for (unsigned i = 0; i < 32; i++)
		CHECK_EQ(atomic_load(&r.seen[i]), 1);
	CHECK_STR(r.name, "a-very-lon-7");
	pen__team_join(NULL);
	/* whichever thread cannot start: none runs */
	for (uint64_t nth = 1; nth <= 9; nth++) {
		pen__mem_fail_nth(nth, false);
		CHECK(pen__team_start(&team, 8, "t", answer, &r, &e) < 0);
		pen__mem_fail_nth(0, false);
		CHECK(team == NULL);
		CHECK_EQ(atomic_load(&r.seen[0]), 1);
	}
	CHECK_STR(e.where, "t");
	CHECK(strstr(e.msg, "thread 8 of 8") != NULL);
}

static void machine(void)
{
	const unsigned all = pen__cpus();
	cpu_set_t old, one;
	int cpu = 0;

	CHECK(all >= 1 && all <= (unsigned)sysconf(_SC_NPROCESSORS_CONF));
	CHECK(pen__memory_available() > 1 << 20);
	CHECK(pen__memory_peak() > 1 << 16);
	if (sched_getaffinity(0, sizeof(old), &old))
		return;
	while (!CPU_ISSET(cpu, &old))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	CHECK_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
	CHECK_EQ(pen__cpus(), 1);
	CHECK_EQ(sched_setaffinity(0, sizeof(old), &old), 0);
	CHECK_EQ(pen__cpus(), all);
}

int main(void)
{
	ring_basic();
	ring_stress();
	ring_close_busy();
	ring_lazy();
	order_basic();
	order_stress(1);
	order_stress(4);
	order_crowd();
	teams();
	machine();
	return test_end();
}
