/* The only file that names samplers: the list comes from CMakeLists.txt. */
#include "sampler/sampler.h"

#define PEN_ENTRY(x) extern const struct pen_sampler_ops pen__sampler_##x;
#include "sampler_list.h"
#undef PEN_ENTRY

static const struct pen_sampler_ops *const all[] = {
#define PEN_ENTRY(x) &pen__sampler_##x,
#include "sampler_list.h"
#undef PEN_ENTRY
};

const struct pen_sampler_ops *pen__sampler_at(unsigned i)
{
	return i < sizeof(all) / sizeof(all[0]) ? all[i] : NULL;
}
