/*
 * Reads. A PLAIN unit, whose bytes are the row, is read straight into the
 * batch, and neighbouring rows become one read. Everything else is read into
 * the slot's own buffer, or lent by the store. Bytes that are not kept (outside
 * take=, or all with decode=false) come in pieces through a buffer that stays
 * in the CPU's cache.
 */
#include <string.h>

#include "base/clock.h"
#include "codec/deflate.h"
#include "engine/fetch.h"

#define PIECE (1u << 20)

struct pen_slot *pen__slot_take(struct pen_worker *w)
{
	struct pen_slot *s = w->free;

	w->free = s->next;
	w->nfree--;
	s->job = NULL;
	s->live = NULL;
	s->dst = NULL;
	s->skew = s->raw_len = 0;
	s->drained = false;
	s->at = 0;
	s->io.lent = NULL;
	return s;
}

void pen__slot_give(struct pen_worker *w, struct pen_slot *s)
{
	s->next = w->free;
	w->free = s;
	w->nfree++;
}

static void give_back(struct pen_worker *w, struct pen_slot *s)
{
	if (s->io.lent && w->q->st->ops->release)
		w->q->st->ops->release(w->q, &s->io);
	s->io.lent = NULL;
}

void pen__slot_release(struct pen_worker *w, struct pen_slot *s)
{
	w->raw_bytes -= s->raw_len;
	if (w->raw_cap > w->l->raw_limit && s->raw.p) {
		w->raw_cap -= s->raw.cap;
		pen__pool_account(w->l->pool, -(int64_t)s->raw.cap);
		pen__block_fini(&s->raw);
	}
	give_back(w, s);
	pen__slot_give(w, s);
}

/* The bytes stay in the slot's own buffer, which holds the entire unit. */
static bool kept(const struct pen_worker *w, const struct pen_slot *s)
{
	return !s->dst && !s->drained && !w->q->st->lends;
}

/* How much of the unit to read next. Pieces end on the store's alignment;
 * elements to be converted all come in the first piece. */
static size_t piece_of(const struct pen_worker *w, const struct pen_slot *s)
{
	uint64_t rest = s->unit.len - s->at, end = s->unit.offset + s->at;
	uint64_t most = w->l->ds->spec->read_size, least = 0, align;
	const struct pen_crop *t = &w->l->pool->crop;

	if (!s->dst && !s->drained && w->q->st->lends)
		return (size_t)rest; /* needed in one piece */
	if (!most)
		most = s->drained && !w->q->st->lends ? PIECE : UINT64_MAX;
	if (t->on && t->from != t->to && s->drained && !s->at)
		least = pen__crop_bytes(t);
	if (most < least)
		most = least;
	if (rest <= most)
		return (size_t)rest;
	align = w->q->st->align > 1 ? w->q->st->align : 1;
	if (most > align && most - (end + most) % align >= least)
		most -= (end + most) % align;
	return (size_t)most;
}

/* Size of the aligned blocks that contain `len` bytes, `skew` bytes into the
 * first block. */
static bool blocks_len(size_t align, size_t skew, uint64_t len, size_t *out)
{
	if (!pen__add(len, skew + align - 1, out))
		return false;
	*out -= *out % align;
	return true;
}

static int prepare_raw(struct pen_worker *w, struct pen_slot *s,
		       struct pen_err *err)
{
	size_t align = w->q->st->align > 1 ? w->q->st->align : 1;
	size_t lead = s->unit.offset % align, cap = s->raw.cap, need;
	bool whole = kept(w, s);
	int rc;

	s->skew = (s->unit.offset + s->at) % align;
	if (!blocks_len(align, lead, s->unit.len, &need) ||
	    !blocks_len(align, s->skew, s->piece, &s->io.len))
		return pen__fail(err, P_DAMAGED, NULL, "the unit is too large");
	s->io.offset = s->unit.offset + s->at - s->skew;
	if (w->q->st->lends)
		return 0;
	if (!whole)
		need = s->io.len;
	rc = pen__block_reserve(&s->raw, need);
	w->raw_cap += s->raw.cap - cap;
	pen__pool_account(w->l->pool, (int64_t)s->raw.cap - (int64_t)cap);
	if (rc)
		return pen__fail_nomem(err, "read buffer", need);
	s->raw_len = need;
	s->io.buf = s->raw.p;
	if (whole)
		s->io.buf = (uint8_t *)s->raw.p + lead + s->at - s->skew;
	return 0;
}

/* Can the store read this range directly into this memory? */
static bool aligned(const struct pen_store *st, const struct pen_io *io)
{
	uint64_t a = st->align;

	return a <= 1 || (io->offset % a == 0 && io->len % a == 0 &&
			  (uintptr_t)io->buf % a == 0);
}

/* Points the io at its destination, or at the slot's own buffer. */
static int prepare(struct pen_worker *w, struct pen_slot *s,
		   struct pen_err *err)
{
	s->piece = piece_of(w, s);
	s->skew = 0;
	s->io.object = s->unit.object;
	s->io.offset = s->unit.offset + s->at;
	s->io.len = s->piece;
	s->io.buf = s->dst ? s->dst + s->at : NULL;
	s->io.user = s;
	if (s->dst && (w->q->st->lends || aligned(w->q->st, &s->io)))
		return 0;
	return prepare_raw(w, s, err);
}

/* Lets the read be reaped with this code, as if the store had failed. */
static void fail(struct pen_worker *w, struct pen_slot *s, int code)
{
	s->io.res = code;
	s->io.data = NULL;
	s->next = w->failed;
	w->failed = s;
	w->inflight++;
}

/* Records how long a read took. Only the longest reads count: a small field
 * says nothing about a large one. These functions are called rarely and would
 * cost 3 ns per row if they were inlined. */
static __attribute__((noinline)) void note_read(struct pen_worker *w,
						uint64_t len, uint64_t ns)
{
	struct pen_meter *m = &w->meter;
	const uint64_t most = pen__meter_get(&m->timed_len),
		       best = pen__meter_get(&m->best_ns);

	if (len < most / 2)
		return;
	if (len > most)
		pen__meter_set(&m->timed_len, len);
	if (len / 2 > most) { /* all earlier reads were small */
		pen__meter_set(&m->ntimed, 0);
		pen__meter_set(&m->timed_ns, 0);
	}
	if (len / 2 > most || !best || ns < best)
		pen__meter_set(&m->best_ns, ns ? ns : 1);
	pen__meter_add(&m->ntimed, 1);
	pen__meter_add(&m->timed_ns, ns);
}

/* Times one read in some rounds; a clock call for each would be noticeable. A
 * synchronous store has finished the read on return. */
static __attribute__((noinline)) bool submit_timed(struct pen_worker *w,
						   struct pen_slot *s)
{
	const uint64_t t0 = pen__now_ns();

	if (w->q->st->ops->submit(w->q, &s->io) == PEN_END)
		return false;
	if (w->q->st->waits) {
		note_read(w, s->io.len, pen__now_ns() - t0);
	} else {
		w->timed = s;
		w->timed_at = t0;
	}
	w->time_next = false;
	return true;
}

/* False: the store is full until something is reaped. */
static bool hand_over(struct pen_worker *w, struct pen_slot *s)
{
	if (w->time_next ? !submit_timed(w, s)
			 : w->q->st->ops->submit(w->q, &s->io) == PEN_END)
		return false;
	w->nreads++;
	w->inflight++;
	return true;
}

void pen__slot_submit(struct pen_worker *w, struct pen_slot *s)
{
	struct pen_err err;

	pen__err_reset(&err);
	w->raw_bytes -= s->raw_len;
	s->raw_len = 0;
	if (s->at) /* the previous piece may be lent */
		give_back(w, s);
	if (prepare(w, s, &err)) {
		fail(w, s, err.code);
		return;
	}
	w->raw_bytes += s->raw_len;
	if (!w->stalled && hand_over(w, s))
		return;
	s->next = NULL;
	*(w->stalled ? w->stalled_end : &w->stalled) = s;
	w->stalled_end = &s->next;
}

void pen__slot_retry(struct pen_worker *w)
{
	while (w->stalled) {
		struct pen_slot *s = w->stalled;

		/* with nothing in flight, room will never appear */
		if (!hand_over(w, s)) {
			if (w->inflight)
				return;
			w->stalled = s->next;
			fail(w, s, PEN_EIO);
			continue;
		}
		w->stalled = s->next;
	}
}

/* Checks whether the timed read is among the finished ones. */
static void look_for_timed(struct pen_worker *w)
{
	for (uint32_t i = 0; i < w->ndone; i++) {
		if (w->done[i]->user != w->timed)
			continue;
		note_read(w, w->done[i]->len, w->reaped_at - w->timed_at);
		w->timed = NULL;
		return;
	}
}

void pen__slot_reap(struct pen_worker *w)
{
	const uint64_t t0 = pen__now_ns();
	struct pen_slot *s = w->failed;

	w->failed = NULL;
	for (w->ndone = 0; s; s = s->next)
		w->done[w->ndone++] = &s->io;
	if (!w->ndone)
		w->ndone = w->q->st->ops->reap(w->q, 1, w->done, w->nslots);
	w->inflight -= w->ndone;
	w->reaped_at = pen__stage_end(w, &w->meter.read_ns, t0);
	if (w->timed)
		look_for_timed(w);
}

void pen__slot_pend(struct pen_worker *w, struct pen_slot **pending,
		    struct pen_slot *next)
{
	struct pen_slot *s = *pending;

	*pending = next;
	if (s)
		pen__slot_submit(w, s);
}

void pen__slot_flush(struct pen_worker *w)
{
	for (uint32_t i = 0; i < w->f->units_per_sample; i++)
		pen__slot_pend(w, &w->pending[i], NULL);
}

bool pen__slot_grow(const struct pen_worker *w, struct pen_slot *s,
		    const struct pen_pooled *b, const struct pen_unit *u,
		    const uint8_t *dst)
{
	if (!s || w->q->st->by_range || s->batch != b || !s->dst ||
	    s->unit.object != u->object ||
	    s->unit.offset + s->unit.len != u->offset ||
	    s->dst + s->unit.len != dst ||
	    ((s->unit.flags | u->flags) & PEN_UNIT_CRC32))
		return false;
	s->unit.len += u->len;
	s->nrows++;
	return true;
}

struct pen_slot *pen__slot_row(struct pen_worker *w, struct pen_pooled *b,
			       uint32_t row, const struct pen_unit *u,
			       uint8_t *dst)
{
	struct pen_slot *s = pen__slot_take(w);

	s->unit = *u;
	s->batch = b;
	s->row = row;
	s->nrows = 1;
	s->dst = dst;
	return s;
}

/* Touches lent memory, which would otherwise never be read. */
static void touch(const uint8_t *p, size_t n)
{
	uint8_t sum = n ? p[n - 1] : 0;

	for (size_t i = 0; i < n; i += 4096)
		sum ^= p[i];
	__asm__ volatile("" : : "r"(sum));
}

/* Copies what take= needs of a piece into the row; the rest is dropped. */
static void drain(struct pen_worker *w, struct pen_slot *s, const uint8_t *p)
{
	const struct pen_crop *t = &w->l->pool->crop;
	size_t len;
	void *row;

	if (w->q->st->lends)
		touch(p, s->piece);
	if (w->l->drops)
		return;
	row = pen__batch_row(s->batch, s->unit.field, s->row, &len);
	pen__crop_piece(t, row, s->at, p, s->piece);
	if (s->at + s->piece == s->unit.len)
		pen__crop_end(t, row, s->unit.len);
}

int pen__slot_take_in(struct pen_worker *w, struct pen_slot *s,
		      struct pen_err *err)
{
	const struct pen_unit *u = &s->unit;
	bool sums = u->flags & PEN_UNIT_CRC32 && !w->l->drops;
	const uint8_t *p;

	if (s->io.res < 0 || (uint64_t)s->io.res < s->skew + s->piece)
		return pen__io_error(w->q->st, &s->io, err);
	w->read_bytes += (uint64_t)s->io.res;
	p = (const uint8_t *)s->io.data + s->skew;
	if (s->dst && s->dst + s->at != p)
		memcpy(s->dst + s->at, p, s->piece);
	if (s->dst)
		p = s->dst + s->at;
	if (s->drained)
		drain(w, s, p);
	if (sums)
		s->crc = pen__crc32(s->at ? s->crc : u->crc_seed, p, s->piece);
	if (kept(w, s)) { /* the unit, not its last piece */
		s->io.data = s->raw.p;
		s->skew = u->offset % (w->q->st->align ? w->q->st->align : 1);
	}
	s->at += s->piece;
	if (!sums || s->at < u->len || s->crc == u->crc)
		return 0;
	return pen__fail(err, P_CHECKSUM, NULL,
			 "checksum mismatch: computed %08x, but %08x is "
			 "stored; the data is damaged",
			 s->crc, u->crc);
}
