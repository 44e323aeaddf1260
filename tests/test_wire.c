/*
 * Requests between ranks that are threads of one process; ranks to be killed
 * are processes, joined by a communicator over sockets. The MPI transport runs
 * over channels without MPI.
 */
#include "channel.h"
#include "procs.h"
#include "ranks.h"
#include "wire.h"

struct world {
	struct ranks ranks;
	struct pen_comm_ops ops;
	const char *transport;
	uint8_t *pools[RANKS_MAX];
	struct side sides[RANKS_MAX];
};

static void crowd_of(void *arg, unsigned i)
{
	struct world *w = ((void **)arg)[0];
	struct side *s = ((void **)arg)[1];

	crowd(s, w->pools, 100 + i);
}

static void talk_all(void *arg, unsigned i)
{
	struct world *w = arg;
	struct side *s = &w->sides[i];
	struct pen_wire_server server = { s, serve, sent };
	void *both[] = { w, s };
	struct pen_err e = { 0 };
	struct pen_team *team;

	s->comm = &w->ranks.comm[i];
	s->pool = w->pools[i];
	if (!CHECK_EQ(pen__wire_open(&s->wire, s->comm, w->transport, &server,
				     &e),
		      0)) {
		fprintf(stderr, "%s: %s\n", e.where, e.msg);
		return;
	}
	if (w->transport)
		CHECK_STR(pen__wire_name(s->wire), w->transport);
	CHECK(strstr(pen__wire_why(s->wire), pen__wire_name(s->wire)));
	CHECK(pen__wire_host(s->wire, 0)[0] != '\0');
	for (int to = 0; to < w->ranks.n; to++)
		if (to != (int)i)
			kinds(s, to, w->pools[to]);
	echo(s, i ? 0 : 1);
	/* two threads of each rank concurrently */
	if (CHECK(!pen__team_start(&team, 2, "crowd", crowd_of, both, &e)))
		pen__team_join(team);
	pen__wire_close(s->wire);
	CHECK_EQ(atomic_load(&s->served), atomic_load(&s->sent));
}

/* An unknown transport: every rank gets the error, and no wire. */
static void no_such(void *arg, unsigned i)
{
	struct world *w = arg;
	struct side *s = &w->sides[i];
	struct pen_wire_server server = { s, serve, sent };
	struct pen_err e = { 0 };

	s->wire = (void *)w;
	CHECK(pen__wire_open(&s->wire, &w->ranks.comm[i], "smoke", &server,
			     &e) < 0);
	CHECK(s->wire == NULL);
	CHECK(e.code < 0);
}

static void ranks_talk(int n, int per_node, const char *transport,
		       void (*talk)(void *, unsigned))
{
	struct world *w = calloc(1, sizeof(*w));

	ranks_init(&w->ranks, n, per_node);
	w->transport = transport;
	w->ops = ranks_ops;
	w->ops.channel = channel_open;
	for (int i = 0; i < n; i++)
		w->ranks.comm[i].ops = &w->ops;
	for (int i = 0; i < n; i++)
		w->pools[i] = make_pool(i);
	ranks_run(&w->ranks, talk, w);
	for (int i = 0; i < n; i++)
		free(w->pools[i]);
	ranks_fini(&w->ranks);
	free(w);
}

/* The MPI transport leaks buffers on purpose if a send was pending when MPI
 * failed, which depends on timing (mpi_free() in wire_mpi.c). */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:mpi_new";
}

/* MPI fails during a call: calls end, and so does closing. */
static void be_cut(void *arg, unsigned i)
{
	struct world *w = arg;
	struct side *s = &w->sides[i];
	struct pen_wire_server server = { s, serve, sent };
	struct pen_err e = { 0 };
	struct asked a;

	s->comm = &w->ranks.comm[i];
	s->pool = w->pools[i];
	if (!CHECK_EQ(pen__wire_open(&s->wire, s->comm, "mpi", &server, &e), 0))
		return;
	ranks_meet(s->comm);
	if (!i)
		atomic_store(&channel_fails, true);
	ranks_meet(s->comm);
	ask(s, &a, !i, (struct order){ WHAT_BYTES, 100, 30000, 0 });
	CHECK_EQ(get(s, &a, &e), PEN_EIO);
	CHECK(strstr(e.where, "rank ") == e.where && strstr(e.msg, "is cut"));
	pen__wire_close(s->wire);
	ranks_meet(s->comm);
	atomic_store(&channel_fails, false);
}

/* --- a rank is killed --- */

enum when {
	IN_CALL,    /* with pending requests of its own */
	IN_SERVE,   /* while it serves one of ours */
	IN_BARRIER, /* while others are already closing */
	AT_ONCE,    /* before any request */
};

static int die(void *arg, int from, const void *req, size_t n,
	       struct pen_reply *out, struct pen_err *err)
{
	(void)arg, (void)from, (void)req, (void)n, (void)out, (void)err;
	raise(SIGKILL);
	return 0;
}

static int end_last(struct side *s, enum when when)
{
	struct asked a[8];

	if (when == AT_ONCE)
		raise(SIGKILL);
	for (int i = 0; i < 8 && when == IN_CALL; i++)
		ask(s, &a[i], i % 2,
		    (struct order){ WHAT_BYTES, 100, 30000, 0 });
	if (when == IN_SERVE)
		for (;;)
			pause();
	raise(SIGKILL);
	return 0;
}

/* Until the death of the last rank is detected; then permanently. */
static void hear_of_it(struct side *s)
{
	const int last = s->comm->size - 1;
	struct pen_err e = { 0 };
	struct asked a[4];
	int rc = 0;

	while (!rc) {
		for (int i = 0; i < 4; i++)
			ask(s, &a[i], last,
			    (struct order){ WHAT_BYTES, 9, 100000, 0 });
		for (int i = 0; i < 4; i++) {
			rc = get(s, &a[i], &e);
			pen__free(a[i].call.reply);
		}
	}
	CHECK_EQ(rc, PEN_EIO);
	CHECK_EQ(e.code, PEN_EIO);
	CHECK(strstr(e.where, "rank 2 (") == e.where);
	CHECK(e.msg[0] != '\0');
	ask(s, &a[0], last, (struct order){ .what = WHAT_ECHO });
	CHECK_EQ(get(s, &a[0], &e), PEN_EIO);
	CHECK(strstr(e.where, "rank 2 (") == e.where);
}

struct plot {
	enum when when;
	uint8_t *pool;
};

/* A forked child gets an error, and does not hang. */
static void ask_from_child(struct side *s)
{
	int status = -1;
	pid_t pid = fork();

	if (!pid) {
		struct pen_err e = { 0 };
		struct asked a;

		ask(s, &a, !s->comm->rank, (struct order){ .what = WHAT_ECHO });
		CHECK_EQ(get(s, &a, &e), PEN_ENOTSUP);
		CHECK(strstr(e.msg, "forked"));
		pen__wire_close(s->wire);
		_exit(atomic_load(&test_failures) ? 1 : 0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

/* Three ranks, the last is killed; the others can still reach each other. */
static int survive(struct pen_comm *c, void *arg)
{
	struct plot *p = arg;
	struct side s = { .comm = c, .pool = p->pool };
	struct pen_wire_server server = { &s, serve, sent };
	struct pen_err e = { 0 };
	struct asked a;

	if (c->rank == 2 && p->when == IN_SERVE)
		server.serve = die;
	if (!CHECK_EQ(pen__wire_open(&s.wire, c, "tcp", &server, &e), 0))
		return 1;
	if (c->rank == 2)
		return end_last(&s, p->when);
	if (p->when != IN_BARRIER)
		hear_of_it(&s);
	ask(&s, &a, !c->rank, (struct order){ WHAT_BYTES, 256, 1000, 3 });
	CHECK_EQ(get(&s, &a, &e), 0);
	check_bytes(&a, p->pool);
	pen__free(a.call.reply);
	ask_from_child(&s);
	pen__wire_close(s.wire);
	CHECK_EQ(atomic_load(&s.served), atomic_load(&s.sent));
	return atomic_load(&test_failures) ? 1 : 0;
}

static void one_is_killed(void)
{
	struct plot p = { .pool = make_pool(0) };

	for (int when = IN_CALL; when <= AT_ONCE; when++) {
		int status[3];

		/* on one host, and each on its own */
		p.when = (enum when)when;
		procs_run(3, when % 2, survive, &p, status);
		CHECK_EQ(status[0], 0);
		CHECK_EQ(status[1], 0);
		CHECK(WIFSIGNALED(status[2]) && WTERMSIG(status[2]) == SIGKILL);
	}
	free(p.pool);
}

int main(void)
{
	one_is_killed();
	ranks_talk(2, 2, "tcp", talk_all);
	ranks_talk(2, 1, "tcp", talk_all);
	ranks_talk(4, 2, "tcp", talk_all);
	ranks_talk(3, 1, "mpi", talk_all);
	ranks_talk(2, 1, NULL, talk_all);
	ranks_talk(2, 1, "mpi", be_cut);
	ranks_talk(2, 1, NULL, no_such);
	return test_end();
}
