/*
 * HDF5: data sets are fields, the first axis counts samples. Reading does not
 * use libhdf5: see hdf5.h for the reader and its limits, and plain.h for
 * samples.
 */
#include <stdio.h>

#include "format/hdf5/hdf5_fields.h"

static const char *const compressions[] = { "none", "gzip", "lzf", NULL };

static const struct pen_opt hdf5_opts[] = {
	PEN_PLAIN_OPTS,
	{ .name = "chunk",
	  .type = PEN_OPT_STR,
	  .off = offsetof(struct pen_h5_format, chunk),
	  .help = "writing: chunk shape with the sample axis, such as 1x64x64 "
		  "(default: contiguous)" },
	{ .name = "maxshape",
	  .type = PEN_OPT_STR,
	  .off = offsetof(struct pen_h5_format, maxshape),
	  .help = "writing: maximum shape after the sample axis, such as 64x64 "
		  "(default: fixed)" },
	{ .name = "compression",
	  .type = PEN_OPT_ENUM,
	  .off = offsetof(struct pen_h5_format, compression),
	  .dflt = "none",
	  .help = "writing: compression of chunks",
	  .choices = compressions },
	{ .name = "level",
	  .type = PEN_OPT_INT,
	  .off = offsetof(struct pen_h5_format, level),
	  .dflt = "4",
	  .help = "writing: gzip level (9: smallest)",
	  .min = 0,
	  .max = 9 },
	{ .name = "shuffle",
	  .type = PEN_OPT_BOOL,
	  .off = offsetof(struct pen_h5_format, shuffle),
	  .dflt = "false",
	  .help = "writing: shuffle bytes before compression" },
	{ .name = "num_dset",
	  .type = PEN_OPT_INT,
	  .off = offsetof(struct pen_h5_format, num_dset),
	  .dflt = "1",
	  .help = "writing: number of data sets records_0, records_1, ... to "
		  "split samples into (along their first axis)",
	  .min = 1,
	  .max = PEN_MAX_FIELDS - 1 },
	{ .name = "labels",
	  .type = PEN_OPT_BOOL,
	  .off = offsetof(struct pen_h5_format, labels),
	  .dflt = "true",
	  .help = "writing: add labels (int64 zeros) as DLIO does if there is "
		  "one field" },
	{ .name = NULL },
};

static void hdf5_describe(const struct pen_format *f, struct pen_describe *d)
{
	char text[16];

	snprintf(text, sizeof(text), "%u",
		 ((const struct pen_plain *)f->priv)->version);
	d->fact(d->arg, "superblock version", text);
	pen__plain_describe(f, d);
}

static const char *const hdf5_suffixes[] = { ".h5", ".hdf5", ".he5", NULL };

const struct pen_format_ops pen__format_hdf5 = {
	.name = "hdf5",
	.help = "HDF5 file: data sets are fields, their first axis counts "
		"samples",
	.suffixes = hdf5_suffixes,
	.opts = hdf5_opts,
	.priv_size = sizeof(struct pen_h5_format),
	.close = pen__plain_unbind,
	.index = pen__h5_index,
	.bind = pen__plain_bind,
	.shape = pen__plain_shape,
	.locate = pen__plain_locate,
	.unpack = pen__plain_unpack,
	.emit = pen__plain_emit,
	.describe = hdf5_describe,
	.write = pen__h5_write,
};
