/*
 * The pool: which batches the consumer holds, what memory is counted, which
 * rows failed; and through the loader, that closing is clean at any moment,
 * that batches outlive their loader, and that a slow consumer never costs more
 * than the budget.
 */
#include <pthread.h>

#include "base/err.h"
#include "engine.h"

/* ---- the module ---- */

static struct pen_pool *new_pool(uint32_t nbatches, enum pen_layout layout)
{
	struct pen_format f = { .nfields = 1, .units_per_sample = 1 };
	struct pen_pool *p;

	f.field[0] = (struct pen_field){ .name = "x",
					 .dtype = PEN_U16,
					 .layout = layout,
					 .ndim = 1,
					 .shape = { 8 },
					 .max_bytes = 16 };
	CHECK_EQ(pen__pool_new(&p, &f, 4, false, NULL), 0);
	CHECK_EQ(pen__pool_fill(p, nbatches, NULL), 0);
	return p;
}

static void test_round(void)
{
	struct pen_pool *p = new_pool(3, PEN_DENSE);
	struct pen_ring *ring;
	struct pen_task *t[3];
	unsigned lane;

	CHECK_EQ(pen__ring_new(&ring, 3, -1), 0);
	pen__pool_start(p, ring);
	for (int i = 0; i < 3; i++) {
		t[i] = pen__ring_pop(ring, &lane, false);
		CHECK(t[i] && lane == PEN_LANE_PLAN);
		pen__pool_deliver(t[i]->batch);
	}
	CHECK(!pen__ring_pop(ring, &lane, false));
	CHECK_EQ(p->nout, 3);
	pen_batch_ref(&t[1]->batch->pub);
	pen_batch_unref(&t[1]->batch->pub);
	CHECK_EQ(p->nout, 3);
	pen_batch_unref(&t[1]->batch->pub);
	CHECK(pen__ring_pop(ring, &lane, false) == t[1]);
	/* stopped: returned batches stay, and start finds them */
	pen__pool_stop(p);
	pen_batch_unref(&t[2]->batch->pub);
	CHECK(!pen__ring_pop(ring, &lane, false));
	pen__pool_start(p, ring);
	CHECK(pen__ring_pop(ring, &lane, false) == t[1]);
	CHECK(pen__ring_pop(ring, &lane, false) == t[2]);
	CHECK(!pen__ring_pop(ring, &lane, false));
	/* the last one returned frees the pool */
	pen__pool_close(p);
	pen__ring_free(ring);
	pen_batch_unref(&t[0]->batch->pub);
	pen_batch_unref(NULL);
}

static void test_account(void)
{
	struct pen_pool *p = new_pool(2, PEN_RAGGED);
	struct pen_pooled *b = p->batch[0];

	CHECK(b->offsets[0] && b->shapes[0]);
	CHECK_EQ(pen__pool_reserve(b, 100, NULL), 0);
	CHECK(b->mem.cap >= 100 && p->bytes == b->mem.cap);
	CHECK_EQ(pen__pool_reserve(b, 10, NULL), 0);
	CHECK_EQ(p->bytes, b->mem.cap);
	CHECK_EQ(pen__pool_reserve(b, 100000, NULL), 0);
	CHECK(p->bytes == b->mem.cap && p->peak == p->bytes);
	pen__mem_fail_nth(1, true);
	CHECK_EQ(pen__pool_reserve(b, 1000000, NULL), PEN_ENOMEM);
	pen__mem_fail_nth(0, false);
	CHECK_EQ(p->bytes, 0);
	CHECK_EQ(pen__pool_reserve(b, 10, NULL), 0);
	CHECK_EQ(p->bytes, b->mem.cap);
	pen__pool_account(p, 1 << 20);
	pen__pool_account(p, -(1 << 20));
	CHECK_EQ(p->peak, b->mem.cap + (1u << 20));
	pen__pool_close(p);
}

static void test_row_faults(void)
{
	static const uint32_t rows[] = { 3, 0, 2, 3, 0, 1 };
	struct pen_pool *p = new_pool(1, PEN_DENSE);
	struct pen_pooled *b = p->batch[0];
	struct pen_err err = { .code = PEN_EIO };

	for (size_t i = 0; i < 6; i++)
		pen__batch_fault(b, rows[i], &err);
	CHECK(b->faulty && b->nfaults == 4);
	for (uint32_t i = 0; i < 4; i++)
		CHECK_EQ(b->fault[i].row, i);
	pen__mem_fail_nth(1, false);
	pen__batch_fault(b, 9, &err);
	pen__mem_fail_nth(0, false);
	CHECK(b->fault_lost);
	pen__pool_close(p);
}

/* ---- closing ---- */

static void check_held(const struct eng_set *s, const struct pen_batch *b)
{
	/* sets with one sample per file, in order: a row's id is its number */
	for (uint32_t r = 0; r < b->nsamples; r++)
		CHECK(eng_row_right(s, b, 0, r, b->ids[r]));
}

static void test_close(const char *set, const char *how)
{
	const struct eng_set *s = eng_find(set);
	struct pen_batch *held[3];

	for (unsigned take = 0; take <= 3; take++)
		for (unsigned keep = 0; keep <= take; keep++) {
			struct pen_loader *l =
				eng_open(NULL,
					 "%s %s %s epochs=0 batch_size=3 "
					 "threads=4",
					 s->name, s->read, how);

			for (unsigned i = 0; i < take; i++) {
				CHECK_EQ(pen_loader_next(l, &held[i], NULL), 0);
				if (i >= keep)
					pen_batch_unref(held[i]);
			}
			pen_loader_close(l);
			for (unsigned i = 0; i < keep; i++) {
				check_held(s, held[i]);
				pen_batch_ref(held[i]);
				pen_batch_unref(held[i]);
				pen_batch_unref(held[i]);
			}
		}
}

static void test_leaks(void)
{
	unsigned fds = eng_count("/proc/self/fd");
	unsigned tasks = eng_count("/proc/self/task");
	const char *const stores[] = { "posix", "uring", "mmap", "ram" };

	for (unsigned i = 0; i < 200; i++) {
		const struct eng_set *s = &eng_sets[i % ENG_NSETS];
		struct pen_loader *l =
			eng_open(NULL,
				 "%s %s store=%s shuffle=true epochs=0 "
				 "batch_size=3 threads=3",
				 s->name, s->read, stores[i / ENG_NSETS % 4]);
		struct pen_batch *b;

		for (unsigned k = 0; l && k < i % 5; k++) {
			CHECK_EQ(pen_loader_next(l, &b, NULL), 0);
			pen_batch_unref(b);
		}
		pen_loader_close(l);
	}
	CHECK_EQ(eng_count("/proc/self/fd"), fds);
	/* a joined thread may be in /proc a moment longer */
	for (int i = 0; i < 1000000; i++) {
		if (eng_count("/proc/self/task") == tasks)
			break;
		sched_yield();
	}
	CHECK_EQ(eng_count("/proc/self/task"), tasks);
}

struct consumer {
	struct pen_loader *l;
	unsigned calls;
	atomic_uint taken;
	int rc;
};

static void *consume(void *arg)
{
	struct consumer *c = arg;
	struct pen_batch *b;

	for (unsigned i = 0; i < c->calls; i++) {
		c->rc = pen_loader_next(c->l, &b, NULL);
		if (c->rc == PEN_ECLOSED)
			break;
		if (!c->rc)
			pen_batch_unref(b);
		atomic_fetch_add(&c->taken, 1);
	}
	return NULL;
}

/* Closing is the only thing another thread may do while a thread is in next().
 * The reads are delayed, so that it is there, and it is its last call: on a
 * busy machine the batch may come first, and then next() must not be called
 * again. */
static void test_close_in_next(unsigned after, const char *how)
{
	const struct eng_set *s = eng_find("npy_file");
	struct consumer c = { .calls = after + 1 };
	pthread_t t;

	c.l = eng_open(NULL, "%s %s epochs=0 batch_size=3 threads=2 %s",
		       s->name, s->read, how);
	if (!CHECK(c.l))
		return;
	pthread_create(&t, NULL, consume, &c);
	/* close() waits for threads in next(), not for those about to call
	 * it */
	while (atomic_load(&c.taken) < after ||
	       (atomic_load(&c.taken) == after && !atomic_load(&c.l->in_next)))
		sched_yield();
	pen_loader_close(c.l);
	pthread_join(t, NULL);
	CHECK(c.rc == PEN_ECLOSED || atomic_load(&c.taken) > after);
}

/* ---- memory ---- */

/* Lets the workers do all they can while no batch is taken. */
static void settle(struct pen_loader *l)
{
	struct pen_stats a, b;
	unsigned same = 0;

	pen_loader_stats(l, &a, sizeof(a));
	for (unsigned i = 0; i < 100000 && same < 200; i++) {
		sched_yield();
		pen_loader_stats(l, &b, sizeof(b));
		same = a.nreads == b.nreads && !atomic_load(&l->planned)
			       ? same + 1
			       : 0;
		a = b;
	}
}

static void test_budget(const char *data, const char *how, uint64_t budget)
{
	struct pen_err err;
	struct pen_loader *l = eng_open(&err,
					"%s %s memory=%llu epochs=3 "
					"threads=3 shuffle=true",
					data, how, (unsigned long long)budget);
	struct pen_batch *b, *held = NULL;
	struct pen_stats st;
	int rc;

	if (!CHECK(l)) {
		fprintf(stderr, "%s: %s\n", err.where, err.msg);
		return;
	}
	for (unsigned i = 0; (rc = pen_loader_next(l, &b, &err)) >= 0; i++) {
		if (rc == PEN_END && l->ended)
			break;
		if (rc == PEN_END)
			continue;
		pen_batch_unref(held);
		held = b;
		if (i % 16 == 0)
			settle(l);
	}
	CHECK_EQ(rc, PEN_END);
	pen_loader_stats(l, &st, sizeof(st));
	CHECK_EQ(st.memory_budget_bytes, budget);
	if (!CHECK(st.memory_peak_bytes <= budget))
		fprintf(stderr, "  %s %s: %llu\n", data, how,
			(unsigned long long)st.memory_peak_bytes);
	pen_batch_unref(held);
	pen_loader_close(l);
}

static void too_small(const char *data, const char *how, const char *memory)
{
	struct pen_err err;
	struct pen_loader *l =
		eng_open(&err, "%s %s memory=%s", data, how, memory);

	CHECK(!l);
	CHECK_EQ(err.code, PEN_ENOMEM);
	CHECK(strstr(err.msg, "memory=") && strstr(err.msg, "batch_size="));
	pen_loader_close(l);
}

static void test_budgets(void)
{
	static const struct eng_set plain = {
		.name = "big",
		.format = "npy",
		.write = "samples=first",
		.read = "format.samples=first",
		.nfiles = 2,
		.per_file = 200,
		.field = { { .name = "x",
			     .dtype = PEN_F32,
			     .ndim = 1,
			     .shape = { 2048 } } },
	};
	static const struct eng_set ragged = {
		.name = "uneven",
		.format = "npy",
		.write = "samples=file",
		.read = "",
		.nfiles = 150,
		.per_file = 1,
		.varies = true,
		.field = { { .name = "x",
			     .dtype = PEN_F32,
			     .ndim = 2,
			     .shape = { 30, 40 } } },
	};

	eng_make(&plain);
	eng_make(&ragged);
	test_budget("big", "format.samples=first batch_size=16", 1 << 20);
	test_budget("big", "format.samples=first batch_size=7 store=ram",
		    1 << 20);
	test_budget("big", "format.samples=first batch_size=16 prefetch=1000",
		    1 << 20);
	test_budget("big",
		    "format.samples=first batch_size=16 sampler=block "
		    "sampler.chunk=8",
		    1 << 20);
	test_budget("big",
		    "format.samples=first batch_size=16 sampler=block "
		    "sampler.chunk=50 tail=drop",
		    1 << 21);
	/* memory comes in pages, and from 1 MiB on in huge ones */
	test_budget("big", "format.samples=first batch_size=140", 8 << 20);
	test_budget("npy_file", "batch_size=2 prefetch=100", 40000);
	test_budget("uneven", "batch_size=16", 1 << 20);
	test_budget("uneven", "batch_size=16 shapes=padded", 1 << 20);
	test_budget("uneven", "batch_size=16 shapes=padded store=uring",
		    1 << 20);
	/* batches larger than the data: all of the data has to fit, or a rank's
	 * share of it */
	test_budget("big", "format.samples=first batch_size=1000000", 16 << 20);
	test_budget("big",
		    "format.samples=first batch_size=1000000 world=8 rank=1 "
		    "tail=keep",
		    2 << 20);
	test_budget("uneven", "batch_size=1000000 shapes=padded", 4 << 20);
	test_budget("uneven", "batch_size=1000000", 4 << 20);
	test_budget("big",
		    "format.samples=first batch_size=1000000 subset=:3 "
		    "sampler=block sampler.chunk=8",
		    1 << 20);
	too_small("big", "format.samples=first batch_size=1000000 tail=pad",
		  "16MiB");
	too_small("big", "format.samples=first batch_size=64", "1MiB");
	too_small("uneven", "batch_size=100", "512k");
}

int main(void)
{
	eng_start("pool");
	test_round();
	test_account();
	test_row_faults();
	for (size_t i = 0; i < ENG_NSETS; i++)
		eng_make(&eng_sets[i]);
	test_close("npy_file", "store=posix");
	test_close("npy_file", "store=mmap");
	test_close("npy_ragged", "store=ram");
	test_close("npz_packed", "store=fault store.delay=100us");
	test_leaks();
	for (unsigned i = 0; i < 20; i++) {
		test_close_in_next(i, "store=fault store.delay=100us");
		test_close_in_next(i * 3, "");
	}
	test_budgets();
	eng_end();
	return test_end();
}
