/*
 * Arrays of a matrix: from a data set to the blob, and from there to units.
 * Numbers that are not filtered are read as the byte ranges they are, also out
 * of chunks, and as one range where chunks lie one right after another, which
 * is how h5py writes them. Of filtered chunks each is fetched and unpacked once
 * for all rows in it. Refuses types that are not numbers, and sparse arrays
 * with parts that were never written.
 */
#include <inttypes.h>
#include <stdio.h>

#include "format/cells.h"

enum { HAS_CELLS = 1, HAS_SIZES = 2, HAS_MASKS = 4, FLAT = 8 };

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
	pen__buf_le(b, pipe->n, 1);
	for (uint32_t i = 0; i < pipe->n; i++) {
		pen__buf_le(b, pipe->f[i].id, 2);
		pen__buf_le(b, pipe->f[i].item, 4);
	}
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

static bool take_map(struct pen_bytes *b, struct pen_cells_array *a,
		     unsigned has)
{
	uint64_t n;

	a->chunk_rows = pen__take_u32(b);
	a->chunk_cols = pen__take_u32(b);
	a->pipe.n = pen__take_u8(b);
	if (!a->chunk_rows || !a->chunk_cols || !a->ncols ||
	    a->pipe.n > PEN_H5_FILTERS ||
	    a->chunk_rows * a->chunk_cols > UINT32_MAX / a->item)
		return false;
	a->chunk_bytes = a->chunk_rows * a->chunk_cols * a->item;
	a->grid_cols = (a->ncols - 1) / a->chunk_cols + 1;
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
	a->flat = has & FLAT;
	if (!a->flat)
		return take_map(b, a, has);
	a->at = pen__take_u64(b);
	return !b->bad;
}

uint32_t pen__cells_array_units(const struct pen_cells_array *a, uint64_t from,
				uint64_t to)
{
	uint64_t n;

	if (from >= to)
		return 0;
	if (a->flat)
		return 1;
	n = (to - 1) / a->chunk_cols - from / a->chunk_cols + 1;
	return n > PEN_CELLS_UNITS ? PEN_CELLS_UNITS + 1 : (uint32_t)n;
}

/* The place in the map of a cell's chunk, or nchunks. */
static uint64_t place_of(const struct pen_cells_array *a, uint64_t cell)
{
	uint64_t lo = 0, hi = a->nchunks;

	if (!a->cells)
		return cell < hi ? cell : hi;
	while (lo < hi) {
		uint64_t mid = lo + (hi - lo) / 2;

		if (pen__cells_u64(a->cells, mid) < cell)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < a->nchunks && pen__cells_u64(a->cells, lo) == cell
		       ? lo
		       : a->nchunks;
}

/* Where column `col` of a row is in its chunk. */
static uint64_t within(const struct pen_cells_array *a, uint64_t row,
		       uint64_t col)
{
	return (row % a->chunk_rows * a->chunk_cols + col % a->chunk_cols) *
	       a->item;
}

/* The columns of the chunk that `at` is in end here. */
static uint64_t chunk_end(const struct pen_cells_array *a, uint64_t at,
			  uint64_t end)
{
	const uint64_t next = (at / a->chunk_cols + 1) * a->chunk_cols;

	return next < end ? next : end;
}

void pen__cells_array_locate(const struct pen_cells_array *a, uint64_t row,
			     uint64_t from, uint64_t to, struct pen_unit *u)
{
	uint64_t next;

	if (a->flat && from < to) {
		u->offset = a->at + (row * a->ncols + from) * a->item;
		u->len = (to - from) * a->item;
		u->object = 0;
		return;
	}
	for (; from < to; from = next, u++) {
		const uint64_t i =
			place_of(a, row / a->chunk_rows * a->grid_cols +
					    from / a->chunk_cols);

		next = chunk_end(a, from, to);
		if (i == a->nchunks)
			continue;
		u->object = 0;
		u->offset = pen__cells_u64(a->offsets, i);
		if (!a->pipe.n) {
			u->offset += within(a, row, from);
			u->len = (next - from) * a->item;
			continue;
		}
		u->len = pen__cells_u32(a->sizes, i);
		u->size = a->chunk_bytes;
		u->id = a->id0 + i;
		u->flags = PEN_UNIT_SHARED | PEN_UNIT_PACKED;
	}
}

uint64_t pen__cells_run_next(struct pen_cells_run *r, const uint8_t **p)
{
	const struct pen_cells_array *a = r->a;
	const uint64_t next = a->flat ? r->end : chunk_end(a, r->at, r->end);
	const uint64_t n = next - r->at;
	const bool packed = a->pipe.n && !a->flat;

	*p = NULL;
	if (r->unit->object != PEN_NO_OBJECT && packed &&
	    r->data->n == a->chunk_bytes / a->item * 2 && a->item > 2) {
		pen__cells_widen(
			a, r->data->p + within(a, r->row, r->at) / a->item * 2,
			n, r->room);
		*p = r->room;
	} else if (r->unit->object != PEN_NO_OBJECT) {
		if (r->data->n != (packed ? a->chunk_bytes : n * a->item))
			return 0;
		*p = r->data->p + (packed ? within(a, r->row, r->at) : 0);
	}
	r->at = next;
	r->unit++;
	r->data++;
	return n;
}
