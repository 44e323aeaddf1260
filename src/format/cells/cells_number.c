/*
 * Conversion of values of any type for rows: to double, to gene indices, and
 * added to the values of a row. All types meet in double; common cases have
 * faster code elsewhere.
 */
#include "base/half.h"
#include "format/cells/cells.h"

#define LOAD(T, expr)                                                          \
	for (uint64_t i = 0; i < n; i++) {                                     \
		T x;                                                           \
		memcpy(&x, p + i * sizeof(x), sizeof(x));                      \
		out[i] = (expr);                                               \
	}                                                                      \
	break

/* At most PEN_CELLS_BLOCK values, in native byte order. */
static const uint8_t *native(const struct pen_chunked *a, const uint8_t *p,
			     uint64_t n, uint8_t *mem)
{
	const struct pen_tile t = { .ni = 1, .nj = n, .src_j = a->item };

	if (p && !a->swap)
		return p;
	if (p)
		pen__tile_copy(&t, a->item, a->item, mem, p);
	for (uint64_t i = 0; !p && i < n; i++)
		memcpy(mem + i * a->item, a->fill, a->item);
	return mem;
}

void pen__cells_doubles(const struct pen_chunked *a, const uint8_t *p,
			uint64_t n, double *out)
{
	uint8_t mem[PEN_CELLS_BLOCK * 8];

	p = native(a, p, n, mem);
	switch ((enum pen_dtype)a->dtype) {
	case PEN_I8:
		LOAD(int8_t, x);
	case PEN_I16:
		LOAD(int16_t, x);
	case PEN_U16:
		LOAD(uint16_t, x);
	case PEN_I32:
		LOAD(int32_t, x);
	case PEN_U32:
		LOAD(uint32_t, x);
	case PEN_I64:
		LOAD(int64_t, (double)x);
	case PEN_U64:
		LOAD(uint64_t, (double)x);
	case PEN_F16:
		LOAD(uint16_t, pen__half_to_double(x));
	case PEN_F32:
		LOAD(float, (double)x);
	case PEN_F64:
		LOAD(double, x);
	default:
		LOAD(uint8_t, x);
	}
}

/* A value that cannot be a gene becomes the largest number. */
void pen__cells_genes_of(const struct pen_chunked *a, const uint8_t *p,
			 uint64_t n, uint32_t *out)
{
	uint8_t mem[PEN_CELLS_BLOCK * 8];

	p = native(a, p, n, mem);
	switch ((enum pen_dtype)a->dtype) {
	case PEN_I8:
		LOAD(int8_t, (uint32_t)x);
	case PEN_I16:
		LOAD(int16_t, (uint32_t)x);
	case PEN_U16:
		LOAD(uint16_t, x);
	case PEN_I32:
	case PEN_U32:
		LOAD(uint32_t, x);
	case PEN_I64: /* not a gene, and recognised by the error message */
		LOAD(int64_t, (uint32_t)(x < INT32_MIN	 ? INT32_MIN
					 : x > INT32_MAX ? INT32_MAX
							 : x));
	case PEN_U64:
		LOAD(uint64_t, x > UINT32_MAX ? UINT32_MAX : (uint32_t)x);
	default:
		LOAD(uint8_t, x);
	}
}

#define ADD_FLOAT(T)                                                           \
	for (uint64_t i = 0; i < n; i++)                                       \
		if (at[i] != PEN_CELLS_NONE)                                   \
			((T *)dst)[at[i]] = (T)(((T *)dst)[at[i]] + v[i]);     \
	return n

#define ADD_INT(T, least, most)                                                \
	for (uint64_t i = 0; i < n; i++) {                                     \
		double s;                                                      \
		if (at[i] == PEN_CELLS_NONE)                                   \
			continue;                                              \
		s = (double)((T *)dst)[at[i]] + v[i];                          \
		if (!(s >= (least) && s <= (most)) || s != floor(s))           \
			return i;                                              \
		((T *)dst)[at[i]] = (T)s;                                      \
	}                                                                      \
	return n

/* Adds v[i] to element at[i] of the row; returns the number of values before
 * the first that does not fit. */
uint64_t pen__cells_add(enum pen_dtype type, void *dst, const uint32_t *at,
			const double *v, uint64_t n)
{
	uint16_t *h = dst;

	switch (type) {
	case PEN_I8:
		ADD_INT(int8_t, INT8_MIN, INT8_MAX);
	case PEN_U8:
		ADD_INT(uint8_t, 0, UINT8_MAX);
	case PEN_I16:
		ADD_INT(int16_t, INT16_MIN, INT16_MAX);
	case PEN_U16:
		ADD_INT(uint16_t, 0, UINT16_MAX);
	case PEN_I32:
		ADD_INT(int32_t, INT32_MIN, INT32_MAX);
	case PEN_U32:
		ADD_INT(uint32_t, 0, UINT32_MAX);
	case PEN_I64: /* a double is not exact beyond that */
		ADD_INT(int64_t, -0x1p53, 0x1p53);
	case PEN_U64:
		ADD_INT(uint64_t, 0, 0x1p53);
	case PEN_F32:
		ADD_FLOAT(float);
	case PEN_F64:
		ADD_FLOAT(double);
	default:
		break;
	}
	for (uint64_t i = 0; i < n; i++)
		if (at[i] != PEN_CELLS_NONE)
			h[at[i]] = pen__double_to_half(
				(h[at[i]] ? pen__half_to_double(h[at[i]]) : 0) +
				v[i]);
	return n;
}
