/*
 * Chunks of the packed layout. Counts are nearly all 1 to 15, whatever type
 * they have, and genes of a cell lie some steps apart: both take a few bits.
 * Numbers that are no integers are stored by planes of bytes, deflated when
 * that helps. Which way is chosen for every chunk.
 * Refuses nothing when packing; when unpacking, whatever is not exactly a
 * chunk of the declared size.
 */
#include "codec/cellpack.h"

#include <math.h>

#include "base/half.h"
#include "codec/bitpack.h"
#include "codec/crc32c.h"
#include "codec/deflate.h"
#include "codec/shuffle.h"

enum { NO_PLACES, STEPS, PLACES };  /* how places are packed */
enum { PLAIN, INTEGERS, DEFLATED }; /* how numbers are */

#define LEVEL 6
#define BLOCK PEN_BITPACK

static size_t block_of(size_t n, size_t at)
{
	return n - at < BLOCK ? n - at : BLOCK;
}

/* ---- packing ---- */

static void put_block(const uint32_t *v, size_t n, struct pen_buf *out)
{
	uint8_t mem[PEN_BITPACK_BOUND];

	pen__buf_put(out, mem, pen__bitpack(v, n, mem));
}

static void put_steps(const struct pen_cellpack *c, const uint32_t *places,
		      struct pen_buf *out)
{
	uint32_t v[BLOCK], last = UINT32_MAX, row = 0;

	for (uint32_t at = 0; at < c->n; at += BLOCK) {
		const size_t n = block_of(c->n, at);

		for (size_t i = 0; i < n; i++) {
			for (; at + i == c->end[row]; row++)
				last = UINT32_MAX;
			v[i] = places[at + i] - last - 1;
			last = places[at + i];
		}
		put_block(v, n, out);
	}
}

static void put_places(const struct pen_cellpack *c, const uint32_t *places,
		       struct pen_buf *out)
{
	for (uint32_t at = 0; at < c->n; at += BLOCK)
		put_block(places + at, block_of(c->n, at), out);
}

/* Steps, unless rows are out of order and it does not pay. */
static unsigned choose_places(const struct pen_cellpack *c,
			      const uint32_t *places, struct pen_buf *out)
{
	const size_t at = out->n;
	struct pen_buf other = { 0 };
	uint32_t row = 0;
	bool sorted = true;

	for (uint32_t i = 1; sorted && i < c->n; i++) {
		while (c->end[row] < i)
			row++;
		sorted = c->end[row] == i || places[i] > places[i - 1];
	}
	put_steps(c, places, out);
	if (sorted)
		return STEPS;
	put_places(c, places, &other);
	out->bad |= other.bad;
	if (out->bad || other.n >= out->n - at) {
		pen__buf_fini(&other);
		return STEPS;
	}
	out->n = at;
	pen__buf_put(out, other.p, other.n);
	pen__buf_fini(&other);
	return PLACES;
}

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

/* n <= BLOCK numbers, when all are integers that come back the same. A zero
 * below zero does not. */
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

/* The least of them, when all are integers and not too far apart. */
static bool find_least(const struct pen_cellpack *c, const uint8_t *p,
		       int64_t *least)
{
	const size_t item = pen_dtype_size(c->dtype);
	int64_t v[BLOCK], most = INT64_MIN;

	*least = INT64_MAX;
	for (uint32_t at = 0; at < c->n; at += BLOCK) {
		const size_t n = block_of(c->n, at);

		if (!take_integers(c->dtype, p + at * item, n, v))
			return false;
		for (size_t i = 0; i < n; i++) {
			*least = v[i] < *least ? v[i] : *least;
			most = v[i] > most ? v[i] : most;
		}
	}
	return !c->n || (uint64_t)most - (uint64_t)*least <= UINT32_MAX;
}

static void put_integers(const struct pen_cellpack *c, const uint8_t *p,
			 int64_t least, struct pen_buf *out)
{
	const size_t item = pen_dtype_size(c->dtype);
	int64_t v[BLOCK];
	uint32_t u[BLOCK];

	pen__buf_le(out, (uint64_t)least, 8);
	for (uint32_t at = 0; at < c->n; at += BLOCK) {
		const size_t n = block_of(c->n, at);

		take_integers(c->dtype, p + at * item, n, v);
		for (size_t i = 0; i < n; i++)
			u[i] = (uint32_t)((uint64_t)v[i] - (uint64_t)least);
		put_block(u, n, out);
	}
}

/* false: not smaller than they are, or no memory to see */
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

static unsigned choose_values(const struct pen_cellpack *c,
			      const uint8_t *values, struct pen_buf *out)
{
	const size_t item = pen_dtype_size(c->dtype);
	const size_t at = out->n;
	int64_t least;

	if (find_least(c, values, &least)) {
		put_integers(c, values, least, out);
		if (out->bad || out->n - at < c->n * item)
			return INTEGERS;
		out->n = at;
	}
	if (put_deflated(values, c->n * item, item, out))
		return DEFLATED;
	pen__buf_put(out, values, c->n * item);
	return PLAIN;
}

static void patch(uint8_t *p, uint32_t v)
{
	for (unsigned i = 0; i < 4; i++)
		p[i] = (uint8_t)(v >> (8 * i));
}

void pen__cellpack(const struct pen_cellpack *c, const uint32_t *places,
		   const void *values, struct pen_buf *out)
{
	const uint8_t head[PEN_CELLPACK_HEAD] = { 0 };
	const size_t at = out->n;
	uint32_t len;

	pen__buf_put(out, head, sizeof(head));
	if (out->bad)
		return;
	if (c->end)
		out->p[at + 4] = (uint8_t)choose_places(c, places, out);
	len = (uint32_t)(out->n - at - sizeof(head));
	if (!out->bad)
		out->p[at + 5] = (uint8_t)choose_values(c, values, out);
	if (out->bad)
		return;
	patch(out->p + at + 8, len);
	patch(out->p + at, pen__crc32c(0, out->p + at + 4, out->n - at - 4));
}

/* ---- unpacking ---- */

typedef uint32_t uvec __attribute__((vector_size(16)));

/* Where n steps lead from `last`; four are added up side by side. */
static uint32_t walk(const uint32_t *step, uint32_t n, uint32_t last,
		     uint32_t *out)
{
	const uvec none = { 0 };
	uint32_t i = 0;
	uvec x;

	for (; i + 4 <= n; i += 4) {
		memcpy(&x, step + i, sizeof(x));
		x += 1;
		x += __builtin_shufflevector(x, none, 4, 0, 1, 2);
		x += __builtin_shufflevector(x, none, 4, 5, 0, 1);
		x += last;
		memcpy(out + i, &x, sizeof(x));
		last = x[3];
	}
	for (; i < n; i++)
		out[i] = last += step[i] + 1;
	return last;
}

/* Adds up steps, beginning anew where a row does. */
static void add_steps(const struct pen_cellpack *c, struct pen_bytes *in,
		      uint32_t *out)
{
	uint32_t v[BLOCK], last = UINT32_MAX, row = 0;

	for (uint32_t at = 0; at < c->n && !in->bad; at += BLOCK) {
		const uint32_t n = (uint32_t)block_of(c->n, at);
		uint32_t i = 0;

		pen__bitunpack(in, n, v);
		while (!in->bad && i < n) {
			const uint32_t left = c->end[row] - at;
			const uint32_t stop = left < n ? left : n;

			last = walk(v + i, stop - i, last, out + at + i);
			i = stop;
			for (; row < c->nrows && c->end[row] == at + i; row++)
				last = UINT32_MAX;
		}
	}
}

static void take_places(const struct pen_cellpack *c, struct pen_bytes *in,
			uint32_t *out)
{
	uint32_t v[BLOCK];

	for (uint32_t at = 0; at < c->n && !in->bad; at += BLOCK) {
		const size_t n = block_of(c->n, at);

		pen__bitunpack(in, n, v);
		memcpy(out + at, v, n * sizeof(*v));
	}
}

#define PUT(T, expr)                                                           \
	for (size_t i = 0; i < n; i++) {                                       \
		const T x = (T)(expr);                                         \
		memcpy(out + i * sizeof(x), &x, sizeof(x));                    \
	}                                                                      \
	break

typedef int32_t ivec __attribute__((vector_size(16)));
typedef float fvec __attribute__((vector_size(16)));

/* What most chunks are made of. */
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

static void unpack_integers(const struct pen_cellpack *c, struct pen_bytes *in,
			    uint8_t *out)
{
	const size_t item = pen_dtype_size(c->dtype);
	const uint64_t least = pen__take_u64(in);
	uint32_t v[BLOCK];

	for (uint32_t at = 0; at < c->n && !in->bad; at += BLOCK) {
		const size_t n = block_of(c->n, at);

		pen__bitunpack(in, n, v);
		if (!in->bad)
			put_numbers(c->dtype, v, least, n, out + at * item);
	}
}

static int unpack_deflated(const struct pen_cellpack *c, struct pen_bytes *in,
			   uint8_t *out, struct pen_scratch *s)
{
	const size_t item = pen_dtype_size(c->dtype), n = c->n * item;
	const size_t len = pen__bytes_left(in);
	int rc;

	if (s->size < n)
		return PEN_EDATA;
	rc = pen__inflate(s, pen__take(in, len), len, s->mem, n);
	if (rc >= 0)
		pen__unshuffle(item, s->mem, n, out);
	return rc;
}

static int unpack_values(const struct pen_cellpack *c, unsigned how,
			 struct pen_bytes *in, uint8_t *out,
			 struct pen_scratch *s)
{
	const size_t n = c->n * pen_dtype_size(c->dtype);
	const uint8_t *p;

	switch (how) {
	case INTEGERS:
		unpack_integers(c, in, out);
		break;
	case DEFLATED:
		return unpack_deflated(c, in, out, s);
	default:
		p = pen__take(in, n);
		if (p && n)
			memcpy(out, p, n);
	}
	return 0;
}

size_t pen__cellpack_room(enum pen_dtype t, uint64_t n)
{
	return (size_t)n * pen_dtype_size(t);
}

int pen__cellunpack(const struct pen_cellpack *c, const uint8_t *p, size_t n,
		    uint32_t *places, void *values, struct pen_scratch *s,
		    const char **why)
{
	struct pen_bytes in = pen__bytes(p, n), part;
	const uint32_t crc = pen__take_u32(&in);
	const unsigned how = pen__take_u8(&in), numbers = pen__take_u8(&in);
	const unsigned none = pen__take_u16(&in);
	const uint32_t len = pen__take_u32(&in);
	const uint8_t *at = pen__take(&in, len);
	int rc;

	*why = "is not what was packed: its checksum differs";
	if (in.bad || crc != pen__crc32c(0, p + 4, n - 4))
		return PEN_EDATA;
	*why = "is packed in a way this version does not know";
	if (how > PLACES || numbers > DEFLATED || none || !how != !c->end)
		return PEN_EDATA;
	*why = "is damaged, though its checksum is right";
	part = pen__bytes(at, len);
	if (how == STEPS && places)
		add_steps(c, &part, places);
	else if (how == PLACES && places)
		take_places(c, &part, places);
	if (part.bad || (places && pen__bytes_left(&part)))
		return PEN_EDATA;
	rc = unpack_values(c, numbers, &in, values, s);
	if (rc >= 0 && (in.bad || pen__bytes_left(&in)))
		rc = PEN_EDATA;
	return rc;
}
