/*
 * Chunks of the packed layout: every width against plain arithmetic, rows of
 * every form and type bit for bit, and bytes that are not a chunk.
 */
#include <math.h>

#include "base/mem.h"
#include "base/rng.h"
#include "codec/bitpack.h"
#include "codec/cellpack.h"
#include "codec/cellpack_int.h"
#include "codec/crc32c.h"
#include "test.h"

/* ---- blocks ---- */

static void check_block(const uint32_t *v, size_t n)
{
	uint8_t *packed = malloc(PEN_BITPACK_BOUND), *exact;
	uint32_t a[PEN_BITPACK], b[PEN_BITPACK];
	const size_t len = pen__bitpack(v, n, packed);
	struct pen_bytes in;

	CHECK(len >= 2 && len <= PEN_BITPACK_BOUND);
	/* exact size, so that a sanitizer detects overflows */
	exact = malloc(len);
	memcpy(exact, packed, len);
	in = pen__bytes(exact, len);
	pen__bitunpack(&in, n, a);
	CHECK(!in.bad && !pen__bytes_left(&in));
	in = pen__bytes(exact, len);
	pen__bitunpack_plain(&in, n, b);
	CHECK(!in.bad && !pen__bytes_left(&in));
	CHECK(memcmp(a, v, n * 4) == 0 && memcmp(b, v, n * 4) == 0);
	free(packed);
	free(exact);
}

/* Numbers in one or two bytes: the largest that fits at place `at`, and the
 * next one. */
static void narrow_at(unsigned width, uint32_t add, size_t n, size_t at)
{
	uint32_t in[20] = { 0 }, v;
	uint8_t out[40], want[40];

	for (size_t i = 0; i < n; i++) {
		in[i] = i == at ? (1u << 8 * width) - 1 - add : (uint32_t)i;
		v = in[i] + add;
		memcpy(want + i * width, &v, width);
	}
	CHECK(pen__cellpack_narrow(in, add, n, width, out));
	CHECK(!memcmp(out, want, n * width));
	in[at]++;
	CHECK(!pen__cellpack_narrow(in, add, n, width, out));
	CHECK(!pen__cellpack_narrow(in, 65536, n, width, out));
}

static void test_narrow(void)
{
	for (size_t n = 1; n <= 20; n++)
		for (size_t at = 0; at < n; at++) {
			narrow_at(1, 0, n, at);
			narrow_at(1, 7, n, at);
			narrow_at(2, 0, n, at);
			narrow_at(2, 7, n, at);
		}
}

static void test_blocks(void)
{
	static const size_t lengths[] = { 1, 7, 8, 9, 31, 100, 255, 256 };
	struct pen_rng r = pen__rng(1, 2);
	uint32_t v[PEN_BITPACK];

	for (unsigned w = 0; w <= 32; w++)
		for (unsigned k = 0; k < 8; k++)
			/* share: one of this many has the full width */
			for (unsigned share = 0; share < 4; share++) {
				const unsigned rare[] = { 0, 2, 9, 100 };

				for (size_t i = 0; i < PEN_BITPACK; i++) {
					v[i] = (uint32_t)pen__rng_u64(&r);
					v[i] = w ? v[i] >> (32 - w) : 0;
					if (share &&
					    !pen__rng_below(&r, rare[share]))
						v[i] = (uint32_t)pen__rng_u64(
							&r);
				}
				check_block(v, lengths[k]);
			}
	memset(v, 0xff, sizeof(v));
	check_block(v, PEN_BITPACK);
}

/* Arbitrary bytes: both functions read the same, and nothing beyond. */
static void test_block_bytes(void)
{
	struct pen_rng r = pen__rng(3, 4);

	for (unsigned k = 0; k < 20000; k++) {
		const size_t len = pen__rng_below(&r, k % 2 ? 40 : 1100);
		const size_t n = 1 + pen__rng_below(&r, PEN_BITPACK);
		uint8_t *p = malloc(len ? len : 1);
		uint32_t a[PEN_BITPACK] = { 0 }, b[PEN_BITPACK] = { 0 };
		struct pen_bytes x, y;

		pen__rng_fill(5, k, 0, p, len);
		if (len && k % 3)
			p[0] &= 0x9f;
		x = y = pen__bytes(p, len);
		pen__bitunpack(&x, n, a);
		pen__bitunpack_plain(&y, n, b);
		CHECK_EQ(x.bad, y.bad);
		if (!x.bad) {
			CHECK(x.p == y.p);
			CHECK(memcmp(a, b, n * 4) == 0);
		}
		free(p);
	}
}

/* ---- chunks ---- */

struct chunk {
	struct pen_cellrows rows;
	enum pen_dtype dtype;
	uint32_t n;
	uint64_t start[41]; /* 8 or 4 bytes each */
	uint32_t start4[41];
	uint32_t *places;
	uint8_t *values;
	struct pen_buf packed; /* places, then numbers */
	size_t nplaces;
	uint64_t top;
	size_t item;
};

enum { COUNTS, WIDE, NEGATIVE, FRACTIONS, NOISE, SPECIAL, NKINDS };

static double number(struct pen_rng *r, int kind)
{
	const double u = pen__rng_double(r);

	switch (kind) {
	case COUNTS:
		return u < 0.76 ? 1 : floor(2 + 30 * (u - 0.76));
	case WIDE:
		return floor(u * 16777216);
	case NEGATIVE:
		return floor(u * 200) - 100;
	default:
		return log1p(floor(u * 9)) * 1.7;
	}
}

static void put_number(struct chunk *k, uint32_t i, double v)
{
	uint8_t *p = k->values + i * k->item;
	const int64_t whole = (int64_t)v;
	const float f = (float)v;

	if (k->dtype == PEN_F32)
		memcpy(p, &f, 4);
	else if (k->dtype == PEN_F64)
		memcpy(p, &v, 8);
	else
		memcpy(p, &whole, k->item);
}

static void put_special(struct chunk *k, uint32_t i)
{
	static const double v[] = {
		-0.0,	  0.0,		INFINITY,	   NAN, 1e300, 16777216,
		16777217, 4294967296.0, 9007199254740993.0
	};

	put_number(k, i, v[i % 9]);
}

static void fill(struct chunk *k, struct pen_rng *r, int kind, bool sorted)
{
	uint32_t row = 0, last = UINT32_MAX;

	for (uint32_t i = 0; i < k->n; i++) {
		for (; i == k->start4[row + 1]; row++)
			last = UINT32_MAX;
		if (sorted)
			last += 1 +
				(uint32_t)pen__rng_below(
					r, pen__rng_below(r, 99) ? 20 : 90000);
		else
			last = (uint32_t)pen__rng_u64(r) >> (i % 2 ? 0 : 20);
		k->places[i] = last;
		if (kind < NOISE)
			put_number(k, i, number(r, kind));
	}
	if (kind == NOISE)
		pen__rng_fill(7, k->n, 0, k->values, k->n * k->item);
	for (uint32_t i = 0; kind == SPECIAL && i < k->n; i++)
		put_special(k, i);
}

static void make_chunk(struct chunk *k, enum pen_dtype t, uint32_t nrows,
		       bool wide)
{
	struct pen_rng r = pen__rng(11, nrows);
	uint32_t n = 0;

	*k = (struct chunk){ .item = pen_dtype_size(t), .dtype = t };
	for (uint32_t i = 0; i < nrows; i++) {
		n += (uint32_t)pen__rng_below(&r, i % 5 == 1 ? 1 : 300);
		k->start4[i + 1] = n;
		k->start[i + 1] = n;
	}
	/* rows of a matrix do not start at 0 */
	for (uint32_t i = 0; i <= nrows; i++)
		k->start[i] += (uint64_t)1 << 40;
	k->n = n;
	k->rows = (struct pen_cellrows){ wide ? (void *)k->start
					      : (void *)k->start4,
					 wide ? 8 : 4, nrows };
	k->places = malloc(4 * (size_t)n + 1);
	k->values = malloc(k->item * n + 1);
}

static void pack(struct chunk *k)
{
	pen__places_pack(&k->rows, k->places, k->n, &k->packed);
	k->nplaces = k->packed.n;
	pen__numbers_pack(&k->rows, k->dtype, k->values, k->n, &k->packed,
			  &k->top);
}

/* buffer of exactly the size of the numbers or places */
static int unpack(const struct chunk *k, const uint8_t *p, size_t len,
		  bool numbers, struct pen_scratch *s)
{
	uint8_t *to = malloc(8 * (size_t)k->n + 1), *copy = malloc(len + 1);
	const struct pen_cellnumbers c = { k->dtype, k->dtype, k->n, to,
					   &k->rows };
	const struct pen_cellplaces g = { &k->rows, to, k->n, 4 };
	const char *why = NULL;
	int rc;

	memset(to, 0xee, 8 * (size_t)k->n);
	memcpy(copy, p, len);
	copy = realloc(copy, len ? len : 1);
	if (numbers)
		rc = pen__numbers_unpack(&c, copy, len, s, &why);
	else
		rc = pen__places_unpack(&g, copy, len, &why);
	CHECK(rc == 0 || why);
	if (rc == 0 && memcmp(to, numbers ? k->values : (uint8_t *)k->places,
			      numbers ? k->n * k->item : 4 * (size_t)k->n))
		rc = 1;
	free(to);
	free(copy);
	return rc;
}

static void free_chunk(struct chunk *k)
{
	free(k->places);
	free(k->values);
	pen__buf_fini(&k->packed);
}

static void check_chunk(struct chunk *k, struct pen_scratch *s)
{
	const uint8_t *p;

	pack(k);
	CHECK(!k->packed.bad);
	p = k->packed.p;
	CHECK_EQ(unpack(k, p, k->nplaces, false, s), 0);
	CHECK_EQ(unpack(k, p + k->nplaces, k->packed.n - k->nplaces, true, s),
		 0);
}

/* Numbers that fit are unpacked to fewer bytes; others fail. */
static void check_narrow(struct chunk *k, struct pen_scratch *s)
{
	const enum pen_dtype as[] = { PEN_U8, PEN_U16 };
	const uint8_t *p = k->packed.p + k->nplaces;
	const size_t len = k->packed.n - k->nplaces;
	uint16_t *to = malloc(2 * (size_t)k->n + 1);
	struct pen_cellplaces g = { &k->rows, to, k->n, 2 };
	uint32_t most = 0;
	const char *why;

	for (int i = 0; i < 2; i++) {
		const struct pen_cellnumbers c = { k->dtype, as[i], k->n, to,
						   &k->rows };
		const bool fits = k->top < (i ? 65536 : 256);
		bool same = true;

		if (as[i] == k->dtype)
			continue;
		CHECK_EQ(pen__numbers_unpack(&c, p, len, s, &why),
			 fits ? 0 : PEN_EDATA);
		for (uint32_t j = 0; fits && j < k->n; j++) {
			const uint64_t v = i ? to[j] : ((uint8_t *)to)[j];
			struct chunk one = { .dtype = k->dtype,
					     .item = k->item };
			uint64_t mem = 0;

			one.values = (uint8_t *)&mem;
			if (k->dtype == PEN_F16)
				continue;
			put_number(&one, 0, (double)v);
			same &= memcmp(k->values + j * k->item, &mem,
				       k->item) == 0;
		}
		CHECK(same);
	}
	for (uint32_t j = 0; j < k->n; j++)
		most = k->places[j] > most ? k->places[j] : most;
	CHECK_EQ(pen__places_unpack(&g, k->packed.p, k->nplaces, &why),
		 most < 65536 ? 0 : PEN_EDATA);
	for (uint32_t j = 0; most < 65536 && j < k->n; j++)
		CHECK_EQ(to[j], k->places[j]);
	free(to);
}

static void test_chunks(struct pen_scratch *s)
{
	struct pen_rng r = pen__rng(9, 9);

	for (int t = 0; t <= PEN_F64; t++)
		for (int kind = 0; kind < NKINDS; kind++)
			for (unsigned how = 0; how < 8; how++) {
				const uint32_t nrows[] = { 0, 1, 7, 40 };
				struct chunk k;

				make_chunk(&k, (enum pen_dtype)t,
					   nrows[how / 2], how % 3);
				fill(&k, &r, kind, how % 2);
				for (uint32_t j = 0; how > 3 && j < k.n; j++)
					k.places[j] &= 0xffff;
				check_chunk(&k, s);
				check_narrow(&k, s);
				free_chunk(&k);
			}
}

/* Counts take little space, whatever their type. */
static void test_sizes(struct pen_scratch *s)
{
	static const enum pen_dtype types[] = { PEN_F32, PEN_F64, PEN_I64,
						PEN_U16 };
	struct pen_rng r = pen__rng(9, 10);

	for (int i = 0; i < 4; i++) {
		struct chunk k;

		make_chunk(&k, types[i], 40, true);
		fill(&k, &r, COUNTS, true);
		check_chunk(&k, s);
		CHECK(k.packed.n < k.n * 7 / 4);
		free_chunk(&k);
		/* nor do few distinct values that are not counts */
		if (types[i] != PEN_F32 && types[i] != PEN_F64)
			continue;
		make_chunk(&k, types[i], 40, true);
		fill(&k, &r, FRACTIONS, true);
		check_chunk(&k, s);
		CHECK_EQ(k.packed.p[k.nplaces + 4], 3);
		CHECK(k.packed.n < k.n * 9 / 4);
		free_chunk(&k);
	}
}

/* ---- damage ---- */

static void seal(uint8_t *p, size_t n)
{
	const uint32_t crc = pen__crc32c(0, p + 4, n - 4);

	memcpy(p, &crc, 4);
}

/* Every length and every byte, with and without a matching checksum. */
static void damage(const struct chunk *k, bool numbers, struct pen_scratch *s)
{
	const uint8_t *p = k->packed.p + (numbers ? k->nplaces : 0);
	const size_t n = numbers ? k->packed.n - k->nplaces : k->nplaces;
	uint8_t *bad = malloc(n);

	for (size_t i = 0; i < n; i++) {
		memcpy(bad, p, n);
		CHECK(unpack(k, bad, i, numbers, s) < 0);
		if (i > 4) {
			seal(bad, i);
			CHECK(unpack(k, bad, i, numbers, s) < 0);
		}
	}
	for (size_t i = 0; i < n; i++) {
		memcpy(bad, p, n);
		bad[i] ^= (uint8_t)(1u << i % 8);
		CHECK(unpack(k, bad, n, numbers, s) < 0);
		seal(bad, n);
		/* whatever the result, it stays within its bounds */
		(void)unpack(k, bad, n, numbers, s);
	}
	free(bad);
}

/* Rows that differ from the packed ones. */
static void other_rows(struct chunk *k, struct pen_scratch *s)
{
	struct pen_rng r = pen__rng(13, 1);

	for (int i = 0; i < 200; i++) {
		pen__rng_fill(12, (uint64_t)i, 0, k->start4, sizeof(k->start4));
		for (int j = 0; i % 2 && j < 41; j++)
			k->start4[j] = (uint32_t)pen__rng_below(&r, 900);
		k->rows.nrows = (uint32_t)i % 40;
		CHECK(unpack(k, k->packed.p, k->nplaces, false, s) >= 0);
		(void)unpack(k, k->packed.p + k->nplaces,
			     k->packed.n - k->nplaces, true, s);
	}
}

static void test_damage(struct pen_scratch *s)
{
	struct pen_rng r = pen__rng(9, 11);

	for (int kind = 0; kind < NKINDS; kind++)
		for (unsigned how = 0; how < 2; how++) {
			struct chunk k;

			make_chunk(&k, PEN_F32, 4, how);
			fill(&k, &r, kind, true);
			check_chunk(&k, s);
			damage(&k, false, s);
			damage(&k, true, s);
			if (!how)
				other_rows(&k, s);
			free_chunk(&k);
		}
}

/* Out of memory: an error, or another packing method. */
static void test_nomem(struct pen_scratch *s)
{
	struct pen_rng r = pen__rng(9, 12);
	unsigned nfailed = 0;

	for (int kind = COUNTS; kind <= FRACTIONS; kind += FRACTIONS)
		for (uint64_t i = 1; i < 12; i++) {
			struct chunk k;

			make_chunk(&k, PEN_F32, 7, true);
			fill(&k, &r, kind, i % 2);
			pen__mem_fail_nth(i, false);
			pack(&k);
			pen__mem_fail_nth(0, false);
			nfailed += k.packed.bad;
			CHECK(k.packed.bad ||
			      unpack(&k, k.packed.p, k.nplaces, false, s) == 0);
			free_chunk(&k);
		}
	CHECK(nfailed);
}

int main(void)
{
	struct pen_scratch s;

	CHECK_EQ(pen__scratch_init(&s, 8 * 40 * 300), 0);
	test_narrow();
	test_blocks();
	test_block_bytes();
	test_chunks(&s);
	test_sizes(&s);
	test_damage(&s);
	test_nomem(&s);
	pen__scratch_fini(&s);
	return test_end();
}
