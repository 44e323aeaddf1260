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
#define UNDER_WAY 4
/* Duration of each of the two measurements, and warm-up requests. */
#define SPAN_NS 8000000u
#define WARM 2

struct ask {
	uint64_t n; /* samples */
};

int pen__wire_answer_probe(struct pen_reply *r, const void *req, size_t n,
			   struct pen_err *err)
{
	static const char sample[2][SAMPLE];
	struct ask ask;
	int rc = 0;

	if (n != sizeof(ask))
		return pen__fail(err, P_BAD_MESSAGE, "probe", "wrong length");
	memcpy(&ask, req, sizeof(ask));
	if (ask.n > BATCH)
		return pen__fail(err, P_BAD_MESSAGE, "probe",
				 "too many samples requested");
	/* not adjacent: they would be merged */
	for (uint64_t i = 0; i < ask.n && !rc; i++)
		rc = pen__reply_add(r, sample[~i & 1], SAMPLE - 1);
	return rc ? pen__fail_nomem(err, "probe", ask.n) : 0;
}

/* One of several pending requests, with room for its reply. */
struct probe {
	struct pen_call call;
	struct ask ask;
	struct iovec iov;
	char room[BATCH * SAMPLE];
};

static void *room_of(struct pen_call *c, size_t n)
{
	return n <= BATCH * SAMPLE ? c->arg : NULL;
}

static void send_probe(struct pen_wire *w, struct probe *p, int to, uint64_t n)
{
	p->ask.n = n;
	p->iov = (struct iovec){ &p->ask, sizeof(p->ask) };
	p->call = (struct pen_call){ .to = to,
				     .nreq = 1,
				     .req = &p->iov,
				     .alloc = room_of,
				     .arg = p->room };
	pen__wire_probe(w, &p->call);
}

static int wait_probe(struct pen_wire *w, struct probe *p, struct pen_err *err)
{
	struct pen_call *c = &p->call;

	return pen__wire_wait(w, &c, 1, err);
}

/* Sends requests of n samples, `depth` at a time; *out: requests per second. */
static int rate(struct pen_wire *w, struct probe *p, int to, uint64_t n,
		double *out)
{
	const unsigned depth = n ? UNDER_WAY : 1;
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
		send_probe(w, &p[i], to, n);
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

/* A failure counts as speed 0: another transport may work. */
static int measure(struct pen_wire *w, struct pen_speed *out,
		   struct pen_err *err)
{
	struct probe *p = pen__calloc(UNDER_WAY, sizeof(*p));
	const int to = pen__wire_partner(w);
	double trips = 0, batches = 0;

	if (!p)
		return pen__fail_nomem(err, "probe", UNDER_WAY * sizeof(*p));
	if (!rate(w, p, to, 0, &trips) && !rate(w, p, to, BATCH, &batches))
		*out = (struct pen_speed){
			.round_trip_us = 1e6 / trips,
			.samples = batches * BATCH,
		};
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
