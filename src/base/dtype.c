/*
 * Element types, and shapes as users write them. Rejects what could be misread:
 * a shape ends where its string ends, and has no empty axis.
 */
#include "base/dtype.h"

#include <string.h>

#include "base/mem.h"
#include "base/opt.h"

static const struct {
	const char *name;
	size_t size;
} dtypes[PEN_NDTYPES] = {
	[PEN_BOOL] = { "bool", 1 },	   [PEN_I8] = { "int8", 1 },
	[PEN_U8] = { "uint8", 1 },	   [PEN_I16] = { "int16", 2 },
	[PEN_U16] = { "uint16", 2 },	   [PEN_I32] = { "int32", 4 },
	[PEN_U32] = { "uint32", 4 },	   [PEN_I64] = { "int64", 8 },
	[PEN_U64] = { "uint64", 8 },	   [PEN_F16] = { "float16", 2 },
	[PEN_F32] = { "float32", 4 },	   [PEN_F64] = { "float64", 8 },
	[PEN_F80] = { "float128", 16 },	   [PEN_C64] = { "complex64", 8 },
	[PEN_C128] = { "complex128", 16 }, [PEN_C160] = { "complex256", 32 },
};

PEN_API size_t pen_dtype_size(enum pen_dtype t)
{
	return (unsigned)t < PEN_NDTYPES ? dtypes[t].size : 0;
}

PEN_API const char *pen_dtype_name(enum pen_dtype t)
{
	return (unsigned)t < PEN_NDTYPES ? dtypes[t].name : "unknown";
}

bool pen__shape_bytes(const int64_t *shape, uint32_t ndim, enum pen_dtype t,
		      size_t *out)
{
	size_t n = pen_dtype_size(t);

	for (uint32_t i = 0; i < ndim; i++)
		if (shape[i] < 0 || !pen__mul(n, (size_t)shape[i], &n))
			return false;
	*out = n;
	return true;
}

int pen__parse_dtype(const char *s, enum pen_dtype *out, struct pen_err *err)
{
	const char *names[PEN_NDTYPES + 1] = { NULL }, *near;

	s = s ? s : "uint8";
	for (unsigned i = 0; i < PEN_NDTYPES; i++) {
		names[i] = pen_dtype_name((enum pen_dtype)i);
		if (strcmp(names[i], s) != 0)
			continue;
		*out = (enum pen_dtype)i;
		return 0;
	}
	near = pen__nearest(s, names);
	return pen__fail(err, P_UNKNOWN_NAME, "dtype",
			 "unknown dtype '%s'%s%s%s", s,
			 near ? "; did you mean '" : "", near ? near : "",
			 near ? "'?" : "");
}

int pen__parse_shape(const char *text, int64_t *dims, uint32_t *ndim,
		     struct pen_err *err)
{
	const char *s = text;
	bool more = true;

	*ndim = 0;
	while (more) {
		int64_t v = 0;

		if (*ndim == PEN_MAX_DIMS || *s < '0' || *s > '9')
			break;
		for (; *s >= '0' && *s <= '9'; s++)
			if (v < 0 || __builtin_mul_overflow(v, 10, &v) ||
			    __builtin_add_overflow(v, *s - '0', &v))
				v = -1;
		if (v <= 0)
			break;
		dims[(*ndim)++] = v;
		more = *s == 'x' || *s == ',';
		s += more;
	}
	if (more || *s)
		return pen__fail(
			err, P_BAD_VALUE, "shape",
			"the shape '%s' is not valid; write it as 3x224x224",
			text);
	return 0;
}
