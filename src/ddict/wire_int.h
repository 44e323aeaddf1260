/*
 * Between the calls (wire_call.c) and a transport. A message is sent in pieces,
 * each after a frame, and the messages to a peer take turns, so that a large
 * one does not delay others. A transport moves frames and pieces, in any order,
 * and knows nothing about requests and replies.
 *
 * Only the wire's thread receives. Sending is guarded by the peer's lock.
 */
#ifndef PEN_DDICT_WIRE_INT_H
#define PEN_DDICT_WIRE_INT_H

#include <pthread.h>
#include <sys/types.h>

#include "base/alive.h"
#include "ddict/wire.h"

#define PEN_PIECE ((uint32_t)256 << 10)
/* Limit of a message: a larger length means damage or another program. */
#define PEN_MSG_MAX ((uint64_t)1 << 39)

enum pen_frame_kind {
	PEN_ASK = 1,
	PEN_PROBE, /* a request answered by the wire itself */
	PEN_REPLY,
	PEN_FAIL, /* a reply that is a struct pen_err */
	PEN_BYE,  /* this rank makes no more requests */
	PEN_PING, /* heartbeat */
};

/* All ranks run the same build, so structs are sent as they are. */
struct pen_frame {
	uint8_t kind;
	uint8_t zero[3];
	uint32_t len; /* of the piece that follows */
	uint64_t id;  /* of the call */
	uint64_t at, total;
};

/* An outgoing reply. */
struct pen_wire_answer {
	struct pen_msg msg;
	struct pen_reply reply;
	struct pen_err err;
	struct iovec fail; /* points to err */
	bool served;	   /* the server expects sent() */
};

/* An incoming request; its memory is kept for the next. */
struct pen_intake {
	struct pen_intake *next;
	uint64_t id, got, total;
	uint8_t kind;
	void *buf; /* NULL if cap is 0: out of memory, bytes are dropped */
	size_t cap;
};

/* A pending call, by the id of its reply. */
struct pen_wire_slot {
	struct pen_call *call; /* NULL: free; next: the following one */
	uint32_t age, next;
};

struct pen_wire_peer {
	struct pen_wire *wire;
	int rank;
	char host[64];
	int node;
	struct pen_alive process;

	pthread_mutex_t lock; /* guards everything up to `why` */
	struct pen_msg *first, **last;
	struct pen_wire_slot *slots;
	uint32_t nslots, free; /* free: the first free slot, or nslots */
	int kind;	       /* of the error that calls get; 0: none */
	char why[160];

	/* only on the wire's thread */
	struct pen_intake *intakes;
	bool dirty;    /* something was queued since the last flush */
	bool said_bye; /* it makes no more requests */
	bool gone;
	void *link; /* private to the transport */
};

struct pen_transport {
	const char *name;
	bool defers; /* polls p->dirty: no kick for answers */
	/*
	 * Collective, with an agreement at the end: connects to every peer and
	 * starts the wire's thread. On failure nothing is left behind.
	 */
	int (*open)(struct pen_wire *, struct pen_comm *, struct pen_err *err);
	/* Stops the thread, once no rank needs it. */
	void (*close)(struct pen_wire *);
	/*
	 * A message was put in the peer's empty queue; the peer's lock is held.
	 * Called from any thread.
	 */
	void (*kick)(struct pen_wire *, struct pen_wire_peer *);
	/* NULL: no one-sided reads. As pen__wire_expose() and so on. */
	int (*expose)(struct pen_wire *, const void *p, uint64_t n,
		      const void **key, size_t *nkey, struct pen_err *err);
	void (*read)(struct pen_wire *, struct pen_call *);
};

struct pen_region {
	struct pen_region *next;
	int rank;
	uint64_t base, n; /* in the owner's address space */
	void *handle;	  /* private to the transport */
	bool failed;	  /* no handle could be made */
	size_t nkey;
	char key[];
};

extern const struct pen_transport pen__wire_tcp;
extern const struct pen_transport pen__wire_mpi;
extern const struct pen_transport pen__wire_ucx;
extern const struct pen_transport pen__wire_rma;

/* Measured speed of a transport between two ranks. */
struct pen_speed {
	double round_trip_us;
	double samples; /* samples of 1 KB per second, 256 per request */
	double bytes;	/* bytes per second, in samples of 64 KiB */
	/* the same by one-sided reads; 0: not possible */
	double read_samples, read_bytes;
};
/* The rank that rank 0 measures with: on another host, if there is one. */
int pen__wire_partner(const struct pen_wire *);
/* Collective, with the same result on all ranks. */
int pen__wire_measure(struct pen_wire *, struct pen_comm *,
		      struct pen_speed *out, struct pen_err *err);

struct pen_wire {
	const struct pen_transport *transport;
	struct pen_wire_server server;
	int rank, size;
	pid_t pid; /* of the process with the thread; a forked child has none */
	struct pen_wire_peer *peers; /* one per rank; this rank's is unused */
	void *priv;		     /* private to the transport */
	char why[512];

	/* Other wires between the same ranks; NULL: this one. Closed with it.
	 */
	struct pen_wire *bulk, *reader;
	bool reads[2]; /* whether reads are faster, for small and bulk */

	pthread_mutex_t lock; /* guards the list */
	struct pen_region *regions;
	void *probe_room; /* exposed to be measured */

	/* only on the wire's thread */
	struct pen_wire_answer *answers; /* free list, by msg.next */
	struct pen_intake *intakes;	 /* free list */
	_Atomic bool closing;
};

static inline struct pen_wire_peer *pen__wire_peer(struct pen_wire *w, int rank)
{
	return &w->peers[rank];
}

/* --- sending; peer's lock held --- */

void pen__msg_push(struct pen_wire_peer *, struct pen_msg *);
/* The frame of the current piece of a message. */
struct pen_frame pen__msg_frame(const struct pen_msg *);
/* Fills up to `most` iovecs with up to n bytes, from the current position. */
uint32_t pen__msg_iov(const struct pen_msg *, size_t n, struct iovec *out,
		      uint32_t most);
/* Marks n bytes as sent. */
void pen__msg_advance(struct pen_msg *, size_t n);
/*
 * The current piece of the peer's first message was sent. A completed answer is
 * prepended to *done, for pen__answers_sent().
 */
void pen__msg_next(struct pen_wire_peer *, struct pen_msg **done);
/* On the wire's thread, no lock held. */
void pen__answers_sent(struct pen_wire *, struct pen_msg *done);
/* Queues a message without content: PEN_BYE, PEN_PING. */
int pen__wire_say(struct pen_wire_peer *, enum pen_frame_kind);

/* Completes a call; err is set if code is not 0. */
void pen__call_finish(struct pen_call *, int code);
/* The same with an error that names the peer. */
void pen__call_fail(struct pen_call *, const struct pen_wire_peer *, int kind,
		    const char *why);

/* --- receiving; on the wire's thread, no lock held --- */

/*
 * A frame has arrived: sets *to to where its piece goes (NULL: drop it).
 * Nonzero: the peer may not send this frame now, and must be disconnected.
 */
int pen__wire_begin(struct pen_wire_peer *, const struct pen_frame *,
		    void **to);
/* Its piece has arrived: serves requests and completes calls. */
int pen__wire_end(struct pen_wire_peer *, const struct pen_frame *);
/* The same for pieces of requests. */
int pen__request_begin(struct pen_wire_peer *, const struct pen_frame *,
		       void **to);
int pen__request_end(struct pen_wire_peer *, const struct pen_frame *);
void pen__requests_drop(struct pen_wire_peer *); /* incomplete requests */
/*
 * The peer is gone: ends all that waits for it with an error of this kind.
 * After PEN_BYE this is not an error, and later calls get PEN_ECLOSED.
 */
void pen__peer_gone(struct pen_wire_peer *, int kind, const char *why);
/* True if it makes no more requests and nothing is queued for it. */
bool pen__peer_finished(struct pen_wire_peer *);

/* Frees the free lists, after the thread has ended and all peers are gone. */
void pen__wire_drain(struct pen_wire *);

/* As pen__wire_call(), but the other wire answers by itself. */
void pen__wire_probe(struct pen_wire *, struct pen_call *);
int pen__wire_answer_probe(struct pen_wire *, struct pen_reply *,
			   const void *req, size_t n, struct pen_err *err);
#endif
