/*
 * Sequential reading of an object in pieces while a thread reads the next ones:
 * for text that has to be scanned completely, which takes about as long as
 * reading it.
 */
#ifndef PEN_FORMAT_AHEAD_H
#define PEN_FORMAT_AHEAD_H

#include "format/format.h"

/* Smaller objects are read before a thread would have started. */
#define PEN_AHEAD_LEAST ((uint64_t)4 << 20)

struct pen_ahead;
/* The peek must not be used elsewhere before pen__ahead_free(). */
int pen__ahead_new(struct pen_ahead **out, struct pen_peek *,
		   struct pen_err *err);
/* The next piece, valid until the next call; PEN_END after the last. */
int pen__ahead_next(struct pen_ahead *, struct pen_span *out,
		    struct pen_err *err);
void pen__ahead_free(struct pen_ahead *); /* NULL is fine */

#endif
