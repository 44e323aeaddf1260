/*
 * The loader as its user sees it: the same batches whatever threads and store,
 * each sample once an epoch, what was written comes out, a saved state goes on
 * where it was, and ranks share one order.
 */
#include "engine.h"

static const char *const stores[] = {
	"store=posix", "store=uring", "store=mmap", "store=ram", "store=fault",
	"store=fault store.under=mmap",
};
#define NSTORES (sizeof(stores) / sizeof(*stores))

static const char *const samplers[] = {
	"sampler=sequential",
	"sampler=shuffle",
	"sampler=block sampler.chunk=4 sampler.chunks=2",
	"sampler=block sampler.chunk=3 sampler.chunks=100",
	"sampler=weighted weights=%s.w.npy",
	"sampler=balanced labels=folder",
	"sampler=balanced labels=%s.l.npy",
};
#define NSAMPLERS (sizeof(samplers) / sizeof(*samplers))

static void make_all(void)
{
	double w[64], y[64];

	for (size_t i = 0; i < 64; i++) {
		w[i] = (double)(i % 5);
		y[i] = (double)(i % 3);
	}
	for (size_t i = 0; i < ENG_NSETS; i++) {
		const struct eng_set *s = &eng_sets[i];
		char path[64];

		eng_make(s);
		snprintf(path, sizeof(path), "%s.w.npy", s->name);
		eng_numbers(path, PEN_F64, w, eng_total(s));
		snprintf(path, sizeof(path), "%s.l.npy", s->name);
		eng_numbers(path, PEN_I64, y, eng_total(s));
	}
}

static void sampler_text(char *buf, size_t cap, size_t i, const char *set)
{
	const char *s = samplers[i], *hole = strstr(s, "%s");

	if (hole)
		snprintf(buf, cap, "%.*s%s%s", (int)(hole - s), s, set,
			 hole + 2);
	else
		snprintf(buf, cap, "%s", s);
}

static bool log_of(struct pen_buf *to, const struct eng_set *s,
		   const char *sampler, const char *store, unsigned threads)
{
	struct pen_err err;
	struct pen_loader *l = eng_open(
		&err, "%s %s %s %s threads=%u batch_size=7 epochs=2 seed=3 "
		      "prefetch=3 queue_depth=5",
		s->name, s->read, sampler, store, threads);

	*to = (struct pen_buf){ 0 };
	if (!l && strstr(store, "uring"))
		return false; /* not here */
	if (!CHECK(l)) {
		fprintf(stderr, "%s: %s\n", err.where, err.msg);
		return false;
	}
	CHECK_EQ(eng_run(l, 2, to, &err), PEN_END);
	CHECK_EQ(eng_run(l, 1, NULL, &err), PEN_END); /* and stays there */
	pen_loader_close(l);
	return true;
}

static void test_same(const struct eng_set *s, size_t sampler)
{
	struct pen_buf want, got;
	char text[128];

	sampler_text(text, sizeof(text), sampler, s->name);
	if (!log_of(&want, s, text, "store=posix", 1))
		return;
	for (size_t i = 0; i < NSTORES; i++)
		for (unsigned threads = 1; threads <= 8; threads += 7) {
			if (!log_of(&got, s, text, stores[i], threads))
				continue;
			if (!CHECK(eng_same(&want, &got)))
				fprintf(stderr, "  %s %s %s threads=%u\n",
					s->name, text, stores[i], threads);
			pen__buf_fini(&got);
		}
	pen__buf_fini(&want);
}

/* Content, and how often each sample came in one epoch. */
static void read_epoch(const struct eng_set *s, struct pen_loader *l,
		       unsigned *times, uint64_t *order)
{
	struct pen_batch *b;
	uint64_t n = 0;
	int rc;

	memset(times, 0, 64 * sizeof(*times));
	while ((rc = pen_loader_next(l, &b, NULL)) == 0) {
		CHECK(eng_right(s, pen_loader_dataset(l), b));
		CHECK_EQ(b->position, n);
		for (uint32_t i = 0; i < b->nsamples; i++) {
			times[b->ids[i]]++;
			order[n++] = b->ids[i];
		}
		pen_batch_unref(b);
	}
	CHECK_EQ(rc, PEN_END);
	CHECK_EQ(n, eng_total(s));
}

static void test_content(const struct eng_set *s, size_t sampler)
{
	bool draws = strstr(samplers[sampler], "weighted") ||
		     strstr(samplers[sampler], "balanced");
	bool sorted = strstr(samplers[sampler], "sequential");
	uint64_t order[2][64];
	unsigned times[64];
	char text[128];
	struct pen_loader *l;

	sampler_text(text, sizeof(text), sampler, s->name);
	l = eng_open(NULL, "%s %s %s batch_size=5 epochs=2 threads=3",
		     s->name, s->read, text);
	if (!CHECK(l))
		return;
	CHECK_EQ(pen_dataset_nsamples(pen_loader_dataset(l)), eng_total(s));
	CHECK_EQ(pen_dataset_nobjects(pen_loader_dataset(l)), s->nfiles);
	CHECK_EQ(pen_loader_nbatches(l), (eng_total(s) + 4) / 5);
	for (int e = 0; e < 2; e++) {
		read_epoch(s, l, times, order[e]);
		for (uint64_t i = 0; !draws && i < eng_total(s); i++)
			CHECK_EQ(times[i], 1);
		for (uint64_t i = 0; sorted && i < eng_total(s); i++)
			CHECK_EQ(order[e][i], i);
	}
	CHECK_EQ(memcmp(order[0], order[1], eng_total(s) * 8) == 0, sorted);
	pen_loader_close(l);
}

/* The log from each batch on: to[i] begins after i batches or ends. */
struct steps {
	struct pen_buf log[64];
	struct pen_state state[64];
	unsigned n;
};

static void steps_of(struct steps *st, struct pen_loader *l)
{
	struct pen_batch *b;
	int rc = 0;

	st->n = 0;
	for (unsigned ends = 0; ends < 2 && rc >= 0;) {
		struct pen_buf *to = &st->log[st->n];

		*to = (struct pen_buf){ 0 };
		pen_loader_state(l, &st->state[st->n++]);
		rc = pen_loader_next(l, &b, NULL);
		ends += rc == PEN_END;
		if (rc) {
			pen__buf_str(to, "end");
			continue;
		}
		eng_log(to, b);
		pen_batch_unref(b);
	}
	CHECK_EQ(rc, PEN_END);
}

static void steps_fini(struct steps *st)
{
	for (unsigned i = 0; i < st->n; i++)
		pen__buf_fini(&st->log[i]);
}

static void check_rest(const struct steps *want, unsigned from,
		       struct pen_loader *l)
{
	CHECK_EQ(pen_loader_restore(l, &want->state[from], NULL), 0);
	for (unsigned i = from; i < want->n; i++) {
		struct pen_buf log = { 0 };
		struct pen_state now;
		struct pen_batch *b;
		int rc;

		pen_loader_state(l, &now);
		CHECK_EQ(memcmp(&now, &want->state[i], sizeof(now)), 0);
		rc = pen_loader_next(l, &b, NULL);
		if (rc == PEN_END) {
			pen__buf_str(&log, "end");
		} else if (CHECK_EQ(rc, 0)) {
			eng_log(&log, b);
			pen_batch_unref(b);
		}
		CHECK(eng_same(&log, &want->log[i]));
		pen__buf_fini(&log);
	}
}

static void test_resume(const char *set, const char *how)
{
	const struct eng_set *s = eng_find(set);
	struct pen_loader *l, *same;
	struct pen_batch *held[2] = { NULL, NULL };
	struct steps want;

	l = eng_open(NULL, "%s %s %s epochs=2 batch_size=5 threads=2", s->name,
		     s->read, how);
	same = eng_open(NULL, "%s %s %s epochs=2 batch_size=5 threads=3",
			s->name, s->read, how);
	if (!CHECK(l && same))
		return;
	steps_of(&want, l);
	pen_loader_close(l);
	for (unsigned i = 0; i < want.n; i++) {
		l = eng_open(NULL, "%s %s %s epochs=2 batch_size=5 threads=1",
			     s->name, s->read, how);
		check_rest(&want, i, l);
		pen_loader_close(l);
		/* in mid-epoch, with batches in hand */
		CHECK_EQ(pen_loader_restore(same, &want.state[0], NULL), 0);
		for (unsigned k = 0; k < 2; k++)
			CHECK_EQ(pen_loader_next(same, &held[k], NULL), 0);
		check_rest(&want, i, same);
		for (unsigned k = 0; k < 2; k++) {
			struct pen_buf log = { 0 };

			eng_log(&log, held[k]);
			CHECK(eng_same(&log, &want.log[k]));
			pen__buf_fini(&log);
			pen_batch_unref(held[k]);
		}
	}
	pen_loader_close(same);
	steps_fini(&want);
}

/* Who came at which position of two epochs, over all ranks. */
struct places {
	uint64_t id[2][80];
	uint64_t nbatches; /* of rank 0; others must agree unless tail=keep */
};

static void places_of(struct places *p, const struct eng_set *s,
		      const char *how, unsigned world, unsigned batch,
		      const struct pen_state *from)
{
	memset(p, 0xff, sizeof(*p));
	for (unsigned r = 0; r < world; r++) {
		struct pen_loader *l = eng_open(
			NULL, "%s %s %s epochs=2 batch_size=%u rank=%u "
			      "world=%u threads=2", s->name, s->read, how,
			batch, r, world);
		struct pen_batch *b;
		uint64_t n = 0;
		int rc;

		if (!CHECK(l))
			return;
		if (from)
			CHECK_EQ(pen_loader_restore(l, from, NULL), 0);
		do {
			rc = pen_loader_next(l, &b, NULL);
			for (uint32_t i = 0; !rc && i < b->nsamples; i++) {
				uint64_t at = b->position + i;

				CHECK(at < 80 && p->id[b->epoch][at] ==
							 UINT64_MAX);
				p->id[b->epoch][at % 80] = b->ids[i];
			}
			n += !rc;
			if (!rc)
				pen_batch_unref(b);
		} while (!rc || !l->ended);
		if (!r)
			p->nbatches = n;
		if (!strstr(how, "tail=keep"))
			CHECK_EQ(n, p->nbatches);
		pen_loader_close(l);
	}
}

/* Saved after `skip` batches by this many ranks, of size 6 all together. */
static void save(struct pen_state *st, const struct eng_set *s,
		 const char *how, unsigned world, unsigned skip)
{
	struct pen_loader *l = eng_open(
		NULL, "%s %s %s epochs=2 batch_size=%u rank=%u world=%u",
		s->name, s->read, how, 6 / world, world - 1, world);
	struct pen_batch *b;

	for (; CHECK(l) && skip; skip--)
		if (pen_loader_next(l, &b, NULL) == 0)
			pen_batch_unref(b);
	pen_loader_state(l, st);
	pen_loader_close(l);
}

static void test_ranks(const char *set, const char *how)
{
	const struct eng_set *s = eng_find(set);
	struct places one, many;
	struct pen_state st;

	for (unsigned from = 0; from < 8; from++)
		for (unsigned saved = 1; saved <= 3; saved++) {
			save(&st, s, how, saved, from);
			places_of(&one, s, how, 1, 6, &st);
			for (unsigned w = 1; w <= 3; w++) {
				places_of(&many, s, how, w, 6 / w, &st);
				CHECK_EQ(memcmp(one.id, many.id,
						sizeof(one.id)), 0);
			}
			if (!strstr(how, "tail=keep"))
				continue;
			/* any other batch size gives that order, too */
			places_of(&many, s, how, 2, 4, &st);
			CHECK_EQ(memcmp(one.id, many.id, sizeof(one.id)), 0);
		}
}

static void refused(struct pen_loader *l, const struct pen_state *st)
{
	struct pen_err err = { 0 };

	CHECK_EQ(pen_loader_restore(l, st, &err), PEN_EINVAL);
	CHECK(strlen(err.msg) > 10);
}

static void test_wrong_state(void)
{
	struct pen_loader *l = eng_open(NULL, "raw %s seed=1 shuffle=true",
					eng_find("raw")->read);
	struct pen_loader *other = eng_open(NULL, "raw %s seed=2 shuffle=true",
					    eng_find("raw")->read);
	struct pen_loader *set = eng_open(NULL, "npy_first seed=1 "
						"shuffle=true "
						"format.samples=first");
	struct pen_state st;
	struct pen_err err;

	pen_loader_state(other, &st);
	refused(l, &st);
	pen_loader_state(set, &st);
	refused(l, &st);
	pen_loader_state(l, &st);
	st.version = 2;
	refused(l, &st);
	pen_loader_state(l, &st);
	st.position = st.length + 1;
	refused(l, &st);
	CHECK_EQ(eng_run(l, 1, NULL, &err), PEN_END); /* none the worse */
	pen_loader_close(l);
	pen_loader_close(other);
	pen_loader_close(set);
}

/* A state saved when all was over: restored, all is over. */
static void test_finished(void)
{
	const char *read = eng_find("raw")->read;
	struct pen_loader *l = eng_open(NULL, "raw %s epochs=2", read);
	struct pen_state st;
	struct pen_batch *b;

	CHECK_EQ(eng_run(l, 2, NULL, NULL), PEN_END);
	pen_loader_state(l, &st);
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(pen_loader_restore(l, &st, NULL), 0);
		CHECK_EQ(pen_loader_next(l, &b, NULL), PEN_END);
	}
	pen_loader_close(l);
}

int main(void)
{
	static const char *const tails[] = { "tail=keep", "tail=drop",
					     "tail=pad" };
	char how[160];

	eng_start("loader");
	make_all();
	for (size_t i = 0; i < ENG_NSETS; i++)
		for (size_t k = 0; k < NSAMPLERS; k++) {
			test_same(&eng_sets[i], k);
			test_content(&eng_sets[i], k);
		}
	for (size_t i = 0; i < 3; i++) {
		snprintf(how, sizeof(how), "%s %s", tails[i], samplers[2]);
		test_resume("raw", how);
		test_ranks("raw", how);
		test_resume("npz_shared", how);
		test_ranks("npz_shared", how);
		snprintf(how, sizeof(how), "%s %s", tails[i], samplers[1]);
		test_resume("npy_ragged", how);
		test_ranks("npz_file", how);
	}
	test_wrong_state();
	test_finished();
	eng_end();
	return test_end();
}
