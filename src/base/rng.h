/*
 * Random numbers.
 *
 * The generator is counter-based: value i of stream (seed, id) is a pure
 * function of the three, so anything can be computed again alone, in any order,
 * by any thread. It is SplitMix64's output function over a keyed counter.
 *
 * pen_legacy reproduces NumPy's legacy RandomState bit for bit (MT19937, polar
 * normals, Fisher-Yates with masked rejection), because DLIO's file sizes and
 * orders are defined by it.
 */
#ifndef PEN_BASE_RNG_H
#define PEN_BASE_RNG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline uint64_t pen__mix64(uint64_t z)
{
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* floor(x * n / 2^64): maps a random word to [0, n) */
static inline uint64_t pen__mulhi(uint64_t x, uint64_t n)
{
	__extension__ typedef unsigned __int128 wide;

	return (uint64_t)((wide)x * n >> 64);
}

struct pen_rng {
	uint64_t key, ctr;
};

static inline uint64_t pen__rng_key(uint64_t seed, uint64_t id)
{
	return pen__mix64(pen__mix64(seed + 0x9e3779b97f4a7c15u) ^
			  (id * 0xd1b54a32d192ed03u + 0x8cb92ba72f3d8dd7u));
}
static inline struct pen_rng pen__rng(uint64_t seed, uint64_t id)
{
	return (struct pen_rng){ pen__rng_key(seed, id), 0 };
}
/* value number i of a stream */
static inline uint64_t pen__rng_at(uint64_t key, uint64_t i)
{
	return pen__mix64(key + (i + 1) * 0x9e3779b97f4a7c15u);
}
static inline uint64_t pen__rng_u64(struct pen_rng *r)
{
	return pen__rng_at(r->key, r->ctr++);
}
/* uniform in [0, 1), 53 bits */
static inline double pen__rng_double(struct pen_rng *r)
{
	return (double)(pen__rng_u64(r) >> 11) * 0x1p-53;
}
/* uniform in [0, n), without bias; n > 0 */
uint64_t pen__rng_below(struct pen_rng *r, uint64_t n);
/* Bytes [off, off+n) of stream (seed, id): any piece can be computed alone. */
void pen__rng_fill(uint64_t seed, uint64_t id, uint64_t off, void *buf,
		   size_t n);

/*
 * A keyed permutation of [0, n) in O(1) memory, for any 1 <= n < 2^63: a
 * generalised Feistel network on Z_a x Z_b with a*b just above n (so that
 * leaving the domain is rare), keyed by (seed, id). Up to 64 elements it is a
 * stored shuffle, because such a small network is uneven.
 */
struct pen_perm {
	uint64_t n, a, b;
	uint64_t key[12]; /* round keys, or the table's bytes */
	unsigned rounds;
};
void pen__perm_init(struct pen_perm *p, uint64_t n, uint64_t seed, uint64_t id);
uint64_t pen__perm_at(const struct pen_perm *p, uint64_t i);
/* the i with at(i) == v */
uint64_t pen__perm_inverse(const struct pen_perm *p, uint64_t v);
/* out[j] = at(first + j); faster, since latencies overlap */
void pen__perm_range(const struct pen_perm *p, uint64_t first, size_t n,
		     uint64_t *out);

struct pen_legacy {
	uint32_t mt[624];
	unsigned pos;
	bool has_gauss;
	double gauss;
};
void pen__legacy_seed(struct pen_legacy *r, uint32_t seed);
uint32_t pen__legacy_u32(struct pen_legacy *r);
double pen__legacy_double(struct pen_legacy *r);
double pen__legacy_normal(struct pen_legacy *r, double mean, double sd);
uint64_t pen__legacy_interval(struct pen_legacy *r, uint64_t max);
void pen__legacy_shuffle(struct pen_legacy *r, uint64_t *v, size_t n);

#endif
