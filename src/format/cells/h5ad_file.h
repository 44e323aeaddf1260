/* Internal to h5ad_*.c. */
#ifndef PEN_FORMAT_CELLS_H5AD_FILE_H
#define PEN_FORMAT_CELLS_H5AD_FILE_H

#include "format/cells/cells_file.h"
#include "format/hdf5/hdf5.h"

int pen__h5ad_node(struct pen_cells_file *, uint64_t addr, const char *path,
		   struct pen_cells_node *);
int pen__h5ad_inventory(struct pen_cells_file *, const char *frame,
			struct pen_buf *out);

#endif
