/* A saved dictionary whose values are random bytes, a function of their size.
 */
#ifndef TESTS_SAVED_H
#define TESTS_SAVED_H

#include <stdlib.h>

#include "base/rng.h"
#include "penstock.h"
#include "test.h"

/* Keys are 0 .. n - 1. */
static void save_values(const char *path, const size_t *sizes, size_t n)
{
	const char *const set[] = { "memory=64MB" };
	struct pen_ddict *d;

	CHECK_EQ(pen_ddict_open(&d, NULL, set, 1, NULL), 0);
	for (size_t i = 0; i < n; i++) {
		uint8_t *p = malloc(sizes[i] + 1);

		pen__rng_fill(1, sizes[i], 0, p, sizes[i]);
		CHECK_EQ(pen_ddict_put(d, (struct pen_key){ NULL, i },
				       (struct pen_value){ p, sizes[i] }, NULL),
			 0);
		free(p);
	}
	CHECK_EQ(pen_ddict_persist(d, path, NULL), 0);
	pen_ddict_close(d);
}

#endif
