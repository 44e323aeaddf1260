/*
 * DLIO's mmap_indexed_binary: the same files as indexed_binary with another
 * suffix. DLIO maps them; here the store decides how files are read.
 */
#include "format/record/indexed_binary.h"

static const char *const suffixes[] = { ".mmap_indexed_binary", NULL };

const struct pen_format_ops pen__format_mmap_indexed_binary = {
	.name = "mmap_indexed_binary",
	.help = "the same as indexed_binary, with another suffix",
	.suffixes = suffixes,
	PEN_INDEXED_OPS,
};
