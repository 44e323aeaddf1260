/* Shared by formats with one sample per file: the only field, x, contains its
 * bytes. */
#ifndef PEN_FORMAT_WHOLE_FILES_H
#define PEN_FORMAT_WHOLE_FILES_H

#include "format/format.h"

int pen__files_index(const struct pen_format *, struct pen_peek *,
		     struct pen_found *, struct pen_err *);
int pen__files_bind(struct pen_format *, const struct pen_index *,
		    struct pen_err *);
void pen__files_shape(const struct pen_format *, uint32_t object, uint64_t k,
		      uint32_t field, int64_t *shape);
void pen__files_locate(const struct pen_format *, uint32_t object, uint64_t k,
		       struct pen_unit *);

#endif
