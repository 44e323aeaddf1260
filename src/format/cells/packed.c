/*
 * The packed layout of single cells, as a format: what the file is like, says
 * packed_file.c; what a cell is, cells.c.
 */
#include "format/cells/packed.h"

#include "format/cells/cells.h"

static int packed_index(const struct pen_format *f, struct pen_peek *pk,
			struct pen_found *found, struct pen_err *err)
{
	return pen__cells_index(f, &pen__cells_in_packed, pk, found, err);
}

static const char *const suffixes[] = { ".pen", NULL };

const struct pen_format_ops pen__format_packed = {
	.name = "packed",
	.help = "single cells in the layout made for loading; see convert",
	.suffixes = suffixes,
	.opts = pen__cells_opts,
	.priv_size = sizeof(struct pen_cells),
	.open = pen__cells_open,
	.close = pen__cells_close,
	.index = packed_index,
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
