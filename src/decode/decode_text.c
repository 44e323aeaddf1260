/* Text: its bytes, after a look that they are UTF-8. */
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

/* Bytes of the character at s, of which n are there; 0: it is none. */
static size_t char_len(const uint8_t *s, size_t n)
{
	char end[8] = { 0 };

	if (n >= 4)
		return pen__utf8_len((const char *)s);
	memcpy(end, s, n);
	return pen__utf8_len(end); /* the NUL ends a character cut off */
}

static int text_decode(const struct pen_decoder *d, const struct pen_encoded *v,
		       struct pen_err *err)
{
	const struct pen_span s = v->bytes;
	size_t at = 0, k;

	(void)d;
	if (s.n != v->len)
		return pen__fail(err, PEN_EDATA, NULL, "does not fit its row");
	while (at < s.n) {
		k = s.p[at] < 0x80 ? 1 : char_len(s.p + at, s.n - at);
		if (!k)
			return pen__fail(err, PEN_EDATA, NULL,
					 "is not UTF-8: at byte %zu there is "
					 "%s",
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
	.help = "text: its bytes, which have to be UTF-8",
	.media = text_media,
	.size = text_size,
	.decode = text_decode,
};
