/*
 * Result files: one JSON object per line, one line per run. A line is appended
 * with a single write and synced, so that a crash loses at most one line, which
 * readers skip. Nested objects are flattened: {"a": {"b": 1}} has the key
 * "a.b". Unknown keys are kept.
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
	size_t key, text; /* offsets in the mem of the row */
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
	uint64_t nbad;	    /* lines that are not rows */
	uint64_t first_bad; /* number of the first of them, from 1 */
};

/* Parses a line of n bytes; false (and nothing to free) if it is not an object,
 * or if memory ran out, which sets *nomem. */
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

/* Appends the rows of a file. PEN_ENOTFOUND: no such file. */
int pen__lines_read(struct pen_lines *, const char *path, struct pen_err *);
void pen__lines_fini(struct pen_lines *);
/* Appends one line (with or without its '\n') to a file, which is created if
 * missing, and syncs it. */
int pen__lines_append(const char *path, const struct pen_text *line,
		      struct pen_err *);

#endif
