/*
 * Text of others (names of files, labels, results) on its way to a person: a
 * byte that is no printable character, which a terminal might obey, becomes
 * \xNN. UTF-8 is looked at strictly.
 */
#ifndef PEN_BASE_QUOTE_H
#define PEN_BASE_QUOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All of s fits, or what is whole of it, and false. */
bool pen__quote(char *to, size_t cap, const char *s);
bool pen__is_plain(const char *s); /* there is nothing to quote in it */
/* Bytes of the character at s; 0: it is none, or not to be shown. */
size_t pen__plain_len(const char *s);

/* The first of n bytes of a file, in quotes, whatever they are: 'AC\x00...';
 * use .s within the statement that made it. */
struct pen_quoted {
	char s[104];
};
struct pen_quoted pen__quoted(const void *p, size_t n);

/* Bytes of the UTF-8 character at s (1 to 4); 0: it begins with none. */
size_t pen__utf8_len(const char *s);
/* Which one it is, of n bytes. */
uint32_t pen__utf8_value(const char *s, size_t n);

#endif
