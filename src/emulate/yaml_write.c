/*
 * YAML out: scalars that read back as the same text, by us and by readers of
 * YAML 1.1, which take yes, off, 1_000 and 0x10 for something else.
 */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "emulate/yaml.h"

static bool is_word(const char *s)
{
	static const char *const words[] = {
		"true", "false", "yes", "no", "on",
		"off",	"null",	 "y",	"n",  NULL
	};

	for (size_t i = 0; words[i]; i++)
		if (!strcasecmp(s, words[i]))
			return true;
	return false;
}

/* Begins like a name or a path, and has nothing YAML would look at. */
static bool is_plain(const char *s)
{
	size_t n = 0;

	if (!isalpha((unsigned char)*s) && *s != '/' &&
	    strncmp(s, "./", 2) != 0 && *s != '_')
		return false;
	while (s[n] && (isalnum((unsigned char)s[n]) || strchr("_./-+", s[n])))
		n++;
	return !s[n] && !is_word(s);
}

/* The character at *s, which moves on; 0: it is not UTF-8. */
static uint32_t next_char(const char **s)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const unsigned char *p = (const unsigned char *)*s;
	const unsigned n = *p < 0x80		     ? 1
			   : *p >= 0xc0 && *p < 0xe0 ? 2
			   : *p >= 0xe0 && *p < 0xf0 ? 3
			   : *p >= 0xf0 && *p < 0xf8 ? 4
						     : 0;
	uint32_t c = n == 1 ? *p : *p & (0x7fu >> n);

	for (unsigned i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (p[i] & 0x3f);
	}
	if (!n || c < least[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return 0;
	*s += n;
	return c;
}

bool pen__yaml_is_text(const char *s)
{
	while (*s)
		if (!next_char(&s))
			return false;
	return true;
}

/* Stands for itself inside quotes; all else is written as a number. */
static bool is_printable(uint32_t c)
{
	return (c >= 0x20 && c < 0x7f) ||
	       (c >= 0xa0 && c != 0x2028 && c != 0x2029 && c != 0xfeff &&
		c != 0xfffe && c != 0xffff);
}

static bool all_printable(const char *s)
{
	while (*s)
		if (!is_printable(next_char(&s)))
			return false;
	return true;
}

void pen__yaml_put_str(struct pen_text *t, const char *s)
{
	if (is_plain(s)) {
		pen__text_put(t, s, strlen(s));
		return;
	}
	if (all_printable(s)) {
		pen__text_put(t, "'", 1);
		for (; *s; s++) {
			if (*s == '\'')
				pen__text_put(t, s, 1);
			pen__text_put(t, s, 1);
		}
		pen__text_put(t, "'", 1);
		return;
	}
	pen__text_put(t, "\"", 1);
	while (*s) {
		const char *from = s;
		const uint32_t c = next_char(&s);

		if (!c) /* not text: callers keep it out */
			s++;
		else if (!is_printable(c))
			pen__text_add(t, c < 0x100 ? "\\x%02x" : "\\u%04x", c);
		else if (c == '"' || c == '\\')
			pen__text_add(t, "\\%c", (char)c);
		else
			pen__text_put(t, from, (size_t)(s - from));
	}
	pen__text_put(t, "\"", 1);
}

/* Plain text as it was, unless it would end the flow it stands in. */
static void put_plain(struct pen_text *t, const char *s)
{
	if (s[strcspn(s, ",[]{}\n")] || strstr(s, ": "))
		pen__yaml_put_str(t, s);
	else
		pen__text_put(t, s, strlen(s));
}

void pen__yaml_flow(const struct pen_yaml_node *node, struct pen_text *t)
{
	const bool map = node->kind == PEN_YAML_MAP;

	switch (node->kind) {
	case PEN_YAML_NULL:
		pen__text_put(t, "null", 4);
		return;
	case PEN_YAML_PLAIN:
		put_plain(t, node->text);
		return;
	case PEN_YAML_QUOTED:
		pen__yaml_put_str(t, node->text);
		return;
	default:
		break;
	}
	pen__text_put(t, map ? "{" : "[", 1);
	for (size_t i = 0; i < node->n; i++) {
		if (i)
			pen__text_put(t, ", ", 2);
		if (map) {
			pen__yaml_put_str(t, node->item[i].key);
			pen__text_put(t, ": ", 2);
		}
		pen__yaml_flow(node->item[i].node, t);
	}
	pen__text_put(t, map ? "}" : "]", 1);
}
