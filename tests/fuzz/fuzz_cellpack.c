/*
 * Unpacking of the packed layout: the first bytes select type, width and rows,
 * the rest is packed numbers or places. The checksum is corrected, since a
 * fuzzer cannot do that. Unpacked data is packed again and must unpack to the
 * same.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "codec/cellpack.h"
#include "codec/crc32c.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define NUMBERS 1500u

static void seal(uint8_t *p, size_t n)
{
	const uint32_t crc = pen__crc32c(0, p + 4, n - 4);

	memcpy(p, &crc, 4);
}

static void places(const struct pen_cellplaces *c, const uint8_t *p, size_t n)
{
	uint32_t again[NUMBERS];
	struct pen_cellplaces d = *c;
	struct pen_buf b = { 0 };
	const char *why;

	if (pen__places_unpack(c, p, n, &why) < 0 || c->width != 4)
		return;
	d.to = again;
	pen__places_pack(c->rows, c->to, c->n, &b);
	if (pen__places_unpack(&d, b.p, b.n, &why) < 0 ||
	    memcmp(c->to, again, 4 * (size_t)c->n) != 0)
		abort();
	pen__buf_fini(&b);
}

static void numbers(const struct pen_cellnumbers *c, const uint8_t *p, size_t n,
		    struct pen_scratch *s)
{
	uint64_t again[NUMBERS], top;
	struct pen_cellnumbers d = *c;
	struct pen_buf b = { 0 };
	const char *why;

	if (pen__numbers_unpack(c, p, n, s, &why) < 0 || c->as != c->dtype)
		return;
	d.to = again;
	pen__numbers_pack(c->rows, c->dtype, c->to, c->n, &b, &top);
	if (pen__numbers_unpack(&d, b.p, b.n, s, &why) < 0 ||
	    memcmp(c->to, again, c->n * pen_dtype_size(c->dtype)) != 0)
		abort();
	pen__buf_fini(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint32_t start[17] = { 0 };
	uint64_t to[NUMBERS];
	struct pen_scratch s;
	uint8_t *p;
	uint32_t n;

	if (size < 24 || pen__scratch_init(&s, sizeof(to)) < 0)
		return 0;
	for (unsigned i = 0; i < 16; i++)
		start[i + 1] = start[i] + data[i + 2] % 94;
	n = data[1] & 1 ? start[16] : (data[1] >> 1) * 8u;
	p = malloc(size - 18);
	memcpy(p, data + 18, size - 18);
	if (size - 18 > 4)
		seal(p, size - 18);
	{
		const struct pen_cellrows rows = { start, 4, data[1] % 17 };
		const enum pen_dtype t = (enum pen_dtype)(data[0] % 12);
		const struct pen_cellplaces g = { &rows, to, n,
						  data[0] & 16 ? 4 : 2 };
		const struct pen_cellnumbers c = { t,
						   data[0] & 32 ? PEN_U16 : t,
						   n, to, &rows };

		if (data[0] & 64)
			places(&g, p, size - 18);
		else
			numbers(&c, p, size - 18, &s);
	}
	free(p);
	pen__scratch_fini(&s);
	return 0;
}
