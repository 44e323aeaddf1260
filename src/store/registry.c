/* The only file that names stores: the list comes from CMakeLists.txt. */
#include "store/store.h"

#define PEN_ENTRY(x) extern const struct pen_store_ops pen__store_##x;
#include "store_list.h"
#undef PEN_ENTRY

static const struct pen_store_ops *const all[] = {
#define PEN_ENTRY(x) &pen__store_##x,
#include "store_list.h"
#undef PEN_ENTRY
};

const struct pen_store_ops *pen__store_at(unsigned i)
{
	return i < sizeof(all) / sizeof(all[0]) ? all[i] : NULL;
}
