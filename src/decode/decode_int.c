/*
 * A signed 64-bit integer in text form, such as a label in a separate file.
 * Surrounding white space is ignored; anything else is an error.
 */
#include <string.h>

#include "base/quote.h"
#include "decode/decode.h"

static void int_size(const struct pen_decoder *d, uint64_t n,
		     struct pen_head *out)
{
	(void)d;
	(void)n;
	*out = (struct pen_head){ .dtype = PEN_I64 };
}

static bool is_space(uint8_t c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool parse(struct pen_span s, int64_t *out)
{
	int64_t v = 0;
	bool minus;

	while (s.n && is_space(*s.p)) {
		s.p++;
		s.n--;
	}
	while (s.n && is_space(s.p[s.n - 1]))
		s.n--;
	minus = s.n && *s.p == '-';
	if (s.n && (*s.p == '-' || *s.p == '+')) {
		s.p++;
		s.n--;
	}
	if (!s.n)
		return false;
	for (; s.n; s.p++, s.n--) {
		const int digit = *s.p - '0';

		if (digit < 0 || digit > 9 || __builtin_mul_overflow(v, 10, &v))
			return false;
		if (minus ? __builtin_sub_overflow(v, digit, &v)
			  : __builtin_add_overflow(v, digit, &v))
			return false;
	}
	*out = v;
	return true;
}

static int int_decode(const struct pen_decoder *d, const struct pen_encoded *v,
		      struct pen_err *err)
{
	int64_t out;

	(void)d;
	if (v->len != sizeof(out))
		return pen__decoder_misfit(err);
	if (!parse(v->bytes, &out))
		return pen__fail(err, P_BAD_DATA_VALUE, NULL,
				 "not a 64-bit integer: %s",
				 pen__quoted(v->bytes.p, v->bytes.n).s);
	memcpy(v->dst, &out, sizeof(out));
	return 0;
}

const struct pen_decoder_ops pen__decoder_int = {
	.name = "int",
	.help = "an integer in text form, as int64",
	.size = int_size,
	.decode = int_decode,
};
