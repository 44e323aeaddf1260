/*
 * Units that samples share: fetched once while held, found by all who need
 * them, released by the last; and through the loader, that none is fetched
 * twice in a window, and that memory stays within the budget and is returned,
 * for any tail, sampler and ranks.
 */
#include "base/clock.h"
#include "base/err.h"
#include "engine.h"

/* ---- the module ---- */

static unsigned woken;
static struct pen_pooled *woken_batch;

static void wake(void *arg, struct pen_pooled *b)
{
	CHECK(arg == &woken);
	woken++;
	woken_batch = b;
}

static struct pen_pool *new_pool(void)
{
	struct pen_format f = { .nfields = 0, .units_per_sample = 1 };
	struct pen_pool *p;

	CHECK_EQ(pen__pool_new(&p, &f, 4, true, NULL), 0);
	CHECK_EQ(pen__pool_fill(p, 2, NULL), 0);
	return p;
}

static struct pen_unit unit_of(uint64_t id, uint64_t bytes)
{
	return (struct pen_unit){ .id = id,
				  .len = bytes,
				  .flags = PEN_UNIT_SHARED };
}

static struct pen_live *hold(struct pen_units *u, uint64_t id, uint64_t bytes,
			     bool want_fresh)
{
	struct pen_unit unit = unit_of(id, bytes);
	struct pen_live *l = NULL;
	bool fresh;

	CHECK_EQ(pen__units_hold(u, &unit, &l, &fresh), 0);
	CHECK_EQ(fresh, want_fresh);
	return l;
}

/* Packed units that turn out smaller than declared. */
static void test_fill(void)
{
	enum { SIZE = 40960, SMALL = 8192 };
	static uint8_t bytes[SIZE];
	struct pen_pool *p = new_pool();
	struct pen_unit unit = unit_of(0, 10);
	struct pen_live *l;
	struct pen_units u;
	bool fresh;

	CHECK_EQ(pen__units_init(&u, p, 0, 0, UINT64_MAX), 0);
	unit.flags |= PEN_UNIT_COMPRESSED;
	unit.size = SIZE;
	memset(bytes, 7, sizeof(bytes));
	for (unit.id = 1; unit.id < 60; unit.id++) {
		/* from unit 40 on they are as large as declared */
		const size_t n = unit.id < 40 ? SMALL : SIZE;

		CHECK_EQ(pen__units_hold(&u, &unit, &l, &fresh), 0);
		CHECK(l->n == SIZE && fresh);
		/* one that is announced early; memory is learned */
		CHECK(unit.id < 30 || unit.id > 40 || l->mem.cap < SIZE);
		CHECK_EQ(pen__units_fill(&u, l, bytes, n), 0);
		CHECK(l->n == n && l->mem.cap >= n);
		CHECK(n == SIZE || l->mem.cap <= 2 * (SMALL + 4096));
		CHECK(!memcmp(l->mem.p, bytes, n));
		CHECK_EQ(p->bytes, pen__units_bytes(&u));
		CHECK_EQ(pen__units_held(&u), unit.id);
	}
	unit.id = 1;
	l = pen__units_find(&u, 1);
	pen__mem_fail_nth(1, false);
	CHECK_EQ(pen__units_fill(&u, l, bytes, SIZE), PEN_ENOMEM);
	pen__mem_fail_nth(0, false);
	CHECK(l->n == SMALL && !memcmp(l->mem.p, bytes, SMALL));
	for (uint64_t id = 1; id < 60; id++) {
		l = pen__units_find(&u, id);
		pen__units_ready(&u, l, NULL, wake, &woken);
		pen__units_release(&u, &l, 1);
	}
	CHECK(!pen__units_held(&u) && !pen__units_bytes(&u));
	pen__units_fini(&u);
	CHECK_EQ(p->bytes, 0);
	pen__pool_close(p);
}

/* Units unpacked in place have all the memory they declare, whatever smaller
 * ones took. */
static void test_unpacked_in_place(void)
{
	enum { SIZE = 65536 };
	static uint8_t bytes[SIZE];
	struct pen_pool *p = new_pool();
	struct pen_unit unit = unit_of(0, 10);
	struct pen_live *l;
	struct pen_units u;
	bool fresh;

	CHECK_EQ(pen__units_init(&u, p, 0, 0, UINT64_MAX), 0);
	u.copied = SIZE;
	unit.flags |= PEN_UNIT_COMPRESSED;
	unit.size = SIZE;
	for (unit.id = 1; unit.id < 40; unit.id++) {
		CHECK_EQ(pen__units_hold(&u, &unit, &l, &fresh), 0);
		CHECK_EQ(pen__units_fill(&u, l, bytes, SIZE / 8), 0);
	}
	unit.size = 10 * SIZE;
	CHECK_EQ(pen__units_hold(&u, &unit, &l, &fresh), 0);
	CHECK(fresh && l->mem.cap >= unit.size);
	CHECK(!pen__units_fit(&u,
			      &(struct pen_unit){ .id = 99,
						  .flags = unit.flags,
						  .size = unit.size },
			      1, pen__units_bytes(&u) + unit.size - 1));
	pen__units_fini(&u);
	CHECK_EQ(p->bytes, 0);
	pen__pool_close(p);
}

static void test_life(void)
{
	struct pen_pool *p = new_pool();
	struct pen_pooled *a = p->batch[0], *b = p->batch[1];
	struct pen_units u;
	struct pen_live *l, *two[2];
	struct pen_err err = { .code = PEN_EIO };

	CHECK_EQ(pen__units_init(&u, p, 0, 0, UINT64_MAX), 0);
	l = hold(&u, 7, 100, true);
	CHECK(hold(&u, 7, 100, false) == l);
	CHECK(pen__units_find(&u, 7) == l && !pen__units_find(&u, 8));
	CHECK_EQ(pen__units_bytes(&u), l->mem.cap);
	CHECK_EQ(p->bytes, l->mem.cap);
	/* two batches wait, one of them twice; b for another unit too */
	atomic_store(&a->waiting, 0);
	atomic_store(&b->waiting, 0);
	two[0] = l;
	two[1] = hold(&u, 9, 50, true);
	CHECK_EQ(pen__units_wait(&u, l, a) | pen__units_wait(&u, l, a), 0);
	CHECK_EQ(pen__units_wait(&u, l, b), 0);
	CHECK_EQ(pen__units_wait(&u, two[1], b), 0);
	CHECK(a->waiting == 1 && b->waiting == 2);
	pen__units_ready(&u, l, NULL, wake, &woken);
	CHECK(woken == 1 && woken_batch == a);
	pen__units_ready(&u, two[1], &err, wake, &woken);
	CHECK(woken == 2 && woken_batch == b);
	CHECK_EQ(two[1]->err.code, PEN_EIO);
	/* ready: no waiting */
	CHECK_EQ(pen__units_wait(&u, l, a), 0);
	CHECK_EQ(a->waiting, 0);
	pen__units_release(&u, two, 2);
	CHECK(pen__units_find(&u, 7) == l && !pen__units_find(&u, 9));
	two[1] = NULL;
	pen__units_release(&u, two, 2);
	CHECK(!pen__units_find(&u, 7));
	CHECK_EQ(pen__units_bytes(&u), 0);
	pen__units_fini(&u);
	pen__units_fini(&u); /* once is enough, and repeating it is harmless */
	CHECK_EQ(p->bytes, 0);
	pen__pool_close(p);
}

/* Memory is reused: the next unit of that size gets the memory of an earlier
 * one. */
static void test_spares(void)
{
	struct pen_pool *p = new_pool();
	struct pen_units u;

	CHECK_EQ(pen__units_init(&u, p, 0, 0, UINT64_MAX), 0);
	for (uint64_t i = 0; i < 5000; i++) {
		struct pen_live *l[4];

		for (uint64_t k = 0; k < 4; k++)
			l[k] = hold(&u, i * 4 + k, 10000 + k, true);
		pen__units_release(&u, l, 4);
		CHECK(p->bytes <= 8 * 12288);
	}
	CHECK(p->peak <= 8 * 12288);
	pen__units_fini(&u);
	CHECK_EQ(p->bytes, 0);
	pen__pool_close(p);
}

static void test_many(void)
{
	struct pen_pool *p = new_pool();
	struct pen_live **l = calloc(5000, sizeof(struct pen_live *));
	struct pen_unit unit[2] = { unit_of(4999, 1), unit_of(77777, 4096) };
	struct pen_units u;

	CHECK_EQ(pen__units_init(&u, p, 0, 0, UINT64_MAX), 0);
	for (uint64_t i = 0; i < 5000; i++)
		l[i] = hold(&u, i, 1, true);
	for (uint64_t i = 0; i < 5000; i++)
		CHECK(pen__units_find(&u, i) == l[i]);
	/* held units cost nothing more */
	CHECK(pen__units_fit(&u, unit, 1, 0));
	CHECK(!pen__units_fit(&u, unit, 2, u.live_bytes + 4095));
	CHECK(pen__units_fit(&u, unit, 2, u.live_bytes + 4096));
	unit[1].object = PEN_NO_OBJECT;
	CHECK(pen__units_fit(&u, unit, 2, 0));
	pen__units_release(&u, l, 5000);
	CHECK_EQ(u.nlive, 0);
	free(l);
	pen__units_fini(&u);
	CHECK_EQ(p->bytes, 0);
	pen__pool_close(p);
}

static void test_idle(void)
{
	struct pen_pool *p = new_pool();
	struct pen_units u;
	struct pen_live *l[3];

	CHECK_EQ(pen__units_init(&u, p, 2, 0, UINT64_MAX), 0);
	for (uint64_t i = 0; i < 3; i++) {
		l[i] = hold(&u, i, 10, true);
		pen__units_ready(&u, l[i], NULL, wake, &woken);
	}
	pen__units_release(&u, l, 3);
	CHECK_EQ(pen__units_bytes(&u), 0);
	CHECK(!pen__units_find(&u, 0)); /* the oldest was dropped */
	l[1] = hold(&u, 1, 10, false);
	CHECK(l[1]->ready);
	l[0] = hold(&u, 0, 10, true);
	pen__units_release(&u, l, 2);
	CHECK(!pen__units_find(&u, 2));
	pen__units_fini(&u);
	CHECK_EQ(p->bytes, 0);
	pen__pool_close(p);
}

/* A unit that has not been held by all its users is kept for them, within
 * limits. */
static void test_later(void)
{
	struct pen_pool *p = new_pool();
	struct pen_units u;
	struct pen_live *l[3];

	CHECK_EQ(pen__units_init(&u, p, 0, 0, UINT64_MAX), 0);
	u.later_bytes = 2 * 4096;
	for (uint64_t i = 0; i < 3; i++) {
		l[i] = hold(&u, i, 10, true);
		l[i]->users = i == 1 ? 1 : 2;
		pen__units_ready(&u, l[i], NULL, wake, &woken);
	}
	pen__units_release(&u, l, 3);
	CHECK(!pen__units_bytes(&u) && !pen__units_held(&u));
	CHECK(!pen__units_find(&u, 1)); /* no other user needs it */
	CHECK_EQ(u.later.n, 2);
	l[0] = hold(&u, 0, 10, false);
	CHECK(l[0]->ready && u.later.n == 1);
	pen__units_release(&u, l, 1);
	CHECK(!pen__units_find(&u, 0)); /* that was the last one */
	/* the one that waits longest is dropped first */
	for (uint64_t i = 3; i < 5; i++) {
		l[0] = hold(&u, i, 10, true);
		l[0]->users = 2;
		pen__units_ready(&u, l[0], NULL, wake, &woken);
		pen__units_release(&u, l, 1);
	}
	CHECK(!pen__units_find(&u, 2) && pen__units_find(&u, 3));
	/* and gives way to held units */
	u.most = 4096;
	l[0] = hold(&u, 5, 100000, true);
	CHECK(!pen__units_find(&u, 3) && !pen__units_find(&u, 4));
	pen__units_fini(&u);
	CHECK_EQ(p->bytes, 0);
	pen__pool_close(p);
}

/* ---- through the loader ---- */

static const struct eng_set packed = {
	.name = "packed",
	.format = "npz",
	.write = "samples=first compress=true",
	.read = "format.samples=first",
	.nfiles = 12,
	.per_file = 32,
	.field = { { .name = "x",
		     .dtype = PEN_F32,
		     .ndim = 1,
		     .shape = { 100 } } },
};
static const struct eng_set records = {
	.name = "records",
	.format = "raw",
	.read = "format.shape=300",
	.nfiles = 4,
	.per_file = 100,
	.field = { { .name = "x",
		     .dtype = PEN_U8,
		     .ndim = 1,
		     .shape = { 300 } } },
};

static const struct eng_set fat = {
	.name = "fat",
	.format = "npz",
	.write = "samples=first compress=true",
	.read = "format.samples=first",
	.nfiles = 9,
	.per_file = 8,
	.more = 3,
	.field = { { .name = "x",
		     .dtype = PEN_F32,
		     .ndim = 1,
		     .shape = { 4096 } } },
};

static struct pen_loader *open_set(const struct eng_set *s, const char *how,
				   struct pen_err *err)
{
	return eng_open(err, "%s %s %s", s->name, s->read, how);
}

/* Within a window each unit is fetched once. */
static void test_once(const struct eng_set *s, const char *how, uint64_t nunits)
{
	struct pen_loader *l = open_set(s, how, NULL);
	struct pen_stats st;

	CHECK_EQ(eng_run(l, 1, NULL, NULL), PEN_END);
	pen_loader_stats(l, &st, sizeof(st));
	CHECK_EQ(st.nreads, nunits);
	CHECK_EQ(st.nsamples, eng_total(s));
	pen_loader_close(l);
}

/* While no batch is in progress, nothing is held except windows to come; after
 * the last epoch nothing at all. */
static void test_given_back(const struct eng_set *s, const char *how)
{
	struct pen_loader *l = open_set(s, how, NULL);

	if (!CHECK(l))
		return;
	while (!l->ended)
		CHECK_EQ(eng_run(l, 1, NULL, NULL), PEN_END);
	if (!CHECK_EQ(pen__units_bytes(&l->units), 0))
		fprintf(stderr, "  %s %s\n", s->name, how);
	pen_loader_close(l);
}

/* Lets the loader's threads run. On a busy machine one yield takes long, so the
 * number of them is not what counts. */
static void dawdle(void)
{
	const uint64_t until = pen__now_ns() + 1000000;

	while (pen__now_ns() < until)
		sched_yield();
}

/* A slow consumer, over several epochs. */
static void test_budget(const struct eng_set *s, const char *how)
{
	struct pen_err err;
	struct pen_loader *l = open_set(s, how, &err);
	struct pen_batch *b, *held = NULL;
	struct pen_stats st;
	int rc = 0;

	if (!CHECK(l)) {
		fprintf(stderr, "  %s: %s\n", err.where, err.msg);
		return;
	}
	for (unsigned i = 0; !l->ended && rc >= 0; i++) {
		rc = pen_loader_next(l, &b, &err);
		if (rc)
			continue;
		pen_batch_unref(held);
		held = b;
		if (i % 8 == 0)
			dawdle();
	}
	if (!CHECK_EQ(rc, PEN_END))
		fprintf(stderr, "  %s: %s\n", err.where, err.msg);
	pen_loader_stats(l, &st, sizeof(st));
	if (!CHECK(st.memory_peak_bytes <= st.memory_budget_bytes))
		fprintf(stderr, "  %s %s: %llu of %llu\n", s->name, how,
			(unsigned long long)st.memory_peak_bytes,
			(unsigned long long)st.memory_budget_bytes);
	pen_batch_unref(held);
	pen_loader_close(l);
}

/* Every batch of the pool stays in use when memory for units is short: if none
 * is taken for a while, all of them become ready. */
static void test_none_lost(void)
{
	struct pen_loader *l = open_set(&packed,
					"batch_size=4 prefetch=5 "
					"memory=250k threads=2 "
					"sampler=shuffle epochs=0",
					NULL);
	uint64_t ready = 0;

	for (unsigned i = 0; CHECK(l) && i < 10000; i++) {
		uint64_t before = l->ready_sum;
		struct pen_batch *b;
		int rc = pen_loader_next(l, &b, NULL);

		CHECK(rc >= 0);
		if (rc)
			continue;
		pen_batch_unref(b);
		ready = l->ready_sum - before;
		if (i > 500 && ready == l->pool->nbatches)
			break;
		if (i > 500)
			dawdle();
	}
	CHECK_EQ(ready, l->pool->nbatches);
	pen_loader_close(l);
}

/* The units of one batch alone are too much: an error, not an overdraft. */
static void test_too_small(void)
{
	struct pen_err err;
	struct pen_loader *l = open_set(&fat,
					"batch_size=6 memory=1M "
					"sampler=shuffle",
					&err);

	CHECK_EQ(l ? eng_run(l, 1, NULL, &err) : err.code, PEN_ENOMEM);
	CHECK(strstr(err.msg, "memory=") && strstr(err.msg, "batch_size="));
	pen_loader_close(l);
	l = open_set(&fat, "batch_size=40 memory=1M", &err);
	CHECK(!l);
	CHECK(strstr(err.msg, "memory=") && strstr(err.msg, "batch_size="));
}

/* Two batches that take about all of the budget leave nothing for units, not
 * everything. */
static void test_nothing_left(void)
{
	unsigned opened = 0;

	for (unsigned kib = 64; kib < 2048;
	     kib += kib < 480 || kib > 640 ? 4 * TEST_EVERY(8) : 4) {
		char how[80];
		struct pen_err err;
		struct pen_loader *l;

		snprintf(how, sizeof(how), "batch_size=16 threads=2 memory=%uk",
			 kib);
		l = open_set(&fat, how, &err);
		if (!l)
			continue;
		opened++;
		CHECK(l->unit_most <= l->budget);
		CHECK(l->unit_budget <= l->unit_most);
		pen_loader_close(l);
	}
	CHECK(opened > 0);
}

int main(void)
{
	static const char *const tails[] = { "keep", "drop", "pad" };
	char how[200];

	eng_start("units");
	test_life();
	test_fill();
	test_unpacked_in_place();
	test_spares();
	test_many();
	test_idle();
	test_later();
	eng_make(&packed);
	eng_make(&records);
	eng_make(&fat);
	test_once(&packed,
		  "batch_size=7 sampler=block sampler.chunk=32 "
		  "sampler.chunks=3 threads=2 memory=100M",
		  12);
	test_once(&records,
		  "batch_size=7 sampler=block sampler.chunk=50 "
		  "threads=2 store=posix",
		  8);
	for (size_t i = 0; i < 3; i++)
		for (unsigned world = 1; world <= 3; world++) {
			snprintf(how, sizeof(how),
				 "batch_size=9 epochs=5 sampler=block "
				 "sampler.chunk=16 sampler.chunks=4 tail=%s "
				 "world=%u rank=%u threads=2 store=posix",
				 tails[i], world, world - 1);
			test_given_back(&packed, how);
			test_given_back(&records, how);
			snprintf(how, sizeof(how),
				 "batch_size=9 epochs=3 sampler=shuffle "
				 "tail=%s world=%u rank=0 threads=2",
				 tails[i], world);
			test_given_back(&packed, how);
		}
	test_budget(&packed, "batch_size=8 memory=2M epochs=3 threads=2");
	test_budget(&packed, "batch_size=8 memory=600k epochs=5 threads=2 "
			     "sampler=shuffle");
	test_budget(&packed, "batch_size=8 memory=600k epochs=5 threads=2 "
			     "sampler=block sampler.chunk=32 tail=drop");
	test_budget(&records, "batch_size=16 memory=400k epochs=20 threads=2 "
			      "sampler=block sampler.chunk=20 tail=drop "
			      "store=posix");
	test_budget(&fat, "batch_size=4 memory=6M epochs=4 threads=2 "
			  "sampler=shuffle");
	test_budget(&fat, "batch_size=4 memory=6M epochs=4 threads=2 "
			  "sampler=shuffle cache=100M");
	test_budget(&fat, "batch_size=5 memory=4M epochs=4 threads=3 "
			  "sampler=block sampler.chunk=8 sampler.chunks=2 "
			  "tail=pad store=uring");
	test_too_small();
	test_nothing_left();
	test_none_lost();
	eng_end();
	return test_end();
}
