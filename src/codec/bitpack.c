/*
 * Bit packing in lanes: eight numbers are unpacked by the same shifts, so a
 * block takes 32 branch-free steps, unrolled for every width. With AVX2 a step
 * is one vector operation; the vector code compiles for other CPUs, too.
 * Exceptions are patched afterwards: at the best width they are few.
 */
#include "codec/bitpack.h"

#include <stdbool.h>

#define LANES 8u
#define ROWS (PEN_BITPACK / LANES)

typedef uint32_t vec __attribute__((vector_size(4 * LANES)));

/* Words of all lanes for n numbers of w bits. */
static size_t words(size_t n, unsigned w)
{
	const size_t rows = (n + LANES - 1) / LANES;

	return (rows * w + 31) / 32 * LANES;
}

static unsigned bits(uint32_t v)
{
	return v ? 32 - (unsigned)__builtin_clz(v) : 0;
}

/* log2 of the bytes of an upper part of n bits */
static unsigned part_of(unsigned n)
{
	return n <= 8 ? 0 : n <= 16 ? 1 : 2;
}

/* ---- packing ---- */

/* The width that makes the block smallest. */
static unsigned choose(const uint32_t *in, size_t n, size_t *nabove)
{
	size_t of[33] = { 0 }, above = 0, best = SIZE_MAX;
	unsigned most, width = 32;

	for (size_t i = 0; i < n; i++)
		of[bits(in[i])]++;
	for (most = 32; most && !of[most];)
		most--;
	*nabove = 0;
	for (unsigned w = most; w <= most; w--) {
		size_t size = 4 * words(n, w);

		if (above)
			size += above * (1 + ((size_t)1 << part_of(most - w)));
		if (above <= UINT8_MAX && size < best) {
			best = size;
			width = w;
			*nabove = above;
		}
		above += of[w];
	}
	return width;
}

/* Row by row, so that the lanes are processed in parallel. */
static void put_words(const uint32_t *in, size_t n, unsigned w, uint8_t *out)
{
	const uint32_t mask = w < 32 ? ((uint32_t)1 << w) - 1 : UINT32_MAX;
	uint32_t word[PEN_BITPACK + LANES] = { 0 };

	for (size_t row = 0; w && row * LANES < n; row++) {
		uint32_t *to = &word[row * w / 32 * LANES];
		const unsigned shift = row * w % 32;
		uint32_t v[LANES] = { 0 };

		memcpy(v, in + row * LANES,
		       4 * (n - row * LANES < LANES ? n - row * LANES : LANES));
		for (unsigned k = 0; k < LANES; k++) {
			to[k] |= (v[k] & mask) << shift;
			if (shift)
				to[k + LANES] |= (v[k] & mask) >> (32 - shift);
		}
	}
	for (size_t i = 0; i < words(n, w); i++)
		for (unsigned k = 0; k < 4; k++)
			out[4 * i + k] = (uint8_t)(word[i] >> (8 * k));
}

size_t pen__bitpack(const uint32_t *in, size_t n, uint8_t *out)
{
	uint8_t *p = out, *part;
	uint32_t all = 0;
	unsigned w, log;
	size_t above;

	for (size_t i = 0; i < n; i++)
		all |= in[i];
	w = choose(in, n, &above);
	log = above ? part_of(bits(all) - w) : 0;
	*p++ = (uint8_t)(w | log << 6);
	*p++ = (uint8_t)above;
	put_words(in, n, w, p);
	p += 4 * words(n, w);
	part = p + above;
	for (size_t i = 0; above && i < n; i++) {
		if (bits(in[i]) <= w)
			continue;
		*p++ = (uint8_t)i;
		for (unsigned k = 0; k < 1u << log; k++)
			*part++ = (uint8_t)(in[i] >> w >> (8 * k));
	}
	return (size_t)((above ? part : p) - out);
}

/* ---- unpacking ---- */

/* Parts of a block, after checking its head. */
struct block {
	unsigned w, log, nabove;
	const uint8_t *words, *at, *part;
};

static bool take_block(struct pen_bytes *in, size_t n, struct block *b)
{
	const uint8_t *head = pen__take(in, 2);

	if (!head)
		return false;
	b->w = head[0] & 63;
	b->log = head[0] >> 6;
	b->nabove = head[1];
	if (b->w > 32 || b->log > 2 || (b->w == 32 && b->nabove))
		in->bad = true;
	b->words = pen__take(in, 4 * words(n, b->w));
	b->at = pen__take(in, b->nabove);
	b->part = pen__take(in, (size_t)b->nabove << b->log);
	return !in->bad;
}

static void put_exceptions(const struct block *b, uint32_t *out)
{
	const uint8_t *p = b->part;

	switch (b->log) {
	case 0:
		for (unsigned i = 0; i < b->nabove; i++)
			out[b->at[i]] |= (uint32_t)p[i] << b->w;
		break;
	case 1:
		for (unsigned i = 0; i < b->nabove; i++, p += 2)
			out[b->at[i]] |= (p[0] | (uint32_t)p[1] << 8) << b->w;
		break;
	default:
		for (unsigned i = 0; i < b->nabove; i++, p += 4)
			out[b->at[i]] |=
				(p[0] | (uint32_t)p[1] << 8 |
				 (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24)
				<< b->w;
	}
}

static uint32_t word_at(const struct block *b, size_t i)
{
	const uint8_t *p = b->words + 4 * i;

	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
	       (uint32_t)p[3] << 24;
}

static void put_plain(const struct block *b, size_t n, uint32_t *out)
{
	const uint32_t mask = b->w < 32 ? ((uint32_t)1 << b->w) - 1
					: UINT32_MAX;

	for (size_t i = 0; i < n; i++) {
		const size_t at = i / LANES * b->w;
		const size_t word = at / 32 * LANES + i % LANES;
		const unsigned shift = at % 32;
		uint32_t v = 0;

		if (b->w)
			v = word_at(b, word) >> shift;
		if (shift + b->w > 32)
			v |= word_at(b, word + LANES) << (32 - shift);
		out[i] = v & mask;
	}
}

void pen__bitunpack_plain(struct pen_bytes *in, size_t n, uint32_t *out)
{
	struct block b;

	if (!take_block(in, n, &b))
		return;
	/* damaged exceptions may be past the numbers */
	memset(out, 0, PEN_BITPACK * sizeof(*out));
	put_plain(&b, n, out);
	put_exceptions(&b, out);
}

/* ---- unpacking by vectors ---- */

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define INLINE static inline __attribute__((always_inline))

/* A full block; w is a constant at every call. */
INLINE void unpack_width(const uint8_t *p, unsigned w, uint32_t *out)
{
	const uint32_t mask = w < 32 ? ((uint32_t)1 << w) - 1 : UINT32_MAX;
	vec v, next;

#pragma GCC unroll 32
	for (unsigned i = 0; i < ROWS; i++) {
		const unsigned at = i * w, shift = at % 32;

		memcpy(&v, p + at / 32 * sizeof(v), sizeof(v));
		v >>= shift;
		if (shift + w > 32) {
			memcpy(&next, p + (at / 32 + 1) * sizeof(v), sizeof(v));
			v |= next << (32 - shift);
		}
		v &= mask;
		memcpy(out + i * LANES, &v, sizeof(v));
	}
}

#define CASE(w)                                                                \
	case w:                                                                \
		unpack_width(p, w, out);                                       \
		break;
#define CASES(w) CASE(w) CASE(w + 1) CASE(w + 2) CASE(w + 3)

INLINE void unpack_any(const uint8_t *p, unsigned w, uint32_t *out)
{
	switch (w) {
		CASES(1)
		CASES(5)
		CASES(9)
		CASES(13)
		CASES(17)
		CASES(21)
		CASES(25)
		CASES(29)
	default:
		memset(out, 0, PEN_BITPACK * sizeof(*out));
	}
}

static void unpack_common(const uint8_t *p, unsigned w, uint32_t *out)
{
	unpack_any(p, w, out);
}

#ifdef __x86_64__
__attribute__((target("avx2"))) static void
unpack_avx2(const uint8_t *p, unsigned w, uint32_t *out)
{
	unpack_any(p, w, out);
}

static void unpack(const uint8_t *p, unsigned w, uint32_t *out)
{
	if (__builtin_cpu_supports("avx2"))
		unpack_avx2(p, w, out);
	else
		unpack_common(p, w, out);
}
#else
static void unpack(const uint8_t *p, unsigned w, uint32_t *out)
{
	unpack_common(p, w, out);
}
#endif

void pen__bitunpack(struct pen_bytes *in, size_t n, uint32_t *out)
{
	uint8_t room[4 * PEN_BITPACK];
	struct block b;

	if (!take_block(in, n, &b))
		return;
	if (words(n, b.w) < words(PEN_BITPACK, b.w)) {
		/* the last block has fewer words than are loaded */
		memset(room, 0, sizeof(room));
		memcpy(room, b.words, 4 * words(n, b.w));
		b.words = room;
	}
	unpack(b.words, b.w, out);
	put_exceptions(&b, out);
}

#else
void pen__bitunpack(struct pen_bytes *in, size_t n, uint32_t *out)
{
	pen__bitunpack_plain(in, n, out);
}
#endif
