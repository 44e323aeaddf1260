/*
 * Settings that exclude one another, or that need another one: without these
 * checks they would be accepted and ignored. Each message names both settings
 * and what to change. Only checks that need nothing but the spec are here:
 * plan_by_length.c checks batches by length, emit_crop.c the fields of the
 * data.
 */
#include <stdio.h>
#include <string.h>

#include "engine/decoded.h"
#include "engine/loader.h"
#include "format/format.h"
#include "sampler/sampler.h"
#include "store/store.h"

static int check_order(const struct pen_spec *s, struct pen_err *err)
{
	struct pen_spec alone = { .shuffle = s->shuffle };
	const struct pen_sampler_ops *by_shuffle, *by_name;

	if (!s->sampler || !s->shuffle)
		return 0;
	by_shuffle = pen__sampler_find(pen__spec_sampler(&alone));
	by_name = pen__sampler_find(s->sampler);
	if (!by_name || by_shuffle == by_name)
		return 0;
	/* true and false fit every sampler that shuffles, or does not */
	if (by_shuffle && !pen__sampler_find(s->shuffle) &&
	    by_shuffle->in_order == by_name->in_order)
		return 0;
	return pen__fail(err, P_CONFLICT, "shuffle",
			 "shuffle=%s contradicts sampler=%s; omit one of them",
			 s->shuffle, s->sampler);
}

static int check_tail(const struct pen_spec *s, struct pen_err *err)
{
	static const char *const names[] = { "auto", "keep", "drop", "pad" };

	if (!s->last_given || s->tail == PEN_TAIL_AUTO ||
	    s->drop_last == (s->tail == PEN_TAIL_DROP))
		return 0;
	return pen__fail(err, P_CONFLICT, "drop_last",
			 "drop_last=%s contradicts tail=%s; omit one of them",
			 s->drop_last ? "true" : "false", names[s->tail]);
}

/* Numbers per sample that nothing would use. */
static int check_numbers(const struct pen_spec *s, struct pen_err *err)
{
	const char *name = pen__spec_sampler(s);
	const struct pen_sampler_ops *ops = pen__sampler_find(name);

	if (!ops)
		return 0; /* reported when the sampler is opened */
	if (s->weights && !ops->by_weight)
		return pen__fail(err, P_NO_EFFECT, "weights",
				 "has no effect with sampler=%s; set "
				 "sampler=weighted, or omit it",
				 name);
	if (s->lengths && !ops->by_length && !s->batch_tokens)
		return pen__fail(err, P_NO_EFFECT, "lengths",
				 "has no effect; set batch_tokens= or "
				 "sampler=bucket, or omit it");
	return 0;
}

/* Images get their size and type once. */
static int check_image(const struct pen_spec *s, struct pen_err *err)
{
	const char *other = s->take.n	 ? "take"
			    : s->cast	 ? "cast"
			    : !s->decode ? "decode"
					 : NULL;

	if (!s->for_image.n || !other)
		return 0;
	return pen__fail(err, P_CONFLICT, other,
			 "conflicts with the settings of images "
			 "(image.%.40s=%.40s); omit one of them",
			 s->for_image.kv[0].key, s->for_image.kv[0].value);
}

static int check_batches(const struct pen_spec *s, struct pen_err *err)
{
	const char *pads = s->pad_to != PEN_PAD_AUTO ? "pad_to"
			   : s->pad_multiple > 1     ? "pad_multiple"
						     : NULL;

	if (pads && s->shapes != PEN_SHAPES_PADDED)
		return pen__fail(err, P_NO_EFFECT, pads,
				 "has no effect without shapes=padded; set "
				 "both, or omit it");
	if (s->too_long != PEN_LONG_AUTO && !s->batch_tokens && !s->pack)
		return pen__fail(err, P_NO_EFFECT, "too_long",
				 "has no effect without batch_tokens= or "
				 "pack=; omit it");
	if (s->max_errors && s->on_error == PEN_ON_FAIL)
		return pen__fail(err, P_NO_EFFECT, "max_errors",
				 "has no effect with on_error=fail, which "
				 "stops at the first error; set on_error=skip "
				 "or on_error=substitute");
	if (!s->decode && (s->take.n || s->cast))
		return pen__fail(err, P_NO_EFFECT, s->cast ? "cast" : "take",
				 "has no effect with decode=false, which "
				 "delivers no data; omit one of them");
	if (!s->decode && s->for_decode.n)
		return pen__fail(
			err, P_NO_EFFECT, "decode",
			"decode=false delivers no data, so decode.%.60s= has "
			"no effect; omit one of them",
			s->for_decode.kv[0].key);
	return check_image(s, err);
}

int pen__spec_check(const struct pen_spec *s, struct pen_err *err)
{
	int rc = check_order(s, err);

	if (!rc)
		rc = check_tail(s, err);
	if (!rc)
		rc = check_numbers(s, err);
	return rc ? rc : check_batches(s, err);
}

/* A dictionary is a data set of its own, in memory already. */
static int check_dict(const struct pen_spec *s, const char *store,
		      struct pen_err *err)
{
	if (strcmp(store, "dictionary") != 0)
		return pen__fail(err, P_CONFLICT, "store",
				 "store=%.40s cannot read a path ddict:...; "
				 "omit it",
				 store);
	if (s->npaths != 1 || !pen__spec_dict(s))
		return pen__fail(err, P_CONFLICT, "path",
				 "a dictionary is loaded alone: give one path, "
				 "ddict:NAME or ddict:FILE");
	if (s->tier)
		return pen__fail(err, P_CONFLICT, "cache",
				 "cache=ddict has no effect on a dictionary; "
				 "omit it");
	return 0;
}

int pen__spec_check_parts(const struct pen_spec *s, struct pen_err *err)
{
	const char *store = pen__spec_store(s);
	const bool is_auto = !strcmp(store, "auto");

	if (is_auto && s->for_store.n)
		return pen__fail(err, P_CONFLICT, "store",
				 "store.%s cannot be set with store=auto; name "
				 "a store as well (see `penstock stores`)",
				 s->for_store.kv[0].key);
	if (!is_auto && !pen__store_find(store))
		return pen__fail(err, P_UNKNOWN_NAME, s->store,
				 "unknown store; see `penstock stores`");
	if (s->for_cache.n && !s->tier)
		return pen__fail(
			err, P_MISSING_SETTING, "cache",
			"cache.%s cannot be set without cache=ddict; add it",
			s->for_cache.kv[0].key);
	if (s->tier && !strcmp(s->store, "ddict"))
		return pen__fail(err, P_CONFLICT, "store",
				 "store=ddict and cache=ddict exclude one "
				 "another; omit one of them");
	return pen__spec_dict(s) || !strcmp(store, "dictionary")
		       ? check_dict(s, store, err)
		       : 0;
}

int pen__spec_check_store(const struct pen_spec *s, const struct pen_store *st,
			  struct pen_err *err)
{
	if (!strcmp(s->store, "auto") || st->under)
		return 0;
	if (s->queue_depth && !st->far && (st->waits || st->lends))
		return pen__fail(
			err, P_NO_EFFECT, "queue_depth",
			"has no effect with store=%s, which has one read in "
			"flight per thread; use store=uring, or raise threads=",
			st->ops->name);
	return 0;
}

static int try_store(const struct pen_spec *s, struct pen_err *err)
{
	const struct pen_pairs *kv = &s->for_store;
	const char *name = pen__spec_store(s);
	struct pen_store *st;
	int rc;

	/* a dictionary belongs to a running job */
	if (!strcmp(name, "auto") || !strcmp(name, "ddict"))
		return 0;
	rc = pen__store_open(&st, name, kv->kv, kv->n, err);
	if (rc)
		return rc;
	rc = pen__spec_check_store(s, st, err);
	pen__store_close(st);
	return rc;
}

static int try_format(const struct pen_spec *s, struct pen_err *err)
{
	const struct pen_format_ops *ops =
		s->format ? pen__format_find(s->format) : NULL;
	struct pen_format *f = NULL;
	int rc;

	if (s->format && !ops)
		return pen__fail(err, P_UNKNOWN_NAME, s->format,
				 "unknown format; see `penstock formats`");
	rc = ops ? pen__format_open(&f, ops, s->for_format.kv, s->for_format.n,
				    err)
		 : 0;
	pen__format_close(f);
	return rc;
}

PEN_API int pen_spec_check(const struct pen_spec *s, struct pen_err *err)
{
	int rc = pen__spec_check(s, err);

	if (!rc)
		rc = pen__spec_check_parts(s, err);
	if (!rc)
		rc = try_store(s, err);
	if (!rc)
		rc = try_format(s, err);
	if (!rc)
		rc = pen__decoded_try(&s->for_decode, err);
	return rc ? rc
		  : pen__sampler_try(pen__spec_sampler(s), s->for_sampler.kv,
				     s->for_sampler.n, err);
}
