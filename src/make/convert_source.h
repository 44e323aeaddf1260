/*
 * Single cells from a loader, described for a writer and passed on one batch at
 * a time. Used for the source of a conversion and for reading back its result.
 */
#ifndef PEN_MAKE_CONVERT_SOURCE_H
#define PEN_MAKE_CONVERT_SOURCE_H

#include "make/convert_left.h"
#include "engine/loader.h"
#include "format/cells/cells.h"
#include "format/cells/cells_write.h"

/* The origin of a column of the spec. */
struct pen_cellsource_column {
	uint32_t from; /* column of obs */
	bool mask;     /* the mask of that column */
	bool source;   /* not of obs: the file of a cell */
};

struct pen_cellsource {
	struct pen_spec *set; /* settings it was opened with */
	struct pen_loader *l;
	const struct pen_cells *p; /* private data of the format */
	/* In the spec the index of obs has no names but codes in rows, which
	 * refer to the labels `index`. */
	struct pen_cells_spec spec;
	const struct pen_cells_labels *index; /* NULL: no index */
	/* owned by the spec: columns, and what they point to */
	struct pen_cells_column_spec *obs, *var;
	struct pen_cells_dense_spec *dense;
	struct pen_cells_csr_spec *csr;
	void **var_values;
	struct pen_buf *mem; /* of a coded column: pointers, then strings */
	uint32_t nmem;
	uint32_t x; /* tensor of the values of X; indices follow */
	uint32_t *dense_at, *csr_at;
	struct pen_cellsource_column *column;
	bool obs_index;			   /* the first column is the index */
	const struct pen_cellsource *like; /* while it is opened */
	uint64_t batch_size;
	struct pen_left left; /* what is not copied */
	/* the rows returned last */
	struct pen_batch *batch;
	struct pen_buf at;     /* object and sample of each */
	struct pen_buf *value; /* per column of obs */
	const void **pointer;
	struct pen_cells_lists *lists;
	uint64_t done;
};

/*
 * Opens a source. The caller's settings apply except for those that define a
 * copy: all rows, once, in order, with values of their stored types; all
 * available matrices and columns, unless the settings select some. like: the
 * source it was written from, or NULL; indices that this source lacks, which a
 * writer made up, are ignored.
 */
int pen__cellsource_open(struct pen_cellsource *, const struct pen_spec *,
			 const struct pen_cellsource *like, struct pen_err *);
void pen__cellsource_close(struct pen_cellsource *);
/* The next rows, valid until the next call; PEN_END after the last. Coded
 * columns are codes, including the index. */
int pen__cellsource_next(struct pen_cellsource *, struct pen_cells_rows *,
			 struct pen_err *);
/* Sets the number of values if rows contain all that are stored; false: they
 * must be counted by reading. */
bool pen__cellsource_count(struct pen_cellsource *);
/* Counts by reading: adds the values of some rows. */
void pen__cellsource_add(struct pen_cells_spec *, struct pen_cells_csr_spec *,
			 const struct pen_cells_rows *);

#endif
