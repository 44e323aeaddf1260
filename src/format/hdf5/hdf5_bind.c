/*
 * From index blobs to views: everything that depends on a file only is worked
 * out once, so that locate() is a division and a lookup. Chunk maps stay where
 * they are, in the blobs. Refuses samples that lie in more than 4096 chunks,
 * because every one of them is a read.
 */
#include <stdio.h>

#include "base/mem.h"
#include "format/hdf5/hdf5_fields.h"

/* While bind() goes through the objects. */
struct binder {
	struct pen_format *f;
	const struct pen_index *ix;
	struct pen_err *err;
	uint64_t blob;
	uint64_t nids; /* chunks of this object so far */
	enum pen_seen seen[PEN_MAX_FIELDS];
	uint32_t units[PEN_MAX_FIELDS];
};

static int damaged(const struct binder *b)
{
	return pen__fail(b->err, PEN_EDATA, "hdf5", "damaged index entry");
}

static int misfit(const struct binder *b, const char *field, const char *why)
{
	char name[256], where[336];

	pen__blob_name(b->ix, b->blob, name, sizeof(name));
	snprintf(where, sizeof(where), "%s:%s", name, field);
	return pen__fail(b->err, PEN_EDATA, where, "%s", why);
}

/* ndim values each of shape, chunk and grid; NULL: no memory. */
static int64_t *new_dims(struct pen_h5_format *p, size_t n, size_t *at)
{
	size_t cap = p->cap_dims ? p->cap_dims : 64;
	int64_t *q;

	while (cap < p->ndims + n)
		cap *= 2;
	if (cap > p->cap_dims) {
		q = pen__realloc(p->dims, cap, sizeof(*q));
		if (!q)
			return NULL;
		p->dims = q;
		p->cap_dims = cap;
	}
	*at = p->ndims;
	p->ndims += n;
	return p->dims + *at;
}

static bool take_name(struct pen_bytes *b, char *name, size_t cap)
{
	const size_t n = pen__take_u8(b);
	const uint8_t *s = pen__take(b, n);

	memset(name, 0, cap);
	if (!s || n >= cap)
		return false;
	memcpy(name, s, n);
	return true;
}

/* The chunk map: pointers into the blob. */
static bool take_map(struct pen_bytes *b, struct pen_h5_view *v, int64_t *chunk)
{
	unsigned has;
	uint64_t n;

	v->chunk_bytes = pen_dtype_size(v->dtype);
	for (unsigned i = 0; i < v->ndim; i++) {
		chunk[i] = pen__take_u32(b);
		v->chunk_bytes *= (uint64_t)chunk[i];
		if (!chunk[i] || v->chunk_bytes > UINT32_MAX)
			return false;
	}
	v->pipe.n = pen__take_u8(b);
	if (v->pipe.n > PEN_H5_FILTERS)
		return false;
	for (uint32_t i = 0; i < v->pipe.n; i++) {
		v->pipe.f[i].id = pen__take_u16(b);
		v->pipe.f[i].item = pen__take_u32(b);
	}
	has = pen__take_u8(b);
	n = v->nchunks = pen__take_u32(b);
	if (has & PEN_H5_HAS_CELLS)
		v->cells = pen__take(b, n * 8);
	v->offsets = pen__take(b, n * 8);
	if (has & PEN_H5_HAS_SIZES)
		v->sizes = pen__take(b, n * 4);
	if (has & PEN_H5_HAS_MASKS)
		v->masks = pen__take(b, n * 4);
	return !b->bad && n;
}

/* dims: shape, chunk and grid, of which the last is made here. */
static bool settle_chunks(struct pen_h5_view *v, int64_t *dims)
{
	const int64_t *shape = dims, *chunk = dims + v->ndim;
	int64_t *grid = dims + 2 * (size_t)v->ndim;
	uint64_t ncells = 1, ncross = 1;
	bool same = true; /* chunk and shape, along the axes of a sample */

	for (unsigned i = 0; i < v->ndim; i++) {
		if (!shape[i])
			return false;
		grid[i] = (shape[i] - 1) / chunk[i] + 1;
		ncells *= (uint64_t)grid[i];
		if (i || v->whole) {
			ncross *= (uint64_t)grid[i];
			same &= shape[i] == chunk[i];
		}
	}
	if (!v->cells && ncells != v->nchunks)
		return false;
	v->ncross = ncross > PEN_H5_MOST_UNITS ? PEN_H5_MOST_UNITS + 1
					       : (uint32_t)ncross;
	v->per = v->whole || !v->ndim ? 1 : (uint32_t)chunk[0];
	v->alone = v->whole || v->per == 1 || v->n == 1;
	v->exact = same && (v->whole || v->per == 1);
	v->in_rows = same && !v->pipe.n && !v->swap;
	return true;
}

static int take_field(struct binder *b, struct pen_bytes *in,
		      struct pen_h5_view *v, char *name, size_t cap)
{
	struct pen_h5_format *p = b->f->priv;
	const uint8_t *fill;
	int64_t *dims;
	size_t n;

	*v = (struct pen_h5_view){ .n = 1,
				   .whole = p->mode == PEN_SAMPLES_FILE };
	if (!take_name(in, name, cap))
		return damaged(b);
	v->dtype = pen__take_u8(in);
	v->swap = pen__take_u8(in);
	v->kind = pen__take_u8(in);
	v->layout = pen__take_u8(in);
	v->ndim = pen__take_u8(in);
	if (in->bad || v->dtype >= PEN_NDTYPES || v->kind > PEN_H5_KEPT ||
	    v->ndim > PEN_MAX_DIMS || (!v->whole && !v->ndim))
		return damaged(b);
	dims = new_dims(p, 3 * (size_t)v->ndim + 1, &v->dims);
	if (!dims)
		return pen__fail_nomem(b->err, "hdf5", p->cap_dims * 8);
	memset(dims, 0, (3 * (size_t)v->ndim + 1) * sizeof(*dims));
	for (unsigned i = 0; i < v->ndim; i++)
		dims[i] = (int64_t)pen__take_u64(in);
	if (!v->whole)
		v->n = (uint64_t)dims[0];
	n = pen_dtype_size(v->dtype);
	fill = pen__take(in, n);
	if (!fill || !pen__shape_bytes(dims + !v->whole, v->ndim - !v->whole,
				       v->dtype, &n))
		return damaged(b);
	memcpy(v->fill, fill, pen_dtype_size(v->dtype));
	v->row = n;
	if (v->kind == PEN_H5_FLAT)
		v->at = pen__take_u64(in);
	if (v->kind == PEN_H5_KEPT) {
		if (__builtin_mul_overflow(v->n, v->row, &n))
			return damaged(b);
		v->kept = pen__take(in, n);
	}
	if (v->kind == PEN_H5_CHUNKS &&
	    (!take_map(in, v, dims + v->ndim) || !settle_chunks(v, dims)))
		return damaged(b);
	return in->bad ? damaged(b) : 0;
}

static uint32_t units_of(const struct pen_h5_view *v)
{
	return v->kind == PEN_H5_FLAT	  ? 1
	       : v->kind == PEN_H5_CHUNKS ? v->ncross
					  : 0;
}

/* What of a thread's working memory this field needs. */
static size_t room_of(const struct pen_h5_view *v)
{
	if (v->kind != PEN_H5_CHUNKS || !v->pipe.n)
		return 0;
	return pen__h5_pipe_room(&v->pipe, v->chunk_bytes) +
	       (v->alone && !v->exact ? (size_t)v->chunk_bytes : 0);
}

static void note_units(struct binder *b, uint32_t i,
		       const struct pen_h5_view *v)
{
	struct pen_format *f = b->f;
	const bool chunks = v->kind == PEN_H5_CHUNKS;

	if (units_of(v) > b->units[i])
		b->units[i] = units_of(v);
	if (room_of(v) > f->scratch_size)
		f->scratch_size = room_of(v);
	f->shares |= chunks && !v->alone && !v->in_rows;
	f->all_plain &= !v->swap && (chunks || v->kind == PEN_H5_FLAT) &&
			(!chunks || (v->in_rows && !v->cells));
	f->uniform &= v->kind == PEN_H5_FLAT;
}

static int add_field(struct binder *b, struct pen_bytes *in, uint32_t i)
{
	struct pen_h5_format *p = b->f->priv;
	struct pen_field *fd = &b->f->field[i];
	struct pen_h5_view *v = &p->view[b->blob * b->f->nfields + i];
	char name[sizeof(fd->name)], why[192];
	struct pen_view as;
	int rc = take_field(b, in, v, name, sizeof(name));

	if (rc < 0)
		return rc;
	if (!b->blob)
		memcpy(fd->name, name, sizeof(name));
	if (strcmp(fd->name, name) != 0)
		return misfit(b, name,
			      "others before it do not have this data "
			      "set; name those to read with fields=");
	if (v->ncross > PEN_H5_MOST_UNITS)
		return misfit(
			b, name,
			"a sample lies in more than 4096 "
			"chunks; format.samples=first reads rows, or store it "
			"in larger chunks");
	v->id0 = (uint32_t)b->nids;
	b->nids += v->nchunks;
	if (b->nids > UINT32_MAX)
		return misfit(b, name, "has too many chunks");
	as = (struct pen_view){ .n = v->n,
				.row = v->row,
				.dtype = v->dtype,
				.ndim = (uint8_t)(v->ndim - !v->whole) };
	if (pen__field_widen(fd, &b->seen[i], &as,
			     p->dims + v->dims + !v->whole, why, sizeof(why)))
		return misfit(b, name, why);
	note_units(b, i, v);
	return 0;
}

static int add_object(struct binder *b)
{
	const struct pen_span s = b->ix->blob(b->ix, b->blob);
	struct pen_bytes in = pen__bytes(s.p, s.n);
	struct pen_h5_format *p = b->f->priv;
	unsigned n;
	int rc = 0;

	p->mode = pen__take_u8(&in);
	p->superblock = pen__take_u8(&in);
	n = pen__take_u8(&in);
	if (in.bad ||
	    (p->mode != PEN_SAMPLES_FILE && p->mode != PEN_SAMPLES_FIRST))
		return damaged(b);
	if (n != b->f->nfields)
		return misfit(b, "*",
			      "does not have as many data sets as "
			      "others before it; name those to read with "
			      "fields=");
	b->nids = 0;
	for (uint32_t i = 0; rc >= 0 && i < n; i++)
		rc = add_field(b, &in, i);
	return rc;
}

static int settle_units(struct binder *b)
{
	struct pen_format *f = b->f;
	struct pen_h5_format *p = f->priv;
	uint32_t n = 0;

	for (uint32_t i = 0; i < f->nfields; i++) {
		p->unit0[i] = n;
		n += b->units[i];
		if (n > PEN_H5_MOST_UNITS)
			return pen__fail(b->err, PEN_ENOTSUP, "hdf5",
					 "a sample lies in more than %d chunks "
					 "of its %u data sets; name fewer with "
					 "fields=",
					 PEN_H5_MOST_UNITS, f->nfields);
	}
	p->unit0[f->nfields] = n;
	f->units_per_sample = n ? n : 1;
	f->uniform &= f->all_plain && f->nfields == 1 &&
		      f->field[0].layout == PEN_DENSE;
	return 0;
}

int pen__h5_bind(struct pen_format *f, const struct pen_index *ix,
		 struct pen_err *err)
{
	struct pen_h5_format *p = f->priv;
	struct binder b = { .f = f, .ix = ix, .err = err };
	struct pen_span s;
	size_t n;
	int rc;

	pen__h5_unbind(f);
	f->ix = ix;
	f->scratch_size = 0;
	f->shares = false;
	f->all_plain = f->uniform = true;
	if (!ix->nblobs)
		return pen__fail(err, PEN_ENOTFOUND, "hdf5", "no objects");
	s = ix->blob(ix, 0);
	f->nfields = s.n > 2 ? s.p[2] : 0;
	if (!f->nfields || f->nfields > PEN_MAX_FIELDS)
		return damaged(&b);
	memset(f->field, 0, sizeof(f->field));
	if (!pen__mul((size_t)ix->nblobs, f->nfields, &n))
		return damaged(&b);
	p->view = pen__calloc(n, sizeof(*p->view));
	if (!p->view)
		return pen__fail_nomem(err, "hdf5", n * sizeof(*p->view));
	for (; b.blob < ix->nblobs; b.blob++) {
		rc = add_object(&b);
		if (rc < 0)
			return rc;
	}
	return settle_units(&b);
}

void pen__h5_unbind(struct pen_format *f)
{
	struct pen_h5_format *p = f->priv;

	pen__free(p->view);
	pen__free(p->dims);
	p->view = NULL;
	p->dims = NULL;
	p->ndims = p->cap_dims = 0;
}
