/*
 * What index() leaves behind: of every field its shape, type and where its
 * bytes lie, down to the last chunk. Refuses samples larger than such a file
 * can hold (a few bytes can declare any shape) and chunks that cannot unpack
 * to the size they should have.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/mem.h"
#include "format/hdf5/hdf5_fields.h"

#define MOST_SAMPLES ((uint64_t)1 << 40)
#define MOST_RATIO 1100

static void put_fill(struct pen_buf *b, const struct pen_h5_data *d)
{
	const size_t size = pen_dtype_size((enum pen_dtype)d->type.dtype);
	const size_t part =
		d->type.swap ? pen__swap_size((enum pen_dtype)d->type.dtype)
			     : size;
	uint8_t v[PEN_H5_FILL];

	for (size_t i = 0; i < size; i++)
		v[i] = d->type.swap
			       ? d->fill[i / part * part + part - 1 - i % part]
			       : d->fill[i];
	pen__buf_put(b, v, size);
}

static void put_map(struct pen_buf *b, const struct pen_h5_data *d,
		    const struct pen_h5_pipe *pipe,
		    const struct pen_h5_chunks *cs)
{
	unsigned has = cs->n == cs->ncells ? 0 : PEN_H5_HAS_CELLS;

	if (pipe->n)
		has |= PEN_H5_HAS_SIZES;
	for (size_t i = 0; i < cs->n; i++)
		if (cs->c[i].mask && pipe->n)
			has |= PEN_H5_HAS_MASKS;
	for (uint32_t i = 0; i < d->space.ndim; i++)
		pen__buf_le(b, d->chunk[i], 4);
	pen__buf_le(b, pipe->n, 1);
	for (uint32_t i = 0; i < pipe->n; i++) {
		pen__buf_le(b, pipe->f[i].id, 2);
		pen__buf_le(b, pipe->f[i].item, 4);
	}
	pen__buf_le(b, has, 1);
	pen__buf_le(b, cs->n, 4);
	for (size_t i = 0; (has & PEN_H5_HAS_CELLS) && i < cs->n; i++)
		pen__buf_le(b, cs->c[i].cell, 8);
	for (size_t i = 0; i < cs->n; i++)
		pen__buf_le(b, cs->c[i].addr, 8);
	for (size_t i = 0; (has & PEN_H5_HAS_SIZES) && i < cs->n; i++)
		pen__buf_le(b, cs->c[i].size, 4);
	for (size_t i = 0; (has & PEN_H5_HAS_MASKS) && i < cs->n; i++)
		pen__buf_le(b, cs->c[i].mask, 4);
}

static void put_head(struct pen_buf *b, const char *name,
		     const struct pen_h5_data *d, enum pen_h5_kind kind)
{
	pen__buf_le(b, strlen(name), 1);
	pen__buf_str(b, name);
	pen__buf_le(b, (unsigned)d->type.dtype, 1);
	pen__buf_le(b, d->type.swap, 1);
	pen__buf_le(b, kind, 1);
	pen__buf_le(b, d->layout, 1);
	pen__buf_le(b, d->space.ndim, 1);
	for (uint32_t i = 0; i < d->space.ndim; i++)
		pen__buf_le(b, d->space.dim[i], 8);
	put_fill(b, d);
}

static int put_field(struct pen_h5_picker *w, const struct pen_h5_pick *c,
		     const char *where, struct pen_buf *b, struct pen_err *err)
{
	struct pen_h5_chunks cs = { 0 };
	struct pen_h5_pipe pipe;
	struct pen_h5_data d;
	int rc = pen__h5_data_open(w->h, c->addr, &d, where, err);

	if (rc < 0)
		return rc;
	if (d.layout != PEN_H5_CHUNKED) {
		put_head(b, c->name, &d,
			 d.kept.p		    ? PEN_H5_KEPT
			 : d.addr == PEN_H5_NOWHERE ? PEN_H5_EMPTY
						    : PEN_H5_FLAT);
		if (d.kept.p)
			pen__buf_put(b, d.kept.p, (size_t)d.nbytes);
		else if (d.addr != PEN_H5_NOWHERE)
			pen__buf_le(b, d.addr, 8);
		goto out;
	}
	rc = pen__h5_pipe_init(&pipe, &d, where, err);
	if (rc >= 0)
		rc = pen__h5_chunks(w->h, &d, &cs, where, err);
	if (rc >= 0)
		rc = pen__h5_pipe_check(&pipe, &d, &cs, where, err);
	if (rc >= 0)
		put_head(b, c->name, &d, cs.n ? PEN_H5_CHUNKS : PEN_H5_EMPTY);
	if (rc >= 0 && cs.n)
		put_map(b, &d, &pipe, &cs);
	pen__h5_chunks_fini(&cs);
out:
	pen__h5_data_close(&d);
	return rc;
}

/* Samples that all fields have, of a size that is plausible. */
static int count(struct pen_h5_picker *w, bool whole, uint64_t *out,
		 struct pen_err *err)
{
	const uint64_t size = w->pk->size;
	const uint64_t most =
		((uint64_t)1 << 20) + (size < UINT64_MAX / 2 / MOST_RATIO
					       ? size * MOST_RATIO
					       : UINT64_MAX / 2);
	uint64_t rows = 0, bytes = 0;

	*out = whole ? 1 : w->c[0].dim0;
	for (size_t i = 0; i < w->n; i++) {
		const struct pen_h5_pick *c = &w->c[i];
		uint64_t row;

		if (!whole && (!c->ndim || c->dim0 != *out))
			return pen__fail(err, PEN_EDATA, w->pk->name,
					 "%s holds %" PRIu64 " samples, but %s "
					 "holds %" PRIu64 "; name data sets of "
					 "one length with fields=",
					 c->name, c->ndim ? c->dim0 : 0,
					 w->c[0].name, *out);
		row = whole || !c->dim0 ? c->nbytes : c->nbytes / c->dim0;
		bytes |= c->nbytes;
		if (row > most || (rows += row) > most)
			return pen__fail(err, PEN_EDATA, w->pk->name,
					 "%s declares samples of %" PRIu64
					 " bytes, which a file of %" PRIu64
					 " bytes cannot hold",
					 c->name, row, size);
	}
	if (*out > MOST_SAMPLES || (*out && !bytes && !whole))
		return pen__fail(err, PEN_EDATA, w->pk->name,
				 "declares %" PRIu64 " samples, which such a "
				 "file cannot hold",
				 *out);
	return 0;
}

static int index_with(const struct pen_h5_format *p, struct pen_h5_picker *w,
		      struct pen_found *found, struct pen_err *err)
{
	const bool whole = p->samples == PEN_SAMPLES_FILE;
	struct pen_buf *b = &found->blob;
	char where[256];
	int rc;

	rc = p->fields ? pen__h5_pick_named(w, p->fields, err)
		       : pen__h5_pick_all(w, whole, err);
	if (rc >= 0)
		rc = count(w, whole, &found->nsamples, err);
	if (rc < 0)
		return rc;
	pen__buf_le(b, whole ? PEN_SAMPLES_FILE : PEN_SAMPLES_FIRST, 1);
	pen__buf_le(b, pen__h5_superblock(w->h), 1);
	pen__buf_le(b, w->n, 1);
	for (size_t i = 0; rc >= 0 && i < w->n; i++) {
		snprintf(where, sizeof(where), "%s:%s", w->pk->name,
			 w->c[i].name);
		rc = put_field(w, &w->c[i], where, b, err);
	}
	if (rc >= 0 && b->bad)
		rc = pen__fail_nomem(err, w->pk->name, b->n);
	return rc;
}

int pen__h5_index(const struct pen_format *f, struct pen_peek *pk,
		  struct pen_found *found, struct pen_err *err)
{
	struct pen_h5_picker w = { .pk = pk };
	struct pen_err mine;
	int rc;

	/* whoever reads through the callback needs the code it failed with */
	err = err ? err : &mine;
	*err = (struct pen_err){ 0 };
	rc = pen__h5_open(&w.h, pk, err);
	if (rc >= 0)
		rc = index_with(f->priv, &w, found, err);
	pen__h5_close(w.h);
	pen__h5_pick_fini(&w);
	return rc;
}
