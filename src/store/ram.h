/* Objects in memory that never were files: for tests and for the library. */
#ifndef PEN_STORE_RAM_H
#define PEN_STORE_RAM_H

#include "store/store.h"

/*
 * Adds an object to a ram store, with a copy of the bytes, or replaces one of
 * that name. Once there is one, list() yields these and looks at no file. Any
 * thread; seen by the next list() and bind().
 */
int pen__ram_put(struct pen_store *, const char *name, const void *p, size_t n,
		 struct pen_err *);

#endif
