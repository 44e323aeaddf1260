/* Lists of names in options, and errors that name a sample. */
#include "format/value.h"

#include <stdio.h>

int pen__in_list(const char *list, const void *name, size_t len)
{
	for (int i = 0;; i++) {
		const size_t n = strcspn(list, ",");

		if (n == len && memcmp(list, name, n) == 0)
			return i;
		if (!list[n])
			return -1;
		list += n + 1;
	}
}

int pen__sample_error(const struct pen_format *f, int kind, uint32_t object,
		      uint64_t k, const char *what, struct pen_err *err)
{
	char name[256];

	f->ix->name_of(f->ix, object, name, sizeof(name));
	return pen__fail(err, kind, name, "sample %llu: %s",
			 (unsigned long long)k, what);
}

int pen__sample_fail(const struct pen_format *f, uint32_t object, uint64_t k,
		     const char *what, struct pen_err *err)
{
	return pen__sample_error(f, P_DAMAGED, object, k, what, err);
}
