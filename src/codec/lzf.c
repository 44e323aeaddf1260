/*
 * LZF, the fast compressor bundled with h5py: runs of literals and back
 * references of up to 8 KiB. Implemented here, because no library offers h5py's
 * variant. Compression is simple: one hash table, no lazy matching.
 */
#include "codec/lzf.h"

#include <string.h>

#include "base/bytes.h"
#include "codec/codec.h"
#include "penstock.h"

static int lzf_unpack(struct pen_scratch *s, const void *in, size_t n,
		      void *out, size_t cap, size_t *got)
{
	const uint8_t *p = in, *const end = p + n;
	uint8_t *const start = out, *o = start, *const limit = o + cap;

	(void)s;
	while (p < end) {
		size_t len = *p++, back;

		if (len < 32) { /* literals */
			len++;
			if (len > (size_t)(end - p) ||
			    len > (size_t)(limit - o))
				return PEN_EDATA;
			memcpy(o, p, len);
			p += len;
			o += len;
			continue;
		}
		back = (len & 31) << 8;
		len >>= 5;
		if (len == 7 && p < end)
			len += *p++;
		if (p == end)
			return PEN_EDATA;
		back += (size_t)*p++ + 1;
		len += 2;
		if (back > (size_t)(o - start) || len > (size_t)(limit - o))
			return PEN_EDATA;
		if (back >= len) {
			memcpy(o, o - back, len);
			o += len;
			continue;
		}
		/* overlaps its destination: repeats a pattern */
		for (; len; len--, o++)
			*o = *(o - back);
	}
	*got = (size_t)(o - start);
	return 0;
}

#define HASH_BITS 13
#define FARTHEST 8192
#define LONGEST 264
#define MOST_LITERALS 32

/* Writes literals [from, to) in runs. Returns the end, or NULL: no room. */
static uint8_t *put_literals(const uint8_t *from, const uint8_t *to, uint8_t *o,
			     const uint8_t *limit)
{
	while (from < to) {
		size_t n = (size_t)(to - from);

		n = n < MOST_LITERALS ? n : MOST_LITERALS;
		if ((size_t)(limit - o) < n + 1)
			return NULL;
		*o++ = (uint8_t)(n - 1);
		memcpy(o, from, n);
		o += n;
		from += n;
	}
	return o;
}

static uint8_t *put_match(size_t len, size_t back, uint8_t *o,
			  const uint8_t *limit)
{
	const size_t n = len - 2, b = back - 1;

	if (limit - o < 3)
		return NULL;
	if (n < 7) {
		*o++ = (uint8_t)(n << 5 | b >> 8);
	} else {
		*o++ = (uint8_t)(7 << 5 | b >> 8);
		*o++ = (uint8_t)(n - 7);
	}
	*o++ = (uint8_t)b;
	return o;
}

size_t pen__lzf_pack(const void *in, size_t n, void *out, size_t cap)
{
	const uint8_t *const start = in, *const end = start + n;
	const uint8_t *p = start, *pending = start;
	uint8_t *o = out, *const limit = o + cap;
	uint32_t last[1 << HASH_BITS] = { 0 }; /* position + 1 */

	while (o && end - p > 2 && n < UINT32_MAX) {
		const uint32_t three = (uint32_t)p[0] << 16 | p[1] << 8 | p[2];
		uint32_t *slot = &last[three * 2654435761u >> (32 - HASH_BITS)];
		const uint8_t *q = *slot ? start + *slot - 1 : NULL;
		size_t len = 3;

		*slot = (uint32_t)(p - start) + 1;
		if (!q || p - q > FARTHEST || memcmp(q, p, 3) != 0) {
			p++;
			continue;
		}
		while (len < LONGEST && p + len < end && q[len] == p[len])
			len++;
		o = put_literals(pending, p, o, limit);
		if (o)
			o = put_match(len, (size_t)(p - q), o, limit);
		p += len;
		pending = p;
	}
	if (o)
		o = put_literals(pending, end, o, limit);
	return o ? (size_t)(o - (uint8_t *)out) : 0;
}

const struct pen_codec pen__codec_lzf = {
	.name = "lzf",
	.ratio = 88, /* 264 bytes out of 3 */
	.unpack = lzf_unpack,
};
