/*
 * Emulates the engine for one value: head or size, then decode into a row that
 * is an allocation of exactly its size, so that a sanitizer detects any access
 * outside. Violations of the contract abort the program. For tests and the
 * fuzzer.
 */
#ifndef DECODE_DRIVER_H
#define DECODE_DRIVER_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/decode.h"

#define DEC_MUST(x) dec_must((x), #x, __FILE__, __LINE__)

static inline void dec_must(bool ok, const char *what, const char *file,
			    int line)
{
	if (ok)
		return;
	fprintf(stderr, "%s:%d: contract broken: %s\n", file, line, what);
	abort();
}

/* Options that a decoder requires, or that limit its memory. */
static inline size_t dec_options(const struct pen_decoder_ops *o, unsigned pick,
				 struct pen_opts_kv *kv)
{
	static const char *const colors[] = { "auto", "grey", "rgb", "rgba" };
	static const char *const types[] = { "text", "int", "float" };
	size_t n = 0;

	if (pen__opt_find(o->opts, "key"))
		kv[n++] = (struct pen_opts_kv){ "key", pick & 1 ? "n" : "t" };
	if (pen__opt_find(o->opts, "type"))
		kv[n++] = (struct pen_opts_kv){ "type", types[pick % 3] };
	if (pen__opt_find(o->opts, "color"))
		kv[n++] = (struct pen_opts_kv){ "color", colors[pick % 4] };
	if (pen__opt_find(o->opts, "strict") && pick & 4)
		kv[n++] = (struct pen_opts_kv){ "strict", "false" };
	if (pen__opt_find(o->opts, "max_pixels"))
		kv[n++] = (struct pen_opts_kv){ "max_pixels", "1M" };
	if (pen__opt_find(o->opts, "dtype"))
		kv[n++] = (struct pen_opts_kv){ "dtype",
						pick & 1 ? "int16" : "uint8" };
	if (pen__opt_find(o->opts, "shape") && pick & 2)
		kv[n++] = (struct pen_opts_kv){ "shape", "2x3" };
	if (pen__opt_find(o->opts, "big_endian") && pick & 4)
		kv[n++] = (struct pen_opts_kv){ "big_endian", "true" };
	if (o->group && (pick & 7) == 6)
		kv[n++] = (struct pen_opts_kv){ "image.preset", "train:24" };
	return n;
}

/* The row, *out being the caller's to free, and its size; or an error. */
static inline int dec_value(const struct pen_decoder *d, struct pen_span s,
			    struct pen_scratch *scratch, uint8_t **out,
			    size_t *n, struct pen_err *err)
{
	struct pen_peek_bytes pk = pen__peek_bytes(s, "value");
	struct pen_head all;
	struct pen_encoded v = { .bytes = s, .as = &all, .scratch = scratch };
	int rc = 0;

	*out = NULL;
	DEC_MUST(!d->ops->head != !d->ops->size);
	if (d->ops->head)
		rc = d->ops->head(d, &pk.pk, &v.head, err);
	else
		d->ops->size(d, s.n, &v.head);
	if (rc)
		return rc;
	DEC_MUST(v.head.ndim <= PEN_HEAD_DIMS && v.head.dtype < PEN_NDTYPES);
	DEC_MUST(!v.head.upto || v.head.ndim == 1);
	all = v.head;
	if (pen__decoder_join(d, &all, &v.head))
		return PEN_EDATA;
	if (d->ops->settle)
		d->ops->settle(d, &all);
	if (!pen__shape_bytes(all.shape, all.ndim, all.dtype, &v.len) ||
	    v.len > (size_t)64 << 20)
		return PEN_ENOTSUP;
	*n = v.len;
	v.used = n;
	*out = v.dst = malloc(v.len ? v.len : 1);
	DEC_MUST(*out != NULL);
	memset(*out, 0xa5, v.len);
	rc = d->ops->decode(d, &v, err);
	DEC_MUST(*n == v.len || (v.head.upto && *n < v.len));
	return rc;
}

#endif
