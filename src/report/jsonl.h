/*
 * Result files: one JSON object a line, one line a run. A line is added by a
 * single write and synced, so that a crash costs at most the line it fell
 * into, which readers skip. Nested objects are flattened while reading:
 * {"a": {"b": 1}} has the key "a.b". Keys nobody knows are kept.
 */
#ifndef PEN_REPORT_JSONL_H
#define PEN_REPORT_JSONL_H

#include <stdbool.h>

#include "base/text.h"

enum pen_cell_kind {
	PEN_CELL_NULL,
	PEN_CELL_TEXT,
	PEN_CELL_NUMBER,
	PEN_CELL_BOOL
};

struct pen_cell {
	size_t key, text; /* where they stand in the row's mem */
	enum pen_cell_kind kind;
	double number; /* NUMBER, and BOOL as 0 or 1 */
};

struct pen_line {
	char *mem;
	struct pen_cell *cell;
	size_t n;
};

struct pen_lines {
	struct pen_line *row;
	size_t n;
	uint64_t nbad;	    /* lines that are no rows */
	uint64_t first_bad; /* the first of them, from 1 */
};

/* A line of n bytes; false (and nothing to free) when it is not an object, or
 * memory ran out, which *nomem then says. */
bool pen__line_parse(struct pen_line *, const char *line, size_t n,
		     bool *nomem);
void pen__line_fini(struct pen_line *);
const struct pen_cell *pen__line_find(const struct pen_line *, const char *key);
const char *pen__line_text(const struct pen_line *,
			   const char *key);			   /* or "" */
double pen__line_number(const struct pen_line *, const char *key); /* or NAN */
bool pen__line_true(const struct pen_line *, const char *key);
static inline const char *pen__cell_key(const struct pen_line *r, size_t i)
{
	return r->mem + r->cell[i].key;
}
static inline const char *pen__cell_text(const struct pen_line *r, size_t i)
{
	return r->mem + r->cell[i].text;
}

/* Adds the rows of a file to those there are. PEN_ENOTFOUND: no such file. */
int pen__lines_read(struct pen_lines *, const char *path, struct pen_err *);
void pen__lines_fini(struct pen_lines *);
/* Adds one line (with or without its '\n') to the end of a file, which is made
 * when there is none, and waits until it is on the disk. */
int pen__lines_append(const char *path, const struct pen_text *line,
		      struct pen_err *);

#endif
