/*
 * A thread that hands out a descriptor. It has its own descriptor table, so
 * that a forked child does not keep the socket, and with it the name, after the
 * process has ended. Descriptors are exchanged only between processes of the
 * same user.
 */
#include "ddict/name_server.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/team.h"

#define BACKLOG 64
#define PATIENCE_S 2
#define UNSHARE (1u << 1) /* CLOSE_RANGE_UNSHARE */

struct pen_name_server {
	int sock, fd; /* in the thread's descriptor table */
	int stop, ready;
	bool shared; /* the table is the process's, on old kernels */
	struct pen_team *team;
};

int pen__name_check(const char *name, struct pen_err *err)
{
	static const char fine[] = "abcdefghijklmnopqrstuvwxyz"
				   "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				   "0123456789._-";
	const size_t n = strlen(name);

	if (!n || n > PEN_NAME_LONGEST || strspn(name, fine) != n)
		return pen__fail(
			err, P_BAD_VALUE, name,
			"not a valid dictionary name; use 1 to %d letters, "
			"digits, dots, dashes and underscores",
			PEN_NAME_LONGEST);
	return 0;
}

static socklen_t address(struct sockaddr_un *a, const char *name, int at)
{
	int n;

	memset(a, 0, sizeof(*a));
	a->sun_family = AF_UNIX;
	/* a leading NUL: abstract, not a file */
	n = snprintf(a->sun_path + 1, sizeof(a->sun_path) - 1,
		     "penstock.%s.%u.%d", name, (unsigned)geteuid(), at);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			   (size_t)n);
}

/* c: the process at the other end; pid 0 if that cannot be told. */
static bool same_user(int sock, struct ucred *c)
{
	socklen_t n = sizeof(*c);

	*c = (struct ucred){ 0 };
	return !getsockopt(sock, SOL_SOCKET, SO_PEERCRED, c, &n) &&
	       c->uid == geteuid();
}

int pen__name_bind(const char *name, int at, int *sock, struct pen_err *err)
{
	struct sockaddr_un a;
	const socklen_t n = address(&a, name, at);
	int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (s < 0)
		return pen__fail_sys(err, errno, name,
				     "cannot create a socket");
	if (!bind(s, (void *)&a, n)) {
		*sock = s;
		return 0;
	}
	if (errno == EADDRINUSE) {
		close(s);
		return PEN_AGAIN;
	}
	pen__fail_sys(err, errno, name, "cannot bind a socket to this name");
	close(s);
	return PEN_EIO;
}

static void hand_out(int sock, int fd)
{
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} u;
	char byte = 'd';
	struct iovec iov = { &byte, 1 };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = u.buf,
			    .msg_controllen = sizeof(u.buf) };
	struct cmsghdr *c;

	memset(&u, 0, sizeof(u));
	c = CMSG_FIRSTHDR(&m);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	(void)sendmsg(sock, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static int shut(int first, int last, unsigned flags)
{
	if (first > last)
		return 0;
	return (int)syscall(SYS_close_range, (unsigned)first, (unsigned)last,
			    flags);
}

/* Gives the thread its own descriptor table, with only these descriptors and
 * standard error. */
static bool keep_only(const struct pen_name_server *d)
{
	int keep[6] = { 2, d->sock, d->fd, d->stop, d->ready, 0x7fffffff };

	for (int i = 1; i < 5; i++)
		for (int k = i; k > 1 && keep[k] < keep[k - 1]; k--) {
			const int t = keep[k];

			keep[k] = keep[k - 1];
			keep[k - 1] = t;
		}
	/* if standard input is closed, a socket may have its number */
	if (keep[1] < 2 || shut(0, 1, UNSHARE))
		return false;
	for (int i = 0; i < 5; i++)
		(void)shut(keep[i] + 1, keep[i + 1] - 1, 0);
	return true;
}

static void serve(void *arg, unsigned i)
{
	struct pen_name_server *d = arg;
	struct pollfd p[2] = { { d->sock, POLLIN, 0 }, { d->stop, POLLIN, 0 } };
	/* 1: the opener closes its copies; 2: the thread shares them */
	const uint64_t told = keep_only(d) ? 1 : 2;
	struct ucred peer;
	int s;

	(void)i;
	(void)!write(d->ready, &told, sizeof(told));
	while (!p[1].revents) {
		if (poll(p, 2, -1) < 0)
			continue;
		if (!(p[0].revents & POLLIN))
			continue;
		s = accept4(d->sock, NULL, NULL, SOCK_CLOEXEC);
		if (s < 0)
			continue;
		if (same_user(s, &peer))
			hand_out(s, d->fd);
		close(s);
	}
}

static void free_server(struct pen_name_server *d)
{
	if (d->stop >= 0)
		close(d->stop);
	if (d->ready >= 0)
		close(d->ready);
	if (d->shared)
		close(d->sock);
	pen__free(d);
}

int pen__name_serve(struct pen_name_server **out, int sock, int fd,
		    struct pen_err *err)
{
	struct pen_name_server *d = pen__calloc(1, sizeof(*d));
	uint64_t told = 0;
	int rc;

	if (!d) {
		close(sock);
		return pen__fail_nomem(err, "dictionary", sizeof(*d));
	}
	*d = (struct pen_name_server){ .sock = sock, .fd = fd, .shared = true };
	d->stop = eventfd(0, EFD_CLOEXEC);
	d->ready = eventfd(0, EFD_CLOEXEC);
	if (d->stop < 0 || d->ready < 0 || listen(sock, BACKLOG)) {
		rc = pen__fail_sys(err, errno, "dictionary",
				   "cannot listen on the socket of its name");
		goto fail;
	}
	rc = pen__team_start(&d->team, 1, "pen-door", serve, d, err);
	if (rc)
		goto fail;
	while (read(d->ready, &told, sizeof(told)) < 0 && errno == EINTR)
		;
	if (told == 1) {
		close(sock);
		d->shared = false;
	}
	*out = d;
	return 0;
fail:
	free_server(d);
	return rc;
}

void pen__name_server_close(struct pen_name_server *d)
{
	const uint64_t one = 1;

	if (!d)
		return;
	while (write(d->stop, &one, sizeof(one)) < 0 && errno == EINTR)
		;
	pen__team_join(d->team);
	free_server(d);
}

/* Receives the descriptor, or -1. */
static int receive(int sock)
{
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} u;
	char byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = u.buf,
			    .msg_controllen = sizeof(u.buf) };
	struct cmsghdr *c;
	ssize_t n;
	int fd;

	do
		n = recvmsg(sock, &m, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n != 1)
		return -1;
	c = CMSG_FIRSTHDR(&m);
	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS ||
	    c->cmsg_len != CMSG_LEN(sizeof(int)))
		return -1;
	memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

/* other: set if a process of another user holds this place. */
static int fetch_at(const char *name, int at, struct ucred *other)
{
	const struct timeval patience = { .tv_sec = PATIENCE_S };
	struct sockaddr_un a;
	const socklen_t n = address(&a, name, at);
	int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct ucred peer;
	int fd = -1;

	if (s < 0)
		return -1;
	(void)setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &patience,
			 sizeof(patience));
	(void)setsockopt(s, SOL_SOCKET, SO_SNDTIMEO, &patience,
			 sizeof(patience));
	if (!connect(s, (void *)&a, n)) {
		if (same_user(s, &peer))
			fd = receive(s);
		else if (peer.pid)
			*other = peer;
	}
	close(s);
	return fd;
}

int pen__name_fetch(const char *name, int *fd, struct pen_err *err)
{
	struct ucred other = { 0 };

	for (int i = 0; i < PEN_NAME_SERVERS; i++) {
		*fd = fetch_at(name, i, &other);
		if (*fd >= 0)
			return 0;
	}
	/* names of other users differ: this one was made to be mistaken */
	if (other.pid)
		return pen__fail(err, P_NO_PERMISSION, name,
				 "process %d of another user (uid %u) occupies "
				 "this name; choose another name",
				 (int)other.pid, (unsigned)other.uid);
	return pen__fail(err, P_NO_DICTIONARY, name,
			 "no process of this user on this machine has a "
			 "dictionary with this name");
}
