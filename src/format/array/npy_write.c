/*
 * The npy writer: version 1.0 and C order, byte for byte what np.save writes. A
 * header of 32 axes of 20 digits is far below the 65,535 bytes of version 1.0.
 */
#include "format/array/npy.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/mem.h"

#define GROWTH_DIGITS 21 /* room NumPy reserves to let axis 0 grow in place */
#define PIECE ((size_t)256 << 10)

static const char *const descrs[PEN_NDTYPES] = {
	[PEN_BOOL] = "|b1",  [PEN_I8] = "|i1",	[PEN_U8] = "|u1",
	[PEN_I16] = "<i2",   [PEN_U16] = "<u2", [PEN_I32] = "<i4",
	[PEN_U32] = "<u4",   [PEN_I64] = "<i8", [PEN_U64] = "<u8",
	[PEN_F16] = "<f2",   [PEN_F32] = "<f4", [PEN_F64] = "<f8",
	[PEN_F80] = "<f16",  [PEN_C64] = "<c8", [PEN_C128] = "<c16",
	[PEN_C160] = "<c32",
};

void pen__npy_header(struct pen_buf *b, enum pen_dtype t, const int64_t *shape,
		     uint32_t ndim)
{
	struct pen_buf d = { 0 };
	size_t digits, pad = 0;

	pen__buf_printf(&d,
			"{'descr': '%s', 'fortran_order': False, "
			"'shape': (",
			descrs[t]);
	for (uint32_t i = 0; i < ndim; i++)
		pen__buf_printf(&d, "%s%" PRId64, i ? ", " : "", shape[i]);
	pen__buf_str(&d, ndim == 1 ? ",), }" : "), }");
	if (ndim) {
		char text[24];

		digits = (size_t)snprintf(text, sizeof(text), "%" PRId64,
					  shape[0]);
		pad = GROWTH_DIGITS > digits ? GROWTH_DIGITS - digits : 0;
	}
	/* 10 bytes precede the text and a newline ends it; at least one byte of
	 * padding */
	pad += 64 - (10 + d.n + pad + 1) % 64;
	pen__buf_put(b, "\x93NUMPY\x01\x00", 8);
	pen__buf_le(b, d.n + pad + 1, 2);
	pen__buf_put(b, d.p, d.n);
	pen__buf_printf(b, "%*s\n", (int)pad, "");
	b->bad |= d.bad;
	pen__buf_fini(&d);
}

int pen__npy_write_mode(const struct pen_table *t, int option,
			enum pen_samples *out, struct pen_err *err)
{
	*out = (enum pen_samples)option;
	if (option == PEN_SAMPLES_AUTO)
		*out = t->nsamples == 1 ? PEN_SAMPLES_FILE : PEN_SAMPLES_FIRST;
	if (*out == PEN_SAMPLES_FILE && t->nsamples != 1)
		return pen__fail(err, P_BAD_VALUE, "samples",
				 "format.samples=file writes one sample per "
				 "file, not %" PRIu64
				 "; set format.samples=first or last",
				 t->nsamples);
	return 0;
}

/*
 * Samples last: element i of every sample, then element i + 1, in pieces of at
 * most PIECE bytes that contain entire lines of n samples if these fit.
 */
static int write_transposed(const uint8_t *data, uint64_t n, size_t row,
			    size_t item, struct pen_out *out,
			    struct pen_err *err)
{
	const size_t nitems = row / item;
	const size_t nj = n < PIECE / item ? (size_t)n : PIECE / item;
	const size_t ni = PIECE / item / nj;
	uint8_t *piece = pen__alloc(PIECE, 1);
	int rc = 0;

	if (!piece)
		return pen__fail_nomem(err, "npy", PIECE);
	for (size_t i = 0; i < nitems && rc >= 0; i += ni) {
		for (uint64_t j = 0; j < n && rc >= 0; j += nj) {
			struct pen_tile t = {
				.ni = nitems - i < ni ? nitems - i : ni,
				.nj = n - j < nj ? (size_t)(n - j) : nj,
				.src_i = item,
				.src_j = row,
			};

			t.dst_i = t.nj * item;
			pen__tile_copy(&t, item, 0, piece,
				       data + j * row + i * item);
			rc = out->write(out, piece, t.ni * t.nj * item, err);
		}
	}
	pen__free(piece);
	return rc;
}

/* Header and size of the array; false if it is not a valid array. */
static bool head_of(const struct pen_table *t, uint32_t field,
		    enum pen_samples mode, struct pen_buf *h, size_t *all)
{
	const struct pen_field *fd = &t->field[field];
	const bool first = mode == PEN_SAMPLES_FIRST;
	const uint32_t nd = fd->ndim + (mode != PEN_SAMPLES_FILE);
	int64_t shape[PEN_MAX_DIMS + 1];
	size_t row;

	if (nd > PEN_MAX_DIMS || t->nsamples > INT64_MAX ||
	    !pen__shape_bytes(fd->shape, fd->ndim, fd->dtype, &row) ||
	    !pen__mul(row, (size_t)t->nsamples, all))
		return false;
	shape[first ? 0 : fd->ndim] = (int64_t)t->nsamples;
	memcpy(shape + first, fd->shape, fd->ndim * sizeof(*shape));
	pen__npy_header(h, fd->dtype, shape, nd);
	return true;
}

uint64_t pen__npy_size(const struct pen_table *t, uint32_t field,
		       enum pen_samples mode)
{
	struct pen_buf h = { 0 };
	size_t all;
	uint64_t n = 0;

	if (head_of(t, field, mode, &h, &all) && !h.bad)
		n = h.n + (uint64_t)all;
	pen__buf_fini(&h);
	return n;
}

int pen__npy_write(const struct pen_table *t, uint32_t field,
		   enum pen_samples mode, struct pen_out *out,
		   struct pen_err *err)
{
	const struct pen_field *fd = &t->field[field];
	struct pen_buf h = { 0 };
	const void *data;
	void *mem;
	size_t all;
	int rc;

	if (!head_of(t, field, mode, &h, &all))
		return pen__fail(err, P_CANNOT_WRITE_THIS, fd->name,
				 "an array of this shape cannot be written");
	rc = h.bad ? pen__fail_nomem(err, fd->name, 128)
		   : out->write(out, h.p, h.n, err);
	pen__buf_fini(&h);
	if (rc < 0 || !all)
		return rc;
	if (mode != PEN_SAMPLES_LAST || t->nsamples == 1)
		return pen__table_put(t, field, out, err);
	data = pen__table_get(t, field, &mem, err);
	if (!data)
		return err && err->code ? err->code : PEN_ENOMEM;
	rc = write_transposed(data, t->nsamples, all / t->nsamples,
			      pen_dtype_size(fd->dtype), out, err);
	pen__free(mem);
	return rc;
}
