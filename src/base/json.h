/*
 * Reading JSON (RFC 8259) that others wrote: a document becomes a flat array
 * of nodes, looked at by number. Strict, but for what Python's json module
 * writes by itself: NaN, Infinity and -Infinity are numbers.
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

#define PEN_JDOC_NONE UINT32_MAX /* no such node; every function takes it */

struct pen_jdoc_node {
	enum pen_jdoc_type type;
	uint32_t key;	/* in text; members of objects only */
	uint32_t next;	/* the sibling after it */
	uint32_t first; /* lists, objects: the first child */
	uint32_t n;	/* children, or bytes of a string */
	uint32_t text;	/* string: in text, with a NUL behind it */
	double number;
	uint64_t amount; /* of an integer below 2^64; else 0 */
};

struct pen_jdoc {
	struct pen_jdoc_node *node; /* 0 is the whole */
	uint32_t n, cap;
	char *text;
	uint32_t ntext;
	size_t text_cap;
};

/* where: what messages name. Of two members of a name the last one counts. */
int pen__jdoc_open(struct pen_jdoc *, const void *p, size_t n,
		   const char *where, struct pen_err *);
/* The same into memory that an earlier document had, or a zeroed one; close it
 * in any case. */
int pen__jdoc_again(struct pen_jdoc *, const void *p, size_t n,
		    const char *where, struct pen_err *);
void pen__jdoc_close(struct pen_jdoc *);

enum pen_jdoc_type pen__jdoc_type(const struct pen_jdoc *, uint32_t);
/* A member of an object; NONE when there is none, or it is no object. */
uint32_t pen__jdoc_get(const struct pen_jdoc *, uint32_t, const char *key);
/* Children of lists and objects: the first, and the one after a child. */
uint32_t pen__jdoc_first(const struct pen_jdoc *, uint32_t);
uint32_t pen__jdoc_next(const struct pen_jdoc *, uint32_t);
uint32_t pen__jdoc_count(const struct pen_jdoc *, uint32_t);
/* A string's text, which may have NULs in it; NULL when it is none. */
const char *pen__jdoc_text(const struct pen_jdoc *, uint32_t);
bool pen__jdoc_is(const struct pen_jdoc *, uint32_t, const char *text);
/* A number that is whole and in [0, 2^53]; false when it is not. */
bool pen__jdoc_count_of(const struct pen_jdoc *, uint32_t, uint64_t *out);
bool pen__jdoc_number(const struct pen_jdoc *, uint32_t, double *out);
/* A whole number to the last digit, which a double does not have beyond 2^53:
 * its amount and its sign; false when it is none, or has more than 64 bits. */
bool pen__jdoc_integer(const struct pen_jdoc *, uint32_t, uint64_t *amount,
		       bool *minus);

#endif
