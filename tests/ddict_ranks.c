/*
 * What e2e/ddict_hosts.sh runs under mpirun: `ddict_ranks all FILE SETTING...`
 * does everything with a dictionary of all ranks and checks every byte, FILE is
 * where it is saved meanwhile; `kill FILE SETTING...` ends the last rank while
 * the others ask it.
 */
#include "ddict.h"

#include <signal.h>

#include "base/mem.h"

#define N 3000 /* keys a rank */
#define BATCH 256
#define AHEAD 4
#define SHARED 64 /* keys that all write at once */
#define BIG ((size_t)20 << 20)

static int rank, size;
static struct pen_ranks *ranks;

static void meet(void)
{
	struct pen_err e = { 0 };

	if (!CHECK_EQ(pen_ranks_barrier(ranks, &e), 0))
		fprintf(stderr, "%s: %s\n", e.where, e.msg);
}

static uint64_t text_key(char *buf, size_t cap, int of, int i)
{
	return (uint64_t)snprintf(buf, cap, "key %d of rank %d", i, of);
}

static void put_all(struct pen_ddict *d)
{
	static uint8_t bytes[BATCH][16 + MOST];
	struct pen_value v[BATCH];
	struct pen_key k[BATCH];
	struct pen_err e = { 0 };
	char buf[64];

	for (uint64_t at = 0; at < N; at += BATCH) {
		uint64_t n = N - at < BATCH ? N - at : BATCH;

		for (uint64_t i = 0; i < n; i++) {
			k[i] = num((uint64_t)rank * N + at + i);
			v[i] = made(k[i].number, 1, bytes[i]);
		}
		CHECK_EQ(pen_ddict_put_many(d, k, v, n, &e), 0);
	}
	for (int i = 0; i < 100; i++) {
		k[0] = (struct pen_key){ buf,
					 text_key(buf, sizeof(buf), rank, i) };
		v[0] = made((uint64_t)i, (uint64_t)rank, bytes[0]);
		CHECK_EQ(pen_ddict_put(d, k[0], v[0], &e), 0);
	}
}

/* Batch number b of this rank: keys of all, and some that are nobody's. */
static uint64_t draw(uint64_t b, uint64_t i)
{
	const uint64_t x =
		pen__rng_at(pen__rng_key(3, (uint64_t)rank), b * BATCH + i);

	return x % (((uint64_t)size * N) + 50);
}

static void check_batch(const struct pen_got *g, uint64_t b)
{
	for (uint64_t i = 0; i < BATCH; i++) {
		const uint64_t key = draw(b, i);
		uint64_t turn;

		if (key < (uint64_t)size * N)
			CHECK(is_whole(g->values[i], key, &turn) && turn == 1);
		else
			CHECK(!g->values[i].data);
	}
}

/* Asked for ahead; every seventh is let go before it is there. */
static void get_all(struct pen_ddict *d)
{
	struct pen_got *got[AHEAD] = { 0 };
	struct pen_key k[BATCH];
	struct pen_err e = { 0 };

	for (uint64_t b = 0; b < 60 + AHEAD; b++) {
		struct pen_got **g = &got[b % AHEAD];

		if (*g && b % 7) {
			CHECK_EQ(pen_ddict_wait(*g, &e), 0);
			check_batch(*g, b - AHEAD);
		}
		pen_got_free(*g);
		*g = NULL;
		for (uint64_t i = 0; i < BATCH && b < 60; i++)
			k[i] = num(draw(b, i));
		if (b < 60)
			CHECK_EQ(pen_ddict_ask(d, k, BATCH, g, &e), 0);
	}
}

static void get_one(struct pen_ddict *d)
{
	static uint8_t got[16 + MOST], want[16 + MOST];
	struct pen_err e = { 0 };
	uint64_t len;
	char buf[64];

	for (int r = 0; r < size; r++)
		for (int i = 0; i < 100; i += 9) {
			struct pen_key k = { buf,
					     text_key(buf, sizeof(buf), r, i) };
			struct pen_value v =
				made((uint64_t)i, (uint64_t)r, want);

			len = 1;
			CHECK_EQ(pen_ddict_get(d, k, got, &len, &e),
				 PEN_ENOMEM);
			CHECK_EQ(len, v.len);
			CHECK_EQ(pen_ddict_get(d, k, got, &len, &e), 0);
			CHECK(len == v.len && !memcmp(got, want, len));
			CHECK_EQ(pen_ddict_contains(d, k, &e), 1);
		}
	len = sizeof(got);
	CHECK_EQ(pen_ddict_get(d, text("nobody's"), got, &len, &e),
		 PEN_ENOTFOUND);
	CHECK_EQ(pen_ddict_contains(d, text("nobody's"), &e), 0);
}

/* A large value from every rank to every rank. */
static void large(struct pen_ddict *d)
{
	struct pen_err e = { 0 };
	uint8_t *p = malloc(BIG);
	uint64_t wrong = 0;

	memset(p, rank + 1, BIG);
	CHECK_EQ(pen_ddict_put(d, num(1u << 30 | (unsigned)rank), value(p, BIG),
			       &e),
		 0);
	meet();
	for (int r = 0; r < size; r++) {
		struct pen_key k = num(1u << 30 | (unsigned)r);
		struct pen_got *g;

		if (!CHECK_EQ(pen_ddict_get_many(d, &k, 1, &g, &e), 0))
			continue;
		CHECK_EQ(g->values[0].len, BIG);
		for (size_t i = 0; i < g->values[0].len; i += 61)
			wrong += ((const uint8_t *)g->values[0].data)[i] !=
				 r + 1;
		pen_got_free(g);
	}
	CHECK_EQ(wrong, 0);
	free(p);
	meet();
	if (rank == 0)
		for (int r = 0; r < size; r++)
			CHECK_EQ(pen_ddict_pop(d, num(1u << 30 | (unsigned)r),
					       NULL, &e),
				 0);
}

/* All write and read the same keys: no value is ever a mixture. */
static void race(struct pen_ddict *d)
{
	static uint8_t bytes[16 + MOST];
	struct pen_key k[SHARED];
	struct pen_err e = { 0 };

	for (uint64_t i = 0; i < SHARED; i++)
		k[i] = num((uint64_t)2 << 30 | i);
	for (uint64_t turn = 0; turn < 10; turn++) {
		struct pen_got *g;

		for (uint64_t i = 0; i < SHARED; i++)
			CHECK_EQ(pen_ddict_put(d, k[i],
					       made(k[i].number,
						    turn * 64 + (uint64_t)rank,
						    bytes),
					       &e),
				 0);
		if (!CHECK_EQ(pen_ddict_get_many(d, k, SHARED, &g, &e), 0))
			return;
		for (uint64_t i = 0; i < SHARED; i++) {
			uint64_t which;

			CHECK(is_whole(g->values[i], k[i].number, &which) &&
			      which / 64 < 10 && (int)(which % 64) < size);
		}
		pen_got_free(g);
	}
	meet();
}

static int count(void *arg, struct pen_key k)
{
	(void)k;
	++*(uint64_t *)arg;
	return 0;
}

/* Every rank takes its share out, of keys that others put. */
static void pop_some(struct pen_ddict *d)
{
	const uint64_t all = (uint64_t)size * (N + 100) + SHARED;
	struct pen_err e = { 0 };
	uint64_t len = 0, seen = 0, some = 0, turn;

	CHECK_EQ(pen_ddict_len(d, &len, &e), 0);
	CHECK_EQ(len, all);
	meet();
	for (uint64_t i = 0; i < 100; i++) {
		const uint64_t key = i * (uint64_t)size + (uint64_t)rank;
		struct pen_got *g;

		if (CHECK_EQ(pen_ddict_pop(d, num(key), &g, &e), 0)) {
			CHECK(is_whole(g->values[0], key, &turn));
			pen_got_free(g);
		}
		CHECK_EQ(pen_ddict_pop(d, num(key), NULL, &e), PEN_ENOTFOUND);
	}
	meet();
	CHECK_EQ(pen_ddict_len(d, &len, &e), 0);
	CHECK_EQ(len, all - 100 * (uint64_t)size);
	CHECK_EQ(pen_ddict_keys(d, -1, count, &seen, &e), 0);
	CHECK_EQ(seen, len);
	CHECK_EQ(pen_ddict_nshards(d), size);
	for (int r = 0; r < size; r++) {
		struct pen_ddict_stats st;

		CHECK_EQ(pen_ddict_keys(d, r, count, &some, &e), 0);
		CHECK_EQ(pen_ddict_stats(d, (uint32_t)r, &st, &e), 0);
		CHECK(st.host[0] && st.nkeys && st.nkeys <= len);
	}
	CHECK_EQ(some, len);
	meet();
}

static void open_or_die(struct pen_ddict **d, const char *const *settings,
			uint32_t n)
{
	struct pen_err e = { 0 };

	if (pen_ddict_open(d, ranks, settings, n, &e)) {
		fprintf(stderr, "%d %s: %s\n", e.code, e.where, e.msg);
		pen_ranks_close(ranks);
		exit(2);
	}
}

static void save_and_restore(struct pen_ddict *d, const char *path,
			     const char *const *settings, uint32_t n)
{
	const char *more[16];
	char restore[300];
	struct pen_ddict *again;
	struct pen_err e = { 0 };
	uint64_t before = 0, after = 0;

	CHECK_EQ(pen_ddict_freeze(d, &e), 0);
	meet();
	CHECK(pen_ddict_put(d, num(1), value("x", 1), &e) < 0);
	CHECK_EQ(pen_ddict_len(d, &before, &e), 0);
	if (!CHECK_EQ(pen_ddict_persist(d, path, &e), 0))
		fprintf(stderr, "%s: %s\n", e.where, e.msg);
	snprintf(restore, sizeof(restore), "restore=%s", path);
	for (uint32_t i = 0; i < n; i++)
		more[i] = settings[i];
	more[n] = restore;
	/* beside the first, which is still open */
	open_or_die(&again, more, n + 1);
	CHECK_EQ(pen_ddict_len(again, &after, &e), 0);
	CHECK_EQ(after, before);
	get_one(again);
	pen_ddict_close(again);
	get_one(d);
}

static void all(struct pen_ddict *d, const char *path,
		const char *const *settings, uint32_t n)
{
	put_all(d);
	meet();
	get_all(d);
	get_one(d);
	meet();
	large(d);
	meet();
	race(d);
	pop_some(d);
	save_and_restore(d, path, settings, n);
}

static void end_last(struct pen_ddict *d)
{
	struct pen_err e = { 0 };
	struct pen_key k[BATCH];
	struct pen_got *g;

	put_all(d);
	meet();
	if (rank == size - 1)
		raise(SIGKILL);
	for (uint64_t b = 0;; b++) {
		for (uint64_t i = 0; i < BATCH; i++)
			k[i] = num(draw(b, i));
		if (pen_ddict_get_many(d, k, BATCH, &g, &e))
			break;
		pen_got_free(g);
	}
	fprintf(stderr, "told: %s: %s\n", e.where, e.msg);
}

int main(int argc, char **argv)
{
	const char *const *settings = (const char *const *)(argv + 3);
	const uint32_t n = argc > 3 ? (uint32_t)argc - 3 : 0;
	struct pen_ddict *d;
	struct pen_err e = { 0 };

	if (argc < 3 || n > 8 || pen_ranks_open(&ranks, &e)) {
		fprintf(stderr, "%s: %s\n", e.where, e.msg);
		return 2;
	}
	rank = pen_ranks_rank(ranks);
	size = pen_ranks_size(ranks);
	open_or_die(&d, settings, n);
	if (!rank)
		printf("%s\n", pen_ddict_transport(d));
	fflush(stdout);
	if (!strcmp(argv[1], "kill"))
		end_last(d);
	else
		all(d, argv[2], settings, n);
	pen_ddict_close(d);
	pen_ranks_close(ranks);
	return test_end();
}
