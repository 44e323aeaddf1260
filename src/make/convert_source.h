/*
 * Single cells as they come out of a loader, described as a writer wants it,
 * and handed on a batch at a time. Sources of a conversion and what is read
 * back of its result are both such.
 */
#ifndef PEN_MAKE_CONVERT_SOURCE_H
#define PEN_MAKE_CONVERT_SOURCE_H

#include "make/convert_left.h"
#include "engine/loader.h"
#include "format/cells/cells.h"
#include "format/cells/cells_write.h"

/* Where a column of the spec comes from. */
struct pen_cellsource_column {
	uint32_t from; /* column of obs */
	bool mask;     /* what of it is missing */
	bool source;   /* none: which file a cell is from */
};

struct pen_cellsource {
	struct pen_spec *set; /* as it was opened */
	struct pen_loader *l;
	const struct pen_cells *p; /* the format's */
	/* The index of obs has no names in the spec, but codes in rows: index
	 * says which of the labels below they mean. */
	struct pen_cells_spec spec;
	const struct pen_cells_labels *index; /* NULL: there is none */
	/* the spec's: columns, and what they point to */
	struct pen_cells_column_spec *obs, *var;
	struct pen_cells_dense_spec *dense;
	struct pen_cells_csr_spec *csr;
	void **var_values;
	struct pen_buf *mem; /* of a coded column: pointers, then texts */
	uint32_t nmem;
	uint32_t x; /* tensor of X's numbers; places follow */
	uint32_t *dense_at, *csr_at;
	struct pen_cellsource_column *column;
	bool obs_index;			   /* the first column is */
	const struct pen_cellsource *like; /* while it is opened */
	uint64_t batch_size;
	struct pen_left left; /* what does not come along */
	/* the rows handed out last */
	struct pen_batch *batch;
	struct pen_buf at;     /* object and sample of each */
	struct pen_buf *value; /* per column of obs */
	const void **pointer;
	struct pen_cells_lists *lists;
	uint64_t done;
};

/*
 * Opens it. Settings are the caller's, less those that say how: all rows, once,
 * in order, numbers of the type they are stored in; all matrices and columns
 * that can be had, unless they name some. like: what it was written from, or
 * NULL; indices that one has not, which a writer made up, are left alone.
 */
int pen__cellsource_open(struct pen_cellsource *, const struct pen_spec *,
			 const struct pen_cellsource *like, struct pen_err *);
void pen__cellsource_close(struct pen_cellsource *);
/* The next rows, good until the next call; PEN_END after the last. Coded
 * columns are codes, also the index. */
int pen__cellsource_next(struct pen_cellsource *, struct pen_cells_rows *,
			 struct pen_err *);
/* Sets how many numbers there are, when rows have all that is stored of them;
 * else only reading them tells. */
bool pen__cellsource_count(struct pen_cellsource *);
/* The same by reading: adds those of some rows. */
void pen__cellsource_add(struct pen_cells_spec *, struct pen_cells_csr_spec *,
			 const struct pen_cells_rows *);

#endif
