/*
 * Neither MPI nor UCX reports every dead rank, so every rank sends a heartbeat,
 * and a rank that is silent for too long counts as lost. For ranks of this
 * host, the kernel is asked.
 */
#include "ddict/wire_packet.h"

#include <string.h>

#include "base/clock.h"
#include "base/guard.h"
#include "base/mem.h"

#define PING_NS 5000000000u
#define SILENT_NS 30000000000u
/* Interval of checks whether the ranks of this host are alive. */
#define LOOK_NS 1000000000u

int pen__packets_init(struct pen_packets *k, struct pen_wire *w)
{
	const size_t n = (size_t)w->size;

	k->wire = w;
	pthread_mutex_init(&k->lock, NULL);
	k->ready = pen__calloc(n, sizeof(*k->ready));
	k->heard = pen__calloc(n, sizeof(*k->heard));
	if (!k->ready || !k->heard)
		return PEN_ENOMEM;
	k->looked = k->called = pen__now_ns();
	for (size_t i = 0; i < n; i++)
		k->heard[i] = k->looked;
	return 0;
}

void pen__packets_fini(struct pen_packets *k)
{
	if (!k->wire)
		return;
	pthread_mutex_destroy(&k->lock);
	pen__free(k->ready);
	pen__free(k->heard);
}

/* --- sending --- */

void pen__packets_ready(struct pen_packets *k, int rank)
{
	const uint32_t n = (uint32_t)k->wire->size;

	pthread_mutex_lock(&k->lock);
	k->ready[(k->first + k->nready++) % n] = rank;
	pthread_mutex_unlock(&k->lock);
}

int pen__packets_next(struct pen_packets *k)
{
	int rank = -1;

	pthread_mutex_lock(&k->lock);
	if (k->nready) {
		rank = k->ready[k->first];
		k->first = (k->first + 1) % (uint32_t)k->wire->size;
		k->nready--;
	}
	pthread_mutex_unlock(&k->lock);
	return rank;
}

/* *lost: some of it is missing, because a mapped file was truncated. */
static size_t copy_piece(struct pen_msg *msg, char *to, bool *lost)
{
	const struct pen_frame f = pen__msg_frame(msg);
	size_t n = sizeof(f);

	memcpy(to, &f, sizeof(f));
	while (n < sizeof(f) + f.len) {
		struct iovec v;

		if (*lost || !pen__msg_iov(msg, sizeof(f) + f.len - n, &v, 1))
			break;
		*lost = !pen__guard_copy(to + n, v.iov_base, v.iov_len);
		pen__msg_advance(msg, v.iov_len);
		n += v.iov_len;
	}
	return n;
}

size_t pen__packets_pack(struct pen_packets *k, int rank, char *to,
			 struct pen_msg **done)
{
	struct pen_wire_peer *p = &k->wire->peers[rank];
	bool lost = false;
	size_t n = 0;

	pthread_mutex_lock(&p->lock);
	if (p->first) {
		n = copy_piece(p->first, to, &lost);
		pen__msg_next(p, done);
	}
	if (p->first)
		pen__packets_ready(k, rank);
	pthread_mutex_unlock(&p->lock);
	if (!lost)
		return n;
	pen__peer_gone(p, P_RANK_FAILED,
		       "connection lost: a file with data for it was "
		       "truncated");
	return 0;
}

/* --- receiving --- */

static int take_in(struct pen_wire_peer *p, const char *buf, size_t n)
{
	struct pen_frame f;
	void *to;
	int rc;

	if (n < sizeof(f))
		return PEN_EDATA;
	memcpy(&f, buf, sizeof(f));
	if (f.len != n - sizeof(f))
		return PEN_EDATA;
	rc = pen__wire_begin(p, &f, &to);
	if (rc)
		return rc;
	if (to && f.len)
		memcpy(to, buf + sizeof(f), f.len);
	return pen__wire_end(p, &f);
}

void pen__packets_take(struct pen_packets *k, int from, const char *buf,
		       size_t n)
{
	struct pen_wire_peer *p;

	if (from < 0 || from >= k->wire->size || from == k->wire->rank)
		return;
	p = &k->wire->peers[from];
	k->heard[from] = pen__now_ns();
	if (!p->gone && take_in(p, buf, n))
		pen__peer_gone(p, P_RANK_FAILED,
			       "connection lost: it sent a malformed message");
}

/* --- heartbeats --- */

static void end_silent(struct pen_packets *k, int rank)
{
	struct pen_wire_peer *p = &k->wire->peers[rank];

	if (p->said_bye && k->said_bye)
		pen__peer_gone(p, P_CLOSED, "it has closed its connection");
	else
		pen__peer_gone(
			p, P_RANK_FAILED,
			"no heartbeat for 30 seconds, so it counts as lost");
}

/* After this process was stopped, the others are not to blame. */
static void send_heartbeats(struct pen_packets *k, uint64_t now)
{
	const bool stopped = now - k->looked > 2 * (uint64_t)PING_NS;

	if (now - k->looked < PING_NS)
		return;
	k->looked = now;
	for (int i = 0; i < k->wire->size; i++) {
		struct pen_wire_peer *p = &k->wire->peers[i];

		if (i == k->wire->rank || p->gone)
			continue;
		if (stopped)
			k->heard[i] = now;
		if (now - k->heard[i] > SILENT_NS)
			end_silent(k, i);
		else if (!k->said_bye)
			(void)pen__wire_say(p, PEN_PING);
	}
}

/* Finds ranks of this host that have ended. */
static void check_local_ranks(struct pen_packets *k, uint64_t now)
{
	const struct pen_wire *w = k->wire;
	uint64_t space;

	if (now - k->called < LOOK_NS)
		return;
	k->called = now;
	space = pen__alive_space();
	for (int i = 0; i < w->size; i++) {
		struct pen_wire_peer *p = &w->peers[i];

		if (i == w->rank || p->gone ||
		    p->node != w->peers[w->rank].node ||
		    pen__alive_is(&p->process, space))
			continue;
		pen__peer_gone(p, p->said_bye ? P_CLOSED : P_RANK_FAILED,
			       p->said_bye ? "it has closed its connection"
					   : "its process has ended");
	}
}

void pen__packets_beat(struct pen_packets *k, uint64_t now)
{
	send_heartbeats(k, now);
	check_local_ranks(k, now);
}

/* --- the end --- */

static void say_bye(struct pen_packets *k)
{
	static const char lost[] =
		"connection lost: out of memory on this rank";

	k->said_bye = true;
	for (int i = 0; i < k->wire->size; i++) {
		struct pen_wire_peer *p = &k->wire->peers[i];

		if (i != k->wire->rank && !p->gone && pen__wire_say(p, PEN_BYE))
			pen__peer_gone(p, P_RANK_FAILED, lost);
	}
}

bool pen__packets_over(struct pen_packets *k)
{
	if (!k->said_bye)
		say_bye(k);
	for (int i = 0; i < k->wire->size; i++) {
		struct pen_wire_peer *p = &k->wire->peers[i];

		if (i != k->wire->rank && !p->gone && !pen__peer_finished(p))
			return false;
	}
	return true;
}

void pen__packets_end(struct pen_packets *k, int kind, const char *why)
{
	for (int i = 0; i < k->wire->size; i++)
		if (i != k->wire->rank)
			pen__peer_gone(&k->wire->peers[i], kind, why);
}
