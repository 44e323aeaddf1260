/*
 * Between the calls (wire_call.c) and a transport. A message goes in pieces,
 * each with a frame before it, so that a large one does not hold up others: the
 * messages to a peer take turns. A transport moves frames and pieces, in any
 * order, and knows nothing of requests and replies.
 *
 * Only the wire's thread receives. What is sent is guarded by the peer's lock.
 */
#ifndef PEN_DDICT_WIRE_INT_H
#define PEN_DDICT_WIRE_INT_H

#include <pthread.h>
#include <sys/types.h>

#include "base/alive.h"
#include "ddict/wire.h"

#define PEN_PIECE ((uint32_t)256 << 10)
/* No message is longer: a length above is damage, or another program. */
#define PEN_MSG_MAX ((uint64_t)1 << 39)

enum pen_frame_kind {
	PEN_ASK = 1,
	PEN_PROBE, /* a request that the wire itself answers */
	PEN_REPLY,
	PEN_FAIL, /* a reply that is a struct pen_err */
	PEN_BYE,  /* this rank makes no more requests */
	PEN_PING, /* it lives */
};

/* All ranks run one build: memory is what goes over the wire. */
struct pen_frame {
	uint8_t kind;
	uint8_t zero[3];
	uint32_t len; /* of the piece that follows */
	uint64_t id;  /* of the call */
	uint64_t at, total;
};

/* A reply on its way out. */
struct pen_wire_answer {
	struct pen_msg msg;
	struct pen_reply reply;
	struct pen_err err;
	struct iovec fail; /* leads to err */
	bool served;	   /* the server waits to hear of it */
};

/* A request on its way in; memory is kept for the next. */
struct pen_intake {
	struct pen_intake *next;
	uint64_t id, got, total;
	uint8_t kind;
	void *buf; /* NULL while cap is 0: no memory, its bytes are dropped */
	size_t cap;
};

/* A call under way, by the number its reply comes with. */
struct pen_wire_slot {
	struct pen_call *call; /* NULL: free, next is the following free one */
	uint32_t age, next;
};

struct pen_wire_peer {
	struct pen_wire *wire;
	int rank;
	char host[64];
	int node;
	struct pen_alive process;

	pthread_mutex_t lock; /* of all up to here */
	struct pen_msg *first, **last;
	struct pen_wire_slot *slots;
	uint32_t nslots, free; /* free: the first, or nslots */
	int code;	       /* 0, or why there is no more asking it */
	char why[160];

	/* the wire's thread only */
	struct pen_intake *intakes;
	bool dirty;    /* something was queued since the last flush */
	bool said_bye; /* it makes no more requests */
	bool gone;
	void *link; /* the transport's */
};

struct pen_transport {
	const char *name;
	bool defers; /* looks at p->dirty by itself: no kick for answers */
	/*
	 * Collective, with an agreement at the end: connects to every peer and
	 * starts the wire's thread. On failure nothing is left behind.
	 */
	int (*open)(struct pen_wire *, struct pen_comm *, struct pen_err *err);
	/* Ends the thread, once nobody needs it. */
	void (*close)(struct pen_wire *);
	/*
	 * There is a message in the peer's queue that was empty before; its
	 * lock is held. Any thread.
	 */
	void (*kick)(struct pen_wire *, struct pen_wire_peer *);
};

extern const struct pen_transport pen__wire_tcp;
extern const struct pen_transport pen__wire_mpi;
extern const struct pen_transport pen__wire_rma;

/* What a transport does between two ranks. */
struct pen_speed {
	double round_trip_us;
	double samples; /* of 1 KB a second, 256 in a request */
};
/* The rank that rank 0 measures with: of another host where there is one. */
int pen__wire_partner(const struct pen_wire *);
/* Collective; the same everywhere. */
int pen__wire_measure(struct pen_wire *, struct pen_comm *,
		      struct pen_speed *out, struct pen_err *err);

struct pen_wire {
	const struct pen_transport *transport;
	struct pen_wire_server server;
	int rank, size;
	pid_t pid; /* that has the thread: a forked child has none */
	struct pen_wire_peer *peers; /* one a rank; the own one is not used */
	void *priv;		     /* the transport's */
	char why[320];

	/* the wire's thread only */
	struct pen_wire_answer *answers; /* free ones, by msg.next */
	struct pen_intake *intakes;	 /* free ones */
	_Atomic bool closing;
};

static inline struct pen_wire_peer *pen__wire_peer(struct pen_wire *w, int rank)
{
	return &w->peers[rank];
}

/* --- sending; under the peer's lock --- */

void pen__msg_push(struct pen_wire_peer *, struct pen_msg *);
/* The frame of the piece that the message is in. */
struct pen_frame pen__msg_frame(const struct pen_msg *);
/* Up to `most` iovecs of up to n bytes from where the message stands. */
uint32_t pen__msg_iov(const struct pen_msg *, size_t n, struct iovec *out,
		      uint32_t most);
/* n bytes have left. */
void pen__msg_advance(struct pen_msg *, size_t n);
/*
 * The piece of the peer's first message has left. When that was all of it, and
 * it is an answer, it is put before *done, for pen__answers_sent().
 */
void pen__msg_next(struct pen_wire_peer *, struct pen_msg **done);
/* Wire's thread, no lock held. */
void pen__answers_sent(struct pen_wire *, struct pen_msg *done);
/* Queues one without content: PEN_BYE, PEN_PING. */
int pen__wire_say(struct pen_wire_peer *, enum pen_frame_kind);

/* --- receiving; wire's thread, no lock held --- */

/*
 * A frame came: where its piece goes (NULL: it is dropped). Nonzero: that is no
 * frame that this peer may send now, and it has to be cut off.
 */
int pen__wire_begin(struct pen_wire_peer *, const struct pen_frame *,
		    void **to);
/* Its piece is there, too: requests are served, calls end. */
int pen__wire_end(struct pen_wire_peer *, const struct pen_frame *);
/* What these two do with pieces of requests. */
int pen__request_begin(struct pen_wire_peer *, const struct pen_frame *,
		       void **to);
int pen__request_end(struct pen_wire_peer *, const struct pen_frame *);
void pen__requests_drop(struct pen_wire_peer *); /* those not whole yet */
/*
 * The peer is gone: ends all that waits for it with this code and reason.
 * After PEN_BYE that is no error, and later calls get PEN_ECLOSED.
 */
void pen__peer_gone(struct pen_wire_peer *, int code, const char *why);

/* Frees what is kept for the next; the thread has ended, all peers are gone. */
void pen__wire_drain(struct pen_wire *);

/* As pen__wire_call(), answered by the other's wire with n bytes (req). */
void pen__wire_probe(struct pen_wire *, struct pen_call *);
int pen__wire_answer_probe(struct pen_reply *, const void *req, size_t n,
			   struct pen_err *err);
#endif
