/*
 * Compares rows. Every row is hashed together with its number in the source, to
 * 128 bits, and the hashes of a thousand neighbours are added up. So rows can
 * come in any order, as long as their numbers are known, and a row that
 * differs, is missing or is out of place is detected, together with its rough
 * location.
 */
#ifndef PEN_MAKE_CONVERT_SUMS_H
#define PEN_MAKE_CONVERT_SUMS_H

#include "make/convert_source.h"

#define PEN_SUMS_ROWS 1024u /* neighbours per sum */

struct pen_sums {
	uint64_t (*v)[2];
	uint64_t n;
};

int pen__sums_init(struct pen_sums *, uint64_t nrows, struct pen_err *);
void pen__sums_fini(struct pen_sums *);
/* Adds row i of r, which is row `number` of the source. */
void pen__sums_row(struct pen_sums *, const struct pen_cellsource *,
		   const struct pen_cells_rows *r, uint64_t i, uint64_t number);
/* The first group that differs, or -1. */
int64_t pen__sums_differ(const struct pen_sums *, const struct pen_sums *);
/* Compares genes, columns and categories, including their order. Errors name
 * the difference. */
int pen__sources_same(const struct pen_cellsource *want,
		      const struct pen_cellsource *got, const char *path,
		      struct pen_err *);

#endif
