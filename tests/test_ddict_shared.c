/*
 * One dictionary in several processes: all read and write concurrently, any of
 * them is killed at any time, and the rest continue with complete values, all
 * of the memory, and nothing left behind at the end.
 */
#include "ddict.h"
#include "ddict/seg.h"

#include <signal.h>
#include <sys/prctl.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEYS 200
#define PROCESSES 8

/* ThreadSanitizer ends a forked child that starts a thread. */
#ifdef __SANITIZE_THREAD__
#define CAN_FORK false
#else
#define CAN_FORK true
#endif

static char setting[64];

static struct pen_ddict *attach(void)
{
	const char *const set[] = { setting, "memory=3MiB" };

	return open_with(set, 2);
}

/* Runs some operations, checked; returns how many failed. */
static uint64_t use(struct pen_ddict *d, struct pen_rng *rng, uint64_t turn,
		    int ops)
{
	uint8_t buf[MOST + 16];
	struct pen_key k[24];
	uint64_t wrong = 0, t;
	struct pen_got *g;

	while (ops--) {
		const uint64_t key = pen__rng_below(rng, KEYS);
		const uint64_t what = pen__rng_below(rng, 8);

		turn += 16;
		if (what < 3) {
			wrong += pen_ddict_put(d, num(key),
					       made(key, turn, buf), NULL) != 0;
		} else if (what == 3) {
			int rc = pen_ddict_pop(d, num(key), NULL, NULL);

			wrong += rc && rc != PEN_ENOTFOUND;
		} else {
			for (int i = 0; i < 24; i++)
				k[i] = num(pen__rng_below(rng, KEYS));
			if (pen_ddict_get_many(d, k, 24, &g, NULL)) {
				wrong++;
				continue;
			}
			for (int i = 0; i < 24; i++)
				wrong += g->values[i].data &&
					 !is_whole(g->values[i], k[i].number,
						   &t);
			pen_got_free(g);
		}
	}
	return wrong;
}

/* Every key once, every value complete; returns their number. */
static int look(void *arg, struct pen_key k)
{
	uint64_t *seen = arg;

	seen[k.number < KEYS ? k.number : KEYS]++;
	return 0;
}

static void check_all(struct pen_ddict *d)
{
	uint64_t seen[KEYS + 1] = { 0 }, n = 0, bytes = 0, wrong = 0, turn;
	struct pen_shard_stats s;

	CHECK_EQ(pen_ddict_keys(d, -1, look, seen, NULL), 0);
	CHECK_EQ(seen[KEYS], 0);
	for (uint64_t i = 0; i < KEYS; i++) {
		struct pen_key k = num(i);
		struct pen_got *g;

		wrong += seen[i] > 1;
		n += seen[i];
		if (!seen[i] || pen_ddict_get_many(d, &k, 1, &g, NULL))
			continue;
		wrong += !is_whole(g->values[0], i, &turn);
		bytes += g->values[0].len;
		pen_got_free(g);
	}
	CHECK_EQ(wrong, 0);
	s = stats_of(d);
	CHECK_EQ(s.nkeys, n);
	CHECK_EQ(s.value_bytes, bytes);
}

static pid_t child(void (*fn)(int), int arg)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		fn(arg);
		_exit(3);
	}
	CHECK(pid > 0);
	return pid;
}

static int reap(pid_t pid)
{
	int status = -1;

	while (waitpid(pid, &status, 0) < 0)
		;
	return status;
}

static void hammer(int me)
{
	struct pen_rng rng = pen__rng(1, (uint64_t)me);
	struct pen_ddict *d = attach();
	uint64_t wrong = use(d, &rng, (uint64_t)me, 2000);

	pen_ddict_close(d);
	_exit(wrong || atomic_load(&test_failures) ? 1 : 0);
}

static void eight(void)
{
	struct pen_ddict *d = attach();
	pid_t pid[PROCESSES];

	for (int i = 0; i < PROCESSES; i++)
		pid[i] = child(hammer, i);
	for (int i = 0; i < PROCESSES; i++)
		CHECK_EQ(reap(pid[i]), 0);
	check_all(d);
	CHECK_EQ(stats_of(d).nprocesses, 1);
	CHECK(stats_of(d).nputs > 1000);
	pen_ddict_close(d);
}

static void forever(int me)
{
	struct pen_rng rng = pen__rng(2, (uint64_t)me);
	struct pen_ddict *d = attach();

	for (uint64_t turn = (uint64_t)me;; turn += 1600)
		if (use(d, &rng, turn, 100))
			_exit(1);
}

/* Killing a process at any point does not affect the others. */
static void killed(void)
{
	struct pen_ddict *d = attach();
	struct pen_rng rng = pen__rng(3, 4);
	uint64_t wrong = 0;
	pid_t pid[4];

	for (int i = 0; i < 4; i++)
		pid[i] = child(forever, i);
	for (int round = 0; round < 40; round++) {
		const int i = round % 4;

		wrong += use(d, &rng, 15, (int)pen__rng_below(&rng, 200));
		kill(pid[i], SIGKILL);
		CHECK_EQ(reap(pid[i]), SIGKILL);
		pid[i] = child(forever, i);
	}
	for (int i = 0; i < 4; i++) {
		kill(pid[i], SIGKILL);
		CHECK_EQ(reap(pid[i]), SIGKILL);
	}
	CHECK_EQ(wrong, 0);
	wrong = use(d, &rng, 15, 2000);
	CHECK_EQ(wrong, 0);
	check_all(d);
	pen_ddict_close(d);
}

static int both[2]; /* a socket pair: a byte when a child is ready */

static void tell(void)
{
	CHECK_EQ(write(both[1], "!", 1), 1);
}

static void await(void)
{
	char c;

	CHECK_EQ(read(both[0], &c, 1), 1);
}

/* Holds values, and is killed with them. */
static void holder(int arg)
{
	struct pen_ddict *d = attach();
	struct pen_key k[KEYS];
	struct pen_got *g;

	(void)arg;
	for (uint64_t i = 0; i < KEYS; i++)
		k[i] = num(i);
	CHECK_EQ(pen_ddict_get_many(d, k, KEYS, &g, NULL), 0);
	tell();
	for (;;)
		pause();
}

static void killed_reader(void)
{
	struct pen_ddict *d = attach();
	struct pen_rng rng = pen__rng(7, 7);
	uint64_t wrong;
	siginfo_t info;
	pid_t pid;

	wrong = use(d, &rng, 0, 300);
	pid = child(holder, 0);
	await();
	CHECK_EQ(stats_of(d).nprocesses, 2);
	kill(pid, SIGKILL);
	/* not reaped yet: a zombie holds nothing, and is not counted as a
	 * user */
	CHECK_EQ(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	CHECK_EQ(stats_of(d).nprocesses, 1);
	wrong += use(d, &rng, 1, 10000);
	CHECK_EQ(wrong, 0);
	CHECK_EQ(reap(pid), SIGKILL);
	check_all(d);
	pen_ddict_close(d);
}

static void creator(int arg)
{
	struct pen_ddict *d = attach();

	(void)arg;
	CHECK_EQ(pen_ddict_put(d, num(1), value("kept", 4), NULL), 0);
	tell();
	for (;;)
		pause();
}

static void newcomer(int arg)
{
	const char *const set[] = { setting, "create=false" };
	struct pen_ddict *d;

	(void)arg;
	if (pen_ddict_open(&d, NULL, set, 2, NULL))
		_exit(1);
	if (!has(d, num(1), "kept", 4) ||
	    pen_ddict_put(d, num(2), value("more", 4), NULL))
		_exit(2);
	pen_ddict_close(d);
	_exit(0);
}

/* The name outlives its creator, but not the last user. */
static void creator_goes(void)
{
	const char *const set[] = { setting, "create=false" };
	struct pen_ddict *d, *none;
	struct pen_err err = { 0 };
	pid_t pid = child(creator, 0);

	await();
	d = attach();
	CHECK(has(d, num(1), "kept", 4));
	kill(pid, SIGKILL);
	CHECK_EQ(reap(pid), SIGKILL);
	CHECK(has(d, num(1), "kept", 4));
	CHECK_EQ(reap(child(newcomer, 0)), 0);
	CHECK(has(d, num(2), "more", 4));
	pen_ddict_close(d);
	CHECK_EQ(pen_ddict_open(&none, NULL, set, 2, &err), PEN_ENOTFOUND);
	d = attach();
	CHECK_EQ(length(d), 0);
	pen_ddict_close(d);
}

static struct pen_ddict *inherited;

static void heir(int arg)
{
	(void)arg;
	if (!has(inherited, num(1), "mine", 4) ||
	    pen_ddict_put(inherited, num(2), value("yours", 5), NULL) ||
	    stats_of(inherited).nprocesses != 2)
		_exit(1);
	pen_ddict_close(inherited);
	_exit(atomic_load(&test_failures) ? 2 : 0);
}

/* A forked child uses it without the name, as a separate process. */
static void forked(void)
{
	struct pen_got *g;
	struct pen_key k = num(1);

	inherited = open_sized("memory=2MiB");
	CHECK_EQ(pen_ddict_put(inherited, k, value("mine", 4), NULL), 0);
	CHECK_EQ(pen_ddict_get_many(inherited, &k, 1, &g, NULL), 0);
	CHECK_EQ(reap(child(heir, 0)), 0);
	CHECK(!memcmp(g->values[0].data, "mine", 4));
	pen_got_free(g);
	CHECK(has(inherited, num(2), "yours", 5));
	CHECK_EQ(stats_of(inherited).nprocesses, 1);
	pen_ddict_close(inherited);
}

/* Eight at the same time: one creates it, all use the same. */
static void racer(int me)
{
	struct pen_ddict *d = attach();

	if (pen_ddict_put(d, num(1000 + (uint64_t)me), value("r", 1), NULL))
		_exit(1);
	tell();
	for (;;)
		pause();
}

static void race(void)
{
	struct pen_ddict *d;
	pid_t pid[PROCESSES];

	for (int i = 0; i < PROCESSES; i++)
		pid[i] = child(racer, i);
	for (int i = 0; i < PROCESSES; i++)
		await();
	d = attach();
	CHECK_EQ(length(d), PROCESSES);
	for (int i = 0; i < PROCESSES; i++) {
		kill(pid[i], SIGKILL);
		CHECK_EQ(reap(pid[i]), SIGKILL);
	}
	pen_ddict_close(d);
}

/* The address of the first process that has the dictionary of user 0. */
static socklen_t name_of_root(struct sockaddr_un *a, int at)
{
	int n;

	memset(a, 0, sizeof(*a));
	a->sun_family = AF_UNIX;
	n = snprintf(a->sun_path + 1, sizeof(a->sun_path) - 1,
		     "penstock.%s.0.%d", setting + 5, at);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			   (size_t)n);
}

/* As a process that has the dictionary would, but for anyone. */
static void hand_out(int sock, int fd)
{
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} u = { .buf = { 0 } };
	struct iovec iov = { (char[]){ 'd' }, 1 };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = u.buf,
			    .msg_controllen = sizeof(u.buf) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	(void)!sendmsg(sock, &m, MSG_NOSIGNAL);
}

/* Another user takes the name, with a dictionary of its own behind it. */
static void squatter(int arg)
{
	struct sockaddr_un a;
	const socklen_t n = name_of_root(&a, 0);
	int s = socket(AF_UNIX, SOCK_STREAM, 0);
	struct pen_seg *seg;

	(void)arg;
	if (setresuid(65534, 65534, 65534) || bind(s, (void *)&a, n) ||
	    listen(s, 64) || pen__seg_create(&seg, 2 << 20, NULL))
		_exit(2);
	tell();
	for (;;) {
		const int c = accept(s, NULL, NULL);

		hand_out(c, seg->fd);
		close(c);
	}
}

/* Another user asks for the dictionary. Exits with the bytes it got. */
static void asker(int arg)
{
	struct sockaddr_un a;
	const socklen_t n = name_of_root(&a, 0);
	int s = socket(AF_UNIX, SOCK_STREAM, 0);
	char byte;

	(void)arg;
	if (setresuid(65534, 65534, 65534) || connect(s, (void *)&a, n))
		_exit(2);
	_exit(recv(s, &byte, 1, 0) == 1);
}

/* Names are their owner's: what another user hands out is not taken, and
 * nothing is handed to another user. */
static void other_user(void)
{
	const char *const set[] = { setting, "create=false" };
	struct pen_ddict *d;
	struct pen_err err = { 0 };
	pid_t pid;

	if (geteuid() != 0)
		return; /* only root can be two users */
	d = attach();
	CHECK_EQ(reap(child(asker, 0)), 0);
	pen_ddict_close(d);
	pid = child(squatter, 0);
	await();
	d = NULL;
	CHECK(pen_ddict_open(&d, NULL, set, 2, &err) < 0);
	CHECK(!d);
	CHECK(strstr(err.msg, "65534")); /* says whose it is */
	kill(pid, SIGKILL);
	CHECK_EQ(reap(pid), SIGKILL);
	d = attach();
	CHECK_EQ(length(d), 0);
	pen_ddict_close(d);
}

int main(void)
{
	if (!CAN_FORK)
		TEST_SKIP("ThreadSanitizer does not allow it");
	snprintf(setting, sizeof(setting), "name=test-%d", (int)getpid());
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, both))
		return 1;
	race();
	eight();
	killed();
	killed_reader();
	creator_goes();
	forked();
	other_user();
	return test_end();
}
