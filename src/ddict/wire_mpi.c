/*
 * MPI messages: for networks that only MPI reaches, or reaches faster. One
 * thread makes all calls. MPI does not wake a thread when a message arrives, so
 * the thread polls: continuously under traffic, then after ever longer naps, so
 * that an idle rank keeps its cores. A call of this rank ends a nap
 * immediately.
 *
 * Pieces are copied on both sides, into buffers that receive from any rank: a
 * gathering MPI send is not worth its set-up for a few hundred kilobytes.
 *
 * MPI does not report dead ranks, so every rank sends a heartbeat, and a rank
 * that is silent for too long counts as lost. For ranks of this host, the
 * kernel is asked.
 */
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/clock.h"
#include "base/futex.h"
#include "base/guard.h"
#include "base/mem.h"
#include "base/team.h"
#include "ddict/wire_int.h"

#define RECVS 16
#define SENDS 16
#define BUFFER (sizeof(struct pen_frame) + PEN_PIECE)
/* Open MPI polls its sockets only in every eighth test. */
#define TESTS 8

#define SPIN_NS 50000u
#define NAP_MIN_NS 10000u
#define NAP_MAX_NS 100000u
/* After this idle time, naps are longer. */
#define QUIET_NS 20000000u
#define NAP_QUIET_NS 500000u

#define PING_NS 5000000000u
#define SILENT_NS 30000000000u
/* Interval of checks whether the ranks of this host are alive. */
#define LOOK_NS 1000000000u

struct mpi {
	struct pen_wire *wire;
	struct pen_channel *channel;
	struct pen_team *team;
	_Atomic uint32_t kicks;
	_Atomic bool asleep;
	_Atomic bool give_up; /* open failed: no good-byes */

	pthread_mutex_t lock; /* guards the next two */
	int *ready;	      /* ring of peers with messages, each once */
	uint32_t first, nready;

	/* only on the thread */
	char *bufs; /* RECVS, then SENDS */
	uint64_t reqs[RECVS + SENDS];
	int to[SENDS];
	uint64_t *heard; /* time of the last message, per rank */
	uint64_t looked; /* last heartbeat round */
	uint64_t called; /* last check of this host's ranks */
	bool said_bye;
};

static char *buffer(const struct mpi *m, int i)
{
	return m->bufs + (size_t)i * BUFFER;
}

/* --- peers with messages to send --- */

static void make_ready(struct mpi *m, int rank)
{
	const uint32_t n = (uint32_t)m->wire->size;

	pthread_mutex_lock(&m->lock);
	m->ready[(m->first + m->nready++) % n] = rank;
	pthread_mutex_unlock(&m->lock);
}

static int next_ready(struct mpi *m)
{
	int rank = -1;

	pthread_mutex_lock(&m->lock);
	if (m->nready) {
		rank = m->ready[m->first];
		m->first = (m->first + 1) % (uint32_t)m->wire->size;
		m->nready--;
	}
	pthread_mutex_unlock(&m->lock);
	return rank;
}

static void wake(struct mpi *m)
{
	atomic_fetch_add(&m->kicks, 1);
	if (atomic_load(&m->asleep))
		pen__futex_wake(&m->kicks);
}

static void mpi_kick(struct pen_wire *w, struct pen_wire_peer *p)
{
	make_ready(w->priv, p->rank);
	wake(w->priv);
}

/* --- sending --- */

/*
 * Copies the peer's next piece; 0: there is none. *lost: some of it is missing,
 * because a mapped file was truncated.
 */
static size_t pack(struct pen_wire_peer *p, char *to, struct pen_msg **done,
		   bool *more, bool *lost)
{
	struct pen_msg *msg;
	struct pen_frame f;
	size_t n = 0;

	*lost = false;

	pthread_mutex_lock(&p->lock);
	msg = p->first;
	if (msg) {
		f = pen__msg_frame(msg);
		memcpy(to, &f, sizeof(f));
		n = sizeof(f);
		while (n < sizeof(f) + f.len) {
			struct iovec v;

			if (*lost ||
			    !pen__msg_iov(msg, sizeof(f) + f.len - n, &v, 1))
				break;
			*lost = !pen__guard_copy(to + n, v.iov_base, v.iov_len);
			pen__msg_advance(msg, v.iov_len);
			n += v.iov_len;
		}
		pen__msg_next(p, done);
	}
	*more = p->first != NULL;
	pthread_mutex_unlock(&p->lock);
	return n;
}

/* Fills the free buffers; returns how many, or an error. */
static int send_some(struct mpi *m, struct pen_err *err)
{
	struct pen_msg *done = NULL;
	int n = 0, rc = 0;

	for (int i = 0; i < SENDS && !rc; i++) {
		char *buf = buffer(m, RECVS + i);
		int rank;
		size_t len;
		bool more, lost;

		if (m->reqs[RECVS + i])
			continue;
		rank = next_ready(m);
		if (rank < 0)
			break;
		len = pack(&m->wire->peers[rank], buf, &done, &more, &lost);
		if (lost)
			pen__peer_gone(&m->wire->peers[rank], P_RANK_FAILED,
				       "connection lost: a file with data for "
				       "it was truncated");
		else if (len)
			rc = m->channel->ops->send(m->channel, buf, len, rank,
						   &m->reqs[RECVS + i], err);
		m->to[i] = rank;
		n++;
		if (more)
			make_ready(m, rank);
	}
	pen__answers_sent(m->wire, done);
	return rc ? rc : n;
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

static void on_message(struct mpi *m, const char *buf,
		       const struct pen_channel_done *d)
{
	struct pen_wire_peer *p;

	if (d->from < 0 || d->from >= m->wire->size || d->from == m->wire->rank)
		return;
	p = &m->wire->peers[d->from];
	m->heard[d->from] = pen__now_ns();
	if (!p->gone && take_in(p, buf, d->n))
		pen__peer_gone(p, P_RANK_FAILED,
			       "connection lost: it sent a malformed message");
}

/* Polls MPI once; returns the number of completions, or an error. */
static int look(struct mpi *m, struct pen_err *err)
{
	struct pen_channel_done done[RECVS + SENDS];
	int n, rc = 0;

	n = m->channel->ops->test(m->channel, m->reqs, RECVS + SENDS, done,
				  err);
	for (int i = 0; i < n && !rc; i++) {
		char *buf = buffer(m, done[i].i);

		if (done[i].i >= RECVS)
			continue;
		on_message(m, buf, &done[i]);
		rc = m->channel->ops->recv(m->channel, buf, BUFFER,
					   &m->reqs[done[i].i], err);
	}
	return rc ? rc : n;
}

/* --- heartbeats --- */

static void end_peer(struct mpi *m, int rank)
{
	struct pen_wire_peer *p = &m->wire->peers[rank];

	if (p->said_bye && m->said_bye)
		pen__peer_gone(p, P_CLOSED, "it has closed its connection");
	else
		pen__peer_gone(
			p, P_RANK_FAILED,
			"no heartbeat for 30 seconds, so it counts as lost");
}

/*
 * At intervals: sends a heartbeat to all, and checks for silent ranks. After
 * this process was stopped, the others are not to blame.
 */
static void send_heartbeats(struct mpi *m, uint64_t now)
{
	const bool stopped = now - m->looked > 2 * (uint64_t)PING_NS;

	if (now - m->looked < PING_NS)
		return;
	m->looked = now;
	for (int i = 0; i < m->wire->size; i++) {
		struct pen_wire_peer *p = &m->wire->peers[i];

		if (i == m->wire->rank || p->gone)
			continue;
		if (stopped)
			m->heard[i] = now;
		if (now - m->heard[i] > SILENT_NS)
			end_peer(m, i);
		else if (!m->said_bye)
			(void)pen__wire_say(p, PEN_PING);
	}
}

/* Finds ranks of this host that have ended. */
static void check_local_ranks(struct mpi *m, uint64_t now)
{
	const struct pen_wire *w = m->wire;
	uint64_t space;

	if (now - m->called < LOOK_NS)
		return;
	m->called = now;
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

static void end_all(struct mpi *m, const struct pen_err *err)
{
	char why[160];

	snprintf(why, sizeof(why), "connection lost: MPI failed: %.120s",
		 err->msg);
	for (int i = 0; i < m->wire->size; i++)
		if (i != m->wire->rank)
			pen__peer_gone(&m->wire->peers[i], P_RANK_FAILED, why);
}

/* --- the thread --- */

static void say_bye(struct mpi *m)
{
	static const char lost[] =
		"connection lost: out of memory on this rank";

	m->said_bye = true;
	for (int i = 0; i < m->wire->size; i++) {
		struct pen_wire_peer *p = &m->wire->peers[i];

		if (i != m->wire->rank && !p->gone && pen__wire_say(p, PEN_BYE))
			pen__peer_gone(p, P_RANK_FAILED, lost);
	}
}

static bool over(struct mpi *m)
{
	if (!m->said_bye)
		say_bye(m);
	for (int i = 0; i < m->wire->size; i++) {
		struct pen_wire_peer *p = &m->wire->peers[i];

		if (i != m->wire->rank && !p->gone && !pen__peer_finished(p))
			return false;
	}
	for (int i = 0; i < SENDS; i++)
		if (m->reqs[RECVS + i] && !m->wire->peers[m->to[i]].gone)
			return false;
	return true;
}

/* Sleeps until a call is made or the time is over. */
static void nap(struct mpi *m, uint32_t seen, uint64_t ns)
{
	atomic_store(&m->asleep, true);
	if (atomic_load(&m->kicks) == seen)
		pen__futex_wait(&m->kicks, seen, ns);
	atomic_store(&m->asleep, false);
}

static uint64_t rest(uint64_t quiet)
{
	if (quiet > QUIET_NS)
		return NAP_QUIET_NS;
	quiet /= 4;
	if (quiet < NAP_MIN_NS)
		return NAP_MIN_NS;
	return quiet < NAP_MAX_NS ? quiet : NAP_MAX_NS;
}

static int turn(struct mpi *m, struct pen_err *err)
{
	int n = 0, rc;

	for (int i = 0; i < TESTS && !n; i++) {
		n = look(m, err);
		if (n < 0)
			return n;
		rc = send_some(m, err);
		if (rc < 0)
			return rc;
		n += rc;
	}
	return n;
}

static void run(void *arg, unsigned thread)
{
	struct pen_err err = { 0 };
	struct mpi *m = arg;
	uint64_t busy = pen__now_ns();

	(void)thread;
	/* otherwise naps are 50 us longer */
	(void)prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	while (!atomic_load(&m->give_up)) {
		const uint32_t seen = atomic_load(&m->kicks);
		uint64_t now;
		int n = turn(m, &err);

		if (n < 0) {
			end_all(m, &err);
			return;
		}
		now = pen__now_ns();
		send_heartbeats(m, now);
		check_local_ranks(m, now);
		if (atomic_load(&m->wire->closing) && over(m))
			break;
		if (n)
			busy = now;
		else if (now - busy < SPIN_NS)
			sched_yield();
		else
			nap(m, seen, rest(now - busy));
	}
	for (int i = 0; i < m->wire->size; i++)
		if (i != m->wire->rank)
			pen__peer_gone(&m->wire->peers[i], P_CLOSED,
				       "it has closed its connection");
}

/* --- opening and closing --- */

/* Buffers that MPI may still be sending from are leaked: their receiver is
 * dead. */
static void mpi_free(struct mpi *m)
{
	bool sending = false;

	if (m->channel) {
		m->channel->ops->cancel(m->channel, m->reqs, RECVS);
		for (int i = RECVS; i < RECVS + SENDS; i++)
			sending |= m->reqs[i] != 0;
		m->channel->ops->close(m->channel);
	}
	if (!sending)
		pen__free(m->bufs);
	pthread_mutex_destroy(&m->lock);
	pen__free(m->ready);
	pen__free(m->heard);
	pen__free(m);
}

static int mpi_new(struct mpi **out, struct pen_wire *w, struct pen_err *err)
{
	const size_t n = (size_t)w->size;
	struct mpi *m = pen__calloc(1, sizeof(*m));

	if (!m)
		return pen__fail_nomem(err, "mpi", sizeof(*m));
	m->wire = w;
	pthread_mutex_init(&m->lock, NULL);
	m->ready = pen__calloc(n, sizeof(*m->ready));
	m->heard = pen__calloc(n, sizeof(*m->heard));
	m->bufs = pen__alloc(RECVS + SENDS, BUFFER);
	if (!m->ready || !m->heard || !m->bufs) {
		mpi_free(m);
		return pen__fail_nomem(err, "mpi", (RECVS + SENDS) * BUFFER);
	}
	m->looked = m->called = pen__now_ns();
	for (size_t i = 0; i < n; i++)
		m->heard[i] = m->looked;
	*out = m;
	return 0;
}

static int start(struct mpi *m, struct pen_err *err)
{
	int rc = 0;

	for (int i = 0; i < RECVS && !rc; i++)
		rc = m->channel->ops->recv(m->channel, buffer(m, i), BUFFER,
					   &m->reqs[i], err);
	if (!rc)
		rc = pen__team_start(&m->team, 1, "wire", run, m, err);
	return rc;
}

static void mpi_close(struct pen_wire *w)
{
	struct mpi *m = w->priv;

	atomic_store(&w->closing, true);
	wake(m);
	pen__team_join(m->team);
	pen__wire_drain(w);
	mpi_free(m);
}

/* No requests were made yet, so the thread of a rank that succeeded just
 * ends. */
static void give_up(struct pen_wire *w, struct mpi *m)
{
	if (!m)
		return;
	atomic_store(&m->give_up, true);
	if (m->team)
		mpi_close(w);
	else
		mpi_free(m);
}

static int mpi_open(struct pen_wire *w, struct pen_comm *comm,
		    struct pen_err *err)
{
	struct mpi *m = NULL;
	int rc;

	rc = pen__comm_agree(comm, mpi_new(&m, w, err), err);
	if (!rc)
		rc = pen__comm_channel(comm, &m->channel, err);
	if (!rc) {
		w->priv = m;
		rc = pen__comm_agree(comm, start(m, err), err);
	}
	if (rc)
		give_up(w, m);
	return rc;
}

const struct pen_transport pen__wire_mpi = {
	.name = "mpi",
	.open = mpi_open,
	.close = mpi_close,
	.kick = mpi_kick,
};
