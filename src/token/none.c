/* The letters themselves, unchanged. */
#include "token/token_int.h"

static int none_open(struct pen_tokens *t, const struct pen_token_opts *o,
		     struct pen_err *err)
{
	(void)o;
	if (t->dtype_given && t->dtype != PEN_U8)
		return pen__fail(
			err, P_BAD_VALUE, "dtype",
			"must be uint8 with format.tokens=none; for other "
			"types, set format.tokens=chars format.alphabet=bytes");
	t->dtype = PEN_U8;
	return 0;
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
	.count = pen__tokens_each,
	.write = none_write,
};
