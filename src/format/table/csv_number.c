/*
 * Parses numbers. Most have few digits: they are exact as an integer multiplied
 * or divided by a power of ten that a double represents exactly, so one
 * operation rounds once, like strtod. Others go to strtod in the C locale, on a
 * terminated copy. Rejects hexadecimal and trailing characters; integers do not
 * wrap and have no fraction.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "format/table/csv.h"

#define MAX_TEXT 128

bool pen__csv_next(struct pen_csv_text *at, char delim, bool *more,
		   struct pen_csv_text *out)
{
	const uint8_t *p = at->p, *e = at->e;

	if (!*more)
		return false;
	out->p = p;
	if (p < e && *p == '"')
		for (p++; p < e; p++)
			if (*p == '"' && (++p == e || *p != '"'))
				break; /* "" is an escaped quote */
	while (p < e && *p != (uint8_t)delim && *p != '\n')
		p++;
	*more = p < e && *p == (uint8_t)delim;
	at->p = p + *more;
	if (!*more && p > out->p && p[-1] == '\r')
		p--;
	out->e = p;
	return true;
}

static void trim(struct pen_csv_text *t)
{
	while (t->p < t->e && (*t->p == ' ' || *t->p == '\t'))
		t->p++;
	while (t->p < t->e && (t->e[-1] == ' ' || t->e[-1] == '\t'))
		t->e--;
}

static bool is_word(struct pen_csv_text t, const char *word)
{
	const size_t n = strlen(word);

	return (size_t)(t.e - t.p) == n &&
	       !strncasecmp((const char *)t.p, word, n);
}

static bool is_missing(struct pen_csv_text t)
{
	return t.p == t.e || is_word(t, "nan") || is_word(t, "na") ||
	       is_word(t, "n/a") || is_word(t, "null");
}

/* sign, digits, point, digits, exponent: value is digits * 10^exp10. */
struct decimal {
	uint64_t digits;
	unsigned ndigits; /* significant digits; `digits` has the first 19 */
	int exp10;
	bool negative, fraction;
};

static bool take_exponent(struct pen_csv_text *t, int *exp10)
{
	bool negative = false;
	int v = 0;

	if (t->p < t->e && (*t->p == '-' || *t->p == '+'))
		negative = *t->p++ == '-';
	if (t->p == t->e)
		return false;
	for (; t->p < t->e && *t->p >= '0' && *t->p <= '9'; t->p++)
		v = v < 100000 ? v * 10 + (*t->p - '0') : v;
	*exp10 += negative ? -v : v;
	return true;
}

static bool take_decimal(struct pen_csv_text t, struct decimal *d)
{
	bool any = false;

	*d = (struct decimal){ 0 };
	if (t.p < t.e && (*t.p == '-' || *t.p == '+'))
		d->negative = *t.p++ == '-';
	for (; t.p < t.e; t.p++) {
		if (*t.p == '.' && !d->fraction) {
			d->fraction = true;
			continue;
		}
		if (*t.p < '0' || *t.p > '9')
			break;
		any = true;
		d->exp10 -= d->fraction && d->exp10 > -100000;
		if (!d->ndigits && *t.p == '0')
			continue;
		if (++d->ndigits <= 19)
			d->digits = d->digits * 10 + (*t.p - '0');
	}
	if (any && t.p < t.e && (*t.p == 'e' || *t.p == 'E')) {
		d->fraction = true;
		t.p++;
		any = take_exponent(&t, &d->exp10);
	}
	return any && t.p == t.e;
}

static bool slow_double(struct pen_csv_text t, locale_t c, double *out)
{
	char text[MAX_TEXT], *end;
	const size_t n = (size_t)(t.e - t.p);

	if (n >= sizeof(text))
		return false;
	memcpy(text, t.p, n);
	text[n] = '\0';
	*out = strtod_l(text, &end, c);
	return end == text + n;
}

static bool to_double(struct pen_csv_text t, locale_t c, double *out)
{
	static const double tens[] = { 1e0,  1e1,  1e2,	 1e3,  1e4,  1e5,
				       1e6,  1e7,  1e8,	 1e9,  1e10, 1e11,
				       1e12, 1e13, 1e14, 1e15, 1e16, 1e17,
				       1e18, 1e19, 1e20, 1e21, 1e22 };
	const bool sign = t.p < t.e && (*t.p == '-' || *t.p == '+');
	struct pen_csv_text word = { t.p + sign, t.e };
	struct decimal d;

	if (!take_decimal(t, &d)) {
		if (!is_word(word, "inf") && !is_word(word, "infinity"))
			return false;
		*out = *t.p == '-' ? -(double)INFINITY : (double)INFINITY;
		return true;
	}
	if (d.ndigits > 15 || d.exp10 < -22 || d.exp10 > 22)
		return slow_double(t, c, out);
	*out = d.exp10 < 0 ? (double)d.digits / tens[-d.exp10]
			   : (double)d.digits * tens[d.exp10];
	*out = d.negative ? -*out : *out;
	return true;
}

/* Exact integers only; "3.0" and "1e3" are integers, too. */
static bool to_integer(struct pen_csv_text t, locale_t c, bool *negative,
		       uint64_t *out)
{
	struct decimal d;
	double v;

	if (!take_decimal(t, &d))
		return false;
	*negative = d.negative && d.digits;
	*out = d.digits;
	if (!d.fraction)
		return d.ndigits <= 19 ||
		       (d.ndigits == 20 &&
			!__builtin_mul_overflow(d.digits, 10, out) &&
			!__builtin_add_overflow(*out, t.e[-1] - '0', out));
	if (!to_double(t, c, &v) || fabs(v) >= 0x1p53 || v != floor(v))
		return false;
	*out = (uint64_t)fabs(v);
	return true;
}

static bool put_integer(enum pen_dtype t, bool negative, uint64_t v, void *dst)
{
	const bool is_signed = t == PEN_I8 || t == PEN_I16 || t == PEN_I32 ||
			       t == PEN_I64;
	const size_t size = pen_dtype_size(t);
	const uint64_t top = UINT64_MAX >> (64 - 8 * size);
	const uint64_t most = is_signed ? top / 2 + negative : top;

	if (v > most || (negative && !is_signed))
		return false;
	v = negative ? 0 - v : v;
	memcpy(dst, &v, size); /* little-endian */
	return true;
}

enum pen_csv_value pen__csv_value(struct pen_csv_text t, enum pen_dtype type,
				  locale_t c, void *dst)
{
	bool negative, ok;
	uint64_t v;
	double d;
	float f;

	trim(&t);
	if (t.e - t.p >= 2 && *t.p == '"' && t.e[-1] == '"') {
		t.p++;
		t.e--;
		trim(&t);
	}
	if (type != PEN_F32 && type != PEN_F64) {
		ok = to_integer(t, c, &negative, &v) &&
		     put_integer(type, negative, v, dst);
	} else {
		ok = to_double(t, c, &d);
		f = ok ? (float)d : NAN;
		d = ok ? d : (double)NAN;
		memcpy(dst, type == PEN_F32 ? (void *)&f : (void *)&d,
		       type == PEN_F32 ? 4 : 8);
	}
	return ok	       ? PEN_CSV_NUMBER
	       : is_missing(t) ? PEN_CSV_MISSING
			       : PEN_CSV_BAD;
}
