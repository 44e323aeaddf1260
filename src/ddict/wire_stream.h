/*
 * Frames and pieces over one connection, a socket that does not block: between
 * a peer's messages and the bytes of a stream.
 */
#ifndef PEN_DDICT_WIRE_STREAM_H
#define PEN_DDICT_WIRE_STREAM_H

#include "ddict/wire_int.h"

/* Frames and small pieces: little, because what lands here is copied again. */
#define PEN_STREAM_BUF ((size_t)32 << 10)

struct pen_stream {
	struct pen_wire_peer *peer;
	int fd; /* -1: closed */

	/* sending; under the peer's lock */
	size_t sent; /* of the first message's piece, its frame counted in */
	bool blocked;
	_Atomic bool no_source; /* what is to be sent is not there any more */

	/* receiving */
	struct pen_frame frame;
	bool in_piece;
	char *to;    /* of the piece; NULL: dropped */
	size_t left; /* of the piece */
	size_t begin, end;
	char *buf;
};

enum pen_stream_state {
	PEN_STREAM_IDLE, /* all has left */
	PEN_STREAM_FULL, /* there is more: when there is room again */
	PEN_STREAM_BROKEN,
};

/* Sends what the peer's queue has, under its lock, but not for too long. */
enum pen_stream_state pen__stream_send(struct pen_stream *,
				       struct pen_msg **done);
/* Takes in what there is, but not for too long; 0 or an errno, EPIPE: ended. */
int pen__stream_receive(struct pen_stream *);

#endif
