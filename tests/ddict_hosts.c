/*
 * Run by e2e/ddict_hosts.sh under mpirun, with settings as arguments: ranks
 * that request many values ahead, send each other large ones, and write and
 * read the same keys concurrently. `kill` before the settings ends the last
 * rank while the others read from it.
 */
#include "ddict.h"

#include <signal.h>

#include "base/mem.h"

#define N 3000 /* keys per rank */
#define BATCH 256
#define AHEAD 4
#define SHARED 64 /* keys that all ranks write */
#define BIG ((size_t)20 << 20)

static int rank, size;
static struct pen_ranks *ranks;

static void meet(void)
{
	struct pen_err e = { 0 };

	if (!CHECK_EQ(pen_ranks_barrier(ranks, &e), 0))
		fprintf(stderr, "%s: %s\n", e.where, e.msg);
}

static void put_all(struct pen_ddict *d)
{
	static uint8_t bytes[BATCH][16 + MOST];
	struct pen_value v[BATCH];
	struct pen_key k[BATCH];
	struct pen_err e = { 0 };

	for (uint64_t at = 0; at < N; at += BATCH) {
		uint64_t n = N - at < BATCH ? N - at : BATCH;

		for (uint64_t i = 0; i < n; i++) {
			k[i] = num((uint64_t)rank * N + at + i);
			v[i] = made(k[i].number, 1, bytes[i]);
		}
		CHECK_EQ(pen_ddict_put_many(d, k, v, n, &e), 0);
	}
}

/* Batch number b of this rank: keys of all ranks, and some that do not
 * exist. */
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

/* Requested ahead; every seventh is freed before it arrives. */
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

#define BULK ((size_t)64 << 10)
#define NBULK 20

/* The key of a large value: a number, or bytes. */
static struct pen_key bulk_key(char *text, int r, int i)
{
	const int n = snprintf(text, 32, "rank %d, value %d", r, i);

	return i % 2 ? (struct pen_key){ text, (uint64_t)n }
		     : num((uint64_t)3 << 30 | (unsigned)(r * NBULK + i));
}

static void put_bulk(struct pen_ddict *d)
{
	struct pen_err e = { 0 };
	uint8_t *p = malloc(BULK);
	char text[32];

	for (int i = 0; i < NBULK; i++) {
		memset(p, rank * NBULK + i + 1, BULK);
		CHECK_EQ(pen_ddict_put(d, bulk_key(text, rank, i),
				       value(p, BULK - (size_t)i), &e),
			 0);
	}
	free(p);
}

/* Those of a rank, and one that does not exist. */
static void get_bulk(struct pen_ddict *d, int r)
{
	char text[NBULK + 1][32];
	struct pen_key k[NBULK + 1];
	struct pen_err e = { 0 };
	struct pen_got *g;

	for (int i = 0; i <= NBULK; i++)
		k[i] = bulk_key(text[i], i < NBULK ? r : 1000, i);
	if (!CHECK_EQ(pen_ddict_get_many(d, k, NBULK + 1, &g, &e), 0)) {
		fprintf(stderr, "%s: %s\n", e.where, e.msg);
		return;
	}
	CHECK(!g->values[NBULK].data);
	for (int i = 0; i < NBULK; i++) {
		const uint8_t *p = g->values[i].data;
		const uint8_t is = (uint8_t)(r * NBULK + i + 1);
		uint64_t wrong = 0;

		if (!CHECK(p) || !CHECK_EQ(g->values[i].len, BULK - (size_t)i))
			continue;
		for (size_t at = 0; at < g->values[i].len; at++)
			wrong += p[at] != is;
		CHECK_EQ(wrong, 0);
	}
	pen_got_free(g);
}

/* Reads that may be one-sided: the first ones show that it is frozen. */
static void freeze(struct pen_ddict *d)
{
	struct pen_err e = { 0 };

	put_bulk(d);
	meet();
	if (!rank)
		CHECK_EQ(pen_ddict_freeze(d, &e), 0);
	meet();
	get_all(d);
	for (int r = 0; r < size; r++)
		get_bulk(d, r);
	meet();
}

static uint64_t served(struct pen_ddict *d)
{
	struct pen_shard_stats s = { 0 };
	struct pen_err e = { 0 };

	CHECK_EQ(pen_ddict_stats(d, (uint32_t)rank, &s, sizeof(s), &e), 0);
	return s.nserved;
}

/* direct: no rank serves a request for a value. */
static void get_frozen(struct pen_ddict *d, bool direct)
{
	const uint64_t before = served(d);

	meet();
	for (int turn = 0; turn < 2; turn++) {
		get_all(d);
		for (int r = 0; r < size; r++)
			get_bulk(d, r);
	}
	meet();
	if (direct)
		CHECK_EQ(served(d), before);
}

/* The last rank is killed while others read: they are told which one. */
static void end_last(struct pen_ddict *d)
{
	struct pen_key k[NBULK];
	struct pen_err e = { 0 };
	struct pen_got *g;
	int rc = 0;

	for (uint64_t i = 0; i < NBULK; i++)
		k[i] = num((uint64_t)(size - 1) * N + i);
	while (!rc) {
		rc = pen_ddict_get_many(d, k, NBULK, &g, &e);
		if (!rc)
			pen_got_free(g);
		if (rank == size - 1)
			raise(SIGKILL);
	}
	fprintf(stderr, "told %s: %s\n", e.where, e.msg);
}

static bool given(int argc, char **argv, const char *setting)
{
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], setting))
			return true;
	return false;
}

int main(int argc, char **argv)
{
	const bool kill = given(argc, argv, "kill");
	const char *const *settings = (const char *const *)(argv + 1 + kill);
	struct pen_ddict *d = NULL;
	struct pen_err e = { 0 };

	if (pen_ranks_open(&ranks, &e) ||
	    pen_ddict_open(&d, ranks, settings, (uint32_t)(argc - 1 - kill),
			   &e)) {
		fprintf(stderr, "%s: %s\n", e.where, e.msg);
		pen_ranks_close(ranks);
		return 2;
	}
	rank = pen_ranks_rank(ranks);
	size = pen_ranks_size(ranks);
	if (!rank)
		printf("transport %s\n", pen_ddict_transport(d));
	put_all(d);
	meet();
	get_all(d);
	meet();
	large(d);
	meet();
	race(d);
	freeze(d);
	get_frozen(d, given(argc, argv, "direct=always"));
	if (kill)
		end_last(d);
	pen_ddict_close(d);
	pen_ranks_close(ranks);
	return test_end();
}
