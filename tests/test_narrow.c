/*
 * Numbers kept in one or two bytes: restored exactly, or left unchanged, for
 * every type and at every limit.
 */
#include "test.h"

#include <math.h>

#include "base/rng.h"
#include "codec/byte_shuffle.h"
#include "format/cells/cells.h"

enum { N = 2051 };

static size_t item_of(enum pen_dtype t)
{
	return pen_dtype_size(t);
}

static void put(enum pen_dtype t, uint8_t *p, size_t i, double v)
{
	const uint64_t u = (uint64_t)(int64_t)v;
	const float f = (float)v;

	if (t == PEN_F32)
		memcpy(p + i * 4, &f, 4);
	else if (t == PEN_F64)
		memcpy(p + i * 8, &v, 8);
	else
		memcpy(p + i * item_of(t), &u, item_of(t));
}

/* The same from byte streams, in buffers of their exact size. */
static void streams(const struct pen_chunked *a, const uint8_t *in,
		    const uint8_t *narrow, int want)
{
	uint8_t *mem[4], *out = malloc(N * 4);
	const uint8_t *s[4];
	int rc;

	for (size_t i = 0; i < 4; i++) {
		s[i] = mem[i] = malloc(N);
		for (size_t k = 0; k < N; k++)
			mem[i][k] = in[k * 4 + i];
	}
	rc = pen__narrow_streams(a, s, N, out);
	/* without vector code the other function does it */
	CHECK(rc == want || !rc);
	CHECK(!memcmp(out, narrow, (size_t)rc));
	pen__weave4(s, N, out);
	CHECK(!memcmp(out, in, N * 4));
	for (size_t i = 0; i < 4; i++)
		free(mem[i]);
	free(out);
}

/* One value among others up to `most`: the bytes it is kept in, and whether it
 * is restored. */
static void among(enum pen_dtype t, uint64_t most, size_t at, double v,
		  int width)
{
	const struct pen_chunked a = {
		.dtype = (uint8_t)t,
		.item = (uint8_t)item_of(t),
		.chunk_bytes = N * item_of(t),
	};
	static uint8_t in[N * 8], work[N * 8], out[N * 8 + 1];
	const size_t n = a.chunk_bytes;
	int rc;

	for (size_t i = 0; i < N; i++)
		put(t, in, i, (double)(pen__rng_at(7, i) & most));
	put(t, in, at, v);
	memcpy(work, in, n);
	rc = pen__narrow(&a, work, a.chunk_bytes);
	if (!CHECK_EQ(rc, N * width))
		fprintf(stderr, "%s, %g at %zu\n", pen_dtype_name(t), v, at);
	if (a.item == 4)
		streams(&a, in, work, rc);
	if (!rc) {
		CHECK(!memcmp(work, in, n));
		return;
	}
	for (size_t from = 0; from < 40; from += 13) {
		memset(out, 0xaa, sizeof(out));
		pen__narrow_restore(&a, (unsigned)width,
				    work + from * (size_t)width, N - from, out);
		CHECK(!memcmp(out, in + from * a.item, n - from * a.item));
		CHECK_EQ(out[n - from * a.item], 0xaa);
	}
}

static void one(enum pen_dtype t, size_t at, double v, bool small)
{
	among(t, UINT16_MAX, at, v, small ? 2 : 0);
	among(t, UINT8_MAX, at, v, !small ? 0 : v > 255 ? 2 : 1);
}

static void limits(void)
{
	static const enum pen_dtype types[] = { PEN_I32, PEN_U32, PEN_I64,
						PEN_U64, PEN_F32, PEN_F64 };
	static const size_t places[] = { 0, 15, 16, 1024, N - 1 };

	for (size_t k = 0; k < sizeof(types) / sizeof(*types); k++) {
		const enum pen_dtype t = types[k];
		const bool real = t == PEN_F32 || t == PEN_F64;

		for (size_t i = 0; i < 5; i++) {
			one(t, places[i], 0, true);
			one(t, places[i], 255, true);
			one(t, places[i], 256, true);
			one(t, places[i], 65535, true);
			one(t, places[i], 65536, false);
			one(t, places[i], -1, false);
			one(t, places[i], 16777216, false);
			if (!real)
				continue;
			one(t, places[i], 0.5, false);
			one(t, places[i], 65534.5, false);
			one(t, places[i], -0.0, false);
			one(t, places[i], 1e-30, false);
			one(t, places[i], 1e30, false);
			one(t, places[i], 8388608, false);
			one(t, places[i], 8454143, false);
			one(t, places[i], NAN, false);
			one(t, places[i], INFINITY, false);
			one(t, places[i], -INFINITY, false);
			one(t, places[i], -8388608, false);
		}
	}
}

/* Types of at most two bytes, small chunks, and swapped byte order. */
static void left_alone(void)
{
	static const enum pen_dtype types[] = { PEN_U8, PEN_I16, PEN_U16,
						PEN_F16 };
	uint8_t work[8192] = { 0 };
	struct pen_chunked a = { .dtype = PEN_F32,
				 .item = 4,
				 .chunk_bytes = 4092 };

	CHECK_EQ(pen__narrow(&a, work, a.chunk_bytes), 0);
	a.chunk_bytes = 8192;
	a.swap = true;
	CHECK_EQ(pen__narrow(&a, work, a.chunk_bytes), 0);
	a.swap = false;
	CHECK_EQ(pen__narrow(&a, work, a.chunk_bytes), 2048);
	for (size_t k = 0; k < 4; k++) {
		a.dtype = (uint8_t)types[k];
		a.item = (uint8_t)item_of(types[k]);
		CHECK_EQ(pen__narrow(&a, work, a.chunk_bytes), 0);
	}
}

int main(void)
{
	limits();
	left_alone();
	return test_end();
}
