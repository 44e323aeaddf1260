/*
 * Decoders in every format, against Pillow and NumPy: damage in every place,
 * out of memory, and the rules for all decoders of the registry.
 */
#include "decode_driver.h"
#include "formats.h"

/* One value per decoder, written by np.save, Pillow or by hand. */
static const struct {
	const char *decoder, *file;
	const char *text;
} samples[] = {
	{ "jpeg", "beside/a.jpg", NULL },
	{ "png", "beside/b.png", NULL },
	{ "npy", "npys/a.bin", NULL },
	{ "raw", NULL, "0123456789ab" },
	{ "text", NULL, "h\xc3\xa9llo, \xe6\x97\xa5\xe6\x9c\xac" },
	{ "int", NULL, " -123456789012\n" },
	{ "json", NULL, "{\"t\": \"\\u00e9x\", \"n\": -12.5, \"o\": [1, {}]}" },
};

/* A valid value, to tell a failed check from a crash. */
static void try_value(const struct pen_decoder *d, const uint8_t *p, size_t n,
		      struct pen_scratch *scratch)
{
	struct pen_err err = { 0 };
	uint8_t *row, *own = malloc(n ? n : 1);
	size_t len;
	int rc;

	CHECK(own != NULL);
	memcpy(own, p, n);
	rc = dec_value(d, (struct pen_span){ own, n }, scratch, &row, &len,
		       &err);
	CHECK(rc <= 0);
	CHECK(!rc || !err.code || (err.code == rc && err.msg[0]));
	free(own);
	free(row);
}

static void damage(const struct pen_decoder_ops *o, unsigned pick,
		   const uint8_t *p, size_t n)
{
	uint8_t *flipped = malloc(n);
	struct pen_scratch scratch;
	struct pen_opts_kv kv[8];
	struct pen_decoder *d;

	CHECK_EQ(pen__scratch_init(&scratch, 0), 0);
	CHECK_EQ(pen__decoder_open(&d, o, kv, dec_options(o, pick, kv), "",
				   NULL),
		 0);
	memcpy(flipped, p, n);
	for (size_t i = 0; i < n; i = test_next_place(i, n)) {
		try_value(d, p, i, &scratch);
		for (unsigned x = 1; x < 256; x = x * 2 + 1) {
			flipped[i] = (uint8_t)(p[i] ^ x);
			try_value(d, flipped, n, &scratch);
		}
		flipped[i] = p[i];
	}
	pen__decoder_close(d);
	pen__scratch_fini(&scratch);
	free(flipped);
}

static void test_registry(void)
{
	const struct pen_decoder_ops *o;
	unsigned k;

	for (unsigned i = 0; (o = pen__decoder_at(i)); i++) {
		uint8_t *p = NULL;
		size_t n;

		CHECK(o->name && o->help && o->decode);
		CHECK(pen__decoder_find(o->name) == o);
		for (const char *const *m = o->media; m && *m; m++)
			CHECK(pen__decoder_find(*m) == o);
		for (k = 0; k < sizeof(samples) / sizeof(*samples); k++)
			if (strcmp(samples[k].decoder, o->name) == 0)
				break;
		if (!CHECK(k < sizeof(samples) / sizeof(*samples)))
			continue;
		if (samples[k].file)
			p = golden_read(samples[k].file, &n);
		else
			n = strlen(samples[k].text);
		CHECK(!o->magic || pen__decoder_begins(o, p, n));
		for (unsigned pick = 0; pick < 8; pick++)
			damage(o, pick,
			       p ? p : (const uint8_t *)samples[k].text, n);
		free(p);
	}
}

/* In a record, with and without its checksum. */
static void test_damage(void)
{
	const struct pen_opts_kv jpeg[] = { { "decode.v", "jpeg" },
					    { "crc", "false" } },
				 npy[] = { { "decode.v", "npy" },
					   { "crc", "false" } };
	size_t n;
	uint8_t *p;

	formats_damage("small/a.tfrecord", "tfrecord", jpeg, 1, true, 85);
	formats_damage("small/a.tfrecord", "tfrecord", jpeg, 2, false, 85);
	formats_damage("small-npy/a.tfrecord", "tfrecord", npy, 1, true, 51);
	formats_damage("small-npy/a.tfrecord", "tfrecord", npy, 2, false, 15);
	p = golden_read("small/a.tfrecord", &n);
	golden_check_nomem("tfrecord", jpeg[0], (struct pen_span){ p, n });
	free(p);
	p = golden_read("json-text/a.tfrecord", &n);
	golden_check_nomem("tfrecord",
			   (struct pen_opts_kv){ "decode.v", "json:t" },
			   (struct pen_span){ p, n });
	free(p);
}

int main(void)
{
	if (!pen__decoder_find("jpeg") || !pen__decoder_find("png"))
		TEST_SKIP("built without libturbojpeg or libspng");
	formats_make("decode", "numpy, PIL");
	formats_check(30);
	formats_refuse(30);
	test_registry();
	test_damage();
	return test_end();
}
