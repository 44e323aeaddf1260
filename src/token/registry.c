/* The only file that lists tokenisers; the list comes from CMakeLists.txt. */
#include "token/token_int.h"

#define PEN_ENTRY(x) extern const struct pen_token_ops pen__token_##x;
#include "token_list.h"
#undef PEN_ENTRY

static const struct pen_token_ops *const all[] = {
#define PEN_ENTRY(x) &pen__token_##x,
#include "token_list.h"
#undef PEN_ENTRY
};

const char *const pen__token_names[] = {
#define PEN_ENTRY(x) #x,
#include "token_list.h"
#undef PEN_ENTRY
	NULL,
};

const struct pen_token_ops *pen__token_at(unsigned i)
{
	return i < sizeof(all) / sizeof(all[0]) ? all[i] : NULL;
}
