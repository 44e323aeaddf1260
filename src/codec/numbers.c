/*
 * Numbers of rows, or of a column. Counts are nearly all 1 to 15, whatever
 * their type, and take a few bits; normalised counts still have few distinct
 * values per row (tables.c). Other numbers are stored as byte planes, deflated
 * if that helps, or unchanged.
 */
#include <math.h>

#include "base/half.h"
#include "codec/cellpack_int.h"
#include "codec/deflate.h"
#include "codec/byte_shuffle.h"

enum { PLAIN, INTEGERS, DEFLATED, TABLES }; /* how they are packed */

#define LEVEL 6

/* ---- packing ---- */

#define TAKE(T, test, as)                                                      \
	for (size_t i = 0; i < n; i++) {                                       \
		T x;                                                           \
		memcpy(&x, p + i * sizeof(x), sizeof(x));                      \
		if (!(test))                                                   \
			return false;                                          \
		out[i] = (int64_t)(as);                                        \
	}                                                                      \
	return true

static bool take_halves(const uint8_t *p, size_t n, int64_t *out)
{
	TAKE(uint16_t,
	     (x & 0x7c00) != 0x7c00 && x != 0x8000 &&
		     pen__half_to_double(x) == floor(pen__half_to_double(x)),
	     pen__half_to_double(x));
}

/* Converts n <= BLOCK numbers if all are integers that can be restored exactly,
 * which excludes negative zero. */
static bool take_integers(enum pen_dtype t, const uint8_t *p, size_t n,
			  int64_t *out)
{
	switch (t) {
	case PEN_I8:
		TAKE(int8_t, true, x);
	case PEN_I16:
		TAKE(int16_t, true, x);
	case PEN_U16:
		TAKE(uint16_t, true, x);
	case PEN_I32:
		TAKE(int32_t, true, x);
	case PEN_U32:
		TAKE(uint32_t, true, x);
	case PEN_I64:
		TAKE(int64_t, true, x);
	case PEN_U64:
		TAKE(uint64_t, x <= INT64_MAX, x);
	case PEN_F16:
		return take_halves(p, n, out);
	case PEN_F32:
		TAKE(float,
		     x >= -0x1p24f && x <= 0x1p24f && x == (float)(int32_t)x &&
			     !(x == 0 && signbit(x)),
		     x);
	case PEN_F64:
		TAKE(double,
		     x >= -0x1p53 && x <= 0x1p53 && x == (double)(int64_t)x &&
			     !(x == 0 && signbit(x)),
		     x);
	default:
		TAKE(uint8_t, true, x);
	}
}

/* Minimum and maximum, if all are integers in a range of 32 bits. */
static bool find_range(enum pen_dtype t, const uint8_t *p, uint32_t count,
		       int64_t range[2])
{
	const size_t item = pen_dtype_size(t);
	int64_t v[BLOCK], least = INT64_MAX, most = INT64_MIN;

	for (uint32_t at = 0; at < count; at += BLOCK) {
		const size_t n = block_of(count, at);

		if (!take_integers(t, p + at * item, n, v))
			return false;
		for (size_t i = 0; i < n; i++) {
			least = v[i] < least ? v[i] : least;
			most = v[i] > most ? v[i] : most;
		}
	}
	range[0] = count ? least : 0;
	range[1] = count ? most : 0;
	return (uint64_t)range[1] - (uint64_t)range[0] <= UINT32_MAX;
}

static void put_integers(enum pen_dtype t, const uint8_t *p, uint32_t count,
			 int64_t least, struct pen_buf *out)
{
	const size_t item = pen_dtype_size(t);
	int64_t v[BLOCK];
	uint32_t u[BLOCK];

	pen__buf_le(out, (uint64_t)least, 8);
	for (uint32_t at = 0; at < count; at += BLOCK) {
		const size_t n = block_of(count, at);

		take_integers(t, p + at * item, n, v);
		for (size_t i = 0; i < n; i++)
			u[i] = (uint32_t)((uint64_t)v[i] - (uint64_t)least);
		pen__cellpack_block(u, n, out);
	}
}

/* false: not smaller, or no memory */
static bool put_deflated(const uint8_t *p, size_t n, size_t item,
			 struct pen_buf *out)
{
	uint8_t *planes = pen__alloc(n ? n : 1, 2);
	const size_t count = n / item;
	size_t got = 0;

	if (!planes)
		return false;
	for (size_t k = 0; k < item; k++)
		for (size_t i = 0; i < count; i++)
			planes[k * count + i] = p[i * item + k];
	if (n > 64)
		got = pen__deflate(LEVEL, planes, n, planes + n, n - n / 32);
	if (got)
		pen__buf_put(out, planes + n, got);
	pen__free(planes);
	return got > 0;
}

/* Integers that take more than half of their bytes may be text. Inflating is
 * slow, so it must save enough. */
static unsigned choose_values(const struct pen_cellrows *r, enum pen_dtype t,
			      const uint8_t *values, uint32_t count,
			      struct pen_buf *out, int64_t range[2])
{
	const size_t item = pen_dtype_size(t), n = count * item;
	const size_t at = out->n;
	size_t packed = SIZE_MAX, mid;

	if (find_range(t, values, count, range)) {
		put_integers(t, values, count, range[0], out);
		packed = out->n - at;
		if (out->bad || packed <= n / 2)
			return INTEGERS;
	}
	if (packed == SIZE_MAX && r &&
	    pen__tables_pack(r, item, values, count, out))
		return TABLES;
	mid = out->n;
	if (put_deflated(values, n, item, out) && !out->bad) {
		if (packed == SIZE_MAX)
			return DEFLATED;
		if (out->n - mid < packed / 8 * 5) {
			memmove(out->p + at, out->p + mid, out->n - mid);
			out->n -= mid - at;
			return DEFLATED;
		}
	}
	out->n = mid;
	if (packed < n)
		return INTEGERS;
	out->n = at;
	pen__buf_put(out, values, n);
	return PLAIN;
}

void pen__numbers_pack(const struct pen_cellrows *r, enum pen_dtype t,
		       const void *values, uint32_t n, struct pen_buf *out,
		       uint64_t *top)
{
	const size_t at = pen__cellpack_begin(out);
	int64_t range[2];
	const unsigned how = choose_values(r, t, values, n, out, range);

	pen__cellpack_end(out, at, how);
	if (top)
		*top = how == INTEGERS && range[0] >= 0 ? (uint64_t)range[1]
							: UINT64_MAX;
}

/* ---- unpacking ---- */

#define PUT(T, expr)                                                           \
	for (size_t i = 0; i < n; i++) {                                       \
		const T x = (T)(expr);                                         \
		memcpy(out + i * sizeof(x), &x, sizeof(x));                    \
	}                                                                      \
	break

typedef int32_t ivec __attribute__((vector_size(16)));
typedef float fvec __attribute__((vector_size(16)));

/* The type of most chunks. */
static void put_floats(const uint32_t *v, int32_t least, size_t n, uint8_t *out)
{
	size_t i = 0;

	for (; i + 4 <= n; i += 4) {
		ivec a;
		fvec f;

		memcpy(&a, v + i, sizeof(a));
		f = __builtin_convertvector(a + least, fvec);
		memcpy(out + i * 4, &f, sizeof(f));
	}
	for (; i < n; i++) {
		const float f = (float)(int32_t)(v[i] + (uint32_t)least);

		memcpy(out + i * 4, &f, sizeof(f));
	}
}

static void put_numbers(enum pen_dtype t, const uint32_t *v, uint64_t least,
			size_t n, uint8_t *out)
{
	switch (t) {
	case PEN_I16:
	case PEN_U16:
		PUT(uint16_t, v[i] + least);
	case PEN_I32:
	case PEN_U32:
		PUT(uint32_t, v[i] + least);
	case PEN_I64:
	case PEN_U64:
		PUT(uint64_t, v[i] + least);
	case PEN_F16:
		PUT(uint16_t,
		    pen__double_to_half((double)(int64_t)(v[i] + least)));
	case PEN_F32:
		put_floats(v, (int32_t)(uint32_t)least, n, out);
		break;
	case PEN_F64:
		PUT(double, (int64_t)(v[i] + least));
	default:
		PUT(uint8_t, v[i] + least);
	}
}

static void unpack_integers(const struct pen_cellnumbers *c,
			    struct pen_bytes *in)
{
	const size_t item = pen_dtype_size(c->as);
	const uint64_t least = pen__take_u64(in);
	uint8_t *out = c->to;
	uint32_t v[BLOCK];

	for (uint32_t at = 0; at < c->n && !in->bad; at += BLOCK) {
		const size_t n = block_of(c->n, at);

		pen__bitunpack(in, n, v);
		if (in->bad)
			return;
		if (c->as == c->dtype)
			put_numbers(c->dtype, v, least, n, out + at * item);
		else if (!pen__cellpack_narrow(v, least, n, (unsigned)item,
					       out + at * item))
			in->bad = true;
	}
}

static int unpack_deflated(size_t item, struct pen_bytes *in, uint8_t *out,
			   size_t n, struct pen_scratch *s)
{
	const size_t len = pen__bytes_left(in);
	int rc;

	if (s->size < n)
		return PEN_EDATA;
	rc = pen__inflate(s, pen__take(in, len), len, s->mem, n);
	if (rc >= 0)
		pen__unshuffle(item, s->mem, n, out);
	return rc;
}

size_t pen__numbers_room(enum pen_dtype t, uint64_t n)
{
	return (size_t)n * pen_dtype_size(t);
}

int pen__numbers_unpack(const struct pen_cellnumbers *c, const uint8_t *p,
			size_t len, struct pen_scratch *s, const char **why)
{
	struct pen_bytes in = pen__bytes(p, len);
	const size_t item = pen_dtype_size(c->dtype), size = c->n * item;
	const int how = pen__cellpack_open(&in, TABLES, why);
	const uint8_t *plain;
	int rc = 0;

	if (c->as != c->dtype && how != INTEGERS)
		return PEN_EDATA;
	switch (how) {
	case PLAIN:
		plain = pen__take(&in, size);
		if (plain && size)
			memcpy(c->to, plain, size);
		break;
	case INTEGERS:
		unpack_integers(c, &in);
		break;
	case DEFLATED:
		rc = unpack_deflated(item, &in, c->to, size, s);
		break;
	case TABLES:
		pen__tables_unpack(c, &in);
		break;
	default:
		return PEN_EDATA;
	}
	return rc ? rc : in.bad || pen__bytes_left(&in) ? PEN_EDATA : 0;
}
