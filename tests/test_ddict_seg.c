/*
 * Internals of a shard: lent values stay valid when the epoch bits of records
 * wrap around; a writer that dies anywhere loses no memory; colliding hashes.
 */
#include "ddict.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ddict/seg.h"

static uint64_t put(struct pen_seg *s, uint64_t key, uint64_t turn)
{
	uint8_t buf[MOST + 16];
	struct pen_key k = num(key);
	struct pen_value v = made(key, turn, buf);

	return pen__shard_put(s, &k, &v, 1, NULL) != 0;
}

static bool is(struct pen_seg *s, uint64_t key, uint64_t turn)
{
	struct pen_key k = num(key);
	struct pen_value v;
	struct pen_pin pin;
	uint64_t t;
	bool ok;

	CHECK_EQ(pen__seg_pin(s, &pin, NULL), 0);
	CHECK_EQ(pen__shard_find(s, &k, NULL, 1, &v, NULL), 0);
	ok = is_whole(v, key, &t) && t == turn;
	pen__seg_unpin(s, pin);
	return ok;
}

/* Values are lent before, at and after the wrap-around. */
static void epochs_come_round(void)
{
	const uint64_t half = (uint64_t)1 << (PEN_BORN_BITS - 1);
	struct pen_key k = num(1);
	struct pen_value v[30];
	struct pen_pin pin[30];
	struct pen_seg *s;
	uint64_t wrong = 0, turn;

	for (uint64_t from = half - 20; from <= 4 * half; from += half) {
		CHECK_EQ(pen__seg_create(&s, 2 << 20, NULL), 0);
		atomic_store(&s->head->epoch, from);
		wrong += put(s, 2, 7);
		for (uint64_t i = 0; i < 30; i++) {
			wrong += put(s, 1, i * 100);
			wrong += pen__seg_pin(s, &pin[i], NULL) != 0;
			wrong += pen__shard_find(s, &k, NULL, 1, &v[i], NULL) !=
				 0;
			pen__seg_settle(s, &pin[i]);
			for (uint64_t t = 1; t < 100; t++)
				wrong += put(s, 1, i * 100 + t);
		}
		CHECK(atomic_load(&s->head->epoch) > from + 20);
		for (uint64_t i = 0; i < 30; i++) {
			wrong += !is_whole(v[i], 1, &turn) || turn != i * 100;
			pen__seg_unpin(s, pin[i]);
		}
		wrong += !is(s, 2, 7);
		CHECK_EQ(pen__seg_oldest(s, false), UINT64_MAX);
		pen__seg_close(s);
	}
	CHECK_EQ(wrong, 0);
}

/* What the head counts is what the index has. */
static void check_counts(struct pen_seg *s)
{
	const struct pen_seg_table *t = pen__table_of(s);
	uint64_t nkeys = 0, ngone = 0, values = 0, live = 0;

	for (uint64_t i = 0; i < t->nbuckets * PEN_BUCKET; i++) {
		const uint64_t slot = atomic_load(&t->slot[i]);
		const struct pen_seg_rec *r = pen__slot_rec(s, slot);

		ngone += slot == PEN_SLOT_GONE;
		nkeys += r != NULL;
		values += r ? pen__rec_value(r).len : 0;
		live += r ? pen__rec_size(r) : 0;
	}
	CHECK_EQ(atomic_load(&s->head->nkeys), nkeys);
	CHECK_EQ(atomic_load(&s->head->ngone), ngone);
	CHECK_EQ(atomic_load(&s->head->value_bytes), values);
	CHECK_EQ(atomic_load(&s->head->live_bytes),
		 live + pen__table_bytes(t->nbuckets));
}

/* Takes the lock, corrupts what a dying writer may corrupt, and dies. */
static void die_inside(struct pen_seg *s)
{
	if (pen__seg_lock(s, NULL))
		_exit(1);
	memset(s->head->bin, 0xff, sizeof(s->head->bin));
	memset(s->head->bin_map, 0xff, sizeof(s->head->bin_map));
	s->head->nretired = 1000;
	atomic_store(&s->head->nkeys, 12345);
	atomic_store(&s->head->free_bytes, UINT64_MAX / 2);
	atomic_store(&s->head->live_bytes, 3);
	_exit(0);
}

static void writer_dies(void)
{
	struct pen_shard_stats st;
	struct pen_seg *s;
	uint64_t wrong = 0;

	CHECK_EQ(pen__seg_create(&s, 2 << 20, NULL), 0);
	for (uint64_t i = 0; i < 200; i++)
		wrong += put(s, i, i);
	for (int round = 0; round < 5; round++) {
		int status = -1;
		pid_t pid = fork();

		if (!pid)
			die_inside(s);
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK_EQ(status, 0);
		for (uint64_t i = 0; i < 200; i++)
			wrong += !is(s, i, i);
		/* more than fits, again and again */
		for (uint64_t i = 0; i < 2000; i++)
			wrong += put(s, 200 + i % 100, i);
	}
	CHECK_EQ(wrong, 0);
	pen__shard_stats(s, &st);
	CHECK_EQ(st.nkeys, 300);
	check_counts(s);
	CHECK_EQ(st.nprocesses, 1);
	pen__seg_close(s);
}

/* A small table, filled, emptied and refilled: deletion marks do not
 * accumulate. */
static void come_and_go(void)
{
	struct pen_seg *s;
	struct pen_value v;
	uint64_t wrong = 0, buckets;

	CHECK_EQ(pen__seg_create(&s, 4 << 20, NULL), 0);
	for (uint64_t i = 0; i < 400; i++)
		wrong += put(s, i, 0);
	buckets = pen__table_of(s)->nbuckets;
	for (uint64_t i = 400; i < 30000; i++) {
		wrong += put(s, i, 0);
		wrong += pen__shard_pop(s, num(i - 400), &v, NULL) != 0;
	}
	CHECK_EQ(atomic_load(&s->head->nkeys), 400);
	CHECK(pen__table_of(s)->nbuckets <= 2 * buckets);
	check_counts(s);
	/* one mark, taken back by the next that comes to its place */
	for (uint64_t i = 29600; i < 29700; i++) {
		wrong += put(s, i, 1); /* replaced: no mark */
		wrong += pen__shard_pop(s, num(i), &v, NULL) != 0;
		check_counts(s);
		wrong += put(s, i, 0);
		check_counts(s);
	}
	for (uint64_t i = 30000 - 400; i < 30000; i++)
		wrong += !is(s, i, 0);
	CHECK_EQ(wrong, 0);
	pen__seg_close(s);
}

#define LARGE ((uint64_t)5 << 19)

/* Dies while copying its input, with its block noted and no lock held. */
static void die_copying(struct pen_seg *s)
{
	const struct rlimit none = { 0, 0 };
	void *p = mmap(NULL, LARGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		       0);
	struct pen_key k = num(1);
	struct pen_value v = value(p, LARGE);

	setrlimit(RLIMIT_CORE, &none);
	signal(SIGSEGV, SIG_DFL);
	_exit(pen__shard_put(s, &k, &v, 1, NULL) ? 1 : 2);
}

/* The block is reclaimed even if nothing else was freed since. */
static void copier_dies(void)
{
	struct pen_key k = num(2);
	uint8_t *buf = calloc(LARGE, 1);
	struct pen_value v = value(buf, LARGE), none;
	struct pen_seg *s;

	CHECK_EQ(pen__seg_create(&s, 4 << 20, NULL), 0);
	for (int round = 0; round < 8; round++) {
		int status = 0;
		pid_t pid = fork();

		if (!pid)
			die_copying(s);
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
		if (round % 4 < 3)
			continue;
		CHECK_EQ(pen__shard_put(s, &k, &v, 1, NULL), 0);
		CHECK_EQ(pen__shard_pop(s, k, &none, NULL), 0);
	}
	free(buf);
	pen__seg_close(s);
}

/* The index must grow for a value that takes the remaining space. */
static void index_beside_large(void)
{
	struct pen_key k = num(1000000);
	struct pen_seg_head *h;
	struct pen_value v;
	struct pen_seg *s;
	uint64_t n = 0, len, wrong = 0;
	uint8_t *buf;

	CHECK_EQ(pen__seg_create(&s, 4 << 20, NULL), 0);
	h = s->head;
	for (; n < 20000 ||
	       pen__table_buckets(n + 1) <= pen__table_of(s)->nbuckets;
	     n++) {
		struct pen_key key = num(n);

		wrong += pen__shard_put(s, &key, &(struct pen_value){ 0 }, 1,
					NULL) != 0;
	}
	len = (h->size - atomic_load(&h->top) - 65536) & ~(uint64_t)15;
	buf = malloc(len);
	memset(buf, 0xa5, len);
	v = value(buf, len);
	if (!pen__shard_put(s, &k, &v, 1, NULL)) {
		v = (struct pen_value){ 0 };
		wrong += pen__shard_find(s, &k, NULL, 1, &v, NULL) != 0;
		wrong += v.len != len || memcmp(v.data, buf, len) != 0;
	}
	for (uint64_t i = 0; i < n; i++) {
		k = num(i);
		wrong += pen__shard_find(s, &k, NULL, 1, &v, NULL) != 0;
		wrong += !v.data || v.len;
	}
	CHECK_EQ(wrong, 0);
	free(buf);
	pen__seg_close(s);
}

static void too_many_keys(void)
{
	struct pen_seg *s;
	bool full = false;

	CHECK_EQ(pen__seg_create(&s, 1 << 20, NULL), 0);
	for (uint64_t n = (uint64_t)1 << 63; n > 1 << 20; n /= 2)
		CHECK_EQ(pen__table_reserve(s, n, &full), PEN_ENOMEM);
	CHECK(full);
	CHECK_EQ(put(s, 1, 1), 0);
	CHECK(is(s, 1, 1));
	pen__seg_close(s);
}

int main(void)
{
	epochs_come_round();
	writer_dies();
	come_and_go();
	copier_dies();
	index_beside_large();
	too_many_keys();
	return test_end();
}
