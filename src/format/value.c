/*
 * Types, shapes and lists of names as users write them in options, and errors
 * that name a sample. Refuses what a reader might take for something else: a
 * shape ends where its string ends, and has no empty axis.
 */
#include "format/value.h"

#include <stdio.h>

int pen__parse_dtype(const char *s, enum pen_dtype *out, struct pen_err *err)
{
	const char *names[PEN_NDTYPES + 1] = { NULL }, *near;

	s = s ? s : "uint8";
	for (unsigned i = 0; i < PEN_NDTYPES; i++) {
		names[i] = pen_dtype_name((enum pen_dtype)i);
		if (strcmp(names[i], s) != 0)
			continue;
		*out = (enum pen_dtype)i;
		return 0;
	}
	near = pen__nearest(s, names);
	return pen__fail(
		err, PEN_EINVAL, "dtype", "there is no type '%s'%s%s%s", s,
		near ? "; is it " : "", near ? near : "", near ? "?" : "");
}

int pen__parse_shape(const char *text, int64_t *dims, uint32_t *ndim,
		     struct pen_err *err)
{
	const char *s = text;
	bool more = true;

	*ndim = 0;
	while (more) {
		int64_t v = 0;

		if (*ndim == PEN_MAX_DIMS || *s < '0' || *s > '9')
			break;
		for (; *s >= '0' && *s <= '9'; s++)
			if (v < 0 || __builtin_mul_overflow(v, 10, &v) ||
			    __builtin_add_overflow(v, *s - '0', &v))
				v = -1;
		if (v <= 0)
			break;
		dims[(*ndim)++] = v;
		more = *s == 'x' || *s == ',';
		s += more;
	}
	if (more || *s)
		return pen__fail(err, PEN_EINVAL, "shape",
				 "'%s' is no shape; write it like 3x224x224",
				 text);
	return 0;
}

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

int pen__sample_fail(const struct pen_format *f, uint32_t object, uint64_t k,
		     const char *what, struct pen_err *err)
{
	char name[256];

	f->ix->name_of(f->ix, object, name, sizeof(name));
	return pen__fail(err, PEN_EDATA, name, "sample %llu in it: %s",
			 (unsigned long long)k, what);
}
