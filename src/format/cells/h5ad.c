/*
 * AnnData files in HDF5, read as they are, compressed or not, by the reader in
 * hdf5.h; libhdf5 is not involved. What a cell is, cells.c says.
 */
#include "format/cells/cells.h"

static int h5ad_index(const struct pen_format *f, struct pen_peek *pk,
		      struct pen_found *found, struct pen_err *err)
{
	return pen__cells_index(f, &pen__cells_in_hdf5, pk, found, err);
}

static const char *const suffixes[] = { ".h5ad", NULL };

const struct pen_format_ops pen__format_h5ad = {
	.name = "h5ad",
	.help = "AnnData: a cell, a row of the matrix, is a sample",
	.suffixes = suffixes,
	.opts = pen__cells_opts,
	.priv_size = sizeof(struct pen_cells),
	.open = pen__cells_open,
	.close = pen__cells_close,
	.index = h5ad_index,
	.family = "anndata",
	.bind = pen__cells_bind,
	.shape = pen__cells_shape,
	.locate = pen__cells_locate,
	.users = pen__cells_users,
	.unpack = pen__cells_unpack,
	.emit = pen__cells_emit,
	.value = pen__cells_value,
	.nlabels = pen__cells_nlabels,
	.label = pen__cells_label,
	.describe = pen__cells_describe,
	.warn = pen__cells_warn,
};
