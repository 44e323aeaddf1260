/* Internal to the zarr writer: settings, and metadata as JSON. */
#ifndef PEN_FORMAT_CELLS_ZARR_WRITE_H
#define PEN_FORMAT_CELLS_ZARR_WRITE_H

#include "base/text.h"
#include "format/cells/anndata_write.h"

enum {
	PEN_ZARR_AUTO,
	PEN_ZARR_BLOSC,
	PEN_ZARR_ZSTD,
	PEN_ZARR_GZIP,
	PEN_ZARR_NONE
};

struct pen_zarr_write {
	struct pen_ad ad; /* must be first: the sink gets this address */
	/* options */
	int version, compression;
	uint64_t shard;
	/* version 2: contents of .zmetadata so far */
	struct pen_text all;
};

static inline bool pen__zarr_v3(const struct pen_zarr_write *z)
{
	return z->version == 1;
}

/* Writes the metadata of a group or an array, whose directory exists. */
int pen__zarr_put_group(struct pen_zarr_write *, const char *path,
			const struct pen_ad_attrs *, struct pen_err *);
int pen__zarr_put_array(struct pen_zarr_write *, const struct pen_ad_array *,
			const struct pen_ad_attrs *, struct pen_err *);
/* Writes all metadata into one file, which saves readers many small ones. */
int pen__zarr_put_all(struct pen_zarr_write *, struct pen_err *);

#endif
