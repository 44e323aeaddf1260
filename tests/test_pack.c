/* Compressors by name, undone by the codecs of that name; byte shuffle. */
#include "codec/codec.h"
#include "codec/pack.h"
#include "codec/byte_shuffle.h"
#include "test.h"

static uint8_t in[40000], out[50000], back[40000];

static void test_packers(void)
{
	static const char *const names[] = { "zlib", "gzip", "lzf", "zstd",
					     "blosc" };
	struct pen_scratch s;

	CHECK_EQ(pen__scratch_init(&s, 0), 0);
	for (size_t i = 0; i < 5; i++) {
		const struct pen_packer *p = pen__packer_find(names[i]);
		const struct pen_codec *u = pen__codec_find(names[i]);

		for (int level = p ? p->least : 99;
		     u && level <= p->most && level < p->least + 3; level++) {
			const struct pen_pack how = { level, 4 };
			size_t got = 0, n = p->pack(&s, &how, in, sizeof(in),
						    out, sizeof(out));

			CHECK(n > 0 && n < sizeof(in));
			CHECK_EQ(
				u->unpack(&s, out, n, back, sizeof(back), &got),
				0);
			CHECK(got == sizeof(in) && !memcmp(in, back, got));
			CHECK_EQ(p->pack(&s, &how, in, sizeof(in), out, 40), 0);
		}
	}
	CHECK(!pen__packer_find("none"));
	pen__scratch_fini(&s);
}

static void test_shuffle(void)
{
	for (size_t item = 1; item < 10; item++)
		for (size_t n = 0; n < sizeof(in); n = n * 3 + 1) {
			pen__shuffle(item, in, n, out);
			pen__unshuffle(item, out, n, back);
			CHECK(!memcmp(in, back, n));
		}
}

int main(void)
{
	for (size_t i = 0; i < sizeof(in); i++)
		in[i] = i % 4 ? 0 : (uint8_t)(i * i >> 7);
	test_packers();
	test_shuffle();
	return test_end();
}
