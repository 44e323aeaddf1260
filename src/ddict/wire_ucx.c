/*
 * UCX: shared memory, TCP, and the networks that have RDMA. The module
 * (comm/ucx.h) is loaded here, and only one thread calls it. UCX wakes that
 * thread through a descriptor.
 *
 * Reads of other ranks' memory are started by the thread, too, a limited number
 * at a time. Those of a lost rank end when its connection is cancelled: until
 * then, UCX may write to their memory.
 */
#include <errno.h>
#include <sched.h>
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
#include "comm/module.h"
#include "ddict/wire_packet.h"

#define SENDS 16
/* Reads in progress. */
#define READS 64

/* How long the thread polls before it sleeps, and the longest sleep, which
 * limits the time until heartbeats. */
#define SPIN_NS 20000u
#define SLEEP_MS 500
/* Interval of checks for lost ranks under traffic. */
#define LOOK_NS 1000000u
/* Timeout for every rank to hear from every other. */
#define ARRIVE_NS 10000000000u

struct ucx {
	struct pen_wire *wire;
	const struct pen_ucx_module *module;
	struct pen_ucx *node;
	struct pen_team *team;
	int epoll, kick;
	_Atomic bool asleep;
	_Atomic bool give_up;	 /* open failed: no good-byes */
	_Atomic uint32_t nheard; /* ranks heard from; changes end open's wait */
	struct pen_packets packets;

	pthread_mutex_t lock;		     /* guards the next one */
	struct pen_call *reads, **last_read; /* not started completely */

	/* only on the thread */
	char *bufs;
	bool busy[SENDS];
	int to[SENDS];
	unsigned nreading;
	bool *heard, *dropped;
	uint64_t looked;
	bool worked;
	pthread_t thread;
};

static void wake(struct ucx *u)
{
	const uint64_t one = 1;

	/* fails only if the thread is awake already */
	if (atomic_load(&u->asleep))
		(void)!write(u->kick, &one, sizeof(one));
}

static void ucx_kick(struct pen_wire *w, struct pen_wire_peer *p)
{
	struct ucx *u = w->priv;

	pen__packets_ready(&u->packets, p->rank);
	wake(u);
}

/* --- lost ranks --- */

static void lose(struct ucx *u, int rank, const char *why)
{
	struct pen_wire_peer *p = &u->wire->peers[rank];
	char text[120];

	if (p->said_bye)
		snprintf(text, sizeof(text), "it has closed its connection");
	else
		snprintf(text, sizeof(text), "connection lost: %.100s", why);
	pen__peer_gone(p, p->said_bye ? P_CLOSED : P_RANK_FAILED, text);
	u->looked = 0;
}

static void on_lost(void *arg, int rank, const char *why)
{
	lose(arg, rank, why);
}

/* Cancels what is pending with lost ranks. Not in a callback of UCX. */
static void drop_lost(struct ucx *u)
{
	for (int i = 0; i < u->wire->size; i++) {
		if (!u->wire->peers[i].gone || u->dropped[i])
			continue;
		u->dropped[i] = true;
		u->module->drop(u->node, i);
	}
}

/* --- messages --- */

static void on_message(void *arg, int from, const void *p, size_t n)
{
	struct ucx *u = arg;

	u->worked = true;
	pen__packets_take(&u->packets, from, p, n);
	if (from < 0 || from >= u->wire->size || u->heard[from])
		return;
	u->heard[from] = true;
	atomic_fetch_add(&u->nheard, 1);
	pen__futex_wake(&u->nheard);
}

static void on_sent(void *arg, void *op)
{
	struct ucx *u = arg;

	u->worked = true;
	*(bool *)op = false;
}

static void send_some(struct ucx *u)
{
	struct pen_msg *done = NULL;

	for (int i = 0; i < SENDS; i++) {
		char *buf = u->bufs + (size_t)i * PEN_PACKET;
		int rank, rc = 0;
		size_t len;

		if (u->busy[i])
			continue;
		rank = pen__packets_next(&u->packets);
		if (rank < 0)
			break;
		u->worked = true;
		len = pen__packets_pack(&u->packets, rank, buf, &done);
		if (len)
			rc = u->module->send(u->node, rank, buf, len,
					     &u->busy[i]);
		u->busy[i] = rc == 1;
		u->to[i] = rank;
		if (rc < 0)
			lose(u, rank, "a message cannot be sent");
	}
	pen__answers_sent(u->wire, done);
}

/* --- reads --- */

static void ucx_read(struct pen_wire *w, struct pen_call *c)
{
	struct ucx *u = w->priv;

	c->next = NULL;
	pthread_mutex_lock(&u->lock);
	*u->last_read = c;
	u->last_read = &c->next;
	pthread_mutex_unlock(&u->lock);
	wake(u);
}

static struct pen_call *first_read(struct ucx *u)
{
	struct pen_call *c;

	pthread_mutex_lock(&u->lock);
	c = u->reads;
	pthread_mutex_unlock(&u->lock);
	return c;
}

/* All of its reads were started: from now on only they refer to the call. */
static void remove_first(struct ucx *u)
{
	pthread_mutex_lock(&u->lock);
	u->reads = u->reads->next;
	if (!u->reads)
		u->last_read = &u->reads;
	pthread_mutex_unlock(&u->lock);
}

static void finish_read(struct ucx *u, struct pen_call *c)
{
	struct pen_wire_peer *p = &u->wire->peers[c->to];

	if (!c->broken)
		pen__call_finish(c, 0);
	else if (p->gone)
		pen__call_fail(c, p, p->kind, p->why);
	else
		pen__call_fail(c, p, P_RANK_FAILED,
			       "connection lost: its memory cannot be read");
}

static void on_landed(void *arg, void *op, bool ok)
{
	struct ucx *u = arg;
	struct pen_call *c = op;

	u->worked = true;
	u->nreading--;
	c->broken |= !ok;
	if (++c->nlanded == c->nreads)
		finish_read(u, c);
}

/* The module's key of a region, made at its first use; NULL: failed. */
static const struct pen_ucx_key *key_of(struct ucx *u, struct pen_region *r)
{
	struct pen_ucx_key *k = NULL;

	if (!r->handle && !r->failed &&
	    u->module->import(u->node, r->rank, r->key, &k, NULL))
		r->failed = true;
	if (k)
		r->handle = k;
	return r->handle;
}

static int start_read(struct ucx *u, struct pen_call *c)
{
	const struct pen_read *r = &c->reads[c->nstarted];
	const struct pen_ucx_key *k = NULL;

	if (!u->wire->peers[c->to].gone && !c->broken)
		k = key_of(u, c->region);
	if (!k)
		return PEN_EIO;
	return r->n ? u->module->read(u->node, k, c->region->base + r->off,
				      r->to, r->n, c)
		    : 0;
}

static void start_reads(struct ucx *u)
{
	struct pen_call *c;

	while (u->nreading < READS && (c = first_read(u))) {
		const int rc = c->nreads ? start_read(u, c) : 0;
		const bool all = !c->nreads || c->nstarted + 1 == c->nreads;

		u->worked = true;
		if (all) /* before it can be completed */
			remove_first(u);
		c->nstarted++;
		u->nreading += rc == 1;
		c->broken |= rc < 0;
		c->nlanded += rc != 1;
		if (c->nlanded >= c->nreads)
			finish_read(u, c);
	}
}

static int ucx_expose(struct pen_wire *w, const void *p, uint64_t n,
		      const void **key, size_t *nkey, struct pen_err *err)
{
	struct ucx *u = w->priv;

	if (!pthread_equal(u->thread, pthread_self()))
		return pen__fail(err, P_BAD_MESSAGE, "ucx",
				 "a request for memory came another way");
	return u->module->expose(u->node, p, n, key, nkey, err);
}

/* --- the thread --- */

static bool over(struct ucx *u)
{
	if (!pen__packets_over(&u->packets))
		return false;
	for (int i = 0; i < SENDS; i++)
		if (u->busy[i] && !u->wire->peers[u->to[i]].gone)
			return false;
	return true;
}

static bool has_work(struct ucx *u)
{
	bool any;

	pthread_mutex_lock(&u->packets.lock);
	any = u->packets.nready > 0;
	pthread_mutex_unlock(&u->packets.lock);
	return any || first_read(u);
}

/* Until UCX or a caller has something to do. */
static void nap(struct ucx *u)
{
	struct epoll_event ev[2];
	uint64_t count;

	atomic_store(&u->asleep, true);
	if (!has_work(u) && !atomic_load(&u->give_up) &&
	    u->module->arm(u->node))
		(void)epoll_wait(u->epoll, ev, 2,
				 atomic_load(&u->wire->closing) ? 10
								: SLEEP_MS);
	atomic_store(&u->asleep, false);
	(void)!read(u->kick, &count, sizeof(count));
}

static void hello_all(struct ucx *u)
{
	for (int i = 0; i < u->wire->size; i++)
		if (i != u->wire->rank)
			(void)pen__wire_say(&u->wire->peers[i], PEN_PING);
}

static void run(void *arg, unsigned thread)
{
	struct ucx *u = arg;
	uint64_t busy = pen__now_ns(), now;

	(void)thread;
	u->thread = pthread_self();
	hello_all(u);
	while (!atomic_load(&u->give_up)) {
		u->worked = false;
		while (u->module->progress(u->node))
			u->worked = true;
		send_some(u);
		start_reads(u);
		now = pen__now_ns();
		if (now - u->looked > LOOK_NS) {
			u->looked = now;
			pen__packets_beat(&u->packets, now);
			drop_lost(u);
		}
		if (atomic_load(&u->wire->closing) && over(u))
			break;
		if (u->worked)
			busy = now;
		else if (now - busy < SPIN_NS)
			sched_yield();
		else
			nap(u);
	}
	pen__packets_end(&u->packets, P_CLOSED, "it has closed its connection");
}

/* --- opening and closing --- */

static void forget_regions(struct ucx *u)
{
	for (struct pen_region *r = u->wire->regions; r; r = r->next) {
		u->module->forget(u->node, r->handle);
		r->handle = NULL;
	}
}

/* What UCX may still use is leaked: its receiver is dead. */
static void ucx_free(struct ucx *u)
{
	bool whole = true;

	if (u->node) {
		forget_regions(u);
		whole = u->module->close(u->node);
	}
	if (u->epoll >= 0)
		close(u->epoll);
	if (u->kick >= 0)
		close(u->kick);
	pen__packets_fini(&u->packets);
	pthread_mutex_destroy(&u->lock);
	pen__free(u->heard);
	pen__free(u->dropped);
	if (!whole)
		return;
	pen__free(u->bufs);
	pen__free(u);
}

static int watch(struct ucx *u, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN };

	return fd < 0 ? -1 : epoll_ctl(u->epoll, EPOLL_CTL_ADD, fd, &ev);
}

static int ucx_new(struct ucx **out, struct pen_wire *w, struct pen_err *err)
{
	const size_t n = (size_t)w->size;
	struct ucx *u = pen__calloc(1, sizeof(*u));

	*out = u;
	if (!u)
		return pen__fail_nomem(err, "ucx", sizeof(*u));
	u->wire = w;
	u->last_read = &u->reads;
	pthread_mutex_init(&u->lock, NULL);
	u->epoll = epoll_create1(EPOLL_CLOEXEC);
	u->kick = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	u->heard = pen__calloc(n, sizeof(*u->heard));
	u->dropped = pen__calloc(n, sizeof(*u->dropped));
	u->bufs = pen__alloc(SENDS, PEN_PACKET);
	if (pen__packets_init(&u->packets, w) || !u->heard || !u->dropped ||
	    !u->bufs)
		return pen__fail_nomem(err, "ucx", SENDS * PEN_PACKET);
	if (u->epoll < 0 || watch(u, u->kick))
		return pen__fail_sys(err, errno, "ucx", "cannot set up epoll");
	return pen__ucx_load(&u->module, err);
}

/* The address is given even on failure, NULL. */
static int open_node(struct ucx *u, const unsigned char *secret, void **address,
		     size_t *n, struct pen_err *err)
{
	struct pen_ucx_host host = {
		.alloc = pen__alloc,
		.free = pen__free,
		.rank = u->wire->rank,
		.size = u->wire->size,
		.arg = u,
		.message = on_message,
		.sent = on_sent,
		.landed = on_landed,
		.lost = on_lost,
	};
	int rc;

	memcpy(host.secret, secret, sizeof(host.secret));
	rc = u->module->open(&host, &u->node, address, n, err);
	if (!rc && watch(u, u->module->descriptor(u->node)))
		rc = pen__fail_sys(err, errno, "ucx", "cannot watch UCX");
	return rc;
}

static int connect_all(struct ucx *u, const char *all, const size_t *len,
		       struct pen_err *err)
{
	int rc = 0;

	for (int i = 0; i < u->wire->size && !rc; all += len[i++])
		if (i != u->wire->rank)
			rc = u->module->connect(u->node, i, all, err);
	return rc;
}

/* Distributes the secret and the addresses, and connects. */
static int meet(struct ucx *u, struct pen_comm *comm, struct pen_err *err)
{
	size_t *len = pen__calloc((size_t)comm->size, sizeof(*len));
	unsigned char secret[16] = { 0 };
	void *address = NULL;
	char *all = NULL;
	size_t n = 0;
	int rc = len ? 0 : pen__fail_nomem(err, "ucx", sizeof(*len));

	if (!rc && !comm->rank &&
	    getrandom(secret, sizeof(secret), 0) != sizeof(secret))
		rc = pen__fail_sys(err, errno, "ucx",
				   "cannot read random bytes");
	rc = pen__comm_agree(comm, rc, err);
	if (!rc)
		rc = pen__comm_bcast(comm, secret, sizeof(secret), 0, err);
	if (!rc)
		rc = pen__comm_agree(
			comm, open_node(u, secret, &address, &n, err), err);
	if (!rc)
		rc = pen__wire_exchange(comm, address, n, &all, len, err);
	if (!rc)
		rc = pen__comm_agree(comm, connect_all(u, all, len, err), err);
	pen__free(all);
	pen__free(address);
	pen__free(len);
	return rc;
}

/* Every rank has said something, so every connection works. */
static int await_all(struct ucx *u, struct pen_err *err)
{
	const uint32_t n = (uint32_t)u->wire->size - 1;
	const uint64_t until = pen__now_ns() + ARRIVE_NS;

	for (;;) {
		const uint32_t seen = atomic_load(&u->nheard);
		const uint64_t now = pen__now_ns();

		if (seen == n)
			return 0;
		if (now >= until)
			break;
		pen__futex_wait(&u->nheard, seen, until - now);
	}
	return pen__fail(err, P_RANK_FAILED, "ucx",
			 "%u of %u ranks did not connect to rank %d (%s); "
			 "UCX_NET_DEVICES selects the network",
			 n - atomic_load(&u->nheard), n, u->wire->rank,
			 u->wire->peers[u->wire->rank].host);
}

static void end_thread(struct ucx *u)
{
	wake(u);
	pen__team_join(u->team);
	pen__wire_drain(u->wire);
}

static int ucx_open(struct pen_wire *w, struct pen_comm *comm,
		    struct pen_err *err)
{
	struct ucx *u = NULL;
	int rc;

	rc = pen__comm_agree(comm, ucx_new(&u, w, err), err);
	if (!rc)
		rc = meet(u, comm, err);
	if (!rc) {
		w->priv = u;
		rc = pen__team_start(&u->team, 1, "wire", run, u, err);
		rc = pen__comm_agree(comm, rc, err);
	}
	if (!rc)
		rc = pen__comm_agree(comm, await_all(u, err), err);
	if (rc && u) {
		atomic_store(&u->give_up, true);
		if (u->team)
			end_thread(u);
		ucx_free(u);
	}
	return rc;
}

static void ucx_close(struct pen_wire *w)
{
	struct ucx *u = w->priv;

	atomic_store(&w->closing, true);
	end_thread(u);
	ucx_free(u);
}

const struct pen_transport pen__wire_ucx = {
	.name = "ucx",
	.open = ucx_open,
	.close = ucx_close,
	.kick = ucx_kick,
	.expose = ucx_expose,
	.read = ucx_read,
};
