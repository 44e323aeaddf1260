/*
 * Rows of single cells in another order, however many there are. They are
 * dealt into buckets by where they will be, buckets go to a file without a
 * name beside the target, packed, and come back one at a time, each small
 * enough for memory. The order is that of base/rng.h's keyed permutation: row
 * number at(j) is the j-th that comes out. It depends on the seed and
 * the number of rows, and on nothing else.
 */
#ifndef PEN_MAKE_ROW_SHUFFLE_H
#define PEN_MAKE_ROW_SHUFFLE_H

#include "base/rng.h"
#include "format/cells/cells_write.h"

struct pen_row_shuffle;
struct pen_row_shuffle_setup {
	const struct pen_cells_spec *spec; /* kept; coded columns are int32 */
	const char *beside;		   /* path of the target */
	uint64_t seed;
	uint64_t memory; /* bytes that rows may take */
};

/* at(j) is the row that comes out as the j-th; n > 0. */
void pen__row_shuffle_order(struct pen_perm *, uint64_t n, uint64_t seed);

int pen__row_shuffle_new(struct pen_row_shuffle **out,
			 const struct pen_row_shuffle_setup *,
			 struct pen_err *);
void pen__row_shuffle_free(struct pen_row_shuffle *);
/* The next rows, in the order they have in the source. */
int pen__row_shuffle_put(struct pen_row_shuffle *,
			 const struct pen_cells_rows *, struct pen_err *);
/*
 * After the last one: the next rows in the new order, as many as it likes; 0
 * of them at the end. They are the shuffle's until the next call.
 */
int pen__row_shuffle_take(struct pen_row_shuffle *, struct pen_cells_rows *,
			  struct pen_err *);
/* For messages: buckets, and bytes in the file. */
uint64_t pen__row_shuffle_nbuckets(const struct pen_row_shuffle *);
uint64_t pen__row_shuffle_bytes(const struct pen_row_shuffle *);

#endif
