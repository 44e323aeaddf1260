/* The loops with instructions of their own against plain ones: every length and
 * alignment near the width of a register, and nothing written beside. */
#include "test.h"

#include "format/cells_fast.h"

#define ROOM 700u

static uint8_t numbers[ROOM * 4 + 64];

static void put(size_t shift, uint64_t i, uint32_t v)
{
	memcpy(numbers + shift + i * 4, &v, 4);
}

/* The largest is found at every place, and what lies behind is not seen. */
static void largest(void)
{
	for (size_t shift = 0; shift < 33; shift++) {
		for (uint64_t n = 0; n < 70; n++) {
			for (uint64_t i = 0; i < n + 9; i++)
				put(shift, i, i < n ? (uint32_t)i : UINT32_MAX);
			CHECK_EQ(pen__cells_largest(numbers + shift, n),
				 n ? n - 1 : 0);
			if (!n)
				continue;
			put(shift, (n * 7 + shift) % n, UINT32_MAX - 1);
			CHECK_EQ(pen__cells_largest(numbers + shift, n),
				 UINT32_MAX - 1);
		}
	}
}

static void pour(void)
{
	uint8_t from[ROOM], to[ROOM];

	for (size_t i = 0; i < ROOM; i++)
		from[i] = (uint8_t)(i * 31 + 7);
	for (size_t shift = 0; shift < 65; shift++) {
		for (size_t n = 0; n + shift + 64 < 400; n++) {
			const size_t at = (shift * 5) % 64;
			bool same = true;

			memset(to, 0xa5, sizeof(to));
			pen__cells_pour(to + shift, from + at, n);
			for (size_t i = 0; i < ROOM; i++)
				same &= to[i] == (i >= shift && i < shift + n
							  ? from[at + i - shift]
							  : 0xa5);
			CHECK(same);
		}
	}
}

static void worth(void)
{
	CHECK(!pen__cells_pours(1000));
	CHECK(pen__cells_pours(80000));
	CHECK(!pen__cells_pours(1 << 20));
}

int main(void)
{
	largest();
	pour();
	worth();
	return test_end();
}
