/*
 * HDF5: data sets are fields, the first axis counts samples. Contiguous data
 * is read in place, row by row; so are rows of chunks that are not filtered. Of
 * filtered chunks each is fetched and unpacked once for all samples that need
 * it, or, when it belongs to one sample, straight into its row. Chunks that
 * were never written read as the fill value. libhdf5 is not involved: see
 * hdf5.h for the reader and what it refuses.
 */
#include <stdio.h>

#include "format/hdf5/hdf5_fields.h"

static const char *const samples_choices[] = { "auto", "file", "first", NULL };
static const char *const compressions[] = { "none", "gzip", "lzf", NULL };

static const struct pen_opt hdf5_opts[] = {
	{ .name = "samples",
	  .type = PEN_OPT_ENUM,
	  .off = offsetof(struct pen_h5_format, samples),
	  .dflt = "auto",
	  .help = "what is a sample: the file, or a step along the first axis "
		  "of every data set (auto: that)",
	  .choices = samples_choices },
	{ .name = "fields",
	  .type = PEN_OPT_STR,
	  .off = offsetof(struct pen_h5_format, fields),
	  .help = "data sets to read, a/x,a/y,...; all numeric ones as long as "
		  "the largest when empty" },
	{ .name = "chunk",
	  .type = PEN_OPT_STR,
	  .off = offsetof(struct pen_h5_format, chunk),
	  .help = "writing: chunk shape with the axis of samples, 1x64x64; "
		  "contiguous when empty" },
	{ .name = "maxshape",
	  .type = PEN_OPT_STR,
	  .off = offsetof(struct pen_h5_format, maxshape),
	  .help = "writing: how far the axes after that of samples may grow, "
		  "64x64; not beyond their lengths when empty" },
	{ .name = "compression",
	  .type = PEN_OPT_ENUM,
	  .off = offsetof(struct pen_h5_format, compression),
	  .dflt = "none",
	  .help = "writing: how chunks are compressed",
	  .choices = compressions },
	{ .name = "level",
	  .type = PEN_OPT_INT,
	  .off = offsetof(struct pen_h5_format, level),
	  .dflt = "4",
	  .help = "writing: how hard gzip tries",
	  .min = 0,
	  .max = 9 },
	{ .name = "shuffle",
	  .type = PEN_OPT_BOOL,
	  .off = offsetof(struct pen_h5_format, shuffle),
	  .dflt = "false",
	  .help = "writing: shuffle bytes before compressing" },
	{ .name = "num_dset",
	  .type = PEN_OPT_INT,
	  .off = offsetof(struct pen_h5_format, num_dset),
	  .dflt = "1",
	  .help = "writing: cut the first field's samples into records_0, "
		  "records_1, ... along their first axis",
	  .min = 1,
	  .max = PEN_MAX_FIELDS - 1 },
	{ .name = "labels",
	  .type = PEN_OPT_BOOL,
	  .off = offsetof(struct pen_h5_format, labels),
	  .dflt = "true",
	  .help = "writing: add labels (int64 zeros), as DLIO does, when there "
		  "is one field" },
	{ .name = NULL },
};

static const struct pen_h5_view *view_of(const struct pen_format *f,
					 uint32_t object, uint32_t field)
{
	const struct pen_h5_format *p = f->priv;

	return &p->view[f->ix->blob_of(f->ix, object) * f->nfields + field];
}

static const int64_t *dims_of(const struct pen_format *f,
			      const struct pen_h5_view *v)
{
	const struct pen_h5_format *p = f->priv;

	return p->dims + v->dims;
}

static void hdf5_shape(const struct pen_format *f, uint32_t object, uint64_t k,
		       uint32_t field, int64_t *shape)
{
	const struct pen_h5_view *v = view_of(f, object, field);

	(void)k;
	memcpy(shape, dims_of(f, v) + !v->whole,
	       (size_t)(v->ndim - !v->whole) * sizeof(*shape));
}

/* ---- locate ---- */

static uint64_t load(const uint8_t *p, uint64_t i, unsigned width)
{
	struct pen_bytes b = pen__bytes(p + i * width, width);

	return pen__take_le(&b, width);
}

/* The place in the map of the first chunk whose cell is not before this. */
static uint64_t first_from(const struct pen_h5_view *v, uint64_t cell)
{
	uint64_t lo = 0, hi = v->nchunks;

	if (!v->cells)
		return cell;
	while (lo < hi) {
		uint64_t mid = lo + (hi - lo) / 2;

		if (load(v->cells, mid, 8) < cell)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static struct pen_unit chunk_unit(const struct pen_h5_view *v, uint64_t i)
{
	struct pen_unit u = {
		.offset = load(v->offsets, i, 8),
		.len = v->sizes ? load(v->sizes, i, 4) : v->chunk_bytes,
		.size = v->chunk_bytes,
	};

	if (!v->alone)
		u.flags = PEN_UNIT_SHARED | (v->pipe.n ? PEN_UNIT_PACKED : 0);
	return u;
}

/* The cells of a sample follow one another, in the grid and in the map. */
static void locate_chunks(const struct pen_h5_view *v, uint64_t k,
			  struct pen_unit *units)
{
	const uint64_t cell = v->whole ? 0 : k / v->per * v->ncross;
	uint64_t i = first_from(v, cell);

	for (uint32_t j = 0; j < v->ncross; j++) {
		const bool there =
			i < v->nchunks &&
			(!v->cells || load(v->cells, i, 8) == cell + j);

		if (!there) {
			units[j].object = PEN_NO_OBJECT;
			continue;
		}
		units[j] = chunk_unit(v, i);
		units[j].id = v->id0 + i++;
		if (!v->in_rows)
			continue;
		units[j].offset += k % v->per * v->row;
		units[j].len = v->row;
		units[j].flags = PEN_UNIT_PLAIN;
	}
}

static void hdf5_locate(const struct pen_format *f, uint32_t object, uint64_t k,
			struct pen_unit *units)
{
	const struct pen_h5_format *p = f->priv;

	for (uint32_t i = 0; i < f->units_per_sample; i++)
		units[i] = (struct pen_unit){ .object = PEN_NO_OBJECT };
	for (uint32_t i = 0; i < f->nfields; i++) {
		const struct pen_h5_view *v = view_of(f, object, i);
		struct pen_unit *u = units + p->unit0[i];
		uint32_t n = 1;

		if (v->kind == PEN_H5_EMPTY || v->kind == PEN_H5_KEPT)
			continue;
		u->object = object;
		if (v->kind == PEN_H5_FLAT) {
			u->offset = v->at + k * v->row;
			u->len = v->row;
			u->flags = v->swap ? 0 : PEN_UNIT_PLAIN;
		} else {
			locate_chunks(v, k, u);
			n = v->ncross;
		}
		for (uint32_t j = 0; j < n; j++) {
			u[j].field = (uint16_t)i;
			u[j].id |= (uint64_t)object << 32;
			if (u[j].object != PEN_NO_OBJECT)
				u[j].object = object;
		}
	}
}

/* ---- unpack and emit ---- */

static int chunk_fail(const struct pen_format *f, const struct pen_unit *u,
		      const char *what, struct pen_err *err)
{
	char name[256], where[336];

	f->ix->name_of(f->ix, u->object, name, sizeof(name));
	snprintf(where, sizeof(where), "%s:%s", name, f->field[u->field].name);
	return pen__fail(err, PEN_EDATA, where, "%s", what);
}

static int unpack(const struct pen_format *f, const struct pen_unit *u,
		  struct pen_span raw, void *out, struct pen_scratch *s,
		  struct pen_err *err)
{
	const struct pen_h5_view *v = view_of(f, u->object, u->field);
	const uint32_t i = (uint32_t)u->id - v->id0;
	const struct pen_h5_run run = {
		.pipe = &v->pipe,
		.mask = v->masks ? (uint32_t)load(v->masks, i, 4) : 0,
		.room = s->mem,
		.scratch = s,
	};
	const char *why;
	int rc;

	if (s->size < pen__h5_pipe_room(&v->pipe, v->chunk_bytes))
		return chunk_fail(f, u, "no room to unpack", err);
	rc = pen__h5_pipe_run(&run, raw, out, (size_t)v->chunk_bytes, &why);
	if (rc == PEN_ENOMEM)
		return pen__fail_nomem(err, "hdf5", 0);
	return rc < 0 ? chunk_fail(f, u, why, err) : 0;
}

static int hdf5_unpack(const struct pen_format *f, const struct pen_unit *u,
		       struct pen_span raw, void *out, struct pen_scratch *s,
		       struct pen_err *err)
{
	return unpack(f, u, raw, out, s, err);
}

static void copy_items(const struct pen_h5_view *v, uint8_t *dst,
		       const uint8_t *src, size_t n)
{
	const size_t item = pen_dtype_size(v->dtype);
	struct pen_tile t = { .ni = 1, .nj = n / item, .src_j = item };

	if (!src)
		for (size_t i = 0; i < n; i += item)
			memcpy(dst + i, v->fill, item);
	else if (!v->swap)
		memcpy(dst, src, n);
	else
		pen__tile_copy(&t, item, pen__swap_size(v->dtype), dst, src);
}

static void swap_row(const struct pen_h5_view *v, uint8_t *p, size_t n)
{
	const size_t size = pen__swap_size(v->dtype);

	for (size_t i = 0; i < n; i += size) {
		for (size_t j = 0; j < size / 2; j++) {
			const uint8_t c = p[i + j];

			p[i + j] = p[i + size - 1 - j];
			p[i + size - 1 - j] = c;
		}
	}
}

/*
 * What cell number `cell` of a sample holds of it, into its place in the row.
 * src: the chunk's bytes where the sample begins in it; NULL: fill value.
 */
static void copy_cell(const struct pen_h5_view *v, const int64_t *dims,
		      uint32_t cell, const uint8_t *src, uint8_t *dst)
{
	const unsigned a = !v->whole;
	const int64_t *shape = dims, *chunk = dims + v->ndim;
	const int64_t *grid = chunk + v->ndim;
	uint64_t len[PEN_MAX_DIMS], at[PEN_MAX_DIMS] = { 0 };
	uint64_t to[PEN_MAX_DIMS], from[PEN_MAX_DIMS];
	uint64_t run = pen_dtype_size(v->dtype), dn = run, sn = run, off = 0;
	unsigned inner = v->ndim; /* axes from here on are one run */
	bool flat = true;

	for (unsigned i = v->ndim; i-- > a;) {
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

/* The bytes of one chunk, unpacked if that is still to be done. */
static int chunk_data(const struct pen_format *f, const struct pen_row *r,
		      const struct pen_h5_view *v, uint32_t unit,
		      const uint8_t **out, struct pen_err *err)
{
	const struct pen_unit *u = &r->units[unit];
	const struct pen_span s = r->data[unit];
	const size_t room = pen__h5_pipe_room(&v->pipe, v->chunk_bytes);
	uint8_t *mem = r->scratch->mem;

	*out = s.p;
	if (v->pipe.n && v->alone) {
		if (r->scratch->size < room + v->chunk_bytes)
			return chunk_fail(f, u, "no room to unpack", err);
		*out = mem + room;
		return unpack(f, u, s, mem + room, r->scratch, err);
	}
	if (s.n != v->chunk_bytes)
		return chunk_fail(f, u, "the bytes read are not the chunk's",
				  err);
	return 0;
}

static int emit_chunks(const struct pen_format *f, const struct pen_row *r,
		       const struct pen_h5_view *v, uint32_t unit0,
		       uint8_t *dst, struct pen_err *err)
{
	const uint64_t skip =
		v->whole ? 0 : r->k % v->per * (v->chunk_bytes / v->per);

	for (uint32_t j = 0; j < v->ncross; j++) {
		const struct pen_unit *u = &r->units[unit0 + j];
		const uint8_t *src = NULL;
		int rc = 0;

		if (u->object != PEN_NO_OBJECT && v->in_rows)
			continue; /* already in its row */
		if (u->object != PEN_NO_OBJECT && v->exact && v->pipe.n) {
			rc = unpack(f, u, r->data[unit0 + j], dst, r->scratch,
				    err);
			if (rc < 0)
				return rc;
			if (v->swap)
				swap_row(v, dst, (size_t)v->row);
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

static int hdf5_emit(const struct pen_format *f, const struct pen_row *r,
		     struct pen_err *err)
{
	const struct pen_h5_format *p = f->priv;

	for (uint32_t i = 0; i < f->nfields; i++) {
		const struct pen_h5_view *v = view_of(f, r->object, i);
		const uint32_t u = p->unit0[i];
		int rc = 0;

		if (r->dst_len[i] != v->row ||
		    (v->kind == PEN_H5_FLAT && v->swap &&
		     r->data[u].n != v->row))
			return pen__object_fail(f, r->object, NULL,
						"the bytes read are not the "
						"sample's",
						err);
		if (v->kind == PEN_H5_EMPTY)
			copy_items(v, r->dst[i], NULL, (size_t)v->row);
		else if (v->kind == PEN_H5_KEPT)
			copy_items(v, r->dst[i], v->kept + r->k * v->row,
				   (size_t)v->row);
		else if (v->kind == PEN_H5_CHUNKS)
			rc = emit_chunks(f, r, v, u, r->dst[i], err);
		else if (v->swap)
			copy_items(v, r->dst[i], r->data[u].p, (size_t)v->row);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static const char *const hdf5_suffixes[] = { ".h5", ".hdf5", ".he5", NULL };

const struct pen_format_ops pen__format_hdf5 = {
	.name = "hdf5",
	.help = "HDF5 file: data sets are fields, their first axis samples",
	.suffixes = hdf5_suffixes,
	.opts = hdf5_opts,
	.priv_size = sizeof(struct pen_h5_format),
	.close = pen__h5_unbind,
	.index = pen__h5_index,
	.bind = pen__h5_bind,
	.shape = hdf5_shape,
	.locate = hdf5_locate,
	.unpack = hdf5_unpack,
	.emit = hdf5_emit,
	.describe = pen__h5_describe,
	.write = pen__h5_write,
};
