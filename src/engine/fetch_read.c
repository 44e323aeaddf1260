/*
 * Reads. A unit that is its row as it is (PLAIN) is read straight into the
 * batch, and neighbouring rows become one read. Everything else is read into
 * the slot's own buffer, or lent by the store. Bytes that nobody keeps (what
 * take= leaves out, all with decode=false) come in pieces through a buffer that
 * stays in the CPU's cache.
 */
#include <string.h>

#include "base/clock.h"
#include "codec/deflate.h"
#include "engine/fetch.h"

#define PIECE (1u << 20)

static struct pen_slot *slot_take(struct pen_worker *w)
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

/* The bytes stay in the slot's own buffer, which holds the whole unit. */
static bool kept(const struct pen_worker *w, const struct pen_slot *s)
{
	return !s->dst && !s->drained && !w->q->st->lends;
}

/* How much of the unit to read at once. Pieces end where the store likes it;
 * elements that change type come all in the first. */
static size_t piece_of(const struct pen_worker *w, const struct pen_slot *s)
{
	uint64_t rest = s->unit.len - s->at, end = s->unit.offset + s->at;
	uint64_t most = w->l->ds->spec->read_size, least = 0, align;
	const struct pen_take *t = &w->l->pool->take;

	if (!s->dst && !s->drained && w->q->st->lends)
		return (size_t)rest; /* needed in one piece */
	if (!most)
		most = s->drained && !w->q->st->lends ? PIECE : UINT64_MAX;
	if (t->on && t->from != t->to && s->drained && !s->at)
		least = pen__take_bytes(t);
	if (most < least)
		most = least;
	if (rest <= most)
		return (size_t)rest;
	align = w->q->st->align > 1 ? w->q->st->align : 1;
	if (most > align && most - (end + most) % align >= least)
		most -= (end + most) % align;
	return (size_t)most;
}

/* Bytes of whole blocks of the store that `len` bytes from `skew` bytes into
 * the first one are in. */
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
		return pen__fail(err, PEN_EDATA, NULL, "unit is too large");
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

/* Does the store take this range into this memory as it is? */
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

void pen__slot_fail(struct pen_worker *w, struct pen_slot *s, int code)
{
	s->io.res = code;
	s->io.data = NULL;
	pen__slot_complete(w, s);
}

/* How long a read took. Others than the longest are left out: a small field
 * says nothing about a large one. These functions are rarely called, and would
 * cost a row 3 ns if they were inlined. */
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
	if (len / 2 > most) { /* all the others were small */
		pen__meter_set(&m->ntimed, 0);
		pen__meter_set(&m->timed_ns, 0);
	}
	if (len / 2 > most || !best || ns < best)
		pen__meter_set(&m->best_ns, ns ? ns : 1);
	pen__meter_add(&m->ntimed, 1);
	pen__meter_add(&m->timed_ns, ns);
}

void pen__slot_timed(struct pen_worker *w)
{
	for (uint32_t i = 0; i < w->ndone; i++) {
		if (w->done[i]->user != w->timed)
			continue;
		note_read(w, w->done[i]->len, w->reaped_at - w->timed_at);
		w->timed = NULL;
		return;
	}
}

/* A read in some rounds is timed: a clock for each would be felt. What a
 * synchronous store was told to read is there when it returns. */
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

/* False: the store can take no more before something is reaped. */
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
	if (prepare(w, s, &err)) {
		pen__slot_fail(w, s, err.code);
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

		/* with nothing in flight nothing will ever make room */
		if (!hand_over(w, s)) {
			if (w->inflight)
				return;
			w->stalled = s->next;
			pen__slot_fail(w, s, PEN_EIO);
			continue;
		}
		w->stalled = s->next;
	}
}

static void flush(struct pen_worker *w, struct pen_slot **pending)
{
	struct pen_slot *s = *pending;

	*pending = NULL;
	if (s)
		pen__slot_submit(w, s);
}

void pen__slot_flush(struct pen_worker *w)
{
	for (uint32_t i = 0; i < w->f->units_per_sample; i++)
		flush(w, &w->pending[i]);
}

/* Does this row follow on from the pending one, in the object and in memory? */
static bool follows(const struct pen_worker *w, const struct pen_slot *s,
		    const struct pen_unit *u, const struct pen_pooled *b,
		    const uint8_t *dst)
{
	return s && !w->q->st->by_range && s->batch == b && s->dst &&
	       s->unit.object == u->object &&
	       s->unit.offset + s->unit.len == u->offset &&
	       s->dst + s->unit.len == dst &&
	       !((s->unit.flags | u->flags) & PEN_UNIT_CRC32);
}

bool pen__slot_fits(const struct pen_field *d, const struct pen_unit *u,
		    size_t len, struct pen_err *err)
{
	if (u->len == len || d->layout == PEN_PADDED)
		return true;
	pen__fail(err, PEN_EDATA, NULL,
		  "has %llu bytes for field %s, but its shape needs %zu",
		  (unsigned long long)u->len, d->name, len);
	return false;
}

struct pen_slot *pen__slot_plain(struct pen_worker *w, struct pen_pooled *b,
				 uint32_t row, const struct pen_unit *u,
				 uint8_t *dst)
{
	struct pen_slot *s = slot_take(w);

	s->unit = *u;
	s->batch = b;
	s->row = row;
	s->nrows = 1;
	s->dst = dst;
	return s;
}

/* Padded, or only a piece of what is read. */
static bool apart(const struct pen_pooled *b, uint32_t field, uint32_t row)
{
	return b->pool->field[field].layout == PEN_PADDED ||
	       pen__row_cut(b, field, row);
}

/* A sample all of whose units are PLAIN: each goes on its own, and those of one
 * field are put together with those of the rows before. */
void pen__issue_plain(struct pen_worker *w, struct pen_pooled *b, uint32_t row,
		      uint32_t object, uint64_t k)
{
	struct pen_unit *u = w->job->unit; /* scratch: no jobs in this mode */

	w->f->ops->locate(w->f, object, k, u);
	for (uint32_t i = 0; i < w->f->units_per_sample; i++, u++) {
		const struct pen_field *d = &b->pool->field[u->field];
		struct pen_slot **pending = &w->pending[i];
		struct pen_err err;
		uint8_t *dst;
		size_t len;

		if (u->object == PEN_NO_OBJECT || b->pool->hide[u->field]) {
			pen__rows_filled(w, b, row, 1);
			continue;
		}
		if (w->l->drops || (w->l->pool->take.on &&
				    w->l->pool->take.field == u->field)) {
			flush(w, pending);
			*pending = pen__slot_plain(w, b, row, u, NULL);
			(*pending)->drained = true;
			continue;
		}
		dst = pen__batch_row(b, u->field, row, &len);
		if (d->layout != PEN_DENSE && apart(b, u->field, row)) {
			dst = NULL;
		} else if (u->len != len) {
			pen__err_reset(&err);
			pen__slot_fits(d, u, len, &err);
			pen__row_failed(w, b, row, &err);
			pen__rows_filled(w, b, row, 1);
			continue;
		}
		if (dst && follows(w, *pending, u, b, dst)) {
			(*pending)->unit.len += u->len;
			(*pending)->nrows++;
			continue;
		}
		flush(w, pending);
		*pending = pen__slot_plain(w, b, row, u, dst);
	}
}

void pen__issue_unit(struct pen_worker *w, struct pen_live *live)
{
	struct pen_slot *s = slot_take(w);

	s->unit = live->unit;
	s->live = live;
	s->batch = NULL;
	s->drained = w->l->drops;
	if (!(live->unit.flags & PEN_UNIT_PACKED) && !s->drained)
		s->dst = live->mem.p;
	pen__slot_submit(w, s);
}

/* Lent memory that nobody looks at would never be read. */
static void touch(const uint8_t *p, size_t n)
{
	uint8_t sum = n ? p[n - 1] : 0;

	for (size_t i = 0; i < n; i += 4096)
		sum ^= p[i];
	__asm__ volatile("" : : "r"(sum));
}

/* A piece whose bytes are not kept: what is taken of it goes into the row. */
static void drain(struct pen_worker *w, struct pen_slot *s, const uint8_t *p)
{
	const struct pen_take *t = &w->l->pool->take;
	size_t len;
	void *row;

	if (w->q->st->lends)
		touch(p, s->piece);
	if (w->l->drops)
		return;
	row = pen__batch_row(s->batch, s->unit.field, s->row, &len);
	pen__take_piece(t, row, s->at, p, s->piece);
	if (s->at + s->piece == s->unit.len)
		pen__take_end(t, row, s->unit.len);
}

/* What was read, checked (length, checksum at the end) and put in place. */
static int take_in(struct pen_worker *w, struct pen_slot *s,
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
	return pen__fail(err, PEN_EDATA, NULL,
			 "checksum is %08x, but %08x is stored: the data is "
			 "damaged",
			 s->crc, u->crc);
}

static void complete_plain(struct pen_worker *w, struct pen_slot *s,
			   struct pen_err *err)
{
	const struct pen_unit *u = &s->unit;
	struct pen_pooled *b = s->batch;

	if (!err->code && !s->dst && !s->drained) { /* padded, or a piece */
		const uint8_t *p = (const uint8_t *)s->io.data + s->skew;

		if (b->pool->field[u->field].layout == PEN_PADDED)
			pen__pad_row(b, u->field, s->row, p);
		else
			pen__cut_row(b, u->field, s->row, p, u->len);
	}
	for (uint32_t i = 0; err->code && i < s->nrows; i++)
		pen__row_failed(w, b, s->row + i, err);
	pen__rows_filled(w, b, s->row, s->nrows);
	pen__slot_release(w, s);
}

/* By way of memory that stays in the CPU's cache where that is possible: the
 * unit can turn out to be smaller than declared. */
static int unpack_unit(struct pen_worker *w, struct pen_slot *s,
		       struct pen_err *err)
{
	const struct pen_span raw = { (const uint8_t *)s->io.data + s->skew,
				      s->unit.len };
	const size_t cap = w->room.cap, size = s->unit.size;
	const bool direct = size > w->l->room_limit;
	int rc;

	if (!direct && pen__block_reserve(&w->room, size))
		return pen__fail_nomem(err, "unpacking", size);
	pen__pool_account(w->l->pool, (int64_t)w->room.cap - (int64_t)cap);
	rc = w->f->ops->unpack(w->f, &s->unit, raw,
			       direct ? s->live->mem.p : w->room.p, &w->scratch,
			       err);
	if (rc < 0)
		return rc;
	if (direct && rc)
		s->live->n = (size_t)rc;
	if (!direct && pen__units_fill(&w->l->units, s->live, w->room.p,
				       rc ? (size_t)rc : size))
		return pen__fail_nomem(err, "shared units", size);
	return 0;
}

static void complete_unit(struct pen_worker *w, struct pen_slot *s,
			  struct pen_err *err)
{
	struct pen_live *live = s->live;

	if (!err->code && (s->unit.flags & PEN_UNIT_PACKED) && !w->l->drops) {
		const uint64_t before = w->inner_ns, t = pen__now_ns();
		int rc = unpack_unit(w, s, err);

		if (rc && !err->code)
			err->code = rc;
		pen__inner_end(w, &w->meter.unpack_ns, t, before);
	}
	pen__slot_release(w, s);
	pen__units_ready(&w->l->units, live, err->code ? err : NULL,
			 pen__plan_rows, w->l);
	atomic_fetch_sub(&w->l->unit_tasks, 1);
}

/* All stop, and pieces are still to come: of a large sample, or from a slow
 * store, they could take minutes. Nobody will see its batch. */
static void leave(struct pen_worker *w, struct pen_slot *s)
{
	const struct pen_err closed = { .code = PEN_ECLOSED };

	if (s->job)
		pen__job_read(w, s, &closed);
	else
		pen__slot_release(w, s);
}

void pen__slot_complete(struct pen_worker *w, struct pen_slot *s)
{
	struct pen_err err;
	int rc;

	pen__err_reset(&err);
	rc = take_in(w, s, &err);
	if (rc && !err.code)
		err.code = rc;
	if (!rc && s->at < s->unit.len && atomic_load(&w->l->stopping)) {
		leave(w, s);
	} else if (!rc && s->at < s->unit.len) { /* the next piece */
		const uint64_t before = w->inner_ns, t = pen__now_ns();

		/* a synchronous store reads it here, however long that takes */
		give_back(w, s);
		pen__slot_submit(w, s);
		pen__inner_end(w, &w->meter.read_ns, t, before);
	} else if (s->live) {
		complete_unit(w, s, &err);
	} else if (s->job) {
		pen__job_read(w, s, &err);
	} else {
		complete_plain(w, s, &err);
	}
}
