/*
 * The subset of YAML that files of DLIO need: maps, lists and scalars, anchors,
 * aliases and merge keys. Limits: 1 MiB of text, 64 levels, 1,000 keys per map,
 * 50,000 values after expanding aliases. Duplicate keys, tags, several
 * documents and keys that are not text are errors.
 */
#ifndef PEN_EMULATE_YAML_H
#define PEN_EMULATE_YAML_H

#include <stdbool.h>

#include "base/err.h"
#include "base/text.h"

#define PEN_YAML_MAX ((size_t)1 << 20) /* bytes of text */

enum pen_yaml_kind {
	PEN_YAML_NULL, /* empty, ~, null */
	PEN_YAML_PLAIN,
	PEN_YAML_QUOTED, /* always text: '...', "...", |, > */
	PEN_YAML_LIST,
	PEN_YAML_MAP
};

struct pen_yaml_item {
	char *key; /* NULL in lists */
	unsigned line, col;
	bool merged; /* by <<; another map owns the key */
	const struct pen_yaml_node *node;
};

struct pen_yaml_node {
	enum pen_yaml_kind kind;
	unsigned line, col;
	char *text; /* scalars; "" for NULL */
	struct pen_yaml_item *item;
	size_t n;
	size_t weight; /* number of values after expanding aliases */
	struct pen_yaml_node *next; /* list of all nodes, for freeing */
};

struct pen_yaml {
	const struct pen_yaml_node *root;
	struct pen_yaml_node *all;
};

/* Errors have "file:line:column" as place. */
int pen__yaml_read(struct pen_yaml *, const char *text, size_t n,
		   const char *file, struct pen_err *err);
void pen__yaml_fini(struct pen_yaml *);
/* Prints a node on one line: [a, b], {a: b} */
void pen__yaml_flow(const struct pen_yaml_node *, struct pen_text *out);
/* True if s is valid UTF-8. */
bool pen__yaml_is_text(const char *s);
/* Prints a scalar, quoted if it would not read back as text. */
void pen__yaml_put_str(struct pen_text *, const char *s);

#endif
