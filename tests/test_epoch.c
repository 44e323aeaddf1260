/*
 * Epochs cut short (epoch_batches=), in one order (reshuffle=false), read and
 * dropped (decode=false), and the hook that is called for completed rows: what
 * is delivered is what a plain run delivers, only less of it.
 */
#include "take.h"

#define EPOCHS 3

/* Which ids came, epoch by epoch. */
struct order {
	uint64_t id[EPOCHS][3 * TAKE_MOST];
	uint64_t n[EPOCHS], nbatches[EPOCHS];
};

/* The code at the end of it. */
static int order_of(struct order *o, struct pen_loader *l)
{
	struct pen_batch *b;
	int rc = 0;

	memset(o, 0, sizeof(*o));
	for (unsigned e = 0; e < EPOCHS && rc >= 0;) {
		rc = pen_loader_next(l, &b, NULL);
		if (rc) {
			e++;
			continue;
		}
		CHECK_EQ(b->epoch, e);
		for (uint32_t i = 0; i < b->nsamples; i++)
			o->id[e][o->n[e]++] = b->ids[i];
		o->nbatches[e]++;
		pen_batch_unref(b);
	}
	return rc;
}

static bool is_prefix(const struct order *a, const struct order *whole)
{
	for (unsigned e = 0; e < EPOCHS; e++)
		if (a->n[e] > whole->n[e] ||
		    memcmp(a->id[e], whole->id[e], a->n[e] * 8) != 0)
			return false;
	return true;
}

/* ---- epoch_batches ---- */

static void check_short(const struct eng_set *s, const char *how, uint64_t want,
			const struct order *whole, uint64_t full)
{
	struct pen_loader *l;
	struct order o;
	char text[256];

	snprintf(text, sizeof(text), "%s epoch_batches=%llu", how,
		 (unsigned long long)want);
	l = take_open(s, text, "store=posix");
	if (!l)
		return;
	if (want <= full) /* else the entire epoch, with its tail */
		CHECK_EQ(pen_loader_nbatches(l), want);
	CHECK_EQ(order_of(&o, l), PEN_END);
	for (unsigned e = 0; e < EPOCHS; e++)
		CHECK_EQ(o.nbatches[e],
			 want <= full ? want : whole->nbatches[e]);
	if (!CHECK(is_prefix(&o, whole)))
		fprintf(stderr, "  %s %s\n", s->name, text);
	if (l->shared) /* held for a batch that never comes: forever */
		CHECK_EQ(pen__units_bytes(&l->units), 0);
	CHECK_EQ(pen_loader_next(l, &(struct pen_batch *){ NULL }, NULL),
		 PEN_END);
	pen_loader_close(l);
}

static void test_short(const char *set, const char *how, unsigned world,
		       const char *tail)
{
	const struct eng_set *s = take_find(set);
	const uint64_t full = eng_total(s) / (3 * world);

	for (unsigned rank = 0; rank < world; rank++) {
		struct pen_loader *l;
		struct order whole;
		char text[192];

		snprintf(text, sizeof(text),
			 "%s batch_size=3 epochs=3 seed=9 threads=3 "
			 "prefetch=2 world=%u rank=%u tail=%s",
			 how, world, rank, tail);
		l = take_open(s, text, "store=posix");
		if (!l)
			return;
		CHECK_EQ(order_of(&whole, l), PEN_END);
		pen_loader_close(l);
		for (uint64_t n = 1; n < full + 3; n++)
			check_short(s, text, n, &whole, full);
	}
}

static void test_epoch_batches(void)
{
	static const char *const sets[] = { "npy_first", "npz_shared",
					    "h5_gzip", "h5_chunked" };
	static const char *const samplers[] = {
		"sampler=sequential", "sampler=shuffle",
		"sampler=block sampler.chunk=4 sampler.chunks=2"
	};
	static const char *const tails[] = { "keep", "drop", "pad" };

	for (size_t i = 0; i < 4; i++)
		for (size_t k = 0; k < 3; k++)
			for (unsigned world = 1; world <= 3; world++)
				test_short(sets[i], samplers[k], world,
					   tails[(i + k + world) % 3]);
	test_short("npz_shared", "sampler=block sampler.chunk=4", 2, "drop");
	test_short("npz_shared", "sampler=block sampler.chunk=4", 2, "pad");
	test_short("npz_shared", samplers[2], 1, "keep");
	test_short("npz_shared",
		   "decode=false sampler=block sampler.chunk=4 memory=200k", 1,
		   "keep");
}

/* The same memory for a short epoch after the first as after all. */
static void test_account(void)
{
	const struct eng_set *s = take_find("npz_shared");
	struct pen_loader *l = eng_open(NULL,
					"%s %s batch_size=3 epochs=40 "
					"epoch_batches=2 sampler=block "
					"sampler.chunk=4 threads=2",
					s->name, s->read);
	struct pen_stats st;

	if (!CHECK(l != NULL))
		return;
	CHECK_EQ(eng_run(l, 40, NULL, NULL), PEN_END);
	pen_loader_stats(l, &st, sizeof(st));
	CHECK_EQ(pen__units_bytes(&l->units), 0);
	CHECK_EQ(st.nbatches, 80);
	CHECK(st.memory_peak_bytes <= st.memory_budget_bytes);
	pen_loader_close(l);
}

/* A state from a longer epoch, past the end of this one: the next epoch. */
static void test_past(const char *set)
{
	const struct eng_set *s = take_find(set);
	const char *how = "batch_size=3 epochs=3 sampler=shuffle threads=2";
	struct pen_loader *a = take_open(s, how, "store=posix");
	struct pen_loader *l;
	struct pen_state st;
	struct pen_batch *b;
	char text[128];

	snprintf(text, sizeof(text), "%s epoch_batches=2", how);
	l = take_open(s, text, "store=posix");
	if (!CHECK(a && l))
		return;
	for (unsigned i = 0; i < 4; i++) {
		CHECK_EQ(pen_loader_next(a, &b, NULL), 0);
		pen_batch_unref(b);
	}
	pen_loader_state(a, &st);
	CHECK_EQ(pen_loader_restore(l, &st, NULL), 0);
	CHECK_EQ(pen_loader_next(l, &b, NULL), PEN_END);
	CHECK_EQ(pen_loader_next(l, &b, NULL), 0);
	CHECK_EQ(b->epoch, 1);
	CHECK_EQ(b->position, 0);
	pen_batch_unref(b);
	/* and back: within it, it continues */
	pen_loader_state(l, &st);
	CHECK_EQ(pen_loader_restore(a, &st, NULL), 0);
	CHECK_EQ(pen_loader_next(a, &b, NULL), 0);
	CHECK_EQ(b->epoch, 1);
	CHECK_EQ(b->position, 3);
	pen_batch_unref(b);
	pen_loader_close(a);
	pen_loader_close(l);
}

/* ---- reshuffle ---- */

static void test_reshuffle(const char *set, const char *sampler)
{
	const struct eng_set *s = take_find(set);
	struct pen_loader *l, *again;
	struct order o, first;
	struct pen_state st;
	char text[192];

	snprintf(text, sizeof(text),
		 "%s batch_size=4 epochs=3 seed=5 threads=3", sampler);
	l = take_open(s, text, "store=posix");
	CHECK_EQ(order_of(&first, l), PEN_END);
	CHECK(memcmp(first.id[0], first.id[1], sizeof(first.id[0])) != 0);
	snprintf(text, sizeof(text),
		 "%s batch_size=4 epochs=3 seed=5 threads=3 reshuffle=false",
		 sampler);
	again = take_open(s, text, "store=posix");
	if (!CHECK(l && again))
		return;
	CHECK_EQ(order_of(&o, again), PEN_END);
	for (unsigned e = 0; e < EPOCHS; e++) {
		CHECK_EQ(o.n[e], eng_total(s));
		CHECK(!memcmp(o.id[e], first.id[0], sizeof(o.id[e])));
	}
	pen_loader_state(l, &st);
	CHECK_EQ(pen_loader_restore(again, &st, NULL), PEN_EINVAL);
	pen_loader_state(again, &st);
	CHECK_EQ(pen_loader_restore(l, &st, NULL), PEN_EINVAL);
	/* its own state is accepted, and the order continues */
	st.epoch = 2;
	st.position = 4;
	CHECK_EQ(pen_loader_restore(again, &st, NULL), 0);
	for (uint64_t n = 4; n < o.n[2];) {
		struct pen_batch *b;

		if (!CHECK_EQ(pen_loader_next(again, &b, NULL), 0))
			break;
		CHECK(!memcmp(b->ids, first.id[0] + n, b->nsamples * 8));
		n += b->nsamples;
		pen_batch_unref(b);
	}
	pen_loader_close(l);
	pen_loader_close(again);
}

/* ---- decode ---- */

static uint64_t bytes_read(struct pen_loader *l, struct order *o)
{
	struct pen_stats st;

	CHECK_EQ(order_of(o, l), PEN_END);
	pen_loader_stats(l, &st, sizeof(st));
	pen_loader_close(l);
	return st.read_bytes;
}

static void test_dropped(const struct eng_set *s, const char *store)
{
	static const char how[] = "batch_size=4 epochs=3 seed=5 threads=1 "
				  "sampler=shuffle cache=1M";
	uint64_t want, got;
	struct pen_loader *l;
	struct pen_batch *b;
	struct order a, o;
	char text[192];

	snprintf(text, sizeof(text), "%s decode=false", how);
	l = take_open(s, how, store);
	if (!l)
		return;
	want = bytes_read(l, &a);
	l = take_open(s, text, store);
	if (!CHECK(l != NULL))
		return;
	CHECK_EQ(pen_loader_next(l, &b, NULL), 0);
	CHECK_EQ(b->ntensors, 0);
	CHECK_EQ(b->nsamples, 4);
	pen_batch_unref(b);
	pen_loader_close(l);
	got = bytes_read(take_open(s, text, store), &o);
	if (!CHECK(is_prefix(&o, &a) && is_prefix(&a, &o)) ||
	    !CHECK(got >= want))
		fprintf(stderr, "  %s %s: %llu of %llu bytes\n", s->name, store,
			(unsigned long long)got, (unsigned long long)want);
}

/* Missing data is an error, even if it is dropped: a file that is removed (len
 * < 0) or truncated before it is opened. */
static void test_missing(const struct eng_set *s, off_t len)
{
	struct pen_err err = { 0 };
	struct pen_loader *l = eng_open(&err,
					"%s %s decode=false batch_size=1 "
					"prefetch=1 threads=1 "
					"store=posix",
					s->name, s->read);
	char path[128];

	eng_file_name(s, s->nfiles - 1, path, sizeof(path));
	if (!CHECK(l != NULL))
		return;
	CHECK_EQ(len < 0 ? unlink(path) : truncate(path, len), 0);
	CHECK(eng_run(l, 1, NULL, &err) < 0);
	CHECK_STR(err.where, path);
	pen_loader_close(l);
	eng_make_file(s, s->nfiles - 1);
}

static void test_cut(const struct eng_set *s)
{
	struct pen_err err = { 0 };
	unsigned n = 0, quiet = 0, bad = 0;

	while (quiet < 2 && ++n < 400) {
		struct pen_loader *l;
		int rc;

		l = eng_open(&err,
			     "%s %s decode=false threads=2 batch_size=4 "
			     "store=fault store.short_nth=%u",
			     s->name, s->read, n);
		rc = l ? eng_run(l, 1, NULL, &err) : err.code;
		CHECK(rc == PEN_END || (rc < 0 && strstr(err.where, s->name)));
		pen_loader_close(l);
		quiet = rc == PEN_END ? quiet + 1 : 0;
		bad += rc < 0;
	}
	CHECK(bad >= s->nfiles);
}

/* ---- the hook ---- */

struct count {
	atomic_ulong rows, calls;
	unsigned nthreads;
};

static void count_rows(void *arg, uint32_t worker, uint32_t n)
{
	struct count *c = arg;

	CHECK(worker < c->nthreads && n > 0);
	atomic_fetch_add(&c->rows, n);
	atomic_fetch_add(&c->calls, 1);
}

static void test_hook(const struct eng_set *s, const char *how,
		      const char *store)
{
	struct count c = { .nthreads = 3 };
	struct pen_spec *spec = NULL;
	struct pen_loader *l = NULL;
	struct pen_stats st = { 0 };
	struct pen_batch *b;
	uint64_t n = 0;
	char text[ENG_TEXT];
	int rc;

	snprintf(text, sizeof(text),
		 "%s %s %s %s threads=3 batch_size=5 epochs=2", s->name,
		 s->read, how, store);
	rc = eng_spec(&spec, text, NULL);
	if (!rc) {
		pen_spec_on_rows(spec, count_rows, &c);
		rc = pen_loader_open(&l, spec, NULL);
	}
	pen_spec_free(spec);
	if (rc && strstr(store, "uring"))
		return;
	for (unsigned ends = 0; CHECK(rc >= 0) && ends < 2;) {
		rc = pen_loader_next(l, &b, NULL);
		ends += rc == PEN_END;
		if (rc)
			continue;
		n += b->nsamples + b->nskipped;
		CHECK(atomic_load(&c.rows) >= n); /* before, not after */
		pen_batch_unref(b);
	}
	if (l)
		pen_loader_stats(l, &st, sizeof(st));
	pen_loader_close(l);
	if (!CHECK_EQ(atomic_load(&c.rows), n))
		fprintf(stderr, "  %s %s %s\n", s->name, how, store);
	CHECK(atomic_load(&c.calls) <= n);
}

int main(void)
{
	const struct eng_set *s;

	eng_start("epoch");
	for (size_t i = 0; (s = take_set(i)) != NULL; i++) {
		eng_make(s);
		for (size_t k = i % TEST_EVERY(3); k < TAKE_NSTORES;
		     k += TEST_EVERY(3)) {
			test_dropped(s, take_stores[k]);
			test_hook(s, "sampler=shuffle", take_stores[k]);
		}
		test_hook(s, "sampler=block sampler.chunk=3", "store=posix");
		test_hook(s, "decode=false", "store=uring");
		test_hook(s, "take=3 world=2 tail=pad read_size=9",
			  "store=posix");
		test_cut(s);
		test_missing(s, -1);
		test_missing(s, 9);
	}
	test_hook(eng_find("npy_file"), "on_error=skip store.fail_every=37",
		  "store=fault");
	test_epoch_batches();
	test_account();
	test_past("npy_first");
	test_past("npz_shared");
	test_reshuffle("npy_first", "sampler=shuffle");
	test_reshuffle("npz_shared",
		       "sampler=block sampler.chunk=4 sampler.chunks=2");
	test_reshuffle("raw", "sampler=block sampler.chunk=4");
	eng_end();
	return test_end();
}
