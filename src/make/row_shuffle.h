/*
 * Shuffles any number of rows of single cells. Rows are distributed to buckets
 * by their future position; buckets are written, packed, to an unnamed file
 * next to the target, and read back one at a time, each small enough for
 * memory. The order is the keyed permutation of base/rng.h: row number at(j) is
 * returned as the j-th. It depends only on the seed and the number of rows.
 */
#ifndef PEN_MAKE_ROW_SHUFFLE_H
#define PEN_MAKE_ROW_SHUFFLE_H

#include "base/rng.h"
#include "format/cells/cells_write.h"

struct pen_row_shuffle;
struct pen_row_shuffle_setup {
	const struct pen_cells_spec
		*spec; /* must outlive the shuffle; coded columns are int32 */
	const char *target; /* its path */
	uint64_t seed;
	uint64_t memory; /* bytes that rows may take */
};

/* at(j) is the row that is returned as the j-th; n > 0. */
void pen__row_shuffle_order(struct pen_perm *, uint64_t n, uint64_t seed);

int pen__row_shuffle_new(struct pen_row_shuffle **out,
			 const struct pen_row_shuffle_setup *,
			 struct pen_err *);
void pen__row_shuffle_free(struct pen_row_shuffle *);
/* Adds the next rows, in the order of the source. */
int pen__row_shuffle_put(struct pen_row_shuffle *,
			 const struct pen_cells_rows *, struct pen_err *);
/*
 * After the last row was added: returns the next rows in the new order, any
 * number of them, 0 at the end. They are valid until the next call.
 */
int pen__row_shuffle_take(struct pen_row_shuffle *, struct pen_cells_rows *,
			  struct pen_err *);
/* For messages: buckets, and bytes in the file. */
uint64_t pen__row_shuffle_nbuckets(const struct pen_row_shuffle *);
uint64_t pen__row_shuffle_bytes(const struct pen_row_shuffle *);

#endif
