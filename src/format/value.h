/* What formats without a description of their own take from options. */
#ifndef PEN_FORMAT_VALUE_H
#define PEN_FORMAT_VALUE_H

#include "format/format.h"

/* "float32", ... as pen_dtype_name() spells it; NULL is uint8. */
int pen__parse_dtype(const char *, enum pen_dtype *out, struct pen_err *);
/* "3x224x224" or "3,224,224": at least one axis, none of them 0. */
int pen__parse_shape(const char *, int64_t *dims, uint32_t *ndim,
		     struct pen_err *);
/* Which word of the list "a,b,c" this name is, or -1. */
int pen__in_list(const char *list, const void *name, size_t len);
/* PEN_EDATA, naming the object and which of its samples is meant. */
int pen__sample_fail(const struct pen_format *, uint32_t object, uint64_t k,
		     const char *what, struct pen_err *);

#endif
