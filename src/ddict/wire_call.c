/*
 * Calls: from requests to messages in pieces, and back from pieces to requests
 * that are served and replies that end a call.
 *
 * A reply finds its call by a number that the caller gave, and numbers are
 * checked: what a peer sends can end a call that waits for it, fill the room of
 * its reply, and no more.
 *
 * In the steady state nothing is allocated: answers and intakes are kept, with
 * the memory they have, unless that was unusually much.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/futex.h"
#include "base/mem.h"
#include "ddict/wire_int.h"

enum { PENDING, AWAITED, DONE };

/* What is kept for the next request or reply. */
#define KEEP_BYTES ((size_t)1 << 20)
#define KEEP_IOV 4096

static struct pen_answer *answer_of(struct pen_msg *m)
{
	return (struct pen_answer *)m; /* its first member */
}

/* --- the end of a call --- */

static void finish(struct pen_call *c, int code)
{
	uint32_t was;

	if (code) {
		if (!c->alloc)
			pen__free(c->reply);
		c->reply = NULL;
		c->reply_len = 0;
	}
	c->code = code;
	was = atomic_exchange_explicit(&c->state, DONE, memory_order_acq_rel);
	/* from here on the call is its owner's */
	if (was == AWAITED)
		pen__futex_wake(&c->state);
}

static void finish_failed(struct pen_call *c, const struct pen_peer *p,
			  int code, const char *why)
{
	char where[96];

	snprintf(where, sizeof(where), "rank %d (%s)", p->rank, p->host);
	finish(c, pen__fail(&c->err, code, where, "%s", why));
}

static void await(struct pen_call *c)
{
	uint32_t was = PENDING;

	while (!pen__call_done(c)) {
		if (was != AWAITED)
			atomic_compare_exchange_strong(&c->state, &was,
						       AWAITED);
		if (was != DONE)
			pen__futex_wait(&c->state, AWAITED, 0);
	}
}

int pen__wire_wait(struct pen_wire *w, struct pen_call *const *calls, size_t n,
		   struct pen_err *err)
{
	int rc = 0;

	(void)w;
	for (size_t i = 0; i < n; i++) {
		await(calls[i]);
		if (!calls[i]->code || rc)
			continue;
		rc = calls[i]->code;
		if (err)
			*err = calls[i]->err;
	}
	return rc;
}

/* --- numbers of calls; under the peer's lock --- */

static int grow_slots(struct pen_peer *p)
{
	const uint32_t n = p->nslots ? p->nslots * 2 : 16;
	struct pen_slot *s;

	if (n > INT_MAX)
		return PEN_ENOMEM;
	s = pen__realloc(p->slots, n, sizeof(*s));
	if (!s)
		return PEN_ENOMEM;
	for (uint32_t i = p->nslots; i < n; i++)
		s[i] = (struct pen_slot){ .next = i + 1 };
	p->slots = s;
	p->nslots = n;
	return 0;
}

static int take_slot(struct pen_peer *p, struct pen_call *c, uint64_t *id)
{
	struct pen_slot *s;

	if (p->free == p->nslots && grow_slots(p))
		return PEN_ENOMEM;
	s = &p->slots[p->free];
	*id = (uint64_t)s->age << 32 | p->free;
	p->free = s->next;
	s->call = c;
	return 0;
}

static void free_slot(struct pen_peer *p, uint64_t id)
{
	struct pen_slot *s = &p->slots[(uint32_t)id];

	s->call = NULL;
	s->age++;
	s->next = p->free;
	p->free = (uint32_t)id;
}

/* The call that a reply may end: one whose request has left altogether. */
static struct pen_call *find_call(struct pen_peer *p, uint64_t id)
{
	const uint32_t i = (uint32_t)id;
	struct pen_call *c = NULL;

	pthread_mutex_lock(&p->lock);
	if (i < p->nslots && p->slots[i].age == id >> 32)
		c = p->slots[i].call;
	if (c && c->out.kind)
		c = NULL;
	pthread_mutex_unlock(&p->lock);
	return c;
}

/* --- sending --- */

static void push(struct pen_peer *p, struct pen_msg *m)
{
	m->next = NULL;
	*p->last = m;
	p->last = &m->next;
}

static bool total_of(const struct iovec *iov, int n, uint64_t *total)
{
	*total = 0;
	for (int i = 0; i < n; i++)
		if (__builtin_add_overflow(*total, iov[i].iov_len, total))
			return false;
	return *total <= PEN_MSG_MAX;
}

static void call(struct pen_wire *w, struct pen_call *c, uint8_t kind)
{
	struct pen_peer *p;
	bool idle;
	int rc;

	c->code = 0;
	c->reply = NULL;
	c->reply_len = c->got = 0;
	c->out = (struct pen_msg){ .iov = c->req, .kind = kind };
	if (c->to < 0 || c->to >= w->size || c->to == w->rank || c->nreq < 0 ||
	    !total_of(c->req, c->nreq, &c->out.total)) {
		finish(c, pen__fail(&c->err, PEN_EINVAL, "wire",
				    "%d is no other rank of %d, or the request "
				    "has no length",
				    c->to, w->size));
		return;
	}
	c->out.niov = (uint32_t)c->nreq;
	p = &w->peers[c->to];
	pthread_mutex_lock(&p->lock);
	rc = p->code;
	if (!rc)
		rc = take_slot(p, c, &c->out.id);
	if (!rc) {
		idle = !p->first;
		push(p, &c->out);
		if (idle)
			w->transport->kick(w, p);
	}
	pthread_mutex_unlock(&p->lock);
	if (rc) /* what p->code says was written before it, once */
		finish_failed(c, p, rc,
			      rc == PEN_ENOMEM ? "out of memory" : p->why);
}

void pen__wire_call(struct pen_wire *w, struct pen_call *c)
{
	call(w, c, PEN_ASK);
}

void pen__wire_probe(struct pen_wire *w, struct pen_call *c)
{
	call(w, c, PEN_PROBE);
}

struct pen_frame pen__msg_frame(const struct pen_msg *m)
{
	const uint64_t left = m->total - m->at;

	return (struct pen_frame){
		.kind = m->kind,
		.len = left < PEN_PIECE ? (uint32_t)left : PEN_PIECE,
		.id = m->id,
		.at = m->at,
		.total = m->total,
	};
}

uint32_t pen__msg_iov(const struct pen_msg *m, size_t n, struct iovec *out,
		      uint32_t most)
{
	size_t off = m->off;
	uint32_t k = 0;

	for (uint32_t i = m->i; n && i < m->niov && k < most; i++, off = 0) {
		size_t len = m->iov[i].iov_len - off;

		if (!len)
			continue;
		len = len < n ? len : n;
		out[k++] =
			(struct iovec){ (char *)m->iov[i].iov_base + off, len };
		n -= len;
	}
	return k;
}

void pen__msg_advance(struct pen_msg *m, size_t n)
{
	while (n) {
		const size_t len = m->iov[m->i].iov_len - m->off;

		if (n < len) {
			m->off += n;
			return;
		}
		n -= len;
		m->i++;
		m->off = 0;
	}
}

void pen__msg_next(struct pen_peer *p, struct pen_msg **done)
{
	struct pen_msg *m = p->first;

	m->at += pen__msg_frame(m).len;
	p->first = m->next;
	if (!p->first)
		p->last = &p->first;
	if (m->at < m->total) {
		push(p, m);
	} else if (m->kind == PEN_ASK || m->kind == PEN_PROBE) {
		m->kind = 0; /* its reply may come */
	} else {
		m->next = *done;
		*done = m;
	}
}

/* --- answers --- */

static struct pen_answer *take_answer(struct pen_wire *w)
{
	struct pen_answer *a = w->answers;

	if (!a)
		return pen__calloc(1, sizeof(*a));
	w->answers = (struct pen_answer *)a->msg.next;
	a->served = false;
	a->reply.n = 0;
	a->reply.len = 0;
	a->reply.hold = NULL;
	return a;
}

static void fini_answer(struct pen_answer *a)
{
	pen__free(a->reply.iov);
	pen__free(a->reply.room);
	pen__free(a);
}

static void tell_sent(struct pen_wire *w, struct pen_answer *a)
{
	if (a->served && w->server.sent)
		w->server.sent(w->server.arg, &a->reply);
	a->served = false;
}

static void drop_answer(struct pen_wire *w, struct pen_answer *a)
{
	tell_sent(w, a);
	if (a->reply.cap > KEEP_IOV || a->reply.room_cap > KEEP_BYTES) {
		fini_answer(a);
		return;
	}
	a->msg.next = (struct pen_msg *)w->answers;
	w->answers = a;
}

void pen__answers_sent(struct pen_wire *w, struct pen_msg *done)
{
	while (done) {
		struct pen_msg *next = done->next;

		drop_answer(w, answer_of(done));
		done = next;
	}
}

static void send_answer(struct pen_peer *p, struct pen_answer *a)
{
	struct pen_wire *w = p->wire;
	bool gone, idle;

	pthread_mutex_lock(&p->lock);
	gone = p->code != 0;
	idle = !p->first;
	if (!gone)
		push(p, &a->msg);
	if (!gone && idle && !w->transport->defers)
		w->transport->kick(w, p);
	pthread_mutex_unlock(&p->lock);
	p->dirty = true;
	if (gone)
		drop_answer(w, a);
}

int pen__wire_say(struct pen_peer *p, enum pen_frame_kind kind)
{
	struct pen_answer *a = take_answer(p->wire);

	if (!a)
		return PEN_ENOMEM;
	a->msg = (struct pen_msg){ .kind = (uint8_t)kind };
	send_answer(p, a);
	return 0;
}

int pen__reply_add(struct pen_reply *r, const void *p, size_t n)
{
	struct iovec *last = r->n ? &r->iov[r->n - 1] : NULL;
	struct iovec *more;

	if (!n)
		return 0;
	r->len += n;
	if (last && (char *)last->iov_base + last->iov_len == p) {
		last->iov_len += n;
		return 0;
	}
	if (r->n == r->cap) {
		if (r->cap > UINT32_MAX / 2)
			return PEN_ENOMEM;
		more = pen__realloc(r->iov, r->cap ? r->cap * 2 : 64,
				    sizeof(*more));
		if (!more)
			return PEN_ENOMEM;
		r->iov = more;
		r->cap = r->cap ? r->cap * 2 : 64;
	}
	r->iov[r->n++] = (struct iovec){ (void *)(uintptr_t)p, n };
	return 0;
}

void *pen__reply_room(struct pen_reply *r, size_t n)
{
	if (n <= r->room_cap && r->room)
		return r->room;
	pen__free(r->room);
	r->room = pen__alloc(n, 1);
	r->room_cap = r->room ? n : 0;
	return r->room;
}

/* --- serving --- */

static int serve(struct pen_peer *p, const struct pen_intake *in,
		 struct pen_answer *a)
{
	struct pen_wire *w = p->wire;

	if (in->total && !in->buf)
		return pen__fail_nomem(&a->err, "request", in->total);
	if (in->kind == PEN_PROBE)
		return pen__wire_answer_probe(&a->reply, in->buf, in->total,
					      &a->err);
	a->served = true;
	return w->server.serve(w->server.arg, p->rank, in->buf, in->total,
			       &a->reply, &a->err);
}

static int answer(struct pen_peer *p, const struct pen_intake *in)
{
	struct pen_answer *a = take_answer(p->wire);
	int rc;

	if (!a)
		return PEN_ENOMEM;
	pen__err_reset(&a->err);
	rc = serve(p, in, a);
	if (!rc && a->reply.len > PEN_MSG_MAX)
		rc = pen__fail(&a->err, PEN_ENOTSUP, "reply", "is too long");
	if (rc) {
		tell_sent(p->wire, a);
		a->err.code = rc;
		a->fail = (struct iovec){ &a->err, sizeof(a->err) };
		a->msg = (struct pen_msg){ .iov = &a->fail,
					   .niov = 1,
					   .total = sizeof(a->err),
					   .kind = PEN_FAIL };
	} else {
		a->msg = (struct pen_msg){ .iov = a->reply.iov,
					   .niov = a->reply.n,
					   .total = a->reply.len,
					   .kind = PEN_REPLY };
	}
	a->msg.id = in->id;
	send_answer(p, a);
	return 0;
}

static struct pen_intake *take_intake(struct pen_peer *p,
				      const struct pen_frame *f)
{
	struct pen_intake *in = p->wire->intakes;

	if (in)
		p->wire->intakes = in->next;
	else
		in = pen__calloc(1, sizeof(*in));
	if (!in)
		return NULL;
	if (in->cap < f->total) {
		pen__free(in->buf);
		in->buf = pen__alloc(f->total, 1);
		in->cap = in->buf ? f->total : 0;
	}
	in->id = f->id;
	in->kind = f->kind;
	in->total = f->total;
	in->got = 0;
	in->next = p->intakes;
	p->intakes = in;
	return in;
}

static void fini_intake(struct pen_intake *in)
{
	pen__free(in->buf);
	pen__free(in);
}

static void drop_intake(struct pen_wire *w, struct pen_intake *in)
{
	if (in->cap > KEEP_BYTES) {
		fini_intake(in);
		return;
	}
	in->next = w->intakes;
	w->intakes = in;
}

static struct pen_intake **find_intake(struct pen_peer *p, uint64_t id)
{
	struct pen_intake **at = &p->intakes;

	while (*at && (*at)->id != id)
		at = &(*at)->next;
	return at;
}

/* --- receiving --- */

static int begin_request(struct pen_peer *p, const struct pen_frame *f,
			 void **to)
{
	struct pen_intake *in = *find_intake(p, f->id);

	if (p->said_bye)
		return PEN_EDATA;
	if (!in)
		in = take_intake(p, f);
	if (!in)
		return PEN_ENOMEM;
	if (in->total != f->total || in->kind != f->kind)
		return PEN_EDATA;
	*to = in->buf ? (char *)in->buf + f->at : NULL;
	return 0;
}

static int begin_reply(struct pen_peer *p, const struct pen_frame *f, void **to)
{
	struct pen_call *c = find_call(p, f->id);

	if (!c)
		return PEN_EDATA;
	if (f->kind == PEN_FAIL) {
		*to = &c->err;
		return f->len == sizeof(c->err) && f->total == f->len
			       ? 0
			       : PEN_EDATA;
	}
	if (!f->total)
		return c->reply_len ? PEN_EDATA : 0;
	if (!c->reply_len) {
		c->reply_len = f->total;
		c->reply = c->alloc ? c->alloc(c, f->total)
				    : pen__alloc(f->total, 1);
	}
	if (c->reply_len != f->total)
		return PEN_EDATA;
	*to = c->reply ? (char *)c->reply + f->at : NULL;
	return 0;
}

int pen__wire_begin(struct pen_peer *p, const struct pen_frame *f, void **to)
{
	*to = NULL;
	if (f->len > PEN_PIECE || f->total > PEN_MSG_MAX || f->at > f->total ||
	    f->len > f->total - f->at || (f->total && !f->len))
		return PEN_EDATA;
	switch (f->kind) {
	case PEN_ASK:
	case PEN_PROBE:
		return begin_request(p, f, to);
	case PEN_REPLY:
	case PEN_FAIL:
		return begin_reply(p, f, to);
	case PEN_BYE:
	case PEN_PING:
		return f->total ? PEN_EDATA : 0;
	default:
		return PEN_EDATA;
	}
}

static int end_request(struct pen_peer *p, const struct pen_frame *f)
{
	struct pen_intake **at = find_intake(p, f->id);
	struct pen_intake *in = *at;
	int rc;

	if (!in || f->len > in->total - in->got)
		return PEN_EDATA;
	in->got += f->len;
	if (in->got < in->total)
		return 0;
	*at = in->next;
	rc = answer(p, in);
	drop_intake(p->wire, in);
	return rc;
}

static void end_failed(struct pen_peer *p, struct pen_call *c)
{
	struct pen_err e = c->err;

	e.where[sizeof(e.where) - 1] = e.msg[sizeof(e.msg) - 1] = '\0';
	pen__fail(&c->err, e.code < 0 ? e.code : PEN_EIO, e.where,
		  "rank %d (%s): %s", p->rank, p->host,
		  e.msg[0] ? e.msg : "failed");
	c->err.sys = e.sys;
	finish(c, c->err.code);
}

static int end_reply(struct pen_peer *p, const struct pen_frame *f)
{
	struct pen_call *c = find_call(p, f->id);

	if (!c || (f->kind == PEN_REPLY && f->len > c->reply_len - c->got))
		return PEN_EDATA;
	c->got += f->len;
	if (f->kind == PEN_REPLY && c->got < c->reply_len)
		return 0;
	pthread_mutex_lock(&p->lock);
	free_slot(p, f->id);
	pthread_mutex_unlock(&p->lock);
	if (f->kind == PEN_FAIL)
		end_failed(p, c);
	else if (c->reply_len && !c->reply)
		finish(c, pen__fail_nomem(&c->err, "reply", c->reply_len));
	else
		finish(c, 0);
	return 0;
}

int pen__wire_end(struct pen_peer *p, const struct pen_frame *f)
{
	switch (f->kind) {
	case PEN_ASK:
	case PEN_PROBE:
		return end_request(p, f);
	case PEN_REPLY:
	case PEN_FAIL:
		return end_reply(p, f);
	case PEN_BYE:
		p->said_bye = true;
		return 0;
	default:
		return 0;
	}
}

/* --- a peer that is gone --- */

/* Requests end with their calls; answers are collected. */
static struct pen_msg *empty_queue(struct pen_peer *p)
{
	struct pen_msg *answers = NULL, *next;

	for (struct pen_msg *m = p->first; m; m = next) {
		next = m->next;
		if (m->kind == PEN_ASK || m->kind == PEN_PROBE)
			continue;
		m->next = answers;
		answers = m;
	}
	p->first = NULL;
	p->last = &p->first;
	return answers;
}

void pen__peer_gone(struct pen_peer *p, int code, const char *why)
{
	struct pen_slot *slots;
	struct pen_msg *answers;
	uint32_t n;

	if (p->gone)
		return;
	p->gone = true;
	pthread_mutex_lock(&p->lock);
	p->code = code;
	snprintf(p->why, sizeof(p->why), "%s", why);
	answers = empty_queue(p);
	slots = p->slots;
	n = p->nslots;
	p->slots = NULL;
	p->nslots = p->free = 0;
	pthread_mutex_unlock(&p->lock);
	for (uint32_t i = 0; i < n; i++)
		if (slots[i].call)
			finish_failed(slots[i].call, p, code, why);
	pen__free(slots);
	pen__answers_sent(p->wire, answers);
	while (p->intakes) {
		struct pen_intake *in = p->intakes;

		p->intakes = in->next;
		drop_intake(p->wire, in);
	}
}

void pen__wire_drain(struct pen_wire *w)
{
	while (w->answers) {
		struct pen_answer *a = w->answers;

		w->answers = (struct pen_answer *)a->msg.next;
		fini_answer(a);
	}
	while (w->intakes) {
		struct pen_intake *in = w->intakes;

		w->intakes = in->next;
		fini_intake(in);
	}
}
