/*
 * The content of tensors: ones, or noise that is a function of seed,
 * checkpoint, file, tensor and offset, so that it can be verified later.
 *
 * Noise must be generated faster than any disk writes it. A page is a page of a
 * small pool, generated once, XORed with a key of its own. That is 4 times as
 * fast as generating every page, as incompressible, and no two pages of 4 KiB
 * are equal within a file, between files or between checkpoints. The bits are
 * random, so floats include infinities and NaNs.
 */
#include <endian.h>

#include "base/mem.h"
#include "base/rng.h"
#include "emulate/ckpt_int.h"

#define WORDS (PEN_CKPT_PAGE / 8)
#define KEYS 4u /* words of the key of a page */

int pen__ckpt_fill_init(struct pen_ckpt_fill *f, const struct pen_config *c,
			struct pen_err *err)
{
	const size_t n = PEN_CKPT_POOL * PEN_CKPT_PAGE;

	*f = (struct pen_ckpt_fill){ 0 };
	if (!c->checkpoint.randomize_tensor)
		return 0;
	f->pool = pen__alloc(n, 1);
	if (!f->pool)
		return pen__fail_nomem(err, "checkpoint", n);
	pen__rng_fill(c->dataset.seed, 0, 0, f->pool, n);
	return 0;
}

void pen__ckpt_fill_fini(struct pen_ckpt_fill *f)
{
	pen__free(f->pool);
	*f = (struct pen_ckpt_fill){ 0 };
}

void pen__ckpt_fill_file(struct pen_ckpt_fill *f, const struct pen_config *c,
			 const char *name, unsigned epoch, uint64_t step)
{
	uint64_t key = pen__rng_key(c->dataset.seed, epoch);

	key = pen__rng_key(key, step);
	for (; *name; name++)
		key = pen__rng_key(key, (uint8_t)*name);
	f->key = key;
}

/* The value 1, repeated to fill a word. */
static uint64_t ones(int dtype)
{
	switch (dtype) {
	case PEN_SD_FP16:
		return 0x3c003c003c003c00;
	case PEN_SD_BF16:
		return 0x3f803f803f803f80;
	case PEN_SD_FP32:
		return 0x3f8000003f800000;
	case PEN_SD_FP64:
		return 0x3ff0000000000000;
	}
	return 0x0101010101010101;
}

static void make_page(const struct pen_ckpt_fill *f,
		      const struct pen_torch_piece *x, uint64_t page,
		      uint8_t *to)
{
	const uint64_t key = pen__rng_key(f->key, x->tensor);
	uint64_t k[KEYS], v[KEYS];
	const uint64_t *from;

	if (!f->pool) {
		v[0] = htole64(ones(x->dtype));
		for (unsigned i = 0; i < WORDS; i++)
			memcpy(to + 8 * (size_t)i, v, 8);
		return;
	}
	from = f->pool + page % PEN_CKPT_POOL * WORDS;
	for (unsigned i = 0; i < KEYS; i++)
		k[i] = htole64(pen__rng_at(key, page * KEYS + i));
	for (unsigned i = 0; i < WORDS; i += KEYS) {
		for (unsigned j = 0; j < KEYS; j++)
			v[j] = from[i + j] ^ k[j];
		memcpy(to + 8 * (size_t)i, v, sizeof(v));
	}
}

void pen__ckpt_fill(const struct pen_ckpt_fill *f,
		    const struct pen_torch_piece *x, uint8_t *to)
{
	uint8_t part[PEN_CKPT_PAGE];
	size_t done = 0;

	while (done < x->n) {
		const uint64_t at = x->off + done;
		const size_t in = (size_t)(at % PEN_CKPT_PAGE);
		size_t n = PEN_CKPT_PAGE - in;

		if (n > x->n - done)
			n = x->n - done;
		if (n == PEN_CKPT_PAGE) {
			make_page(f, x, at / PEN_CKPT_PAGE, to + done);
		} else {
			make_page(f, x, at / PEN_CKPT_PAGE, part);
			memcpy(to + done, part + in, n);
		}
		done += n;
	}
}

size_t pen__ckpt_fill_check(const struct pen_ckpt_fill *f,
			    const struct pen_torch_piece *x, const uint8_t *p)
{
	uint8_t page[PEN_CKPT_PAGE];
	size_t good = 0;

	while (good < x->n) {
		const uint64_t at = x->off + good;
		const size_t in = (size_t)(at % PEN_CKPT_PAGE);
		size_t n = PEN_CKPT_PAGE - in, i = 0;

		if (n > x->n - good)
			n = x->n - good;
		make_page(f, x, at / PEN_CKPT_PAGE, page);
		if (memcmp(page + in, p + good, n) != 0) {
			while (page[in + i] == p[good + i])
				i++;
			return good + i;
		}
		good += n;
	}
	return good;
}
