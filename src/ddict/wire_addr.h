/*
 * How a rank can be reached, and how two ranks authenticate each other: the
 * sockets, up to the first request.
 */
#ifndef PEN_DDICT_WIRE_ADDR_H
#define PEN_DDICT_WIRE_ADDR_H

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/err.h"

#define PEN_ADDRS 16

/* An address of a host. */
struct pen_addr {
	uint8_t family; /* AF_INET, AF_INET6 */
	uint8_t prefix; /* bits of the network prefix */
	uint8_t loopback;
	uint8_t bytes[16];
	uint32_t speed; /* Mbit/s; 0: unknown */
};

/* What a rank announces: all ways to reach it. */
struct pen_card {
	uint16_t port;	 /* network order */
	uint16_t unix_n; /* length of the name; 0: none */
	uint16_t naddrs;
	int node;
	char unix_name[32]; /* abstract, in this host's network namespace */
	struct pen_addr addrs[PEN_ADDRS];
};

/* Secrets of this job, one for each side. */
struct pen_cookie {
	unsigned char call[16], answer[16];
};

struct pen_hello {
	char magic[8];
	uint32_t version, frame; /* sizes, which differ between builds */
	int32_t from, to;
	unsigned char cookie[16];
};

/* Listens; fds[0] is tcp, fds[1] a unix socket or -1. */
int pen__card_listen(struct pen_card *, int fds[2], struct pen_err *err);
/*
 * Connects to a rank by the best way that works: a unix socket on the same
 * host, then shared networks, fastest first, then others. The socket is
 * non-blocking. Only a peer that presents the cookie is accepted.
 */
int pen__card_connect(const struct pen_card *mine, const struct pen_card *to,
		      const struct pen_hello *, const struct pen_cookie *,
		      int *fd, struct pen_err *err);
void pen__hello_init(struct pen_hello *, int from, int to,
		     const unsigned char *cookie);
/* Compares with `expected`, except for the sending rank. */
int pen__hello_check(const struct pen_hello *got,
		     const struct pen_hello *expected);
/* Sets the options of a connected socket. */
void pen__socket_tune(int fd);

#endif
