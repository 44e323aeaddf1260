/*
 * All formats from memory. The first byte selects a format of the registry and
 * options that change how bytes are read; the rest is the object.
 * format_driver.h aborts if a format violates its contract; sanitizers detect
 * the rest.
 *
 * Seeds: tests/data/make_golden.py --seeds DIR, make_formats.py --seeds DIR,
 * make_sequences.py --seeds DIR
 */
#include "format_driver.h"

#define MOST_SAMPLES 64u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Adds key=value if the format knows the key. */
static void option(const struct pen_format_ops *ops, struct pen_opts_kv *kv,
		   size_t *n, const char *key, const char *value)
{
	if (pen__opt_find(ops->opts, key))
		kv[(*n)++] = (struct pen_opts_kv){ key, value };
}

static size_t options(const struct pen_format_ops *ops, unsigned pick,
		      struct pen_opts_kv *kv)
{
	static const char *const samples[] = { "auto", "file", "first",
					       "last" };
	size_t n = 0;

	option(ops, kv, &n, "samples", samples[pick % 4]);
	option(ops, kv, &n, "crc", pick & 8 ? "false" : "true");
	option(ops, kv, &n, "trailing", pick & 8 ? "ignore" : "error");
	option(ops, kv, &n, "shape", pick & 1 ? "2x3" : "5");
	option(ops, kv, &n, "dtype", pick & 2 ? "int16" : "uint8");
	option(ops, kv, &n, "big_endian", pick & 4 ? "true" : "false");
	option(ops, kv, &n, "partial", pick & 8 ? "drop" : "error");
	option(ops, kv, &n, "decode", pick & 4 ? "false" : "true");
	option(ops, kv, &n, "scan", pick & 2 ? "full" : "auto");
	option(ops, kv, &n, "strict", pick & 4 ? "false" : "true");
	option(ops, kv, &n, "color", pick & 2 ? "rgb" : "auto");
	option(ops, kv, &n, "max_pixels", "1M");
	option(ops, kv, &n, "header", pick & 4 ? "no" : "auto");
	option(ops, kv, &n, "output", pick & 1 ? "csr" : "dense");
	option(ops, kv, &n, "obs", pick & 8 ? "kind" : "");
	if (pen__opt_find(ops->opts, "tokens"))
		option(ops, kv, &n, "fields", pick & 8 ? "all" : "");
	option(ops, kv, &n, "window", pick & 1 ? "3" : "0");
	option(ops, kv, &n, "last", pick & 2 ? "back" : "keep");
	option(ops, kv, &n, "rc", pick & 4 ? "always" : "none");
	option(ops, kv, &n, "fai", pick & 4 ? "always" : "never");
	option(ops, kv, &n, "gzip_limit", "1MB");
	return n;
}

static void load(struct drv *d)
{
	uint64_t n = d->obj[0].nsamples;
	struct drv_rows rows = { 0 };

	for (uint64_t i = 0; i < n && i < MOST_SAMPLES; i++) {
		/* from both ends: bounds are at the end */
		uint64_t k = i & 1 ? n - 1 - i / 2 : i / 2;

		(void)drv_sample(d, 0, k, &rows, NULL);
		drv_rows_free(&rows);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pen_opts_kv kv[24];
	unsigned nformats = 0, pick;
	struct pen_err err;
	struct drv d;
	size_t nkv;

	if (!size)
		return 0;
	while (pen__format_at(nformats))
		nformats++;
	pick = data[0] / nformats;
	nkv = options(pen__format_at(data[0] % nformats), pick, kv);
	if (drv_start(&d, pen__format_at(data[0] % nformats), kv, nkv, &err) <
	    0)
		return 0;
	drv_add(&d, data + 1, size - 1);
	if (drv_bind(&d, pick & 4 ? 1 : 2, &err) >= 0)
		load(&d);
	drv_close(&d);
	return 0;
}
