/*
 * Finds the significant bytes of csv, 64 at a time. Uses AVX2 if available,
 * plain C otherwise. Independent of rows and numbers.
 */
#include "format/table/csv_marks.h"

/* Bit masks of 64 bytes. */
struct masks {
	uint64_t delim, line, point, quote, nul;
};

static inline uint64_t below(size_t n)
{
	return n < 64 ? ((uint64_t)1 << n) - 1 : ~(uint64_t)0;
}

static inline __attribute__((always_inline)) size_t
put_bits(uint64_t m, size_t base, uint16_t *at, size_t n)
{
	for (; m; m &= m - 1)
		at[n++] = (uint16_t)(base + (size_t)__builtin_ctzll(m));
	return n;
}

static struct masks look(const uint8_t *p, uint8_t delim)
{
	struct masks m = { 0 };

	for (unsigned i = 0; i < 64; i++) {
		m.delim |= (uint64_t)(p[i] == delim) << i;
		m.line |= (uint64_t)(p[i] == '\n') << i;
		m.point |= (uint64_t)(p[i] == '.') << i;
		m.quote |= (uint64_t)(p[i] == '"') << i;
		m.nul |= (uint64_t)(p[i] == 0) << i;
	}
	return m;
}

static size_t marks(const uint8_t *p, size_t n, uint8_t delim, uint16_t *at,
		    bool *quoted)
{
	uint64_t quote = 0;
	size_t k = 0;

	for (size_t i = 0; i < n; i += 64) {
		const struct masks m = look(p + i, delim);

		quote |= m.quote & below(n - i);
		k = put_bits((m.delim | m.line | m.point) & below(n - i), i, at,
			     k);
	}
	*quoted = quote != 0;
	return k;
}

/* Appends the lines of 64 bytes; delimiters are counted since the last newline.
 */
static inline __attribute__((always_inline)) size_t
put_lines(struct masks m, size_t base, struct pen_csv_line *out, size_t k,
	  uint32_t *delims)
{
	for (; m.line; m.line &= m.line - 1) {
		const unsigned at = (unsigned)__builtin_ctzll(m.line);

		out[k].at = (uint32_t)(base + at);
		out[k++].delims = *delims + (uint32_t)__builtin_popcountll(
						    m.delim & below(at));
		*delims = 0;
		m.delim &= ~below(at);
	}
	*delims += (uint32_t)__builtin_popcountll(m.delim);
	return k;
}

static size_t lines(const uint8_t *p, uint8_t delim, struct pen_csv_line *out,
		    uint32_t *rest, bool *plain)
{
	uint64_t odd = 0;
	size_t k = 0;

	*rest = 0;
	for (size_t i = 0; i < PEN_CSV_BLOCK; i += 64) {
		const struct masks m = look(p + i, delim);

		odd |= m.quote | m.nul;
		k = put_lines(m, i, out, k, rest);
	}
	*plain = !odd;
	return k;
}

#ifdef __x86_64__
#include <immintrin.h>

#define HW __attribute__((target("avx2,bmi,popcnt")))

HW static inline uint64_t equal(const __m256i v[2], char c)
{
	const __m256i w = _mm256_set1_epi8(c);
	const unsigned lo =
		(unsigned)_mm256_movemask_epi8(_mm256_cmpeq_epi8(v[0], w));
	const unsigned hi =
		(unsigned)_mm256_movemask_epi8(_mm256_cmpeq_epi8(v[1], w));

	return (uint64_t)hi << 32 | lo;
}

HW static inline void load(const uint8_t *p, __m256i v[2])
{
	v[0] = _mm256_loadu_si256((const void *)p);
	v[1] = _mm256_loadu_si256((const void *)(p + 32));
}

HW static size_t marks_hw(const uint8_t *p, size_t n, uint8_t delim,
			  uint16_t *at, bool *quoted)
{
	uint64_t quote = 0;
	size_t k = 0;

	for (size_t i = 0; i < n; i += 64) {
		__m256i v[2];
		uint64_t m;

		load(p + i, v);
		quote |= equal(v, '"') & below(n - i);
		m = equal(v, (char)delim) | equal(v, '\n') | equal(v, '.');
		k = put_bits(m & below(n - i), i, at, k);
	}
	*quoted = quote != 0;
	return k;
}

HW static size_t lines_hw(const uint8_t *p, uint8_t delim,
			  struct pen_csv_line *out, uint32_t *rest, bool *plain)
{
	uint64_t odd = 0;
	size_t k = 0;

	*rest = 0;
	for (size_t i = 0; i < PEN_CSV_BLOCK; i += 64) {
		struct masks m = { 0 };
		__m256i v[2];

		load(p + i, v);
		m.delim = equal(v, (char)delim);
		m.line = equal(v, '\n');
		odd |= equal(v, '"') | equal(v, 0);
		k = put_lines(m, i, out, k, rest);
	}
	*plain = !odd;
	return k;
}

static bool has_hw(void)
{
	return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi");
}

#else
#define marks_hw marks
#define lines_hw lines

static bool has_hw(void)
{
	return false;
}
#endif

size_t pen__csv_marks(const uint8_t *p, size_t n, uint8_t delim, uint16_t *at,
		      bool *quoted)
{
	return has_hw() ? marks_hw(p, n, delim, at, quoted)
			: marks(p, n, delim, at, quoted);
}

size_t pen__csv_lines(const uint8_t *p, uint8_t delim, struct pen_csv_line *out,
		      uint32_t *rest, bool *plain)
{
	return has_hw() ? lines_hw(p, delim, out, rest, plain)
			: lines(p, delim, out, rest, plain);
}
