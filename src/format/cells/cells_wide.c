/*
 * Converts narrow values, as chunks are unpacked to, to the types of batches:
 * counts of 1 or 2 bytes to float32, genes of 2 bytes to 4, with a check of
 * their range. Works on several values at a time with instructions that every
 * vector unit has: interleaving with zeros widens.
 */
#include "format/cells/cells.h"

typedef uint32_t uvec __attribute__((vector_size(16)));
typedef uint16_t hvec __attribute__((vector_size(16)));
typedef int32_t ivec __attribute__((vector_size(16)));
typedef float fvec __attribute__((vector_size(16)));

static ivec low(hvec x)
{
	return (ivec)__builtin_shufflevector(x, (hvec){ 0 }, 0, 8, 1, 9, 2, 10,
					     3, 11);
}

static ivec high(hvec x)
{
	return (ivec)__builtin_shufflevector(x, (hvec){ 0 }, 4, 12, 5, 13, 6,
					     14, 7, 15);
}

void pen__cells_widen(const uint8_t *p, uint64_t n, uint8_t *out)
{
	uint64_t i = 0;
	hvec x;

	for (; i + 8 <= n; i += 8) {
		ivec a, b;

		memcpy(&x, p + i * 2, sizeof(x));
		a = low(x);
		b = high(x);
		memcpy(out + i * 4, &a, sizeof(a));
		memcpy(out + i * 4 + 16, &b, sizeof(b));
	}
	for (; i < n; i++) {
		uint16_t h;
		uint32_t v;

		memcpy(&h, p + i * 2, 2);
		v = h;
		memcpy(out + i * 4, &v, 4);
	}
}

static void floats_of_two(const uint8_t *p, uint64_t n, uint8_t *out)
{
	uint64_t i = 0;
	hvec x;

	for (; i + 8 <= n; i += 8) {
		fvec a, b;

		memcpy(&x, p + i * 2, sizeof(x));
		a = __builtin_convertvector(low(x), fvec);
		b = __builtin_convertvector(high(x), fvec);
		memcpy(out + i * 4, &a, sizeof(a));
		memcpy(out + i * 4 + 16, &b, sizeof(b));
	}
	for (; i < n; i++) {
		uint16_t h;
		float f;

		memcpy(&h, p + i * 2, 2);
		f = h;
		memcpy(out + i * 4, &f, 4);
	}
}

void pen__cells_floats(enum pen_dtype t, const uint8_t *p, uint64_t n,
		       uint8_t *out)
{
	if (t == PEN_F32)
		memcpy(out, p, n * 4);
	else if (t == PEN_U16)
		floats_of_two(p, n, out);
	else
		for (uint64_t i = 0; i < n; i++) {
			const float f = p[i];

			memcpy(out + i * 4, &f, 4);
		}
}

/*
 * Whether all genes are below `end`, which is at most 2^24: otherwise `end - 1
 * - gene` or the gene itself has its top bit set.
 */
bool pen__cells_below(const uint8_t *g, uint64_t n, uint64_t end)
{
	const uint32_t last = (uint32_t)end - 1;
	uvec all = { 0 }, x;
	uint64_t i = 0;
	uint32_t at, rest = 0;

	for (; i + 4 <= n; i += 4) {
		memcpy(&x, g + i * 4, sizeof(x));
		all |= (last - x) | x;
	}
	for (; i < n; i++) {
		memcpy(&at, g + i * 4, 4);
		rest |= (last - at) | at;
	}
	return !((all[0] | all[1] | all[2] | all[3] | rest) >> 31);
}
