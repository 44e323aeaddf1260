/*
 * What a conversion copies of a source, and what it omits: matrices that all
 * files have with equal shape are copied; everything else is listed by kind.
 */
#ifndef PEN_MAKE_CONVERT_LEFT_H
#define PEN_MAKE_CONVERT_LEFT_H

#include <stdbool.h>

#include "base/bytes.h"
#include "base/text.h"

struct pen_cells;

#define PEN_LEFT_KINDS 16

/* Omitted objects of one kind. */
struct pen_left_kind {
	char kind[24];	     /* "obs", "layers", "uns", ... */
	struct pen_buf name; /* each with a NUL */
	uint32_t n;
};

struct pen_left {
	struct pen_left_kind of[PEN_LEFT_KINDS]; /* the last: all other kinds */
	uint32_t n;
	bool bad; /* out of memory */
};

void pen__left_fini(struct pen_left *);
/* Adds a name unless it is already listed. */
void pen__left_add(struct pen_left *, const char *kind, struct pen_span name);
/* Iterates over the names of a kind: start with "", NULL after the last. */
const char *pen__left_next(const struct pen_left_kind *, const char *after);

/*
 * Appends the matrices other than X that all files have to a list for option
 * matrix. Those that cannot be copied are listed as omitted.
 */
void pen__left_choose(struct pen_left *, const struct pen_cells *,
		      struct pen_text *list);
/* Lists what no writer supports. chosen: the user selected matrices, so that
 * others are not wanted rather than omitted. */
void pen__left_rest(struct pen_left *, const struct pen_cells *, bool chosen);
/* Lists columns of obs or var that some file has and that were not taken
 * although all were requested. */
void pen__left_columns(struct pen_left *, const struct pen_cells *, bool obs);

#endif
