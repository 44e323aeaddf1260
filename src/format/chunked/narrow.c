/*
 * Keeps counts and gene numbers in one or two bytes each until their rows are
 * emitted. A shuffle block of compressed cells is kept unpacked, which would
 * take 4 bytes per count and per gene, although nearly all are integers below
 * 65,536, and counts below 256. A chunk is narrowed only if all its numbers
 * fit, and is restored exactly; other chunks stay unchanged.
 */
#include <limits.h>

#include "format/chunked/chunks.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

#define LEAST 4096u /* bytes: smaller chunks are not worth it */
#define GROUP 16u   /* numbers per step, for vectorisation */

#define ALL_SMALL(T)                                                           \
	for (uint64_t i = 0; i < n; i += GROUP) {                              \
		const uint64_t k = n - i < GROUP ? n - i : GROUP;              \
		T x[GROUP] = { 0 }, all = 0;                                   \
		if (k == GROUP)                                                \
			memcpy(x, p + i * sizeof(T), sizeof(x));               \
		else                                                           \
			memcpy(x, p + i * sizeof(T), k * sizeof(T));           \
		for (unsigned j = 0; j < GROUP; j++)                           \
			all |= x[j];                                           \
		if (all > UINT16_MAX)                                          \
			return false;                                          \
	}                                                                      \
	return true

static bool is_small_u32(const uint8_t *p, uint64_t n)
{
	ALL_SMALL(uint32_t);
}

static bool is_small_u64(const uint8_t *p, uint64_t n)
{
	ALL_SMALL(uint64_t);
}

/*
 * Adding 2^23 puts an integer from 0 to 2^23 into the low bits. Only integers
 * come back with the same bits, not fractions, negative zero or NaN; numbers
 * out of range change the high bits. No branches and no conversions: this runs
 * for every count.
 */
#define MAGIC 0x1p23f
#define MAGIC_BITS 0x4b000000u

static bool is_small_f32(const uint8_t *p, uint64_t n)
{
	for (uint64_t i = 0; i < n; i += GROUP) {
		const uint64_t k = n - i < GROUP ? n - i : GROUP;
		float x[GROUP] = { 0 }, y[GROUP], back[GROUP];
		uint32_t a[GROUP], b[GROUP], v[GROUP], bad = 0, all = 0;

		if (k == GROUP)
			memcpy(x, p + i * 4, sizeof(x));
		else
			memcpy(x, p + i * 4, k * 4);
		for (unsigned j = 0; j < GROUP; j++)
			y[j] = x[j] + MAGIC;
		for (unsigned j = 0; j < GROUP; j++)
			back[j] = y[j] - MAGIC;
		memcpy(a, x, sizeof(a));
		memcpy(b, back, sizeof(b));
		memcpy(v, y, sizeof(v));
		for (unsigned j = 0; j < GROUP; j++) {
			bad |= a[j] ^ b[j];
			all |= v[j] ^ MAGIC_BITS;
		}
		if (bad || all > UINT16_MAX)
			return false;
	}
	return true;
}

static bool is_small_f64(const uint8_t *p, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		double x, in;

		memcpy(&x, p + i * 8, 8);
		if (!(x >= 0 && x <= 65535))
			return false;
		in = (double)(int32_t)x;
		if (memcmp(&x, &in, 8) != 0)
			return false;
	}
	return true;
}

static bool is_small(enum pen_dtype type, const uint8_t *p, uint64_t n)
{
	switch (type) {
	case PEN_I32:
	case PEN_U32:
		return is_small_u32(p, n);
	case PEN_I64:
	case PEN_U64:
		return is_small_u64(p, n);
	case PEN_F32:
		return is_small_f32(p, n);
	case PEN_F64:
		return is_small_f64(p, n);
	default:
		return false;
	}
}

/* Converts n numbers in groups. The last group goes through a full one, so that
 * all copies but its own have a size known to the compiler. */
#define CONVERT(FROM, TO, expr)                                                \
	for (uint64_t i = 0; i < n; i += GROUP) {                              \
		const uint64_t k = n - i < GROUP ? n - i : GROUP;              \
		FROM x[GROUP] = { 0 };                                         \
		TO y[GROUP];                                                   \
		if (k == GROUP)                                                \
			memcpy(x, p + i * sizeof(FROM), sizeof(x));            \
		else                                                           \
			memcpy(x, p + i * sizeof(FROM), k * sizeof(FROM));     \
		for (unsigned j = 0; j < GROUP; j++)                           \
			y[j] = (TO)(expr);                                     \
		if (k == GROUP)                                                \
			memcpy(out + i * sizeof(TO), y, sizeof(y));            \
		else                                                           \
			memcpy(out + i * sizeof(TO), y, k * sizeof(TO));       \
	}                                                                      \
	break

#ifdef __x86_64__
#define HW __attribute__((target("avx2")))

/*
 * For the two types of nearly all files, sixteen numbers per step (n is a
 * multiple): first whether all are small, then the conversion.
 */
HW static bool is_small_hw(bool floats, const uint8_t *p, uint64_t n)
{
	__m256i bad = _mm256_setzero_si256(), all = bad;

	for (uint64_t i = 0; i < n; i += 8) {
		const __m256i x = _mm256_loadu_si256((const void *)(p + i * 4));
		__m256i v = x;

		if (floats) {
			v = _mm256_cvttps_epi32(_mm256_castsi256_ps(x));
			bad = _mm256_or_si256(
				bad,
				_mm256_xor_si256(
					x, _mm256_castps_si256(
						   _mm256_cvtepi32_ps(v))));
		}
		all = _mm256_or_si256(all, v);
	}
	bad = _mm256_or_si256(bad, _mm256_srli_epi32(all, 16));
	return _mm256_testz_si256(bad, bad);
}

HW static void to_two_hw(bool floats, uint8_t *p, uint64_t n)
{
	for (uint64_t i = 0; i < n; i += 16) {
		__m256i a = _mm256_loadu_si256((const void *)(p + i * 4));
		__m256i b = _mm256_loadu_si256((const void *)(p + i * 4 + 32));

		if (floats) {
			a = _mm256_cvttps_epi32(_mm256_castsi256_ps(a));
			b = _mm256_cvttps_epi32(_mm256_castsi256_ps(b));
		}
		a = _mm256_permute4x64_epi64(_mm256_packus_epi32(a, b), 0xd8);
		_mm256_storeu_si256((void *)(p + i * 2), a);
	}
}

/* Sixteen per step again, from byte streams: whether all genes are small, and
 * the conversion; floats do both in one pass. */
HW static bool zeros_hw(const uint8_t *p, uint64_t n)
{
	__m128i all = _mm_setzero_si128();

	for (uint64_t i = 0; i < n; i += 16)
		all = _mm_or_si128(all, _mm_loadu_si128((const void *)(p + i)));
	return _mm_testz_si128(all, all);
}

HW static __m256i pairs_hw(const uint8_t *low, const uint8_t *high)
{
	const __m256i a =
		_mm256_cvtepu8_epi16(_mm_loadu_si128((const void *)low));
	const __m256i b =
		_mm256_cvtepu8_epi16(_mm_loadu_si128((const void *)high));

	return _mm256_or_si256(a, _mm256_slli_epi16(b, 8));
}

HW static void pair_hw(const uint8_t *const s[4], uint64_t n, uint8_t *out)
{
	for (uint64_t i = 0; i < n; i += 16)
		_mm256_storeu_si256((void *)(out + i * 2),
				    pairs_hw(s[0] + i, s[1] + i));
}

HW static bool floats_hw(const uint8_t *const s[4], uint64_t n, uint8_t *out)
{
	__m256i bad = _mm256_setzero_si256(), all = bad;

	for (uint64_t i = 0; i < n; i += 16) {
		const __m256i low = pairs_hw(s[0] + i, s[1] + i);
		const __m256i high = pairs_hw(s[2] + i, s[3] + i);
		const __m256i x = _mm256_unpacklo_epi16(low, high);
		const __m256i y = _mm256_unpackhi_epi16(low, high);
		const __m256i a = _mm256_cvttps_epi32(_mm256_castsi256_ps(x));
		const __m256i b = _mm256_cvttps_epi32(_mm256_castsi256_ps(y));

		bad = _mm256_or_si256(
			bad,
			_mm256_xor_si256(
				x, _mm256_castps_si256(_mm256_cvtepi32_ps(a))));
		bad = _mm256_or_si256(
			bad,
			_mm256_xor_si256(
				y, _mm256_castps_si256(_mm256_cvtepi32_ps(b))));
		all = _mm256_or_si256(all, _mm256_or_si256(a, b));
		_mm256_storeu_si256((void *)(out + i * 2),
				    _mm256_packus_epi32(a, b));
	}
	bad = _mm256_or_si256(bad, _mm256_srli_epi32(all, 16));
	return _mm256_testz_si256(bad, bad);
}

HW static bool streams_hw(bool floats, const uint8_t *const s[4], uint64_t n,
			  uint8_t *out)
{
	if (floats)
		return floats_hw(s, n, out);
	if (!zeros_hw(s[3], n) || !zeros_hw(s[2], n))
		return false;
	pair_hw(s, n, out);
	return true;
}

HW static bool all_bytes_hw(const uint8_t *p, uint64_t n)
{
	const __m256i high = _mm256_set1_epi16((short)0xff00);
	__m256i all = _mm256_setzero_si256();

	for (uint64_t i = 0; i < n; i += 16)
		all = _mm256_or_si256(
			all, _mm256_loadu_si256((const void *)(p + i * 2)));
	return _mm256_testz_si256(all, high);
}

HW static void to_one_hw(uint8_t *p, uint64_t n)
{
	for (uint64_t i = 0; i < n; i += 16) {
		const __m128i a = _mm_loadu_si128((const void *)(p + i * 2));
		const __m128i b =
			_mm_loadu_si128((const void *)(p + i * 2 + 16));

		_mm_storeu_si128((void *)(p + i), _mm_packus_epi16(a, b));
	}
}

HW static void from_hw(bool floats, bool two, const uint8_t *p, uint64_t n,
		       uint8_t *out)
{
	for (uint64_t i = 0; i < n; i += 8) {
		__m256i v = two ? _mm256_cvtepu16_epi32(_mm_loadu_si128(
					  (const void *)(p + i * 2)))
				: _mm256_cvtepu8_epi32(_mm_loadl_epi64(
					  (const void *)(p + i)));

		if (floats)
			v = _mm256_castps_si256(_mm256_cvtepi32_ps(v));
		_mm256_storeu_si256((void *)(out + i * 4), v);
	}
}

static bool has_hw(void)
{
	return __builtin_cpu_supports("avx2");
}
#else
static bool has_hw(void)
{
	return false;
}

static bool is_small_hw(bool floats, const uint8_t *p, uint64_t n)
{
	return floats && p && !n;
}

static void to_two_hw(bool floats, uint8_t *p, uint64_t n)
{
	(void)floats, (void)p, (void)n;
}

static bool streams_hw(bool floats, const uint8_t *const s[4], uint64_t n,
		       uint8_t *out)
{
	(void)floats, (void)s, (void)n, (void)out;
	return false;
}

static bool all_bytes_hw(const uint8_t *p, uint64_t n)
{
	return p && !n;
}

static void to_one_hw(uint8_t *p, uint64_t n)
{
	(void)p, (void)n;
}

static void from_hw(bool floats, bool two, const uint8_t *p, uint64_t n,
		    uint8_t *out)
{
	(void)floats, (void)two, (void)p, (void)n, (void)out;
}
#endif

static bool is_usual(unsigned type)
{
	return type == PEN_F32 || type == PEN_I32 || type == PEN_U32;
}

/* Converts 2-byte numbers to one byte in place if all of them fit. */
static bool to_one(uint8_t *p, uint64_t n)
{
	const uint64_t whole = has_hw() ? n / 16 * 16 : 0;
	uint16_t x, all = 0;

	if (whole && !all_bytes_hw(p, whole))
		return false;
	for (uint64_t i = whole; i < n; i++) {
		memcpy(&x, p + i * 2, 2);
		all |= x;
	}
	if (all > UINT8_MAX)
		return false;
	if (whole)
		to_one_hw(p, whole);
	for (uint64_t i = whole; i < n; i++) {
		memcpy(&x, p + i * 2, 2);
		p[i] = (uint8_t)x;
	}
	return true;
}

/* Converts to two bytes per number in place; is_small() holds for all. */
static void to_two(const struct pen_chunked *a, uint8_t *bytes, uint64_t n)
{
	const bool hw = is_usual(a->dtype) && has_hw();
	const uint64_t whole = hw ? n / 16 * 16 : 0;
	/* each number is read before its bytes are overwritten */
	uint8_t *p = bytes + whole * a->item, *out = bytes + whole * 2;

	if (hw)
		to_two_hw(a->dtype == PEN_F32, bytes, whole);
	n -= whole;
	switch ((enum pen_dtype)a->dtype) {
	case PEN_F32:
		CONVERT(float, uint16_t, (int32_t)x[j]);
	case PEN_F64:
		CONVERT(double, uint16_t, (int32_t)x[j]);
	case PEN_I64:
	case PEN_U64:
		CONVERT(uint64_t, uint16_t, x[j]);
	default:
		CONVERT(uint32_t, uint16_t, x[j]);
	}
}

int pen__narrow(const struct pen_chunked *a, void *bytes, size_t size)
{
	const bool hw = is_usual(a->dtype) && has_hw();
	const uint64_t n = size / a->item, whole = hw ? n / 16 * 16 : 0;
	const uint8_t *p = bytes;

	if (a->swap || size < LEAST || n > INT_MAX / 2 ||
	    (hw && !is_small_hw(a->dtype == PEN_F32, p, whole)) ||
	    !is_small(a->dtype, p + whole * a->item, n - whole))
		return 0;
	to_two(a, bytes, n);
	return (int)(to_one(bytes, n) ? n : n * 2);
}

int pen__narrow_streams(const struct pen_chunked *a, const uint8_t *const s[4],
			uint64_t n, uint8_t *out)
{
	const uint64_t whole = n / 16 * 16;
	uint8_t rest[16 * 4];

	if (!is_usual(a->dtype) || !has_hw() || a->swap || n * 4 < LEAST ||
	    n > INT_MAX / 2)
		return 0;
	for (uint64_t i = 0; i < (n - whole) * 4; i++)
		rest[i] = s[i % 4][whole + i / 4];
	if (!is_small(a->dtype, rest, n - whole) ||
	    !streams_hw(a->dtype == PEN_F32, s, whole, out))
		return 0;
	to_two(a, rest, n - whole);
	memcpy(out + whole * 2, rest, (n - whole) * 2);
	return (int)(to_one(out, n) ? n : n * 2);
}

#define RESTORE(FROM)                                                          \
	switch ((enum pen_dtype)a->dtype) {                                    \
	case PEN_F32:                                                          \
		CONVERT(FROM, float, x[j]);                                    \
	case PEN_F64:                                                          \
		CONVERT(FROM, double, x[j]);                                   \
	case PEN_I64:                                                          \
	case PEN_U64:                                                          \
		CONVERT(FROM, uint64_t, x[j]);                                 \
	default:                                                               \
		CONVERT(FROM, uint32_t, x[j]);                                 \
	}

static void restore_one(const struct pen_chunked *a, const uint8_t *p,
			uint64_t n, uint8_t *out)
{
	RESTORE(uint8_t)
}

static void restore_two(const struct pen_chunked *a, const uint8_t *p,
			uint64_t n, uint8_t *out)
{
	RESTORE(uint16_t)
}

void pen__narrow_restore(const struct pen_chunked *a, unsigned width,
			 const uint8_t *p, uint64_t n, uint8_t *out)
{
	const uint64_t whole = is_usual(a->dtype) && has_hw() ? n / 8 * 8 : 0;

	if (whole)
		from_hw(a->dtype == PEN_F32, width == 2, p, whole, out);
	p += whole * width;
	out += whole * a->item;
	if (width == 2)
		restore_two(a, p, n - whole, out);
	else
		restore_one(a, p, n - whole, out);
}
