/* What this build supports, for programs that offer it to their users. */
#include <string.h>

#include "base/mem.h"
#include "ddict/dictionary.h"
#include "decode/decode.h"
#include "engine/spec.h"
#include "format/format.h"
#include "sampler/sampler.h"
#include "store/store.h"

PEN_API const char *pen_name_at(const char *kind, uint32_t i)
{
#define NAME(what)                                                             \
	if (!strcmp(kind, #what)) {                                            \
		const struct pen_##what##_ops *o = pen__##what##_at(i);        \
                                                                               \
		return o ? o->name : NULL;                                     \
	}
	NAME(format)
	NAME(store)
	NAME(decoder)
	NAME(sampler)
#undef NAME
	return NULL;
}

struct entry {
	const char *help;
	const struct pen_opt *opts;
};

/* An implementation by its kind and name; zeros if there is none. */
static struct entry entry_of(const char *kind, const char *name)
{
#define FIND(what)                                                             \
	if (name && !strcmp(kind, #what)) {                                    \
		const struct pen_##what##_ops *o = pen__##what##_find(name);   \
                                                                               \
		if (o)                                                         \
			return (struct entry){ o->help, o->opts };             \
	}
	FIND(format)
	FIND(store)
	FIND(decoder)
	FIND(sampler)
#undef FIND
	return (struct entry){ NULL, NULL };
}

PEN_API const char *pen_help_of(const char *kind, const char *name)
{
	return entry_of(kind, name).help;
}

static const struct pen_opt *options_of(const char *kind, const char *name)
{
	if (!strcmp(kind, "loader"))
		return pen__spec_opts;
	if (!strcmp(kind, "ddict"))
		return pen__ddict_opts;
	if (!strcmp(kind, "image"))
		return pen__decoder_group(kind);
	return entry_of(kind, name).opts;
}

PEN_API int pen_option_at(const char *kind, const char *name, uint32_t i,
			  struct pen_option *out, size_t size)
{
	const struct pen_opt *o = options_of(kind, name);

	while (o && o->name && i) {
		o++;
		i--;
	}
	if (!o || !o->name)
		return PEN_ENOTFOUND;
	pen__give(out, size,
		  &(struct pen_option){ o->name, o->help, o->dflt, o->choices,
					pen__opt_type(o) },
		  sizeof(struct pen_option));
	return 0;
}

PEN_API const char *pen_format_for(const char *file_name)
{
	const struct pen_format_ops *f = pen__format_for(file_name);

	return f ? f->name : NULL;
}

PEN_API const char *pen_format_suffix(const char *format, uint32_t i)
{
	const struct pen_format_ops *f = pen__format_find(format);
	const char *const *s = f ? f->suffixes : NULL;

	while (s && *s && i--)
		s++;
	return s ? *s : NULL;
}

PEN_API int pen_store_usable(const char *name)
{
	if (!strcmp(name, "uring"))
		return pen__store_uring_works();
	return pen__store_find(name) != NULL;
}

PEN_API const char *pen_version(void)
{
	return PEN_VERSION;
}
