/* Helpers of formats that are described by options. */
#ifndef PEN_FORMAT_VALUE_H
#define PEN_FORMAT_VALUE_H

#include "format/format.h"

/* Number i of an array of u64 in a blob; little-endian machines only. */
static inline uint64_t pen__u64_at(const uint8_t *p, uint64_t i)
{
	uint64_t v;

	memcpy(&v, p + i * 8, 8);
	return v;
}

/* Position of the name in the list "a,b,c", or -1. */
int pen__in_list(const char *list, const void *name, size_t len);
/* An error that names the object and the sample in it. */
int pen__sample_error(const struct pen_format *, int kind, uint32_t object,
		      uint64_t k, const char *what, struct pen_err *);
/* The same for damaged samples. */
int pen__sample_fail(const struct pen_format *, uint32_t object, uint64_t k,
		     const char *what, struct pen_err *);

#endif
