/*
 * Single cells as they come out of a loader, described as a writer wants it,
 * and handed on a batch at a time. Sources of a conversion and what is read
 * back of its result are both such.
 */
#ifndef PEN_ENGINE_CONVERT_SOURCE_H
#define PEN_ENGINE_CONVERT_SOURCE_H

#include "engine/loader.h"
#include "format/cells.h"
#include "format/cells_write.h"

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
	void **var_values;
	struct pen_buf *mem; /* of a coded column: pointers, then texts */
	uint32_t nmem;
	uint32_t x; /* tensor of X's numbers; places follow */
	uint32_t *obs_at, *dense_at;
	bool obs_index, var_index;	   /* the first column is */
	const struct pen_cellsource *like; /* while it is opened */
	const void **pointer;
	/* Columns that cannot be carried over, by name: "a, b"; or "". */
	char left_out[200];
	struct pen_batch *batch; /* the rows handed out last */
	uint64_t done;
};

/*
 * Opens it. Settings are the caller's, less those that say how: all rows, once,
 * in order, all columns, numbers of the type they are stored in. like: what it
 * was written from, or NULL; indices that one has not, which a writer made up,
 * are left alone.
 */
int pen__cellsource_open(struct pen_cellsource *, const struct pen_spec *,
			 const struct pen_cellsource *like, struct pen_err *);
void pen__cellsource_close(struct pen_cellsource *);
/* The next rows, good until the next call; PEN_END after the last. Coded
 * columns are codes, also the index. */
int pen__cellsource_next(struct pen_cellsource *, struct pen_cells_rows *,
			 struct pen_err *);
/* How many numbers there are, when rows have all that is stored of them; else
 * only reading them tells. */
bool pen__cellsource_counted(const struct pen_cellsource *, uint64_t *nnz);

#endif
