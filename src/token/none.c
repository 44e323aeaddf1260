/* The letters themselves, as they are in the file. */
#include "token/token_int.h"

static int none_open(struct pen_tokens *t, const struct pen_token_opts *o,
		     struct pen_err *err)
{
	(void)o;
	if (t->dtype_given && t->dtype != PEN_U8)
		return pen__fail(
			err, PEN_EINVAL, "dtype",
			"of format.tokens=none is uint8, letters as they "
			"are: format.tokens=chars format.alphabet=bytes has "
			"others");
	t->dtype = PEN_U8;
	return 0;
}

static uint64_t none_count(const struct pen_tokens *t, uint64_t n)
{
	(void)t;
	return n;
}

static void none_write(const struct pen_tokens *t, const struct pen_sequence *s,
		       uint64_t first, uint64_t n, void *out, void *room)
{
	(void)t, (void)room;
	if (n)
		memcpy(out, s->letters + first, n);
}

const struct pen_token_ops pen__token_none = {
	.field = "seq",
	.takes_length = true,
	.open = none_open,
	.count = none_count,
	.write = none_write,
};
