/*
 * Arrays of a matrix into the blob, and out of it. Chunks without filters that
 * lie one right after another, which is how h5py writes them, become one flat
 * range. Refuses types that are not numbers, and sparse arrays with parts that
 * were never written.
 */
#include <inttypes.h>
#include <stdio.h>

#include "format/cells.h"

enum {
	HAS_CELLS = 1,
	HAS_SIZES = 2,
	HAS_MASKS = 4,
	FLAT = 8,
	GROUPED = 16,
};

static int check(const struct pen_h5_data *d, bool list, const char *where,
		 struct pen_err *err)
{
	if (d->type.dtype < 0 || d->type.dtype > PEN_F64)
		return pen__fail(
			err, PEN_ENOTSUP, where,
			"holds %s where a matrix has numbers",
			d->type.dtype < 0
				? pen__h5_type_name(&d->type)
				: pen_dtype_name(
					  (enum pen_dtype)d->type.dtype));
	if (d->space.null || d->space.ndim != (list ? 1 : 2))
		return pen__fail(err, PEN_EDATA, where,
				 "has %u axes where there should be %d",
				 d->space.ndim, list ? 1 : 2);
	return 0;
}

static void put_head(struct pen_buf *b, const struct pen_h5_data *d)
{
	const size_t item = d->type.size;
	uint8_t fill[8] = { 0 };

	for (size_t i = 0; i < item; i++)
		fill[i] = d->fill[d->type.swap ? item - 1 - i : i];
	pen__buf_le(b, (unsigned)d->type.dtype, 1);
	pen__buf_le(b, d->type.swap, 1);
	pen__buf_put(b, fill, sizeof(fill));
	pen__buf_le(b, d->space.dim[d->space.ndim - 1], 8);
}

static void put_flat(struct pen_buf *b, uint64_t at)
{
	pen__buf_le(b, FLAT, 1);
	pen__buf_le(b, at, 8);
}

/* Do rows follow one another in the file as if there were no chunks? */
static bool in_line(const struct pen_h5_data *d, const struct pen_h5_chunks *cs)
{
	const uint32_t last = d->space.ndim - 1;

	if (d->nfilters || cs->n != cs->ncells || !cs->n ||
	    (last && d->chunk[1] != d->space.dim[1]))
		return false;
	for (size_t i = 1; i < cs->n; i++)
		if (cs->c[i].addr != cs->c[i - 1].addr + d->chunk_bytes)
			return false;
	return true;
}

static void put_pipe(struct pen_buf *b, const struct pen_h5_pipe *pipe)
{
	pen__buf_le(b, pipe->n, 1);
	for (uint32_t i = 0; i < pipe->n; i++) {
		pen__buf_le(b, pipe->f[i].id, 2);
		pen__buf_le(b, pipe->f[i].item, 4);
	}
}

static void put_map(struct pen_buf *b, const struct pen_h5_data *d,
		    const struct pen_h5_pipe *pipe,
		    const struct pen_h5_chunks *cs)
{
	unsigned has = cs->n == cs->ncells ? 0 : HAS_CELLS;

	if (pipe->n)
		has |= HAS_SIZES;
	for (size_t i = 0; i < cs->n; i++)
		if (cs->c[i].mask && pipe->n)
			has |= HAS_MASKS;
	pen__buf_le(b, has, 1);
	pen__buf_le(b, d->space.ndim == 2 ? d->chunk[0] : 1, 4);
	pen__buf_le(b, d->chunk[d->space.ndim - 1], 4);
	put_pipe(b, pipe);
	pen__buf_le(b, cs->n, 4);
	for (size_t i = 0; (has & HAS_CELLS) && i < cs->n; i++)
		pen__buf_put(b, &cs->c[i].cell, 8);
	for (size_t i = 0; i < cs->n; i++)
		pen__buf_put(b, &cs->c[i].addr, 8);
	for (size_t i = 0; (has & HAS_SIZES) && i < cs->n; i++)
		pen__buf_put(b, &cs->c[i].size, 4);
	for (size_t i = 0; (has & HAS_MASKS) && i < cs->n; i++)
		pen__buf_put(b, &cs->c[i].mask, 4);
}

static int put_chunks(struct pen_h5 *h, const struct pen_h5_data *d, bool list,
		      struct pen_buf *b, const char *where, struct pen_err *err)
{
	struct pen_h5_chunks cs = { 0 };
	struct pen_h5_pipe pipe;
	int rc = pen__h5_pipe_init(&pipe, d, where, err);

	if (rc >= 0)
		rc = pen__h5_chunks(h, d, &cs, where, err);
	if (rc >= 0)
		rc = pen__h5_pipe_check(&pipe, d, &cs, where, err);
	if (rc >= 0 && list && cs.n < cs.ncells)
		rc = pen__fail(err, PEN_EDATA, where,
			       "%" PRIu64 " of its %" PRIu64 " chunks were "
			       "never written",
			       cs.ncells - cs.n, cs.ncells);
	if (rc >= 0 && in_line(d, &cs))
		put_flat(b, cs.c[0].addr);
	else if (rc >= 0)
		put_map(b, d, &pipe, &cs);
	pen__h5_chunks_fini(&cs);
	return rc;
}

int pen__cells_array_put(struct pen_h5 *h, const struct pen_h5_data *d,
			 bool list, struct pen_buf *b, const char *where,
			 struct pen_err *err)
{
	uint64_t n;
	int rc = check(d, list, where, err);

	if (rc < 0)
		return rc;
	put_head(b, d);
	(void)pen__h5_count(&d->space, &n);
	if (n && d->layout == PEN_H5_CHUNKED)
		return put_chunks(h, d, list, b, where, err);
	if (n && d->addr == PEN_H5_NOWHERE)
		return pen__fail(err, PEN_EDATA, where, "was never written");
	put_flat(b, n ? d->addr : 0);
	return 0;
}

void pen__cells_array_put_grouped(struct pen_buf *b,
				  const struct pen_cells_array *a,
				  const uint64_t *offsets,
				  const uint32_t *sizes)
{
	static const uint8_t fill[8];

	pen__buf_le(b, a->dtype, 1);
	pen__buf_le(b, 0, 1);
	pen__buf_put(b, fill, sizeof(fill));
	pen__buf_le(b, a->ncols, 8);
	pen__buf_le(b, GROUPED | (sizes ? HAS_SIZES : 0), 1);
	pen__buf_le(b, a->group_rows, 8);
	pen__buf_le(b, a->chunk_bytes, 8);
	put_pipe(b, &a->pipe);
	pen__buf_le(b, a->nchunks, 4);
	pen__buf_put(b, offsets, a->nchunks * sizeof(*offsets));
	if (sizes)
		pen__buf_put(b, sizes, a->nchunks * sizeof(*sizes));
}

/* ---- out of it ---- */

static bool take_grid(struct pen_bytes *b, struct pen_cells_array *a)
{
	a->chunk_rows = pen__take_u32(b);
	a->chunk_cols = pen__take_u32(b);
	if (!a->chunk_rows || !a->chunk_cols || !a->ncols ||
	    a->chunk_rows * a->chunk_cols > UINT32_MAX / a->item)
		return false;
	a->chunk_bytes = a->chunk_rows * a->chunk_cols * a->item;
	a->grid_cols = (a->ncols - 1) / a->chunk_cols + 1;
	return true;
}

static bool take_groups(struct pen_bytes *b, struct pen_cells_array *a)
{
	a->group_rows = pen__take_u64(b);
	a->chunk_bytes = pen__take_u64(b);
	return a->group_rows && a->chunk_bytes <= UINT32_MAX;
}

static bool take_map(struct pen_bytes *b, struct pen_cells_array *a,
		     unsigned has)
{
	const bool grouped = a->layout == PEN_CELLS_GROUPED;
	uint64_t n;

	if (!(grouped ? take_groups(b, a) : take_grid(b, a)))
		return false;
	a->pipe.n = pen__take_u8(b);
	if (a->pipe.n > PEN_H5_FILTERS || (a->pipe.n && !(has & HAS_SIZES)))
		return false;
	for (uint32_t i = 0; i < a->pipe.n; i++) {
		a->pipe.f[i].id = pen__take_u16(b);
		a->pipe.f[i].item = pen__take_u32(b);
	}
	n = a->nchunks = pen__take_u32(b);
	if (has & HAS_CELLS)
		a->cells = pen__take(b, n * 8);
	a->offsets = pen__take(b, n * 8);
	if (has & HAS_SIZES)
		a->sizes = pen__take(b, n * 4);
	if (has & HAS_MASKS)
		a->masks = pen__take(b, n * 4);
	return !b->bad;
}

bool pen__cells_array_take(struct pen_bytes *b, struct pen_cells_array *a)
{
	const uint8_t *fill;
	unsigned has;

	*a = (struct pen_cells_array){ .dtype = pen__take_u8(b) };
	a->swap = pen__take_u8(b);
	fill = pen__take(b, sizeof(a->fill));
	a->ncols = pen__take_u64(b);
	has = pen__take_u8(b);
	if (b->bad || a->dtype > PEN_F64)
		return false;
	memcpy(a->fill, fill, sizeof(a->fill));
	a->item = (uint8_t)pen_dtype_size(a->dtype);
	a->layout = has & FLAT	    ? PEN_CELLS_FLAT
		    : has & GROUPED ? PEN_CELLS_GROUPED
				    : PEN_CELLS_CHUNKED;
	if (a->layout != PEN_CELLS_FLAT)
		return take_map(b, a, has);
	a->at = pen__take_u64(b);
	return !b->bad;
}
