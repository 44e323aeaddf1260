/*
 * For transports that move whole packets (a frame and its piece, copied) and do
 * not notice dead ranks reliably: MPI and UCX. Which peers have messages,
 * heartbeats, and the end of a wire.
 */
#ifndef PEN_DDICT_WIRE_PACKET_H
#define PEN_DDICT_WIRE_PACKET_H

#include "ddict/wire_int.h"

#define PEN_PACKET (sizeof(struct pen_frame) + PEN_PIECE)

struct pen_packets {
	struct pen_wire *wire;
	pthread_mutex_t lock; /* guards the next two */
	int *ready;	      /* ring of peers with messages, each once */
	uint32_t first, nready;

	/* only on the wire's thread */
	uint64_t *heard; /* time of the last packet, per rank */
	uint64_t looked; /* last heartbeat round */
	uint64_t called; /* last check of this host's ranks */
	bool said_bye;
};

int pen__packets_init(struct pen_packets *, struct pen_wire *); /* PEN_ENOMEM */
void pen__packets_fini(struct pen_packets *);			/* zeroed ok */

/* The peer has a message; from any thread, with the peer's lock held. */
void pen__packets_ready(struct pen_packets *, int rank);

/* --- on the wire's thread --- */
/* A peer with a message, or -1. */
int pen__packets_next(struct pen_packets *);
/* Copies the peer's next packet; returns its size, 0: there is none. As
 * pen__msg_next() for done. */
size_t pen__packets_pack(struct pen_packets *, int rank, char *to,
			 struct pen_msg **done);
/* A packet has arrived. A malformed one ends the connection. */
void pen__packets_take(struct pen_packets *, int from, const char *p, size_t n);
/* At intervals: sends heartbeats and ends connections to dead ranks. */
void pen__packets_beat(struct pen_packets *, uint64_t now);
/* After closing has begun: says so to all, and returns true once no peer has
 * requests and all answers are packed. */
bool pen__packets_over(struct pen_packets *);
/* Ends all connections. */
void pen__packets_end(struct pen_packets *, int kind, const char *why);

#endif
