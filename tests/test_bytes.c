/* The cursor cannot leave its bytes; the buffer grows or reports that it could
 * not. */
#include "test.h"

#include "base/bytes.h"
#include "base/mem.h"

static void cursor(void)
{
	static const uint8_t data[] = { 1, 2,  3,  4,  5,  6,  7,  8,
					9, 10, 11, 12, 13, 14, 15, 16 };
	struct pen_bytes b = pen__bytes(data, sizeof(data));

	CHECK_EQ(pen__take_u8(&b), 1);
	CHECK_EQ(pen__take_u16(&b), 0x0302);
	CHECK_EQ(pen__take_u32(&b), 0x07060504);
	CHECK_EQ(pen__take_be(&b, 3), 0x08090a);
	CHECK_EQ(pen__bytes_left(&b), 6);
	CHECK(!b.bad);
	CHECK_EQ(pen__take_u64(&b), 0);
	CHECK(b.bad);
	CHECK_EQ(pen__bytes_left(&b), 0);
	CHECK_EQ(pen__take_u8(&b), 0);
	CHECK(b.bad);

	b = pen__bytes(data, 8);
	CHECK_EQ(pen__take_u64(&b), 0x0807060504030201);
	CHECK(!b.bad);
	CHECK(pen__take(&b, 0) != NULL);
	CHECK(!b.bad);
	CHECK(pen__take(&b, UINT64_MAX) == NULL);
	CHECK(b.bad);

	b = pen__bytes(NULL, 0);
	CHECK_EQ(pen__take_u32(&b), 0);
	CHECK(b.bad);
}

static void buffer(void)
{
	struct pen_buf b = { 0 };
	struct pen_bytes c;

	pen__buf_str(&b, "ab");
	pen__buf_le(&b, 0x0102030405060708, 8);
	pen__buf_le(&b, 0xabcd, 2);
	pen__buf_put(&b, NULL, 0);
	pen__buf_printf(&b, "%d-%s", 42, "x");
	CHECK(!b.bad);
	CHECK_EQ(b.n, 16);
	c = pen__bytes(b.p, b.n);
	CHECK(!memcmp(pen__take(&c, 2), "ab", 2));
	CHECK_EQ(pen__take_u64(&c), 0x0102030405060708);
	CHECK_EQ(pen__take_u16(&c), 0xabcd);
	CHECK(!memcmp(pen__take(&c, 4), "42-x", 4));
	pen__buf_fini(&b);
	CHECK(!b.p && !b.n && !b.cap);

	for (unsigned i = 0; i < 10000; i++)
		pen__buf_printf(&b, "%u,", i);
	pen__buf_printf(&b, "%5000d", 7);
	CHECK(!b.bad);
	CHECK_EQ(b.n, 48890 + 5000);
	CHECK(!memcmp(b.p, "0,1,2,3,", 8));
	CHECK_EQ(b.p[b.n - 1], '7');
	pen__buf_fini(&b);
}

static void no_memory(void)
{
	for (uint64_t nth = 1; nth <= 8; nth++) {
		struct pen_buf b = { 0 };
		size_t n;

		pen__mem_fail_nth(nth, false);
		for (unsigned i = 0; i < 1000 && !b.bad; i++)
			pen__buf_printf(&b, "%8u", i);
		pen__mem_fail_nth(0, false);
		CHECK_EQ(b.bad, nth <= 6); /* 256 .. 8192 bytes */
		n = b.n;
		if (b.bad) {
			pen__buf_str(&b, "more");
			pen__buf_le(&b, 1, 8);
			CHECK_EQ(b.n, n);
			CHECK(b.bad);
		}
		pen__buf_fini(&b);
	}
}

int main(void)
{
	cursor();
	buffer();
	no_memory();
	return test_end();
}
