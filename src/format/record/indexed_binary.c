/*
 * DLIO's indexed_binary: consecutive samples in FILE, their offsets in
 * FILE.off.idx and their sizes in FILE.sz.idx, as little-endian u64. Samples
 * are bytes, or arrays of the type given by the options; sizes may differ.
 * Every sample is read straight into its row.
 *
 * Rejects index files of different lengths and samples outside the file.
 * Samples may overlap or leave gaps: DLIO writes such files, and its reader
 * trusts the index.
 */
#include "format/record/indexed_binary.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/mem.h"
#include "format/array.h"
#include "format/value.h"

#define OFFSETS ".off.idx"
#define SIZES ".sz.idx"

/* EVEN: sizes and steps are constant, so the blob has three numbers. */
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
	  .help = "data type of the elements: uint8, int32, float32, ..." },
	{ .name = "shape",
	  .type = PEN_OPT_STR,
	  .off = offsetof(struct pen_indexed, shape),
	  .help = "shape of a sample, such as 3x224x224 (default: one axis)" },
	{ .name = NULL },
};

int pen__indexed_open(struct pen_format *f, struct pen_err *err)
{
	struct pen_indexed *p = f->priv;

	return pen__parse_array(p->dtype, p->shape, &p->a, err);
}

void pen__indexed_close(struct pen_format *f)
{
	struct pen_indexed *p = f->priv;

	pen__free(p->part);
	p->part = NULL;
}

/* ---- index ---- */

static int read_index(struct pen_peek *pk, const char *suffix,
		      struct pen_buf *out, struct pen_err *err)
{
	/* at most one sample per byte, plus some empty ones */
	const uint64_t limit = pk->size < UINT64_MAX / 16
				       ? pk->size * 8 + (1u << 20)
				       : UINT64_MAX;
	int rc = PEN_ENOTFOUND;

	if (pk->read_side)
		rc = pk->read_side(pk, suffix, limit, out, err);
	if (rc == PEN_ENOTFOUND)
		return pen__fail(err, P_BAD_INDEX, pk->name,
				 "the index is missing: there is no file of "
				 "this name followed by %s; set format=raw to "
				 "read fixed-size records without an index",
				 suffix);
	if (!rc && out->n % 8)
		rc = pen__fail(err, P_BAD_INDEX, pk->name,
			       "the index %s has %zu bytes, which is not a "
			       "whole number of entries",
			       suffix, out->n);
	return rc;
}

static int check_sample(const struct pen_indexed *p, struct pen_peek *pk,
			uint64_t k, uint64_t off, uint64_t size,
			struct pen_err *err)
{
	if (off > pk->size || size > pk->size - off)
		return pen__fail(err, P_TRUNCATED, pk->name,
				 "sample %" PRIu64
				 " is outside the file: %" PRIu64
				 " bytes at offset %" PRIu64
				 ", but the file has %" PRIu64,
				 k, size, off, pk->size);
	if (p->a.ndim ? size != p->a.nbytes : size % pen_dtype_size(p->a.dtype))
		return pen__fail(err, P_DAMAGED, pk->name,
				 "sample %" PRIu64 " has %" PRIu64
				 " bytes, which does not match format.dtype= "
				 "and format.shape=",
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
		const uint64_t at = pen__u64_at(off->p, k);
		const uint64_t size = pen__u64_at(sizes->p, k);
		int rc = check_sample(p, pk, k, at, size, err);

		if (rc)
			return rc;
		if (!k)
			continue;
		if (k == 1)
			step = at - pen__u64_at(off->p, 0);
		*even = *even && size == pen__u64_at(sizes->p, 0) &&
			step >= size && at > pen__u64_at(off->p, k - 1) &&
			at - pen__u64_at(off->p, k - 1) == step;
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
	pen__buf_le(b, n ? pen__u64_at(off->p, 0) : 0, 8);
	pen__buf_le(b,
		    n > 1 ? pen__u64_at(off->p, 1) - pen__u64_at(off->p, 0) : 0,
		    8);
	pen__buf_le(b, n ? pen__u64_at(sizes->p, 0) : 0, 8);
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
		rc = pen__fail(
			err, P_BAD_INDEX, pk->name,
			"the two index files differ: %zu offsets, %zu sizes",
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
	return t->sizes ? pen__u64_at(t->sizes, k) : t->size;
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

		/* objects excluded by on_error=skip have an empty blob */
		if (ix->blob(ix, i).n && !take_part(ix->blob(ix, i), t))
			return pen__fail(err, P_BAD_INDEX, "indexed_binary",
					 "the index entry is damaged");
		even = even && !t->off && (t->n < 2 || t->step == t->size);
		for (uint64_t k = 0; k < (t->off ? t->n : !!t->n); k++) {
			most = size_of(t, k) > most ? size_of(t, k) : most;
			least = size_of(t, k) < least ? size_of(t, k) : least;
		}
	}
	*d = (struct pen_field){
		.name = "x", .dtype = p->a.dtype, .ndim = 1, .max_bytes = most
	};
	d->shape[0] = most == least
			      ? (int64_t)(most / pen_dtype_size(p->a.dtype))
			      : -1;
	if (p->a.ndim) {
		d->ndim = p->a.ndim;
		memcpy(d->shape, p->a.shape, p->a.ndim * sizeof(*p->a.shape));
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
	if (p->a.ndim)
		memcpy(shape, p->a.shape, p->a.ndim * sizeof(*p->a.shape));
	else
		shape[0] = (int64_t)(size_of(part_of(f, object), k) /
				     pen_dtype_size(p->a.dtype));
}

void pen__indexed_locate(const struct pen_format *f, uint32_t object,
			 uint64_t k, struct pen_unit *u)
{
	const struct pen_indexed_part *t = part_of(f, object);

	*u = (struct pen_unit){
		.offset = t->off ? pen__u64_at(t->off, k)
				 : t->first + k * t->step,
		.len = size_of(t, k),
		.object = object,
		.flags = PEN_UNIT_PLAIN,
	};
}

/* Every unit is PLAIN, so nothing is left to do. */
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
			back |= pen__u64_at(t->off, k) <
				pen__u64_at(t->off, k - 1) + size_of(t, k - 1);
	}
	d->fact(d->arg, "index",
		f->uniform ? "records of one size"
			   : "an offset and a size each");
	d->fact(d->arg, "compression", "none");
	if (back)
		d->advice(d->arg,
			  "samples overlap or are out of order: the index may "
			  "be wrong (DLIO restarts offsets at 0 after each "
			  "buffer); regenerate the data");
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

	rc = pen__table_single(f, t, &row, &all, err);
	if (rc)
		return rc;
	if (!out->side)
		return pen__fail(err, P_CANNOT_WRITE_THIS, "indexed_binary",
				 "the index needs separate files, which this "
				 "output cannot create");
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
	.help = "consecutive samples with an index in separate files",
	.suffixes = suffixes,
	PEN_INDEXED_OPS,
};
