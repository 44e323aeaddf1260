/*
 * Packs samples of different lengths into rows of one length, several per row
 * (pack=).
 *
 * The samples of a batch are consecutive in the order, so that a position is
 * all it takes to resume; the row of each can be chosen freely. The longest are
 * placed first, each where it leaves the least room: with samples much shorter
 * than a row, a percent or two stays unused.
 */
#ifndef PEN_ENGINE_PLAN_PACK_H
#define PEN_ENGINE_PLAN_PACK_H

#include "base/err.h"

#include <stdbool.h>

#define PEN_WHOLE (-1) /* the piece is the entire sample */

struct pen_piece {
	int64_t skip;	 /* elements of the sample before it, or PEN_WHOLE */
	uint32_t sample; /* in the order they were added */
	uint32_t len;
	uint32_t row, start;
};

struct pen_row_packer {
	uint32_t nrows, pack; /* number of rows and their length */
	uint32_t cap;	      /* maximum number of pieces */
	bool split;	      /* split samples longer than a row (else cut) */
	struct pen_piece *piece; /* in the order they were added */
	uint32_t npieces, nsamples;
	uint64_t tokens;
	uint32_t *order; /* pieces by row and start, once sorted */
	uint64_t *ids;	 /* room for cap ids, for the caller */
	/* rows by remaining room: lists, a bitmap of lists that are not empty,
	 * and a bitmap of its words that are not */
	uint32_t *room, *next, *head;
	uint64_t *bits, *words;
	uint64_t *key, *tmp;
};

int pen__row_packer_new(struct pen_row_packer **out, uint32_t nrows,
			uint32_t pack, uint32_t cap, struct pen_err *err);
void pen__row_packer_free(struct pen_row_packer *);
void pen__row_packer_clear(struct pen_row_packer *);
/* Adds a sample; false: it does not fit, by its elements or its pieces. */
bool pen__row_packer_add(struct pen_row_packer *, uint64_t len);
/* Assigns a row to every piece; returns the elements that did not fit. */
uint64_t pen__row_packer_place(struct pen_row_packer *);
/* Drops samples from the end, with at least this many elements in all. */
void pen__row_packer_drop(struct pen_row_packer *, uint64_t elements);
void pen__row_packer_sort(struct pen_row_packer *); /* after placement */

#endif
