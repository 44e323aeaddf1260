/* Element types and shapes. */
#ifndef PEN_BASE_DTYPE_H
#define PEN_BASE_DTYPE_H

#include <stdbool.h>

#include "base/err.h"

/* The size of an array in bytes; false on overflow. */
bool pen__shape_bytes(const int64_t *shape, uint32_t ndim, enum pen_dtype,
		      size_t *out);
/* "float32", ... as spelled by pen_dtype_name(); NULL is uint8. */
int pen__parse_dtype(const char *, enum pen_dtype *out, struct pen_err *);
/* "3x224x224" or "3,224,224": at least one axis, none of size 0. */
int pen__parse_shape(const char *, int64_t *dims, uint32_t *ndim,
		     struct pen_err *);

#endif
