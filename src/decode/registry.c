/* The only file that lists decoders: the list comes from CMakeLists.txt. */
#include "decode/decode.h"

#define PEN_ENTRY(x) extern const struct pen_decoder_ops pen__decoder_##x;
#include "decoder_list.h"
#undef PEN_ENTRY

static const struct pen_decoder_ops *const all[] = {
#define PEN_ENTRY(x) &pen__decoder_##x,
#include "decoder_list.h"
#undef PEN_ENTRY
};

const struct pen_decoder_ops *pen__decoder_at(unsigned i)
{
	return i < sizeof(all) / sizeof(all[0]) ? all[i] : NULL;
}
