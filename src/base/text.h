/*
 * Text that grows: lines, and JSON written as it comes. Running out of memory
 * is noted and reported once, when the text is saved or asked for.
 */
#ifndef PEN_BASE_TEXT_H
#define PEN_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "quote.h"

struct pen_text {
	char *p; /* NUL-terminated once something was added */
	size_t n, cap;
	bool failed; /* out of memory: what is here is not all */
	/* JSON: */
	bool compact; /* no new lines from now on, for long arrays */
	bool ascii;   /* all other characters by number */
	bool first;   /* nothing yet inside the innermost bracket */
	int depth;
};

void pen__text_fini(struct pen_text *);
void pen__text_add(struct pen_text *, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void pen__text_put(struct pen_text *, const void *bytes, size_t n);
/* The same as pen__quote(). */
void pen__text_quote(struct pen_text *, const char *s);
/* A file that has its final name only when it is complete. */
int pen__text_save(const struct pen_text *, const char *path,
		   struct pen_err *err);

/* The same as dir/name, and the text is freed in every case. */
int pen__text_save_in(struct pen_text *, const char *dir, const char *name,
		      struct pen_err *err);
/* A directory and those above it, as mkdir -p; there already is fine. */
int pen__make_dirs(const char *dir, unsigned mode, struct pen_err *err);

/* Keys are NULL inside arrays; brackets are '{' '}' or '[' ']'. */
void pen__json_open(struct pen_text *, const char *key, char bracket);
void pen__json_close(struct pen_text *, char bracket);
void pen__json_str(struct pen_text *, const char *key, const char *value);
/* Only the text in its quotes: for keys that others chose. */
void pen__json_quote(struct pen_text *, const char *);
void pen__json_int(struct pen_text *, const char *key, uint64_t value);
void pen__json_num(struct pen_text *, const char *key, double value);
void pen__json_bool(struct pen_text *, const char *key, bool value);

#endif
