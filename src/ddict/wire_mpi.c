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
#include "base/mem.h"
#include "base/team.h"
#include "ddict/wire_packet.h"

#define RECVS 16
#define SENDS 16
#define BUFFER PEN_PACKET
/* Open MPI polls its sockets only in every eighth test. */
#define TESTS 8

#define SPIN_NS 50000u
#define NAP_MIN_NS 10000u
#define NAP_MAX_NS 100000u
/* After this idle time, naps are longer. */
#define QUIET_NS 20000000u
#define NAP_QUIET_NS 500000u

struct mpi {
	struct pen_wire *wire;
	struct pen_channel *channel;
	struct pen_team *team;
	_Atomic uint32_t kicks;
	_Atomic bool asleep;
	_Atomic bool give_up; /* open failed: no good-byes */

	struct pen_packets packets;

	/* only on the thread */
	char *bufs; /* RECVS, then SENDS */
	uint64_t reqs[RECVS + SENDS];
	int to[SENDS];
};

static char *buffer(const struct mpi *m, int i)
{
	return m->bufs + (size_t)i * BUFFER;
}

/* --- sending --- */

static void wake(struct mpi *m)
{
	atomic_fetch_add(&m->kicks, 1);
	if (atomic_load(&m->asleep))
		pen__futex_wake(&m->kicks);
}

static void mpi_kick(struct pen_wire *w, struct pen_wire_peer *p)
{
	struct mpi *m = w->priv;

	pen__packets_ready(&m->packets, p->rank);
	wake(m);
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

		if (m->reqs[RECVS + i])
			continue;
		rank = pen__packets_next(&m->packets);
		if (rank < 0)
			break;
		len = pen__packets_pack(&m->packets, rank, buf, &done);
		if (len)
			rc = m->channel->ops->send(m->channel, buf, len, rank,
						   &m->reqs[RECVS + i], err);
		m->to[i] = rank;
		n++;
	}
	pen__answers_sent(m->wire, done);
	return rc ? rc : n;
}

/* --- receiving --- */

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
		pen__packets_take(&m->packets, done[i].from, buf, done[i].n);
		rc = m->channel->ops->recv(m->channel, buf, BUFFER,
					   &m->reqs[done[i].i], err);
	}
	return rc ? rc : n;
}

static void end_all(struct mpi *m, const struct pen_err *err)
{
	char why[160];

	snprintf(why, sizeof(why), "connection lost: MPI failed: %.120s",
		 err->msg);
	pen__packets_end(&m->packets, P_RANK_FAILED, why);
}

/* --- the thread --- */

static bool over(struct mpi *m)
{
	if (!pen__packets_over(&m->packets))
		return false;
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
		pen__packets_beat(&m->packets, now);
		if (atomic_load(&m->wire->closing) && over(m))
			break;
		if (n)
			busy = now;
		else if (now - busy < SPIN_NS)
			sched_yield();
		else
			nap(m, seen, rest(now - busy));
	}
	pen__packets_end(&m->packets, P_CLOSED, "it has closed its connection");
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
	pen__packets_fini(&m->packets);
	pen__free(m);
}

static int mpi_new(struct mpi **out, struct pen_wire *w, struct pen_err *err)
{
	struct mpi *m = pen__calloc(1, sizeof(*m));

	if (!m)
		return pen__fail_nomem(err, "mpi", sizeof(*m));
	m->wire = w;
	m->bufs = pen__alloc(RECVS + SENDS, BUFFER);
	if (pen__packets_init(&m->packets, w) || !m->bufs) {
		mpi_free(m);
		return pen__fail_nomem(err, "mpi", (RECVS + SENDS) * BUFFER);
	}
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
