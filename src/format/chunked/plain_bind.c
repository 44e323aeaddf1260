/*
 * From index blobs to views: everything that depends only on a file is computed
 * once, so that locate() is a division and a lookup. Chunk maps stay in the
 * blobs. Rejects samples of more than 4096 chunks, because each of them is a
 * read.
 */
#include <stdio.h>

#include "base/mem.h"
#include "format/chunked/plain.h"

/* State of bind() over the objects. */
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
	return pen__fail(b->err, P_BAD_INDEX, b->f->ops->name,
			 "the index entry is damaged");
}

static int misfit(const struct binder *b, int kind, const char *field,
		  const char *why)
{
	char name[256], where[336];

	pen__blob_name(b->ix, b->blob, name, sizeof(name));
	snprintf(where, sizeof(where), "%s:%s", name, field);
	return pen__fail(b->err, kind, where, "%s", why);
}

/* ndim values each of shape, chunk and grid; NULL: no memory. */
static int64_t *new_dims(struct pen_plain *p, size_t n, size_t *at)
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

/* Stores shape and chunk in the pool, and computes the grid. */
static bool settle_chunks(struct pen_plain_view *v, int64_t *dims)
{
	const unsigned n = v->a.ndim;
	const int64_t *shape = dims;
	int64_t *chunk = dims + n, *grid = chunk + n;
	uint64_t ncells = 1, ncross = 1;
	bool same = !v->a.fortran; /* chunk and row match along the axes of a
				      sample */

	for (unsigned i = 0; i < n; i++) {
		chunk[i] = (int64_t)pen__chunked_u64(v->a.dims, n + i);
		grid[i] = (shape[i] - 1) / chunk[i] + 1;
		if (__builtin_mul_overflow(ncells, (uint64_t)grid[i], &ncells))
			return false;
		if (i || v->whole) {
			ncross *= (uint64_t)grid[i];
			same &= shape[i] == chunk[i];
		}
	}
	if (!v->a.cells && ncells != v->a.nchunks)
		return false;
	v->ncross = ncross > PEN_PLAIN_UNITS ? PEN_PLAIN_UNITS + 1
					     : (uint32_t)ncross;
	v->per = v->whole || !n ? 1 : (uint32_t)chunk[0];
	v->alone = v->whole || v->per == 1 || v->n == 1;
	v->exact = same && (v->whole || v->per == 1);
	v->in_rows = same && !v->a.filters.n && !v->a.swap;
	return true;
}

static int take_field(struct binder *b, struct pen_bytes *in,
		      struct pen_plain_view *v, char *name, size_t cap)
{
	struct pen_plain *p = b->f->priv;
	int64_t *dims;
	size_t n;

	*v = (struct pen_plain_view){ .n = 1,
				      .whole = p->mode == PEN_SAMPLES_FILE };
	if (!take_name(in, name, cap))
		return damaged(b);
	v->stored = pen__take_u8(in);
	if (!pen__chunked_take(in, &v->a) || (!v->whole && !v->a.ndim) ||
	    v->a.layout == PEN_CHUNKED_GROUPED)
		return damaged(b);
	dims = new_dims(p, 3 * (size_t)v->a.ndim + 1, &v->dims);
	if (!dims)
		return pen__fail_nomem(b->err, b->f->ops->name,
				       p->cap_dims * 8);
	memset(dims, 0, (3 * (size_t)v->a.ndim + 1) * sizeof(*dims));
	for (unsigned i = 0; i < v->a.ndim; i++)
		dims[i] = (int64_t)pen__chunked_u64(v->a.dims, i);
	if (!v->whole)
		v->n = (uint64_t)dims[0];
	if (!pen__shape_bytes(dims + !v->whole, v->a.ndim - !v->whole,
			      v->a.dtype, &n))
		return damaged(b);
	v->row = n;
	if (v->a.layout == PEN_CHUNKED_GRID && !settle_chunks(v, dims))
		return damaged(b);
	return 0;
}

static uint32_t units_of(const struct pen_plain_view *v)
{
	return v->a.layout == PEN_CHUNKED_FLAT	 ? 1
	       : v->a.layout == PEN_CHUNKED_GRID ? v->ncross
						 : 0;
}

/* Working memory per thread that this field needs. */
static size_t room_of(const struct pen_plain_view *v)
{
	if (v->a.layout != PEN_CHUNKED_GRID || !v->a.filters.n)
		return 0;
	return pen__chunked_room(&v->a) +
	       (v->alone && !v->exact ? (size_t)v->a.chunk_bytes : 0);
}

static void note_units(struct binder *b, uint32_t i,
		       const struct pen_plain_view *v)
{
	struct pen_format *f = b->f;
	const bool chunks = v->a.layout == PEN_CHUNKED_GRID;

	if (units_of(v) > b->units[i])
		b->units[i] = units_of(v);
	if (room_of(v) > f->scratch_size)
		f->scratch_size = room_of(v);
	f->shares |= chunks && !v->alone && !v->in_rows;
	f->all_plain &= !v->a.swap &&
			(chunks ? v->in_rows && !v->a.cells && !v->a.objects
				: v->a.layout == PEN_CHUNKED_FLAT);
	f->uniform &= v->a.layout == PEN_CHUNKED_FLAT;
}

static int add_field(struct binder *b, struct pen_bytes *in, uint32_t i)
{
	struct pen_plain *p = b->f->priv;
	struct pen_field *fd = &b->f->field[i];
	struct pen_plain_view *v = &p->view[b->blob * b->f->nfields + i];
	char name[sizeof(fd->name)], why[192];
	struct pen_view as;
	int rc = take_field(b, in, v, name, sizeof(name));

	if (rc < 0)
		return rc;
	if (b->blob == p->first)
		memcpy(fd->name, name, sizeof(name));
	if (strcmp(fd->name, name) != 0)
		return misfit(b, P_FILES_DISAGREE, name,
			      "earlier files do not contain this data set; "
			      "list the data sets to read with fields=");
	if (v->ncross > PEN_PLAIN_UNITS)
		return misfit(b, P_OVER_LIMIT, name,
			      "a sample spans more than 4096 chunks; set "
			      "format.samples=first to read rows, or store it "
			      "in larger chunks");
	if (!pen__chunked_number(&v->a, &b->nids))
		return misfit(b, P_OVER_LIMIT, name,
			      "the data set has too many chunks");
	as = (struct pen_view){ .n = v->n,
				.row = v->row,
				.dtype = v->a.dtype,
				.ndim = (uint8_t)(v->a.ndim - !v->whole) };
	if (pen__field_widen(fd, &b->seen[i], &as,
			     p->dims + v->dims + !v->whole, why, sizeof(why)))
		return misfit(b, P_FILES_DISAGREE, name, why);
	note_units(b, i, v);
	return 0;
}

static int add_object(struct binder *b)
{
	const struct pen_span s = b->ix->blob(b->ix, b->blob);
	struct pen_bytes in = pen__bytes(s.p, s.n);
	struct pen_plain *p = b->f->priv;
	unsigned n;
	int rc = 0;

	if (!s.n) /* an object that only contains chunks */
		return 0;
	if (pen__take_u8(&in) != PEN_PLAIN_BLOB)
		return misfit(b, P_FILES_DISAGREE, "*",
			      "the file contains single cells, but earlier "
			      "files contain plain arrays");
	p->mode = pen__take_u8(&in);
	p->version = pen__take_u8(&in);
	n = pen__take_u8(&in);
	p->nleft_out += pen__take_u32(&in);
	if (in.bad ||
	    (p->mode != PEN_SAMPLES_FILE && p->mode != PEN_SAMPLES_FIRST))
		return damaged(b);
	if (n != b->f->nfields)
		return misfit(b, P_FILES_DISAGREE, "*",
			      "the number of data sets differs from earlier "
			      "files; list the data sets to read with fields=");
	b->nids = 0;
	for (uint32_t i = 0; rc >= 0 && i < n; i++)
		rc = add_field(b, &in, i);
	return rc;
}

static int settle_units(struct binder *b)
{
	struct pen_format *f = b->f;
	struct pen_plain *p = f->priv;
	uint32_t n = 0;

	for (uint32_t i = 0; i < f->nfields; i++) {
		p->unit0[i] = n;
		n += b->units[i];
		if (n > PEN_PLAIN_UNITS)
			return pen__fail(
				b->err, P_OVER_LIMIT, b->f->ops->name,
				"a sample spans more than %d chunks of its %u "
				"data sets; select fewer with fields=",
				PEN_PLAIN_UNITS, f->nfields);
	}
	p->unit0[f->nfields] = n;
	f->units_per_sample = n ? n : 1;
	f->uniform &= f->all_plain && f->nfields == 1 &&
		      f->field[0].layout == PEN_DENSE;
	return 0;
}

int pen__plain_bind(struct pen_format *f, const struct pen_index *ix,
		    struct pen_err *err)
{
	struct pen_plain *p = f->priv;
	struct binder b = { .f = f, .ix = ix, .err = err };
	struct pen_span s;
	size_t n;
	int rc;

	pen__plain_unbind(f);
	p->nleft_out = 0;
	f->ix = ix;
	f->scratch_size = 0;
	f->shares = false;
	f->all_plain = f->uniform = true;
	for (p->first = 0; p->first < ix->nblobs; p->first++)
		if (ix->blob(ix, p->first).n)
			break;
	if (p->first == ix->nblobs)
		return pen__fail(err, P_NOT_FOUND, f->ops->name,
				 "no objects found");
	s = ix->blob(ix, p->first);
	f->nfields = s.n > 3 ? s.p[3] : 0;
	if (!f->nfields || f->nfields > PEN_MAX_FIELDS)
		return damaged(&b);
	memset(f->field, 0, sizeof(f->field));
	if (!pen__mul((size_t)ix->nblobs, f->nfields, &n))
		return damaged(&b);
	p->view = pen__calloc(n, sizeof(*p->view));
	if (!p->view)
		return pen__fail_nomem(err, f->ops->name, n * sizeof(*p->view));
	for (; b.blob < ix->nblobs; b.blob++) {
		rc = add_object(&b);
		if (rc < 0)
			return rc;
	}
	return settle_units(&b);
}

void pen__plain_unbind(struct pen_format *f)
{
	struct pen_plain *p = f->priv;

	pen__free(p->view);
	pen__free(p->dims);
	p->view = NULL;
	p->dims = NULL;
	p->ndims = p->cap_dims = 0;
}
