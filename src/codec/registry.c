/*
 * The only file that lists codecs and packers: the lists come from
 * CMakeLists.txt.
 */
#include <string.h>

#include "codec/codec.h"
#include "codec/pack.h"

#define PEN_ENTRY(x) extern const struct pen_codec pen__codec_##x;
#include "codec_list.h"
#undef PEN_ENTRY

static const struct pen_codec *const all[] = {
#define PEN_ENTRY(x) &pen__codec_##x,
#include "codec_list.h"
#undef PEN_ENTRY
};

static const struct {
	const char *name, *library;
} absent[] = {
#define PEN_ABSENT(x, library) { #x, library },
#include "codec_absent.h"
#undef PEN_ABSENT
	{ NULL, NULL },
};

const struct pen_codec *pen__codec_find(const char *name)
{
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (strcmp(all[i]->name, name) == 0)
			return all[i];
	return NULL;
}

const char *pen__codec_absent(const char *name)
{
	for (size_t i = 0; absent[i].name; i++)
		if (strcmp(absent[i].name, name) == 0)
			return absent[i].library;
	return NULL;
}

#define PEN_ENTRY(x) extern const struct pen_packer pen__packer_##x;
#include "packer_list.h"
#undef PEN_ENTRY

static const struct pen_packer *const packers[] = {
#define PEN_ENTRY(x) &pen__packer_##x,
#include "packer_list.h"
#undef PEN_ENTRY
	NULL,
};

const struct pen_packer *pen__packer_at(unsigned i)
{
	return i < sizeof(packers) / sizeof(packers[0]) ? packers[i] : NULL;
}
