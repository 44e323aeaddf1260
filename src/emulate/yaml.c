/*
 * Parses YAML into a tree, from the events of libyaml. Its document API is not
 * used, because it allows cycles and duplicate keys. An alias is a pointer to a
 * complete node, so the tree has no cycles; the expanded size of aliases is
 * limited before the tree is walked.
 */
#include "emulate/yaml.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <yaml.h>

#include "base/mem.h"

#define MAX_DEPTH 64
#define MAX_KEYS 1000
#define MAX_WEIGHT 50000
#define MAX_ANCHORS 64

struct anchor {
	char name[64];
	struct pen_yaml_node *node;
};

struct reader {
	yaml_parser_t y;
	struct pen_yaml *doc;
	const char *file, *text;
	size_t n;
	struct anchor anchor[MAX_ANCHORS];
	size_t nanchors;
	size_t nnodes;
	struct pen_err *err;
};

static int node_of(struct reader *r, const yaml_event_t *ev, unsigned depth,
		   struct pen_yaml_node **out);

static int fail_at(const struct reader *r, size_t line, size_t col,
		   const char *what)
{
	char at[256];

	snprintf(at, sizeof(at), "%.200s:%zu:%zu", r->file, line, col);
	return pen__fail(r->err, P_BAD_YAML, at, "%s", what);
}

static int fail_event(const struct reader *r, const yaml_event_t *ev,
		      const char *what)
{
	return fail_at(r, ev->start_mark.line + 1, ev->start_mark.column + 1,
		       what);
}

/* libyaml reports the offset of bad bytes, but not the line. */
static int fail_bytes(const struct reader *r)
{
	size_t line = 1, col = 1, to = r->y.problem_offset;

	for (size_t i = 0; i < to && i < r->n; i++) {
		col = r->text[i] == '\n' ? 1 : col + 1;
		line += r->text[i] == '\n';
	}
	if (strstr(r->y.problem, "control"))
		return fail_at(r, line, col,
			       "not text: contains a control character");
	return fail_at(r, line, col,
		       "not text: contains bytes that are not UTF-8");
}

static bool tab_before(const struct reader *r, size_t line)
{
	const char *p = r->text, *end = r->text + r->n;

	while (line-- && p) {
		p = memchr(p, '\n', (size_t)(end - p));
		p = p ? p + 1 : NULL;
	}
	while (p && p < end && *p == ' ')
		p++;
	return p && p < end && *p == '\t';
}

/* Translates errors of libyaml for the author of the file. */
static int fail_syntax(const struct reader *r)
{
	static const struct {
		const char *theirs, *ours;
	} words[] = {
		{ "did not find expected key",
		  "expected a key; check the indentation" },
		{ "mapping values are not allowed",
		  "unexpected ':'; quote the text or check the indentation" },
		{ "could not find expected ':'", "missing ':'" },
		{ "did not find expected ',' or", "missing ','" },
		{ "did not find expected node content", "expected a value" },
		{ "did not find expected <document start>",
		  "unexpected content; check the indentation" },
		{ "did not find expected '-' indicator",
		  "expected '-'; check the indentation" },
	};
	const yaml_mark_t *m = &r->y.problem_mark;
	const char *what = r->y.problem ? r->y.problem : "not valid YAML";
	char buf[200];

	if (r->y.error == YAML_READER_ERROR)
		return fail_bytes(r);
	if (m->index >= r->n && r->y.context &&
	    (strstr(r->y.context, "quoted") ||
	     strstr(r->y.context, "flow sequence") ||
	     strstr(r->y.context, "flow mapping")))
		return fail_at(r, r->y.context_mark.line + 1,
			       r->y.context_mark.column + 1,
			       "the quote or bracket opened here is not "
			       "closed");
	if (tab_before(r, m->line))
		return fail_at(r, m->line + 1, m->column + 1,
			       "this line is indented with a tab; use spaces");
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strstr(what, words[i].theirs))
			return fail_at(r, m->line + 1, m->column + 1,
				       words[i].ours);
	snprintf(buf, sizeof(buf), "not valid YAML: %s", what);
	return fail_at(r, m->line + 1, m->column + 1, buf);
}

static int next_event(struct reader *r, yaml_event_t *ev)
{
	if (yaml_parser_parse(&r->y, ev))
		return 0;
	if (r->y.error == YAML_MEMORY_ERROR)
		return pen__fail_nomem(r->err, r->file, r->n);
	return fail_syntax(r);
}

static struct pen_yaml_node *new_node(struct reader *r, const yaml_event_t *ev,
				      enum pen_yaml_kind kind)
{
	struct pen_yaml_node *node = pen__calloc(1, sizeof(*node));

	if (!node) {
		pen__fail_nomem(r->err, r->file, sizeof(*node));
		return NULL;
	}
	node->kind = kind;
	node->line = (unsigned)ev->start_mark.line + 1;
	node->col = (unsigned)ev->start_mark.column + 1;
	node->weight = 1;
	node->next = r->doc->all;
	r->doc->all = node;
	return node;
}

/* Accepts only the standard tags of YAML. */
static int check_tag(const struct reader *r, const yaml_event_t *ev,
		     const yaml_char_t *tag, bool *str)
{
	static const char base[] = "tag:yaml.org,2002:";
	static const char *const known[] = { "str",  "int", "float", "bool",
					     "null", "seq", "map",   NULL };
	const char *t = (const char *)tag;

	*str = false;
	if (!t || !strcmp(t, "!"))
		return 0;
	if (!strncmp(t, base, sizeof(base) - 1))
		for (size_t i = 0; known[i]; i++)
			if (!strcmp(t + sizeof(base) - 1, known[i])) {
				*str = !i;
				return 0;
			}
	return fail_event(r, ev, "tags (!...) are not supported");
}

static int set_anchor(struct reader *r, const yaml_event_t *ev,
		      const yaml_char_t *name, struct pen_yaml_node *node)
{
	struct anchor *a;

	if (!name)
		return 0;
	if (r->nanchors == MAX_ANCHORS)
		return fail_event(r, ev, "more than 64 anchors");
	a = &r->anchor[r->nanchors];
	if (snprintf(a->name, sizeof(a->name), "%s", (const char *)name) >=
	    (int)sizeof(a->name))
		return fail_event(r, ev, "the name of the anchor is too long");
	a->node = node;
	r->nanchors++;
	return 0;
}

/* Finds the latest anchor of that name; anchors may be redefined. */
static int find_alias(struct reader *r, const yaml_event_t *ev,
		      struct pen_yaml_node **out)
{
	const char *name = (const char *)ev->data.alias.anchor;
	char what[128];

	for (size_t i = r->nanchors; i-- > 0;)
		if (!strcmp(r->anchor[i].name, name)) {
			*out = r->anchor[i].node;
			return 0;
		}
	snprintf(what, sizeof(what),
		 "no complete anchor '&%.60s' before this alias", name);
	return fail_event(r, ev, what);
}

static bool is_null(const char *s)
{
	return !*s || !strcmp(s, "~") || !strcmp(s, "null") ||
	       !strcmp(s, "Null") || !strcmp(s, "NULL");
}

static int scalar_of(struct reader *r, const yaml_event_t *ev,
		     struct pen_yaml_node **out)
{
	const char *s = (const char *)ev->data.scalar.value;
	const size_t n = ev->data.scalar.length;
	struct pen_yaml_node *node;
	enum pen_yaml_kind kind = PEN_YAML_QUOTED;
	bool str;

	if (check_tag(r, ev, ev->data.scalar.tag, &str))
		return PEN_EINVAL;
	if (memchr(s, '\0', n))
		return fail_event(r, ev, "the text contains a NUL character");
	if (ev->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && !str)
		kind = is_null(s) ? PEN_YAML_NULL : PEN_YAML_PLAIN;
	node = new_node(r, ev, kind);
	if (!node)
		return PEN_ENOMEM;
	node->text = pen__strndup(s, kind == PEN_YAML_NULL ? 0 : n);
	if (!node->text)
		return pen__fail_nomem(r->err, r->file, n);
	*out = node;
	return set_anchor(r, ev, ev->data.scalar.anchor, node);
}

/* Appends an item; the node takes ownership of the key. */
static int add_item(struct reader *r, struct pen_yaml_node *to,
		    struct pen_yaml_item item)
{
	struct pen_yaml_item *v;

	if ((to->n & (to->n + 1)) == 0) { /* full at 0, 1, 3, 7, ... */
		v = pen__realloc(to->item, to->n * 2 + 1, sizeof(*v));
		if (!v) {
			if (!item.merged)
				pen__free(item.key);
			return pen__fail_nomem(r->err, r->file, sizeof(*v));
		}
		to->item = v;
	}
	to->item[to->n++] = item;
	to->weight += item.node ? item.node->weight : 0;
	if (to->weight > MAX_WEIGHT)
		return fail_at(
			r, item.line, item.col,
			"more than 50,000 values after expanding aliases");
	return 0;
}

static int list_of(struct reader *r, const yaml_event_t *start, unsigned depth,
		   struct pen_yaml_node **out)
{
	struct pen_yaml_node *list, *node = NULL;
	yaml_event_t ev;
	bool done = false, str;
	int rc = check_tag(r, start, start->data.sequence_start.tag, &str);

	if (rc)
		return rc;
	list = new_node(r, start, PEN_YAML_LIST);
	if (!list)
		return PEN_ENOMEM;
	while (!rc && !done) {
		rc = next_event(r, &ev);
		if (rc)
			return rc;
		done = ev.type == YAML_SEQUENCE_END_EVENT;
		if (!done)
			rc = node_of(r, &ev, depth + 1, &node);
		if (!done && !rc)
			rc = add_item(
				r, list,
				(struct pen_yaml_item){ .line = node->line,
							.col = node->col,
							.node = node });
		yaml_event_delete(&ev);
	}
	*out = list;
	return rc ? rc
		  : set_anchor(r, start, start->data.sequence_start.anchor,
			       list);
}

static const struct pen_yaml_item *item_named(const struct pen_yaml_node *map,
					      const char *key)
{
	for (size_t i = 0; i < map->n; i++)
		if (!strcmp(map->item[i].key, key))
			return &map->item[i];
	return NULL;
}

static int key_of(struct reader *r, const struct pen_yaml_node *map,
		  const yaml_event_t *ev, struct pen_yaml_item *item)
{
	const struct pen_yaml_item *had;
	const char *s = (const char *)ev->data.scalar.value;
	char what[160];

	if (ev->type != YAML_SCALAR_EVENT)
		return fail_event(r, ev, "a key must be text");
	if (!*s || memchr(s, '\0', ev->data.scalar.length))
		return fail_event(r, ev, "missing key before ':'");
	if (map->n >= MAX_KEYS)
		return fail_event(r, ev, "a map has more than 1,000 keys");
	had = item_named(map, s);
	if (had && strcmp(s, "<<")) {
		snprintf(what, sizeof(what),
			 "'%.80s' is set twice, first in line %u", s,
			 had->line);
		return fail_event(r, ev, what);
	}
	*item = (struct pen_yaml_item){
		.key = pen__strdup(s),
		.line = (unsigned)ev->start_mark.line + 1,
		.col = (unsigned)ev->start_mark.column + 1,
	};
	return item->key ? 0 : pen__fail_nomem(r->err, r->file, strlen(s));
}

/* Parses one `key: value`; sets *done at the end of the map. */
static int pair_of(struct reader *r, struct pen_yaml_node *map, unsigned depth,
		   bool *done)
{
	struct pen_yaml_item item = { 0 };
	struct pen_yaml_node *node = NULL;
	yaml_event_t ev;
	int rc = next_event(r, &ev);

	if (rc)
		return rc;
	*done = ev.type == YAML_MAPPING_END_EVENT;
	if (!*done)
		rc = key_of(r, map, &ev, &item);
	yaml_event_delete(&ev);
	if (rc || *done)
		return rc;
	rc = next_event(r, &ev);
	if (!rc) {
		rc = node_of(r, &ev, depth + 1, &node);
		yaml_event_delete(&ev);
	}
	if (rc) {
		pen__free(item.key);
		return rc;
	}
	item.node = node;
	return add_item(r, map, item);
}

static int merge_map(struct reader *r, struct pen_yaml_node *to,
		     const struct pen_yaml_item *at,
		     const struct pen_yaml_node *from)
{
	int rc = 0;

	if (from->kind != PEN_YAML_MAP)
		return fail_at(r, at->line, at->col,
			       "'<<' needs a map or a list of maps");
	for (size_t i = 0; !rc && i < from->n; i++) {
		struct pen_yaml_item item = from->item[i];

		item.merged = true;
		if (to->n >= MAX_KEYS)
			return fail_at(r, at->line, at->col,
				       "a map has more than 1,000 keys");
		if (!item_named(to, item.key))
			rc = add_item(r, to, item);
	}
	return rc;
}

/* Expands every <<; existing keys win. */
static int merge_all(struct reader *r, struct pen_yaml_node *map)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < map->n;) {
		const struct pen_yaml_item at = map->item[i];

		if (at.merged || strcmp(at.key, "<<")) {
			i++;
			continue;
		}
		map->n--; /* add_item() relies on the previous capacity */
		memmove(map->item + i, map->item + i + 1,
			(map->n - i) * sizeof(at));
		pen__free(at.key);
		if (at.node->kind != PEN_YAML_LIST)
			rc = merge_map(r, map, &at, at.node);
		for (size_t k = 0;
		     !rc && at.node->kind == PEN_YAML_LIST && k < at.node->n;
		     k++)
			rc = merge_map(r, map, &at, at.node->item[k].node);
	}
	return rc;
}

static int map_of(struct reader *r, const yaml_event_t *start, unsigned depth,
		  struct pen_yaml_node **out)
{
	struct pen_yaml_node *map;
	bool done = false, str;
	int rc = check_tag(r, start, start->data.mapping_start.tag, &str);

	if (rc)
		return rc;
	map = new_node(r, start, PEN_YAML_MAP);
	if (!map)
		return PEN_ENOMEM;
	while (!rc && !done)
		rc = pair_of(r, map, depth, &done);
	if (!rc)
		rc = merge_all(r, map);
	*out = map;
	return rc ? rc
		  : set_anchor(r, start, start->data.mapping_start.anchor, map);
}

static int node_of(struct reader *r, const yaml_event_t *ev, unsigned depth,
		   struct pen_yaml_node **out)
{
	if (depth > MAX_DEPTH)
		return fail_event(r, ev, "nested more than 64 levels deep");
	if (++r->nnodes > MAX_WEIGHT)
		return fail_event(r, ev, "more than 50,000 values");
	switch (ev->type) {
	case YAML_SCALAR_EVENT:
		return scalar_of(r, ev, out);
	case YAML_ALIAS_EVENT:
		return find_alias(r, ev, out);
	case YAML_SEQUENCE_START_EVENT:
		return list_of(r, ev, depth, out);
	case YAML_MAPPING_START_EVENT:
		return map_of(r, ev, depth, out);
	default:
		return fail_event(r, ev, "not valid YAML");
	}
}

/* Reads the start of stream and document, the node, and the end. */
static int read_stream(struct reader *r)
{
	struct pen_yaml_node *root = NULL;
	yaml_event_t ev;
	bool done = false;
	int rc = 0;

	while (!rc && !done) {
		rc = next_event(r, &ev);
		if (rc)
			return rc;
		done = ev.type == YAML_STREAM_END_EVENT;
		if (ev.type == YAML_DOCUMENT_START_EVENT && root)
			rc = fail_event(r, &ev,
					"a second document starts here; only "
					"one is allowed");
		else if (ev.type != YAML_STREAM_START_EVENT && !done &&
			 ev.type != YAML_DOCUMENT_START_EVENT &&
			 ev.type != YAML_DOCUMENT_END_EVENT)
			rc = node_of(r, &ev, 0, &root);
		yaml_event_delete(&ev);
	}
	if (!rc && !root)
		return pen__fail(r->err, P_BAD_YAML, r->file,
				 "the file is empty");
	r->doc->root = root;
	return rc;
}

int pen__yaml_read(struct pen_yaml *doc, const char *text, size_t n,
		   const char *file, struct pen_err *err)
{
	struct reader *r;
	int rc;

	*doc = (struct pen_yaml){ NULL, NULL };
	if (n > PEN_YAML_MAX)
		return pen__fail(err, P_BAD_YAML, file,
				 "larger than 1 MiB; not a workload");
	r = pen__calloc(1, sizeof(*r));
	if (!r)
		return pen__fail_nomem(err, file, sizeof(*r));
	r->doc = doc;
	r->file = file;
	r->text = text;
	r->n = n;
	r->err = err;
	if (!yaml_parser_initialize(&r->y)) {
		pen__free(r);
		return pen__fail_nomem(err, file, n);
	}
	yaml_parser_set_encoding(&r->y, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&r->y, (const unsigned char *)text, n);
	rc = read_stream(r);
	yaml_parser_delete(&r->y);
	pen__free(r);
	if (rc)
		pen__yaml_fini(doc);
	return rc;
}

void pen__yaml_fini(struct pen_yaml *doc)
{
	struct pen_yaml_node *node = doc->all, *next;

	for (; node; node = next) {
		next = node->next;
		for (size_t i = 0; i < node->n; i++)
			if (!node->item[i].merged)
				pen__free(node->item[i].key);
		pen__free(node->item);
		pen__free(node->text);
		pen__free(node);
	}
	*doc = (struct pen_yaml){ NULL, NULL };
}

/*
 * --- output ---
 * Scalars that read back as the same text, in our parser and in YAML 1.1, where
 * yes, off, 1_000 and 0x10 have other meanings.
 */

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

/* True for names and paths without characters special to YAML. */
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

/* Decodes the character at *s and advances; 0: not UTF-8. */
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

/* True if a character needs no escape inside quotes. */
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

		if (!c) /* not text: excluded by callers */
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

/* Prints plain text unchanged, unless it would end the flow. */
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
