/*
 * Calls: from requests to messages in pieces, and from pieces back to replies
 * that complete a call. Serving is in wire_serve.c.
 *
 * A reply is matched to its call by an id from the caller, which is checked: a
 * peer can only complete a call that waits for it and fill the room of its
 * reply.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/futex.h"
#include "base/mem.h"
#include "ddict/wire_int.h"

enum { PENDING, AWAITED, DONE };

/* --- completion of a call --- */

void pen__call_finish(struct pen_call *c, int code)
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
	/* from here on, the call belongs to its owner */
	if (was == AWAITED)
		pen__futex_wake(&c->state);
}

void pen__call_fail(struct pen_call *c, const struct pen_wire_peer *p, int kind,
		    const char *why)
{
	char where[96];

	snprintf(where, sizeof(where), "rank %d (%s)", p->rank, p->host);
	pen__call_finish(c, pen__fail(&c->err, kind, where, "%s", why));
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

/* --- ids of calls; peer's lock held --- */

static int grow_slots(struct pen_wire_peer *p)
{
	const uint32_t n = p->nslots ? p->nslots * 2 : 16;
	struct pen_wire_slot *s;

	if (n > INT_MAX)
		return PEN_ENOMEM;
	s = pen__realloc(p->slots, n, sizeof(*s));
	if (!s)
		return PEN_ENOMEM;
	for (uint32_t i = p->nslots; i < n; i++)
		s[i] = (struct pen_wire_slot){ .next = i + 1 };
	p->slots = s;
	p->nslots = n;
	return 0;
}

static int take_slot(struct pen_wire_peer *p, struct pen_call *c, uint64_t *id)
{
	struct pen_wire_slot *s;

	if (p->free == p->nslots && grow_slots(p))
		return PEN_ENOMEM;
	s = &p->slots[p->free];
	*id = (uint64_t)s->age << 32 | p->free;
	p->free = s->next;
	s->call = c;
	return 0;
}

static void free_slot(struct pen_wire_peer *p, uint64_t id)
{
	struct pen_wire_slot *s = &p->slots[(uint32_t)id];

	s->call = NULL;
	s->age++;
	s->next = p->free;
	p->free = (uint32_t)id;
}

/* The call that a reply may complete: one whose request was sent completely. */
static struct pen_call *find_call(struct pen_wire_peer *p, uint64_t id)
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

void pen__msg_push(struct pen_wire_peer *p, struct pen_msg *m)
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

/* True: the call has failed, since this is a forked child. */
static bool is_child(const struct pen_wire *w, struct pen_call *c)
{
	if (w->pid == getpid())
		return false;
	pen__call_fail(c, &w->peers[c->to], P_NO_TRANSPORT,
		       "a forked process cannot reach it; send requests before "
		       "the fork or from the parent");
	return true;
}

static void call(struct pen_wire *w, struct pen_call *c, uint8_t kind)
{
	struct pen_wire_peer *p;
	bool idle;
	int failed;

	c->code = 0;
	c->reply = NULL;
	c->reply_len = c->got = 0;
	c->out = (struct pen_msg){ .iov = c->req, .kind = kind };
	if (c->to < 0 || c->to >= w->size || c->to == w->rank || c->nreq < 0) {
		pen__call_finish(
			c,
			pen__fail(&c->err, P_BAD_CALL, "wire",
				  "%d is not another rank; there are %d ranks",
				  c->to, w->size));
		return;
	}
	if (!total_of(c->req, c->nreq, &c->out.total)) {
		pen__call_finish(
			c,
			pen__fail(
				&c->err, P_TOO_LONG, "wire",
				"the request to rank %d is longer than 512 GiB",
				c->to));
		return;
	}
	c->out.niov = (uint32_t)c->nreq;
	p = &w->peers[c->to];
	if (is_child(w, c))
		return;
	pthread_mutex_lock(&p->lock);
	failed = p->kind;
	if (!failed && take_slot(p, c, &c->out.id))
		failed = P_NO_MEMORY;
	if (!failed) {
		idle = !p->first;
		pen__msg_push(p, &c->out);
		if (idle)
			w->transport->kick(w, p);
	}
	pthread_mutex_unlock(&p->lock);
	if (failed) /* p->why was written before p->kind, and only once */
		pen__call_fail(c, p, failed,
			       failed == P_NO_MEMORY ? "out of memory"
						     : p->why);
}

void pen__wire_call(struct pen_wire *w, struct pen_call *c)
{
	if (c->lane == PEN_LANE_BULK && w->bulk)
		w = w->bulk;
	else if (c->lane == PEN_LANE_READER && w->reader)
		w = w->reader;
	call(w, c, PEN_ASK);
}

void pen__wire_read(struct pen_wire *front, struct pen_call *c)
{
	struct pen_wire *w = front->reader ? front->reader : front;
	const struct pen_region *r = c->region;
	bool ok = w->transport && w->transport->read && r->rank == c->to;

	c->code = 0;
	c->nstarted = c->nlanded = 0;
	c->broken = false;
	for (uint32_t i = 0; i < c->nreads; i++)
		ok = ok && c->reads[i].off <= r->n &&
		     c->reads[i].n <= r->n - c->reads[i].off;
	if (!ok)
		pen__call_finish(c, pen__fail(&c->err, P_BAD_CALL, "wire",
					      "a read outside of the memory "
					      "of rank %d",
					      c->to));
	else if (!is_child(w, c))
		w->transport->read(w, c);
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

void pen__msg_next(struct pen_wire_peer *p, struct pen_msg **done)
{
	struct pen_msg *m = p->first;

	m->at += pen__msg_frame(m).len;
	p->first = m->next;
	if (!p->first)
		p->last = &p->first;
	if (m->at < m->total) {
		pen__msg_push(p, m);
	} else if (m->kind == PEN_ASK || m->kind == PEN_PROBE) {
		m->kind = 0; /* its reply may arrive */
	} else {
		m->next = *done;
		*done = m;
	}
}

/* --- receiving --- */

static int begin_reply(struct pen_wire_peer *p, const struct pen_frame *f,
		       void **to)
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

int pen__wire_begin(struct pen_wire_peer *p, const struct pen_frame *f,
		    void **to)
{
	*to = NULL;
	if (f->len > PEN_PIECE || f->total > PEN_MSG_MAX || f->at > f->total ||
	    f->len > f->total - f->at || (f->total && !f->len))
		return PEN_EDATA;
	switch (f->kind) {
	case PEN_ASK:
	case PEN_PROBE:
		return pen__request_begin(p, f, to);
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

static void end_failed(struct pen_wire_peer *p, struct pen_call *c)
{
	struct pen_err e = c->err;

	e.where[sizeof(e.where) - 1] = e.msg[sizeof(e.msg) - 1] = '\0';
	if (e.code >= 0) {
		e.code = PEN_EIO;
		e.number = P_RANK_FAILED;
	}
	pen__call_finish(c, pen__fail_as(&c->err, &e, e.where,
					 "rank %d (%s): %s", p->rank, p->host,
					 e.msg[0] ? e.msg : "failed"));
}

static int end_reply(struct pen_wire_peer *p, const struct pen_frame *f)
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
		pen__call_finish(
			c, pen__fail_nomem(&c->err, "reply", c->reply_len));
	else
		pen__call_finish(c, 0);
	return 0;
}

int pen__wire_end(struct pen_wire_peer *p, const struct pen_frame *f)
{
	switch (f->kind) {
	case PEN_ASK:
	case PEN_PROBE:
		return pen__request_end(p, f);
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

/* --- lost peers --- */

bool pen__peer_finished(struct pen_wire_peer *p)
{
	bool idle;

	pthread_mutex_lock(&p->lock);
	idle = !p->first;
	pthread_mutex_unlock(&p->lock);
	return p->said_bye && idle;
}

/* Requests end with their calls; returns the answers. */
static struct pen_msg *empty_queue(struct pen_wire_peer *p)
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

void pen__peer_gone(struct pen_wire_peer *p, int kind, const char *why)
{
	struct pen_wire_slot *slots;
	struct pen_msg *answers;
	uint32_t n;

	if (p->gone)
		return;
	p->gone = true;
	pthread_mutex_lock(&p->lock);
	p->kind = kind;
	snprintf(p->why, sizeof(p->why), "%s", why);
	answers = empty_queue(p);
	slots = p->slots;
	n = p->nslots;
	p->slots = NULL;
	p->nslots = p->free = 0;
	pthread_mutex_unlock(&p->lock);
	for (uint32_t i = 0; i < n; i++)
		if (slots[i].call)
			pen__call_fail(slots[i].call, p, kind, why);
	pen__free(slots);
	pen__answers_sent(p->wire, answers);
	pen__requests_drop(p);
}
