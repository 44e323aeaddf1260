/*
 * Requests and replies between ranks, many at a time, with progress while the
 * ranks compute. Transports, one file and one line of a table (wire.c) each:
 * "tcp" (sockets; unix sockets within a host), "mpi" (MPI messages, if MPI
 * supports multiple threads) and "ucx" (whatever UCX has; it can read memory of
 * another rank, too).
 *
 * A wire has one thread. It serves the requests of other ranks and receives the
 * replies to this rank's, whatever the rest of the process does.
 *
 * If a rank dies, every pending and later call to it ends with PEN_EIO and an
 * error that names rank and host. No call waits forever.
 *
 * A forked child has no wire: its calls end with PEN_ENOTSUP, and its close
 * does nothing.
 */
#ifndef PEN_DDICT_WIRE_H
#define PEN_DDICT_WIRE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/uio.h>

#include "comm/comm.h"

struct pen_wire;

/* State of an outgoing message; private to the wire. */
struct pen_msg {
	struct pen_msg *next;
	const struct iovec *iov;
	uint32_t niov, i; /* i, off: the first byte not sent */
	size_t off;
	uint64_t id, at, total; /* at: start of the current piece */
	uint8_t kind;
};

/* Memory of another rank that this rank may read; exists as long as the wire.
 */
struct pen_region;
struct pen_read {
	void *to;
	uint64_t off, n; /* within the region */
};

/* Which of the transports of a wire carries a call. */
enum pen_lane {
	PEN_LANE_SMALL,
	PEN_LANE_BULK,	 /* fastest for large values */
	PEN_LANE_READER, /* the one with one-sided reads */
};

/*
 * A request. The caller owns the storage, zeroed except for what it sets, and
 * must keep it and the bytes of req until the call is done.
 */
struct pen_call {
	int to;	  /* another rank */
	int nreq; /* 0: an empty request */
	const struct iovec *req;
	/*
	 * Returns room for a reply of n bytes, n > 0. Called once, on the
	 * wire's thread, so it must be quick and must not wait for other calls.
	 * NULL fails the call with PEN_ENOMEM. Without alloc, the reply comes
	 * from pen__alloc() and the caller frees it.
	 */
	void *(*alloc)(struct pen_call *, size_t n);
	void *arg; /* the caller's */
	enum pen_lane lane;
	/* For pen__wire_read(), instead of a request: */
	struct pen_region *region;
	const struct pen_read *reads;
	uint32_t nreads;

	/* set when done */
	int code; /* 0 or a negative pen_code; err has the details */
	void *reply;
	size_t reply_len;
	struct pen_err err;

	/* private to the wire */
	_Atomic uint32_t state;
	size_t got;
	struct pen_msg out;
	struct pen_call *next;
	uint32_t nstarted, nlanded;
	bool broken;
};

/*
 * A reply: pieces of memory that are sent in place, and must stay unchanged
 * until sent() is called.
 */
struct pen_reply {
	struct iovec *iov;
	uint32_t n, cap;
	uint64_t len;
	void *hold; /* for the server, initially NULL: what sent() releases */
	void *room; /* pen__reply_room() */
	size_t room_cap;
};

/* Appends n bytes at p; merges adjacent pieces. 0 or PEN_ENOMEM. */
int pen__reply_add(struct pen_reply *, const void *p, size_t n);
/*
 * Memory for generated parts of the reply, such as lengths; valid until it is
 * sent, aligned as malloc's. Once per reply; must be added like any other
 * piece.
 */
void *pen__reply_room(struct pen_reply *, size_t n);

/* Serves the requests of other ranks, on the thread of each transport in use:
 * calls may be concurrent. */
struct pen_wire_server {
	void *arg;
	/*
	 * req: n bytes, aligned as malloc's, valid until serve() returns. On an
	 * error, the caller's wait returns err with rank and host before the
	 * message, and no reply is sent.
	 */
	int (*serve)(void *arg, int from, const void *req, size_t n,
		     struct pen_reply *out, struct pen_err *err);
	/*
	 * Called once after every serve(), in any order: the reply was sent, or
	 * never will be. May be NULL.
	 */
	void (*sent)(void *arg, struct pen_reply *);
};

/*
 * Collective over all ranks of the communicator, which only open uses.
 * transport: NULL or "auto" tries those that work between these ranks and
 * chooses the fastest between two hosts (or two ranks, if there is one host).
 * Those that fail are skipped; if none is left, PEN_ENOTSUP with all reasons. A
 * single process gets a wire that leads nowhere. The server must be ready:
 * requests may arrive before open returns.
 */
int pen__wire_open(struct pen_wire **out, struct pen_comm *,
		   const char *transport, const struct pen_wire_server *,
		   struct pen_err *err);
/*
 * Collective: continues to serve until every living rank closes, too. All calls
 * of this rank must be done. NULL ok.
 */
void pen__wire_close(struct pen_wire *);

/*
 * Collective: distributes every rank's bytes to all ranks, in rank order, in
 * one allocation that the caller frees; fills len[size]. Fails on all ranks or
 * on none.
 */
int pen__wire_exchange(struct pen_comm *, const void *mine, size_t n,
		       char **all, size_t *len, struct pen_err *err);

/* "tcp", "mpi", or "none" for a single process. */
const char *pen__wire_name(const struct pen_wire *);
/* What was chosen and why, in one line; the same on all ranks; valid until
 * close. */
const char *pen__wire_why(const struct pen_wire *);
/* The host of a rank; valid until close. */
const char *pen__wire_host(const struct pen_wire *, int rank);

/*
 * Sends and returns immediately; errors show when waiting. From any thread,
 * including serve().
 */
void pen__wire_call(struct pen_wire *, struct pen_call *);
/*
 * Waits until all are done; from any thread except the wire's. Returns code and
 * error of the first call that failed, in the order given; each call has its
 * own as well.
 */
int pen__wire_wait(struct pen_wire *, struct pen_call *const *calls, size_t n,
		   struct pen_err *err);
/*
 * One-sided reads: the owner exposes memory, only from
 * serve() of a request on PEN_LANE_READER, and
 * sends the key (valid until the wire closes) to those that may read it; they
 * make a region of it. The memory must not change. Where the network can, the
 * owner's processor is not involved.
 */
int pen__wire_expose(struct pen_wire *, const void *p, uint64_t n,
		     const void **key, size_t *nkey, struct pen_err *err);
struct pen_exposed {
	int rank;
	uint64_t base, n; /* in the owner's address space */
	const void *key;  /* copied */
	size_t nkey;
};
int pen__wire_region(struct pen_wire *, const struct pen_exposed *,
		     struct pen_region **out, struct pen_err *err);
/* As pen__wire_call(): reads call->reads, which must stay valid. */
void pen__wire_read(struct pen_wire *, struct pen_call *);
/* True if reads are possible and, by measurement, faster than requests for
 * values of this size; able: only whether they are possible. */
bool pen__wire_can_read(const struct pen_wire *, bool bulk);
bool pen__wire_able_to_read(const struct pen_wire *);
/* Values of this size and more are bulk. */
#define PEN_BULK ((uint64_t)16 << 10)

/* True if the call is done. */
static inline bool pen__call_done(struct pen_call *c)
{
	return atomic_load_explicit(&c->state, memory_order_acquire) == 2;
}

#endif
