/*
 * Samples of plain arrays. Contiguous data is read in place, row by row; so are
 * rows of unfiltered chunks. A filtered chunk is fetched and unpacked once for
 * all samples that need it, or straight into the row if it belongs to one
 * sample. Chunks that were never written have the fill value.
 */
#include "format/chunked/plain.h"

#include <stdio.h>

const char *const pen__plain_choices[] = { "auto", "file", "first", NULL };

static const struct pen_plain_view *view_of(const struct pen_format *f,
					    uint32_t object, uint32_t field)
{
	const struct pen_plain *p = f->priv;

	return &p->view[f->ix->blob_of(f->ix, object) * f->nfields + field];
}

static const int64_t *dims_of(const struct pen_format *f,
			      const struct pen_plain_view *v)
{
	const struct pen_plain *p = f->priv;

	return p->dims + v->dims;
}

void pen__plain_shape(const struct pen_format *f, uint32_t object, uint64_t k,
		      uint32_t field, int64_t *shape)
{
	const struct pen_plain_view *v = view_of(f, object, field);

	(void)k;
	memcpy(shape, dims_of(f, v) + !v->whole,
	       (size_t)(v->a.ndim - !v->whole) * sizeof(*shape));
}

/* ---- locate ---- */

/* The cells of a sample are consecutive, in the grid and in the map. */
static void locate_chunks(const struct pen_plain_view *v, uint64_t k,
			  struct pen_unit *u)
{
	const uint64_t cell = v->whole ? 0 : k / v->per * v->ncross;
	uint64_t i = pen__chunked_from(&v->a, cell);

	for (uint32_t j = 0; j < v->ncross; j++) {
		if (!pen__chunked_has(&v->a, i, cell + j))
			continue;
		pen__chunked_unit(&v->a, i++, v->a.chunk_bytes, &u[j]);
		if (v->alone)
			u[j].flags = 0;
		if (!v->in_rows)
			continue;
		u[j].offset += k % v->per * v->row;
		u[j].len = v->row;
		u[j].flags = PEN_UNIT_PLAIN;
	}
}

void pen__plain_locate(const struct pen_format *f, uint32_t object, uint64_t k,
		       struct pen_unit *units)
{
	const struct pen_plain *p = f->priv;

	for (uint32_t i = 0; i < f->units_per_sample; i++)
		units[i] = (struct pen_unit){ .object = PEN_NO_OBJECT };
	for (uint32_t i = 0; i < f->nfields; i++) {
		const struct pen_plain_view *v = view_of(f, object, i);
		struct pen_unit *u = units + p->unit0[i];
		uint32_t n = 1;

		if (v->a.layout == PEN_CHUNKED_FLAT) {
			u->object = 0;
			u->offset = v->a.at + k * v->row;
			u->len = v->row;
			u->flags = v->a.swap ? 0 : PEN_UNIT_PLAIN;
		} else if (v->a.layout == PEN_CHUNKED_GRID) {
			locate_chunks(v, k, u);
			n = v->ncross;
		} else {
			continue;
		}
		for (uint32_t j = 0; j < n; j++) {
			if (u[j].object == PEN_NO_OBJECT)
				continue;
			u[j].field = (uint16_t)i;
			u[j].id |= (uint64_t)object << 32;
			u[j].object = u[j].object ? u[j].object - 1 : object;
		}
	}
}

/* ---- unpack and emit ---- */

static int chunk_fail(const struct pen_format *f, const struct pen_unit *u,
		      int kind, const char *what, struct pen_err *err)
{
	char name[256], where[336];

	f->ix->name_of(f->ix, u->object, name, sizeof(name));
	snprintf(where, sizeof(where), "%s:%s", name, f->field[u->field].name);
	return pen__fail(err, kind, where, "%s", what);
}

int pen__plain_unpack(const struct pen_format *f, const struct pen_unit *u,
		      struct pen_span raw, void *out, struct pen_scratch *s,
		      struct pen_err *err)
{
	/* a chunk may be a separate object */
	const struct pen_plain_view *v =
		view_of(f, (uint32_t)(u->id >> 32), u->field);
	const struct pen_chunk_job job = { .a = &v->a,
					   .number = (uint32_t)u->id - v->a.id0,
					   .raw = raw,
					   .out = out,
					   .size = (size_t)v->a.chunk_bytes,
					   .scratch = s };
	const char *why;
	const int rc = pen__chunked_unpack(&job, &why);

	if (rc == PEN_ENOMEM)
		return pen__fail_nomem(err, f->ops->name, 0);
	if (rc >= 0)
		return 0;
	return chunk_fail(f, u,
			  rc == PEN_ENOTSUP ? P_UNSUPPORTED_FEATURE : P_DAMAGED,
			  why, err);
}

static void copy_items(const struct pen_plain_view *v, uint8_t *dst,
		       const uint8_t *src, size_t n)
{
	const size_t item = pen_dtype_size(v->a.dtype);
	struct pen_tile t = { .ni = 1, .nj = n / item, .src_j = item };

	if (!src)
		for (size_t i = 0; i < n; i += item)
			memcpy(dst + i, v->a.fill, item);
	else if (!v->a.swap)
		memcpy(dst, src, n);
	else
		pen__tile_copy(&t, item, pen__swap_size(v->a.dtype), dst, src);
}

/*
 * Copies the part of a sample in its cell number `cell` to its place in the
 * row. src: the bytes of the chunk where the sample starts; NULL: fill value.
 */
static void copy_cell(const struct pen_plain_view *v, const int64_t *dims,
		      uint32_t cell, const uint8_t *src, uint8_t *dst)
{
	const unsigned a = !v->whole, n = v->a.ndim;
	const int64_t *shape = dims, *chunk = dims + n, *grid = chunk + n;
	uint64_t len[PEN_MAX_DIMS], at[PEN_MAX_DIMS] = { 0 };
	uint64_t to[PEN_MAX_DIMS], from[PEN_MAX_DIMS];
	uint64_t run = v->a.item, dn = run, sn = run, off = 0;
	unsigned inner = n; /* axes from here on are contiguous */
	bool flat = !v->a.fortran;

	for (unsigned i = n; i-- > a;) {
		const uint64_t lo =
			cell % (uint64_t)grid[i] * (uint64_t)chunk[i];
		const uint64_t left = (uint64_t)shape[i] - lo;

		cell /= (uint32_t)grid[i];
		len[i] = left < (uint64_t)chunk[i] ? left : (uint64_t)chunk[i];
		to[i] = dn;
		from[i] = sn;
		off += lo * dn;
		dn *= (uint64_t)shape[i];
		sn *= (uint64_t)chunk[i];
		if (flat) {
			run *= len[i];
			inner = i;
			flat = len[i] == (uint64_t)shape[i] &&
			       shape[i] == chunk[i];
		}
	}
	if (v->a.fortran) {
		sn = v->a.item;
		for (unsigned i = 0; i < n; i++) {
			from[i] = sn;
			sn *= (uint64_t)chunk[i];
		}
	}
	dst += off;
	for (;;) {
		unsigned i = inner;

		copy_items(v, dst, src, (size_t)run);
		while (i > a && at[i - 1] + 1 == len[i - 1]) {
			i--;
			dst -= at[i] * to[i];
			src = src ? src - at[i] * from[i] : NULL;
			at[i] = 0;
		}
		if (i == a)
			return;
		at[i - 1]++;
		dst += to[i - 1];
		src = src ? src + from[i - 1] : NULL;
	}
}

/* The bytes of one chunk, unpacked if necessary. */
static int chunk_data(const struct pen_format *f, const struct pen_row *r,
		      const struct pen_plain_view *v, uint32_t unit,
		      const uint8_t **out, struct pen_err *err)
{
	const struct pen_unit *u = &r->units[unit];
	const struct pen_span s = r->data[unit];
	const size_t room = pen__chunked_room(&v->a);
	uint8_t *mem = r->scratch->mem;

	*out = s.p;
	if (v->a.filters.n && v->alone) {
		if (r->scratch->size < room + v->a.chunk_bytes)
			return chunk_fail(f, u, P_DAMAGED,
					  "the work buffer is too small to "
					  "unpack a chunk",
					  err);
		*out = mem + room;
		return pen__plain_unpack(f, u, s, mem + room, r->scratch, err);
	}
	if (s.n != v->a.chunk_bytes)
		return chunk_fail(f, u, P_DAMAGED,
				  "the bytes read do not match the chunk size",
				  err);
	return 0;
}

static int emit_chunks(const struct pen_format *f, const struct pen_row *r,
		       const struct pen_plain_view *v, uint32_t unit0,
		       uint8_t *dst, struct pen_err *err)
{
	const uint64_t step = v->a.fortran ? v->a.item
					   : v->a.chunk_bytes / v->per;
	const uint64_t skip = v->whole ? 0 : r->k % v->per * step;

	for (uint32_t j = 0; j < v->ncross; j++) {
		const struct pen_unit *u = &r->units[unit0 + j];
		const uint8_t *src = NULL;
		int rc = 0;

		if (u->object != PEN_NO_OBJECT && v->in_rows)
			continue; /* already in its row */
		if (u->object != PEN_NO_OBJECT && v->exact && v->a.filters.n) {
			rc = pen__plain_unpack(f, u, r->data[unit0 + j], dst,
					       r->scratch, err);
			if (rc < 0)
				return rc;
			if (v->a.swap)
				pen__swap(v->a.dtype, dst, (size_t)v->row);
			continue;
		}
		if (u->object != PEN_NO_OBJECT)
			rc = chunk_data(f, r, v, unit0 + j, &src, err);
		if (rc < 0)
			return rc;
		copy_cell(v, dims_of(f, v), j, src ? src + skip : NULL, dst);
	}
	return 0;
}

int pen__plain_emit(const struct pen_format *f, const struct pen_row *r,
		    struct pen_err *err)
{
	const struct pen_plain *p = f->priv;

	for (uint32_t i = 0; i < f->nfields; i++) {
		const struct pen_plain_view *v = view_of(f, r->object, i);
		const uint32_t u = p->unit0[i];
		int rc = 0;

		if (r->dst_len[i] != v->row ||
		    (v->a.layout == PEN_CHUNKED_FLAT && v->a.swap &&
		     r->data[u].n != v->row))
			return pen__object_fail(
				f, P_DAMAGED, r->object, NULL,
				"the bytes read do not match the sample size",
				err);
		if (v->a.layout == PEN_CHUNKED_EMPTY)
			copy_items(v, r->dst[i], NULL, (size_t)v->row);
		else if (v->a.layout == PEN_CHUNKED_KEPT)
			copy_items(v, r->dst[i], v->a.kept + r->k * v->row,
				   (size_t)v->row);
		else if (v->a.layout == PEN_CHUNKED_GRID)
			rc = emit_chunks(f, r, v, u, r->dst[i], err);
		else if (v->a.swap)
			copy_items(v, r->dst[i], r->data[u].p, (size_t)v->row);
		if (rc < 0)
			return rc;
	}
	return 0;
}
