/*
 * Finds the stored chunks of a data set. All six types of index result in one
 * list by grid cell. The file bounds the list: each chunk is inside it and has
 * at least one byte, and chunks do not overlap. Array indexes are in
 * hdf5_arrays.c.
 */
#include "format/hdf5/hdf5_int.h"

#define MOST_LEVELS 16

static int bad(struct pen_h5_walk *w, const char *what)
{
	return pen__h5_bad(w->h, w->err, what);
}

int pen__h5_chunk_add(struct pen_h5_walk *w, const uint64_t *at, uint64_t addr,
		      uint64_t size, uint32_t mask)
{
	const struct pen_h5_data *d = w->d;
	struct pen_chunks *out = w->out;
	const uint64_t end = w->h->pk->size;
	struct pen_chunk c = { .at = addr,
			       .size = (uint32_t)size,
			       .mask = mask };
	bool partial = false;

	if (addr == PEN_H5_NOWHERE)
		return 0;
	for (uint32_t i = 0; i < d->space.ndim; i++) {
		if (at[i] >= w->grid[i])
			return 0; /* left over from before the data set was
				     shrunk */
		c.cell = c.cell * w->grid[i] + at[i];
		partial |= (at[i] + 1) * d->chunk[i] > d->space.dim[i];
	}
	if (d->edge_plain && partial)
		c.mask = UINT32_MAX;
	if (addr > end || size > end - addr || size > UINT32_MAX)
		return pen__h5_cut(w->h, w->err, "a chunk is outside the file");
	if (!size || size > end - out->stored)
		return bad(w, "chunks overlap");
	out->stored += size;
	if (pen__chunks_add(out, &c) < 0)
		return pen__h5_nomem(w->h, w->err, out->n * sizeof(c));
	return 0;
}

int pen__h5_chunk_put(struct pen_h5_walk *w, uint64_t n, uint64_t addr,
		      uint64_t size, uint32_t mask)
{
	uint64_t at[PEN_MAX_DIMS];

	for (uint32_t i = w->d->space.ndim; i-- > 0;) {
		at[w->order[i]] = n % w->span[i];
		n /= w->span[i];
	}
	return n ? 0 : pen__h5_chunk_add(w, at, addr, size, mask);
}

/* ---- version 1 B-trees ---- */

/* Converts the offset of a chunk from elements to chunks. */
static bool take_place(const struct pen_h5_walk *w, struct pen_bytes *b,
		       uint64_t *at)
{
	bool ok = true;

	for (uint32_t i = 0; i < w->d->space.ndim; i++) {
		at[i] = pen__take_u64(b);
		ok &= at[i] % w->d->chunk[i] == 0;
		at[i] /= w->d->chunk[i];
	}
	/* the last offset is within the element */
	return ok && pen__take_u64(b) == 0;
}

/* Chunks are in order; a damaged place would leave a hole without an error. */
static bool follows(struct pen_h5_walk *w, const uint64_t *at)
{
	const uint32_t n = w->d->space.ndim;
	const bool first = !w->any;
	uint32_t i = 0;

	while (!first && i < n && at[i] == w->last[i])
		i++;
	if (!first && (i == n || at[i] < w->last[i]))
		return false;
	w->any = true;
	memcpy(w->last, at, n * sizeof(*at));
	return true;
}

static int tree_leaf(struct pen_h5_walk *w, struct pen_bytes *b)
{
	const uint32_t size = pen__take_u32(b), mask = pen__take_u32(b);
	uint64_t at[PEN_MAX_DIMS];

	if (!take_place(w, b, at))
		return bad(w, "a chunk is not aligned to the chunk grid");
	if (!follows(w, at))
		return bad(w, "the chunks in the B-tree are not in order");
	return pen__h5_chunk_add(w, at, pen__h5_addr(w->h, b), size, mask);
}

static int tree_node(struct pen_h5_walk *w, uint64_t addr, unsigned above)
{
	const unsigned key = 8 + 8 * (w->d->space.ndim + 1);
	const unsigned head = 8u + 2u * w->h->so;
	unsigned level, n;
	struct pen_buf buf;
	struct pen_bytes b;
	int rc;

	rc = pen__h5_load_as(w->h,
			     (struct pen_h5_part){ addr, head, "TREE", false },
			     &buf, &b, w->err);
	if (rc < 0)
		return rc;
	if (pen__take_u8(&b) != 1)
		b.bad = true;
	level = pen__take_u8(&b);
	n = pen__take_u16(&b);
	pen__buf_fini(&buf);
	if (b.bad || level >= above)
		return bad(w, "a node of the chunk B-tree is invalid");
	rc = pen__h5_load(w->h, addr + head, (uint64_t)n * (key + w->h->so),
			  &buf, w->err);
	if (rc < 0)
		return rc;
	b = pen__bytes(buf.p, buf.n);
	for (unsigned i = 0; rc >= 0 && i < n; i++) {
		if (!level) {
			rc = tree_leaf(w, &b);
			continue;
		}
		pen__take(&b, key);
		rc = tree_node(w, pen__h5_addr(w->h, &b), level);
	}
	pen__buf_fini(&buf);
	return rc;
}

/* ---- version 2 B-trees ---- */

static int see_record(void *arg, struct pen_bytes *b, struct pen_err *err)
{
	struct pen_h5_walk *w = arg;
	const unsigned ndim = w->d->space.ndim;
	const size_t fixed = w->h->so + 4u + 8u * ndim;
	const uint64_t addr = pen__h5_addr(w->h, b);
	uint64_t at[PEN_MAX_DIMS], size = w->d->chunk_bytes;
	uint32_t mask = 0;

	(void)err;
	if (w->d->filters.n) {
		const size_t n = pen__bytes_left(b) + w->h->so;

		if (n <= fixed || n > fixed + 8)
			return bad(w,
				   "a record of the chunk B-tree is invalid");
		size = pen__take_le(b, (unsigned)(n - fixed));
		mask = pen__take_u32(b);
	}
	for (uint32_t i = 0; i < ndim; i++)
		at[i] = pen__take_u64(b);
	if (b->bad)
		return bad(w, "a record of the chunk B-tree is invalid");
	return pen__h5_chunk_add(w, at, addr, size, mask);
}

/* ---- the others ---- */

static int single(struct pen_h5_walk *w)
{
	const uint64_t at[PEN_MAX_DIMS] = { 0 };

	return pen__h5_chunk_add(w, at, w->d->addr, w->d->single_size,
				 w->d->single_mask);
}

/* All chunks are contiguous: the index is a multiplication. */
static int implicit(struct pen_h5_walk *w)
{
	const uint64_t n = w->d->chunk_bytes, end = w->h->pk->size;
	int rc = 0;

	if (w->d->addr > end || w->ncells > (end - w->d->addr) / n)
		return pen__h5_cut(w->h, w->err,
				   "the chunks are outside the file");
	for (uint64_t i = 0; rc >= 0 && i < w->ncells; i++)
		rc = pen__h5_chunk_put(w, i, w->d->addr + i * n, n, 0);
	return rc;
}

/*
 * Array indexes count chunks over the maximum shape, with the unlimited axis,
 * if any, before all others.
 */
static int number_cells(struct pen_h5_walk *w)
{
	const struct pen_h5_data *d = w->d;
	uint32_t n = 0, nfree = 0;

	for (int pass = 0; pass < 2; pass++) {
		for (uint32_t i = 0; i < d->space.ndim; i++) {
			if ((d->space.max[i] == UINT64_MAX) != (pass == 0))
				continue;
			w->order[n] = i;
			w->span[n++] =
				pass ? (d->space.max[i] - 1) / d->chunk[i] + 1
				     : UINT64_MAX;
			nfree += !pass;
		}
	}
	w->ncells = 1;
	for (uint32_t i = nfree; i < n; i++)
		if (!w->span[i] ||
		    __builtin_mul_overflow(w->ncells, w->span[i], &w->ncells))
			return bad(w, "the maximum shape overflows 64 bits");
	if (nfree > 1 || (nfree == 1 && d->index != PEN_H5_EXTENSIBLE))
		return bad(
			w,
			"the type of the chunk index does not match the shape");
	if (nfree)
		w->ncells = UINT64_MAX;
	return 0;
}

static int walk(struct pen_h5_walk *w)
{
	int rc;

	switch (w->d->index) {
	case PEN_H5_BTREE1:
		return tree_node(w, w->d->addr, MOST_LEVELS);
	case PEN_H5_BTREE2:
		return pen__h5_btree2(w->h, w->d->addr,
				      w->d->filters.n ? 11 : 10, see_record, w,
				      w->err);
	case PEN_H5_SINGLE:
		return single(w);
	default:
		break;
	}
	rc = number_cells(w);
	if (rc < 0)
		return rc;
	if (w->d->index == PEN_H5_IMPLICIT)
		return implicit(w);
	return w->d->index == PEN_H5_FIXED ? pen__h5_fixed_array(w)
					   : pen__h5_extensible_array(w);
}

void pen__h5_put(const struct pen_h5_data *d, const struct pen_chunks *cs,
		 struct pen_chunked_put *a)
{
	*a = (struct pen_chunked_put){
		.layout = d->layout == PEN_H5_CHUNKED ? PEN_CHUNKED_GRID
			  : d->kept.p		      ? PEN_CHUNKED_KEPT
			  : d->addr == PEN_H5_NOWHERE ? PEN_CHUNKED_EMPTY
						      : PEN_CHUNKED_FLAT,
		.dtype = (enum pen_dtype)d->type.dtype,
		.swap = d->type.swap,
		.ndim = d->space.ndim,
		.at = d->addr,
		.kept = { d->kept.p, (size_t)d->nbytes },
		.filters = &d->filters,
		.chunks = cs,
	};
	if (a->layout == PEN_CHUNKED_GRID && !cs->n)
		a->layout = PEN_CHUNKED_EMPTY;
	memcpy(a->fill, d->fill, sizeof(a->fill));
	pen__h5_swap(&d->type, a->fill, d->type.size);
	for (uint32_t i = 0; i < a->ndim; i++) {
		a->dim[i] = d->space.dim[i];
		a->chunk[i] = d->chunk[i];
	}
}

int pen__h5_chunks(struct pen_h5 *h, const struct pen_h5_data *d,
		   struct pen_chunks *out, const char *where,
		   struct pen_err *err)
{
	struct pen_h5_walk w = { .h = h, .d = d, .out = out, .err = err };
	int rc;

	*out = (struct pen_chunks){ .ncells = 1 };
	rc = pen__filters_known(&d->filters, where, err);
	if (rc < 0)
		return rc;
	for (uint32_t i = 0; i < d->space.ndim; i++) {
		const uint64_t n = d->space.dim[i];

		w.grid[i] = n ? (n - 1) / d->chunk[i] + 1 : 0;
		if (out->ncells && w.grid[i] &&
		    __builtin_mul_overflow(out->ncells, w.grid[i],
					   &out->ncells))
			return pen__fail(err, P_DAMAGED, where,
					 "damaged: the number of chunks "
					 "overflows 64 bits");
		if (!w.grid[i])
			out->ncells = 0;
	}
	if (d->addr != PEN_H5_NOWHERE && out->ncells)
		rc = walk(&w);
	if (rc >= 0 && !pen__chunks_sort(out))
		rc = bad(&w, "a chunk occurs twice");
	if (rc < 0)
		pen__err_where(err, where);
	else
		rc = pen__chunks_check(out, &d->filters, d->chunk_bytes, where,
				       err);
	if (rc < 0)
		pen__chunks_fini(out);
	return rc < 0 ? rc : 0;
}
