#include "codec/lookup3.h"

#include <string.h>

#include "base/bytes.h"

static uint32_t rot(uint32_t x, unsigned k)
{
	return x << k | x >> (32 - k);
}

static void mix(uint32_t *a, uint32_t *b, uint32_t *c)
{
	*a -= *c, *a ^= rot(*c, 4), *c += *b;
	*b -= *a, *b ^= rot(*a, 6), *a += *c;
	*c -= *b, *c ^= rot(*b, 8), *b += *a;
	*a -= *c, *a ^= rot(*c, 16), *c += *b;
	*b -= *a, *b ^= rot(*a, 19), *a += *c;
	*c -= *b, *c ^= rot(*b, 4), *b += *a;
}

uint32_t pen__lookup3(const void *data, size_t n)
{
	uint32_t a = 0xdeadbeef + (uint32_t)n, b = a, c = a, w[3];
	const uint8_t *p = data;

	for (; n > 12; n -= 12, p += 12) {
		struct pen_bytes in = pen__bytes(p, 12);

		a += pen__take_u32(&in);
		b += pen__take_u32(&in);
		c += pen__take_u32(&in);
		mix(&a, &b, &c);
	}
	if (!n)
		return c;
	memset(w, 0, sizeof(w));
	for (size_t i = 0; i < n; i++)
		w[i / 4] |= (uint32_t)p[i] << (8 * (i % 4));
	a += w[0];
	b += w[1];
	c += w[2];
	c ^= b, c -= rot(b, 14);
	a ^= c, a -= rot(c, 11);
	b ^= a, b -= rot(a, 25);
	c ^= b, c -= rot(b, 16);
	a ^= c, a -= rot(c, 4);
	b ^= a, b -= rot(a, 14);
	c ^= b, c -= rot(b, 24);
	return c;
}
