/*
 * Reads an object sequentially in large pieces: for index() of formats without
 * a table of contents.
 */
#ifndef PEN_FORMAT_WINDOW_H
#define PEN_FORMAT_WINDOW_H

#include "format/format.h"

#define PEN_PIECE ((size_t)1 << 20)

struct pen_window {
	struct pen_peek *pk;
	uint8_t *buf;
	size_t cap, len; /* len bytes of the object are in buf */
	uint64_t at;	 /* offset of buf in the object */
};

/*
 * The n bytes at off, which must be inside the object; valid until the next
 * call. Up to `ahead` more bytes are read with them. NULL: see err.
 */
const uint8_t *pen__window_get(struct pen_window *, uint64_t off, size_t n,
			       size_t ahead, struct pen_err *);
void pen__window_fini(struct pen_window *);

#endif
