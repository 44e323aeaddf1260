/*
 * A result in one JSON document: result.json of `run`, or the output of `load
 * --json` or `capacity --json`. Values are addressed by paths, "a.b.c"; a
 * missing value is NAN, "" or nothing, because older versions wrote fewer.
 */
#ifndef PEN_REPORT_DOC_H
#define PEN_REPORT_DOC_H

#include "base/json.h"

struct pen_doc {
	const char *name; /* its path */
	struct pen_jdoc j;
};

/* Opens a file. PEN_EDATA: not a Penstock result. */
int pen__doc_open(struct pen_doc *, const char *path, struct pen_err *);
void pen__doc_close(struct pen_doc *);
/* Calls found() for every result.json below a directory, sorted by path, until
 * it fails. */
typedef int pen_doc_fn(void *arg, const char *path, struct pen_err *);
int pen__doc_walk(const char *dir, pen_doc_fn *found, void *arg,
		  struct pen_err *);
/* schema: its name with the slash before the version, "penstock.result/". */
bool pen__doc_is(const struct pen_doc *, const char *schema);

uint32_t pen__doc_at(const struct pen_doc *, uint32_t node, const char *path);
double pen__doc_number(const struct pen_doc *, uint32_t node, const char *path);
const char *pen__doc_text(const struct pen_doc *, uint32_t node,
			  const char *path);
/* A time for people, "2026-11-15 20:49:06", or "". */
struct pen_when {
	char s[24];
};
struct pen_when pen__doc_when(const struct pen_doc *, const char *path);
bool pen__doc_true(const struct pen_doc *, uint32_t node, const char *path);
/*
 * Numbers of a list, one per child: the child itself, or the value at `path` in
 * it (NULL: itself). The caller frees; NULL: empty, or out of memory.
 */
double *pen__doc_numbers(const struct pen_doc *, uint32_t list,
			 const char *path, size_t *n);
/* A scalar as text. */
const char *pen__doc_shown(const struct pen_doc *, uint32_t node, char *buf,
			   size_t cap);

#endif
