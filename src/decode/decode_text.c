/* UTF-8 text: the bytes, after validation. */
#include <string.h>

#include "base/quote.h"
#include "decode/decode.h"

static void text_size(const struct pen_decoder *d, uint64_t n,
		      struct pen_head *out)
{
	(void)d;
	*out = (struct pen_head){ .dtype = PEN_U8, .ndim = 1, .follows = true };
	out->shape[0] = (int64_t)n;
}

/* Length of the character at s, with n bytes left; 0: invalid. */
static size_t char_len(const uint8_t *s, size_t n)
{
	char end[8] = { 0 };

	if (n >= 4)
		return pen__utf8_len((const char *)s);
	memcpy(end, s, n);
	return pen__utf8_len(end); /* the NUL ends a truncated character */
}

static int text_decode(const struct pen_decoder *d, const struct pen_encoded *v,
		       struct pen_err *err)
{
	const struct pen_span s = v->bytes;
	size_t at = 0, k;

	(void)d;
	if (s.n != v->len)
		return pen__decoder_misfit(err);
	while (at < s.n) {
		k = s.p[at] < 0x80 ? 1 : char_len(s.p + at, s.n - at);
		if (!k)
			return pen__fail(
				err, P_BAD_TEXT, NULL,
				"not UTF-8: invalid bytes at offset %zu: %s",
				at, pen__quoted(s.p + at, s.n - at).s);
		at += k;
	}
	if (s.n)
		memcpy(v->dst, s.p, s.n);
	return 0;
}

static const char *const text_media[] = { "text/plain", NULL };

const struct pen_decoder_ops pen__decoder_text = {
	.name = "text",
	.help = "UTF-8 text, as bytes",
	.media = text_media,
	.size = text_size,
	.decode = text_decode,
};
