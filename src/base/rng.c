/*
 * Random numbers that are functions, not sequences, so that any of them can be
 * computed alone: bounded draws, byte streams, keyed permutations. The one
 * sequence is NumPy's legacy generator, because DLIO's file sizes and orders
 * are defined by it. Nothing here is suitable for secrets.
 */
#include "base/rng.h"

#include <endian.h>
#include <math.h>
#include <string.h>

__extension__ typedef unsigned __int128 u128;

/* Lemire's method: divides only if the first draw may be biased. */
uint64_t pen__rng_below(struct pen_rng *r, uint64_t n)
{
	u128 m = (u128)pen__rng_u64(r) * n;

	if ((uint64_t)m < n) {
		const uint64_t least = -n % n;

		while ((uint64_t)m < least)
			m = (u128)pen__rng_u64(r) * n;
	}
	return (uint64_t)(m >> 64);
}

/* Bytes [skip, skip + n) of word i, n <= 8 - skip. */
static void fill_part(uint64_t key, uint64_t i, unsigned skip, uint8_t *to,
		      size_t n)
{
	const uint64_t v = htole64(pen__rng_at(key, i));

	memcpy(to, (const uint8_t *)&v + skip, n);
}

void pen__rng_fill(uint64_t seed, uint64_t id, uint64_t off, void *buf,
		   size_t n)
{
	const uint64_t key = pen__rng_key(seed, id);
	const unsigned skip = off % 8;
	uint64_t i = off / 8;
	uint8_t *p = buf;

	if (skip && n) {
		const size_t head = n < 8 - skip ? n : 8 - skip;

		fill_part(key, i++, skip, p, head);
		p += head;
		n -= head;
	}
	for (; n >= 8; n -= 8, p += 8) {
		const uint64_t v = htole64(pen__rng_at(key, i++));

		memcpy(p, &v, 8);
	}
	if (n)
		fill_part(key, i, 0, p, n);
}

/*
 * Up to PERM_TABLE elements the permutation is a Fisher-Yates shuffle, stored
 * as bytes in place of the round keys: with few elements a Feistel network is
 * visibly uneven (on 3 x 3 it never makes an odd permutation).
 */
#define PERM_TABLE 64
#define PERM_LANES 8 /* indices in flight; enough to hide the multiplies */

static void table_init(struct pen_perm *p, uint64_t key)
{
	uint8_t *t = (uint8_t *)p->key;
	struct pen_rng r = { key, 0 };

	for (unsigned i = 0; i < p->n; i++) {
		unsigned j = (unsigned)pen__rng_below(&r, i + 1);

		t[i] = t[j];
		t[j] = (uint8_t)i;
	}
}

static uint64_t ceil_sqrt(uint64_t n)
{
	uint64_t r = (uint64_t)sqrt((double)n);

	while (r * r < n)
		r++;
	while (r && (r - 1) * (r - 1) >= n)
		r--;
	return r;
}

void pen__perm_init(struct pen_perm *p, uint64_t n, uint64_t seed, uint64_t id)
{
	const uint64_t key = pen__rng_key(seed, id);

	memset(p, 0, sizeof(*p));
	p->n = n;
	if (n <= PERM_TABLE) {
		table_init(p, key);
		return;
	}
	/* a*b < n + a: fewer than one index in sqrt(n) is outside */
	p->a = ceil_sqrt(n);
	p->b = (n + p->a - 1) / p->a;
	p->rounds = n < 1u << 16 ? 12 : 6;
	for (unsigned i = 0; i < p->rounds; i++)
		p->key[i] = pen__rng_at(key, i);
}

/* A round's addend: any function will do, since it is never inverted. */
static inline uint64_t addend(uint64_t v, uint64_t key, uint64_t n)
{
	return pen__mulhi(pen__mix64(v * 0x9e3779b97f4a7c15u + key), n);
}

static inline uint64_t add_mod(uint64_t x, uint64_t y, uint64_t n)
{
	x += y;
	return x >= n ? x - n : x;
}

static inline uint64_t sub_mod(uint64_t x, uint64_t y, uint64_t n)
{
	return x >= y ? x - y : x + n - y;
}

/* One pass of the network over [0, a*b). */
static uint64_t forward(const struct pen_perm *p, uint64_t x)
{
	uint64_t l = x / p->b, r = x % p->b;

	for (unsigned i = 0; i < p->rounds; i += 2) {
		l = add_mod(l, addend(r, p->key[i], p->a), p->a);
		r = add_mod(r, addend(l, p->key[i + 1], p->b), p->b);
	}
	return l * p->b + r;
}

static uint64_t backward(const struct pen_perm *p, uint64_t x)
{
	uint64_t l = x / p->b, r = x % p->b;

	for (unsigned i = p->rounds; i; i -= 2) {
		r = sub_mod(r, addend(l, p->key[i - 1], p->b), p->b);
		l = sub_mod(l, addend(r, p->key[i - 2], p->a), p->a);
	}
	return l * p->b + r;
}

/*
 * Cycle walking: an index outside [0, n) passes through again until it is
 * inside. This ends, because the walk follows a cycle that contains i itself.
 */
uint64_t pen__perm_at(const struct pen_perm *p, uint64_t i)
{
	if (p->n <= PERM_TABLE)
		return ((const uint8_t *)p->key)[i];
	do
		i = forward(p, i);
	while (i >= p->n);
	return i;
}

uint64_t pen__perm_inverse(const struct pen_perm *p, uint64_t v)
{
	uint64_t i = 0;

	if (p->n <= PERM_TABLE) {
		while (((const uint8_t *)p->key)[i] != v)
			i++;
		return i;
	}
	do
		v = backward(p, v);
	while (v >= p->n);
	return v;
}

/* PERM_LANES neighbours side by side, so that their latencies overlap. */
static void forward_lanes(const struct pen_perm *p, uint64_t first,
			  uint64_t *out)
{
	const uint64_t a = p->a, b = p->b;
	uint64_t l[PERM_LANES], r[PERM_LANES];

	l[0] = first / b;
	r[0] = first % b;
	for (unsigned j = 1; j < PERM_LANES; j++) {
		const bool wrap = r[j - 1] + 1 == b;

		r[j] = wrap ? 0 : r[j - 1] + 1;
		l[j] = l[j - 1] + wrap;
	}
	for (unsigned i = 0; i < p->rounds; i += 2) {
		const uint64_t k0 = p->key[i], k1 = p->key[i + 1];

		for (unsigned j = 0; j < PERM_LANES; j++)
			l[j] = add_mod(l[j], addend(r[j], k0, a), a);
		for (unsigned j = 0; j < PERM_LANES; j++)
			r[j] = add_mod(r[j], addend(l[j], k1, b), b);
	}
	for (unsigned j = 0; j < PERM_LANES; j++)
		out[j] = l[j] * b + r[j];
}

void pen__perm_range(const struct pen_perm *p, uint64_t first, size_t n,
		     uint64_t *out)
{
	size_t j = 0;

	if (p->n > PERM_TABLE) {
		for (; n - j >= PERM_LANES; j += PERM_LANES) {
			forward_lanes(p, first + j, out + j);
			for (unsigned k = 0; k < PERM_LANES; k++)
				if (out[j + k] >= p->n)
					out[j + k] =
						pen__perm_at(p, out[j + k]);
		}
	}
	for (; j < n; j++)
		out[j] = pen__perm_at(p, first + j);
}

void pen__legacy_seed(struct pen_legacy *r, uint32_t seed)
{
	r->mt[0] = seed;
	for (unsigned i = 1; i < 624; i++)
		r->mt[i] =
			1812433253u * (r->mt[i - 1] ^ r->mt[i - 1] >> 30) + i;
	r->pos = 624;
	r->has_gauss = false;
	r->gauss = 0;
}

static void legacy_turn(struct pen_legacy *r)
{
	uint32_t *mt = r->mt;

	for (unsigned k = 0; k < 624; k++) {
		const uint32_t y = (mt[k] & 0x80000000u) |
				   (mt[(k + 1) % 624] & 0x7fffffffu);

		mt[k] = mt[(k + 397) % 624] ^ y >> 1 ^
			(y & 1 ? 0x9908b0dfu : 0);
	}
	r->pos = 0;
}

uint32_t pen__legacy_u32(struct pen_legacy *r)
{
	uint32_t y;

	if (r->pos >= 624)
		legacy_turn(r);
	y = r->mt[r->pos++];
	y ^= y >> 11;
	y ^= y << 7 & 0x9d2c5680u;
	y ^= y << 15 & 0xefc60000u;
	return y ^ y >> 18;
}

double pen__legacy_double(struct pen_legacy *r)
{
	const uint32_t a = pen__legacy_u32(r) >> 5;
	const uint32_t b = pen__legacy_u32(r) >> 6;

	return (a * 67108864.0 + b) / 9007199254740992.0;
}

/* The polar method; its second value is kept for the next call. */
double pen__legacy_normal(struct pen_legacy *r, double mean, double sd)
{
	double x1, x2, r2, f;

	if (r->has_gauss) {
		r->has_gauss = false;
		return mean + sd * r->gauss;
	}
	do {
		x1 = 2.0 * pen__legacy_double(r) - 1.0;
		x2 = 2.0 * pen__legacy_double(r) - 1.0;
		r2 = x1 * x1 + x2 * x2;
	} while (r2 >= 1.0 || r2 == 0.0);
	f = sqrt(-2.0 * log(r2) / r2);
	r->gauss = f * x1;
	r->has_gauss = true;
	return mean + sd * (f * x2);
}

uint64_t pen__legacy_interval(struct pen_legacy *r, uint64_t max)
{
	uint64_t mask, v;

	if (!max)
		return 0;
	mask = UINT64_MAX >> __builtin_clzll(max);
	do {
		v = pen__legacy_u32(r);
		if (max > UINT32_MAX)
			v = v << 32 | pen__legacy_u32(r);
		v &= mask;
	} while (v > max);
	return v;
}

void pen__legacy_shuffle(struct pen_legacy *r, uint64_t *v, size_t n)
{
	for (size_t i = n; i-- > 1;) {
		const size_t j = pen__legacy_interval(r, i);
		const uint64_t t = v[i];

		v[i] = v[j];
		v[j] = t;
	}
}
