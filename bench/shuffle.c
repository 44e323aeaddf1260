/*
 * Cost of one index of the keyed permutation: pen_shuffle N SECONDS prints a
 * JSON line. Computes [0, N) repeatedly in batches, like the loader, and checks
 * the sum of every pass.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/rng.h"

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static uint64_t sum_range(const struct pen_perm *p, uint64_t first, size_t n)
{
	uint64_t ids[256], sum = 0;

	pen__perm_range(p, first, n, ids);
	for (size_t i = 0; i < n; i++)
		sum += ids[i];
	return sum;
}

int main(int argc, char **argv)
{
	const uint64_t n = argc == 3 ? strtoull(argv[1], NULL, 10) : 0;
	const double seconds = argc == 3 ? strtod(argv[2], NULL) : 0;
	uint64_t count = 0;
	double start, took = 0;

	if (!n || n > UINT32_MAX || seconds <= 0) {
		fprintf(stderr, "usage: pen_shuffle N SECONDS\n");
		return 2;
	}
	start = now();
	for (uint64_t epoch = 0; took < seconds; epoch++) {
		struct pen_perm p;
		uint64_t sum = 0;

		pen__perm_init(&p, n, 1, epoch);
		for (uint64_t at = 0; at < n; at += 256)
			sum += sum_range(&p, at, n - at < 256 ? n - at : 256);
		if (sum != n * (n - 1) / 2) {
			fprintf(stderr, "pen_shuffle: not a permutation\n");
			return 1;
		}
		count += n;
		took = now() - start;
	}
	printf("{\"samples\": %" PRIu64 ", \"seconds\": %.6f}\n", count, took);
	return 0;
}
