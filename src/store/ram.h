/* Objects in memory that were never files: for tests and for the library. */
#ifndef PEN_STORE_RAM_H
#define PEN_STORE_RAM_H

#include "store/store.h"

/*
 * Adds an object with a copy of the bytes to a ram store, or replaces one of
 * that name. Once there is one, list() returns these and no files. Any thread;
 * visible to the next list() and bind().
 */
int pen__ram_put(struct pen_store *, const char *name, const void *p, size_t n,
		 struct pen_err *);

#endif
