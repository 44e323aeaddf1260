/*
 * The arena hands out blocks in multiples of 16 bytes, from its end or from
 * free lists. A free block that is too large is split, and is not merged with
 * its neighbours. Instead, when no block fits, all lists are rebuilt from the
 * gaps between the blocks that the index refers to. So lists may safely be
 * wrong, as they are after a writer has died.
 *
 * Memory is obtained from the system in steps before it is touched, so running
 * out of memory is an error and not a signal.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/mem.h"
#include "ddict/seg.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* Stored in a free block. */
struct freed {
	uint64_t size, next;
};

/* Step sizes for obtaining memory: small compared with what is in use. */
#define STEP_MIN ((uint64_t)64 << 10)
#define STEP_MAX ((uint64_t)16 << 20)
/* Blocks tried in a list whose blocks may be too small. */
#define LOOK 8
/* Reading intervals kept apart. */
#define HELD 256

uint64_t pen__rec_size_of(struct pen_key k, uint64_t len)
{
	return sizeof(struct pen_seg_rec) +
	       (k.bytes ? pen__round16(k.number) : 0) + pen__round16(len);
}

uint64_t pen__rec_size(const struct pen_seg_rec *r)
{
	return pen__rec_size_of(pen__rec_key(r), pen__rec_value(r).len);
}

/* The list for a size: 16 per power of two. */
static unsigned bin_of(uint64_t size)
{
	const uint64_t units = size / PEN_SEG_ALIGN;
	unsigned log;

	if (units < 16)
		return (unsigned)units;
	log = 63 - (unsigned)__builtin_clzll(units);
	return (log - 3) * 16 + (unsigned)(units >> (log - 4) & 15);
}

static struct freed *freed_at(struct pen_seg *s, uint64_t off)
{
	return (void *)(s->base + off);
}

void pen__arena_free(struct pen_seg *s, uint64_t off, uint64_t size)
{
	struct pen_seg_head *h = s->head;
	const unsigned b = bin_of(size);

	if (!size)
		return;
	*freed_at(s, off) = (struct freed){ size, h->bin[b] };
	h->bin[b] = off;
	h->bin_map[b / 64] |= (uint64_t)1 << b % 64;
	h->nfreed++;
	pen__seg_add(&h->free_bytes, size);
}

uint64_t pen__arena_nfree(struct pen_seg *s)
{
	const struct pen_seg_head *h = s->head;
	uint64_t n = 0, most;

	if (pen__seg_lock(s, NULL))
		return 0;
	most = h->nfreed; /* lists may be wrong */
	for (unsigned b = 0; b < PEN_SEG_BINS; b++)
		for (uint64_t off = h->bin[b]; off && n < most;
		     off = freed_at(s, off)->next)
			n++;
	n += atomic_load(&h->top) < h->size;
	pen__seg_unlock(s);
	return n;
}

/* Takes the block that *link refers to, and frees the excess. */
static uint64_t take(struct pen_seg *s, unsigned b, uint64_t *link,
		     uint64_t size)
{
	struct pen_seg_head *h = s->head;
	const uint64_t off = *link;
	const struct freed f = *freed_at(s, off);

	*link = f.next;
	if (!h->bin[b])
		h->bin_map[b / 64] &= ~((uint64_t)1 << b % 64);
	pen__seg_add(&h->free_bytes, -f.size);
	pen__arena_free(s, off + size, f.size - size);
	return off;
}

static unsigned next_bin(const struct pen_seg_head *h, unsigned b)
{
	for (; b < PEN_SEG_BINS; b = (b | 63) + 1) {
		const uint64_t m = h->bin_map[b / 64] >> b % 64;

		if (m)
			return b + (unsigned)__builtin_ctzll(m);
	}
	return PEN_SEG_BINS;
}

static uint64_t from_bins(struct pen_seg *s, uint64_t size)
{
	struct pen_seg_head *h = s->head;
	unsigned b = bin_of(size);
	uint64_t *link = &h->bin[b];

	if (atomic_load(&h->free_bytes) < size)
		return 0;
	for (int i = 0; i < LOOK && *link; i++) {
		if (freed_at(s, *link)->size >= size)
			return take(s, b, link, size);
		link = &freed_at(s, *link)->next;
	}
	b = next_bin(h, b + 1);
	return b < PEN_SEG_BINS ? take(s, b, &h->bin[b], size) : 0;
}

/* Obtains memory up to `end` from the system. */
static bool obtain(struct pen_seg *s, uint64_t end)
{
	struct pen_seg_head *h = s->head;
	const uint64_t at = atomic_load(&h->taken);
	uint64_t step = at / 128;
	int rc;

	if (end <= at)
		return true;
	step = step < STEP_MIN ? STEP_MIN : step > STEP_MAX ? STEP_MAX : step;
	if (step < end - at)
		step = end - at;
	step = (step + 4095) & ~(uint64_t)4095;
	if (step > h->size - at)
		step = h->size - at;
	do
		rc = fallocate(s->fd, 0, (off_t)at, (off_t)step);
	while (rc && errno == EINTR);
	if (rc)
		return false;
	/* only for speed: map all pages together instead of one by one */
	if (step <= STEP_MAX)
		(void)madvise(s->base + at, step, MADV_POPULATE_WRITE);
	atomic_store(&h->taken, at + step);
	return true;
}

static uint64_t from_top(struct pen_seg *s, uint64_t size, bool *full)
{
	struct pen_seg_head *h = s->head;
	const uint64_t top = atomic_load(&h->top);

	if (size > h->size - top) {
		*full = true;
		return 0;
	}
	if (!obtain(s, top + size))
		return 0;
	atomic_store(&h->top, top + size);
	return top;
}

uint64_t pen__arena_peek(const struct pen_seg *s, uint64_t size)
{
	const struct pen_seg_head *h = s->head;
	const uint64_t top = atomic_load(&h->top);

	return size <= h->size - top ? top : 0;
}

void pen__arena_extend(struct pen_seg *s, uint64_t size)
{
	struct pen_seg_head *h = s->head;
	const uint64_t top = atomic_load(&h->top) + size;

	atomic_store(&h->top, top);
	/* pages are obtained as a whole */
	if (top > atomic_load(&h->taken))
		atomic_store(&h->taken, (top + 4095) & ~(uint64_t)4095);
}

/* True if a rebuild can find this much; not if nothing has been freed since. */
static bool worth(const struct pen_seg_head *h, uint64_t size)
{
	const uint64_t end = h->size - h->start;

	return h->nfreed && end - atomic_load(&h->live_bytes) >= size;
}

uint64_t pen__arena_alloc(struct pen_seg *s, uint64_t size, bool *full)
{
	uint64_t off;

	*full = false;
	off = from_bins(s, size);
	if (!off)
		off = from_top(s, size, full);
	if (off)
		return off;
	/* drop what killed processes were reading or filling */
	pen__seg_drop_dead(s);
	pen__arena_reclaim(s);
	off = from_bins(s, size);
	if (!off && worth(s->head, size) && pen__arena_rebuild(s)) {
		off = from_bins(s, size);
		if (!off)
			off = from_top(s, size, full);
	}
	return off;
}

/* --- retired blocks, which readers may still hold --- */

uint64_t pen__rec_word(const struct pen_seg *s, struct pen_key k, uint64_t len)
{
	const uint64_t e = atomic_load(&s->head->epoch) & PEN_BORN_MASK;

	return len | e << 44 | (k.bytes ? PEN_REC_BYTES : 0);
}

/* Unambiguous, since all are younger than half the range of the bits: see
 * forget_births(). */
uint64_t pen__rec_born(const struct pen_seg *s, const struct pen_seg_rec *r)
{
	const uint64_t now = atomic_load(&s->head->epoch);
	const uint64_t born = pen__rec_load(r) >> 44 & PEN_BORN_MASK;

	return born ? now - ((now - born) & PEN_BORN_MASK) : 0;
}

/* Before the bits wrap around: marks all records as old. */
static void forget_births(struct pen_seg *s)
{
	const struct pen_seg_table *t = pen__table_of(s);

	for (uint64_t i = 0; i < t->nbuckets * PEN_BUCKET; i++) {
		const struct pen_seg_rec *r =
			pen__slot_rec(s, atomic_load(&t->slot[i]));

		if (r)
			__atomic_store_n((uint64_t *)(uintptr_t)&r->len,
					 pen__rec_load(r) &
						 (PEN_REC_LEN | PEN_REC_BYTES),
					 __ATOMIC_RELAXED);
	}
}

/* Readers that start from now on cannot find what is already retired. */
static void advance(struct pen_seg *s)
{
	const uint64_t now = atomic_fetch_add(&s->head->epoch, 1) + 1;

	if (!(now & PEN_BORN_MASK >> 1))
		forget_births(s);
}

void pen__arena_retire(struct pen_seg *s, uint64_t off, uint64_t size,
		       uint64_t born)
{
	struct pen_seg_head *h = s->head;

	h->since_reclaim += size;
	if (h->nretired >= h->reclaim_at || h->nretired == PEN_SEG_RETIRED ||
	    h->since_reclaim > h->size / 64)
		pen__arena_reclaim(s);
	if (h->nretired == PEN_SEG_RETIRED) {
		h->lost_epoch = atomic_load(&h->epoch);
		h->nfreed++;
		return;
	}
	h->retired[h->nretired++] =
		(struct pen_seg_retired){ off, size, born,
					  atomic_load(&h->epoch) };
}

/* Epochs in which readers found what they still hold. */
struct held {
	uint64_t n;
	struct {
		uint64_t begin, end;
	} since[HELD];
};

/* Merges into the last interval if there are too many. */
static void add_held(struct held *to, uint64_t begin, uint64_t end)
{
	if (to->n < HELD) {
		to->since[to->n].begin = begin;
		to->since[to->n++].end = end;
		return;
	}
	if (begin < to->since[HELD - 1].begin)
		to->since[HELD - 1].begin = begin;
	if (end > to->since[HELD - 1].end)
		to->since[HELD - 1].end = end;
}

static void find_held(struct pen_seg *s, struct held *to)
{
	struct pen_seg_head *h = s->head;
	const uint32_t n = atomic_load(&h->nprocs);

	to->n = 0;
	for (uint32_t i = 0; i < n && i < PEN_SEG_PROCESSES; i++)
		for (int k = 0; k < PEN_SEG_SINCE; k++) {
			const uint64_t b =
				atomic_load(&h->proc[i].since[k].begin);

			if (b)
				add_held(to, b,
					 atomic_load(&h->proc[i].since[k].end));
		}
}

static bool is_held(const struct held *by, const struct pen_seg_retired *r)
{
	for (uint64_t i = 0; i < by->n; i++)
		if (r->died >= by->since[i].begin &&
		    r->born <= by->since[i].end)
			return true;
	return false;
}

void pen__arena_reclaim(struct pen_seg *s)
{
	struct pen_seg_head *h = s->head;
	const uint64_t n = h->nretired;
	struct held by;
	uint64_t kept = 0;

	if (!n)
		return;
	h->since_reclaim = 0;
	advance(s);
	/* finding dead processes is slow: only when space is short */
	if (n >= PEN_SEG_RETIRED / 2)
		pen__seg_drop_dead(s);
	find_held(s, &by);
	for (uint64_t i = 0; i < n; i++) {
		const struct pen_seg_retired r = h->retired[i];

		if (is_held(&by, &r))
			h->retired[kept++] = r;
		else
			pen__arena_free(s, r.off, r.size);
	}
	h->nretired = kept;
	/* look again when there is half as much more */
	h->reclaim_at = kept + (kept < 128 ? 64 : kept / 2);
}

static void empty_bins(struct pen_seg_head *h)
{
	memset(h->bin, 0, sizeof(h->bin));
	memset(h->bin_map, 0, sizeof(h->bin_map));
	atomic_store(&h->free_bytes, 0);
}

void pen__arena_forget(struct pen_seg *s)
{
	struct pen_seg_head *h = s->head;

	empty_bins(h);
	h->nretired = 0;
	h->nfreed++;
	h->lost_epoch = atomic_load(&h->epoch);
	/* the dead writer may have done only part of this */
	forget_births(s);
	advance(s);
}

struct extent {
	uint64_t off, size;
};

static int by_offset(const void *a, const void *b)
{
	const uint64_t x = ((const struct extent *)a)->off;
	const uint64_t y = ((const struct extent *)b)->off;

	return (x > y) - (x < y);
}

/* Collects all blocks in use: index, records, retired blocks that readers hold,
 * and blocks being filled. */
static uint64_t collect(struct pen_seg *s, struct extent *e, uint64_t most)
{
	struct pen_seg_head *h = s->head;
	const struct pen_seg_table *t = pen__table_of(s);
	uint64_t n = 0;

	e[n++] = (struct extent){ atomic_load(&h->table),
				  pen__table_bytes(t->nbuckets) };
	for (uint64_t i = 0; i < t->nbuckets * PEN_BUCKET && n < most; i++) {
		const struct pen_seg_rec *r =
			pen__slot_rec(s, atomic_load(&t->slot[i]));

		if (r)
			e[n++] = (struct extent){
				(uint64_t)((const uint8_t *)r - s->base),
				pen__rec_size(r)
			};
	}
	for (uint64_t i = 0; i < h->nretired; i++) {
		const struct pen_seg_retired *r = &h->retired[i];

		e[n++] = (struct extent){ r->off, r->size };
	}
	for (uint32_t i = 0; i < atomic_load(&h->nprocs); i++)
		for (int k = 0; k < PEN_SEG_COPIES; k++) {
			const uint64_t off =
				atomic_load(&h->proc[i].copy[k].off);
			const uint64_t size =
				atomic_load(&h->proc[i].copy[k].size);

			if (size)
				e[n++] = (struct extent){ off, size };
		}
	return n;
}

/* Rebuilds the lists from the gaps, and returns memory after the last block. */
static void relist(struct pen_seg *s, const struct extent *e, uint64_t n)
{
	struct pen_seg_head *h = s->head;
	const uint64_t taken = atomic_load(&h->taken);
	uint64_t at = h->start, page;

	empty_bins(h);
	for (uint64_t i = 0; i < n; i++) {
		if (e[i].off > at)
			pen__arena_free(s, at, e[i].off - at);
		if (e[i].off + e[i].size > at)
			at = e[i].off + e[i].size;
	}
	atomic_store(&h->top, at);
	page = (at + STEP_MIN + 4095) & ~(uint64_t)4095;
	if (page < taken &&
	    !fallocate(s->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		       (off_t)page, (off_t)(taken - page)))
		atomic_store(&h->taken, page);
}

bool pen__arena_rebuild(struct pen_seg *s)
{
	struct pen_seg_head *h = s->head;
	const uint64_t oldest = pen__seg_oldest(s, true);
	struct extent *e;
	uint64_t n;

	if (h->lost_epoch && oldest <= h->lost_epoch)
		return false;
	n = 1 + atomic_load(&h->nkeys);
	e = pen__alloc(n + h->nretired + PEN_SEG_PROCESSES * PEN_SEG_COPIES,
		       sizeof(*e));
	if (!e)
		return false;
	n = collect(s, e, n);
	qsort(e, n, sizeof(*e), by_offset);
	relist(s, e, n);
	h->lost_epoch = h->nfreed = 0;
	pen__free(e);
	return true;
}
