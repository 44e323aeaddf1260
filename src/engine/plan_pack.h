/*
 * Samples of different length into rows of one length, several a row (pack=).
 *
 * The samples of a batch follow one another in the order, so that a position
 * is all it takes to resume; which row each of them goes to is free. They are
 * placed the longest first, each where it leaves the least room: of samples
 * much shorter than a row that leaves a percent or two unused.
 */
#ifndef PEN_ENGINE_PLAN_PACK_H
#define PEN_ENGINE_PLAN_PACK_H

#include "base/err.h"

#include <stdbool.h>

#define PEN_WHOLE (-1) /* the piece is all of its sample */

struct pen_piece {
	int64_t skip;	 /* elements of the sample before it, or PEN_WHOLE */
	uint32_t sample; /* which of those that were added */
	uint32_t len;
	uint32_t row, start;
};

struct pen_row_packer {
	uint32_t nrows, pack;	 /* rows, and how long they are */
	uint32_t cap;		 /* pieces at most */
	bool split;		 /* what is longer than a row; else it is cut */
	struct pen_piece *piece; /* in the order they were added */
	uint32_t npieces, nsamples;
	uint64_t tokens;
	uint32_t *order; /* pieces by row and start, once sorted */
	uint64_t *ids;	 /* room for cap, the caller's */
	/* rows by the room they have left: lists, and bits that say which are
	 * not empty, and which words of bits are not */
	uint32_t *room, *next, *head;
	uint64_t *bits, *words;
	uint64_t *key, *tmp;
};

int pen__row_packer_new(struct pen_row_packer **out, uint32_t nrows,
			uint32_t pack, uint32_t cap, struct pen_err *err);
void pen__row_packer_free(struct pen_row_packer *);
void pen__row_packer_clear(struct pen_row_packer *);
/* One more sample; false: it is left out, because all of them have more
 * elements than there is room for, or too many pieces. */
bool pen__row_packer_add(struct pen_row_packer *, uint64_t len);
/* Gives every piece its row; returns the elements that found no room. */
uint64_t pen__row_packer_place(struct pen_row_packer *);
/* Leaves out samples from the end that have as many elements, or one more. */
void pen__row_packer_drop(struct pen_row_packer *, uint64_t elements);
void pen__row_packer_sort(struct pen_row_packer *); /* once all are placed */

#endif
