/*
 * Lists of chunks, and the encoding of arrays into blobs and back. Rejects
 * chunks whose stored size cannot decode to the chunk size.
 */
#include "format/chunked/chunks.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/mem.h"

/* ---- stored chunks ---- */

int pen__chunks_add(struct pen_chunks *cs, const struct pen_chunk *c)
{
	if (cs->n == cs->cap) {
		const size_t cap = cs->cap ? cs->cap * 2 : 64;
		void *p = pen__realloc(cs->c, cap, sizeof(*cs->c));

		if (!p)
			return PEN_ENOMEM;
		cs->c = p;
		cs->cap = cap;
	}
	cs->c[cs->n++] = *c;
	return 0;
}

static int by_cell(const void *a, const void *b)
{
	const struct pen_chunk *x = a, *y = b;

	return (x->cell > y->cell) - (x->cell < y->cell);
}

/* Most lists are already sorted. */
bool pen__chunks_sort(struct pen_chunks *cs)
{
	bool sorted = true;

	for (size_t i = 1; i < cs->n; i++)
		sorted &= cs->c[i - 1].cell <= cs->c[i].cell;
	if (!sorted)
		qsort(cs->c, cs->n, sizeof(*cs->c), by_cell);
	for (size_t i = 1; i < cs->n; i++)
		if (cs->c[i - 1].cell == cs->c[i].cell)
			return false;
	return true;
}

int pen__chunks_check(const struct pen_chunks *cs, const struct pen_filters *f,
		      uint64_t bytes, const char *where, struct pen_err *err)
{
	for (size_t i = 0; i < cs->n; i++) {
		const struct pen_chunk *c = &cs->c[i];

		if (!pen__filters_fit(f, c->mask, c->size, bytes))
			return pen__fail(err, P_DAMAGED, where,
					 "damaged: chunk %" PRIu64
					 " has %u bytes, which cannot decode "
					 "to %" PRIu64,
					 c->cell, c->size, bytes);
	}
	if (cs->n >= UINT32_MAX / 2)
		return pen__fail(err, P_OVER_LIMIT, where,
				 "the array has too many chunks");
	return 0;
}

void pen__chunks_fini(struct pen_chunks *cs)
{
	pen__free(cs->c);
	*cs = (struct pen_chunks){ 0 };
}

/* ---- encoding ---- */

enum {
	HAS_CELLS = 1,
	HAS_SIZES = 2,
	HAS_MASKS = 4,
	HAS_OBJECTS = 8,
	HAS_CRCS = 16,
};

enum { SWAP = 1, FORTRAN = 2 };

static void put_table(struct pen_buf *b, const struct pen_chunks *cs,
		      size_t off, size_t size)
{
	for (size_t i = 0; i < cs->n; i++)
		pen__buf_put(b, (const uint8_t *)&cs->c[i] + off, size);
}

#define PUT_TABLE(b, cs, member)                                               \
	put_table(b, cs, offsetof(struct pen_chunk, member),                   \
		  sizeof((cs)->c->member))

/* Which tables the map has: those that can be derived are omitted. */
static unsigned tables_of(const struct pen_chunked_put *a)
{
	const struct pen_chunks *cs = a->chunks;
	const bool grid = a->layout == PEN_CHUNKED_GRID;
	unsigned has = 0;

	if (grid && cs->n != cs->ncells)
		has |= HAS_CELLS;
	if (a->filters->n)
		has |= HAS_SIZES;
	if (a->objects)
		has |= HAS_OBJECTS;
	if (a->crcs)
		has |= HAS_CRCS;
	for (size_t i = 0; a->filters->n && i < cs->n; i++)
		if (cs->c[i].mask)
			has |= HAS_MASKS;
	return has;
}

static void put_map(struct pen_buf *b, const struct pen_chunked_put *a)
{
	const unsigned has = tables_of(a);

	pen__buf_le(b, a->filters->n, 1);
	for (uint32_t i = 0; i < a->filters->n; i++) {
		pen__buf_le(b, a->filters->f[i].id, 2);
		pen__buf_le(b, a->filters->f[i].item, 4);
	}
	pen__buf_le(b, has, 1);
	pen__buf_le(b, a->chunks->n, 4);
	if (has & HAS_CELLS)
		PUT_TABLE(b, a->chunks, cell);
	PUT_TABLE(b, a->chunks, at);
	if (has & HAS_SIZES)
		PUT_TABLE(b, a->chunks, size);
	if (has & HAS_MASKS)
		PUT_TABLE(b, a->chunks, mask);
	if (has & HAS_OBJECTS)
		PUT_TABLE(b, a->chunks, object);
	if (has & HAS_CRCS)
		PUT_TABLE(b, a->chunks, crc);
}

void pen__chunked_put(struct pen_buf *b, const struct pen_chunked_put *a)
{
	pen__buf_le(b, a->layout, 1);
	pen__buf_le(b, a->dtype, 1);
	pen__buf_le(b, (a->swap ? SWAP : 0) | (a->fortran ? FORTRAN : 0), 1);
	pen__buf_put(b, a->fill, pen_dtype_size(a->dtype));
	pen__buf_le(b, a->ndim, 1);
	pen__buf_put(b, a->dim, a->ndim * sizeof(*a->dim));
	switch (a->layout) {
	case PEN_CHUNKED_FLAT:
		pen__buf_le(b, a->at, 8);
		break;
	case PEN_CHUNKED_KEPT:
		pen__buf_put(b, a->kept.p, a->kept.n);
		break;
	case PEN_CHUNKED_GRID:
		pen__buf_put(b, a->chunk, a->ndim * sizeof(*a->chunk));
		pen__buf_le(b, a->cut, 8);
		put_map(b, a);
		break;
	case PEN_CHUNKED_GROUPED:
		pen__buf_le(b, a->group_rows, 8);
		pen__buf_le(b, a->chunk_bytes, 8);
		put_map(b, a);
		break;
	case PEN_CHUNKED_EMPTY:
		break;
	}
}

/* ---- decoding ---- */

static bool take_cuts(struct pen_chunked *a)
{
	if (a->chunk_rows != 1 || a->cut_cols <= a->chunk_cols)
		return false;
	a->ncuts = (a->cut_cols - 1) / a->chunk_cols + 1;
	a->grid_cols = ((a->ncols - 1) / a->cut_cols + 1) * a->ncuts;
	return true;
}

static bool take_grid(struct pen_bytes *b, struct pen_chunked *a)
{
	const uint8_t *chunk = pen__take(b, a->ndim * (uint64_t)8);

	a->cut_cols = pen__take_u64(b);
	a->chunk_bytes = a->item;
	a->chunk_rows = a->chunk_cols = 1;
	for (unsigned i = 0; !b->bad && i < a->ndim; i++) {
		const uint64_t n = pen__chunked_u64(chunk, i);

		if (!n || n > UINT32_MAX / a->chunk_bytes ||
		    !pen__chunked_u64(a->dims, i))
			return false;
		a->chunk_bytes *= n;
		if (i + 1 < a->ndim)
			a->chunk_rows *= n;
		else
			a->chunk_cols = n;
	}
	if (b->bad)
		return false;
	a->grid_cols = (a->ncols - 1) / a->chunk_cols + 1;
	return !a->cut_cols || take_cuts(a);
}

static bool take_groups(struct pen_bytes *b, struct pen_chunked *a)
{
	a->group_rows = pen__take_u64(b);
	a->chunk_bytes = pen__take_u64(b);
	return a->group_rows && a->chunk_bytes <= UINT32_MAX;
}

static bool take_map(struct pen_bytes *b, struct pen_chunked *a)
{
	unsigned has;
	uint64_t n;

	a->filters.n = pen__take_u8(b);
	if (a->filters.n > PEN_FILTERS)
		return false;
	for (uint32_t i = 0; i < a->filters.n; i++) {
		a->filters.f[i].id = pen__take_u16(b);
		a->filters.f[i].item = pen__take_u32(b);
	}
	has = pen__take_u8(b);
	n = a->nchunks = pen__take_u32(b);
	if (a->filters.n && !(has & HAS_SIZES))
		return false;
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

static bool take_kept(struct pen_bytes *b, struct pen_chunked *a)
{
	uint64_t n = a->item;

	for (unsigned i = 0; i < a->ndim; i++)
		if (__builtin_mul_overflow(n, pen__chunked_u64(a->dims, i), &n))
			return false;
	a->kept = pen__take(b, n);
	return !b->bad;
}

bool pen__chunked_take(struct pen_bytes *b, struct pen_chunked *a)
{
	const uint8_t *fill;
	unsigned flags;

	*a = (struct pen_chunked){ .layout = pen__take_u8(b) };
	a->dtype = pen__take_u8(b);
	flags = pen__take_u8(b);
	if (b->bad || a->dtype >= PEN_NDTYPES)
		return false;
	a->swap = flags & SWAP;
	a->fortran = flags & FORTRAN;
	a->item = (uint8_t)pen_dtype_size(a->dtype);
	fill = pen__take(b, a->item);
	a->ndim = pen__take_u8(b);
	a->dims = pen__take(b, a->ndim * (uint64_t)8);
	if (b->bad || a->ndim > PEN_MAX_DIMS)
		return false;
	memcpy(a->fill, fill, a->item);
	a->ncols = a->ndim ? pen__chunked_u64(a->dims, a->ndim - 1u) : 1;
	switch ((enum pen_chunked_layout)a->layout) {
	case PEN_CHUNKED_FLAT:
		a->at = pen__take_u64(b);
		return !b->bad;
	case PEN_CHUNKED_KEPT:
		return take_kept(b, a);
	case PEN_CHUNKED_GRID:
		return take_grid(b, a) && take_map(b, a);
	case PEN_CHUNKED_GROUPED:
		return take_groups(b, a) && take_map(b, a);
	case PEN_CHUNKED_EMPTY:
		return true;
	}
	return false;
}

bool pen__chunked_number(struct pen_chunked *a, uint64_t *n)
{
	a->id0 = (uint32_t)*n;
	*n += a->nchunks;
	return *n <= UINT32_MAX;
}
