/*
 * The limits of converting sequences to numbers: finds lines in a mapped file,
 * then looks up letters in a table, counts words, or makes the four tensors of
 * paragraph vectors (int32, words of 4 letters, 3 words on each side, 5 noise
 * words).
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "limits.h"

enum { K = 4, SIDE = 3, NOISE = 5, LETTERS = 7, WORDS = 7 * 7 * 7 * 7 };
enum { NWORDS = 431 }; /* to draw noise from */
#define MOST 1024u     /* letters per line */

static const char letters[] = "ACGTU";
static uint8_t codes[16]; /* by the lower four bits of a letter */
static int32_t word_id[WORDS], keep[NWORDS], other[NWORDS];

static uint8_t code_of(uint8_t letter)
{
	const char *at = letter ? strchr(letters, letter) : NULL;

	if (!at)
		die("a letter is not one of %s", letters);
	return (uint8_t)(at - letters);
}

static const uint8_t *line(const struct loop *l, uint32_t id, size_t *n)
{
	*n = l->items[id].len;
	return (const uint8_t *)l->map + l->items[id].offset;
}

static uint64_t chars_body(struct loop *l, const uint32_t *ids, uint32_t n,
			   char *batch)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct lines s;

		s.p = line(l, ids[i], &s.n);
		s.first = s.width = s.n;
		if (i + 1 < n)
			prefetch(l->map + l->items[ids[i + 1]].offset, MOST);
		translate(codes, &s, (uint8_t *)batch);
		sum += first_word(batch);
		batch += s.n;
	}
	return sum;
}

/*
 * Paragraph vectors. Words are stored frame by frame (a frame is every K-th
 * position), so that a target and its context are seven neighbours. A row of
 * six numbers is stored as eight; the next row overwrites the last two.
 */
#ifdef __x86_64__
#include <immintrin.h>

#define HW __attribute__((target("avx2,sse4.2")))

HW static void words_hw(const uint8_t *c, size_t n, uint16_t *word)
{
	const __m256i base = _mm256_set1_epi16(LETTERS);

	for (size_t i = 0; i < n; i += 16) { /* the arrays are padded */
		__m256i w = _mm256_setzero_si256();

		for (size_t k = 0; k < K; k++)
			w = _mm256_add_epi16(
				_mm256_mullo_epi16(w, base),
				_mm256_cvtepu8_epi16(_mm_loadu_si128(
					(const void *)(c + i + k))));
		_mm256_storeu_si256((void *)(word + i), w);
	}
}

HW static __m256i pick_hw(__m256i slot, __m256i coin)
{
	const __m256i sign = _mm256_set1_epi32(INT32_MIN);
	const __m256i limit = _mm256_i32gather_epi32(keep, slot, 4);

	return _mm256_blendv_epi8(
		_mm256_i32gather_epi32(other, slot, 4), slot,
		_mm256_cmpgt_epi32(_mm256_xor_si256(limit, sign),
				   _mm256_xor_si256(coin, sign)));
}

/* Eight 32-bit xorshift generators; the product of a number and the word count
 * has the slot in its upper and the coin in its lower half. */
HW static void draws_hw(uint32_t seed, size_t n, int32_t *out)
{
	const __m256i many = _mm256_set1_epi32(NWORDS);
	__m256i x = _mm256_add_epi32(
		_mm256_set1_epi32((int)(seed * 0x9e3779b1u)),
		_mm256_setr_epi32(0x1b873593, 0x2545f491, 0x3c6ef372,
				  0x4f1bbcdc, 0x5be0cd19, 0x6a09e667,
				  0x7f4a7c15, 0x0a54ff53));

	for (size_t i = 0; i < n; i += 8) {
		__m256i even, odd;

		x = _mm256_xor_si256(x, _mm256_slli_epi32(x, 13));
		x = _mm256_xor_si256(x, _mm256_srli_epi32(x, 17));
		x = _mm256_xor_si256(x, _mm256_slli_epi32(x, 5));
		even = _mm256_mul_epu32(x, many);
		odd = _mm256_mul_epu32(_mm256_srli_epi64(x, 32), many);
		_mm256_storeu_si256(
			(void *)(out + i),
			pick_hw(_mm256_blend_epi32(_mm256_srli_epi64(even, 32),
						   odd, 0xaa),
				_mm256_blend_epi32(even,
						   _mm256_slli_epi64(odd, 32),
						   0xaa)));
	}
}

/* One frame: n targets, starting with id[SIDE]. */
HW static void rows_hw(const int32_t *id, const int32_t *draw, size_t n,
		       int32_t *context, int32_t *noise)
{
	const __m256i six = _mm256_setr_epi32(-1, -1, -1, -1, -1, -1, 0, 0);

	for (size_t i = 0; i < n;
	     i++, context += 2 * SIDE, noise += 1 + NOISE) {
		const __m256i around = _mm256_permutevar8x32_epi32(
			_mm256_loadu_si256((const void *)(id + i)),
			_mm256_setr_epi32(0, 1, 2, 4, 5, 6, 6, 6));
		const __m256i drawn = _mm256_permutevar8x32_epi32(
			_mm256_loadu_si256((const void *)(draw + i * NOISE)),
			_mm256_setr_epi32(0, 0, 1, 2, 3, 4, 4, 4));
		const __m256i both = _mm256_blend_epi32(
			drawn, _mm256_set1_epi32(id[i + SIDE]), 1);

		if (i + 1 < n) {
			_mm256_storeu_si256((void *)context, around);
			_mm256_storeu_si256((void *)noise, both);
		} else {
			_mm256_maskstore_epi32(context, six, around);
			_mm256_maskstore_epi32(noise, six, both);
		}
	}
}

static char *dm_line(const uint8_t *s, size_t n, int32_t doc, char *to)
{
	enum { PAD = K * SIDE, ROOM = MOST + 2 * PAD + 32 };
	const size_t m = n - K + 1, all = m + 2 * PAD;
	uint8_t c[ROOM];
	uint16_t word[ROOM];
	int32_t id[K][ROOM / K + 8], draw[MOST * NOISE + 8];
	int32_t *docs = (void *)to, *target = docs + m;
	int32_t *context = target + m, *noise = context + m * 2 * SIDE;
	const struct lines l = { s, n, n, n };

	memset(c, LETTERS - 2, PAD);
	translate(codes, &l, c + PAD);
	memset(c + PAD + n, LETTERS - 1, PAD);
	words_hw(c, all, word);
	for (size_t i = 0; i < all; i++)
		id[i % K][i / K] = word_id[word[i]];
	draws_hw((uint32_t)doc, m * NOISE, draw);
	for (size_t i = 0; i < m; i++)
		docs[i] = doc;
	for (size_t frame = 0, at = 0; frame < K && frame < m; frame++) {
		const size_t k = (m - frame + K - 1) / K;

		memcpy(target + at, id[frame] + SIDE, k * sizeof(*target));
		rows_hw(id[frame], draw + at * NOISE, k,
			context + at * 2 * SIDE, noise + at * (1 + NOISE));
		at += k;
	}
	return (char *)(noise + m * (1 + NOISE));
}
#else
static char *dm_line(const uint8_t *s, size_t n, int32_t doc, char *to)
{
	(void)s, (void)n, (void)doc, (void)to;
	die("this limit needs x86-64");
}
#endif

static uint64_t dm_body(struct loop *l, const uint32_t *ids, uint32_t n,
			char *batch)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < n; i++) {
		size_t m;
		const uint8_t *s = line(l, ids[i], &m);
		char *next = dm_line(s, m, (int32_t)ids[i], batch);

		sum += first_word(batch);
		batch = next;
	}
	return sum;
}

/* ---- checks, letter by letter and word by word ---- */

static void check_chars(const struct loop *l, uint32_t id, const char *made)
{
	size_t n;
	const uint8_t *s = line(l, id, &n);

	for (size_t i = 0; i < n; i++)
		if (made[i] != (char)code_of(s[i]))
			die("a letter is wrong");
}

/* The word at a position of the line, padded with X before and Y after it. */
static int32_t word_at(const uint8_t *s, size_t n, size_t at)
{
	uint32_t w = 0;

	for (size_t i = at; i < at + K; i++)
		w = w * LETTERS + (i < K * SIDE ? LETTERS - 2
				   : i >= K * SIDE + n
					   ? LETTERS - 1
					   : code_of(s[i - K * SIDE]));
	return word_id[w];
}

static void check_dm(const struct loop *l, uint32_t id, const char *made)
{
	const int32_t *docs = (const void *)made;
	size_t n, at = 0;
	const uint8_t *s = line(l, id, &n);
	const size_t m = n - K + 1;

	for (size_t frame = 0; frame < K; frame++)
		for (size_t i = frame; i < m; i += K, at++) {
			const int32_t *near = docs + 2 * m + at * 2 * SIDE;
			const int32_t *noise =
				docs + (2 + 2 * SIDE) * m + at * (1 + NOISE);
			const int32_t target = word_at(s, n, i + K * SIDE);
			bool ok = docs[at] == (int32_t)id &&
				  docs[m + at] == target && noise[0] == target;

			for (size_t j = 0; j < SIDE; j++)
				ok = ok &&
				     near[j] == word_at(s, n, i + K * j) &&
				     near[SIDE + j] ==
					     word_at(s, n,
						     i + K * (SIDE + 1 + j));
			for (size_t j = 1; j <= NOISE; j++)
				ok = ok && noise[j] >= 0 && noise[j] < NWORDS;
			if (!ok)
				die("a target is wrong");
		}
}

/* Arbitrary tables: their values do not affect the time. */
static void make_tables(void)
{
	for (uint8_t i = 0; letters[i]; i++)
		codes[letters[i] & 15] = i;
	for (int32_t i = 0; i < WORDS; i++)
		word_id[i] = i % 743;
	for (int32_t i = 0; i < NWORDS; i++) {
		keep[i] = (int32_t)(UINT32_MAX / 2 + (uint32_t)i * 1000);
		other[i] = i * 7 % NWORDS;
	}
}

static void map_lines(struct loop *l, const char *path)
{
	size_t size;
	const char *p = map_file(path, MAP_POPULATE, &size), *end = p + size;
	struct item *items = need(size / 32 + 1, sizeof(*items));

	l->map = p;
	while (p < end) {
		const char *comma = memchr(p, ',', (size_t)(end - p));
		const char *stop =
			comma ? memchr(comma, '\n', (size_t)(end - comma))
			      : NULL;

		if (!stop || comma - p > MOST || comma - p < 64)
			die("%s: unexpected lines", path);
		items[l->nsamples].offset = (uint64_t)(p - l->map);
		items[l->nsamples++].len = (size_t)(comma - p);
		p = stop + 1;
	}
	l->items = items;
}

/* The part of the file that a thread counts, and its counts. */
struct part {
	pthread_t thread;
	const uint8_t *p, *end;
	uint64_t lines, words, count[8 * 8 * 8 * 8];
};

/* Counts the words of each line, up to the comma. */
static void *count_part(void *arg)
{
	struct part *t = arg;
	const uint8_t *p = t->p;

	while (p < t->end) {
		uint32_t code = 0, run = 0;

		for (; p < t->end && *p != ','; p++) {
			code = (code << 3 | codes[*p & 15]) & 0xfff;
			if (++run >= K)
				t->count[code]++;
		}
		p = memchr(p, '\n', (size_t)(t->end - p));
		if (!p)
			die("unexpected lines");
		p++;
		t->lines++;
	}
	for (size_t i = 0; i < sizeof(t->count) / sizeof(t->count[0]); i++)
		t->words += t->count[i];
	return NULL;
}

/* Maps the file, splits it into one part per thread at line ends, and counts.
 */
static uint64_t count_pass(const char *path, struct part *t, unsigned n,
			   uint64_t *words)
{
	size_t size;
	const char *map = map_file(path, 0, &size);
	const uint8_t *all = (const void *)map, *at = all;
	uint64_t lines = 0;

	memset(t, 0, n * sizeof(*t));
	for (unsigned i = 0; i < n; i++) {
		const uint8_t *end = all + size * (i + 1) / n;

		while (end > at && end[-1] != '\n')
			end--;
		t[i].p = at;
		t[i].end = at = end;
		if (pthread_create(&t[i].thread, NULL, count_part, &t[i]))
			die("pthread_create failed");
	}
	*words = 0;
	for (unsigned i = 0; i < n; i++) {
		pthread_join(t[i].thread, NULL);
		lines += t[i].lines;
		*words += t[i].words;
	}
	munmap((void *)(uintptr_t)map, size);
	return lines;
}

static void count_passes(const char *path, unsigned n, double seconds)
{
	struct part *t = need(n, sizeof(*t));
	uint64_t words, again, lines = count_pass(path, t, n, &words), all = 0;
	const double start = now();

	while (now() - start < seconds) {
		all += count_pass(path, t, n, &again);
		if (again != words || all % lines)
			die("the content sum is wrong");
	}
	printf("{\"samples\": %llu, \"seconds\": %.6f}\n",
	       (unsigned long long)all, now() - start);
}

/* tokens chars|vocab|dm FILE BATCH THREADS SECONDS */
void cmd_tokens(char **arg)
{
	static const struct {
		const char *name;
		uint64_t (*body)(struct loop *, const uint32_t *, uint32_t,
				 char *);
		void (*check)(const struct loop *, uint32_t id,
			      const char *made);
		size_t row;
	} kinds[] = {
		{ "chars", chars_body, check_chars, MOST },
		{ "dm", dm_body, check_dm,
		  (MOST - K + 1) * (2 + 2 * SIDE + 1 + NOISE) *
			  sizeof(int32_t) },
	}, *kind = NULL;
	struct loop l = { 0 };
	char *once;

	make_tables();
	if (!strcmp(arg[0], "vocab")) {
		count_passes(arg[1], (unsigned)number(arg[3]), decimal(arg[4]));
		return;
	}
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(kinds[i].name, arg[0]))
			kind = &kinds[i];
	if (!kind)
		die("unknown kind '%s'", arg[0]);
	l.body = kind->body;
	l.row = kind->row;
	map_lines(&l, arg[1]);
	l.batch = (uint32_t)number(arg[2]);
	l.nthreads = (unsigned)number(arg[3]);
	l.order = shuffled(l.nsamples);
	once = need(1, l.row);
	for (uint32_t i = 0; i < l.nsamples; i++) {
		l.expect += l.body(&l, &i, 1, once);
		if (i % CHECKED == 0)
			kind->check(&l, i, once);
	}
	run_loop(&l, decimal(arg[4]));
}
