/*
 * Untrusted text (names of files, labels, results) on its way to a person: a
 * byte that is not part of a printable character, and that a terminal might
 * interpret, becomes \xNN. UTF-8 is checked strictly.
 */
#ifndef PEN_BASE_QUOTE_H
#define PEN_BASE_QUOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Quotes s; false if it does not fit, then cut after an entire character. */
bool pen__quote(char *to, size_t cap, const char *s);
bool pen__is_plain(const char *s); /* nothing in it needs quoting */
/* Bytes of the character at s; 0: it is invalid, or not printable. */
size_t pen__plain_len(const char *s);

/* The first of n arbitrary bytes, in quotes: 'AC\x00...'; use .s within the
 * statement that made it. */
struct pen_quoted {
	char s[104];
};
struct pen_quoted pen__quoted(const void *p, size_t n);

/* Bytes of the UTF-8 character at s (1 to 4); 0: it is invalid. */
size_t pen__utf8_len(const char *s);
/* The code point of a character of n bytes. */
uint32_t pen__utf8_value(const char *s, size_t n);

#endif
