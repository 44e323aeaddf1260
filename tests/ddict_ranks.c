/*
 * Run by e2e/ddict.sh under mpirun: `ddict_ranks all SETTING...` uses two
 * dictionaries in every way; `save PATH` and `load PATH` are for different
 * numbers of ranks; `fork` closes it in forked children; `kill put|get|barrier
 * SETTING...` kills the last rank during that operation, and the others must
 * not wait for it forever.
 */
#include "ddict.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"

#define PER_RANK 700

static struct pen_ranks *ranks;
static uint64_t me, all;

static struct pen_ddict *open_ranks(char **set, int n, const char *more)
{
	const char *s[16] = { more };
	struct pen_err err = { 0 };
	struct pen_ddict *d = NULL;

	for (int i = 0; i < n && i < 15; i++)
		s[i + 1] = set[i];
	if (pen_ddict_open(&d, ranks, s, (uint32_t)n + 1, &err)) {
		fprintf(stderr, "rank %d: %s: %s\n", (int)me, err.where,
			err.msg);
		exit(2);
	}
	return d;
}

static void meet(void)
{
	CHECK_EQ(pen_ranks_barrier(ranks, NULL), 0);
}

/* This rank's share of the keys, in one call. */
static void fill(struct pen_ddict *d, uint64_t turn)
{
	static uint8_t bytes[PER_RANK][MOST + 16];
	static struct pen_key k[PER_RANK];
	static struct pen_value v[PER_RANK];

	for (uint64_t i = 0; i < PER_RANK; i++) {
		const uint64_t key = i * all + me;

		k[i] = num(key);
		v[i] = made(key, turn, bytes[i]);
	}
	CHECK_EQ(pen_ddict_put_many(d, k, v, PER_RANK, NULL), 0);
}

/* All keys, in a different order on each rank, with several requests
 * pending. */
static void compare(struct pen_ddict *d, uint64_t turn)
{
	const uint64_t n = PER_RANK * all;
	struct pen_key *k = pen__alloc(n + 1, sizeof(*k));
	struct pen_got *g[4];
	struct pen_perm perm;
	uint64_t wrong = 0, t;

	pen__perm_init(&perm, n, 3, me);
	for (uint64_t i = 0; i < n; i++)
		k[i] = num(pen__perm_at(&perm, i));
	k[n] = num(n + 5); /* absent */
	for (uint64_t i = 0; i < 4; i++)
		CHECK_EQ(pen_ddict_ask(d, k + n * i / 4,
				       n * (i + 1) / 4 - n * i / 4 + (i == 3),
				       &g[i], NULL),
			 0);
	for (uint64_t i = 0; i < 4; i++) {
		const struct pen_key *of = k + n * i / 4;

		if (!CHECK_EQ(pen_ddict_wait(g[i], NULL), 0))
			continue;
		for (uint64_t j = 0; j < g[i]->n; j++)
			if (of[j].number == n + 5)
				wrong += g[i]->values[j].data != NULL;
			else
				wrong += !is_whole(g[i]->values[j],
						   of[j].number, &t) ||
					 t != turn;
	}
	CHECK_EQ(wrong, 0);
	for (uint64_t i = 0; i < 4; i++)
		pen_got_free(g[i]);
	CHECK_EQ(pen_ddict_ask(d, k, n, &g[0], NULL), 0);
	pen_got_free(g[0]); /* not waited for */
	pen__free(k);
}

static int count(void *arg, struct pen_key k)
{
	(void)k;
	++*(uint64_t *)arg;
	return 0;
}

static void odd_ones(struct pen_ddict *d)
{
	const uint64_t big = 3 << 20;
	uint8_t *p = pen__calloc(big, 1);
	char name[32];
	struct pen_got *g;
	uint64_t len = big;

	snprintf(name, sizeof(name), "rank %d", (int)me);
	CHECK_EQ(pen_ddict_put(d, text(name), value(NULL, 0), NULL), 0);
	CHECK_EQ(pen_ddict_put(d, (struct pen_key){ "a\0b", 3 },
			       value("nul", 3), NULL),
		 0);
	meet();
	for (uint64_t i = 0; i < all; i++) {
		snprintf(name, sizeof(name), "rank %d", (int)i);
		CHECK(has(d, text(name), NULL, 0));
		CHECK_EQ(pen_ddict_contains(d, text(name), NULL), 1);
	}
	CHECK(has(d, (struct pen_key){ "a\0b", 3 }, "nul", 3));
	CHECK_EQ(pen_ddict_contains(d, text("a"), NULL), 0);
	meet();
	snprintf(name, sizeof(name), "rank %d", (int)me);
	p[0] = (uint8_t)me;
	p[big - 1] = 7;
	CHECK_EQ(pen_ddict_put(d, text(name), value(p, big), NULL), 0);
	p[0] = p[big - 1] = 0;
	CHECK_EQ(pen_ddict_get(d, text(name), p, &len, NULL), 0);
	CHECK(len == big && p[0] == me && p[big - 1] == 7);
	meet();
	CHECK_EQ(pen_ddict_pop(d, text(name), &g, NULL), 0);
	CHECK(g->values[0].len == big);
	pen_got_free(g);
	CHECK_EQ(pen_ddict_pop(d, text(name), NULL, NULL), PEN_ENOTFOUND);
	CHECK_EQ(pen_ddict_contains(d, text(name), NULL), 0);
	pen__free(p);
	meet();
}

/* More than fits, wherever the owner is. */
static void overfill(struct pen_ddict *d)
{
	const uint64_t big = 64 << 20;
	uint8_t *p = pen__calloc(big, 1);
	struct pen_err err = { 0 };

	for (uint64_t i = 0; i < 2 * all; i++) {
		CHECK_EQ(
			pen_ddict_put(d, num(1000000 + i), value(p, big), &err),
			PEN_ENOMEM);
		CHECK(strstr(err.msg, "memory=") != NULL);
	}
	pen__free(p);
}

static void check_shards(struct pen_ddict *d, uint64_t width)
{
	uint64_t keys = 0, seen = 0;

	CHECK_EQ(pen_ddict_nshards(d), all);
	for (uint32_t i = 0; i < all; i++) {
		struct pen_shard_stats s;

		CHECK_EQ(pen_ddict_stats(d, i, &s, sizeof(s), NULL), 0);
		CHECK_EQ(s.shard, i);
		CHECK(s.host[0] && s.total_bytes >= s.used_bytes);
		keys += s.nkeys;
	}
	CHECK_EQ(pen_ddict_keys(d, -1, count, &seen, NULL), 0);
	CHECK_EQ(seen, PER_RANK * all);
	CHECK_EQ(length(d), PER_RANK * all);
	CHECK_EQ(keys, PER_RANK * all * (all / width));
}

static uint64_t width_of(char **set, int n)
{
	for (int i = 0; i < n; i++)
		if (!strncmp(set[i], "width=", 6))
			return strtoull(set[i] + 6, NULL, 10);
	return all;
}

static int use_all(char **set, int n)
{
	struct pen_ddict *d = open_ranks(set, n, "memory=32MiB");
	struct pen_ddict *e = open_ranks(set, n, "memory=16MiB");
	struct pen_err err = { 0 };

	if (!me)
		printf("transport %s\n", pen_ddict_transport(d));
	fill(d, 1);
	fill(e, 2);
	meet();
	compare(d, 1);
	compare(e, 2);
	check_shards(d, width_of(set, n));
	meet();
	fill(d, 3);
	meet();
	compare(d, 3);
	compare(e, 2);
	meet();
	odd_ones(e);
	CHECK_EQ(pen_ddict_clear(e, NULL), 0);
	meet();
	CHECK_EQ(length(e), 0);
	meet();
	overfill(e);
	fill(e, 4);
	meet();
	if (!me)
		CHECK_EQ(pen_ddict_freeze(e, NULL), 0);
	meet();
	for (uint64_t i = 0; i < all; i++)
		CHECK_EQ(pen_ddict_put(e, num(i), value("x", 1), &err),
			 PEN_EINVAL);
	compare(e, 4);
	pen_ddict_close(e);
	compare(d, 3);
	pen_ddict_close(d);
	return 0;
}

/* The number of ranks at save time is in the content. */
static int save(const char *path)
{
	struct pen_ddict *d = open_ranks(NULL, 0, "memory=32MiB");

	fill(d, 5);
	meet();
	CHECK_EQ(pen_ddict_persist(d, path, NULL), 0);
	pen_ddict_close(d);
	return 0;
}

static int load(char **set, int n, const char *path)
{
	char restore[4200];
	struct pen_ddict *d;
	uint64_t now = all;

	snprintf(restore, sizeof(restore), "restore=%.4000s", path);
	d = open_ranks(set, n, restore);
	all = length(d) / PER_RANK; /* ranks that saved it */
	if (!me)
		printf("loaded %d on %d: %s\n", (int)all, (int)now,
		       pen_ddict_transport(d));
	compare(d, 5);
	pen_ddict_close(d);
	return 0;
}

static int kill_one(const char *when, char **set, int n)
{
	struct pen_ddict *d = open_ranks(set, n, "memory=32MiB");
	struct pen_err err = { 0 };
	int rc = 0;

	fill(d, 1);
	meet();
	for (uint64_t i = 2; i < 100000 && !rc; i++) {
		uint8_t buf[MOST + 16];
		struct pen_key k = num(i % (PER_RANK * all));
		struct pen_got *g;

		if (me == all - 1 && i == 300)
			raise(SIGKILL);
		if (!strcmp(when, "barrier"))
			rc = pen_ranks_barrier(ranks, &err);
		else if (!strcmp(when, "put"))
			rc = pen_ddict_put(d, k, made(k.number, i, buf), &err);
		else if (!(rc = pen_ddict_get_many(d, &k, 1, &g, &err)))
			pen_got_free(g);
	}
	fprintf(stderr, "told: %s: %s\n", err.where, err.msg);
	/* closing would wait until the launcher ends this process */
	return 3;
}

/* A forked child closes everything without affecting its parent. */
static int child_closes(void)
{
	struct pen_ddict *d = open_ranks(NULL, 0, "memory=4MiB");
	struct pen_err err = { 0 };
	int status = -1;
	pid_t pid = fork();

	if (!pid) {
		int rc = pen_ranks_barrier(ranks, &err);

		pen_ddict_close(d);
		pen_ranks_close(ranks);
		_exit(rc == PEN_EINVAL ? 0 : 1);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	meet();
	pen_ddict_close(d);
	meet();
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "all";
	const char *arg = argc > 2 ? argv[2] : "";
	struct pen_err err = { 0 };
	int rc = 2;

	if (pen_ranks_open(&ranks, &err)) {
		fprintf(stderr, "%s: %s\n", err.where, err.msg);
		return 2;
	}
	me = (uint64_t)pen_ranks_rank(ranks);
	all = (uint64_t)pen_ranks_size(ranks);
	if (!strcmp(what, "all"))
		rc = use_all(argv + 2, argc - 2);
	else if (!strcmp(what, "fork"))
		rc = child_closes();
	else if (!strcmp(what, "save"))
		rc = save(arg);
	else if (!strcmp(what, "load"))
		rc = load(argv + 3, argc - 3, arg);
	else if (!strcmp(what, "kill"))
		_exit(kill_one(arg, argv + 3, argc - 3));
	pen_ranks_close(ranks);
	return rc ? rc : test_end();
}
