/* Indexed binary, which goes by two names: what both tables are made of. */
#ifndef PEN_FORMAT_RECORD_INDEXED_BINARY_H
#define PEN_FORMAT_RECORD_INDEXED_BINARY_H

#include "format/format.h"

struct pen_indexed {
	/* options */
	char *dtype, *shape;
	/* from open() on */
	enum pen_dtype type;
	uint32_t ndim; /* of shape; 0: one axis of any length */
	int64_t dims[PEN_MAX_DIMS];
	size_t row; /* bytes, when shape is given */
	/* from bind() on */
	struct pen_indexed_part *part; /* by blob */
};

extern const struct pen_opt pen__indexed_opts[];
int pen__indexed_open(struct pen_format *, struct pen_err *);
void pen__indexed_close(struct pen_format *);
int pen__indexed_index(const struct pen_format *, struct pen_peek *,
		       struct pen_found *, struct pen_err *);
int pen__indexed_bind(struct pen_format *, const struct pen_index *,
		      struct pen_err *);
void pen__indexed_shape(const struct pen_format *, uint32_t object, uint64_t k,
			uint32_t field, int64_t *shape);
void pen__indexed_locate(const struct pen_format *, uint32_t object, uint64_t k,
			 struct pen_unit *);
int pen__indexed_emit(const struct pen_format *, const struct pen_row *,
		      struct pen_err *);
void pen__indexed_describe(const struct pen_format *, struct pen_describe *);
int pen__indexed_write(const struct pen_format *, const struct pen_table *,
		       struct pen_out *, struct pen_err *);

#endif
