/* CRC-32C: published values, and the fast code against the table. */
#include "base/rng.h"
#include "codec/crc32c.h"
#include "test.h"

static uint8_t buf[40000];

/* RFC 3720, B.4 */
static void test_known(void)
{
	uint8_t b[32];

	CHECK_EQ(pen__crc32c(0, "", 0), 0);
	CHECK_EQ(pen__crc32c(0, NULL, 0), 0);
	CHECK_EQ(pen__crc32c(0, "123456789", 9), 0xe3069283);
	memset(b, 0, sizeof(b));
	CHECK_EQ(pen__crc32c(0, b, sizeof(b)), 0x8a9136aa);
	memset(b, 0xff, sizeof(b));
	CHECK_EQ(pen__crc32c(0, b, sizeof(b)), 0x62a8ab43);
	for (unsigned i = 0; i < sizeof(b); i++)
		b[i] = (uint8_t)i;
	CHECK_EQ(pen__crc32c(0, b, sizeof(b)), 0x46dd794e);
	CHECK_EQ(pen__crc32c_mask(0), 0xa282ead8);
}

/* Lengths around every change of method, at every alignment. */
static void test_lengths(void)
{
	static const size_t around[] = { 8,    256,   768,   1536, 4096,
					 8192, 12288, 13056, 24576 };

	for (unsigned i = 0; i < sizeof(around) / sizeof(around[0]); i++)
		for (size_t n = around[i] - 8; n < around[i] + 17; n++) {
			const uint8_t *p = buf + n % 8;
			uint32_t want = pen__crc32c_table(7, p, n);

			CHECK_EQ(pen__crc32c(7, p, n), want);
			/* in two steps */
			want = pen__crc32c(pen__crc32c(7, p, n / 3), p + n / 3,
					   n - n / 3);
			CHECK_EQ(pen__crc32c(7, p, n), want);
		}
}

int main(void)
{
	pen__rng_fill(1, 2, 0, buf, sizeof(buf));
	test_known();
	test_lengths();
	return test_end();
}
