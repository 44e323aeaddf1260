/* crc32, inflate, deflate and their scratch memory. */
#include "base/mem.h"
#include "codec/deflate.h"
#include "test.h"

#define N ((size_t)60000)

static void fill(uint8_t *p, size_t n)
{
	uint32_t x = 1;

	for (size_t i = 0; i < n; i++) {
		x = x * 1664525u + 1013904223u;
		p[i] = (uint8_t)(x >> 30); /* compressible */
	}
}

static void test_crc(void)
{
	const char *s = "123456789";

	CHECK_EQ(pen__crc32(0, s, 9), 0xcbf43926u);
	CHECK_EQ(pen__crc32(pen__crc32(0, s, 4), s + 4, 5), 0xcbf43926u);
	CHECK_EQ(pen__crc32(0, NULL, 0), 0);
	CHECK_EQ(pen__crc32(0xcbf43926u, NULL, 0), 0xcbf43926u);
}

/* Separate allocations for outputs, so that overflows are detected. */
static int inflate_to(struct pen_scratch *s, const uint8_t *in, size_t n,
		      const uint8_t *want, size_t out_len)
{
	uint8_t *copy = malloc(n ? n : 1), *out = malloc(out_len ? out_len : 1);
	int rc;

	memcpy(copy, in, n);
	rc = pen__inflate(s, copy, n, out, out_len);
	if (rc == 0)
		CHECK(memcmp(out, want, out_len) == 0);
	free(copy);
	free(out);
	return rc;
}

static void test_round_trip(struct pen_scratch *s)
{
	uint8_t *in = malloc(N), *packed = malloc(pen__deflate_bound(N));
	static const size_t sizes[] = { 0, 1, 100, N };

	fill(in, N);
	for (int level = 1; level <= 12; level++) {
		for (unsigned i = 0; i < 4; i++) {
			const size_t n = sizes[i];
			size_t k = pen__deflate(level, in, n, packed,
						pen__deflate_bound(n));

			CHECK(k > 0);
			CHECK_EQ(inflate_to(s, packed, k, in, n), 0);
			CHECK_EQ(inflate_to(s, packed, k, in, n + 1),
				 PEN_EDATA);
			if (n)
				CHECK_EQ(inflate_to(s, packed, k, in, n - 1),
					 PEN_EDATA);
			CHECK_EQ(pen__deflate(level, in, N, packed, 10), 0);
		}
	}
	CHECK_EQ(inflate_to(s, in, 0, in, 10), PEN_EDATA);
	free(in);
	free(packed);
}

static void test_damage(struct pen_scratch *s)
{
	uint8_t in[500], packed[1000];
	size_t k;

	fill(in, sizeof(in));
	k = pen__deflate(6, in, sizeof(in), packed, sizeof(packed));
	for (size_t n = 0; n < k; n++)
		CHECK_EQ(inflate_to(s, packed, n, in, sizeof(in)), PEN_EDATA);
	for (size_t i = 0; i < k; i++) {
		uint8_t out[sizeof(in)];

		packed[i] ^= 0x10;
		(void)pen__inflate(s, packed, k, out, sizeof(out));
		packed[i] ^= 0x10;
	}
}

/* The start can be inflated from part of the input into a small buffer. */
static void test_start(struct pen_scratch *s)
{
	uint8_t *in = malloc(N), *packed = malloc(pen__deflate_bound(N));
	uint8_t *head = malloc(1000), *out = malloc(600);
	size_t k;

	fill(in, N);
	k = pen__deflate(6, in, N, packed, pen__deflate_bound(N));
	CHECK(k > 1000);
	memcpy(head, packed, 1000);
	CHECK_EQ(pen__inflate_start(s, head, 1000, out, 600), 0);
	CHECK(memcmp(in, out, 300) == 0);
	CHECK_EQ(pen__inflate_start(s, head, 1, out, 600), 0);
	CHECK_EQ(out[599], 0);
	CHECK_EQ(pen__inflate_start(s, head, 0, out, 0), 0);
	free(in);
	free(packed);
	free(head);
	free(out);
}

static void test_scratch(void)
{
	struct pen_scratch s;
	uint8_t out[4];

	CHECK_EQ(pen__scratch_init(&s, 0), 0);
	CHECK(s.mem == NULL);
	pen__scratch_fini(&s);
	CHECK_EQ(pen__scratch_init(&s, 1000), 0);
	CHECK(s.mem && s.size == 1000);
	CHECK_EQ((uintptr_t)s.mem % 64, 0);
	memset(s.mem, 1, s.size);
	pen__scratch_fini(&s);
	pen__scratch_fini(&s);
	pen__mem_fail_nth(1, false);
	CHECK_EQ(pen__scratch_init(&s, 1000), PEN_ENOMEM);
	pen__mem_fail_nth(1, false);
	CHECK_EQ(pen__inflate(&s, "\3\0", 2, out, 0), PEN_ENOMEM);
	CHECK_EQ(pen__inflate(&s, "\3\0", 2, out, 0), 0);
	pen__mem_fail_nth(1, false);
	CHECK_EQ(pen__deflate(6, "abc", 3, out, 4), 0);
	pen__mem_fail_nth(0, false);
	pen__scratch_fini(&s);
}

int main(void)
{
	struct pen_scratch s;

	test_crc();
	test_scratch();
	CHECK_EQ(pen__scratch_init(&s, 0), 0);
	test_round_trip(&s);
	test_damage(&s);
	test_start(&s);
	pen__scratch_fini(&s);
	return test_end();
}
