/*
 * Single cells in files of several formats as one data set: each is read as
 * what its name says. Nothing has this format by itself; it is what h5ad, zarr
 * and packed files are together.
 */
#include <strings.h>

#include "format/cells/cells.h"

static bool ends_in(const char *name, const char *suffix)
{
	const size_t n = strlen(name), k = strlen(suffix);

	return n >= k && strcasecmp(name + n - k, suffix) == 0;
}

static int anndata_index(const struct pen_format *f, struct pen_peek *pk,
			 struct pen_found *found, struct pen_err *err)
{
	if (ends_in(pk->name, ".h5ad"))
		return pen__cells_index(f, &pen__cells_in_hdf5, pk, found, err);
	if (ends_in(pk->name, ".pen"))
		return pen__cells_index(f, &pen__cells_in_packed, pk, found,
					err);
	return pen__cells_index_zarr(f, pk, found, err);
}

/* Those of a zarr store, whose files have no names of their own. */
static const char *const markers[] = { "zarr.json", ".zgroup", ".zarray",
				       NULL };

const struct pen_format_ops pen__format_anndata = {
	.name = "anndata",
	.help = "AnnData: h5ad, zarr and packed files as one data set",
	.markers = markers,
	.opts = pen__cells_opts,
	.priv_size = sizeof(struct pen_cells),
	.open = pen__cells_open,
	.close = pen__cells_close,
	.index = anndata_index,
	.bind = pen__cells_bind,
	.shape = pen__cells_shape,
	.locate = pen__cells_locate,
	.unpack = pen__cells_unpack,
	.emit = pen__cells_emit,
	.value = pen__cells_value,
	.nlabels = pen__cells_nlabels,
	.label = pen__cells_label,
	.describe = pen__cells_describe,
	.warn = pen__cells_warn,
};
