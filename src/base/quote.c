/* See quote.h. Nothing here allocates: errors are built with it. */
#include "base/quote.h"

#include <stdio.h>
#include <string.h>

/* Length announced by the first byte; the rest may be missing. */
static size_t utf8_wants(unsigned char c)
{
	return c < 0x80		       ? 1
	       : c >= 0xc2 && c < 0xe0 ? 2
	       : c >= 0xe0 && c < 0xf0 ? 3
	       : c >= 0xf0 && c < 0xf5 ? 4
				       : 0;
}

size_t pen__utf8_len(const char *text)
{
	const unsigned char *s = (const unsigned char *)text;
	const size_t n = utf8_wants(*s);

	for (size_t i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	/* overlong, half of a surrogate pair, or beyond the last */
	if ((*s == 0xe0 && s[1] < 0xa0) || (*s == 0xed && s[1] > 0x9f) ||
	    (*s == 0xf0 && s[1] < 0x90) || (*s == 0xf4 && s[1] > 0x8f))
		return 0;
	return n;
}

uint32_t pen__utf8_value(const char *text, size_t n)
{
	const unsigned char *s = (const unsigned char *)text;
	uint32_t c = n == 1   ? *s
		     : n == 2 ? *s & 0x1fu
		     : n == 3 ? *s & 0xfu
			      : *s & 7u;

	for (size_t i = 1; i < n; i++)
		c = c << 6 | (s[i] & 0x3fu);
	return c;
}

/* Bytes of the character at s if a terminal only displays it; 0: it may have
 * other effects, such as reversing the direction of text. */
size_t pen__plain_len(const char *s)
{
	const size_t n = pen__utf8_len(s);
	const uint32_t c = pen__utf8_value(s, n ? n : 1);

	if (!n || c < 0x20 || (c >= 0x7f && c < 0xa0) ||
	    (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069))
		return 0;
	return n;
}

bool pen__is_plain(const char *s)
{
	size_t n = 1;

	for (; *s && n; s += n)
		n = pen__plain_len(s);
	return n > 0;
}

bool pen__quote(char *to, size_t cap, const char *s)
{
	size_t at = 0;

	while (*s) {
		const size_t n = pen__plain_len(s), out = n ? n : 4;

		if (at + out >= cap)
			break;
		if (n)
			memcpy(to + at, s, n);
		else
			snprintf(to + at, 5, "\\x%02x", (unsigned char)*s);
		at += out;
		s += n ? n : 1;
	}
	to[at] = '\0';
	return !*s;
}

#define QUOTED 24u /* bytes that are shown */

struct pen_quoted pen__quoted(const void *p, size_t n)
{
	static const char hex[] = "0123456789abcdef";
	const uint8_t *b = p;
	struct pen_quoted q;
	char *to = q.s;

	*to++ = '\'';
	for (size_t i = 0; i < n && i < QUOTED; i++) {
		const uint8_t c = b[i];

		if (c >= 0x20 && c < 0x7f) {
			*to++ = (char)c;
			continue;
		}
		*to++ = '\\';
		if (c == '\n' || c == '\r' || c == '\t') {
			*to++ = c == '\n' ? 'n' : c == '\r' ? 'r' : 't';
			continue;
		}
		*to++ = 'x';
		*to++ = hex[c >> 4];
		*to++ = hex[c & 15];
	}
	memcpy(to, n > QUOTED ? "...'" : "'", n > QUOTED ? 5 : 2);
	return q;
}
