/*
 * Saved states: a loader continues where another one was, at every batch of an
 * epoch, in the middle of one and while batches are held, with other numbers of
 * ranks, and not at all with a state of something else.
 */
#include "engine.h"

/* The log from each batch on: to[i] starts after i batches or ends. */
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
		/* in mid-epoch, while batches are held */
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

/* Which sample came at which position of two epochs, over all ranks. */
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
		struct pen_loader *l =
			eng_open(NULL,
				 "%s %s %s epochs=2 batch_size=%u rank=%u "
				 "world=%u threads=2",
				 s->name, s->read, how, batch, r, world);
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

				CHECK(at < 80 &&
				      p->id[b->epoch][at] == UINT64_MAX);
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

/* Saved after `skip` batches by this many ranks, with 6 samples per step. */
static void save(struct pen_state *st, const struct eng_set *s, const char *how,
		 unsigned world, unsigned skip)
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

	for (unsigned from = 0; from < 8; from += TEST_EVERY(3))
		for (unsigned saved = 1; saved <= 3; saved++) {
			save(&st, s, how, saved, from);
			places_of(&one, s, how, 1, 6, &st);
			for (unsigned w = 1; w <= 3; w++) {
				places_of(&many, s, how, w, 6 / w, &st);
				CHECK_EQ(
					memcmp(one.id, many.id, sizeof(one.id)),
					0);
			}
			if (!strstr(how, "tail=keep"))
				continue;
			/* any other batch size gives that order too */
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
	CHECK_EQ(eng_run(l, 1, NULL, &err), PEN_END); /* not affected */
	pen_loader_close(l);
	pen_loader_close(other);
	pen_loader_close(set);
}

/* Other samples have the same numbers if the paths come in another order. */
static void test_order_of_paths(void)
{
	static const char how[] = "shuffle=true seed=1 format.samples=first";
	struct pen_loader *l =
		eng_open(NULL, "npy_first/c1 npy_first/c0 %s", how);
	struct pen_loader *same =
		eng_open(NULL, "npy_first/c1 npy_first/c0 %s", how);
	struct pen_loader *other =
		eng_open(NULL, "npy_first/c0 npy_first/c1 %s", how);
	struct pen_state st;

	pen_loader_state(other, &st);
	refused(l, &st);
	pen_loader_state(same, &st);
	CHECK_EQ(pen_loader_restore(l, &st, NULL), 0);
	pen_loader_close(l);
	pen_loader_close(same);
	pen_loader_close(other);
}

/* A state saved after the end: restored, it is at the end. */
static void test_finished(void)
{
	const char *read = eng_find("raw")->read;
	struct pen_loader *l = eng_open(NULL, "raw %s epochs=2", read);
	struct pen_state st;
	struct pen_batch *b;

	CHECK_EQ(eng_run(l, 2, NULL, NULL), PEN_END);
	pen_loader_state(l, &st);
	CHECK_EQ(st.epoch, 2);
	CHECK_EQ(st.position, 0);
	/* however often the end is asked for, it stays where it is */
	for (int i = 0; i < 3; i++) {
		struct pen_state later;

		CHECK_EQ(pen_loader_next(l, &b, NULL), PEN_END);
		pen_loader_state(l, &later);
		CHECK(later.epoch == st.epoch && later.position == st.position);
	}
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(pen_loader_restore(l, &st, NULL), 0);
		CHECK_EQ(pen_loader_next(l, &b, NULL), PEN_END);
	}
	pen_loader_close(l);
}

/* Out of memory while restoring: an error, and it can be retried. */
static void test_restore_nomem(const char *set)
{
	const struct eng_set *s = eng_find(set);
	struct pen_loader *l = eng_open(NULL, "%s %s batch_size=3 threads=2",
					s->name, s->read);
	struct pen_state st;
	struct pen_batch *b;
	struct pen_err err = { 0 };

	pen_loader_state(l, &st);
	for (uint64_t n = 1; n < 12; n++) {
		int rc;

		pen__mem_fail_nth(n, true);
		rc = pen_loader_restore(l, &st, &err);
		pen__mem_fail_nth(0, false);
		if (!rc)
			continue;
		/* the error again, until it is restored */
		CHECK_EQ(pen_loader_next(l, &b, NULL), err.code);
		CHECK_EQ(pen_loader_restore(l, &st, &err), 0);
		CHECK_EQ(pen_loader_next(l, &b, NULL), 0);
		pen_batch_unref(b);
	}
	pen_loader_close(l);
}

int main(void)
{
	static const char *const tails[] = { "keep", "drop", "pad" };
	char how[160];

	eng_start("resume");
	for (size_t i = 0; i < ENG_NSETS; i++)
		eng_make(&eng_sets[i]);
	for (size_t i = 0; i < 3; i++) {
		snprintf(how, sizeof(how),
			 "tail=%s sampler=block sampler.chunk=4 "
			 "sampler.chunks=2",
			 tails[i]);
		test_resume("raw", how);
		test_ranks("raw", how);
		test_resume("npz_shared", how);
		test_ranks("npz_shared", how);
		snprintf(how, sizeof(how), "tail=%s sampler=shuffle", tails[i]);
		test_resume("npy_ragged", how);
		test_ranks("npz_file", how);
	}
	test_wrong_state();
	test_order_of_paths();
	test_finished();
	test_restore_nomem("raw");
	test_restore_nomem("npz_shared");
	eng_end();
	return test_end();
}
