/* What this build has, for programs that offer it to their users. */
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
	if (!strcmp(kind, "format")) {
		const struct pen_format_ops *f = pen__format_at(i);

		return f ? f->name : NULL;
	}
	if (!strcmp(kind, "store")) {
		const struct pen_store_ops *s = pen__store_at(i);

		return s ? s->name : NULL;
	}
	if (!strcmp(kind, "decoder")) {
		const struct pen_decoder_ops *d = pen__decoder_at(i);

		return d ? d->name : NULL;
	}
	if (!strcmp(kind, "sampler")) {
		const struct pen_sampler_ops *s = pen__sampler_at(i);

		return s ? s->name : NULL;
	}
	return NULL;
}

PEN_API const char *pen_help_of(const char *kind, const char *name)
{
	const struct pen_decoder_ops *decoder;
	const struct pen_sampler_ops *sampler;
	const struct pen_format_ops *format;
	const struct pen_store_ops *store;

	if (!strcmp(kind, "format")) {
		format = pen__format_find(name);
		return format ? format->help : NULL;
	}
	if (!strcmp(kind, "store")) {
		store = pen__store_find(name);
		return store ? store->help : NULL;
	}
	if (!strcmp(kind, "decoder")) {
		decoder = pen__decoder_find(name);
		return decoder ? decoder->help : NULL;
	}
	sampler = strcmp(kind, "sampler") ? NULL : pen__sampler_find(name);
	return sampler ? sampler->help : NULL;
}

static const struct pen_opt *options_of(const char *kind, const char *name)
{
	const struct pen_decoder_ops *decoder;
	const struct pen_sampler_ops *sampler;
	const struct pen_format_ops *format;
	const struct pen_store_ops *store;

	if (!strcmp(kind, "loader"))
		return pen__spec_opts;
	if (!strcmp(kind, "ddict"))
		return pen__ddict_opts;
	if (!name)
		return NULL;
	if (!strcmp(kind, "format")) {
		format = pen__format_find(name);
		return format ? format->opts : NULL;
	}
	if (!strcmp(kind, "store")) {
		store = pen__store_find(name);
		return store ? store->opts : NULL;
	}
	if (!strcmp(kind, "decoder")) {
		decoder = pen__decoder_find(name);
		return decoder ? decoder->opts : NULL;
	}
	sampler = strcmp(kind, "sampler") ? NULL : pen__sampler_find(name);
	return sampler ? sampler->opts : NULL;
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
		  &(struct pen_option){ o->name, o->help, o->dflt, o->choices },
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
