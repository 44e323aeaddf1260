/*
 * Shared by all decoders: finding one by name, media type or first bytes, and
 * opening it with its options. Implementations are listed in registry.c only.
 */
#include "decode/decode.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

static bool has_media(const struct pen_decoder_ops *o, const char *name)
{
	for (const char *const *m = o->media; m && *m; m++)
		if (strcmp(*m, name) == 0)
			return true;
	return false;
}

const struct pen_decoder_ops *pen__decoder_find(const char *name)
{
	const struct pen_decoder_ops *o;

	for (unsigned i = 0; (o = pen__decoder_at(i)); i++)
		if (strcmp(o->name, name) == 0 || has_media(o, name))
			return o;
	return NULL;
}

const struct pen_opt *pen__decoder_group(const char *name)
{
	const struct pen_decoder_ops *o;

	for (unsigned i = 0; (o = pen__decoder_at(i)); i++)
		if (o->group && strcmp(o->group, name) == 0)
			return o->group_opts;
	return NULL;
}

bool pen__decoder_begins(const struct pen_decoder_ops *o, const void *p,
			 size_t n)
{
	const size_t k = o->magic ? strlen(o->magic) : 0;

	return k && n >= k && memcmp(p, o->magic, k) == 0;
}

/* The setting of the group that a key names, or NULL. */
static const char *of_group(const struct pen_decoder_ops *o, const char *key)
{
	const size_t n = o->group ? strlen(o->group) : 0;

	return n && strncmp(key, o->group, n) == 0 && key[n] == '.'
		       ? key + n + 1
		       : NULL;
}

/* Fills d->priv with the options, and with the settings of the group. */
static int fill(struct pen_decoder *d, const struct pen_opts_kv *kv, size_t nkv,
		struct pen_err *err)
{
	const struct pen_decoder_ops *o = d->ops;
	struct pen_opts_kv *own = pen__alloc(nkv + 1, sizeof(*own));
	void *shared = (uint8_t *)d->priv + o->group_off;
	char prefix[32];
	size_t n = 0;
	int rc;

	if (!own)
		return pen__fail_nomem(err, o->name, nkv * sizeof(*own));
	for (size_t i = 0; i < nkv; i++)
		if (!of_group(o, kv[i].key))
			own[n++] = kv[i];
	rc = pen__opt_fill(o->opts, d->priv, own, n, d->prefix, err);
	pen__free(own);
	snprintf(prefix, sizeof(prefix), "%s.", o->group ? o->group : "");
	for (size_t i = 0; i < nkv && !rc; i++)
		if (of_group(o, kv[i].key))
			rc = pen__opt_set(o->group_opts, shared,
					  of_group(o, kv[i].key), kv[i].value,
					  err);
	if (rc)
		pen__opt_err(o->group_opts, prefix, err);
	return rc;
}

int pen__decoder_open(struct pen_decoder **out,
		      const struct pen_decoder_ops *ops,
		      const struct pen_opts_kv *kv, size_t nkv,
		      const char *prefix, struct pen_err *err)
{
	struct pen_decoder *d = pen__calloc(1, sizeof(*d));
	char group[32];
	int rc;

	*out = NULL;
	if (d)
		d->priv = pen__calloc(1, ops->priv_size + 1);
	if (!d || !d->priv) {
		pen__free(d);
		return pen__fail_nomem(err, ops->name, sizeof(*d));
	}
	d->ops = ops;
	snprintf(d->prefix, sizeof(d->prefix), "%s", prefix);
	snprintf(group, sizeof(group), "%s.", ops->group ? ops->group : "");
	rc = fill(d, kv, nkv, err);
	if (!rc && ops->open) {
		rc = ops->open(d, err);
		if (rc && !pen__opt_find(ops->opts, err ? err->where : ""))
			pen__opt_err(ops->group_opts, group, err);
		else if (rc)
			pen__opt_err(ops->opts, prefix, err);
	}
	if (rc < 0) {
		pen__decoder_close(d);
		return rc;
	}
	*out = d;
	return 0;
}

void pen__decoder_close(struct pen_decoder *d)
{
	if (!d)
		return;
	pen__opt_fini(d->ops->opts, d->priv);
	if (d->ops->group)
		pen__opt_fini(d->ops->group_opts,
			      (uint8_t *)d->priv + d->ops->group_off);
	pen__free(d->priv);
	pen__free(d);
}

int pen__decoder_misfit(struct pen_err *err)
{
	return pen__fail(err, P_DAMAGED, NULL,
			 "the value does not fit its row in the batch");
}

const char *pen__decoder_join(const struct pen_decoder *d, struct pen_head *all,
			      const struct pen_head *one)
{
	if (d->ops->join)
		return d->ops->join(d, all, one);
	if (all->dtype != one->dtype)
		return "the data type differs from earlier values";
	if (all->ndim != one->ndim)
		return "the number of axes differs from earlier values";
	for (unsigned i = 0; i < all->ndim; i++)
		if (all->shape[i] != one->shape[i])
			all->shape[i] = -1;
	return NULL;
}
