/* What formats without a description of their own take from options. */
#ifndef PEN_FORMAT_VALUE_H
#define PEN_FORMAT_VALUE_H

#include "format/format.h"

/* Which word of the list "a,b,c" this name is, or -1. */
int pen__in_list(const char *list, const void *name, size_t len);
/* PEN_EDATA, naming the object and which of its samples is meant. */
int pen__sample_fail(const struct pen_format *, uint32_t object, uint64_t k,
		     const char *what, struct pen_err *);

#endif
