/*
 * Opening and closing samplers: finds the table, fills the options, sets the
 * common members. An open() that fails need not clean up: private memory starts
 * as zeroes and close() is called on it.
 */
#include "sampler/sampler.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

#define MAX_NAMES 32

const struct pen_sampler_ops *pen__sampler_find(const char *name)
{
	const struct pen_sampler_ops *ops;

	for (unsigned i = 0; (ops = pen__sampler_at(i)) != NULL; i++)
		if (!strcmp(ops->name, name))
			return ops;
	return NULL;
}

static int fail_unknown(const char *name, struct pen_err *err)
{
	const char *names[MAX_NAMES + 1] = { NULL };
	const char *near;
	char list[160] = "";
	size_t at = 0;

	for (unsigned i = 0; i < MAX_NAMES && pen__sampler_at(i); i++) {
		names[i] = pen__sampler_at(i)->name;
		if (at < sizeof(list))
			at += (size_t)snprintf(list + at, sizeof(list) - at,
					       "%s%s", i ? ", " : "", names[i]);
	}
	near = pen__nearest(name, names);
	if (near)
		return pen__fail(err, P_UNKNOWN_NAME, name,
				 "unknown sampler; did you mean '%s'?", near);
	return pen__fail(err, P_UNKNOWN_NAME, name,
			 "unknown sampler; choose from: %s", list);
}

static void free_sampler(struct pen_sampler *s)
{
	pen__opt_fini(s->ops->opts, s->priv);
	pen__free(s->priv);
	pen__free(s);
}

void pen__sampler_close(struct pen_sampler *s)
{
	if (!s)
		return;
	if (s->ops->close)
		s->ops->close(s);
	free_sampler(s);
}

static struct pen_sampler *make(const struct pen_sampler_ops *ops)
{
	struct pen_sampler *s = pen__calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->ops = ops;
	s->priv = pen__calloc(1, ops->priv_size);
	if (!s->priv) {
		pen__free(s);
		return NULL;
	}
	return s;
}

int pen__sampler_try(const char *name, const struct pen_opts_kv *kv, size_t nkv,
		     struct pen_err *err)
{
	const struct pen_sampler_ops *ops = pen__sampler_find(name);
	struct pen_sampler *s = ops ? make(ops) : NULL;
	int ret;

	if (!s)
		return ops ? pen__fail_nomem(err, name, ops->priv_size)
			   : fail_unknown(name, err);
	ret = pen__opt_fill(ops->opts, s->priv, kv, nkv, "sampler.", err);
	free_sampler(s);
	return ret;
}

int pen__sampler_open(struct pen_sampler **out, const char *name,
		      const struct pen_population *pop, uint64_t seed,
		      struct pen_opts given, struct pen_err *err)
{
	const struct pen_sampler_ops *ops = pen__sampler_find(name);
	struct pen_sampler *s;
	int ret;

	*out = NULL;
	if (!ops)
		return fail_unknown(name, err);
	/* below 2^62 no sum or product of a few counts can overflow */
	if (!pop->n || pop->n >= (uint64_t)1 << 62)
		return pen__fail(err, P_BAD_VALUE, name,
				 "cannot draw from %llu samples",
				 (unsigned long long)pop->n);
	s = make(ops);
	if (!s)
		return pen__fail_nomem(err, name, ops->priv_size);
	s->pop = *pop;
	s->seed = seed;
	s->length = pop->n;
	ret = pen__opt_fill(ops->opts, s->priv, given.kv, given.n, "sampler.",
			    err);
	if (ret) {
		free_sampler(s);
		return ret;
	}
	ret = ops->open ? ops->open(s, err) : 0;
	if (ret) {
		pen__opt_err(ops->opts, "sampler.", err);
		pen__sampler_close(s);
		return ret;
	}
	*out = s;
	return 0;
}
