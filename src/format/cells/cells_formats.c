/*
 * The formats of single cells: AnnData in HDF5 (h5ad), in zarr, in the packed
 * layout, and files of all three as one data set (anndata). They differ in
 * their names and in how a file is read (cells_file.h); cells.c turns cells
 * into samples.
 *
 * In a zarr directory one file, the marker at the root of the store, has the
 * samples; chunks are read from the others, which cost nothing here. A store of
 * plain arrays is not AnnData: index() marks that in the blob, and bind()
 * switches to the operations of chunked/plain.h.
 */
#include <stdio.h>
#include <strings.h>

#include "format/cells/cells.h"
#include "format/cells/zarr.h"

static bool ends_in(const char *name, const char *suffix)
{
	const size_t n = strlen(name), k = strlen(suffix);

	return n >= k && strcasecmp(name + n - k, suffix) == 0;
}

static int cells_index(const struct pen_format *f, struct pen_peek *pk,
		       struct pen_found *found, struct pen_err *err)
{
	const char *name = f->ops->family ? f->ops->name : "";
	bool root;
	int rc;

	if (strcmp(name, "h5ad") == 0 || (!*name && ends_in(pk->name, ".h5ad")))
		return pen__cells_index(f, &pen__cells_in_hdf5, pk, found, err);
	if (strcmp(name, "packed") == 0 ||
	    (!*name && ends_in(pk->name, ".pen")))
		return pen__cells_index(f, &pen__cells_in_packed, pk, found,
					err);
	rc = pen__zarr_is_root(pk, &root, err);
	if (rc < 0 || (!root && pk->find && !ends_in(pk->name, ".zip")))
		return rc;
	return pen__cells_index(f, &pen__cells_in_zarr, pk, found, err);
}

static void cells_close(struct pen_format *f)
{
	pen__plain_unbind(f);
	pen__cells_close(f);
}

static int cells_bind(struct pen_format *, const struct pen_index *,
		      struct pen_err *);

static const char *const h5ad_suffixes[] = { ".h5ad", NULL };
static const char *const zarr_suffixes[] = { ".zarr", ".zarr.zip", NULL };
static const char *const pen_suffixes[] = { ".pen", NULL };
static const char *const zarr_markers[] = { "zarr.json", ".zgroup", ".zarray",
					    NULL };

/* Shared by all formats, */
#define FILES                                                                  \
	.priv_size = sizeof(struct pen_cells), .open = pen__cells_open,        \
	.index = cells_index, .close = cells_close, .bind = cells_bind

/* by all formats of cells, */
#define CELLS                                                                  \
	FILES, .shape = pen__cells_shape, .locate = pen__cells_locate,         \
	       .users = pen__cells_users, .unpack = pen__cells_unpack,         \
	       .emit = pen__cells_emit, .value = pen__cells_value,             \
	       .nlabels = pen__cells_nlabels, .label = pen__cells_label,       \
	       .describe = pen__cells_describe, .warn = pen__cells_warn

/* and by zarr for cells and plain arrays. */
#define ZARR                                                                   \
	.name = "zarr",                                                        \
	.help = "zarr: AnnData (a cell is a sample), or plain arrays as "      \
		"fields (samples along axis 0)",                               \
	.opts = pen__zarr_opts, .suffixes = zarr_suffixes,                     \
	.markers = zarr_markers, .family = "anndata"

const struct pen_format_ops pen__format_zarr = { CELLS, ZARR };

/* bind() chooses between this and plain, below. */
static const struct pen_format_ops zarr_cells = { CELLS, ZARR,
						  .all_fields = true };

const struct pen_format_ops pen__format_h5ad = {
	CELLS,
	.all_fields = true,
	.name = "h5ad",
	.help = "AnnData: each cell (a row of the matrix) is a sample",
	.opts = PEN_CELLS_OPTS,
	.suffixes = h5ad_suffixes,
	.family = "anndata",
};

const struct pen_format_ops pen__format_packed = {
	CELLS,
	.all_fields = true,
	.name = "packed",
	.help = "single cells in a layout for fast loading, written by "
		"`penstock convert`",
	.opts = PEN_CELLS_OPTS,
	.suffixes = pen_suffixes,
	.family = "anndata",
};

/* No file has this format on its own; it combines the others. */
const struct pen_format_ops pen__format_anndata = {
	CELLS,
	.all_fields = true,
	.name = "anndata",
	.help = "AnnData: h5ad, zarr and packed files as one data set",
	.opts = PEN_CELLS_OPTS,
	.markers = zarr_markers,
};

/* ---- plain arrays ---- */

static void plain_describe(const struct pen_format *f, struct pen_describe *d)
{
	char text[16];

	snprintf(text, sizeof(text), "%u",
		 ((const struct pen_plain *)f->priv)->version);
	d->fact(d->arg, "zarr version", text);
	pen__plain_describe(f, d);
}

static const struct pen_format_ops plain = {
	FILES,
	ZARR,
	.shape = pen__plain_shape,
	.locate = pen__plain_locate,
	.unpack = pen__plain_unpack,
	.emit = pen__plain_emit,
	.describe = plain_describe,
};

/* Other options select the fields of cells, so fields= may only name fields
 * that exist, as in the loader. */
static int check_fields(const struct pen_format *f, struct pen_err *err)
{
	const char *p = ((const struct pen_plain *)f->priv)->fields;

	for (size_t n; p && *p; p += n + (p[n] == ',')) {
		uint32_t i = 0;

		n = strcspn(p, ",");
		while (i < f->nfields && (strlen(f->field[i].name) != n ||
					  memcmp(f->field[i].name, p, n) != 0))
			i++;
		if (i == f->nfields)
			return pen__fail(err, P_NO_SUCH_FIELD, "fields",
					 "'%.*s' is not a field of this "
					 "single-cell data; format.matrix= and "
					 "format.obs= select the fields",
					 (int)(n < 60 ? n : 60), p);
	}
	return 0;
}

static int cells_bind(struct pen_format *f, const struct pen_index *ix,
		      struct pen_err *err)
{
	uint64_t i = 0;
	int rc;

	while (i < ix->nblobs && !ix->blob(ix, i).n)
		i++;
	if (i < ix->nblobs && ix->blob(ix, i).p[0] == PEN_PLAIN_BLOB) {
		f->ops = &plain;
		return pen__plain_bind(f, ix, err);
	}
	if (f->ops == &plain || f->ops == &pen__format_zarr)
		f->ops = &zarr_cells;
	rc = pen__cells_bind(f, ix, err);
	return rc < 0 ? rc : check_fields(f, err);
}
