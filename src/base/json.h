/*
 * Reads JSON (RFC 8259) from any source: a document becomes a flat array of
 * nodes, accessed by number. Strict, except for what Python's json module
 * writes by default: NaN, Infinity and -Infinity are numbers.
 */
#ifndef PEN_BASE_JSON_H
#define PEN_BASE_JSON_H

#include "base/bytes.h"
#include "base/err.h"

enum pen_jdoc_type {
	PEN_JDOC_NULL,
	PEN_JDOC_FALSE,
	PEN_JDOC_TRUE,
	PEN_JDOC_NUMBER,
	PEN_JDOC_STRING,
	PEN_JDOC_LIST,
	PEN_JDOC_OBJECT,
};

#define PEN_JDOC_NONE UINT32_MAX /* no such node; accepted everywhere */

struct pen_jdoc_node {
	enum pen_jdoc_type type;
	uint32_t key;	/* in text; members of objects only */
	uint32_t next;	/* next sibling */
	uint32_t first; /* lists, objects: the first child */
	uint32_t n;	/* children, or bytes of a string */
	uint32_t text;	/* string: in text, NUL-terminated */
	double number;
	uint64_t amount; /* of an integer below 2^64; else 0 */
};

struct pen_jdoc {
	struct pen_jdoc_node *node; /* 0 is the root */
	uint32_t n, cap;
	char *text;
	uint32_t ntext;
	size_t text_cap;
};

/* where: for messages. If two members share a name, the last one counts. */
int pen__jdoc_open(struct pen_jdoc *, const void *p, size_t n,
		   const char *where, struct pen_err *);
/* The same, reusing the memory of an earlier document, or of a zeroed one;
 * close it in any case. */
int pen__jdoc_again(struct pen_jdoc *, const void *p, size_t n,
		    const char *where, struct pen_err *);
void pen__jdoc_close(struct pen_jdoc *);

enum pen_jdoc_type pen__jdoc_type(const struct pen_jdoc *, uint32_t);
/* A member of an object; NONE if it does not exist, or for other types. */
uint32_t pen__jdoc_get(const struct pen_jdoc *, uint32_t, const char *key);
/* Children of lists and objects: the first, and the one after a child. */
uint32_t pen__jdoc_first(const struct pen_jdoc *, uint32_t);
uint32_t pen__jdoc_next(const struct pen_jdoc *, uint32_t);
uint32_t pen__jdoc_count(const struct pen_jdoc *, uint32_t);
/* The text of a string, which may contain NULs; NULL for other types. */
const char *pen__jdoc_text(const struct pen_jdoc *, uint32_t);
bool pen__jdoc_is(const struct pen_jdoc *, uint32_t, const char *text);
/* An integer in [0, 2^53]; false if it is not. */
bool pen__jdoc_count_of(const struct pen_jdoc *, uint32_t, uint64_t *out);
bool pen__jdoc_number(const struct pen_jdoc *, uint32_t, double *out);
/* An integer with all digits, which a double does not have beyond 2^53: its
 * absolute value and sign; false if it is not one, or exceeds 64 bits. */
bool pen__jdoc_integer(const struct pen_jdoc *, uint32_t, uint64_t *amount,
		       bool *minus);

#endif
