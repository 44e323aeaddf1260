/*
 * Emulates the engine for a few objects in memory: index, bind, locate, fetch,
 * unpack, emit. Every buffer is a separate allocation of exactly the size
 * promised to the format, so that a sanitizer detects any access outside.
 * Violations of the contract abort the program: a unit outside its object, a
 * plain unit that is not its row. For tests and the fuzzer.
 */
#ifndef FORMAT_DRIVER_H
#define FORMAT_DRIVER_H

#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"
#include "codec/deflate.h"
#include "engine/decoded.h"
#include "format/format.h"

#define DRV_MAX 40

#define DRV_MUST(x) drv_must((x), #x, __FILE__, __LINE__)

static inline void drv_must(bool ok, const char *what, const char *file,
			    int line)
{
	if (ok)
		return;
	fprintf(stderr, "%s:%d: contract broken: %s\n", file, line, what);
	abort();
}

struct drv_object {
	struct pen_peek pk;
	char name[32];
	uint8_t *p; /* exactly n bytes */
	size_t n;
	uint64_t nsamples, blob;
};

struct drv {
	struct pen_index ix; /* must be first: passed to callbacks */
	struct pen_format *f;
	struct drv_object obj[DRV_MAX];
	struct pen_buf blobs[2 * DRV_MAX];
	uint64_t first[DRV_MAX + 1];
	struct pen_scratch scratch;
};

struct drv_rows {
	uint32_t n;
	void *p[PEN_MAX_FIELDS];
	size_t len[PEN_MAX_FIELDS];
};

static inline int drv_peek(struct pen_peek *pk, uint64_t off, void *buf,
			   size_t len, struct pen_err *err)
{
	struct drv_object *o = (struct drv_object *)pk;

	(void)err;
	DRV_MUST(off <= o->n && len <= o->n - off);
	if (len)
		memcpy(buf, o->p + off, len);
	return 0;
}

/*
 * Side files are derived from the object: its first half for suffixes with an
 * 'o', its second half for others. So one input reaches formats with a separate
 * index.
 */
static inline int drv_peek_side(struct pen_peek *pk, const char *suffix,
				uint64_t limit, struct pen_buf *out,
				struct pen_err *err)
{
	struct drv_object *o = (struct drv_object *)pk;
	const size_t half = o->n / 2;

	if (half > limit)
		return pen__fail(err, P_DAMAGED, o->name, "too large");
	pen__buf_put(out, o->p + (strchr(suffix, 'o') ? 0 : half), half);
	return out->bad ? pen__fail_nomem(err, o->name, half) : 0;
}

static inline struct pen_span drv_blob(const struct pen_index *ix, uint64_t id)
{
	const struct drv *d = (const struct drv *)ix;

	DRV_MUST(id < ix->nblobs);
	return (struct pen_span){ d->blobs[id].p, d->blobs[id].n };
}

static inline uint64_t drv_blob_of(const struct pen_index *ix, uint64_t o)
{
	DRV_MUST(o < ix->nobjects);
	return ((const struct drv *)ix)->obj[o].blob;
}

static inline uint64_t drv_size_of(const struct pen_index *ix, uint64_t o)
{
	return ((const struct drv *)ix)->obj[o].n;
}

static inline void drv_name_of(const struct pen_index *ix, uint64_t o,
			       char *buf, size_t cap)
{
	snprintf(buf, cap, "%s", ((const struct drv *)ix)->obj[o].name);
}

static inline void drv_close(struct drv *d)
{
	pen__format_close(d->f);
	for (unsigned i = 0; i < DRV_MAX; i++) {
		free(d->obj[i].p);
		pen__buf_fini(&d->blobs[2 * i]);
		pen__buf_fini(&d->blobs[2 * i + 1]);
	}
	free(d->scratch.mem);
	d->scratch.mem = NULL;
	pen__scratch_fini(&d->scratch);
	memset(d, 0, sizeof(*d));
}

/* The format with its options and, as in the engine, its decoders: options
 * named decode.FIELD. */
static inline int drv_open(struct drv *d, const struct pen_format_ops *ops,
			   const struct pen_opts_kv *kv, size_t nkv,
			   struct pen_err *err)
{
	struct pen_decode_set set = { .image = { 0 } };
	int rc = 0;

	for (size_t i = 0; i < nkv && !rc; i++)
		rc = strncmp(kv[i].key, "decode.", 7)
			     ? pen__pairs_add(&set.format, kv[i].key,
					      kv[i].value, err)
			     : pen__pairs_add(&set.decode, kv[i].key + 7,
					      kv[i].value, err);
	if (!rc)
		rc = pen__format_open(&d->f, ops, set.format.kv, set.format.n,
				      err);
	if (!rc)
		rc = pen__decoded_open(&d->f, &set, err);
	pen__pairs_clear(&set.format);
	pen__pairs_clear(&set.decode);
	return rc;
}

static inline int drv_start(struct drv *d, const struct pen_format_ops *ops,
			    const struct pen_opts_kv *kv, size_t nkv,
			    struct pen_err *err)
{
	memset(d, 0, sizeof(*d));
	return drv_open(d, ops, kv, nkv, err);
}

static inline void drv_add(struct drv *d, const void *p, size_t n)
{
	struct drv_object *o = &d->obj[d->ix.nobjects];

	DRV_MUST(d->ix.nobjects < DRV_MAX);
	snprintf(o->name, sizeof(o->name), "object-%u",
		 (unsigned)d->ix.nobjects++);
	o->p = malloc(n ? n : 1);
	DRV_MUST(o->p != NULL);
	if (n)
		memcpy(o->p, p, n);
	o->n = n;
	o->pk = (struct pen_peek){ .name = o->name,
				   .size = n,
				   .read = drv_peek,
				   .read_side = drv_peek_side };
}

/* Takes ownership of a blob; returns its number. */
static inline uint64_t drv_keep(struct drv *d, struct pen_buf *found)
{
	uint64_t i;

	for (i = 0; i < d->ix.nblobs; i++) {
		const struct pen_buf *b = &d->blobs[i];

		if (b->n == found->n &&
		    (!b->n || memcmp(b->p, found->p, b->n) == 0))
			break;
	}
	if (i < d->ix.nblobs)
		pen__buf_fini(found);
	else
		d->blobs[d->ix.nblobs++] = *found;
	return i;
}

static inline int drv_index(struct drv *d, struct drv_object *o,
			    struct pen_err *err)
{
	struct pen_found found = { 0 };
	int rc = d->f->ops->index(d->f, &o->pk, &found, err);

	if (rc < 0) {
		pen__buf_fini(&found.blob);
		pen__buf_fini(&found.common);
		return rc;
	}
	o->nsamples = found.nsamples;
	o->blob = drv_keep(d, &found.blob);
	if (found.common.n)
		drv_keep(d, &found.common);
	else
		pen__buf_fini(&found.common);
	return 0;
}

static inline void drv_warning(void *arg, const struct pen_err *e)
{
	(void)arg;
	DRV_MUST(e->where[0] && e->msg[0] &&
		 (e->code == PEN_EDATA || e->code == PEN_OK));
}

/* hint: nobjects_hint; 0: the number of objects. */
static inline int drv_bind(struct drv *d, uint64_t hint, struct pen_err *err)
{
	int rc;

	d->f->nobjects_hint = hint ? hint : d->ix.nobjects;
	pen__decoded_under(d->f)->nobjects_hint = d->f->nobjects_hint;
	for (uint64_t i = 0; i < d->ix.nobjects; i++) {
		rc = drv_index(d, &d->obj[i], err);
		if (rc < 0)
			return rc;
		d->first[i + 1] = d->first[i] + d->obj[i].nsamples;
	}
	d->ix.nsamples = d->first[d->ix.nobjects];
	d->ix.first = d->first;
	d->ix.blob = drv_blob;
	d->ix.blob_of = drv_blob_of;
	d->ix.size_of = drv_size_of;
	d->ix.name_of = drv_name_of;
	rc = d->f->ops->bind(d->f, &d->ix, err);
	if (rc < 0)
		return rc;
	DRV_MUST(d->f->nfields > 0 && d->f->nfields <= PEN_MAX_FIELDS);
	DRV_MUST(d->f->ix == &d->ix);
	DRV_MUST(!d->f->uniform || d->f->all_plain);
	if (d->f->ops->warn)
		d->f->ops->warn(d->f, NULL, drv_warning);
	d->scratch.size = d->f->scratch_size;
	d->scratch.mem = malloc(d->scratch.size ? d->scratch.size : 1);
	DRV_MUST(d->scratch.mem != NULL);
	return 0;
}

static inline void drv_rows_free(struct drv_rows *r)
{
	for (uint32_t i = 0; i < r->n; i++)
		free(r->p[i]);
	r->n = 0;
}

/* Rows of exactly the size of the shape, with other contents. */
static inline void drv_rows_new(struct drv *d, uint32_t object, uint64_t k,
				struct drv_rows *r)
{
	const struct pen_format *f = d->f;

	r->n = f->nfields;
	for (uint32_t i = 0; i < r->n; i++) {
		const struct pen_field *fd = &f->field[i];
		int64_t shape[PEN_MAX_DIMS];

		f->ops->shape(f, object, k, i, shape);
		for (uint32_t j = 0; j < fd->ndim; j++)
			DRV_MUST(fd->shape[j] == -1 ||
				 fd->shape[j] == shape[j]);
		DRV_MUST(pen__shape_bytes(shape, fd->ndim, fd->dtype,
					  &r->len[i]));
		DRV_MUST(r->len[i] <= fd->max_bytes);
		r->p[i] = malloc(r->len[i] ? r->len[i] : 1);
		DRV_MUST(r->p[i] != NULL);
		memset(r->p[i], 0xa5, r->len[i]);
	}
}

/* The bytes of a unit: *out is a copy to free, or NULL if it was written to its
 * row. */
static inline int drv_fetch(struct drv *d, const struct pen_unit *u,
			    struct drv_rows *r, uint8_t **out,
			    struct pen_span *s, struct pen_err *err)
{
	const struct drv_object *o = &d->obj[u->object];
	uint8_t *raw, *unpacked;
	int rc;

	*out = NULL;
	DRV_MUST(u->offset <= o->n && u->len <= o->n - u->offset);
	DRV_MUST(u->field < d->f->nfields || !(u->flags & PEN_UNIT_PLAIN));
	if ((u->flags & PEN_UNIT_CRC32) &&
	    pen__crc32(u->crc_seed, o->p + u->offset, u->len) != u->crc)
		return pen__fail(err, P_CHECKSUM, o->name, "crc32 differs");
	if (u->flags & PEN_UNIT_PLAIN) {
		DRV_MUST(!(u->flags & PEN_UNIT_COMPRESSED));
		DRV_MUST(u->len == r->len[u->field]);
		if (u->len)
			memcpy(r->p[u->field], o->p + u->offset, u->len);
		return 0;
	}
	DRV_MUST(!d->f->all_plain);
	raw = malloc(u->len ? u->len : 1);
	DRV_MUST(raw != NULL);
	if (u->len)
		memcpy(raw, o->p + u->offset, u->len);
	*out = raw;
	*s = (struct pen_span){ raw, u->len };
	if (!(u->flags & PEN_UNIT_COMPRESSED))
		return 0;
	unpacked = malloc(u->size ? u->size : 1);
	DRV_MUST(unpacked != NULL);
	rc = d->f->ops->unpack(d->f, u, *s, unpacked, &d->scratch, err);
	free(raw);
	*out = unpacked;
	*s = (struct pen_span){ unpacked, u->size };
	return rc;
}

/* The rows of one sample; free them in any case. */
static inline int drv_sample(struct drv *d, uint32_t object, uint64_t k,
			     struct drv_rows *r, struct pen_err *err)
{
	const uint32_t n = d->f->units_per_sample;
	struct pen_unit *units = calloc(n + 1u, sizeof(*units));
	struct pen_span *data = calloc(n + 1u, sizeof(*data));
	uint8_t **held = calloc(n + 1u, sizeof(*held));
	int rc = 0;

	DRV_MUST(units && data && held);
	drv_rows_new(d, object, k, r);
	d->f->ops->locate(d->f, object, k, units);
	for (uint32_t i = 0; i < n && rc >= 0; i++) {
		if (units[i].object == PEN_NO_OBJECT)
			continue;
		DRV_MUST(units[i].object == object ||
			 (d->f->ops->markers &&
			  units[i].object < d->ix.nobjects));
		DRV_MUST(!d->f->all_plain || units[i].flags & PEN_UNIT_PLAIN);
		rc = drv_fetch(d, &units[i], r, &held[i], &data[i], err);
	}
	if (rc >= 0 && !d->f->all_plain) {
		size_t used[PEN_MAX_FIELDS];
		struct pen_row row = {
			.k = k,
			.object = object,
			.nunits = n,
			.units = units,
			.data = data,
			.dst = r->p,
			.dst_len = r->len,
			.used = used,
			.scratch = &d->scratch,
		};

		memcpy(used, r->len, sizeof(used));
		rc = d->f->ops->emit(d->f, &row, err);
		for (uint32_t i = 0; i < r->n; i++) {
			DRV_MUST(used[i] == r->len[i] ||
				 (d->f->field[i].layout != PEN_DENSE &&
				  used[i] < r->len[i]));
			r->len[i] = used[i];
		}
	}
	for (uint32_t i = 0; i < n; i++)
		free(held[i]);
	free(held);
	free(data);
	free(units);
	return rc;
}

/* One object from open to bind. */
static inline int drv_open_one(struct drv *d, const char *format,
			       const struct pen_opts_kv *kv, size_t nkv,
			       uint64_t hint, struct pen_span bytes,
			       struct pen_err *err)
{
	int rc = drv_start(d, pen__format_find(format), kv, nkv, err);

	if (rc < 0)
		return rc;
	drv_add(d, bytes.p, bytes.n);
	return drv_bind(d, hint, err);
}

#endif
