/* IEEE half precision, by hand, since not every compiler has the type. */
#ifndef PEN_BASE_HALF_H
#define PEN_BASE_HALF_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline double pen__half_to_double(uint16_t h)
{
	int e = h >> 10 & 31, m = h & 1023;
	double v = e == 31 ? (m ? NAN : INFINITY)
		   : e	   ? ldexp(m + 1024, e - 25)
			   : ldexp(m, -24);

	return h & 0x8000 ? -v : v;
}

/* Rounds to nearest, ties to even, as the CPU's own conversion does. */
static inline uint16_t pen__double_to_half(double v)
{
	uint16_t sign = signbit(v) ? 0x8000 : 0;
	uint64_t u, rest;
	int e;

	memcpy(&u, &v, sizeof(u));
	e = (int)(u >> 52 & 2047) - 1023;
	if (e >= -14 && e <= 15) { /* normal in both: drop bits */
		rest = u << 22;
		u = (uint64_t)(e + 15) << 10 | (u >> 42 & 1023);
		u += rest > UINT64_C(1) << 63 ||
		     (rest == UINT64_C(1) << 63 && (u & 1));
		return (uint16_t)(sign | u);
	}
	if (!(u << 1))
		return sign;
	v = fabs(v);
	if (isnan(v))
		return (uint16_t)(sign | 0x7e00);
	if (v >= 65520)
		return (uint16_t)(sign | 0x7c00);
	frexp(v, &e);
	if (v < 0x1p-14) /* subnormal, or the smallest normal by rounding */
		return (uint16_t)(sign | (uint16_t)rint(ldexp(v, 24)));
	/* a carry out of the mantissa adds one to the exponent, as it should */
	return (uint16_t)(sign |
			  (uint16_t)(((e + 14) << 10) +
				     (int)rint(ldexp(v, 11 - e)) - 1024));
}

#endif
