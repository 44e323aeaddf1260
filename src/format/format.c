/*
 * Shared by all formats: finding one by name or suffix, and opening it with its
 * options. Implementations are listed in registry.c only.
 */
#include "format/format.h"

#include <strings.h>

#include "base/mem.h"

const struct pen_format_ops *pen__format_find(const char *name)
{
	const struct pen_format_ops *o;

	for (unsigned i = 0; (o = pen__format_at(i)); i++)
		if (strcmp(o->name, name) == 0)
			return o;
	return NULL;
}

/* Compares the last letters regardless of case: a cheap test that rejects most
 * suffixes, since every name is compared with all of them. */
static bool may_end_alike(char a, char b)
{
	return (a | 32) == (b | 32);
}

/* Length of the longest suffix of o that the n-byte name ends in, or 0. */
static size_t suffix_len(const struct pen_format_ops *o, const char *name,
			 size_t n)
{
	size_t best = 0;

	for (const char *const *s = o->suffixes; s && *s; s++) {
		size_t k = strlen(*s);

		if (k > best && k <= n &&
		    may_end_alike(name[n - 1], (*s)[k - 1]) &&
		    strcasecmp(name + n - k, *s) == 0)
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
	return o->takes_all ||
	       suffix_len(o, file_name, strlen(file_name)) > 0 ||
	       (!o->suffixes && pen__format_is(pen__format_for(file_name), o));
}

/* Whether a component of the path ends in a suffix of o. */
static bool names_dir(const struct pen_format_ops *o, const char *dir)
{
	char part[256];

	while (*dir) {
		const size_t n = strcspn(dir, "/");

		if (n && n < sizeof(part)) {
			memcpy(part, dir, n);
			part[n] = '\0';
			if (suffix_len(o, part, n))
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
	const size_t n = strlen(file_name);
	size_t best_len = 0;

	for (unsigned i = 0; (o = pen__format_at(i)); i++) {
		size_t k = suffix_len(o, file_name, n);

		if (k > best_len) {
			best_len = k;
			best = o;
		}
	}
	return best;
}

void pen__format_err(const struct pen_format_ops *ops, struct pen_err *err)
{
	/* also a setting of the loader, without a prefix */
	if (err && strcmp(err->where, "fields") != 0)
		pen__opt_err(ops->opts, "format.", err);
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
	rc = pen__opt_fill(ops->opts, f->priv, kv, nkv, "format.", err);
	if (rc < 0) {
		pen__free(f->priv);
		pen__free(f);
		return rc;
	}
	rc = ops->open ? ops->open(f, err) : 0;
	if (rc < 0) {
		pen__format_err(ops, err);
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
