/*
 * Sockets: one connection between every two ranks, for requests and replies of
 * both, and one thread that sleeps in epoll. It needs MPI only for the
 * communicator that exchanges the addresses, and makes progress on its own.
 *
 * A caller sends its message itself if the connection is free; the thread sends
 * the rest.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/futex.h"
#include "base/mem.h"
#include "base/team.h"
#include "ddict/wire_addr.h"
#include "ddict/wire_int.h"
#include "ddict/wire_stream.h"

/* Timeout for the thread to take up all connections. */
#define ARRIVE_NS 20000000000u
/* Unidentified connections allowed, beyond the number of ranks. */
#define STRANGERS 64

/* Type of an event, in the upper half of its data. */
enum { ON_WAKE, ON_LISTEN, ON_STRANGER, ON_PEER };

struct stranger {
	int fd; /* -1: free */
	size_t have;
	struct pen_hello hello;
};

struct tcp {
	struct pen_wire *wire;
	int epoll, wake;
	int listening[2];
	struct pen_team *team;
	struct pen_card card;
	struct pen_card *cards; /* of all ranks */
	struct pen_cookie cookie;
	struct pen_stream *conns; /* one per rank */
	struct stranger *strangers;
	uint32_t nstrangers, next;
	_Atomic uint32_t nconns; /* connected peers */
	_Atomic bool complete;	 /* all have connected */
	_Atomic bool give_up;	 /* open failed: no good-byes */
	bool said_bye;
	struct tcp *next_open;
};

/*
 * All wires of this process. A forked child inherits their sockets, and would
 * keep connections of a dead rank open; so it closes them.
 */
static struct {
	pthread_mutex_t lock;
	pthread_once_t once;
	struct tcp *first;
} open_wires = { .lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT };

static struct epoll_event event(uint32_t events, uint32_t on, uint32_t i)
{
	return (struct epoll_event){ .events = events,
				     .data.u64 = (uint64_t)on << 32 | i };
}

static int watch(const struct tcp *t, int fd, uint32_t on, uint32_t i)
{
	struct epoll_event ev = event(EPOLLIN | EPOLLRDHUP, on, i);

	return epoll_ctl(t->epoll, EPOLL_CTL_ADD, fd, &ev) ? errno : 0;
}

static void wake(const struct tcp *t)
{
	const uint64_t one = 1;

	/* fails only if the thread is awake already */
	(void)!write(t->wake, &one, sizeof(one));
}

/* --- sending --- */

/* Starts or stops waiting for room in the socket. */
static void block(struct tcp *t, struct pen_stream *c, bool blocked)
{
	struct epoll_event ev =
		event(EPOLLIN | EPOLLRDHUP | (blocked ? EPOLLOUT : 0u), ON_PEER,
		      (uint32_t)c->peer->rank);

	if (c->blocked == blocked)
		return;
	c->blocked = blocked;
	(void)epoll_ctl(t->epoll, EPOLL_CTL_MOD, c->fd, &ev);
}

/* Peer's lock held. */
static void push_out(struct tcp *t, struct pen_stream *c, struct pen_msg **done)
{
	switch (pen__stream_send(c, done)) {
	case PEN_STREAM_FULL:
		block(t, c, true);
		break;
	case PEN_STREAM_IDLE:
		block(t, c, false);
		break;
	default: /* broken: shutdown lets the thread notice, on both sides */
		(void)shutdown(c->fd, SHUT_RDWR);
		break;
	}
}

static void flush(struct tcp *t, struct pen_stream *c)
{
	struct pen_msg *done = NULL;

	c->peer->dirty = false;
	pthread_mutex_lock(&c->peer->lock);
	if (!c->peer->kind)
		push_out(t, c, &done);
	pthread_mutex_unlock(&c->peer->lock);
	pen__answers_sent(t->wire, done);
}

/* The queue was empty, so this sends only the new call. */
static void tcp_kick(struct pen_wire *w, struct pen_wire_peer *p)
{
	struct tcp *t = w->priv;
	struct pen_msg *none = NULL;

	push_out(t, &t->conns[p->rank], &none);
}

/* --- connecting and disconnecting --- */

static void part(struct pen_stream *c, int e)
{
	struct pen_wire_peer *p = c->peer;
	const int fd = c->fd;
	char why[120];

	if (atomic_load(&c->no_source))
		snprintf(why, sizeof(why),
			 "connection lost: a file with data for it was "
			 "truncated");
	else if (p->said_bye)
		snprintf(why, sizeof(why), "it has closed its connection");
	else if (e == EPIPE)
		snprintf(why, sizeof(why), "its process has ended");
	else
		snprintf(why, sizeof(why), "connection lost: %s",
			 e == EPROTO ? "it sent a malformed message"
				     : strerrordesc_np(e));
	pen__peer_gone(p, p->said_bye ? P_CLOSED : P_RANK_FAILED, why);
	/* in this order: a child forked now must not close a reused
	 * descriptor */
	c->fd = -1;
	close(fd);
}

static int adopt(struct tcp *t, int rank, int fd)
{
	struct pen_stream *c = &t->conns[rank];
	int e;

	c->fd = fd;
	e = watch(t, fd, ON_PEER, (uint32_t)rank);
	if (e) {
		c->fd = -1;
		return e;
	}
	atomic_fetch_add(&t->nconns, 1);
	pen__futex_wake(&t->nconns);
	return 0;
}

static void reject(struct stranger *s)
{
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
}

static void stop_listening(struct tcp *t)
{
	for (int i = 0; i < 2; i++) {
		if (t->listening[i] >= 0)
			close(t->listening[i]);
		t->listening[i] = -1;
	}
	for (uint32_t i = 0; i < t->nstrangers; i++)
		reject(&t->strangers[i]);
}

/* Silent connections make room for new ones. */
static void accept_one(struct tcp *t, int listening)
{
	struct stranger *s = &t->strangers[t->next];
	int fd;

	fd = accept4(listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd < 0) {
		/* out of descriptors: waiting ranks must notice */
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM)
			stop_listening(t);
		return;
	}
	reject(s);
	s->fd = fd;
	s->have = 0;
	pen__socket_tune(fd);
	if (watch(t, fd, ON_STRANGER, t->next))
		reject(s);
	t->next = (t->next + 1) % t->nstrangers;
}

/* True if this is a rank we are waiting for. */
static bool expected(const struct tcp *t, const struct pen_hello *got)
{
	const struct pen_wire *w = t->wire;
	struct pen_hello h;

	pen__hello_init(&h, 0, w->rank, t->cookie.call);
	return !pen__hello_check(got, &h) && got->from > w->rank &&
	       got->from < w->size && t->conns[got->from].fd < 0;
}

static void greet(struct tcp *t, struct stranger *s)
{
	const int fd = s->fd;
	struct pen_hello h;
	ssize_t n;

	if (fd < 0)
		return;
	n = recv(fd, (char *)&s->hello + s->have, sizeof(h) - s->have, 0);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	s->have += n > 0 ? (size_t)n : 0;
	if (n > 0 && s->have < sizeof(h))
		return;
	if (n <= 0 || !expected(t, &s->hello)) {
		reject(s);
		return;
	}
	pen__hello_init(&h, t->wire->rank, s->hello.from, t->cookie.answer);
	(void)epoll_ctl(t->epoll, EPOLL_CTL_DEL, fd, NULL);
	if (send(fd, &h, sizeof(h), MSG_NOSIGNAL) != sizeof(h) ||
	    adopt(t, s->hello.from, fd))
		reject(s);
	s->fd = -1;
}

/* --- the thread --- */

static void on_peer(struct tcp *t, struct pen_stream *c, uint32_t events)
{
	int e = 0;

	if (c->fd < 0)
		return;
	if (events & ~EPOLLOUT)
		e = pen__stream_receive(c);
	if (e)
		part(c, e);
	else if (c->peer->dirty || (events & EPOLLOUT))
		flush(t, c);
}

static void on_event(struct tcp *t, const struct epoll_event *ev)
{
	const uint32_t i = (uint32_t)ev->data.u64;
	uint64_t count;

	switch (ev->data.u64 >> 32) {
	case ON_WAKE:
		(void)!read(t->wake, &count, sizeof(count));
		break;
	case ON_LISTEN:
		if (t->listening[i] >= 0)
			accept_one(t, t->listening[i]);
		break;
	case ON_STRANGER:
		greet(t, &t->strangers[i]);
		break;
	default:
		on_peer(t, &t->conns[i], ev->events);
	}
}

static void say_bye(struct tcp *t)
{
	t->said_bye = true;
	for (int i = 0; i < t->wire->size; i++) {
		struct pen_stream *c = &t->conns[i];

		if (c->fd < 0)
			continue;
		if (pen__wire_say(c->peer, PEN_BYE))
			part(c, ENOMEM);
		else
			flush(t, c);
	}
}

/* No peer has more requests, and all answers were sent. */
static bool over(struct tcp *t)
{
	if (!t->said_bye)
		say_bye(t);
	for (int i = 0; i < t->wire->size; i++)
		if (t->conns[i].fd >= 0 &&
		    !pen__peer_finished(t->conns[i].peer))
			return false;
	return true;
}

static void run(void *arg, unsigned thread)
{
	struct epoll_event ev[64];
	struct tcp *t = arg;
	int n;

	(void)thread;
	while (!atomic_load(&t->give_up)) {
		if (atomic_load(&t->complete) && t->listening[0] >= 0)
			stop_listening(t);
		if (atomic_load(&t->wire->closing) && over(t))
			break;
		n = epoll_wait(t->epoll, ev, 64, -1);
		for (int i = 0; i < n; i++)
			on_event(t, &ev[i]);
	}
	for (int i = 0; i < t->wire->size; i++)
		if (t->conns[i].fd >= 0)
			part(&t->conns[i], EPIPE);
}

/* --- opening and closing --- */

static void before_fork(void)
{
	pthread_mutex_lock(&open_wires.lock);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&open_wires.lock);
}

static void in_child(void)
{
	for (struct tcp *t = open_wires.first; t; t = t->next_open)
		for (int i = 0; i < t->wire->size; i++)
			if (t->conns[i].fd >= 0)
				close(t->conns[i].fd);
	open_wires.first = NULL;
	pthread_mutex_unlock(&open_wires.lock);
}

static void watch_forks(void)
{
	(void)pthread_atfork(before_fork, after_fork, in_child);
}

static void list_opened(struct tcp *t)
{
	pthread_once(&open_wires.once, watch_forks);
	pthread_mutex_lock(&open_wires.lock);
	t->next_open = open_wires.first;
	open_wires.first = t;
	pthread_mutex_unlock(&open_wires.lock);
}

static void unlist_opened(struct tcp *t)
{
	struct tcp **at = &open_wires.first;

	pthread_mutex_lock(&open_wires.lock);
	while (*at && *at != t)
		at = &(*at)->next_open;
	if (*at)
		*at = t->next_open;
	pthread_mutex_unlock(&open_wires.lock);
}

static void tcp_free(struct tcp *t)
{
	unlist_opened(t);
	stop_listening(t);
	if (t->epoll >= 0)
		close(t->epoll);
	if (t->wake >= 0)
		close(t->wake);
	for (int i = 0; t->conns && i < t->wire->size; i++)
		pen__free(t->conns[i].buf);
	pen__free(t->conns);
	pen__free(t->strangers);
	pen__free(t->cards);
	pen__free(t);
}

static int make_conns(struct tcp *t, struct pen_err *err)
{
	const int n = t->wire->size;

	t->conns = pen__calloc((size_t)n, sizeof(*t->conns));
	t->strangers =
		pen__calloc((size_t)n + STRANGERS, sizeof(*t->strangers));
	if (!t->conns || !t->strangers)
		return pen__fail_nomem(err, "tcp", (size_t)n);
	t->nstrangers = (uint32_t)n + STRANGERS;
	for (uint32_t i = 0; i < t->nstrangers; i++)
		t->strangers[i].fd = -1;
	for (int i = 0; i < n; i++) {
		t->conns[i].fd = -1;
		t->conns[i].peer = pen__wire_peer(t->wire, i);
		if (i == t->wire->rank)
			continue;
		t->conns[i].buf = pen__alloc(PEN_STREAM_BUF, 1);
		if (!t->conns[i].buf)
			return pen__fail_nomem(err, "tcp", PEN_STREAM_BUF);
	}
	return 0;
}

static int make_events(struct tcp *t, struct pen_err *err)
{
	t->epoll = epoll_create1(EPOLL_CLOEXEC);
	t->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (t->epoll < 0 || t->wake < 0)
		return pen__fail_sys(err, errno, "tcp", "cannot set up epoll");
	if (watch(t, t->wake, ON_WAKE, 0) ||
	    watch(t, t->listening[0], ON_LISTEN, 0) ||
	    (t->listening[1] >= 0 && watch(t, t->listening[1], ON_LISTEN, 1)))
		return pen__fail_sys(err, errno, "tcp", "cannot set up epoll");
	return 0;
}

static int tcp_new(struct tcp **out, struct pen_wire *w,
		   const struct pen_comm *comm, struct pen_err *err)
{
	struct tcp *t = pen__calloc(1, sizeof(*t));
	int rc;

	if (!t)
		return pen__fail_nomem(err, "tcp", sizeof(*t));
	t->wire = w;
	t->epoll = t->wake = t->listening[0] = t->listening[1] = -1;
	t->card.node = comm->node;
	rc = pen__card_listen(&t->card, t->listening, err);
	if (!rc)
		rc = make_conns(t, err);
	if (!rc)
		rc = make_events(t, err);
	if (!rc && comm->rank == 0 &&
	    getrandom(&t->cookie, sizeof(t->cookie), 0) != sizeof(t->cookie))
		rc = pen__fail_sys(err, errno, "tcp",
				   "cannot read random bytes");
	if (rc) {
		tcp_free(t);
		return rc;
	}
	list_opened(t);
	*out = t;
	return 0;
}

/* Distributes the cookie and the cards. */
static int learn(struct tcp *t, struct pen_comm *comm, struct pen_err *err)
{
	const size_t n = (size_t)comm->size;
	size_t *len = pen__calloc(n, sizeof(*len));
	char *all = NULL;
	int rc = len ? 0 : pen__fail_nomem(err, "tcp", n * sizeof(*len));

	rc = pen__comm_agree(comm, rc, err);
	if (!rc)
		rc = pen__comm_bcast(comm, &t->cookie, sizeof(t->cookie), 0,
				     err);
	if (!rc)
		rc = pen__wire_exchange(comm, &t->card, sizeof(t->card), &all,
					len, err);
	pen__free(len);
	t->cards = (struct pen_card *)(void *)all;
	return rc;
}

/* Connects to lower ranks; higher ranks connect to us. */
static int connect_all(struct tcp *t, struct pen_err *err)
{
	const struct pen_wire *w = t->wire;

	for (int i = 0; i < w->rank; i++) {
		struct pen_hello h;
		int fd, e;

		pen__hello_init(&h, w->rank, i, t->cookie.call);
		if (pen__card_connect(&t->card, &t->cards[i], &h, &t->cookie,
				      &fd, err)) {
			char why[160];

			snprintf(why, sizeof(why), "%.150s",
				 err ? err->msg : "");
			return pen__fail(err, P_RANK_FAILED, "tcp",
					 "rank %d cannot reach rank %d (%s): "
					 "%s",
					 w->rank, i, w->peers[i].host, why);
		}
		e = adopt(t, i, fd);
		if (e) {
			close(fd);
			return pen__fail_sys(err, e, "tcp",
					     "cannot watch the connection");
		}
	}
	return 0;
}

static int await_all(struct tcp *t, struct pen_err *err)
{
	const uint32_t n = (uint32_t)t->wire->size - 1;
	const uint64_t until = pen__now_ns() + ARRIVE_NS;

	for (;;) {
		const uint32_t seen = atomic_load(&t->nconns);
		const uint64_t now = pen__now_ns();

		if (seen == n)
			return 0;
		if (now >= until)
			break;
		pen__futex_wait(&t->nconns, seen, until - now);
	}
	return pen__fail(err, P_RANK_FAILED, "tcp",
			 "%u of %u ranks did not connect to rank %d (%s)",
			 n - atomic_load(&t->nconns), n, t->wire->rank,
			 t->wire->peers[t->wire->rank].host);
}

static void end_thread(struct tcp *t)
{
	wake(t);
	pen__team_join(t->team);
	t->team = NULL;
	pen__wire_drain(t->wire);
}

static int tcp_open(struct pen_wire *w, struct pen_comm *comm,
		    struct pen_err *err)
{
	struct tcp *t = NULL;
	int rc;

	rc = pen__comm_agree(comm, tcp_new(&t, w, comm, err), err);
	if (!rc)
		rc = learn(t, comm, err);
	if (rc)
		goto fail;
	w->priv = t;
	rc = pen__team_start(&t->team, 1, "wire", run, t, err);
	/* from here on, every rank accepts connections */
	rc = pen__comm_agree(comm, rc, err);
	if (!rc)
		rc = pen__comm_agree(comm, connect_all(t, err), err);
	if (!rc)
		rc = pen__comm_agree(comm, await_all(t, err), err);
	if (rc)
		goto fail;
	atomic_store(&t->complete, true);
	wake(t);
	return 0;
fail:
	if (t) {
		atomic_store(&t->give_up, true);
		if (t->team)
			end_thread(t);
		tcp_free(t);
	}
	w->priv = NULL;
	return rc;
}

static void tcp_close(struct pen_wire *w)
{
	struct tcp *t = w->priv;

	atomic_store(&w->closing, true);
	end_thread(t);
	tcp_free(t);
}

const struct pen_transport pen__wire_tcp = {
	.name = "tcp",
	.defers = true,
	.open = tcp_open,
	.close = tcp_close,
	.kick = tcp_kick,
};
