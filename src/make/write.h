/* Writing one object of a format through a store, with its side files. */
#ifndef PEN_MAKE_WRITE_H
#define PEN_MAKE_WRITE_H

#include "format/format.h"
#include "store/store.h"

struct pen_write {
	struct pen_store *st;
	const char *path;
	/* Called before n bytes are written; a nonzero result aborts. May be
	 * NULL. */
	int (*step)(void *arg, size_t n, struct pen_err *);
	void *arg;
	/* Path of the only side file, instead of next to the object; may be
	 * NULL. */
	const char *side_path;
};

/* Writes everything or nothing: no file gets its name before the last is
 * complete, and side files get theirs before the object. */
int pen__write_object(const struct pen_write *, const struct pen_format *,
		      const struct pen_table *, struct pen_err *);

#endif
