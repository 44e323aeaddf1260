/*
 * Operations on one shard, by any process that has mapped it. Small values are
 * copied with the writers' lock held, 256 KiB at a time. A large one gets a
 * block, is copied without the lock, and is then published.
 */
#include <string.h>
#include <sys/uio.h>
#include <time.h>

#include "base/mem.h"
#include "base/show.h"
#include "ddict/seg.h"

#define RUN_BYTES ((uint64_t)256 << 10)
#define LARGE ((uint64_t)128 << 10)
#define GROUP 64
#define BULK 256
#define BULK_MIN 4
/* One second in total. */
#define NAP_NS 500000
#define NAPS 2000

static const uint8_t zeros[16];

static int fail_frozen(struct pen_err *err)
{
	return pen__fail(err, P_FROZEN, "dictionary",
			 "frozen: it can no longer be changed");
}

static int fail_full(const struct pen_seg *s, uint64_t need, bool full,
		     struct pen_err *err)
{
	const struct pen_seg_head *h = s->head;
	const uint64_t live = atomic_load(&h->live_bytes);
	const uint64_t used =
		atomic_load(&h->top) - h->start - atomic_load(&h->free_bytes);

	if (!full)
		return pen__fail(err, P_DICTIONARY_FULL, "dictionary",
				 "the machine is out of memory: cannot "
				 "allocate %s, though the budget is %s",
				 pen__show_bytes((double)need).s,
				 pen__show_bytes((double)h->size).s);
	return pen__fail(
		err, P_DICTIONARY_FULL, "dictionary",
		"full: no room for %s; of the budget of %s, %s are used by %s "
		"and %s by removed values that are still being read; raise "
		"memory=",
		pen__show_bytes((double)need).s,
		pen__show_bytes((double)h->size).s,
		pen__show_bytes((double)(h->start + live)).s,
		pen__show_counted(atomic_load(&h->nkeys), "key").s,
		pen__show_bytes((double)(used > live ? used - live : 0)).s);
}

static void write_rec(struct pen_seg *s, uint64_t off, struct pen_key k,
		      struct pen_value v)
{
	struct pen_seg_rec *r = (void *)(s->base + off);
	uint8_t *to = (void *)(r + 1);

	r->key = k.number;
	r->len = pen__rec_word(s, k, v.len);
	/* padding is sent and saved as well, so it must be zero */
	if (k.bytes && k.number) {
		memset(to + pen__round16(k.number) - 16, 0, 16);
		memcpy(to, k.bytes, k.number);
		to += pen__round16(k.number);
	}
	if (v.len) {
		memset(to + pen__round16(v.len) - 16, 0, 16);
		memcpy(to, v.data, v.len);
	}
}

static void retire(struct pen_seg *s, uint64_t off)
{
	const struct pen_seg_rec *r = (const void *)(s->base + off);

	pen__arena_retire(s, off, pen__rec_size(r), pen__rec_born(s, r));
}

/* Lock held. Makes the record at off that of its key. */
static void publish(struct pen_seg *s, uint64_t off, struct pen_key k,
		    uint64_t len)
{
	const uint64_t old = pen__table_set(s, off, k, len);

	if (old)
		retire(s, old);
}

/* Lock held. */
static int put_one(struct pen_seg *s, struct pen_key k, struct pen_value v,
		   struct pen_err *err)
{
	const uint64_t size = pen__rec_size_of(k, v.len);
	bool full;
	uint64_t off;

	if (pen__table_reserve(s, 1, &full))
		return fail_full(s, size, full, err);
	off = pen__arena_alloc(s, size, &full);
	if (!off)
		return fail_full(s, size, full, err);
	write_rec(s, off, k, v);
	publish(s, off, k, v.len);
	return 0;
}

/* Lock held. Notes a block that is being filled; -1: no free note. */
static int note_copy(struct pen_seg *s, uint64_t off, uint64_t size)
{
	struct pen_seg_proc *p = &s->head->proc[s->self->proc];

	for (int i = 0; i < PEN_SEG_COPIES; i++) {
		if (atomic_load(&p->copy[i].size))
			continue;
		atomic_store(&p->copy[i].off, off);
		atomic_store(&p->copy[i].size, size);
		return i;
	}
	return -1;
}

/* Lock held at the start and the end, not while copying. */
static int put_large(struct pen_seg *s, struct pen_key k, struct pen_value v,
		     struct pen_err *err)
{
	struct pen_seg_proc *p = &s->head->proc[s->self->proc];
	const uint64_t size = pen__rec_size_of(k, v.len);
	struct pen_seg_rec *r;
	bool full;
	uint64_t off;
	int rc = 0, note;

	/* first: a larger index may rebuild the arena, which frees blocks that
	 * are neither in the index nor noted */
	if (pen__table_reserve(s, 1, &full))
		return fail_full(s, size, full, err);
	off = pen__arena_alloc(s, size, &full);
	if (!off)
		return fail_full(s, size, full, err);
	note = note_copy(s, off, size);
	if (note >= 0)
		pen__seg_unlock(s);
	write_rec(s, off, k, v);
	if (note >= 0)
		rc = pen__seg_lock(s, err);
	if (rc)
		return rc;
	if (pen__seg_frozen(s))
		rc = fail_frozen(err);
	else if (note >= 0 && pen__table_reserve(s, 1, &full))
		rc = fail_full(s, size, full, err);
	/* noted until here, since other writers may have filled the index */
	if (note >= 0)
		atomic_store(&p->copy[note].size, 0);
	if (rc) {
		pen__arena_free(s, off, size);
		return rc;
	}
	/* many epochs may have passed while it was copied */
	r = (void *)(s->base + off);
	r->len = pen__rec_word(s, k, v.len);
	publish(s, off, k, v.len);
	return 0;
}

static int check(struct pen_key k, struct pen_value v, struct pen_err *err)
{
	if (k.bytes && k.number > PEN_SEG_MAX_KEY)
		return pen__fail(
			err, P_TOO_LONG, "key",
			"too long: %s bytes; the limit is 1,073,741,824",
			pen__show_grouped(k.number).s);
	if (v.len > PEN_SEG_MAX_VALUE)
		return pen__fail(err, P_TOO_LONG, "value",
				 "too long: %s; the limit is %s",
				 pen__show_bytes((double)v.len).s,
				 pen__show_bytes((double)PEN_SEG_MAX_VALUE).s);
	return 0;
}

/*
 * Stores many small values at the end of the arena with one system call: the
 * kernel then need not clear the pages or map them here, which is a third of
 * the cost of a put. Returns how many of n; 0: they do not fit, and are put one
 * by one.
 */
static uint64_t put_bulk(struct pen_seg *s, const struct pen_key *k,
			 const struct pen_value *v, uint64_t n)
{
	struct pen_seg_rec rec[BULK];
	struct iovec iov[3 * BULK];
	uint64_t m, size = 0, off;
	uint32_t niov = 0;

	for (m = 0; m < n && m < BULK && size < RUN_BYTES; m++) {
		if (k[m].bytes || v[m].len >= LARGE)
			break;
		rec[m].key = k[m].number;
		rec[m].len = pen__rec_word(s, k[m], v[m].len);
		iov[niov++] = (struct iovec){ &rec[m], sizeof(rec[m]) };
		if (v[m].len)
			iov[niov++] =
				(struct iovec){ (void *)(uintptr_t)v[m].data,
						v[m].len };
		if (v[m].len % 16)
			iov[niov++] = (struct iovec){ (void *)(uintptr_t)zeros,
						      16 - v[m].len % 16 };
		size += pen__rec_size_of(k[m], v[m].len);
	}
	off = pen__arena_peek(s, size);
	if (m < BULK_MIN || !off || atomic_load(&s->head->free_bytes) > size ||
	    pwritev(s->fd, iov, (int)niov, (off_t)off) != (ssize_t)size)
		return 0;
	pen__arena_extend(s, size);
	for (uint64_t i = 0; i < m; i++) {
		publish(s, off, k[i], v[i].len);
		off += pen__rec_size_of(k[i], v[i].len);
	}
	return m;
}

/*
 * True if a put that found no room may succeed soon: readers still hold what
 * was replaced, and may have been interrupted.
 */
static bool is_held_up(const struct pen_seg *s, uint64_t size)
{
	const struct pen_seg_head *h = s->head;
	const uint64_t room = h->size - h->start;

	return (h->nretired || h->lost_epoch) && size <= room &&
	       atomic_load(&h->live_bytes) <= room - size;
}

/* Locks, and puts some of n keys, from put->done on. */
static int put_run(struct pen_seg *s, const struct pen_key *k,
		   const struct pen_value *v, uint64_t n, struct pen_put *put,
		   struct pen_err *err)
{
	uint64_t i = put->done, bytes = 0;
	bool full = false;
	int rc;

	rc = pen__seg_lock(s, err);
	if (rc)
		return rc;
	if (pen__seg_frozen(s))
		rc = fail_frozen(err);
	/* if there is no room for all, reserve one at a time */
	else if (n - i > 1)
		full = pen__table_reserve(s, n - i, &full) != 0;
	if (!rc && !full)
		i += put_bulk(s, k + i, v + i, n - i);
	if (i > put->done)
		bytes = RUN_BYTES;
	for (; i < n && !rc && bytes < RUN_BYTES; i += !rc) {
		rc = check(k[i], v[i], err);
		if (!rc && v[i].len >= LARGE)
			rc = put_large(s, k[i], v[i], err);
		else if (!rc)
			rc = put_one(s, k[i], v[i], err);
		bytes += v[i].len;
	}
	put->done = i;
	put->held = rc == PEN_ENOMEM &&
		    is_held_up(s, pen__rec_size_of(k[i], v[i].len));
	pen__seg_unlock(s);
	return rc;
}

int pen__shard_put_some(struct pen_seg *s, const struct pen_key *k,
			const struct pen_value *v, uint64_t n,
			struct pen_put *put, struct pen_err *err)
{
	int rc = 0;

	*put = (struct pen_put){ 0 };
	if (!s->head)
		return fail_frozen(err);
	if (!atomic_load(&s->self->pid))
		rc = pen__seg_join(s, err);
	while (put->done < n && !rc)
		rc = put_run(s, k, v, n, put, err);
	pen__shard_count(s, put->done, 0, 0);
	return rc;
}

bool pen__put_nap(struct pen_put *put, uint64_t *naps)
{
	const struct timespec nap = { .tv_nsec = NAP_NS };

	if (!put->held || (*naps)++ == NAPS)
		return false;
	nanosleep(&nap, NULL);
	return true;
}

int pen__shard_put(struct pen_seg *s, const struct pen_key *k,
		   const struct pen_value *v, uint64_t n, struct pen_err *err)
{
	uint64_t naps = 0;
	struct pen_put put;
	int rc;

	do {
		rc = pen__shard_put_some(s, k, v, n, &put, err);
		k += put.done;
		v += put.done;
		n -= put.done;
	} while (rc == PEN_ENOMEM && pen__put_nap(&put, &naps));
	return rc;
}

struct find {
	struct pen_seg *s;
	const struct pen_key *k;
	const uint32_t *at;
	uint64_t n;
	struct pen_value *out;
};

static int find_all(void *arg)
{
	const struct find *f = arg;
	const struct pen_key *k = f->k;
	const uint32_t *at = f->at;
	const uint64_t n = f->n;
	const struct pen_seg_rec *rec[GROUP];
	struct pen_key key[GROUP];
	uint64_t hash[GROUP];

	for (uint64_t i = 0; i < n; i += GROUP) {
		const uint32_t m = n - i < GROUP ? (uint32_t)(n - i) : GROUP;

		for (uint32_t j = 0; j < m; j++) {
			key[j] = k[at ? at[i + j] : i + j];
			hash[j] = pen__key_hash(key[j]);
		}
		pen__table_find_many(f->s, key, hash, m, rec);
		for (uint32_t j = 0; j < m; j++) {
			struct pen_value *v = f->out + (at ? at[i + j] : i + j);

			*v = (struct pen_value){ 0 };
			if (rec[j])
				*v = pen__rec_value(rec[j]);
		}
	}
	return 0;
}

int pen__shard_find(struct pen_seg *s, const struct pen_key *k,
		    const uint32_t *at, uint64_t n, struct pen_value *out,
		    struct pen_err *err)
{
	struct find f = { s, k, at, n, out };
	int rc = s->head ? find_all(&f)
			 : pen__image_touch(s, find_all, &f, err);

	pen__shard_count(s, 0, n, 0);
	return rc;
}

int pen__value_absent(struct pen_err *err)
{
	return pen__fail(err, P_NOT_FOUND, "dictionary", "no such key");
}

int pen__value_copy(struct pen_value v, void *buf, uint64_t *len,
		    struct pen_err *err)
{
	const uint64_t room = *len;

	if (!v.data)
		return pen__value_absent(err);
	*len = v.len;
	if (v.len > room)
		return pen__fail(
			err, P_NO_MEMORY, "dictionary",
			"the value has %s bytes, but the buffer holds %s",
			pen__show_grouped(v.len).s, pen__show_grouped(room).s);
	if (v.len)
		memcpy(buf, v.data, v.len);
	return 0;
}

struct get {
	struct find find;
	struct pen_value v;
	void *buf;
	uint64_t *len;
	struct pen_err *err;
};

static int find_and_copy(void *arg)
{
	struct get *g = arg;

	(void)find_all(&g->find);
	return pen__value_copy(g->v, g->buf, g->len, g->err);
}

int pen__shard_get(struct pen_seg *s, struct pen_key k, void *buf,
		   uint64_t *len, struct pen_err *err)
{
	struct get g = { .buf = buf, .len = len, .err = err };
	struct pen_pin pin;
	int rc = pen__seg_pin(s, &pin, err);

	if (rc)
		return rc;
	g.find = (struct find){ s, &k, NULL, 1, &g.v };
	rc = s->head ? find_and_copy(&g)
		     : pen__image_touch(s, find_and_copy, &g, err);
	pen__shard_count(s, 0, 1, 0);
	pen__seg_unpin(s, pin);
	return rc;
}

static int begin(struct pen_seg *s, struct pen_err *err)
{
	int rc;

	if (!s->head)
		return fail_frozen(err);
	rc = atomic_load(&s->self->pid) ? 0 : pen__seg_join(s, err);
	if (!rc)
		rc = pen__seg_lock(s, err);
	if (!rc && pen__seg_frozen(s)) {
		pen__seg_unlock(s);
		rc = fail_frozen(err);
	}
	return rc;
}

int pen__shard_pop(struct pen_seg *s, struct pen_key k, struct pen_value *out,
		   struct pen_err *err)
{
	const struct pen_seg_rec *r;
	uint64_t off;
	int rc = begin(s, err);

	if (rc)
		return rc;
	off = pen__table_drop(s, k, pen__key_hash(k));
	if (off) {
		r = (const void *)(s->base + off);
		*out = pen__rec_value(r);
		retire(s, off);
	}
	pen__seg_unlock(s);
	return off ? 0 : pen__value_absent(err);
}

int pen__shard_clear(struct pen_seg *s, struct pen_err *err)
{
	struct pen_seg_head *h = s->head;
	bool full, large;
	int rc = begin(s, err);

	if (rc)
		return rc;
	/* a full shard has no room for another index */
	large = pen__table_reset(s, &full) != 0;
	if (large)
		pen__table_empty(s);
	atomic_store(&h->nkeys, 0);
	atomic_store(&h->value_bytes, 0);
	atomic_store(&h->live_bytes,
		     pen__table_bytes(pen__table_of(s)->nbuckets));
	pen__arena_forget(s);
	(void)pen__arena_rebuild(s);
	if (large)
		(void)pen__table_reset(s, &full);
	pen__seg_unlock(s);
	return 0;
}

int pen__shard_add(struct pen_seg *s, struct pen_key k, uint64_t n,
		   uint64_t *old, struct pen_err *err)
{
	const struct pen_seg_rec *r;
	struct pen_value v = { 0 };
	uint64_t sum;
	int rc = begin(s, err);

	if (rc)
		return rc;
	*old = 0;
	r = pen__table_find(s, k, pen__key_hash(k));
	if (r)
		v = pen__rec_value(r);
	if (r && v.len != sizeof(*old))
		rc = pen__fail(err, P_BAD_CALL, "key",
			       "its value has %llu bytes; only an integer of 8 "
			       "bytes can be added to",
			       (unsigned long long)v.len);
	else if (r)
		memcpy(old, v.data, sizeof(*old));
	sum = *old + n;
	if (!rc)
		rc = put_one(s, k, (struct pen_value){ &sum, sizeof(sum) },
			     err);
	pen__seg_unlock(s);
	return rc;
}

int pen__shard_compact(struct pen_seg *s, struct pen_err *err)
{
	bool full;
	int rc = begin(s, err);

	if (rc)
		return rc;
	pen__arena_reclaim(s);
	(void)pen__arena_rebuild(s);
	/* an empty index moves to the front, where it divides no free space */
	if (!atomic_load(&s->head->nkeys) && !pen__table_reset(s, &full)) {
		pen__arena_reclaim(s);
		(void)pen__arena_rebuild(s);
	}
	pen__seg_unlock(s);
	return 0;
}

int pen__shard_freeze(struct pen_seg *s, struct pen_err *err)
{
	int rc;

	if (!s->head)
		return 0;
	rc = pen__seg_lock(s, err);
	if (rc)
		return rc;
	atomic_store(&s->head->frozen, 1);
	pen__seg_unlock(s);
	return 0;
}

/* A key of a saved shard, copied before it is passed to the callback. */
struct key_step {
	const struct pen_seg *s;
	uint64_t at;
	struct pen_key key;
	uint8_t *copy;
	bool found;
};

static int next_key(void *arg)
{
	struct key_step *k = arg;
	const struct pen_seg_rec *r;

	k->found = pen__image_records(k->s, &k->at, &r, 1) == 1;
	if (k->found)
		k->key = pen__rec_key(r);
	return 0;
}

static int copy_key(void *arg)
{
	struct key_step *k = arg;

	memcpy(k->copy, k->key.bytes, k->key.number);
	k->key.bytes = k->copy;
	return 0;
}

static int image_keys(struct pen_seg *s, int (*fn)(void *, struct pen_key),
		      void *arg, struct pen_err *err)
{
	struct key_step k = { .s = s };
	struct pen_block room = { 0 };
	int rc;

	for (;;) {
		rc = pen__image_touch(s, next_key, &k, err);
		if (rc || !k.found)
			break;
		if (k.key.bytes) {
			if (pen__block_reserve(&room, k.key.number + 1)) {
				rc = pen__fail_nomem(err, s->where,
						     k.key.number);
				break;
			}
			k.copy = room.p;
			rc = pen__image_touch(s, copy_key, &k, err);
		}
		if (!rc)
			rc = fn(arg, k.key);
		if (rc)
			break;
	}
	pen__block_fini(&room);
	return rc;
}

int pen__shard_keys(struct pen_seg *s, int (*fn)(void *, struct pen_key),
		    void *arg, struct pen_err *err)
{
	const struct pen_seg_table *t;
	struct pen_pin pin;
	int rc;

	if (!s->head)
		return image_keys(s, fn, arg, err);
	rc = pen__seg_pin(s, &pin, err);
	if (rc)
		return rc;
	t = pen__table_of(s);
	for (uint64_t i = 0; i < t->nbuckets * PEN_BUCKET && !rc; i++) {
		const struct pen_seg_rec *r =
			pen__slot_rec(s, atomic_load(&t->slot[i]));

		if (r)
			rc = fn(arg, pen__rec_key(r));
	}
	pen__seg_unpin(s, pin);
	return rc;
}

void pen__shard_count(struct pen_seg *s, uint64_t nputs, uint64_t ngets,
		      uint64_t nserved)
{
	struct pen_seg_proc *p;

	if (!s->head) {
		atomic_fetch_add_explicit(&s->ngets, ngets,
					  memory_order_relaxed);
		atomic_fetch_add_explicit(&s->nserved, nserved,
					  memory_order_relaxed);
		return;
	}
	if (!atomic_load(&s->self->pid))
		return;
	p = &s->head->proc[s->self->proc];
	if (nputs)
		atomic_fetch_add_explicit(&p->nputs, nputs,
					  memory_order_relaxed);
	if (ngets)
		atomic_fetch_add_explicit(&p->ngets, ngets,
					  memory_order_relaxed);
	if (nserved)
		atomic_fetch_add_explicit(&p->nserved, nserved,
					  memory_order_relaxed);
}

uint64_t pen__shard_len(const struct pen_seg *s)
{
	return s->head ? atomic_load(&s->head->nkeys) : s->nkeys;
}

static void sum_counts(const struct pen_seg_head *h,
		       struct pen_shard_stats *out)
{
	out->nputs = atomic_load(&h->nputs);
	out->ngets = atomic_load(&h->ngets);
	out->nserved = atomic_load(&h->nserved);
	for (uint32_t i = 0; i < atomic_load(&h->nprocs); i++) {
		out->nputs += atomic_load(&h->proc[i].nputs);
		out->ngets += atomic_load(&h->proc[i].ngets);
		out->nserved += atomic_load(&h->proc[i].nserved);
	}
}

/* What was removed and is not free yet: readers may hold it. */
static uint64_t garbage_of(const struct pen_seg_head *h, uint64_t used)
{
	const uint64_t live = h->start + atomic_load(&h->live_bytes);

	return used > live ? used - live : 0;
}

void pen__shard_stats(struct pen_seg *s, struct pen_shard_stats *out)
{
	const struct pen_seg_head *h = s->head;

	*out = (struct pen_shard_stats){ 0 };
	if (h) {
		out->total_bytes = h->size;
		out->used_bytes =
			atomic_load(&h->top) - atomic_load(&h->free_bytes);
		out->value_bytes = atomic_load(&h->value_bytes);
		out->garbage_bytes = garbage_of(h, out->used_bytes);
		sum_counts(h, out);
		out->nfree_blocks = pen__arena_nfree(s);
	} else {
		out->total_bytes = out->used_bytes = s->size;
		out->value_bytes = s->value_bytes;
		out->ngets = atomic_load(&s->ngets);
		out->nserved = atomic_load(&s->nserved);
	}
	out->nkeys = pen__shard_len(s);
	out->nprocesses = pen__seg_nprocs(s);
	out->free_bytes = out->total_bytes - out->used_bytes;
	out->utilisation = (double)out->used_bytes / (double)out->total_bytes;
}
