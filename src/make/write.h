/* Writing one object of a format through a store, with its side files. */
#ifndef PEN_MAKE_WRITE_H
#define PEN_MAKE_WRITE_H

#include "format/format.h"
#include "store/store.h"

struct pen_write {
	struct pen_store *st;
	const char *path;
	/* Called before n bytes are written; a result other than 0 ends it.
	 * May be NULL. */
	int (*step)(void *arg, size_t n, struct pen_err *);
	void *arg;
	/* Where the only side file goes, instead of beside; may be NULL. */
	const char *side_path;
};

/* All of it, or nothing: no file has its name before the last is complete,
 * and side files have theirs before the object has. */
int pen__write_object(const struct pen_write *, const struct pen_format *,
		      const struct pen_table *, struct pen_err *);

#endif
