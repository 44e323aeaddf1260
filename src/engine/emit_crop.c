/* See emit_crop.h. Types are converted through double, which represents all
 * others exactly except 64-bit integers. */
#include "engine/emit_crop.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/half.h"

/* Data may start anywhere in its file, so elements need not be aligned. */
static uint16_t u16_at(const void *p, size_t i)
{
	uint16_t v;

	memcpy(&v, (const uint8_t *)p + i * sizeof(v), sizeof(v));
	return v;
}

static uint32_t u32_at(const void *p, size_t i)
{
	uint32_t v;

	memcpy(&v, (const uint8_t *)p + i * sizeof(v), sizeof(v));
	return v;
}

static uint64_t u64_at(const void *p, size_t i)
{
	uint64_t v;

	memcpy(&v, (const uint8_t *)p + i * sizeof(v), sizeof(v));
	return v;
}

static double f32_at(const void *p, size_t i)
{
	float v;

	memcpy(&v, (const uint8_t *)p + i * sizeof(v), sizeof(v));
	return (double)v;
}

static double f64_at(const void *p, size_t i)
{
	double v;

	memcpy(&v, (const uint8_t *)p + i * sizeof(v), sizeof(v));
	return v;
}

double pen__number_at(const void *p, enum pen_dtype t, size_t i)
{
	switch (t) {
	case PEN_BOOL:
	case PEN_U8:
		return ((const uint8_t *)p)[i];
	case PEN_I8:
		return ((const int8_t *)p)[i];
	case PEN_I16:
		return (int16_t)u16_at(p, i);
	case PEN_U16:
		return u16_at(p, i);
	case PEN_I32:
		return (int32_t)u32_at(p, i);
	case PEN_U32:
		return u32_at(p, i);
	case PEN_I64:
		return (double)(int64_t)u64_at(p, i);
	case PEN_U64:
		return (double)u64_at(p, i);
	case PEN_F16:
		return pen__half_to_double(u16_at(p, i));
	case PEN_F32:
		return f32_at(p, i);
	case PEN_F64:
		return f64_at(p, i);
	default:
		return NAN;
	}
}

/* Clamps to the range of an integer; NaN becomes 0. */
static double clamp(double v, double lo, double hi)
{
	return !(v > lo) ? (isnan(v) ? 0 : lo) : v > hi ? hi : v;
}

static void put_number(void *p, enum pen_dtype t, size_t i, double v)
{
	switch (t) {
	case PEN_BOOL:
		((uint8_t *)p)[i] = v != 0;
		break;
	case PEN_U8:
		((uint8_t *)p)[i] = (uint8_t)clamp(v, 0, UINT8_MAX);
		break;
	case PEN_I8:
		((int8_t *)p)[i] = (int8_t)clamp(v, INT8_MIN, INT8_MAX);
		break;
	case PEN_I16:
		((int16_t *)p)[i] = (int16_t)clamp(v, INT16_MIN, INT16_MAX);
		break;
	case PEN_U16:
		((uint16_t *)p)[i] = (uint16_t)clamp(v, 0, UINT16_MAX);
		break;
	case PEN_I32:
		((int32_t *)p)[i] = (int32_t)clamp(v, INT32_MIN, INT32_MAX);
		break;
	case PEN_U32:
		((uint32_t *)p)[i] = (uint32_t)clamp(v, 0, UINT32_MAX);
		break;
	case PEN_I64: /* the largest values have no exact double */
		((int64_t *)p)[i] = v >= 0x1p63 ? INT64_MAX
						: (int64_t)clamp(v, -0x1p63, v);
		break;
	case PEN_U64:
		((uint64_t *)p)[i] = v >= 0x1p64 ? UINT64_MAX
						 : (uint64_t)clamp(v, 0, v);
		break;
	case PEN_F16:
		((uint16_t *)p)[i] = pen__double_to_half(v);
		break;
	case PEN_F32:
		((float *)p)[i] = (float)v;
		break;
	default:
		((double *)p)[i] = v;
	}
}

/* Conversions that a double in between would round: 64-bit integers into one
 * another and, since it would round twice, into float32. False: not one of
 * these. */
static bool put_wide(void *p, const struct pen_crop *t, size_t i, uint64_t v)
{
	bool negative = t->from == PEN_I64 && v > INT64_MAX;

	if (t->from != PEN_I64 && t->from != PEN_U64)
		return false;
	if (t->to == PEN_U64)
		((uint64_t *)p)[i] = negative ? 0 : v;
	else if (t->to == PEN_I64)
		((int64_t *)p)[i] = v > INT64_MAX ? INT64_MAX : (int64_t)v;
	else if (t->to == PEN_F32)
		((float *)p)[i] = negative ? (float)(int64_t)v : (float)v;
	else
		return false;
	return true;
}

/* Sets the shape; false if the list is not a valid one. */
static bool parse_shape(const struct pen_opt_list *v, struct pen_field *d)
{
	if (!v->n || v->n > PEN_MAX_DIMS)
		return false;
	for (size_t i = 0; i < v->n; i++)
		if (v->v[i] < 1)
			return false;
	memcpy(d->shape, v->v, v->n * sizeof(*d->shape));
	d->ndim = (uint32_t)v->n;
	return true;
}

static bool parse_dtype(const char *name, enum pen_dtype *out)
{
	for (int t = 0; t < PEN_NDTYPES; t++)
		if (!strcmp(name, pen_dtype_name((enum pen_dtype)t))) {
			*out = (enum pen_dtype)t;
			return t <= PEN_F64;
		}
	return false;
}

int pen__crop_init(struct pen_crop *t, struct pen_field *d,
		   const struct pen_spec *s, struct pen_err *err)
{
	size_t bytes;

	*t = (struct pen_crop){ .from = d->dtype, .to = d->dtype };
	if (!s->take.n && !s->cast)
		return 0;
	if (s->cast && (!parse_dtype(s->cast, &t->to) ||
			(d->dtype > PEN_F64 && t->to != d->dtype)))
		return pen__fail(
			err, P_BAD_VALUE, "cast",
			"%s cannot be converted to '%s'; only booleans, "
			"integers and floats up to float64 can",
			pen_dtype_name(d->dtype), s->cast);
	if (s->take.n && !parse_shape(&s->take, d))
		return pen__fail(err, P_BAD_VALUE, "take",
				 "not a valid shape; write it as 3x224x224");
	if (!s->take.n && d->layout != PEN_DENSE)
		return pen__fail(err, P_MISSING_SETTING, "cast",
				 "samples differ in shape; set the target "
				 "shape with take=");
	d->dtype = t->to;
	if (!pen__shape_bytes(d->shape, d->ndim, t->from, &bytes) ||
	    !pen__shape_bytes(d->shape, d->ndim, t->to, &bytes))
		return pen__fail(err, P_BAD_VALUE, "take",
				 "the shape is too large");
	d->layout = PEN_DENSE;
	d->max_bytes = bytes;
	t->n = bytes / pen_dtype_size(t->to);
	t->on = true;
	return 0;
}

void pen__crop_piece(const struct pen_crop *t, void *row, size_t at,
		     const void *src, size_t n)
{
	size_t all = pen__crop_bytes(t), size = pen_dtype_size(t->from);

	if (at >= all)
		return;
	if (n > all - at)
		n = all - at;
	if (t->from == t->to) {
		memcpy((uint8_t *)row + at, src, n);
		return;
	}
	for (size_t i = 0; i < n / size; i++) {
		size_t to = at / size + i;

		if (size == 8 && put_wide(row, t, to, u64_at(src, i)))
			continue;
		put_number(row, t->to, to, pen__number_at(src, t->from, i));
	}
}

void pen__crop_end(const struct pen_crop *t, void *row, size_t n)
{
	size_t have = n / pen_dtype_size(t->from), to = pen_dtype_size(t->to);
	size_t gap;

	if (have >= t->n)
		return;
	gap = (t->n - have) * to;
	if (t->fill.before)
		memmove((uint8_t *)row + gap, row, have * to);
	pen__fill(&t->fill, t->fill.before ? row : (uint8_t *)row + have * to,
		  gap);
}
