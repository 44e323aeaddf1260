/*
 * What of a source a conversion takes, and what it leaves: matrices that all
 * files have alike come along; all else is named, by kind.
 */
#ifndef PEN_MAKE_CONVERT_LEFT_H
#define PEN_MAKE_CONVERT_LEFT_H

#include <stdbool.h>

#include "base/bytes.h"
#include "base/text.h"

struct pen_cells;

#define PEN_LEFT_KINDS 16

/* Things of one kind. */
struct pen_left_kind {
	char kind[24];	     /* "obs", "layers", "uns", ... */
	struct pen_buf name; /* each with a NUL */
	uint32_t n;
};

struct pen_left {
	struct pen_left_kind of[PEN_LEFT_KINDS]; /* the last: all others */
	uint32_t n;
	bool bad; /* memory ran out */
};

void pen__left_fini(struct pen_left *);
/* Once, however often it is named. */
void pen__left_add(struct pen_left *, const char *kind, struct pen_span name);
/* All names of a kind, after one another: "" first, NULL after the last. */
const char *pen__left_next(const struct pen_left_kind *, const char *after);

/*
 * Matrices beside X that all files have, as a list for option matrix, after
 * what is there. Those that cannot come along are left.
 */
void pen__left_choose(struct pen_left *, const struct pen_cells *,
		      struct pen_text *list);
/* What no writer has a place for. chosen: by the user; then what he did not
 * name of matrices is not left, but not wanted. */
void pen__left_rest(struct pen_left *, const struct pen_cells *, bool chosen);
/* Columns of obs, or of var, that some file has and that were not taken,
 * though all were asked for. */
void pen__left_columns(struct pen_left *, const struct pen_cells *, bool obs);

#endif
