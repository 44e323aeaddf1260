/*
 * Measures the speed of a wire in a few milliseconds, between rank 0 and a rank
 * of another host if there is one, because that is where it matters. The other
 * ranks wait, and all get the result.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "ddict/wire_int.h"

#define SAMPLE 1024
#define BATCH 256
#define BULK ((uint64_t)64 << 10) /* a large sample, and how many */
#define NBULK 16
#define UNDER_WAY 4
/* Duration of each measurement, and warm-up requests. */
#define SPAN_NS 8000000u
#define WARM 2

struct ask {
	uint64_t n; /* samples; EXPOSE: memory to read */
	uint64_t bulk;
};
#define EXPOSE UINT64_MAX

/* The reply to EXPOSE, then the key. */
struct exposed {
	uint64_t base, n;
};

static int fail_probe(struct pen_err *err)
{
	return pen__fail(err, P_BAD_MESSAGE, "probe", "malformed");
}

/* The memory is kept until the wire closes. */
static int expose(struct pen_wire *w, struct pen_reply *r, struct pen_err *err)
{
	struct exposed *head = pen__reply_room(r, sizeof(*head));
	const void *key;
	size_t nkey;
	int rc;

	if (w->probe_room || !w->transport->expose)
		return fail_probe(err);
	w->probe_room = pen__calloc(NBULK, BULK);
	if (!w->probe_room || !head)
		return pen__fail_nomem(err, "probe", NBULK * BULK);
	*head = (struct exposed){ (uintptr_t)w->probe_room, NBULK * BULK };
	rc = pen__wire_expose(w, w->probe_room, head->n, &key, &nkey, err);
	if (!rc && (pen__reply_add(r, head, sizeof(*head)) ||
		    pen__reply_add(r, key, nkey)))
		rc = pen__fail_nomem(err, "probe", nkey);
	return rc;
}

int pen__wire_answer_probe(struct pen_wire *w, struct pen_reply *r,
			   const void *req, size_t n, struct pen_err *err)
{
	static const char sample[2][SAMPLE];
	struct ask ask;
	char *bulk = NULL;
	int rc = 0;

	if (n != sizeof(ask))
		return fail_probe(err);
	memcpy(&ask, req, sizeof(ask));
	if (ask.n == EXPOSE)
		return expose(w, r, err);
	if (ask.n > (ask.bulk ? NBULK : BATCH))
		return fail_probe(err);
	if (ask.bulk) {
		bulk = pen__reply_room(r, BULK);
		if (!bulk)
			return pen__fail_nomem(err, "probe", BULK);
		memset(bulk, 0, BULK);
	}
	/* not adjacent: they would be merged */
	for (uint64_t i = 0; i < ask.n && !rc; i++)
		rc = bulk ? pen__reply_add(r, bulk, BULK)
			  : pen__reply_add(r, sample[~i & 1], SAMPLE - 1);
	return rc ? pen__fail_nomem(err, "probe", ask.n) : 0;
}

/* One of several pending requests, with room for its reply. */
struct probe {
	struct pen_call call;
	struct ask ask;
	struct iovec iov;
	struct pen_read reads[BATCH];
	char room[NBULK * BULK];
};

/* What is measured. */
struct what {
	int to;
	uint64_t n, size;	   /* samples; 0: only round trips */
	struct pen_region *region; /* NULL: requests */
};

static void *room_of(struct pen_call *c, size_t n)
{
	return n <= NBULK * BULK ? c->arg : NULL;
}

static void send_probe(struct pen_wire *w, struct probe *p,
		       const struct what *what)
{
	p->ask = (struct ask){ what->n, what->size == BULK };
	p->iov = (struct iovec){ &p->ask, sizeof(p->ask) };
	p->call = (struct pen_call){ .to = what->to,
				     .nreq = 1,
				     .req = &p->iov,
				     .alloc = room_of,
				     .arg = p->room };
	if (!what->region) {
		pen__wire_probe(w, &p->call);
		return;
	}
	for (uint64_t i = 0; i < what->n; i++)
		p->reads[i] = (struct pen_read){ p->room + i * what->size,
						 i * what->size, what->size };
	p->call.region = what->region;
	p->call.reads = p->reads;
	p->call.nreads = (uint32_t)what->n;
	pen__wire_read(w, &p->call);
}

static int wait_probe(struct pen_wire *w, struct probe *p, struct pen_err *err)
{
	struct pen_call *c = &p->call;

	return pen__wire_wait(w, &c, 1, err);
}

/* Sends requests, several at a time; *out: requests per second. */
static int rate(struct pen_wire *w, struct probe *p, const struct what *what,
		double *out)
{
	const unsigned depth = what->n ? UNDER_WAY : 1;
	struct pen_err e;
	uint64_t begin = 0, now = 0, count = 0;
	unsigned flying = 0;
	int rc = 0;

	for (unsigned i = 0; !rc; i = (i + 1) % depth) {
		if (flying == depth) {
			rc = wait_probe(w, &p[i], &e);
			flying--;
			now = pen__now_ns();
			if (++count == WARM)
				begin = now;
			if (count > WARM && now - begin > SPAN_NS)
				break;
		}
		send_probe(w, &p[i], what);
		flying++;
	}
	for (unsigned i = 0; i < depth; i++)
		if (!pen__call_done(&p[i].call))
			(void)wait_probe(w, &p[i], &e);
	*out = rc ? 0 : (double)(count - WARM) * 1e9 / (double)(now - begin);
	return rc;
}

int pen__wire_partner(const struct pen_wire *w)
{
	for (int i = 1; i < w->size; i++)
		if (w->peers[i].node != w->peers[0].node)
			return i;
	return 1;
}

/* The partner's memory, to measure reads; NULL: not possible. */
static struct pen_region *open_region(struct pen_wire *w, struct probe *p,
				      int to)
{
	struct pen_region *r = NULL;
	struct exposed e;

	if (!w->transport->read)
		return NULL;
	send_probe(w, p, &(struct what){ .to = to, .n = EXPOSE });
	if (wait_probe(w, p, NULL) || p->call.reply_len < sizeof(e))
		return NULL;
	memcpy(&e, p->room, sizeof(e));
	if (e.n != NBULK * BULK)
		return NULL;
	(void)pen__wire_region(
		w,
		&(struct pen_exposed){ to, e.base, e.n, p->room + sizeof(e),
				       p->call.reply_len - sizeof(e) },
		&r, NULL);
	return r;
}

/* A failure counts as speed 0: another transport may work. */
static int measure(struct pen_wire *w, struct pen_speed *out,
		   struct pen_err *err)
{
	struct probe *p = pen__calloc(UNDER_WAY, sizeof(*p));
	struct what trips = { .to = pen__wire_partner(w) }, small, bulk;
	double r[5] = { 0 };

	if (!p)
		return pen__fail_nomem(err, "probe", UNDER_WAY * sizeof(*p));
	small = (struct what){ trips.to, BATCH, SAMPLE, NULL };
	bulk = (struct what){ trips.to, NBULK, BULK, NULL };
	if (!rate(w, p, &trips, &r[0]) && !rate(w, p, &small, &r[1]) &&
	    !rate(w, p, &bulk, &r[2])) {
		out->round_trip_us = 1e6 / r[0];
		out->samples = r[1] * BATCH;
		out->bytes = r[2] * NBULK * BULK;
		small.region = bulk.region = open_region(w, p, trips.to);
	}
	if (small.region && !rate(w, p, &small, &r[3]) &&
	    !rate(w, p, &bulk, &r[4])) {
		out->read_samples = r[3] * BATCH;
		out->read_bytes = r[4] * NBULK * BULK;
	}
	pen__free(p);
	return 0;
}

int pen__wire_measure(struct pen_wire *w, struct pen_comm *comm,
		      struct pen_speed *out, struct pen_err *err)
{
	int rc = 0;

	*out = (struct pen_speed){ 0 };
	if (comm->rank == 0)
		rc = measure(w, out, err);
	rc = pen__comm_agree(comm, rc, err);
	if (!rc)
		rc = pen__comm_bcast(comm, out, sizeof(*out), 0, err);
	return rc;
}
