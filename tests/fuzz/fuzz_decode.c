/*
 * All decoders. The first byte selects one of the registry and its options; the
 * rest is the value. decode_driver.h aborts if a decoder violates its contract;
 * sanitizers detect the rest.
 *
 * Seeds: tests/data/make_formats.py --decode-seeds DIR
 */
#include "decode_driver.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct pen_decoder_ops *ops;
	struct pen_scratch scratch;
	struct pen_opts_kv kv[8];
	struct pen_decoder *d;
	unsigned n = 0;
	uint8_t *row;
	size_t len;

	if (!size || pen__scratch_init(&scratch, 0))
		return 0;
	while (pen__decoder_at(n))
		n++;
	ops = pen__decoder_at(data[0] % n);
	if (!pen__decoder_open(&d, ops, kv, dec_options(ops, data[0] / n, kv),
			       "", NULL)) {
		(void)dec_value(d, (struct pen_span){ data + 1, size - 1 },
				&scratch, &row, &len, NULL);
		free(row);
		pen__decoder_close(d);
	}
	pen__scratch_fini(&scratch);
	return 0;
}
