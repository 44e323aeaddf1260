/*
 * One row of numbers per letter: 1 in the column of the letter, 0 in the
 * others. A letter outside the alphabet is gap= in all columns. There are no
 * columns for special tokens; padding is rows of 0.
 */
#include <stdio.h>

#include "base/half.h"
#include "token/token_int.h"

static void put_number(enum pen_dtype dtype, double v, uint8_t *out)
{
	const uint64_t u = (uint64_t)v; /* 0 or 1: same in all types */
	const float f = (float)v;
	const uint16_t h = pen__double_to_half(v);

	if (dtype == PEN_F32)
		memcpy(out, &f, sizeof(f));
	else if (dtype == PEN_F16)
		memcpy(out, &h, sizeof(h));
	else
		memcpy(out, &u, pen_dtype_size(dtype));
}

static int onehot_open(struct pen_tokens *t, const struct pen_token_opts *o,
		       struct pen_err *err)
{
	size_t size;

	if (!t->dtype_given)
		t->dtype = PEN_F32;
	if (!(o->gap >= 0 && o->gap <= 1) ||
	    (o->gap > 0 && o->gap < 1 && t->dtype != PEN_F32 &&
	     t->dtype != PEN_F16))
		return pen__fail(err, P_BAD_VALUE, "gap",
				 "must be from 0 to 1, and 0 or 1 unless dtype "
				 "is float16 or float32");
	if (t->nletters < 2)
		return pen__fail(err, P_BAD_VALUE, "alphabet",
				 "must have at least two letters");
	t->width = t->nletters;
	size = pen_dtype_size(t->dtype);
	t->priv = pen__calloc(256 * t->width, size);
	if (!t->priv)
		return pen__fail_nomem(err, "tokens", 256 * t->width * size);
	for (unsigned c = 0; c < 256; c++)
		for (uint32_t j = 0; j < t->width; j++) {
			const double v = t->code[c] == j ? 1
					 : t->code[c] == PEN_LETTER_UNKNOWN
						 ? o->gap
						 : 0;

			put_number(t->dtype, v,
				   (uint8_t *)t->priv +
					   (c * t->width + j) * size);
		}
	return 0;
}

static void onehot_close(struct pen_tokens *t)
{
	pen__free(t->priv);
}

#define EACH(size)                                                             \
	for (uint64_t i = 0; i < n; i++)                                       \
		memcpy(to + i * (size), rows + in[i] * (size_t)(size), size);  \
	break

static void onehot_write(const struct pen_tokens *t,
			 const struct pen_sequence *s, uint64_t first,
			 uint64_t n, void *out, void *room)
{
	const uint8_t *in = s->letters + first, *rows = t->priv;
	uint8_t *to = out;

	(void)room;
	switch (t->item) {
	case 4:
		EACH(4);
	case 8:
		EACH(8);
	case 16:
		EACH(16);
	case 20:
		EACH(20);
	default:
		EACH(t->item);
	}
}

const struct pen_token_ops pen__token_onehot = {
	.own = "gap",
	.field = "onehot",
	.alphabet = "ACGT",
	.has_letters = true,
	.takes_length = true,
	.open = onehot_open,
	.close = onehot_close,
	.count = pen__tokens_each,
	.write = onehot_write,
};
