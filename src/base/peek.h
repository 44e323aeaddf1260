/* Reads pieces of a file that the caller has open. */
#ifndef PEN_BASE_PEEK_H
#define PEN_BASE_PEEK_H

#include <stdbool.h>

#include "base/bytes.h"
#include "base/err.h"

/* How a format reads its object while it is indexed. */
struct pen_peek {
	const char *name; /* for messages: the object's path */
	uint64_t size;
	uint32_t object; /* its number */
	int (*read)(struct pen_peek *, uint64_t off, void *buf, size_t len,
		    struct pen_err *err); /* exactly len bytes, or an error */
	/*
	 * Reads a file next to the object, named like it plus a suffix, up to
	 * limit bytes; PEN_ENOTFOUND if it does not exist. NULL if the store
	 * has no such files.
	 */
	int (*read_side)(struct pen_peek *, const char *suffix, uint64_t limit,
			 struct pen_buf *out, struct pen_err *err);
	/*
	 * Formats with markers: finds another object of the data set by its
	 * path from the directory of this one ("a/b", "../a"); false if it does
	 * not exist. read_of() reads exactly len bytes of it. NULL if there are
	 * no others.
	 */
	bool (*find)(struct pen_peek *, const char *path, uint32_t *object,
		     uint64_t *size);
	int (*read_of)(struct pen_peek *, uint32_t object, uint64_t off,
		       void *buf, size_t len, struct pen_err *err);
	/* Calls see() with each directory below that of this object that has
	 * objects, by its path from there. */
	void (*dirs)(struct pen_peek *, void (*see)(void *arg, const char *dir),
		     void *arg);
};

/* Bytes in memory behind the same interface; name may be NULL. */
struct pen_peek_bytes {
	struct pen_peek pk; /* first */
	struct pen_span s;
};
struct pen_peek_bytes pen__peek_bytes(struct pen_span, const char *name);

#endif
