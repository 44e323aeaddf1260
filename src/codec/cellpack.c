/*
 * Packing of rows. Counts are nearly all 1 to 15, whatever type
 * they have, and genes of a cell lie some steps apart: both take a few bits.
 * Numbers that are no integers are stored by planes of bytes, deflated when
 * that helps. Which way is chosen for every chunk.
 * Refuses nothing when packing; when unpacking, whatever is not exactly as
 * many as it should be.
 */
#include "codec/cellpack.h"

#include <math.h>

#include "base/half.h"
#include "codec/bitpack.h"
#include "codec/crc32c.h"
#include "codec/deflate.h"
#include "codec/shuffle.h"

enum { STEPS = 1, PLACES };	    /* how places are packed */
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

static uint64_t start_of(const struct pen_cellrows *r, uint64_t row)
{
	const uint8_t *p = (const uint8_t *)r->starts + row * r->width;
	uint64_t at;
	uint32_t a;

	if (r->width == 4) {
		memcpy(&a, p, sizeof(a));
		return a;
	}
	memcpy(&at, p, sizeof(at));
	return at;
}

/* Where row `row` ends; the last one goes on for ever. */
static uint64_t row_end(const struct pen_cellrows *r, uint32_t row)
{
	if (row >= r->nrows)
		return UINT64_MAX;
	return start_of(r, (uint64_t)row + 1) - start_of(r, 0);
}

static void put_steps(const struct pen_cellrows *r, const uint32_t *places,
		      uint32_t count, struct pen_buf *out)
{
	uint32_t v[BLOCK], last = UINT32_MAX, row = 0;
	uint64_t end = row_end(r, 0);

	for (uint32_t at = 0; at < count; at += BLOCK) {
		const size_t n = block_of(count, at);

		for (size_t i = 0; i < n; i++) {
			for (; end <= at + i; end = row_end(r, ++row))
				last = UINT32_MAX;
			v[i] = places[at + i] - last - 1;
			last = places[at + i];
		}
		put_block(v, n, out);
	}
}

static void put_places(const uint32_t *places, uint32_t n, struct pen_buf *out)
{
	for (uint32_t at = 0; at < n; at += BLOCK)
		put_block(places + at, block_of(n, at), out);
}

static bool is_sorted(const struct pen_cellrows *r, const uint32_t *places,
		      uint32_t n)
{
	uint64_t end = row_end(r, 0);
	uint32_t row = 0;

	for (uint32_t i = 1; i < n; i++) {
		while (end < i)
			end = row_end(r, ++row);
		if (end != i && places[i] <= places[i - 1])
			return false;
	}
	return true;
}

/* Steps, unless rows are out of order and it does not pay. */
static unsigned choose_places(const struct pen_cellrows *r,
			      const uint32_t *places, uint32_t n,
			      struct pen_buf *out)
{
	const size_t at = out->n;
	struct pen_buf other = { 0 };

	put_steps(r, places, n, out);
	if (is_sorted(r, places, n))
		return STEPS;
	put_places(places, n, &other);
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
static bool find_least(enum pen_dtype t, const uint8_t *p, uint32_t count,
		       int64_t *least)
{
	const size_t item = pen_dtype_size(t);
	int64_t v[BLOCK], most = INT64_MIN;

	*least = INT64_MAX;
	for (uint32_t at = 0; at < count; at += BLOCK) {
		const size_t n = block_of(count, at);

		if (!take_integers(t, p + at * item, n, v))
			return false;
		for (size_t i = 0; i < n; i++) {
			*least = v[i] < *least ? v[i] : *least;
			most = v[i] > most ? v[i] : most;
		}
	}
	return !count || (uint64_t)most - (uint64_t)*least <= UINT32_MAX;
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

/* What takes more than half of its bytes as integers may be text. Inflating
 * is slow, and has to be worth it. */
static unsigned choose_values(enum pen_dtype t, const uint8_t *values,
			      uint32_t count, struct pen_buf *out)
{
	const size_t item = pen_dtype_size(t), n = count * item;
	const size_t at = out->n;
	size_t packed = SIZE_MAX, mid;
	int64_t least;

	if (find_least(t, values, count, &least)) {
		put_integers(t, values, count, least, out);
		packed = out->n - at;
		if (out->bad || packed <= n / 2)
			return INTEGERS;
	}
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

static void patch(uint8_t *p, uint32_t v)
{
	for (unsigned i = 0; i < 4; i++)
		p[i] = (uint8_t)(v >> (8 * i));
}

static size_t put_head(struct pen_buf *out)
{
	const uint8_t head[PEN_CELLPACK_HEAD] = { 0 };

	pen__buf_put(out, head, sizeof(head));
	return out->n - (out->bad ? out->n : sizeof(head));
}

static void put_seal(struct pen_buf *out, size_t at, unsigned how)
{
	if (out->bad)
		return;
	out->p[at + 4] = (uint8_t)how;
	patch(out->p + at, pen__crc32c(0, out->p + at + 4, out->n - at - 4));
}

void pen__places_pack(const struct pen_cellrows *r, const uint32_t *places,
		      uint32_t n, struct pen_buf *out)
{
	const size_t at = put_head(out);

	put_seal(out, at, choose_places(r, places, n, out));
}

void pen__numbers_pack(enum pen_dtype t, const void *values, uint32_t n,
		       struct pen_buf *out)
{
	const size_t at = put_head(out);

	put_seal(out, at, choose_values(t, values, n, out));
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
static void add_steps(const struct pen_cellrows *r, struct pen_bytes *in,
		      uint32_t *out, uint32_t count)
{
	uint32_t v[BLOCK], last = UINT32_MAX, row = 0;
	uint64_t end = row_end(r, 0);

	for (uint32_t at = 0; at < count; at += BLOCK) {
		const uint32_t n = (uint32_t)block_of(count, at);
		uint32_t i = 0;

		pen__bitunpack(in, n, v);
		if (in->bad)
			return;
		while (i < n) {
			uint32_t stop = n;

			/* before i, too, if rows are not what they were */
			if (end <= at + i) {
				end = row_end(r, ++row);
				last = UINT32_MAX;
				continue;
			}
			if (end < at + n)
				stop = (uint32_t)end - at;
			last = walk(v + i, stop - i, last, out + at + i);
			i = stop;
		}
	}
}

static void take_places(struct pen_bytes *in, uint32_t *out, uint32_t count)
{
	uint32_t v[BLOCK];

	for (uint32_t at = 0; at < count && !in->bad; at += BLOCK) {
		const size_t n = block_of(count, at);

		pen__bitunpack(in, n, v);
		if (!in->bad)
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

static void unpack_integers(enum pen_dtype t, struct pen_bytes *in,
			    uint8_t *out, uint32_t count)
{
	const size_t item = pen_dtype_size(t);
	const uint64_t least = pen__take_u64(in);
	uint32_t v[BLOCK];

	for (uint32_t at = 0; at < count && !in->bad; at += BLOCK) {
		const size_t n = block_of(count, at);

		pen__bitunpack(in, n, v);
		if (!in->bad)
			put_numbers(t, v, least, n, out + at * item);
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

/* What is behind the head; -1 when that is none. */
static int open_seal(struct pen_bytes *in, unsigned most, const char **why)
{
	const uint8_t *p = in->p;
	const size_t len = pen__bytes_left(in);
	const uint32_t crc = pen__take_u32(in);
	const unsigned how = pen__take_u8(in);
	const uint64_t none = pen__take_le(in, 3);

	*why = "is not what was packed: its checksum differs";
	if (in->bad || crc != pen__crc32c(0, p + 4, len - 4))
		return -1;
	*why = "is packed in a way this version does not know";
	if (how > most || none)
		return -1;
	*why = "is damaged, though its checksum is right";
	return (int)how;
}

int pen__places_unpack(const struct pen_cellrows *r, const uint8_t *p,
		       size_t len, uint32_t *out, uint32_t n, const char **why)
{
	struct pen_bytes in = pen__bytes(p, len);
	const int how = open_seal(&in, PLACES, why);

	if (how == STEPS)
		add_steps(r, &in, out, n);
	else if (how == PLACES)
		take_places(&in, out, n);
	else
		return PEN_EDATA;
	return in.bad || pen__bytes_left(&in) ? PEN_EDATA : 0;
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
	const uint8_t *plain;
	int rc = 0;

	switch (open_seal(&in, DEFLATED, why)) {
	case PLAIN:
		plain = pen__take(&in, size);
		if (plain && size)
			memcpy(c->to, plain, size);
		break;
	case INTEGERS:
		unpack_integers(c->dtype, &in, c->to, c->n);
		break;
	case DEFLATED:
		rc = unpack_deflated(item, &in, c->to, size, s);
		break;
	default:
		return PEN_EDATA;
	}
	return rc ? rc : in.bad || pen__bytes_left(&in) ? PEN_EDATA : 0;
}
