/*
 * An object from its first byte to its last, a piece after another, while a
 * thread reads the next ones: for text that has to be gone through as a whole,
 * which takes about as long as reading it does.
 */
#ifndef PEN_FORMAT_AHEAD_H
#define PEN_FORMAT_AHEAD_H

#include "format/format.h"

/* Less is read before a thread has started. */
#define PEN_AHEAD_LEAST ((uint64_t)4 << 20)

struct pen_ahead;
/* Nobody else reads by the peek before pen__ahead_free(). */
int pen__ahead_new(struct pen_ahead **out, struct pen_peek *,
		   struct pen_err *err);
/* The next piece, until the next call; PEN_END after the last. */
int pen__ahead_next(struct pen_ahead *, struct pen_span *out,
		    struct pen_err *err);
void pen__ahead_free(struct pen_ahead *); /* NULL is fine */

#endif
