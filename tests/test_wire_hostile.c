/*
 * The wire against what it cannot trust: unknown peers while ranks connect,
 * malformed frames, running out of memory, and a large value among small ones.
 */
#include "procs.h"
#include "ranks.h"
#include "wire.h"

#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ddict/wire_addr.h"
#include "ddict/wire_int.h"

struct world {
	struct ranks ranks;
	struct pen_comm_ops ops;
	uint8_t *pool;
	struct side sides[RANKS_MAX];
	int strangers[16];
	int nstrangers;
	int failed;   /* ranks that could not open */
	uint64_t nth; /* number of the allocation that fails */
	pthread_mutex_t lock;
};

/* --- unknown peers --- */

static struct world *world;

static void knock(const struct pen_card *c, const void *p, size_t n)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = c->port,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	CHECK(!connect(fd, (struct sockaddr *)&a, sizeof(a)));
	CHECK(send(fd, p, n, MSG_NOSIGNAL) == (ssize_t)n);
	world->strangers[world->nstrangers++] = fd;
}

/* The address of rank 0 is in what the ranks exchange. */
static int gather_and_knock(struct pen_comm *c, const void *mine, size_t n,
			    void **all, size_t *len, struct pen_err *err)
{
	const unsigned char wrong[16] = "not the cookie";
	struct pen_card card;
	struct pen_hello h;
	char noise[4096];

	if (c->rank == 0 && n == sizeof(card)) {
		memcpy(&card, mine, n);
		memset(noise, 'x', sizeof(noise));
		knock(&card, noise, sizeof(noise));
		knock(&card, noise, 3);
		knock(&card, noise, 0);
		pen__hello_init(&h, 1, 0, wrong);
		knock(&card, &h, sizeof(h));
		pen__hello_init(&h, 0, 0, wrong);
		knock(&card, &h, sizeof(h) - 1);
		pen__hello_init(&h, 1000000, 0, wrong);
		knock(&card, &h, sizeof(h));
	}
	return ranks_gather(c, mine, n, all, len, err);
}

/* --- addresses --- */

struct door {
	int fd, from; /* who it says it is */
	struct pen_cookie cookie;
	bool welcome; /* the caller's hello was right */
};

/* Takes one connection, and answers as a rank would. */
static void answer_one(void *arg, unsigned i)
{
	struct door *d = arg;
	struct pen_hello got, want, mine;
	struct pollfd p = { .fd = d->fd, .events = POLLIN };
	int fd;

	(void)i;
	poll(&p, 1, -1);
	fd = accept(d->fd, NULL, NULL);
	pen__hello_init(&want, 0, 5, d->cookie.call);
	d->welcome = recv(fd, &got, sizeof(got), MSG_WAITALL) == sizeof(got) &&
		     !pen__hello_check(&got, &want);
	pen__hello_init(&mine, d->from, 3, d->cookie.answer);
	CHECK(send(fd, &mine, sizeof(mine), MSG_NOSIGNAL) == sizeof(mine));
	(void)!recv(fd, &got, 1, 0); /* until the other side closes */
	close(fd);
}

/* Rank 3 connects to what says it is `from`; 0 or the error. */
static int connect_to(const struct pen_card *to, int door, int from,
		      bool same_answer)
{
	struct door d = { .fd = door, .from = from };
	struct pen_card mine = { .node = to->node };
	struct pen_cookie cookie = { "call", "answer" };
	struct pen_team *team;
	struct pen_hello h;
	struct pen_err e = { 0 };
	int fd = -1, rc;

	d.cookie = cookie;
	d.cookie.answer[15] ^= !same_answer; /* the last byte counts, too */
	CHECK_EQ(pen__team_start(&team, 1, "door", answer_one, &d, &e), 0);
	pen__hello_init(&h, 3, 5, cookie.call);
	rc = pen__card_connect(&mine, to, &h, &cookie, &fd, &e);
	CHECK_EQ(rc == 0, fd >= 0);
	if (fd >= 0)
		close(fd);
	pen__team_join(team);
	CHECK(d.welcome);
	return rc;
}

/* Each family of addresses leads to the rank, and only the rank that was asked
 * for is taken, with the secret of the job. */
static void families(void)
{
	struct pen_card all = { 0 };
	struct pen_err e = { 0 };
	int fds[2], nloops = 0;

	if (!CHECK_EQ(pen__card_listen(&all, fds, &e), 0))
		return;
	CHECK(all.port && all.naddrs > 0);
	for (int i = 0; i < all.naddrs; i++) {
		struct pen_card to = all;

		if (!all.addrs[i].loopback)
			continue;
		nloops++;
		CHECK(all.addrs[i].family == AF_INET
			      ? all.addrs[i].prefix == 8
			      : all.addrs[i].prefix == 128);
		to.addrs[0] = all.addrs[i];
		to.naddrs = 1;
		to.unix_n = 0;
		CHECK_EQ(connect_to(&to, fds[0], 5, true), 0);
		CHECK_EQ(connect_to(&to, fds[0], 4, true), PEN_EIO);
		CHECK_EQ(connect_to(&to, fds[0], 5, false), PEN_EIO);
	}
	CHECK(nloops > 0);
	close(fds[0]);
	if (fds[1] >= 0)
		close(fds[1]);
}

/* Every byte of a hello counts. */
static void hellos(void)
{
	static const unsigned char cookie[16] = "0123456789abcde";
	struct pen_hello a, b;

	pen__hello_init(&a, 1, 2, cookie);
	for (size_t i = 0; i < sizeof(a); i++) {
		const bool from = i >= offsetof(struct pen_hello, from) &&
				  i < offsetof(struct pen_hello, to);

		b = a;
		((unsigned char *)&b)[i] ^= 1;
		CHECK_EQ(pen__hello_check(&b, &a), from ? 0 : PEN_EDATA);
	}
}

static void talk(void *arg, unsigned i)
{
	struct world *w = arg;
	struct side *s = &w->sides[i];
	struct pen_wire_server server = { s, serve, sent };
	struct pen_err e = { 0 };

	s->comm = &w->ranks.comm[i];
	s->pool = w->pool;
	if (!CHECK_EQ(pen__wire_open(&s->wire, s->comm, "tcp", &server, &e),
		      0)) {
		fprintf(stderr, "%s: %s\n", e.where, e.msg);
		return;
	}
	kinds(s, !i, w->pool);
	pen__wire_close(s->wire);
}

static void run_world(struct world *w, void (*fn)(void *, unsigned))
{
	world = w;
	ranks_init(&w->ranks, 2, 1);
	pthread_mutex_init(&w->lock, NULL);
	if (w->ops.name)
		for (int i = 0; i < 2; i++)
			w->ranks.comm[i].ops = &w->ops;
	ranks_run(&w->ranks, fn, w);
	ranks_fini(&w->ranks);
	pthread_mutex_destroy(&w->lock);
}

static void strangers(uint8_t *pool)
{
	struct world *w = calloc(1, sizeof(*w));

	w->pool = pool;
	w->ops = ranks_ops;
	w->ops.gather = gather_and_knock;
	run_world(w, talk);
	CHECK_EQ(w->nstrangers, 6);
	for (int i = 0; i < w->nstrangers; i++) {
		char byte;

		/* disconnected, without a reply */
		CHECK(recv(w->strangers[i], &byte, 1, 0) <= 0);
		close(w->strangers[i]);
	}
	free(w);
}

/* --- memory --- */

/* Whatever fails: all open or none, and none waits forever. */
static void try_to_talk(void *arg, unsigned i)
{
	struct world *w = arg;
	struct side *s = &w->sides[i];
	struct pen_wire_server server = { s, serve, sent };
	struct pen_err e = { 0 };
	struct asked a;
	int rc;

	s->comm = &w->ranks.comm[i];
	s->pool = w->pool;
	s->wire = NULL;
	if (!i)
		pen__mem_fail_nth(w->nth, false);
	ranks_meet(s->comm);
	rc = pen__wire_open(&s->wire, s->comm, "tcp", &server, &e);
	if (rc) {
		CHECK(e.code == rc && e.msg[0]);
		pthread_mutex_lock(&w->lock);
		w->failed++;
		pthread_mutex_unlock(&w->lock);
	} else {
		ask(s, &a, !i, (struct order){ WHAT_BYTES, 3, 70000, 1 });
		rc = get(s, &a, &e);
		CHECK(!rc || (e.code == rc && e.msg[0]));
		if (!rc)
			check_bytes(&a, w->pool);
		pen__free(a.call.reply);
	}
	pen__wire_close(s->wire);
	CHECK_EQ(atomic_load(&s->served), atomic_load(&s->sent));
}

static void no_memory(uint8_t *pool)
{
	struct world *w = calloc(1, sizeof(*w));
	uint64_t n = 0;
	bool more = true;

	w->pool = pool;
	while (more) {
		w->failed = 0;
		w->nth = ++n;
		run_world(w, try_to_talk);
		more = pen__mem_count() >= n;
		pen__mem_fail_nth(0, false);
		CHECK(w->failed == 0 || w->failed == 2);
	}
	CHECK(n > 20);
	free(w);
}

/* --- files --- */

/* Exit 0: it worked; 1: it failed with a message. */
static int open_with_few(struct pen_comm *c, void *arg)
{
	struct side s = { .comm = c };
	struct pen_wire_server server = { &s, serve, sent };
	const struct rlimit most = { *(rlim_t *)arg, *(rlim_t *)arg };
	struct pen_err e = { 0 };

	/* on one rank only */
	if (c->rank == 1)
		setrlimit(RLIMIT_NOFILE, &most);
	if (pen__wire_open(&s.wire, c, "tcp", &server, &e))
		return e.msg[0] ? 1 : 2;
	pen__wire_close(s.wire);
	return 0;
}

/* However few descriptors: all connect, or all learn that one could not. */
static void few_files(void)
{
	int outcomes[3] = { 0 };

	for (rlim_t n = 4; n < 24; n += 2) {
		int status[3];

		procs_run(3, true, open_with_few, &n, status);
		CHECK(WIFEXITED(status[0]) && WEXITSTATUS(status[0]) < 2);
		CHECK(status[0] == status[1] && status[1] == status[2]);
		outcomes[WEXITSTATUS(status[0]) & 1]++;
	}
	CHECK(outcomes[0] && outcomes[1]);
}

/* --- frames --- */

static void no_kick(struct pen_wire *w, struct pen_wire_peer *p)
{
	(void)w, (void)p;
}

static const struct pen_transport nowhere = {
	.name = "nowhere",
	.defers = true,
	.kick = no_kick,
};

static int echo_back(void *arg, int from, const void *req, size_t n,
		     struct pen_reply *out, struct pen_err *err)
{
	void *room = pen__reply_room(out, n);

	(void)arg, (void)from, (void)err;
	if (n)
		memcpy(room, req, n);
	return pen__reply_add(out, room, n);
}

struct victim {
	struct pen_wire wire;
	struct pen_wire_peer peers[2];
	struct pen_call call;
};

static void victim_init(struct victim *v)
{
	memset(v, 0, sizeof(*v));
	v->wire.transport = &nowhere;
	v->wire.server.serve = echo_back;
	v->wire.size = 2;
	v->wire.peers = v->peers;
	for (int i = 0; i < 2; i++) {
		v->peers[i].wire = &v->wire;
		v->peers[i].rank = i;
		v->peers[i].last = &v->peers[i].first;
		pthread_mutex_init(&v->peers[i].lock, NULL);
	}
}

/* As a transport would: everything queued has been sent. */
static void send_all(struct victim *v)
{
	struct pen_msg *done = NULL;

	while (v->peers[1].first) {
		struct pen_frame f = pen__msg_frame(v->peers[1].first);

		pen__msg_advance(v->peers[1].first, f.len);
		pen__msg_next(&v->peers[1], &done);
	}
	pen__answers_sent(&v->wire, done);
}

static void victim_fini(struct victim *v)
{
	pen__peer_gone(&v->peers[1], P_RANK_FAILED, "is gone");
	CHECK(pen__call_done(&v->call));
	pen__free(v->call.reply);
	pen__wire_drain(&v->wire);
	for (int i = 0; i < 2; i++)
		pthread_mutex_destroy(&v->peers[i].lock);
}

/* One frame and its piece; returns whether the peer may continue. */
static bool feed(struct victim *v, const struct pen_frame *f)
{
	void *to = NULL;

	if (pen__wire_begin(&v->peers[1], f, &to))
		return false;
	if (to)
		memset(to, 0x5a, f->len);
	return !pen__wire_end(&v->peers[1], f);
}

static uint64_t odd(uint64_t x)
{
	static const uint64_t few[] = { 0,
					1,
					8,
					sizeof(struct pen_err),
					PEN_PIECE - 1,
					PEN_PIECE,
					1 << 20,
					PEN_MSG_MAX,
					UINT64_MAX,
					UINT64_MAX - 1 };

	return few[x % 10];
}

static struct pen_frame any_frame(uint64_t x)
{
	struct pen_frame f = { .kind = (uint8_t)(x % 8),
			       .len = (uint32_t)odd(x >> 8),
			       .id = odd(x >> 16) * (x >> 60 & 1),
			       .at = x >> 24 & 1 ? odd(x >> 32) : 0,
			       .total = odd(x >> 40) };

	/* mostly a plausible one, so that it gets further */
	if (x >> 48 & 7) {
		f.kind = (uint8_t)(1 + x % 6);
		f.len = (uint32_t)odd((x >> 8) % 6);
		f.at = x >> 24 & 1 ? odd((x >> 32) % 7) : 0;
		f.total = f.at + f.len;
		if (x >> 51 & 1)
			f.total += odd((x >> 40) % 7);
		if (f.kind >= PEN_BYE)
			f.len = 0, f.total = f.at = 0;
	}
	/* requests for more memory than there is are refused by the
	 * allocator */
	if (f.total > 1 << 22 && f.total <= PEN_MSG_MAX)
		f.total = PEN_MSG_MAX + 1;
	return f;
}

static void frames(void)
{
	unsigned accepted = 0, refused = 0;

	for (uint64_t seed = 0; seed < 3000; seed++) {
		struct victim v;
		bool good = true;

		victim_init(&v);
		v.call.to = 1;
		pen__wire_call(&v.wire, &v.call);
		/* otherwise no reply is possible at all */
		if (seed % 4)
			send_all(&v);
		for (uint64_t i = 0; i < 20 && good; i++) {
			struct pen_frame f =
				any_frame(pen__mix64(seed * 1000 + i + 1));

			good = feed(&v, &f);
			accepted += good;
			refused += !good;
			if (i % 2)
				send_all(&v);
		}
		victim_fini(&v);
	}
	printf("frames: %u accepted, %u refused\n", accepted, refused);
	CHECK(accepted > 1000 && refused > 1000);
}

/* --- large and small --- */

static size_t got_of_large;

static void *note(struct pen_call *c, size_t n)
{
	/* the wire's thread, as is the code that fills the large one */
	got_of_large = ((struct pen_call *)c->arg)->got;
	return pen__alloc(n, 1);
}

static void large_and_small(void *arg, unsigned i)
{
	const struct order big = { WHAT_BYTES, 32, 1 << 20, 0 };
	struct world *w = arg;
	struct side *s = &w->sides[i];
	struct pen_wire_server server = { s, serve, sent };
	struct pen_err e = { 0 };
	struct asked a, b = { 0 };
	bool overtaken = false;

	s->comm = &w->ranks.comm[i];
	s->pool = w->pool;
	if (!CHECK_EQ(pen__wire_open(&s->wire, s->comm, "tcp", &server, &e), 0))
		return;
	for (int k = 0; k < 50 && !overtaken && !i; k++) {
		ask(s, &a, 1, big);
		b.order = (struct order){ WHAT_BYTES, 1, 100, 0 };
		b.iov[0] = (struct iovec){ &b.order, sizeof(b.order) };
		b.call = (struct pen_call){ .to = 1,
					    .req = b.iov,
					    .nreq = 1,
					    .alloc = note,
					    .arg = &a.call };
		pen__wire_call(s->wire, &b.call);
		CHECK_EQ(get(s, &b, &e), 0);
		CHECK_EQ(get(s, &a, &e), 0);
		overtaken = got_of_large < big.n * big.pieces;
		pen__free(a.call.reply);
		pen__free(b.call.reply);
	}
	CHECK(overtaken || i);
	pen__wire_close(s->wire);
}

int main(void)
{
	uint8_t *pool = make_pool(0);
	struct world *w = calloc(1, sizeof(*w));

	frames();
	few_files();
	strangers(pool);
	no_memory(pool);
	w->pool = pool;
	run_world(w, large_and_small);
	free(w);
	free(pool);
	hellos();
	families();
	return test_end();
}
