/*
 * Growing text: lines, and JSON written incrementally. Running out of memory is
 * recorded and reported once, when the text is saved or used.
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
	bool failed; /* out of memory: the text is incomplete */
	/* JSON: */
	bool compact; /* no new lines from now on, for long arrays */
	bool ascii;   /* escape all non-ASCII characters */
	bool first;   /* the innermost bracket is still empty */
	int depth;
};

void pen__text_fini(struct pen_text *);
void pen__text_add(struct pen_text *, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void pen__text_put(struct pen_text *, const void *bytes, size_t n);
/* Like pen__quote(). */
void pen__text_quote(struct pen_text *, const char *s);
/* Writes a file that gets its final name only when it is complete and synced:
 * what is written survives a power failure. */
int pen__text_save(const struct pen_text *, const char *path,
		   struct pen_err *err);

/* The same for dir/name; frees the text in every case. !sync: the caller syncs
 * the entire directory later. */
int pen__text_save_in(struct pen_text *, const char *dir, const char *name,
		      bool sync, struct pen_err *err);
/* Creates a directory and those above it, like mkdir -p; it may exist already.
 * sync: new ones survive a power failure. */
int pen__make_dirs(const char *dir, unsigned mode, bool sync,
		   struct pen_err *err);

/* Keys are NULL inside arrays; brackets are '{' '}' or '[' ']'. */
void pen__json_open(struct pen_text *, const char *key, char bracket);
void pen__json_close(struct pen_text *, char bracket);
void pen__json_str(struct pen_text *, const char *key, const char *value);
/* Only the quoted text, for keys of unknown origin. */
void pen__json_quote(struct pen_text *, const char *);
void pen__json_int(struct pen_text *, const char *key, uint64_t value);
void pen__json_num(struct pen_text *, const char *key, double value);
void pen__json_bool(struct pen_text *, const char *key, bool value);

#endif
