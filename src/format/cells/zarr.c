/*
 * AnnData in zarr, versions 2 and 3, as a directory or in a zip archive; also a
 * matrix alone (matrix=.). Of a directory one file, the marker at the root of
 * the store, has the samples; the others are what chunks are read from, and
 * cost nothing here. What a cell is, cells.c says.
 */
#include <strings.h>

#include "format/cells/cells.h"
#include "format/cells/zarr.h"

static const char *const suffixes[] = { ".zarr", ".zarr.zip", NULL };
static const char *const markers[] = { "zarr.json", ".zgroup", ".zarray",
				       NULL };

static bool is_archive(const struct pen_peek *pk)
{
	const size_t n = strlen(pk->name);

	return !pk->find ||
	       (n >= 4 && strcasecmp(pk->name + n - 4, ".zip") == 0);
}

int pen__cells_index_zarr(const struct pen_format *f, struct pen_peek *pk,
			  struct pen_found *found, struct pen_err *err)
{
	bool root;
	int rc = pen__zarr_is_root(pk, &root, err);

	if (rc < 0 || (!root && !is_archive(pk)))
		return rc;
	return pen__cells_index(f, &pen__cells_in_zarr, pk, found, err);
}

const struct pen_format_ops pen__format_zarr = {
	.name = "zarr",
	.help = "AnnData in zarr: a cell, a row of the matrix, is a sample",
	.suffixes = suffixes,
	.markers = markers,
	.opts = pen__cells_opts,
	.priv_size = sizeof(struct pen_cells),
	.open = pen__cells_open,
	.close = pen__cells_close,
	.index = pen__cells_index_zarr,
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
