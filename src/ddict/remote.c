/*
 * Messages between ranks of different machines. A request has a header, one
 * word per key (its number, or its length in bytes), which keys are bytes, for
 * a put the lengths of the values, then the bytes of the keys and of the
 * values. The reply to a get has a word of flags, one length per key, then the
 * values, each padded to 16 bytes, so that they can be used in place.
 *
 * Ranks run the same program, but messages are checked as if they did not.
 */
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/mem.h"
#include "ddict/dictionary_int.h"

#define NONE UINT64_MAX
#define FROZEN 1u /* flag of a reply */

struct head {
	uint32_t op;
	uint32_t has_bytes;
	uint64_t n;
};

/* Bytes of a value of len bytes that a reply has. */
static uint64_t sent_of(uint32_t op, uint64_t len)
{
	if (op == PEN_OP_HAS)
		return 0;
	return op == PEN_OP_HEADS && len > PEN_HEAD_BYTES ? PEN_HEAD_BYTES
							  : len;
}

static uint64_t pick(const struct pen_key_pick *p, uint64_t i)
{
	return p->at ? p->at[i] : i;
}

/* Total size of the keys; *has_bytes: some of them are bytes. */
static uint64_t measure(const struct pen_key *k, const struct pen_key_pick *p,
			bool *has_bytes)
{
	uint64_t bytes = 0;

	*has_bytes = false;
	for (uint64_t i = 0; i < p->n; i++) {
		const struct pen_key *key = k + pick(p, i);

		*has_bytes |= key->bytes != NULL;
		bytes += key->bytes ? key->number : 0;
	}
	return bytes;
}

static uint8_t *encode_keys(uint8_t *to, const struct pen_key *k,
			    const struct pen_key_pick *p)
{
	for (uint64_t i = 0; i < p->n; i++, to += 8)
		memcpy(to, &k[pick(p, i)].number, 8);
	return to;
}

static uint8_t *encode_bytes(uint8_t *to, const struct pen_key *k,
			     const struct pen_key_pick *p)
{
	for (uint64_t i = 0; i < p->n; i++) {
		const struct pen_key *key = k + pick(p, i);

		if (key->bytes && key->number)
			memcpy(to, key->bytes, key->number);
		to += key->bytes ? key->number : 0;
	}
	return to;
}

static uint8_t *encode_kinds(uint8_t *to, const struct pen_key *k,
			     const struct pen_key_pick *p)
{
	for (uint64_t i = 0; i < p->n; i++)
		to[i] = k[pick(p, i)].bytes != NULL;
	return to + p->n;
}

int pen__remote_make(struct pen_remote *r, enum pen_op op,
		     const struct pen_key *k, const struct pen_value *v,
		     const struct pen_key_pick *p, struct pen_err *err)
{
	const bool put = op == PEN_OP_PUT || op == PEN_OP_ADD;
	bool has_bytes;
	const uint64_t bytes = measure(k, p, &has_bytes);
	const size_t len = sizeof(struct head) + p->n * (put ? 16 : 8) +
			   (has_bytes ? p->n : 0) + bytes;
	struct head h = { (uint32_t)op, has_bytes, p->n };
	uint64_t total = 0; /* of the values */
	uint8_t *to;

	*r = (struct pen_remote){ .op = op };
	r->buf = pen__alloc(len, 1);
	r->iov = pen__alloc(1 + (put ? p->n : 0), sizeof(*r->iov));
	if (!r->buf || !r->iov)
		return pen__fail_nomem(err, "dictionary", len);
	memcpy(r->buf, &h, sizeof(h));
	to = encode_keys((uint8_t *)r->buf + sizeof(h), k, p);
	for (uint64_t i = 0; put && i < p->n; i++, to += 8)
		memcpy(to, &v[pick(p, i)].len, 8);
	if (has_bytes) {
		to = encode_kinds(to, k, p);
		encode_bytes(to, k, p);
	}
	r->iov[0] = (struct iovec){ r->buf, len };
	r->call.nreq = 1;
	for (uint64_t i = 0; put && i < p->n; i++) {
		const struct pen_value *x = v + pick(p, i);

		total += x->len;
		if (x->len)
			r->iov[r->call.nreq++] =
				(struct iovec){ (void *)(uintptr_t)x->data,
						x->len };
	}
	r->call.req = r->iov;
	if (p->n && total / p->n >= PEN_BULK)
		r->call.lane = PEN_LANE_BULK;
	return 0;
}

int pen__remote_send(struct pen_ddict *d, struct pen_remote *r, int to,
		     struct pen_err *err)
{
	if ((uint64_t)getpid() != d->pid)
		return pen__fail(
			err, P_BAD_CALL, "dictionary",
			"a forked process reaches only the shards on its "
			"machine; open the dictionary after the fork");
	r->call.to = to;
	if (r->reads)
		pen__wire_read(d->wire, &r->call);
	else
		pen__wire_call(d->wire, &r->call);
	return 0;
}

int pen__remote_wait(struct pen_ddict *d, struct pen_remote *r,
		     struct pen_err *err)
{
	struct pen_call *c = &r->call;
	const uint64_t since = pen__now_ns();
	const int rc = pen__wire_wait(d->wire, &c, 1, err);

	atomic_fetch_add(&d->wait_ns, pen__now_ns() - since);
	return rc;
}

static int fail_reply(const struct pen_remote *r, struct pen_err *err)
{
	return pen__fail(err, P_BAD_MESSAGE, "dictionary",
			 "the reply of rank %d is malformed; run one version "
			 "of penstock on all ranks",
			 r->call.to);
}

int pen__remote_values(struct pen_remote *r, const struct pen_key_pick *p,
		       struct pen_value *values, struct pen_err *err)
{
	struct pen_bytes b = pen__bytes(r->call.reply, r->call.reply_len);
	const uint8_t *lens = pen__take(&b, pen__round16(p->n * 8 + 8));
	uint64_t flags;

	if (!lens)
		return fail_reply(r, err);
	memcpy(&flags, lens, 8);
	r->frozen = flags & FROZEN;
	lens += 8;
	for (uint64_t i = 0; i < p->n; i++) {
		struct pen_value *v = values + pick(p, i);
		uint64_t len;

		memcpy(&len, lens + 8 * i, 8);
		*v = (struct pen_value){ 0 };
		if (len == NONE)
			continue;
		v->len = len;
		v->data = lens;
		if (r->op == PEN_OP_HAS)
			continue;
		len = sent_of(r->op, len);
		if (len > pen__bytes_left(&b))
			return fail_reply(r, err);
		v->data = b.p;
		(void)pen__take(&b, pen__round16(len));
	}
	return b.bad ? fail_reply(r, err) : 0;
}

void pen__remote_fini(struct pen_remote *r)
{
	pen__free(r->buf);
	pen__free(r->iov);
	pen__free(r->reads);
	pen__free(r->call.reply);
	r->buf = r->iov = r->call.reply = NULL;
	r->reads = NULL;
}

/* --- serving --- */

struct request {
	struct head h;
	struct pen_key *keys;
	struct pen_value *values;
	struct pen_bytes rest;
};

static int fail_request(struct pen_err *err)
{
	return pen__fail(err, P_BAD_MESSAGE, "dictionary",
			 "a request is malformed; run one version of penstock "
			 "on all ranks");
}

static uint64_t word_at(const uint8_t *p, uint64_t i)
{
	uint64_t v;

	memcpy(&v, p + 8 * i, 8);
	return v;
}

static int decode_keys(struct request *q, const uint8_t *words,
		       struct pen_err *err)
{
	struct pen_bytes *b = &q->rest;
	const uint8_t *kinds = NULL;

	if (q->h.has_bytes) {
		kinds = pen__take(b, q->h.n);
		if (!kinds && q->h.n)
			return fail_request(err);
	}
	for (uint64_t i = 0; i < q->h.n; i++) {
		struct pen_key *k = &q->keys[i];

		*k = (struct pen_key){ NULL, word_at(words, i) };
		if (!kinds || !kinds[i])
			continue;
		/* an empty key must not be NULL either */
		k->bytes = pen__take(b, k->number);
		if (!k->bytes)
			return fail_request(err);
	}
	return 0;
}

static int decode_values(struct request *q, const uint8_t *lens,
			 struct pen_err *err)
{
	for (uint64_t i = 0; i < q->h.n; i++) {
		struct pen_value *v = &q->values[i];

		v->len = word_at(lens, i);
		v->data = pen__take(&q->rest, v->len);
		if (q->rest.bad)
			return fail_request(err);
	}
	return 0;
}

static int decode(struct request *q, const void *req, size_t n,
		  struct pen_err *err)
{
	const uint8_t *p, *words, *lens = NULL;
	int rc;

	*q = (struct request){ .rest = pen__bytes(req, n) };
	p = pen__take(&q->rest, sizeof(q->h));
	if (!p)
		return fail_request(err);
	memcpy(&q->h, p, sizeof(q->h));
	if (q->h.n > n / 8)
		return fail_request(err);
	words = pen__take(&q->rest, q->h.n * 8);
	if (q->h.op == PEN_OP_PUT || q->h.op == PEN_OP_ADD)
		lens = pen__take(&q->rest, q->h.n * 8);
	q->keys = pen__alloc(q->h.n, sizeof(*q->keys) + sizeof(*q->values));
	if (!q->keys)
		return pen__fail_nomem(err, "dictionary", q->h.n * 32);
	q->values = (void *)(q->keys + q->h.n);
	if (q->rest.bad)
		return fail_request(err);
	rc = decode_keys(q, words, err);
	if (!rc && lens)
		rc = decode_values(q, lens, err);
	return rc;
}

/* Before the lengths, not sent: the pin that holds the values. */
struct room {
	struct pen_pin pin;
	uint64_t flags;
	uint64_t len[];
};

static int reply_values(struct pen_reply *out, struct room *room,
			const struct request *q, struct pen_err *err)
{
	const uint64_t n = q->h.n;
	int rc = 0;

	if (!(n & 1))
		room->len[n] = 0;
	for (uint64_t i = 0; i < n; i++)
		room->len[i] = q->values[i].data ? q->values[i].len : NONE;
	rc = pen__reply_add(out, &room->flags, pen__round16(n * 8 + 8));
	for (uint64_t i = 0; i < n && !rc; i++) {
		const struct pen_value *v = &q->values[i];
		const uint64_t len = v->data ? sent_of(q->h.op, v->len) : 0;

		if (len)
			rc = pen__reply_add(out, v->data, pen__round16(len));
	}
	return rc ? pen__fail_nomem(err, "dictionary", n * 16) : 0;
}

static int serve_values(struct pen_ddict *d, struct request *q,
			struct pen_reply *out, struct pen_err *err)
{
	struct room *room =
		pen__reply_room(out, sizeof(*room) + q->h.n * 8 + 8);
	int rc;

	if (!room)
		return pen__fail_nomem(err, "dictionary", q->h.n * 8);
	rc = pen__seg_pin(d->mine, &room->pin, err);
	if (rc)
		return rc;
	out->hold = room;
	if (q->h.op == PEN_OP_POP) {
		if (q->h.n != 1)
			return fail_request(err);
		q->values[0] = (struct pen_value){ 0 };
		rc = pen__shard_pop(d->mine, q->keys[0], q->values, err);
		if (rc == PEN_ENOTFOUND)
			rc = 0;
	} else {
		rc = pen__shard_find(d->mine, q->keys, NULL, q->h.n, q->values,
				     err);
	}
	if (rc)
		return rc;
	pen__seg_settle(d->mine, &room->pin);
	room->flags = d->mine->head && pen__seg_frozen(d->mine) ? FROZEN : 0;
	pen__shard_count(d->mine, 0, 0, q->h.n);
	return reply_values(out, room, q, err);
}

/* This thread must not wait: the caller tries again with the rest. */
static int serve_put(struct pen_ddict *d, const struct request *q,
		     struct pen_reply *out, struct pen_err *err)
{
	uint64_t *done = pen__reply_room(out, sizeof(*done));
	struct pen_put put;
	int rc;

	if (!done || pen__reply_add(out, done, sizeof(*done)))
		return pen__fail_nomem(err, "dictionary", sizeof(*done));
	rc = pen__shard_put_some(d->mine, q->keys, q->values, q->h.n, &put,
				 err);
	*done = put.done;
	return rc == PEN_ENOMEM && put.held ? 0 : rc;
}

static int serve_add(struct pen_ddict *d, const struct request *q,
		     struct pen_reply *out, struct pen_err *err)
{
	uint64_t *old = pen__reply_room(out, sizeof(*old)), n;

	if (!old || pen__reply_add(out, old, sizeof(*old)))
		return pen__fail_nomem(err, "dictionary", sizeof(*old));
	if (q->h.n != 1 || q->values[0].len != sizeof(n))
		return fail_request(err);
	memcpy(&n, q->values[0].data, sizeof(n));
	return pen__shard_add(d->mine, q->keys[0], n, old, err);
}

int pen__remote_put_done(const struct pen_remote *r, uint64_t n,
			 struct pen_put *put, struct pen_err *err)
{
	if (r->call.reply_len != sizeof(put->done))
		return fail_reply(r, err);
	memcpy(&put->done, r->call.reply, sizeof(put->done));
	put->held = put->done < n;
	return put->done <= n ? 0 : fail_reply(r, err);
}

static int serve_stats(struct pen_ddict *d, struct pen_reply *out,
		       struct pen_err *err)
{
	struct pen_shard_stats *s = pen__reply_room(out, sizeof(*s));

	if (!s)
		return pen__fail_nomem(err, "dictionary", sizeof(*s));
	pen__shard_stats(d->mine, s);
	memcpy(s->host, d->host, sizeof(s->host));
	s->shard = (uint32_t)d->rank;
	return pen__reply_add(out, s, sizeof(*s))
		       ? pen__fail_nomem(err, "dictionary", 16)
		       : 0;
}

struct keys {
	struct pen_buf words, kinds, bytes;
	uint64_t n;
};

static int add_key(void *arg, struct pen_key k)
{
	struct keys *to = arg;

	pen__buf_le(&to->words, k.number, 8);
	pen__buf_le(&to->kinds, k.bytes != NULL, 1);
	if (k.bytes)
		pen__buf_put(&to->bytes, k.bytes, k.number);
	to->n++;
	return 0;
}

/* In the format of a request, so that decode() can read it. */
static int serve_keys(struct pen_ddict *d, struct pen_reply *out,
		      struct pen_err *err)
{
	struct keys k = { 0 };
	struct head h = { PEN_OP_KEYS, 1, 0 };
	uint8_t *room = NULL;
	size_t len;
	int rc;

	rc = pen__shard_keys(d->mine, add_key, &k, err);
	len = sizeof(h) + k.words.n + k.kinds.n + k.bytes.n;
	if (!rc && !k.words.bad && !k.kinds.bad && !k.bytes.bad)
		room = pen__reply_room(out, len);
	if (!rc && (!room || pen__reply_add(out, room, len)))
		rc = pen__fail_nomem(err, "dictionary", len);
	if (!rc) {
		h.n = k.n;
		memcpy(room, &h, sizeof(h));
		room += sizeof(h);
		if (k.n)
			memcpy(room, k.words.p, k.words.n);
		room += k.words.n;
		if (k.n)
			memcpy(room, k.kinds.p, k.kinds.n);
		room += k.kinds.n;
		if (k.bytes.n)
			memcpy(room, k.bytes.p, k.bytes.n);
	}
	pen__buf_fini(&k.words);
	pen__buf_fini(&k.kinds);
	pen__buf_fini(&k.bytes);
	return rc;
}

int pen__remote_each_key(const struct pen_remote *r,
			 int (*fn)(void *, struct pen_key), void *arg,
			 struct pen_err *err)
{
	struct request q;
	int rc = decode(&q, r->call.reply, r->call.reply_len, err);

	for (uint64_t i = 0; i < q.h.n && !rc; i++)
		rc = fn(arg, q.keys[i]);
	pen__free(q.keys);
	return rc;
}

int pen__remote_keys(const struct pen_remote *r, struct pen_key **keys,
		     struct pen_err *err)
{
	struct request q;
	int rc = decode(&q, r->buf, r->iov[0].iov_len, err);

	*keys = q.keys;
	return rc;
}

static int serve(struct pen_ddict *d, struct request *q, struct pen_reply *out,
		 struct pen_err *err)
{
	switch (q->h.op) {
	case PEN_OP_GET:
	case PEN_OP_HEADS:
	case PEN_OP_HAS:
	case PEN_OP_POP:
		return serve_values(d, q, out, err);
	case PEN_OP_PUT:
		return serve_put(d, q, out, err);
	case PEN_OP_ADD:
		return serve_add(d, q, out, err);
	case PEN_OP_COMPACT:
		return pen__shard_compact(d->mine, err);
	case PEN_OP_CLEAR:
		return pen__shard_clear(d->mine, err);
	case PEN_OP_FREEZE:
		return pen__shard_freeze(d->mine, err);
	case PEN_OP_STATS:
		return serve_stats(d, out, err);
	case PEN_OP_KEYS:
		return serve_keys(d, out, err);
	case PEN_OP_INDEX:
		if (q->h.n != 1)
			break;
		return pen__direct_serve(d, q->keys[0].number, out, err);
	}
	return fail_request(err);
}

int pen__ddict_serve(void *arg, int from, const void *req, size_t n,
		     struct pen_reply *out, struct pen_err *err)
{
	struct request q;
	int rc = decode(&q, req, n, err);

	(void)from;
	if (!rc)
		rc = serve(arg, &q, out, err);
	pen__free(q.keys);
	return rc;
}

void pen__ddict_sent(void *arg, struct pen_reply *r)
{
	const struct pen_ddict *d = arg;
	const struct room *room = r->hold;

	if (room)
		pen__seg_unpin(d->mine, room->pin);
}
