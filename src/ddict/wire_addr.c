/*
 * Addresses. A rank listens on all its addresses and announces them to the
 * others. A connecting rank tries them in order of promise, and the kernel's
 * routes decide which interface is used. An address proves nothing: container
 * bridges have the same one on every host. So both sides present a secret that
 * rank 0 generated and distributed through the communicator, and their rank;
 * after a wrong answer, the next address is tried.
 *
 * The secret is sent unencrypted, as is MPI's own traffic.
 */
#include "ddict/wire_addr.h"

#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "ddict/wire_int.h"

/* Timeout of an address; there may be others. */
#define CONNECT_MS 2000
/* Until a host that has vanished silently counts as lost. */
#define SILENT_S 30

union any {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct sockaddr_un un;
};

/* --- this rank's addresses --- */

static uint32_t speed_of(const char *name)
{
	char path[64 + IF_NAMESIZE], text[24] = "";
	ssize_t n;
	long v;
	int fd;

	snprintf(path, sizeof(path), "/sys/class/net/%.*s/speed", IF_NAMESIZE,
		 name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	v = n > 0 ? strtol(text, NULL, 10) : 0;
	return v > 0 && v < 100000000 ? (uint32_t)v : 0;
}

static uint8_t bits(const uint8_t *mask, size_t n)
{
	uint8_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += (uint8_t)__builtin_popcount(mask[i]);
	return sum;
}

static bool read_addr(const struct ifaddrs *i, struct pen_addr *out)
{
	const union any *a = (const union any *)(const void *)i->ifa_addr;
	const union any *m = (const union any *)(const void *)i->ifa_netmask;

	*out = (struct pen_addr){ .loopback = (i->ifa_flags & IFF_LOOPBACK) !=
					      0 };
	if (!a || !(i->ifa_flags & IFF_UP))
		return false;
	if (a->sa.sa_family == AF_INET) {
		out->family = AF_INET;
		memcpy(out->bytes, &a->in.sin_addr, 4);
		out->prefix = m ? bits((const void *)&m->in.sin_addr, 4) : 32;
	} else if (a->sa.sa_family == AF_INET6) {
		/* link-local addresses need the interface, which peers do not
		 * know */
		if (IN6_IS_ADDR_LINKLOCAL(&a->in6.sin6_addr))
			return false;
		out->family = AF_INET6;
		memcpy(out->bytes, &a->in6.sin6_addr, 16);
		out->prefix = m ? bits((const void *)&m->in6.sin6_addr, 16)
				: 128;
	} else {
		return false;
	}
	out->speed = speed_of(i->ifa_name);
	return true;
}

static int list_addrs(struct pen_card *c, struct pen_err *err)
{
	struct ifaddrs *all;

	if (getifaddrs(&all))
		return pen__fail_sys(err, errno, "network",
				     "cannot list the network interfaces");
	for (struct ifaddrs *i = all; i && c->naddrs < PEN_ADDRS;
	     i = i->ifa_next)
		if (read_addr(i, &c->addrs[c->naddrs]))
			c->naddrs++;
	freeifaddrs(all);
	return 0;
}

/* Any address of both families, if the kernel supports them. */
static int listen_tcp(struct pen_card *c, struct pen_err *err)
{
	union any a = { .in6 = { .sin6_family = AF_INET6 } };
	socklen_t n = sizeof(a.in6);
	const int off = 0;
	int fd;

	fd = socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd >= 0)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off,
				 sizeof(off));
	if (fd < 0 || bind(fd, &a.sa, n)) {
		if (fd >= 0)
			close(fd);
		a = (union any){ .in = { .sin_family = AF_INET } };
		n = sizeof(a.in);
		fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
			    0);
		if (fd < 0)
			return pen__fail_sys(err, errno, "network",
					     "cannot create a socket");
		if (bind(fd, &a.sa, n))
			goto fail;
	}
	if (listen(fd, SOMAXCONN) || getsockname(fd, &a.sa, &n))
		goto fail;
	c->port = a.sa.sa_family == AF_INET ? a.in.sin_port : a.in6.sin6_port;
	return fd;
fail:
	pen__fail_sys(err, errno, "network", "cannot listen on a socket");
	close(fd);
	return PEN_EIO;
}

/* The kernel chooses a name. On failure, tcp remains. */
static int listen_unix(struct pen_card *c)
{
	const size_t before = offsetof(struct sockaddr_un, sun_path);
	union any a = { .un = { .sun_family = AF_UNIX } };
	socklen_t n = sizeof(a.un);
	int fd;

	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	if (bind(fd, &a.sa, sizeof(sa_family_t)) || listen(fd, SOMAXCONN) ||
	    getsockname(fd, &a.sa, &n) || n <= before ||
	    n - before > sizeof(c->unix_name)) {
		close(fd);
		return -1;
	}
	c->unix_n = (uint16_t)(n - before);
	memcpy(c->unix_name, a.un.sun_path, c->unix_n);
	return fd;
}

int pen__card_listen(struct pen_card *c, int fds[2], struct pen_err *err)
{
	int rc = list_addrs(c, err);

	if (rc)
		return rc;
	fds[0] = listen_tcp(c, err);
	if (fds[0] < 0)
		return PEN_EIO;
	fds[1] = listen_unix(c);
	return 0;
}

void pen__socket_tune(int fd)
{
	const int on = 1, idle = SILENT_S / 3, every = SILENT_S / 6, probes = 4;
	const unsigned ms = SILENT_S * 1000;

	/* no effect on unix sockets */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every, sizeof(every));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof(ms));
}

/* --- hello --- */

void pen__hello_init(struct pen_hello *h, int from, int to,
		     const unsigned char *cookie)
{
	*h = (struct pen_hello){ .magic = "penwire",
				 .version = sizeof(struct pen_err),
				 .frame = sizeof(struct pen_frame),
				 .from = from,
				 .to = to };
	memcpy(h->cookie, cookie, sizeof(h->cookie));
}

int pen__hello_check(const struct pen_hello *got,
		     const struct pen_hello *expected)
{
	unsigned char diff = 0;

	/* compare all bytes, so that the time reveals nothing */
	for (size_t i = 0; i < sizeof(got->cookie); i++)
		diff |= got->cookie[i] ^ expected->cookie[i];
	if (diff || memcmp(got->magic, expected->magic, sizeof(got->magic)) ||
	    got->version != expected->version ||
	    got->frame != expected->frame || got->to != expected->to)
		return PEN_EDATA;
	return 0;
}

/* --- connecting --- */

/* Waits until the socket is ready or time is up. */
static int wait_for(int fd, short what, uint64_t until)
{
	for (;;) {
		struct pollfd p = { .fd = fd, .events = what };
		const uint64_t now = pen__now_ns();
		int n;

		if (now >= until)
			return ETIMEDOUT;
		n = poll(&p, 1, (int)((until - now) / 1000000) + 1);
		if (n > 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return errno;
	}
}

static int say_hello(int fd, const struct pen_hello *mine,
		     const struct pen_hello *expected, uint64_t until)
{
	struct pen_hello got;
	size_t n = 0;

	/* the first bytes of a connection never block */
	if (send(fd, mine, sizeof(*mine), MSG_NOSIGNAL) != sizeof(*mine))
		return EPIPE;
	while (n < sizeof(got)) {
		ssize_t k = recv(fd, (char *)&got + n, sizeof(got) - n, 0);
		int rc;

		if (k > 0) {
			n += (size_t)k;
			continue;
		}
		if (!k || (errno != EAGAIN && errno != EINTR))
			return k ? errno : ECONNREFUSED;
		rc = wait_for(fd, POLLIN, until);
		if (rc)
			return rc;
	}
	if (pen__hello_check(&got, expected) || got.from != mine->to)
		return EADDRNOTAVAIL;
	return 0;
}

/* Connects, and checks that the peer is the expected rank; 0 or an errno. */
static int attempt(const union any *a, socklen_t n,
		   const struct pen_hello *mine,
		   const struct pen_hello *expected, int *out)
{
	const uint64_t until = pen__now_ns() + CONNECT_MS * 1000000ull;
	socklen_t len = sizeof(int);
	int fd, e = 0;

	fd = socket(a->sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
		    0);
	if (fd < 0)
		return errno;
	pen__socket_tune(fd);
	if (connect(fd, &a->sa, n)) {
		/* EAGAIN: the backlog of a unix socket is full */
		e = errno;
		if (e == EINPROGRESS)
			e = wait_for(fd, POLLOUT, until);
		if (!e && getsockopt(fd, SOL_SOCKET, SO_ERROR, &e, &len))
			e = errno;
	}
	if (!e)
		e = say_hello(fd, mine, expected, until);
	if (e)
		close(fd);
	else
		*out = fd;
	return e;
}

static bool same_bits(const uint8_t *a, const uint8_t *b, unsigned n)
{
	if (memcmp(a, b, n / 8))
		return false;
	return n % 8 == 0 || (a[n / 8] ^ b[n / 8]) >> (8 - n % 8) == 0;
}

/*
 * Ranks an address by promise. Addresses that probably lead back to this host
 * come last.
 */
static uint64_t promise(const struct pen_card *mine, const struct pen_card *to,
			const struct pen_addr *a)
{
	const bool same_node = mine->node == to->node;
	uint64_t best = 3;

	if (a->loopback)
		return same_node ? 2 : 1;
	for (int i = 0; i < mine->naddrs; i++) {
		const struct pen_addr *m = &mine->addrs[i];
		uint32_t speed = m->speed < a->speed ? m->speed : a->speed;

		if (m->family != a->family)
			continue;
		/* one of this host's own: leads to itself, unless both are on
		 * one host */
		if (same_bits(m->bytes, a->bytes,
			      a->family == AF_INET ? 32 : 128))
			return same_node ? 3 : 2;
		if (m->prefix == a->prefix &&
		    same_bits(m->bytes, a->bytes, a->prefix) &&
		    best < 4u + speed)
			best = 4u + speed;
	}
	return best;
}

static socklen_t sockaddr_of(const struct pen_card *to,
			     const struct pen_addr *a, union any *out)
{
	memset(out, 0, sizeof(*out));
	if (a->family == AF_INET) {
		out->in.sin_family = AF_INET;
		out->in.sin_port = to->port;
		memcpy(&out->in.sin_addr, a->bytes, 4);
		return sizeof(out->in);
	}
	out->in6.sin6_family = AF_INET6;
	out->in6.sin6_port = to->port;
	memcpy(&out->in6.sin6_addr, a->bytes, 16);
	return sizeof(out->in6);
}

static int try_unix(const struct pen_card *mine, const struct pen_card *to,
		    const struct pen_hello *hello,
		    const struct pen_hello *expected, int *fd)
{
	const size_t before = offsetof(struct sockaddr_un, sun_path);
	union any a = { .un = { .sun_family = AF_UNIX } };

	if (mine->node != to->node || !mine->unix_n || !to->unix_n ||
	    to->unix_n > sizeof(to->unix_name))
		return ENOENT;
	memcpy(a.un.sun_path, to->unix_name, to->unix_n);
	return attempt(&a, (socklen_t)(before + to->unix_n), hello, expected,
		       fd);
}

int pen__card_connect(const struct pen_card *mine, const struct pen_card *to,
		      const struct pen_hello *hello,
		      const struct pen_cookie *cookie, int *fd,
		      struct pen_err *err)
{
	struct pen_hello expected;
	uint64_t worth[PEN_ADDRS];
	int e = EHOSTUNREACH;

	pen__hello_init(&expected, hello->to, hello->from, cookie->answer);
	if (to->naddrs > PEN_ADDRS)
		return pen__fail(err, P_BAD_MESSAGE, "address",
				 "the rank announces too many addresses");
	if (!try_unix(mine, to, hello, &expected, fd))
		return 0;
	for (int i = 0; i < to->naddrs; i++)
		worth[i] = promise(mine, to, &to->addrs[i]);
	for (int left = to->naddrs; left; left--) {
		union any a;
		socklen_t n;
		int best = 0;

		for (int i = 1; i < to->naddrs; i++)
			if (worth[i] > worth[best])
				best = i;
		if (!worth[best])
			break;
		worth[best] = 0;
		n = sockaddr_of(to, &to->addrs[best], &a);
		e = attempt(&a, n, hello, &expected, fd);
		if (!e)
			return 0;
	}
	return pen__fail_sys(err, e, "network",
			     "none of its %d addresses responds", to->naddrs);
}
