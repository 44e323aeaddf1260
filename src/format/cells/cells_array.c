/*
 * Arrays of a matrix into the blob, and out of it: where their chunks are, or
 * where their bytes begin. What is checked here is what an index that was kept
 * might have wrong.
 */
#include "format/cells/cells.h"

enum {
	HAS_CELLS = 1,
	HAS_SIZES = 2,
	HAS_MASKS = 4,
	FLAT = 8,
	GROUPED = 16,
	HAS_OBJECTS = 32,
	CUT = 64,
	HAS_CRCS = 128,
};

static void put_head(struct pen_buf *b, const struct pen_cells_grid *g)
{
	pen__buf_le(b, g->dtype, 1);
	pen__buf_le(b, g->swap, 1);
	pen__buf_put(b, g->fill, sizeof(g->fill));
	pen__buf_le(b, g->ncols, 8);
}

void pen__cells_array_put_flat(struct pen_buf *b,
			       const struct pen_cells_grid *g, uint64_t at)
{
	put_head(b, g);
	pen__buf_le(b, FLAT, 1);
	pen__buf_le(b, at, 8);
}

static void put_pipe(struct pen_buf *b, const struct pen_h5_pipe *pipe)
{
	pen__buf_le(b, pipe->n, 1);
	for (uint32_t i = 0; i < pipe->n; i++) {
		pen__buf_le(b, pipe->f[i].id, 2);
		pen__buf_le(b, pipe->f[i].item, 4);
	}
}

void pen__cells_array_put(struct pen_buf *b, const struct pen_cells_grid *g)
{
	unsigned has = g->n == g->ncells ? 0 : HAS_CELLS;

	if (g->pipe->n)
		has |= HAS_SIZES;
	if (g->objects)
		has |= HAS_OBJECTS;
	if (g->cut_cols)
		has |= CUT;
	if (g->crcs)
		has |= HAS_CRCS;
	for (size_t i = 0; g->pipe->n && i < g->n; i++)
		if (g->place(g->arg, i).mask)
			has |= HAS_MASKS;
	put_head(b, g);
	pen__buf_le(b, has, 1);
	pen__buf_le(b, g->chunk_rows, 4);
	pen__buf_le(b, g->chunk_cols, 4);
	if (g->cut_cols)
		pen__buf_le(b, g->cut_cols, 4);
	put_pipe(b, g->pipe);
	pen__buf_le(b, g->n, 4);
	for (size_t i = 0; (has & HAS_CELLS) && i < g->n; i++)
		pen__buf_put(b, &(uint64_t){ g->place(g->arg, i).cell }, 8);
	for (size_t i = 0; i < g->n; i++)
		pen__buf_put(b, &(uint64_t){ g->place(g->arg, i).at }, 8);
	for (size_t i = 0; (has & HAS_SIZES) && i < g->n; i++)
		pen__buf_put(b, &(uint32_t){ g->place(g->arg, i).size }, 4);
	for (size_t i = 0; (has & HAS_MASKS) && i < g->n; i++)
		pen__buf_put(b, &(uint32_t){ g->place(g->arg, i).mask }, 4);
	for (size_t i = 0; (has & HAS_OBJECTS) && i < g->n; i++)
		pen__buf_put(b, &(uint32_t){ g->place(g->arg, i).object }, 4);
	for (size_t i = 0; (has & HAS_CRCS) && i < g->n; i++)
		pen__buf_put(b, &(uint32_t){ g->place(g->arg, i).crc }, 4);
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

static bool take_cuts(struct pen_bytes *b, struct pen_cells_array *a)
{
	a->cut_cols = pen__take_u32(b);
	if (a->chunk_rows != 1 || a->cut_cols <= a->chunk_cols)
		return false;
	a->ncuts = (a->cut_cols - 1) / a->chunk_cols + 1;
	a->grid_cols = ((a->ncols - 1) / a->cut_cols + 1) * a->ncuts;
	return true;
}

static bool take_grid(struct pen_bytes *b, struct pen_cells_array *a,
		      unsigned has)
{
	a->chunk_rows = pen__take_u32(b);
	a->chunk_cols = pen__take_u32(b);
	if (!a->chunk_rows || !a->chunk_cols || !a->ncols ||
	    a->chunk_rows * a->chunk_cols > UINT32_MAX / a->item)
		return false;
	a->chunk_bytes = a->chunk_rows * a->chunk_cols * a->item;
	a->grid_cols = (a->ncols - 1) / a->chunk_cols + 1;
	return !(has & CUT) || take_cuts(b, a);
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

	if (!(grouped ? take_groups(b, a) : take_grid(b, a, has)))
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
	if (has & HAS_OBJECTS)
		a->objects = pen__take(b, n * 4);
	if (has & HAS_CRCS)
		a->crcs = pen__take(b, n * 4);
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
