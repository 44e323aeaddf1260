/*
 * Copies rows with several threads. The work is cut into a few pieces; the
 * caller takes pieces too, so it waits only for pieces that other threads have
 * started, never for a thread to wake up. Each thread starts at a different
 * place and continues from there: in repeated calls it writes the same part of
 * the target, which is still in its cache. Idle threads poll briefly before
 * they sleep, since calls come in close succession.
 *
 * Random rows are bound by memory latency: the next ones are prefetched while
 * one is copied.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/ring.h"
#include "base/team.h"
#include "penstock.h"

#define PIECE_BYTES 32768  /* each starts with rows that were not prefetched */
#define ALONE_BYTES 131072 /* less is not worth sharing */
#define PIECES 64
#define LOOK_NS 20000 /* how long idle threads poll for work */
#define AHEAD 4	      /* rows prefetched before they are copied */

struct job {
	const struct pen_rows *array;
	uint32_t narrays, pieces;
	const int64_t *ids;
	uint64_t n;
	_Atomic uint64_t todo; /* one bit per piece not taken */
	atomic_uint called;    /* threads that may still look at this job */
	_Atomic int64_t bad;   /* -1, or the index of an invalid id */
};

struct pen_copier {
	struct pen_ring *ring; /* of jobs: one entry per thread called */
	struct pen_team *team;
	uint32_t nthreads; /* including the caller */
	pthread_mutex_t busy;
};

static const uint8_t *row_at(const struct pen_rows *a, const int64_t *ids,
			     uint64_t i)
{
	int64_t id = ids ? ids[i] : (int64_t)i;

	if (id < 0)
		id += (int64_t)a->nrows;
	if (id < 0 || (uint64_t)id >= a->nrows)
		return NULL;
	return (const uint8_t *)a->from + (uint64_t)id * a->bytes;
}

static void copy_rows(struct job *j, const struct pen_rows *a, uint64_t first,
		      uint64_t last)
{
	uint8_t *to = (uint8_t *)a->to + first * a->bytes;

	for (uint64_t i = first; i < last && i < first + AHEAD; i++)
		pen__ask_for_copy(row_at(a, j->ids, i), a->bytes);
	for (uint64_t i = first; i < last; i++, to += a->bytes) {
		const uint8_t *from = row_at(a, j->ids, i);

		if (i + AHEAD < last)
			pen__ask_for_copy(row_at(a, j->ids, i + AHEAD),
					  a->bytes);
		if (!from) {
			atomic_store(&j->bad, (int64_t)i);
			return;
		}
		memcpy(to, from, a->bytes);
	}
}

static void do_piece(struct job *j, uint64_t first, uint64_t last)
{
	for (uint32_t k = 0; k < j->narrays; k++) {
		const struct pen_rows *a = &j->array[k];

		if (j->ids)
			copy_rows(j, a, first, last);
		else
			memcpy((uint8_t *)a->to + first * a->bytes,
			       (const uint8_t *)a->from + first * a->bytes,
			       (last - first) * a->bytes);
	}
}

/* Takes the next free piece at or after `from`, else the first: its number, or
 * -1. */
static int take_piece(struct job *j, uint32_t from)
{
	uint64_t todo = atomic_load(&j->todo), bit;

	do {
		uint64_t after = todo & ~UINT64_C(0) << from;

		if (!todo)
			return -1;
		bit = after ? after & -after : todo & -todo;
	} while (!atomic_compare_exchange_weak(&j->todo, &todo, todo & ~bit));
	return __builtin_ctzll(bit);
}

/* The part of thread i of n in a job. */
static void do_share(struct job *j, uint32_t i, uint32_t n)
{
	uint32_t from = (uint32_t)((uint64_t)j->pieces * i / n);
	int k;

	while ((k = take_piece(j, from)) >= 0) {
		do_piece(j, j->n * (uint32_t)k / j->pieces,
			 j->n * ((uint32_t)k + 1) / j->pieces);
		from = (uint32_t)k;
	}
}

static void run(void *arg, unsigned i)
{
	struct pen_copier *c = arg;
	struct job *j;

	do {
		uint64_t until = pen__now_ns() + LOOK_NS;

		while ((j = pen__ring_pop(c->ring, NULL, false)) == NULL &&
		       pen__now_ns() < until)
			;
		if (!j)
			j = pen__ring_pop(c->ring, NULL, true);
		if (!j)
			break;
		do_share(j, i + 1, c->nthreads);
		/* the caller owns the job again when all have left it */
		atomic_fetch_sub(&j->called, 1);
	} while (true);
}

PEN_API int pen_copier_new(struct pen_copier **out, uint32_t threads,
			   struct pen_err *err)
{
	struct pen_copier *c = pen__calloc(1, sizeof(*c));
	int rc = 0;

	if (!c)
		return pen__fail_nomem(err, "copier", sizeof(*c));
	pthread_mutex_init(&c->busy, NULL);
	c->nthreads = threads ? threads : pen__cpus();
	if (pen__ring_new(&c->ring, PIECES, -1))
		rc = pen__fail_nomem(err, "copier", sizeof(*c));
	if (!rc && c->nthreads > 1)
		rc = pen__team_start(&c->team, c->nthreads - 1, "pen-copy", run,
				     c, err);
	if (rc) {
		pen_copier_free(c);
		return rc;
	}
	*out = c;
	return 0;
}

PEN_API void pen_copier_free(struct pen_copier *c)
{
	if (!c)
		return;
	if (c->ring)
		pen__ring_close(c->ring);
	pen__team_join(c->team);
	pen__ring_free(c->ring);
	pthread_mutex_destroy(&c->busy);
	pen__free(c);
}

/* The number of pieces for n rows of this size. */
static uint32_t count_pieces(const struct pen_copier *c, uint64_t n,
			     uint64_t bytes)
{
	uint64_t all = n * bytes, most = 16u * c->nthreads, k;

	if (c->nthreads < 2 || all < ALONE_BYTES)
		return 1;
	k = all / PIECE_BYTES;
	if (most > PIECES)
		most = PIECES;
	k = k > most ? most : k;
	return (uint32_t)(k > n ? n : k);
}

static void share_out(struct pen_copier *c, struct job *j)
{
	void *call[PIECES];
	uint32_t n = c->nthreads - 1 < PIECES ? c->nthreads - 1 : PIECES;

	if (n > j->pieces - 1)
		n = j->pieces - 1;
	atomic_store(&j->todo, ~UINT64_C(0) >> (64 - j->pieces));
	atomic_store(&j->called, n);
	for (uint32_t i = 0; i < n; i++)
		call[i] = j;
	pen__ring_push_many(c->ring, 0, call, n);
	do_share(j, 0, c->nthreads);
	/* calls not yet answered are no longer needed */
	while (pen__ring_pop(c->ring, NULL, false))
		atomic_fetch_sub(&j->called, 1);
	while (atomic_load(&j->called))
		sched_yield();
}

PEN_API int pen_copier_copy(struct pen_copier *c, const struct pen_rows *arrays,
			    uint32_t narrays, const int64_t *ids, uint64_t n,
			    struct pen_err *err)
{
	struct job j = {
		.array = arrays, .narrays = narrays, .ids = ids, .n = n
	};
	uint64_t bytes = 0;

	atomic_init(&j.bad, -1);
	for (uint32_t i = 0; i < narrays; i++) {
		bytes += arrays[i].bytes;
		if (!ids && n > arrays[i].nrows)
			return pen__fail(err, P_BAD_CALL, "rows",
					 "an array has fewer rows than are to "
					 "be copied");
	}
	j.pieces = count_pieces(c, n, bytes);
	if (j.pieces > 1 && !pthread_mutex_trylock(&c->busy)) {
		share_out(c, &j);
		pthread_mutex_unlock(&c->busy);
	} else {
		do_piece(&j, 0, n);
	}
	if (atomic_load(&j.bad) < 0)
		return 0;
	return pen__fail(err, P_BAD_VALUE, "index", "row %lld does not exist",
			 (long long)ids[atomic_load(&j.bad)]);
}
