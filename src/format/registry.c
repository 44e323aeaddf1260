/* The only file that names formats: the list comes from CMakeLists.txt. */
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
