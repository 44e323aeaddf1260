/*
 * The only file that lists formats and writers of single cells: the lists come
 * from CMakeLists.txt.
 */
#include "format/cells/cells_write.h"
#include "format/format.h"

#define PEN_ENTRY(x) extern const struct pen_format_ops pen__format_##x;
#include "format_list.h"
#undef PEN_ENTRY

static const struct pen_format_ops *const all[] = {
#define PEN_ENTRY(x) &pen__format_##x,
#include "format_list.h"
#undef PEN_ENTRY
};

const struct pen_format_ops *pen__format_at(unsigned i)
{
	return i < sizeof(all) / sizeof(all[0]) ? all[i] : NULL;
}

#define PEN_ENTRY(x) extern const struct pen_cells_writer_ops pen__cells_##x;
#include "cells_list.h"
#undef PEN_ENTRY

static const struct pen_cells_writer_ops *const writers[] = {
#define PEN_ENTRY(x) &pen__cells_##x,
#include "cells_list.h"
#undef PEN_ENTRY
	NULL,
};

const struct pen_cells_writer_ops *pen__cells_writer_at(unsigned i)
{
	return i < sizeof(writers) / sizeof(writers[0]) ? writers[i] : NULL;
}
