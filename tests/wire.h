/*
 * Requests between ranks for the tests of the wire, and checks of the replies.
 */
#ifndef TEST_WIRE_H
#define TEST_WIRE_H

#include <sys/uio.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/team.h"
#include "ddict/wire.h"
#include "test.h"

/* What a rank serves: n bytes from a pool, in pieces. */
enum { WHAT_ECHO, WHAT_BYTES, WHAT_FAIL };

struct order {
	uint32_t what;
	uint32_t pieces;
	uint64_t n;
	uint64_t from;
};

#define POOL ((size_t)2 << 20)

struct side {
	struct pen_wire *wire;
	struct pen_comm *comm;
	uint8_t *pool;
	atomic_uint served, sent;
	void *echo;
};

static inline int serve(void *arg, int from, const void *req, size_t n,
			struct pen_reply *out, struct pen_err *err)
{
	struct side *s = arg;
	struct order o;

	atomic_fetch_add(&s->served, 1);
	CHECK((uintptr_t)req % 16 == 0);
	CHECK(from >= 0 && from < s->comm->size && from != s->comm->rank);
	if (n < sizeof(o))
		return n ? pen__fail(err, P_DAMAGED, "order", "short") : 0;
	memcpy(&o, req, sizeof(o));
	if (o.what == WHAT_FAIL)
		return pen__fail(err, P_NOT_FOUND, "the key", "not here");
	if (o.what == WHAT_ECHO) {
		void *room = pen__reply_room(out, n);

		memcpy(room, req, n);
		return pen__reply_add(out, room, n);
	}
	for (uint32_t i = 0; i < o.pieces; i++) {
		uint64_t at = (o.from + i * 4099u) % (POOL - o.n);

		if (pen__reply_add(out, s->pool + at, o.n))
			return pen__fail_nomem(err, "order", o.n);
	}
	return 0;
}

static inline void sent(void *arg, struct pen_reply *r)
{
	struct side *s = arg;

	(void)r;
	atomic_fetch_add(&s->sent, 1);
}

static inline uint8_t *make_pool(int rank)
{
	uint8_t *p = malloc(POOL);
	struct pen_rng r = pen__rng(7, (uint64_t)rank);

	for (size_t i = 0; i < POOL; i += 8) {
		uint64_t v = pen__mix64(r.key + i);

		memcpy(p + i, &v, 8);
	}
	return p;
}

/* A call and its request. */
struct asked {
	struct pen_call call;
	struct order order;
	struct iovec iov[2];
};

static inline void ask(struct side *s, struct asked *a, int to, struct order o)
{
	memset(a, 0, sizeof(*a));
	a->order = o;
	a->iov[0] = (struct iovec){ &a->order, sizeof(o) };
	a->call.to = to;
	a->call.req = a->iov;
	a->call.nreq = 1;
	pen__wire_call(s->wire, &a->call);
}

static inline int get(struct side *s, struct asked *a, struct pen_err *e)
{
	struct pen_call *c = &a->call;

	return pen__wire_wait(s->wire, &c, 1, e);
}

static inline void check_bytes(const struct asked *a, const uint8_t *pool)
{
	const struct order *o = &a->order;
	const uint8_t *p = a->call.reply;

	if (!CHECK_EQ(a->call.code, 0) ||
	    !CHECK_EQ(a->call.reply_len, o->n * o->pieces))
		return;
	for (uint32_t i = 0; i < o->pieces; i++) {
		uint64_t at = (o->from + i * 4099u) % (POOL - o->n);

		CHECK(!o->n || !memcmp(p + i * o->n, pool + at, o->n));
	}
}

static inline void *no_room(struct pen_call *c, size_t n)
{
	(void)c, (void)n;
	return NULL;
}

/* Every kind of call to one rank. */
static inline void kinds(struct side *s, int to, const uint8_t *pool)
{
	static const struct order orders[] = {
		{ WHAT_BYTES, 1, 1, 5 },	  { WHAT_BYTES, 0, 1, 5 },
		{ WHAT_BYTES, 256, 1000, 77 },	  { WHAT_BYTES, 3000, 10, 0 },
		{ WHAT_BYTES, 3, 700000, 12345 },
	};
	struct pen_err e = { 0 };
	struct asked a;

	for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
		ask(s, &a, to, orders[i]);
		CHECK_EQ(get(s, &a, &e), 0);
		check_bytes(&a, pool);
		pen__free(a.call.reply);
	}
	ask(s, &a, to, (struct order){ .what = WHAT_FAIL });
	CHECK_EQ(get(s, &a, &e), PEN_ENOTFOUND);
	CHECK_EQ(e.code, PEN_ENOTFOUND);
	CHECK_STR(e.where, "the key");
	CHECK(strstr(e.msg, "rank ") == e.msg && strstr(e.msg, "not here"));
	/* an empty request and reply */
	memset(&a, 0, sizeof(a));
	a.call.to = to;
	pen__wire_call(s->wire, &a.call);
	CHECK_EQ(get(s, &a, &e), 0);
	CHECK(!a.call.reply && !a.call.reply_len);
	/* no room for the reply: the next call is not affected */
	memset(&a, 0, sizeof(a));
	a.order = orders[4];
	a.iov[0] = (struct iovec){ &a.order, sizeof(a.order) };
	a.call = (struct pen_call){
		.to = to, .req = a.iov, .nreq = 1, .alloc = no_room
	};
	pen__wire_call(s->wire, &a.call);
	CHECK_EQ(get(s, &a, &e), PEN_ENOMEM);
}

/* A long request is echoed. */
static inline void echo(struct side *s, int to)
{
	const size_t n = 1u << 20;
	uint8_t *p = malloc(n);
	struct pen_err e = { 0 };
	struct asked a = { 0 };

	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)(i * 31 + i / 4096);
	a.order = (struct order){ .what = WHAT_ECHO };
	a.iov[0] = (struct iovec){ &a.order, sizeof(a.order) };
	a.iov[1] = (struct iovec){ p, n };
	a.call.to = to;
	a.call.req = a.iov;
	a.call.nreq = 2;
	pen__wire_call(s->wire, &a.call);
	CHECK_EQ(get(s, &a, &e), 0);
	if (CHECK_EQ(a.call.reply_len, n + sizeof(a.order)))
		CHECK(!memcmp((char *)a.call.reply + sizeof(a.order), p, n));
	pen__free(a.call.reply);
	free(p);
}

#define MANY 32

/* Many pending calls to all ranks, of all sizes, awaited in reverse order. */
static inline void crowd(struct side *s, uint8_t *const *pools, uint64_t seed)
{
	struct asked *a = calloc(MANY, sizeof(*a));
	const int size = s->comm->size;
	struct pen_rng r = pen__rng(seed, (uint64_t)s->comm->rank);
	struct pen_err e = { 0 };

	for (int i = 0; i < MANY; i++) {
		int to = (s->comm->rank + 1 + i % (size - 1)) % size;
		uint64_t x = pen__rng_at(r.key, (uint64_t)i);
		struct order o = { WHAT_BYTES, (uint32_t)(x % 120),
				   x >> 32 & 0xfff, x >> 44 };

		if (i % 16 == 3)
			o = (struct order){ WHAT_BYTES, 1, 600000, x >> 50 };
		ask(s, &a[i], to, o);
	}
	for (int i = MANY - 1; i >= 0; i--) {
		CHECK_EQ(get(s, &a[i], &e), 0);
		check_bytes(&a[i], pools[a[i].call.to]);
		pen__free(a[i].call.reply);
	}
	free(a);
}

#endif
