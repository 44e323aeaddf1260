/*
 * Parses the values of a row. Most have a few digits with or without a decimal
 * point: these are parsed eight digits at a time, without branches on the
 * number of digits, which a CPU cannot predict. Everything else (exponents,
 * blanks, nan, too many digits, quotes in the block) goes to csv_number.c,
 * which gives the same results for numbers parsed here.
 *
 * A row is processed in copies of a few KiB, so that bytes before and after a
 * value can be read with it.
 */
#include <float.h>

#include "format/table/csv.h"
#include "format/table/csv_marks.h"

#define PAD 32 /* at least the 24 bytes that digits are loaded from */

/* State of parsing a row. */
struct at {
	const struct pen_csv *p;
	const struct pen_csv_part *t;
	uint8_t *dst;
	struct pen_csv_stop *stop;
	size_t size;
	uint32_t column;
};

struct number {
	uint64_t w; /* value = w / 10^npart */
	uint32_t npart;
	bool negative;
};

static const uint64_t keep[9] = {
	0,
	0xff00000000000000,
	0xffff000000000000,
	0xffffff0000000000,
	0xffffffff00000000,
	0xffffffffff000000,
	0xffffffffffff0000,
	0xffffffffffffff00,
	0xffffffffffffffff,
};

const uint64_t pen__tens[20] = {
	1,
	10,
	100,
	1000,
	10000,
	100000,
	1000000,
	10000000,
	100000000,
	1000000000,
	10000000000,
	100000000000,
	1000000000000,
	10000000000000,
	100000000000000,
	1000000000000000,
	10000000000000000,
	100000000000000000,
	1000000000000000000,
	10000000000000000000u,
};

/* Eight digits, the first in the lowest byte, with 0x30 subtracted. Sets bits
 * in *bad if one of them is not a digit. */
static inline uint64_t join(uint64_t x, uint64_t *bad)
{
	const uint64_t low = 0x000000ff000000ff;

	*bad |= (x | (x + 0x7676767676767676)) & 0x8080808080808080;
	x = x * 10 + (x >> 8); /* pairs, in every second byte */
	return ((x & low) * (100 + (1000000ull << 32)) +
		(x >> 16 & low) * (1 + (10000ull << 32))) >>
	       32;
}

/* The number in the 1 <= n <= 8 bytes at s; 8 bytes are loaded. */
static inline uint64_t digits_at(const uint8_t *s, size_t n, uint64_t *bad)
{
	uint64_t x;

	memcpy(&x, s, 8);
	return join((x ^ 0x3030303030303030) << (64 - 8 * n), bad);
}

/* The number in the n <= 8 bytes before e. */
static inline uint64_t digits(const uint8_t *e, size_t n, uint64_t *bad)
{
	uint64_t x;

	memcpy(&x, e - 8, 8);
	return join((x ^ 0x3030303030303030) & keep[n], bad);
}

/* The 9 to 24 digits before e, if they fit. */
static inline bool long_part(const uint8_t *e, size_t n, size_t whole,
			     uint64_t *w, uint64_t *bad)
{
	const uint64_t top = digits(e - 16, n > 16 ? n - 16 : 0, bad);
	const uint64_t low =
		digits(e - 8, n < 16 ? n - 8 : 8, bad) * pen__tens[8] +
		digits(e, 8, bad);

	/* leading zeros do not count; top must stay below 2^64 / 10^16 */
	if (whole + n > 19 && (*w || top >= 1800))
		return false;
	*w = (n > 19 ? 0 : *w * pen__tens[n]) + top * pen__tens[16] + low;
	return true;
}

/* [s, e) with a decimal point at dot, or dot == e; false: not a plain number.
 */
static inline bool take_number(const uint8_t *s, const uint8_t *dot,
			       const uint8_t *e, struct number *out)
{
	uint64_t bad = 0;
	size_t whole, part;

	out->negative = *s == '-';
	s += out->negative;
	whole = (size_t)(dot - s);
	part = (size_t)(e - dot) - (dot < e);
	if (whole - 1 > 7 || part > 24) /* or whole is 0 */
		return false;
	if (whole == 1) { /* most are below ten */
		out->w = *s ^ 0x30;
		bad = out->w > 9;
	} else {
		out->w = digits_at(s, whole, &bad);
	}
	if (part - 1 <= 7)
		out->w = out->w * pen__tens[part] +
			 digits_at(dot + 1, part, &bad);
	else if (part && !long_part(e, part, whole, &out->w, &bad))
		return false;
	out->npart = (uint32_t)part;
	return !bad;
}

/*
 * Rounded once, like strtod. If a double cannot represent both numbers, a long
 * double of 64 bits can, and its quotient is rounded correctly to 64 bits.
 * Rounding that again to 53 bits differs from rounding the true quotient only
 * if it is half way between two doubles: half way is itself a long double, so
 * otherwise the true quotient is on the same side of it.
 */
static inline bool quotient(const struct number *v, double *out)
{
	static const double d[] = {
		1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8
	};
	static const long double ld[] = {
		1e0L,  1e1L,  1e2L,  1e3L,  1e4L,  1e5L,  1e6L,
		1e7L,  1e8L,  1e9L,  1e10L, 1e11L, 1e12L, 1e13L,
		1e14L, 1e15L, 1e16L, 1e17L, 1e18L, 1e19L, 1e20L,
		1e21L, 1e22L, 1e23L, 1e24L, 1e25L, 1e26L, 1e27L,
	};
	long double q;
	uint64_t bits;

	if (v->npart <= 8 && v->w < (uint64_t)1 << 53) {
		*out = (double)(int64_t)v->w / d[v->npart];
		return true;
	}
	if (LDBL_MANT_DIG != 64)
		return false;
	q = (long double)v->w / ld[v->npart];
	*out = (double)q;
	memcpy(&bits, &q, sizeof(bits));
	return (bits & 0x7ff) != 0x400;
}

/*
 * For a float, an inexact double is enough: numerator and quotient are rounded,
 * so it is within two units of the exact one. Both round to the same float
 * unless a boundary between two floats (half way: the low 29 bits are 2^28) is
 * that close. Results from 1e-22 to 2e19 are normal floats.
 */
static inline bool near_quotient(const struct number *v, double *out)
{
	static const double d[] = {
		1e0,  1e1,  1e2,  1e3,	1e4,  1e5,  1e6,  1e7,
		1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
		1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
	};
	uint64_t bits;

	if (v->npart > 22 || v->w > INT64_MAX)
		return false;
	*out = (double)(int64_t)v->w / d[v->npart];
	memcpy(&bits, out, sizeof(bits));
	return (bits & 0x1fffffff) - (0x10000000 - 4) > 8;
}

static inline void put_sign(double *d, bool negative)
{
	uint64_t bits;

	memcpy(&bits, d, sizeof(bits));
	bits |= (uint64_t)negative << 63;
	memcpy(d, &bits, sizeof(bits));
}

static inline bool is_signed(enum pen_dtype t)
{
	return t == PEN_I8 || t == PEN_I16 || t == PEN_I32 || t == PEN_I64;
}

/* Stores the number in an element; false: csv_number.c must parse it. */
static inline bool put_number(const struct number *v, enum pen_dtype type,
			      size_t size, void *dst)
{
	uint64_t w;
	double d;
	float f;

	if (type == PEN_F32 || type == PEN_F64) {
		if (!(type == PEN_F32 && near_quotient(v, &d)) &&
		    !quotient(v, &d))
			return false;
		put_sign(&d, v->negative);
		f = (float)d;
		if (type == PEN_F32)
			memcpy(dst, &f, sizeof(f));
		else
			memcpy(dst, &d, sizeof(d));
		return true;
	}
	/* values that fit the signed type of that size fit the unsigned one;
	 * the rest is rare, except for bytes */
	if (v->npart || (v->negative && !is_signed(type)) ||
	    v->w > (type == PEN_U8 ? 255 : UINT64_MAX >> (65 - 8 * size)))
		return false;
	w = v->negative ? 0 - v->w : v->w;
	if (size == 1)
		*(uint8_t *)dst = (uint8_t)w;
	else
		memcpy(dst, &w, size); /* little-endian */
	return true;
}

static bool stop(const struct at *a, struct pen_csv_text v,
		 enum pen_csv_value kind)
{
	*a->stop = (struct pen_csv_stop){ a->column, v, kind };
	return false;
}

/* Parses a value of any form; NULL dst: not requested. */
static bool any_value(const struct at *a, struct pen_csv_text v, void *dst)
{
	enum pen_csv_value kind;

	if (!dst)
		return true;
	kind = pen__csv_value(v, a->p->type, a->p->c, dst);
	if (kind == PEN_CSV_BAD ||
	    (kind == PEN_CSV_MISSING && a->p->missing == PEN_CSV_MISSING_ERROR))
		return stop(a, v, kind);
	return true;
}

static inline void *place_of(const struct at *a)
{
	uint32_t i = a->column;

	if (a->t->place)
		i = a->t->place[i];
	return i == UINT32_MAX ? NULL : a->dst + i * a->size;
}

static bool row_end(const struct at *a, bool more)
{
	if (a->column == a->t->ncolumns && !more)
		return true;
	return stop(a, (struct pen_csv_text){ NULL, NULL }, PEN_CSV_NUMBER);
}

/* Parses the rest of a row with quotes, or with a value longer than a block. */
static bool slow_row(struct at *a, struct pen_csv_text row)
{
	struct pen_csv_text v;
	bool more = true;

	for (; pen__csv_next(&row, a->p->delim, &more, &v); a->column++)
		if (a->column >= a->t->ncolumns)
			return row_end(a, true);
		else if (!any_value(a, v, place_of(a)))
			return false;
	return row_end(a, more);
}

/* Where values and decimals end in a block. */
struct marks {
	uint16_t at[PEN_CSV_BLOCK + 1];
	size_t n;
};

enum step { STEP_MORE, STEP_END, STEP_FAILED };

/* A value [s, e) that is not a plain number, or whose destination must be
 * looked up. text is a copy of the bytes at src. */
static bool odd_value(struct at *a, const uint8_t *text, const uint8_t *src,
		      const uint8_t *s, const uint8_t *e)
{
	const struct pen_csv_text v = { src + (s - text), src + (e - text) };
	const uint8_t *dot = s;
	struct number w;
	void *dst;

	if (a->column >= a->t->ncolumns)
		return row_end(a, true);
	dst = place_of(a);
	while (dst && dot < e && *dot != '.')
		dot++;
	return !dst ||
	       (take_number(s, dot, e, &w) &&
		put_number(&w, a->p->type, a->size, dst)) ||
	       any_value(a, v, dst);
}

/*
 * Parses the values that end in a block: marks of text, a copy of the bytes at
 * src. *used is the start of the first value that does not end in it.
 */
static inline __attribute__((always_inline)) enum step
block(struct at *a, enum pen_dtype type, const uint8_t *text,
      const uint8_t *src, const struct marks *m, size_t *used)
{
	const uint16_t *at = m->at;
	const size_t n = m->n;
	const uint32_t plain = a->t->place ? 0 : a->t->ncolumns;
	const size_t size = type == PEN_U8 ? 1 : a->size;
	uint8_t *to = a->dst + a->column * size;
	uint32_t column = a->column;
	const uint8_t *s = text;
	enum step step = STEP_MORE;

	for (size_t i = 0; i < n && step == STEP_MORE; column++) {
		const uint8_t *dot = text + at[i++], *e = dot;
		const uint8_t *next;
		struct number v;

		while (*e == '.' && i < n)
			e = text + at[i++];
		if (*e == '.')
			break;
		next = e + 1;
		if (*e == '\n') {
			step = STEP_END;
			e -= e > s && e[-1] == '\r';
			dot = dot < e ? dot : e;
		}
		if (column >= plain || !take_number(s, dot, e, &v) ||
		    !put_number(&v, type, size, to)) {
			a->column = column;
			if (!odd_value(a, text, src, s, e))
				return STEP_FAILED;
		}
		to += size;
		s = next;
	}
	a->column = column;
	*used = (size_t)(s - text);
	return step;
}

/* Copies short pieces: memcpy() of variable size has a high startup cost. */
static inline void copy(uint8_t *to, const uint8_t *from, size_t n)
{
	for (; n >= 64; n -= 64, to += 64, from += 64)
		memcpy(to, from, 64);
	for (; n >= 8; n -= 8, to += 8, from += 8)
		memcpy(to, from, 8);
	for (; n; n--)
		*to++ = *from++;
}

static inline __attribute__((always_inline)) bool
fast_row(struct at *a, enum pen_dtype type, struct pen_csv_text row)
{
	uint8_t buf[PAD + PEN_CSV_BLOCK + PEN_CSV_SPARE], *text = buf + PAD;
	struct marks m;

	memset(buf, 0, PAD);
	for (;;) {
		const size_t left = (size_t)(row.e - row.p);
		const bool last = left < PEN_CSV_BLOCK;
		const size_t len = last ? left : PEN_CSV_BLOCK;
		size_t used = 0;
		enum step step;
		bool quoted;

		copy(text, row.p, len);
		/* the end of the bytes ends the line */
		memset(text + len, '\n', PEN_CSV_SPARE);
		m.n = pen__csv_marks(text, len + last, (uint8_t)a->p->delim,
				     m.at, &quoted);
		if (quoted)
			return slow_row(a, row);
		step = block(a, type, text, row.p, &m, &used);
		if (step != STEP_MORE)
			return step == STEP_END && row_end(a, false);
		if (!used)
			return slow_row(a, row);
		row.p += used;
	}
}

/* Separate functions, so that each is specialised for its type. */
static __attribute__((noinline)) bool float_row(struct at *a,
						struct pen_csv_text row)
{
	return fast_row(a, PEN_F32, row);
}

static __attribute__((noinline)) bool double_row(struct at *a,
						 struct pen_csv_text row)
{
	return fast_row(a, PEN_F64, row);
}

static __attribute__((noinline)) bool byte_row(struct at *a,
					       struct pen_csv_text row)
{
	return fast_row(a, PEN_U8, row);
}

static __attribute__((noinline)) bool integer_row(struct at *a,
						  struct pen_csv_text row)
{
	return fast_row(a, a->p->type, row);
}

bool pen__csv_row(const struct pen_csv *p, const struct pen_csv_part *t,
		  struct pen_csv_text row, void *dst, struct pen_csv_stop *out)
{
	struct at a = { .p = p,
			.t = t,
			.dst = dst,
			.stop = out,
			.size = pen_dtype_size(p->type) };

	if (p->type == PEN_F32)
		return float_row(&a, row);
	if (p->type == PEN_F64)
		return double_row(&a, row);
	if (p->type == PEN_U8)
		return byte_row(&a, row);
	return integer_row(&a, row);
}
