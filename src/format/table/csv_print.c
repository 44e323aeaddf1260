/*
 * Formats numbers. A float gets the fewest digits, from 6 or 15 on, that read
 * back as the same float, as "%.*g" would write it. Numbers of common magnitude
 * are scaled by a power of ten in 128 bits without loss and rounded there; very
 * large and very small ones go through printf.
 */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "format/table/csv.h"

#define MAX_DIGITS 17

__extension__ typedef unsigned __int128 wide;

/*
 * v * 10^scale, rounded to the nearest integer, ties to even, like printf. 0 <=
 * scale <= 21, so 5^scale has 49 bits and the product fits; false if v has
 * higher bits, which does not happen for the numbers printed here.
 */
static bool scaled(double v, unsigned scale, uint64_t *out)
{
	int e;
	const uint64_t m = (uint64_t)ldexp(frexp(v, &e), 53);
	wide p = m, rest, half;
	int shift = 53 - e - (int)scale;

	for (unsigned i = 0; i < scale; i++)
		p *= 5;
	if (shift <= 0 || shift > 120)
		return false;
	half = (wide)1 << (shift - 1);
	rest = p & ((half << 1) - 1);
	p >>= shift;
	p += rest > half || (rest == half && (p & 1));
	*out = (uint64_t)p;
	return true;
}

enum same { DIFFERENT, SAME, UNSURE };

/* Whether digits / 10^scale reads back as v. UNSURE half way between two, where
 * rounding twice could differ from rounding once. */
static enum same reads_back(uint64_t digits, unsigned scale, double v,
			    bool single)
{
	static const long double ld[] = { 1e0L,	 1e1L,	1e2L,  1e3L,  1e4L,
					  1e5L,	 1e6L,	1e7L,  1e8L,  1e9L,
					  1e10L, 1e11L, 1e12L, 1e13L, 1e14L,
					  1e15L, 1e16L, 1e17L, 1e18L, 1e19L,
					  1e20L, 1e21L };
	const long double q = (long double)digits / ld[scale];
	uint64_t bits;

	memcpy(&bits, &q, sizeof(bits)); /* 64 of them: see print_plain() */
	if (single ? (bits & 0xffffffffff) == 0x8000000000
		   : (bits & 0x7ff) == 0x400)
		return UNSURE;
	return (single ? (float)q == (float)v : (double)q == v) ? SAME
								: DIFFERENT;
}

/* digits / 10^scale with a decimal point and without trailing zeros. */
static unsigned put_digits(uint64_t digits, unsigned scale, bool negative,
			   char out[40])
{
	char text[24];
	unsigned n = 0, len = 0;

	while (scale > 1 && digits % 10 == 0) {
		digits /= 10;
		scale--;
	}
	while (digits || n < scale + 2) {
		text[n++] = (char)('0' + digits % 10);
		digits /= 10;
		if (n == scale)
			text[n++] = '.';
	}
	if (negative)
		out[len++] = '-';
	while (n)
		out[len++] = text[--n];
	out[len] = '\0';
	return len;
}

/* 0: needs print_any(). */
static unsigned print_plain(double v, bool single, char out[40])
{
	const double a = fabs(v);
	const unsigned most = single ? 9 : MAX_DIGITS;
	int e10 = 0;

	/* within these, "%g" writes no exponent with 6 digits or more */
	if (LDBL_MANT_DIG != 64 || !(a >= 1e-4 && a < 1e5))
		return 0;
	while (e10 < 4 && a >= (double)pen__tens[e10 + 1])
		e10++;
	/* 1e-1, ... are rounded, so n may be off by one; checked below */
	if (a < 1)
		e10 = a >= 1e-1 ? -1 : a >= 1e-2 ? -2 : a >= 1e-3 ? -3 : -4;
	for (unsigned n = single ? 6 : 15; n <= most; n++) {
		const unsigned scale = (unsigned)((int)n - 1 - e10);
		uint64_t digits;
		enum same same;

		if (!scaled(a, scale, &digits) || digits < pen__tens[n - 1] ||
		    digits >= pen__tens[n])
			return 0;
		same = reads_back(digits, scale, a, single);
		if (same == SAME)
			return put_digits(digits, scale, v < 0, out);
		if (same == UNSURE)
			return 0;
	}
	return 0;
}

static unsigned print_any(double v, bool single, char out[40])
{
	int n = 0;

	for (int digits = single ? 6 : 15; digits <= 17; digits++) {
		n = snprintf(out, 40, "%.*g", digits, v);
		if (single ? strtof(out, NULL) == (float)v
			   : strtod(out, NULL) == v)
			break;
	}
	if (!strpbrk(out, ".en"))
		n += snprintf(out + n, (size_t)(40 - n), ".0");
	return (unsigned)n;
}

static unsigned print_float(double v, bool single, char out[40])
{
	unsigned n;

	if (isnan(v))
		return 0; /* empty, like pandas */
	n = print_plain(v, single, out);
	return n ? n : print_any(v, single, out);
}

/* printf would dominate the time of writing. */
static unsigned print_integer(uint64_t v, bool negative, char out[40])
{
	char digits[20];
	unsigned n = 0, len = 0;

	do {
		digits[n++] = (char)('0' + v % 10);
		v /= 10;
	} while (v);
	if (negative)
		out[len++] = '-';
	while (n)
		out[len++] = digits[--n];
	out[len] = '\0';
	return len;
}

unsigned pen__csv_print(const void *p, enum pen_dtype type, char out[40])
{
	const size_t size = pen_dtype_size(type);
	uint64_t v = 0;
	float f;
	double d;

	switch (type) {
	case PEN_F32:
		memcpy(&f, p, 4);
		return print_float((double)f, true, out);
	case PEN_F64:
		memcpy(&d, p, 8);
		return print_float(d, false, out);
	case PEN_I8:
	case PEN_I16:
	case PEN_I32:
	case PEN_I64:
		memcpy(&v, p, size);
		if (v >> (8 * size - 1)) /* negative */
			return print_integer(
				(0 - v) & (UINT64_MAX >> (64 - 8 * size)), true,
				out);
		return print_integer(v, false, out);
	default:
		memcpy(&v, p, size);
		return print_integer(v, false, out);
	}
}
