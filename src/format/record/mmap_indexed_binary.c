/*
 * DLIO's mmap_indexed_binary: the same files as indexed_binary under another
 * suffix. DLIO maps these; here the store decides how files are read.
 */
#include "format/record/indexed_binary.h"

static const char *const suffixes[] = { ".mmap_indexed_binary", NULL };

const struct pen_format_ops pen__format_mmap_indexed_binary = {
	.name = "mmap_indexed_binary",
	.help = "the same as indexed_binary, under another suffix",
	.suffixes = suffixes,
	.opts = pen__indexed_opts,
	.priv_size = sizeof(struct pen_indexed),
	.open = pen__indexed_open,
	.close = pen__indexed_close,
	.index = pen__indexed_index,
	.bind = pen__indexed_bind,
	.shape = pen__indexed_shape,
	.locate = pen__indexed_locate,
	.emit = pen__indexed_emit,
	.describe = pen__indexed_describe,
	.write = pen__indexed_write,
};
