/* Loops over several values at a time: every length and alignment near the
 * width of a register, and no write outside the buffer. */
#include "test.h"

#include "format/cells/cells.h"
#include "format/cells/cells_stream.h"

#define ROOM 700u

static uint8_t numbers[ROOM * 4 + 64];

static void put(size_t shift, uint64_t i, uint32_t v)
{
	memcpy(numbers + shift + i * 4, &v, 4);
}

/* A value that is too large is found at every position; values after the end
 * are ignored. */
static void below(void)
{
	for (size_t shift = 0; shift < 33; shift++) {
		for (uint64_t n = 0; n < 70; n++) {
			for (uint64_t i = 0; i < n + 9; i++)
				put(shift, i, i < n ? (uint32_t)i : UINT32_MAX);
			CHECK(pen__cells_below(numbers + shift, n, n ? n : 1));
			if (!n)
				continue;
			CHECK(n == 1 ||
			      !pen__cells_below(numbers + shift, n, n - 1));
			put(shift, (n * 7 + shift) % n, UINT32_MAX - 1);
			CHECK(!pen__cells_below(numbers + shift, n,
						PEN_CELLS_GENES));
		}
	}
}

static void stream(void)
{
	uint8_t from[ROOM], to[ROOM];

	for (size_t i = 0; i < ROOM; i++)
		from[i] = (uint8_t)(i * 31 + 7);
	for (size_t shift = 0; shift < 65; shift++) {
		for (size_t n = 0; n + shift + 64 < 400; n++) {
			const size_t at = (shift * 5) % 64;
			bool same = true;

			memset(to, 0xa5, sizeof(to));
			pen__cells_stream(to + shift, from + at, n);
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
	CHECK(!pen__cells_streams(1000));
	CHECK(pen__cells_streams(80000));
	CHECK(!pen__cells_streams(1 << 20));
}

int main(void)
{
	below();
	stream();
	worth();
	return test_end();
}
