/*
 * How a rank asks another for something: a request and its reply, many under
 * way at once, and progress while the ranks compute. Transports, one file and
 * one line of a table (wire.c) each: "tcp" (own sockets; within a host unix
 * ones) and "mpi" (messages of MPI, where it lets several threads in).
 *
 * A wire has one thread. It serves the requests of others and takes in the
 * replies to ours, whatever the rest of the process does.
 *
 * A rank that dies: every call to it that is under way, and every later one,
 * ends with PEN_EIO and an error that names rank and host. None waits for ever.
 *
 * A forked child has no wire: its calls end with PEN_ENOTSUP, its close does
 * nothing.
 */
#ifndef PEN_DDICT_WIRE_H
#define PEN_DDICT_WIRE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/uio.h>

#include "comm/comm.h"

struct pen_wire;

/* Where a message on its way out stands; the wire's alone. */
struct pen_msg {
	struct pen_msg *next;
	const struct iovec *iov;
	uint32_t niov, i; /* i, off: the first byte that was not sent */
	size_t off;
	uint64_t id, at, total; /* at: where the piece under way begins */
	uint8_t kind;
};

/*
 * A request. The caller's storage, all zero but for what it fills in, until
 * the call is done; so are the bytes that req points to.
 */
struct pen_call {
	int to;	  /* a rank, not this one */
	int nreq; /* 0: an empty request */
	const struct iovec *req;
	/*
	 * Room for a reply of n bytes, n > 0; called once, on the wire's
	 * thread, so it must be quick and not wait for other calls. NULL fails
	 * the call with PEN_ENOMEM. Without alloc the reply is pen__alloc()ed,
	 * and the caller's to free.
	 */
	void *(*alloc)(struct pen_call *, size_t n);
	void *arg; /* the caller's */

	/* when it is done */
	int code; /* 0 or a negative pen_code; then err says why */
	void *reply;
	size_t reply_len;
	struct pen_err err;

	/* the wire's */
	_Atomic uint32_t state;
	size_t got;
	struct pen_msg out;
};

/*
 * What is answered: pieces of memory that are sent from where they are and stay
 * as they are until sent() is called.
 */
struct pen_reply {
	struct iovec *iov;
	uint32_t n, cap;
	uint64_t len;
	void *hold; /* the server's, NULL at first: what sent() has to let go */
	void *room; /* pen__reply_room() */
	size_t room_cap;
};

/* Appends n bytes at p; neighbours become one. 0 or PEN_ENOMEM. */
int pen__reply_add(struct pen_reply *, const void *p, size_t n);
/*
 * Memory for what has to be made for the reply (lengths, say), valid until it
 * was sent, aligned as malloc's; once per reply, and to be added as any other.
 */
void *pen__reply_room(struct pen_reply *, size_t n);

/* What the ranks answer to each other; all on the wire's own thread. */
struct pen_wire_server {
	void *arg;
	/*
	 * req: n bytes, aligned as malloc's, until serve() returns. An error,
	 * with err filled, is what the caller gets: from its wait, with rank
	 * and host before the message; of the reply nothing is sent then.
	 */
	int (*serve)(void *arg, int from, const void *req, size_t n,
		     struct pen_reply *out, struct pen_err *err);
	/*
	 * Once after every serve(), in any order: the reply has left, or never
	 * will. May be NULL.
	 */
	void (*sent)(void *arg, struct pen_reply *);
};

/*
 * Collective, over all ranks of the communicator, which is used by open only.
 * transport: NULL or "auto" tries what works between these ranks, and takes
 * what is fastest between two hosts (or two ranks, when there is one host).
 * One that fails is passed over; when none is left: PEN_ENOTSUP with all
 * reasons. A process alone gets a wire that leads nowhere. The server must be
 * ready: others may ask before open returns here.
 */
int pen__wire_open(struct pen_wire **out, struct pen_comm *,
		   const char *transport, const struct pen_wire_server *,
		   struct pen_err *err);
/*
 * Collective: goes on serving until every rank that lives closes, too. All own
 * calls must be done. NULL ok.
 */
void pen__wire_close(struct pen_wire *);

/*
 * Collective: every rank's bytes to all ranks, in rank order, one allocation
 * that is the caller's; len[size] is filled. Fails on all ranks or on none.
 */
int pen__wire_exchange(struct pen_comm *, const void *mine, size_t n,
		       char **all, size_t *len, struct pen_err *err);

/* "tcp", "mpi", or "none" for a process alone. */
const char *pen__wire_name(const struct pen_wire *);
/* What was chosen and why, one line; the same on all ranks; until close. */
const char *pen__wire_why(const struct pen_wire *);
/* The host of a rank; until close. */
const char *pen__wire_host(const struct pen_wire *, int rank);

/*
 * Sends and returns at once; what fails shows when waiting. Any thread, also
 * from serve().
 */
void pen__wire_call(struct pen_wire *, struct pen_call *);
/*
 * Until all are done; any thread but the wire's own. The code and error of the
 * first that failed, in the order given; each call has its own, too.
 */
int pen__wire_wait(struct pen_wire *, struct pen_call *const *calls, size_t n,
		   struct pen_err *err);
/* Whether it is done. */
static inline bool pen__call_done(struct pen_call *c)
{
	return atomic_load_explicit(&c->state, memory_order_acquire) == 2;
}

#endif
