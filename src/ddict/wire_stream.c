/*
 * Replies are sent from the server's memory and received where the caller wants
 * them: the small buffer of each connection takes frames and small pieces, and
 * the rest is received in place. Several small messages go in one system call.
 */
#include "ddict/wire_stream.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#define IOVS 256
/* Bytes per peer before the others get their turn. */
#define TURN ((size_t)4 << 20)

/* --- sending --- */

/* Frames and pieces of the peer's messages, one of each, starting at the
 * first. */
struct load {
	struct iovec iov[IOVS];
	struct pen_frame frames[IOVS / 2];
	size_t bytes;
	uint32_t n;
};

static void gather(const struct pen_stream *c, struct load *l)
{
	size_t sent = c->sent;
	uint32_t k = 0;

	l->n = 0;
	l->bytes = 0;
	for (const struct pen_msg *m = c->peer->first;
	     m && l->n + 2 <= IOVS && k < IOVS / 2 && l->bytes < PEN_PIECE;
	     m = m->next, k++, sent = 0) {
		struct pen_frame *f = &l->frames[k];
		uint32_t n;

		*f = pen__msg_frame(m);
		if (sent < sizeof(*f)) {
			l->iov[l->n++] = (struct iovec){ (char *)f + sent,
							 sizeof(*f) - sent };
			l->bytes += sizeof(*f) - sent;
			sent = sizeof(*f);
		}
		n = pen__msg_iov(m, f->len - (sent - sizeof(*f)), l->iov + l->n,
				 IOVS - l->n);
		for (uint32_t i = 0; i < n; i++)
			l->bytes += l->iov[l->n + i].iov_len;
		l->n += n;
		/* an incomplete piece must not be followed by a frame */
		if (l->n == IOVS)
			return;
	}
}

/* n bytes from gather() were sent. */
static void depart(struct pen_stream *c, size_t n, struct pen_msg **done)
{
	while (n) {
		struct pen_msg *m = c->peer->first;
		const size_t all =
			sizeof(struct pen_frame) + pen__msg_frame(m).len;
		const size_t k = n < all - c->sent ? n : all - c->sent;
		const size_t head = sizeof(struct pen_frame);
		const size_t before = c->sent > head ? c->sent - head : 0;

		c->sent += k;
		n -= k;
		if (c->sent > head)
			pen__msg_advance(m, c->sent - head - before);
		if (c->sent < all)
			return;
		c->sent = 0;
		pen__msg_next(c->peer, done);
	}
}

enum pen_stream_state pen__stream_send(struct pen_stream *c,
				       struct pen_msg **done)
{
	size_t turn = 0;
	struct load l;
	ssize_t n;

	while (c->peer->first && turn < TURN) {
		gather(c, &l);
		n = sendmsg(
			c->fd,
			&(struct msghdr){ .msg_iov = l.iov, .msg_iovlen = l.n },
			MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EFAULT)
			atomic_store(&c->no_source, true);
		if (n < 0)
			return errno == EAGAIN || errno == ENOBUFS
				       ? PEN_STREAM_FULL
				       : PEN_STREAM_BROKEN;
		depart(c, (size_t)n, done);
		turn += (size_t)n;
		if ((size_t)n < l.bytes)
			break;
	}
	return c->peer->first ? PEN_STREAM_FULL : PEN_STREAM_IDLE;
}

/* --- receiving --- */

/* n bytes of the piece were received or dropped. */
static int arrived(struct pen_stream *c, size_t n)
{
	c->left -= n;
	if (c->to)
		c->to += n;
	if (c->left)
		return 0;
	c->in_piece = false;
	return pen__wire_end(c->peer, &c->frame);
}

/* Processes the contents of the buffer. */
static int take_apart(struct pen_stream *c)
{
	int rc = 0;

	while (!rc) {
		size_t n = c->end - c->begin;

		if (!c->in_piece) {
			void *to;

			if (n < sizeof(c->frame))
				break;
			memcpy(&c->frame, c->buf + c->begin, sizeof(c->frame));
			c->begin += sizeof(c->frame);
			n -= sizeof(c->frame);
			rc = pen__wire_begin(c->peer, &c->frame, &to);
			if (rc)
				return rc;
			c->to = to;
			c->left = c->frame.len;
			c->in_piece = true;
		}
		if (!n && c->left)
			break;
		n = n < c->left ? n : c->left;
		if (n && c->to)
			memcpy(c->to, c->buf + c->begin, n);
		c->begin += n;
		rc = arrived(c, n);
	}
	if (c->begin == c->end)
		c->begin = c->end = 0;
	else if (c->begin)
		memmove(c->buf, c->buf + c->begin, c->end - c->begin);
	c->end -= c->begin;
	c->begin = 0;
	return rc;
}

/*
 * Returns 0 when there is no more for now. The rest of a piece is received in
 * place, what follows it in the buffer.
 */
int pen__stream_receive(struct pen_stream *c)
{
	size_t turn = 0;

	while (turn < TURN) {
		struct iovec iov[2] = { { c->to, 0 },
					{ c->buf + c->end,
					  PEN_STREAM_BUF - c->end } };
		ssize_t n;
		size_t k;
		int rc;

		if (c->in_piece && c->to)
			iov[0].iov_len = c->left;
		n = readv(c->fd, iov, 2);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return 0;
		if (n <= 0)
			return n ? errno : EPIPE;
		turn += (size_t)n;
		k = (size_t)n < iov[0].iov_len ? (size_t)n : iov[0].iov_len;
		rc = k ? arrived(c, k) : 0;
		c->end += (size_t)n - k;
		if (!rc && c->end)
			rc = take_apart(c);
		if (rc)
			return EPROTO;
		if ((size_t)n < iov[0].iov_len + iov[1].iov_len)
			return 0;
	}
	return 0;
}
