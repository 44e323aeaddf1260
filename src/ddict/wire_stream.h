/*
 * Frames and pieces over one non-blocking socket: between a peer's messages and
 * a byte stream.
 */
#ifndef PEN_DDICT_WIRE_STREAM_H
#define PEN_DDICT_WIRE_STREAM_H

#include "ddict/wire_int.h"

/* Small, because what is received here is copied again. */
#define PEN_STREAM_BUF ((size_t)32 << 10)

struct pen_stream {
	struct pen_wire_peer *peer;
	int fd; /* -1: closed */

	/* sending; peer's lock held */
	size_t sent; /* of the first message's piece, including its frame */
	bool blocked;
	_Atomic bool no_source; /* data to be sent is in a truncated file */

	/* receiving */
	struct pen_frame frame;
	bool in_piece;
	char *to;    /* of the piece; NULL: dropped */
	size_t left; /* of the piece */
	size_t begin, end;
	char *buf;
};

enum pen_stream_state {
	PEN_STREAM_IDLE, /* everything was sent */
	PEN_STREAM_FULL, /* more to send when there is room */
	PEN_STREAM_BROKEN,
};

/* Sends from the peer's queue, lock held, for a limited time. */
enum pen_stream_state pen__stream_send(struct pen_stream *,
				       struct pen_msg **done);
/* Receives for a limited time; 0 or an errno, EPIPE: ended. */
int pen__stream_receive(struct pen_stream *);

#endif
