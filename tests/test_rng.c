/* Streams in pieces, valid permutations, and NumPy's own numbers. */
#include "test.h"

#include <math.h>

#include "base/rng.h"

/* The published outputs of SplitMix64 with seed 1234567. */
static void splitmix(void)
{
	static const uint64_t want[] = { 6457827717110365317u,
					 3203168211198807973u,
					 9817491932198370423u };

	for (unsigned i = 0; i < 3; i++)
		CHECK(pen__rng_at(1234567, i) == want[i]);
}

static void streams(void)
{
	struct pen_rng a = pen__rng(1, 2), b = pen__rng(1, 2),
		       c = pen__rng(1, 3), d = pen__rng(2, 2);
	unsigned same = 0;

	for (unsigned i = 0; i < 1000; i++) {
		const uint64_t v = pen__rng_u64(&a);

		CHECK(v == pen__rng_u64(&b));
		same += v == pen__rng_u64(&c);
		same += v == pen__rng_u64(&d);
	}
	CHECK_EQ(same, 0);
	for (unsigned i = 0; i < 1000; i++) {
		const double x = pen__rng_double(&a);

		CHECK(x >= 0 && x < 1);
	}
}

/* chi-square over k equally likely cells, in standard deviations */
static double excess(const uint64_t *seen, size_t k, double total)
{
	const double want = total / (double)k;
	double x = 0;

	for (size_t i = 0; i < k; i++)
		x += ((double)seen[i] - want) * ((double)seen[i] - want) / want;
	return (x - (double)(k - 1)) / sqrt(2 * (double)(k - 1));
}

static void below(void)
{
	static const uint64_t bounds[] = { 1,
					   2,
					   3,
					   7,
					   100,
					   1000003,
					   (uint64_t)1 << 63,
					   ((uint64_t)3 << 62) + 1,
					   UINT64_MAX };
	uint64_t seen[7] = { 0 };
	struct pen_rng r = pen__rng(3, 3);
	unsigned high = 0;

	for (unsigned i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++)
		for (unsigned j = 0; j < 1000; j++)
			CHECK(pen__rng_below(&r, bounds[i]) < bounds[i]);
	for (unsigned i = 0; i < 70000; i++)
		seen[pen__rng_below(&r, 7)]++;
	CHECK(fabs(excess(seen, 7, 70000)) < 5);
	/* where plain reduction would be off by a third */
	for (unsigned i = 0; i < 30000; i++)
		high += pen__rng_below(&r, (uint64_t)3 << 62) >= (uint64_t)1
									 << 63;
	CHECK(high > 9600 && high < 10400);
}

static void fill(void)
{
	enum { N = 400 };
	uint8_t whole[N], piece[N + 2];
	struct pen_rng r = pen__rng(9, 9);

	pen__rng_fill(5, 6, 0, whole, N);
	for (unsigned i = 0; i < N; i++)
		CHECK_EQ(whole[i],
			 (uint8_t)(pen__rng_at(pen__rng_key(5, 6), i / 8) >>
				   8 * (i % 8)));
	for (unsigned i = 0; i < 3000; i++) {
		const size_t off = pen__rng_below(&r, N + 1);
		const size_t n = pen__rng_below(&r, N - off + 1);

		memset(piece, 0xee, sizeof(piece));
		pen__rng_fill(5, 6, off, piece + 1, n);
		CHECK(!memcmp(piece + 1, whole + off, n));
		CHECK(piece[0] == 0xee && piece[n + 1] == 0xee);
	}
	pen__rng_fill(5, 6, UINT64_MAX - 100, piece, 50);
	pen__rng_fill(5, 6, UINT64_MAX - 93, whole, 43);
	CHECK(!memcmp(piece + 7, whole, 43));
}

/* Exactly once, and range, at and inverse agree. */
static void bijection(uint64_t n, uint64_t seed)
{
	uint64_t *v = malloc(n * sizeof(*v));
	uint8_t *seen = calloc(n, 1);
	struct pen_perm p;
	uint64_t bad = 0;

	pen__perm_init(&p, n, seed, n);
	pen__perm_range(&p, 0, n, v);
	for (uint64_t i = 0; i < n; i++) {
		bad += v[i] >= n || seen[v[i]]++;
		if (i % 64 < 3 || n < 5000) {
			bad += pen__perm_at(&p, i) != v[i];
			bad += pen__perm_inverse(&p, v[i]) != i;
		}
	}
	CHECK_EQ(bad, 0);
	free(seen);
	free(v);
}

static void pieces(uint64_t n)
{
	uint64_t whole[300], part[300];
	struct pen_perm p;
	struct pen_rng r = pen__rng(n, 1);

	pen__perm_init(&p, n, 4, 4);
	pen__perm_range(&p, n - 300, 300, whole);
	for (unsigned i = 0; i < 200; i++) {
		const size_t off = pen__rng_below(&r, 300);
		const size_t m = pen__rng_below(&r, 300 - off + 1);

		pen__perm_range(&p, n - 300 + off, m, part);
		CHECK(!memcmp(part, whole + off, m * sizeof(part[0])));
	}
}

static int by_value(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Too many to try all: distinct, in range, and invertible. */
static void huge(uint64_t n)
{
	enum { N = 200000, CELLS = 1000 };
	static uint64_t v[N], cell[CELLS];
	struct pen_perm p;
	uint64_t bad = 0;

	memset(cell, 0, sizeof(cell));
	pen__perm_init(&p, n, 11, 12);
	pen__perm_range(&p, n / 3, N, v);
	for (uint64_t i = 0; i < N; i++) {
		bad += v[i] >= n;
		bad += pen__perm_inverse(&p, v[i]) != n / 3 + i;
		cell[v[i] / (n / CELLS + 1)]++;
	}
	qsort(v, N, sizeof(v[0]), by_value);
	for (uint64_t i = 1; i < N; i++)
		bad += v[i] == v[i - 1];
	CHECK_EQ(bad, 0);
	CHECK(excess(cell, CELLS, N) < 6);
}

/* All n! orders are equally likely as the seed varies. */
static void small_uniform(unsigned n, uint64_t orders)
{
	uint64_t *seen = calloc(orders, sizeof(*seen));
	const uint64_t draws = orders * 200;

	for (uint64_t seed = 0; seed < draws; seed++) {
		struct pen_perm p;
		uint64_t v[8], rank = 0;

		pen__perm_init(&p, n, seed, 1);
		pen__perm_range(&p, 0, n, v);
		for (unsigned i = 0; i < n; i++) {
			unsigned less = 0;

			for (unsigned j = i + 1; j < n; j++)
				less += v[j] < v[i];
			rank = rank * (n - i) + less;
		}
		seen[rank]++;
	}
	CHECK(fabs(excess(seen, orders, (double)draws)) < 5);
	free(seen);
}

/*
 * For larger n: where an element lands, and where two neighbours land, is
 * uniform over seeds; so is the step between neighbours within one order.
 */
static void pairs_uniform(uint64_t n, unsigned cells)
{
	uint64_t *one = calloc(cells, sizeof(*one));
	uint64_t *two = calloc((size_t)cells * cells, sizeof(*two));
	const uint64_t draws = (uint64_t)cells * cells * 50;

	for (uint64_t seed = 0; seed < draws; seed++) {
		struct pen_perm p;
		uint64_t x, y;

		pen__perm_init(&p, n, 77, seed);
		x = pen__perm_at(&p, n / 2) * cells / n;
		y = pen__perm_at(&p, n / 2 + 1) * cells / n;
		one[x]++;
		two[x * cells + y]++;
	}
	CHECK(fabs(excess(one, cells, (double)draws)) < 5);
	CHECK(excess(two, (size_t)cells * cells, (double)draws) < 5);
	free(two);
	free(one);
}

static void steps_uniform(uint64_t n)
{
	enum { CELLS = 256 };
	uint64_t cell[CELLS] = { 0 };
	struct pen_perm p;

	pen__perm_init(&p, n, 5, 5);
	for (uint64_t i = 0; i + 1 < n; i++) {
		const uint64_t x = pen__perm_at(&p, i);
		const uint64_t y = pen__perm_at(&p, i + 1);

		cell[(y + n - x) % n * CELLS / n]++;
	}
	CHECK(fabs(excess(cell, CELLS, (double)(n - 1))) < 6);
}

static void permutations(void)
{
	for (uint64_t n = 1; n <= 300; n++)
		for (uint64_t seed = 0; seed < 5; seed++)
			bijection(n, seed);
	for (uint64_t n = 1000; n < 300000; n = n * 3 / 2 + 17)
		bijection(n, n);
	bijection(65535, 1);
	bijection(65536, 1);
	bijection(65537, 1);
	bijection(1000000, 2);
	pieces(300);
	pieces(12345);
	pieces((uint64_t)1000000000000);
	huge(1000000000);
	huge(1000000000000);
	huge(((uint64_t)1 << 62) + 12345);
	huge(((uint64_t)1 << 63) - 1);
	small_uniform(2, 2);
	small_uniform(3, 6);
	small_uniform(4, 24);
	small_uniform(5, 120);
	small_uniform(6, 720);
	pairs_uniform(64, 16);
	pairs_uniform(65, 13);
	pairs_uniform(81, 27);
	pairs_uniform(100, 20);
	pairs_uniform(1000, 20);
	pairs_uniform(100000, 20);
	pairs_uniform(1000000000, 20);
	steps_uniform(65536);
	steps_uniform(1000000);
}

/* Made with NumPy 1.24.2, numpy.random.RandomState(seed). */
static const struct {
	uint32_t seed, u32[3];
	double dbl[3], normal[5];	    /* normal(5.0, 2.5) */
	uint64_t shuffled[10], thousand[8]; /* first and last 4 */
	double dbl_2000th, normal_2001st;   /* normal() */
	uint64_t below_1e12[3];
} numpy[] = {
	{ 0,
	  { 0x8c7f0aac, 0x97c4aa2f, 0xb716a675 },
	  { 0x1.18fe1565f12a8p-1, 0x1.6e2d4cf608733p-1, 0x1.349d66b6e894bp-1 },
	  { 0x1.2d1fcac37d0e4p+3, 0x1.80067072ff575p+2, 0x1.dc991b9aadf06p+2,
	    0x1.53457e22dfed1p+3, 0x1.3567966f76354p+3 },
	  { 2, 8, 4, 9, 1, 6, 7, 3, 0, 5 },
	  { 993, 859, 298, 553, 192, 629, 559, 684 },
	  0x1.00e86864bc501p-1,
	  -0x1.886d839fd50f8p+0,
	  { 741280623151, 506137267392, 291447657211 } },
	{ 10,
	  { 0xc5754509, 0x4c7b9c7d, 0x54fffe4 },
	  { 0x1.8aea8a131ee71p-1, 0x1.53fffbf4eb900p-6, 0x1.446d8a9c5a5b5p-1 },
	  { 0x1.0a86e44032800p+3, 0x1.b271d3a899363p+2, 0x1.22f19dbb62158p+0,
	    0x1.3ea898f636c9cp+2, 0x1.a369ebe6ce116p+2 },
	  { 8, 2, 5, 6, 3, 1, 0, 7, 4, 9 },
	  { 841, 956, 544, 173, 527, 996, 125, 265 },
	  0x1.36fc3fdfb2590p-5,
	  -0x1.4b7f20c11c316p+0,
	  { 39937875069, 981376791055, 276780641649 } },
	{ 124,
	  { 0x1b2711ce, 0xb2a1929c, 0xbed73811 },
	  { 0x1.b2711d6543250p-4, 0x1.7dae703f5e582p-1, 0x1.250647a5c7e0ap-1 },
	  { 0x1.6e281a32acd62p+2, 0x1.ebdacd349be06p+1, 0x1.a7ad5b10b022ep+0,
	    0x1.595c7b20d3295p+3, 0x1.54e1208188794p+0 },
	  { 6, 8, 3, 5, 4, 0, 9, 2, 7, 1 },
	  { 80, 789, 869, 518, 135, 17, 668, 462 },
	  0x1.e391230bd5137p-1,
	  -0x1.3544b3434f5ecp-2,
	  { 887760196252, 77267034247, 835759080105 } },
	{ 4294967295,
	  { 0x18fe69a3, 0x1c924122, 0xe991ec0c },
	  { 0x1.8fe69a3924820p-4, 0x1.d323d824032b1p-1, 0x1.93fc6f61af3f9p-1 },
	  { 0x1.a7bed1bd6a23bp+2, 0x1.ab177de7927aap+2, 0x1.2639dbb520844p+1,
	    0x1.6d8529acee127p+2, 0x1.5238d778dc2abp+2 },
	  { 6, 9, 5, 1, 8, 0, 7, 4, 2, 3 },
	  { 94, 405, 819, 632, 71, 12, 290, 419 },
	  0x1.6f8e202307648p-3,
	  -0x1.46bc84da71d17p-1,
	  { 700559016226, 53956357191, 775354646080 } },
};

static void legacy_order(struct pen_legacy *r, uint32_t seed, size_t n,
			 uint64_t *v)
{
	for (size_t i = 0; i < n; i++)
		v[i] = i;
	pen__legacy_seed(r, seed);
	pen__legacy_shuffle(r, v, n);
}

static void legacy(unsigned k)
{
	const uint32_t seed = numpy[k].seed;
	struct pen_legacy r;
	uint64_t v[1000];
	double x = 0;

	pen__legacy_seed(&r, seed);
	for (unsigned i = 0; i < 3; i++)
		CHECK_EQ(pen__legacy_u32(&r), numpy[k].u32[i]);
	pen__legacy_seed(&r, seed);
	for (unsigned i = 0; i < 3; i++)
		CHECK(pen__legacy_double(&r) == numpy[k].dbl[i]);
	for (unsigned i = 3; i < 2000; i++)
		x = pen__legacy_double(&r);
	CHECK(x == numpy[k].dbl_2000th);
	pen__legacy_seed(&r, seed);
	for (unsigned i = 0; i < 5; i++)
		CHECK(pen__legacy_normal(&r, 5.0, 2.5) == numpy[k].normal[i]);
	pen__legacy_seed(&r, seed); /* forgets the kept value too */
	for (unsigned i = 0; i < 2001; i++)
		x = pen__legacy_normal(&r, 0, 1);
	CHECK(x == numpy[k].normal_2001st);
	legacy_order(&r, seed, 10, v);
	for (unsigned i = 0; i < 10; i++)
		CHECK_EQ(v[i], numpy[k].shuffled[i]);
	legacy_order(&r, seed, 1000, v);
	for (unsigned i = 0; i < 4; i++) {
		CHECK_EQ(v[i], numpy[k].thousand[i]);
		CHECK_EQ(v[996 + i], numpy[k].thousand[4 + i]);
	}
	pen__legacy_seed(&r, seed);
	for (unsigned i = 0; i < 3; i++)
		CHECK_EQ(pen__legacy_interval(&r, 999999999999),
			 numpy[k].below_1e12[i]);
	CHECK_EQ(pen__legacy_interval(&r, 0), 0);
}

/* The first record sizes of DLIO's unet3d, which come from seed 10. */
static void unet3d(void)
{
	static const int64_t want[] = { 224093125, 93582835, 139625640,
					159581528 };
	const double mean = 12107, sd = 68341808 / 2.0 / sqrt(146600628);
	struct pen_legacy r;

	pen__legacy_seed(&r, 10);
	for (unsigned i = 0; i < 4; i++) {
		const int64_t a = (int64_t)pen__legacy_normal(&r, mean, sd);
		const int64_t b = (int64_t)pen__legacy_normal(&r, mean, sd);

		CHECK_EQ(a * b, want[i]);
	}
}

int main(void)
{
	splitmix();
	streams();
	below();
	fill();
	permutations();
	for (unsigned k = 0; k < sizeof(numpy) / sizeof(numpy[0]); k++)
		legacy(k);
	unet3d();
	return test_end();
}
