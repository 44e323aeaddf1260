/*
 * Maps a row of a matrix to the units that contain its values, and their bytes
 * back to runs of values. Values without filters are read as plain byte ranges,
 * also out of chunks. Chunks with filters are fetched and unpacked once for all
 * of their rows.
 */
#include "format/cells/cells.h"

/* ---- chunks of a grid ---- */

/* The grid cell that contains column `col` of a row. */
static uint64_t cell_of(const struct pen_chunked *a, uint64_t row, uint64_t col)
{
	if (a->cut_cols)
		return col / a->cut_cols * a->ncuts +
		       col % a->cut_cols / a->chunk_cols;
	return row / a->chunk_rows * a->grid_cols + col / a->chunk_cols;
}

/* The position of column `col` of a row in its chunk. */
static uint64_t within(const struct pen_chunked *a, uint64_t row, uint64_t col)
{
	if (a->cut_cols)
		return col % a->cut_cols % a->chunk_cols * a->item;
	return (row % a->chunk_rows * a->chunk_cols + col % a->chunk_cols) *
	       a->item;
}

/* The end of the chunk's columns. */
static uint64_t next_chunk(const struct pen_chunked *a, uint64_t at)
{
	const uint64_t in = a->cut_cols ? at % a->cut_cols : at;
	const uint64_t next = (in / a->chunk_cols + 1) * a->chunk_cols;

	return at - in +
	       (a->cut_cols && next > a->cut_cols ? a->cut_cols : next);
}

/* The end of the columns of the chunk that contains `at`, at most `end`. */
static uint64_t chunk_end(const struct pen_chunked *a, uint64_t at,
			  uint64_t end)
{
	const uint64_t next = next_chunk(a, at);

	return next < end ? next : end;
}

/* Bytes of the chunk that contains column `at`. */
static uint64_t chunk_size(const struct pen_chunked *a, uint64_t at)
{
	if (!a->cut_cols)
		return a->chunk_bytes;
	return (next_chunk(a, at) - at) * a->item + within(a, 0, at);
}

static void locate_grid(const struct pen_chunked *a, uint64_t row,
			uint64_t from, uint64_t to, struct pen_unit *u)
{
	uint64_t next, cell, i;

	if (from >= to)
		return;
	cell = cell_of(a, row, from);
	i = pen__chunked_from(a, cell);
	for (; from < to; from = next, cell++, u++) {
		next = chunk_end(a, from, to);
		if (!pen__chunked_has(a, i, cell))
			continue;
		if (a->filters.n) {
			pen__chunked_unit(a, i++, chunk_size(a, from), u);
			continue;
		}
		u->object = pen__chunked_object(a, i);
		u->offset =
			pen__chunked_u64(a->offsets, i) + within(a, row, from);
		u->len = (next - from) * a->item;
		i++;
	}
}

/* ---- chunks of groups of rows ---- */

struct group {
	uint64_t number, first, n; /* elements */
};

/* False if the blob contradicts itself. */
static bool group_of(const struct pen_cells_matrix *m,
		     const struct pen_chunked *a, uint64_t row, struct group *g)
{
	const uint64_t from = row - row % a->group_rows;
	const uint64_t left = m->nrows - from;
	const uint64_t to =
		from + (left < a->group_rows ? left : a->group_rows);
	uint64_t end;

	g->number = from / a->group_rows;
	g->first = m->sparse ? pen__cells_start(m, from) : from * m->ncols;
	end = m->sparse ? pen__cells_start(m, to) : to * m->ncols;
	g->n = end - g->first;
	return g->number < a->nchunks && g->first <= end && end <= m->nnz &&
	       g->n <= a->chunk_bytes / a->item;
}

/* The position of [from, to) of the row in the group's elements. */
static bool group_at(const struct pen_cells_matrix *m, const struct group *g,
		     uint64_t row, const uint64_t span[2], uint64_t *at)
{
	const uint64_t base = m->sparse ? 0 : row * m->ncols;

	*at = base + span[0] - g->first;
	return base + span[0] >= g->first && *at <= g->n &&
	       span[1] - span[0] <= g->n - *at;
}

static void locate_group(const struct pen_cells_matrix *m,
			 const struct pen_chunked *a, uint64_t row,
			 const uint64_t span[2], struct pen_unit *u)
{
	struct group g;
	uint64_t at;

	if (span[0] >= span[1] || !group_of(m, a, row, &g) ||
	    !group_at(m, &g, row, span, &at))
		return;
	if (a->filters.n) {
		pen__chunked_unit(a, g.number, g.n * a->item, u);
		return;
	}
	u->object = 0;
	u->offset = pen__chunked_u64(a->offsets, g.number) + at * a->item;
	u->len = (span[1] - span[0]) * a->item;
}

/* ---- any layout ---- */

void pen__cells_span(const struct pen_cells_matrix *m, uint64_t row,
		     uint64_t *from, uint64_t *to)
{
	*from = 0;
	*to = m->extent;
	if (!m->sparse)
		return;
	*from = pen__cells_start(m, row);
	*to = pen__cells_start(m, row + 1);
	if (*to < *from || *to > m->nnz || *to - *from > m->most)
		*from = *to = 0;
}

uint32_t pen__cells_array_units(const struct pen_cells_matrix *m,
				const struct pen_chunked *a)
{
	const uint64_t n = m->sparse ? m->most : m->extent;
	uint64_t k;

	if (!n)
		return 0;
	if (a->layout != PEN_CHUNKED_GRID)
		return 1;
	/* a row of a list starts anywhere in a chunk */
	k = m->sparse ? (n - 1 + a->chunk_cols - 1) / a->chunk_cols + 1
		      : (n - 1) / a->chunk_cols + 1;
	if (a->cut_cols) /* plus a shorter one before each of these */
		k += (n - 1 + a->cut_cols - 1) / a->cut_cols;
	k = k < a->grid_cols ? k : a->grid_cols;
	return k > PEN_CELLS_UNITS ? PEN_CELLS_UNITS + 1 : (uint32_t)k;
}

void pen__cells_array_locate(const struct pen_cells_matrix *m,
			     const struct pen_chunked *a, uint64_t row,
			     struct pen_unit *u)
{
	uint64_t span[2];

	pen__cells_span(m, row, &span[0], &span[1]);
	if (a->layout == PEN_CHUNKED_GROUPED) {
		locate_group(m, a, row, span, u);
		return;
	}
	row = m->sparse ? 0 : row;
	if (a->layout == PEN_CHUNKED_GRID) {
		locate_grid(a, row, span[0], span[1], u);
	} else if (span[0] < span[1]) {
		u->offset = a->at + (row * a->ncols + span[0]) * a->item;
		u->len = (span[1] - span[0]) * a->item;
		u->object = 0;
	}
}

int pen__cells_side(const struct pen_cells_matrix *m,
		    const struct pen_chunked *a, uint64_t number, uint64_t row,
		    bool *any)
{
	const uint64_t cell = a->cells ? pen__chunked_u64(a->cells, number)
				       : number;
	uint64_t first, last, from, to;

	pen__cells_span(m, row, &from, &to);
	*any = from < to;
	if (a->layout == PEN_CHUNKED_GROUPED || !m->sparse) {
		const uint64_t in = a->layout == PEN_CHUNKED_GROUPED
					    ? row / a->group_rows
					    : row / a->chunk_rows;
		const uint64_t of = a->layout == PEN_CHUNKED_GROUPED
					    ? number
					    : cell / a->grid_cols;

		return (in > of) - (in < of);
	}
	first = a->cut_cols ? cell / a->ncuts * a->cut_cols +
				      cell % a->ncuts * a->chunk_cols
			    : cell * a->chunk_cols;
	last = next_chunk(a, first);
	if (from == to)
		from = to = pen__cells_start(m, row);
	return from >= last ? 1 : to <= first ? -1 : 0;
}

bool pen__cells_lacks(const struct pen_cells_matrix *m,
		      const struct pen_chunked *a, uint64_t least)
{
	uint64_t at, end, next, n;

	for (uint64_t row = 0; a->layout == PEN_CHUNKED_GRID && row < m->nrows;
	     row++) {
		pen__cells_span(m, row, &at, &end);
		for (n = 0; at < end; at = next) {
			next = chunk_end(a, at, end);
			if (pen__chunked_find(a, cell_of(a, 0, at)) ==
			    a->nchunks)
				n += next - at;
		}
		if (n >= least)
			return true;
	}
	return false;
}

/* Where the run starts in its unit, and the length of both. */
static bool piece(const struct pen_cells_run *r, uint64_t *at, uint64_t *n,
		  uint64_t *size)
{
	const struct pen_chunked *a = r->a;
	const uint64_t span[2] = { r->at, r->end };
	struct group g;

	*at = 0;
	*n = r->end - r->at;
	if (a->layout == PEN_CHUNKED_GRID) {
		*n = chunk_end(a, r->at, r->end) - r->at;
		*size = a->filters.n ? chunk_size(a, r->at) : *n * a->item;
		if (a->filters.n)
			*at = within(a, r->m->sparse ? 0 : r->row, r->at);
		return true;
	}
	*size = *n * a->item;
	if (a->layout == PEN_CHUNKED_FLAT || !a->filters.n)
		return true;
	if (!group_of(r->m, a, r->row, &g) ||
	    !group_at(r->m, &g, r->row, span, at))
		return false;
	*at *= a->item;
	*size = g.n * a->item;
	return true;
}

/* Values of a narrowed unit, widened to their stored type. */
static bool widened(const struct pen_cells_run *r, uint64_t at, uint64_t n,
		    uint64_t size, const uint8_t **p)
{
	const struct pen_chunked *a = r->a;
	const uint64_t all = size / a->item;
	const unsigned width = r->data->n == all ? 1 : 2;

	if (!a->filters.n || a->item <= 2 || r->data->n != all * width)
		return false;
	pen__narrow_restore(a, width, r->data->p + at / a->item * width, n,
			    r->room);
	*p = r->room;
	return true;
}

uint64_t pen__cells_run_next(struct pen_cells_run *r, const uint8_t **p)
{
	uint64_t at, n, size;

	*p = NULL;
	if (r->unit->object != PEN_NO_OBJECT) {
		if (!piece(r, &at, &n, &size))
			return 0;
		*p = r->data->p + at;
		if (r->data->n != size && !widened(r, at, n, size, p))
			return 0;
	} else if (r->a->layout != PEN_CHUNKED_GRID) {
		return 0;
	} else {
		n = chunk_end(r->a, r->at, r->end) - r->at;
	}
	r->at += n;
	r->unit++;
	r->data++;
	return n;
}
