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

bool pen__decoder_begins(const struct pen_decoder_ops *o, const void *p,
			 size_t n)
{
	const size_t k = o->magic ? strlen(o->magic) : 0;

	return k && n >= k && memcmp(p, o->magic, k) == 0;
}

int pen__decoder_open(struct pen_decoder **out,
		      const struct pen_decoder_ops *ops,
		      const struct pen_opts_kv *kv, size_t nkv,
		      const char *prefix, struct pen_err *err)
{
	struct pen_decoder *d = pen__calloc(1, sizeof(*d));
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
	rc = pen__opt_fill(ops->opts, d->priv, kv, nkv, prefix, err);
	if (rc < 0) {
		pen__free(d->priv);
		pen__free(d);
		return rc;
	}
	rc = ops->open ? ops->open(d, err) : 0;
	if (rc < 0) {
		pen__opt_err(ops->opts, prefix, err);
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
