/*
 * YAML as DLIO's files need it: maps, lists and scalars, anchors, aliases and
 * merge keys. Within limits: 1 MB of text, 64 levels, 1,000 keys in a map,
 * 50,000 values after aliases. A key given twice is an error, and so are tags,
 * several documents, and keys that are not text.
 */
#ifndef PEN_EMULATE_YAML_H
#define PEN_EMULATE_YAML_H

#include <stdbool.h>

#include "base/err.h"
#include "base/text.h"

#define PEN_YAML_MAX ((size_t)1 << 20) /* bytes of text */

enum pen_yaml_kind {
	PEN_YAML_NULL, /* nothing, ~, null */
	PEN_YAML_PLAIN,
	PEN_YAML_QUOTED, /* text for certain: '...', "...", |, > */
	PEN_YAML_LIST,
	PEN_YAML_MAP
};

struct pen_yaml_item {
	char *key; /* NULL in lists */
	unsigned line, col;
	bool merged; /* by <<; the key belongs to another map */
	const struct pen_yaml_node *node;
};

struct pen_yaml_node {
	enum pen_yaml_kind kind;
	unsigned line, col;
	char *text; /* scalars; "" for NULL */
	struct pen_yaml_item *item;
	size_t n;
	size_t weight;		    /* values in it, aliases counted out */
	struct pen_yaml_node *next; /* of all, for freeing */
};

struct pen_yaml {
	const struct pen_yaml_node *root;
	struct pen_yaml_node *all;
};

/* Errors are placed: "file:line:column". */
int pen__yaml_read(struct pen_yaml *, const char *text, size_t n,
		   const char *file, struct pen_err *err);
void pen__yaml_fini(struct pen_yaml *);
/* The node in one line: [a, b], {a: b} */
void pen__yaml_flow(const struct pen_yaml_node *, struct pen_text *out);
/* Is it UTF-8, so that YAML can hold it? */
bool pen__yaml_is_text(const char *s);
/* A scalar, quoted when it would read back as something else than text. */
void pen__yaml_put_str(struct pen_text *, const char *s);

#endif
