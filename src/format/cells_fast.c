/*
 * Two loops of single cells with AVX2, where the CPU has it.
 *
 * A dense row is 80 KB of which a sixteenth is not zero. To clear it in the
 * batch, scatter into it and have it written back later moves every line of it
 * through the caches and back, and a batch of 1,024 is larger than they are. So
 * a row is made in memory that stays in the cache and poured into the batch by
 * stores that go around it: a third less time for the same row.
 */
#include "format/cells_fast.h"

#include <string.h>

static uint32_t largest(const uint8_t *p, uint64_t n)
{
	uint32_t most = 0, x;

	for (uint64_t i = 0; i < n; i++) {
		memcpy(&x, p + i * sizeof(x), sizeof(x));
		most = x > most ? x : most;
	}
	return most;
}

#ifdef __x86_64__
#include <immintrin.h>

#define HW __attribute__((target("avx2")))

HW static uint32_t largest_hw(const uint8_t *p, uint64_t n)
{
	__m256i a = _mm256_setzero_si256(), b = a;
	uint32_t lane[8], most;
	uint64_t i = 0;

	for (; i + 16 <= n; i += 16) {
		const uint8_t *q = p + i * 4;

		a = _mm256_max_epu32(a, _mm256_loadu_si256((const void *)q));
		b = _mm256_max_epu32(
			b, _mm256_loadu_si256((const void *)(q + 32)));
	}
	_mm256_storeu_si256((void *)lane, _mm256_max_epu32(a, b));
	most = largest(p + i * 4, n - i);
	for (int k = 0; k < 8; k++)
		most = lane[k] > most ? lane[k] : most;
	return most;
}

HW static void pour_hw(uint8_t *to, const uint8_t *from, size_t n)
{
	const size_t head = -(uintptr_t)to & 31;
	size_t i = head < n ? head : n;

	memcpy(to, from, i);
	for (; i + 64 <= n; i += 64) {
		const __m256i a = _mm256_loadu_si256((const void *)(from + i));
		const __m256i b =
			_mm256_loadu_si256((const void *)(from + i + 32));

		_mm256_stream_si256((void *)(to + i), a);
		_mm256_stream_si256((void *)(to + i + 32), b);
	}
	memcpy(to + i, from + i, n - i);
	/* such stores are ordered by nothing else: whoever is told that the
	 * row is there must find it there */
	_mm_sfence();
}

static int has_hw(void)
{
	return __builtin_cpu_supports("avx2");
}
#else
#define largest_hw largest
#define pour_hw memcpy

static int has_hw(void)
{
	return 0;
}
#endif

uint32_t pen__cells_largest(const void *numbers, uint64_t n)
{
	return has_hw() ? largest_hw(numbers, n) : largest(numbers, n);
}

void pen__cells_pour(void *to, const void *from, size_t n)
{
	if (has_hw())
		pour_hw(to, from, n);
	else
		memcpy(to, from, n);
}
