/*
 * Reads entire lists while a file is indexed: offsets, labels, names. Rejects
 * more than one axis, and lengths that a file of this size cannot contain.
 */
#include <inttypes.h>

#include "base/mem.h"
#include "format/array.h"
#include "format/hdf5/hdf5_int.h"

struct reader {
	struct pen_h5 *h;
	const struct pen_h5_data *d;
	const char *where;
	struct pen_err *err;
	struct pen_scratch scratch;
	uint8_t *chunk; /* unpacked */
	uint8_t *to;
	size_t n; /* total bytes */
};

static int too_long(const struct reader *r, uint64_t n)
{
	return pen__fail(r->err, P_DAMAGED, r->where,
			 "the data set declares %" PRIu64
			 " bytes, which a file of %" PRIu64
			 " bytes cannot contain",
			 n, r->h->pk->size);
}

static int measure(struct reader *r)
{
	const uint64_t most = pen__chunked_most(r->h->pk->size);
	uint64_t n;

	if (r->d->space.ndim > 1)
		return pen__fail(r->err, P_UNSUPPORTED_FEATURE, r->where,
				 "the data set has %u axes instead of one",
				 r->d->space.ndim);
	if (!pen__h5_count(&r->d->space, &n))
		return too_long(r, UINT64_MAX);
	n *= r->d->type.size; /* data_open checked that it does not overflow */
	if (n > most)
		return too_long(r, n);
	if (r->d->layout == PEN_H5_CHUNKED && r->d->chunk_bytes > most)
		return too_long(r, r->d->chunk_bytes);
	r->n = (size_t)n;
	return 0;
}

static void put_fill(const struct reader *r)
{
	const size_t item = r->d->type.size;

	if (!r->d->has_fill || item > PEN_CHUNKED_FILL) {
		memset(r->to, 0, r->n);
		return;
	}
	for (size_t i = 0; i + item <= r->n; i += item)
		memcpy(r->to + i, r->d->fill, item);
}

static int put_chunk(struct reader *r, const struct pen_chunk *c)
{
	const size_t size = (size_t)r->d->chunk_bytes;
	const size_t at = (size_t)c->cell * size;
	const size_t n = r->n - at < size ? r->n - at : size;
	const struct pen_filter_run run = { &r->d->filters, c->mask,
					    r->scratch.mem, &r->scratch };
	const char *why;
	struct pen_buf raw;
	int rc;

	rc = pen__h5_load(r->h, c->at, c->size, &raw, r->err);
	if (rc < 0)
		return rc;
	rc = pen__filters_run(&run, (struct pen_span){ raw.p, raw.n },
			      n == size ? r->to + at : r->chunk, size, &why);
	pen__buf_fini(&raw);
	if (rc == PEN_ENOMEM)
		return pen__fail_nomem(r->err, r->where, size);
	if (rc < 0)
		return pen__fail(r->err, P_DAMAGED, r->where, "%s", why);
	if (n < size)
		memcpy(r->to + at, r->chunk, n);
	return 0;
}

static int read_chunks(struct reader *r)
{
	struct pen_chunks cs;
	size_t room;
	int rc = pen__h5_chunks(r->h, r->d, &cs, r->where, r->err);

	if (rc < 0)
		return rc;
	room = pen__filters_room(&r->d->filters, r->d->chunk_bytes);
	rc = pen__scratch_init(&r->scratch, room);
	r->chunk = rc < 0 ? NULL : pen__alloc((size_t)r->d->chunk_bytes, 1);
	if (!r->chunk)
		rc = pen__fail_nomem(r->err, r->where, room);
	if (rc >= 0 && cs.n < cs.ncells)
		put_fill(r);
	for (size_t i = 0; rc >= 0 && i < cs.n; i++)
		rc = put_chunk(r, &cs.c[i]);
	pen__chunks_fini(&cs);
	pen__free(r->chunk);
	pen__scratch_fini(&r->scratch);
	return rc;
}

void pen__h5_swap(const struct pen_h5_type *t, uint8_t *p, size_t n)
{
	if (t->dtype >= 0 && t->swap)
		pen__swap((enum pen_dtype)t->dtype, p, n);
}

int pen__h5_read(struct pen_h5 *h, const struct pen_h5_data *d,
		 struct pen_buf *out, const char *where, struct pen_err *err)
{
	struct reader r = { .h = h, .d = d, .where = where, .err = err };
	int rc = measure(&r);

	*out = (struct pen_buf){ 0 };
	if (rc < 0)
		return rc;
	if (d->layout != PEN_H5_CHUNKED && d->addr != PEN_H5_NOWHERE) {
		rc = pen__h5_load(h, d->addr, r.n, out, err);
		r.to = out->p;
	} else {
		r.to = out->p = pen__alloc(r.n ? r.n : 1, 1);
		if (!r.to)
			return pen__fail_nomem(err, where, r.n);
		out->n = out->cap = r.n;
		if (d->layout == PEN_H5_CHUNKED && r.n)
			rc = read_chunks(&r);
		else
			put_fill(&r);
	}
	if (rc < 0)
		pen__buf_fini(out);
	else
		pen__h5_swap(&d->type, out->p, out->n);
	return rc;
}

uint64_t pen__h5_referred(const struct pen_h5 *h, const struct pen_h5_type *t,
			  struct pen_span data)
{
	struct pen_bytes b = pen__bytes(data.p, data.n);

	if (t->cls != PEN_H5_REFERENCE || t->size != h->so)
		return PEN_H5_NOWHERE;
	return pen__h5_addr(h, &b);
}
