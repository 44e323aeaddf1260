/*
 * The index: buckets of eight slots, one cache line each, selected by the hash
 * of the key; overflow goes to the next bucket. A bucket with an empty slot
 * ends a search, so a slot is emptied only in such a bucket and otherwise
 * marked as deleted. Keys do not move. A table that is too small is left
 * unchanged: readers continue in it while its successor is filled and put in
 * its place.
 */
#include <string.h>

#include "base/rng.h"
#include "ddict/seg.h"

#define OFF_BITS 40
#define OFF_MASK (((uint64_t)1 << OFF_BITS) - 1)
/* Keys looked up together: as many as the memory system handles misses. */
#define GROUP 32
/* Slots used out of 10, at most. */
#define FILL 8
#define MIN_BUCKETS 8

static uint64_t fold(uint64_t a, uint64_t b)
{
	__extension__ typedef unsigned __int128 wide;
	const wide p = (wide)a * b;

	return (uint64_t)p ^ (uint64_t)(p >> 64);
}

static uint64_t word(const uint8_t *p, size_t n)
{
	uint64_t v = 0;

	memcpy(&v, p, n);
	return v;
}

static uint64_t hash_bytes(const uint8_t *p, uint64_t n)
{
	uint64_t h = n * 0x9e3779b97f4a7c15u + 0x8cb92ba72f3d8dd7u;

	for (; n >= 16; p += 16, n -= 16)
		h = fold(h ^ word(p, 8) ^ 0xa0761d6478bd642fu,
			 word(p + 8, 8) ^ 0xe7037ed1a0b428dbu) ^
		    (h << 23 | h >> 41);
	if (n > 8)
		h = fold(h ^ word(p, 8),
			 word(p + 8, n - 8) ^ 0x589965cc75374cc3u);
	else
		h = fold(h ^ word(p, n), 0x1d8e4e27c47d124fu);
	return pen__mix64(h);
}

uint64_t pen__key_hash(struct pen_key k)
{
	if (k.bytes)
		return hash_bytes(k.bytes, k.number);
	return pen__mix64(k.number + 0x9e3779b97f4a7c15u);
}

uint64_t pen__slot_make(uint64_t off, uint64_t hash)
{
	return hash << OFF_BITS | off / PEN_SEG_ALIGN;
}

static bool tag_is(uint64_t slot, uint64_t hash)
{
	return ((slot ^ hash << OFF_BITS) & ~OFF_MASK) == 0;
}

bool pen__slot_is(uint64_t slot, uint64_t hash)
{
	return slot > PEN_SLOT_GONE && tag_is(slot, hash);
}

uint64_t pen__slot_off(uint64_t slot)
{
	return (slot & OFF_MASK) * PEN_SEG_ALIGN;
}

const struct pen_seg_rec *pen__slot_rec(const struct pen_seg *s, uint64_t slot)
{
	const uint64_t off = (slot & OFF_MASK) * PEN_SEG_ALIGN;
	const struct pen_seg_rec *r;
	uint64_t left, len;

	if (slot <= PEN_SLOT_GONE || s->size < sizeof(*r) ||
	    off > s->size - sizeof(*r))
		return NULL;
	r = (const void *)(s->base + off);
	left = s->size - sizeof(*r) - off;
	len = pen__rec_load(r);
	if (len & PEN_REC_BYTES) {
		if (r->key > left || pen__round16(r->key) > left)
			return NULL;
		left -= pen__round16(r->key);
	}
	return (len & PEN_REC_LEN) <= left ? r : NULL;
}

static bool is_key(const struct pen_seg_rec *r, struct pen_key k)
{
	const bool bytes = pen__rec_load(r) & PEN_REC_BYTES;

	if (r->key != k.number || bytes != (k.bytes != NULL))
		return false;
	return !bytes || !memcmp(r + 1, k.bytes, k.number);
}

const struct pen_seg_table *pen__table_of(const struct pen_seg *s)
{
	if (!s->head)
		return s->table;
	return (const void *)(s->base + atomic_load(&s->head->table));
}

uint64_t pen__table_bytes(uint64_t nbuckets)
{
	return sizeof(struct pen_seg_table) +
	       nbuckets * PEN_BUCKET * sizeof(uint64_t);
}

uint64_t pen__table_buckets(uint64_t nkeys)
{
	const uint64_t n =
		nkeys / (PEN_BUCKET * FILL) * 10 +
		nkeys % (PEN_BUCKET * FILL) * 10 / (PEN_BUCKET * FILL) + 1;

	return n < MIN_BUCKETS ? MIN_BUCKETS : n;
}

static const _Atomic uint64_t *bucket_of(const struct pen_seg_table *t,
					 uint64_t hash)
{
	return t->slot + pen__mulhi(hash, t->nbuckets) * PEN_BUCKET;
}

static const _Atomic uint64_t *next_bucket(const struct pen_seg_table *t,
					   const _Atomic uint64_t *b)
{
	b += PEN_BUCKET;
	return b == t->slot + t->nbuckets * PEN_BUCKET ? t->slot : b;
}

/* The slot of a key, or NULL. */
static const _Atomic uint64_t *seek(const struct pen_seg *s,
				    const struct pen_seg_table *t,
				    struct pen_key k, uint64_t hash,
				    const struct pen_seg_rec **rec)
{
	const _Atomic uint64_t *b = bucket_of(t, hash);

	for (uint64_t tries = t->nbuckets; tries; tries--) {
		bool more = true;

		for (int i = 0; i < PEN_BUCKET; i++) {
			const uint64_t v = atomic_load(&b[i]);

			if (v == PEN_SLOT_EMPTY)
				more = false;
			if (v <= PEN_SLOT_GONE || !tag_is(v, hash))
				continue;
			*rec = pen__slot_rec(s, v);
			if (*rec && is_key(*rec, k))
				return &b[i];
		}
		if (!more)
			break;
		b = next_bucket(t, b);
	}
	*rec = NULL;
	return NULL;
}

const struct pen_seg_rec *pen__table_find(const struct pen_seg *s,
					  struct pen_key k, uint64_t hash)
{
	const struct pen_seg_rec *r;

	seek(s, pen__table_of(s), k, hash, &r);
	return r;
}

/* Finds a slot by its tag alone, which is almost always the right one. */
static uint64_t guess(const _Atomic uint64_t *b, uint64_t hash)
{
	for (int i = 0; i < PEN_BUCKET; i++) {
		const uint64_t v = atomic_load(&b[i]);

		if (tag_is(v, hash) && v > PEN_SLOT_GONE)
			return v;
	}
	return 0;
}

static void find_group(const struct pen_seg *s, const struct pen_seg_table *t,
		       const struct pen_key *k, const uint64_t *hash,
		       uint32_t n, const struct pen_seg_rec **out)
{
	uint64_t slot[GROUP];

	for (uint32_t i = 0; i < n; i++)
		__builtin_prefetch(
			(const void *)(uintptr_t)bucket_of(t, hash[i]));
	for (uint32_t i = 0; i < n; i++) {
		slot[i] = guess(bucket_of(t, hash[i]), hash[i]);
		__builtin_prefetch(s->base +
				   (slot[i] & OFF_MASK) * PEN_SEG_ALIGN);
	}
	for (uint32_t i = 0; i < n; i++) {
		const struct pen_seg_rec *r = pen__slot_rec(s, slot[i]);

		if (r && is_key(r, k[i]))
			out[i] = r;
		else
			seek(s, t, k[i], hash[i], &out[i]);
	}
}

void pen__table_find_many(const struct pen_seg *s, const struct pen_key *k,
			  const uint64_t *hash, uint32_t n,
			  const struct pen_seg_rec **out)
{
	const struct pen_seg_table *t = pen__table_of(s);

	for (uint32_t i = 0, m; i < n; i += m) {
		m = n - i < GROUP ? n - i : GROUP;
		find_group(s, t, k + i, hash + i, m, out + i);
	}
}

/* The first free slot for a hash; there always is one. */
static _Atomic uint64_t *vacancy(struct pen_seg_table *t, uint64_t hash)
{
	const _Atomic uint64_t *b = bucket_of(t, hash);

	for (;; b = next_bucket(t, b))
		for (int i = 0; i < PEN_BUCKET; i++)
			if (atomic_load_explicit(&b[i], memory_order_relaxed) <=
			    PEN_SLOT_GONE)
				return (_Atomic uint64_t *)(uintptr_t)&b[i];
}

void pen__table_insert(struct pen_seg_table *t, uint64_t slot, uint64_t hash)
{
	atomic_store_explicit(vacancy(t, hash), slot, memory_order_relaxed);
}

static struct pen_seg_table *own_table(struct pen_seg *s)
{
	return (void *)(s->base + atomic_load(&s->head->table));
}

/* Allocates a table aligned to a cache line, and frees the margins. */
static uint64_t alloc_table(struct pen_seg *s, uint64_t nbuckets, bool *full)
{
	const uint64_t bytes = pen__table_bytes(nbuckets);
	const uint64_t off = pen__arena_alloc(s, bytes + 48, full);
	const uint64_t at = (off + 63) & ~(uint64_t)63;
	struct pen_seg_table *t;

	if (!off)
		return 0;
	pen__arena_free(s, off, at - off);
	pen__arena_free(s, at + bytes, off + 48 - at);
	t = (void *)(s->base + at);
	memset(t, 0, bytes);
	t->nbuckets = nbuckets;
	return at;
}

/* Copies all slots; prefetches records, whose keys must be hashed again. */
static void refill(struct pen_seg *s, const struct pen_seg_table *from,
		   struct pen_seg_table *to)
{
	const uint64_t n = from->nbuckets * PEN_BUCKET;

	for (uint64_t i = 0; i < n; i++) {
		const uint64_t ahead = i + 16 < n ? i + 16 : i;
		const uint64_t v = atomic_load(&from->slot[i]);
		const struct pen_seg_rec *r;

		__builtin_prefetch(
			s->base + (atomic_load(&from->slot[ahead]) & OFF_MASK) *
					  PEN_SEG_ALIGN);
		r = pen__slot_rec(s, v);
		if (r)
			pen__table_insert(to, v,
					  pen__key_hash(pen__rec_key(r)));
	}
}

static int replace(struct pen_seg *s, uint64_t nbuckets, bool fill, bool *full)
{
	struct pen_seg_head *h = s->head;
	const uint64_t old = atomic_load(&h->table);
	const uint64_t at = alloc_table(s, nbuckets, full);

	if (!at)
		return PEN_ENOMEM;
	if (fill)
		refill(s, own_table(s), (void *)(s->base + at));
	atomic_store(&h->table, at);
	atomic_store(&h->ngone, 0);
	pen__seg_add(&h->live_bytes, pen__table_bytes(nbuckets));
	if (old) {
		const struct pen_seg_table *t = (void *)(s->base + old);
		const uint64_t bytes = pen__table_bytes(t->nbuckets);

		pen__seg_add(&h->live_bytes, -bytes);
		/* only lookups read the old table */
		pen__arena_retire(s, old, bytes, atomic_load(&h->epoch));
		pen__arena_reclaim(s);
	}
	return 0;
}

int pen__table_reset(struct pen_seg *s, bool *full)
{
	return replace(s, MIN_BUCKETS, false, full);
}

void pen__table_empty(struct pen_seg *s)
{
	struct pen_seg_table *t = own_table(s);

	for (uint64_t i = 0; i < t->nbuckets * PEN_BUCKET; i++)
		atomic_store(&t->slot[i], PEN_SLOT_EMPTY);
	atomic_store(&s->head->ngone, 0);
}

int pen__table_reserve(struct pen_seg *s, uint64_t n, bool *full)
{
	struct pen_seg_head *h = s->head;
	const uint64_t keys = atomic_load(&h->nkeys);
	const uint64_t nbuckets = own_table(s)->nbuckets;
	uint64_t want = pen__table_buckets(keys + n + atomic_load(&h->ngone));

	*full = false;
	/* more slots than the budget has room for; also prevents overflow */
	if (n > h->size / sizeof(uint64_t)) {
		*full = true;
		return PEN_ENOMEM;
	}
	if (want <= nbuckets)
		return 0;
	/* deleted slots are not copied */
	want = pen__table_buckets(keys + n);
	if (want < pen__table_buckets(keys + keys / 2))
		want = pen__table_buckets(keys + keys / 2);
	return replace(s, want, true, full);
}

uint64_t pen__table_set(struct pen_seg *s, uint64_t off, struct pen_key k,
			uint64_t len)
{
	struct pen_seg_head *h = s->head;
	struct pen_seg_table *t = own_table(s);
	const uint64_t hash = pen__key_hash(k);
	const struct pen_seg_rec *old;
	const _Atomic uint64_t *at = seek(s, t, k, hash, &old);
	_Atomic uint64_t *to;

	pen__seg_add(&h->live_bytes, pen__rec_size_of(k, len));
	pen__seg_add(&h->value_bytes, len);
	if (at) {
		atomic_store((_Atomic uint64_t *)(uintptr_t)at,
			     pen__slot_make(off, hash));
		pen__seg_add(&h->live_bytes, -pen__rec_size(old));
		pen__seg_add(&h->value_bytes, -pen__rec_value(old).len);
		return (uint64_t)((const uint8_t *)old - s->base);
	}
	to = vacancy(t, hash);
	if (atomic_load(to) == PEN_SLOT_GONE)
		pen__seg_add(&h->ngone, (uint64_t)-1);
	atomic_store(to, pen__slot_make(off, hash));
	pen__seg_add(&h->nkeys, 1);
	return 0;
}

static bool has_empty(const struct pen_seg_table *t, const _Atomic uint64_t *at)
{
	const _Atomic uint64_t *b =
		t->slot + (at - t->slot) / PEN_BUCKET * PEN_BUCKET;

	for (int i = 0; i < PEN_BUCKET; i++)
		if (atomic_load(&b[i]) == PEN_SLOT_EMPTY)
			return true;
	return false;
}

uint64_t pen__table_drop(struct pen_seg *s, struct pen_key k, uint64_t hash)
{
	struct pen_seg_head *h = s->head;
	struct pen_seg_table *t = own_table(s);
	const struct pen_seg_rec *r;
	const _Atomic uint64_t *at = seek(s, t, k, hash, &r);

	if (!at)
		return 0;
	if (has_empty(t, at)) {
		atomic_store((_Atomic uint64_t *)(uintptr_t)at, PEN_SLOT_EMPTY);
	} else {
		atomic_store((_Atomic uint64_t *)(uintptr_t)at, PEN_SLOT_GONE);
		pen__seg_add(&h->ngone, 1);
	}
	pen__seg_add(&h->nkeys, (uint64_t)-1);
	pen__seg_add(&h->live_bytes, -pen__rec_size(r));
	pen__seg_add(&h->value_bytes, -pen__rec_value(r).len);
	return (uint64_t)((const uint8_t *)r - s->base);
}
