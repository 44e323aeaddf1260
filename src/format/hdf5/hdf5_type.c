/*
 * Data types and dataspaces. Types that can be a field are recognised: integers
 * and floats of entire bytes in either byte order, enumerations of these
 * (h5py's FALSE/TRUE over int8 is bool), and h5py's complex numbers, a compound
 * of r and i. Others are parsed completely, so that attributes can be read, but
 * have no dtype. Rejects types nested more than 8 deep.
 */
#include "format/hdf5/hdf5_int.h"

#include <strings.h>

#define DEEPEST 8

static bool take_type(struct pen_bytes *b, struct pen_h5_type *t,
		      unsigned depth);

/* A NUL-terminated name; old versions pad it to a multiple of 8. */
static const char *take_name(struct pen_bytes *b, bool padded)
{
	const uint8_t *start = b->p;
	const uint8_t *end = memchr(start, 0, pen__bytes_left(b));
	size_t n;

	if (!end) {
		b->bad = true;
		return NULL;
	}
	n = (size_t)(end - start) + 1;
	pen__take(b, padded ? (n + 7) / 8 * 8 : n);
	return b->bad ? NULL : (const char *)start;
}

static void take_int(struct pen_bytes *b, struct pen_h5_type *t, uint32_t bits)
{
	static const int of[2][9] = {
		{ -1, PEN_U8, PEN_U16, -1, PEN_U32, -1, -1, -1, PEN_U64 },
		{ -1, PEN_I8, PEN_I16, -1, PEN_I32, -1, -1, -1, PEN_I64 },
	};
	const unsigned offset = pen__take_u16(b), precision = pen__take_u16(b);
	const bool sign = t->cls == PEN_H5_INT && (bits & 8);

	t->swap = (bits & 1) && t->size > 1;
	if (!b->bad && !offset && t->size <= 8 && precision == 8 * t->size)
		t->dtype = of[sign][t->size];
}

static void take_float(struct pen_bytes *b, struct pen_h5_type *t,
		       uint32_t bits)
{
	static const struct {
		uint8_t size, precision, exp_at, exp_n, man_n, norm;
		uint32_t bias;
		int dtype;
	} known[] = {
		{ 2, 16, 10, 5, 10, 2, 15, PEN_F16 },
		{ 4, 32, 23, 8, 23, 2, 127, PEN_F32 },
		{ 8, 64, 52, 11, 52, 2, 1023, PEN_F64 },
		{ 16, 80, 64, 15, 64, 0, 16383, PEN_F80 },
		{ 16, 80, 64, 15, 64, 1, 16383, PEN_F80 },
	};
	const unsigned offset = pen__take_u16(b), precision = pen__take_u16(b);
	const unsigned exp_at = pen__take_u8(b), exp_n = pen__take_u8(b);
	const unsigned man_at = pen__take_u8(b), man_n = pen__take_u8(b);
	const uint32_t bias = pen__take_u32(b);

	t->swap = bits & 1;
	if (b->bad || offset || man_at || (bits & 0x40) ||
	    (bits >> 8 & 0xff) != precision - 1)
		return; /* VAX byte order, for example */
	for (unsigned i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (t->size == known[i].size && exp_at == known[i].exp_at &&
		    exp_n == known[i].exp_n && man_n == known[i].man_n &&
		    precision == known[i].precision && bias == known[i].bias &&
		    (bits >> 4 & 3) == known[i].norm)
			t->dtype = known[i].dtype;
	/* x87 numbers are little-endian by definition */
	if (t->dtype == PEN_F80 && t->swap)
		t->dtype = -1;
}

/* h5py stores complex numbers as packed {"r": float, "i": float}. */
static void see_complex(struct pen_h5_type *t)
{
	struct pen_h5_type m[2];
	const char *name[2];
	uint64_t at[2];

	if (t->nmembers != 2 ||
	    !pen__h5_member(t, 0, &name[0], &m[0], &at[0]) ||
	    !pen__h5_member(t, 1, &name[1], &m[1], &at[1]) ||
	    strcmp(name[0], "r") != 0 || strcmp(name[1], "i") != 0 || at[0] ||
	    at[1] != m[0].size || t->size != 2 * m[0].size ||
	    m[0].dtype != m[1].dtype || m[0].swap != m[1].swap)
		return;
	t->dtype = m[0].dtype == PEN_F32   ? PEN_C64
		   : m[0].dtype == PEN_F64 ? PEN_C128
		   : m[0].dtype == PEN_F80 ? PEN_C160
					   : -1;
	t->swap = m[0].swap;
}

/* One member: name, offset, type. */
static const char *take_member(struct pen_bytes *b, unsigned version,
			       uint32_t size, uint64_t *at,
			       struct pen_h5_type *t, unsigned depth)
{
	const char *name = take_name(b, version < 3);

	*at = pen__take_le(b, version < 3 ? 4 : pen__h5_enc(size));
	if (version == 1)
		pen__take(b, 1 + 3 + 4 + 4 + 16); /* old array members */
	return take_type(b, t, depth) ? name : NULL;
}

static void take_compound(struct pen_bytes *b, struct pen_h5_type *t,
			  unsigned version, unsigned depth)
{
	struct pen_h5_type m;
	uint64_t at;

	for (uint32_t i = 0; i < t->nmembers && !b->bad; i++)
		if (!take_member(b, version, t->size, &at, &m, depth))
			b->bad = true;
}

static void take_enum(struct pen_bytes *b, struct pen_h5_type *t,
		      unsigned version, unsigned depth)
{
	struct pen_h5_type base;
	const char *name[2] = { NULL, NULL };
	const uint8_t *v;

	if (!take_type(b, &base, depth) || base.cls != PEN_H5_INT ||
	    base.size != t->size) {
		b->bad = true;
		return;
	}
	for (uint32_t i = 0; i < t->nmembers && !b->bad; i++) {
		const char *s = take_name(b, version < 3);

		if (i < 2)
			name[i] = s;
	}
	v = pen__take(b, (uint64_t)t->nmembers * base.size);
	if (b->bad)
		return;
	t->dtype = base.dtype;
	t->swap = base.swap;
	if (t->nmembers == 2 && base.dtype == PEN_I8 && !v[0] && v[1] == 1 &&
	    strcasecmp(name[0], "FALSE") == 0 &&
	    strcasecmp(name[1], "TRUE") == 0)
		t->dtype = PEN_BOOL;
}

static void take_array(struct pen_bytes *b, unsigned version, unsigned depth)
{
	struct pen_h5_type base;
	const unsigned n = pen__take_u8(b);

	if (version < 3)
		pen__take(b, 3 + 4 * (uint64_t)n); /* reserved; permutation */
	pen__take(b, 4 * (uint64_t)n);
	if (!take_type(b, &base, depth))
		b->bad = true;
}

static bool take_type(struct pen_bytes *b, struct pen_h5_type *t,
		      unsigned depth)
{
	const uint8_t *start = b->p;
	const uint32_t head = pen__take_u32(b), bits = head >> 8;
	const unsigned version = head >> 4 & 15;
	struct pen_h5_type base;

	*t = (struct pen_h5_type){ .cls = (enum pen_h5_class)(head & 15),
				   .dtype = -1 };
	t->size = pen__take_u32(b);
	if (b->bad || !t->size || depth == DEEPEST || version < 1 ||
	    version > 5)
		return false;
	switch (t->cls) {
	case PEN_H5_INT:
	case PEN_H5_BITS:
		take_int(b, t, bits);
		break;
	case PEN_H5_FLOAT:
		take_float(b, t, bits);
		break;
	case PEN_H5_TIME:
		pen__take(b, 2);
		break;
	case PEN_H5_STRING:
		t->pad = bits & 15;
		t->utf8 = (bits >> 4 & 15) == 1;
		break;
	case PEN_H5_OPAQUE:
		pen__take(b, ((bits & 0xff) + 7) / 8 * 8);
		break;
	case PEN_H5_REFERENCE:
		break;
	case PEN_H5_COMPOUND:
		t->nmembers = bits & 0xffff;
		take_compound(b, t, version, depth + 1);
		break;
	case PEN_H5_ENUM:
		t->nmembers = bits & 0xffff;
		take_enum(b, t, version, depth + 1);
		break;
	case PEN_H5_VLEN:
		t->vlen_string = (bits & 15) == 1;
		t->utf8 = (bits >> 8 & 15) == 1;
		if (!take_type(b, &base, depth + 1))
			b->bad = true;
		break;
	case PEN_H5_ARRAY:
		take_array(b, version, depth + 1);
		break;
	default:
		return false;
	}
	t->raw = (struct pen_span){ start, (size_t)(b->p - start) };
	/* not for members: they would be parsed again at every level */
	if (!b->bad && !depth && t->cls == PEN_H5_COMPOUND)
		see_complex(t);
	return !b->bad;
}

bool pen__h5_take_type(struct pen_bytes *b, struct pen_h5_type *t)
{
	return take_type(b, t, 0);
}

bool pen__h5_member(const struct pen_h5_type *t, uint32_t i, const char **name,
		    struct pen_h5_type *m, uint64_t *at)
{
	struct pen_bytes b = pen__bytes(t->raw.p, t->raw.n);
	const unsigned version = pen__take_u8(&b) >> 4;

	pen__take(&b, 7);
	if (i >= t->nmembers)
		return false;
	if (t->cls == PEN_H5_COMPOUND) {
		for (uint32_t k = 0; k <= i; k++) {
			*name = take_member(&b, version, t->size, at, m, 1);
			if (!*name)
				return false;
		}
		return true;
	}
	if (t->cls != PEN_H5_ENUM || !take_type(&b, m, 1))
		return false;
	for (uint32_t k = 0; k < t->nmembers; k++) {
		const char *s = take_name(&b, version < 3);

		if (k == i)
			*name = s;
	}
	pen__take(&b, (uint64_t)i * t->size);
	*at = t->swap ? pen__take_be(&b, t->size) : pen__take_le(&b, t->size);
	return !b.bad;
}

bool pen__h5_base(const struct pen_h5_type *t, struct pen_h5_type *out)
{
	struct pen_bytes b = pen__bytes(t->raw.p, t->raw.n);
	const unsigned version = pen__take_u8(&b) >> 4;
	unsigned n;

	pen__take(&b, 7);
	if (t->cls == PEN_H5_ARRAY) {
		n = pen__take_u8(&b);
		pen__take(&b, 4 * (uint64_t)n +
				      (version < 3 ? 3 + 4 * (uint64_t)n : 0));
	} else if (t->cls != PEN_H5_VLEN && t->cls != PEN_H5_ENUM) {
		return false;
	}
	return take_type(&b, out, 1);
}

const char *pen__h5_type_name(const struct pen_h5_type *t)
{
	static const char *const names[] = {
		"integers of an unsupported width",
		"floats of an unsupported format",
		"times",
		"fixed-length strings",
		"bit fields of an unsupported size",
		"opaque bytes",
		"compound records",
		"references",
		"an enumeration of an unsupported size",
		"variable-length values",
		"values of an array type",
	};

	if (t->vlen_string)
		return "variable-length strings";
	return names[t->cls];
}

bool pen__h5_take_space(const struct pen_h5 *h, struct pen_bytes *b,
			struct pen_h5_space *s)
{
	const unsigned version = pen__take_u8(b);
	unsigned flags, kind = 1;

	*s = (struct pen_h5_space){ .ndim = pen__take_u8(b) };
	flags = pen__take_u8(b);
	if (version == 1)
		pen__take(b, 5);
	else if (version == 2)
		kind = pen__take_u8(b);
	else
		return false;
	if (b->bad || s->ndim > PEN_MAX_DIMS || kind > 2 ||
	    (kind != 1 && s->ndim))
		return false;
	s->null = kind == 2;
	for (uint32_t i = 0; i < s->ndim; i++)
		s->dim[i] = s->max[i] = pen__h5_len(h, b);
	for (uint32_t i = 0; (flags & 1) && i < s->ndim; i++) {
		s->max[i] = pen__h5_len(h, b);
		if (s->max[i] == UINT64_MAX >> (64 - 8 * h->sl))
			s->max[i] = UINT64_MAX;
		if (s->max[i] < s->dim[i])
			return false;
	}
	for (uint32_t i = 0; i < s->ndim; i++)
		if (s->dim[i] > INT64_MAX)
			return false;
	return !b->bad;
}

bool pen__h5_count(const struct pen_h5_space *s, uint64_t *out)
{
	bool ok = true, empty = s->null;
	uint64_t n = 1;

	for (uint32_t i = 0; i < s->ndim; i++) {
		empty |= !s->dim[i];
		ok = ok && !__builtin_mul_overflow(n, s->dim[i], &n);
	}
	*out = empty ? 0 : n;
	return ok || empty;
}
