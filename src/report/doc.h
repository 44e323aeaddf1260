/*
 * A result that is one JSON document: result.json of `run`, what `load --json`
 * or `capacity --json` printed. Looked at by paths, "a.b.c"; what is not there
 * is NAN, "" or nothing, because older versions wrote less.
 */
#ifndef PEN_REPORT_DOC_H
#define PEN_REPORT_DOC_H

#include "base/json.h"

struct pen_doc {
	const char *name; /* the path it was asked for by */
	struct pen_jdoc j;
};

/* A file. PEN_EDATA: it is none of ours. */
int pen__doc_open(struct pen_doc *, const char *path, struct pen_err *);
void pen__doc_close(struct pen_doc *);
/* Calls found() with every result.json below a directory, sorted by path,
 * until it fails. */
typedef int pen_doc_fn(void *arg, const char *path, struct pen_err *);
int pen__doc_walk(const char *dir, pen_doc_fn *found, void *arg,
		  struct pen_err *);
/* "penstock.run/" is the schema's name with the slash before its number. */
bool pen__doc_is(const struct pen_doc *, const char *schema);

uint32_t pen__doc_at(const struct pen_doc *, uint32_t node, const char *path);
double pen__doc_number(const struct pen_doc *, uint32_t node, const char *path);
const char *pen__doc_text(const struct pen_doc *, uint32_t node,
			  const char *path);
bool pen__doc_true(const struct pen_doc *, uint32_t node, const char *path);
/*
 * Numbers of a list, one for each child: the child itself, or what is at
 * `path` in it (NULL: itself). The caller frees; NULL: no memory, or none.
 */
double *pen__doc_numbers(const struct pen_doc *, uint32_t list,
			 const char *path, size_t *n);
/* A number, string, true, false or null as text. */
const char *pen__doc_shown(const struct pen_doc *, uint32_t node, char *buf,
			   size_t cap);

#endif
