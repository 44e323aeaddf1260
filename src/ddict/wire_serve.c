/*
 * Serving: from pieces to requests, and from the server's replies to messages.
 *
 * In the steady state nothing is allocated: answers and intakes are reused with
 * their memory, unless it is unusually large.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "ddict/wire_int.h"

/* Limits of the memory kept for reuse. */
#define KEEP_BYTES ((size_t)1 << 20)
#define KEEP_IOV 4096

static struct pen_wire_answer *answer_of(struct pen_msg *m)
{
	_Static_assert(offsetof(struct pen_wire_answer, msg) == 0,
		       "first member");
	return (struct pen_wire_answer *)m;
}

/* --- answers --- */

static struct pen_wire_answer *take_answer(struct pen_wire *w)
{
	struct pen_wire_answer *a = w->answers;

	if (!a)
		return pen__calloc(1, sizeof(*a));
	w->answers = (struct pen_wire_answer *)a->msg.next;
	a->served = false;
	a->reply.n = 0;
	a->reply.len = 0;
	a->reply.hold = NULL;
	return a;
}

static void fini_answer(struct pen_wire_answer *a)
{
	pen__free(a->reply.iov);
	pen__free(a->reply.room);
	pen__free(a);
}

static void tell_sent(struct pen_wire *w, struct pen_wire_answer *a)
{
	if (a->served && w->server.sent)
		w->server.sent(w->server.arg, &a->reply);
	a->served = false;
}

static void drop_answer(struct pen_wire *w, struct pen_wire_answer *a)
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

static void send_answer(struct pen_wire_peer *p, struct pen_wire_answer *a)
{
	struct pen_wire *w = p->wire;
	bool gone, idle;

	pthread_mutex_lock(&p->lock);
	gone = p->kind != 0;
	idle = !p->first;
	if (!gone)
		pen__msg_push(p, &a->msg);
	if (!gone && idle && !w->transport->defers)
		w->transport->kick(w, p);
	pthread_mutex_unlock(&p->lock);
	p->dirty = true;
	if (gone)
		drop_answer(w, a);
}

int pen__wire_say(struct pen_wire_peer *p, enum pen_frame_kind kind)
{
	struct pen_wire_answer *a = take_answer(p->wire);

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

static int serve(struct pen_wire_peer *p, const struct pen_intake *in,
		 struct pen_wire_answer *a)
{
	struct pen_wire *w = p->wire;

	if (in->total && !in->buf)
		return pen__fail_nomem(&a->err, "request", in->total);
	if (in->kind == PEN_PROBE)
		return pen__wire_answer_probe(w, &a->reply, in->buf, in->total,
					      &a->err);
	a->served = true;
	return w->server.serve(w->server.arg, p->rank, in->buf, in->total,
			       &a->reply, &a->err);
}

static int answer(struct pen_wire_peer *p, const struct pen_intake *in)
{
	struct pen_wire_answer *a = take_answer(p->wire);
	int rc;

	if (!a)
		return PEN_ENOMEM;
	pen__err_reset(&a->err);
	rc = serve(p, in, a);
	if (!rc && a->reply.len > PEN_MSG_MAX)
		rc = pen__fail(&a->err, P_OVER_LIMIT, "reply",
			       "longer than 512 GiB");
	if (rc) {
		tell_sent(p->wire, a);
		pen__err_code(&a->err, rc);
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

static struct pen_intake *take_intake(struct pen_wire_peer *p,
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

static struct pen_intake **find_intake(struct pen_wire_peer *p, uint64_t id)
{
	struct pen_intake **at = &p->intakes;

	while (*at && (*at)->id != id)
		at = &(*at)->next;
	return at;
}

/* --- pieces of requests --- */

int pen__request_begin(struct pen_wire_peer *p, const struct pen_frame *f,
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

int pen__request_end(struct pen_wire_peer *p, const struct pen_frame *f)
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

void pen__requests_drop(struct pen_wire_peer *p)
{
	while (p->intakes) {
		struct pen_intake *in = p->intakes;

		p->intakes = in->next;
		drop_intake(p->wire, in);
	}
}

void pen__wire_drain(struct pen_wire *w)
{
	while (w->answers) {
		struct pen_wire_answer *a = w->answers;

		w->answers = (struct pen_wire_answer *)a->msg.next;
		fini_answer(a);
	}
	while (w->intakes) {
		struct pen_intake *in = w->intakes;

		w->intakes = in->next;
		fini_intake(in);
	}
}
