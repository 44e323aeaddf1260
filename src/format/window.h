/*
 * Going through an object from its beginning in big pieces: what index() of a
 * format without a table of contents reads with.
 */
#ifndef PEN_FORMAT_WINDOW_H
#define PEN_FORMAT_WINDOW_H

#include "format/format.h"

#define PEN_PIECE ((size_t)1 << 20)

struct pen_window {
	struct pen_peek *pk;
	uint8_t *buf;
	size_t cap, len; /* len bytes of the object are in buf, */
	uint64_t at;	 /* from here on */
};

/*
 * The n bytes at off, which the caller knows to be inside the object; valid
 * until the next call. As many more as `ahead` are read along with them when
 * the object has them. NULL: err says why.
 */
const uint8_t *pen__window_get(struct pen_window *, uint64_t off, size_t n,
			       size_t ahead, struct pen_err *);
void pen__window_fini(struct pen_window *);

#endif
