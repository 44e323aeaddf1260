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

static bool is_printable(const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			return false;
	return true;
}

void pen__yaml_put_str(struct pen_text *t, const char *s)
{
	if (is_plain(s)) {
		pen__text_put(t, s, strlen(s));
		return;
	}
	if (is_printable(s)) {
		pen__text_put(t, "'", 1);
		for (; *s; s++)
			pen__text_add(t, *s == '\'' ? "''" : "%c", *s);
		pen__text_put(t, "'", 1);
		return;
	}
	pen__text_put(t, "\"", 1);
	for (; *s; s++) {
		const unsigned char c = (unsigned char)*s;

		if (c < 0x20 || c == 0x7f)
			pen__text_add(t, "\\x%02x", c);
		else
			pen__text_add(t, c == '"' || c == '\\' ? "\\%c" : "%c",
				      c);
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
