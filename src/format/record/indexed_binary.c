/*
 * DLIO's indexed_binary: samples one after another in FILE, their offsets in
 * FILE.off.idx and their sizes in FILE.sz.idx, a little-endian u64 each. The
 * samples are bytes, or arrays of one type when the options say so; sizes may
 * differ. Every sample is read straight into its row.
 *
 * Refuses indices of different lengths and samples outside the file. Samples
 * may overlap or leave gaps: DLIO's own writer makes such files, and its
 * reader believes the index.
 */
#include "format/record/indexed_binary.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/mem.h"
#include "format/array.h"
#include "format/value.h"

#define OFFSETS ".off.idx"
#define SIZES ".sz.idx"

/* EVEN: all sizes and all steps are equal, so the blob is three numbers. */
enum { EVEN, ANY };

struct pen_indexed_part {
	uint64_t n;
	uint64_t first, step, size; /* EVEN */
	const uint8_t *off, *sizes; /* ANY: n u64 each */
};

const struct pen_opt pen__indexed_opts[] = {
	{ .name = "dtype",
	  .type = PEN_OPT_STR,
	  .off = offsetof(struct pen_indexed, dtype),
	  .dflt = "uint8",
	  .help = "type of an item: uint8, int32, float32, ..." },
	{ .name = "shape",
	  .type = PEN_OPT_STR,
	  .off = offsetof(struct pen_indexed, shape),
	  .help = "shape of a sample, 3x224x224; one axis when empty" },
	{ .name = NULL },
};

int pen__indexed_open(struct pen_format *f, struct pen_err *err)
{
	struct pen_indexed *p = f->priv;
	int rc = pen__parse_dtype(p->dtype, &p->type, err);

	if (rc < 0 || !p->shape)
		return rc;
	rc = pen__parse_shape(p->shape, p->dims, &p->ndim, err);
	if (rc < 0)
		return rc;
	if (!pen__shape_bytes(p->dims, p->ndim, p->type, &p->row))
		return pen__fail(err, PEN_EINVAL, "shape",
				 "a sample is larger than any file");
	return 0;
}

void pen__indexed_close(struct pen_format *f)
{
	struct pen_indexed *p = f->priv;

	pen__free(p->part);
	p->part = NULL;
}

static uint64_t u64_at(const uint8_t *p, uint64_t i)
{
	uint64_t v;

	memcpy(&v, p + i * 8, 8); /* this is a little-endian machine */
	return v;
}

/* ---- index ---- */

static int read_index(struct pen_peek *pk, const char *suffix,
		      struct pen_buf *out, struct pen_err *err)
{
	/* at most a sample a byte, and some that are empty */
	const uint64_t limit = pk->size < UINT64_MAX / 16
				       ? pk->size * 8 + (1u << 20)
				       : UINT64_MAX;
	int rc = PEN_ENOTFOUND;

	if (pk->read_side)
		rc = pk->read_side(pk, suffix, limit, out, err);
	if (rc == PEN_ENOTFOUND)
		return pen__fail(err, PEN_EDATA, pk->name,
				 "its index is missing: there is no file of "
				 "this name with %s after it; format=raw reads "
				 "records of one size without",
				 suffix);
	if (!rc && out->n % 8)
		rc = pen__fail(err, PEN_EDATA, pk->name,
			       "its index %s has %zu bytes, which are not a "
			       "whole number of entries",
			       suffix, out->n);
	return rc;
}

static int check_sample(const struct pen_indexed *p, struct pen_peek *pk,
			uint64_t k, uint64_t off, uint64_t size,
			struct pen_err *err)
{
	if (off > pk->size || size > pk->size - off)
		return pen__fail(err, PEN_EDATA, pk->name,
				 "sample %" PRIu64 " is outside: %" PRIu64
				 " bytes at %" PRIu64 ", and the file has "
				 "%" PRIu64,
				 k, size, off, pk->size);
	if (p->row ? size != p->row : size % pen_dtype_size(p->type))
		return pen__fail(err, PEN_EDATA, pk->name,
				 "sample %" PRIu64 " has %" PRIu64 " bytes, "
				 "which are not what format.dtype= and "
				 "format.shape= say",
				 k, size);
	return 0;
}

static int check_all(const struct pen_indexed *p, struct pen_peek *pk,
		     const struct pen_buf *off, const struct pen_buf *sizes,
		     bool *even, struct pen_err *err)
{
	const uint64_t n = off->n / 8;
	uint64_t step = 0;

	*even = true;
	for (uint64_t k = 0; k < n; k++) {
		const uint64_t at = u64_at(off->p, k);
		const uint64_t size = u64_at(sizes->p, k);
		int rc = check_sample(p, pk, k, at, size, err);

		if (rc)
			return rc;
		if (!k)
			continue;
		if (k == 1)
			step = at - u64_at(off->p, 0);
		*even = *even && size == u64_at(sizes->p, 0) && step >= size &&
			at > u64_at(off->p, k - 1) &&
			at - u64_at(off->p, k - 1) == step;
	}
	return 0;
}

static void put_blob(struct pen_buf *b, const struct pen_buf *off,
		     const struct pen_buf *sizes, bool even)
{
	const uint64_t n = off->n / 8;

	pen__buf_le(b, n, 8);
	pen__buf_le(b, even ? EVEN : ANY, 1);
	if (!even) {
		pen__buf_put(b, off->p, off->n);
		pen__buf_put(b, sizes->p, sizes->n);
		return;
	}
	pen__buf_le(b, n ? u64_at(off->p, 0) : 0, 8);
	pen__buf_le(b, n > 1 ? u64_at(off->p, 1) - u64_at(off->p, 0) : 0, 8);
	pen__buf_le(b, n ? u64_at(sizes->p, 0) : 0, 8);
}

int pen__indexed_index(const struct pen_format *f, struct pen_peek *pk,
		       struct pen_found *found, struct pen_err *err)
{
	struct pen_buf off = { 0 }, sizes = { 0 };
	bool even;
	int rc = read_index(pk, OFFSETS, &off, err);

	if (!rc)
		rc = read_index(pk, SIZES, &sizes, err);
	if (!rc && off.n != sizes.n)
		rc = pen__fail(err, PEN_EDATA, pk->name,
			       "its indices differ: %zu offsets, %zu sizes",
			       off.n / 8, sizes.n / 8);
	if (!rc)
		rc = check_all(f->priv, pk, &off, &sizes, &even, err);
	if (!rc) {
		found->nsamples = off.n / 8;
		put_blob(&found->blob, &off, &sizes, even);
		if (found->blob.bad)
			rc = pen__fail_nomem(err, pk->name, off.n * 2);
	}
	pen__buf_fini(&off);
	pen__buf_fini(&sizes);
	return rc;
}

/* ---- reading ---- */

static bool take_part(struct pen_span s, struct pen_indexed_part *t)
{
	struct pen_bytes b = pen__bytes(s.p, s.n);

	t->n = pen__take_u64(&b);
	if (pen__take_u8(&b) == EVEN) {
		t->first = pen__take_u64(&b);
		t->step = pen__take_u64(&b);
		t->size = pen__take_u64(&b);
		return !b.bad;
	}
	if (t->n > pen__bytes_left(&b) / 16)
		return false;
	t->off = pen__take(&b, t->n * 8);
	t->sizes = pen__take(&b, t->n * 8);
	return !b.bad && t->off && t->sizes;
}

static uint64_t size_of(const struct pen_indexed_part *t, uint64_t k)
{
	return t->sizes ? u64_at(t->sizes, k) : t->size;
}

int pen__indexed_bind(struct pen_format *f, const struct pen_index *ix,
		      struct pen_err *err)
{
	struct pen_indexed *p = f->priv;
	struct pen_field *d = &f->field[0];
	uint64_t most = 0, least = UINT64_MAX;
	bool even = true;

	pen__indexed_close(f);
	f->ix = ix;
	p->part = pen__calloc((size_t)ix->nblobs, sizeof(*p->part));
	if (!p->part)
		return pen__fail_nomem(err, "indexed_binary", ix->nblobs);
	for (uint64_t i = 0; i < ix->nblobs; i++) {
		struct pen_indexed_part *t = &p->part[i];

		/* those left out by on_error=skip have an empty blob */
		if (ix->blob(ix, i).n && !take_part(ix->blob(ix, i), t))
			return pen__fail(err, PEN_EDATA, "indexed_binary",
					 "damaged index entry");
		even = even && !t->off && (t->n < 2 || t->step == t->size);
		for (uint64_t k = 0; k < (t->off ? t->n : !!t->n); k++) {
			most = size_of(t, k) > most ? size_of(t, k) : most;
			least = size_of(t, k) < least ? size_of(t, k) : least;
		}
	}
	*d = (struct pen_field){
		.name = "x", .dtype = p->type, .ndim = 1, .max_bytes = most
	};
	d->shape[0] = most == least ? (int64_t)(most / pen_dtype_size(p->type))
				    : -1;
	if (p->ndim) {
		d->ndim = p->ndim;
		memcpy(d->shape, p->dims, p->ndim * sizeof(*p->dims));
	}
	f->nfields = f->units_per_sample = 1;
	f->all_plain = true;
	f->uniform = even && most == least;
	return 0;
}

static const struct pen_indexed_part *part_of(const struct pen_format *f,
					      uint32_t object)
{
	const struct pen_indexed *p = f->priv;

	return &p->part[f->ix->blob_of(f->ix, object)];
}

void pen__indexed_shape(const struct pen_format *f, uint32_t object, uint64_t k,
			uint32_t field, int64_t *shape)
{
	const struct pen_indexed *p = f->priv;

	(void)field;
	if (p->ndim)
		memcpy(shape, p->dims, p->ndim * sizeof(*p->dims));
	else
		shape[0] = (int64_t)(size_of(part_of(f, object), k) /
				     pen_dtype_size(p->type));
}

void pen__indexed_locate(const struct pen_format *f, uint32_t object,
			 uint64_t k, struct pen_unit *u)
{
	const struct pen_indexed_part *t = part_of(f, object);

	*u = (struct pen_unit){
		.offset = t->off ? u64_at(t->off, k) : t->first + k * t->step,
		.len = size_of(t, k),
		.object = object,
		.flags = PEN_UNIT_PLAIN,
	};
}

/* Every unit is PLAIN: what is to be done has been done. */
int pen__indexed_emit(const struct pen_format *f, const struct pen_row *r,
		      struct pen_err *err)
{
	(void)f;
	(void)r;
	(void)err;
	return 0;
}

void pen__indexed_describe(const struct pen_format *f, struct pen_describe *d)
{
	const struct pen_indexed *p = f->priv;
	bool back = false;

	for (uint64_t i = 0; i < f->ix->nblobs; i++) {
		const struct pen_indexed_part *t = &p->part[i];

		for (uint64_t k = 1; t->off && k < t->n; k++)
			back |= u64_at(t->off, k) <
				u64_at(t->off, k - 1) + size_of(t, k - 1);
	}
	d->fact(d->arg, "index",
		f->uniform ? "records of one size"
			   : "an offset and a size each");
	d->fact(d->arg, "compression", "none");
	if (back)
		d->advice(d->arg, "samples overlap or go backwards: the index "
				  "may be wrong (DLIO starts offsets at 0 "
				  "again after each buffer); make the data "
				  "again");
}

/* ---- writing ---- */

static int put_numbers(struct pen_out *out, uint64_t n, uint64_t step,
		       uint64_t first, struct pen_err *err)
{
	uint64_t piece[512];
	int rc = 0;

	for (uint64_t k = 0; k < n && rc >= 0;) {
		size_t m = 0;

		for (; m < 512 && k < n; m++, k++)
			piece[m] = first + k * step;
		rc = out->write(out, piece, m * 8, err);
	}
	return rc;
}

int pen__indexed_write(const struct pen_format *f, const struct pen_table *t,
		       struct pen_out *out, struct pen_err *err)
{
	struct pen_out *off, *sizes;
	size_t row, all;
	int rc;

	(void)f;
	if (t->nfields != 1)
		return pen__fail(err, PEN_EINVAL, "indexed_binary",
				 "holds one array, not %u", t->nfields);
	if (!pen__shape_bytes(t->field->shape, t->field->ndim, t->field->dtype,
			      &row) ||
	    !pen__mul(row, (size_t)t->nsamples, &all))
		return pen__fail(err, PEN_EINVAL, "indexed_binary",
				 "samples of this shape cannot be written");
	if (!out->side)
		return pen__fail(err, PEN_EINVAL, "indexed_binary",
				 "needs files for its index, which cannot be "
				 "made here");
	off = out->side(out, OFFSETS, err);
	sizes = off ? out->side(out, SIZES, err) : NULL;
	if (!sizes)
		return err ? err->code : PEN_EIO;
	rc = put_numbers(off, t->nsamples, row, 0, err);
	if (rc >= 0)
		rc = put_numbers(sizes, t->nsamples, 0, row, err);
	return rc < 0 || !all ? rc : pen__table_put(t, 0, out, err);
}

static const char *const suffixes[] = { ".indexed_binary", NULL };

const struct pen_format_ops pen__format_indexed_binary = {
	.name = "indexed_binary",
	.help = "samples one after another, an index of them beside the file",
	.suffixes = suffixes,
	.opts = pen__indexed_opts,
	.priv_size = sizeof(struct pen_indexed),
	.open = pen__indexed_open,
	.close = pen__indexed_close,
	.index = pen__indexed_index,
	.bind = pen__indexed_bind,
	.shape = pen__indexed_shape,
	.locate = pen__indexed_locate,
	.emit = pen__indexed_emit,
	.describe = pen__indexed_describe,
	.write = pen__indexed_write,
};
