/*
 * Byte shuffle in both directions, and HDF5's fletcher32. Elements of 2, 4 and
 * 8 bytes are interleaved 16 at a time: each step interleaves stream i and
 * stream i + half into one of elements twice as wide, which is one vector
 * instruction on most CPUs.
 */
#include "codec/byte_shuffle.h"

#include <string.h>

typedef uint8_t vec __attribute__((vector_size(16)));

static vec low(vec a, vec b)
{
	return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20,
				       5, 21, 6, 22, 7, 23);
}

static vec high(vec a, vec b)
{
	return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12,
				       28, 13, 29, 14, 30, 15, 31);
}

/* 16 elements of `item` (2, 4, 8) bytes, from position `at` of their streams.
 */
static inline void weave(size_t item, const uint8_t *const *in, size_t at,
			 uint8_t *out)
{
	vec a[8], b[8];

	for (size_t i = 0; i < item; i++)
		memcpy(&a[i], in[i] + at, 16);
	/* Each round halves the number of streams and doubles their length:
	 * part j of stream i is a[i * parts + j]. */
	for (size_t n = item, parts = 1; n > 1; n /= 2, parts *= 2) {
		for (size_t i = 0; i < n / 2; i++) {
			for (size_t j = 0; j < parts; j++) {
				vec x = a[i * parts + j];
				vec y = a[(i + n / 2) * parts + j];

				b[(i * parts + j) * 2] = low(x, y);
				b[(i * parts + j) * 2 + 1] = high(x, y);
			}
		}
		memcpy(a, b, sizeof(a));
	}
	memcpy(out, a, item * 16);
}

/* One loop per width, so that weave() is unrolled completely. */
static size_t woven(size_t item, const uint8_t *const *in, size_t count,
		    uint8_t *out)
{
	size_t i = 0;

	if (item == 2)
		for (; i + 16 <= count; i += 16)
			weave(2, in, i, out + i * 2);
	else if (item == 4)
		for (; i + 16 <= count; i += 16)
			weave(4, in, i, out + i * 4);
	else if (item == 8)
		for (; i + 16 <= count; i += 16)
			weave(8, in, i, out + i * 8);
	return i;
}

void pen__weave4(const uint8_t *const in[4], size_t count, uint8_t *out)
{
	for (size_t i = woven(4, in, count, out); i < count; i++)
		for (size_t j = 0; j < 4; j++)
			out[i * 4 + j] = in[j][i];
}

void pen__unshuffle(size_t item, const uint8_t *in, size_t n, uint8_t *out)
{
	const size_t count = item ? n / item : 0;
	const uint8_t *stream[8];

	if (item < 2 || !count) {
		if (n)
			memcpy(out, in, n);
		return;
	}
	if (item <= 8)
		for (size_t i = 0; i < item; i++)
			stream[i] = in + i * count;
	for (size_t i = item <= 8 ? woven(item, stream, count, out) : 0;
	     i < count; i++)
		for (size_t j = 0; j < item; j++)
			out[i * item + j] = in[j * count + i];
	if (n % item)
		memcpy(out + count * item, in + count * item, n % item);
}

/* Elements per run, which stays in the first-level cache while its streams are
 * extracted. */
#define RUN ((size_t)2048)

void pen__shuffle(size_t item, const uint8_t *in, size_t n, uint8_t *out)
{
	const size_t count = item ? n / item : 0;

	if (item < 2 || !count) {
		if (n)
			memcpy(out, in, n);
		return;
	}
	for (size_t at = 0; at < count; at += RUN) {
		const size_t end = count - at < RUN ? count : at + RUN;

		for (size_t j = 0; j < item; j++)
			for (size_t i = at; i < end; i++)
				out[j * count + i] = in[i * item + j];
	}
	if (n % item)
		memcpy(out + count * item, in + count * item, n % item);
}

bool pen__fletcher32_ok(const uint8_t *p, size_t n, const uint8_t sum[4])
{
	uint32_t a = 0, b = 0, got;

	for (size_t left = n / 2; left;) {
		/* 360 steps do not overflow 32 bits, not even in b */
		size_t run = left < 360 ? left : 360;

		left -= run;
		for (; run; run--, p += 2) {
			a += (uint32_t)p[0] << 8 | p[1];
			b += a;
		}
		a = (a & 0xffff) + (a >> 16);
		b = (b & 0xffff) + (b >> 16);
	}
	if (n % 2) {
		a += (uint32_t)*p << 8;
		b += a;
		a = (a & 0xffff) + (a >> 16);
		b = (b & 0xffff) + (b >> 16);
	}
	a = (a & 0xffff) + (a >> 16);
	b = (b & 0xffff) + (b >> 16);
	got = b << 16 | a;
	if (got == ((uint32_t)sum[3] << 24 | (uint32_t)sum[2] << 16 |
		    (uint32_t)sum[1] << 8 | sum[0]))
		return true;
	/* HDF5 before 1.6.3 stored it with the bytes of each half swapped */
	return got == ((uint32_t)sum[2] << 24 | (uint32_t)sum[3] << 16 |
		       (uint32_t)sum[0] << 8 | sum[1]);
}
