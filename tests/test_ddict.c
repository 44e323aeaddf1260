/*
 * The dictionary in one process: storing, lending, removing, errors; and with
 * several threads.
 */
#include "ddict.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/team.h"

/* ThreadSanitizer takes several times the memory. */
#ifdef __SANITIZE_THREAD__
#define LARGE_MIB 16
#define HUGE_NEEDS UINT64_MAX
#else
#define LARGE_MIB 64
#define HUGE_NEEDS ((uint64_t)3 << 30)
#endif

static void basics(void)
{
	struct pen_ddict *d = open_sized("memory=4MiB");
	const char nul[] = "a\0b", other[] = "a\0c";
	struct pen_got *g;
	struct pen_err err = { 0 };
	char buf[8];
	uint64_t len = sizeof(buf);

	CHECK_EQ(length(d), 0);
	CHECK_EQ(pen_ddict_put(d, num(7), value("seven", 5), NULL), 0);
	CHECK_EQ(pen_ddict_put(d, text("7"), value("text", 4), NULL), 0);
	CHECK_EQ(pen_ddict_put(d, (struct pen_key){ nul, 3 }, value("n", 1),
			       NULL),
		 0);
	CHECK_EQ(pen_ddict_put(d, (struct pen_key){ "", 0 }, value("none", 4),
			       NULL),
		 0);
	CHECK_EQ(pen_ddict_put(d, num(0), value(NULL, 0), NULL), 0);
	CHECK_EQ(length(d), 5);
	CHECK(has(d, num(7), "seven", 5));
	CHECK(has(d, text("7"), "text", 4));
	CHECK(has(d, (struct pen_key){ nul, 3 }, "n", 1));
	CHECK(has(d, (struct pen_key){ "", 0 }, "none", 4));
	CHECK(has(d, num(0), NULL, 0));
	CHECK_EQ(pen_ddict_contains(d, (struct pen_key){ other, 3 }, NULL), 0);
	CHECK_EQ(pen_ddict_contains(d, num(0), NULL), 1);
	/* a number and the same eight bytes are different keys */
	CHECK_EQ(pen_ddict_contains(
			 d, (struct pen_key){ "\7\0\0\0\0\0\0\0", 8 }, NULL),
		 0);

	CHECK_EQ(pen_ddict_put(d, num(7), value("new", 3), NULL), 0);
	CHECK(has(d, num(7), "new", 3));
	CHECK_EQ(length(d), 5);
	CHECK_EQ(pen_ddict_get(d, num(7), buf, &len, NULL), 0);
	CHECK(len == 3 && !memcmp(buf, "new", 3));
	len = 2;
	CHECK_EQ(pen_ddict_get(d, num(7), buf, &len, &err), PEN_ENOMEM);
	CHECK_EQ(len, 3);
	CHECK_EQ(pen_ddict_get(d, num(8), buf, &len, &err), PEN_ENOTFOUND);

	CHECK_EQ(pen_ddict_pop(d, num(7), &g, NULL), 0);
	CHECK(g->n == 1 && g->values[0].len == 3 &&
	      !memcmp(g->values[0].data, "new", 3));
	pen_got_free(g);
	CHECK_EQ(pen_ddict_pop(d, num(7), NULL, NULL), PEN_ENOTFOUND);
	CHECK_EQ(pen_ddict_pop(d, text("7"), NULL, NULL), 0);
	CHECK_EQ(length(d), 3);
	CHECK_EQ(pen_ddict_clear(d, NULL), 0);
	CHECK_EQ(length(d), 0);
	CHECK_EQ(pen_ddict_contains(d, num(0), NULL), 0);
	CHECK_EQ(pen_ddict_put(d, num(1), value("one", 3), NULL), 0);
	CHECK(has(d, num(1), "one", 3));
	CHECK(strstr(pen_ddict_transport(d), "shared memory") != NULL);
	pen_ddict_close(d);
	pen_ddict_close(NULL);
	pen_got_free(NULL);
}

static int count_key(void *arg, struct pen_key k)
{
	uint64_t *sum = arg;

	*sum += k.bytes ? 1000000 : k.number;
	return 0;
}

static int stop_at_once(void *arg, struct pen_key k)
{
	(void)k;
	++*(int *)arg;
	return 42;
}

/* Many keys per call, in any order, some absent; and the memory they take. */
static void many(void)
{
	enum { N = 20000, KB = 1024 };
	struct pen_ddict *d = open_sized("memory=64MiB");
	struct pen_key *k = pen__calloc(N, sizeof(*k));
	struct pen_value *v = pen__calloc(N, sizeof(*v));
	uint8_t *bytes = pen__alloc(N, KB);
	struct pen_shard_stats s;
	uint64_t sum = 0, wrong = 0;
	struct pen_perm perm;
	struct pen_got *g;
	int calls = 0;

	for (uint64_t i = 0; i < N; i++) {
		memset(bytes + i * KB, (int)(i & 255), KB);
		memcpy(bytes + i * KB, &i, sizeof(i));
		k[i] = num(i);
		v[i] = value(bytes + i * KB, KB);
	}
	CHECK_EQ(pen_ddict_put_many(d, k, v, N, NULL), 0);
	CHECK_EQ(length(d), N);
	s = stats_of(d);
	CHECK_EQ(s.value_bytes, N * KB);
	CHECK((double)s.used_bytes <= 1.05 * N * KB);
	CHECK_EQ(s.nputs, N);
	CHECK_EQ(s.free_bytes, s.total_bytes - s.used_bytes);
	CHECK(s.host[0] && s.nprocesses == 1);

	pen__perm_init(&perm, N, 1, 2);
	for (uint64_t i = 0; i < N; i++)
		k[i] = num(pen__perm_at(&perm, i) * 2);
	CHECK_EQ(pen_ddict_get_many(d, k, N, &g, NULL), 0);
	CHECK_EQ(g->n, N);
	for (uint64_t i = 0; i < N; i++) {
		const struct pen_value x = g->values[i];

		if (k[i].number >= N)
			wrong += x.data != NULL;
		else
			wrong += x.len != KB ||
				 memcmp(x.data, bytes + k[i].number * KB, KB);
	}
	CHECK_EQ(wrong, 0);
	pen_got_free(g);
	CHECK_EQ(pen_ddict_get_many(d, k, 0, &g, NULL), 0);
	CHECK_EQ(g->n, 0);
	pen_got_free(g);
	CHECK_EQ(pen_ddict_keys(d, -1, count_key, &sum, NULL), 0);
	CHECK_EQ(sum, (uint64_t)N * (N - 1) / 2);
	CHECK_EQ(pen_ddict_keys(d, 0, stop_at_once, &calls, NULL), 42);
	CHECK_EQ(calls, 1);
	CHECK_EQ(pen_ddict_keys(d, 1, stop_at_once, &calls, NULL), PEN_EINVAL);
	pen_ddict_close(d);
	pen__free(k);
	pen__free(v);
	pen__free(bytes);
}

/* The index grows key by key, within the same bounds. */
static void one_by_one(void)
{
	enum { N = 10000 };
	struct pen_ddict *d = open_sized("memory=64MiB");
	uint8_t buf[1024] = { 0 };
	char key[32];
	uint64_t wrong = 0;

	for (uint64_t i = 0; i < N; i++) {
		memcpy(buf, &i, sizeof(i));
		snprintf(key, sizeof(key), "sample/%05d", (int)i);
		wrong += pen_ddict_put(d, text(key), value(buf, 1024), NULL) !=
			 0;
	}
	for (uint64_t i = 0; i < N; i++) {
		memcpy(buf, &i, sizeof(i));
		snprintf(key, sizeof(key), "sample/%05d", (int)i);
		wrong += !has(d, text(key), buf, 1024);
	}
	CHECK_EQ(wrong, 0);
	CHECK((double)stats_of(d).used_bytes < 1.08 * N * 1024);
	pen_ddict_close(d);
}

/* A lent value stays valid, whatever becomes of the key; then it is reused. */
static void lent(void)
{
	struct pen_ddict *d = open_sized("memory=8MiB");
	struct pen_key k[64];
	struct pen_got *g, *second;
	uint8_t buf[MOST + 16];
	uint64_t turn, wrong = 0;

	for (uint64_t i = 0; i < 64; i++) {
		k[i] = num(i);
		CHECK_EQ(pen_ddict_put(d, k[i], made(i, 0, buf), NULL), 0);
	}
	CHECK_EQ(pen_ddict_get_many(d, k, 64, &g, NULL), 0);
	for (uint64_t t = 1; t < 20; t++)
		for (uint64_t i = 0; i < 64; i++)
			wrong += pen_ddict_put(d, k[i], made(i, t, buf),
					       NULL) != 0;
	CHECK_EQ(pen_ddict_get_many(d, k, 64, &second, NULL), 0);
	CHECK_EQ(pen_ddict_pop(d, k[3], NULL, NULL), 0);
	CHECK_EQ(pen_ddict_clear(d, NULL), 0);
	for (uint64_t t = 20; t < 30; t++)
		for (uint64_t i = 0; i < 64; i++)
			wrong += pen_ddict_put(d, k[i], made(i, t, buf),
					       NULL) != 0;
	for (uint64_t i = 0; i < 64; i++) {
		wrong += !is_whole(g->values[i], i, &turn) || turn != 0;
		wrong += !is_whole(second->values[i], i, &turn) || turn != 19;
	}
	CHECK_EQ(wrong, 0);
	pen_got_free(g);
	pen_got_free(second);
	/* far more than fits: dead values are reused */
	for (uint64_t t = 30; t < 300; t++)
		for (uint64_t i = 0; i < 64; i++)
			wrong += pen_ddict_put(d, k[i], made(i, t, buf),
					       NULL) != 0;
	CHECK_EQ(wrong, 0);
	pen_ddict_close(d);
}

/* A value that is lent for long does not block the reuse of later ones. */
static void lent_long(void)
{
	struct pen_ddict *d = open_sized("memory=4MiB");
	struct pen_key k = num(1);
	uint8_t buf[MOST + 16];
	uint64_t turn, wrong = 0;
	struct pen_got *g[40];

	for (uint64_t t = 0; t < 20000; t++) {
		wrong += pen_ddict_put(d, k, made(1, t, buf), NULL) != 0;
		if (t % 500 == 0)
			wrong += pen_ddict_get_many(d, &k, 1, &g[t / 500],
						    NULL) != 0;
	}
	for (uint64_t i = 0; i < 40; i++) {
		wrong += !is_whole(g[i]->values[0], 1, &turn) ||
			 turn != i * 500;
		pen_got_free(g[i]);
	}
	CHECK_EQ(wrong, 0);
	pen_ddict_close(d);
}

/* Compared with a list of the expected content, with little memory. */
static void random_use(void)
{
	enum { KEYS = 300, OPS = 40000 };
	struct pen_ddict *d = open_sized("memory=1536KiB");
	static uint64_t turn_of[KEYS]; /* 0: absent */
	struct pen_rng rng = pen__rng(5, 6);
	uint8_t buf[MOST + 16];
	uint64_t wrong = 0, there = 0, full = 0, turn;

	for (uint64_t t = 1; t <= OPS; t++) {
		const uint64_t key = pen__rng_below(&rng, KEYS);
		const uint64_t what = pen__rng_below(&rng, 8);
		struct pen_got *g;

		if (what < 4) {
			int rc = pen_ddict_put(d, num(key), made(key, t, buf),
					       NULL);

			full += rc == PEN_ENOMEM;
			wrong += rc && rc != PEN_ENOMEM;
			if (!rc) {
				there += !turn_of[key];
				turn_of[key] = t;
			}
		} else if (what < 7) {
			int rc = pen_ddict_pop(d, num(key), NULL, NULL);

			wrong += rc != (turn_of[key] ? 0 : PEN_ENOTFOUND);
			there -= turn_of[key] != 0;
			turn_of[key] = 0;
		} else if (!pen_ddict_get_many(d,
					       &(struct pen_key){ NULL, key },
					       1, &g, NULL)) {
			wrong += turn_of[key] ? !is_whole(g->values[0], key,
							  &turn) ||
							turn != turn_of[key]
					      : g->values[0].data != NULL;
			pen_got_free(g);
		}
	}
	CHECK_EQ(wrong, 0);
	CHECK_EQ(length(d), there);
	CHECK_EQ(full, 0);
	pen_ddict_close(d);
}

static void budget(void)
{
	struct pen_ddict *d = open_sized("memory=2MiB");
	uint8_t *big = pen__calloc(4 << 20, 1);
	struct pen_err err = { 0 };
	struct pen_key k[2] = { num(1), num(2) };
	struct pen_value v[2];
	uint64_t n = 0;
	int rc;

	CHECK_EQ(pen_ddict_put(d, num(0), value(big, 4 << 20), &err),
		 PEN_ENOMEM);
	CHECK(strstr(err.msg, "memory=") != NULL);
	while (!(rc = pen_ddict_put(d, num(n), value(big, 1000), &err)))
		n++;
	CHECK_EQ(rc, PEN_ENOMEM);
	CHECK(n > 1500 && length(d) == n);
	CHECK(has(d, num(n - 1), big, 1000));
	CHECK_EQ(pen_ddict_contains(d, num(n), NULL), 0);
	/* another of the same size does not fit, even in its place */
	CHECK_EQ(pen_ddict_pop(d, num(0), NULL, NULL), 0);
	CHECK_EQ(pen_ddict_put(d, num(n), value(big, 1000), &err), 0);
	/* freed neighbours are merged */
	for (uint64_t i = 1; i < 1000; i++)
		CHECK_EQ(pen_ddict_pop(d, num(i), NULL, NULL), 0);
	CHECK_EQ(pen_ddict_put(d, num(1), value(big, 150000), &err), 0);
	CHECK_EQ(pen_ddict_clear(d, NULL), 0);
	CHECK_EQ(pen_ddict_put(d, num(1), value(big, 1 << 20), &err), 0);
	v[0] = value(big, 100);
	v[1] = value(big, 2 << 20);
	CHECK_EQ(pen_ddict_put_many(d, k, v, 2, &err), PEN_ENOMEM);
	CHECK(has(d, num(1), big, 100));
	pen_ddict_close(d);
	pen__free(big);
}

/* A dictionary without room for another index can still be cleared. */
static void clear_full(void)
{
	const char *const set[] = { "memory=4MiB", "keys=100000" };
	struct pen_ddict *d = open_with(set, 2);
	uint8_t *big = pen__calloc(1 << 20, 1);
	struct pen_err err = { 0 };

	for (int round = 0; round < 3; round++) {
		for (uint64_t size = 8192; size; size /= 2)
			for (uint64_t n = 0;
			     !pen_ddict_put(d, num(size << 32 | n),
					    value(big, size - 1), NULL);
			     n++)
				;
		CHECK(round || stats_of(d).free_bytes < 256);
		CHECK_EQ(pen_ddict_clear(d, &err), 0);
		CHECK_EQ(length(d), 0);
		CHECK_EQ(pen_ddict_contains(d, num(1), NULL), 0);
		CHECK_EQ(pen_ddict_put(d, num(1), value(big, 1 << 20), &err),
			 0);
		CHECK(has(d, num(1), big, 1 << 20));
		CHECK_EQ(pen_ddict_clear(d, &err), 0);
	}
	pen_ddict_close(d);
	pen__free(big);
}

static void frozen(void)
{
	struct pen_ddict *d = open_sized("memory=4MiB");
	struct pen_err err = { 0 };
	struct pen_got *g;

	CHECK_EQ(pen_ddict_put(d, num(1), value("x", 1), NULL), 0);
	CHECK_EQ(pen_ddict_freeze(d, NULL), 0);
	CHECK_EQ(pen_ddict_freeze(d, NULL), 0);
	CHECK_EQ(pen_ddict_put(d, num(2), value("x", 1), &err), PEN_EINVAL);
	CHECK(strstr(err.msg, "frozen") != NULL);
	CHECK_EQ(pen_ddict_pop(d, num(1), &g, &err), PEN_EINVAL);
	CHECK_EQ(pen_ddict_clear(d, &err), PEN_EINVAL);
	CHECK(has(d, num(1), "x", 1));
	pen_ddict_close(d);
}

static void wrong_settings(void)
{
	static const char *const bad[] = {
		"memory=1k",
		"memory=-1",
		"name=a/b",
		"name=",
		"spread=blocks",
		"spread=what",
		"width=2",
		"nothing",
		"colour=red",
		"width=-1",
		"restore=/proc/none/x",
	};
	struct pen_err err;
	struct pen_ddict *d;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		err = (struct pen_err){ 0 };
		if (!strcmp(bad[i], "name="))
			continue;
		if (!CHECK(pen_ddict_open(&d, NULL, &bad[i], 1, &err) < 0))
			fprintf(stderr, "%s was taken\n", bad[i]);
		CHECK(!d && err.msg[0]);
	}
}

/* A value larger than all steps and limits of the arena. */
static void large(void)
{
	const uint64_t n = (uint64_t)LARGE_MIB << 20;
	struct pen_ddict *d = open_sized("memory=600MiB");
	uint8_t *big = pen__calloc(n, 1);
	uint64_t len = n;

	if (!big)
		return;
	big[0] = 1;
	big[n - 1] = 2;
	CHECK_EQ(pen_ddict_put(d, text("big"), value(big, n), NULL), 0);
	big[0] = big[n - 1] = 0;
	CHECK_EQ(pen_ddict_get(d, text("big"), big, &len, NULL), 0);
	CHECK(len == n && big[0] == 1 && big[n - 1] == 2);
	CHECK_EQ(pen_ddict_put(d, text("big"), value(big, n / 8), NULL), 0);
	CHECK_EQ(pen_ddict_put(d, text("big"), value(big, n / 4), NULL), 0);
	CHECK_EQ(length(d), 1);
	pen_ddict_close(d);
	pen__free(big);
}

/* 1 GiB, if the machine has that much memory: pages come from the kernel and
 * are returned immediately. The source is never written, so it takes no
 * memory. */
static void huge(void)
{
	const uint64_t n = (uint64_t)1 << 30, step = n / 16 - 1;
	struct pen_ddict *d;
	struct pen_key k = text("huge");
	struct pen_got *g;
	uint64_t len = 8, wrong = 0;
	uint8_t *p;

	if (HUGE_NEEDS > pen__memory_available()) {
		printf("left out: a value of 1 GiB: it takes memory that is "
		       "not there now\n");
		return;
	}
	p = mmap(NULL, n, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (!CHECK(p != MAP_FAILED))
		return;
	for (uint64_t i = 0; i < n; i += step)
		p[i] = (uint8_t)(1 + i / step);
	p[n - 1] = 77;
	d = open_sized("memory=1040MiB");
	CHECK_EQ(pen_ddict_put(d, k, value(p, n), NULL), 0);
	CHECK_EQ(pen_ddict_get(d, k, &wrong, &len, NULL), PEN_ENOMEM);
	CHECK_EQ(len, n);
	if (CHECK_EQ(pen_ddict_get_many(d, &k, 1, &g, NULL), 0)) {
		const uint8_t *v = g->values[0].data;

		CHECK_EQ(g->values[0].len, n);
		for (uint64_t i = 0; i < n; i += step)
			wrong += v[i] != 1 + i / step || v[i + 1] != 0;
		CHECK(v[n - 1] == 77 && v[n - 2] == 0);
		pen_got_free(g);
	}
	CHECK_EQ(wrong, 0);
	CHECK_EQ(stats_of(d).value_bytes, n);
	CHECK_EQ(pen_ddict_put(d, num(1), value(p, 64 << 20), NULL),
		 PEN_ENOMEM);
	CHECK_EQ(pen_ddict_pop(d, k, NULL, NULL), 0);
	CHECK_EQ(pen_ddict_put(d, num(1), value(p, 64 << 20), NULL), 0);
	pen_ddict_close(d);
	munmap(p, n);
}

struct threads {
	struct pen_ddict *d;
	atomic_ulong wrong;
};

static void work(void *arg, unsigned me)
{
	struct threads *t = arg;
	struct pen_rng rng = pen__rng(9, me);
	uint8_t buf[MOST + 16];
	struct pen_key k[16];
	uint64_t turn;

	for (uint64_t i = 0; i < 1500; i++) {
		const uint64_t key = pen__rng_below(&rng, 100);
		struct pen_got *g;

		if (i % 3 == me % 3) {
			if (pen_ddict_put(t->d, num(key),
					  made(key, i * 8 + me, buf), NULL))
				t->wrong++;
			continue;
		}
		for (int j = 0; j < 16; j++)
			k[j] = num(pen__rng_below(&rng, 100));
		if (i % 50 == 0)
			(void)!pen_ddict_pop(t->d, k[0], NULL, NULL);
		if (pen_ddict_get_many(t->d, k, 16, &g, NULL)) {
			t->wrong++;
			continue;
		}
		for (int j = 0; j < 16; j++)
			if (g->values[j].data &&
			    !is_whole(g->values[j], k[j].number, &turn))
				t->wrong++;
		pen_got_free(g);
	}
}

static void threads(void)
{
	struct threads t = { .d = open_sized("memory=2MiB") };
	struct pen_team *team;

	CHECK_EQ(pen__team_start(&team, 4, "test", work, &t, NULL), 0);
	pen__team_join(team);
	CHECK_EQ(atomic_load(&t.wrong), 0);
	pen_ddict_close(t.d);
}

static void no_memory(void)
{
	const char *const set[] = { "memory=4MiB", "name=test-no-memory" };
	struct pen_err err;

	for (uint64_t nth = 1; nth < 60; nth++) {
		struct pen_ddict *d = NULL;
		struct pen_got *g = NULL;
		struct pen_key k = num(1);
		int rc;

		err = (struct pen_err){ 0 };
		pen__mem_fail_nth(nth, false);
		rc = pen_ddict_open(&d, NULL, set, 2, &err);
		if (!rc)
			rc = pen_ddict_put(d, k, value("x", 1), &err);
		if (!rc)
			rc = pen_ddict_get_many(d, &k, 1, &g, &err);
		if (!rc)
			rc = pen_ddict_persist(d, "ddict.nomem", &err);
		pen__mem_fail_nth(0, false);
		pen_got_free(g);
		pen_ddict_close(d);
		if (!CHECK(!rc || (rc < 0 && err.msg[0])))
			fprintf(stderr, "%d: %s: %s\n", (int)nth, err.where,
				err.msg);
		if (!rc)
			break;
	}
	unlink("ddict.nomem");
}

int main(void)
{
	basics();
	many();
	one_by_one();
	lent();
	lent_long();
	random_use();
	budget();
	clear_full();
	frozen();
	wrong_settings();
	large();
	huge();
	threads();
	no_memory();
	return test_end();
}
