/*
 * What all formats share: finding one by name or suffix, opening it with its
 * options, and the element types. Names no implementation: registry.c does.
 */
#include "format/format.h"

#include <strings.h>

#include "base/mem.h"

static const struct {
	const char *name;
	size_t size;
} dtypes[PEN_NDTYPES] = {
	[PEN_BOOL] = { "bool", 1 },	   [PEN_I8] = { "int8", 1 },
	[PEN_U8] = { "uint8", 1 },	   [PEN_I16] = { "int16", 2 },
	[PEN_U16] = { "uint16", 2 },	   [PEN_I32] = { "int32", 4 },
	[PEN_U32] = { "uint32", 4 },	   [PEN_I64] = { "int64", 8 },
	[PEN_U64] = { "uint64", 8 },	   [PEN_F16] = { "float16", 2 },
	[PEN_F32] = { "float32", 4 },	   [PEN_F64] = { "float64", 8 },
	[PEN_F80] = { "float128", 16 },	   [PEN_C64] = { "complex64", 8 },
	[PEN_C128] = { "complex128", 16 }, [PEN_C160] = { "complex256", 32 },
};

size_t pen_dtype_size(enum pen_dtype t)
{
	return (unsigned)t < PEN_NDTYPES ? dtypes[t].size : 0;
}

const char *pen_dtype_name(enum pen_dtype t)
{
	return (unsigned)t < PEN_NDTYPES ? dtypes[t].name : "unknown";
}

bool pen__shape_bytes(const int64_t *shape, uint32_t ndim, enum pen_dtype t,
		      size_t *out)
{
	size_t n = pen_dtype_size(t);

	for (uint32_t i = 0; i < ndim; i++)
		if (shape[i] < 0 || !pen__mul(n, (size_t)shape[i], &n))
			return false;
	*out = n;
	return true;
}

const struct pen_format_ops *pen__format_find(const char *name)
{
	const struct pen_format_ops *o;

	for (unsigned i = 0; (o = pen__format_at(i)); i++)
		if (strcmp(o->name, name) == 0)
			return o;
	return NULL;
}

/* Length of the longest suffix of o that the name ends in, or 0. */
static size_t suffix_len(const struct pen_format_ops *o, const char *name)
{
	const size_t n = strlen(name);
	size_t best = 0;

	for (const char *const *s = o->suffixes; s && *s; s++) {
		size_t k = strlen(*s);

		if (k > best && k <= n && strcasecmp(name + n - k, *s) == 0)
			best = k;
	}
	return best;
}

bool pen__format_is(const struct pen_format_ops *a,
		    const struct pen_format_ops *b)
{
	return a && b &&
	       (a == b || (a->family && strcmp(a->family, b->name) == 0));
}

bool pen__format_takes(const struct pen_format_ops *o, const char *file_name)
{
	return suffix_len(o, file_name) > 0 ||
	       (!o->suffixes && pen__format_is(pen__format_for(file_name), o));
}

/* Does a part of the path end in a suffix of o? */
static bool names_dir(const struct pen_format_ops *o, const char *dir)
{
	char part[256];

	while (*dir) {
		const size_t n = strcspn(dir, "/");

		if (n && n < sizeof(part)) {
			memcpy(part, dir, n);
			part[n] = '\0';
			if (suffix_len(o, part))
				return true;
		}
		dir += n + (dir[n] == '/');
	}
	return false;
}

const struct pen_format_ops *pen__format_of_dir(const char *dir)
{
	const struct pen_format_ops *o;

	for (unsigned i = 0; (o = pen__format_at(i)); i++)
		if (o->markers && names_dir(o, dir))
			return o;
	return NULL;
}

const struct pen_format_ops *pen__format_for(const char *file_name)
{
	const struct pen_format_ops *o, *best = NULL;
	size_t best_len = 0;

	for (unsigned i = 0; (o = pen__format_at(i)); i++) {
		size_t k = suffix_len(o, file_name);

		if (k > best_len) {
			best_len = k;
			best = o;
		}
	}
	return best;
}

int pen__format_open(struct pen_format **out, const struct pen_format_ops *ops,
		     const struct pen_opts_kv *kv, size_t nkv,
		     struct pen_err *err)
{
	struct pen_format *f = pen__calloc(1, sizeof(*f));
	int rc;

	*out = NULL;
	if (!f)
		return pen__fail_nomem(err, ops->name, sizeof(*f));
	f->ops = ops;
	f->priv = pen__calloc(1, ops->priv_size);
	if (!f->priv) {
		pen__free(f);
		return pen__fail_nomem(err, ops->name, ops->priv_size);
	}
	rc = pen__opt_fill(ops->opts, f->priv, kv, nkv, err);
	if (rc < 0) {
		pen__free(f->priv);
		pen__free(f);
		return rc;
	}
	rc = ops->open ? ops->open(f, err) : 0;
	if (rc < 0) {
		pen__format_close(f);
		return rc;
	}
	*out = f;
	return 0;
}

void pen__format_close(struct pen_format *f)
{
	if (!f)
		return;
	if (f->ops->close)
		f->ops->close(f);
	pen__opt_fini(f->ops->opts, f->priv);
	pen__free(f->priv);
	pen__free(f);
}
