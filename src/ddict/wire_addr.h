/*
 * Where a rank can be reached, and how two ranks become sure of each other:
 * the sockets before anything is asked over them.
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
	uint8_t prefix; /* bits that the network shares */
	uint8_t loopback;
	uint8_t bytes[16];
	uint32_t speed; /* Mbit/s; 0: not known */
};

/* What a rank tells the others: all ways to it. */
struct pen_card {
	uint16_t port;	 /* network order */
	uint16_t unix_n; /* bytes of the name; 0: none */
	uint16_t naddrs;
	int node;
	char unix_name[32]; /* abstract: of this host's network namespace */
	struct pen_addr addrs[PEN_ADDRS];
};

/* What only the ranks of this job know, one for each side to show. */
struct pen_cookie {
	unsigned char call[16], answer[16];
};

struct pen_hello {
	char magic[8];
	uint32_t version, frame; /* sizes: of another build they differ */
	int32_t from, to;
	unsigned char cookie[16];
};

/* Listens; fds[0] is tcp, fds[1] a unix socket or -1. */
int pen__card_listen(struct pen_card *, int fds[2], struct pen_err *err);
/*
 * Connects to a rank by the best way that works: an unix socket on the same
 * host, then networks that both are in, the fastest first, then the others.
 * The socket does not block. Only who shows the cookie is the one.
 */
int pen__card_connect(const struct pen_card *mine, const struct pen_card *to,
		      const struct pen_hello *, const struct pen_cookie *,
		      int *fd, struct pen_err *err);
void pen__hello_init(struct pen_hello *, int from, int to,
		     const unsigned char *cookie);
/* Whether it says `expected`, but for the rank it comes from. */
int pen__hello_check(const struct pen_hello *got,
		     const struct pen_hello *expected);
/* Options of a socket that is a connection. */
void pen__socket_tune(int fd);

#endif
